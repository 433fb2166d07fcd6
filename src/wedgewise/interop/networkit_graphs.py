"""NetworKit's graphs ⇄ edges: node ids and isolated nodes stay."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import InputError
from wedgewise.graph import EdgeList, Origin
from wedgewise.interop.libraries import library
from wedgewise.interop.values import Weights, edge_values, keeps_values, weights_of_pairs

if TYPE_CHECKING:
    from wedgewise.user_graph import Graph

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


def to_networkit(graph: Graph, values: Any = None) -> Any:
    """Make a ``networkit.Graph`` with the same vertex numbers.

    Parameters
    ----------
    graph : the graph; NetworKit has nowhere to keep its labels
    values : weights, one per row of ``graph.edges``; with them the graph is a weighted one

    Returns
    -------
    networkit.Graph

    Examples
    --------
    >>> import wedgewise as ww
    >>> from wedgewise import interop
    >>> g = interop.to_networkit(ww.Graph([(0, 1), (1, 2)], n=4))
    >>> g.numberOfNodes(), list(g.iterEdges())
    (4, [(0, 1), (1, 2)])
    """
    networkit = library("networkit")
    ends = tuple(np.ascontiguousarray(graph.edges.T, np.int64))
    if values is None:
        return networkit.GraphFromCoo(ends, n=graph.n)
    weights = weights_of_pairs(edge_values(values, graph.m), graph.m, "values")
    return networkit.GraphFromCoo((weights, ends), n=graph.n, weighted=True)


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
