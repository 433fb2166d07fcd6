"""What the kernels on three blocks do with the rows of a: `keystone`'s ways to the common heads of two rows.

They differ in where triangles go that were found: nowhere, in a count; to a, to b or to the arc a → b; or to c, which
takes other ways (`_owned_credit`). What is None is compiled away.
"""

from __future__ import annotations

import numpy as np

from wedgewise.algorithms.cpu._keystone_rows import clear_row, count_marked, mark_row, prefetch_rows, probe_row
from wedgewise.algorithms.cpu._keystone_triple_hubs import first_column, prefetch_hub
from wedgewise.algorithms.cpu._owned_credit import credit_row
from wedgewise.algorithms.cpu._triples import first_of_share
from wedgewise.machine.jit import helper
from wedgewise.machine.primitives import count_common_bits


@helper
def keep_opened(found, ij_heads, arc, by_head, by_arc):  # type: ignore[no-untyped-def]
    """Add what an arc a → b opens to its head, and to itself, where those are arrays."""
    if by_head is not None:
        by_head[ij_heads[arc]] += found
    if by_arc is not None:
        by_arc[arc] += np.uint32(found)


@helper
def close_hubs(ij_heads, arc, arc_end, ik_heads, begin, end, last, blocks, places, bits, ratio, marks, by_head, by_arc):  # type: ignore[no-untyped-def]
    """Triangles of the hubs ``ij_heads[arc:arc_end]`` with ``ik_heads[begin:end]``, which is marked unless short."""
    one = np.uint64(1)
    triangles, tests = np.uint64(0), np.uint64(0)
    for hub_arc in range(arc, arc_end):
        prefetch_hub(ij_heads, hub_arc, arc_end, last, places, bits, np.uint64(0))
        place = places[last - np.uint64(ij_heads[hub_arc])]
        least = place & np.uint64(0xFFFFFFFF)
        while begin < end and np.uint64(ik_heads[begin]) < least:
            begin += one
        if begin == end:
            break
        start, first = place >> np.uint64(32), first_column(place)
        left = blocks - (first >> np.uint64(9))
        if end - begin <= left * ratio:
            found = probe_row(ik_heads, begin, end, first, bits, start)
        else:
            found = np.uint64(count_common_bits(marks, first >> np.uint64(6), bits, start, left))
        keep_opened(found, ij_heads, hub_arc, by_head, by_arc)
        triangles += found
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
def close_row(  # type: ignore[no-untyped-def]
    ij_heads,
    arc,
    arc_end,
    ik_heads,
    begin,
    end,
    offsets,
    rows,
    base,
    blocks,
    places,
    bits,
    ratio,
    marks,
    by_head,
    by_arc,
):
    """Triangles of an a with the rows ``ij_heads[arc:arc_end]`` and ``ik_heads[begin:end]``, by rows of block jk."""
    zero, last = np.uint64(0), np.uint64(len(offsets)) - np.uint64(2)
    triangles, tests = zero, zero
    marking = np.uint64(ij_heads[arc]) < base or end - begin > ratio
    if marking:
        mark_row(ik_heads, begin, end, zero, zero, marks)
    while arc < arc_end and np.uint64(ij_heads[arc]) < base:
        found, tested = count_marked(offsets, rows, np.uint64(ij_heads[arc]), zero, marks)
        keep_opened(found, ij_heads, arc, by_head, by_arc)
        triangles += found
        tests += tested
        arc += np.uint64(1)
    found, tested = close_hubs(
        ij_heads, arc, arc_end, ik_heads, begin, end, last, blocks, places, bits, ratio, marks, by_head, by_arc
    )
    if marking:
        clear_row(ik_heads, begin, end, zero, marks)
    return triangles + found, tests + tested


@helper
def close_range(  # type: ignore[no-untyped-def]
    ij_offsets,
    ij_heads,
    ik_offsets,
    ik_heads,
    jk_offsets,
    jk_heads,
    columns_k,
    hubs,
    places,
    bits,
    probe_ratio,
    idle_arcs,
    share,
    shares,
    begin,
    end,
    marks,
    active,
    by_row,
    by_head,
    by_arc,
    scratch,
    credit,
    by_far_arc,
):
    """Triangles with a in [begin, end) and in the share; the last `idle_arcs` arcs of a row of ij close none.

    Of what follows the workspace, each is an array that triangles are added to, or None: to a, to b, to a → b; or, with
    `scratch`, as credits to c, which stay, or are settled row by row as those of a → c.
    """
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
            if credit is None:
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
                    by_head,
                    by_arc,
                )
                if by_row is not None:
                    by_row[a] += found
            else:
                found, tested = credit_row(
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
                    scratch,
                    credit,
                    by_far_arc,
                )
            triangles += found
            tests += tested
    return triangles, tests
