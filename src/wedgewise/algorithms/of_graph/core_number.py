"""What: the core number of every vertex: the largest k such that a subgraph of degrees of at least k holds it.

Paper: Matula and Beck (JACM 1983); the peeling is that of the core order.
Who does what: in the core order, arcs go to vertices that are peeled later, so that an out-degree is what was left of
a degree when its turn came. The largest one so far, in that order, is the core number.
Memory: the graph in core order, and 16 bytes per vertex.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._contract import Shape
from wedgewise.algorithms.of_graph import Details, GraphMethod, Job
from wedgewise.errors import VerificationError
from wedgewise.graph import Graph

SECONDS_PER_EDGE = 6e-8


def find(graph: Graph, job: Job) -> NDArray[np.int64]:
    """The core numbers, int64[n]."""
    oriented = graph.oriented("core", threads=job.threads)
    found = np.empty(graph.n, np.int64)
    found[oriented.vertex_of] = np.maximum.accumulate(oriented.out_degrees)
    return found


def bytes_needed(shape: Shape, threads: int, details: Details) -> int:
    return 44 * shape.m + (61 + 4 * threads) * shape.n  # rows of all neighbours while peeling


def seconds(graph: Graph, details: Details) -> float:
    return SECONDS_PER_EDGE * graph.m


def check(graph: Graph, details: Details, found: NDArray[np.int64]) -> str:
    """Peel again, by arrays: all vertices at once that have too few neighbours left."""
    edges, k, expected = graph.edges, 0, np.zeros(graph.n, np.int64)
    while len(edges):
        left = np.bincount(edges.reshape(-1), minlength=graph.n)
        k = max(k, int(left[left > 0].min()))
        expected[left > 0] = k  # again at every level, as long as there are neighbours
        edges = edges[(left > k)[edges].all(axis=1)]
    if not np.array_equal(found, expected):
        vertex = int(np.flatnonzero(found != expected)[0])
        raise VerificationError(
            f"vertex {graph.labels[vertex]!r}: core number {found[vertex]:,}, peeled again {expected[vertex]:,}: "
            "please report this"
        )
    return "peeled again in rounds"


METHOD = GraphMethod("Peels vertices of least degree.", find, bytes_needed, seconds, check)
