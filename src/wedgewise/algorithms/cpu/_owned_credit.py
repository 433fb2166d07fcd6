"""Credit the triangles of three blocks to their highest vertices c: rows are compared as in a count of three blocks.

For a row a, marked in a bitmap, each arc a → b takes the cheapest way to the common heads c of a in ik and of b in jk:

    b below the hubs               stream b's row, test each head in a's bitmap, credit c or a spare place
    b a hub, a has few heads       test those few in b's bit row, credit c by the bit
    b a hub, a has many            the bit rows of all such b are added column by column, 512 columns and eight rows at
                                   a time, and c gets the sum of its column

Credits are by number within part k and belong to one thread. They stay where those of all rows are wanted; where those
of each arc a → c are, they are settled after each row: added to the arcs of a, and cleared.
"""

from __future__ import annotations

import numpy as np

from wedgewise.algorithms.cpu._keystone_credit import SPARE, credit_columns, credit_marked, credit_probed
from wedgewise.algorithms.cpu._keystone_rows import clear_row, mark_row
from wedgewise.algorithms.cpu._keystone_triple_hubs import first_column, prefetch_hub
from wedgewise.machine.jit import helper
from wedgewise.machine.primitives import MOST_ROWS


@helper
def credit_hubs(  # type: ignore[no-untyped-def]
    ij_heads, arc, arc_end, ik_heads, begin, end, last, blocks, places, bits, ratio, marks, scratch, credit
):
    """Credit ``ik_heads[begin:end]``, marked unless short, with the hubs ``ij_heads[arc:arc_end]``; tests made.

    Bit rows lie behind as many words as a row of all columns has, so that bit 0 of each has a place.
    """
    zero, one, front = np.uint64(0), np.uint64(1), blocks << np.uint64(3)
    tests = zero
    while arc < arc_end:
        taken, first = zero, begin
        while arc < arc_end and taken < np.uint64(MOST_ROWS):
            prefetch_hub(ij_heads, arc, arc_end, last, places, bits, front)
            place = places[last - np.uint64(ij_heads[arc])]
            least = place & np.uint64(0xFFFFFFFF)
            while begin < end and np.uint64(ik_heads[begin]) < least:
                begin += one
            start, column = front + (place >> np.uint64(32)), first_column(place)
            block = column >> np.uint64(9)
            if begin == end:
                arc = arc_end
            elif end - begin <= (blocks - block) * ratio:
                credit_probed(ik_heads, begin, end, column, bits, start, credit)
            else:
                first = begin if taken == zero else first
                scratch[taken] = start - (block << np.uint64(3))
                scratch[np.uint64(MOST_ROWS) + taken] = block
                taken += one
            tests += end - begin
            arc += one
        if taken > zero:
            credit_columns(ik_heads, first, end, zero, marks, zero, bits, scratch, taken, credit)
    return tests


@helper
def settle_row(ik_heads, begin, end, credit, by_far_arc):  # type: ignore[no-untyped-def]
    """Move the credits of ``ik_heads[begin:end]`` to their arcs; how many there were."""
    settled = np.uint64(0)
    for arc in range(begin, end):
        place = np.uint64(SPARE) + np.uint64(ik_heads[arc])
        settled += np.uint64(credit[place])
        by_far_arc[arc] += credit[place]
        credit[place] = np.uint32(0)
    return settled


@helper
def credit_row(  # type: ignore[no-untyped-def]
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
    scratch,
    credit,
    by_far_arc,
):
    """Credit the triangles of an a to c, with the rows ``ij_heads[arc:arc_end]`` and ``ik_heads[begin:end]`` of a.

    Returns how many were settled, and the tests made.
    """
    zero, last = np.uint64(0), np.uint64(len(offsets)) - np.uint64(2)
    settled, tests = zero, zero
    marking = np.uint64(ij_heads[arc]) < base or end - begin > ratio
    if marking:
        mark_row(ik_heads, begin, end, zero, zero, marks)
    while arc < arc_end and np.uint64(ij_heads[arc]) < base:
        _, tested = credit_marked(offsets, rows, np.uint64(ij_heads[arc]), zero, marks, credit, None)
        tests += tested
        arc += np.uint64(1)
    tests += credit_hubs(
        ij_heads, arc, arc_end, ik_heads, begin, end, last, blocks, places, bits, ratio, marks, scratch, credit
    )
    if marking:
        clear_row(ik_heads, begin, end, zero, marks)
    if by_far_arc is not None:
        settled = settle_row(ik_heads, begin, end, credit, by_far_arc)
    return settled, tests
