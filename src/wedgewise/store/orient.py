"""Edges and ranks → runs of arcs by position, and the division of ids that the blocks are cut by.

A *position* is an id laid out by parts: that of a rectilinear partition is the id itself; hashed parts lie one behind
the other. Arcs sorted by position are sorted by row part, then by row. While edges are renamed, a grid counts arcs by
segments of positions: BBTC's cuts come from its prefix sums, as in `rectilinear`; for hashed parts it has the arcs of
every block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms import ENGINE, find
from wedgewise.errors import InputError, MemoryLimitError, UnknownNameError
from wedgewise.machine.budget import check_limit
from wedgewise.machine.jit import kernel
from wedgewise.machine.parameters import as_integer
from wedgewise.machine.threads import run_tasks
from wedgewise.prepare.orient_arrays import inverse
from wedgewise.prepare.rectilinear import SEGMENTS, ArcsBefore, probe_a_load
from wedgewise.run.task_memory import (
    COUNTED_TASK_BYTES,
    SLICED_TASK_BYTES,
    TaskMemory,
    lists_bytes,
    most_slice_bytes,
    triple_answer,
)
from wedgewise.stages import Ids, Keys
from wedgewise.stages.blocks import ID_NAMES, Hashed, Partition, Rectilinear
from wedgewise.stages.tasks import BlockCounts, busy_tasks
from wedgewise.stages.trust_cut import trust_cut
from wedgewise.store.manifest import MAX_PARTS
from wedgewise.store.sort_and_deduplicate import Edges, Ranks
from wedgewise.store.sorted_runs import KEY_BYTES, OnKeys, Runs, sorted_run

ORIENT_KEYS, ORIENT_BYTES = 1 << 19, 26  # at a time for each thread, and what one takes
COUNTING_BYTES = 136 << 20  # at least, of a limit on counting: the interpreter, kernels, and what is kept in reserve
MIN_SEGMENTS = 256
SCHEMES = ("rectilinear", "hashed")
QUESTIONS = ("any", "count")  # what a store is to answer within the limit: everything where that can be
CANDIDATES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128, 192, 256)


def segments_within(available_bytes: int) -> int:
    """How many segments cuts may be between: all that `rectilinear` has, or fewer, within a quarter of the memory."""
    segments = SEGMENTS
    while segments > MIN_SEGMENTS and grid_bytes(segments) > available_bytes // 4:
        segments //= 2
    return segments


def grid_bytes(segments: int) -> int:
    """What the grid takes; its prefix sums replace it."""
    return 8 * (segments + 1) ** 2


def _check_known(what: str, name: str, known: tuple[str, ...]) -> None:
    if name not in known:
        raise UnknownNameError(f"no {what} named {name!r}; there are: {', '.join(known)}")


@dataclass(frozen=True, slots=True)
class Wanted:
    """How ids are to be divided: into so many parts, or as few as let a question keep to the bytes.

    With `worker_bytes`, workers of that size will count; hashed parts are then those of TRUST's rule at least.
    """

    scheme: str
    parts: int | None
    counting_bytes: int
    threads: int
    segments: int = SEGMENTS
    ids: str = "rank"
    worker_bytes: int | None = None

    @classmethod
    def within(
        cls,
        memory_limit: int | None,
        available_bytes: int,
        scheme: str,
        parts: int | None,
        threads: int,
        ids: str = "rank",
        worker_bytes: int | None = None,
    ) -> Wanted:
        """What a count in a process of this size, or in a worker, has for blocks: no more than this process has."""
        _check_known("scheme", scheme, SCHEMES)
        _check_known("ids", ids, ID_NAMES)
        if ids != "rank" and scheme != "hashed":
            raise InputError(
                f"parts by {scheme} cuts need ids by rank, not by {ids}; ask for the scheme 'hashed' with it"
            )
        if parts is not None and worker_bytes is not None:
            raise InputError(
                "parts follow from the memory of the workers; leave parts out, or the workers and their memory"
            )
        if worker_bytes is not None:
            check_limit(as_integer("memory_per_worker", worker_bytes))
        if parts is not None and not 1 <= parts <= MAX_PARTS:
            raise InputError(f"a store has 1 … {MAX_PARTS} parts, not {parts:,}; ask for other parts")
        counting_bytes = (
            available_bytes if memory_limit is None else min(available_bytes, memory_limit - COUNTING_BYTES)
        )
        if worker_bytes is not None:
            counting_bytes = worker_bytes - COUNTING_BYTES
        return cls(scheme, parts, counting_bytes, threads, segments_within(available_bytes), ids, worker_bytes)

    def candidates(self, m: int) -> Iterator[tuple[str, int]]:
        """What to try in turn: for which question, and into how many parts."""
        least = 1
        if self.worker_bytes is not None and self.scheme == "hashed":
            least = trust_cut(m, 1, self.worker_bytes).parts
        questions = QUESTIONS if self.worker_bytes is None else ("count",)
        return product(questions, sorted({least, *(parts for parts in CANDIDATES if parts > least)}))

    def keeps_to_it(self, counts: BlockCounts, partition: Partition, question: str) -> bool:
        """Whether the heaviest task of a count, or of every question, is within the bytes."""
        for_all = question == "any"
        available_bytes = self.counting_bytes - lists_bytes(
            partition, 2 * SLICED_TASK_BYTES if for_all else COUNTED_TASK_BYTES
        )
        if available_bytes <= 0 or (for_all and most_slice_bytes(counts, ENGINE) > available_bytes):
            return False
        memory = TaskMemory(counts, triple_answer(ENGINE), find(ENGINE, "cpu").settings(None), self.threads)
        return memory.heaviest(busy_tasks(partition, counts))[0] <= available_bytes


@dataclass(frozen=True, slots=True)
class OrientedRuns:
    """Arcs ``position << 32 | position`` in runs, and everything that blocks are cut by."""

    arcs: Runs
    partition: Partition
    cuts: NDArray[np.int64]
    counts: BlockCounts


def orient_edges(
    edges: Edges,
    ranks: Ranks,
    rank_of_id: Ids | None,
    wanted: Wanted,
    arcs: Runs,
    available_bytes: int,
    on_keys: OnKeys,
) -> OrientedRuns:
    """Rename the edges and direct each from its lower rank, in pieces; the file of the edges is closed."""
    partition = None
    if wanted.scheme == "hashed":
        partition, _ = _divide(wanted, edges.keys.keys, partial(_hashed, ranks.n, edges.keys.keys, wanted.ids))
    bounds = _segment_bounds(ranks, wanted.segments) if partition is None else _starts(partition)
    positions = np.empty(0, np.uint32) if partition is None else _positions(partition, rank_of_id)
    segments = len(bounds) - 1
    renaming = Renaming(
        ranks.rank_of, positions, np.repeat(np.arange(segments, dtype=np.uint16), np.diff(bounds)), segments + 1
    )
    grid = _orient_pieces(edges.keys, renaming, arcs, available_bytes, wanted.threads, on_keys)
    edges.keys.close()
    before = grid.view(np.int64).reshape(segments + 1, segments + 1)
    np.cumsum(before, axis=1, out=before)
    np.cumsum(before, axis=0, out=before)
    if partition is None:
        partition, counts = _divide(wanted, edges.keys.keys, partial(_rectilinear, before, bounds))
    else:
        counts = _counts(before, np.arange(segments + 1), bounds)
    return OrientedRuns(arcs, partition, _starts(partition), counts)


class Renaming(NamedTuple):
    """What edges become: the rank of every slot, the position of every rank unless it is the rank, its segment."""

    rank_of: Ids
    positions: Ids
    segment_of: NDArray[np.uint16]
    width: int


def _orient_pieces(
    edges: Runs, renaming: Renaming, arcs: Runs, available_bytes: int, threads: int, on_keys: OnKeys
) -> Keys:
    """Write the arcs of all edges in runs; how many there are by segments, in one more row and column than those.

    The first thread's grid is planned for; others take part where all of them take a quarter of the memory at most.
    """
    grid_size = renaming.width**2
    least = ORIENT_BYTES * min(ORIENT_KEYS, edges.keys)
    each = KEY_BYTES * grid_size + least
    workers = max(1, min(threads, (available_bytes // 4) // each))
    piece_keys = min(ORIENT_KEYS, available_bytes // (ORIENT_BYTES * workers))
    pieces = -(-edges.keys // piece_keys)
    grids = [np.zeros(grid_size, np.uint64) for _ in range(min(workers, max(1, pieces)))]
    reported = 0

    def orient_piece(number: int, worker: int) -> None:
        keys = edges.stretch(number * piece_keys, min((number + 1) * piece_keys, edges.keys))
        orient_keys(keys, renaming, grids[worker])
        arcs.add(sorted_run(keys, np.empty_like(keys)))

    def on_done(finished: int) -> None:
        nonlocal reported
        on_keys(min(finished * piece_keys, edges.keys) - reported)
        reported = min(finished * piece_keys, edges.keys)

    run_tasks(orient_piece, pieces, workers, on_done)
    for grid in grids[1:]:
        grids[0] += grid
    return grids[0]


def _segment_bounds(ranks: Ranks, segments: int) -> NDArray[np.int64]:
    """Bounds of segments of ids that have about equally many arcs in and out."""
    if ranks.n <= segments:
        return np.arange(ranks.n + 1)
    ends = np.cumsum(ranks.degrees, dtype=np.int64)
    inner = np.searchsorted(ends, np.linspace(0, ends[-1], segments + 1)[1:-1], side="right")
    return np.unique(np.concatenate([[0], inner, [ranks.n]]))


def _divide(
    wanted: Wanted, m: int, candidate: Callable[[int], tuple[Partition, BlockCounts]]
) -> tuple[Partition, BlockCounts]:
    """The parts asked for, or the fewest that let every question, or at least a count, keep to the bytes."""
    if wanted.parts is not None:
        return candidate(wanted.parts)
    for question, parts in wanted.candidates(m):
        if parts > MAX_PARTS:
            break
        partition, counts = candidate(parts)
        if wanted.keeps_to_it(counts, partition, question):
            return partition, counts
    raise MemoryLimitError(
        f"not even {MAX_PARTS} parts let the tasks of a count keep to the {wanted.counting_bytes:,} bytes that are "
        "left for them; raise the memory limit"
    )


def _rectilinear(before: ArcsBefore, bounds: NDArray[np.int64], parts: int) -> tuple[Partition, BlockCounts]:
    """PaL's cuts between segments."""
    cuts = probe_a_load(before, parts)
    return Rectilinear(bounds[cuts]), _counts(before, cuts, bounds[cuts])


def _hashed(n: int, m: int, ids: str, parts: int) -> tuple[Partition, BlockCounts]:
    """Hashed parts, and blocks that are a quarter above the average."""
    partition = Hashed(n, parts, ids)
    arcs = np.full((parts, parts), -(-5 * m // (4 * parts * parts)))
    return partition, BlockCounts(arcs, np.array(partition.sizes, np.int64))


def _starts(partition: Partition) -> NDArray[np.int64]:
    return np.append(0, np.cumsum(np.array(partition.sizes, np.int64)))


def _positions(partition: Partition, rank_of_id: Ids | None) -> Ids:
    """The position of every rank."""
    ids = np.arange(partition.n, dtype=np.uint32) if rank_of_id is None else inverse(rank_of_id, np)
    positions: Ids = _starts(partition)[:-1].astype(np.uint32)[ids % np.uint32(partition.parts)]
    positions += ids // np.uint32(partition.parts)
    return positions


def _counts(before: ArcsBefore, cuts: NDArray[np.int64], bounds: NDArray[np.int64]) -> BlockCounts:
    """The arcs of every block and the ids of every part, from prefix sums."""
    return BlockCounts(np.diff(np.diff(before[np.ix_(cuts, cuts)], axis=0), axis=1), np.diff(bounds))


@kernel
def orient_keys(keys: Keys, renaming: Renaming, grid: Keys) -> None:
    """Replace every edge by its arc, and count it in the grid, in its tail's row and its head's column, plus one."""
    rank_of, positions, segment_of, width = renaming
    half, one, across = np.uint64(32), np.uint64(1), np.uint64(width)
    laid_out = len(positions) > 0
    for i in range(np.uint64(len(keys))):
        u = np.uint64(rank_of[keys[i] >> half])
        v = np.uint64(rank_of[keys[i] & np.uint64(0xFFFFFFFF)])
        tail, head = min(u, v), max(u, v)
        if laid_out:
            tail, head = np.uint64(positions[tail]), np.uint64(positions[head])
        keys[i] = tail << half | head
        grid[(np.uint64(segment_of[tail]) + one) * across + np.uint64(segment_of[head]) + one] += one


def load_orient_kernels() -> None:
    """Load the kernel, with arguments of the types that it is called with."""
    none: Any = np.empty(0, np.uint32)
    orient_keys(np.empty(0, np.uint64), Renaming(none, none, np.empty(0, np.uint16), 1), np.zeros(1, np.uint64))
