"""GroupTC through the emulator: chunks and rows that cross each other, lists of all lengths, every knob."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from helpers.graphs import CLOSED_FORMS, TRUTHS, count_by_product, fixture_pairs, random_pairs

import wedgewise as ww
from emulate.emulated_cases import counted, needs_compiler, on_device
from emulate.emulator import EmulatedDevice
from wedgewise import generate
from wedgewise.algorithms._contract import Shape
from wedgewise.algorithms.gpu import grouptc
from wedgewise.generate import EdgeStream
from wedgewise.stages import DeviceGraph

pytestmark = needs_compiler
CHUNKS = (1, 31, 32, 256, 1024)
FACTORS = (0, 1, 2, 7, 2**40)
SMALL_FIXTURES = tuple(name for name in TRUTHS if TRUTHS[name]["m"] < 5000)


@pytest.fixture(scope="module")
def device() -> EmulatedDevice:
    return EmulatedDevice()


def device_graph(pairs: Any, n: int, order: str = "degree") -> DeviceGraph:
    return on_device(ww.Graph(np.asarray(pairs, np.int64).reshape(-1, 2), n=n), order, "rank")


@cache
def hubs_and_leaves() -> tuple[DeviceGraph, int]:
    """Two hubs with long rows, random rows that end anywhere, and stretches of vertices without any."""
    pages = 700
    spine = generate.book(pages).pairs().astype(np.int64)
    random = random_pairs(300, 2500, seed=5) + 2
    pairs, n = np.concatenate([spine, random]), pages + 500
    return device_graph(pairs, n, "id"), count_by_product(pairs, n)


def count(graph: DeviceGraph, device: EmulatedDevice, **knobs: int) -> tuple[int, int]:
    """Triangles and tests."""
    return counted(grouptc.prepare(graph, grouptc.ALGORITHM.settings(knobs), device))


def keys_by_rows(graph: DeviceGraph, factor: int) -> int:
    """The keys of every arc u -> v by its definition: N+(v), or the ids behind v if factor times as many are fewer."""
    begin = graph.offsets.astype(np.int64).tolist()
    heads = graph.out_neighbours.tolist()
    keys = 0
    for u in range(graph.n):
        for arc in range(begin[u], begin[u + 1]):
            behind, row = begin[u + 1] - arc - 1, begin[heads[arc] + 1] - begin[heads[arc]]
            keys += behind if factor * behind < row else row
    return keys


@pytest.mark.parametrize("stream", CLOSED_FORMS, ids=lambda stream: stream.name)
def test_closed_forms(device: EmulatedDevice, stream: EdgeStream) -> None:
    triangles, _ = count(device_graph(stream.pairs(), stream.n), device)
    assert triangles == stream.expected_triangles


@pytest.mark.parametrize("name", SMALL_FIXTURES)
def test_published_counts(device: EmulatedDevice, name: str) -> None:
    pairs = fixture_pairs(name)
    triangles, _ = count(device_graph(pairs, int(pairs.max()) + 1), device)
    assert triangles == TRUTHS[name]["triangles"]


@pytest.mark.parametrize(("n", "pairs"), [(0, []), (5, []), (2, [(0, 1)]), (3, [(0, 1), (0, 2), (1, 2)])])
def test_tiny_graphs(device: EmulatedDevice, n: int, pairs: list[tuple[int, int]]) -> None:
    triangles, tests = count(device_graph(pairs, n), device)
    assert triangles == tests == len(pairs) // 3


@pytest.mark.parametrize("order", ["degree", "core", "id"])
@pytest.mark.parametrize("chunk", CHUNKS)
def test_rows_straddle_chunks(device: EmulatedDevice, chunk: int, order: str) -> None:
    pairs = random_pairs(120, 1500, seed=chunk)
    graph = device_graph(pairs, 130, order)
    triangles, tests = count(graph, device, chunk=chunk, block=32 if chunk == 1 else 128)
    assert (triangles, tests) == (count_by_product(pairs, 130), keys_by_rows(graph, 2))


@pytest.mark.parametrize("block", [32, 64, 256, 1024])
@pytest.mark.parametrize("chunk", [32, 256])
def test_blocks_of_any_size(device: EmulatedDevice, chunk: int, block: int) -> None:
    graph, expected = hubs_and_leaves()
    assert count(graph, device, chunk=chunk, block=block)[0] == expected


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("cached", [0, 1, 300, 2**31 - 1])
def test_either_table_from_either_memory(device: EmulatedDevice, cached: int, factor: int) -> None:
    graph, expected = hubs_and_leaves()
    found = count(graph, device, cached=cached, swap_factor=factor, block=64)
    assert found == (expected, keys_by_rows(graph, factor))


@pytest.mark.parametrize("pages", [31, 255, 256, 257, 3000])
def test_lists_longer_than_the_block(device: EmulatedDevice, pages: int) -> None:
    graph = device_graph(generate.book(pages).pairs(), pages + 2, "id")
    assert count(graph, device, block=32) == (pages, keys_by_rows(graph, 2))


def test_knobs_beyond_the_device_take_the_most_it_has(device: EmulatedDevice) -> None:
    graph, expected = hubs_and_leaves()
    assert count(graph, device, chunk=2**31 - 1, block=2**31 - 1, cached=2**31 - 1)[0] == expected
    layout = grouptc.ChunkLayout.of(grouptc.ALGORITHM.settings({"cached": 2**40, "block": 100}), device)
    assert (layout.block, layout.shared_bytes <= device.shared_bytes) == (96, True)


def test_wide_offsets(device: EmulatedDevice) -> None:
    graph, expected = hubs_and_leaves()
    wide = replace(graph, offsets=graph.offsets.astype(np.uint64))
    assert count(wide, device) == (expected, keys_by_rows(graph, 2))


@pytest.mark.parametrize(("chunk", "most"), [(4, 40_000), (32, 8_000)])
def test_launches_of_bounded_work(
    device: EmulatedDevice, monkeypatch: pytest.MonkeyPatch, chunk: int, most: int
) -> None:
    graph, expected = hubs_and_leaves()
    monkeypatch.setattr(grouptc, "LAUNCH_KEYS", most)
    sizes = _launched_chunks(monkeypatch, device)
    assert count(graph, device, chunk=chunk, block=32) == (expected, keys_by_rows(graph, 2))
    assert len(sizes) > 2
    assert sum(sizes) == -(-graph.m // chunk)
    assert max(sizes) * grouptc.KEYS_PER_CHUNK <= most + grouptc.KEYS_PER_CHUNK


def _launched_chunks(monkeypatch: pytest.MonkeyPatch, device: EmulatedDevice) -> list[int]:
    """The grids of the counting launches to come."""
    grids: list[int] = []
    launch: Callable[..., None] = device.launch

    def noted(stem: str, kernel: str, grid: int, *rest: Any, **options: Any) -> None:
        if kernel == "count_chunks":
            grids.append(grid)
        launch(stem, kernel, grid, *rest, **options)

    monkeypatch.setattr(device, "launch", noted)
    return grids


def test_memory_model() -> None:
    settings = grouptc.ALGORITHM.settings
    assert grouptc.bytes_needed(Shape(10, 512), settings({})) == 4 * 512 + 16 * 2
    assert grouptc.bytes_needed(Shape(10, 512), settings({"chunk": 1})) == 20 * 512
    assert grouptc.bytes_needed(Shape(10, 2048), settings({"chunk": 2**31 - 1})) == 4 * 2048 + 16 * 2
