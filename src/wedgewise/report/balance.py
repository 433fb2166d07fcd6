"""Measured tasks → how even they were, which estimator foresaw it, and how long more workers would take.

The plan beyond the machines that are there: tasks with the seconds that they took are handed to 8 … 1,024 imagined
workers, heaviest first by each estimator, or in the order of their numbers. No worker waits for blocks in it.

    speed-up   seconds of the graph in one part on one worker / seconds of so many workers     (TRUST, figure 15)
    TEPS       edges of the graph / seconds of so many workers                                 (TRUST, §1.2)

Cutting a graph makes work: the sum of all tasks says nothing of what one worker would take that has no need to cut. A
speed-up is therefore given where the time of the graph in one part was measured, and not otherwise.
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
from wedgewise.stages.tasks import ESTIMATORS, BlockCounts, table_of, with_work

LONG_SECONDS = 1e-3  # TRUST's time IR says little of tasks that are shorter
LONGEST = 32  # tasks that BBTC looks for in figure 6
TRUST_TIME_RATIO = 1.12  # at most, in TRUST's table 6
ESTIMATED_TIME = "time"  # BBTC's own estimator
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
    time_ratios : time IR of the workers, by each estimator
    """

    workers: int
    least: float
    seconds: Mapping[str, float]
    time_ratios: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class BalanceReport:
    """What the measured tasks of a partition say.

    Attributes
    ----------
    parts, tasks : how many there are
    edges : of the graph
    unpartitioned : seconds of the graph in one part on one worker, by the same algorithm; None where not measured
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
    edges: int
    unpartitioned: float | None
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
            **{name: _finite(getattr(self, name)) for name in self.__slots__[:-2]},
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
            "efficiency": {by: _ratio(speedup, found.workers) for by, speedup in speedups.items()},
            "time_ratio": {by: _finite(worst) for by, worst in found.time_ratios.items()},
            "teps": {by: self.teps(seconds) for by, seconds in found.seconds.items()},
        }

    def speedup(self, seconds: float) -> float | None:
        """How much sooner that is than one worker ends that has the graph in one part; None where that is not known."""
        return _ratio(self.unpartitioned, seconds)

    def teps(self, seconds: float) -> float | None:
        """Traversed edges per second: those of the graph, each once, whatever the tasks visit."""
        return _ratio(self.edges, seconds)


def _ratio(value: float | None, by: float) -> float | None:
    return None if value is None or not by else value / by


def _finite(value: float | None) -> float | None:
    return None if value is None or isinf(value) else value


def balance_report(
    partition: Partition,
    counts: BlockCounts,
    seconds: Mapping[int, float],
    *,
    shares: int = 1,
    workers: Sequence[int] = SIMULATED_WORKERS,
    unpartitioned: float | None = None,
) -> BalanceReport:
    """Judge a partition by the seconds that its tasks took.

    Parameters
    ----------
    partition, counts : of a store or of blocks in memory
    seconds : by number of task, of those that were timed; ``Result.task_seconds`` of a count
    shares : how many tasks every three parts are cut into
    workers : for how many workers to imagine schedules
    unpartitioned : seconds of the graph in one part, by the same algorithm on one worker; those of its only task, where
        it has no others
    """
    tasks = table_of(partition, shares)
    timed = tasks.take(np.isin(tasks.number, np.array(list(seconds), np.int64)))
    taken = np.array([seconds[number] for number in timed.number.tolist()], np.float64)
    long = taken[taken >= LONG_SECONDS]
    even = Balance.of(counts, partition)
    if len(tasks) == len(timed) == 1:
        unpartitioned = float(taken[0])
    estimated = {by: with_work(timed, counts, by).work for by in ESTIMATORS}
    return BalanceReport(
        parts=partition.parts,
        tasks=len(tasks),
        edges=int(counts.arcs.sum()),
        unpartitioned=unpartitioned,
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
        Makespan(
            count,
            max(total / count, longest),
            {by: made[count].makespan for by, made in found.items()},
            {by: made[count].time_ratio for by, made in found.items()},
        )
        for count in workers
    )


def balance_text(found: BalanceReport) -> str:
    """The report for people."""
    facts = [
        ("parts", f"{found.parts:,}, {plural(found.tasks, 'task')}, of which {found.timed:,} have work and were timed"),
        ("seconds", f"{found.total:.3g} in all, {found.longest:.3g} for the longest task"),
        ("one part", _unpartitioned_text(found)),
        ("λ", f"{found.load_imbalance:.3f}, most arcs of a block by their average"),
        ("space IR", f"{found.space_ratio:.3f}, most arcs of a block by fewest"),
        ("time IR", f"{found.time_ratio:.3f}, longest task by shortest; at most {TRUST_TIME_RATIO} in TRUST's table 6"),
        ("", f"{found.long_time_ratio:.3f} of the {found.long_tasks:,} that took 1 ms or more"),
    ]
    if not found.makespans:
        return facts_text(facts)
    return "\n\n".join([facts_text(facts), _foresight_text(found), _makespans_text(found)])


def _unpartitioned_text(found: BalanceReport) -> str:
    if found.unpartitioned is None:
        return "not measured, so that no speed-up is given; `wedgewise bench balance` measures it"
    return f"{found.unpartitioned:.3g} seconds for the graph on one worker, which speed-ups are relative to"


def _foresight_text(report: BalanceReport) -> str:
    header = ("estimator", "rank correlation", f"of its list for the {min(LONGEST, report.timed)} longest tasks")
    rows = [
        (by, f"{found.rank_correlation:.3f}", f"{100 * found.list_share:.1f} %")
        for by, found in report.foresight.items()
    ]
    return table_text([header, *rows])


def _makespans_text(report: BalanceReport) -> str:
    """Seconds, with speed-ups in brackets; time IR and TEPS are those of the schedule by BBTC's estimator."""
    orders, own = list(report.makespans[0].seconds), ESTIMATED_TIME
    header = ("workers", "least", *(f"by {by}" for by in orders), f"time IR by {own}", f"TEPS by {own}")
    rows = [
        (
            f"{found.workers:,}",
            f"{found.least:.3g} s",
            *(_seconds_text(report, found.seconds[by]) for by in orders),
            f"{found.time_ratios[own]:.3f}",
            f"{report.teps(found.seconds[own]) or 0:.3g}",
        )
        for found in report.makespans
    ]
    return table_text([header, *rows])


def _seconds_text(report: BalanceReport, seconds: float) -> str:
    speedup = report.speedup(seconds)
    return f"{seconds:.3g} s" if speedup is None else f"{seconds:.3g} s ({speedup:.3g}×)"
