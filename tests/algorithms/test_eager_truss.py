"""Eager k-truss and its reference, against sets of neighbours, closed forms and published figures."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from functools import cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from helpers.graphs import TRUTHS, fixture_pairs, random_pairs
from numpy.typing import NDArray

import wedgewise as ww
from wedgewise import generate
from wedgewise.algorithms import find
from wedgewise.algorithms._contract import FoundTruss, Shape, TrussJob
from wedgewise.algorithms._truss import reference, rounds
from wedgewise.algorithms._truss.reference import ProductRounds, supports_by_products
from wedgewise.algorithms.cpu import eager
from wedgewise.algorithms.cpu.eager import GRANULARITY, ORDERS, EagerRows
from wedgewise.errors import InputError, PreconditionError
from wedgewise.machine.jit import JIT_DISABLED
from wedgewise.stages import OrientedGraph

SIXTEEN_BITS, PAGES = 1 << 16, 70_000
SLACK = 1 << 17  # threads, tasks and other things that do not grow with the graph
RANDOM = ((2, 3, 0), (12, 50, 1), (40, 250, 2), (60, 900, 3), (150, 900, 4))  # vertices, pairs and a seed
Mask = NDArray[np.bool_]

for_every_granularity = pytest.mark.parametrize("granularity", GRANULARITY.choices)


def by_sets(edges: NDArray[Any], k: int) -> list[bool]:
    """The k-truss by taking one edge of too little support away at a time."""
    adjacent: dict[int, set[int]] = {}
    for u, v in edges.tolist():
        adjacent.setdefault(u, set()).add(v)
        adjacent.setdefault(v, set()).add(u)
    alive = {(u, v) for u, v in edges.tolist()}
    while weak := next(((u, v) for u, v in alive if len(adjacent[u] & adjacent[v]) < k - 2), None):
        u, v = weak
        alive.remove(weak)
        adjacent[u].remove(v)
        adjacent[v].remove(u)
    return [(u, v) in alive for u, v in edges.tolist()]


@cache
def random_graph(n: int, pairs: int, seed: int) -> ww.Graph:
    return ww.Graph(random_pairs(n, pairs, seed), n=n)


@cache
def fixture(name: str) -> ww.Graph:
    return ww.Graph(fixture_pairs(name), n=TRUTHS[name]["n"])


def by_products(graph: ww.Graph, k: int) -> FoundTruss:
    return rounds.k_truss(ProductRounds(graph.edges, graph.n), TrussJob(k))


def referred(graph: ww.Graph, k: int) -> Mask:
    held: Mask = by_products(graph, k).filled
    return held


def found_by(
    graph: OrientedGraph, computes: str, granularity: str, k: int | None = None, threads: int = 1
) -> FoundTruss:
    """What eager finds, by arc."""
    job = TrussJob(k, {GRANULARITY.name: granularity}, threads)
    return find("eager", "cpu").truss_on_cpu(computes).find(graph, job)


def remaining_after_rounds(graph: ww.Graph, granularity: str, k: int, threads: int) -> list[int]:
    return rounds.peel(EagerRows(graph.oriented("id"), granularity, threads), k, TrussJob(), graph.m)


def kmax_by_products(graph: ww.Graph) -> int:
    k = 2
    while referred(graph, k + 1).any():
        k += 1
    return k


@pytest.mark.parametrize(("n", "pairs"), [(3, 4), (8, 20), (14, 60), (20, 150)])
@pytest.mark.parametrize("seed", range(3))
def test_reference_agrees_with_sets(n: int, pairs: int, seed: int) -> None:
    graph = random_graph(n, pairs, seed)
    for k in range(2, kmax_by_products(graph) + 2):
        assert referred(graph, k).tolist() == by_sets(graph.edges, k)


def test_reference_in_small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = random_graph(40, 400, 5)
    at_once = supports_by_products(graph.edges, graph.n)
    monkeypatch.setattr(reference, "BATCH_PRODUCTS", 50)
    np.testing.assert_array_equal(supports_by_products(graph.edges, graph.n), at_once)
    np.testing.assert_array_equal(at_once, ww.edge_support(graph))


@for_every_granularity
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("n", "pairs", "seed"), RANDOM[:3] if JIT_DISABLED else RANDOM)
def test_random_graphs_agree_with_the_reference(n: int, pairs: int, seed: int, order: str, granularity: str) -> None:
    graph = random_graph(n, pairs, seed)
    oriented = graph.oriented(order)
    places, kmax = graph.arcs_of_edges(oriented), kmax_by_products(graph)
    for k in range(2, kmax + 2):
        found = found_by(oriented, "k_truss", granularity, k, threads=2)
        np.testing.assert_array_equal(found.filled[places], referred(graph, k), f"k = {k}")
    last = found_by(oriented, "max_truss", granularity)
    assert last.k == kmax
    np.testing.assert_array_equal(last.filled[places], referred(graph, kmax))


@for_every_granularity
def test_rounds_are_those_of_the_reference(granularity: str) -> None:
    graph = random_graph(60, 900, 3)
    for k in range(2, kmax_by_products(graph) + 2):
        found, history = by_products(graph, k), remaining_after_rounds(graph, granularity, k, 2)
        assert (history[-1], len(history)) == (found.filled.sum(), found.rounds)


def test_levels_between_are_skipped() -> None:
    """In a clique the least support says at once which truss is left: one round finds nothing to go, another all."""
    graph = ww.Graph(generate.complete(9).pairs()).oriented("id")
    for computes in ("trussness", "max_truss"):
        found = found_by(graph, computes, "fine")
        assert (found.k, found.rounds) == (9, 2)


@for_every_granularity
def test_numbers_of_threads_and_tasks_change_nothing(granularity: str, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = random_graph(120, 900, 7)
    expected = [referred(graph, k) for k in (3, 4, 5)]
    for task_steps in (30, eager.TASK_STEPS):
        monkeypatch.setattr(eager, "TASK_STEPS", task_steps)
        for threads in (1, 2, 3, 7):
            found = [found_by(graph.oriented("id"), "k_truss", granularity, k, threads).filled for k in (3, 4, 5)]
            np.testing.assert_array_equal(found, expected)


@for_every_granularity
def test_threads_write_to_supports_of_their_own(granularity: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers take turns here, so that what they would overwrite at once is seen without a race."""
    handed: list[NDArray[np.uint32]] = []

    def in_turns(task: Callable[[int, int], Any], tasks: int, threads: int, _on_done: Any = None) -> list[Any]:
        return [task(number, number % min(threads, tasks)) for number in range(tasks)]

    def note(_begins: Any, _rows: Any, _begin: int, _end: int, supports: NDArray[np.uint32]) -> None:
        handed.append(supports)

    monkeypatch.setattr(eager, "run_tasks", in_turns)
    monkeypatch.setattr(eager, "credit_rows" if granularity == "coarse" else "credit_slots", note)
    EagerRows(random_graph(120, 900, 7).oriented("id"), granularity, 3).run_round(0)
    for supports, other in pairwise(handed):
        assert not np.shares_memory(supports, other)
    assert len({supports.ctypes.data for supports in handed}) == 3


@pytest.mark.compiled  # millions of steps
@for_every_granularity
@pytest.mark.parametrize("name", ["jazz", "power", "ca-GrQc", "as20000102", "PGPgiantcompo", "3elt"])
def test_published_graphs_have_their_kmax(name: str, granularity: str) -> None:
    graph = fixture(name)
    found = found_by(graph.oriented("id"), "max_truss", granularity, threads=2)
    assert found.k == TRUTHS[name]["kmax"]
    np.testing.assert_array_equal(found.filled, referred(graph, found.k))


@pytest.mark.compiled  # a long row
@for_every_granularity
def test_supports_do_not_wrap_at_16_bits(granularity: str) -> None:
    """The spine of a book is in as many triangles as there are pages; it alone outlives a round, and then it goes."""
    graph = ww.Graph(generate.book(PAGES).pairs())
    assert remaining_after_rounds(graph, granularity, SIXTEEN_BITS + 2, 3) == [1, 0]
    assert remaining_after_rounds(graph, granularity, PAGES + 3, 3) == [0]


def test_the_input_is_left_as_it_was() -> None:
    oriented = random_graph(40, 250, 2).oriented("id")
    offsets, heads = oriented.offsets.copy(), oriented.out_neighbours.copy()
    found_by(oriented, "trussness", "fine")
    np.testing.assert_array_equal(oriented.offsets, offsets)
    np.testing.assert_array_equal(oriented.out_neighbours, heads)


def test_what_cannot_be_asked_for() -> None:
    graph = random_graph(12, 50, 1)
    with pytest.raises(InputError, match="granularity is one of fine, coarse"):
        ww.k_truss(graph, 3, algorithm="eager", knobs={"granularity": "medium"})
    with pytest.raises(PreconditionError, match="eager takes the orders id, degree, core, not 'random'"):
        ww.run("k_truss", graph, k=3, algorithm="eager", order="random")
    with pytest.raises(PreconditionError, match="eager takes ids by rank, not 'indegree'"):
        ww.run("k_truss", graph, k=3, algorithm="eager", relabel="indegree")


def peak_of(work: Callable[[], Any]) -> int:
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        work()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


@pytest.mark.compiled
@pytest.mark.parametrize("threads", [1, 3])
def test_memory_is_as_predicted(threads: int) -> None:
    oriented = ww.Graph(generate.uniform(8000, 120_000, seed=2).pairs()).oriented("id")
    record, shape = find("eager", "cpu"), Shape(oriented.n, oriented.m)
    for computes, k in (("max_truss", None), ("trussness", None), ("k_truss", 4)):
        found_by(oriented, computes, "fine", k, threads)  # loads the kernels
        predicted = record.truss_on_cpu(computes).bytes_needed(shape, threads, record.settings(None))
        peak = peak_of(partial(found_by, oriented, computes, "fine", k, threads))
        assert (0.9 if k is None else 0.5) * predicted <= peak <= predicted + SLACK, computes


@pytest.mark.compiled
def test_memory_of_the_reference_is_as_predicted() -> None:
    record, oriented = find("reference", "cpu"), ww.Graph(generate.uniform(2000, 40_000, seed=2).pairs()).oriented()
    for computes, k in (("k_truss", 4), ("max_truss", None), ("trussness", None)):
        answer, job = record.truss_on_cpu(computes), TrussJob(k)
        predicted = answer.bytes_needed(Shape(oriented.n, oriented.m), 1, {})
        assert peak_of(partial(answer.find, oriented, job)) <= predicted + SLACK, computes
