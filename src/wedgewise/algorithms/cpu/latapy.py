"""What: a map for vertices of high out-degree, merging for the others.

Paper: Latapy (TCS 2008) as BBTC (Yaşar et al., TPDS 2021, §3) uses it for its sequential baseline.
Who does what: one task per range of vertices u; u takes the map when its out-degree exceeds `threshold`.
Input: any oriented graph, rows sorted. Output: triangles and comparisons or look-ups. Memory: 4 bytes per vertex and
thread.
Differs from the authors' code in: the threshold is on the out-degree of the oriented graph, which bounds both costs;
``threshold=0`` means the square root of the number of arcs over 8, where the two costs were seen to meet.
"""

from __future__ import annotations

from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._contract import Algorithm, Answer, Counts, Knob, Knobs, Pass, Shape, Work
from wedgewise.algorithms._ranges import even_bounds, two_hop_work
from wedgewise.algorithms.cpu.forward import count_merged
from wedgewise.algorithms.cpu.hashmap import bytes_needed as hashmap_bytes_needed
from wedgewise.algorithms.cpu.hashmap import count_marked
from wedgewise.machine.jit import kernel, kernel_view
from wedgewise.stages import Ids, OrientedGraph


@kernel
def count_range(offsets: NDArray[Any], rows: Ids, begin: int, end: int, threshold: int, marks: Ids) -> Counts:
    """Triangles with their lowest vertex in [begin, end)."""
    triangles, tests = np.uint64(0), np.uint64(0)
    for u in range(np.uint64(begin), np.uint64(end)):
        if np.uint64(offsets[u + np.uint64(1)]) - np.uint64(offsets[u]) > np.uint64(threshold):
            found, tested = count_marked(offsets, rows, u, marks)
        else:
            found, tested = count_merged(offsets, rows, u)
        triangles += found
        tests += tested
    return triangles, tests


def prepare(graph: OrientedGraph, knobs: Knobs, threads: int) -> Work:
    """Nothing to build: cut the vertices into tasks of about equal second-hop length."""
    offsets, rows = kernel_view(graph.offsets), kernel_view(graph.out_neighbours)
    threshold = int(knobs["threshold"]) or isqrt(graph.m) // 8

    def count(begin: int, end: int, marks: Ids) -> Counts:
        return count_range(offsets, rows, begin, end, threshold, marks)

    return Work((Pass(even_bounds(two_hop_work(graph)), count, lambda: np.zeros(graph.n, np.uint32)),))


def bytes_needed(shape: Shape, threads: int, knobs: Knobs) -> int:
    return hashmap_bytes_needed(shape, threads, knobs)


ALGORITHM = Algorithm(
    name="latapy",
    device="cpu",
    unit="graph",
    answers={"count": Answer(prepare, bytes_needed)},
    paper="Latapy, doi:10.1016/j.tcs.2008.07.017; BBTC, §3",
    summary="A map for vertices of high out-degree, merging for the others.",
    knobs=(Knob("threshold", 0, "out-degree K above which a vertex takes the map; 0 = sqrt(m) / 8"),),
)
