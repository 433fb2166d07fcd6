"""Plan → Partials on a GPU: copy the oriented graph, prepare, launch, and bring the counts back."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

from numpy.typing import NDArray

from wedgewise.algorithms import find
from wedgewise.algorithms._contract import DeviceWork, Work
from wedgewise.execute.local import Execution, Partial
from wedgewise.graph import DeviceGraph, OrientedGraph
from wedgewise.machine.gpu import Array, Device
from wedgewise.plan import Plan


class CopyingDevice(Device, Protocol):
    """A device that arrays can be copied to and from."""

    def upload(self, array: NDArray[Any]) -> Array: ...

    def download(self, array: Array) -> NDArray[Any]: ...


def execute_on_device(
    plan: Plan, graph: OrientedGraph, device: CopyingDevice, on_done: Callable[[int, int], None] | None = None
) -> Execution:
    """Answer for `graph` as planned; the seconds of copying, preparing and counting are kept apart."""
    answer = find(plan.algorithm, plan.device).on_device(plan.computes)
    begin = time.perf_counter()
    on_device = copy_graph(graph, device)
    device.synchronize()
    copied = time.perf_counter()
    work = answer.prepare(on_device, plan.knobs, device)
    device.synchronize()
    prepared = time.perf_counter()
    batch_seconds, kernel_seconds = launch_all(work, device, on_done)
    triangles, tests = device.download(work.found).tolist()
    filled = None if work.filled is None else device.download(work.filled)
    seconds = {"copy": copied - begin, "prepare": prepared - copied + batch_seconds, "kernel": kernel_seconds}
    return Execution(1, {0: Partial(0, triangles, tests)}, Work((), filled), seconds)


def copy_graph(graph: OrientedGraph, device: CopyingDevice) -> DeviceGraph:
    """The same graph on the device."""
    return DeviceGraph(
        graph.n,
        device.upload(graph.offsets),
        device.upload(graph.out_neighbours),
        device.upload(graph.vertex_of),
        graph.order,
        graph.named_by,
        graph.wedges,
    )


def launch_all(
    work: DeviceWork, device: Device, on_done: Callable[[int, int], None] | None = None
) -> tuple[float, float]:
    """One launch after the other, waiting for each, so that Ctrl-C is heard in between; seconds of both halves."""
    work.found.fill(0)
    preparing = launching = 0.0
    for number, batch in enumerate(work.batches):
        begin = time.perf_counter()
        launches = batch()
        device.synchronize()
        prepared = time.perf_counter()
        for launch in launches:
            launch()
            device.synchronize()
        preparing += prepared - begin
        launching += time.perf_counter() - prepared
        if on_done is not None:
            on_done(number + 1, len(work.batches))
    return preparing, launching
