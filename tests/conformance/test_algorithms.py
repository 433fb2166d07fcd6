"""What every answer of every registered CPU algorithm must be, whatever the order, ids, threads and knobs."""

from __future__ import annotations

import os
from functools import cache

import numpy as np
import pytest
from helpers.graphs import CLOSED_FORMS, LOCAL_FORMS, TRUTHS, LocalForm, fixture_path, local_by_product, of_fit_size

import wedgewise as ww
from conformance.engines import (
    CPU_ALGORITHMS,
    ENGINES,
    KNOB_SETTINGS,
    ORIENTATIONS,
    QUESTIONS,
    RECORDS,
    VARIED_GRAPHS,
    as_bytes,
    ask,
    check,
    count,
    for_every_algorithm,
    for_every_engine,
    for_every_local_algorithm,
    held,
    in_order,
    that_answer,
    triangles,
)
from wedgewise.algorithms import _ranges
from wedgewise.algorithms._contract import TRUSSES, Algorithm
from wedgewise.generate import EdgeStream, book, complete, star
from wedgewise.machine.jit import JIT_DISABLED

THREADS = (1, 2, 4, (os.cpu_count() or 1) + 3)
REPEATS = 10
MANY_PAGES = 70_000  # beyond what a 16-bit cursor can number
# around one word of 64 bits; kernels that are compiled also take those of two words
AROUND_WORDS = (2, 3, 31, 32, 33, 63, 64, 65) if JIT_DISABLED else (2, 3, 31, 32, 33, 63, 64, 65, 127, 128, 129)

for_every_varied_graph = pytest.mark.parametrize("name", VARIED_GRAPHS)
for_every_fixture = pytest.mark.parametrize("name", of_fit_size(*TRUTHS))
for_sizes_around_words = pytest.mark.parametrize("n", AROUND_WORDS)


@cache
def fixture(name: str) -> ww.Graph:
    """A fixture read once; its oriented forms stay with it."""
    return ww.read(fixture_path(name))


def without_edges(n: int) -> ww.Graph:
    """Vertices alone, with directions and weights of no edge."""
    return ww.Graph(np.empty((0, 2), np.int64), n=n, directed=True, weights=np.empty(0))


def test_the_registry_is_not_empty_and_names_are_unique() -> None:
    assert {"forward", "hashmap", "keystone", "latapy", "reference"} <= set(CPU_ALGORITHMS)
    assert len(set(CPU_ALGORITHMS)) == len(CPU_ALGORITHMS)


def test_the_reference_and_the_engine_answer_everything() -> None:
    assert {computes for _, computes in ENGINES} == set(QUESTIONS)
    assert {"keystone", "reference"} <= set(that_answer(*QUESTIONS))


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
def test_every_record_says_what_it_is(record: Algorithm) -> None:
    assert record.unit in ("graph", "triple")
    assert "count" in record.answers or set(record.answers) == set(TRUSSES)
    assert record.paper
    assert record.summary
    assert record.limits
    assert all(knob.meaning for knob in record.knobs)
    assert "degree" in record.orders


@for_every_algorithm
@for_every_fixture
def test_fixtures_have_their_published_counts(algorithm: str, name: str) -> None:
    result = ww.run("count", fixture(name), algorithm=algorithm, device="cpu")
    truth = TRUTHS[name]
    assert (result.n, result.m, result.answer) == (truth["n"], truth["m"], truth["triangles"])
    assert (result.algorithm, result.device) == (algorithm, "cpu")
    assert type(result.answer) is int


@for_every_local_algorithm
@for_every_fixture
def test_fixtures_have_the_triangles_of_a_matrix_product(algorithm: str, name: str) -> None:
    graph = fixture(name)
    at_vertex, at_edge = local_by_product(graph.edges, graph.n)
    np.testing.assert_array_equal(ww.triangles(graph, algorithm=algorithm), at_vertex)
    np.testing.assert_array_equal(ww.edge_support(graph, algorithm=algorithm), at_edge)
    assert at_vertex.sum() == at_edge.sum() == 3 * TRUTHS[name]["triangles"]


@for_every_algorithm
@pytest.mark.parametrize("stream", CLOSED_FORMS, ids=lambda stream: stream.name)
def test_closed_forms_have_the_counts_of_their_formulas(algorithm: str, stream: EdgeStream) -> None:
    assert count(stream.pairs(), algorithm, n=stream.n) == stream.expected_triangles


@for_every_local_algorithm
@pytest.mark.parametrize("form", LOCAL_FORMS, ids=lambda form: form.stream.name)
def test_closed_forms_have_the_triangles_of_their_formulas(algorithm: str, form: LocalForm) -> None:
    graph = ww.Graph(form.stream.pairs(), n=form.stream.n)
    degrees = graph.degrees.astype(int)
    at_vertex = [form.of_vertex(d) for d in degrees.tolist()]
    at_edge = [form.of_edge(d, e) for d, e in degrees[graph.edges].tolist()]
    assert sum(at_vertex) == sum(at_edge) == 3 * form.stream.expected_triangles  # type: ignore[operator]
    assert ww.triangles(graph, algorithm=algorithm).tolist() == at_vertex
    assert ww.edge_support(graph, algorithm=algorithm).tolist() == at_edge


@pytest.mark.parametrize("algorithm", that_answer("list_triangles"))
@pytest.mark.parametrize("stream", CLOSED_FORMS, ids=lambda stream: stream.name)
def test_closed_forms_list_as_many_triangles(algorithm: str, stream: EdgeStream) -> None:
    graph = ww.Graph(stream.pairs(), n=stream.n)
    listed = ww.list_triangles(graph, algorithm=algorithm).astype(np.int64)
    assert len(np.unique(listed, axis=0)) == len(listed) == stream.expected_triangles
    edges = set(map(tuple, graph.edges.tolist()))
    for u, v in ((0, 1), (0, 2), (1, 2)):
        assert edges.issuperset(map(tuple, listed[:, [u, v]].tolist()))


@for_every_varied_graph
@pytest.mark.parametrize(("algorithm", "computes", "order", "relabel"), ORIENTATIONS)
def test_answers_do_not_depend_on_order_and_ids(
    algorithm: str, computes: str, order: str, relabel: str, name: str
) -> None:
    result = ask(computes, held(name).graph, algorithm, order=order, relabel=relabel)
    check(computes, result.answer, held(name))
    assert (result.plan.order, result.plan.relabel) == (order, relabel)


@for_every_varied_graph
@for_every_engine
def test_answers_do_not_depend_on_threads(
    algorithm: str, computes: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_ranges, "TASK_ARCS", 5 if JIT_DISABLED else 50)  # or small graphs are one task
    monkeypatch.setattr(_ranges, "SMALL_WORK", 0)
    results = [ask(computes, held(name).graph, algorithm, threads=threads) for threads in THREADS]
    assert [result.plan.threads for result in results] == list(THREADS)
    check(computes, results[0].answer, held(name))
    assert len({as_bytes(result.answer) for result in results}) == 1
    assert len({result.wedges_tested for result in results}) == 1


@for_every_engine
def test_answers_do_not_depend_on_the_run(algorithm: str, computes: str) -> None:
    results = [ask(computes, held("skewed").graph, algorithm, threads=4) for _ in range(REPEATS)]
    check(computes, results[0].answer, held("skewed"))
    assert len({as_bytes(result.answer) for result in results}) == 1
    assert len({result.wedges_tested for result in results}) == 1


@for_every_varied_graph
@pytest.mark.parametrize(("algorithm", "computes", "knob", "value"), KNOB_SETTINGS)
def test_answers_do_not_depend_on_knobs(algorithm: str, computes: str, knob: str, value: int | str, name: str) -> None:
    result = ask(computes, held(name).graph, algorithm, knobs={knob: value})
    check(computes, result.answer, held(name))
    assert result.plan.knobs[knob] == value


@for_every_varied_graph
@pytest.mark.parametrize("algorithm", that_answer("weighted_triangles"))
def test_directed_triangles_are_counted_exactly(algorithm: str, name: str) -> None:
    coefficients = [
        ww.clustering(held(name).graph, algorithm=algorithm, threads=threads, knobs=None) for threads in THREADS
    ]
    assert len({as_bytes(some) for some in coefficients}) == 1
    np.testing.assert_array_equal(coefficients[0], held(name).directed_clustering)


@for_every_varied_graph
def test_all_algorithms_list_in_one_order(name: str) -> None:
    listings = [ww.list_triangles(held(name).graph, algorithm=algorithm) for algorithm in that_answer("list_triangles")]
    assert len(listings) > 1
    for listing in listings[1:]:
        np.testing.assert_array_equal(listing, listings[0])


@for_every_engine
@pytest.mark.parametrize("n", [0, 1, 2, 63, 64, 65])
def test_graphs_without_edges(algorithm: str, computes: str, n: int) -> None:
    result = ask(computes, without_edges(n), algorithm)
    assert (result.n, result.m, result.wedges_tested) == (n, 0, 0)
    shapes = {"count": (), "edge_support": (0,), "list_triangles": (0, 3)}
    answer = np.asarray(result.answer)
    assert answer.shape == shapes.get(computes, (n,))
    assert not answer.any()


@for_every_engine
def test_loops_only(algorithm: str, computes: str) -> None:
    graph = ww.Graph(np.array([(3, 3), (5, 5), (3, 3)]), directed=True, weights=np.ones(3))
    result = ask(computes, graph, algorithm)
    assert (result.n, result.m) == (2, 0)
    assert not np.asarray(result.answer).any()
    assert result.cleaned.loops == 3


@for_every_engine
def test_duplicates_and_reversed_copies(algorithm: str, computes: str) -> None:
    pairs = np.array([(0, 1), (1, 2), (2, 0), (0, 2), (1, 0), (0, 1), (1, 1), (2, 9)])
    result = ask(computes, ww.Graph(pairs, directed=True, weights=np.ones(len(pairs))), algorithm)
    assert (result.n, result.m) == (4, 4)
    expected = {
        "count": 1,
        "triangles": [1, 1, 1, 0],
        "edge_support": [1, 1, 1, 0],
        "list_triangles": [[0, 1, 2]],
        # 0 ↔ 1, 1 → 2, 2 ↔ 0, 2 → 9: 4 directed triangles; total degrees 4, 3, 4, 1 of which 2, 1, 1, 0 reciprocal
        "weighted_triangles": [4 / 8, 4 / 4, 4 / 10, 0],
    }
    assert np.asarray(result.answer).tolist() == expected[computes]


@for_every_algorithm
@for_sizes_around_words
def test_cliques_around_the_length_of_a_word(algorithm: str, n: int) -> None:
    assert count(complete(n).pairs(), algorithm) == n * (n - 1) * (n - 2) // 6


@for_every_local_algorithm
@for_sizes_around_words
def test_vertices_and_edges_of_cliques_around_the_length_of_a_word(algorithm: str, n: int) -> None:
    graph = ww.Graph(complete(n).pairs())
    assert set(ww.triangles(graph, algorithm=algorithm).tolist()) == {(n - 1) * (n - 2) // 2}
    assert set(ww.edge_support(graph, algorithm=algorithm).tolist()) == {n - 2}


@pytest.mark.compiled
@for_every_algorithm
@pytest.mark.parametrize("stream", [book(MANY_PAGES), star(MANY_PAGES)], ids=lambda stream: stream.name)
def test_rows_longer_than_a_16_bit_cursor(algorithm: str, stream: EdgeStream) -> None:
    assert count(stream.pairs(), algorithm, n=stream.n) == stream.expected_triangles


@pytest.mark.compiled
@for_every_local_algorithm
def test_supports_and_triangles_beyond_16_bits(algorithm: str) -> None:
    graph = ww.Graph(book(MANY_PAGES).pairs())
    at_edge = ww.edge_support(graph, algorithm=algorithm)
    assert (at_edge[0], set(at_edge[1:].tolist())) == (MANY_PAGES, {1})
    at_vertex = triangles(book(MANY_PAGES).pairs(), algorithm)
    assert (at_vertex[:2].tolist(), set(at_vertex[2:].tolist())) == ([MANY_PAGES] * 2, {1})


@pytest.mark.compiled
@pytest.mark.parametrize("algorithm", that_answer("list_triangles"))
def test_listings_of_rows_beyond_16_bits(algorithm: str) -> None:
    listed = in_order(ww.list_triangles(book(MANY_PAGES).pairs(), algorithm=algorithm))
    assert (listed[:, :2] == (0, 1)).all()
    np.testing.assert_array_equal(listed[:, 2], np.arange(2, MANY_PAGES + 2))


@for_every_engine
def test_verification_agrees(algorithm: str, computes: str) -> None:
    result = ask(computes, held(VARIED_GRAPHS[1]).graph, algorithm, verify=True)
    check(computes, result.answer, held(VARIED_GRAPHS[1]))
    assert result.verified
