"""The command line: ``wedgewise`` and ``python -m wedgewise``."""

from __future__ import annotations

from _wedgewise_start.signals import end_at_signals

__all__ = ["main"]

INTERRUPTED = 130


def main() -> None:
    """Run the command that ``sys.argv`` names and exit with its code."""
    end_at_signals()
    from wedgewise.cli.streams import prepare_streams

    prepare_streams()
    from wedgewise.cli.app import app

    app(prog_name="wedgewise")
