"""What tasks on blocks take: the memory of blocks, of what an algorithm makes of three of them, and of its threads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms import find, find_able
from wedgewise.algorithms._contract import Knobs, TripleAnswer
from wedgewise.algorithms.cpu._batches import with_busy_rows
from wedgewise.machine.budget import check_fits
from wedgewise.stages.blocks import Block, Partition, Task
from wedgewise.stages.tasks import BlockCounts, Pair, TaskTable, TripleShape, task_count

PAGE_BYTES = 1 << 12
BATCHED_TASK_BYTES = 512  # of a task while its batch is counted: its items and what they find
COUNTED_TASK_BYTES = 272  # of a task in the tables of a count: itself, what it takes, its batch, result and seconds
SLICED_TASK_BYTES = 500  # in those of answers by slices, with three roles; rounds of a truss have two such lists
DRIVEN_TASK_BYTES = 350  # in those of a driver of workers, where it is in a batch, too
HYBRID_TASK_BYTES = 480  # in those of a hybrid count, where it has an estimate and a time line, too
SPARE_BYTES = 1 << 23  # kernels of slices and a piece of a block that is read
WRITING_BYTES = 48 << 20  # a piece of the rows, and what a writer makes of it


class BlockSource(Protocol):
    """Whatever has the blocks of a partition: a `Store` is one."""

    @property
    def partition(self) -> Partition: ...

    @property
    def counts(self) -> BlockCounts: ...

    def block(self, row: int, column: int, /, *, threads: int = 1) -> Block: ...


def triple_answer(algorithm: str) -> TripleAnswer:
    """How an algorithm counts three blocks."""
    what = "count blocks, of which a store consists"
    return find_able(algorithm, "cpu", lambda record: "count" in record.triples, what).triples_on_cpu("count")


def lists_bytes(partition: Partition, task_bytes: int, shares: int = 1) -> int:
    """What lists of all tasks take, at so many bytes each."""
    return task_bytes * task_count(partition, shares)


def bytes_beside_lists(name: object, partition: Partition, task_bytes: int, limit_bytes: int, shares: int = 1) -> int:
    """What lists of all tasks leave of a limit, or a refusal before there are any; `name` is that of the store."""
    need = lists_bytes(partition, task_bytes, shares)
    what = f"{name}: lists of {task_count(partition, shares):,} tasks of {partition.parts} parts take"
    fewer = "partition the graph into fewer parts" if shares == 1 else "ask for fewer shares"
    check_fits(need, limit_bytes, what, f"raise the limit, or {fewer}")
    return limit_bytes - need


def pairs_of_task(task: Task) -> set[Pair]:
    """The blocks of a task."""
    return {(task.i, task.j), (task.i, task.k), (task.j, task.k)}


def all_block_bytes(counts: BlockCounts) -> NDArray[np.int64]:
    """The same of all blocks, by row part and column part."""
    return _in_pages(4 * (counts.sizes[:, None] + 1)) + _in_pages(4 * counts.arcs)


def _in_pages(size: NDArray[np.int64]) -> NDArray[np.int64]:
    return -(-size // PAGE_BYTES) * PAGE_BYTES


def most_slice_bytes(counts: BlockCounts, algorithm: str) -> int:
    """What supports by slices, and those of a truss, take at most on one thread.

    It is as if the largest part and the heaviest block were all parts and blocks of a task. A block is read whole
    before its removed arcs are dropped; the slice before the one that is worked on is still held. Afterwards rows are
    written block by block.
    """
    ids, arcs = int(counts.sizes.max(initial=0)), int(counts.arcs.max(initial=0))
    method, knobs = find(algorithm, "cpu").sliced["edge_support"], find(algorithm, "cpu").settings(None)
    shape = TripleShape(ids, ids, ids, arcs, arcs, arcs)
    work = int(method.bytes_needed(shape, knobs) + max(method.thread_bytes(shape, role, 1, knobs) for role in range(2)))
    blocks, slices, reading = 3 * 4 * (ids + 1 + arcs), 2 * 4 * arcs, 4 * arcs + arcs // 8 + 12 * (ids + 1)
    rows = 4 * int(counts.sizes.sum()) + 9 * arcs + 44 * ids + WRITING_BYTES
    return max(blocks + slices + reading + work + SPARE_BYTES, rows)


class Need(NamedTuple):
    """What tasks take beyond their blocks, in bytes.

    Attributes
    ----------
    made : of what is made of block jk; tasks of a batch that look up in the same one take the most of them
    threads : of all threads together; a batch takes the most of its tasks
    """

    made: Any
    threads: Any


@dataclass(frozen=True, slots=True)
class TaskMemory:
    """What the tasks of some blocks take, when an algorithm counts them on so many threads."""

    counts: BlockCounts
    answer: TripleAnswer
    knobs: Knobs
    threads: int
    blocks: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        blocks, arcs, rows = all_block_bytes(self.counts), self.counts.arcs, self.counts.sizes[:, None]
        listed = _in_pages(4 * np.minimum(arcs, rows)) if self.answer.lists_rows else 0
        object.__setattr__(self, "blocks", blocks + listed)

    def block(self, pair: Pair) -> int:
        """The bytes of a block, in whole pages."""
        return int(self.blocks[pair])

    def read(self, source: BlockSource, pair: Pair, threads: int = 1) -> Block:
        """A block, with a list of the rows that have arcs where the algorithm is faster for it."""
        block = source.block(*pair, threads=threads)
        return with_busy_rows(block) if self.answer.lists_rows else block

    def most(self, tasks: Task | TaskTable) -> Need:
        """The most that a task, or each of many, takes."""
        shape = self._shape(tasks)
        return Need(self.answer.bytes_needed(shape, self.knobs), self._threads(shape))

    def expected(self, tasks: TaskTable, is_skewed: bool) -> Need:
        """What tasks take as a rule, in a graph that is skewed or not."""
        if self.answer.expected_bytes is None:
            return self.most(tasks)
        shape = self._shape(tasks)
        return Need(self.answer.expected_bytes(shape, self.knobs, is_skewed), self._threads(shape))

    def work(self, task: Task) -> int:
        """The most bytes of one task beyond its blocks."""
        need = self.most(task)
        return int(need.made + need.threads)

    def _shape(self, tasks: Task | TaskTable) -> TripleShape:
        return TripleShape.of(self.counts, tasks) if isinstance(tasks, Task) else TripleShape.of_all(self.counts, tasks)

    def _threads(self, shape: TripleShape) -> Any:
        return self.threads * (self.answer.thread_bytes(shape.columns_k, self.knobs) + PAGE_BYTES)

    def by_task(self, tasks: TaskTable) -> NDArray[np.int64]:
        """The most bytes that each task takes, blocks included."""
        sizes, (ij, ik, jk) = self.blocks.ravel(), tasks.pairs
        blocks = sizes[ij] + np.where(ik == ij, 0, sizes[ik]) + np.where((jk == ij) | (jk == ik), 0, sizes[jk])
        need = self.most(tasks)
        return np.asarray(blocks + need.made + need.threads + BATCHED_TASK_BYTES, np.int64)

    def heaviest(self, tasks: TaskTable) -> tuple[int, Task | None]:
        """The most that a task takes, blocks included, and which one that is."""
        if len(tasks) == 0:
            return 0, None
        taken = self.by_task(tasks)
        at = int(taken.argmax())
        return int(taken[at]), tasks[at]
