"""keystone's answers on a real device: those of the CPU, by vertex, by edge and as a listing, whatever the rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from helpers.graphs import CLOSED_FORMS, TRUTHS, fixture_path
from numpy.typing import NDArray

import wedgewise as ww
from devices.real_device import needs_device
from wedgewise.algorithms._contract import DeviceWork
from wedgewise.algorithms.gpu import _keystone_answers as answers
from wedgewise.algorithms.gpu.keystone import ALGORITHM
from wedgewise.generate import EdgeStream, book, complete, kronecker, star
from wedgewise.machine import gpu
from wedgewise.prepare.device_forms import copy_graph
from wedgewise.run.device import PIECE_BYTES, DeviceListing, launch_all
from wedgewise.stages import DeviceGraph, OrientedGraph

pytestmark = needs_device

NEVER = 2**31 - 1
REPEATS = 10
LONG = (book(70_000), star(70_000), complete(700))


@pytest.fixture
def device() -> Iterator[gpu.Cuda]:
    found = gpu.find_device()
    with found.memory():
        yield found


def answered(prepare: Any, graph: DeviceGraph, device: gpu.Cuda, **knobs: int | str) -> DeviceWork:
    work: DeviceWork = prepare(graph, ALGORITHM.settings(knobs), device)
    launch_all(work, device)
    return work


def by_vertex(form: OrientedGraph, device: gpu.Cuda, **knobs: int | str) -> NDArray[np.uint64]:
    """The triangles of each vertex, and no more and no fewer of them than were found."""
    work = answered(answers.prepare_triangles, copy_graph(form, device), device, **knobs)
    counts = np.empty(form.n, np.uint64)
    counts[form.vertex_of] = device.download(work.filled)
    assert int(counts.sum()) == 3 * int(work.found[0])
    return counts


def by_edge(form: OrientedGraph, device: gpu.Cuda, **knobs: int | str) -> NDArray[np.uint32]:
    """The triangles of each edge, edges ascending."""
    work = answered(answers.prepare_edge_support, copy_graph(form, device), device, **knobs)
    offsets = form.offsets.astype(np.int64)
    tails = np.repeat(np.arange(form.n), offsets[1:] - offsets[:-1])
    ends = np.sort(form.vertex_of[np.stack([tails, form.out_neighbours.astype(np.int64)], axis=1)], axis=1)
    supports: NDArray[np.uint32] = device.download(work.filled)[np.lexsort((ends[:, 1], ends[:, 0]))]
    return supports


def check(graph: ww.Graph, device: gpu.Cuda, order: str = "degree", **knobs: int | str) -> None:
    form = graph.oriented(order, "rank", threads=1)
    np.testing.assert_array_equal(by_vertex(form, device, **knobs), ww.triangles(graph, device="cpu"))
    np.testing.assert_array_equal(by_edge(form, device, **knobs), ww.edge_support(graph, device="cpu"))


@pytest.mark.parametrize("name", TRUTHS)
def test_fixtures(name: str, device: gpu.Cuda) -> None:
    check(ww.read(fixture_path(name)), device)


@pytest.mark.parametrize("stream", CLOSED_FORMS, ids=lambda stream: stream.name)
def test_closed_forms(stream: EdgeStream, device: gpu.Cuda) -> None:
    check(ww.Graph(stream.pairs(), n=stream.n), device)


@pytest.mark.parametrize("order", ["degree", "id"])
@pytest.mark.parametrize("stream", LONG, ids=lambda stream: stream.name)
def test_long_rows(stream: EdgeStream, order: str, device: gpu.Cuda) -> None:
    check(ww.Graph(stream.pairs(), n=stream.n), device, order)


@pytest.mark.parametrize("block", [32, 64, 128, 256, 1024])
def test_block_sizes(block: int, device: gpu.Cuda) -> None:
    check(ww.Graph(kronecker(12, seed=1).pairs()), device, block=block)


@pytest.mark.parametrize("least_far_loads", [0, 1, NEVER])
@pytest.mark.parametrize("hubs", [1, 1000, 65_535])
def test_every_way_through_the_pivots(hubs: int, least_far_loads: int, device: gpu.Cuda) -> None:
    check(ww.Graph(kronecker(14, seed=2).pairs()), device, hubs=hubs, least_far_loads=least_far_loads)


def test_repeats_are_identical(device: gpu.Cuda) -> None:
    form = ww.Graph(kronecker(16, seed=1).pairs()).oriented("degree", "rank", threads=1)
    first = by_edge(form, device)
    for _ in range(REPEATS):
        np.testing.assert_array_equal(by_edge(form, device), first)


@pytest.mark.parametrize("piece", [1000, 1 << 20])
def test_a_listing_is_that_of_the_cpu(piece: int, device: gpu.Cuda) -> None:
    graph = ww.Graph(kronecker(10, seed=1).pairs())
    form = copy_graph(graph.oriented("degree", "rank", threads=1), device)
    work = answered(answers.prepare_listing, form, device)
    listing = DeviceListing(work, form, device, piece * PIECE_BYTES)
    rows = ww.list_triangles(graph, algorithm="keystone", device="cpu")
    assert listing.total == len(rows) == int(work.found[0])
    np.testing.assert_array_equal(listing.stretch(0, listing.total), rows)
    middle = len(rows) // 2
    np.testing.assert_array_equal(listing.stretch(middle, middle + 777), rows[middle : middle + 777])
