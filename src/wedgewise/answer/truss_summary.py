"""What every k-truss has: edges, vertices and connected components; and which component each vertex is in."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._truss import MIN_K
from wedgewise.algorithms.of_graph._union_find import UnionFind
from wedgewise.answer_types import TrussLevel
from wedgewise.graph import Graph

ORDERED_EDGES, ORDERED_BYTES = 1 << 16, 48  # at a time, and what one of them takes then


def summarise(graph: Graph, numbers: NDArray[np.int64]) -> tuple[TrussLevel, ...]:
    """What the k-truss has for every k from 2 to the largest: from the last one down, edges join components."""
    if not len(numbers):
        return ()
    kmax = int(numbers.max())
    order, counts = _by_descending_number(numbers, kmax)
    joining = UnionFind(graph)
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
    joining = UnionFind(graph)
    joining.join(edges.view(np.uint64), 0, len(edges))
    return joining.components()
