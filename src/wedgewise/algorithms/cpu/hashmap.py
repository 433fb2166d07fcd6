"""What: mark N+(u) in a map indexed by vertex, then look up all out-neighbours of u's out-neighbours.

Paper: BBTC (Yaşar et al., TPDS 2021), Algorithm 3.
Who does what: one task per range of vertices u; ``mark[v] == u + 1`` says that v is an out-neighbour of u.
Input: any oriented graph. Output: triangles and look-ups. Memory: 4 bytes per vertex and thread.
Differs from the authors' code in: marks are never cleared between vertices, since the next u has another mark.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._contract import Algorithm, Answer, Counts, Knobs, Pass, Shape, Work
from wedgewise.algorithms._ranges import even_bounds, two_hop_work
from wedgewise.machine.jit import helper, kernel, kernel_view
from wedgewise.stages import Ids, OrientedGraph


@helper
def count_marked(offsets, rows, u, marks):  # type: ignore[no-untyped-def]
    """Triangles with lowest vertex u, by look-ups of every second hop."""
    mark = np.uint32(u + np.uint64(1))
    begin, end = np.uint64(offsets[u]), np.uint64(offsets[u + np.uint64(1)])
    for arc in range(begin, end):
        marks[rows[arc]] = mark
    triangles, tests = np.uint64(0), np.uint64(0)
    for arc in range(begin, end):
        v = np.uint64(rows[arc])
        v_begin, v_end = np.uint64(offsets[v]), np.uint64(offsets[v + np.uint64(1)])
        for second in range(v_begin, v_end):
            triangles += np.uint64(marks[rows[second]] == mark)
        tests += v_end - v_begin
    return triangles, tests


@kernel
def count_range(offsets: NDArray[Any], rows: Ids, begin: int, end: int, marks: Ids) -> Counts:
    """Triangles with their lowest vertex in [begin, end)."""
    triangles, tests = np.uint64(0), np.uint64(0)
    for u in range(np.uint64(begin), np.uint64(end)):
        found, looked_up = count_marked(offsets, rows, u, marks)
        triangles += found
        tests += looked_up
    return triangles, tests


def prepare(graph: OrientedGraph, knobs: Knobs, threads: int) -> Work:
    """Nothing to build: cut the vertices into tasks of about equal second-hop length."""
    offsets, rows = kernel_view(graph.offsets), kernel_view(graph.out_neighbours)

    def count(begin: int, end: int, marks: Ids) -> Counts:
        return count_range(offsets, rows, begin, end, marks)

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
