"""Trusses at their limits: supports and truss numbers beyond narrow integers, and memory within the plan."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from conformance.trusses import TRUSS_RECORDS, TRUSS_WAYS, Way

import wedgewise as ww
from limits.test_memory import peak_of
from wedgewise import generate
from wedgewise.algorithms._contract import TRUSSES
from wedgewise.answer.questions import QUESTIONS
from wedgewise.answer.truss_summary import components, summarise

pytestmark = pytest.mark.compiled  # millions of steps

WRAPPING_PAGES = 1 << 16  # the spine's support, of which 16 bits hold nothing
MANY_PAGES = 70_000  # beyond what a 16-bit cursor can number
CLIQUE = 300  # truss numbers beyond 8 bits; all edges die in the same round
SLACK = 1 << 17  # threads, tasks and other things that do not grow with the graph

COMPILED = {record.name: record.orders for record in TRUSS_RECORDS if record.compiled}
ON_THREADS = [(way, threads) for way in TRUSS_WAYS for threads in (1, 4) if way.algorithm in COMPILED]
IN_ORDERS = [(way, order) for way in TRUSS_WAYS for order in COMPILED.get(way.algorithm, ())]
IN_ARRAYS = [(way, 1) for way in TRUSS_WAYS if way.algorithm not in COMPILED]
BY_DEFAULT = [(way, threads) for way, threads in [*ON_THREADS, *IN_ARRAYS] if not way.knob]


def all_answers(graph: ww.Graph, k: int, **how: Any) -> tuple[set[int], int, int, int, int]:
    """The truss numbers that occur, the last truss, and how many edges the k-truss and the next one have."""
    numbers, last = (ww.run(question, graph, **how).answer for question in ("trussness", "max_truss"))
    one, next_one = (len(ww.run("k_truss", graph, k=some, **how).answer) for some in (k, k + 1))
    return set(numbers.tolist()), last.k, len(last), one, next_one


@cache
def book(pages: int) -> ww.Graph:
    return ww.Graph(generate.book(pages).pairs())


@cache
def clique() -> ww.Graph:
    return ww.Graph(generate.complete(CLIQUE).pairs())


@pytest.mark.parametrize(("way", "threads"), [*ON_THREADS, *IN_ARRAYS], ids=str)
def test_supports_beyond_16_bits(way: Way, threads: int) -> None:
    graph = book(WRAPPING_PAGES)
    assert ww.edge_support(graph).max() == WRAPPING_PAGES
    assert all_answers(graph, 3, threads=threads, **way.how) == ({3}, 3, graph.m, graph.m, 0)


@pytest.mark.parametrize(("way", "order"), IN_ORDERS, ids=str)
def test_rows_beyond_16_bits(way: Way, order: str) -> None:
    graph = book(MANY_PAGES)
    assert all_answers(graph, 3, order=order, **way.how) == ({3}, 3, graph.m, graph.m, 0)


@pytest.mark.parametrize(("way", "threads"), ON_THREADS, ids=str)
def test_truss_numbers_beyond_8_bits(way: Way, threads: int) -> None:
    m = clique().m
    assert all_answers(clique(), CLIQUE, threads=threads, **way.how) == ({CLIQUE}, CLIQUE, m, m, 0)


@pytest.mark.deep
@pytest.mark.parametrize(("way", "threads"), IN_ARRAYS, ids=str)
def test_truss_numbers_beyond_8_bits_in_arrays(way: Way, threads: int) -> None:
    test_truss_numbers_beyond_8_bits(way, threads)


SHAPES: dict[str, Callable[[], Any]] = {
    "skewed": lambda: generate.kronecker(scale=9, seed=3).pairs(),
    "cycle": lambda: generate.cycle(60_000).pairs(),
    "matching": lambda: np.random.default_rng(1).permutation(120_000).reshape(-1, 2),
    "small_world": lambda: generate.small_world(2_000, 16, 0.1, seed=3).pairs(),
}


@cache
def shaped(shape: str) -> ww.Graph:
    return ww.Graph(SHAPES[shape]().astype(np.int32))


@pytest.mark.parametrize("computes", TRUSSES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("way", "threads"), BY_DEFAULT, ids=str)
def test_trusses_take_what_the_plan_says(way: Way, threads: int, shape: str, computes: str) -> None:
    details: dict[str, Any] = {"k": 5} if computes == "k_truss" else {}

    def ask() -> ww.Result:
        return ww.run(computes, shaped(shape), threads=threads, **details, **way.how)

    assert ask().plan.computes == computes  # loads the kernels and prepares the graph, whose memory is not the answer's
    peak, result = peak_of(ask)
    assert peak <= result.plan.bytes_needed + SLACK


@pytest.mark.parametrize("shape", SHAPES)
def test_summaries_take_what_is_stated(shape: str) -> None:
    """Beyond the numbers or the truss that they are made of; `Graph.edges` are made on the way."""
    numbers = ww.trussness(shaped(shape))
    everything = np.arange(shaped(shape).m)
    makers: dict[str, Callable[[ww.Graph], Any]] = {
        "truss_summary": lambda graph: summarise(graph, numbers),
        "truss_components": lambda graph: components(graph, everything),
    }
    for question, make in makers.items():
        graph = ww.Graph(SHAPES[shape]().astype(np.int32))
        known = {"truss_summary": 4 + 8, "truss_components": 4 + 9}[question] * graph.m  # places, and what is known
        stated = QUESTIONS[question].answer_bytes("", graph.n, graph.m) - known
        make(shaped(shape))  # loads the kernels
        peak, _ = peak_of(lambda make=make, graph=graph: make(graph))  # type: ignore[misc]
        assert 0.4 * stated <= peak + SLACK
        assert peak <= stated + SLACK


@pytest.mark.parametrize("question", ["truss_summary", "truss_components"])
@pytest.mark.parametrize("shape", SHAPES)
def test_summaries_take_what_the_plan_says(shape: str, question: str) -> None:
    details: dict[str, Any] = {"k": 3} if question == "truss_components" else {}
    ww.run(question, shaped(shape), algorithm="peel", threads=2, **details)
    peak, result = peak_of(lambda: ww.run(question, shaped(shape), algorithm="peel", threads=2, **details))
    assert peak <= result.plan.bytes_needed + SLACK
