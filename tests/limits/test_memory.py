"""Memory is a promise: the stated bytes per pair, edge and vertex hold, and a limit is refused before the work."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conformance.engines import ask, for_every_engine, that_answer
from helpers.graphs import TRIANGLE_QUESTIONS

import wedgewise as ww
from wedgewise import generate
from wedgewise.errors import MemoryLimitError
from wedgewise.prepare.clean import clean, clean_bytes
from wedgewise.prepare.orient import orient
from wedgewise.run.graph_memory import held_bytes, orient_bytes
from wedgewise.stages import EdgeList, Origin

SLACK = 1 << 20  # histograms, counters and other tables that do not grow with the graph
PROMISED_BYTES_PER_PAIR = 40
FEW_PAIRS = generate.kronecker(scale=5, seed=3).pairs()


def peak_of(work: Callable[[], Any]) -> tuple[int, Any]:
    """Largest allocation of Python and NumPy during `work`, beyond what was there before."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        result = work()
        return tracemalloc.get_traced_memory()[1] - before, result
    finally:
        tracemalloc.stop()


@pytest.fixture(scope="module")
def pairs() -> Any:
    array = generate.kronecker(scale=14, seed=3).pairs().astype(np.int32)
    ww.count(array)  # loads the kernels, whose own memory is not the graph's
    clean(EdgeList(array, Origin("", "")), 2, compiled=True)
    return array


@pytest.mark.compiled
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32, np.uint64])
@pytest.mark.parametrize("threads", [1, 2])
def test_edge_array_to_oriented_graph_stays_within_the_promise(pairs: Any, dtype: Any, threads: int) -> None:
    edges = EdgeList(pairs.astype(dtype), Origin("<array>", "array"))

    def prepare() -> Any:
        return orient(clean(edges, threads, compiled=True), threads=threads, compiled=True)

    peak, _ = peak_of(prepare)
    assert peak <= PROMISED_BYTES_PER_PAIR * len(pairs) + SLACK


@pytest.mark.compiled
@pytest.mark.parametrize("threads", [1, 2, 4, 16])
@pytest.mark.parametrize("shape", ["skewed", "cycle", "matching"])
def test_the_models_bound_what_the_stages_take(pairs: Any, shape: str, threads: int) -> None:
    if shape == "cycle":
        pairs = generate.cycle(200_000).pairs()
    elif shape == "matching":
        pairs = np.random.default_rng(1).permutation(400_000).reshape(-1, 2).astype(np.int32)
    edges = EdgeList(pairs, Origin("<array>", "array"))
    peak, simple = peak_of(lambda: clean(edges, threads, compiled=True))
    assert peak <= clean_bytes(len(pairs), simple.slot_count, threads) + SLACK
    peak, oriented = peak_of(lambda: orient(simple, threads=threads, compiled=True))
    model = orient_bytes(simple.n, simple.m, threads)
    assert 0.4 * model <= peak <= model + SLACK
    assert simple.nbytes <= 8 * len(pairs) + 8 * simple.n
    assert oriented.nbytes == 4 * oriented.m + 4 * (oriented.n + 1) + 4 * oriented.n
    assert oriented.nbytes == held_bytes("oriented graph", oriented.n, oriented.m) + oriented.offsets.itemsize
    assert simple.nbytes <= held_bytes("simple graph", simple.n, simple.m)


@pytest.mark.compiled
@pytest.mark.parametrize("threads", [1, 2, 5])
@for_every_engine
def test_algorithms_take_what_they_declare(pairs: Any, algorithm: str, computes: str, threads: int) -> None:
    weights = np.random.default_rng(1).random(40_000)
    graph = ww.Graph(pairs[:40_000], directed=True, weights=weights)
    listed = 12 * ww.count(graph) if computes == "list_triangles" else 0  # handed out, beyond what the plan declares
    ask(computes, graph, algorithm, threads=threads)  # loads the kernels
    peak, result = peak_of(lambda: ask(computes, graph, algorithm, threads=threads))
    assert peak <= result.plan.bytes_needed + listed + SLACK


@pytest.mark.compiled
@pytest.mark.parametrize("algorithm", that_answer("list_triangles"))
@pytest.mark.parametrize("batch", [1000, 1 << 20])
@pytest.mark.parametrize("shape", ["skewed", "open", "sparse"])
def test_listings_take_what_they_declare_beyond_a_batch(pairs: Any, algorithm: str, shape: str, batch: int) -> None:
    """Whether many wedges are closed or few."""
    if shape != "skewed":
        pairs = generate.uniform(5000, {"open": 200_000, "sparse": 92_000}[shape], seed=2).pairs()
    graph = ww.Graph(pairs)

    def list_some() -> int:
        return max(len(rows) for rows in ww.iter_triangles(graph, batch=batch, algorithm=algorithm, stop=100_000))

    list_some()
    peak, most = peak_of(list_some)
    declared = ww.explain("list_triangles", graph, algorithm=algorithm).bytes_needed
    assert peak <= declared + 2 * 12 * most + SLACK  # the next batch is made while the last one is held


@pytest.mark.parametrize("question", sorted(TRIANGLE_QUESTIONS))
def test_every_question_refuses_a_memory_limit_before_the_work(question: str) -> None:
    graph = ww.Graph(FEW_PAIRS)
    with pytest.raises(MemoryLimitError, match="raise memory_limit"):
        ww.run(question, graph, memory_limit=1000)
    assert graph.preparations == 0
    graph.oriented()
    with pytest.raises(MemoryLimitError, match="raise memory_limit"):
        ww.run(question, graph, memory_limit=1000)


def test_a_memory_limit_is_refused_before_the_work() -> None:
    graph = ww.Graph(FEW_PAIRS)
    with pytest.raises(MemoryLimitError, match="raise memory_limit"):
        ww.count(graph, memory_limit=1000)
    graph.oriented()
    with pytest.raises(MemoryLimitError, match="raise memory_limit"):
        ww.count(graph, memory_limit=1000)


def test_pairs_that_cannot_fit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wedgewise.machine.hardware.available_memory", lambda: 1000)
    with pytest.raises(MemoryLimitError, match="use a machine with more memory"):
        ww.Graph(np.arange(1 << 18).reshape(-1, 2))


def test_declared_vertices_that_cannot_fit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wedgewise.machine.hardware.available_memory", lambda: 10**9)
    with pytest.raises(MemoryLimitError, match="cleaning 1 pairs among 2,000,000,000 vertices takes 34,000,000,0"):
        ww.Graph(np.array([[0, 1]]), n=2 * 10**9)


def test_release_gives_prepared_memory_back() -> None:
    graph = ww.Graph(generate.complete(40).pairs())
    bare = graph.nbytes
    ww.count(graph)
    _ = graph.edges
    assert graph.nbytes > bare
    graph.release()
    assert graph.nbytes == bare
