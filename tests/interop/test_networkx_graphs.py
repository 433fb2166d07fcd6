"""NetworkX graphs as edge lists: every edge once, nodes in order, by whichever way nodes are numbered."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest

import wedgewise as ww
from interop.networkx_cases import FIVE_KINDS_OF_NODE, random_graph
from wedgewise.errors import InputError
from wedgewise.interop.graphs import networkx_from_edges
from wedgewise.read.objects.graphs import edges_from_networkx


def named_edges(edge_list: Any, nodes: list[Any]) -> list[tuple[Any, Any]]:
    return [(nodes[u], nodes[v]) for u, v in edge_list.pairs.tolist()]


@pytest.mark.parametrize("make", [nx.Graph, nx.DiGraph, nx.MultiGraph])
@pytest.mark.parametrize("seed", range(len(FIVE_KINDS_OF_NODE)))
def test_pairs_are_the_edges(make: Any, seed: int) -> None:
    graph = random_graph(seed, make)
    edge_list = edges_from_networkx(graph)
    nodes = list(graph)
    assert edge_list.vertices == len(nodes)
    assert edge_list.undirected is not graph.is_directed()
    assert list(nodes if edge_list.names is None else edge_list.names) == nodes
    ends = named_edges(edge_list, nodes)
    assert len(set(ends)) == len(ends)
    assert make(ends).adj.keys() <= graph.adj.keys()
    assert nx.utils.edges_equal(set(ends), set(graph.edges()), directed=graph.is_directed())


@pytest.mark.parametrize("nodes", [[2**70, 1, 5], [-(2**63), 2**63 - 1, 0], [True, 2, 3], [1.0, 2, 3], [3, 1, 2]])
def test_any_integer_is_a_node(nodes: list[Any]) -> None:
    graph = nx.cycle_graph(nodes)
    edge_list = edges_from_networkx(graph)
    assert sorted(edge_list.pairs.tolist()) == [[0, 1], [0, 2], [1, 2]]


def test_views_are_read_as_they_look() -> None:
    view = nx.complete_graph(6).subgraph([1, 3, 5])
    assert ww.Graph(edges_from_networkx(view).pairs, n=3).m == 3


def test_equal_nodes_of_another_type_are_the_same_node() -> None:
    graph = nx.Graph([(0, 1), (1, 2)])
    graph.add_edge(2, False)
    graph.add_edge(np.int64(1), 2.0)
    assert edges_from_networkx(graph).pairs.tolist() == [[0, 1], [0, 2], [1, 2]]


def test_graph_takes_a_networkx_graph() -> None:
    graph = ww.Graph(nx.Graph([("ada", "bob"), ("bob", "cy"), ("cy", "ada"), ("cy", "cy")]))
    assert (graph.n, graph.m, graph.cleaned.loops, list(graph.labels)) == (3, 3, 1, ["ada", "bob", "cy"])
    assert ww.count(nx.complete_graph(5)) == 10
    assert list(ww.Graph(nx.path_graph([30, 10, 20])).labels) == [30, 10, 20]


def test_graph_takes_weights_and_directions() -> None:
    source = nx.DiGraph()
    source.add_weighted_edges_from([(0, 1, 2.0), (1, 0, 3.0), (1, 2, 1.0)])
    graph = ww.Graph(source, directed=True, weights="weight")
    assert graph.directed
    assert graph.weights is not None
    assert graph.weights[0].tolist() == [2.0, 3.0]
    assert graph.nbytes > 0


def test_nodes_of_mixed_types_have_a_size() -> None:
    assert ww.Graph(nx.path_graph([("a", 1), 7, "text"])).nbytes > 0


def test_weights_of_parallel_edges_are_refused() -> None:
    with pytest.raises(InputError, match="parallel edges have several weights"):
        edges_from_networkx(nx.MultiGraph([(0, 1)]), "weight")


@pytest.mark.parametrize("weights", [True, [1.0, 2.0], np.ones(2)])
def test_weights_are_named(weights: Any) -> None:
    with pytest.raises(InputError, match="pass the attribute's name"):
        ww.Graph(nx.path_graph(3), weights=weights)


@pytest.mark.parametrize("make", [nx.Graph, nx.DiGraph])
def test_back_to_networkx(make: Any) -> None:
    graph = random_graph(3, make, weights="signed")
    edge_list = edges_from_networkx(graph, "weight")
    back = networkx_from_edges(edge_list, list(graph), multigraph=False, weight="weight")
    for u, v, data in graph.edges(data=True):
        data.setdefault("weight", 1)
        assert back[u][v] == data
    assert list(back) == list(graph)
    assert back.number_of_edges() == graph.number_of_edges()
