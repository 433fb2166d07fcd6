"""What: the obvious count, in array operations: list every wedge, look its closing arc up among all arcs.

Paper: none; the definition.
Who does what: one task per range of vertices a; all pairs (b, c) of N+(a), batch by batch.
Input: any oriented graph. Output: triangles and wedges tested. Memory: 8 bytes per arc and `BATCH_WEDGES` × 40 bytes.
It needs no compiler, so a fresh process answers small graphs with it, and `verify=True` recounts by it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._contract import Algorithm, Counts, Knobs, Shape, Work
from wedgewise.algorithms._ranges import even_bounds
from wedgewise.graph import OrientedGraph

BATCH_WEDGES = 1 << 19


def prepare(graph: OrientedGraph, knobs: Knobs, threads: int) -> Work:
    """Sort the arcs as keys and cut the arcs into batches of wedges."""
    tails = np.repeat(np.arange(graph.n, dtype=np.uint64), graph.out_degrees)
    keys = tails << np.uint64(32) | graph.out_neighbours  # ascending: rows in order, each row sorted
    row_ends = np.repeat(graph.offsets[1:].astype(np.int64), graph.out_degrees)
    wedges_of_arc = row_ends - np.arange(1, graph.m + 1)
    both_directions = graph.named_by != "rank"

    def count(begin: int, end: int, _workspace: None) -> Counts:
        lengths = wedges_of_arc[begin:end]
        wedges = int(lengths.sum())
        first = np.repeat(np.arange(begin, end), lengths)
        second = np.arange(wedges) + np.repeat(np.arange(begin + 1, end + 1) - (np.cumsum(lengths) - lengths), lengths)
        b, c = (graph.out_neighbours[arcs].astype(np.uint64) for arcs in (first, second))
        triangles = _occurring(keys, b << np.uint64(32) | c)
        if both_directions:
            triangles += _occurring(keys, c << np.uint64(32) | b)
        return triangles, wedges

    return Work(even_bounds(wedges_of_arc, BATCH_WEDGES), count, lambda: None)


def _occurring(keys: NDArray[np.uint64], wanted: NDArray[np.uint64]) -> int:
    """How many of `wanted` are among the ascending `keys`."""
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return int(np.count_nonzero(keys[place] == wanted))


def bytes_needed(shape: Shape, threads: int, knobs: Knobs) -> int:
    return 24 * shape.m + threads * 40 * BATCH_WEDGES


ALGORITHM = Algorithm(
    name="reference",
    device="cpu",
    unit="graph",
    answers=("count",),
    paper="the definition",
    summary="Lists every wedge and looks its closing arc up among all arcs, in array operations.",
    prepare=prepare,
    bytes_needed=bytes_needed,
    compiled=False,
)
