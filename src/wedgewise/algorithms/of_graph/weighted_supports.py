"""What: for every edge, the sum over its triangles of what the third vertex weighs, in several lanes at once.

Paper: ours; pivots on the middle vertex, as the weighing of triangles does. A triangle is a < b < c by rank:

        c        found from b, whose row is marked: every in-arc a → b, the rest of row a behind b
       ↗ ↖       a → b gets what c weighs, a → c what b weighs, b → c what a weighs
      a → b

Who does what: a task per range of middle vertices b. Each thread has sums of its own, since rows a belong to many b;
they are added up by ranges of arcs. Weights are integers, so that the order does not matter.
Memory: the in-neighbours, and 8 bytes per arc and lane for each of up to `MAX_THREADS` threads; more threads would
add up more than they save.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._contract import Counts, Pass, Shape
from wedgewise.algorithms._passes import run_pass
from wedgewise.algorithms._ranges import TASK_ARCS, even_bounds
from wedgewise.algorithms._similarity import LANES, lane_weights, lanes_of
from wedgewise.algorithms.cpu._keystone_in_neighbours import InNeighbours, in_neighbours, in_neighbours_bytes
from wedgewise.algorithms.cpu._keystone_supports import sum_pass
from wedgewise.algorithms.cpu._records import Rows, row_at, rows_of
from wedgewise.algorithms.of_graph import Details, GraphMethod, Job
from wedgewise.algorithms.of_graph._by_sets import check_sums
from wedgewise.graph import Graph
from wedgewise.machine.jit import helper, kernel, kernel_view
from wedgewise.machine.primitives import prefetch
from wedgewise.prepare.orient import first_not_below
from wedgewise.stages import Ids, Keys

MAX_THREADS = 4
ROWS_AHEAD = 4
SECONDS_PER_WEDGE = 4e-9


class Weights(NamedTuple):
    """What vertices weigh: ``of[v * lanes + lane]``."""

    of: Keys
    lanes: np.uint64


class Scratch(NamedTuple):
    """What a thread has: its sums by arc; places of the marked row by id; hits; weights and sums of the marked row."""

    sums: Keys
    marks: Ids
    hits: Keys
    row: Keys


@helper
def collect(heads, begin, end, marks, hits):  # type: ignore[no-untyped-def]
    """How many of ``heads[begin:end]`` are marked; their marks and their arcs go to `hits`, packed."""
    found = np.uint64(0)
    for arc in range(begin, end):
        mark = np.uint64(marks[heads[arc]])
        hits[found] = mark << np.uint64(32) | (arc - begin)
        found += np.uint64(mark != 0)
    return found


@helper
def add_hits(found, arc, of_a, of_b, weights, own):  # type: ignore[no-untyped-def]
    """Add the triangles that the hits close to the arcs a → b, a → c, and to the marked row."""
    low_half, half, one = np.uint64(0xFFFFFFFF), np.uint64(32), np.uint64(1)
    lanes, closed = weights.lanes, np.uint64(len(own.row)) >> one
    for lane in range(lanes):
        from_a, from_b, opened = weights.of[of_a + lane], weights.of[of_b + lane], np.uint64(0)
        for hit in range(found):
            place = ((own.hits[hit] >> half) - one) * lanes + lane
            opened += own.row[place]
            own.row[closed + place] += from_a
            own.sums[(arc + one + (own.hits[hit] & low_half)) * lanes + lane] += from_b
        own.sums[arc * lanes + lane] += opened


@kernel
def weigh_middles(rows: Rows, inward: InNeighbours, weights: Weights, begin: int, end: int, own: Scratch) -> Counts:
    """Add up the triangles with their middle vertex in [begin, end); how many they are, and the tests."""
    one, lanes, triangles, tests = np.uint64(1), weights.lanes, np.uint64(0), np.uint64(0)
    closed = np.uint64(len(own.row)) >> one
    for middle in range(np.uint64(begin), np.uint64(end)):
        b = np.uint64(middle)
        first, stop = np.uint64(inward.offsets[b]), np.uint64(inward.offsets[b + one])
        heads, b_begin, b_end = row_at(rows, b)
        if first == stop or b_begin == b_end:
            continue
        for arc in range(b_begin, b_end):
            place = arc - b_begin
            own.marks[heads[arc]] = place + one
            for lane in range(lanes):
                own.row[place * lanes + lane] = weights.of[np.uint64(heads[arc]) * lanes + lane]
                own.row[closed + place * lanes + lane] = np.uint64(0)
        for position in range(first, stop):
            a = np.uint64(inward.tails[position])
            soon = np.uint64(inward.tails[min(position + np.uint64(ROWS_AHEAD), stop - one)])
            prefetch(heads, np.uint64(rows.offsets[soon + one]) - one)
            a_end = np.uint64(rows.offsets[a + one])
            arc = first_not_below(heads, np.uint64(rows.offsets[a]), a_end, b)
            found = collect(heads, arc + one, a_end, own.marks, own.hits)
            add_hits(found, arc, a * lanes, b * lanes, weights, own)
            triangles += found
            tests += a_end - arc - one
        for arc in range(b_begin, b_end):
            own.marks[heads[arc]] = 0
            for lane in range(lanes):
                own.sums[arc * lanes + lane] += own.row[closed + (arc - b_begin) * lanes + lane]
    return triangles, tests


def find(graph: Graph, job: Job) -> Keys:
    """The sums of every edge, uint64[m, lanes]."""
    lanes, threads = lanes_of(job.details["measure"]), min(job.threads, MAX_THREADS)
    oriented = graph.oriented(threads=threads)
    weights = Weights(kernel_view(lane_weights(graph.degrees, lanes)[oriented.vertex_of]), np.uint64(len(lanes)))
    rows, size = rows_of(oriented), graph.m * len(lanes)
    inward = in_neighbours(rows, graph.n, idle=1, threads=threads)
    longest = int(oriented.out_degrees.max(initial=0))
    by_thread: list[Keys] = []

    def scratch() -> Scratch:
        by_thread.append(np.zeros(size, np.uint64))
        row = np.empty(2 * max(1, longest) * len(lanes), np.uint64)
        return Scratch(by_thread[-1], np.zeros(graph.n, np.uint32), np.empty(longest + 1, np.uint64), row)

    def weigh(begin: int, end: int, own: Scratch) -> Counts:
        return weigh_middles(rows, inward, weights, begin, end, own)

    bounds = even_bounds(np.diff(inward.offsets), TASK_ARCS)
    run_pass(Pass(bounds, weigh, scratch), threads, job.step(len(bounds) - 1))
    sums = by_thread[0] if by_thread else np.zeros(size, np.uint64)
    run_pass(sum_pass(by_thread[1:], sums), threads)
    by_arc: NDArray[Any] = sums.reshape(-1, len(lanes))
    return by_arc if oriented.follows_edges else by_arc[graph.arcs_of_edges(oriented, threads=threads)]


def bytes_needed(shape: Shape, threads: int, details: Details) -> int:
    threads, lanes = min(threads, MAX_THREADS), len(lanes_of(details["measure"]))
    of_thread = 8 * lanes * shape.m + (12 + 16 * lanes) * shape.n
    in_order = (8 * lanes + (8 if shape.m >= 1 << 31 else 4)) * shape.m
    return threads * of_thread + in_neighbours_bytes(shape) + (16 * len(LANES) + 12) * shape.n + 4 * shape.m + in_order


def seconds(graph: Graph, details: Details) -> float:
    from wedgewise.prepare.orient_arrays import expected_wedges

    return float(SECONDS_PER_WEDGE * len(lanes_of(details["measure"])) * (expected_wedges(graph.degrees) + 4 * graph.m))


def check(graph: Graph, details: Details, sums: Keys) -> str:
    return check_sums(graph, graph.edges, lanes_of(details["measure"]), sums)


METHOD = GraphMethod(
    "Adds up what common neighbours of every edge weigh, triangle by triangle.", find, bytes_needed, seconds, check
)
