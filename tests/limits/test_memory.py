"""Memory is a promise: the stated bytes per pair, edge and vertex hold, and a limit is refused before the work."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wedgewise as ww
from wedgewise import generate
from wedgewise.algorithms._contract import Shape
from wedgewise.clean import clean
from wedgewise.errors import MemoryLimitError
from wedgewise.graph import EdgeList, Origin
from wedgewise.orient import orient
from wedgewise.plan import orient_bytes
from wedgewise.user_graph import clean_bytes

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


@pytest.mark.compiled
@pytest.mark.parametrize("algorithm", [a for a in ww.algorithms() if a.device == "cpu"], ids=lambda a: a.name)
def test_algorithms_take_what_they_declare(pairs: Any, algorithm: Any) -> None:
    graph = ww.Graph(pairs[:40_000])
    oriented = graph.oriented(threads=2)
    settings = algorithm.settings(None)
    ww.count(graph, algorithm=algorithm.name)
    declared = algorithm.bytes_needed(Shape(oriented.n, oriented.m, oriented.wedges), 2, settings)
    peak, _ = peak_of(lambda: ww.count(graph, algorithm=algorithm.name, threads=2))
    assert peak <= declared + SLACK


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
        ww.Graph(FEW_PAIRS)


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
