"""What the kernels of `keystone` do with the rows of a: its ways to the common heads of two rows.

To close an arc a → b is to find the c that complete triangles with it.

A whole graph is three times the same block, whose hubs need no layout. What is found goes to the arrays in `Sinks`: to
none in a count; to a, to b or to the arc a → b; to c, in the credits of a `Ledger`, and from there to the arcs a → c.
What is None is compiled away.

For a row a, marked in a bitmap where that is needed, each arc a → b takes the cheapest way to the common heads c of a
and of b:

    b below the hubs, few heads    compare those behind b with all of b, 16 at a time: in graphs, without credits
    b below the hubs               stream the row of b, test each head in a's bitmap, credit c or a spare entry
    b a hub, a has few heads       test those few in b's bit row, credit c by the bit
    b a hub, a has many            AND + POPCNT for b; for credits the bit rows of all such b are added column by
                                   column, 512 columns and eight rows at a time, and c gets the sum of its column

Short rows of a graph are visited by length, so that their loops end where the branch predictor expects it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._contract import Counts, Pass
from wedgewise.algorithms._ranges import arc_bounds
from wedgewise.algorithms.cpu._keystone_hubs import (
    MAX_COMPARED,
    Hubs,
    bit_row_at,
    empty_marks,
    marks_bytes,
    prefetch_hub,
)
from wedgewise.algorithms.cpu._keystone_rows import (
    SPARE,
    Ledger,
    Marks,
    add_to,
    clear_row,
    close_compared,
    close_marked,
    close_probed,
    credit_columns,
    empty_ledger,
    find_in_row,
    ledger_bytes,
    mark_row,
    prefetch_rows,
    take_bit_row,
)
from wedgewise.algorithms.cpu._records import Blocks3, RowPart, Span, first_in, row_at, whole
from wedgewise.machine.jit import helper, kernel, taken_apart
from wedgewise.machine.primitives import IDS_AT_ONCE, MAX_ROWS, count_common_bits
from wedgewise.prepare.orient import first_not_below
from wedgewise.stages import Ids, OrientedGraph

ROWS_AT_ONCE = 1 << 8
LISTS = 8  # of rows of a graph: the second has those of two arcs, the third of three, …, the last of eight or more
CACHED_ARCS = 1 << 20  # rows of so many are near enough: asking for them ahead costs more than waiting


class BlockTask(NamedTuple):
    """Three blocks, the hubs of jk, and how many arcs at the end of each row of ij close no triangle.

    ``busy`` lists the rows that may have some, or none where all are to be looked at.
    """

    blocks: Blocks3
    hubs: Hubs
    idle: np.uint64
    busy: Ids | None = None


class Sinks(NamedTuple):
    """The arrays that triangles are added to: by a, b, a → b; by a → c, from the credits of c; by b → c."""

    by_row: NDArray[Any] | None = None
    by_head: NDArray[Any] | None = None
    by_arc: Ids | None = None
    by_far_arc: Ids | None = None
    by_last_arc: Ids | None = None


NO_SINKS = Sinks()
RowMarks = TypeVar("RowMarks", Marks, Ledger)


class RowWorkspace(NamedTuple, Generic[RowMarks]):
    """What one thread needs to close rows; kernels take it apart.

    ``lists`` are those of the rows that it visits next.
    """

    marks: RowMarks
    lists: Ids
    sinks: Sinks


def graph_task(graph: OrientedGraph, hubs: Hubs) -> BlockTask:
    """A graph with ids by rank as one task: the last arc of a row closes no triangle."""
    return BlockTask(whole(graph), hubs, np.uint64(1))


def empty_lists() -> Ids:
    """Lists of rows, and where each of them ends."""
    return np.empty(LISTS * (ROWS_AT_ONCE + 1), np.uint32)


def counting_workspace(columns: int, sinks: Sinks = NO_SINKS) -> RowWorkspace[Marks]:
    """What one thread needs where c is not credited."""
    return RowWorkspace(Marks(empty_marks(columns)), empty_lists(), sinks)


def crediting_workspace(
    columns: int, credit_type: type[np.unsignedinteger[Any]], sinks: Sinks = NO_SINKS
) -> RowWorkspace[Ledger]:
    """What one thread needs to credit c."""
    return RowWorkspace(empty_ledger(columns, credit_type), empty_lists(), sinks)


def counting_bytes(columns: int) -> int:
    """Bytes of a `counting_workspace` without its sinks."""
    return marks_bytes(columns) + 4 * LISTS * (ROWS_AT_ONCE + 1)


def crediting_bytes(columns: int, credit_bytes: int) -> int:
    """Bytes of a `crediting_workspace` without its sinks."""
    return ledger_bytes(columns, credit_bytes) + 4 * LISTS * (ROWS_AT_ONCE + 1)


def closing_pass(task: BlockTask, workspace: Callable[[], RowWorkspace[Any]], share: int = 0, shares: int = 1) -> Pass:
    """All rows of a task, or a share of them, in ranges with about equally many arcs."""
    each = taken_apart(task)

    def close(begin: int, end: int, own: RowWorkspace[Any]) -> Counts:
        return close_range(each, Span(begin, end, share, shares), *own)

    return Pass(arc_bounds(task.blocks.ij.offsets), close, workspace)


@helper
def first_behind(row, begin, least, arc, layout):  # type: ignore[no-untyped-def]
    """The first arc of a row, from `begin` on, to a head that bit rows may have: in a graph the one behind a → b."""
    if layout is None:
        return arc + np.uint64(1)
    while begin < row.end and np.uint64(row.heads[begin]) < least:
        begin += np.uint64(1)
    return begin


@helper
def close_hubs(arcs, row, hubs, layout, own, credit, sinks):  # type: ignore[no-untyped-def]
    """Triangles of the arcs of an a to hubs with its row in ik, which is marked unless short."""
    first_column, marks_word = hubs.first_column, (hubs.first_column + hubs.pad) >> np.uint64(6)
    begin, first, end = row.begin, row.begin, row.end
    triangles, tests, taken = np.uint64(0), np.uint64(0), np.uint64(0)
    for arc in range(arcs.begin, arcs.end):
        prefetch_hub(arcs, arc, hubs)
        b = np.uint64(arcs.heads[arc])
        start, block, least = bit_row_at(hubs, b, layout)
        begin = first_behind(row, begin, least, arc, layout)
        if layout is not None and begin == end:
            break
        left, found = hubs.blocks - block, np.uint64(0)
        if end - begin <= left * hubs.ratio:
            behind = RowPart(row.heads, begin, end)
            found = close_probed(behind, first_column + (block << np.uint64(9)), hubs.bits, start, credit)
        else:
            word = block << np.uint64(3)
            if layout is None or credit is None:  # credits of three blocks are counted afterwards
                found = np.uint64(count_common_bits(own.marks, marks_word + word, hubs.bits, start, left))
            if credit is not None:
                first = begin if taken == np.uint64(0) else first
                taken = take_bit_row(own, taken, start - word, block)
        if credit is not None and taken == np.uint64(MAX_ROWS):
            credit_columns(RowPart(row.heads, first, end), first_column, own.marks, marks_word, hubs.bits, taken, own)
            taken = np.uint64(0)
        add_to(sinks.by_head, b, found)
        give_arc(sinks.by_arc, arc, found, hubs.layout)
        triangles += found
        tests += end - begin
    if credit is not None and taken > np.uint64(0):
        credit_columns(RowPart(row.heads, first, end), first_column, own.marks, marks_word, hubs.bits, taken, own)
    return triangles, tests


@helper
def give_arc(by_arc, arc, found, layout):  # type: ignore[no-untyped-def]
    """Add what an arc a → b has to it, where there is an array; an arc of a graph is in one task, and has no more."""
    if by_arc is not None:
        if layout is None:
            by_arc[arc] = found
        else:
            by_arc[arc] += found


@helper
def positions_in(span, busy):  # type: ignore[no-untyped-def]
    """Where the rows of a span begin and end, and their distance: among all rows, or among the busy ones."""
    begin, end, step = first_in(span), np.uint64(span.end), np.uint64(span.shares)
    if busy is not None and len(busy) > 0:
        listed = np.uint64(len(busy))
        begin = first_not_below(busy, np.uint64(0), listed, np.uint64(span.begin))
        end = first_not_below(busy, begin, listed, end)
        step = np.uint64(1)
    return begin, end, step


@helper
def find_active(task, layout, busy, begin, end, step, span, lists):  # type: ignore[no-untyped-def]
    """List the rows from a position on that have arcs to close and heads to close them with; how many there are."""
    one, count, shares = np.uint64(1), np.uint64(0), np.uint64(span.shares)
    near, far = task.blocks.ij.offsets, task.blocks.ik.offsets
    if layout is None:
        for v in range(begin, end, step):
            lists[count] = v
            count += np.uint64(np.uint64(near[np.uint64(v) + one]) - np.uint64(near[v]) > one)
        return count
    for position in range(begin, end, step):
        a, is_own = np.uint64(position), np.uint64(1)
        if busy is not None and len(busy) > 0:
            a = np.uint64(busy[position])
            is_own = np.uint64(shares == one or a % shares == np.uint64(span.share))
        arcs = np.uint64(near[a + one]) - np.uint64(near[a])
        lists[count] = a
        count += np.uint64(arcs > task.idle) & np.uint64(far[a + one] > far[a]) & is_own
    return count


@helper
def room_in(lists):  # type: ignore[no-untyped-def]
    """How many rows each list has room for; behind them all is where each one ends."""
    return np.uint64(len(lists)) // np.uint64(LISTS) - np.uint64(1)


@helper
def list_by_length(offsets, layout, lists, count):  # type: ignore[no-untyped-def]
    """Move so many rows of a graph from the first list to that of their length: loops over such rows end alike."""
    one, room = np.uint64(1), room_in(lists)
    ends = np.uint64(LISTS) * room
    for number in range(np.uint64(LISTS)):
        lists[ends + np.uint64(number)] = np.uint64(number) * room
    if layout is not None:
        lists[ends] = count
        return
    for position in range(count):
        a = np.uint64(lists[position])
        length = np.uint64(offsets[a + one]) - np.uint64(offsets[a])
        end = ends + min(length, np.uint64(LISTS)) - one
        lists[np.uint64(lists[end])] = a
        lists[end] += np.uint32(1)


@helper
def arcs_and_row(blocks, a, idle, layout):  # type: ignore[no-untyped-def]
    """The arcs of a in ij that may close triangles, and its row in ik; in a graph both from one array."""
    row = row_at(blocks.jk, a) if layout is None else row_at(blocks.ik, a)
    arcs = row if layout is None else row_at(blocks.ij, a)
    return RowPart(arcs.heads, arcs.begin, arcs.end - idle), row


@helper
def most_compared(rows, layout, credit, by_last_arc):  # type: ignore[no-untyped-def]
    """The most arcs from a → b on that are compared with those of b: how many heads are common is found, not which."""
    if layout is None and credit is None and by_last_arc is None:
        return np.uint64(MAX_COMPARED) * np.uint64(len(rows.heads) >= IDS_AT_ONCE)
    return np.uint64(0)


@helper
def close_row(arcs, row, jk, hubs, most, own, sinks):  # type: ignore[no-untyped-def]
    """Triangles of an a with these arcs in ij and this row in ik, by rows of block jk."""
    zero, one, arc = np.uint64(0), np.uint64(1), arcs.begin
    triangles, tests = zero, zero
    marking = np.uint64(arcs.heads[arc]) < hubs.base and row.end - row.begin > most
    marking |= np.uint64(arcs.heads[arcs.end - one]) >= hubs.base and row.end - row.begin > hubs.ratio
    if marking:
        mark_row(row, hubs.pad, own.marks)
    while arc < arcs.end and np.uint64(arcs.heads[arc]) < hubs.base:
        b = np.uint64(arcs.heads[arc])
        if most > zero and row.end - arc <= most:  # in a graph, whose arcs and rows are numbered alike
            tested = row.end - arc - one
            found = close_compared(jk, b, arc + one, tested)
        else:
            found, tested = close_marked(jk, b, hubs.pad, own, sinks.by_last_arc)
        add_to(sinks.by_head, b, found)
        give_arc(sinks.by_arc, arc, found, hubs.layout)
        triangles += found
        tests += tested
        arc += one
    found, tested = close_hubs(RowPart(arcs.heads, arc, arcs.end), row, hubs, hubs.layout, own, own.credit, sinks)
    if marking:
        clear_row(row, hubs.pad, own.marks)
    return triangles + found, tests + tested


@helper
def compare_behind(rows, arc, behind, sinks):  # type: ignore[no-untyped-def]
    """Triangles of an arc of a graph, by comparing so many heads behind it."""
    b = np.uint64(rows.heads[arc])
    found = close_compared(rows, b, arc + np.uint64(1), behind)
    add_to(sinks.by_head, b, found)
    give_arc(sinks.by_arc, arc, found, None)
    return found


@helper
def close_short(row, rows, sinks):  # type: ignore[no-untyped-def]
    """The same for a short row of a graph whose arcs but the last lead below the hubs; it is not marked.

    What is behind the last arcs has a fixed length, so that it is compared without a loop.
    """
    one, two, three = np.uint64(1), np.uint64(2), np.uint64(3)
    length, arc, triangles = row.end - row.begin, row.begin, np.uint64(0)
    tests = length * (length - one) >> one
    while arc + three + one < row.end:
        triangles += compare_behind(rows, arc, row.end - arc - one, sinks)
        arc += one
    if length > three:
        triangles += compare_behind(rows, row.end - three - one, three, sinks)
    if length > two:
        triangles += compare_behind(rows, row.end - three, two, sinks)
    return triangles + compare_behind(rows, row.end - two, one, sinks), tests


@helper
def close_pair(row, rows, base, credit, sinks):  # type: ignore[no-untyped-def]
    """The same for a row of two arcs of a graph, which is not worth marking."""
    b, c = np.uint64(row.heads[row.begin]), row.heads[row.begin + np.uint64(1)]
    triangles, tests = find_in_row(rows, b, c)
    last = min(np.uint64(rows.offsets[b]) + tests, np.uint64(len(rows.heads))) - np.uint64(1)
    add_to(credit, np.uint64(SPARE) + np.uint64(c), triangles)
    add_to(sinks.by_head, b, triangles)
    give_arc(sinks.by_arc, row.begin, triangles, None)
    add_to(sinks.by_last_arc, last, triangles & np.uint64(b < base))
    return triangles, tests


@helper
def move_credits(row, credit, by_far_arc):  # type: ignore[no-untyped-def]
    """Move the credits of a row to its arcs, where there is an array for them; how many there were."""
    moved = np.uint64(0)
    if by_far_arc is not None:
        for arc in range(row.begin, row.end):
            position = np.uint64(SPARE) + np.uint64(row.heads[arc])
            moved += np.uint64(credit[position])
            by_far_arc[arc] += credit[position]
            credit[position] = np.uint32(0)
    return moved


@helper
def close_vertex(arcs, row, jk, hubs, layout, own, credit, sinks):  # type: ignore[no-untyped-def]
    """Triangles and tests of an a; where there are credits, c is credited."""
    most = most_compared(jk, layout, credit, sinks.by_last_arc)
    if row.end - row.begin <= most and np.uint64(row.heads[row.end - np.uint64(2)]) < hubs.base:
        found, tests = close_short(row, jk, sinks)
    elif layout is None and credit is not None and row.end - row.begin == np.uint64(2):
        found, tests = close_pair(row, jk, hubs.base, credit, sinks)
    else:
        found, tests = close_row(arcs, row, jk, hubs, most, own, sinks)
    moved = move_credits(row, credit, sinks.by_far_arc)
    if layout is not None and credit is not None:
        return moved, tests
    return found, tests


@kernel
def close_range(task: BlockTask, span: Span, own: Marks | Ledger, lists: Ids, sinks: Sinks) -> Counts:
    """Triangles with a in the span; credits to c stay with the thread, or are moved to a → c after each row.

    Where they stay in a task of three blocks, how many triangles there are is seen there.
    """
    one, blocks, hubs, room = np.uint64(1), task.blocks, task.hubs, room_in(lists)
    begin, end, step = positions_in(span, task.busy)
    triangles, tests = np.uint64(0), np.uint64(0)
    for first in range(begin, end, room * step):
        last = min(np.uint64(first) + room * step, end)
        count = find_active(task, hubs.layout, task.busy, np.uint64(first), last, step, span, lists)
        list_by_length(blocks.jk.offsets, hubs.layout, lists, count)
        for number in range(np.uint64(LISTS)):
            stop = np.uint64(lists[np.uint64(LISTS) * room + np.uint64(number)])
            for position in range(np.uint64(number) * room, stop):
                if len(blocks.jk.heads) > CACHED_ARCS:
                    soon = np.uint64(lists[min(np.uint64(position) + one, stop - one)])
                    prefetch_rows(row_at(blocks.ij, soon), hubs.base, blocks.jk, sinks.by_last_arc)
                a = np.uint64(lists[position])
                arcs, row = arcs_and_row(blocks, a, task.idle, hubs.layout)
                found, tested = close_vertex(arcs, row, blocks.jk, hubs, hubs.layout, own, own.credit, sinks)
                add_to(sinks.by_row, a, found)
                triangles += found
                tests += tested
    return triangles, tests
