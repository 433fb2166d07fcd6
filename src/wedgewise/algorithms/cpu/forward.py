"""What: intersect the sorted rows of both ends of every arc by merging.

Paper: BBTC (Yaşar et al., TPDS 2021), Algorithms 1 and 2.
Who does what: one task per range of vertices u; every arc u → v merges N+(u) with N+(v).
Input: any oriented graph, rows sorted. Output: triangles and merge steps. Memory: none beyond the graph.
Differs from the authors' code in: the merge advances without branches (a comparison moves either cursor by 0 or 1),
and stops at the end of the shorter row as theirs does.
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
def count_common(first, a, a_end, second, b, b_end):  # type: ignore[no-untyped-def]
    """Size of the intersection of the sorted ``first[a:a_end]`` and ``second[b:b_end]``, and the comparisons made."""
    common, steps = np.uint64(0), np.uint64(0)
    while a < a_end and b < b_end:
        x, y = first[a], second[b]
        common += np.uint64(x == y)
        a += np.uint64(x <= y)
        b += np.uint64(y <= x)
        steps += np.uint64(1)
    return common, steps


@helper
def count_merged(offsets, rows, u):  # type: ignore[no-untyped-def]
    """Triangles with lowest vertex u, by merging N+(u) with the rows of its out-neighbours."""
    triangles, steps = np.uint64(0), np.uint64(0)
    begin, end = np.uint64(offsets[u]), np.uint64(offsets[u + np.uint64(1)])
    for arc in range(begin, end):
        v = np.uint64(rows[arc])
        v_begin, v_end = np.uint64(offsets[v]), np.uint64(offsets[v + np.uint64(1)])
        common, compared = count_common(rows, begin, end, rows, v_begin, v_end)
        triangles += common
        steps += compared
    return triangles, steps


@kernel
def count_range(offsets: NDArray[Any], rows: Ids, begin: int, end: int) -> Counts:
    """Triangles with their lowest vertex in [begin, end)."""
    triangles, steps = np.uint64(0), np.uint64(0)
    for u in range(np.uint64(begin), np.uint64(end)):
        found, compared = count_merged(offsets, rows, u)
        triangles += found
        steps += compared
    return triangles, steps


def prepare(graph: OrientedGraph, knobs: Knobs, threads: int) -> Work:
    """Nothing to build: cut the vertices into tasks of about equal merge length."""
    offsets, rows = kernel_view(graph.offsets), kernel_view(graph.out_neighbours)

    def count(begin: int, end: int, _workspace: None) -> Counts:
        return count_range(offsets, rows, begin, end)

    return Work((Pass(even_bounds(two_hop_work(graph)), count),))


def bytes_needed(shape: Shape, threads: int, knobs: Knobs) -> int:
    return 24 * shape.n + 8 * shape.m  # the work estimate


ALGORITHM = Algorithm(
    name="forward",
    device="cpu",
    unit="graph",
    answers={"count": Answer(prepare, bytes_needed)},
    paper="BBTC, Algorithms 1 and 2 (doi:10.1109/TPDS.2021.3093240)",
    summary="Merges the sorted out-neighbours of both ends of every arc.",
)
