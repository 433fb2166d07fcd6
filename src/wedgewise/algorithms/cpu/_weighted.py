"""What: per vertex, the sum over its triangles of the product of three arc strengths, in a fixed order.

Paper: ours; pivots on the middle vertex. A triangle is a < b < c:

        c        arcs a → b open triangles, arcs b → c close them:
       ↗ ↖         opened[a → b] = s_ab · Σ over c of s_ac · s_bc
      a → b        closed[b → c] = s_bc · Σ over a of s_ab · s_ac

Who does what: first one task per range of middle vertices b. It marks N+(b) with places in the row, streams for every
in-arc a → b the rest of row a behind b, and writes `opened` of b's in-arcs and `closed` of b's out-arcs: all of them
are b's alone. Then one task per range of vertices v adds

    t(v) = Σ opened of v's in-arcs (v is the middle) + Σ opened of its out-arcs (lowest) + Σ closed of its in-arcs

Every sum runs in ascending order within one vertex, so that any number of threads gives the same bits.
Input: ids by rank, strengths as uint64 (exact integers) or float64, in the order of the arcs.
Output: the sums by id, triangles, and membership tests: at most one per wedge.
Memory: 24 bytes per arc (in-arcs, opened, closed), 40 per vertex while tasks are cut, then 16; per thread 4 bytes per
vertex and 8 per arc of the longest row.
"""

from __future__ import annotations

from math import isqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._contract import Counts, Knobs, Pass, Shape, Work
from wedgewise.algorithms._ranges import TASK_ARCS, even_bounds
from wedgewise.algorithms.cpu._keystone_in_neighbours import in_neighbours
from wedgewise.algorithms.cpu._records import Rows, row_at, rows_of
from wedgewise.errors import PreconditionError
from wedgewise.machine.jit import helper, kernel, kernel_view
from wedgewise.machine.primitives import prefetch
from wedgewise.prepare.orient import first_not_below
from wedgewise.stages import Ids, Keys, OrientedGraph

ROWS_AHEAD = 4  # how many in-arcs ahead the end of a tail's row is prefetched


class StrongRows(NamedTuple):
    """The out-neighbours of every vertex, and the strength of each arc."""

    rows: Rows
    strengths: NDArray[Any]


class InArcs(NamedTuple):
    """Where each vertex's in-arcs begin, and the tail of each in the low half of a word, ascending per vertex."""

    offsets: NDArray[Any]
    heads: Keys


class Weighed(NamedTuple):
    """What each arc opened and closed."""

    opened: NDArray[Any]
    closed: NDArray[Any]


@helper
def collect_hits(rows, begin, end, marks, hits):  # type: ignore[no-untyped-def]
    """How many of ``rows[begin:end]`` are marked; their marks and distances from `begin` go to `hits`, packed.

    Every id is written and only hits advance, so that there is no branch to mispredict.
    """
    found = np.uint64(0)
    for arc in range(begin, end):
        mark = np.uint64(marks[rows[arc]])
        hits[found] = mark << np.uint64(32) | (arc - begin)
        found += np.uint64(mark != 0)
    return found


@helper
def weigh_middle(graph, in_arcs, b, weighed, marks, hits):  # type: ignore[no-untyped-def]
    """Triangles with middle vertex b, whose row is marked, and tests; notes where each in-arc stands in its row."""
    one, half, low_half = np.uint64(1), np.uint64(32), np.uint64(0xFFFFFFFF)
    (offsets, rows), strengths = graph
    entries, in_begin, in_end = row_at(in_arcs, b)
    row = row_at(graph.rows, b)
    triangles, tests = np.uint64(0), np.uint64(0)
    for entry in range(in_begin, in_end):
        a = entries[entry] & low_half
        soon = entries[min(entry + np.uint64(ROWS_AHEAD), in_end - one)] & low_half
        prefetch(rows, np.uint64(offsets[soon + one]) - one)
        a_begin, a_end = np.uint64(offsets[a]), np.uint64(offsets[a + one])
        arc = first_not_below(rows, a_begin, a_end, b)
        entries[entry] = (arc - a_begin) << half | a
        if row.begin == row.end:
            continue
        found = collect_hits(rows, arc + one, a_end, marks, hits)
        strength, total = strengths[arc], weighed.opened[arc]
        for hit in range(found):
            position = row.begin + (hits[hit] >> half) - one
            other = strengths[arc + one + (hits[hit] & low_half)]
            total += other * strengths[position]
            weighed.closed[position] += strength * other
        weighed.opened[arc] = strength * total
        triangles += found
        tests += a_end - arc - one
    return triangles, tests


@kernel
def weigh_range(
    graph: StrongRows, in_arcs: InArcs, begin: int, end: int, weighed: Weighed, marks: Ids, hits: Keys
) -> Counts:
    """Weigh the triangles with their middle vertex in [begin, end)."""
    triangles, tests = np.uint64(0), np.uint64(0)
    for b in range(np.uint64(begin), np.uint64(end)):
        heads, b_begin, b_end = row_at(graph.rows, np.uint64(b))
        for arc in range(b_begin, b_end):
            marks[heads[arc]] = arc - b_begin + np.uint64(1)
        found, tested = weigh_middle(graph, in_arcs, np.uint64(b), weighed, marks, hits)
        triangles += found
        tests += tested
        for arc in range(b_begin, b_end):
            weighed.closed[arc] = weighed.closed[arc] * graph.strengths[arc]
            marks[heads[arc]] = 0
    return triangles, tests


@kernel
def add_up_range(
    offsets: NDArray[Any], in_arcs: InArcs, weighed: Weighed, begin: int, end: int, sums: NDArray[Any]
) -> None:
    """Add up what the arcs of vertices begin … end − 1 opened and closed."""
    one, half, low_half = np.uint64(1), np.uint64(32), np.uint64(0xFFFFFFFF)
    opened, closed = weighed
    for v in range(np.uint64(begin), np.uint64(end)):
        total = sums[v]
        entries, in_begin, in_end = row_at(in_arcs, np.uint64(v))
        for entry in range(in_begin, in_end):
            packed = entries[entry]
            arc = np.uint64(offsets[packed & low_half]) + (packed >> half)
            total += opened[arc] + closed[arc]
        for arc in range(np.uint64(offsets[v]), np.uint64(offsets[v + one])):
            total += opened[arc]
        sums[v] = total


def prepare(graph: OrientedGraph, knobs: Knobs, threads: int) -> Work:
    """Turn the arcs around, and allocate the sums."""
    if graph.strengths is None or graph.named_by != "rank":
        raise PreconditionError("weighted triangles need an oriented graph with strengths and ids by rank")
    strong = StrongRows(rows_of(graph), kernel_view(graph.strengths))
    inward = in_neighbours(strong.rows, graph.n, idle=0, threads=threads)
    in_arcs, kind = InArcs(inward.offsets, inward.tails.astype(np.uint64)), strong.strengths.dtype
    del inward
    weighed = Weighed(np.zeros(graph.m, kind), np.zeros(graph.m, kind))
    sums = np.zeros(graph.n, kind)
    longest_row = int(graph.out_degrees.max(initial=0))

    def weigh(begin: int, end: int, workspace: tuple[Ids, Keys]) -> Counts:
        return weigh_range(strong, in_arcs, begin, end, weighed, *workspace)

    def workspace() -> tuple[Ids, Keys]:
        return np.zeros(graph.n, np.uint32), np.empty(longest_row, np.uint64)

    def add_up(begin: int, end: int, _workspace: None) -> Counts:
        add_up_range(strong.rows.offsets, in_arcs, weighed, begin, end, sums)
        return 0, 0

    in_degrees = np.diff(in_arcs.offsets)
    weighing = Pass(even_bounds(in_degrees, TASK_ARCS), weigh, workspace)
    adding = Pass(even_bounds(in_degrees + graph.out_degrees, 8 * TASK_ARCS), add_up)
    return Work((weighing, adding), sums)


def bytes_needed(shape: Shape, threads: int, knobs: Knobs) -> int:
    longest_row = shape.n if shape.wedges is None else min(shape.n, isqrt(2 * shape.wedges) + 1)
    return 24 * shape.m + (40 + 4 * threads) * shape.n + 8 * threads * longest_row
