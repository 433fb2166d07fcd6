"""The triangles of every vertex of a part and of every arc of a block, from all tasks that have some of them.

For a triangle a → b → c, a → c in the task (i, j, k), a role says which of its vertices, or arcs, a slice has:

    role   vertex   of       arc     of
    0      a        part i   a → b   block ij
    1      b        part j   a → c   block ik
    2      c        part k   b → c   block jk

A triangle is in one task, and each of the three roles of a task belongs to one slice. A slice sums up all pairs (task,
role) that belong to it, and so every triangle is added exactly once to each of its vertices and arcs. That holds on the
diagonal: in the task (i, i, k), blocks ik and jk are one, whose slice takes the task twice, once for a → c and once for
b → c, which are different arcs of the block; the slice of part i takes it for a and for b; and in (i, i, i) one slice
has all three roles. Nothing here depends on how ids are numbered within parts, nor on whether parts are ordered.

Both are counts of batches of block tasks that say whose triangles they found:

    vertices   role 0 adds to a. Role 1 adds to b and role 2 credits c, in arrays of each thread, which are added up by
               ranges when all rows are done
    arcs       role 0 adds to a → b; role 1 credits c, and moves the credits to the arcs a → c after each row a. For
               b → c it does the same with a and b in each other's place: block ij is turned, so that row b has its
               in-neighbours a; with the row of b in jk marked, each a credits the heads of its row in ik. Supports are
               below 2^31, since an edge has no more triangles than there are vertices

Where rows write to a slice, all tasks of a batch have the same rows. They are cut into ranges, and a range goes through
all tasks, so that no two ranges write to the same row; otherwise ranges are of tasks.

Extra work: all slices together do each task three times. Vertices take exactly the tests of three counts; arcs take
those of two, and others for b → c, since a and b change places there (2.4 counts' on Kronecker 18 in 4 parts). Slices
do not depend on the number of threads.
Memory: bit rows as for a count, for b → c those of ik; per thread a bit per column; for vertices 8 bytes per
vertex of part j or k in roles 1 and 2; for arcs 4 bytes per column in role 1. A turned block has 4 bytes per arc
of ij and an offset per row of jk.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._contract import Counts, Knobs, Pass, SliceMethod, Work
from wedgewise.algorithms._ranges import cut_rows, even_bounds
from wedgewise.algorithms.cpu._batches import (
    BEGIN,
    END,
    GROUP,
    ITEM_WORDS,
    RANGE_NANOSECONDS,
    CpuBatch,
    CpuBatchItems,
    batch_of,
)
from wedgewise.algorithms.cpu._keystone_close import (
    RowWorkspace,
    Sinks,
    counting_bytes,
    counting_workspace,
    crediting_bytes,
    crediting_workspace,
)
from wedgewise.algorithms.cpu._keystone_in_neighbours import in_neighbours
from wedgewise.algorithms.cpu._keystone_rows import SPARE
from wedgewise.algorithms.cpu._keystone_supports import sum_pass
from wedgewise.algorithms.cpu._keystone_triple_hubs import hubs_bytes, hubs_of
from wedgewise.algorithms.cpu._keystone_triples import close_items, idle_arcs
from wedgewise.algorithms.cpu._records import NOTHING, rows_in, widening_bytes
from wedgewise.stages import Ids, Keys
from wedgewise.stages.blocks import Block, Triple
from wedgewise.stages.tasks import TaskBatch, TripleShape

MAX_ITEMS, RANGES = 1 << 12, 1 << 6  # there are so many items, or ranges that go through all tasks, at most
ITEM_BYTES = 4 * ITEM_WORDS + 24  # and what is found of it


def prepare_triangles(tasks: TaskBatch, role: int, filled: Keys, knobs: Knobs) -> Work:
    """Add the triangles of tasks to the vertices of part i, j or k."""
    by_thread: list[Keys] = []
    tasks = _with_arcs(tasks)
    if len(tasks.tasks) == 0:
        return NOTHING

    def workspace(columns: int) -> RowWorkspace[Any]:
        if role == 0:
            return counting_workspace(columns, Sinks(by_row=filled))
        if role == 1:
            by_head = np.zeros(len(filled), np.uint64)
            by_thread.append(by_head)
            return counting_workspace(columns, Sinks(by_head=by_head))
        own = crediting_workspace(columns, np.uint64)
        by_thread.append(own.marks.credit[SPARE:])
        return own

    closing = _closing_pass(tasks, knobs, workspace, by_rows=role == 0)
    return Work((closing,) if role == 0 else (closing, sum_pass(by_thread, filled, counted=role == 1)), filled)


def prepare_supports(tasks: TaskBatch, role: int, filled: Ids, knobs: Knobs) -> Work:
    """Add the triangles of tasks to the arcs of block ij or ik."""
    tasks = _with_arcs(tasks)
    if len(tasks.tasks) == 0:
        return NOTHING

    def workspace(columns: int) -> RowWorkspace[Any]:
        if role == 0:
            return counting_workspace(columns, Sinks(by_arc=filled))
        return crediting_workspace(columns, np.uint32, Sinks(by_far_arc=filled))

    return Work((_closing_pass(tasks, knobs, workspace),), filled)


def _with_arcs(tasks: TaskBatch) -> TaskBatch:
    """The tasks all of whose blocks have arcs; kernels take no others."""
    parts, table = tasks.tasks.parts, tasks.tasks
    empty = [i * parts + j for (i, j), block in tasks.blocks.items() if block.m == 0]
    if not empty:
        return tasks
    return TaskBatch(tasks.blocks, table.take(np.flatnonzero(~np.isin(np.stack(table.pairs), empty).any(axis=0))))


def _closing_pass(
    tasks: TaskBatch, knobs: Knobs, workspace: Callable[[int], RowWorkspace[Any]], *, by_rows: bool = True
) -> Pass:
    """All rows of all tasks: in ranges of the same rows of each, or else in ranges of tasks and of their rows."""
    batch = batch_of(tasks, idle_arcs(tasks), whole_rows if by_rows else None)
    hubs = hubs_of(batch, knobs)
    batch.words[:, GROUP] = hubs.group_of_task[batch.task_of_item]
    if by_rows:
        items, bounds = _in_row_ranges(batch)
    else:
        items, bounds = batch.items, even_bounds(batch.nanoseconds, RANGE_NANOSECONDS, least=1)
    found = np.zeros(3 * (len(items.items) // ITEM_WORDS), np.uint64)
    kept = batch, hubs  # while the pass lasts

    def close(begin: int, end: int, own: RowWorkspace[Any]) -> Counts:
        return close_items(items, kept[1].table, begin, end, *own, found)

    return Pass(bounds, close, lambda: workspace(batch.widest))


def _in_row_ranges(batch: CpuBatch) -> tuple[CpuBatchItems, NDArray[np.int64]]:
    """Items of tasks that have the same rows, so that every range of rows is one of items, and where those end."""
    each, arcs_before = len(batch.words), np.zeros(1, np.int64)
    for number, uses in zip(*np.unique(batch.numbers[0], return_counts=True), strict=True):
        arcs_before = arcs_before + int(uses) * batch.blocks[number].offsets.astype(np.int64)
    most = min(batch.blocks[batch.numbers[0, 0]].rows, max(RANGES, MAX_ITEMS // each))
    cuts = cut_rows(arcs_before, min(most, int(batch.nanoseconds.sum()) // RANGE_NANOSECONDS))
    items = np.tile(batch.words, (len(cuts) - 1, 1))
    items[:, BEGIN], items[:, END] = np.repeat(cuts[:-1], each), np.repeat(cuts[1:], each)
    whole = CpuBatchItems(batch.items.table, items.reshape(-1), batch.items.shares)
    return whole, np.arange(0, len(items) + 1, each)


def whole_rows(triple: Triple) -> NDArray[np.int64]:
    """All rows of a task at once."""
    return np.array([0, triple.ij.rows])


def turned(block: Block) -> Block:
    """A block with rows for columns."""
    columns = in_neighbours(rows_in(block), block.columns, idle=0)
    return Block(columns.offsets, columns.tails, block.rows)


def bytes_needed(shape: TripleShape, knobs: Knobs) -> Any:
    return hubs_bytes(shape, knobs) + widening_bytes(shape) + RANGES * ITEM_BYTES


def triangles_bytes(shape: TripleShape, role: int, threads: int, knobs: Knobs) -> Any:
    counting = counting_bytes(shape.columns_k)
    own = (counting, counting + 8 * shape.rows_j, crediting_bytes(shape.columns_k, 8))[role]
    return MAX_ITEMS * ITEM_BYTES + threads * own


def supports_bytes(shape: TripleShape, role: int, threads: int, knobs: Knobs) -> Any:
    own = counting_bytes(shape.columns_k) if role == 0 else crediting_bytes(shape.columns_k, 4)
    return MAX_ITEMS * ITEM_BYTES + threads * own


TRIANGLES = SliceMethod(prepare_triangles, bytes_needed, triangles_bytes)
EDGE_SUPPORT = SliceMethod(prepare_supports, bytes_needed, supports_bytes, turned)
