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

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._contract import (
    Algorithm,
    Answer,
    BatchWork,
    Counts,
    Knob,
    Knobs,
    PrepareBatch,
    Shape,
    TripleAnswer,
    TripleCost,
    Work,
)
from wedgewise.algorithms._ranges import TASK_TESTS, arc_bounds, even_bounds
from wedgewise.algorithms.cpu._batches import (
    FLAG,
    ITEM_WORDS,
    JK,
    CpuBatch,
    CpuBatchItems,
    batch_of,
    batch_work,
    columns_of,
    item_at,
    put_found,
)
from wedgewise.algorithms.cpu._records import widening_bytes
from wedgewise.algorithms.cpu.forward import merge_rows
from wedgewise.algorithms.cpu.hashmap import look_up_rows
from wedgewise.machine.jit import kernel
from wedgewise.machine.primitives import ticks
from wedgewise.stages import Ids, Keys, OrientedGraph
from wedgewise.stages.blocks import WIDE_ARCS, Triple, check_parts
from wedgewise.stages.tasks import TaskBatch, TripleShape

MAX_PARTS = 36  # as many as the paper needs for its largest graph; 8,436 tasks
SHARE_OF_RANGE = 1 / 16  # an estimate by averages may be that far off
MAX_GROUPS, SUMMED_ARCS = 1 << 15, 1 << 16
CUTTING_BYTES = 42 << 20  # the grid and the sample that the cuts come from
TASK_BYTES = 1 << 11  # views of its blocks and what runs it


def by_map(batch: CpuBatch, knobs: Knobs) -> NDArray[np.bool_]:
    """Whether each task of a batch is counted by the map."""
    arcs_per_row = np.array([block.m / max(1, block.rows) for block in batch.blocks])
    return is_by_map(arcs_per_row[batch.numbers], knobs)


def is_by_map(arcs_per_row: NDArray[np.float64], knobs: Knobs) -> NDArray[np.bool_]:
    """The same, by the arcs per row of the three blocks of every task: as asked, or where one of them is dense."""
    is_dense: NDArray[np.bool_] = arcs_per_row.max(axis=0) > int(knobs["threshold"])
    return is_dense if knobs["method"] == "auto" else np.full_like(is_dense, knobs["method"] == "hashmap")


@kernel
def count_items(batch: CpuBatchItems, begin: int, end: int, marks: Ids, found: Keys) -> Counts:
    """Triangles of the items begin … end − 1, by the map where their flag says so; the sums of all."""
    triangles, tests = np.uint64(0), np.uint64(0)
    for number in range(np.uint64(begin), np.uint64(end)):
        since = ticks()
        at = np.uint64(number) * np.uint64(ITEM_WORDS)
        blocks, span = item_at(batch, number)
        if batch.items[at + np.uint64(FLAG)]:
            for column in range(columns_of(batch.table, batch.items[at + np.uint64(JK)])):
                marks[column] = np.uint32(0)
            counted, compared = look_up_rows(blocks, span, marks)
        else:
            counted, compared = merge_rows(blocks, span)
        put_found(found, number, counted, compared, ticks() - since)
        triangles += np.uint64(counted)
        tests += np.uint64(compared)
    return triangles, tests


def counter(knobs: Knobs) -> PrepareBatch:
    """Nothing to build: decide how, and cut the rows of long tasks into ranges of about equal work."""

    def prepare_batch(tasks: TaskBatch) -> BatchWork:
        batch = batch_of(tasks, cut=work_bounds)
        is_mapped = by_map(batch, knobs)
        batch.words[:, FLAG] = is_mapped[batch.task_of_item]
        columns = batch.widest if is_mapped.any() else 0

        def count(begin: int, end: int, marks: Ids, found: Keys) -> Counts:
            return count_items(batch.items, begin, end, marks, found)

        return batch_work(batch, count, lambda: np.zeros(columns, np.uint32))

    return prepare_batch


def is_long(rows_i: Any, rows_j: Any, arcs_ij: Any, arcs_ik: Any, arcs_jk: Any) -> Any:
    """Whether the paper's estimate of a task is so large that its ranges of rows are to be of equal work."""
    return arcs_ij * np.maximum(arcs_ik / rows_i, arcs_jk / rows_j) >= SHARE_OF_RANGE * TASK_TESTS


def work_bounds(triple: Triple) -> NDArray[np.int64]:
    """Ranges of rows: of equally many arcs where a task is not long, else of equal work.

    Work is estimated for groups of rows, at most `MAX_GROUPS` of them; ranges consist of whole groups.
    """
    ij, ik, jk = triple.ij, triple.ik, triple.jk
    if not is_long(ij.rows, jk.rows, ij.m, ik.m, jk.m):
        return arc_bounds(ij.offsets)
    ends = np.append(np.arange(0, ij.rows, -(-ij.rows // MAX_GROUPS)), ij.rows)
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


def estimate_bytes(rows_i: Any, arcs_ij: Any) -> Any:
    """What `work_bounds` takes for a long task."""
    return 72 * np.minimum(rows_i, MAX_GROUPS) + 48 * np.minimum(arcs_ij, SUMMED_ARCS)


def triple_bytes(shape: TripleShape, knobs: Knobs) -> Any:
    is_cut = is_long(np.maximum(1, shape.rows_i), np.maximum(1, shape.rows_j), *shape.arcs)
    return widening_bytes(shape) + np.where(is_cut, estimate_bytes(shape.rows_i, shape.arcs_ij), 0)


def map_bytes(columns_k: Any, knobs: Knobs) -> Any:
    """The map of a thread."""
    return 0 * columns_k if knobs["method"] == "list" else 4 * columns_k


def prepare(graph: OrientedGraph, knobs: Knobs, threads: int) -> Work:
    """Cut the graph into blocks; all tasks are one batch, the heaviest first."""
    from wedgewise.prepare.cut_blocks import blocks_of
    from wedgewise.prepare.rectilinear import default_parts, rectilinear
    from wedgewise.stages.tasks import BlockCounts, busy_tasks

    check_parts(int(knobs["parts"]), graph.n)
    parts = int(knobs["parts"]) or min(MAX_PARTS, default_parts(graph))
    partition = rectilinear(graph, parts, threads=threads)
    blocks = blocks_of(graph, partition, threads=threads)
    tasks = busy_tasks(partition, BlockCounts.of(blocks)).heaviest_first()
    return Work(counter(knobs)(TaskBatch(blocks.blocks, tasks)).passes if len(tasks) else ())


def bytes_needed(shape: Shape, threads: int, knobs: Knobs) -> int:
    """How blocks are cut; then the blocks with an offset per row and part at most, the work estimate, maps, pieces."""
    parts = int(knobs["parts"]) or min(MAX_PARTS, shape.m // max(1, shape.n) + 1)
    blocks = 4 * shape.m + (4 if shape.m < WIDE_ARCS else 8) * parts * (shape.n + parts)
    tasks = parts * (parts + 1) * (parts + 2) // 6
    counting = estimate_bytes(shape.n, shape.m) + threads * map_bytes(shape.n, knobs) + TASK_BYTES * tasks
    return max(int(blocks + counting), CUTTING_BYTES + 18 * shape.n)


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
        Knob(
            "parts", 0, f"parts that ids are cut into; 0 = the average out-degree, {MAX_PARTS} at most", most=MAX_PARTS
        ),
    ),
    triples={"count": TripleAnswer(counter, triple_bytes, map_bytes, cost=TripleCost(2.3e-9, 9.4e-9, 2e-6))},
)
