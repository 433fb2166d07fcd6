"""Eager k-truss on a device: graphs, granularities, widths and launches, compared with the reference edge by edge."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any
from unittest.mock import patch

import numpy as np
from graphs import random_pairs
from numpy.typing import NDArray

import wedgewise as ww
from emulate.emulated_cases import on_device
from wedgewise import generate
from wedgewise.algorithms.gpu import _arc_work, _eager
from wedgewise.algorithms.gpu._eager import EagerDeviceRows
from wedgewise.graph import DeviceGraph
from wedgewise.machine.gpu import Device
from wedgewise.truss.eager import GRANULARITY, ORDERS, peel, peel_to_the_last
from wedgewise.truss.reference import k_truss_by_products

FEW_STEPS, FEW_ARCS = 1500, 16


@dataclass(frozen=True, slots=True)
class EagerCase:
    """A k-truss of a graph; with k = 0 the last one that has edges."""

    graph: str
    k: int
    granularity: str = "fine"
    order: str = ORDERS[0]
    wide_offsets: bool = False
    small_launches: bool = False
    block: int = _eager.BLOCK


@cache
def graph_of(name: str) -> ww.Graph:
    """A graph by a short name: a family of the generators, or random pairs."""
    family, _, size = name.partition("-")
    if family == "empty":
        return ww.Graph(np.empty((0, 2), np.int64), n=int(size))
    if family == "random":
        n = int(size)
        return ww.Graph(random_pairs(n, 8 * n, seed=n), n=n + 3)
    stream = getattr(generate, family)(int(size))
    return ww.Graph(stream.pairs(), n=stream.n)


@cache
def referred(name: str, k: int) -> NDArray[np.bool_]:
    graph = graph_of(name)
    return k_truss_by_products(graph.edges, graph.n, k)[0]


def form_of(case: EagerCase) -> tuple[DeviceGraph, NDArray[Any]]:
    """The oriented graph as a device has it, and where each edge is among its arcs."""
    graph = graph_of(case.graph)
    form = on_device(graph, case.order, "rank", np.uint64 if case.wide_offsets else np.uint32)
    return form, graph.arcs_of_edges(graph.oriented(case.order, "rank", threads=1), threads=1)


def check(case: EagerCase, device: Device) -> None:
    """Find the truss, and compare."""
    form, places = form_of(case)
    arrays = {name: device.xp.asarray(getattr(form, name)) for name in ("offsets", "out_neighbours", "vertex_of")}
    with launches_of(case):
        rows = EagerDeviceRows(replace(form, **arrays), case.granularity, device, case.block)
        if case.k > 0:
            peel(rows, case.k)
            k, found = case.k, rows.survivors()
        else:
            k, found = peel_to_the_last(rows)
            assert not referred(case.graph, k + 1).any(), case
    by_arc = np.array(found.tolist(), np.bool_)
    np.testing.assert_array_equal(by_arc[places], referred(case.graph, k), str(case))


@contextmanager
def launches_of(case: EagerCase) -> Iterator[None]:
    """Let little work fill a launch."""
    if not case.small_launches:
        yield
        return
    with patch.object(_eager, "LAUNCH_STEPS", FEW_STEPS), patch.object(_arc_work, "CHUNK_ARCS", FEW_ARCS):
        yield


def small_cases() -> Iterator[EagerCase]:
    """Every granularity on rows of any length, and on one graph every order, width, block and many launches."""
    plain = EagerCase("random-40", 4)
    for granularity in GRANULARITY.choices:
        base = replace(plain, granularity=granularity)
        yield from (replace(base, k=k) for k in (2, 3, 5, 0))
        yield from (replace(base, order=order) for order in ORDERS[1:])
        yield from (replace(base, wide_offsets=True), replace(base, small_launches=True))
        yield from (replace(base, block=block) for block in (32, 96, 1024))
        yield from (replace(base, graph=graph, k=3) for graph in ("empty-0", "empty-4", "star-70", "path-40"))
        yield from (
            replace(base, graph=graph, k=k) for graph, k in (("book-100", 4), ("book-100", 3), ("complete-34", 0))
        )


def check_all(device: Device) -> None:
    """All of them on one device."""
    for case in small_cases():
        check(case, device)
