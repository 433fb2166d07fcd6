"""What: mark N+(u) in a map indexed by vertex, then look up all out-neighbours of u's out-neighbours.

Paper: BBTC (Yaşar et al., TPDS 2021), Algorithm 3.
Who does what: one task per range of vertices u; ``mark[v] == u + 1`` says that v is an out-neighbour of u.
Input: any oriented graph. Output: triangles and look-ups. Memory: 4 bytes per vertex and thread.
Differs from the authors' code in: marks are never cleared between vertices, since the next u has another mark.
"""

from __future__ import annotations

import numpy as np

from wedgewise.algorithms._contract import Algorithm, Answer, Counts, Knobs, Pass, Shape, Work
from wedgewise.algorithms._ranges import even_bounds, two_hop_work
from wedgewise.algorithms.cpu._records import Blocks3, Span, first_in, row_at, whole
from wedgewise.machine.jit import helper, kernel
from wedgewise.stages import Ids, OrientedGraph


@helper
def look_up_row(blocks, a, marks):  # type: ignore[no-untyped-def]
    """Triangles with lowest vertex a, by look-ups of every second hop."""
    mark = np.uint32(a + np.uint64(1))
    near, far = row_at(blocks.ij, a), row_at(blocks.ik, a)
    for arc in range(far.begin, far.end):
        marks[far.heads[arc]] = mark
    triangles, tests = np.uint64(0), np.uint64(0)
    for arc in range(near.begin, near.end):
        other = row_at(blocks.jk, np.uint64(near.heads[arc]))
        for second in range(other.begin, other.end):
            triangles += np.uint64(marks[other.heads[second]] == mark)
        tests += other.end - other.begin
    return triangles, tests


@kernel
def look_up_rows(blocks: Blocks3, span: Span, marks: Ids) -> Counts:
    """Triangles with their lowest vertex in the span; no mark is that of a row to come."""
    triangles, tests = np.uint64(0), np.uint64(0)
    for a in range(first_in(span), np.uint64(span.end), np.uint64(span.shares)):
        found, looked_up = look_up_row(blocks, np.uint64(a), marks)
        triangles += found
        tests += looked_up
    return triangles, tests


def prepare(graph: OrientedGraph, knobs: Knobs, threads: int) -> Work:
    """Nothing to build: cut the vertices into tasks of about equal second-hop length."""
    blocks = whole(graph)

    def count(begin: int, end: int, marks: Ids) -> Counts:
        return look_up_rows(blocks, Span(begin, end), marks)

    return Work((Pass(even_bounds(two_hop_work(graph)), count, lambda: np.zeros(graph.n, np.uint32)),))


def bytes_needed(shape: Shape, threads: int, knobs: Knobs) -> int:
    return 4 * threads * shape.n + 24 * shape.n + 8 * shape.m  # marks, and the work estimate


ALGORITHM = Algorithm(
    name="hashmap",
    device="cpu",
    unit="graph",
    answers={"count": Answer(prepare, bytes_needed)},
    paper="BBTC, Algorithm 3 (doi:10.1109/TPDS.2021.3093240)",
    summary="Marks the out-neighbours of each vertex in a map and looks up every second hop.",
)
