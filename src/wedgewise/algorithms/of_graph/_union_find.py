"""Connected components of some edges: a forest over the vertices whose roots are the least of their trees."""

from __future__ import annotations

from typing import SupportsInt

import numpy as np
from numpy.typing import NDArray

from wedgewise.graph import Graph
from wedgewise.machine import jit
from wedgewise.machine.jit import helper, kernel, kernel_view
from wedgewise.stages import Ids

STEP_EDGES = 1 << 19
PYTHON_SECONDS_PER_EDGE = 1e-5

Joined = tuple[SupportsInt, SupportsInt]  # components into others, vertices that are new


@helper
def root_of(parents, vertex):  # type: ignore[no-untyped-def]
    """The least vertex known to be connected, halving the path to it."""
    while parents[vertex] != vertex:
        parents[vertex] = parents[np.uint64(parents[vertex])]
        vertex = np.uint64(parents[vertex])
    return vertex


@kernel
def union_edges(edges: Ids, order: NDArray[np.uint64], begin: int, end: int, parents: Ids) -> Joined:
    """Join the ends of the edges ``order[begin:end]``: how many were joined, and how many vertices are new.

    A vertex without edges so far has itself as parent, with the highest bit set.
    """
    fresh = np.uint32(0x80000000)
    joined, new = np.uint64(0), np.uint64(0)
    for position in range(np.uint64(begin), np.uint64(end)):
        first = order[position] << np.uint64(1)
        u, v = np.uint64(edges[first]), np.uint64(edges[first + np.uint64(1)])
        for vertex in (u, v):
            if parents[vertex] & fresh:
                parents[vertex] ^= fresh
                new += np.uint64(1)
        a, b = root_of(parents, u), root_of(parents, v)
        if a != b:
            parents[max(a, b)] = min(a, b)
            joined += np.uint64(1)
    return joined, new


class UnionFind:
    """A forest over the vertices of a graph whose roots are the least of their trees."""

    def __init__(self, graph: Graph) -> None:
        self.edges = kernel_view(graph.edges)
        pays = jit.pays(PYTHON_SECONDS_PER_EDGE * graph.m, union_edges)
        self.union_edges = union_edges if pays else union_edges.interpreted
        self.parents = np.arange(graph.n, dtype=np.uint32) | np.uint32(0x80000000)

    def join(self, order: NDArray[np.uint64], begin: int, end: int) -> tuple[int, int]:
        joined, new = 0, 0
        for first in range(begin, end, STEP_EDGES):
            step = self.union_edges(self.edges, order, first, min(end, first + STEP_EDGES), self.parents)
            joined, new = joined + int(step[0]), new + int(step[1])
        return joined, new

    def components(self, *, alone: bool = False) -> NDArray[np.int64]:
        """The component of every vertex; one without an edge is a component where these count alone, and else in −1."""
        inside = (self.parents < np.uint32(0x80000000)) | alone
        parents = self.parents & np.uint32(0x7FFFFFFF)
        while True:
            further = parents[parents]
            if np.array_equal(further, parents):
                break
            parents = further
        numbers = np.cumsum(inside & (parents == np.arange(len(parents)))) - 1
        return np.where(inside, numbers[parents], -1)
