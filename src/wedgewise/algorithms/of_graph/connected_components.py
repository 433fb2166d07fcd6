"""What: which connected component every vertex is in, numbered by their least vertices; directions are ignored.

Paper: Galler and Fischer (CACM 1964), with paths halved; roots are the least vertices of their trees.
Who does what: one thread joins the ends of edges. Memory: the edges, 4 bytes per vertex for parents, 24 for numbers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._contract import Shape
from wedgewise.algorithms.of_graph import Details, GraphMethod, Job
from wedgewise.algorithms.of_graph._union_find import UnionFind
from wedgewise.errors import VerificationError
from wedgewise.graph import Graph

SECONDS_PER_EDGE = 1e-8


def find(graph: Graph, job: Job) -> NDArray[np.int64]:
    """The components, int64[n]."""
    joining = UnionFind(graph)
    joining.join(np.arange(graph.m, dtype=np.uint64), 0, graph.m)
    return joining.components(alone=True)


def bytes_needed(shape: Shape, threads: int, details: Details) -> int:
    return 16 * shape.m + 40 * shape.n


def seconds(graph: Graph, details: Details) -> float:
    return SECONDS_PER_EDGE * graph.m


def check(graph: Graph, details: Details, found: NDArray[np.int64]) -> str:
    """Every edge is within one component; there are as many as after the least label has spread along all edges."""
    edges, least = graph.edges, np.arange(graph.n)
    while True:
        before = least.copy()
        lower = least[edges].min(axis=1)
        for end in (0, 1):
            np.minimum.at(least, edges[:, end], lower)
        least = least[least]
        if np.array_equal(before, least):
            break
    _, expected = np.unique(least, return_inverse=True)
    if not np.array_equal(found, expected):
        raise VerificationError(f"{graph.origin.name}: components differ from those by labels: please report this")
    return "least labels spread along the edges"


METHOD = GraphMethod("Joins the ends of every edge.", find, bytes_needed, seconds, check)
