"""What every process that runs tests does once."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", autouse=True)
def every_kernel_is_listed() -> Iterator[None]:
    """What tests call is in the lists that are compiled ahead and shipped; what is not is a line to add to one."""
    yield
    from wedgewise.machine import signatures

    assert signatures.unlisted() == [], f"add to {signatures.LIST.name}, those of 64-bit offsets to the other list"


def pytest_collection_finish() -> None:
    """Leave all modules and tests out of garbage collections: work that runs out of memory makes one each time."""
    gc.freeze()


def pytest_unconfigure() -> None:
    """Let libraries give back what they hold at the end."""
    gc.unfreeze()
