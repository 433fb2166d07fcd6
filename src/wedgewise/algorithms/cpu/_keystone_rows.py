"""What the kernels of `keystone` do with one sorted row: mark it, search it, ask for it ahead of time.

Marks are a bitmap by id, shifted by a padding so that the first hub starts a block of 512 bits.
"""

from __future__ import annotations

import numpy as np

from wedgewise.algorithms.cpu._records import Stretch, row_at
from wedgewise.machine.jit import helper
from wedgewise.machine.primitives import prefetch

TESTS_IN_ANY_CASE = 8  # short rows then have no loop whose end would be mispredicted, at about 7 ns each


@helper
def prefetch_second_hops(rows, begin, end, base):  # type: ignore[no-untyped-def]
    """Ask for the rows of the out-neighbours below the hubs."""
    if end - begin > np.uint64(1):
        prefetch_rows(Stretch(rows.heads, begin, end), base, rows)


@helper
def prefetch_rows(row, base, rows):  # type: ignore[no-untyped-def]
    """Ask for the rows of those in a row that are below the hubs."""
    for arc in range(row.begin, row.end):
        b = np.uint64(row.heads[arc])
        if b >= base:
            break
        start = np.uint64(rows.offsets[b])
        prefetch(rows.heads, start)
        prefetch(rows.heads, start + np.uint64(16))


@helper
def mark_row(row, base, pad, marks):  # type: ignore[no-untyped-def]
    """Set the bits of a row, shifted by `pad` so that hubs start at a block; where the hubs begin."""
    split = row.begin
    for arc in range(row.begin, row.end):
        b = np.uint64(row.heads[arc])
        split += np.uint64(b < base)
        c = b + pad
        marks[c >> np.uint64(6)] |= np.uint64(1) << (c & np.uint64(63))
    return split


@helper
def marked(place, marks):  # type: ignore[no-untyped-def]
    """The bit of a padded id."""
    return (marks[place >> np.uint64(6)] >> (place & np.uint64(63))) & np.uint64(1)


@helper
def count_marked(rows, b, pad, marks):  # type: ignore[no-untyped-def]
    """How many out-neighbours of b are marked, and how many there are; the first tests are made in any case."""
    heads, begin, end = row_at(rows, b)
    final = np.uint64(len(heads)) - np.uint64(1)
    found = np.uint64(0)
    for step in range(np.uint64(TESTS_IN_ANY_CASE)):
        place = begin + step
        found += marked(np.uint64(heads[min(place, final)]) + pad, marks) & np.uint64(place < end)
    for arc in range(begin + np.uint64(TESTS_IN_ANY_CASE), end):
        found += marked(np.uint64(heads[arc]) + pad, marks)
    return found, end - begin


@helper
def probe_row(row, base, bits, origin):  # type: ignore[no-untyped-def]
    """How many ids of a row have their bit set in the hub row whose bit 0 is in word `origin`."""
    found = np.uint64(0)
    for other in range(row.begin, row.end):
        c = np.uint64(row.heads[other]) - base
        found += (bits[origin + (c >> np.uint64(6))] >> (c & np.uint64(63))) & np.uint64(1)
    return found


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
