"""Keystone on three blocks: mark a's row of block ik, compare it with the rows of block jk at a's heads in block ij.

For each arc a → b of block ij, the cheapest way to the common heads of a in ik and of b in jk:

    b below the hubs               stream b's row, test each head in a's bitmap
    b a hub, a has many heads      AND + POPCNT of a's bitmap with b's bit row, 512 bits at a time
    b a hub, a has few             test those few in b's bit row; a row of few heads is then never marked

Only rows a with arcs in both ij and ik are visited, found a stretch of rows at a time, so that no branch depends on
which they are. Since the least columns of hubs ascend with b, the heads of a that matter are found by one walk along
its row. Any numbering within the parts gives the right count; ids by rank are fast.
Memory of a worker: bit rows, at most 4 bytes per arc of jk and 1 MB; 8 bytes per hub; a bit per column; 4 KB.
"""

from __future__ import annotations

from typing import Any, SupportsInt

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._contract import Counts, Knobs, Pass, Work
from wedgewise.algorithms.cpu._keystone_hubs import HUBS_AHEAD, empty_marks, marks_bytes
from wedgewise.algorithms.cpu._keystone_rows import clear_row, count_marked, mark_row, prefetch_rows, probe_row
from wedgewise.algorithms.cpu._keystone_triple_hubs import first_column, hubs_bytes, prepare_hubs
from wedgewise.algorithms.cpu._triples import (
    NOTHING,
    TripleArrays,
    arrays_of,
    first_of_share,
    has_none,
    row_bounds,
    widening_bytes,
)
from wedgewise.blocks import Triple
from wedgewise.graph import Ids, Keys
from wedgewise.machine.jit import helper, kernel
from wedgewise.machine.primitives import count_common_bits, prefetch

ROWS_AT_ONCE = 1 << 10


@helper
def close_hubs(ij_heads, arc, arc_end, ik_heads, begin, end, last, blocks, places, bits, ratio, marks):  # type: ignore[no-untyped-def]
    """Triangles of the hubs ``ij_heads[arc:arc_end]`` with ``ik_heads[begin:end]``, which is marked unless short."""
    one, ahead = np.uint64(1), np.uint64(HUBS_AHEAD)
    triangles, tests = np.uint64(0), np.uint64(0)
    for hub_arc in range(arc, arc_end):
        if hub_arc + ahead < arc_end:
            soon = places[last - np.uint64(ij_heads[hub_arc + ahead])] >> np.uint64(32)
            prefetch(bits, soon)
            prefetch(bits, soon + np.uint64(8))
        place = places[last - np.uint64(ij_heads[hub_arc])]
        least = place & np.uint64(0xFFFFFFFF)
        while begin < end and np.uint64(ik_heads[begin]) < least:
            begin += one
        if begin == end:
            break
        start, first = place >> np.uint64(32), first_column(place)
        left = blocks - (first >> np.uint64(9))
        if end - begin <= left * ratio:
            triangles += probe_row(ik_heads, begin, end, first, bits, start)
        else:
            triangles += np.uint64(count_common_bits(marks, first >> np.uint64(6), bits, start, left))
        tests += end - begin
    return triangles, tests


@helper
def find_active(ij_offsets, ik_offsets, begin, end, step, idle, active):  # type: ignore[no-untyped-def]
    """Write the rows from `begin` on that have arcs to close and heads to close them with; how many there are."""
    one, count = np.uint64(1), np.uint64(0)
    for a in range(begin, end, step):
        arcs = np.uint64(ij_offsets[a + one]) - np.uint64(ij_offsets[a])
        active[count] = a
        count += np.uint64(arcs > idle) & np.uint64(ik_offsets[a + one] > ik_offsets[a])
    return count


@helper
def close_row(ij_heads, arc, arc_end, ik_heads, begin, end, offsets, rows, base, blocks, places, bits, ratio, marks):  # type: ignore[no-untyped-def]
    """Triangles of an a with the rows ``ij_heads[arc:arc_end]`` and ``ik_heads[begin:end]``, by rows of block jk."""
    zero, last = np.uint64(0), np.uint64(len(offsets)) - np.uint64(2)
    triangles, tests = zero, zero
    marking = np.uint64(ij_heads[arc]) < base or end - begin > ratio
    if marking:
        mark_row(ik_heads, begin, end, zero, zero, marks)
    while arc < arc_end and np.uint64(ij_heads[arc]) < base:
        found, tested = count_marked(offsets, rows, np.uint64(ij_heads[arc]), zero, marks)
        triangles += found
        tests += tested
        arc += np.uint64(1)
    found, tested = close_hubs(ij_heads, arc, arc_end, ik_heads, begin, end, last, blocks, places, bits, ratio, marks)
    if marking:
        clear_row(ik_heads, begin, end, zero, marks)
    return triangles + found, tests + tested


@kernel
def count_triple(
    ij_offsets: NDArray[Any],
    ij_heads: Ids,
    ik_offsets: NDArray[Any],
    ik_heads: Ids,
    jk_offsets: NDArray[Any],
    jk_heads: Ids,
    columns_k: int,
    hubs: int,
    places: Keys,
    bits: Keys,
    probe_ratio: int,
    idle_arcs: int,
    share: int,
    shares: int,
    begin: int,
    end: int,
    marks: Keys,
    active: Ids,
) -> Counts:
    """Triangles with a in [begin, end) and in the share; the last `idle_arcs` arcs of a row of ij close none."""
    one, ratio, blocks = np.uint64(1), np.uint64(probe_ratio), np.uint64(columns_k + 511) >> np.uint64(9)
    step, idle, stretch = np.uint64(shares), np.uint64(idle_arcs), np.uint64(len(active)) * np.uint64(shares)
    base = np.uint64(len(jk_offsets)) - one - np.uint64(hubs)
    triangles, tests = np.uint64(0), np.uint64(0)
    for first in range(first_of_share(begin, share, shares), np.uint64(end), stretch):
        last = min(np.uint64(first) + stretch, np.uint64(end))
        count = find_active(ij_offsets, ik_offsets, np.uint64(first), last, step, idle, active)
        for number in range(count):
            soon = np.uint64(active[min(np.uint64(number) + one, count - one)])
            soon_begin, soon_end = np.uint64(ij_offsets[soon]), np.uint64(ij_offsets[soon + one])
            prefetch_rows(ij_heads, soon_begin, soon_end, base, jk_offsets, jk_heads)
            a = np.uint64(active[number])
            arc, arc_end = np.uint64(ij_offsets[a]), np.uint64(ij_offsets[a + one]) - idle
            c, c_end = np.uint64(ik_offsets[a]), np.uint64(ik_offsets[a + one])
            found, tested = close_row(
                ij_heads,
                arc,
                arc_end,
                ik_heads,
                c,
                c_end,
                jk_offsets,
                jk_heads,
                base,
                blocks,
                places,
                bits,
                ratio,
                marks,
            )
            triangles += found
            tests += tested
    return triangles, tests


@kernel
def heads_follow(offsets: NDArray[Any], heads: Ids) -> SupportsInt:
    """Whether every head has a higher number than its row."""
    for row in range(np.uint64(len(offsets)) - np.uint64(1)):
        begin = np.uint64(offsets[row])
        if begin < np.uint64(offsets[row + np.uint64(1)]) and np.uint64(heads[begin]) <= row:
            return np.uint64(0)
    return np.uint64(1)


def idle_arcs(triple: Triple, arrays: TripleArrays) -> int:
    """How many arcs at the end of a row of ij close no triangle: one, where b and c share a part in ascending order."""
    return int(heads_follow(arrays.jk_offsets, arrays.jk_heads)) if triple.ij is triple.ik else 0


def prepare(triple: Triple, knobs: Knobs, share: int, shares: int) -> Work:
    """Choose the hubs of block jk and fill their rows."""
    if has_none(triple):
        return NOTHING
    arrays, columns, ratio = arrays_of(triple), triple.jk.columns, int(knobs["probe_ratio"])
    hubs = prepare_hubs(triple, arrays, knobs, shares)
    idle = idle_arcs(triple, arrays)

    def count(begin: int, end: int, workspace: tuple[Keys, Ids]) -> Counts:
        return count_triple(
            *arrays, columns, hubs.count, hubs.places, hubs.bits, ratio, idle, share, shares, begin, end, *workspace
        )

    def workspace() -> tuple[Keys, Ids]:
        return empty_marks(columns), np.empty(ROWS_AT_ONCE, np.uint32)

    return Work((Pass(row_bounds(triple.ij), count, workspace),))


def bytes_needed(
    rows_i: int, rows_j: int, columns_k: int, arcs_ij: int, arcs_ik: int, arcs_jk: int, knobs: Knobs
) -> int:
    workspace = marks_bytes(columns_k) + 4 * ROWS_AT_ONCE
    widening = widening_bytes(rows_i, rows_j, arcs_ij, arcs_ik, arcs_jk)
    return hubs_bytes(rows_j, columns_k, arcs_ij, arcs_jk, knobs) + workspace + widening
