"""Per-vertex counts and per-edge supports on blocks, within a memory limit: one slice of the answer after the other.

A slice has the numbers of the vertices of a part, or of the arcs of a block. It is the sum of what every task with some
of them gives in some role (`algorithms/cpu/_keystone_slices.py` says why that is each triangle once); it is finished
before the next slice begins, so that no array is as large as the answer, and what is finished can be written and kept.

    slice of        role 0             role 1             role 2
    part p          tasks (p, j, k)    tasks (i, p, k)    tasks (i, j, p)
    block (x, y)    tasks (x, y, k)    tasks (x, j, y)    tasks (i, x, y)

All slices together take every task three times: about three counts. Blocks stay in memory as far as the limit allows,
across slices; the one to evict is the one needed last.

Memory: a slice and the one before, which the caller may still hold; the blocks of a task, and what is made of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms import ENGINE, find, registry
from wedgewise.algorithms._contract import SliceMethod, TripleShape
from wedgewise.errors import MemoryLimitError, PreconditionError, VerificationError
from wedgewise.machine import jit
from wedgewise.machine.budget import available_after_loading
from wedgewise.machine.progress import Progress
from wedgewise.run.block_caches import BlockCache, triple_of
from wedgewise.run.memory import PAGE_BYTES, BlockSource, block_bytes, pairs_of_task
from wedgewise.run.outofcore import checked_clique, run_passes
from wedgewise.stages.blocks import Block, Partition, Task, Triple
from wedgewise.stages.tasks import Counts, Pair, busy_tasks
from wedgewise.store.open import private_memory

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


@dataclass(frozen=True, slots=True)
class Step:
    """One role of one task, for one slice."""

    task: Task
    role: int


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
    asked = find(algorithm, "cpu")
    if computes not in asked.sliced:
        able = ", ".join(name for (name, device), other in registry().items() if computes in other.sliced)
        raise PreconditionError(f"{algorithm} does not compute {computes} of blocks; {able or 'none'} do")
    return asked.sliced[computes]


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
        self.source, self.computes, self.available_bytes = source, computes, available_bytes
        self.threads, self.algorithm = threads, algorithm
        self.knobs = find(algorithm, "cpu").settings(knobs)
        self._method, self._counts = slice_method(algorithm, computes), source.counts
        self._steps = _steps_by_slice(source.partition, self._counts, computes)

    def with_fitting_threads(self) -> SlicedAnswer:
        """The same on as many threads as the memory allows, halved as often as that takes."""
        fewer = copy(self)
        while fewer.threads > 1 and fewer._heaviest(self.slices)[0] > self.available_bytes:
            fewer.threads //= 2
        return fewer

    def among(self, source: BlockSource) -> SlicedAnswer:
        """The same for other blocks of the same partition."""
        other = copy(self)
        other.source, other._counts = source, source.counts
        other._steps = _steps_by_slice(source.partition, source.counts, self.computes)
        return other

    @property
    def slices(self) -> tuple[AnswerSlice, ...]:
        """All of them."""
        return slices_of(self.source.partition, self.computes)

    @property
    def due(self) -> dict[int, tuple[str, int]]:
        """The type and the length of every slice, by its number."""
        dtype = SLICE_TYPES[self.computes].newbyteorder("<").str
        return {each.number: (dtype, self._length(each)) for each in self.slices}

    def check_fits(self, slices: Sequence[AnswerSlice] | None = None) -> int:
        """What the heaviest of all slices takes, or of these; refuse it where there is less."""
        need, heaviest = self._heaviest(self.slices if slices is None else slices)
        if need > self.available_bytes:
            what = "the vertices of part" if self.computes == "triangles" else "the arcs of block"
            name = heaviest.of if self.computes == "triangles" else ", ".join(map(str, heaviest.of))
            raise MemoryLimitError(
                f"{what} {name}, the blocks of a task and what is made of them take {need:,} bytes and "
                f"{self.available_bytes:,} are left; raise the limit, or partition the graph into more parts"
            )
        return need

    def compute(
        self, slices: Sequence[AnswerSlice], progress: Progress | None = None
    ) -> Iterator[tuple[AnswerSlice, NDArray[Any]]]:
        """The numbers of each slice, in their order; ``progress(computes, done, total)`` counts tasks and roles.

        The caller may hold a slice until the next one comes. Between two tasks, whatever is raised ends the work.
        """
        self.check_fits(slices)
        steps = [step for each in slices for step in self._steps_of(each)]
        cache = BlockCache(self._read, self._block, [pairs_of_task(step.task) for step in steps])
        before, done = 0, 0
        for each in slices:
            filled = private_memory(self._length(each), SLICE_TYPES[self.computes])
            left = self.available_bytes - self._slice_bytes(each) - before
            found = 0
            for step in self._steps_of(each):
                blocks = cache.blocks(pairs_of_task(step.task), left - self._work(step))
                found += self._add(triple_of(blocks, step.task), step.role, filled)
                done += 1
                if progress is not None:
                    progress(self.computes, done, len(steps))
            if found != int(filled.sum(dtype=np.uint64)):
                raise VerificationError(f"{each} does not add up to {found:,} triangles: please report this")
            before = self._slice_bytes(each)
            yield each, filled
            del filled

    def _add(self, triple: Triple, role: int, filled: NDArray[Any]) -> int:
        """Add what a task gives in a role; the triangles that it has."""
        return run_passes(self._method.prepare(triple, role, filled, self.knobs), self.threads)[0]

    def _heaviest(self, slices: Sequence[AnswerSlice]) -> tuple[int, AnswerSlice]:
        """The most that a slice takes, with the largest other one beside it, and which one that is."""
        needs = [self._slice_bytes(each) + max(map(self._step, self._steps_of(each)), default=0) for each in slices]
        most, largest = max(needs, default=0), max(map(self._slice_bytes, slices), default=0)
        return most + largest, slices[needs.index(most)] if needs else AnswerSlice(0, 0)

    def _steps_of(self, each: AnswerSlice) -> list[Step]:
        return self._steps.get(each.of, [])

    def _length(self, each: AnswerSlice) -> int:
        return int((self._counts.sizes if self.computes == "triangles" else self._counts.arcs)[each.of])

    def _slice_bytes(self, each: AnswerSlice) -> int:
        return -(-self._length(each) * SLICE_TYPES[self.computes].itemsize // PAGE_BYTES) * PAGE_BYTES

    def _block(self, pair: Pair) -> int:
        return block_bytes(self._counts, pair)

    def _read(self, pairs: list[Pair]) -> list[Block]:
        return [self.source.block(*pair, threads=self.threads) for pair in pairs]

    def _step(self, step: Step) -> int:
        """What a task takes, blocks included."""
        return self._work(step) + sum(map(self._block, pairs_of_task(step.task)))

    def _work(self, step: Step) -> int:
        """What a task takes beyond its blocks."""
        shape = TripleShape.of(self._counts, step.task)
        return self._method.bytes_needed(shape, step.role, self.threads, self.knobs)


def _steps_by_slice(partition: Partition, counts: Counts, computes: str) -> dict[Any, list[Step]]:
    """What each part, or block, takes part in: role by role, tasks in an order that uses the same blocks again."""
    steps: dict[Any, list[Step]] = {}
    working = busy_tasks(partition, counts).in_reuse_order()
    for role in range(3):
        for task in working:
            i, j, k = task.i, task.j, task.k
            whose = (i, j, k)[role] if computes == "triangles" else ((i, j), (i, k), (j, k))[role]
            steps.setdefault(whose, []).append(Step(task, role))
    return steps


def bytes_for_slices(memory_limit: int | None, computes: str, algorithm: str = ENGINE) -> int:
    """Load the kernels and measure what a limit leaves."""
    return available_after_loading(memory_limit, load_kernels, algorithm, computes)


def load_kernels(algorithm: str, computes: str) -> None:
    """Load every kernel that slices of an answer call, by those of a clique."""
    if jit.JIT_DISABLED:
        return
    block, knobs = checked_clique(), find(algorithm, "cpu").settings(None)
    for role in range(3):
        filled = np.zeros(block.rows if computes == "triangles" else block.m, SLICE_TYPES[computes])
        run_passes(slice_method(algorithm, computes).prepare(Triple(block, block, block), role, filled, knobs), 1)
