"""Bisson's algorithm through the emulator: bitmaps of all lengths, in both memories, for blocks, warps and threads."""

from __future__ import annotations

from itertools import product
from math import comb
from typing import Any

import numpy as np
import pytest
from helpers.graphs import count_by_product, random_pairs

from emulate.emulated_cases import all_launches, counted, needs_compiler
from emulate.emulator import EmulatedDevice
from emulate.rows import LONG_ROW, device, device_graph, fan, two_hops
from wedgewise import generate
from wedgewise.algorithms._contract import Shape
from wedgewise.algorithms.gpu import _parts, bisson
from wedgewise.stages import DeviceGraph

pytestmark = needs_compiler
UNITS = ("block", "warp", "thread")
MEMORIES = ("fits", "never")
__all__ = ["device"]


def count(graph: DeviceGraph, device: EmulatedDevice, **knobs: int | str) -> tuple[int, int]:
    """Triangles and tests; twice the same, since bitmaps are clear again behind a count."""
    work = bisson.prepare(graph, bisson.ALGORITHM.settings(knobs), device)
    found = counted(work)
    assert counted(work) == found
    return found


def layout(unit: str, bits: int, device: EmulatedDevice, **knobs: int | str) -> bisson.BitmapLayout:
    return bisson.BitmapLayout.of(unit, bits, bisson.ALGORITHM.settings(knobs), device)


@pytest.mark.parametrize(("unit", "shared"), tuple(product(UNITS, MEMORIES)))
@pytest.mark.parametrize("heads", [31, 32, 33, 63, 64, 65])
def test_bitmaps_around_whole_words(device: EmulatedDevice, heads: int, unit: str, shared: str) -> None:
    stream = generate.complete(heads + 1)
    graph = device_graph(stream.pairs(), stream.n)
    for compaction in ("on", "off"):
        knobs = {"unit": unit, "shared": shared, "compaction": compaction, "block": 32}
        assert count(graph, device, **knobs) == (comb(heads + 1, 3), two_hops(graph))


@pytest.mark.parametrize(("unit", "shared"), tuple(product(UNITS, MEMORIES)))
def test_bitmaps_of_many_teams_do_not_mix(device: EmulatedDevice, unit: str, shared: str) -> None:
    pairs = random_pairs(90, 1200, seed=8)
    graph = device_graph(pairs, 95)
    for block in (32, 96):
        found = count(graph, device, unit=unit, shared=shared, block=block)
        assert found == (count_by_product(pairs, 95), two_hops(graph))


@pytest.mark.parametrize(
    ("n", "m", "unit"),
    [(10, 381, "block"), (10, 380, "warp"), (10, 38, "warp"), (10, 37, "thread"), (1, 0, "thread")],
)
def test_the_average_degree_decides(n: int, m: int, unit: str) -> None:
    assert bisson.unit_for(n, m, bisson.ALGORITHM.settings({})) == unit
    assert bisson.unit_for(n, m, bisson.ALGORITHM.settings({"unit": "block"})) == "block"


@pytest.mark.parametrize(("n", "unit"), [(80, "block"), (40, "warp"), (6, "thread")])
def test_auto_takes_the_unit_of_the_graph(n: int, unit: str, device: EmulatedDevice) -> None:
    stream, launched = generate.complete(n), []
    launch = device.launch

    def noted(stem: str, kernel: str, *rest: Any, **options: Any) -> None:
        launched.append(kernel)
        launch(stem, kernel, *rest, **options)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(device, "launch", noted)
        assert count(device_graph(stream.pairs(), stream.n), device, block=32)[0] == comb(n, 3)
    assert set(launched) == {f"count_by_{unit}"}


@pytest.mark.parametrize(("unit", "shared"), [("block", "fits"), ("warp", "fits"), ("warp", "never")])
@pytest.mark.parametrize("offset_type", [np.uint32, np.uint64])
def test_a_row_of_70_000(device: EmulatedDevice, offset_type: Any, unit: str, shared: str) -> None:
    work = bisson.prepare(
        fan(offset_type), bisson.ALGORITHM.settings({"unit": unit, "shared": shared, "block": 64}), device
    )
    assert counted(work) == (LONG_ROW - 1, LONG_ROW - 1)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("part_arcs", [1, 7, 89])
def test_rows_in_several_parts(
    device: EmulatedDevice, unit: str, part_arcs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_parts, "PART_ARCS", part_arcs)
    pairs = random_pairs(90, 1200, seed=2)
    graph = device_graph(pairs, 95)
    assert count(graph, device, unit=unit, block=32) == (count_by_product(pairs, 95), two_hops(graph))


def test_compaction_numbers_the_heads(device: EmulatedDevice) -> None:
    graph = device_graph([(0, 7), (0, 9), (7, 9), (3, 20), (3, 9)], 40)
    heads, bits = bisson._compacted(graph, device)
    assert graph.out_neighbours.tolist() == [7, 9, 9, 20, 9]
    assert (heads, bits.tolist()) == (3, [0, 1, 1, 2, 1])
    assert count(graph, device, bitmap_mib=0) == (1, 1)


@pytest.mark.parametrize(("n", "pairs"), [(0, []), (5, []), (3, [(0, 1), (1, 2)])])
def test_no_vertex_begins_a_triangle(device: EmulatedDevice, n: int, pairs: list[tuple[int, int]]) -> None:
    work = bisson.prepare(device_graph(pairs, n), bisson.ALGORITHM.settings({}), device)
    assert list(all_launches(work)) == []
    assert counted(work) == (0, 0)


def test_bitmaps_are_shared_where_enough_of_them_fit(device: EmulatedDevice) -> None:
    most_bits = 8 * (device.shared_bytes - bisson.STATIC_SHARED_BYTES)
    assert layout("block", most_bits, device).is_shared
    assert not layout("block", most_bits + 1, device).is_shared
    quarter = layout("warp", most_bits // 4, device)
    assert (quarter.is_shared, quarter.block, quarter.teams) == (True, 128, 4)
    seventh = layout("warp", most_bits // 7 // 32 * 32, device)
    assert (seventh.block, seventh.blocks(device, 0)) == (32 * 7, device.sms)
    assert layout("warp", 1000, device).blocks(device, 0) * layout("warp", 1000, device).teams == 64 * device.sms
    assert not layout("warp", most_bits // 4 + 32, device).is_shared
    assert not layout("thread", 1, device).is_shared
    assert not layout("block", 1, device, shared="never").is_shared
    for shared in (layout("block", most_bits, device), quarter):
        assert shared.bitmap_bytes + bisson.STATIC_SHARED_BYTES <= device.shared_bytes
        assert shared.blocks(device, 0) == device.sms


def test_bitmaps_beyond_shared_memory_are_bounded(device: EmulatedDevice) -> None:
    warps = layout("warp", 10**7, device)
    assert warps.bitmap_bytes == 8 * 1_250_000
    assert warps.blocks(device, 1 << 40) == device.sms * 8
    assert warps.blocks(device, 25_000_000) == 2
    assert warps.blocks(device, 0) == 1
    assert layout("thread", 10**7, device).bitmap_bytes == 256 * 1_250_000


def test_launches_of_bounded_work(device: EmulatedDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = random_pairs(90, 1200, seed=8)
    graph = device_graph(pairs, 95)
    monkeypatch.setattr(bisson, "LAUNCH_TESTS", 2000)
    work = bisson.prepare(graph, bisson.ALGORITHM.settings({}), device)
    assert len(list(all_launches(work))) > 2
    assert counted(work) == (count_by_product(pairs, 95), two_hops(graph))


def test_memory_model() -> None:
    settings = bisson.ALGORITHM.settings
    lists = 64 * (64_000 + 157)
    bitmaps = 256 * 64 * 8000
    shape = Shape(64_000, 640_000)
    assert bisson.bytes_needed(shape, settings({"compaction": "off"})) == lists + bitmaps
    assert bisson.bytes_needed(shape, settings({})) == lists + bitmaps + 4 * 640_000 + 12 * 64_000
    few = settings({"compaction": "off", "bitmap_mib": 1})
    assert bisson.bytes_needed(shape, few) == lists + (1 << 20)
    least = settings({"compaction": "off", "bitmap_mib": 0, "unit": "thread"})
    assert bisson.bytes_needed(shape, least) == lists + 256 * 8000
