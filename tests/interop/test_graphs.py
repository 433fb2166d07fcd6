"""Graphs of igraph and NetworKit, both ways."""

from __future__ import annotations

from typing import Any

import igraph
import networkit
import numpy as np
import pytest

import wedgewise as ww
from interop.messy_pairs import GRAPHS, MessyGraph, edges_of, messy_graph
from wedgewise import interop
from wedgewise.errors import InputError

every_graph = pytest.mark.parametrize("messy", GRAPHS, ids=range(len(GRAPHS)))


def in_igraph(messy: MessyGraph, *, directed: bool = False) -> Any:
    return igraph.Graph(n=messy.n, edges=messy.arcs, directed=directed, edge_attrs={"strength": messy.weights.tolist()})


def in_networkit(messy: MessyGraph, *, directed: bool = False) -> Any:
    ends = tuple(np.ascontiguousarray(messy.pairs.T))
    return networkit.GraphFromCoo((messy.weights, ends), n=messy.n, weighted=True, directed=directed)


MAKERS = pytest.mark.parametrize("make", [in_igraph, in_networkit])


@MAKERS
@every_graph
def test_vertices_keep_their_numbers(make: Any, messy: MessyGraph) -> None:
    graph = ww.Graph(make(messy))
    assert graph.n == messy.n
    assert graph.labels == range(messy.n)
    assert edges_of(graph) == messy.edges


@MAKERS
def test_an_undirected_source_gives_each_edge_once_and_says_so(make: Any) -> None:
    messy = messy_graph(1)
    edges = interop.edges_from(make(messy))
    assert edges.undirected
    assert len(edges.pairs) == len(messy.pairs)


@MAKERS
def test_a_directed_source_gives_its_arcs(make: Any) -> None:
    messy = messy_graph(1)
    edges = interop.edges_from(make(messy, directed=True))
    assert not edges.undirected
    assert sorted(map(tuple, edges.pairs.tolist())) == sorted(messy.arcs)


@pytest.mark.parametrize(("make", "weights"), [(in_igraph, "strength"), (in_networkit, True)])
@pytest.mark.parametrize("directed", [False, True])
def test_weights_go_with_their_edges(make: Any, weights: Any, directed: bool) -> None:
    messy = messy_graph(2)
    edges = interop.edges_from(make(messy, directed=directed), weights)
    assert edges.weights is not None
    assert edges.weights.dtype == np.float64

    def weighted(pairs: Any, values: Any) -> list[Any]:
        ends = pairs if directed else np.sort(pairs, axis=1)
        return sorted((*pair, value) for pair, value in zip(ends.tolist(), values.tolist(), strict=True))

    assert weighted(edges.pairs, edges.weights) == weighted(messy.pairs, messy.weights)


def test_igraph_takes_weights_as_a_list_too() -> None:
    graph = igraph.Graph(n=3, edges=[(0, 1), (1, 2)])
    kept = interop.edges_from(graph, [1, 2]).weights
    assert kept is not None
    assert kept.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        (["ada", "bob", "cy"], ["ada", "bob", "cy"]),
        ([30, 10, 20], [30, 10, 20]),
        (["ada", 7, "cy"], [0, 1, 2]),
        ([5, -1, 3], [0, 1, 2]),
        ([5, 2**63, 3], [0, 1, 2]),
        ([True, False, True], [0, 1, 2]),
    ],
)
def test_names_of_igraph_are_labels_where_they_can_be(names: list[Any], labels: list[Any]) -> None:
    graph = ww.Graph(igraph.Graph(n=3, edges=[(0, 1)], vertex_attrs={"name": names}))
    assert list(graph.labels) == labels
    assert edges_of(graph) == [(0, 1)]


def test_an_empty_igraph_with_names() -> None:
    graph = ww.Graph(igraph.Graph(n=0, vertex_attrs={"name": []}))
    assert (graph.n, graph.m) == (0, 0)


def test_removed_nodes_of_networkit_are_no_vertices() -> None:
    source = in_networkit(messy_graph(3))
    before = [(u, v) for u, v in messy_graph(3).edges if 4 not in (u, v) and 24 not in (u, v)]
    source.removeNode(4)
    source.removeNode(24)
    for weights in (None, True):
        graph = ww.Graph(source, weights=weights)
        assert list(graph.labels) == [v for v in range(25) if v not in (4, 24)]
        assert [(graph.labels[u], graph.labels[v]) for u, v in edges_of(graph)] == before


@every_graph
def test_to_igraph(messy: MessyGraph) -> None:
    graph = ww.Graph(messy.pairs, n=messy.n)
    support = np.arange(graph.m)
    given = interop.to_igraph(graph, support=support, half=support / 2)
    assert not given.is_directed()
    assert given.vcount() == messy.n
    assert given.get_edgelist() == messy.edges
    assert given.es["support"] == support.tolist()
    assert given.es["half"] == (support / 2).tolist()
    assert "name" not in given.vertex_attributes()


@every_graph
def test_to_networkit(messy: MessyGraph) -> None:
    graph = ww.Graph(messy.pairs, n=messy.n)
    given = interop.to_networkit(graph)
    assert (given.numberOfNodes(), given.isWeighted(), given.isDirected()) == (messy.n, False, False)
    assert sorted(given.iterEdges()) == messy.edges
    weighted = interop.to_networkit(graph, values=np.arange(graph.m))
    assert weighted.isWeighted()
    assert sorted(weighted.iterEdgesWeights()) == [(u, v, float(at)) for at, (u, v) in enumerate(messy.edges)]


@pytest.mark.parametrize("labels", [["b", "a", "d"], [30, 10, 2**40]])
def test_labels_come_back_from_igraph(labels: list[Any]) -> None:
    graph = ww.Graph([(labels[0], labels[1]), (labels[1], labels[2])])
    given = interop.to_igraph(graph)
    assert given.vs["name"] == list(graph.labels)
    assert all(type(name) in (str, int) for name in given.vs["name"])
    again = ww.Graph(given)
    assert list(again.labels) == list(graph.labels)
    assert edges_of(again) == edges_of(graph)


def unweighted() -> Any:
    return networkit.GraphFromCoo((np.array([0]), np.array([1])), n=2)


def with_attribute(values: list[Any]) -> Any:
    return igraph.Graph(n=3, edges=[(0, 1), (1, 2)], edge_attrs={"w": values, "x": [1, 2]})


@pytest.mark.parametrize(
    ("source", "weights", "message"),
    [
        (with_attribute([1, 2]), "v", "<igraph>: no edge attribute 'v'; there are: 'w', 'x'"),
        (igraph.Graph(n=2), "v", "<igraph>: no edge attribute 'v'; there are: none"),
        (with_attribute([1, None]), "w", "<igraph>: the weight of row 1 is None of type NoneType; weights are real"),
        (with_attribute([1, "a"]), "w", "<igraph>: weights of dtype <U"),
        (with_attribute([1.0, float("nan")]), "w", "<igraph>: the weight of row 1 is nan; drop such rows"),
        (with_attribute([1, 2]), True, "<igraph>: weights=True where pairs have no values; pass one number per pair"),
        (with_attribute([1, 2]), [1.0], "<igraph>: weights of shape (1,) for 2 pairs; pass one number per pair"),
        (unweighted(), True, "<networkit>: the graph is not weighted; leave weights out"),
        (unweighted(), "weight", "<networkit>: weights are the values that it holds; pass weights=True"),
        (unweighted(), [1.0], "<networkit>: weights are the values that it holds; pass weights=True"),
    ],
)
def test_weights_that_are_refused(source: Any, weights: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        interop.edges_from(source, weights)
    assert str(caught.value).startswith(message)


def test_columns_must_fit() -> None:
    graph = ww.Graph([(0, 1), (1, 2)])
    with pytest.raises(InputError, match=r"support has shape \(3,\); it needs one entry per edge: 2"):
        interop.to_igraph(graph, support=[1, 2, 3])
    with pytest.raises(InputError, match=r"values has shape \(1,\); it needs one entry per edge: 2"):
        interop.to_networkit(graph, values=[1])
    with pytest.raises(InputError, match="values: the weight of row 1 is inf"):
        interop.to_networkit(graph, values=[1, float("inf")])
