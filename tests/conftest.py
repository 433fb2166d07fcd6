"""What every process that runs tests does once."""

from __future__ import annotations

import gc


def pytest_collection_finish() -> None:
    """Leave all modules and tests out of garbage collections: work that runs out of memory makes one each time."""
    gc.freeze()


def pytest_unconfigure() -> None:
    """Let libraries give back what they hold at the end."""
    gc.unfreeze()
