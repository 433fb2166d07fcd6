"""The NetworkX backend: every function that it offers, with NetworkX's values, types and exceptions."""

from __future__ import annotations

import math
import pickle
import random
from collections import Counter
from collections.abc import Iterator
from inspect import isfunction
from typing import Any

import networkx as nx
import pytest

pytestmark = pytest.mark.filterwarnings("ignore:Note. conversions to backend graphs are saved to cache")

BY_NODES = {"triangles", "all_triangles", "clustering", "average_clustering", "generalized_degree"}
CUTS = {"k_truss", "k_core", "k_shell"}
OF_PAIRS = {"jaccard_coefficient", "preferential_attachment"}
COMPONENTS = {"connected_components", "number_connected_components"}
OFFERED = BY_NODES | CUTS | OF_PAIRS | COMPONENTS | {"transitivity", "core_number"}
LEFT_WHERE_DIRECTED = {"transitivity", "core_number", "k_core", "k_shell"}
BACKENDS = ("wedgewise", "networkx")
BY_NODE = ("triangles", "clustering", "generalized_degree")


def make_graph(kind: Any, seed: int) -> Any:
    """A weighted graph of nodes of several types, with an isolated node; loops where the kind allows triangles so."""
    rng = random.Random(seed)
    nodes = [*range(12), *(f"node {number}" for number in range(12)), (1, 2)]
    rng.shuffle(nodes)
    graph = kind()
    graph.add_nodes_from(nodes, colour="red")
    for _ in range(110):
        u, v = rng.sample(nodes[1:], 2)
        graph.add_edge(u, v, weight=rng.uniform(0.1, 3))
    return graph


def assert_same(ours: Any, theirs: Any) -> None:
    """Equal values in equal order, of Python's own types; a coefficient of zero is a float here."""
    if isinstance(theirs, dict):
        assert type(ours) is type(theirs)
        assert (sorted(ours) if isinstance(theirs, Counter) else list(ours)) == (
            sorted(theirs) if isinstance(theirs, Counter) else list(theirs)
        )
        for key, value in theirs.items():
            assert_same(ours[key], value)
    elif isinstance(ours, float):
        assert math.isclose(ours, theirs, rel_tol=1e-12, abs_tol=1e-12)
    else:
        assert (type(ours), ours) == (type(theirs), theirs)


def both(name: str, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
    function = getattr(nx, name)
    return function(*args, **kwargs, backend="wedgewise"), function(*args, **kwargs, backend="networkx")


def test_what_is_offered() -> None:
    assert "wedgewise" in nx.config.backends
    functions = {name: found for name, found in vars(nx).items() if isfunction(found)}
    assert {name for name, found in functions.items() if "wedgewise" in getattr(found, "backends", ())} == OFFERED


@pytest.mark.parametrize("seed", range(3))
def test_undirected_graphs(seed: int) -> None:
    graph = make_graph(nx.Graph, seed)
    some = list(graph)[3:9]
    for name in BY_NODE:
        assert_same(*both(name, graph))
        assert_same(*both(name, graph, some))
        assert_same(*both(name, graph, some[0]))
    for weight in (None, "weight"):
        assert_same(*both("clustering", graph, weight=weight))
        for count_zeros in (True, False):
            assert_same(*both("average_clustering", graph, weight=weight, count_zeros=count_zeros))
    assert_same(*both("average_clustering", graph, some))
    assert_same(*both("transitivity", graph))
    ours, theirs = both("all_triangles", graph)
    assert isinstance(ours, Iterator)
    found = list(ours)
    assert {type(three) for three in found} == {tuple}
    assert Counter(map(frozenset, found)) == Counter(map(frozenset, theirs))
    ours, theirs = both("all_triangles", graph, some[:2])
    assert Counter(map(frozenset, ours)) == Counter(map(frozenset, theirs))


@pytest.mark.parametrize("k", [0, 2, 3, 4, 9])
def test_trusses_are_graphs(k: int) -> None:
    class Own(nx.Graph):  # type: ignore[misc]
        pass

    for kind in (nx.Graph, Own):
        ours, theirs = both("k_truss", make_graph(kind, 5), k)
        assert type(ours) is kind
        assert list(ours.nodes(data=True)) == list(theirs.nodes(data=True))
        assert {frozenset((u, v)): d for u, v, d in ours.edges(data=True)} == {
            frozenset((u, v)): d for u, v, d in theirs.edges(data=True)
        }


def test_directed_graphs_and_multigraphs() -> None:
    directed, multi = make_graph(nx.DiGraph, 1), make_graph(nx.MultiGraph, 2)
    for weight in (None, "weight"):
        assert_same(*both("clustering", directed, weight=weight))
        assert_same(*both("average_clustering", directed, weight=weight))
    assert_same(*both("triangles", multi))
    ours, theirs = both("all_triangles", multi)
    assert Counter(map(frozenset, ours)) == Counter(map(frozenset, theirs))


def outcome(function: Any, *args: Any, **kwargs: Any) -> Any:
    """An answer, or the type and the words of the exception."""
    try:
        answer = function(*args, **kwargs)
        if isinstance(answer, Iterator):
            return Counter(map(frozenset, answer))
        return list(answer.edges()) if isinstance(answer, nx.Graph) else answer
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
@pytest.mark.parametrize("edges", [[], [(0, 1), (1, 2), (2, 0), (2, 2)]])
def test_exceptions_are_networkx_s(kind: Any, edges: list[Any]) -> None:
    by_nodes: list[Any] = [(), (7,), ([0, 7],), ([],)]
    for name in sorted(OFFERED - OF_PAIRS):
        for arguments in by_nodes if name in BY_NODES else [(3,) if name in CUTS else ()]:
            if name in LEFT_WHERE_DIRECTED and kind().is_directed():
                continue  # which is left to NetworkX
            ours, theirs = (outcome(getattr(nx, name), kind(edges), *arguments, backend=b) for b in BACKENDS)
            assert ours == theirs, (name, arguments)


def test_cores_components_and_pairs() -> None:
    graph = make_graph(nx.Graph, 4)
    assert_same(*both("core_number", graph))
    for name in ("k_core", "k_shell"):
        ours, theirs = both(name, graph)
        assert type(ours) is nx.Graph
        assert list(ours.nodes(data=True)) == list(theirs.nodes(data=True))
        assert list(ours.edges(data=True)) == list(theirs.edges(data=True))
    assert_same(*both("number_connected_components", graph))
    for name, arguments in [
        ("connected_components", ()),
        *((name, ([*graph.edges][:9],)) for name in sorted(OF_PAIRS)),
    ]:
        ours, theirs = both(name, graph, *arguments)
        assert isinstance(ours, Iterator)
        assert list(ours) == list(theirs)


@pytest.mark.parametrize(
    ("name", "graph", "details"),
    [
        ("transitivity", nx.DiGraph([(0, 1)]), {}),
        ("clustering", nx.Graph([(0, 1)]), {"weight": len}),
        ("triangles", nx.complete_graph(5).subgraph([0, 1, 2]), {}),
        ("k_truss", nx.complete_graph(5), {"k": 2.5}),
    ],
)
def test_what_is_left_to_networkx(name: str, graph: Any, details: dict[str, Any]) -> None:
    with pytest.raises(NotImplementedError):
        getattr(nx, name)(graph, **details, backend="wedgewise")
    expected = outcome(getattr(nx, name), graph, **details, backend="networkx")
    with nx.config.backend_priority(algos=["wedgewise"], generators=["wedgewise"]):
        found = outcome(getattr(nx, name), graph, **details)
    assert found == expected


def test_one_line_turns_it_on_and_graphs_keep_their_conversion() -> None:
    graph = nx.gnp_random_graph(300, 0.05, seed=2)
    expected = nx.triangles(graph, backend="networkx")
    with nx.config.backend_priority(algos=["wedgewise"]):
        assert nx.triangles(graph) == expected
    assert "wedgewise" in graph.__networkx_cache__["backends"]
    again = pickle.loads(pickle.dumps(graph))
    assert nx.triangles(again, backend="wedgewise") == expected
    graph.add_edge("new", 0)
    assert nx.triangles(graph, "new", backend="wedgewise") == 0
