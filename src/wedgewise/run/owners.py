"""Per-vertex counts and per-edge supports on blocks, within a memory limit: one owner after the other, each slice once.

An owner has the vertices of a part, or the arcs of a block. Its slice is the sum of what every task that has some of
them gives in some role (`algorithms/cpu/_owned_tasks.py` says why that is each triangle once); it is finished before
the next owner's begins, so that no array is as large as the answer, and what is finished can be written and kept.

    owner           role 0             role 1             role 2
    part p          tasks (p, j, k)    tasks (i, p, k)    tasks (i, j, p)
    block (x, y)    tasks (x, y, k)    tasks (x, j, y)    tasks (i, x, y)

All owners together take every task three times: about three counts. Blocks stay in memory as far as the room allows,
across owners; the one to give up is the one needed last.

Memory: the slice of an owner and the one before, which the caller may still hold; the blocks of a task, and what is
made of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms import ENGINE, find, registry
from wedgewise.algorithms._contract import OwnedAnswer, TripleShape
from wedgewise.algorithms._passes import run_pass
from wedgewise.errors import MemoryLimitError, PreconditionError, VerificationError
from wedgewise.machine import jit
from wedgewise.machine.budget import room_within
from wedgewise.run.block_cache import BlockCache, triple_of
from wedgewise.run.memory import PAGE_BYTES, Pair, PairsOfTasks, block_bytes, pairs_of_task
from wedgewise.run.outofcore import reuse_order
from wedgewise.stages.blocks import Block, Partition, Task, Triple
from wedgewise.stages.tasks import Counts, tasks_of
from wedgewise.store.open import first_fault, private_memory

Tell = Callable[[str, int, int], None] | None

SLICE_TYPES: dict[str, np.dtype[Any]] = {"triangles": np.dtype(np.uint64), "edge_support": np.dtype(np.uint32)}
REHEARSED = 1 << 8  # vertices of a clique: so many that the engine has hubs


class BlockSource(Protocol):
    """Whatever has the blocks of a partition: a `Store` is one."""

    @property
    def partition(self) -> Partition: ...

    @property
    def counts(self) -> Counts: ...

    def block(self, row: int, column: int, /, *, threads: int = ...) -> Block: ...


@dataclass(frozen=True, slots=True)
class Owner:
    """Who has the arcs of block `pair`, in the order of the block, or the vertices of a part, by their numbers in it.

    Attributes
    ----------
    number : its position among all owners of a partition
    pair : of the block; None where vertices are owned
    part : whose vertices; None where arcs are owned
    """

    number: int
    pair: Pair | None = None
    part: int | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One role of one task, for one owner."""

    task: Task
    role: int


def owners_of(partition: Partition, computes: str) -> tuple[Owner, ...]:
    """All owners: a part each for "triangles"; for "edge_support" a block each, columns up and down in turn.

    Examples
    --------
    >>> from wedgewise.stages.blocks import Hashed
    >>> [owner.pair for owner in owners_of(Hashed(n=100, parts=2), "edge_support")]
    [(0, 0), (0, 1), (1, 1), (1, 0)]
    """
    parts = range(partition.parts)
    if computes == "triangles":
        return tuple(Owner(part, part=part) for part in parts)
    pairs: list[Pair] = []
    for row in parts:
        columns = parts[row:] if partition.is_ordered else parts
        pairs += [(row, column) for column in (columns if row % 2 == 0 else columns[::-1])]
    return tuple(Owner(number, pair=pair) for number, pair in enumerate(pairs))


def owned_answer(algorithm: str, computes: str) -> OwnedAnswer:
    """How an algorithm computes something for owners."""
    asked = find(algorithm, "cpu")
    if computes not in asked.owned:
        able = ", ".join(name for (name, device), other in registry().items() if computes in other.owned)
        raise PreconditionError(f"{algorithm} does not compute {computes} of blocks; {able or 'none'} do")
    return asked.owned[computes]


class Owning:
    """The owners of some blocks, what each of them takes, and their slices.

    Parameters
    ----------
    source : has the blocks
    computes : "triangles", uint64 by vertex of a part; or "edge_support", uint32 by arc of a block
    room : the bytes that all of it may take
    threads : how many work on a task
    algorithm, knobs : an algorithm with owned answers, and its parameters
    """

    def __init__(
        self,
        source: BlockSource,
        computes: str,
        *,
        room: int,
        threads: int = 1,
        algorithm: str = ENGINE,
        knobs: Mapping[str, int | str] | None = None,
    ) -> None:
        self.source, self.computes, self.room, self.threads, self.algorithm = source, computes, room, threads, algorithm
        self.knobs = find(algorithm, "cpu").settings(knobs)
        self._answer, self._counts = owned_answer(algorithm, computes), source.counts
        self._steps = _steps_by_owner(source.partition, self._counts, computes)

    def with_fitting_threads(self) -> Owning:
        """The same on as many threads as the room allows, halved as often as that takes."""
        if self.threads == 1 or self._heaviest(self.owners)[0] <= self.room:
            return self
        fewer = copy(self)
        fewer.threads = self.threads // 2
        return fewer.with_fitting_threads()

    @property
    def owners(self) -> tuple[Owner, ...]:
        """All of them."""
        return owners_of(self.source.partition, self.computes)

    @property
    def due(self) -> dict[int, tuple[str, int]]:
        """The type and the length of every slice, by the number of its owner."""
        dtype = SLICE_TYPES[self.computes].newbyteorder("<").str
        return {owner.number: (dtype, self._length(owner)) for owner in self.owners}

    def check_room(self, owners: Sequence[Owner] | None = None) -> int:
        """What the heaviest of all owners takes, or of these; refuse it where there is less."""
        need, heaviest = self._heaviest(self.owners if owners is None else owners)
        if need > self.room:
            what = "the vertices of part" if self.computes == "triangles" else "the arcs of block"
            name = heaviest.part if heaviest.pair is None else ", ".join(map(str, heaviest.pair))
            raise MemoryLimitError(
                f"{what} {name}, the blocks of a task and what is made of them take {need:,} bytes and {self.room:,} "
                "are left; raise the limit, or partition the graph into more parts"
            )
        return need

    def slices(self, owners: Sequence[Owner], tell: Tell = None) -> Iterator[tuple[Owner, NDArray[Any]]]:
        """The finished slice of each owner, in their order; ``tell(computes, done, total)`` counts tasks and roles.

        Whoever takes a slice may hold it until the next one comes. Between two tasks, whatever is raised ends the work.
        """
        self.check_room(owners)
        steps = [step for owner in owners for step in self._steps_of(owner)]
        cache = BlockCache(self._read, self._block, PairsOfTasks([step.task for step in steps]))
        before, done = 0, 0
        for owner in owners:
            filled = private_memory(self._length(owner), SLICE_TYPES[self.computes])
            room = self.room - self._slice(owner) - before
            found = 0
            for step in self._steps_of(owner):
                blocks = cache.blocks(done, room - self._work(step))
                found += self._add(triple_of(blocks, step.task), step.role, filled)
                done += 1
                if tell is not None:
                    tell(self.computes, done, len(steps))
            if found != int(filled.sum(dtype=np.uint64)):
                raise VerificationError(
                    f"{owner}: its slice does not add up to {found:,} triangles: please report this"
                )
            before = self._slice(owner)
            yield owner, filled
            del filled

    def _add(self, triple: Triple, role: int, filled: NDArray[Any]) -> int:
        """Add what a task gives in a role; the triangles that it has."""
        work = self._answer.prepare(triple, role, filled, self.knobs)
        return sum(partial.triangles for step in work.passes for partial in run_pass(step, 0, self.threads, None))

    def _heaviest(self, owners: Iterable[Owner]) -> tuple[int, Owner]:
        """The most that an owner takes, with the largest slice of another one, and which one that is."""
        own, heaviest, largest = 0, Owner(0, part=0), 0
        for owner in owners:
            slice_bytes = self._slice(owner)
            largest = max(largest, slice_bytes)
            need = slice_bytes + max(map(self._step, self._steps_of(owner)), default=0)
            if need > own:
                own, heaviest = need, owner
        return own + largest, heaviest

    def _steps_of(self, owner: Owner) -> list[Step]:
        return self._steps.get(owner.part if owner.pair is None else owner.pair, [])

    def _length(self, owner: Owner) -> int:
        return int(self._counts.sizes[owner.part] if owner.pair is None else self._counts.arcs[owner.pair])

    def _slice(self, owner: Owner) -> int:
        return -(-self._length(owner) * SLICE_TYPES[self.computes].itemsize // PAGE_BYTES) * PAGE_BYTES

    def _block(self, pair: Pair) -> int:
        return block_bytes(self._counts, pair)

    def _read(self, pair: Pair) -> Block:
        return self.source.block(*pair, threads=self.threads)

    def _step(self, step: Step) -> int:
        """What a task takes, blocks included."""
        return self._work(step) + sum(map(self._block, pairs_of_task(step.task)))

    def _work(self, step: Step) -> int:
        """What a task takes beyond its blocks."""
        shape = TripleShape.of(self._counts, step.task)
        return self._answer.bytes_needed(shape, step.role, self.threads, self.knobs)


def _steps_by_owner(partition: Partition, counts: Counts, computes: str) -> dict[Any, list[Step]]:
    """What each part, or block, takes part in: role by role, tasks in an order that uses the same blocks again."""
    steps: dict[Any, list[Step]] = {}
    working = [task for task in tasks_of(partition) if all(counts.arcs[pair] for pair in pairs_of_task(task))]
    for role in range(3):
        for task in reuse_order(working):
            i, j, k = task.i, task.j, task.k
            owner = (i, j, k)[role] if computes == "triangles" else ((i, j), (i, k), (j, k))[role]
            steps.setdefault(owner, []).append(Step(task, role))
    return steps


def room_for_owners(memory_limit: int | None, computes: str, algorithm: str = ENGINE) -> int:
    """Load the kernels and measure what a limit leaves."""
    return room_within(memory_limit, rehearse, algorithm, computes)


def rehearse(algorithm: str, computes: str) -> None:
    """Load every kernel that owners of a store call: those of a clique."""
    if jit.JIT_DISABLED:
        return
    rows, columns = np.triu_indices(REHEARSED, 1)
    offsets = np.append(0, np.cumsum(np.bincount(rows, minlength=REHEARSED))).astype(np.uint32)
    block = Block(offsets, columns.astype(np.uint32), REHEARSED)
    first_fault(block.offsets, block.heads, REHEARSED, 0, REHEARSED)
    for role in range(3):
        filled = np.zeros(REHEARSED if computes == "triangles" else block.m, SLICE_TYPES[computes])
        work = owned_answer(algorithm, computes).prepare(
            Triple(block, block, block), role, filled, find(algorithm, "cpu").settings(None)
        )
        for step in work.passes:
            run_pass(step, 0, 1, None)
