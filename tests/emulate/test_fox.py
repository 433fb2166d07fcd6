"""Fox through the emulator: every bin with every method, empty bins, work at the borders of bins, buckets in order."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers.graphs import count_by_product, random_pairs

from emulate.emulated_cases import counted, needs_compiler
from emulate.emulator import EmulatedDevice
from emulate.intersections import (
    book,
    device_graph,
    hubs_and_leaves,
    keys_of,
    noted_launches,
    rows_of_arcs,
    steps_of,
)
from wedgewise.algorithms._contract import Shape
from wedgewise.algorithms.gpu import fox
from wedgewise.stages import DeviceGraph

pytestmark = needs_compiler
every_method = pytest.mark.parametrize("method", fox.METHODS)


@pytest.fixture(scope="module")
def device() -> EmulatedDevice:
    return EmulatedDevice()


def count(graph: DeviceGraph, device: EmulatedDevice, **knobs: int | str) -> tuple[int, int]:
    """Triangles, and keys or steps."""
    return counted(fox.prepare(graph, fox.ALGORITHM.settings(knobs), device))


def estimate(length: int, other: int, method: str, share: int) -> tuple[str, int, int]:
    """The kernel, the bin and the work of an arc whose rows are so long, by definition."""
    shorter, longer = sorted((length, other))
    searching, merging = shorter * longer.bit_length(), shorter + longer
    merges = method == "merge" or (method == "auto" and merging < searching)
    work = merging if merges else searching
    fits = (number for number in range(fox.BINS) if work <= share * 2**number)
    return fox.KERNELS[merges], next(fits, fox.BINS - 1), work


def made_tests(graph: DeviceGraph, method: str) -> int:
    """Keys of the arcs that are searched, steps of those that are merged."""
    tests = 0
    for row, other in rows_of_arcs(graph):
        shorter, longer = (row, other) if len(row) < len(other) else (other, row)
        kernel, _, _ = estimate(len(row), len(other), method, 1)
        tests += steps_of(shorter, longer) if kernel == "merge_pairs" else len(shorter)
    return tests


def arcs_by_bucket(launches: list[tuple[str, int, tuple[Any, ...]]]) -> Counter[tuple[str, int]]:
    """How many pairs every kernel took with every power of two of threads."""
    arcs: Counter[tuple[str, int]] = Counter()
    for kernel, _, arguments in launches:
        if kernel in fox.KERNELS:
            arcs[kernel, int(arguments[3])] += int(arguments[5]) - int(arguments[4])
    return arcs


@every_method
@pytest.mark.parametrize("order", ["degree", "core", "id"])
def test_every_method(device: EmulatedDevice, method: str, order: str) -> None:
    pairs = random_pairs(120, 1500, seed=3)
    graph = device_graph(pairs, 130, order)
    assert count(graph, device, method=method, block=64) == (count_by_product(pairs, 130), made_tests(graph, method))


@every_method
@pytest.mark.parametrize("share", [1, 2, 7, 8, 60, 500, 2**40])
def test_arcs_are_in_the_bins_of_their_work(
    device: EmulatedDevice, monkeypatch: pytest.MonkeyPatch, method: str, share: int
) -> None:
    graph, expected = hubs_and_leaves()
    launches = noted_launches(monkeypatch, device)
    assert count(graph, device, method=method, share=share) == (expected, made_tests(graph, method))
    rows = ((len(row), len(other)) for row, other in rows_of_arcs(graph))
    wanted = Counter(estimate(*lengths, method, share)[:2] for lengths in rows if min(lengths) > 0)
    assert arcs_by_bucket(launches) == wanted


@pytest.mark.parametrize("method", ["merge", "search"])
@pytest.mark.parametrize("pages", [1, 2, 3, 4, 5, 7, 8, 15, 16, 31, 32, 33, 64, 65, 129, 1000])
def test_work_at_the_borders_of_bins(
    device: EmulatedDevice, monkeypatch: pytest.MonkeyPatch, pages: int, method: str
) -> None:
    """One arc has two rows, of `pages` and of one more id; a share of all its work, or of one less, changes its bin."""
    kernel, _, work = estimate(pages, pages + 1, method, 1)
    for share, log_threads in ((work, 0), (work - 1, 1), (-(-work // 16), 4), (-(-work // 32), 5)):
        if share * 2**log_threads < work or (log_threads and share * 2 ** (log_threads - 1) >= work):
            continue
        with monkeypatch.context() as patches:
            launches = noted_launches(patches, device)
            found = count(book(pages), device, method=method, share=share, block=32)
        assert found == (pages, made_tests(book(pages), method))
        assert arcs_by_bucket(launches) == {(kernel, log_threads): 1}


@pytest.mark.deep
@every_method
def test_a_row_longer_than_any_cache(device: EmulatedDevice, method: str) -> None:
    assert count(book(70_000), device, method=method)[0] == 70_000


@every_method
@pytest.mark.parametrize(("n", "pairs"), [(0, []), (5, []), (2, [(0, 1)]), (3, [(0, 1), (0, 2), (1, 2)])])
def test_tiny_graphs(device: EmulatedDevice, n: int, pairs: list[tuple[int, int]], method: str) -> None:
    assert count(device_graph(pairs, n), device, method=method)[0] == len(pairs) // 3


def test_buckets_keep_the_order_of_the_arcs(device: EmulatedDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, _ = hubs_and_leaves()
    assert graph.m > 2 * fox.CHUNK_ARCS
    launches = noted_launches(monkeypatch, device)
    count(graph, device, method="auto")
    taken = 0
    for kernel, _, arguments in launches:
        if kernel in fox.KERNELS:
            begin, end = map(int, arguments[4:6])
            pairs = arguments[2][begin:end].astype(np.uint64)
            assert (np.diff(pairs[:, 0] * graph.n + pairs[:, 1]) > 0).all()
            taken += end - begin
    assert taken == sum(len(other) > 0 for _, other in rows_of_arcs(graph))


def test_wide_offsets(device: EmulatedDevice) -> None:
    graph, expected = hubs_and_leaves()
    wide = replace(graph, offsets=graph.offsets.astype(np.uint64))
    assert count(wide, device) == (expected, keys_of(graph))
    assert count(wide, device, method="merge") == (expected, made_tests(graph, "merge"))


def test_arcs_beyond_the_grid_are_taken_in_turn(device: EmulatedDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, expected = hubs_and_leaves()
    monkeypatch.setattr(fox, "BLOCKS_PER_SM", 1)
    launches = noted_launches(monkeypatch, device)
    assert count(graph, device, block=32) == (expected, keys_of(graph))
    assert max(arcs_by_bucket(launches).values()) > 2 * device.sms * 32
    assert max(grid for kernel, grid, _ in launches if kernel in fox.KERNELS) == device.sms


@every_method
def test_launches_of_bounded_work(device: EmulatedDevice, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    graph, expected = hubs_and_leaves()
    whole = noted_launches(monkeypatch, device)
    count(graph, device, method=method)
    buckets = arcs_by_bucket(whole)
    monkeypatch.setattr(fox, "LAUNCH_WORK", 1_000)
    parts = noted_launches(monkeypatch, device)
    assert count(graph, device, method=method) == (expected, made_tests(graph, method))
    assert arcs_by_bucket(parts) == buckets
    assert len([kernel for kernel, _, _ in parts if kernel in fox.KERNELS]) > len(buckets)


def test_memory_model() -> None:
    assert fox.bytes_needed(Shape(10, 513), fox.ALGORITHM.settings({})) == 12 * 513 + 2 * 336
