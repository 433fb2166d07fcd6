"""The same relations on graphs large enough for hubs, bitmaps and many tasks."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from conformance.engines import (
    KNOB_SETTINGS,
    ask,
    count,
    for_every_algorithm,
    for_every_local_algorithm,
    graph_of,
    supports,
    that_answer,
    triangles,
)
from helpers.graphs import count_by_product, distinct_edges, local_by_product

import wedgewise as ww
from wedgewise.generate import EdgeStream, kronecker, small_world, uniform, words
from wedgewise.machine.jit import JIT_DISABLED

SCALE = 7 if JIT_DISABLED else 11
GRAPHS = (
    kronecker(SCALE, seed=3),
    uniform(2**SCALE, 2 ** (SCALE + 4), seed=3),
    small_world(2**SCALE, 16, 0.1, seed=3),
)

for_every_graph = pytest.mark.parametrize("stream", GRAPHS, ids=lambda stream: stream.name)


@for_every_algorithm
@for_every_graph
def test_masked_product(algorithm: str, stream: EdgeStream) -> None:
    pairs = stream.pairs()
    assert count(pairs, algorithm, n=stream.n) == count_by_product(pairs, stream.n)


@for_every_algorithm
@for_every_graph
def test_relabelling_and_shuffling(algorithm: str, stream: EdgeStream) -> None:
    pairs = stream.pairs()
    order = np.argsort(words.words(1, 0, len(pairs)), kind="stable")
    names = np.argsort(words.words(2, 0, stream.n), kind="stable")
    assert count(names[pairs[order]], algorithm, n=stream.n) == count(pairs, algorithm, n=stream.n)


@for_every_algorithm
@for_every_graph
def test_apex(algorithm: str, stream: EdgeStream) -> None:
    edges = distinct_edges(stream.pairs())
    spokes = np.column_stack([np.arange(stream.n), np.full(stream.n, stream.n)])
    with_apex = count(np.concatenate([edges, spokes]), algorithm, n=stream.n + 1)
    assert with_apex == count(edges, algorithm, n=stream.n) + len(edges)


@for_every_algorithm
def test_disjoint_union(algorithm: str) -> None:
    first, second = GRAPHS[0], GRAPHS[1]
    both = np.concatenate([first.pairs(), second.pairs() + first.n])
    separate = count(first.pairs(), algorithm) + count(second.pairs(), algorithm)
    assert count(both, algorithm, n=first.n + second.n) == separate


@for_every_algorithm
@for_every_graph
def test_sum_over_colour_triples(algorithm: str, stream: EdgeStream) -> None:
    pairs = stream.pairs()
    colours = words.numbers_below(4, 5, 0, stream.n)

    def of_colours(some: tuple[int, ...]) -> int:
        kept = np.isin(colours, some)
        return count(pairs[kept[pairs].all(axis=1)], algorithm, n=stream.n)

    triples, two, one = (sum(map(of_colours, combinations(range(4), size))) for size in (3, 2, 1))
    assert count(pairs, algorithm, n=stream.n) == triples - two + one


@for_every_local_algorithm
@for_every_graph
def test_masked_product_of_vertices_and_edges(algorithm: str, stream: EdgeStream) -> None:
    graph = graph_of(stream.pairs(), stream.n)
    at_vertex, at_edge = local_by_product(stream.pairs(), stream.n)
    np.testing.assert_array_equal(ww.triangles(graph, algorithm=algorithm), at_vertex)
    np.testing.assert_array_equal(ww.edge_support(graph, algorithm=algorithm), at_edge)


@for_every_local_algorithm
@for_every_graph
def test_relabelling_and_shuffling_permutes(algorithm: str, stream: EdgeStream) -> None:
    pairs = stream.pairs()
    order = np.argsort(words.words(1, 0, len(pairs)), kind="stable")
    names = np.argsort(words.words(2, 0, stream.n), kind="stable")
    renamed = triangles(names[pairs[order]], algorithm, n=stream.n)
    np.testing.assert_array_equal(renamed[names], triangles(pairs, algorithm, n=stream.n))
    at_edge = supports(names[pairs[order]], algorithm, n=stream.n)
    called = names.tolist()
    for (u, v), support in supports(pairs, algorithm, n=stream.n).items():
        assert at_edge[min(called[u], called[v]), max(called[u], called[v])] == support


@for_every_local_algorithm
@for_every_graph
def test_apex_adds_the_degree(algorithm: str, stream: EdgeStream) -> None:
    edges = distinct_edges(stream.pairs())
    degrees = np.bincount(edges.ravel(), minlength=stream.n)
    spokes = np.column_stack([np.arange(stream.n), np.full(stream.n, stream.n)])
    with_apex = graph_of(np.concatenate([edges, spokes]), stream.n + 1)
    expected = triangles(edges, algorithm, n=stream.n) + degrees
    np.testing.assert_array_equal(ww.triangles(with_apex, algorithm=algorithm), [*expected, len(edges)])
    at_edge = ww.edge_support(with_apex, algorithm=algorithm)
    is_spoke = with_apex.edges[:, 1] == stream.n
    np.testing.assert_array_equal(at_edge[is_spoke], degrees)
    before = ww.edge_support(graph_of(edges, stream.n), algorithm=algorithm)
    np.testing.assert_array_equal(at_edge[~is_spoke], before + 1)


# dense enough that rows hold more hubs than a counter of 8 bits can number
DENSE_N = 1100
DENSE = np.argwhere(np.triu(np.random.default_rng(8).random((DENSE_N, DENSE_N)) < 0.6, 1))


@cache
def dense_graph() -> ww.Graph:
    return graph_of(DENSE, DENSE_N)


@cache
def dense_answers() -> dict[str, Any]:
    """What the dense graph's answers are, by a product of full matrices."""
    adjacency = np.zeros((DENSE_N, DENSE_N))
    adjacency[DENSE[:, 0], DENSE[:, 1]] = 1
    adjacency += adjacency.T
    walks = (adjacency @ adjacency * adjacency).astype(np.int64)
    return {
        "count": walks.sum() // 6,
        "triangles": walks.sum(axis=1) // 2,
        "edge_support": walks[DENSE[:, 0], DENSE[:, 1]],
    }


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("algorithm", "computes", "knob", "value"),
    [setting for setting in KNOB_SETTINGS if setting[1] in ("count", "triangles", "edge_support")],
)
def test_dense_graphs(algorithm: str, computes: str, knob: str, value: int | str) -> None:
    answer = ask(computes, dense_graph(), algorithm, knobs={knob: value}).answer
    np.testing.assert_array_equal(answer, dense_answers()[computes])


@pytest.mark.compiled
@pytest.mark.parametrize("algorithm", that_answer("list_triangles", compiled=True))
def test_listing_a_dense_graph(algorithm: str) -> None:
    """Distinct rows of three edges, as many as there are triangles: nothing is missing."""
    n = 520
    edges = DENSE[DENSE.max(axis=1) < n]
    listed = ww.list_triangles(graph_of(edges, n), algorithm=algorithm).astype(np.int64)
    is_edge = np.zeros((n, n), np.bool_)
    is_edge[edges[:, 0], edges[:, 1]] = True
    for u, v in ((0, 1), (0, 2), (1, 2)):
        assert is_edge[listed[:, u], listed[:, v]].all()
    keys = np.sort((listed[:, 0] * n + listed[:, 1]) * n + listed[:, 2])
    assert (keys[1:] > keys[:-1]).all()
    assert len(keys) == count_by_product(edges, n)
