"""H-INDEX through the emulator: one bucket for all ids, tables without a free place, rows of any length, both units."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.graphs import count_by_product, random_pairs

from emulate.emulated_cases import all_launches, counted, needs_compiler
from emulate.emulator import EmulatedDevice
from emulate.rows import LONG_ROW, device, device_graph, from_rows
from wedgewise import generate
from wedgewise.algorithms._contract import Shape
from wedgewise.algorithms.gpu import hindex
from wedgewise.stages import DeviceGraph

pytestmark = needs_compiler
UNITS = ("warp", "block")
__all__ = ["device"]

for_both_units = pytest.mark.parametrize("unit", UNITS)


def count(graph: DeviceGraph, device: EmulatedDevice, **knobs: int | str) -> tuple[int, int]:
    """Triangles and tests."""
    return counted(hindex.prepare(graph, hindex.ALGORITHM.settings(knobs), device))


def layout(longest_row: int, device: EmulatedDevice, **knobs: int | str) -> hindex.HindexLayout:
    return hindex.HindexLayout.of(hindex.ALGORITHM.settings(knobs), longest_row, device)


def two_rows(of_first: Any, of_second: Any) -> DeviceGraph:
    """Vertices 0 and 1, an arc between them, and what else each of them reaches."""
    highest = int(max(np.max(of_first), np.max(of_second)))
    return from_rows([np.sort(np.append(of_first, 1)), np.sort(of_second), *[[]] * (highest - 1)])


def keys_by_rows(graph: DeviceGraph) -> int:
    """The longer row of every arc whose rows can have an id in common."""
    degrees = np.diff(graph.offsets.astype(np.int64))
    of_tail, of_head = np.repeat(degrees, degrees), degrees[graph.out_neighbours]
    return int(np.maximum(of_tail, of_head)[(of_tail > 1) & (of_head > 0)].sum())


@pytest.mark.compiled  # lines of the host that others run too
@for_both_units
@pytest.mark.parametrize("buckets", [1, 2, 32])
@pytest.mark.parametrize("cached", [0, 3, 200])
@pytest.mark.parametrize("capacity", [1, 4, 90, 500])
def test_one_bucket_for_all(device: EmulatedDevice, capacity: int, cached: int, buckets: int, unit: str) -> None:
    common, others = 32 * np.arange(1, 91), 32 * np.arange(91, 121)
    graph = two_rows(np.concatenate([common, others]), common)
    knobs: dict[str, int | str] = {
        "capacity": capacity,
        "cached": cached,
        "buckets": buckets,
        "unit": unit,
        "block": 64,
    }
    assert count(graph, device, **knobs) == (90, 121)


@for_both_units
@pytest.mark.parametrize("first", [0, 31])
def test_a_table_without_a_free_place(device: EmulatedDevice, first: int, unit: str) -> None:
    """96 ids that all belong into one bucket of three places; keys of every bucket, one of which is there."""
    hashed = 32 * np.arange(1, 97) + first
    keys = np.append(32 * np.arange(200, 294) + np.arange(94) % 32, hashed[40])
    graph = two_rows(keys, hashed)
    assert np.diff(graph.offsets)[:2].tolist() == [96, 96]
    assert layout(96, device, capacity=1).capacity == 3
    assert count(graph, device, capacity=1, unit=unit, block=32) == (1, 96)


@for_both_units
@pytest.mark.parametrize("length", [1, 31, 32, 33, 63, 64, 65, 1000])
def test_rows_around_the_lanes(device: EmulatedDevice, length: int, unit: str) -> None:
    stream = generate.book(length)
    graph = device_graph(stream.pairs(), stream.n)
    assert count(graph, device, unit=unit, block=64) == (length, keys_by_rows(graph))


@for_both_units
@pytest.mark.parametrize("offset_type", [np.uint32, np.uint64])
def test_a_row_of_70_000(device: EmulatedDevice, offset_type: Any, unit: str) -> None:
    rim = np.arange(1, LONG_ROW + 1)
    graph = from_rows([rim, [2, LONG_ROW], [LONG_ROW], *[[]] * (LONG_ROW - 2)], offset_type)
    assert count(graph, device, unit=unit) == (4, 2 * LONG_ROW + 2)


def test_two_rows_of_thousands(device: EmulatedDevice) -> None:
    """94 ids and more in every bucket, which outgrow shared memory, and the capacity too."""
    rim = np.arange(2, 3002)
    graph = two_rows(rim, rim[::2])
    for knobs in ({}, {"capacity": 1}, {"cached": 0, "capacity": 47}):
        assert count(graph, device, block=64, **knobs) == (1500, 3001)


@for_both_units
def test_tables_of_many_arcs_do_not_mix(device: EmulatedDevice, unit: str) -> None:
    pairs = random_pairs(90, 1200, seed=8)
    graph = device_graph(pairs, 95)
    expected = (count_by_product(pairs, 95), keys_by_rows(graph))
    for block in (32, 96):
        assert count(graph, device, unit=unit, block=block, cached=2, capacity=5) == expected


@for_both_units
def test_arcs_that_close_no_triangle_are_not_tested(device: EmulatedDevice, unit: str) -> None:
    path = np.column_stack([np.arange(50), np.arange(1, 51)])
    assert count(device_graph(path, 51), device, unit=unit) == (0, 0)
    star = generate.star(60)
    assert count(device_graph(star.pairs(), star.n), device, unit=unit) == (0, 0)


def test_layouts_fit_the_device(device: EmulatedDevice) -> None:
    usual = layout(1000, device)
    assert (usual.block, usual.teams, usual.buckets, usual.cached, usual.capacity) == (256, 8, 32, 16, 128)
    assert usual.shared_bytes == 8 * 32 * 17 * 4
    assert usual.blocks(device) == 8 * device.sms
    small = EmulatedDevice(sms=1, shared_bytes=48 << 10)
    for knobs in ({"buckets": 2**31 - 1, "block": 1024}, {"cached": 2**31 - 1}, {"buckets": 1024, "unit": "block"}):
        fitted = layout(5000, small, **knobs)
        assert fitted.shared_bytes + hindex.STATIC_SHARED_BYTES <= small.shared_bytes
        assert fitted.buckets * fitted.capacity >= 5000
        assert fitted.blocks(small) >= 1


def test_memory_for_tables_is_bounded(device: EmulatedDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = layout(LONG_ROW, device, cached=0)
    assert tables.positions == 8 * 32 * 2188
    monkeypatch.setattr(hindex, "TABLES_BYTES", 2 * 4 * tables.positions)
    assert tables.blocks(device) == 2
    monkeypatch.setattr(hindex, "TABLES_BYTES", 1)
    assert tables.blocks(device) == 1
    graph = device_graph(generate.book(100).pairs(), 102)
    assert count(graph, device, cached=0)[0] == 100


def test_launches_of_bounded_work(device: EmulatedDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = random_pairs(90, 1200, seed=8)
    graph = device_graph(pairs, 95)
    monkeypatch.setattr(hindex, "LAUNCH_IDS", 20_000)
    work = hindex.prepare(graph, hindex.ALGORITHM.settings({}), device)
    assert len(list(all_launches(work))) > 2
    assert counted(work) == (count_by_product(pairs, 95), keys_by_rows(graph))


def test_memory_model() -> None:
    settings = hindex.ALGORITHM.settings
    large = hindex.bytes_needed(Shape(4_000_000, 64_000_000, 10**9), settings({}))
    assert large == 4 * 68_000_000 + 16 * 500_000 + hindex.TABLES_BYTES
    small = hindex.bytes_needed(Shape(10, 20), settings({}))
    assert small == 4 * 30 + 16 + 256 * 64 * 4 * 33 * 10
    hub = hindex.bytes_needed(Shape(10**8, 10**8, None), settings({}))
    assert hub > 32 * 4 * 10**8
