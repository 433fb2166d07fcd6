"""What: a complete, boring algorithm to copy: mark the out-neighbours of u, scan those of its out-neighbours.

Paper: none; copy this file under a new name, change ``name`` and ``count_marked``, and the registry, the conformance
suite, the benchmark, the command line and the documentation know the new algorithm.
Who does what: one task per range of vertices u.
Input: any oriented graph. Output: triangles and membership tests. Memory: one byte per vertex and thread.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._contract import Algorithm, Answer, Counts, Knobs, Pass, Shape, Work
from wedgewise.algorithms._ranges import even_bounds, two_hop_work
from wedgewise.stages import OrientedGraph


def prepare(graph: OrientedGraph, knobs: Knobs, threads: int) -> Work:
    """Cut the vertices into tasks; a workspace is an all-false mark array, left all-false by every task."""

    def count(begin: int, end: int, marked: NDArray[np.bool_]) -> Counts:
        return count_marked(graph, begin, end, marked)

    return Work((Pass(even_bounds(two_hop_work(graph)), count, lambda: np.zeros(graph.n, np.bool_)),))


def count_marked(graph: OrientedGraph, begin: int, end: int, marked: NDArray[np.bool_]) -> Counts:
    """Triangles whose lowest vertex lies in [begin, end)."""
    triangles = tests = 0
    for u in range(begin, end):
        row = graph.out_neighbours[graph.offsets[u] : graph.offsets[u + 1]]
        marked[row] = True
        for v in row:
            candidates = graph.out_neighbours[graph.offsets[v] : graph.offsets[v + 1]]
            triangles += int(np.count_nonzero(marked[candidates]))
            tests += len(candidates)
        marked[row] = False
    return triangles, tests


def bytes_needed(shape: Shape, threads: int, knobs: Knobs) -> int:
    return threads * shape.n


ALGORITHM = Algorithm(
    name="example",
    device="cpu",
    unit="graph",
    answers={"count": Answer(prepare, bytes_needed)},
    paper="none; a template to copy",
    summary="Marks the out-neighbours of each vertex and scans those of its out-neighbours, in plain NumPy.",
    compiled=False,
)
