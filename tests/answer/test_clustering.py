"""Clustering with directions and weights: NetworkX's answers, by kernels and arrays, same bits on any threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from math import comb, isnan
from typing import Any

import networkx as nx
import numpy as np
import pytest
from numpy.typing import NDArray

import wedgewise as ww
from wedgewise import generate
from wedgewise.algorithms import reference
from wedgewise.algorithms._contract import Shape, Work
from wedgewise.algorithms.cpu import _weighted
from wedgewise.answer import coefficients
from wedgewise.errors import InputError, PreconditionError
from wedgewise.machine.threads import run_tasks
from wedgewise.prepare.attributes import EdgeAttributes, edge_attributes
from wedgewise.prepare.clean import clean
from wedgewise.prepare.orient import arcs_of_edges, orient, relabel
from wedgewise.stages import EdgeList, OrientedGraph, Origin, SimpleGraph

Pairs = NDArray[np.int64]
Weights = NDArray[np.float64]

DRAWS: dict[str, Callable[[np.random.Generator, int], Weights]] = {
    "positive": lambda rng, size: rng.random(size) + 0.01,
    "signed": lambda rng, size: rng.normal(size=size),
    "negative": lambda rng, size: -rng.random(size) - 0.01,
    "with_zeros": lambda rng, size: rng.choice([0.0, 1.0, 2.5, -1.0], size),
    "equal": lambda rng, size: np.full(size, 3.0),
}
WAYS = {"kernel": _weighted.prepare, "arrays": reference.prepare_weighted}


def random_pairs(rng: np.random.Generator, n: int, density: float) -> Pairs:
    """Pairs with loops, copies and reversed copies; with few pairs also isolated vertices and leaves."""
    return rng.integers(0, n, (int(density * n * n), 2))


def attributed(
    pairs: Any,
    n: int | None,
    weights: Any,
    *,
    directed: bool,
    drop_leaves: bool = False,
    names: list[str] | None = None,
) -> tuple[SimpleGraph, EdgeAttributes]:
    given = None if weights is None else np.asarray(weights, np.float64)
    edge_list = EdgeList(np.array(pairs, np.int64).reshape(-1, 2), Origin("<test>", "array"), n, names, weights=given)
    simple = clean(edge_list, 2, drop_leaves=drop_leaves, compiled=False)
    return simple, edge_attributes(edge_list, simple, directed=directed, threads=2)


def run_work(work: Work, threads: int) -> tuple[NDArray[Any], int, int]:
    """What the passes filled, the triangles and the tests."""
    triangles = tests = 0
    for step in work.passes:
        bounds, workspaces = step.bounds.tolist(), [step.workspace() for _ in range(threads)]

        def task(number: int, worker: int, run: Any = step.run, bounds: Any = bounds, own: Any = workspaces) -> Any:
            return run(bounds[number], bounds[number + 1], own[worker])

        for found, tested in run_tasks(task, len(bounds) - 1, threads):
            triangles += int(found)
            tests += int(tested)
    assert work.filled is not None
    return work.filled, triangles, tests


def strong(simple: SimpleGraph, strengths: NDArray[Any], order: str = "degree") -> OrientedGraph:
    """The oriented graph with a strength per arc, given those of the edges."""
    oriented = orient(simple, order, compiled=False)
    by_arc = np.empty_like(strengths)
    by_arc[arcs_of_edges(simple, oriented, compiled=False)] = strengths
    return replace(oriented, strengths=by_arc)


def clustering_of(
    pairs: Any, n: int, weights: Any, *, directed: bool, way: str, undefined: str = "zero", threads: int = 1
) -> NDArray[np.float64]:
    """The coefficients stage by stage; without directions and weights all strengths are 1."""
    simple, carried = attributed(pairs, n, weights, directed=directed)
    if directed or weights is not None:
        strengths = carried.strengths(weighted=weights is not None, threads=threads)
    else:
        strengths = np.ones(simple.m, np.uint64)
    oriented = strong(simple, strengths)
    by_id, _, _ = run_work(WAYS[way](oriented, {}, threads), threads)
    sums = np.empty_like(by_id)
    sums[oriented.vertex_of] = by_id
    if directed:
        return coefficients.directed(sums, *carried.directed_degrees(simple), undefined)
    return coefficients.undirected(sums, simple.degrees, undefined)


def networkx_graph(pairs: Any, n: int, weights: Any, *, directed: bool) -> Any:
    graph = nx.DiGraph() if directed else nx.Graph()
    graph.add_nodes_from(range(n))
    for number, (u, v) in enumerate(np.asarray(pairs).reshape(-1, 2).tolist()):
        graph.add_edge(u, v, weight=1.0 if weights is None else float(weights[number]))
    return graph


def networkx_clustering(pairs: Any, n: int, weights: Any, *, directed: bool) -> NDArray[np.float64]:
    graph = networkx_graph(pairs, n, weights, directed=directed)
    found = nx.clustering(graph, weight=None if weights is None else "weight")
    return np.array([found[v] for v in range(n)], np.float64)


def as_bits(values: NDArray[Any]) -> NDArray[np.uint64]:
    return values.view(np.uint64)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@pytest.mark.parametrize("kind", [None, *DRAWS], ids=str)
def test_coefficients_are_those_of_networkx(kind: str | None, directed: bool, way: str) -> None:
    rng = np.random.default_rng(7)
    for n, density in [(1, 1.0), (2, 1.5), (3, 1.0), (4, 1.0), (7, 0.4), (12, 0.2), (12, 0.7), (25, 0.15), (25, 0.9)]:
        for _ in range(3):
            pairs = random_pairs(rng, n, density)
            weights = None if kind is None else DRAWS[kind](rng, len(pairs))
            if weights is not None and attributed(pairs, n, weights, directed=directed)[1].largest_weight == 0:
                continue
            found = clustering_of(pairs, n, weights, directed=directed, way=way)
            expected = networkx_clustering(pairs, n, weights, directed=directed)
            near_zero = 1e-13 if kind in ("signed", "with_zeros") else 0.0  # terms of both signs cancel
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=near_zero)


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_counts_divide_to_the_bits_of_networkx(directed: bool) -> None:
    pairs = random_pairs(np.random.default_rng(3), 40, 0.3)
    found = clustering_of(pairs, 40, None, directed=directed, way="kernel")
    assert np.array_equal(found, networkx_clustering(pairs, 40, None, directed=directed))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["uint64", "float64"])
def test_any_number_of_threads_gives_the_same_bits(kind: str, way: str) -> None:
    rng = np.random.default_rng(11)
    simple, _ = attributed(generate.kronecker(8, seed=5).pairs(), 256, None, directed=False)
    strengths = rng.integers(1, 3, simple.m).astype(np.uint64) if kind == "uint64" else rng.normal(size=simple.m)
    oriented = strong(simple, strengths)
    alone, triangles, tests = run_work(WAYS[way](oriented, {}, 1), 1)
    assert alone.dtype == kind
    assert triangles == ww.count(generate.kronecker(8, seed=5).pairs())
    assert tests <= oriented.wedges
    for threads in (2, 3, 7):
        together, *counts = run_work(WAYS[way](oriented, {}, threads), threads)
        assert counts == [triangles, tests]
        assert np.array_equal(as_bits(together), as_bits(alone))


@pytest.mark.parametrize("order", ["degree", "core", "id"])
def test_kernel_and_arrays_agree_exactly_on_integers(order: str) -> None:
    rng = np.random.default_rng(2)
    simple, _ = attributed(random_pairs(rng, 90, 0.12), 90, None, directed=False)
    oriented = strong(simple, rng.integers(0, 1000, simple.m).astype(np.uint64), order)
    by_kernel, triangles, _ = run_work(_weighted.prepare(oriented, {}, 2), 2)
    by_arrays, expected, _ = run_work(reference.prepare_weighted(oriented, {}, 2), 2)
    assert triangles == expected > 0
    assert np.array_equal(by_kernel, by_arrays)


@pytest.mark.parametrize(("pairs", "n"), [([], 0), ([], 3), ([(0, 1)], 2), ([(0, 1), (1, 2)], 3)])
def test_graphs_without_triangles(pairs: Any, n: int) -> None:
    simple, _ = attributed(pairs, n, None, directed=False)
    sums, triangles, _ = run_work(_weighted.prepare(strong(simple, np.ones(simple.m)), {}, 1), 1)
    assert (triangles, sums.tolist()) == (0, [0.0] * n)


def test_kernel_refuses_graphs_it_cannot_weigh() -> None:
    simple, _ = attributed([(0, 1), (1, 2), (0, 2)], 3, None, directed=False)
    with pytest.raises(PreconditionError, match="strengths"):
        _weighted.prepare(orient(simple, compiled=False), {}, 1)
    renamed = relabel(orient(simple, compiled=False), "indegree", compiled=False)
    with pytest.raises(PreconditionError, match="by rank"):
        _weighted.prepare(replace(renamed, strengths=np.ones(3)), {}, 1)


def test_memory_model_covers_what_is_held() -> None:
    simple, _ = attributed(generate.complete(40).pairs(), 40, None, directed=False)
    oriented = strong(simple, np.ones(simple.m))
    work = _weighted.prepare(oriented, {}, 3)
    marks, hits = work.passes[0].workspace()
    assert work.filled is not None
    held = 3 * 8 * simple.m + work.filled.nbytes + 3 * (marks.nbytes + hits.nbytes)
    for wedges in (None, oriented.wedges):
        assert held <= _weighted.bytes_needed(Shape(simple.n, simple.m, wedges), 3, {})


@pytest.mark.parametrize("size", [3, 4, 9])
@pytest.mark.parametrize("weight", [None, 0.3, 7.0, -2.0])
def test_cliques_have_coefficient_one(size: int, weight: float | None) -> None:
    both_ways = list(permutations(range(size), 2))
    weights = None if weight is None else np.full(len(both_ways), weight)
    for directed in (False, True):
        found = clustering_of(both_ways, size, weights, directed=directed, way="kernel")
        np.testing.assert_allclose(found, np.ones(size), rtol=1e-15)


def test_a_directed_triangle_is_half_of_what_its_arcs_allow() -> None:
    for pairs in ([(0, 1), (1, 2), (2, 0)], [(0, 1), (1, 2), (0, 2)]):  # a cycle, and a feed-forward loop
        assert clustering_of(pairs, 3, None, directed=True, way="kernel").tolist() == [0.5, 0.5, 0.5]


def test_nan_marks_exactly_the_undefined() -> None:
    triangle_and_more = [(0, 1), (1, 2), (2, 0), (2, 3), (4, 4), (5, 6), (6, 5), (3, 7), (7, 3)]
    undirected = clustering_of(triangle_and_more, 9, None, directed=False, way="arrays", undefined="nan")
    assert np.flatnonzero(np.isnan(undirected)).tolist() == [4, 5, 6, 7, 8]
    directed = clustering_of(triangle_and_more, 9, None, directed=True, way="arrays", undefined="nan")
    # 5 and 6 have two arcs, but to one neighbour; 3 has arcs to two
    assert np.flatnonzero(np.isnan(directed)).tolist() == [4, 5, 6, 7, 8]
    assert directed[3] == 0.0
    zeroed = clustering_of(triangle_and_more, 9, None, directed=True, way="arrays")
    assert np.array_equal(zeroed, np.nan_to_num(directed))


def test_sums_that_cancel_are_plain_zero() -> None:
    found = coefficients.undirected(np.array([-0.0, 0.0]), np.array([2, 2], np.uint32))
    assert not np.signbit(found).any()


def test_large_degrees_do_not_overflow() -> None:
    degrees = np.array([2**31 - 1], np.uint64)
    d = 2**31 - 1
    assert coefficients.undirected(np.array([1]), degrees.astype(np.uint32))[0] == 2 / (d * (d - 1))
    found = coefficients.directed(np.array([1]), 2 * degrees, degrees)[0]
    assert found == pytest.approx(1 / (2 * d * (2 * d - 1) - 2 * d), rel=1e-15)


def test_average_takes_the_coefficients_that_are_numbers() -> None:
    values = np.array([np.nan, 0.0, 0.5, 1.0])
    assert coefficients.average(values) == 0.5
    assert coefficients.average(values, count_zeros=False) == 0.75
    assert coefficients.average(np.zeros(2), count_zeros=False) == 0.0
    assert isnan(coefficients.average(np.empty(0), undefined="nan"))


@pytest.mark.parametrize("count_zeros", [True, False])
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_averages_are_those_of_networkx(directed: bool, count_zeros: bool) -> None:
    rng = np.random.default_rng(5)
    pairs = random_pairs(rng, 30, 0.1)
    weights = rng.random(len(pairs))
    graph = networkx_graph(pairs, 30, weights, directed=directed)
    expected = nx.average_clustering(graph, weight="weight", count_zeros=count_zeros)
    found = clustering_of(pairs, 30, weights, directed=directed, way="kernel")
    assert coefficients.average(found, count_zeros=count_zeros) == pytest.approx(expected, rel=1e-12)


def test_transitivity_is_that_of_networkx() -> None:
    rng = np.random.default_rng(6)
    for density in (0.01, 0.1, 0.5):
        pairs = random_pairs(rng, 30, density)
        graph = networkx_graph(pairs, 30, None, directed=False)
        paths = sum(comb(len(set(graph[v]) - {v}), 2) for v in range(30))
        assert coefficients.transitivity(ww.count(pairs), paths) == nx.transitivity(graph)
    assert coefficients.transitivity(0, 0) == 0.0
    assert isnan(coefficients.transitivity(0, 0, "nan"))


def test_directions_and_weights_align_with_the_edges() -> None:
    pairs = [(2, 0), (0, 1), (1, 2), (2, 1), (1, 1)]
    _, directed = attributed(pairs, 3, [1.0, 2.0, 3.0, 4.0, 9.0], directed=True)
    assert directed.directed
    assert directed.directions is not None
    assert directed.directions.tolist() == [[True, False], [False, True], [True, True]]  # edges 01, 02, 12
    assert directed.weights is not None
    assert directed.weights.tolist() == [[2.0, 0.0], [0.0, 1.0], [3.0, 4.0]]
    _, undirected = attributed(pairs, 3, [1.0, 2.0, 3.0, 4.0, 9.0], directed=False)
    assert undirected.weights is not None
    assert (undirected.directions, undirected.weights.tolist()) == (None, [2.0, 1.0, 4.0])
    assert directed.largest_weight == undirected.largest_weight == 9.0
    assert directed.nbytes == 3 * 2 + 3 * 2 * 8


def test_the_last_of_repeated_pairs_stays_and_the_others_are_forgotten() -> None:
    pairs, weights = [(0, 1), (1, 0), (0, 1), (2, 2), (2, 2)], [8.0, 9.0, 2.0, 7.0, 3.0]
    _, undirected = attributed(pairs, 3, weights, directed=False)
    assert undirected.weights is not None
    assert (undirected.weights.tolist(), undirected.largest_weight) == ([2.0], 3.0)
    _, directed = attributed(pairs, 3, weights, directed=True)
    assert directed.weights is not None
    assert (directed.weights.tolist(), directed.largest_weight) == ([[2.0, 9.0]], 9.0)


def test_an_absent_direction_does_not_count_as_the_largest_weight() -> None:
    _, carried = attributed([(0, 1), (1, 2)], 3, [-4.0, -2.0], directed=True)
    assert carried.largest_weight == -2.0


LABELLED = [(5, 90), (90, 7), (7, 5), (7, 300), (400, 400), (90, 5)]
LABELLED_WEIGHTS = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


@pytest.mark.parametrize("scale", [1, 10**12], ids=["dense_with_gaps", "sparse"])
def test_labels_are_found_whatever_numbers_the_vertices(scale: int) -> None:
    simple, carried = attributed(np.array(LABELLED) * scale, None, LABELLED_WEIGHTS, directed=True)
    labels = np.asarray(simple.labels)[simple.edges()] // scale
    assert labels.tolist() == [[5, 7], [5, 90], [7, 90], [7, 300]]
    assert carried.weights is not None
    assert carried.weights.tolist() == [[0.0, 3.0], [1.0, 6.0], [0.0, 2.0], [4.0, 0.0]]
    assert carried.largest_weight == 6.0
    total, reciprocal = carried.directed_degrees(simple)
    assert (total.tolist(), reciprocal.tolist()) == ([3, 3, 3, 1, 0], [1, 0, 1, 0, 0])


@pytest.mark.parametrize("scale", [1, 10**12], ids=["dense_with_gaps", "sparse"])
def test_dropped_leaves_take_their_weights_along(scale: int) -> None:
    pairs = np.array([*LABELLED, (300, 300)]) * scale
    simple, carried = attributed(
        pairs, None, [*LABELLED_WEIGHTS[:3], 40.0, 5.0, 6.0, 70.0], directed=False, drop_leaves=True
    )
    assert (np.asarray(simple.labels) // scale).tolist() == [5, 7, 90, 400]
    assert carried.weights is not None
    assert (carried.weights.tolist(), carried.largest_weight) == ([3.0, 6.0, 2.0], 6.0)


def test_text_labels_keep_their_weights() -> None:
    pairs, names = [(0, 1), (1, 2), (2, 0), (2, 3)], ["a", "b", "c", "d"]
    _, kept = attributed(pairs, 4, [1.0, 2.0, 3.0, 4.0], directed=False, names=names)
    simple, dropped = attributed(pairs, 4, [1.0, 2.0, 3.0, 4.0], directed=False, names=names, drop_leaves=True)
    assert kept.weights is not None
    assert dropped.weights is not None
    assert (kept.weights.tolist(), dropped.weights.tolist()) == ([1.0, 3.0, 2.0, 4.0], [1.0, 3.0, 2.0])
    assert simple.labels == ["a", "b", "c"]


def test_many_pairs_are_looked_up_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(9)
    pairs = random_pairs(rng, 50, 0.5)
    weights = rng.random(len(pairs))
    _, whole = attributed(pairs, 50, weights, directed=True)
    monkeypatch.setattr("wedgewise.prepare.attributes.CHUNK", 7)
    _, chunked = attributed(pairs, 50, weights, directed=True)
    assert np.array_equal(np.asarray(whole.weights), np.asarray(chunked.weights))
    assert np.array_equal(np.asarray(whole.directions), np.asarray(chunked.directions))
    roots = whole.strengths(weighted=True, threads=3)
    monkeypatch.undo()
    assert np.array_equal(as_bits(roots), as_bits(whole.strengths(weighted=True, threads=1)))


def test_a_largest_weight_of_zero_is_refused_where_something_is_divided_by_it() -> None:
    _, carried = attributed([(0, 1), (1, 2)], 3, [0.0, -1.0], directed=False)
    with pytest.raises(InputError, match="largest weight is 0"):
        carried.strengths(weighted=True)
    _, only_loops = attributed([(0, 0)], 2, [0.0], directed=False)
    assert len(only_loops.strengths(weighted=True)) == 0
    _, nothing = attributed([], 2, [], directed=True)
    assert (len(nothing.strengths(weighted=True)), nothing.largest_weight) == (0, 1.0)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_finite_are_refused(bad: float) -> None:
    with pytest.raises(InputError, match=r"<test>: the weight of pair 1, \(1, 2\), is .*must be finite"):
        attributed([(0, 1), (1, 2)], 3, [1.0, bad], directed=False)


def test_quotients_beyond_all_numbers_are_infinite_as_in_networkx() -> None:
    pairs, weights = [(0, 1), (1, 2), (2, 0)], [1e-300, -1e300, 1e-300]
    found = clustering_of(pairs, 3, weights, directed=False, way="kernel")
    assert np.array_equal(found, networkx_clustering(pairs, 3, weights, directed=False))


@pytest.mark.parametrize("algorithm", ["reference", "keystone"])
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_the_api_answers_with_directions_and_weights(directed: bool, algorithm: str) -> None:
    rng = np.random.default_rng(21)
    pairs = random_pairs(rng, 40, 0.2)
    weights = rng.random(len(pairs)) + 0.1
    graph = ww.Graph(pairs, n=42, directed=directed, weights=weights)
    peer = networkx_graph(pairs, 42, weights, directed=directed)
    for weighted in (False, True):
        given = weights if weighted else None
        found = ww.clustering(graph, weighted=weighted, algorithm=algorithm)
        np.testing.assert_allclose(found, networkx_clustering(pairs, 42, given, directed=directed), rtol=1e-12)
        mean = nx.average_clustering(peer, weight="weight" if weighted else None)
        assert ww.average_clustering(graph, weighted=weighted, algorithm=algorithm) == pytest.approx(mean, rel=1e-12)
        undefined = ww.clustering(graph, weighted=weighted, undefined="nan", algorithm=algorithm)
        assert np.flatnonzero(np.isnan(undefined)).tolist() == [40, 41]
    assert ww.transitivity(graph, algorithm=algorithm) == nx.transitivity(peer.to_undirected())
