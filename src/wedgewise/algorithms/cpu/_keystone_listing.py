"""Triangles themselves, by the arc a → b that opens them: three ids each, c ascending.

Only arcs that open triangles are looked at, and only until all of theirs are found: for a hub b, the ids of N+(a)
behind b are tested in b's bit row; below the hubs, N+(b) is tested in a bitmap of N+(a). Every candidate is written and
the place moves on by what the test says, so that no branch depends on it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms.cpu._keystone_hubs import row_word
from wedgewise.algorithms.cpu._keystone_rows import clear_row, mark_row, padding
from wedgewise.machine.jit import helper, kernel
from wedgewise.prepare.orient import first_not_below
from wedgewise.stages import Ids, Keys


@helper
def write_found(a, b, count, rows, arc, up, down, bits, origin, triples, place):  # type: ignore[no-untyped-def]
    """Write `count` triangles a, b, c: with those c from ``rows[arc]`` on whose bit c + up − down is set."""
    one, three = np.uint64(1), np.uint64(3)
    end = place + three * count
    while place < end:
        c = np.uint64(rows[arc])
        bit = c + up - down
        triples[place] = a
        triples[place + one] = b
        triples[place + np.uint64(2)] = c
        place += three * ((bits[origin + (bit >> np.uint64(6))] >> (bit & np.uint64(63))) & one)
        arc += one
    return end


@kernel
def write_triangles(
    offsets: NDArray[Any],
    rows: Ids,
    first_hub: int,
    bits: Keys,
    opened: Ids,
    begin: int,
    end: int,
    marks: Keys,
    triples: Ids,
) -> None:
    """Write the triangles that arcs begin … end − 1 open, in order."""
    zero, one = np.uint64(0), np.uint64(1)
    base, stop = np.uint64(first_hub), np.uint64(end)
    n = np.uint64(len(offsets)) - one
    blocks = (n - base) >> np.uint64(9)
    pad = padding(base)
    place = zero
    arc = np.uint64(begin)
    a = first_not_below(offsets, zero, n + one, arc + one) - one
    while arc < stop:
        a_end = np.uint64(offsets[a + one])
        first_marked = a_end
        while arc < min(a_end, stop):
            count = np.uint64(opened[arc])
            b = np.uint64(rows[arc])
            if count == zero:
                arc += one
                continue
            if b >= base:
                hub = b - base
                origin = row_word(hub, blocks) - ((hub >> np.uint64(9)) << np.uint64(3))
                place = write_found(a, b, count, rows, arc + one, zero, base, bits, origin, triples, place)
            else:
                if first_marked == a_end:
                    first_marked = arc
                    mark_row(rows, first_marked, a_end, base, pad, marks)
                first = np.uint64(offsets[b])
                place = write_found(a, b, count, rows, first, pad, zero, marks, zero, triples, place)
            arc += one
        clear_row(rows, first_marked, a_end, pad, marks)
        a += one
