"""Similarity of pairs, the most similar partners, cores and components: against definitions in plain Python."""

from __future__ import annotations

import importlib
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from math import log, sqrt
from typing import Any

import networkx as nx
import numpy as np
import pytest
from helpers.graphs import DENSE, fixture_pairs

import wedgewise as ww
from wedgewise import generate
from wedgewise.algorithms import of_graph
from wedgewise.algorithms._similarity import LANES, MEASURES, fraction_bits, lane_weights
from wedgewise.algorithms.of_graph import common_neighbors, top_similar, weighted_supports
from wedgewise.machine import jit
from wedgewise.machine.jit import JIT_DISABLED

SEEDS = range(6)
WEIGHTED = ("adamic_adar", "resource_allocation")
pays_always = pytest.mark.parametrize("compiled", [False] if JIT_DISABLED else [False, True])


def random_graph(seed: int) -> nx.Graph:
    """A small graph with isolated vertices, leaves and a hub."""
    graph = nx.gnp_random_graph(40, (0.03, 0.1, 0.4)[seed % 3], seed=seed)
    graph.add_edges_from((0, other) for other in range(1, 38, 2))
    return graph


def held(graph: nx.Graph) -> ww.Graph:
    return ww.Graph(np.array(list(graph.edges), np.int64).reshape(-1, 2), n=len(graph))


def by_definition(graph: nx.Graph, measure: str, u: int, v: int) -> Any:
    """A measure of two nodes, as exactly as Python has it."""
    common = set(graph[u]) & set(graph[v])
    c, du, dv = len(common), graph.degree(u), graph.degree(v)
    if measure == "common_neighbors":
        return c
    if measure == "preferential_attachment":
        return du * dv
    if measure == "adamic_adar":
        return sum(1 / Fraction(log(graph.degree(w))) for w in sorted(common))
    if measure == "resource_allocation":
        return sum(Fraction(1, graph.degree(w)) for w in common)
    if c == 0:
        return 0.0
    if measure == "cosine":
        return sqrt(c * c / (du * dv))
    return {"jaccard": c / (du + dv - c), "overlap": c / min(du, dv), "sorensen": 2 * c / (du + dv)}[measure]


def check_value(found: Any, graph: nx.Graph, measure: str, u: int, v: int) -> None:
    """Exact, or for sums of weights within what is promised of them."""
    expected = by_definition(graph, measure, u, v)
    if measure not in WEIGHTED:
        assert found == expected, (measure, u, v)
        return
    c = len(set(graph[u]) & set(graph[v]))
    bits = fraction_bits(np.array([degree for _, degree in graph.degree]))
    assert abs(Fraction(float(found)) - expected) <= Fraction(c, 2**bits) + abs(expected) * Fraction(1, 2**52)


@pays_always
@pytest.mark.parametrize("seed", SEEDS)
def test_every_measure_of_edges_and_of_pairs(seed: int, compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "pays", lambda *_: compiled)
    graph = random_graph(seed)
    g, pairs = held(graph), list(combinations(graph, 2))
    of_pairs = ww.similarity(g, list(MEASURES), pairs)
    of_edges = ww.similarity(g, list(MEASURES))
    assert list(of_pairs) == list(of_edges) == list(MEASURES)
    for measure in MEASURES:
        assert of_edges[measure].dtype == (np.int64 if MEASURES[measure].counts else np.float64)
        np.testing.assert_array_equal(of_edges[measure], ww.similarity(g, measure))
        for (u, v), found in zip(pairs, of_pairs[measure].tolist(), strict=True):
            check_value(found, graph, measure, u, v)
        where = dict(zip(pairs, of_pairs[measure].tolist(), strict=True))
        assert [where[u, v] for u, v in g.edges.tolist()] == of_edges[measure].tolist()
        turned = ww.similarity(g, measure, [(v, u) for u, v in pairs])
        np.testing.assert_array_equal(turned, of_pairs[measure])


def test_common_neighbours_of_edges_are_their_supports() -> None:
    g = ww.Graph(fixture_pairs(DENSE))
    assert len(ww.run("similarity", g, measure="jaccard").answer) == g.m
    support = ww.edge_support(g)
    np.testing.assert_array_equal(ww.similarity(g, "common_neighbors"), support)
    np.testing.assert_array_equal(ww.similarity(g, ["common_neighbors", "adamic_adar"])["common_neighbors"], support)
    np.testing.assert_array_equal(ww.similarity(g, "common_neighbors", g.edges), support)


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_any_number_of_threads_gives_the_same_bits(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wedgewise.machine.hardware.usable_threads", lambda: 8)
    monkeypatch.setattr(weighted_supports, "TASK_ARCS", 16)
    monkeypatch.setattr(common_neighbors, "TASK_IDS", 64)
    monkeypatch.setattr(top_similar, "TASK_UPDATES", 64)
    stream = generate.kronecker(5 if JIT_DISABLED else 9, seed=3)
    g = ww.Graph(stream.pairs(), n=stream.n)
    for measure in WEIGHTED:
        once = ww.similarity(g, measure, threads=1)
        assert once.tobytes() == ww.similarity(g, measure, threads=threads).tobytes()
        assert once.tobytes() == ww.similarity(g, measure, g.edges, threads=threads).tobytes()
        top, again = (ww.top_similar(g, measure, 3, threads=number) for number in (1, threads))
        assert (top.partners.tobytes(), top.values.tobytes()) == (again.partners.tobytes(), again.values.tobytes())


@pytest.mark.parametrize("largest", [1, 2, 2**14, 2**15 - 1, 2**15, 2**31])
def test_no_sum_of_weights_reaches_64_bits(largest: int) -> None:
    degrees = np.array([1, 2, 3, largest], np.uint32)
    weights = lane_weights(degrees, LANES)
    bits = fraction_bits(degrees)
    assert int(weights.max()) * largest < 2**64
    for degree, (count, adamic_adar, allocation) in zip(degrees.tolist(), weights.tolist(), strict=True):
        assert count == 1
        assert abs(Fraction(allocation, 2**bits) - Fraction(1, degree)) <= Fraction(1, 2 ** (bits + 1))
        expected = 1 / Fraction(log(degree)) if degree > 1 else Fraction(0)
        assert abs(Fraction(adamic_adar, 2**bits) - expected) <= Fraction(1, 2**bits)


def best_by_definition(graph: nx.Graph, measure: str, u: int, k: int, exclude: bool) -> list[int]:
    """The best partners of a node."""
    able = {v for w in graph[u] for v in graph[w]} - {u} - (set(graph[u]) if exclude else set())
    return sorted(able, key=lambda v: (-by_definition(graph, measure, u, v), v))[:k]


@pays_always
@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("exclude", [False, True])
def test_the_best_partners(measure: str, exclude: bool, compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "pays", lambda *_: compiled)
    for seed in SEEDS:
        graph = random_graph(seed)
        g = held(graph)
        for k in (1, 3, 100):
            top = ww.top_similar(g, measure, k, exclude_neighbors=exclude)
            assert len(top) == g.n
            for u, row in enumerate(top):
                values = [value for _, value in row]
                assert values == sorted(values, reverse=True)
                for v, value in row:
                    check_value(value, graph, measure, u, v)
                best = best_by_definition(graph, measure, u, k, exclude)
                assert len(row) == len(best)
                if measure not in WEIGHTED:  # which rounding may put into another order
                    assert [v for v, _ in row] == best


def test_partners_are_those_of_similarity_over_all_pairs() -> None:
    g = held(random_graph(2))
    pairs = np.array([(u, v) for u in range(g.n) for v in range(g.n) if u != v])
    for measure in WEIGHTED:
        values = ww.similarity(g, measure, pairs)
        top = ww.top_similar(g, measure, 4, vertices=[5, 0, 5])
        for row, u in zip(top, (5, 0, 5), strict=True):
            of_u = [
                (-value, v) for (a, v), value in zip(pairs.tolist(), values.tolist(), strict=True) if a == u and value
            ]
            assert [(v, -value) for value, v in sorted(of_u)[:4]] == row


def test_a_bipartite_graph_has_partners_on_one_side() -> None:
    users, items = 12, 9
    graph = nx.bipartite.random_graph(users, items, 0.4, seed=5)
    for u, row in enumerate(ww.top_similar(held(graph), "cosine", 30)):
        assert all((v < users) == (u < users) for v, _ in row)


@pytest.mark.parametrize("seed", SEEDS)
def test_cores_and_components_are_those_of_networkx(seed: int) -> None:
    graph = random_graph(seed)
    graph.add_edges_from([(40, 41), (43, 44), (44, 45), (43, 45)])
    graph = nx.relabel_nodes(
        graph, dict(zip(range(46), np.random.default_rng(seed).permutation(46).tolist(), strict=False))
    )
    graph.add_node(46)
    g = ww.Graph(np.array(list(graph.edges), np.int64), n=47)
    cores = nx.core_number(graph, backend="networkx")
    graph.add_nodes_from(range(47))
    assert ww.core_number(g).tolist() == [cores.get(v, 0) for v in range(47)]
    assert ww.degeneracy(g) == max(cores.values())
    parts = sorted((min(part), part) for part in nx.connected_components(graph))
    expected = {v: number for number, (_, part) in enumerate(parts) for v in part}
    assert ww.connected_components(g).tolist() == [expected[v] for v in range(47)]


@pytest.mark.parametrize("question", ["core_number", "degeneracy"])
def test_cores_are_verified_where_a_vertex_loses_all_neighbours_at_once(question: str) -> None:
    star = ww.Graph([(0, leaf) for leaf in range(1, 6)])
    assert np.all(ww.run(question, star, verify=True).answer == 1)


def test_graphs_without_edges_and_without_vertices() -> None:
    for n in (0, 3):
        g = ww.Graph(np.empty((0, 2), np.int64), n=n)
        assert ww.similarity(g, "adamic_adar").tolist() == ww.similarity(g).tolist() == []
        assert ww.similarity(g, "adamic_adar", []).tolist() == []
        assert [*ww.top_similar(g, "jaccard", 3)] == [[]] * n
        assert ww.core_number(g).tolist() == [0] * n
        assert (ww.degeneracy(g), ww.connected_components(g).tolist()) == (0, list(range(n)))
    assert ww.similarity(ww.Graph([(0, 1)], n=4), ["jaccard", "preferential_attachment"], [(2, 3)]) == {
        "jaccard": 0.0,
        "preferential_attachment": 0,
    }


def test_common_neighbours_by_label() -> None:
    g = ww.Graph([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("b", "d")])
    assert ww.common_neighbors(g, "a", "d") == ["b", "c"]
    assert ww.common_neighbors(np.array([(10, 20), (20, 30)]), 10, 30).tolist() == [20]


VERTEX = [(0, 1), (1, 2), (2, 0), (2, 3)]


@pytest.mark.parametrize(
    ("ask", "error", "words"),
    [
        (lambda g: ww.similarity(g, "jacard"), ww.errors.UnknownNameError, "no measure named 'jacard'"),
        (lambda g: ww.similarity(g, []), ww.errors.InputError, "no measure was named"),
        (lambda g: ww.similarity(g, "jaccard", [(0, 1), (1, 9)]), ww.errors.UnknownLabelError, "row 1: .* label 9"),
        (lambda g: ww.similarity(g, "jaccard", [(0, 1), (2, 2)]), ww.errors.InputError, "pair 1: .*2.* with itself"),
        (lambda g: ww.similarity(g, algorithm="forward", pairs=[(0, 1)]), ww.errors.PreconditionError, "one method"),
        (lambda g: ww.top_similar(g, "jaccard", 0), ww.errors.InputError, "k is at least 1, not 0"),
        (lambda g: ww.run("top_similar", g, k=1.5), ww.errors.InputError, "k"),
        (lambda g: ww.run("top_similar", g, measure=["jaccard", "cosine"]), ww.errors.InputError, "one measure, not 2"),
        (lambda g: ww.run("top_similar", g, start=-1), ww.errors.InputError, "start is -1, but there are 4 vertices"),
        (lambda g: ww.run("top_similar", g, start=9), ww.errors.InputError, "start is 9, but there are 4 vertices"),
        (lambda g: ww.run("top_similar", g, start=2, stop=1), ww.errors.InputError, "stop is 1, before start at 2"),
        (lambda g: ww.run("top_similar", g, stop=1.5), ww.errors.InputError, "stop is an integer, not 1.5"),
        (lambda g: ww.top_similar(g, vertices=[0, 9]), ww.errors.UnknownLabelError, "label 9"),
        (lambda g: ww.common_neighbors(g, 0, 9), ww.errors.UnknownLabelError, "label 9"),
        (lambda g: ww.core_number(g, device="hybrid"), ww.errors.PreconditionError, "does not compute core_number"),
    ],
)
def test_what_makes_no_sense_is_one_clear_error(ask: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        ask(ww.Graph(VERTEX))


@pytest.mark.parametrize(
    ("question", "details"),
    [
        ("similarity", {"measure": ["jaccard", "adamic_adar"]}),
        ("similarity", {"measure": "adamic_adar", "pairs": [(0, 3), (1, 3)]}),
        ("top_similar", {"measure": "adamic_adar", "k": 2}),
        ("top_similar", {"measure": "jaccard", "k": 1, "exclude_neighbors": True}),
        ("core_number", {}),
        ("connected_components", {}),
    ],
)
def test_verify_notices_what_is_wrong(question: str, details: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    assert ww.run(question, VERTEX, verify=True, **details).verified
    computes = ww.explain(question, VERTEX, **details).computes
    module = importlib.import_module(f"wedgewise.algorithms.of_graph.{computes}")
    method = module.METHOD

    def wrong(graph: ww.Graph, job: of_graph.Job) -> Any:
        found = method.find(graph, job)
        if question == "top_similar":
            return found._replace(values=found.values + 1)
        found.reshape(-1)[-1] += 1
        return found

    monkeypatch.setattr(module, "METHOD", replace(method, find=wrong))
    with pytest.raises(ww.errors.VerificationError, match="please report this"):
        ww.run(question, VERTEX, verify=True, **details)


def test_progress_ends_and_memory_is_refused_before_work() -> None:
    seen: list[tuple[str, int, int]] = []
    g = ww.Graph(fixture_pairs(DENSE))
    ww.top_similar(g, "jaccard", 2, progress=lambda *step: seen.append(step))
    stage, done, total = seen[-1]
    assert (stage, done) == ("count", total)
    for question, details in (
        ("top_similar", {"k": 1000}),
        ("similarity", {"measure": "adamic_adar"}),
        ("core_number", {}),
    ):
        need = ww.explain(question, g, **details).bytes_needed
        with pytest.raises(ww.errors.MemoryLimitError, match=f"{question} takes {need:,} bytes"):
            ww.run(question, g, memory_limit=need - 1, **details)
        ww.run(question, g, memory_limit=max(need, 1 << 20), **details)
