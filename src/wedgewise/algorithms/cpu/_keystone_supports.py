"""What: the triangles of every vertex and of every edge, each number computed by whoever owns it.

Who does what, for a triangle a < b < c (ids by rank):

    lowest    a task per range of a: for each x in N+(a), the triangles with lowest vertex a that contain x. Where b
              is below the hubs, c was found at its place in the row of b, and b → c is credited there, in supports
              that belong to the thread
    opposite  a task per range of hubs b: the triangles of b → c whose lowest vertex is elsewhere. An in-neighbour a
              of b below the hubs adds one to all ids of N+(a) behind b, members of N+(b) or not; only those of N+(b)
              are read. Where a is a hub too, the bit rows of all such a are added column by column

The support of an arc is the sum of both, over all threads. With more than `MOST_SHARES` threads these share one array
of supports, where each writes to its own rows alone, and the opposite pass covers every b. A vertex needs the first
pass alone: threads keep their credits for all rows, and the credits of all threads are added, range by range.
Input: ids by rank. Output: triangles and tests; what was asked for goes into the array of the work.
Memory: the hubs' rows; per thread a bit and 8 bytes per vertex (vertices) or 4 (edges); for edges also supports, 4
bytes per arc for each of up to `MOST_SHARES` threads, and the arcs by head, 4 bytes per arc and an offset per vertex.
docs/decisions/0007-supports-by-owner.md has the figures.
"""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._contract import Counts, Knobs, Pass, Shape, Work
from wedgewise.algorithms._ranges import arc_bounds
from wedgewise.algorithms.cpu._keystone_credit import (
    SPARE,
    Ledger,
    credit_all_arcs,
    credit_arcs,
    credit_columns,
    credit_vertices,
    empty_ledger,
    ledger_bytes,
)
from wedgewise.algorithms.cpu._keystone_heads import by_head, heads_bytes
from wedgewise.algorithms.cpu._keystone_hubs import Costs, most_hubs, prepare_hubs, row_bytes, row_word
from wedgewise.machine.jit import helper, kernel, kernel_view
from wedgewise.machine.primitives import MOST_ROWS, prefetch
from wedgewise.prepare.orient import first_not_below
from wedgewise.stages import Ids, Keys, OrientedGraph

TASK_IDS = 1 << 15
TASK_SUPPORTS = 1 << 18
MOST_SHARES = 4  # threads with supports of their own, 4 bytes per arc each
SUPPORT_COSTS = Costs(stream_arc=8.0, stream_test=1.7, hub_arc=24.0, probe_test=4.5, and_block=4.0, behind=0.8)
IDS_IN_ANY_CASE = 4  # short rows then have no loop whose end would be mispredicted
TAILS_AHEAD = 8  # how many in-neighbours ahead the end of a row is prefetched


@helper
def count_opposite(offsets, rows, tails, first, stop, b, seen):  # type: ignore[no-untyped-def]
    """Count the ids behind b in the rows of ``tails[first:stop]``, by walking each row back from its end.

    The last few ids of a row are counted in any case: those that are not behind b are not in N+(b) either.
    """
    one, ahead, sure = np.uint64(1), np.uint64(TAILS_AHEAD), np.uint64(IDS_IN_ANY_CASE)
    for place in range(first, stop):
        if place + ahead < stop:
            prefetch(rows, np.uint64(offsets[np.uint64(tails[place + ahead]) + one]) - one)
        tail = np.uint64(tails[place])
        end = np.uint64(offsets[tail + one])
        length = end - np.uint64(offsets[tail])
        for step in range(one, sure + one):
            seen[np.uint64(SPARE) + np.uint64(rows[end - min(np.uint64(step), length)])] += np.uint32(1)
        if length > sure:
            other = end - sure - one
            while rows[other] > b:
                seen[np.uint64(SPARE) + np.uint64(rows[other])] += np.uint32(1)
                other -= one


@helper
def count_opposite_hubs(rows, b_begin, b_end, tails, first, stop, b, base, blocks, bits, scratch, seen):  # type: ignore[no-untyped-def]
    """Count the ids of ``rows[b_begin:b_end]`` in the bit rows of ``tails[first:stop]``, which are hubs like b."""
    own = row_word(b - base, blocks) - (((b - base) >> np.uint64(9)) << np.uint64(3))
    taken = np.uint64(0)
    for place in range(first, stop):
        hub = np.uint64(tails[place]) - base
        block = hub >> np.uint64(9)
        scratch[taken] = row_word(hub, blocks) - (block << np.uint64(3))
        scratch[np.uint64(MOST_ROWS) + taken] = block
        taken += np.uint64(1)
        if taken == np.uint64(MOST_ROWS) or place + np.uint64(1) == stop:
            credit_columns(rows, b_begin, b_end, base, bits, own, bits, scratch, taken, seen)
            taken = np.uint64(0)


@kernel
def add_opposite(
    offsets: NDArray[Any],
    rows: Ids,
    first_hub: int,
    bits: Keys,
    least_head: int,
    head_offsets: NDArray[Any],
    tails: Ids,
    begin: int,
    end: int,
    scratch: Keys,
    seen: Ids,
    supports: Ids,
) -> None:
    """Add the triangles with a lower third vertex to the arcs of heads begin … end − 1; nothing is tested."""
    one, base, least = np.uint64(1), np.uint64(first_hub), np.uint64(least_head)
    blocks = (np.uint64(len(offsets)) - one - base) >> np.uint64(9)
    for head in range(np.uint64(begin), np.uint64(end)):
        b = least + np.uint64(head)
        first, stop = np.uint64(head_offsets[head]), np.uint64(head_offsets[head + one])
        b_begin, b_end = np.uint64(offsets[b]), np.uint64(offsets[b + one])
        if first == stop or b_begin == b_end:
            continue
        for arc in range(b_begin, b_end):
            seen[np.uint64(SPARE) + np.uint64(rows[arc])] = np.uint32(0)
        split = first_not_below(tails, first, stop, base)
        count_opposite(offsets, rows, tails, first, split, b, seen)
        if split < stop:
            count_opposite_hubs(rows, b_begin, b_end, tails, split, stop, b, base, blocks, bits, scratch, seen)
        for arc in range(b_begin, b_end):
            supports[arc] += seen[np.uint64(SPARE) + np.uint64(rows[arc])]


def prepare_triangles(graph: OrientedGraph, knobs: Knobs, threads: int) -> Work:
    """Credits of every thread, then their sum by ranges of vertices."""
    offsets, rows = kernel_view(graph.offsets), kernel_view(graph.out_neighbours)
    hubs = prepare_hubs(graph, knobs, threads)
    filled = np.empty(graph.n, np.uint64)
    ledgers: list[Ledger] = []

    def workspace() -> Ledger:
        ledger = empty_ledger(graph.n, np.uint64)
        ledgers.append(ledger)
        return ledger

    def credit(begin: int, end: int, own: Ledger) -> Counts:
        return credit_vertices(
            offsets, rows, hubs.first, hubs.bits, hubs.probe_ratio, begin, end, own.marks, own.scratch, own.credit
        )

    def add_up(begin: int, end: int, _workspace: None) -> Counts:
        total = filled[begin:end]
        total[:] = 0
        for ledger in ledgers:
            total += ledger.credit[SPARE + begin : SPARE + end]
        return 0, 0

    return Work(
        (Pass(arc_bounds(graph.offsets), credit, workspace), Pass(_even_bounds(graph.n, TASK_IDS), add_up)), filled
    )


def prepare_edge_support(graph: OrientedGraph, knobs: Knobs, threads: int) -> Work:
    """The triangles of each arc: those found from its tail or streaming past it, then the others by owner."""
    offsets, rows = kernel_view(graph.offsets), kernel_view(graph.out_neighbours)
    shared = threads > MOST_SHARES
    hubs = prepare_hubs(graph, knobs, threads, SUPPORT_COSTS)
    heads = by_head(graph, 0 if shared else hubs.first, threads)
    filled = np.zeros(graph.m, np.uint32)
    others: list[Ids] = []
    credit = credit_arcs if shared else credit_all_arcs
    turns = count()

    def workspace() -> tuple[Ledger, Ids]:
        supports = filled
        if next(turns) > 0 and not shared:
            supports = np.zeros(graph.m, np.uint32)
            others.append(supports)
        return empty_ledger(graph.n, np.uint32), supports

    def lowest(begin: int, end: int, own: tuple[Ledger, Ids]) -> Counts:
        ledger, supports = own
        hub_rows = hubs.first, hubs.bits, hubs.probe_ratio
        return credit(offsets, rows, *hub_rows, begin, end, ledger.marks, ledger.scratch, ledger.credit, supports)

    def add_up(begin: int, end: int, _workspace: None) -> Counts:
        for supports in others:
            filled[begin:end] += supports[begin:end]
        return 0, 0

    def opposite(begin: int, end: int, own: Ledger) -> Counts:
        by_heads = heads.least, heads.offsets, heads.tails
        add_opposite(offsets, rows, hubs.first, hubs.bits, *by_heads, begin, end, own.scratch, own.credit, filled)
        return 0, 0

    return Work(
        (
            Pass(arc_bounds(graph.offsets), lowest, workspace),
            Pass(_even_bounds(graph.m, TASK_SUPPORTS), add_up),
            Pass(arc_bounds(heads.offsets), opposite, lambda: empty_ledger(graph.n, np.uint32)),
        ),
        filled,
    )


def _even_bounds(items: int, task: int) -> NDArray[np.int64]:
    """Ranges of so many items whose credits or supports are added up in one task."""
    return np.append(np.arange(0, items, task), items)


def triangles_bytes(shape: Shape, threads: int, knobs: Knobs) -> int:
    hubs = most_hubs(shape, knobs)
    return row_bytes(hubs) + 8 * shape.n + threads * ledger_bytes(shape.n, 8)


def edge_support_bytes(shape: Shape, threads: int, knobs: Knobs) -> int:
    hubs = most_hubs(shape, knobs)
    shares = threads if threads <= MOST_SHARES else 1
    return row_bytes(hubs) + 4 * shape.m * shares + heads_bytes(shape) + threads * ledger_bytes(shape.n, 4)
