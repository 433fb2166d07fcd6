"""Green through the emulator: stretches of the merge path of any length, that begin and end anywhere."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from helpers.graphs import count_by_product, random_pairs

from emulate.emulated_cases import counted, needs_compiler
from emulate.emulator import EmulatedDevice
from emulate.intersections import (
    book,
    device_graph,
    hubs_and_leaves,
    noted_launches,
    rows_of_arcs,
    steps_of,
)
from wedgewise.algorithms._contract import Shape
from wedgewise.algorithms.gpu import _arcs, green
from wedgewise.stages import DeviceGraph

pytestmark = needs_compiler
THREADS = (1, 2, 4, 8, 16, 32)


@pytest.fixture(scope="module")
def device() -> EmulatedDevice:
    return EmulatedDevice()


def count(graph: DeviceGraph, device: EmulatedDevice, **knobs: int) -> tuple[int, int]:
    """Triangles and steps."""
    return counted(green.prepare(graph, green.ALGORITHM.settings(knobs), device))


def all_steps(graph: DeviceGraph) -> int:
    return sum(steps_of(row, other) for row, other in rows_of_arcs(graph))


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("order", ["degree", "id"])
def test_any_number_of_threads_takes_the_same_steps(device: EmulatedDevice, threads: int, order: str) -> None:
    pairs = random_pairs(120, 1500, seed=threads)
    graph = device_graph(pairs, 130, order)
    expected = count_by_product(pairs, 130), all_steps(graph)
    assert count(graph, device, threads=threads, block=64, block_arcs=64) == expected


@pytest.mark.parametrize("pages", [1, 2, 3, *range(14, 18), *range(30, 35), 63, 64, 65, 700])
def test_equal_ids_at_the_ends_of_stretches(device: EmulatedDevice, pages: int) -> None:
    """Every id but one is in both rows, so that stretches end before, between and behind copies."""
    for threads in (2, 8, 32):
        knobs = {"threads": threads, "block": 32, "block_arcs": 2**20}
        assert count(book(pages), device, **knobs) == (pages, all_steps(book(pages)))


@pytest.mark.parametrize("gap", [0, 1, 2])
@pytest.mark.parametrize("threads", THREADS)
def test_rows_behind_each_other(device: EmulatedDevice, threads: int, gap: int) -> None:
    """The row of 0 ends where that of 1 begins: they share no id, one id, or neither."""
    begin = 2 + 40 - gap
    spokes = [(0, vertex) for vertex in range(2, 42)]
    others = [(1, vertex) for vertex in range(begin + 1, begin + 30)]
    graph = device_graph([(0, 1), *spokes, *others], 80, "id")
    shared = len(range(begin + 1, 42))
    found = count(graph, device, threads=threads, block=32, block_arcs=99)
    assert found == (shared, all_steps(graph))


@pytest.mark.deep
def test_a_row_longer_than_any_cache(device: EmulatedDevice) -> None:
    found = count(book(70_000), device, block_arcs=2**31 - 1)
    assert found == (70_000, 2 * 70_000)


@pytest.mark.parametrize(("n", "pairs"), [(0, []), (5, []), (2, [(0, 1)]), (3, [(0, 1), (0, 2), (1, 2)])])
def test_tiny_graphs(device: EmulatedDevice, n: int, pairs: list[tuple[int, int]]) -> None:
    graph = device_graph(pairs, n)
    assert count(graph, device) == (len(pairs) // 3, all_steps(graph))


@pytest.mark.parametrize("block_arcs", [1, 10, 33, 2**40])
@pytest.mark.parametrize(("block", "threads"), [(32, 32), (96, 16), (1024, 32)])
def test_blocks_have_an_arc_for_every_group(
    device: EmulatedDevice, monkeypatch: pytest.MonkeyPatch, block: int, threads: int, block_arcs: int
) -> None:
    graph, expected = hubs_and_leaves()
    launches = noted_launches(monkeypatch, device)
    assert count(graph, device, block=block, threads=threads, block_arcs=block_arcs) == (expected, all_steps(graph))
    (grid,) = (grid for kernel, grid, _ in launches if kernel == "count_arcs")
    assert grid == -(-graph.m // max(block_arcs, block // threads))


def test_threads_are_rounded_down_to_a_power_of_two() -> None:
    settings = green.ALGORITHM.settings
    logs = [green.log_threads(settings({"threads": threads})) for threads in (1, 3, 31, 32, 2**31 - 1)]
    assert logs == [0, 1, 4, 5, 5]


def test_wide_offsets(device: EmulatedDevice) -> None:
    graph, expected = hubs_and_leaves()
    wide = replace(graph, offsets=graph.offsets.astype(np.uint64))
    assert count(wide, device) == (expected, all_steps(graph))


def test_launches_of_bounded_work(device: EmulatedDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, expected = hubs_and_leaves()
    monkeypatch.setattr(green, "LAUNCH_STEPS", 30_000)
    launches = noted_launches(monkeypatch, device)
    assert count(graph, device, block=64) == (expected, all_steps(graph))
    ranges = [tuple(map(int, arguments[5:7])) for kernel, _, arguments in launches if kernel == "count_arcs"]
    assert len(ranges) > 2
    assert [begin for begin, _ in ranges] == [0, *(end for _, end in ranges[:-1])]
    assert ranges[-1][1] == graph.m
    work = np.array([_arcs.ARC_COST + len(row) + len(other) for row, other in rows_of_arcs(graph)])
    heaviest_chunk = max(work[at : at + _arcs.CHUNK_ARCS].sum() for at in range(0, graph.m, _arcs.CHUNK_ARCS))
    assert max(work[begin:end].sum() for begin, end in ranges) <= 30_000 + heaviest_chunk


def test_memory_model() -> None:
    assert green.bytes_needed(Shape(10, 513), green.ALGORITHM.settings({})) == 4 * 513 + 16 * 5
