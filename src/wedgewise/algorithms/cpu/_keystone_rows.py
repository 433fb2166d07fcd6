"""What the kernels of `keystone` do with one sorted row: mark it, search it, ask for it ahead of time.

Marks are a bitmap by id, shifted by a padding so that the first hub starts a block of 512 bits.
"""

from __future__ import annotations

import numpy as np

from wedgewise.machine.jit import helper
from wedgewise.machine.primitives import prefetch

TESTS_IN_ANY_CASE = 8  # short rows then have no loop whose end would be mispredicted, at about 7 ns each


@helper
def prefetch_second_hops(offsets, rows, begin, end, base):  # type: ignore[no-untyped-def]
    """Ask for the rows of the out-neighbours below the hubs."""
    if end - begin > np.uint64(1):
        prefetch_rows(rows, begin, end, base, offsets, rows)


@helper
def prefetch_rows(heads, begin, end, base, offsets, rows):  # type: ignore[no-untyped-def]
    """Ask for the rows of ``heads[begin:end]`` below the hubs."""
    for arc in range(begin, end):
        b = np.uint64(heads[arc])
        if b >= base:
            break
        start = np.uint64(offsets[b])
        prefetch(rows, start)
        prefetch(rows, start + np.uint64(16))


@helper
def mark_row(rows, begin, end, base, pad, marks):  # type: ignore[no-untyped-def]
    """Set the bits of ``rows[begin:end]``, shifted by `pad` so that hubs start at a block; where the hubs begin."""
    split = begin
    for arc in range(begin, end):
        b = np.uint64(rows[arc])
        split += np.uint64(b < base)
        c = b + pad
        marks[c >> np.uint64(6)] |= np.uint64(1) << (c & np.uint64(63))
    return split


@helper
def marked(place, marks):  # type: ignore[no-untyped-def]
    """The bit of a padded id."""
    return (marks[place >> np.uint64(6)] >> (place & np.uint64(63))) & np.uint64(1)


@helper
def count_marked(offsets, rows, b, pad, marks):  # type: ignore[no-untyped-def]
    """How many out-neighbours of b are marked, and how many there are; the first tests are made in any case."""
    begin, end = np.uint64(offsets[b]), np.uint64(offsets[b + np.uint64(1)])
    final = np.uint64(len(rows)) - np.uint64(1)
    found = np.uint64(0)
    for step in range(np.uint64(TESTS_IN_ANY_CASE)):
        place = begin + step
        found += marked(np.uint64(rows[min(place, final)]) + pad, marks) & np.uint64(place < end)
    for arc in range(begin + np.uint64(TESTS_IN_ANY_CASE), end):
        found += marked(np.uint64(rows[arc]) + pad, marks)
    return found, end - begin


@helper
def probe_row(rows, arc, end, base, bits, origin):  # type: ignore[no-untyped-def]
    """How many ids of ``rows[arc:end]`` have their bit set in the hub row whose bit 0 is in word `origin`."""
    found = np.uint64(0)
    for other in range(arc, end):
        c = np.uint64(rows[other]) - base
        found += (bits[origin + (c >> np.uint64(6))] >> (c & np.uint64(63))) & np.uint64(1)
    return found


@helper
def clear_row(rows, begin, end, pad, marks):  # type: ignore[no-untyped-def]
    """Clear every word that `mark_row` set a bit in."""
    for arc in range(begin, end):
        marks[(np.uint64(rows[arc]) + pad) >> np.uint64(6)] = np.uint64(0)


@helper
def padding(base):  # type: ignore[no-untyped-def]
    """What brings the first hub to a multiple of 512."""
    return (np.uint64(512) - (base & np.uint64(511))) & np.uint64(511)


@helper
def find_in_row(offsets, rows, b, c):  # type: ignore[no-untyped-def]
    """Whether c is an out-neighbour of b, and how many ids were looked at: for rows too short to be worth marking."""
    begin, end = np.uint64(offsets[b]), np.uint64(offsets[b + np.uint64(1)])
    arc = begin
    while arc < end and rows[arc] < c:
        arc += np.uint64(1)
    return np.uint64(arc < end and rows[arc] == c), arc - begin + np.uint64(1)
