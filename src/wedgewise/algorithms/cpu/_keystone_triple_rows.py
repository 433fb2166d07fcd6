"""What the kernels on three blocks do with the rows of a: `keystone`'s ways to the common heads of two rows.

They differ in where triangles go that were found (`Sinks`): nowhere, in a count; to a, to b or to the arc a → b; or to
c, which takes other ways (`_owned_credit`). What is None is compiled away.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wedgewise.algorithms._contract import Counts
from wedgewise.algorithms.cpu._keystone_credit import Ledger
from wedgewise.algorithms.cpu._keystone_rows import clear_row, count_marked, mark_row, prefetch_rows, probe_row
from wedgewise.algorithms.cpu._keystone_triple_hubs import TripleHubs, first_column, prefetch_hub
from wedgewise.algorithms.cpu._owned_credit import credit_row
from wedgewise.algorithms.cpu._records import Span, Stretch, first_in, row_at
from wedgewise.algorithms.cpu._triples import Blocks3
from wedgewise.machine.jit import helper, kernel
from wedgewise.machine.primitives import count_common_bits
from wedgewise.stages import Ids, Keys


class BlockTask(NamedTuple):
    """Three blocks, the hubs of jk, and how many arcs at the end of each row of ij close no triangle."""

    blocks: Blocks3
    hubs: TripleHubs
    idle: np.uint64


class Marks(NamedTuple):
    """What one thread needs where c is not credited; otherwise it needs a `Ledger`."""

    marks: Keys
    credit: None = None


class Sinks(NamedTuple):
    """The arrays that triangles are added to: by a, by b, by a → b; or by a → c, where they are credited to c first."""

    by_row: Keys | None = None
    by_head: Keys | None = None
    by_arc: Ids | None = None
    by_far_arc: Ids | None = None


@helper
def add_to(sink, place, found):  # type: ignore[no-untyped-def]
    """Add what was found, where there is an array for it."""
    if sink is not None:
        sink[place] += found


@helper
def close_hubs(arcs, row, hubs, marks, sinks):  # type: ignore[no-untyped-def]
    """Triangles of the arcs of an a to hubs with its row in ik, which is marked unless short."""
    one = np.uint64(1)
    begin, end = row.begin, row.end
    triangles, tests = np.uint64(0), np.uint64(0)
    for hub_arc in range(arcs.begin, arcs.end):
        prefetch_hub(arcs, hub_arc, hubs, np.uint64(0))
        place = hubs.places[hubs.last - np.uint64(arcs.heads[hub_arc])]
        least = place & np.uint64(0xFFFFFFFF)
        while begin < end and np.uint64(row.heads[begin]) < least:
            begin += one
        if begin == end:
            break
        start, first = place >> np.uint64(32), first_column(place)
        left = hubs.blocks - (first >> np.uint64(9))
        if end - begin <= left * hubs.ratio:
            found = probe_row(Stretch(row.heads, begin, end), first, hubs.bits, start)
        else:
            found = np.uint64(count_common_bits(marks, first >> np.uint64(6), hubs.bits, start, left))
        add_to(sinks.by_head, arcs.heads[hub_arc], found)
        add_to(sinks.by_arc, hub_arc, found)
        triangles += found
        tests += end - begin
    return triangles, tests


@helper
def find_active(blocks, begin, end, step, idle, active):  # type: ignore[no-untyped-def]
    """Write the rows from `begin` on that have arcs to close and heads to close them with; how many there are."""
    one, count = np.uint64(1), np.uint64(0)
    near, far = blocks.ij.offsets, blocks.ik.offsets
    for a in range(begin, end, step):
        arcs = np.uint64(near[a + one]) - np.uint64(near[a])
        active[count] = a
        count += np.uint64(arcs > idle) & np.uint64(far[a + one] > far[a])
    return count


@helper
def count_row(arcs, row, jk, hubs, marks, sinks):  # type: ignore[no-untyped-def]
    """Triangles of an a with these arcs in ij and this row in ik, by rows of block jk."""
    zero, arc = np.uint64(0), arcs.begin
    triangles, tests = zero, zero
    marking = np.uint64(arcs.heads[arc]) < hubs.base or row.end - row.begin > hubs.ratio
    if marking:
        mark_row(row, zero, zero, marks)
    while arc < arcs.end and np.uint64(arcs.heads[arc]) < hubs.base:
        found, tested = count_marked(jk, np.uint64(arcs.heads[arc]), zero, marks)
        add_to(sinks.by_head, arcs.heads[arc], found)
        add_to(sinks.by_arc, arc, found)
        triangles += found
        tests += tested
        arc += np.uint64(1)
    found, tested = close_hubs(Stretch(arcs.heads, arc, arcs.end), row, hubs, marks, sinks)
    if marking:
        clear_row(row, zero, marks)
    return triangles + found, tests + tested


@helper
def close_row(arcs, row, jk, hubs, own, credit, sinks):  # type: ignore[no-untyped-def]
    """Triangles and tests of an a, counted, or credited where there are credits."""
    if credit is None:
        return count_row(arcs, row, jk, hubs, own.marks, sinks)
    return credit_row(arcs, row, jk, hubs, own, sinks.by_far_arc)


@kernel
def close_range(task: BlockTask, span: Span, own: Marks | Ledger, active: Ids, sinks: Sinks) -> Counts:
    """Triangles with a in the span; credits to c stay with the thread, or are settled row by row as those of a → c.

    Where they stay, how many triangles there are is seen there.
    """
    one, blocks, hubs = np.uint64(1), task.blocks, task.hubs
    step, stretch = np.uint64(span.shares), np.uint64(len(active)) * np.uint64(span.shares)
    triangles, tests = np.uint64(0), np.uint64(0)
    for first in range(first_in(span), np.uint64(span.end), stretch):
        last = min(np.uint64(first) + stretch, np.uint64(span.end))
        count = find_active(blocks, np.uint64(first), last, step, task.idle, active)
        for number in range(count):
            soon = np.uint64(active[min(np.uint64(number) + one, count - one)])
            prefetch_rows(row_at(blocks.ij, soon), hubs.base, blocks.jk)
            a = np.uint64(active[number])
            arcs, row = row_at(blocks.ij, a), row_at(blocks.ik, a)
            arcs = Stretch(arcs.heads, arcs.begin, arcs.end - task.idle)
            found, tested = close_row(arcs, row, blocks.jk, hubs, own, own.credit, sinks)
            add_to(sinks.by_row, a, found)
            triangles += found
            tests += tested
    return triangles, tests
