"""Credit each triangle, found from its lowest vertex, to its vertices: rows are compared as in `keystone`.

For a row of vertex a, marked in a bitmap, each arc a → b takes the cheapest way to the common ids c of N+(a) and N+(b):

    b below the hubs                     stream N+(b), test each id in a's bitmap, credit c or a spare place
    b a hub, few ids of N+(a) behind b   test those few in b's bit row, credit c by the bit
    b a hub, many of them                AND + POPCNT for b; the bit rows of all such b are added column by column,
                                         512 columns and eight rows at a time, and c gets the sum of its column

Credits are by id and belong to one thread. Memory: 8 or 4 bytes per vertex for credits, n / 8 for marks, 64 KB.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._contract import Counts
from wedgewise.algorithms.cpu._keystone_hubs import (
    HUBS_AHEAD,
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
    padding,
    prefetch_second_hops,
)
from wedgewise.machine.jit import helper, kernel
from wedgewise.machine.primitives import BLOCK_WORDS, MOST_ROWS, PLANES, count_common_bits, prefetch, sum_columns
from wedgewise.stages import Ids, Keys

SPARE = 16  # the credit of id x is at SPARE + x; failed tests are credited below it, in turn, so that none has to wait
PLANES_AT = 2 * MOST_ROWS
SCRATCH_WORDS = PLANES_AT + PLANES * BLOCK_WORDS


@dataclass(frozen=True, slots=True)
class Ledger:
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
def credit_marked(offsets, rows, b, pad, marks, credit, opposite):  # type: ignore[no-untyped-def]
    """Credit every out-neighbour c of b that is marked, and b → c where asked; how many were, and how many are."""
    begin, end = np.uint64(offsets[b]), np.uint64(offsets[b + np.uint64(1)])
    final = np.uint64(len(rows)) - np.uint64(1)
    found = np.uint64(0)
    for step in range(np.uint64(TESTS_IN_ANY_CASE)):
        place = begin + step
        c = np.uint64(rows[min(place, final)])
        hit = marked(c + pad, marks) & np.uint64(place < end)
        credit_hit(c, hit, place, credit)
        if opposite is not None:
            opposite[min(place, final)] += np.uint32(hit)
        found += hit
    for arc in range(begin + np.uint64(TESTS_IN_ANY_CASE), end):
        c = np.uint64(rows[arc])
        hit = marked(c + pad, marks)
        credit_hit(c, hit, arc, credit)
        if opposite is not None:
            opposite[arc] += np.uint32(hit)
        found += hit
    return found, end - begin


@helper
def prefetch_opposite(offsets, rows, begin, end, base, opposite):  # type: ignore[no-untyped-def]
    """Ask for the shares of the arcs of the out-neighbours below the hubs."""
    if end - begin > np.uint64(1):
        for arc in range(begin, end):
            b = np.uint64(rows[arc])
            if b >= base:
                break
            prefetch(opposite, np.uint64(offsets[b]))


@helper
def credit_hit(c, hit, arc, credit):  # type: ignore[no-untyped-def]
    """Add one to c where `hit` is one, else to a spare place; no branch depends on it."""
    spare = arc & np.uint64(SPARE - 1)
    credit[spare + hit * (c + np.uint64(SPARE) - spare)] += np.uint64(1)


@helper
def credit_probed(rows, arc, end, base, bits, origin, credit):  # type: ignore[no-untyped-def]
    """Credit the ids of ``rows[arc:end]`` that have their bit set in the hub row whose bit 0 is in word `origin`."""
    found = np.uint64(0)
    for other in range(arc, end):
        c = np.uint64(rows[other])
        hub = c - base
        hit = (bits[origin + (hub >> np.uint64(6))] >> (hub & np.uint64(63))) & np.uint64(1)
        credit[np.uint64(SPARE) + c] += hit
        found += hit
    return found


@helper
def credit_columns(rows, begin, end, base, mask, mask_origin, bits, scratch, taken, credit):  # type: ignore[no-untyped-def]
    """Credit the hubs ``rows[begin:end]``, block by block, with how many of the bit rows taken have them in the mask.

    Bit row i has its bit 0 in word ``scratch[i]`` and starts at block ``scratch[MOST_ROWS + i]``, which ascend.
    """
    one = np.uint64(1)
    covering, used = np.uint64(0), np.uint64(0)
    arc = begin
    while arc < end:
        block = (np.uint64(rows[arc]) - base) >> np.uint64(9)
        while covering < taken and scratch[np.uint64(MOST_ROWS) + covering] <= block:
            covering += one
        while covering >> used > np.uint64(0):
            used += one
        word = block << np.uint64(3)
        sum_columns(mask, mask_origin + word, bits, scratch, covering, word, np.uint64(PLANES_AT))
        while arc < end and (np.uint64(rows[arc]) - base) >> np.uint64(9) == block:
            c = np.uint64(rows[arc])
            column = (c - base) & np.uint64(511)
            at, bit = np.uint64(PLANES_AT) + (column >> np.uint64(6)), column & np.uint64(63)
            total = np.uint64(0)
            for plane in range(used):
                total += ((scratch[at + (plane << np.uint64(3))] >> bit) & one) << plane
            credit[np.uint64(SPARE) + c] += total
            arc += one


@helper
def credit_hubs(rows, split, end, base, blocks, pad, bits, ratio, marks, scratch, credit):  # type: ignore[no-untyped-def]
    """Credit the triangles of a marked row whose two higher vertices are both in ``rows[split:end]``, its hubs."""
    hub_origin = (base + pad) >> np.uint64(6)
    ahead = np.uint64(HUBS_AHEAD)
    triangles, tests, taken = np.uint64(0), np.uint64(0), np.uint64(0)
    last = end - np.uint64(1)
    for arc in range(split, last):
        b = np.uint64(rows[arc])
        hub = b - base
        block = hub >> np.uint64(9)
        left = blocks - block
        start = row_word(hub, blocks)
        origin = start - (block << np.uint64(3))
        if arc + ahead < last:
            prefetch_hub_row(bits, np.uint64(rows[arc + ahead]) - base, blocks)
        if last - arc <= left * ratio:
            found = credit_probed(rows, arc + np.uint64(1), end, base, bits, origin, credit)
        else:
            found = np.uint64(count_common_bits(marks, hub_origin + (block << np.uint64(3)), bits, start, left))
            scratch[taken] = origin
            scratch[np.uint64(MOST_ROWS) + taken] = block
            taken += np.uint64(1)
        if taken == np.uint64(MOST_ROWS) or (arc + np.uint64(1) == last and taken > np.uint64(0)):
            credit_columns(rows, split, end, base, marks, hub_origin, bits, scratch, taken, credit)
            taken = np.uint64(0)
        credit[np.uint64(SPARE) + b] += found
        triangles += found
        tests += last - arc
    return triangles, tests


@helper
def credit_pair(offsets, rows, begin, base, credit, opposite):  # type: ignore[no-untyped-def]
    """The same as `credit_row` for a row of two arcs, which is not worth marking."""
    b, c = np.uint64(rows[begin]), rows[begin + np.uint64(1)]
    triangles, tests = find_in_row(offsets, rows, b, c)
    credit[np.uint64(SPARE) + b] += triangles
    credit[np.uint64(SPARE) + np.uint64(c)] += triangles
    if opposite is not None:
        place = min(np.uint64(offsets[b]) + tests, np.uint64(len(rows))) - np.uint64(1)
        opposite[place] += np.uint32(triangles & np.uint64(b < base))
    return triangles, tests


@helper
def credit_row(offsets, rows, begin, end, base, blocks, pad, bits, ratio, marks, scratch, credit, opposite):  # type: ignore[no-untyped-def]
    """Credit the triangles whose lowest vertex has the row ``rows[begin:end]`` to their two other vertices.

    Where `opposite` is an array, their highest arc b → c gets its share there, unless b is a hub.
    """
    if end - begin == np.uint64(2):
        return credit_pair(offsets, rows, begin, base, credit, opposite)
    split = mark_row(rows, begin, end, base, pad, marks)
    triangles, tests = np.uint64(0), np.uint64(0)
    for arc in range(begin, min(split, end - np.uint64(1))):
        b = np.uint64(rows[arc])
        found, tested = credit_marked(offsets, rows, b, pad, marks, credit, opposite)
        credit[np.uint64(SPARE) + b] += found
        triangles += found
        tests += tested
    if split < end:
        found, tested = credit_hubs(rows, split, end, base, blocks, pad, bits, ratio, marks, scratch, credit)
        triangles += found
        tests += tested
    clear_row(rows, begin, end, pad, marks)
    return triangles, tests


@helper
def credit_range(offsets, rows, first_hub, bits, probe_ratio, begin, end, marks, scratch, credit, supports, opposite):  # type: ignore[no-untyped-def]
    """Credit triangles with their lowest vertex in [begin, end): into `supports` row by row, or else kept, with it.

    Where `opposite` is an array, it gets the shares of the arcs b → c with b below the hubs.
    """
    one, two = np.uint64(1), np.uint64(2)
    base, ratio = np.uint64(first_hub), np.uint64(probe_ratio)
    n = np.uint64(len(offsets)) - one
    blocks = (n - base) >> np.uint64(9)
    pad = padding(base)
    triangles, tests = np.uint64(0), np.uint64(0)
    a_end = np.uint64(offsets[begin])
    soon_end = np.uint64(offsets[np.uint64(begin) + one])
    for a in range(np.uint64(begin), np.uint64(end)):
        a_begin, a_end = a_end, soon_end
        soon_end = np.uint64(offsets[min(a + two, n)])
        prefetch_second_hops(offsets, rows, a_end, soon_end, base)
        if opposite is not None:
            prefetch_opposite(offsets, rows, a_end, soon_end, base, opposite)
        found = np.uint64(0)
        if a_end - a_begin >= two:
            found, tested = credit_row(
                offsets, rows, a_begin, a_end, base, blocks, pad, bits, ratio, marks, scratch, credit, opposite
            )
            triangles += found
            tests += tested
        if supports is None:
            credit[np.uint64(SPARE) + a] += found
        else:
            for arc in range(a_begin, a_end):
                place = np.uint64(SPARE) + np.uint64(rows[arc])
                supports[arc] += np.uint32(credit[place])
                credit[place] = np.uint32(0)
    return triangles, tests


@kernel
def credit_vertices(
    offsets: NDArray[Any],
    rows: Ids,
    first_hub: int,
    bits: Keys,
    probe_ratio: int,
    begin: int,
    end: int,
    marks: Keys,
    scratch: Keys,
    credit: Keys,
) -> Counts:
    """Credit the triangles with lowest vertex in [begin, end) to all their vertices."""
    triangles, tests = credit_range(
        offsets, rows, first_hub, bits, probe_ratio, begin, end, marks, scratch, credit, None, None
    )
    return triangles, tests


@kernel
def credit_arcs(
    offsets: NDArray[Any],
    rows: Ids,
    first_hub: int,
    bits: Keys,
    probe_ratio: int,
    begin: int,
    end: int,
    marks: Keys,
    scratch: Keys,
    credit: Ids,
    supports: Ids,
) -> Counts:
    """Add the triangles with lowest vertex a to the supports of the arcs of a in [begin, end)."""
    triangles, tests = credit_range(
        offsets, rows, first_hub, bits, probe_ratio, begin, end, marks, scratch, credit, supports, None
    )
    return triangles, tests


@kernel
def credit_all_arcs(
    offsets: NDArray[Any],
    rows: Ids,
    first_hub: int,
    bits: Keys,
    probe_ratio: int,
    begin: int,
    end: int,
    marks: Keys,
    scratch: Keys,
    credit: Ids,
    supports: Ids,
) -> Counts:
    """The same, and their opposite arcs b → c with b below the hubs: `supports` belongs to one thread."""
    triangles, tests = credit_range(
        offsets, rows, first_hub, bits, probe_ratio, begin, end, marks, scratch, credit, supports, supports
    )
    return triangles, tests
