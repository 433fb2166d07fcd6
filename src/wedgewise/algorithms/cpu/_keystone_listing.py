"""Triangles themselves, by the arc a → b that opens them: three ids each, c ascending.

Only arcs that open triangles are looked at, and only until all of theirs are found: for a hub b, the ids of N+(a)
behind b are tested in b's bit row; below the hubs, N+(b) is tested in a bitmap of N+(a). Every candidate is written and
the place moves on by what the test says, so that no branch depends on it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wedgewise.algorithms.cpu._keystone_hubs import Hubs, bit_row_at
from wedgewise.algorithms.cpu._keystone_rows import clear_row, mark_row
from wedgewise.algorithms.cpu._records import RowPart, Rows
from wedgewise.machine.jit import helper, kernel
from wedgewise.prepare.orient import first_not_below
from wedgewise.stages import Ids, Keys


class Bits(NamedTuple):
    """Within a kernel: the bit of c is c + up − down, counted from word `origin` on."""

    words: Keys
    origin: np.uint64
    up: np.uint64
    down: np.uint64


@helper
def write_found(a, b, count, heads, arc, bits, triples, position):  # type: ignore[no-untyped-def]
    """Write `count` triangles a, b, c: with those c from ``heads[arc]`` on whose bit is set."""
    one, three = np.uint64(1), np.uint64(3)
    end = position + three * count
    while position < end:
        c = np.uint64(heads[arc])
        bit = c + bits.up - bits.down
        triples[position] = a
        triples[position + one] = b
        triples[position + np.uint64(2)] = c
        position += three * ((bits.words[bits.origin + (bit >> np.uint64(6))] >> (bit & np.uint64(63))) & one)
        arc += one
    return end


@kernel
def write_triangles(rows: Rows, hubs: Hubs, opened: Ids, begin: int, end: int, marks: Keys, triples: Ids) -> None:
    """Write the triangles that arcs begin … end − 1 open, in order."""
    zero, one = np.uint64(0), np.uint64(1)
    base, stop = hubs.base, np.uint64(end)
    offsets, heads = rows
    marked = Bits(marks, zero, hubs.pad, zero)
    position = zero
    arc = np.uint64(begin)
    a = first_not_below(offsets, zero, np.uint64(len(offsets)), arc + one) - one
    while arc < stop:
        a_end = np.uint64(offsets[a + one])
        first_marked = a_end
        while arc < min(a_end, stop):
            count = np.uint64(opened[arc])
            b = np.uint64(heads[arc])
            if count == zero:
                arc += one
                continue
            if b >= base:
                start, block, _ = bit_row_at(hubs, b, hubs.layout)
                bits = Bits(hubs.bits, start - (block << np.uint64(3)), zero, base)
                position = write_found(a, b, count, heads, arc + one, bits, triples, position)
            else:
                if first_marked == a_end:
                    first_marked = arc
                    mark_row(RowPart(heads, first_marked, a_end), hubs.pad, marks)
                position = write_found(a, b, count, heads, np.uint64(offsets[b]), marked, triples, position)
            arc += one
        clear_row(RowPart(heads, first_marked, a_end), hubs.pad, marks)
        a += one
