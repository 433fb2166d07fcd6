"""igraph's graphs ⇄ edges: vertex order and isolated vertices stay."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import InputError
from wedgewise.graph import EdgeList, Origin
from wedgewise.interop.libraries import library
from wedgewise.interop.values import Weights, aligned_columns, label_column, weights_of_pairs
from wedgewise.labels import TextLabels
from wedgewise.read.limits import MAX_LABEL

if TYPE_CHECKING:
    from wedgewise.user_graph import Graph

NAME = "<igraph>"


def edges_from_igraph(graph: Any, weights: Any = None) -> EdgeList:
    """Read the edges of an ``igraph.Graph``; `weights` is an edge attribute's name, or one number per edge."""
    count = graph.ecount()
    ends = np.fromiter(chain.from_iterable(graph.get_edgelist()), np.int64, 2 * count)
    return EdgeList(
        ends.reshape(-1, 2),
        Origin(NAME, "igraph"),
        vertices=graph.vcount(),
        names=_names(graph),
        weights=_weights(graph, weights, count),
        undirected=not graph.is_directed(),
    )


def to_igraph(graph: Graph, **columns: Any) -> Any:
    """Make an ``igraph.Graph`` with the same vertex numbers.

    Parameters
    ----------
    graph : the graph; labels that are not the vertex numbers become the vertex attribute ``name``
    columns : edge attributes by name, each with one entry per row of ``graph.edges``

    Returns
    -------
    igraph.Graph

    Examples
    --------
    >>> import wedgewise as ww
    >>> from wedgewise import interop
    >>> g = interop.to_igraph(ww.Graph([("ada", "bob"), ("bob", "cy")]), weight=[0.5, 2.0])
    >>> g.vs["name"], g.get_edgelist(), g.es["weight"]
    (['ada', 'bob', 'cy'], [(0, 1), (1, 2)], [0.5, 2.0])
    """
    igraph = library("igraph")
    named = {} if isinstance(graph.labels, range) else {"name": label_column(graph.labels).tolist()}
    attributes = {name: column.tolist() for name, column in aligned_columns(columns, graph.m, "edge").items()}
    edges = list(zip(*graph.edges.T.tolist(), strict=True))
    return igraph.Graph(n=graph.n, edges=edges, vertex_attrs=named, edge_attrs=attributes)


def _names(graph: Any) -> TextLabels | NDArray[np.int64] | None:
    """The attribute ``name`` where it can serve as labels: all strings, or all integers from 0 to 2^63 − 1."""
    if "name" not in graph.vertex_attributes():
        return None
    names: list[Any] = graph.vs["name"]
    kinds = set(map(type, names))
    if kinds == {str}:
        return TextLabels.of(names)
    if kinds == {int} and min(names) >= 0 and max(names) <= MAX_LABEL:
        return np.array(names, np.int64)
    return None


def _weights(graph: Any, weights: Any, count: int) -> Weights | None:
    if not isinstance(weights, str):
        return weights_of_pairs(weights, count, NAME)
    attributes = graph.edge_attributes()
    if weights not in attributes:
        known = ", ".join(map(repr, attributes)) or "none"
        raise InputError(f"{NAME}: no edge attribute {weights!r}; there are: {known}")
    return weights_of_pairs(graph.es[weights], count, NAME)
