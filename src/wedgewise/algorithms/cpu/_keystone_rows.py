"""What the kernels of `keystone` do with one sorted row: mark it, search it, ask for it ahead of time.

Marks are a bitmap by id, shifted by a padding so that the first hub starts a block of 512 bits.
"""

from __future__ import annotations

import numpy as np

from wedgewise.algorithms.cpu._records import row_at
from wedgewise.machine.jit import helper
from wedgewise.machine.primitives import prefetch


@helper
def prefetch_rows(row, base, rows, by_last_arc):  # type: ignore[no-untyped-def]
    """Ask for the rows of those in a row that are below the hubs, and for what their arcs have, where they have any."""
    for arc in range(row.begin, row.end):
        b = np.uint64(row.heads[arc])
        if b >= base:
            break
        start = np.uint64(rows.offsets[b])
        prefetch(rows.heads, start)
        prefetch(rows.heads, start + np.uint64(16))
        if by_last_arc is not None:
            prefetch(by_last_arc, start)


@helper
def mark_row(row, pad, marks):  # type: ignore[no-untyped-def]
    """Set the bits of a row, shifted by `pad` so that hubs start at a block."""
    for arc in range(row.begin, row.end):
        c = np.uint64(row.heads[arc]) + pad
        marks[c >> np.uint64(6)] |= np.uint64(1) << (c & np.uint64(63))


@helper
def marked(bit, marks):  # type: ignore[no-untyped-def]
    """The bit of a padded id."""
    return (marks[bit >> np.uint64(6)] >> (bit & np.uint64(63))) & np.uint64(1)


@helper
def clear_row(row, pad, marks):  # type: ignore[no-untyped-def]
    """Clear every word that `mark_row` set a bit in."""
    for arc in range(row.begin, row.end):
        marks[(np.uint64(row.heads[arc]) + pad) >> np.uint64(6)] = np.uint64(0)


@helper
def find_in_row(rows, b, c):  # type: ignore[no-untyped-def]
    """Whether c is an out-neighbour of b, and how many ids were looked at: for rows too short to be worth marking."""
    heads, begin, end = row_at(rows, b)
    arc = begin
    while arc < end and heads[arc] < c:
        arc += np.uint64(1)
    return np.uint64(arc < end and heads[arc] == c), arc - begin + np.uint64(1)
