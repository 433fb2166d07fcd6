"""One number for several repeats: our own median, and what each paper states instead."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

AVERAGES: Mapping[str, Callable[[Sequence[float]], float]] = {
    "median": statistics.median,
    "mean": statistics.fmean,
    "least": min,
}


@dataclass(frozen=True, slots=True)
class Statistic:
    """An average of the last so many repeats, or of all where no number is given; its name is one of `AVERAGES`.

    Examples
    --------
    >>> Statistic("mean", 2).of([9.0, 1.0, 2.0])
    1.5
    """

    average: str
    runs: int | None = None

    def of(self, seconds: Sequence[float]) -> float | None:
        """The average; None without a repeat."""
        if not seconds:
            return None
        return float(AVERAGES[self.average](seconds[-self.runs :] if self.runs else seconds))

    def __str__(self) -> str:
        return self.average if self.runs is None else f"{self.average} of the last {self.runs}"


OURS = Statistic("median")
