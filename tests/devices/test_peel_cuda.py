"""Peeling on a real device: the trusses of the CPU in blocks of any size, short launches, and the room that is stated.

What every algorithm for trusses is held to on a device is in test_eager_cuda.py.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from emulate.peel_cases import PeelCase, check, small_cases
from helpers.data_folder import TRUTHS as FOLDER_TRUTHS
from helpers.data_folder import graph_path, needs_the_folder
from helpers.graphs import TRUTHS, fixture_pairs, truss_details
from helpers.same_answers import assert_same
from numpy.typing import NDArray

import wedgewise as ww
from devices.real_device import held_bytes, needs_device
from wedgewise.algorithms._contract import TRUSSES, Shape, TrussJob
from wedgewise.algorithms.gpu import peel
from wedgewise.generate import EdgeStream, book, complete, kronecker, small_world, star
from wedgewise.machine import gpu
from wedgewise.prepare.device_forms import copy_graph

pytestmark = needs_device
CUDA: dict[str, Any] = {"device": "cuda", "algorithm": "peel"}
BLOCKS = (32, 64, 96, 160, 256, 512, 1024)
REPEATS = 20
MAX_SECONDS = 0.25  # of a launch
QUESTIONS = (*TRUSSES, "truss_summary", "truss_components")

for_every_answer = pytest.mark.parametrize("computes", TRUSSES)


@pytest.fixture
def device() -> Iterator[gpu.Cuda]:
    found = gpu.find_device()
    with found.memory():
        yield found


@cache
def graph_of(name: str) -> ww.Graph:
    """A fixture, or a Kronecker graph by its scale."""
    if name in TRUTHS:
        return ww.Graph(fixture_pairs(name), n=TRUTHS[name]["n"])
    return ww.Graph(kronecker(int(name), seed=1).pairs())


@cache
def numbers_of(name: str) -> NDArray[np.int64]:
    """The truss numbers that peeling on the CPU finds."""
    return ww.trussness(graph_of(name), device="cpu", algorithm="peel")


def hold_to(numbers: NDArray[np.int64], graph: ww.Graph, **how: Any) -> None:
    """All truss numbers, the last truss, and single ones: the first, one in the middle, the last, the one behind it."""
    result = ww.run("trussness", graph, **CUDA, **how)
    assert (result.device, result.algorithm) == ("cuda", "peel")
    np.testing.assert_array_equal(result.answer, numbers)
    kmax = int(numbers.max(initial=2))
    last = ww.max_truss(graph, **CUDA, **how)
    assert last.k == kmax
    np.testing.assert_array_equal(last.edges, np.flatnonzero(numbers == kmax))
    for k in sorted({3, 4, (3 + kmax) // 2, kmax, kmax + 1}):
        np.testing.assert_array_equal(ww.k_truss(graph, k, **CUDA, **how).edges, np.flatnonzero(numbers >= k))


@pytest.mark.parametrize("case", tuple(small_cases()), ids=str)
def test_small_graphs_with_small_limits(device: gpu.Cuda, case: PeelCase) -> None:
    check(case, device)


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("name", [*TRUTHS, "12", "16"])
def test_blocks_of_any_size(name: str, block: int) -> None:
    hold_to(numbers_of(name), graph_of(name), knobs={"block": block})


@pytest.mark.parametrize("few_wedges", [-1, 2**31], ids=["keystone", "peel"])
@pytest.mark.parametrize("name", ["12", "16"])
def test_supports_of_both_origins(monkeypatch: pytest.MonkeyPatch, name: str, few_wedges: int) -> None:
    monkeypatch.setattr(peel, "FEW_WEDGES", few_wedges)
    hold_to(numbers_of(name), graph_of(name))


@for_every_answer
def test_repeats_are_identical(computes: str) -> None:
    graph, details = graph_of("16"), truss_details(computes, 12)
    expected = ww.run(computes, graph, device="cpu", **details).answer
    for _ in range(REPEATS):
        assert_same(ww.run(computes, graph, **CUDA, **details).answer, expected)


@pytest.mark.data
@needs_the_folder
@pytest.mark.parametrize("name", FOLDER_TRUTHS or [None])
def test_graphs_of_the_folder_have_their_trusses(name: str) -> None:
    known, graph = FOLDER_TRUTHS[name], ww.Graph(graph_path(name), device="cuda")
    numbers = ww.trussness(graph, **CUDA)
    assert {k: int((numbers >= int(k)).sum()) for k in known["truss_edges_by_k"]} == known["truss_edges_by_k"]
    assert numbers.max() == known["kmax"]
    hold_to(numbers, graph)


@pytest.mark.parametrize("question", QUESTIONS)
def test_questions_have_the_answers_of_the_cpu(question: str) -> None:
    random = np.random.default_rng(7)
    dirty = random.integers(0, 300, (9_000, 2)) * 10**6
    named = [(f"v{u}", f"v{v}") for u, v in random.integers(0, 60, (700, 2)).tolist()]
    for source in (dirty, named, kronecker(12, seed=1).pairs(), np.empty((0, 2), np.int64)):
        result = ww.run(question, source, device="cuda", verify=True, **truss_details(question))
        assert result.device == "cuda"
        assert_same(result.answer, ww.run(question, source, device="cpu", **truss_details(question)).answer)


@for_every_answer
def test_nothing_is_left_behind(computes: str) -> None:
    pairs, details = kronecker(14, seed=1).pairs(), truss_details(computes)

    def interrupt(*_line: object) -> None:
        raise KeyboardInterrupt

    def held_after() -> int:
        graph = ww.Graph(pairs, device="cuda")
        with pytest.raises(KeyboardInterrupt):
            ww.run(computes, graph, progress=interrupt, **CUDA, **details)
        ww.run(computes, graph, **CUDA, **details)
        assert graph.device_nbytes > 0
        del graph
        gc.collect()
        return held_bytes()

    before = held_bytes()
    assert [held_after() for _ in range(3)] == [before] * 3


def matching(edges: int) -> ww.Graph:
    """Edges that share no vertex: twice as many vertices as edges."""
    return ww.Graph(np.arange(2 * edges).reshape(-1, 2))


def lonely(scale: int, vertices: int) -> ww.Graph:
    """A Kronecker graph among many more vertices that have no edges."""
    return ww.Graph(kronecker(scale, seed=1).pairs(), n=vertices)


def generated(stream: EdgeStream) -> ww.Graph:
    return ww.Graph(stream.pairs(), n=stream.n)


SHAPES: dict[str, Any] = {
    "kronecker": lambda: generated(kronecker(18, seed=1)),
    "small world": lambda: generated(small_world(1 << 18, 10, 0.1)),
    "matching": lambda: matching(1 << 21),
    "star": lambda: generated(star(1 << 21)),
    "book": lambda: generated(book(1 << 20)),
    "clique": lambda: generated(complete(1500)),
    "lonely vertices": lambda: lonely(12, 1 << 22),
}


@for_every_answer
@pytest.mark.parametrize("shape", SHAPES)
def test_memory_stays_within_what_is_stated(shape: str, computes: str) -> None:
    device, answer = gpu.find_device(), peel.ALGORITHM.truss_on_device(computes)
    knobs = peel.ALGORITHM.settings(None)
    oriented = SHAPES[shape]().oriented("degree", "rank")
    pool = device.xp.cuda.MemoryPool()  # counts what is held between its blocks too
    with device.xp.cuda.using_allocator(pool.malloc):
        graph = copy_graph(oriented, device)
        for k in (3, 4) if computes == "k_truss" else (None,):
            pool.free_all_blocks()
            held = pool.total_bytes()
            found = answer.find(graph, TrussJob(k, knobs), device)
            taken = pool.total_bytes() - held
            del found
            assert taken <= answer.bytes_needed(Shape(graph.n, graph.m, graph.wedges), knobs)


@for_every_answer
def test_memory_that_is_not_there_after_all(computes: str) -> None:
    graph, device, details = ww.Graph(kronecker(18, seed=1).pairs()), gpu.find_device(), truss_details(computes)
    expected = ww.run(computes, graph, device="cpu", **details).answer
    graph.on_device("degree", "rank")
    pool = device._pool
    pool.set_limit(size=pool.total_bytes() + (32 << 20))
    try:
        result = ww.run(computes, graph, **CUDA, **details)
    finally:
        pool.set_limit(size=0)  # none
    assert result.device == "cpu"
    assert any(reason.startswith("on the CPU, because the GPU has too little memory") for reason in result.plan.reasons)
    assert_same(result.answer, expected)
    again = ww.run(computes, graph, **CUDA, **details)
    assert again.device == "cuda"
    assert_same(again.answer, expected)


@for_every_answer
def test_launches_are_short(monkeypatch: pytest.MonkeyPatch, computes: str) -> None:
    device, graph = gpu.find_device(), ww.Graph(kronecker(20, seed=1).pairs(), device="cuda")
    details, launch, taken = truss_details(computes), device.launch, list[tuple[float, str]]()
    ww.run(computes, graph, **CUDA, **details)  # compiles

    def timed(stem: str, kernel: str, *arguments: Any, **options: Any) -> None:
        device.synchronize()
        begin = time.perf_counter()
        launch(stem, kernel, *arguments, **options)
        device.synchronize()
        taken.append((time.perf_counter() - begin, kernel))

    monkeypatch.setattr(device, "launch", timed)
    assert ww.run(computes, graph, **CUDA, **details).device == "cuda"
    assert {"write_rows", "peel"} <= {kernel for _, kernel in taken}
    assert max(taken)[0] < MAX_SECONDS, max(taken)
