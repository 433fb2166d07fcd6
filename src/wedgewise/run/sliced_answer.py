"""Per-vertex counts and per-edge supports on blocks, within a memory limit: one slice of the answer after the other.

A slice has the numbers of the vertices of a part, or of the arcs of a block. It is the sum of what every task with some
of them gives in some role (`algorithms/cpu/_keystone_slices.py` says why that is each triangle once); it is finished
before the next slice begins, so that no array is as large as the answer, and what is finished can be written and kept.

    slice of        role 0             role 1                              role 2
    part p          tasks (p, j, k)    tasks (i, p, k)                     tasks (i, j, p)
    block (x, y)    tasks (x, y, k)    tasks (x, j, y), (i, x, y) turned

All slices together take every task three times: about three counts. Tasks of a slice and role run in batches, each of
which takes half of the memory at most unless it is one task. Blocks stay in memory as far as the limit allows, across
slices; the one to evict is the one needed last. A block that is turned, rows for columns, is one more block: with p
parts, part i has p + i as a second number; (j, p + i) is block (i, j) turned, and (p + i, k) is block (i, k) itself;
the task (i, j, k) turned is (j, p + i, k).

Memory: a slice and the one before, which the caller may still hold; the blocks of a batch, and what is made of them.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms import ENGINE, find, find_able
from wedgewise.algorithms._contract import SliceMethod
from wedgewise.algorithms._passes import run_passes
from wedgewise.errors import VerificationError
from wedgewise.machine import jit
from wedgewise.machine.budget import MORE_PARTS, available_after_loading, check_fits
from wedgewise.machine.progress import Progress
from wedgewise.machine.threads import run_tasks
from wedgewise.run.batches import pairs_in
from wedgewise.run.block_caches import BlockCache
from wedgewise.run.outofcore import checked_clique
from wedgewise.run.task_memory import (
    BATCHED_TASK_BYTES,
    PAGE_BYTES,
    SLICED_TASK_BYTES,
    BlockSource,
    all_block_bytes,
    bytes_beside_lists,
)
from wedgewise.stages.blocks import Block, Partition, Triple
from wedgewise.stages.tasks import (
    BlockCounts,
    Numbers,
    Pair,
    TaskBatch,
    TaskTable,
    TripleShape,
    busy_tasks,
    joined,
    one_task,
)
from wedgewise.store.open import Store, private_memory

SLICE_TYPES: dict[str, np.dtype[Any]] = {"triangles": np.dtype(np.uint64), "edge_support": np.dtype(np.uint32)}


@dataclass(frozen=True, slots=True)
class AnswerSlice:
    """The part of an answer for the arcs of a block, in their order, or for the vertices of a part, by number.

    Attributes
    ----------
    number : its position among all slices of an answer
    of : the pair of parts of the block, or the part
    """

    number: int
    of: Any


class RoleTasks(NamedTuple):
    """All tasks in one role, by the number of the part or block that they add to, and what is known of their blocks."""

    tasks: TaskTable
    shapes: TripleShape
    of: dict[int, slice]


class Cuts(NamedTuple):
    """Batches of tasks for one slice in one role each: the role, first and last position among its tasks plus one.

    ``work`` is the most bytes that each takes beyond its blocks.
    """

    which: NDArray[np.int32]
    work: NDArray[np.int64]


def slices_of(partition: Partition, computes: str) -> tuple[AnswerSlice, ...]:
    """All slices: a part each for "triangles"; for "edge_support" a block each, columns up and down in turn.

    Examples
    --------
    >>> from wedgewise.stages.blocks import Hashed
    >>> [each.of for each in slices_of(Hashed(n=100, parts=2), "edge_support")]
    [(0, 0), (0, 1), (1, 1), (1, 0)]
    """
    parts = range(partition.parts)
    of: Iterable[int | Pair] = parts
    if computes != "triangles":
        columns = [parts[row if partition.is_ordered else 0 :] for row in parts]
        of = ((row, column) for row in parts for column in columns[row][:: -1 if row % 2 else 1])
    return tuple(AnswerSlice(number, which) for number, which in enumerate(of))


def slice_method(algorithm: str, computes: str) -> SliceMethod:
    """How an algorithm computes a slice of an answer."""
    able = find_able(algorithm, "cpu", lambda record: computes in record.sliced, f"compute {computes} of blocks")
    return able.sliced[computes]


class SlicedAnswer:
    """An answer by slices: which there are, what each of them takes, and their numbers.

    Parameters
    ----------
    source : has the blocks
    computes : "triangles", uint64 by vertex of a part; or "edge_support", uint32 by arc of a block
    available_bytes : what all of it may take
    threads : how many work on a task
    algorithm, knobs : an algorithm with a `SliceMethod`, and its parameters
    """

    def __init__(
        self,
        source: BlockSource,
        computes: str,
        *,
        available_bytes: int,
        threads: int = 1,
        algorithm: str = ENGINE,
        knobs: Mapping[str, int | str] | None = None,
    ) -> None:
        self.computes, self.available_bytes = computes, available_bytes
        self.threads, self.algorithm = threads, algorithm
        self.knobs = find(algorithm, "cpu").settings(knobs)
        self._method = slice_method(algorithm, computes)
        self._look_at(source)

    def _look_at(self, source: BlockSource) -> None:
        """Find the tasks of every slice, and what they take but for threads."""
        self.source, self._counts = source, source.counts
        self._parts = source.partition.parts
        with_turned = _with_turned(self._counts)
        self._bytes = all_block_bytes(with_turned).ravel()
        working = busy_tasks(source.partition, self._counts).in_reuse_order()
        self._roles = []
        for tables in _tables_by_role(working, self.computes):
            keys = np.concatenate([key for _, key in tables])
            order = np.argsort(keys, kind="stable")
            tasks = joined([table for table, _ in tables]).take(order)
            first = np.flatnonzero(np.diff(keys[order], prepend=-1))
            ends = np.append(first[1:], len(keys)).tolist()
            of = dict(zip(keys[order][first].tolist(), map(slice, first.tolist(), ends), strict=True))
            self._roles.append(RoleTasks(tasks, TripleShape.of_all(with_turned, tasks), of))

    def with_fitting_threads(self) -> SlicedAnswer:
        """The same on as many threads as the memory allows, halved as often as that takes."""
        fewer = copy(self)
        while fewer.threads > 1 and fewer._heaviest(self.slices)[0] > self.available_bytes:
            fewer.threads //= 2
        return fewer

    def among(self, source: BlockSource) -> SlicedAnswer:
        """The same for other blocks of the same partition."""
        other = copy(self)
        other._look_at(source)
        return other

    @property
    def slices(self) -> tuple[AnswerSlice, ...]:
        """All of them."""
        return slices_of(self.source.partition, self.computes)

    @property
    def stored_forms(self) -> dict[int, tuple[str, int]]:
        """The type and the length of every slice, by its number."""
        dtype = SLICE_TYPES[self.computes].newbyteorder("<").str
        return {each.number: (dtype, self._length(each)) for each in self.slices}

    def check_fits(self, slices: Sequence[AnswerSlice] | None = None) -> int:
        """What the heaviest of all slices takes, or of these; refuse it where there is less."""
        need, heaviest = self._heaviest(self.slices if slices is None else slices)
        which, name = (
            "vertices of part" if self.computes == "triangles" else "arcs of block",
            str(heaviest.of).strip("()"),
        )
        what = f"the {which} {name}, the blocks of a task and what is made of them take"
        check_fits(need, self.available_bytes, what, MORE_PARTS)
        return need

    def compute(
        self, slices: Sequence[AnswerSlice], progress: Progress | None = None
    ) -> Iterator[tuple[AnswerSlice, NDArray[Any]]]:
        """The numbers of each slice, in their order; ``progress(computes, done, total)`` counts tasks and roles.

        The caller may hold a slice until the next one comes. Between two tasks, whatever is raised ends the work.
        """
        self.check_fits(slices)
        largest = 2 * max(map(self._slice_bytes, slices), default=0)
        cuts, ends = self._cut_all(slices, self.available_bytes - largest)
        cache = BlockCache(self._read, self._block, lambda step: self._pairs(self._tasks(cuts, step)), len(cuts.work))
        before, done, total = 0, 0, int((cuts.which[:, 2] - cuts.which[:, 1]).sum())
        for each, (first, end) in zip(slices, pairwise(ends), strict=True):
            filled = private_memory(self._length(each), SLICE_TYPES[self.computes])
            left = self.available_bytes - self._slice_bytes(each) - before
            found = 0
            for step in range(first, end):
                tasks = self._tasks(cuts, step)
                blocks = cache.blocks(self._pairs(tasks), left - int(cuts.work[step]))
                found += self._add(blocks, int(cuts.which[step, 0]), tasks, filled)
                done += len(tasks)
                if progress is not None:
                    progress(self.computes, done, total)
            if found != int(filled.sum(dtype=np.uint64)):
                raise VerificationError(f"{each} does not add up to {found:,} triangles: please report this")
            before = self._slice_bytes(each)
            yield each, filled
            del filled

    def _add(self, blocks: Mapping[Pair, Block], role: int, tasks: TaskTable, filled: NDArray[Any]) -> int:
        """Add what tasks give in a role; the triangles that they have."""
        of_tasks = TaskBatch({pair: blocks[self._stored(pair)] for pair in pairs_in(tasks)}, tasks)
        return run_passes(self._method.prepare(of_tasks, role, filled, self.knobs), self.threads)

    def _tasks(self, cuts: Cuts, step: int) -> TaskTable:
        """The tasks of a batch."""
        role, first, end = map(int, cuts.which[step])
        tasks: TaskTable = self._roles[role].tasks
        return tasks.take(slice(first, end))

    def _pairs(self, tasks: TaskTable) -> set[Pair]:
        """The blocks that tasks need."""
        return {self._stored(pair) for pair in pairs_in(tasks)}

    def _cut_all(self, slices: Sequence[AnswerSlice], limit_bytes: int) -> tuple[Cuts, list[int]]:
        """The tasks of slices, role by role, in batches that take half of a limit at most, or are one task.

        And where the batches of every slice begin, and the last ones end.
        """
        needs = [self._work(role) for role in range(len(self._roles))]
        which, work, ends = array("i"), array("q"), [0]
        for each in slices:
            for number, role in enumerate(self._roles):
                of_role = role.of.get(self._key(each))
                if of_role is not None:
                    for first, end, work_bytes in self._cut(role, of_role, needs[number], limit_bytes // 2):
                        which.extend((number, first, end))
                        work.append(work_bytes)
            ends.append(len(work))
        return Cuts(np.array(which, np.int32).reshape(-1, 3), np.array(work, np.int64)), ends

    def _cut(
        self, role: RoleTasks, which: slice, need: tuple[Numbers, Numbers], limit_bytes: int
    ) -> Iterator[tuple[int, int, int]]:
        made, threads = need
        work_bytes = int(made[which].sum() + threads[which].max())
        length = which.stop - which.start
        if length > 1 and work_bytes + sum(map(self._block, self._pairs(role.tasks.take(which)))) > limit_bytes:
            half = which.start + length // 2
            for part in (slice(which.start, half), slice(half, which.stop)):
                yield from self._cut(role, part, need, limit_bytes)
            return
        yield which.start, which.stop, work_bytes

    def _work(self, role: int) -> tuple[Numbers, Numbers]:
        """What each task of a role takes beyond its blocks: what is made of them, and the memory of threads."""
        tasks, shape, _ = self._roles[role]
        made = self._method.bytes_needed(shape, self.knobs) + BATCHED_TASK_BYTES
        is_turned = tasks.j >= self._parts  # from a block that is there, too
        made = made + np.where(is_turned, 4 * (shape.arcs_ij + shape.rows_j + 1), 0)
        return made, np.broadcast_to(self._method.thread_bytes(shape, role, self.threads, self.knobs), len(tasks))

    def _heaviest(self, slices: Sequence[AnswerSlice]) -> tuple[int, AnswerSlice]:
        """The most that a slice takes, with the largest other one beside it, and which one that is."""
        heaviest: dict[int, int] = {}
        for number, role in enumerate(self._roles):
            ij, ik, jk = (self._bytes[pair] for pair in role.tasks.pairs)
            made, threads = self._work(number)
            taken = ij + ik + jk + made + threads
            for key, which in role.of.items():
                heaviest[key] = max(heaviest.get(key, 0), int(taken[which].max()))
        needs = [self._slice_bytes(each) + heaviest.get(self._key(each), 0) for each in slices]
        most, largest = max(needs, default=0), max(map(self._slice_bytes, slices), default=0)
        return most + largest, slices[needs.index(most)] if needs else AnswerSlice(0, 0)

    def _key(self, each: AnswerSlice) -> int:
        """The part, or the block, as a number."""
        return int(each.of) if self.computes == "triangles" else int(each.of[0] * self._parts + each.of[1])

    def _length(self, each: AnswerSlice) -> int:
        return int((self._counts.sizes if self.computes == "triangles" else self._counts.arcs)[each.of])

    def _slice_bytes(self, each: AnswerSlice) -> int:
        return -(-self._length(each) * SLICE_TYPES[self.computes].itemsize // PAGE_BYTES) * PAGE_BYTES

    def _block(self, pair: Pair) -> int:
        return int(self._bytes[pair[0] * 2 * self._parts + pair[1]])

    def _stored(self, pair: Pair) -> Pair:
        """The block that a pair of second numbers stands for; turned ones stand for themselves."""
        return (pair[0] - self._parts, pair[1]) if pair[0] >= self._parts else pair

    def _read(self, pairs: list[Pair]) -> list[Block]:
        """Read blocks on all threads: several at a time, or the rows of one."""
        alone = len(pairs) == 1
        return run_tasks(
            lambda number, _: self._one(pairs[number], self.threads if alone else 1), len(pairs), self.threads
        )

    def _one(self, pair: Pair, threads: int) -> Block:
        row, column = pair
        if column < self._parts:
            return self.source.block(row, column, threads=threads)
        assert self._method.turned is not None
        return self._method.turned(self.source.block(column - self._parts, row, threads=threads))


def _with_turned(counts: BlockCounts) -> BlockCounts:
    """The arcs of blocks of parts with second numbers."""
    nothing = np.zeros_like(counts.arcs)
    return BlockCounts(np.block([[counts.arcs, counts.arcs.T], [counts.arcs, nothing]]), np.tile(counts.sizes, 2))


def _tables_by_role(tasks: TaskTable, computes: str) -> tuple[list[tuple[TaskTable, Numbers]], ...]:
    """The tasks of every role of a `SliceMethod`, and the number of the part or block that each of them adds to."""
    doubled = replace(tasks, parts=2 * tasks.parts)
    if computes == "triangles":
        return tuple([(doubled, part.astype(np.int64))] for part in (tasks.i, tasks.j, tasks.k))
    turned = replace(doubled, i=tasks.j, j=tasks.i + np.int32(tasks.parts))
    ij, ik, jk = tasks.pairs
    return [(doubled, ij)], [(doubled, ik), (turned, jk)]


def slices_within(
    store: Store,
    computes: str,
    memory_limit: int | None,
    *,
    threads: int,
    algorithm: str,
    knobs: Mapping[str, int | str] | None,
    rounds_bytes: int | None = None,
) -> SlicedAnswer:
    """Load the kernels, and plan slices for what a limit leaves beside lists of tasks, on threads that fit there.

    `rounds_bytes` is what rounds of a truss take beside their slices; None where each slice is computed once.
    """
    within = bytes_for_slices(memory_limit, computes, algorithm)
    listed = listed_bytes(in_rounds=rounds_bytes is not None)
    available_bytes = bytes_beside_lists(store.location, store.partition, listed, within) - (rounds_bytes or 0)
    sliced = SlicedAnswer(
        store, computes, available_bytes=available_bytes, threads=threads, algorithm=algorithm, knobs=knobs
    )
    return sliced.with_fitting_threads()


def listed_bytes(*, in_rounds: bool) -> int:
    """What lists take for each task; rounds have those of all blocks, and of their remaining arcs."""
    return 2 * SLICED_TASK_BYTES if in_rounds else SLICED_TASK_BYTES


def bytes_for_slices(memory_limit: int | None, computes: str, algorithm: str = ENGINE) -> int:
    """Load the kernels and measure what a limit leaves."""
    return available_after_loading(memory_limit, load_slice_kernels, algorithm, computes)


def load_slice_kernels(algorithm: str, computes: str) -> None:
    """Load every kernel that slices of an answer call, by those of a clique."""
    if jit.JIT_DISABLED:
        return
    block, knobs, method = checked_clique(), find(algorithm, "cpu").settings(None), slice_method(algorithm, computes)
    triple = Triple(block, block, block)
    for role in range(3 if computes == "triangles" else 2):
        filled = np.zeros(block.rows if computes == "triangles" else block.m, SLICE_TYPES[computes])
        run_passes(method.prepare(one_task(triple), role, filled, knobs), 1)
    if method.turned is not None:
        method.turned(block)
