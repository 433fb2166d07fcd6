"""What: the triangles of every vertex and of every edge, each number added up by one task.

Who does what, for a triangle a < b < c (ids by rank):

    lowest    a task per range of a: for each x in N+(a), the triangles with lowest vertex a that contain x. Where b
              is below the hubs, c was found at its place in the row of b, and b → c is credited there, in supports
              that belong to the thread
    opposite  a task per range of hubs b: the triangles of b → c whose lowest vertex is elsewhere. An in-neighbour a
              of b below the hubs adds one to all ids of N+(a) behind b, members of N+(b) or not; only those of N+(b)
              are read. Where a is a hub too, the bit rows of all such a are added column by column

The support of an arc is the sum of both, over all threads. With more than `MAX_SHARES` threads these share one array
of supports, where each writes to its own rows alone, and the opposite pass covers every b. A vertex needs the first
pass alone: threads keep their credits for all rows, and the credits of all threads are added, range by range.
Input: ids by rank. Output: triangles and tests; what was asked for goes into the array of the work.
Memory: the hubs' rows; per thread a bit and 8 bytes per vertex (vertices) or 4 (edges); for edges also supports, 4
bytes per arc for each of up to `MAX_SHARES` threads, and the in-neighbours, 4 bytes per arc and an offset per vertex.
docs/decisions/0007-supports-by-range.md has the figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._contract import Counts, Knobs, Pass, Shape, Work
from wedgewise.algorithms._ranges import arc_bounds
from wedgewise.algorithms.cpu._keystone_close import (
    RowWorkspace,
    Sinks,
    closing_pass,
    crediting_bytes,
    crediting_workspace,
    graph_task,
)
from wedgewise.algorithms.cpu._keystone_hubs import CREDITING, Hubs, bit_row_at, most_hubs, prepare_hubs, row_bytes
from wedgewise.algorithms.cpu._keystone_in_neighbours import InNeighbours, in_neighbours, in_neighbours_bytes
from wedgewise.algorithms.cpu._keystone_rows import SPARE, Ledger, credit_columns, empty_ledger, take_bit_row
from wedgewise.algorithms.cpu._records import RowPart, Rows, row_at, rows_of
from wedgewise.machine.jit import helper, kernel
from wedgewise.machine.primitives import MAX_ROWS, prefetch
from wedgewise.prepare.orient import first_not_below
from wedgewise.stages import Ids, Keys, OrientedGraph

TASK_SUMS = 1 << 16  # numbers of all threads that one task adds up
MAX_SHARES = 4  # threads with supports of their own, 4 bytes per arc each
SUPPORT_COSTS = replace(
    CREDITING, stream_arc=8.0, stream_test=1.7, hub_arc=24.0, probe_test=4.5, and_block=4.0, behind=0.8
)
IDS_IN_ANY_CASE = 4  # short rows then have no loop whose end would be mispredicted
TAILS_AHEAD = 8  # how many in-neighbours ahead the end of a row is prefetched


@helper
def count_opposite(rows, tails, first, stop, b, seen):  # type: ignore[no-untyped-def]
    """Count the ids behind b in the rows of ``tails[first:stop]``, by walking each row back from its end.

    The last few ids of a row are counted in any case: those that are not behind b are not in N+(b) either.
    """
    one, ahead, sure = np.uint64(1), np.uint64(TAILS_AHEAD), np.uint64(IDS_IN_ANY_CASE)
    offsets, heads = rows
    for position in range(first, stop):
        if position + ahead < stop:
            prefetch(heads, np.uint64(offsets[np.uint64(tails[position + ahead]) + one]) - one)
        tail = np.uint64(tails[position])
        end = np.uint64(offsets[tail + one])
        length = end - np.uint64(offsets[tail])
        for step in range(one, sure + one):
            seen[np.uint64(SPARE) + np.uint64(heads[end - min(np.uint64(step), length)])] += np.uint32(1)
        if length > sure:
            other = end - sure - one
            while heads[other] > b:
                seen[np.uint64(SPARE) + np.uint64(heads[other])] += np.uint32(1)
                other -= one


@helper
def count_opposite_hubs(row, b, tails, hubs, own):  # type: ignore[no-untyped-def]
    """Count the ids of the row of b in the bit rows of a stretch of tails, which are hubs like b."""
    start, block, _ = bit_row_at(hubs, b, hubs.layout)
    mask_origin, taken = start - (block << np.uint64(3)), np.uint64(0)
    for position in range(tails.begin, tails.end):
        start, block, _ = bit_row_at(hubs, np.uint64(tails.heads[position]), hubs.layout)
        taken = take_bit_row(own, taken, start - (block << np.uint64(3)), block)
        if taken == np.uint64(MAX_ROWS) or position + np.uint64(1) == tails.end:
            credit_columns(row, hubs.base, hubs.bits, mask_origin, hubs.bits, taken, own)
            taken = np.uint64(0)


@kernel
def add_opposite(
    rows: Rows, hubs: Hubs, inward: InNeighbours, begin: int, end: int, own: Ledger, supports: Ids
) -> None:
    """Add the triangles with a lower third vertex to the arcs of heads begin … end − 1; nothing is tested."""
    one, spare, seen = np.uint64(1), np.uint64(SPARE), own.credit
    for head in range(np.uint64(begin), np.uint64(end)):
        b = np.uint64(inward.least) + np.uint64(head)
        first, stop = np.uint64(inward.offsets[head]), np.uint64(inward.offsets[head + one])
        row = row_at(rows, b)
        if first == stop or row.begin == row.end:
            continue
        for arc in range(row.begin, row.end):
            seen[spare + np.uint64(row.heads[arc])] = np.uint32(0)
        split = first_not_below(inward.tails, first, stop, hubs.base)
        count_opposite(rows, inward.tails, first, split, b, seen)
        if split < stop:
            count_opposite_hubs(row, b, RowPart(inward.tails, split, stop), hubs, own)
        for arc in range(row.begin, row.end):
            supports[arc] += seen[spare + np.uint64(row.heads[arc])]


def prepare_triangles(graph: OrientedGraph, knobs: Knobs, threads: int) -> Work:
    """Credits of every thread, then their sum by ranges of vertices."""
    task = graph_task(graph, prepare_hubs(graph, knobs, threads, CREDITING))
    filled = np.zeros(graph.n, np.uint64)
    by_thread: list[Keys] = []

    def workspace() -> RowWorkspace[Any]:
        own = crediting_workspace(graph.n, np.uint64)
        triangles = own.marks.credit[SPARE:]
        by_thread.append(triangles)
        return own._replace(sinks=Sinks(by_row=triangles, by_head=triangles))

    return Work((closing_pass(task, workspace), sum_pass(by_thread, filled)), filled)


def sum_pass(by_thread: Sequence[NDArray[Any]], filled: NDArray[Any], *, counted: bool = True) -> Pass:
    """Add what threads have for themselves, by ranges; `by_thread` is complete when the pass begins.

    Triangles that are not counted yet are counted here.
    """

    def add_up(begin: int, end: int, _workspace: None) -> Counts:
        triangles = 0
        for own in by_thread:
            filled[begin:end] += own[begin:end]
            triangles += 0 if counted else int(own[begin:end].sum())
        return triangles, 0

    return Pass(np.append(np.arange(0, len(filled), TASK_SUMS), len(filled)), add_up)


def prepare_edge_support(graph: OrientedGraph, knobs: Knobs, threads: int) -> Work:
    """The triangles of each arc: those found from its tail or streaming past it, then the others, by ranges of b."""
    rows, shared = rows_of(graph), threads > MAX_SHARES
    hubs = prepare_hubs(graph, knobs, threads, SUPPORT_COSTS)
    inward = in_neighbours(rows, graph.n, 0 if shared else int(hubs.base), idle=1, threads=threads)
    filled = np.zeros(graph.m, np.uint32)
    others: list[Ids] = []
    threads_before = count()

    def workspace() -> RowWorkspace[Any]:
        supports = filled
        own = crediting_workspace(graph.n, np.uint32)
        if next(threads_before) > 0 and not shared:
            supports = np.zeros(graph.m, np.uint32)
            others.append(supports)
        by_last_arc = None if shared else supports
        sinks = Sinks(by_head=own.marks.credit[SPARE:], by_far_arc=supports, by_last_arc=by_last_arc)
        return own._replace(sinks=sinks)

    def opposite(begin: int, end: int, own: Ledger) -> Counts:
        add_opposite(rows, hubs, inward, begin, end, own, filled)
        return 0, 0

    return Work(
        (
            closing_pass(graph_task(graph, hubs), workspace),
            sum_pass(others, filled),
            Pass(arc_bounds(inward.offsets), opposite, lambda: empty_ledger(graph.n, np.uint32)),
        ),
        filled,
    )


def triangles_bytes(shape: Shape, threads: int, knobs: Knobs) -> int:
    return row_bytes(most_hubs(shape, knobs)) + 8 * shape.n + threads * crediting_bytes(shape.n, 8)


def edge_support_bytes(shape: Shape, threads: int, knobs: Knobs) -> int:
    shares = threads if threads <= MAX_SHARES else 1
    hubs = row_bytes(most_hubs(shape, knobs))
    return hubs + 4 * shape.m * shares + in_neighbours_bytes(shape) + threads * crediting_bytes(shape.n, 4)
