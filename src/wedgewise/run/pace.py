"""How fast batches of tasks are counted, by those that were: the next one takes about as long as it should."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

BATCH_SECONDS = 0.05


@dataclass(slots=True)
class TaskPace:
    """How much of the estimates was done, in how many seconds of a stream or thread."""

    guess: float | None = None
    work: float = 0.0
    seconds: float = 0.0
    first_seen: set[str] = field(default_factory=set)

    def add(self, worker: str, work: float, seconds: float) -> None:
        """Take a batch into account, unless it is the first of its worker, which may load and compile."""
        if worker in self.first_seen:
            self.work += work
            self.seconds += seconds
        self.first_seen.add(worker)

    @property
    def seen(self) -> float | None:
        """Seconds for a unit of work; None as long as none was done."""
        return self.seconds / self.work if self.work > 0 else None

    @property
    def likely(self) -> float | None:
        """What was seen, or else the guess, where there is one."""
        return self.guess if self.seen is None else self.seen

    def work_in(self, seconds: float, unknown: float = inf) -> float:
        """What is likely to be done in so long, where anything is known."""
        return seconds / self.likely if self.likely else unknown
