"""The backend's k-truss against NetworkX's own: nodes, edges, attributes, order, class, exceptions and what is kept."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import networkx as nx
import numpy as np
import pytest

from interop.networkx_cases import random_graph
from wedgewise.interop.networkx_backend import BREAK_EVEN_SIZE, backend

pytestmark = pytest.mark.filterwarnings("ignore:Note. conversions to backend graphs are saved to cache")
SEEDS = range(25)


class Road(nx.Graph):  # type: ignore[misc]
    """A class of its own that keeps NetworkX's adjacency."""


def decorated(graph: Any) -> Any:
    """The graph without loops, with attributes of every kind on some of its parts."""
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    graph.graph["name"] = ["shared"]
    for place, node in enumerate(graph):
        if place % 3:
            graph.nodes[node].update(place=place, tags=[place])
    for place, (_, _, data) in enumerate(graph.edges(data=True)):
        if place % 4:
            data.update(weight=place + 1, colour=f"c{place}")
    return graph


def assert_same_graph(ours: Any, theirs: Any) -> None:
    """Equal in everything that can be seen, order and class included, and made of nothing that can be changed twice."""
    assert type(ours) is type(theirs)
    assert ours.graph == theirs.graph
    assert list(ours.nodes(data=True)) == list(theirs.nodes(data=True))
    assert list(ours.edges(data=True)) == list(theirs.edges(data=True))
    assert [(u, list(row.items())) for u, row in ours.adjacency()] == [
        (u, list(row.items())) for u, row in theirs.adjacency()
    ]
    assert all(ours[u][v] is ours[v][u] for u, v in ours.edges)


def outcome(*args: Any, **kwargs: Any) -> Any:
    """What `nx.k_truss` raises, or None."""
    try:
        nx.k_truss(*args, **kwargs)
    except Exception as error:
        return type(error), str(error)
    return None


@pytest.mark.parametrize("make", [nx.Graph, Road])
@pytest.mark.parametrize("seed", SEEDS)
def test_trusses_are_networkx_s(make: Any, seed: int) -> None:
    graph = decorated(random_graph(seed, make))
    for k in (-1, 0, 2, 3, 4, 5, 6, 40, np.int64(3)):
        ours = nx.k_truss(graph, k, backend="wedgewise")
        assert_same_graph(ours, nx.k_truss(graph, k, backend="networkx"))


def test_a_named_argument_and_a_graph_without_edges() -> None:
    graph = nx.complete_graph(6)
    assert_same_graph(nx.k_truss(G=graph, k=6, backend="wedgewise"), nx.k_truss(graph, 6, backend="networkx"))
    for empty in (nx.Graph(), nx.empty_graph(4)):
        assert len(nx.k_truss(empty, 2, backend="wedgewise")) == 0


def test_the_truss_can_be_changed_without_the_graph() -> None:
    graph = decorated(nx.complete_graph(5))
    before = copy.deepcopy(graph)
    truss = nx.k_truss(graph, 5, backend="wedgewise")
    for data in (truss.graph, truss.nodes[1], truss[0][1]):
        data["new"] = True
    assert_same_graph(graph, before)
    assert truss.nodes[1]["tags"] is graph.nodes[1]["tags"]  # values are shared, as by NetworkX's copy


@pytest.mark.parametrize("make", [nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
def test_other_kinds_of_graph_are_refused(make: Any) -> None:
    graph = make([(0, 1), (1, 2), (2, 0)])
    assert outcome(graph, 3, backend="wedgewise") == outcome(graph, 3, backend="networkx")
    assert outcome(graph, 3, backend="wedgewise")[0] is nx.NetworkXNotImplemented


def test_loops_are_refused() -> None:
    graph = nx.complete_graph(4)
    graph.add_edge(0, 0)
    assert outcome(graph, 3, backend="wedgewise") == outcome(graph, 3, backend="networkx")
    assert outcome(graph, 3, backend="wedgewise")[0] is nx.NetworkXNotImplemented


class Counted(nx.Graph):  # type: ignore[misc]
    """A class that copies in its own way."""

    def copy(self, as_view: bool = False) -> Any:
        return super().copy(as_view)


@pytest.mark.parametrize(
    ("graph", "k", "reason"),
    [
        (nx.complete_graph(4), 2.5, "k is 2.5; pass an integer"),
        (nx.complete_graph(4), None, "k is None; pass an integer"),
        (nx.complete_graph(5).subgraph([0, 1, 2]), 3, "a view changes with its graph"),
        (Counted([(0, 1)]), 2, "Counted has a copy of its own"),
    ],
)
def test_what_is_left_to_networkx(graph: Any, k: Any, reason: str) -> None:
    assert reason in str(backend.can_run("k_truss", (graph, k), {}))
    assert reason in str(backend.can_run("k_truss", (), {"G": graph, "k": k}))
    with nx.config.backend_priority(generators=["wedgewise"]):
        assert outcome(graph, k) == outcome(graph, k, backend="networkx")


def test_a_priority_turns_it_on(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    found = backend.k_truss

    def tell_and_find(G: Any, k: int) -> Any:
        asked.append(k)
        return found(G, k)

    monkeypatch.setattr(backend, "k_truss", tell_and_find)
    graph = decorated(nx.gnp_random_graph(100, 0.3, seed=1))
    assert graph.number_of_edges() > BREAK_EVEN_SIZE
    expected = nx.k_truss(graph, 4)
    assert asked == []
    with nx.config.backend_priority(generators=["wedgewise"]):
        assert_same_graph(nx.k_truss(graph, 4), expected)
        assert asked == [4]
        nx.k_truss(nx.complete_graph(4), 4)
        assert asked == [4]  # a small one is left to NetworkX


def test_attributes_are_those_of_the_moment() -> None:
    graph = nx.complete_graph(4)
    nx.k_truss(graph, 4, backend="wedgewise")
    graph.nodes[0]["colour"] = "red"  # NetworkX does not notice, and asks the same conversion again
    graph[0][1]["weight"] = 7
    assert len(graph.__networkx_cache__["backends"]["wedgewise"]) == 1
    assert_same_graph(nx.k_truss(graph, 4, backend="wedgewise"), nx.k_truss(graph, 4, backend="networkx"))


@pytest.mark.parametrize("make", [nx.Graph, nx.DiGraph])
def test_a_conversion_with_all_attributes_serves_every_weight(make: Any) -> None:
    graph = nx.complete_graph(5, create_using=make)
    for place, (_, _, data) in enumerate(graph.edges(data=True)):
        data.update(cost=place + 1, odd="text")
    plain, expected = nx.clustering(graph), nx.clustering(graph, weight="cost")
    converted = backend.convert_from_nx(graph, preserve_edge_attrs=True, preserve_node_attrs=True)
    assert nx.clustering(converted) == pytest.approx(plain)
    assert nx.clustering(converted, weight="cost") == pytest.approx(expected)
    assert nx.average_clustering(converted, weight="cost") == pytest.approx(sum(expected.values()) / 5)
    assert nx.clustering(converted, 2, weight="cost") == pytest.approx(expected[2])
    with pytest.raises(NotImplementedError, match="'text' of type str"):
        backend.clustering(converted, weight="odd")


def test_weights_after_a_truss_of_the_same_graph() -> None:
    graph = nx.complete_graph(5)
    for place, (_, _, data) in enumerate(graph.edges(data=True)):
        data["weight"] = place + 1
    nx.k_truss(graph, 3, backend="wedgewise")
    assert nx.clustering(graph, weight="weight", backend="wedgewise") == pytest.approx(
        nx.clustering(graph, weight="weight", backend="networkx")
    )


def test_a_conversion_without_attributes_is_not_cut() -> None:
    converted = backend.convert_from_nx(nx.complete_graph(4))
    with pytest.raises(NotImplementedError):
        nx.k_truss(converted, 3)
    assert backend.can_run("k_truss", (converted, 3), {}) == "the graph was converted without its attributes"


@pytest.mark.parametrize("again", [copy.deepcopy, lambda graph: pickle.loads(pickle.dumps(graph))])
def test_copies_of_a_graph_have_their_own_attributes(again: Any) -> None:
    graph = decorated(nx.complete_graph(5))
    expected = nx.k_truss(graph, 4, backend="wedgewise")
    other = again(graph)
    [kept] = other.__networkx_cache__["backends"]["wedgewise"].values()
    assert kept.source is other
    graph.add_edge(0, 1, colour="changed")
    graph.remove_node(4)
    assert_same_graph(nx.k_truss(other, 4, backend="wedgewise"), expected)


def test_copied_nodes_are_the_nodes_of_the_copy() -> None:
    class Location:
        """Equal to itself alone."""

    graph = nx.complete_graph([Location() for _ in range(4)])
    nx.triangles(graph, backend="wedgewise")
    other = copy.deepcopy(graph)
    assert list(nx.triangles(other, backend="wedgewise")) == list(other)
    assert list(nx.k_truss(other, 4, backend="wedgewise")) == list(other)


def test_a_converted_graph_can_be_pickled_by_itself() -> None:
    graph = decorated(nx.complete_graph(5))
    nx.k_truss(graph, 4, backend="wedgewise")
    [kept] = graph.__networkx_cache__["backends"]["wedgewise"].values()
    assert_same_graph(backend.k_truss(pickle.loads(pickle.dumps(kept)), 4), nx.k_truss(graph, 4, backend="networkx"))
