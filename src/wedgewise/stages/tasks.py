"""Tasks: which triples of parts there are, how long each may take, and in which order to start them (BBTC, §4.2, §5).

All estimates follow from the number of arcs of every block and of ids of every part, so that a store's manifest is
enough to plan by.

    time      m(ij) · max(δ(ik), δ(jk)), BBTC's own; δ is the average degree: arcs per row
    arcs      the arcs of the three blocks (NNZ)
    density   the sum of the blocks' arcs per entry
    degree    the sum of the blocks' average degrees
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import InputError, UnknownNameError
from wedgewise.stages.blocks import Blocks, Partition, Task

Numbers = NDArray[np.int64]
Estimates = NDArray[np.float64]


def tasks_of(partition: Partition, shares: int = 1) -> tuple[Task, ...]:
    """All tasks, by ascending (i, j, k, share): those with i ≤ j ≤ k where parts are ordered, all triples otherwise.

    Examples
    --------
    >>> from wedgewise.stages.blocks import Hashed
    >>> len(tasks_of(Hashed(n=100, parts=3))), len(tasks_of(Hashed(n=100, parts=3), shares=2))
    (27, 54)
    """
    return tuple(each_task(partition, shares))


def task_count(partition: Partition) -> int:
    """How many tasks there are, without a list of them."""
    p = partition.parts
    return p * (p + 1) * (p + 2) // 6 if partition.is_ordered else p**3


def each_task(partition: Partition, shares: int = 1) -> Iterator[Task]:
    """The same one after the other."""
    if shares < 1:
        raise InputError(f"a task is cut into at least one share, not {shares}; ask for more shares")
    parts = range(partition.parts)
    triples = (
        ((i, j, k) for i in parts for j in parts[i:] for k in parts[j:])
        if partition.is_ordered
        else ((i, j, k) for i in parts for j in parts for k in parts)
    )
    for position, (i, j, k) in enumerate(triples):
        for share in range(shares):
            yield Task(position * shares + share, i, j, k, share, shares)


@dataclass(frozen=True, slots=True)
class Counts:
    """How many arcs every block has, and how many ids every part.

    Attributes
    ----------
    arcs : by row part and column part; none where there is no block
    sizes : ids by part
    """

    arcs: Numbers
    sizes: Numbers

    @classmethod
    def of(cls, blocks: Blocks) -> Counts:
        """The counts of blocks that are in memory."""
        parts = blocks.partition.parts
        arcs = np.zeros((parts, parts), np.int64)
        for pair, block in blocks.blocks.items():
            arcs[pair] = block.m
        return cls(arcs, np.array(blocks.partition.sizes, np.int64))

    @property
    def degrees(self) -> Estimates:
        """The average degree of every block: arcs per row."""
        return self.arcs / np.maximum(self.sizes, 1)[:, None]

    @property
    def densities(self) -> Estimates:
        """The arcs per entry of every block."""
        return self.degrees / np.maximum(self.sizes, 1)


def _time(counts: Counts, i: Numbers, j: Numbers, k: Numbers) -> Estimates:
    degrees = counts.degrees
    return np.maximum(degrees[i, k], degrees[j, k]) * counts.arcs[i, j]


def _sum_of(values: NDArray[np.int64] | Estimates, i: Numbers, j: Numbers, k: Numbers) -> Estimates:
    """A number per block, summed over the three blocks of every task."""
    return np.asarray(values[i, j] + values[i, k] + values[j, k], np.float64)


ESTIMATORS: dict[str, Callable[[Counts, Numbers, Numbers, Numbers], Estimates]] = {
    "time": _time,
    "arcs": lambda counts, i, j, k: _sum_of(counts.arcs, i, j, k),
    "density": lambda counts, i, j, k: _sum_of(counts.densities, i, j, k),
    "degree": lambda counts, i, j, k: _sum_of(counts.degrees, i, j, k),
}


def estimates(counts: Counts, tasks: Sequence[Task], by: str = "time") -> Estimates:
    """How much work every task may be, in units of no meaning across estimators; a share has its share of it."""
    if by not in ESTIMATORS:
        raise UnknownNameError(f"no estimator named {by!r}; there are: {', '.join(ESTIMATORS)}")
    numbers = np.array([(task.i, task.j, task.k, task.shares) for task in tasks], np.int64).reshape(-1, 4)
    i, j, k, shares = numbers.T
    return ESTIMATORS[by](counts, i, j, k) / shares


def heaviest_first(counts: Counts, tasks: Sequence[Task], by: str = "time") -> tuple[Task, ...]:
    """Tasks by descending estimate, those of equal estimates in their order."""
    order = np.argsort(-estimates(counts, tasks, by), kind="stable")
    return tuple(tasks[position] for position in order)
