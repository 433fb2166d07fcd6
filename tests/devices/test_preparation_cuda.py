"""Cleaning, orienting and relabelling on a real device: the bytes and errors of the host, and memory as stated."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from devices.real_device import needs_device
from wedgewise.errors import InputError
from wedgewise.generate import kronecker
from wedgewise.machine import gpu
from wedgewise.prepare import clean_arrays
from wedgewise.prepare.clean import clean, clean_device_bytes, clean_on_device, most_slots
from wedgewise.prepare.orient import (
    ORDERS,
    RELABELLINGS,
    arcs_of_edges,
    arcs_of_edges_on_device,
    orient,
    orient_device_bytes,
    orient_on_device,
    relabel,
    relabel_on_device,
)
from wedgewise.prepare.ranked_arcs import EndCounts, rank_device_bytes, rank_on_device, simple_device_bytes
from wedgewise.stages import EdgeList, Origin

pytestmark = needs_device

ORIGIN = Origin("<array>", "array")
DTYPES = (np.int32, np.uint32, np.int64, np.uint64)


def dirty_pairs(dtype: Any, spread: int = 1, ids: int = 900, count: int = 20_000) -> NDArray[Any]:
    """Pairs with loops and copies in both directions."""
    pairs = np.random.default_rng(spread).integers(0, ids, (count, 2)) * spread
    pairs[::50, 1] = pairs[::50, 0]
    return pairs.astype(dtype)


def assert_on_device(on_device: Any, host: Any) -> None:
    """Every field of the device's graph holds what the host's holds; labels that are slots are left out there."""
    device = gpu.find_device()
    for field in dataclasses.fields(on_device):
        a, b = getattr(on_device, field.name), getattr(host, field.name)
        if field.name == "labels" and a is None:
            assert b is host.slots is not None
        elif isinstance(b, np.ndarray):
            assert a.dtype == b.dtype, field.name
            assert np.array_equal(device.download(a), b), field.name
        else:
            assert a == b, field.name


def assert_prepared_alike(pairs: NDArray[Any], vertices: int | None = None) -> None:
    """Simple graphs, orientations, relabellings and places of edges are those of the host; the pairs stay."""
    device = gpu.find_device()
    with device.memory():
        sent = device.upload(pairs)
        simple = clean(EdgeList(pairs, ORIGIN, vertices), 1, compiled=False)
        there = clean_on_device(EdgeList(pairs[:0], ORIGIN, vertices), sent, device)
        assert np.array_equal(device.download(sent), pairs)
        assert_on_device(there, simple)
        for order in ORDERS:
            oriented, arcs = orient(simple, order, compiled=False), orient_on_device(there, order, device)
            assert_on_device(arcs, oriented)
            for by in RELABELLINGS:
                renamed, renamed_there = relabel(oriented, by, compiled=False), relabel_on_device(arcs, by, device)
                assert_on_device(renamed_there, renamed)
                places = device.download(arcs_of_edges_on_device(there, renamed_there, device))
                assert places.dtype == renamed.offsets.dtype
                assert np.array_equal(places, arcs_of_edges(simple, renamed, compiled=False))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("spread", [1, 3, 1_000_003])
def test_every_dtype_and_spread_of_labels(dtype: Any, spread: int) -> None:
    assert_prepared_alike(dirty_pairs(dtype, spread))


@pytest.mark.parametrize("pairs", [[], [[3, 3]], [[1, 0], [0, 1], [0, 1], [1, 0], [1, 1]]])
@pytest.mark.parametrize("vertices", [None, 4])
def test_the_least_graphs(pairs: list[list[int]], vertices: int | None) -> None:
    assert_prepared_alike(np.array(pairs, np.int64).reshape(-1, 2), vertices)


def test_skewed_degrees_and_isolated_vertices() -> None:
    pairs = np.asarray(kronecker(14, seed=1).pairs())
    assert_prepared_alike(pairs, int(pairs.max()) + 1000)


def test_parts_of_any_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clean_arrays, "PART", 1000)
    assert_prepared_alike(dirty_pairs(np.int32))
    assert_prepared_alike(dirty_pairs(np.int64, 10**9))


@pytest.mark.parametrize(("pair", "vertices"), [((2, -3), None), ((0, 900), 900)])
def test_errors_are_those_of_the_host(pair: tuple[int, int], vertices: int | None) -> None:
    pairs = dirty_pairs(np.int64)
    pairs[777] = pair
    edges, device = EdgeList(pairs, ORIGIN, vertices), gpu.find_device()
    with pytest.raises(InputError) as on_host:
        clean(edges, 1, compiled=False)
    with pytest.raises(InputError) as on_device:
        clean_on_device(edges, device.upload(pairs), device)
    assert str(on_device.value) == str(on_host.value)


@pytest.mark.parametrize(("dtype", "spread"), [(np.int32, 1), (np.int64, 10**9)])
def test_memory_stays_within_what_is_stated(dtype: Any, spread: int) -> None:
    device = gpu.find_device()
    pairs = dirty_pairs(dtype, spread, ids=1 << 20, count=1 << 24)
    sent, edges = device.upload(pairs), EdgeList(pairs[:0], ORIGIN)
    pool = device.xp.cuda.MemoryPool()  # counts what is held between its blocks too
    with device.xp.cuda.using_allocator(pool.malloc):
        graph = clean_on_device(edges, sent, device)
        assert pool.total_bytes() <= clean_device_bytes(len(pairs), pairs.itemsize, graph.slot_count)
        pool.free_all_blocks()
        held = pool.total_bytes()
        oriented = orient_on_device(graph, "degree", device)
        assert pool.total_bytes() - held <= orient_device_bytes(graph.slot_count, oriented.m)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("spread", "vertices"), [(1, None), (1, 5000), (1_000_003, None)])
def test_pairs_that_are_ranked_make_the_simple_graph_of_cleaning(dtype: Any, spread: int, vertices: int | None) -> None:
    device, pairs = gpu.find_device(), dirty_pairs(dtype, spread, count=3 << 20)  # large enough for the ring
    edges = EdgeList(pairs[:0], ORIGIN, vertices)
    with device.memory():
        counts = EndCounts(most_slots(edges, len(pairs)), device)
        sent = device.upload(pairs, counts.add)
        kept = rank_on_device(edges, sent, device, counts)
        assert np.array_equal(device.download(sent), pairs)
        again = rank_on_device(edges, sent, device, counts, consume=True)
        simple = clean(EdgeList(pairs, ORIGIN, vertices), 1, compiled=False)
        for ranked in (kept, again):
            assert_on_device(ranked.simple(device.xp), simple)


@pytest.mark.parametrize(("dtype", "spread"), [(np.int32, 1), (np.int64, 10**9)])
def test_memory_of_ranking_stays_within_what_is_stated(dtype: Any, spread: int) -> None:
    device = gpu.find_device()
    pairs = dirty_pairs(dtype, spread, ids=1 << 20, count=1 << 24)
    sent, edges = device.upload(pairs), EdgeList(pairs[:0], ORIGIN)
    counts = EndCounts(most_slots(edges, len(pairs)), device)
    counts.add(sent)
    pool = device.xp.cuda.MemoryPool()  # counts what is held between its blocks too
    with device.xp.cuda.using_allocator(pool.malloc):
        ranked = rank_on_device(edges, sent, device, counts, consume=True)
        assert pool.total_bytes() <= rank_device_bytes(len(pairs), pairs.itemsize, counts.slots)
        pool.free_all_blocks()
        held = pool.total_bytes()
        ranked.simple(device.xp)
        assert pool.total_bytes() - held <= simple_device_bytes(ranked.slot_count, ranked.m)
