"""Credit each triangle, found from its lowest vertex, to its vertices: rows are compared as in `keystone`.

For a row of vertex a, marked in a bitmap, each arc a → b takes the cheapest way to the common ids c of N+(a) and N+(b):

    b below the hubs                     stream N+(b), test each id in a's bitmap, credit c or a spare place
    b a hub, few ids of N+(a) behind b   test those few in b's bit row, credit c by the bit
    b a hub, many of them                AND + POPCNT for b; the bit rows of all such b are added column by column,
                                         512 columns and eight rows at a time, and c gets the sum of its column

Credits are by id and belong to one thread. Memory: 8 or 4 bytes per vertex for credits, n / 8 for marks, 64 KB.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._contract import Counts
from wedgewise.algorithms.cpu._keystone_hubs import (
    HUBS_AHEAD,
    Hubs,
    aligned_zeros,
    empty_marks,
    marks_bytes,
    prefetch_hub_row,
    row_word,
)
from wedgewise.algorithms.cpu._keystone_rows import (
    TESTS_IN_ANY_CASE,
    clear_row,
    find_in_row,
    mark_row,
    marked,
    prefetch_second_hops,
)
from wedgewise.algorithms.cpu._records import Rows, Stretch, row_at
from wedgewise.machine.jit import helper, kernel
from wedgewise.machine.primitives import BLOCK_WORDS, MOST_ROWS, PLANES, count_common_bits, prefetch, sum_columns
from wedgewise.stages import Ids, Keys

SPARE = 16  # the credit of id x is at SPARE + x; failed tests are credited below it, in turn, so that none has to wait
PLANES_AT = 2 * MOST_ROWS
SCRATCH_WORDS = PLANES_AT + PLANES * BLOCK_WORDS


class Ledger(NamedTuple):
    """What one thread needs: marks, places and sums of bit rows, credits by id."""

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
def credit_marked(rows, b, pad, own, opposite):  # type: ignore[no-untyped-def]
    """Credit every out-neighbour c of b that is marked, and b → c where asked; how many were, and how many are."""
    heads, begin, end = row_at(rows, b)
    final = np.uint64(len(heads)) - np.uint64(1)
    found = np.uint64(0)
    for step in range(np.uint64(TESTS_IN_ANY_CASE)):
        place = begin + step
        c = np.uint64(heads[min(place, final)])
        hit = marked(c + pad, own.marks) & np.uint64(place < end)
        credit_hit(c, hit, place, own.credit)
        if opposite is not None:
            opposite[min(place, final)] += np.uint32(hit)
        found += hit
    for arc in range(begin + np.uint64(TESTS_IN_ANY_CASE), end):
        c = np.uint64(heads[arc])
        hit = marked(c + pad, own.marks)
        credit_hit(c, hit, arc, own.credit)
        if opposite is not None:
            opposite[arc] += np.uint32(hit)
        found += hit
    return found, end - begin


@helper
def prefetch_opposite(rows, begin, end, base, opposite):  # type: ignore[no-untyped-def]
    """Ask for the shares of the arcs of the out-neighbours below the hubs."""
    if end - begin > np.uint64(1):
        for arc in range(begin, end):
            b = np.uint64(rows.heads[arc])
            if b >= base:
                break
            prefetch(opposite, np.uint64(rows.offsets[b]))


@helper
def credit_hit(c, hit, arc, credit):  # type: ignore[no-untyped-def]
    """Add one to c where `hit` is one, else to a spare place; no branch depends on it."""
    spare = arc & np.uint64(SPARE - 1)
    credit[spare + hit * (c + np.uint64(SPARE) - spare)] += np.uint64(1)


@helper
def credit_probed(row, base, bits, origin, credit):  # type: ignore[no-untyped-def]
    """Credit the ids of a row that have their bit set in the hub row whose bit 0 is in word `origin`."""
    found = np.uint64(0)
    for other in range(row.begin, row.end):
        c = np.uint64(row.heads[other])
        hub = c - base
        hit = (bits[origin + (hub >> np.uint64(6))] >> (hub & np.uint64(63))) & np.uint64(1)
        credit[np.uint64(SPARE) + c] += hit
        found += hit
    return found


@helper
def credit_columns(row, base, mask, mask_origin, bits, taken, own):  # type: ignore[no-untyped-def]
    """Credit a row of hubs, block by block, with how many of the bit rows taken have them in the mask.

    Bit row i has its bit 0 in word ``scratch[i]`` and starts at block ``scratch[MOST_ROWS + i]``, which ascend.
    """
    one, scratch = np.uint64(1), own.scratch
    covering, used = np.uint64(0), np.uint64(0)
    arc = row.begin
    while arc < row.end:
        block = (np.uint64(row.heads[arc]) - base) >> np.uint64(9)
        while covering < taken and scratch[np.uint64(MOST_ROWS) + covering] <= block:
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
    own.scratch[np.uint64(MOST_ROWS) + taken] = block
    return taken + np.uint64(1)


@helper
def credit_hubs(row, hubs, own):  # type: ignore[no-untyped-def]
    """Credit the triangles of a marked row whose two higher vertices are both in the part of it that has its hubs."""
    base, heads, bits = hubs.base, row.heads, hubs.bits
    hub_origin = (base + hubs.pad) >> np.uint64(6)
    ahead = np.uint64(HUBS_AHEAD)
    triangles, tests, taken = np.uint64(0), np.uint64(0), np.uint64(0)
    last = row.end - np.uint64(1)
    for arc in range(row.begin, last):
        b = np.uint64(heads[arc])
        hub = b - base
        block = hub >> np.uint64(9)
        left = hubs.blocks - block
        start = row_word(hub, hubs.blocks)
        origin = start - (block << np.uint64(3))
        if arc + ahead < last:
            prefetch_hub_row(hubs, heads[arc + ahead])
        if last - arc <= left * hubs.ratio:
            found = credit_probed(Stretch(heads, arc + np.uint64(1), row.end), base, bits, origin, own.credit)
        else:
            found = np.uint64(count_common_bits(own.marks, hub_origin + (block << np.uint64(3)), bits, start, left))
            taken = take_bit_row(own, taken, origin, block)
        if taken == np.uint64(MOST_ROWS) or (arc + np.uint64(1) == last and taken > np.uint64(0)):
            credit_columns(row, base, own.marks, hub_origin, bits, taken, own)
            taken = np.uint64(0)
        own.credit[np.uint64(SPARE) + b] += found
        triangles += found
        tests += last - arc
    return triangles, tests


@helper
def credit_pair(rows, begin, base, credit, opposite):  # type: ignore[no-untyped-def]
    """The same as `credit_row` for a row of two arcs, which is not worth marking."""
    b, c = np.uint64(rows.heads[begin]), rows.heads[begin + np.uint64(1)]
    triangles, tests = find_in_row(rows, b, c)
    credit[np.uint64(SPARE) + b] += triangles
    credit[np.uint64(SPARE) + np.uint64(c)] += triangles
    if opposite is not None:
        place = min(np.uint64(rows.offsets[b]) + tests, np.uint64(len(rows.heads))) - np.uint64(1)
        opposite[place] += np.uint32(triangles & np.uint64(b < base))
    return triangles, tests


@helper
def credit_row(rows, row, hubs, own, opposite):  # type: ignore[no-untyped-def]
    """Credit the triangles whose lowest vertex has this row to their two other vertices.

    Where `opposite` is an array, their highest arc b → c gets its share there, unless b is a hub.
    """
    credit = own.credit
    if row.end - row.begin == np.uint64(2):
        return credit_pair(rows, row.begin, hubs.base, credit, opposite)
    split = mark_row(row, hubs.base, hubs.pad, own.marks)
    triangles, tests = np.uint64(0), np.uint64(0)
    for arc in range(row.begin, min(split, row.end - np.uint64(1))):
        b = np.uint64(row.heads[arc])
        found, tested = credit_marked(rows, b, hubs.pad, own, opposite)
        credit[np.uint64(SPARE) + b] += found
        triangles += found
        tests += tested
    if split < row.end:
        found, tested = credit_hubs(Stretch(row.heads, split, row.end), hubs, own)
        triangles += found
        tests += tested
    clear_row(row, hubs.pad, own.marks)
    return triangles, tests


@kernel
def credit_range(
    rows: Rows, hubs: Hubs, begin: int, end: int, own: Ledger, supports: Ids | None, opposite: Ids | None
) -> Counts:
    """Credit triangles with their lowest vertex in [begin, end) to all their vertices.

    Where `supports` is an array, credits go on to the arcs of each row, and none stay. Where `opposite` is one, which
    belongs to one thread, it gets the shares of the arcs b → c with b below the hubs.
    """
    one, two = np.uint64(1), np.uint64(2)
    n = np.uint64(len(rows.offsets)) - one
    credit = own.credit
    triangles, tests = np.uint64(0), np.uint64(0)
    a_end = np.uint64(rows.offsets[begin])
    soon_end = np.uint64(rows.offsets[np.uint64(begin) + one])
    for a in range(np.uint64(begin), np.uint64(end)):
        a_begin, a_end = a_end, soon_end
        soon_end = np.uint64(rows.offsets[min(a + two, n)])
        prefetch_second_hops(rows, a_end, soon_end, hubs.base)
        if opposite is not None:
            prefetch_opposite(rows, a_end, soon_end, hubs.base, opposite)
        found = np.uint64(0)
        if a_end - a_begin >= two:
            found, tested = credit_row(rows, Stretch(rows.heads, a_begin, a_end), hubs, own, opposite)
            triangles += found
            tests += tested
        if supports is None:
            credit[np.uint64(SPARE) + a] += found
        else:
            for arc in range(a_begin, a_end):
                place = np.uint64(SPARE) + np.uint64(rows.heads[arc])
                supports[arc] += np.uint32(credit[place])
                credit[place] = np.uint32(0)
    return triangles, tests
