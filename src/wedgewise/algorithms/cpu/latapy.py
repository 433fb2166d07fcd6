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

import numpy as np

from wedgewise.algorithms._contract import Algorithm, Answer, Counts, Knob, Knobs, Pass, Work
from wedgewise.algorithms._ranges import even_bounds, two_hop_work
from wedgewise.algorithms.cpu._records import Blocks3, row_at, whole
from wedgewise.algorithms.cpu.forward import merge_row
from wedgewise.algorithms.cpu.hashmap import bytes_needed, look_up_row
from wedgewise.machine.jit import kernel
from wedgewise.stages import Ids, OrientedGraph


@kernel
def count_range(blocks: Blocks3, begin: int, end: int, threshold: int, marks: Ids) -> Counts:
    """Triangles with their lowest vertex in [begin, end)."""
    triangles, tests = np.uint64(0), np.uint64(0)
    for a in range(np.uint64(begin), np.uint64(end)):
        row = row_at(blocks.ij, a)
        if row.end - row.begin > np.uint64(threshold):
            found, tested = look_up_row(blocks, a, marks)
        else:
            found, tested = merge_row(blocks, a)
        triangles += found
        tests += tested
    return triangles, tests


def prepare(graph: OrientedGraph, knobs: Knobs, threads: int) -> Work:
    """Nothing to build: cut the vertices into tasks of about equal second-hop length."""
    blocks = whole(graph)
    threshold = int(knobs["threshold"]) or isqrt(graph.m) // 8

    def count(begin: int, end: int, marks: Ids) -> Counts:
        return count_range(blocks, begin, end, threshold, marks)

    return Work((Pass(even_bounds(two_hop_work(graph)), count, lambda: np.zeros(graph.n, np.uint32)),))


ALGORITHM = Algorithm(
    name="latapy",
    device="cpu",
    unit="graph",
    answers={"count": Answer(prepare, bytes_needed)},
    paper="Latapy, doi:10.1016/j.tcs.2008.07.017; BBTC, §3",
    summary="A map for vertices of high out-degree, merging for the others.",
    knobs=(Knob("threshold", 0, "out-degree K above which a vertex takes the map; 0 = sqrt(m) / 8"),),
)
