"""WeTriC through the emulator: every combination, matrices of any length, rounds that end anywhere, wide numbers."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import cycle, product
from math import comb, isqrt
from typing import Any

import numpy as np
import pytest
from helpers.graphs import CLOSED_FORMS, TRUTHS, count_by_product, fixture_pairs, random_pairs

from emulate.emulated_cases import all_launches
from emulate.emulator import EmulatedDevice
from wedgewise import generate
from wedgewise.algorithms._contract import Shape
from wedgewise.algorithms.gpu import wetric
from wedgewise.generate import EdgeStream
from wedgewise.prepare.clean import clean
from wedgewise.prepare.orient import orient
from wedgewise.stages import DeviceGraph, EdgeList, Origin

SMALL_FIXTURES = tuple(name for name in TRUTHS if TRUTHS[name]["m"] < 5000)
MATRIX_LENGTHS = (0, 1, 2, 31, 32, 33, 34, 63, 64, 65, 100, 129, 2**31 - 1)
SPREADS = (1, 2, 7, 8, 31, 32, 2**31 - 1)
BLOCKS = (32, 96, 100, 1024, 2**31 - 1)
by_wedge = pytest.mark.parametrize("combination", ["outgoing-wedge", "arrow-wedge"])
every_combination = pytest.mark.parametrize("combination", wetric.COMBINATIONS)


@pytest.fixture(scope="module")
def device() -> EmulatedDevice:
    return EmulatedDevice()


def device_graph(pairs: Any, n: int, order: str = "degree") -> DeviceGraph:
    edges = EdgeList(np.asarray(pairs, np.int64).reshape(-1, 2), Origin("test", "array"), vertices=n)
    graph = orient(clean(edges, 1, compiled=False), order, compiled=False)
    return DeviceGraph(
        graph.n, graph.offsets, graph.out_neighbours, graph.vertex_of, graph.order, graph.named_by, graph.wedges
    )


@cache
def hubs_and_gaps() -> tuple[DeviceGraph, int]:
    """Two hubs with long rows, random rows, and long stretches of vertices without wedges between them."""
    pages = 250
    spine = generate.book(pages).pairs().astype(np.int64)
    near, far = random_pairs(60, 500, seed=5) + 2, random_pairs(40, 300, seed=6) + 700
    pairs, n = np.concatenate([spine, near, far]), 1000
    return device_graph(pairs, n, "id"), count_by_product(pairs, n)


def counted(graph: DeviceGraph, device: EmulatedDevice, **knobs: int | str) -> tuple[int, int]:
    """Triangles and tests, launch after launch."""
    work = wetric.prepare(graph, wetric.ALGORITHM.settings(knobs), device)
    for launch in all_launches(work):
        launch()
    device.synchronize()
    triangles, tests = work.found.tolist()
    return triangles, tests


def work_by_rows(graph: DeviceGraph, combination: str) -> int:
    """The tests of every arc v -> w by the formulas below the paper's table 2."""
    begin, heads = graph.offsets.astype(np.int64).tolist(), graph.out_neighbours.tolist()
    tests = {"outgoing": 0, "arrow": 0, "mixed": 0}
    for v in range(graph.n):
        for arc in range(begin[v], begin[v + 1]):
            behind, row = begin[v + 1] - arc - 1, begin[heads[arc] + 1] - begin[heads[arc]]
            tests["outgoing"] += behind
            tests["arrow"] += row
            tests["mixed"] += min(behind, row)
    return tests[combination.split("-")[0]]


@pytest.mark.parametrize("stream", CLOSED_FORMS, ids=lambda stream: stream.name)
def test_closed_forms(device: EmulatedDevice, stream: EdgeStream) -> None:
    graph = device_graph(stream.pairs(), stream.n)
    assert counted(graph, device) == (stream.expected_triangles, graph.wedges)


@pytest.mark.parametrize("name", SMALL_FIXTURES)
def test_published_counts(device: EmulatedDevice, name: str) -> None:
    pairs = fixture_pairs(name)
    triangles, _ = counted(device_graph(pairs, int(pairs.max()) + 1), device)
    assert triangles == TRUTHS[name]["triangles"]


@every_combination
@pytest.mark.parametrize(("n", "pairs"), [(0, []), (5, []), (2, [(0, 1)]), (3, [(0, 1), (0, 2), (1, 2)])])
def test_tiny_graphs(device: EmulatedDevice, n: int, pairs: list[tuple[int, int]], combination: str) -> None:
    graph = device_graph(pairs, n)
    assert counted(graph, device, combination=combination) == (len(pairs) // 3, work_by_rows(graph, combination))


@every_combination
@pytest.mark.parametrize("order", ["degree", "core", "id"])
@pytest.mark.parametrize("matrix_length", [0, 70, 25_000])
def test_every_combination(device: EmulatedDevice, combination: str, order: str, matrix_length: int) -> None:
    pairs = random_pairs(120, 1500, seed=matrix_length)
    graph = device_graph(pairs, 130, order)
    expected = count_by_product(pairs, 130), work_by_rows(graph, combination)
    assert counted(graph, device, combination=combination, matrix_length=matrix_length) == expected


@pytest.mark.parametrize("retrieval", wetric.RETRIEVALS)
@pytest.mark.parametrize("style", wetric.STYLES)
def test_edge_retrievals(device: EmulatedDevice, style: str, retrieval: str) -> None:
    graph, expected = hubs_and_gaps()
    assert counted(graph, device, combination=f"{style}-edge", retrieval=retrieval)[0] == expected


@pytest.mark.parametrize("matrix_length", MATRIX_LENGTHS)
def test_matrices_of_any_length(device: EmulatedDevice, matrix_length: int) -> None:
    pairs = random_pairs(130, 3000, seed=matrix_length)
    triangles, _ = counted(device_graph(pairs, 130), device, matrix_length=matrix_length)
    assert triangles == count_by_product(pairs, 130)


def test_matrix_holds_the_last_rows_and_nothing_else(device: EmulatedDevice) -> None:
    graph = device_graph(random_pairs(90, 900, seed=3), 90)
    for length in range(70):
        setting = wetric.WetricSetting.of(wetric.ALGORITHM.settings({"matrix_length": length}), graph.n)
        assert setting.matrix_words == sum(-(-row // 32) for row in range(length))
        bits = np.bitwise_count(wetric.filled_matrix(graph, setting, device)).sum()
        assert bits == graph.m - int(graph.offsets[graph.n - length])


@pytest.mark.compiled  # lines of the host that others run too
@by_wedge
@pytest.mark.parametrize(("spread", "cooperation"), [*zip(SPREADS, cycle(["on", "off"]), strict=False)])
def test_spreads(device: EmulatedDevice, combination: str, spread: int, cooperation: str) -> None:
    graph, expected = hubs_and_gaps()
    knobs: dict[str, int | str] = {
        "combination": combination,
        "spread": spread,
        "cooperation": cooperation,
        "matrix_length": 950,
    }
    assert counted(graph, device, **knobs) == (expected, work_by_rows(graph, combination))


@pytest.mark.compiled  # lines of the host that others run too
@pytest.mark.parametrize(("combination", "block"), [*zip(2 * wetric.COMBINATIONS, cycle(BLOCKS), strict=False)])
def test_blocks_of_any_size(device: EmulatedDevice, combination: str, block: int) -> None:
    graph, expected = hubs_and_gaps()
    assert counted(graph, device, combination=combination, block=block)[0] == expected


@pytest.mark.compiled  # lines of the host that others run too
@pytest.mark.parametrize(
    ("combination", "retrieval"), [*zip(wetric.COMBINATIONS, cycle(wetric.RETRIEVALS), strict=False)]
)
def test_wide_offsets(device: EmulatedDevice, combination: str, retrieval: str) -> None:
    graph, expected = hubs_and_gaps()
    wide = replace(graph, offsets=graph.offsets.astype(np.uint64))
    knobs: dict[str, int | str] = {"combination": combination, "block": 64, "retrieval": retrieval, "spread": 32}
    assert counted(wide, device, **knobs) == (expected, work_by_rows(graph, combination))


@every_combination
def test_several_launches(device: EmulatedDevice, monkeypatch: pytest.MonkeyPatch, combination: str) -> None:
    graph, expected = hubs_and_gaps()
    monkeypatch.setattr(wetric, "LAUNCH_WEDGES", {"id": 1_001})
    monkeypatch.setattr(wetric, "LAUNCH_TESTS", 700)
    monkeypatch.setattr(wetric, "THREAD_TESTS", 2_000)
    knobs = wetric.ALGORITHM.settings({"combination": combination, "block": 32})
    assert len(list(all_launches(wetric.prepare(graph, knobs, device)))) > 3
    assert counted(graph, device, combination=combination, block=32) == (expected, work_by_rows(graph, combination))


def test_shared_memory_bounds_the_spread() -> None:
    graph, expected = hubs_and_gaps()
    for stride in (1, 2, 3, 4):
        small = EmulatedDevice(shared_bytes=1024 * 8 * stride + 8)
        assert counted(graph, small, block=1024, spread=32)[0] == expected


def test_wedges_beyond_32_bits(device: EmulatedDevice) -> None:
    """A fan: the wedges 0 -> w, 0 -> u of a hub of 200,000 are closed where u follows w; parts of them are counted."""
    rim = np.arange(1, 200_001)
    spokes = np.stack([np.zeros_like(rim), rim], axis=1)
    graph = device_graph(np.concatenate([spokes, np.stack([rim[:-1], rim[1:]], axis=1)]), len(rim) + 1, "id")
    degree = len(rim)
    assert graph.wedges == comb(degree, 2) > 4 * 2**32

    def closed_before(wedge: int) -> int:
        behind = comb(degree, 2) - wedge
        rows_behind = (isqrt(8 * behind + 1) - 1) // 2  # each has its closed wedge first
        return degree - 1 - rows_behind

    knobs = wetric.ALGORITHM.settings({"matrix_length": 40, "spread": 3})
    wedges = wetric.NumberedWedges.of(graph, "outgoing", device.xp)
    whole_rows = [row * degree - row * (row + 1) // 2 for row in (1, 2, 77_777, degree - 3)]
    for cut, before, after in product((*whole_rows, 2**32, 2**33, 12_345_678_901), (0, 1, 1000), (0, 1, 3000)):
        begin, end = max(0, cut - before), min(graph.wedges, cut + after)
        prepared = wetric.Prepared.of(graph, knobs, device)
        if begin < end:
            wetric.wedge_launch(prepared, wedges, begin, end)()
        assert prepared.found.tolist() == [closed_before(end) - closed_before(begin), end - begin]


def test_memory_model() -> None:
    def needed(n: int, m: int, **knobs: int | str) -> int:
        return wetric.bytes_needed(Shape(n, m), wetric.ALGORITHM.settings({"matrix_length": 0, **knobs}))

    assert needed(9, 20) == 4 + 24 * 10
    assert needed(9, 20, combination="arrow-wedge") == 4 + (24 + 12) * 10 + 20 * 21
    assert needed(9, 20, combination="mixed-edge") == 4
    assert needed(9, 20, combination="mixed-edge", retrieval="pairs") == 4 + 8 * 20
    assert needed(99, 200, matrix_length=65) == 4 * (32 + 2 * 32) + 24 * 100
