"""Measured tasks → how even they were, which estimator foresaw it, and how long more workers would take.

The plan beyond the machines that are there: tasks with the seconds that they took are handed to 8 … 1,024 imagined
workers, heaviest first by each estimator, or in the order of their numbers. No worker waits for blocks in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isinf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.report.text import facts_text, plural, table_text
from wedgewise.run.balance import SIMULATED_WORKERS, Balance, rank_correlation, ratio, schedules, share_of_list
from wedgewise.stages.blocks import Partition
from wedgewise.stages.tasks import ESTIMATORS, Counts, table_of, with_work

LONG_SECONDS = 1e-3  # TRUST's time IR says little of tasks that are shorter
LONGEST = 32  # tasks that BBTC looks for in figure 6
IN_TURN = "number"  # no estimator: tasks as they are numbered


@dataclass(frozen=True, slots=True)
class Foresight:
    """How well an estimator sorts tasks.

    Attributes
    ----------
    rank_correlation : Spearman's, of estimates and seconds
    list_share : how much of its list has the `LONGEST` longest tasks
    """

    rank_correlation: float
    list_share: float


@dataclass(frozen=True, slots=True)
class Makespan:
    """How long so many workers take.

    Attributes
    ----------
    workers : how many
    least : no schedule is shorter: total / workers, or the longest task
    seconds : of the schedule by each estimator
    """

    workers: int
    least: float
    seconds: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class BalanceReport:
    """What the measured tasks of a partition say.

    Attributes
    ----------
    parts, tasks : how many there are
    timed : tasks that have work and were timed
    total, longest : seconds
    load_imbalance, space_ratio : λ and space IR of the blocks
    time_ratio : time IR of the timed tasks, each on a worker of its own
    long_tasks, long_time_ratio : how many took `LONG_SECONDS` or more, and their time IR
    foresight : of every estimator
    makespans : for ascending numbers of workers
    """

    parts: int
    tasks: int
    timed: int
    total: float
    longest: float
    load_imbalance: float
    space_ratio: float
    time_ratio: float
    long_tasks: int
    long_time_ratio: float
    foresight: Mapping[str, Foresight]
    makespans: tuple[Makespan, ...]

    def to_dict(self) -> dict[str, Any]:
        """For JSON, which has no infinity: None stands for it."""
        return {
            **{name: None if isinf(value := getattr(self, name)) else value for name in self.__slots__[:-2]},
            "foresight": {by: asdict(found) for by, found in self.foresight.items()},
            "makespans": [self._makespan(found) for found in self.makespans],
        }

    def _makespan(self, found: Makespan) -> dict[str, Any]:
        speedups = {by: self.speedup(seconds) for by, seconds in found.seconds.items()}
        return {
            "workers": found.workers,
            "least": found.least,
            "seconds": dict(found.seconds),
            "speedup": speedups,
            "efficiency": {by: speedup / found.workers for by, speedup in speedups.items()},
        }

    def speedup(self, seconds: float) -> float:
        """How much sooner that is than one worker would end."""
        return self.total / seconds if seconds else 1.0


def balance_report(
    partition: Partition,
    counts: Counts,
    seconds: Mapping[int, float],
    *,
    shares: int = 1,
    workers: Sequence[int] = SIMULATED_WORKERS,
) -> BalanceReport:
    """Judge a partition by the seconds that its tasks took.

    Parameters
    ----------
    partition, counts : of a store or of blocks in memory
    seconds : by number of task, of those that were timed; ``Result.task_seconds`` of a count
    shares : how many tasks every three parts are cut into
    workers : for how many workers to imagine schedules
    """
    tasks = table_of(partition, shares)
    timed = tasks.take(np.isin(tasks.number, np.array(list(seconds), np.int64)))
    taken = np.array([seconds[number] for number in timed.number.tolist()], np.float64)
    long = taken[taken >= LONG_SECONDS]
    even = Balance.of(counts, partition)
    estimated = {by: with_work(timed, counts, by).work for by in ESTIMATORS}
    return BalanceReport(
        parts=partition.parts,
        tasks=len(tasks),
        timed=len(timed),
        total=float(taken.sum()),
        longest=float(taken.max(initial=0.0)),
        load_imbalance=even.load_imbalance,
        space_ratio=even.space_ratio,
        time_ratio=ratio(taken),
        long_tasks=len(long),
        long_time_ratio=ratio(long),
        foresight={
            by: Foresight(rank_correlation(found, taken), share_of_list(taken, found, LONGEST))
            for by, found in estimated.items()
        },
        makespans=_makespans(taken, estimated, workers),
    )


def _makespans(
    taken: NDArray[np.float64],
    estimated: Mapping[str, NDArray[np.float64]],
    workers: Sequence[int],
) -> tuple[Makespan, ...]:
    if len(taken) == 0:
        return ()
    orders = {by: np.argsort(-found, kind="stable") for by, found in estimated.items()}
    orders[IN_TURN] = np.arange(len(taken))
    found = {by: schedules(taken[order], workers) for by, order in orders.items()}
    total, longest = float(taken.sum()), float(taken.max())
    return tuple(
        Makespan(count, max(total / count, longest), {by: made[count].makespan for by, made in found.items()})
        for count in workers
    )


def balance_text(found: BalanceReport) -> str:
    """The report for people."""
    facts = [
        ("parts", f"{found.parts:,}, {plural(found.tasks, 'task')}, of which {found.timed:,} have work and were timed"),
        ("seconds", f"{found.total:.3g} in all, {found.longest:.3g} for the longest task"),
        ("λ", f"{found.load_imbalance:.3f}, most arcs of a block by their average"),
        ("space IR", f"{found.space_ratio:.3f}, most arcs of a block by fewest"),
        ("time IR", f"{found.time_ratio:.3f}, longest task by shortest"),
        ("", f"{found.long_time_ratio:.3f} of the {found.long_tasks:,} that took 1 ms or more"),
    ]
    if not found.makespans:
        return facts_text(facts)
    return "\n\n".join([facts_text(facts), _foresight_text(found), _makespans_text(found)])


def _foresight_text(report: BalanceReport) -> str:
    header = ("estimator", "rank correlation", f"of its list for the {min(LONGEST, report.timed)} longest tasks")
    rows = [
        (by, f"{found.rank_correlation:.3f}", f"{100 * found.list_share:.1f} %")
        for by, found in report.foresight.items()
    ]
    return table_text([header, *rows])


def _makespans_text(report: BalanceReport) -> str:
    """Seconds, and the efficiency in brackets."""
    orders = list(report.makespans[0].seconds)
    header = ("workers", "least", *(f"by {by}" for by in orders))
    rows = [
        (
            f"{found.workers:,}",
            f"{found.least:.3g} s",
            *(f"{found.seconds[by]:.3g} s ({report.speedup(found.seconds[by]) / found.workers:.0%})" for by in orders),
        )
        for found in report.makespans
    ]
    return table_text([header, *rows])
