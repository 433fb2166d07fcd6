"""The edges that may still be in a truss, with supports among themselves, and the choice between two ways to lose some.

Edges are numbered by their ends, ascending, in one of two orders: by degree where degrees differ much, since look-ups
then stay among the hubs; else as the vertices came, since neighbours are then often near each other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._contract import Shape
from wedgewise.errors import LimitError
from wedgewise.execute.local import execute
from wedgewise.graph import Ids, Keys, OrientedGraph
from wedgewise.orient_arrays import count_wedges
from wedgewise.plan import Options, make_plan
from wedgewise.reduce import reduce
from wedgewise.user_graph import Graph

SKEWED = 8  # a largest degree so many times the mean calls for the order by degree
RECOUNT_SHARE = 8  # a triangle taken from two edges costs about what it takes to count so many again
MOST_EDGES = 2**32 - 1


@dataclass(frozen=True, slots=True)
class Core:
    """Edges with their ends ``low << 32 | high`` ascending, numbers in the graph as it was, and supports.

    Ends are below ``vertices``. 16 bytes per edge.
    """

    ends: Keys
    numbers: Ids
    supports: Ids
    vertices: int

    @property
    def m(self) -> int:
        return len(self.ends)

    def kept(self, which: NDArray[np.bool_]) -> Core:
        """Some of the edges, with their supports as they are."""
        return Core(self.ends[which], self.numbers[which], self.supports[which], self.vertices)

    def recounted(self, threads: int) -> Core:
        """The same edges with supports among themselves, and vertices renamed without gaps."""
        tails, heads = (self.ends >> np.uint64(32)).astype(np.uint32), self.ends.astype(np.uint32)
        used = np.zeros(self.vertices, np.bool_)
        used[tails] = used[heads] = True
        names = np.cumsum(used, dtype=np.uint32) - np.uint32(1)
        tails, heads = names[tails], names[heads]
        vertices = int(np.count_nonzero(used))
        offsets = np.zeros(vertices + 1, np.uint64 if self.m >= 1 << 31 else np.uint32)
        np.cumsum(np.bincount(tails, minlength=vertices), out=offsets[1:])
        degrees = np.diff(offsets).astype(np.uint32)
        no_names = np.empty(0, np.uint32)
        graph = OrientedGraph(vertices, offsets, heads, no_names, "id", "rank", count_wedges(degrees))
        ends = tails.astype(np.uint64) << np.uint64(32) | heads
        return Core(ends, self.numbers, arc_supports(graph, threads), vertices)


def arc_supports(graph: OrientedGraph, threads: int) -> Ids:
    """The triangles of every arc."""
    shape = Shape(graph.n, graph.m, graph.wedges)
    plan = make_plan("truss", "edge_support", shape, graph.order, graph.named_by, Options(threads=threads))
    filled = reduce(execute(plan, graph), plan).work.filled
    assert filled is not None
    return filled.astype(np.uint32, copy=False)


@dataclass(frozen=True, slots=True)
class Whole:
    """All edges of a graph as a core, and where each of its edges is among them: None where they are the same."""

    core: Core
    places: NDArray[np.uint32] | NDArray[np.uint64] | None

    @classmethod
    def of(cls, graph: Graph, threads: int) -> Whole:
        """Count the supports of all edges, and choose how to number them."""
        if graph.m > MOST_EDGES:
            raise LimitError(f"{graph.m:,} edges; trusses are found among at most {MOST_EDGES:,}")
        oriented = graph.oriented(threads=threads)
        supports, places = arc_supports(oriented, threads), graph.arcs_of_edges(oriented, threads=threads)
        numbers = np.arange(graph.m, dtype=np.uint32)
        if int(graph.degrees.max(initial=0)) * graph.n <= SKEWED * 2 * graph.m:
            simple = graph.simple
            return cls(Core(simple.slot_keys, numbers, supports[places], simple.slot_count), None)
        ends = np.repeat(np.arange(graph.n, dtype=np.uint64) << np.uint64(32), oriented.out_degrees)
        ends |= oriented.out_neighbours
        return cls(Core(ends, numbers, supports, graph.n), places)

    def by_edge(self, values: NDArray[np.uint32]) -> NDArray[np.int64]:
        """What was found for every number, in the order of the graph's edges."""
        return (values if self.places is None else values[self.places]).astype(np.int64)

    def edges(self, core: Core) -> NDArray[np.int64]:
        """Which of the graph's edges a core holds, ascending."""
        if self.places is None:
            return core.numbers.astype(np.int64)
        held = np.zeros(len(self.places), np.bool_)
        held[core.numbers] = True
        return np.flatnonzero(held[self.places])


def recount_while_cheaper(core: Core, bound: int, threads: int) -> Core:
    """Drop edges with at most `bound` triangles and count again, while that is cheaper than taking their triangles."""
    while True:
        weak = core.supports <= np.uint32(bound)
        lost, total = (int(part.sum(dtype=np.uint64)) for part in (core.supports[weak], core.supports))
        if lost == 0:
            return core.kept(~weak)
        if lost * RECOUNT_SHARE < total:
            return core
        core = core.kept(~weak).recounted(threads)
