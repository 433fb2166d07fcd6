"""Hu's algorithm through the emulator: rows around the cache and longer than it, rows in parts, any lists."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from helpers.graphs import count_by_product, random_pairs

from emulate.emulated_cases import all_launches, counted, needs_compiler
from emulate.emulator import EmulatedDevice
from emulate.rows import LONG_ROW, device, device_graph, fan, two_hops
from wedgewise import generate
from wedgewise.algorithms._contract import Shape
from wedgewise.algorithms.gpu import _parts, hu
from wedgewise.stages import DeviceGraph

pytestmark = needs_compiler
__all__ = ["device"]


@cache
def hub_and_random() -> tuple[DeviceGraph, int]:
    """A hub that reaches every vertex, random rows among the others, and empty ones."""
    n = 200
    hub = np.column_stack([np.zeros(n - 1, np.int64), np.arange(1, n)])
    pairs = np.concatenate([hub, random_pairs(120, 700, seed=3) + 40])
    return device_graph(pairs, n), count_by_product(pairs, n)


def count(graph: DeviceGraph, device: EmulatedDevice, **knobs: int) -> tuple[int, int]:
    """Triangles and tests."""
    return counted(hu.prepare(graph, hu.ALGORITHM.settings(knobs), device))


@pytest.mark.parametrize("block", [32, 96])
@pytest.mark.parametrize("cached", [0, 1, 7, 198, 199, 200])
def test_rows_shorter_as_long_and_longer_than_the_cache(device: EmulatedDevice, cached: int, block: int) -> None:
    graph, expected = hub_and_random()
    assert int(np.diff(graph.offsets).max()) == 199
    assert count(graph, device, cached=cached, block=block) == (expected, two_hops(graph))


@pytest.mark.parametrize("part_arcs", [1, 3, 198, 199])
@pytest.mark.parametrize("cached", [0, 50, 3000])
def test_rows_in_several_parts(
    device: EmulatedDevice, cached: int, part_arcs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_parts, "PART_ARCS", part_arcs)
    graph, expected = hub_and_random()
    assert count(graph, device, cached=cached, block=32) == (expected, two_hops(graph))


def test_parts_are_the_rows_that_can_begin_a_triangle(device: EmulatedDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_parts, "PART_ARCS", 3)
    graph = device_graph([(0, 5), (1, 4), (1, 5), (2, 1), (2, 3), (2, 4), (2, 5), (3, 4), (3, 5)], 7)
    parts = _parts.parts_of(graph, device)
    degrees = np.diff(graph.offsets)
    pieces = sorted(zip(parts.vertices.tolist(), parts.firsts.tolist(), strict=True))
    assert degrees.tolist() == [1, 3, 3, 2, 0, 0, 0]
    assert pieces == [(1, 0), (2, 0), (3, 0)]
    assert parts.longest_row == 3
    monkeypatch.setattr(_parts, "PART_ARCS", 2)
    parts = _parts.parts_of(graph, device)
    pieces = sorted(zip(parts.vertices.tolist(), parts.firsts.tolist(), strict=True))
    assert pieces == [(1, 0), (1, 2), (2, 0), (2, 2), (3, 0)]
    assert parts.vertices[-1] == 3


@pytest.mark.parametrize("offset_type", [np.uint32, np.uint64])
def test_a_row_of_70_000(device: EmulatedDevice, offset_type: Any) -> None:
    assert count(fan(offset_type), device, block=32) == (LONG_ROW - 1, LONG_ROW - 1)


@pytest.mark.parametrize(("n", "pairs"), [(0, []), (5, []), (3, [(0, 1), (1, 2)])])
def test_no_vertex_begins_a_triangle(device: EmulatedDevice, n: int, pairs: list[tuple[int, int]]) -> None:
    work = hu.prepare(device_graph(pairs, n), hu.ALGORITHM.settings({}), device)
    assert list(all_launches(work)) == []
    assert counted(work) == (0, 0)


def test_lists_that_are_all_empty(device: EmulatedDevice) -> None:
    stream = generate.star(60)
    assert count(device_graph(stream.pairs(), stream.n), device) == (0, 0)


def test_work_is_measured_where_it_may_be_too_much(device: EmulatedDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, expected = hub_and_random()
    parts, tests = _parts.parts_of(graph, device), two_hops(graph)
    work = tests + _parts.PART_COST * len(parts.vertices)
    assert _parts.launch_bounds(parts, graph, 10**9, device) == [0, len(parts.vertices)]
    assert _parts.launch_bounds(parts, graph, work, device) == [0, len(parts.vertices)]
    halves = _parts.launch_bounds(parts, graph, work // 2 + 1, device)
    assert halves[0] == 0
    assert halves[-1] == len(parts.vertices)
    assert len(halves) == 3
    monkeypatch.setattr(hu, "LAUNCH_TESTS", 500)
    assert len(list(all_launches(hu.prepare(graph, hu.ALGORITHM.settings({}), device)))) > 2
    assert count(graph, device, block=64) == (expected, tests)


def test_blocks_have_no_more_threads_than_ids_two_hops_away(device: EmulatedDevice) -> None:
    blocks: list[int] = []
    launch = device.launch

    def noted(stem: str, kernel: str, grid: int, block: int, *rest: Any, **options: Any) -> None:
        blocks.append(block)
        launch(stem, kernel, grid, block, *rest, **options)

    small, large = generate.complete(6), generate.complete(40)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(device, "launch", noted)
        assert count(device_graph(small.pairs(), small.n), device)[0] == 20
        assert count(device_graph(large.pairs(), large.n), device)[0] == 9880
    assert blocks == [32, 256]


def test_memory_model() -> None:
    settings = hu.ALGORITHM.settings({})
    assert hu.bytes_needed(Shape(1000, 5000), settings) == 64 * (1000 + 2)
