"""Graphs of NetworkX, igraph and NetworKit → EdgeList. Vertices are the nodes, in the graph's own order.

Reading a NetworkX graph costs about one walk over its dictionaries: the neighbours of all nodes go through one C-level
iterator into one array. Integer nodes are numbered by a table afterwards; others by one dictionary look-up each.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import InputError
from wedgewise.read.objects.foreign import keeps_values, weights_of_pairs
from wedgewise.read.pieces import interleave
from wedgewise.stages import EdgeList, Origin
from wedgewise.stages.labels import TextLabels, compact_labels
from wedgewise.stages.limits import MAX_LABEL

AdjacencyRows = Collection[Mapping[Any, Any]]
TABLE_SLOTS_PER_ENTRY = 4
NUMBERS = (int, float, np.integer, np.floating)
IGRAPH, NETWORKIT = "<igraph>", "<networkit>"
WEIGHTED_EDGE = np.dtype([("source", np.int64), ("target", np.int64), ("weight", np.float64)])


def edges_from_networkx(graph: Any, weights: Hashable | None = None) -> EdgeList:
    """Read the edges of a NetworkX graph of any class: each once, a directed graph's arcs as they are.

    Parameters
    ----------
    graph : nx.Graph, nx.DiGraph, nx.MultiGraph (parallel edges become one), or a view of one
    weights : name of the edge attribute to keep; edges without it weigh 1, as in NetworkX

    Raises
    ------
    InputError
        When a weight is not a number, `weights` is no name, or a multigraph's weights are asked for.

    Examples
    --------
    >>> import networkx as nx
    >>> edges_from_networkx(nx.Graph([("ada", "bob"), ("bob", "cy")])).pairs.tolist()
    [[0, 1], [1, 2]]
    """
    nodes = list(graph)
    rows = dict(graph.adjacency()).values()
    lengths = np.fromiter(map(len, rows), np.int64, len(nodes))
    labels = _dense_labels(nodes, int(lengths.sum()))
    tails = np.repeat(np.arange(len(nodes), dtype=np.uint32), lengths)
    heads = _heads(nodes, labels, rows, len(tails))
    strengths = None if weights is None else _strengths(graph, rows, weights)
    directed: bool = graph.is_directed()
    if not directed:
        once = tails <= heads
        tails, heads = tails[once], heads[once]
        strengths = None if strengths is None else strengths[once]
    return EdgeList(
        interleave(tails, heads),
        Origin("<networkx>", f"networkx {type(graph).__name__}"),
        vertices=len(nodes),
        names=compact_labels(nodes) if labels is None else None if _in_order(labels) else labels,
        weights=strengths,
        undirected=not directed,
    )


def _dense_labels(nodes: list[Any], entries: int) -> NDArray[np.int64] | None:
    """The nodes as numbers, where they are integers in a range that a table can cover."""
    if not nodes or set(map(type, nodes)) != {int}:
        return None
    try:
        labels = np.array(nodes, np.int64)
    except OverflowError:
        return None
    span = int(labels.max()) - int(labels.min())
    return labels if span <= TABLE_SLOTS_PER_ENTRY * (len(nodes) + entries) else None


def _heads(nodes: list[Any], labels: NDArray[np.int64] | None, rows: AdjacencyRows, count: int) -> NDArray[np.uint32]:
    """The number of every neighbour of every node, row after row."""
    flat = chain.from_iterable(rows)
    if labels is None:
        number_of = dict(zip(nodes, range(len(nodes)), strict=True))
        return np.fromiter(map(number_of.__getitem__, flat), np.uint32, count)
    heads = np.fromiter(flat, np.int64, count)
    if _in_order(labels):
        return heads.astype(np.uint32)
    least = labels.min()
    number_at = np.zeros(int(labels.max() - least) + 1, np.uint32)
    number_at[labels - least] = np.arange(len(labels), dtype=np.uint32)
    numbers: NDArray[np.uint32] = number_at[heads - least]
    return numbers


def _in_order(labels: NDArray[np.int64]) -> bool:
    """Whether the labels are 0 … n − 1 in this order."""
    return bool((labels == np.arange(len(labels))).all())


def _strengths(graph: Any, rows: AdjacencyRows, attribute: Hashable) -> NDArray[np.float64]:
    """The attribute of every entry, row after row; 1 where it is missing."""
    if attribute is True or not isinstance(attribute, Hashable):
        raise InputError("<networkx>: weights of a NetworkX graph are edge attributes; pass the attribute's name")
    if graph.is_multigraph():
        raise InputError("<networkx>: parallel edges have several weights; pass a graph that has one each, nx.Graph(…)")
    values = [data.get(attribute, 1) for row in rows for data in row.values()]
    for kind in set(map(type, values)):
        if not issubclass(kind, NUMBERS):
            found = next(value for value in values if type(value) is kind)
            raise InputError(
                f"<networkx>: an edge's {attribute!r} is {found!r} of type {kind.__name__}; weights are int or float"
            )
    try:
        return np.array(values, np.float64)
    except OverflowError:
        raise InputError(
            f"<networkx>: an edge's {attribute!r} is beyond the largest float; scale the weights"
        ) from None


def edges_from_igraph(graph: Any, weights: Any = None) -> EdgeList:
    """Read the edges of an ``igraph.Graph``; `weights` is an edge attribute's name, or one number per edge.

    The attribute ``name`` of vertices serves as labels where it can: all strings, or all integers from 0 to 2^63 − 1.
    """
    count = graph.ecount()
    ends = np.fromiter(chain.from_iterable(graph.get_edgelist()), np.int64, 2 * count)
    if isinstance(weights, str):
        attributes = graph.edge_attributes()
        if weights not in attributes:
            known = ", ".join(map(repr, attributes)) or "none"
            raise InputError(f"{IGRAPH}: no edge attribute {weights!r}; there are: {known}")
        weights = graph.es[weights]
    texts: list[Any] = graph.vs["name"] if "name" in graph.vertex_attributes() else []
    kinds = set(map(type, texts))
    names: TextLabels | NDArray[np.int64] | None = None
    if kinds == {str}:
        names = TextLabels.of(texts)
    elif kinds == {int} and min(texts) >= 0 and max(texts) <= MAX_LABEL:
        names = np.array(texts, np.int64)
    return EdgeList(
        ends.reshape(-1, 2),
        Origin(IGRAPH, "igraph"),
        vertices=graph.vcount(),
        names=names,
        weights=weights_of_pairs(weights, count, IGRAPH),
        undirected=not graph.is_directed(),
    )


def edges_from_networkit(graph: Any, weights: Any = None) -> EdgeList:
    """Read the edges of a ``networkit.Graph``; ``weights=True`` keeps the weights of a weighted one.

    The vertices are the nodes that are there. Where nodes were removed, the ids of the others are the labels.
    """
    count, kept = graph.numberOfEdges(), None
    if keeps_values(weights, NETWORKIT):
        if not graph.isWeighted():
            raise InputError(f"{NETWORKIT}: the graph is not weighted; leave weights out")
        edges = np.fromiter(graph.iterEdgesWeights(), WEIGHTED_EDGE, count)
        pairs = np.stack((edges["source"], edges["target"]), axis=1)
        kept = weights_of_pairs(edges["weight"], count, NETWORKIT)
    else:
        pairs = np.fromiter(chain.from_iterable(graph.iterEdges()), np.int64, 2 * count).reshape(-1, 2)
    vertices, ids = graph.numberOfNodes(), None
    if vertices != graph.upperNodeIdBound():
        ids = np.fromiter(graph.iterNodes(), np.int64, vertices)
        pairs = np.searchsorted(ids, pairs)
    origin = Origin(NETWORKIT, "NetworKit")
    return EdgeList(pairs, origin, vertices=vertices, names=ids, weights=kept, undirected=not graph.isDirected())
