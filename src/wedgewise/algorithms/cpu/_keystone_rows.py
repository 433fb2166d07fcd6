"""What the kernels of `keystone` do with one sorted row: mark it, search it, test others in it, credit what they find.

Marks are a bitmap by id, shifted by a padding so that the first hub starts a block of 512 bits. Credits are by id and
belong to one thread. Memory: 8 or 4 bytes per vertex for credits, n / 8 for marks, 64 KB.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms.cpu._keystone_hubs import aligned_zeros, empty_marks, marks_bytes
from wedgewise.algorithms.cpu._records import row_at
from wedgewise.machine.jit import helper
from wedgewise.machine.primitives import (
    BLOCK_WORDS,
    IDS_AT_ONCE,
    MAX_ROWS,
    PLANES,
    match_ids,
    popcount,
    prefetch,
    sum_columns,
)
from wedgewise.stages import Keys

SPARE = 16  # the credit of id x is at SPARE + x; failed tests are credited below it, in turn, so that none has to wait
PLANES_AT = 2 * MAX_ROWS
SCRATCH_WORDS = PLANES_AT + PLANES * BLOCK_WORDS
TESTS_IN_ANY_CASE = 8  # short rows then have no loop whose end would be mispredicted, at about 7 ns each


class Marks(NamedTuple):
    """What one thread needs where c is not credited; otherwise it needs a `Ledger`."""

    marks: Keys
    credit: None = None


class Ledger(NamedTuple):
    """What one thread needs: marks, positions and sums of bit rows, credits by id."""

    marks: Keys
    scratch: Keys
    credit: NDArray[Any]


def empty_ledger(n: int, credit_type: type[np.unsignedinteger[Any]]) -> Ledger:
    """A ledger without credits."""
    return Ledger(empty_marks(n), aligned_zeros(SCRATCH_WORDS), np.zeros(SPARE + n, credit_type))


def ledger_bytes(n: int, credit_bytes: int) -> int:
    """Bytes of a ledger with so many for each credit."""
    return marks_bytes(n) + 8 * (SCRATCH_WORDS + SPARE) + credit_bytes * n


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
    """Set the bits of a row, shifted by `pad` so that hubs start at a block; no others are set.

    Words are written and not read, which would have to wait for what was written last.
    """
    word, bits = np.uint64(0), np.uint64(0)
    for arc in range(row.begin, row.end):
        c = np.uint64(row.heads[arc]) + pad
        kept = bits if c >> np.uint64(6) == word else np.uint64(0)
        word = c >> np.uint64(6)
        bits = kept | np.uint64(1) << (c & np.uint64(63))
        marks[word] = bits


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


@helper
def close_compared(rows, b, begin, count):  # type: ignore[no-untyped-def]
    """How many heads of b are among the `count` heads from `begin` on.

    All are compared with all, 16 heads of b at a time, read from within the array; no branch depends on what is found.
    """
    heads, block, stop = row_at(rows, b)
    found, one, many = np.uint64(0), np.uint64(1), np.uint64(IDS_AT_ONCE)
    final = np.uint64(len(heads)) - many
    while True:
        at = min(block, final)
        equal = np.uint64(match_ids(heads, begin, count, at)) >> (block - at)
        found += np.uint64(popcount(equal & ((one << min(stop - block, many)) - one)))
        block += many
        if block >= stop:
            return found


@helper
def add_to(sink, position, found):  # type: ignore[no-untyped-def]
    """Add what was found, where there is an array for it."""
    if sink is not None:
        sink[position] += found


@helper
def close_marked(rows, b, pad, own, by_last_arc):  # type: ignore[no-untyped-def]
    """How many heads c of b are marked, and how many there are; the first tests are made in any case.

    Each is credited, and its arc b → c too, where there are arrays for them.
    """
    heads, begin, end = row_at(rows, b)
    final = np.uint64(len(heads)) - np.uint64(1)
    found = np.uint64(0)
    for step in range(np.uint64(TESTS_IN_ANY_CASE)):
        arc = begin + step
        found += close_arc(heads, min(arc, final), np.uint64(arc < end), pad, own, own.credit, by_last_arc)
    for arc in range(begin + np.uint64(TESTS_IN_ANY_CASE), end):
        found += close_arc(heads, arc, np.uint64(1), pad, own, own.credit, by_last_arc)
    return found, end - begin


@helper
def close_arc(heads, arc, counts, pad, own, credit, by_last_arc):  # type: ignore[no-untyped-def]
    """One where the head of an arc that counts is marked, else zero; no branch depends on it.

    It is added to the credit of the head; where it is zero, a spare entry gets one instead.
    """
    c = np.uint64(heads[arc])
    hit = marked(c + pad, own.marks) & counts
    if credit is not None:
        spare = arc & np.uint64(SPARE - 1)
        credit[spare + hit * (c + np.uint64(SPARE) - spare)] += np.uint64(1)
    add_to(by_last_arc, arc, hit)
    return hit


@helper
def close_probed(row, first_column, bits, start, credit):  # type: ignore[no-untyped-def]
    """How many heads have their bit set in the bit row of so many columns from word `start` on; they are credited."""
    found = np.uint64(0)
    for arc in range(row.begin, row.end):
        c = np.uint64(row.heads[arc])
        column = c - first_column
        hit = (bits[start + (column >> np.uint64(6))] >> (column & np.uint64(63))) & np.uint64(1)
        add_to(credit, np.uint64(SPARE) + c, hit)
        found += hit
    return found


@helper
def credit_columns(row, base, mask, mask_origin, bits, taken, own):  # type: ignore[no-untyped-def]
    """Credit a row of hubs, block by block, with how many of the bit rows taken have them in the mask.

    Bit row i has its bit 0 in word ``scratch[i]`` and starts at block ``scratch[MAX_ROWS + i]``, which ascend.
    """
    one, scratch = np.uint64(1), own.scratch
    covering, used = np.uint64(0), np.uint64(0)
    arc = row.begin
    while arc < row.end:
        block = (np.uint64(row.heads[arc]) - base) >> np.uint64(9)
        while covering < taken and scratch[np.uint64(MAX_ROWS) + covering] <= block:
            covering += one
        while covering >> used > np.uint64(0):
            used += one
        word = block << np.uint64(3)
        sum_columns(mask, mask_origin + word, bits, scratch, covering, word, np.uint64(PLANES_AT))
        while arc < row.end and (np.uint64(row.heads[arc]) - base) >> np.uint64(9) == block:
            c = np.uint64(row.heads[arc])
            column = (c - base) & np.uint64(511)
            at, bit = np.uint64(PLANES_AT) + (column >> np.uint64(6)), column & np.uint64(63)
            total = np.uint64(0)
            for plane in range(used):
                total += ((scratch[at + (plane << np.uint64(3))] >> bit) & one) << plane
            own.credit[np.uint64(SPARE) + c] += total
            arc += one


@helper
def take_bit_row(own, taken, origin, block):  # type: ignore[no-untyped-def]
    """Note a bit row for `credit_columns`; how many are noted."""
    own.scratch[taken] = origin
    own.scratch[np.uint64(MAX_ROWS) + taken] = block
    return taken + np.uint64(1)
