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

from wedgewise.algorithms.cpu._keystone_credit import SPARE, close_marked, close_probed, credit_columns, take_bit_row
from wedgewise.algorithms.cpu._keystone_hubs import bit_row_at, prefetch_hub
from wedgewise.algorithms.cpu._keystone_rows import clear_row, mark_row
from wedgewise.algorithms.cpu._records import Stretch
from wedgewise.machine.jit import helper
from wedgewise.machine.primitives import MOST_ROWS


@helper
def credit_hubs(arcs, row, hubs, own):  # type: ignore[no-untyped-def]
    """Credit the row of an a in ik, marked unless short, with its arcs to hubs; tests made.

    Bit rows lie behind as many words as a row of all columns has, so that bit 0 of each has a place.
    """
    zero, one, front = np.uint64(0), np.uint64(1), hubs.blocks << np.uint64(3)
    arc, begin, end = arcs.begin, row.begin, row.end
    tests = zero
    while arc < arcs.end:
        taken, first = zero, begin
        while arc < arcs.end and taken < np.uint64(MOST_ROWS):
            prefetch_hub(arcs, arc, hubs, front)
            start, block, least = bit_row_at(hubs, np.uint64(arcs.heads[arc]), hubs.layout)
            while begin < end and np.uint64(row.heads[begin]) < least:
                begin += one
            start += front
            if begin == end:
                arc = arcs.end
            elif end - begin <= (hubs.blocks - block) * hubs.ratio:
                close_probed(Stretch(row.heads, begin, end), block << np.uint64(9), hubs.bits, start, own.credit)
            else:
                first = begin if taken == zero else first
                taken = take_bit_row(own, taken, start - (block << np.uint64(3)), block)
            tests += end - begin
            arc += one
        if taken > zero:
            credit_columns(Stretch(row.heads, first, end), zero, own.marks, zero, hubs.bits, taken, own)
    return tests


@helper
def settle_row(row, credit, by_far_arc):  # type: ignore[no-untyped-def]
    """Move the credits of a row to its arcs, where there is an array for them; how many there were."""
    settled = np.uint64(0)
    if by_far_arc is not None:
        for arc in range(row.begin, row.end):
            place = np.uint64(SPARE) + np.uint64(row.heads[arc])
            settled += np.uint64(credit[place])
            by_far_arc[arc] += credit[place]
            credit[place] = np.uint32(0)
    return settled


@helper
def credit_row(arcs, row, jk, hubs, own, by_far_arc):  # type: ignore[no-untyped-def]
    """Credit the triangles of an a to c, with these arcs in ij and this row in ik; how many were settled, and tests."""
    zero, arc = np.uint64(0), arcs.begin
    tests = zero
    marking = np.uint64(arcs.heads[arc]) < hubs.base or row.end - row.begin > hubs.ratio
    if marking:
        mark_row(row, zero, own.marks)
    while arc < arcs.end and np.uint64(arcs.heads[arc]) < hubs.base:
        _, tested = close_marked(jk, np.uint64(arcs.heads[arc]), zero, own, None)
        tests += tested
        arc += np.uint64(1)
    tests += credit_hubs(Stretch(arcs.heads, arc, arcs.end), row, hubs, own)
    if marking:
        clear_row(row, zero, own.marks)
    return settle_row(row, own.credit, by_far_arc), tests
