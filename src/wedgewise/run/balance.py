"""How even blocks and workers are, by the measures of the papers, and how long workers would take together.

    λ          most arcs of a block / average arcs of a block              (BBTC, §4.4)
    space IR   most arcs of a block / fewest arcs of a block               (TRUST, table 6)
    time IR    longest time of a worker / shortest time of a worker        (TRUST, table 6)

Estimators are judged by what a schedule needs of them, which is the order of tasks: by Spearman's rank correlation with
measured times, and by how much of the list that they sort has to be taken to have the longest tasks (BBTC, figure 6).

A schedule is made by lists: tasks start in the given order, each on the worker that is free first. It takes at most
total / workers + longest task, and at most twice the shortest schedule there is (Graham).
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, sqrt

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import InputError
from wedgewise.stages.blocks import Partition
from wedgewise.stages.tasks import BlockCounts

SIMULATED_WORKERS = (8, 16, 32, 64, 128, 256, 512, 1024)


@dataclass(frozen=True, slots=True)
class Balance:
    """How evenly arcs are spread over blocks."""

    load_imbalance: float
    space_ratio: float

    @classmethod
    def of(cls, counts: BlockCounts, partition: Partition) -> Balance:
        """The measures of a partition: blocks below the diagonal count only where parts are not ordered."""
        above = np.triu_indices(partition.parts) if partition.is_ordered else np.indices(counts.arcs.shape)
        arcs = counts.arcs[tuple(above)].reshape(-1)
        average = float(arcs.mean())
        return cls(float(arcs.max()) / average if average else 1.0, ratio(arcs))


@dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """Which worker has each task, and how long each worker is busy."""

    worker_of: NDArray[np.int64]
    busy: NDArray[np.float64]

    @property
    def makespan(self) -> float:
        """When the last worker ends."""
        return float(self.busy.max())

    @property
    def time_ratio(self) -> float:
        """Time IR: infinite where a worker has nothing to do."""
        return ratio(self.busy)


def ratio(values: NDArray[np.int64] | NDArray[np.float64]) -> float:
    """The largest value by the smallest; 1 where all are zero, or there are none."""
    if len(values) == 0:
        return 1.0
    most, fewest = float(values.max()), float(values.min())
    if fewest == 0:
        return inf if most else 1.0
    return most / fewest


def schedule(seconds: Sequence[float] | NDArray[np.float64], workers: int) -> Schedule:
    """Start tasks of so many seconds in their order, each on the worker that is free first.

    Examples
    --------
    >>> schedule([4, 3, 2, 2, 1], workers=2).makespan
    6.0
    """
    if workers < 1:
        raise InputError(f"tasks run on at least one worker, not {workers}; ask for more workers")
    worker_of = np.zeros(len(seconds), np.int64)
    free = [(0.0, worker) for worker in range(workers)]  # a heap: equal times, so by worker
    for task, taken in enumerate(seconds):
        since, worker = free[0]
        worker_of[task] = worker
        heapq.heapreplace(free, (since + float(taken), worker))
    busy = np.zeros(workers)
    for until, worker in free:
        busy[worker] = until
    return Schedule(worker_of, busy)


def schedules(
    seconds: Sequence[float] | NDArray[np.float64], workers: Sequence[int] = SIMULATED_WORKERS
) -> dict[int, Schedule]:
    """The schedule of the same tasks for each number of workers."""
    return {count: schedule(seconds, count) for count in workers}


def rank_correlation(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Spearman's: 1 where both sort tasks alike, -1 where they sort them in opposite orders; 0 without differences.

    Examples
    --------
    >>> rank_correlation(np.array([1.0, 2.0, 3.0]), np.array([10.0, 10.5, 99.0]))
    1.0
    """
    deviations = [_ranks(values) - (len(values) - 1) / 2 for values in (first, second)]
    spreads = [float((deviation**2).sum()) for deviation in deviations]
    if 0.0 in spreads:
        return 0.0
    return float((deviations[0] * deviations[1]).sum()) / sqrt(spreads[0] * spreads[1])


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The position of each value among all of them, from 0 on; equal ones have their average position."""
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    averages = np.cumsum(counts) - (counts + 1) / 2
    ranks: NDArray[np.float64] = averages[which]
    return ranks


def share_of_list(seconds: NDArray[np.float64], estimated: NDArray[np.float64], longest: int) -> float:
    """How much of a list, heaviest estimates first, has to be taken to have so many of the longest tasks.

    Examples
    --------
    >>> share_of_list(np.array([9.0, 1.0, 8.0, 2.0]), np.array([5.0, 4.0, 3.0, 2.0]), longest=2)
    0.75
    """
    if len(seconds) == 0:
        return 0.0
    listed = np.argsort(-estimated, kind="stable")
    sought = np.argsort(-seconds, kind="stable")[:longest]
    last = int(np.flatnonzero(np.isin(listed, sought))[-1])
    return (last + 1) / len(seconds)
