"""What: intersect the sorted rows of both ends of every arc by merging.

Paper: BBTC (Yaşar et al., TPDS 2021), Algorithms 1 and 2.
Who does what: one task per range of vertices u; every arc u → v merges N+(u) with N+(v).
Input: any oriented graph, rows sorted. Output: triangles and merge steps. Memory: none beyond the graph.
Differs from the authors' code in: the merge advances without branches (a comparison moves either cursor by 0 or 1),
and stops at the end of the shorter row as theirs does.
"""

from __future__ import annotations

import numpy as np

from wedgewise.algorithms._contract import Algorithm, Answer, Counts, Knobs, Pass, Shape, Work
from wedgewise.algorithms._ranges import even_bounds, two_hop_work
from wedgewise.algorithms.cpu._records import Blocks3, Span, first_in, row_at, whole
from wedgewise.machine.jit import helper, kernel
from wedgewise.stages import OrientedGraph


@helper
def count_common(first, second):  # type: ignore[no-untyped-def]
    """Size of the intersection of two sorted stretches, and the comparisons made."""
    a, b = first.begin, second.begin
    common, steps = np.uint64(0), np.uint64(0)
    while a < first.end and b < second.end:
        x, y = first.heads[a], second.heads[b]
        common += np.uint64(x == y)
        a += np.uint64(x <= y)
        b += np.uint64(y <= x)
        steps += np.uint64(1)
    return common, steps


@helper
def merge_row(blocks, a):  # type: ignore[no-untyped-def]
    """Triangles with lowest vertex a, by merging its row with the rows of its out-neighbours."""
    triangles, steps = np.uint64(0), np.uint64(0)
    near, far = row_at(blocks.ij, a), row_at(blocks.ik, a)
    for arc in range(near.begin, near.end):
        common, compared = count_common(far, row_at(blocks.jk, np.uint64(near.heads[arc])))
        triangles += common
        steps += compared
    return triangles, steps


@kernel
def merge_rows(blocks: Blocks3, span: Span) -> Counts:
    """Triangles with their lowest vertex in the span."""
    triangles, steps = np.uint64(0), np.uint64(0)
    for a in range(first_in(span), np.uint64(span.end), np.uint64(span.shares)):
        found, compared = merge_row(blocks, np.uint64(a))
        triangles += found
        steps += compared
    return triangles, steps


def prepare(graph: OrientedGraph, knobs: Knobs, threads: int) -> Work:
    """Nothing to build: cut the vertices into tasks of about equal merge length."""
    blocks = whole(graph)

    def count(begin: int, end: int, _workspace: None) -> Counts:
        return merge_rows(blocks, Span(begin, end))

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
