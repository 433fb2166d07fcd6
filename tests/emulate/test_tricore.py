"""TriCore through the emulator: trees shorter, as long as and longer than their samples, and either row as the tree."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from helpers.graphs import count_by_product, random_pairs

from emulate.emulated_cases import counted, needs_compiler
from emulate.emulator import EmulatedDevice
from emulate.intersections import book, device_graph, hubs_and_leaves, keys_of, noted_launches
from wedgewise.algorithms._contract import Shape
from wedgewise.algorithms.gpu import _arcs, tricore
from wedgewise.stages import DeviceGraph

pytestmark = needs_compiler


@pytest.fixture(scope="module")
def device() -> EmulatedDevice:
    return EmulatedDevice()


def count(graph: DeviceGraph, device: EmulatedDevice, **knobs: int) -> tuple[int, int]:
    """Triangles and keys searched for."""
    return counted(tricore.prepare(graph, tricore.ALGORITHM.settings(knobs), device))


@pytest.mark.parametrize("pages", [1, 2, *range(30, 35), 63, 64, 65, 1023, 1024, 1025])
def test_trees_around_the_number_of_samples(device: EmulatedDevice, pages: int) -> None:
    assert count(book(pages), device, block=32) == (pages, pages)


@pytest.mark.parametrize("levels", [0, 1, 4, 6, 9, 10, 11])
@pytest.mark.parametrize("pages", [7, 600])
def test_any_number_of_levels(device: EmulatedDevice, levels: int, pages: int) -> None:
    assert count(book(pages), device, levels=levels, block=64) == (pages, pages)


def test_a_row_longer_than_any_cache(device: EmulatedDevice) -> None:
    assert count(book(70_000), device) == (70_000, 70_000)


@pytest.mark.parametrize("order", ["degree", "core", "id"])
@pytest.mark.parametrize("levels", [0, 3, 5])
def test_either_row_is_the_tree(device: EmulatedDevice, order: str, levels: int) -> None:
    pairs = random_pairs(120, 1500, seed=levels)
    graph = device_graph(pairs, 130, order)
    assert count(graph, device, levels=levels, block=64) == (count_by_product(pairs, 130), keys_of(graph))


@pytest.mark.parametrize(("n", "pairs"), [(0, []), (5, []), (2, [(0, 1)]), (3, [(0, 1), (0, 2), (1, 2)])])
def test_tiny_graphs(device: EmulatedDevice, n: int, pairs: list[tuple[int, int]]) -> None:
    assert count(device_graph(pairs, n), device) == (len(pairs) // 3, len(pairs) // 3)


@pytest.mark.parametrize("missing", range(34))
def test_keys_that_are_missing_anywhere_in_the_tree(device: EmulatedDevice, missing: int) -> None:
    """Vertices 0 and 1 have the same row but for one id: before, at, between and behind the samples."""
    ids = np.arange(2, 36)
    spokes = np.stack([np.zeros_like(ids), ids], axis=1)
    others = np.stack([np.ones_like(ids), ids], axis=1)[ids != 2 + missing]
    graph = device_graph(np.concatenate([[(0, 1)], spokes, others]), 36, "id")
    assert count(graph, device, block=32, levels=3) == (33, 33)


def test_wide_offsets(device: EmulatedDevice) -> None:
    graph, expected = hubs_and_leaves()
    wide = replace(graph, offsets=graph.offsets.astype(np.uint64))
    assert count(wide, device, block=1024) == (expected, keys_of(graph))


def test_arcs_beyond_the_grid_are_taken_in_turn(device: EmulatedDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, expected = hubs_and_leaves()
    monkeypatch.setattr(tricore, "BLOCKS_PER_SM", 1)
    launches = noted_launches(monkeypatch, device)
    assert count(graph, device, block=32) == (expected, keys_of(graph))
    assert [grid for kernel, grid, _ in launches if kernel == "count_arcs"] == [device.sms]
    assert graph.m > 2 * device.sms * tricore.ROUND_ARCS


def test_launches_of_bounded_work(device: EmulatedDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, expected = hubs_and_leaves()
    monkeypatch.setattr(tricore, "LAUNCH_KEYS", 6_000)
    launches = noted_launches(monkeypatch, device)
    assert count(graph, device, block=32) == (expected, keys_of(graph))
    ranges = [tuple(map(int, arguments[3:5])) for kernel, _, arguments in launches if kernel == "count_arcs"]
    assert len(ranges) > 2
    assert [begin for begin, _ in ranges] == [0, *(end for _, end in ranges[:-1])]
    assert ranges[-1][1] == graph.m
    chunk = _arcs.CHUNK_ARCS
    assert max(end - begin for begin, end in ranges) <= 6_000 / _arcs.ARC_COST + chunk


def test_levels_take_the_room_there_is() -> None:
    small = EmulatedDevice(shared_bytes=48 << 10)
    for block, offset_bytes, levels in ((32, 4, tricore.MAX_LEVELS), (1024, 4, 7), (1024, 8, 6)):
        layout = tricore.TreeLayout.of(tricore.ALGORITHM.settings({"levels": 99, "block": block}), offset_bytes, small)
        assert layout.shared_bytes + tricore.STATIC_SHARED_BYTES <= small.shared_bytes
        assert layout.levels == levels


def test_memory_model() -> None:
    assert tricore.bytes_needed(Shape(10, 512), tricore.ALGORITHM.settings({})) == 4 * 512 + 16 * 4
