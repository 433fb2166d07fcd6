"""The backend's answers against NetworkX's own: values, types, order, exceptions, and what it leaves to NetworkX."""

from __future__ import annotations

import copy
import logging
import pickle
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

import _wedgewise_nx
import wedgewise as ww
from interop.networkx_cases import assert_same, priority, random_graph, sets_of_three, some_nodes
from wedgewise.interop.networkx_backend import BREAK_EVEN_SIZE, ConvertedGraph, backend

FIXTURES = Path(__file__).parents[1] / "fixtures"
SEEDS = range(25)
BY_NODE = (nx.triangles, nx.clustering, nx.generalized_degree)
BY_NODES = ("triangles", "all_triangles", "clustering", "average_clustering", "generalized_degree")
pytestmark = pytest.mark.filterwarnings("ignore:Note. conversions to backend graphs are saved to cache")


def both(function: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
    """The backend's answer and NetworkX's."""
    return function(*args, **kwargs, backend="wedgewise"), function(*args, **kwargs, backend="networkx")


def outcome(function: Any, *args: Any, **kwargs: Any) -> Any:
    """An answer, or the type and the words of the exception."""
    try:
        return function(*args, **kwargs)
    except Exception as error:
        return type(error), str(error)


@pytest.fixture
def conversions(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every graph that is converted during a test."""
    converted: list[Any] = []
    convert = backend.convert_from_nx

    def convert_and_tell(graph: Any, *args: Any, **kwargs: Any) -> Any:
        converted.append(graph)
        return convert(graph, *args, **kwargs)

    monkeypatch.setattr(backend, "convert_from_nx", convert_and_tell)
    return converted


def test_the_facts_name_what_the_backend_has() -> None:
    own = {name for name in dir(backend) if not name.startswith("_")}
    assert own - {"can_run", "should_run", "convert_from_nx", "convert_to_nx"} == set(_wedgewise_nx.FUNCTIONS)
    for name in _wedgewise_nx.FUNCTIONS:
        assert "wedgewise" in getattr(nx, name).backends


def test_importing_networkx_loads_nothing_of_ours() -> None:
    code = (
        "import sys, networkx as nx; assert 'wedgewise' in nx.config.backends;"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "_wedgewise_nx" in loaded
    assert {"wedgewise", "numpy", "numba"}.isdisjoint(loaded)


@pytest.mark.parametrize("seed", SEEDS)
def test_undirected_answers(seed: int) -> None:
    graph = random_graph(seed)
    for function in (*BY_NODE, nx.average_clustering, nx.transitivity):
        assert_same(*both(function, graph))


@pytest.mark.parametrize("seed", SEEDS)
def test_some_nodes_and_single_nodes(seed: int) -> None:
    graph = random_graph(seed)
    asked = some_nodes(graph, seed)
    for function in BY_NODE:
        assert_same(*both(function, graph, asked))
        assert_same(*both(function, graph, asked[0]))
        assert_same(*both(function, graph, nodes=set(asked[:1])))
        ours, theirs = (function(graph, iter(asked), backend=name) for name in ("wedgewise", "networkx"))
        assert_same(ours, theirs)
    assert_same(*both(nx.average_clustering, graph, asked))


@pytest.mark.parametrize("seed", SEEDS)
def test_listed_triangles(seed: int) -> None:
    graph = random_graph(seed)
    ours, theirs = both(nx.all_triangles, graph)
    assert isinstance(ours, Iterator)
    assert sorted(map(repr, ours)) == sorted(map(repr, theirs))
    asked = some_nodes(graph, seed)[:3]
    ours, theirs = map(list, both(nx.all_triangles, graph, asked))
    assert sets_of_three(ours) == sets_of_three(theirs)
    assert Counter(three[0] for three in ours) == Counter(three[0] for three in theirs)


@pytest.mark.parametrize("seed", SEEDS)
def test_directed_clustering(seed: int) -> None:
    graph = random_graph(seed, nx.DiGraph)
    assert_same(*both(nx.clustering, graph))
    assert_same(*both(nx.clustering, graph, some_nodes(graph, seed)))
    assert_same(*both(nx.average_clustering, graph, count_zeros=True))


@pytest.mark.parametrize("make", [nx.Graph, nx.DiGraph])
@pytest.mark.parametrize("weights", ["positive", "signed"])
@pytest.mark.parametrize("seed", SEEDS)
def test_weighted_clustering(make: Any, weights: str, seed: int) -> None:
    graph = random_graph(seed, make, weights=weights)
    with priority():
        ours = nx.clustering(graph, weight="weight"), nx.average_clustering(graph, weight="weight")
    graph.__networkx_cache__.clear()
    for answer, function in zip(ours, (nx.clustering, nx.average_clustering), strict=True):
        assert_same(answer, function(graph, weight="weight", backend="networkx"))
    assert_same(*both(nx.clustering, graph, weight="no such attribute"))


@pytest.mark.compiled
def test_a_real_graph_by_compiled_kernels() -> None:
    graph = nx.Graph(ww.read(FIXTURES / "ca-GrQc.el.xz").edges.tolist())
    for function in (*BY_NODE, nx.average_clustering, nx.transitivity):
        assert_same(*both(function, graph))
    ours, theirs = both(nx.all_triangles, graph)
    assert sets_of_three(ours) == sets_of_three(theirs)


@pytest.mark.compiled
@pytest.mark.parametrize("make", [nx.Graph, nx.DiGraph])
def test_a_larger_weighted_graph_by_compiled_kernels(make: Any) -> None:
    rng = random.Random(1)
    graph = make()
    for _ in range(2500):
        graph.add_edge(rng.randrange(200), rng.randrange(200), weight=rng.uniform(-1, 9))
    for weight in (None, "weight"):
        assert_same(*both(nx.clustering, graph, weight=weight))
        assert_same(*both(nx.average_clustering, graph, weight=weight))


def test_weighted_graphs_without_edges() -> None:
    for graph in (nx.empty_graph(3), nx.empty_graph(3, nx.DiGraph), nx.Graph([(0, 0)])):
        assert_same(*both(nx.clustering, graph, weight="weight"))


def test_zeros_left_out_of_the_average() -> None:
    graph = random_graph(3)
    assert_same(*both(nx.average_clustering, graph, count_zeros=False))
    no_triangle = nx.path_graph(4)
    assert outcome(nx.average_clustering, no_triangle, count_zeros=False, backend="wedgewise")[0] is ZeroDivisionError


@pytest.mark.parametrize("make", [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
@pytest.mark.parametrize("edges", [[], [(0, 1), (1, 2), (2, 0), (0, 1), (2, 2)]])
@pytest.mark.parametrize("nodes", [None, 0, [0, 7], 7, [[0]], "ab", []])
@pytest.mark.parametrize("name", BY_NODES)
def test_every_exception_is_networkx_s(make: Any, edges: list[Any], nodes: Any, name: str) -> None:
    graph = make(edges)

    def ask(backend_name: str) -> Any:
        answer = getattr(nx, name)(graph, nodes, backend=backend_name)
        return sets_of_three(answer) if name == "all_triangles" else answer

    assert outcome(ask, "wedgewise") == outcome(ask, "networkx")


@pytest.mark.parametrize("make", [nx.Graph, nx.MultiGraph, nx.MultiDiGraph])
def test_transitivity_of_odd_graphs(make: Any) -> None:
    for graph in (make(), make([(0, 0)]), make([(0, 1), (1, 2)])):
        if graph.is_directed():
            with priority():
                assert outcome(nx.transitivity, graph) == outcome(nx.transitivity, graph, backend="networkx")
        else:
            expected = outcome(nx.transitivity, graph, backend="networkx")
            assert outcome(nx.transitivity, graph, backend="wedgewise") == expected


def test_the_second_call_converts_nothing(conversions: list[Any]) -> None:
    graph = nx.gnp_random_graph(60, 0.2, seed=1)
    for _ in range(2):
        for function in (*BY_NODE, nx.transitivity, nx.average_clustering):
            function(graph, backend="wedgewise")
    assert len(conversions) == 1
    [converted] = graph.__networkx_cache__["backends"]["wedgewise"].values()
    prepared = converted.graph.preparations
    nx.triangles(graph, backend="wedgewise")
    assert converted.graph.preparations == prepared
    graph.add_edge("new", 0)
    assert "new" in nx.triangles(graph, backend="wedgewise")
    assert len(conversions) == 2


def test_a_weighted_conversion_serves_unweighted_questions(conversions: list[Any]) -> None:
    graph = random_graph(1, weights="positive")
    nx.clustering(graph, weight="weight", backend="wedgewise")
    assert_same(*both(nx.clustering, graph))
    assert len(conversions) == 1


def test_questions_about_single_nodes_compute_once(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = nx.gnp_random_graph(30, 0.3, seed=1)
    expected = nx.triangles(graph)
    asked = [nx.triangles(graph, 0, backend="wedgewise")]
    monkeypatch.setattr("wedgewise.api.triangles", None)
    [converted] = graph.__networkx_cache__["backends"]["wedgewise"].values()
    asked += [backend.triangles(converted, node) for node in range(1, 30)]
    assert asked == list(expected.values())


def test_one_line_turns_it_on(conversions: list[Any]) -> None:
    graph = nx.gnp_random_graph(300, 0.05, seed=2)
    expected = nx.triangles(graph)
    assert conversions == []
    with priority():
        assert nx.triangles(graph) == expected
    assert conversions == [graph]


@pytest.mark.parametrize(
    ("graph", "ask", "reason"),
    [
        (nx.DiGraph([(0, 1)]), ("transitivity", {}), "successors"),
        (nx.Graph([(0, 1)]), ("clustering", {"weight": len}), "function"),
        (nx.complete_graph(5).subgraph([0, 1, 2]), ("triangles", {}), "view"),
        (nx.DiGraph([(0, 1)]).reverse(copy=False), ("clustering", {}), "view"),
    ],
)
def test_reasons_for_not_running(graph: Any, ask: tuple[str, dict[str, Any]], reason: str) -> None:
    name, kwargs = ask
    answer = backend.can_run(name, (graph,), kwargs)
    assert isinstance(answer, str)
    assert reason in answer
    with priority():
        expected = outcome(getattr(nx, name), graph, **kwargs, backend="networkx")
        assert outcome(getattr(nx, name), graph, **kwargs) == expected
    with pytest.raises(NotImplementedError, match="not implemented by 'wedgewise' backend for the given arguments"):
        getattr(nx, name)(graph, **kwargs, backend="wedgewise")


def test_subclasses_run_unless_their_adjacency_is_their_own() -> None:
    class Plain(nx.Graph):  # type: ignore[misc]
        pass

    class Doubled(nx.Graph):  # type: ignore[misc]
        def __getitem__(self, node: Any) -> Any:
            return super().__getitem__(node // 2)

    assert backend.can_run("triangles", (Plain([(0, 1)]),), {}) is True
    assert backend.can_run("triangles", (), {"G": Doubled([(0, 1)])}) == "Doubled has a __getitem__ of its own"


@pytest.mark.parametrize(
    ("loop", "edge", "reason"),
    [
        (0, 0, "largest weight is 0"),
        (1.0, float("nan"), "nan"),
        (1.0, "heavy", "'heavy' of type str"),
        (1.0, None, "None of type NoneType"),
        (1.0, 10**400, "beyond the largest float"),
    ],
)
def test_odd_weights_are_left_to_networkx(loop: Any, edge: Any, reason: str) -> None:
    graph = nx.complete_graph(4)
    nx.set_edge_attributes(graph, edge, "weight")
    graph.add_edge(0, 0, weight=loop)
    with pytest.raises(NotImplementedError, match="wedgewise") as raised:
        nx.clustering(graph, weight="weight", backend="wedgewise")
    assert reason in str(raised.value.__cause__)
    with priority():
        ours = outcome(nx.clustering, graph, weight="weight")
    assert repr(ours) == repr(outcome(nx.clustering, graph, weight="weight", backend="networkx"))


def test_small_graphs_and_few_nodes_are_left_to_networkx(caplog: pytest.LogCaptureFixture) -> None:
    small, large = nx.complete_graph(10), nx.complete_graph(60)
    answer = backend.should_run("triangles", (small,), {})
    assert answer == f"NetworkX answers sooner on 55 nodes and edges; converting pays from {BREAK_EVEN_SIZE}"
    assert backend.should_run("triangles", (large,), {}) is True
    path = nx.path_graph(BREAK_EVEN_SIZE)
    for few in (5, [5, 6], {5}):
        assert "surroundings" in str(backend.should_run("clustering", (path, few), {}))
        assert "surroundings" in str(backend.should_run("all_triangles", (path,), {"nbunch": few}))
    assert backend.should_run("clustering", (path,), {"nodes": iter([5])}) is True
    for far in (0, range(60)):
        assert backend.should_run("clustering", (large, far), {}) is True
    nx.triangles(path, backend="wedgewise")
    assert backend.should_run("clustering", (path, 5), {}) is True
    with priority(), caplog.at_level(logging.DEBUG, logger="networkx"):
        nx.triangles(small)
    assert "converting pays from" in caplog.text


def test_graphs_with_a_conversion_can_be_copied_and_pickled() -> None:
    graph = random_graph(2, nx.DiGraph, weights="positive")
    expected = nx.clustering(graph, weight="weight", backend="wedgewise")
    for again in (copy.deepcopy(graph), pickle.loads(pickle.dumps(graph))):
        [kept] = again.__networkx_cache__["backends"]["wedgewise"].values()
        assert isinstance(kept, ConvertedGraph)
        assert nx.clustering(again, weight="weight", backend="wedgewise") == expected


@pytest.mark.parametrize("make", [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
def test_conversion_and_back(make: Any) -> None:
    graph = random_graph(4, make)
    back = backend.convert_to_nx(backend.convert_from_nx(graph))
    assert type(back) is make
    assert list(back) == list(graph)
    assert set(back.edges()) == set(make(nx.DiGraph(graph) if graph.is_directed() else nx.Graph(graph)).edges())
    assert backend.convert_to_nx({"an answer": 1}) == {"an answer": 1}


def test_weights_come_back_under_their_name() -> None:
    graph = nx.Graph()
    graph.add_edge("a", "b", cost=2)
    graph.add_edge("b", "b")
    back = backend.convert_to_nx(backend.convert_from_nx(graph, edge_attrs={"cost": 1}))
    assert list(back.edges(data=True)) == [("a", "b", {"cost": 2.0}), ("b", "b", {"cost": 1.0})]


def test_a_converted_graph_is_asked_directly() -> None:
    graph = nx.complete_graph(4)
    converted = backend.convert_from_nx(graph)
    assert nx.triangles(converted) == nx.triangles(graph)
    assert (list(converted), len(converted), 3 in converted, [3] in converted) == ([0, 1, 2, 3], 4, True, False)
    with pytest.raises(NotImplementedError):
        nx.clustering(converted, weight="cost")
    with nx.config(fallback_to_nx=True):
        assert nx.diameter(converted) == 1
