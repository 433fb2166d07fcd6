"""Tasks: which triples of parts there are, how long each may take, and in which order to start them (BBTC, §4.2, §5).

All estimates follow from the number of arcs of every block and of ids of every part, so that a store's manifest is
enough to plan by.

    time      m(ij) · max(δ(ik), δ(jk)), BBTC's own; δ is the average degree: arcs per row
    arcs      the arcs of the three blocks (NNZ)
    density   the sum of the blocks' arcs per entry
    degree    the sum of the blocks' average degrees
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import InputError, UnknownNameError
from wedgewise.stages.blocks import Block, Blocks, Partition, Task, Triple

Numbers = NDArray[np.int64]
Estimates = NDArray[np.float64]
Pair = tuple[int, int]
MAX_SHARES = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class TaskTable:
    """Tasks by columns, 32 bytes each; what a task is, `Task` says.

    Attributes
    ----------
    number, i, j, k, share : of every task
    work : how long each may take, in units of no meaning across estimators
    parts, shares : of all of them
    """

    number: Numbers
    i: NDArray[np.int32]
    j: NDArray[np.int32]
    k: NDArray[np.int32]
    share: NDArray[np.int32]
    work: Estimates
    parts: int
    shares: int

    def __len__(self) -> int:
        return len(self.number)

    def __getitem__(self, position: int) -> Task:
        columns = (self.number, self.i, self.j, self.k, self.share)
        taken: Any = (*(int(column[position]) for column in columns), self.shares)
        return Task(*taken)

    def __iter__(self) -> Iterator[Task]:
        return map(self.__getitem__, range(len(self)))

    def take(self, which: NDArray[Any] | slice) -> TaskTable:
        """Some of the tasks, in the order that is given."""
        columns = (self.number, self.i, self.j, self.k, self.share, self.work)
        taken: Any = (*(column[which] for column in columns), self.parts, self.shares)
        return TaskTable(*taken)

    @property
    def pairs(self) -> tuple[Numbers, Numbers, Numbers]:
        """The blocks ij, ik and jk of every task, numbered by row part and column part."""
        i, j, k, parts = self.i.astype(np.int64), self.j, self.k, self.parts
        return i * parts + j, i * parts + k, j.astype(np.int64) * parts + k

    def in_reuse_order(self) -> TaskTable:
        """Tasks by j and k, and by i up and down in turn, so that neighbours have blocks in common."""
        groups = self.pairs[2]
        turn = np.unique(groups, return_inverse=True)[1] % 2
        return self.take(np.lexsort((self.share, np.where(turn == 0, self.i, -self.i), groups)))

    def heaviest_first(self) -> TaskTable:
        """Tasks by descending work, those of equal work in their order."""
        return self.take(np.argsort(-self.work, kind="stable"))


def table_of(partition: Partition, shares: int = 1) -> TaskTable:
    """All tasks, by ascending (i, j, k, share): those with i ≤ j ≤ k where parts are ordered, all triples otherwise.

    Examples
    --------
    >>> from wedgewise.stages.blocks import Hashed
    >>> len(table_of(Hashed(n=100, parts=3))), len(table_of(Hashed(n=100, parts=3), shares=2))
    (27, 54)
    """
    check_shares(shares)
    parts, every = partition.parts, np.arange(partition.parts)
    first = every if partition.is_ordered else np.zeros_like(every)  # of j for each i, and of k for each j
    i = np.repeat(every, parts - first)
    j = _count_on(first)
    i, j, k = np.repeat(i, (parts - first)[j]), np.repeat(j, (parts - first)[j]), _count_on(first[j], parts)
    number = np.arange(len(i) * shares)
    columns = (np.repeat(column, shares).astype(np.int32) for column in (i, j, k))
    of_tasks: Any = (number, *columns, (number % shares).astype(np.int32), np.zeros(len(number)), parts, shares)
    return TaskTable(*of_tasks)


def check_shares(shares: int) -> None:
    """Refuse a number of shares that no task can be cut into."""
    if not 1 <= shares <= MAX_SHARES:
        raise InputError(f"a task is cut into 1 … {MAX_SHARES:,} shares, not {shares:,}; ask for other shares")


def joined(tables: Sequence[TaskTable]) -> TaskTable:
    """Tables of the same parts, one behind the other."""
    columns = ("number", "i", "j", "k", "share", "work")
    whole: dict[str, Any] = {column: np.concatenate([getattr(table, column) for table in tables]) for column in columns}
    return replace(tables[0], **whole)


def task_count(partition: Partition, shares: int = 1) -> int:
    """How many tasks there are, without a table of them."""
    p = partition.parts
    return (p * (p + 1) * (p + 2) // 6 if partition.is_ordered else p**3) * shares


def _count_on(first: Numbers, end: int | None = None) -> Numbers:
    """The numbers from each first one to the end, behind each other."""
    lengths = (len(first) if end is None else end) - first
    begins = np.cumsum(lengths) - lengths
    return np.arange(int(lengths.sum())) - np.repeat(begins - first, lengths)


def busy_tasks(partition: Partition, counts: BlockCounts, shares: int = 1, by: str = "time") -> TaskTable:
    """The tasks that have rows and arcs in all of their blocks, with estimates: the others have no triangles."""
    table = table_of(partition, shares)
    arcs = counts.arcs.ravel()
    ij, ik, jk = table.pairs
    has_rows = table.share < counts.sizes[table.i]
    busy = table.take(np.flatnonzero(has_rows & (arcs[ij] > 0) & (arcs[ik] > 0) & (arcs[jk] > 0)))
    return with_work(busy, counts, by)


def with_work(table: TaskTable, counts: BlockCounts, by: str = "time") -> TaskTable:
    """The same tasks with estimates by another estimator; a share has its share of the work."""
    if by not in ESTIMATORS:
        raise UnknownNameError(f"no estimator named {by!r}; there are: {', '.join(ESTIMATORS)}")
    i, j, k = (column.astype(np.int64) for column in (table.i, table.j, table.k))
    return replace(table, work=ESTIMATORS[by](counts, i, j, k) / table.shares)


@dataclass(frozen=True, slots=True)
class TaskBatch:
    """Tasks whose blocks are in memory."""

    blocks: Mapping[Pair, Block]
    tasks: TaskTable


def one_task(triple: Triple, share: int = 0, shares: int = 1) -> TaskBatch:
    """A batch of one task, of parts that are the same where its blocks are."""
    i, j = 0, 0 if triple.ik is triple.jk else 1
    k = j if triple.ij is triple.ik else 2
    blocks = {(i, j): triple.ij, (i, k): triple.ik, (j, k): triple.jk}
    columns = (np.array([number], np.int32) for number in (i, j, k, share))
    of_task: Any = (np.zeros(1, np.int64), *columns, np.zeros(1), 3, shares)
    return TaskBatch(blocks, TaskTable(*of_task))


@dataclass(frozen=True, slots=True, eq=False)
class TaskResults:
    """What tasks found, by their numbers.

    Attributes
    ----------
    triangles, tests : exact
    seconds : of one thread, without the reading of blocks; NaN where it is not known
    is_done : whether a task was counted
    """

    triangles: NDArray[np.uint64]
    tests: NDArray[np.uint64]
    seconds: Estimates
    is_done: NDArray[np.bool_]

    @classmethod
    def none(cls, tasks: int) -> TaskResults:
        """Of so many tasks, none of which is done."""
        empty = np.zeros(tasks, np.uint64), np.zeros(tasks, np.uint64), np.full(tasks, np.nan)
        return cls(*empty, np.zeros(tasks, np.bool_))

    @classmethod
    def of(cls, found: Sequence[tuple[int, int]]) -> TaskResults:
        """Of tasks that are done, in their order: the triangles and the tests of each."""
        triangles, tests = np.array(found, np.uint64).reshape(-1, 2).T
        return cls(triangles, tests, np.full(len(found), np.nan), np.ones(len(found), np.bool_))

    def put(self, numbers: Any, triangles: Any, tests: Any, seconds: Any = np.nan) -> None:
        """Tasks are done."""
        self.triangles[numbers], self.tests[numbers], self.seconds[numbers] = triangles, tests, seconds
        self.is_done[numbers] = True

    @property
    def done(self) -> Numbers:
        """The numbers of the tasks that were counted."""
        return np.flatnonzero(self.is_done)

    @property
    def by_seconds(self) -> dict[int, float]:
        """The seconds of those that were timed, by number."""
        timed = np.flatnonzero(~np.isnan(self.seconds))
        return dict(zip(timed.tolist(), self.seconds[timed].tolist(), strict=True))


def exact_sum(numbers: NDArray[np.uint64]) -> int:
    """The sum of 64-bit numbers, which may itself have more bits."""
    high, low = numbers >> np.uint64(32), numbers & np.uint64(0xFFFFFFFF)
    return (int(high.sum()) << 32) + int(low.sum())


@dataclass(frozen=True, slots=True)
class BlockCounts:
    """How many arcs every block has, and how many ids every part.

    Attributes
    ----------
    arcs : by row part and column part; none where there is no block
    sizes : ids by part
    """

    arcs: Numbers
    sizes: Numbers

    @classmethod
    def of(cls, blocks: Blocks) -> BlockCounts:
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


class TripleShape(NamedTuple):
    """What is known of three blocks before memory is taken for a task: the ids of their parts, and their arcs."""

    rows_i: int
    rows_j: int
    columns_k: int
    arcs_ij: int
    arcs_ik: int
    arcs_jk: int

    @classmethod
    def of(cls, counts: BlockCounts, task: Task) -> TripleShape:
        """Of one task, by what all parts and blocks have."""
        sizes, arcs, (i, j, k) = counts.sizes, counts.arcs, (task.i, task.j, task.k)
        return cls(int(sizes[i]), int(sizes[j]), int(sizes[k]), int(arcs[i, j]), int(arcs[i, k]), int(arcs[j, k]))

    @classmethod
    def of_all(cls, counts: BlockCounts, tasks: TaskTable) -> TripleShape:
        """Of many tasks: a column for each number."""
        sizes, arcs = counts.sizes, counts.arcs.ravel()
        of_blocks: Any = (arcs[pair] for pair in tasks.pairs)
        of_parts: Any = (sizes[part] for part in (tasks.i, tasks.j, tasks.k))
        return cls(*of_parts, *of_blocks)

    @property
    def arcs(self) -> tuple[int, int, int]:
        """Those of the blocks ij, ik and jk."""
        return self.arcs_ij, self.arcs_ik, self.arcs_jk


def _time(counts: BlockCounts, i: Numbers, j: Numbers, k: Numbers) -> Estimates:
    degrees = counts.degrees
    return np.maximum(degrees[i, k], degrees[j, k]) * counts.arcs[i, j]


def _sum_of(values: NDArray[np.int64] | Estimates, i: Numbers, j: Numbers, k: Numbers) -> Estimates:
    """A number per block, summed over the three blocks of every task."""
    return np.asarray(values[i, j] + values[i, k] + values[j, k], np.float64)


ESTIMATORS: dict[str, Callable[[BlockCounts, Numbers, Numbers, Numbers], Estimates]] = {
    "time": _time,
    "arcs": lambda counts, i, j, k: _sum_of(counts.arcs, i, j, k),
    "density": lambda counts, i, j, k: _sum_of(counts.densities, i, j, k),
    "degree": lambda counts, i, j, k: _sum_of(counts.degrees, i, j, k),
}
