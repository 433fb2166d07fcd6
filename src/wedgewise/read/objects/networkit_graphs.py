"""NetworKit's graphs → edges: node ids and isolated nodes stay."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import InputError
from wedgewise.read.objects.foreign import Weights, keeps_values, weights_of_pairs
from wedgewise.stages import EdgeList, Origin

NAME = "<networkit>"
WEIGHTED_EDGE = np.dtype([("source", np.int64), ("target", np.int64), ("weight", np.float64)])


def edges_from_networkit(graph: Any, weights: Any = None) -> EdgeList:
    """Read the edges of a ``networkit.Graph``; ``weights=True`` keeps the weights of a weighted one.

    The vertices are the nodes that are there. Where nodes were removed, the ids of the others are the labels.
    """
    pairs, kept = _pairs(graph, keeps_values(weights, NAME))
    vertices, ids = graph.numberOfNodes(), None
    if vertices != graph.upperNodeIdBound():
        ids = np.fromiter(graph.iterNodes(), np.int64, vertices)
        pairs = np.searchsorted(ids, pairs)
    origin = Origin(NAME, "NetworKit")
    return EdgeList(pairs, origin, vertices=vertices, names=ids, weights=kept, undirected=not graph.isDirected())


def _pairs(graph: Any, weighted: bool) -> tuple[NDArray[np.int64], Weights | None]:
    count = graph.numberOfEdges()
    if not weighted:
        ends = np.fromiter(chain.from_iterable(graph.iterEdges()), np.int64, 2 * count)
        return ends.reshape(-1, 2), None
    if not graph.isWeighted():
        raise InputError(f"{NAME}: the graph is not weighted; leave weights out")
    edges = np.fromiter(graph.iterEdgesWeights(), WEIGHTED_EDGE, count)
    pairs = np.stack((edges["source"], edges["target"]), axis=1)
    return pairs, weights_of_pairs(edges["weight"], count, NAME)
