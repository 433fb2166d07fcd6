"""What every registered CPU algorithm must answer, whatever the order, the ids, the threads and its knobs."""

from __future__ import annotations

import os
from functools import cache

import numpy as np
import pytest
from graphs import CLOSED_FORMS, TRUTHS, count_by_product, fixture_path

import wedgewise as ww
from conformance.engines import (
    CPU_ALGORITHMS,
    KNOB_SETTINGS,
    ORIENTATIONS,
    RECORDS,
    count,
    for_every_algorithm,
)
from wedgewise.algorithms._contract import Algorithm
from wedgewise.generate import EdgeStream, book, complete, kronecker, star
from wedgewise.machine.jit import JIT_DISABLED

SKEWED = kronecker(6 if JIT_DISABLED else 10, seed=1)
VARIED_GRAPHS = ("atlas_union", "jazz", "kronecker", "complete")
THREADS = (1, 2, 4, (os.cpu_count() or 1) + 3)
MANY_PAGES = 70_000  # beyond what a 16-bit cursor can number


@cache
def fixture(name: str) -> ww.Graph:
    """A fixture read once; its oriented forms stay with it."""
    return ww.read(fixture_path(name))


@cache
def varied_graph(name: str) -> tuple[ww.Graph, int]:
    """A graph with its number of triangles: all small graphs, a dense real one, a skewed one, a clique."""
    if name in TRUTHS:
        return fixture(name), TRUTHS[name]["triangles"]
    if name == "complete":
        clique = complete(97)
        return ww.Graph(clique.pairs(), n=clique.n), 97 * 96 * 95 // 6
    return ww.Graph(SKEWED.pairs(), n=SKEWED.n), count_by_product(SKEWED.pairs(), SKEWED.n)


def test_the_registry_is_not_empty_and_names_are_unique() -> None:
    assert {"forward", "hashmap", "keystone", "latapy", "reference"} <= set(CPU_ALGORITHMS)
    assert len(set(CPU_ALGORITHMS)) == len(CPU_ALGORITHMS)


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
def test_every_record_says_what_it_is(record: Algorithm) -> None:
    assert record.unit in ("graph", "triple")
    assert "count" in record.answers
    assert record.paper
    assert record.summary
    assert record.limits
    assert all(knob.meaning for knob in record.knobs)
    assert "degree" in record.orders


@for_every_algorithm
@pytest.mark.parametrize("name", TRUTHS)
def test_fixtures_have_their_published_counts(algorithm: str, name: str) -> None:
    result = ww.run("count", fixture(name), algorithm=algorithm, device="cpu")
    truth = TRUTHS[name]
    assert (result.n, result.m, result.answer) == (truth["n"], truth["m"], truth["triangles"])
    assert (result.algorithm, result.device) == (algorithm, "cpu")
    assert type(result.answer) is int


@for_every_algorithm
@pytest.mark.parametrize("stream", CLOSED_FORMS, ids=lambda stream: stream.name)
def test_closed_forms_have_the_counts_of_their_formulas(algorithm: str, stream: EdgeStream) -> None:
    assert count(stream.pairs(), algorithm, n=stream.n) == stream.expected_triangles


@pytest.mark.parametrize("graph", VARIED_GRAPHS)
@pytest.mark.parametrize(("algorithm", "order", "relabel"), ORIENTATIONS)
def test_answers_do_not_depend_on_order_and_ids(algorithm: str, order: str, relabel: str, graph: str) -> None:
    held, triangles = varied_graph(graph)
    result = ww.run("count", held, algorithm=algorithm, order=order, relabel=relabel)
    assert result.answer == triangles
    assert (result.plan.order, result.plan.relabel) == (order, relabel)


@pytest.mark.parametrize("graph", VARIED_GRAPHS)
@for_every_algorithm
def test_answers_do_not_depend_on_threads(algorithm: str, graph: str) -> None:
    held, triangles = varied_graph(graph)
    results = [ww.run("count", held, algorithm=algorithm, threads=threads) for threads in THREADS]
    assert [result.plan.threads for result in results] == list(THREADS)
    assert {result.answer for result in results} == {triangles}
    assert len({result.wedges_tested for result in results}) == 1


@for_every_algorithm
def test_answers_do_not_depend_on_the_run(algorithm: str) -> None:
    held, triangles = varied_graph("kronecker")
    results = [ww.run("count", held, algorithm=algorithm, threads=4) for _ in range(10)]
    assert {result.answer for result in results} == {triangles}
    assert len({result.wedges_tested for result in results}) == 1


@pytest.mark.parametrize("graph", VARIED_GRAPHS)
@pytest.mark.parametrize(("algorithm", "knob", "value"), KNOB_SETTINGS)
def test_answers_do_not_depend_on_knobs(algorithm: str, knob: str, value: int | str, graph: str) -> None:
    held, triangles = varied_graph(graph)
    result = ww.run("count", held, algorithm=algorithm, knobs={knob: value})
    assert (result.answer, result.plan.knobs[knob]) == (triangles, value)


@for_every_algorithm
@pytest.mark.parametrize("n", [0, 1, 2, 63, 64, 65])
def test_graphs_without_edges(algorithm: str, n: int) -> None:
    result = ww.run("count", ww.Graph(np.empty((0, 2), np.int64), n=n), algorithm=algorithm)
    assert (result.n, result.m, result.answer, result.wedges_tested) == (n, 0, 0, 0)


@for_every_algorithm
def test_loops_only(algorithm: str) -> None:
    result = ww.run("count", [(3, 3), (5, 5), (3, 3)], algorithm=algorithm)
    assert (result.n, result.m, result.answer) == (2, 0, 0)
    assert result.cleaned.loops == 3


@for_every_algorithm
def test_duplicates_and_reversed_copies(algorithm: str) -> None:
    pairs = [(0, 1), (1, 2), (2, 0), (0, 2), (1, 0), (0, 1), (1, 1), (2, 9)]
    result = ww.run("count", pairs, algorithm=algorithm)
    assert (result.n, result.m, result.answer) == (4, 4, 1)


@for_every_algorithm
@pytest.mark.parametrize("n", [2, 3, 31, 32, 33, 63, 64, 65, 127, 128, 129])
def test_cliques_around_the_length_of_a_word(algorithm: str, n: int) -> None:
    assert count(complete(n).pairs(), algorithm) == n * (n - 1) * (n - 2) // 6


@pytest.mark.compiled
@for_every_algorithm
@pytest.mark.parametrize("stream", [book(MANY_PAGES), star(MANY_PAGES)], ids=lambda stream: stream.name)
def test_rows_longer_than_a_16_bit_cursor(algorithm: str, stream: EdgeStream) -> None:
    assert count(stream.pairs(), algorithm, n=stream.n) == stream.expected_triangles


@for_every_algorithm
def test_verification_agrees(algorithm: str) -> None:
    held, triangles = varied_graph("jazz")
    result = ww.run("count", held, algorithm=algorithm, verify=True)
    assert result.answer == triangles
    assert result.verified
