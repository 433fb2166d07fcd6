"""Plan → Partials on a GPU: prepare, launch, and bring the counts back."""

from __future__ import annotations

import time
from collections.abc import Callable

from wedgewise.algorithms import find
from wedgewise.algorithms._contract import DeviceWork, Launch, Work
from wedgewise.algorithms._passes import Partial
from wedgewise.machine.gpu import Array, Device
from wedgewise.machine.out_of_memory import memory_for
from wedgewise.prepare.device_forms import DeviceForms
from wedgewise.run.device_listing import DeviceListing
from wedgewise.run.local import Execution
from wedgewise.run.plan import Plan
from wedgewise.stages import DeviceGraph

LISTING_BYTES = 1 << 30  # of device memory for a piece of a listing, and an eighth of what is free at most


@memory_for("count")
def execute_on_device(
    plan: Plan, graph: DeviceGraph, forms: DeviceForms, on_done: Callable[[int, int], None] | None = None
) -> Execution:
    """Answer as planned for one of the forms; the seconds of preparing and counting are kept apart.

    Arrays come back in the order of the vertices, or of the edges.
    """
    device = forms.device
    answer = find(plan.algorithm, plan.device).on_device(plan.computes)
    with device.memory():
        begin = time.perf_counter()
        work = answer.prepare(graph, plan.knobs, device)
        device.synchronize()
        prepared = time.perf_counter() - begin
        batch_seconds, kernel_seconds = launch_all(work, device, on_done)
        triangles, tests = device.download(work.found).tolist()
        partials = {0: Partial(0, triangles, tests)}
        seconds = {"prepare": prepared + batch_seconds, "kernel": kernel_seconds}
        if plan.computes == "list_triangles":
            listing = DeviceListing(work, graph, device, min(LISTING_BYTES, device.free_bytes() // 8))
            return Execution(1, partials, Work((), work.filled), seconds, listing=listing)
        if work.filled is None:
            return Execution(1, partials, Work(()), seconds)
        filled = work.filled
        del work  # and with it what its launches read
        settled = _by_vertex(filled, graph, device) if plan.computes == "triangles" else filled[forms.places(graph)]
        answered = device.download(settled.astype(device.xp.int64))
    return Execution(1, partials, Work((), answered), seconds)


def _by_vertex(filled: Array, graph: DeviceGraph, device: Device) -> Array:
    settled = device.xp.empty_like(filled)
    settled[graph.vertex_of] = filled
    return settled


def launch_all(
    work: DeviceWork, device: Device, on_done: Callable[[int, int], None] | None = None
) -> tuple[float, float]:
    """All batches, one after the other; seconds of preparing and of the launches."""
    work.found.fill(0)
    preparing = launching = 0.0
    for number, batch in enumerate(work.batches):
        prepared, launched = _launch_batch(batch, device)
        preparing += prepared
        launching += launched
        if on_done is not None:
            on_done(number + 1, len(work.batches))
    return preparing, launching


def _launch_batch(batch: Callable[[], tuple[Launch, ...]], device: Device) -> tuple[float, float]:
    """One launch after the other, waiting for each, so that Ctrl-C is heard in between; nothing of it stays alive."""
    begin = time.perf_counter()
    launches = batch()
    device.synchronize()
    prepared = time.perf_counter()
    for launch in launches:
        launch()
        device.synchronize()
    return prepared - begin, time.perf_counter() - prepared
