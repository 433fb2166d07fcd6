"""The edges that may still be in a truss, their triangles counted, and the choice between two ways to remove some."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms import ENGINE, find
from wedgewise.algorithms._passes import run_passes
from wedgewise.errors import VerificationError
from wedgewise.prepare.orient_arrays import count_wedges
from wedgewise.stages import Ids, Keys, OrientedGraph

RECOUNT_SHARE = 8  # a triangle taken from two edges costs about what it takes to count so many again


@dataclass(frozen=True, slots=True)
class CountedEdges:
    """Edges with their ends ``low << 32 | high`` ascending, numbers as arcs of the graph as it was, and supports.

    Ends are below ``vertices``. 16 bytes per edge.
    """

    ends: Keys
    numbers: Ids
    supports: Ids
    vertices: int

    @property
    def m(self) -> int:
        return len(self.ends)

    def kept(self, which: NDArray[np.bool_]) -> CountedEdges:
        """Some of the edges, with their supports as they are."""
        return CountedEdges(self.ends[which], self.numbers[which], self.supports[which], self.vertices)

    def recounted(self, threads: int) -> CountedEdges:
        """The same edges with supports among themselves, and vertices renamed without gaps."""
        tails, heads = (self.ends >> np.uint64(32)).astype(np.uint32), self.ends.astype(np.uint32)
        used = np.zeros(self.vertices, np.bool_)
        used[tails] = used[heads] = True
        names = np.cumsum(used, dtype=np.uint32) - np.uint32(1)
        tails, heads = names[tails], names[heads]
        vertices = int(np.count_nonzero(used))
        ends = tails.astype(np.uint64) << np.uint64(32) | heads
        return CountedEdges(ends, self.numbers, supports_among(ends, vertices, threads), vertices)


def supports_among(ends: Keys, vertices: int, threads: int) -> Ids:
    """The triangles of each of some edges, ``low << 32 | high`` ascending, among them."""
    offsets = np.zeros(vertices + 1, np.uint64 if len(ends) >= 1 << 31 else np.uint32)
    np.cumsum(np.bincount((ends >> np.uint64(32)).view(np.int64), minlength=vertices), out=offsets[1:])
    degrees, no_names = np.diff(offsets).astype(np.uint32), np.empty(0, np.uint32)
    graph = OrientedGraph(vertices, offsets, ends.astype(np.uint32), no_names, "id", "rank", count_wedges(degrees))
    return arc_supports(graph, threads)


def arc_supports(graph: OrientedGraph, threads: int) -> Ids:
    """The triangles of every arc."""
    engine = find(ENGINE, "cpu")
    work = engine.on_cpu("edge_support").prepare(graph, engine.settings(None), threads)
    triangles = run_passes(work, threads)
    assert work.filled is not None
    if int(work.filled.sum(dtype=np.uint64)) != 3 * triangles:
        raise VerificationError(f"{ENGINE}: supports do not sum up to three per triangle: please report this")
    return work.filled.astype(np.uint32, copy=False)


def count_edges_of(graph: OrientedGraph, threads: int) -> CountedEdges:
    """All arcs of a graph with ids by rank, numbered as they are, with their supports."""
    ends = np.repeat(np.arange(graph.n, dtype=np.uint64) << np.uint64(32), graph.out_degrees)
    ends |= graph.out_neighbours
    return CountedEdges(ends, np.arange(graph.m, dtype=np.uint32), arc_supports(graph, threads), graph.n)


def is_recount_cheaper(counted: CountedEdges, bound: int) -> bool:
    """Whether to drop the edges with at most `bound` triangles and count again, instead of taking their triangles."""
    weak = counted.supports <= np.uint32(bound)
    lost, total = (int(part.sum(dtype=np.uint64)) for part in (counted.supports[weak], counted.supports))
    return lost > 0 and lost * RECOUNT_SHARE >= total
