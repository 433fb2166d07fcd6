"""Progress: a bar on a terminal, a callback, or nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Tell = Callable[[str, int, int], None]


@contextmanager
def progress_bar(progress: Tell | bool | None) -> Iterator[Tell | None]:
    """Yield ``tell(stage, done, total)``: the callable itself, a bar on standard error for True, None for nothing."""
    if progress is None or progress is False:
        yield None
    elif callable(progress):
        yield progress
    else:
        from rich.console import Console
        from rich.progress import Progress

        with Progress(console=Console(file=sys.stderr), transient=True) as bar:
            tasks = {}

            def tell(stage: str, done: int, total: int) -> None:
                if stage not in tasks:
                    tasks[stage] = bar.add_task(stage, total=total)
                bar.update(tasks[stage], completed=done, total=total)

            yield tell
