"""Signals while the command line starts and ends.

Until a command begins, and after it has ended, nothing is half done: Ctrl-C and SIGTERM end the process on the spot and
without a word. `wedgewise.cli.console` has them raise exceptions while a command works. The module `signal` would take
15 ms to import, in which Ctrl-C is a traceback: `_signal` is what it is made of, and is there.
"""

import _signal as signal  # type: ignore[import-not-found]
import os
import sys


def end_at_signals() -> None:
    """End at Ctrl-C, unless whoever started us has it ignored, and at SIGTERM."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, end)
    signal.signal(signal.SIGTERM, end)


def is_module_run() -> bool:
    """Whether Python is about to run ``-m wedgewise``: it imports the package before any line of that program."""
    return sys.argv[:1] == ["-m"] and sys.orig_argv[-len(sys.argv) :][0] in ("wedgewise", "-mwedgewise")


def end(number: int, _frame: object) -> None:
    """The handler of a signal that finds nothing half done."""
    os._exit(128 + number)


if is_module_run():
    end_at_signals()
