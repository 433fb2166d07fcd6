"""The command line: ``wedgewise`` and ``python -m wedgewise``."""

from __future__ import annotations

import signal
import sys
from typing import NoReturn

__all__ = ["main"]

INTERRUPTED, TERMINATED = 130, 143


def main() -> None:
    """Run the command that ``sys.argv`` names and exit with its code."""
    signal.signal(signal.SIGTERM, _terminate)
    try:
        from wedgewise.cli.app import app

        app(prog_name="wedgewise")
    except KeyboardInterrupt:  # while modules were still being imported
        sys.exit(INTERRUPTED)


def _terminate(_number: int, _frame: object) -> NoReturn:
    """Leave through the exception handlers, which remove temporary files, instead of dying on the spot."""
    sys.exit(TERMINATED)
