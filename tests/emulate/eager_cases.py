"""Eager rounds on a device in blocks of any size and many launches, compared with the reference arc by arc."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from unittest.mock import patch

import numpy as np

from emulate.emulated_cases import on_device
from emulate.truss_cases import graph_of, numbers_by_arc
from wedgewise.algorithms._contract import TrussJob
from wedgewise.algorithms._truss import rounds
from wedgewise.algorithms.cpu.eager import GRANULARITY, ORDERS
from wedgewise.algorithms.gpu import _arcs, eager
from wedgewise.algorithms.gpu.eager import EagerDeviceRows
from wedgewise.machine.gpu import Device
from wedgewise.stages import DeviceGraph

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
    block: int = eager.BLOCK


def form_of(case: EagerCase) -> DeviceGraph:
    """The oriented graph as a device has it."""
    return on_device(graph_of(case.graph), case.order, "rank", np.uint64 if case.wide_offsets else np.uint32)


def check(case: EagerCase, device: Device) -> None:
    """Find the truss, and compare."""
    form, numbers = form_of(case), numbers_by_arc(case.graph, case.order, "rank")
    arrays = {name: device.xp.asarray(getattr(form, name)) for name in ("offsets", "out_neighbours", "vertex_of")}
    with launches_of(case):
        rows = EagerDeviceRows(replace(form, **arrays), case.granularity, device, case.block)
        found = rounds.k_truss(rows, TrussJob(case.k)) if case.k > 0 else rounds.max_truss(rows, TrussJob())
    assert found.k == (case.k or numbers.max()), case
    np.testing.assert_array_equal(np.array(found.filled.tolist(), np.bool_), numbers >= found.k, str(case))


@contextmanager
def launches_of(case: EagerCase) -> Iterator[None]:
    """Let little work fill a launch."""
    if not case.small_launches:
        yield
        return
    with patch.object(eager, "LAUNCH_STEPS", FEW_STEPS), patch.object(_arcs, "CHUNK_ARCS", FEW_ARCS):
        yield


def small_cases() -> Iterator[EagerCase]:
    """Every granularity in every order, width and size of blocks, and in many launches."""
    plain = EagerCase("random-40", 4)
    for granularity in GRANULARITY.choices:
        base = replace(plain, granularity=granularity)
        yield from (replace(base, k=k) for k in (2, 3, 5, 0))
        yield from (replace(base, order=order) for order in ORDERS[1:])
        yield from (replace(base, wide_offsets=True), replace(base, small_launches=True))
        yield from (replace(base, block=block) for block in (32, 96, 1024))
        yield from (replace(base, graph=graph, k=k) for graph, k in (("book-100", 3), ("complete-34", 0)))


def check_all(device: Device) -> None:
    """All of them on one device."""
    for case in small_cases():
        check(case, device)
