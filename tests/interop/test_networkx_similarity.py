"""The backend's cores, components and similarities against NetworkX's own: values, types, order, exceptions."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import networkx as nx
import pytest

from interop.networkx_cases import priority, random_graph
from interop.test_networkx_backend import both, outcome
from interop.test_networkx_trusses import assert_same_graph, decorated
from wedgewise.interop.networkx_backend import BREAK_EVEN_CORES, BREAK_EVEN_PAIRS, backend

pytestmark = pytest.mark.filterwarnings("ignore:Note. conversions to backend graphs are saved to cache")
SEEDS = range(25)
CUTS = (nx.k_core, nx.k_shell)
COMPONENTS = (nx.connected_components, nx.number_connected_components)
OF_PAIRS = (nx.jaccard_coefficient, nx.preferential_attachment)
EVERYTHING = (nx.core_number, *CUTS, *COMPONENTS, *OF_PAIRS)
KINDS = (nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph)


def some_pairs(graph: Any, seed: int, count: int = 60) -> list[tuple[Any, Any]]:
    """Pairs of different nodes, adjacent or not, some of them twice."""
    rng = random.Random(seed)
    nodes = list(graph)
    return [tuple(rng.sample(nodes, 2)) for _ in range(count)] if len(nodes) > 1 else []


def in_detail(answer: Any) -> Any:
    """An answer with the types of its numbers and its order."""
    if isinstance(answer, dict):
        return [(node, number, type(number)) for node, number in answer.items()]
    if isinstance(answer, Iterator):
        return [(row, type(row), type(row[-1]) if isinstance(row, tuple) else set) for row in answer]
    return list(answer.nodes()) if isinstance(answer, nx.Graph) else (answer, type(answer))


@pytest.mark.parametrize("seed", SEEDS)
def test_core_numbers_and_what_is_cut_by_them(seed: int) -> None:
    graph = decorated(random_graph(seed))
    ours, theirs = both(nx.core_number, graph)
    assert in_detail(ours) == in_detail(theirs)
    for cut in CUTS:
        assert_same_graph(*both(cut, graph))
        for k in (-1, 0, 1, 2, 2.5, 3, 40):
            assert_same_graph(*both(cut, graph, k))
            assert_same_graph(*both(cut, G=graph, k=k))


@pytest.mark.parametrize("make", [nx.Graph, nx.MultiGraph])
@pytest.mark.parametrize("seed", SEEDS)
def test_components(make: Any, seed: int) -> None:
    graph = random_graph(seed, make)
    graph.remove_edges_from(list(graph.edges)[len(graph) // 2 :])
    for function in COMPONENTS:
        ours, theirs = both(function, graph)
        assert type(ours) is type(theirs)
        assert in_detail(ours) == in_detail(theirs)


@pytest.mark.parametrize("function", OF_PAIRS)
@pytest.mark.parametrize("seed", SEEDS)
def test_pairs(function: Any, seed: int) -> None:
    graph = decorated(random_graph(seed))
    graph.add_nodes_from(["alone", "as well"])
    pairs = [("alone", "as well"), *some_pairs(graph, seed), ("alone", next(iter(graph)))]
    ours, theirs = both(function, graph, pairs)
    assert type(ours) is type(theirs)
    assert in_detail(ours) == in_detail(theirs)
    for few in ([], dict.fromkeys(pairs), [list(pair) for pair in pairs]):
        assert in_detail(function(graph, ebunch=few, backend="wedgewise")) == in_detail(
            function(graph, ebunch=few, backend="networkx")
        )


def test_pairs_added_later_are_not_answered() -> None:
    pairs = [(0, 1)]
    answer = nx.jaccard_coefficient(nx.complete_graph(4), pairs, backend="wedgewise")
    pairs.append((1, 2))
    assert list(answer) == [(0, 1, 0.5)]


@pytest.mark.parametrize("function", OF_PAIRS)
@pytest.mark.parametrize("pairs", [[(0, 7)], [(7, 0)], [(0, [1])], [(0, 1, 2)], [3], ["ab"]])
def test_odd_pairs(function: Any, pairs: Any) -> None:
    graph = nx.complete_graph(4)
    expected = outcome(function, graph, pairs, backend="networkx")
    assert outcome(function, graph, pairs, backend="wedgewise") == expected
    assert issubclass(expected[0], Exception)


@pytest.mark.parametrize("function", EVERYTHING)
@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize("edges", [[], [(0, 1), (1, 2), (2, 0), (1, 0)], [(0, 1), (1, 1)]])
def test_every_kind_of_graph_with_a_priority(function: Any, make: Any, edges: Any) -> None:
    """Loops, directions and parallel edges end in the same answer or exception, whoever gives it."""
    graph = make(edges)
    arguments = ([(0, 1)],) if function in OF_PAIRS and edges else ()

    def ask(**kwargs: Any) -> Any:
        return in_detail(function(graph, *arguments, **kwargs))

    expected = outcome(ask, backend="networkx")
    with nx.config.backend_priority(algos=["wedgewise"], generators=["wedgewise"]):
        assert outcome(ask) == expected


@pytest.mark.parametrize(
    ("name", "graph", "arguments", "reason"),
    [
        ("core_number", nx.DiGraph([(0, 1)]), (), "in each direction"),
        ("k_core", nx.DiGraph([(0, 1)]), (), "in each direction"),
        ("k_shell", nx.path_graph(3), (1, {0: 1, 1: 1, 2: 1}), "the core numbers are given"),
        ("connected_components", nx.path_graph(3).subgraph([0, 1]), (), "a view"),
        ("jaccard_coefficient", nx.path_graph(3), (), "every pair without an edge"),
        ("jaccard_coefficient", nx.path_graph(3), (iter([(0, 2)]),), "reads it once"),
    ],
)
def test_what_cannot_be_taken(name: str, graph: Any, arguments: tuple[Any, ...], reason: str) -> None:
    assert reason in str(backend.can_run(name, (graph, *arguments), {}))
    with pytest.raises(NotImplementedError):
        getattr(nx, name)(graph, *arguments, backend="wedgewise")


@pytest.mark.parametrize("graph", [nx.path_graph(3), nx.Graph([(0, 1), (1, 1)])])
@pytest.mark.parametrize("function", OF_PAIRS)
def test_loops_and_a_node_with_itself_are_left_to_networkx(function: Any, graph: Any) -> None:
    pairs = [(1, 1)] if nx.number_of_selfloops(graph) == 0 else [(0, 1)]
    with pytest.raises(NotImplementedError) as raised:
        function(graph, pairs, backend="wedgewise")
    assert "a node with itself" in str(raised.value.__cause__ or raised.value)


def test_what_is_asked_decides() -> None:
    graph = nx.gnp_random_graph(200, 0.6, seed=1)
    pairs = some_pairs(graph, 1, BREAK_EVEN_PAIRS + 300)
    assert graph.number_of_edges() > 10 * BREAK_EVEN_PAIRS
    assert backend.should_run("core_number", (graph,), {}) is True
    assert f"converting pays from {BREAK_EVEN_CORES}" in str(backend.should_run("k_core", (nx.path_graph(1500),), {}))
    assert "pairs of this graph; 1 are asked" in str(
        backend.should_run("jaccard_coefficient", (graph,), {"ebunch": pairs[:1]})
    )
    assert "walks over the graph once" in str(backend.should_run("connected_components", (graph,), {}))
    middling = pairs[:BREAK_EVEN_PAIRS]
    assert backend.should_run("jaccard_coefficient", (graph, pairs), {}) is True
    assert backend.should_run("jaccard_coefficient", (graph, middling), {}) is not True
    nx.triangles(graph, backend="wedgewise")
    assert backend.should_run("jaccard_coefficient", (graph, middling), {}) is True
    assert "1 are asked" in str(backend.should_run("jaccard_coefficient", (graph, pairs[:1]), {}))
    assert backend.should_run("number_connected_components", (graph,), {}) is True
    assert "multiplies two degrees" in str(backend.should_run("preferential_attachment", (graph, pairs), {}))


def test_one_line_turns_on_what_returns_a_graph_too(monkeypatch: pytest.MonkeyPatch) -> None:
    answered: list[str] = []

    def telling(name: str, answer: Any) -> Any:
        def tell_and_answer(*args: Any, **kwargs: Any) -> Any:
            answered.append(name)
            return answer(*args, **kwargs)

        return tell_and_answer

    for name in ("core_number", "k_core", "k_truss"):
        monkeypatch.setattr(backend, name, telling(name, getattr(backend, name)))
    with priority(), nx.config(backend_priority={"algos": ["wedgewise"], "generators": ["wedgewise"]}):
        graph = nx.gnp_random_graph(120, 0.6, seed=1)
        assert type(graph) is nx.Graph
        nx.core_number(graph)
        nx.k_truss(graph, 4)
        nx.k_core(graph)
    assert answered == ["core_number", "k_truss", "k_core", "core_number"]
