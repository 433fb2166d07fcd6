"""The first of our code that the command line runs, before whatever takes time to import."""

from _wedgewise_start.signals import end_at_signals


def main() -> None:
    """The program ``wedgewise``."""
    end_at_signals()
    from wedgewise.cli import main

    main()
