"""What: cut the adjacency matrix into blocks, count each task of three blocks by lists or by a map of the columns.

Paper: BBTC (Yaşar et al., TPDS 2021), Algorithms 4, 5, 6 and 9 on CPUs.
Who does what: one task per triple of blocks ij, ik, jk with i ≤ j ≤ k, the heaviest first; a task that is long is cut
into ranges of rows a. Every arc a → b of block ij intersects a's row of block ik with b's row of block jk:

    list      merge the two rows (Algorithm 5)
    hashmap   ``mark[c] == a + 1`` says that c is in a's row; look up all of b's row (Algorithm 6)
    auto      the map where one of the three blocks is dense, that is, has more than `threshold` arcs per row

Input: ids by rank, rows sorted; a triple may have any numbering within its parts. Output: triangles and comparisons or
look-ups. Memory: the blocks; 4 bytes per column and thread.
Differs from the authors' code in: merging as in `forward`; marks are not cleared between rows; a task may be shared by
threads. The paper names no density; the default is the 10 arcs per row that the documentation of its program has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._contract import (
    Algorithm,
    Answer,
    Counts,
    Knob,
    Knobs,
    Pass,
    Shape,
    TripleAnswer,
    TripleCost,
    TripleShape,
    Work,
)
from wedgewise.algorithms._ranges import TASK_TESTS, arc_bounds, even_bounds
from wedgewise.algorithms.cpu._records import NOTHING, Span, blocks_in, has_none, widening_bytes
from wedgewise.algorithms.cpu.forward import merge_rows
from wedgewise.algorithms.cpu.hashmap import look_up_rows
from wedgewise.stages import Ids, OrientedGraph
from wedgewise.stages.blocks import WIDE_ARCS, Blocks, Task, Triple

MOST_PARTS = 36  # as many as the paper needs for its largest graph; 8,436 tasks
SHARE_OF_RANGE = 1 / 16  # an estimate by averages may be that far off
MOST_GROUPS, SUMMED_ARCS = 1 << 15, 1 << 16
CUTTING_BYTES = 42 << 20  # the grid and the sample that the cuts come from
TASK_BYTES = 1 << 11  # views of its blocks and what runs it


def takes_map(triple: Triple, knobs: Knobs) -> bool:
    """Whether a task is counted by the map: as asked, or where a block is dense."""
    if knobs["method"] != "auto":
        return knobs["method"] == "hashmap"
    return any(block.m > int(knobs["threshold"]) * block.rows for block in (triple.ij, triple.ik, triple.jk))


def prepare_triple(triple: Triple, knobs: Knobs, share: int, shares: int) -> Work:
    """Nothing to build: decide how, and cut the rows into ranges of about equal work."""
    if has_none(triple):
        return NOTHING
    blocks, by_map = blocks_in(triple), takes_map(triple, knobs)

    def run(begin: int, end: int, marks: Ids) -> Counts:
        span = Span(begin, end, share, shares)
        return look_up_rows(blocks, span, marks) if by_map else merge_rows(blocks, span)

    columns = triple.jk.columns if by_map else 0
    return Work((Pass(work_bounds(triple), run, lambda: np.zeros(columns, np.uint32)),))


def is_long(rows_i: int, rows_j: int, arcs_ij: int, arcs_ik: int, arcs_jk: int) -> bool:
    """Whether the paper's estimate of a task is so large that its ranges of rows are to be of equal work."""
    return arcs_ij * max(arcs_ik / rows_i, arcs_jk / rows_j) >= SHARE_OF_RANGE * TASK_TESTS


def work_bounds(triple: Triple) -> NDArray[np.int64]:
    """Ranges of rows: of equally many arcs where a task is not long, else of equal work.

    Work is estimated for groups of rows, at most `MOST_GROUPS` of them; ranges consist of whole groups.
    """
    ij, ik, jk = triple.ij, triple.ik, triple.jk
    if not is_long(ij.rows, jk.rows, ij.m, ik.m, jk.m):
        return arc_bounds(ij.offsets)
    ends = np.append(np.arange(0, ij.rows, -(-ij.rows // MOST_GROUPS)), ij.rows)
    rows, arcs = np.diff(ends), ij.offsets[ends]
    own = np.diff(arcs).astype(np.float64) * np.diff(ik.offsets[ends]) / rows
    return ends[even_bounds(second_hops(triple, arcs) + own + rows, TASK_TESTS, least=1)]


def second_hops(triple: Triple, ends: NDArray[Any]) -> NDArray[np.float64]:
    """The arcs of block jk from all heads in block ij between two ends, summed `SUMMED_ARCS` at a time."""
    heads, offsets = triple.ij.heads, triple.jk.offsets
    before, summed = np.zeros(len(ends)), 0.0
    for begin in range(0, len(heads), SUMMED_ARCS):
        some = heads[begin : begin + SUMMED_ARCS]
        sums = np.cumsum(offsets[some + np.uint32(1)] - offsets[some], dtype=np.float64)
        first, last = np.searchsorted(ends, np.array([begin, begin + len(sums)], ends.dtype), side="right")
        before[first:last] = sums[ends[first:last] - ends.dtype.type(begin + 1)] + summed
        summed += float(sums[-1])
    return np.diff(before)


def estimate_bytes(rows_i: int, arcs_ij: int) -> int:
    """What `work_bounds` takes for a long task."""
    return 72 * min(rows_i, MOST_GROUPS) + 48 * min(arcs_ij, SUMMED_ARCS)


def triple_bytes(shape: TripleShape, knobs: Knobs) -> int:
    taken = map_bytes(shape.columns_k, knobs) + widening_bytes(shape)
    if is_long(max(1, shape.rows_i), max(1, shape.rows_j), *shape.arcs):
        taken += estimate_bytes(shape.rows_i, shape.arcs_ij)
    return taken


def map_bytes(columns_k: int, knobs: Knobs) -> int:
    """The map of a thread."""
    return 0 if knobs["method"] == "list" else 4 * columns_k


def pieces_of(
    blocks: Blocks, tasks: tuple[Task, ...], knobs: Knobs
) -> Iterator[tuple[Callable[[int, int, Ids], Counts], int, int, int]]:
    """All tasks in their order, the long ones in pieces: what counts a range of rows, and the columns of its map."""
    for task in tasks:
        triple = blocks.triple(task)
        for step in prepare_triple(triple, knobs, task.share, task.shares).passes:
            for begin, end in pairwise(step.bounds.tolist()):
                yield step.run, begin, end, triple.jk.columns


def prepare(graph: OrientedGraph, knobs: Knobs, threads: int) -> Work:
    """Cut the graph into blocks; a range of the pass is one piece of a task."""
    from wedgewise.prepare.cut_blocks import blocks_of
    from wedgewise.prepare.rectilinear import default_parts, rectilinear
    from wedgewise.stages.tasks import Counts as BlockCounts
    from wedgewise.stages.tasks import heaviest_first, tasks_of

    parts = min(MOST_PARTS, int(knobs["parts"]) or default_parts(graph))
    partition = rectilinear(graph, parts, threads=threads)
    blocks = blocks_of(graph, partition, threads=threads)
    pieces = tuple(pieces_of(blocks, heaviest_first(BlockCounts.of(blocks), tasks_of(partition)), knobs))

    def count(begin: int, end: int, marks: Ids) -> Counts:
        triangles = tests = 0
        for run, first, stop, columns in pieces[begin:end]:
            marks[:columns] = 0
            found, tested = run(first, stop, marks)
            triangles += int(found)
            tests += int(tested)
        return triangles, tests

    widest = max(partition.sizes)
    return Work((Pass(np.arange(len(pieces) + 1), count, lambda: np.zeros(widest, np.uint32)),))


def bytes_needed(shape: Shape, threads: int, knobs: Knobs) -> int:
    """How blocks are cut; then the blocks with an offset per row and part at most, the work estimate, maps, pieces."""
    parts = min(MOST_PARTS, int(knobs["parts"]) or shape.m // max(1, shape.n) + 1)
    blocks = 4 * shape.m + (4 if shape.m < WIDE_ARCS else 8) * parts * (shape.n + parts)
    tasks = parts * (parts + 1) * (parts + 2) // 6
    counting = estimate_bytes(shape.n, shape.m) + threads * map_bytes(shape.n, knobs) + TASK_BYTES * tasks
    return max(blocks + counting, CUTTING_BYTES + 18 * shape.n)


ALGORITHM = Algorithm(
    name="bbtc",
    device="cpu",
    unit="triple",
    answers={"count": Answer(prepare, bytes_needed)},
    paper="BBTC (doi:10.1109/TPDS.2021.3093240)",
    summary="Cuts the adjacency matrix into blocks and counts every triple of them by lists or by a map.",
    limits="ids by rank",
    relabellings=("rank",),
    knobs=(
        Knob("method", "auto", "how a task is counted; auto goes by density", choices=("auto", "list", "hashmap")),
        Knob("threshold", 10, "arcs per row above which a block is dense"),
        Knob("parts", 0, f"parts that ids are cut into, at most {MOST_PARTS}; 0 = the average out-degree"),
    ),
    triples={"count": TripleAnswer(prepare_triple, triple_bytes, map_bytes, cost=TripleCost(2.3e-9, 9.4e-9, 2e-5))},
)
