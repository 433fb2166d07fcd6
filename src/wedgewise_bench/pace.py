"""How far a run is, and how long the cells that are left will take, by those that ran."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from wedgewise_bench.record import Cell


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a run is: finished cells, all cells, and the seconds that are left by those that ran so far."""

    done: int
    total: int
    left_seconds: float | None

    def __str__(self) -> str:
        left = f", about {_duration(self.left_seconds)} left" if self.left_seconds else ""
        return f"{self.done} of {self.total}{left}"


class Pace:
    """What cells took so far, by graph, to tell what those that are left will take."""

    def __init__(self, cells: Sequence[Cell], clock: Callable[[], float] = time.perf_counter) -> None:
        self._left, self._clock = list(cells), clock
        self._total, self._last = len(cells), clock()
        self._taken: dict[str, list[float]] = {}

    def finish(self, *, ran: bool) -> Standing:
        """Note that the next cell has ended; one that was taken from earlier results tells nothing of the pace."""
        now, cell = self._clock(), self._left.pop(0)
        if ran:
            self._taken.setdefault(cell.graph, []).append(now - self._last)
        self._last = now
        return Standing(self._total - len(self._left), self._total, self._estimate())

    def _estimate(self) -> float | None:
        """The mean of the finished cells of the same graph for every cell that is left; of all where it has none."""
        everything = [seconds for taken in self._taken.values() for seconds in taken]
        if not everything:
            return None
        means = [self._taken.get(cell.graph, everything) for cell in self._left]
        return sum(sum(taken) / len(taken) for taken in means)


def _duration(seconds: float) -> str:
    """Seconds, minutes or hours, to be read at a glance."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"
