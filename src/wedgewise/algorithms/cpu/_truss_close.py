"""The triangles of a frontier, found in rows of the remaining edges, and what its removal takes from those that stay.

A row is the neighbours of a vertex, ascending, each with its edge: ``neighbour << 32 | edge``. For an edge of the
frontier the shorter row of its ends is streamed, and each neighbour is looked up in the longer row:

    marks    the longer row is written into an array by neighbour first; edges of one vertex share that
    search   where the longer row is `SEARCH_STEPS` times as long as all that is streamed past it, by bisection

What is found goes into a short list without a branch, since about every second test finds something. Then the list
is gone through: a triangle with a removed edge is none, and one with several of the frontier belongs to the least. The
edges that lose one are half of all that were found, or fewer, and listed first, without a branch, too.

Supports are not touched here. The edges that lose a triangle are written into blocks by *share* (a range of edges
whose supports fit into a cache), and `take_triangles` applies them share by share: each share is applied by one task,
so that nothing is atomic. Small rounds are not worth two steps: `peel_serially` takes triangles from supports at once.
Memory: 8 bytes per remaining vertex and thread for marks, 24 KB for lists; blocks are those of the caller.
"""

from __future__ import annotations

from typing import NamedTuple, SupportsInt

import numpy as np
from numpy.typing import NDArray

from wedgewise.machine.jit import helper, kernel
from wedgewise.machine.primitives import prefetch
from wedgewise.stages import Ids, Keys

REMAINING, IN_FRONTIER, REMOVED = range(3)
GONE = 0xFFFFFFFF  # the support of a removed edge
FOUND = 1024  # triangles that are listed before they are gone through
SEARCH_STEPS = 32  # what one bisection costs, in marks: it waits for the cache, and marks are read in order
LOSING = 1 << 12  # edges that are listed before they are written down
BLOCK = 256  # losses in one block
STAMP, USED = range(2)  # of a worker's counters: the mark of the present row; of a task's: its blocks in use

States = NDArray[np.uint8]


class RemainingRows(NamedTuple):
    """Edges with their ends ``low << 32 | high``, supports and states; row v is ``rows[firsts[v]:stops[v]]``."""

    ends: Keys
    supports: Ids
    states: States
    firsts: Keys
    stops: Keys
    rows: Keys


class Workspace(NamedTuple):
    """What one thread needs: marks by vertex, the last stamp, lists of found triangles and of edges that lose one."""

    marks: Keys
    stamps: Keys
    found: Keys
    losing: Ids


class LossBlocks(NamedTuple):
    """Block b is ``losses[b * BLOCK:(b + 1) * BLOCK]``: so far ``fills[b]`` edges, all of ``shares[b]``."""

    share_bits: np.uint64
    losses: Ids
    fills: Ids
    shares: Ids


@helper
def mark_row(rows, begin, end, stamp, marks):  # type: ignore[no-untyped-def]
    """Write the edge of every neighbour, under a stamp that no earlier row had."""
    low, high = np.uint64(0xFFFFFFFF), stamp << np.uint64(32)
    for position in range(begin, end):
        entry = rows[position]
        marks[entry >> np.uint64(32)] = high | (entry & low)


@helper
def list_marked(rows, begin, end, stamp, marks, found):  # type: ignore[no-untyped-def]
    """List both edges to every neighbour of a stretch that is marked; how many there are."""
    low, count = np.uint64(0xFFFFFFFF), np.uint64(0)
    for position in range(begin, end):
        entry = rows[position]
        mark = marks[entry >> np.uint64(32)]
        found[count] = (mark << np.uint64(32)) | (entry & low)
        count += np.uint64((mark >> np.uint64(32)) == stamp)
    return count


@helper
def list_searched(rows, begin, end, long_begin, long_end, found):  # type: ignore[no-untyped-def]
    """The same by bisection of a longer row; no search waits for the one before it."""
    low, count, one = np.uint64(0xFFFFFFFF), np.uint64(0), np.uint64(1)
    for position in range(begin, end):
        entry = rows[position]
        wanted = entry & ~low
        start, left = long_begin, long_end - long_begin
        while left > one:
            half = left >> one
            start += half * np.uint64(rows[start + half - one] < wanted)
            left -= half
        candidate = rows[start]
        found[count] = (candidate << np.uint64(32)) | (entry & low)
        count += np.uint64((candidate ^ entry) <= low)
    return count


@helper
def list_losing(edge, found, count, states, losing, listed):  # type: ignore[no-untyped-def]
    """List the edges that lose a triangle with an edge of the frontier, behind those `listed` so far; how many then."""
    low, one = np.uint64(0xFFFFFFFF), np.uint64(1)
    for number in range(count):
        first, second = found[number] >> np.uint64(32), found[number] & low
        a, b = np.uint64(states[first]), np.uint64(states[second])
        earlier = (a & np.uint64(first < edge)) | (b & np.uint64(second < edge)) | (a >> one) | (b >> one)
        own = (earlier & one) ^ one
        losing[listed] = first
        listed += own & (a ^ one)
        losing[listed] = second
        listed += own & (b ^ one)
    return listed


@helper
def write_down(losing, listed, blocks, cursors, counters):  # type: ignore[no-untyped-def]
    """Write the listed edges into the blocks of their shares; a full block is followed by a new one."""
    for number in range(listed):
        edge = np.uint64(losing[number])
        share = edge >> blocks.share_bits
        position = cursors[share]
        blocks.losses[position] = edge
        position += np.uint64(1)
        cursors[share] = position
        if (position & np.uint64(BLOCK - 1)) == np.uint64(BLOCK - 1):
            fresh = counters[USED]
            counters[USED] = fresh + np.uint64(1)
            blocks.shares[fresh] = share
            blocks.fills[position >> np.uint64(8)] = np.uint32(BLOCK - 1)
            cursors[share] = fresh << np.uint64(8)


@helper
def streamed(keys, at, end, remaining):  # type: ignore[no-untyped-def]
    """The edges from `at` on with one longer end: where they stop, and the length of the rows to be streamed."""
    vertex, total = keys[at] >> np.uint64(32), np.uint64(0)
    stop = at
    while stop < end and keys[stop] >> np.uint64(32) == vertex:
        both = remaining.ends[keys[stop] & np.uint64(0xFFFFFFFF)]
        other = (both >> np.uint64(32)) ^ (both & np.uint64(0xFFFFFFFF)) ^ vertex
        prefetch(remaining.rows, remaining.firsts[other])
        total += remaining.stops[other] - remaining.firsts[other]
        stop += np.uint64(1)
    return stop, total


@kernel
def close_edges(
    keys: Keys,
    begin: int,
    end: int,
    remaining: RemainingRows,
    own: Workspace,
    blocks: LossBlocks,
    cursors: Keys,
    counters: Keys,
) -> None:
    """Write down what the edges ``keys[begin:end]``, ``longer end << 32 | edge`` ascending, take from others."""
    low, most = np.uint64(0xFFFFFFFF), np.uint64(FOUND)
    ends, _, states, firsts, stops, rows = remaining
    marks, stamps, found, losing = own
    full, listed = np.uint64(LOSING - 2 * FOUND), np.uint64(0)
    for share in range(np.uint64(len(cursors))):
        cursors[share] = share << np.uint64(8)
        blocks.shares[share] = share
    counters[USED] = np.uint64(len(cursors))
    at, stop = np.uint64(begin), np.uint64(end)
    while at < stop:
        vertex = keys[at] >> np.uint64(32)
        long_begin, long_end = firsts[vertex], stops[vertex]
        group, total = streamed(keys, at, stop, remaining)
        searching = total * np.uint64(SEARCH_STEPS) < long_end - long_begin
        if not searching:
            stamps[STAMP] += np.uint64(1)
            mark_row(rows, long_begin, long_end, stamps[STAMP], marks)
        for number in range(at, group):
            edge = keys[number] & low
            other = (ends[edge] >> np.uint64(32)) ^ (ends[edge] & low) ^ vertex
            position = firsts[other]
            while position < stops[other]:
                piece = min(position + most, stops[other])
                if searching:
                    count = list_searched(rows, position, piece, long_begin, long_end, found)
                else:
                    count = list_marked(rows, position, piece, stamps[STAMP], marks, found)
                listed = list_losing(edge, found, count, states, losing, listed)
                if listed > full:
                    write_down(losing, listed, blocks, cursors, counters)
                    listed = np.uint64(0)
                position = piece
        at = group
    write_down(losing, listed, blocks, cursors, counters)
    for share in range(np.uint64(len(cursors))):
        blocks.fills[cursors[share] >> np.uint64(8)] = np.uint32(cursors[share] & np.uint64(BLOCK - 1))


@kernel
def take_triangles(
    numbers: Ids, begin: int, end: int, blocks: LossBlocks, bound: int, supports: Ids, next_frontier: Ids, listed: Keys
) -> None:
    """Take one triangle from every edge in some blocks, ``numbers[begin:end]``; list those that come down to `bound`.

    They are written to `next_frontier` from the first edge of their share on, ``listed[share]`` of them so far.
    """
    bound32 = np.uint32(bound)
    for number in range(np.uint64(begin), np.uint64(end)):
        block = np.uint64(numbers[number])
        share = np.uint64(blocks.shares[block])
        base = share << blocks.share_bits
        count = listed[share]
        position = block << np.uint64(8)
        for loss in range(position, position + np.uint64(blocks.fills[block])):
            edge = np.uint64(blocks.losses[loss])
            support = supports[edge] - np.uint32(1)
            supports[edge] = support
            if support == bound32:
                next_frontier[base + count] = edge
                count += np.uint64(1)
        listed[share] = count


@helper
def go_through_serially(found, count, bound, supports, states, queue, filled):  # type: ignore[no-untyped-def]
    """Take the listed triangles from the remaining edges at once; the end of the queue, behind those now at `bound`."""
    low = np.uint64(0xFFFFFFFF)
    for number in range(count):
        first, second = found[number] >> np.uint64(32), found[number] & low
        a, b = states[first], states[second]
        if a == REMOVED or b == REMOVED:
            continue
        for edge, state in ((first, a), (second, b)):
            if state == REMAINING:
                supports[edge] -= np.uint32(1)
                if supports[edge] == bound:
                    states[edge] = IN_FRONTIER
                    queue[filled] = edge
                    filled += np.uint64(1)
    return filled


@kernel
def peel_serially(
    queue: Ids,
    done: int,
    filled: int,
    most_waiting: int,
    budget: int,
    bound: int,
    remaining: RemainingRows,
    own: Workspace,
) -> tuple[SupportsInt, SupportsInt]:
    """Remove the edges ``queue[done:filled]`` one by one, and those that follow from it; the queue's new ends.

    Stops when the queue is empty, more than so many are waiting, or the budget of steps is used up.
    """
    low, most = np.uint64(0xFFFFFFFF), np.uint64(FOUND)
    ends, supports, states, firsts, stops, rows = remaining
    marks, stamps, found, _ = own
    at, stop, bound32 = np.uint64(done), np.uint64(filled), np.uint32(bound)
    steps = np.uint64(0)
    marked = low
    while at < stop and stop - at <= np.uint64(most_waiting) and steps < np.uint64(budget):
        edge = np.uint64(queue[at])
        at += np.uint64(1)
        if supports[edge] == np.uint32(0):
            states[edge] = REMOVED
            continue
        vertex, other = ends[edge] >> np.uint64(32), ends[edge] & low
        if stops[vertex] - firsts[vertex] < stops[other] - firsts[other]:
            vertex, other = other, vertex
        long_begin, long_end = firsts[vertex], stops[vertex]
        short = stops[other] - firsts[other]
        searching = short * np.uint64(SEARCH_STEPS) < long_end - long_begin and marked != vertex
        steps += short
        if not searching and marked != vertex:
            stamps[STAMP] += np.uint64(1)
            mark_row(rows, long_begin, long_end, stamps[STAMP], marks)
            marked = vertex
            steps += long_end - long_begin
        position = firsts[other]
        while position < stops[other]:
            piece = min(position + most, stops[other])
            if searching:
                count = list_searched(rows, position, piece, long_begin, long_end, found)
            else:
                count = list_marked(rows, position, piece, stamps[STAMP], marks, found)
            stop = go_through_serially(found, count, bound32, supports, states, queue, stop)
            position = piece
        states[edge] = REMOVED
    return at, stop
