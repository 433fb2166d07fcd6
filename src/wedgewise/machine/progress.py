"""Progress: a bar on a terminal or in a notebook, a callback, or nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Progress = Callable[[str, int, int], None]  # the stage, what is done, and the total

PATIENCE_SECONDS = 0.5  # work that is done by then needs no bar, and does not wait for one to be imported


@contextmanager
def progress_bar(progress: Progress | bool | None) -> Iterator[Progress | None]:
    """Yield ``progress(stage, done, total)``: the callable itself, a bar on standard error for True, or None."""
    if progress is None or progress is False:
        yield None
    elif callable(progress):
        yield progress
    else:
        bars = _Bars()
        try:
            yield bars.show
        finally:
            bars.close()


def never_back(progress: Progress | None) -> Progress | None:
    """Progress that never decreases, for work that may have to try again."""
    if progress is None:
        return None
    most = 0

    def forward_only(stage: str, done: int, total: int) -> None:
        nonlocal most
        most = max(most, done)
        progress(stage, most, total)

    return forward_only


class _Bars:
    """One bar at a time, once the work lasts a while; at once for a stage of unknown length (total 0)."""

    def __init__(self) -> None:
        self.begin = time.perf_counter()
        self.drawn: Any = None
        self.tasks: dict[str, Any] = {}

    def show(self, stage: str, done: int, total: int) -> None:
        if self.drawn is None:
            if total and time.perf_counter() - self.begin < PATIENCE_SECONDS:
                return
            self.drawn = _draw()
        if stage not in self.tasks:
            for earlier in self.tasks.values():
                self.drawn.remove_task(earlier)
            self.tasks = {stage: self.drawn.add_task(stage, total=total or None)}
        self.drawn.update(self.tasks[stage], completed=done, total=total or None)

    def close(self) -> None:
        if self.drawn is not None:
            self.drawn.stop()


def _draw() -> Any:
    """A live display that leaves no trace when it is stopped, and never shows where nobody looks."""
    from wedgewise.machine.notebook import NotebookBar, is_notebook

    if is_notebook():
        return NotebookBar()
    from rich.console import Console
    from rich.progress import Progress

    console = Console(file=sys.stderr)
    display = Progress(console=console, transient=True, disable=not console.is_terminal)
    display.start()
    return display
