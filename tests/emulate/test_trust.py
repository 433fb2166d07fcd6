"""TRUST through the emulator: buckets that overflow, rows longer than any table, every ablation, both thresholds."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from helpers.graphs import count_by_product, random_pairs

import wedgewise as ww
from emulate.emulated_cases import SKEWED, Case, all_launches, counted, needs_compiler, on_device
from emulate.emulator import EmulatedDevice
from emulate.sanitized import Job, run_apart
from wedgewise import generate
from wedgewise.algorithms._contract import Shape
from wedgewise.algorithms.gpu import trust
from wedgewise.stages import DeviceGraph

pytestmark = needs_compiler
WARP = 32
every_combination = pytest.mark.parametrize("combination", trust.COMBINATIONS)
every_construction = pytest.mark.parametrize("construction", ["vertex", "edge"])


@pytest.fixture(scope="module")
def device() -> EmulatedDevice:
    return EmulatedDevice()


def device_graph(pairs: Any, n: int, order: str = "id", relabelling: str = "rank") -> DeviceGraph:
    return on_device(ww.Graph(np.asarray(pairs, np.int64).reshape(-1, 2), n=n), order, relabelling)


@cache
def mixed_rows() -> tuple[DeviceGraph, int]:
    """A book's spine with rows of 301 and 300, random rows of a few dozen, and vertices without any."""
    spine = generate.book(300).pairs().astype(np.int64)
    pairs, n = np.concatenate([spine, random_pairs(90, 1000, seed=5) + 2]), 400
    return device_graph(pairs, n), count_by_product(pairs, n)


@cache
def one_bucket(members: int, stride: int) -> tuple[DeviceGraph, int]:
    """Vertex 0 reaches `members` ids that are equal modulo `stride`, and each of them the next."""
    ids = np.arange(1, members + 1) * stride
    spokes = np.stack([np.zeros_like(ids), ids], axis=1)
    rim = np.stack([ids[:-1], ids[1:]], axis=1)
    beside = rim + np.array([0, 1])  # in the bucket beside, and not in the table
    pairs, n = np.concatenate([spokes, rim, beside]), members * stride + 2
    return device_graph(pairs, n), members - 1


def count(graph: DeviceGraph, device: EmulatedDevice, **knobs: int | str) -> tuple[int, int]:
    """Triangles and tests."""
    return counted(trust.prepare(graph, trust.ALGORITHM.settings({"block": 32, **knobs}), device))


def collisions(graph: DeviceGraph, device: EmulatedDevice, **knobs: int | str) -> int:
    return trust.table_figures(graph, trust.ALGORITHM.settings({"block": 32, **knobs}), device)["max_collisions"]


def rows_of(graph: DeviceGraph) -> list[list[int]]:
    begin, heads = graph.offsets.tolist(), graph.out_neighbours.tolist()
    return [heads[begin[u] : begin[u + 1]] for u in range(graph.n)]


def look_ups_by_rows(graph: DeviceGraph, room: int) -> int:
    """The second hop of every vertex with two arcs, once for every piece of its row."""
    rows = rows_of(graph)
    return sum(-(-len(row) // room) * sum(len(rows[v]) for v in row) for row in rows if len(row) > 1)


def fullest_by_rows(graph: DeviceGraph, buckets: int, large: int = 2**31, of_block: int = 0) -> int:
    """The most ids of a row with equal remainders, by the buckets that the row gets."""
    rows = (np.array(row) for row in rows_of(graph) if len(row) > 1)
    return max(int(np.bincount(row % (of_block if len(row) > large else buckets)).max()) for row in rows)


@every_combination
@every_construction
@pytest.mark.parametrize("cooptimisation", ["on", "off"])
def test_ablations(device: EmulatedDevice, combination: str, construction: str, cooptimisation: str) -> None:
    graph, expected = mixed_rows()
    chosen = {"combination": combination, "construction": construction, "cooptimisation": cooptimisation}
    assert count(graph, device, block=64, **chosen) == (expected, look_ups_by_rows(graph, 128 * WARP))


@pytest.mark.parametrize("members", [2, 6, 7, 128, 129, 300])
@pytest.mark.parametrize(("block", "large"), [(32, 1), (64, 1), (64, 1000)])
def test_one_bucket_for_all(device: EmulatedDevice, members: int, block: int, large: int) -> None:
    graph, expected = one_bucket(members, 64)
    assert count(graph, device, block=block, large=large)[0] == expected
    assert collisions(graph, device, block=block, large=large) == members


@pytest.mark.parametrize("buckets", [1, 3, 64, 2**40])
@pytest.mark.parametrize("large", [1, 1000])
def test_any_number_of_buckets(device: EmulatedDevice, buckets: int, large: int) -> None:
    graph, expected = mixed_rows()
    of_warp = {1: 1, 3: 2, 64: 64, 2**40: 128}[buckets]
    knobs = {"buckets": buckets, "large": large}
    found = count(graph, device, **knobs)
    assert found == (expected, look_ups_by_rows(graph, 128 * of_warp))
    if of_warp > 2:
        assert collisions(graph, device, **knobs) == fullest_by_rows(graph, of_warp)


@every_combination
@pytest.mark.parametrize(("capacity", "cached"), [(1, 0), (1, 6), (2, 1), (3, 3), (4, 0)])
@pytest.mark.parametrize("large", [1, 1000])
def test_full_buckets_pass_on_and_full_tables_come_again(
    device: EmulatedDevice, combination: str, capacity: int, cached: int, large: int
) -> None:
    graph, expected = mixed_rows()
    found = count(graph, device, combination=combination, capacity=capacity, cached=cached, large=large)
    assert found == (expected, look_ups_by_rows(graph, capacity * WARP))


@pytest.mark.parametrize("members", [31, 32, 33, 64, 65])
def test_rows_around_the_size_of_the_table(device: EmulatedDevice, members: int) -> None:
    for stride, large in product((1, 32), (1, 1000)):
        graph, expected = one_bucket(members, stride) if stride > 1 else wheel_by_id(members)
        assert count(graph, device, capacity=1, large=large) == (expected, look_ups_by_rows(graph, WARP))


def wheel_by_id(rim: int) -> tuple[DeviceGraph, int]:
    """A hub with the lowest id and a path around it: a row of consecutive ids fills every bucket alike."""
    ids = np.arange(1, rim + 1)
    pairs = np.concatenate([np.stack([0 * ids, ids], axis=1), np.stack([ids[:-1], ids[1:]], axis=1)])
    return device_graph(pairs, rim + 1), rim - 1


@pytest.mark.parametrize("cooptimisation", ["on", "off"])
def test_a_row_longer_than_every_table(device: EmulatedDevice, cooptimisation: str) -> None:
    """5,000 ids, where a warp's buckets have room for 4,096."""
    graph, expected = wheel_by_id(5000)
    assert count(graph, device, cooptimisation=cooptimisation) == (expected, look_ups_by_rows(graph, 128 * WARP))


@pytest.mark.parametrize("out_degree", [1, 2, 3, 99, 100, 101, 102])
def test_thresholds(device: EmulatedDevice, out_degree: int) -> None:
    graph, expected = wheel_by_id(out_degree)
    knobs = trust.ALGORITHM.settings({})
    degrees = np.diff(graph.offsets)
    if degrees.max() > 1:
        units = trust.Units.of(graph, knobs, degrees, int(degrees.max()), device)
        assert (units.vertices.tolist(), units.of_blocks) == ([0], int(out_degree > 100))
    assert count(graph, device)[0] == expected


@pytest.mark.parametrize("relabelling", trust.ALGORITHM.relabellings)
@pytest.mark.parametrize(("block", "large"), [(32, 10), (128, 10), (64, 1000)])
def test_collisions(device: EmulatedDevice, relabelling: str, block: int, large: int) -> None:
    graph = device_graph(random_pairs(200, 3000, seed=8), 200, "degree", relabelling)
    assert collisions(graph, device, block=block, large=large) == fullest_by_rows(graph, WARP, large, block)


def test_collisions_by_hand(device: EmulatedDevice) -> None:
    """The ids 1 … 128 in 32, 64 or 16 buckets; 33 ids that are equal modulo 64 in one of 32 or of 64."""
    consecutive, _ = wheel_by_id(128)
    assert collisions(consecutive, device, cooptimisation="off") == 4
    assert collisions(consecutive, device, block=64) == 2
    assert collisions(consecutive, device, buckets=16, cooptimisation="off") == 8
    alike, _ = one_bucket(33, 64)
    assert collisions(alike, device, cooptimisation="off") == 33
    assert collisions(alike, device, block=64, large=32) == 33


def test_no_tables_no_collisions(device: EmulatedDevice) -> None:
    assert collisions(device_graph(generate.path(9).pairs(), 9), device) == 0
    assert collisions(device_graph([], 3), device) == 0
    assert count(device_graph([], 0), device) == (0, 0)


@pytest.mark.parametrize(("chunk", "construction"), [(3, "edge"), (3, "vertex"), (7, "vertex"), (2**40, "vertex")])
def test_chunks(device: EmulatedDevice, chunk: int, construction: str) -> None:
    graph, expected = mixed_rows()
    assert count(graph, device, chunk=chunk, construction=construction)[0] == expected


@pytest.mark.parametrize("combination", ["virtual", "physical"])
def test_rows_longer_than_what_is_copied_at_once(device: EmulatedDevice, combination: str) -> None:
    """The second hop of vertex 0 is one row of 5,000 and two short ones; a warp copies 2,048 ids at once."""
    far = np.arange(10, 5010)
    long_row = np.stack([0 * far + 2, far], axis=1)
    pairs = np.concatenate([[(0, 1), (0, 2), (0, 3), (0, 5009), (1, 2), (1, 3), (3, 5009)], long_row])
    graph = device_graph(pairs, 5010)
    expected = count_by_product(pairs, 5010)
    for large in (1, 1000):
        assert count(graph, device, combination=combination, large=large)[0] == expected


@every_construction
def test_wide_offsets(device: EmulatedDevice, construction: str) -> None:
    graph, expected = mixed_rows()
    wide = replace(graph, offsets=graph.offsets.astype(np.uint64))
    assert count(wide, device, construction=construction, block=64) == (expected, look_ups_by_rows(graph, 128 * WARP))


@pytest.mark.parametrize("large", [1, 30, 1000])
def test_launches_of_bounded_work(device: EmulatedDevice, monkeypatch: pytest.MonkeyPatch, large: int) -> None:
    graph, expected = mixed_rows()
    monkeypatch.setattr(trust, "LAUNCH_TESTS", 2_000)
    knobs = trust.ALGORITHM.settings({"block": 64, "large": large})
    work = trust.prepare(graph, knobs, device)
    assert len(list(all_launches(work))) > 3
    for _ in range(2):  # counters are as they were
        assert counted(work) == (expected, look_ups_by_rows(graph, 128 * WARP))


def test_knobs_beyond_the_device_take_the_most_it_has() -> None:
    graph, expected = mixed_rows()
    small = EmulatedDevice(sms=1, shared_bytes=48 << 10)
    huge = trust.ALGORITHM.settings({"cached": 2**40, "capacity": 2**40, "block": 2**40, "large": 2**40})
    layout = trust.TableLayout.of(huge, graph.offsets.itemsize, 5000, small)
    assert (layout.block, layout.buckets, layout.capacity) == (1024, 1024, 1024)
    assert 0 < layout.cached < 12
    wide = trust.TableLayout.of({**huge, "buckets": 2**40}, graph.offsets.itemsize, 5000, small)
    assert (wide.buckets, wide.cached) == (4096, 1)
    assert wide.shared_bytes + trust.STATIC_SHARED_BYTES <= small.shared_bytes
    assert layout.shared_bytes + trust.STATIC_SHARED_BYTES <= small.shared_bytes
    assert count(graph, small, cached=2**40, capacity=2**40, large=2**40, block=100)[0] == expected


@pytest.mark.deep
@pytest.mark.parametrize("sanitizer", ["address,undefined", "thread"])
def test_blocks_of_several_warps_under_sanitizers(sanitizer: str) -> None:
    """Rows of blocks and of warps in one launch; the small graphs of all algorithms leave blocks of many warps idle."""
    knobs: list[dict[str, int | str]] = [
        {"block": 96, "large": large, "combination": combination, "chunk": chunk, "capacity": capacity}
        for large, combination, chunk, capacity in product((1, 8), trust.COMBINATIONS, (1, 3), (1, 128))
    ]
    if report := run_apart(Job(sanitizer, tuple(Case("trust", SKEWED, setting) for setting in knobs))):
        pytest.fail(report, pytrace=False)


def test_memory_model() -> None:
    def needed(n: int, m: int, **knobs: int | str) -> int:
        return trust.bytes_needed(Shape(n, m), trust.ALGORITHM.settings(knobs))

    tables = 4 * 1024 * 1024 * 128
    assert needed(10**6, 10**7) == tables + 32 * 10**6
    assert needed(10**6, 10**7, construction="edge") == tables + 32 * 10**6 + 44 * 10**7
    assert needed(10**6, 10**7, combination="physical") == tables + tables // 2 + 32 * 10**6
    assert needed(10, 45) == 4 * 10 * 1024 * 10 + 320
