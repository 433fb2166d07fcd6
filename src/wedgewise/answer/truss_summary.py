"""What every k-truss has: edges, vertices and connected components; and which component each vertex is in."""

from __future__ import annotations

from typing import SupportsInt

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._truss import MIN_K
from wedgewise.answer_types import TrussLevel
from wedgewise.graph import Graph
from wedgewise.machine import jit
from wedgewise.machine.jit import helper, kernel, kernel_view
from wedgewise.stages import Ids

STEP_EDGES = 1 << 19
ORDERED_EDGES, ORDERED_BYTES = 1 << 16, 48  # at a time, and what one of them takes then
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


def summarise(graph: Graph, numbers: NDArray[np.int64]) -> tuple[TrussLevel, ...]:
    """What the k-truss has for every k from 2 to the largest: from the last one down, edges join components."""
    if not len(numbers):
        return ()
    kmax = int(numbers.max())
    order, counts = _by_descending_number(numbers, kmax)
    joining = _UnionFind(graph)
    levels, before, vertices, components = [], 0, 0, 0
    for k, edges in zip(range(kmax, MIN_K - 1, -1), counts.tolist(), strict=True):
        joined, new = joining.join(order, before, edges)
        vertices, components, before = vertices + new, components + new - joined, edges
        levels.append(TrussLevel(k, edges, vertices, components))
    return tuple(reversed(levels))


def _by_descending_number(numbers: NDArray[np.int64], kmax: int) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Edges by descending number, ties by edge, and for every k from `kmax` down the edges that have no less.

    A distribution in steps: sorting all of them at once would hear no signal for as long as that takes.
    """
    steps = [slice(begin, begin + ORDERED_EDGES) for begin in range(0, len(numbers), ORDERED_EDGES)]
    counts = np.zeros(kmax - MIN_K + 1, np.int64)
    for step in steps:
        counts += np.bincount(kmax - numbers[step], minlength=len(counts))
    ends = np.cumsum(counts)
    order, filled = np.empty(len(numbers), np.uint64), ends - counts
    for step in steps:
        below = kmax - numbers[step]
        found = np.bincount(below, minlength=len(counts))
        by_number = np.argsort(below, kind="stable")
        positions = (filled - np.cumsum(found) + found)[below[by_number]]
        positions += np.arange(len(below))
        order[positions] = by_number + step.start
        filled += found
    return order, ends


def components(graph: Graph, edges: NDArray[np.int64]) -> NDArray[np.int64]:
    """The component of some edges that each vertex is in, numbered by least vertex; −1 where it has none of them."""
    joining = _UnionFind(graph)
    joining.join(edges.view(np.uint64), 0, len(edges))
    return joining.components()


class _UnionFind:
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

    def components(self) -> NDArray[np.int64]:
        inside = self.parents < np.uint32(0x80000000)
        parents = np.where(inside, self.parents, np.arange(len(self.parents), dtype=np.uint32))
        while True:
            further = parents[parents]
            if np.array_equal(further, parents):
                break
            parents = further
        numbers = np.cumsum(inside & (parents == np.arange(len(parents)))) - 1
        return np.where(inside, numbers[parents], -1)
