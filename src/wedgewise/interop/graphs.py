"""Graph → graphs of NetworkX, igraph and NetworKit."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from wedgewise.graph import Graph
from wedgewise.interop.tables import aligned_columns, edge_values, label_column
from wedgewise.machine.libraries import library
from wedgewise.read.objects.foreign import weights_of_pairs
from wedgewise.stages import EdgeList


def to_networkx(graph: Graph) -> Any:
    """Make a ``networkx.Graph`` whose nodes are the labels.

    Examples
    --------
    >>> import wedgewise as ww
    >>> from wedgewise import interop
    >>> interop.to_networkx(ww.Graph([("ada", "bob"), ("bob", "cy")])).edges
    EdgeView([('ada', 'bob'), ('bob', 'cy')])
    """
    library("networkx")
    edges = EdgeList(graph.edges, graph.origin, vertices=graph.n, undirected=True)
    return networkx_from_edges(edges, label_column(graph.labels).tolist(), multigraph=False, weight=None)


def networkx_from_edges(edge_list: EdgeList, nodes: list[Any], *, multigraph: bool, weight: Hashable | None) -> Any:
    """The NetworkX graph of an edge list: nodes and edges in the same order, weights under the name `weight`."""
    import networkx as nx

    undirected, directed = (nx.MultiGraph, nx.MultiDiGraph) if multigraph else (nx.Graph, nx.DiGraph)
    graph = undirected() if edge_list.undirected else directed()
    graph.add_nodes_from(nodes)
    tails, heads = ([nodes[v] for v in column.tolist()] for column in edge_list.pairs.T)
    if edge_list.weights is None:
        graph.add_edges_from(zip(tails, heads, strict=True))
    else:
        data = ({weight: value} for value in edge_list.weights.tolist())
        graph.add_edges_from(zip(tails, heads, data, strict=True))
    return graph


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
