"""Plan → Execution on a GPU: prepare, launch, and bring the counts back; or triangles by number, as a GPU lists them.

Numbers and rows of a listing are those of `wedgewise.run.listing`. Triangles are written, turned into vertices and
brought back in pieces. Device memory: `PIECE_BYTES` per triangle of a piece within the limit; a piece begins and ends
with whole arcs, so that up to two arcs' triangles come on top.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from wedgewise.algorithms import find
from wedgewise.algorithms._contract import DeviceWork, FoundTruss, Launch, TrussJob, Work
from wedgewise.errors import DeviceMemoryError
from wedgewise.machine.gpu import Array, CopyingDevice, Device
from wedgewise.machine.out_of_memory import memory_for
from wedgewise.machine.progress import never_back
from wedgewise.prepare.device_forms import DeviceForms
from wedgewise.run.in_memory import Execution, check_planned_form, known_truss, truss_algorithm
from wedgewise.run.listing import Numbering, Triples
from wedgewise.run.plan import Plan
from wedgewise.run.row_order import ascending_vertices, on_device
from wedgewise.stages import DeviceGraph
from wedgewise.stages.tasks import TaskResults

LISTING_BYTES = 1 << 30  # of device memory for a piece of a listing, and an eighth of what is free at most
PIECE_BYTES = 60  # of a triangle: 12 as ids, 48 while they are turned into ascending vertices


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
        results = TaskResults.of([device.download(work.found).tolist()])
        seconds = {"prepare": prepared + batch_seconds, "kernel": kernel_seconds}
        if plan.computes == "list_triangles":
            listing = DeviceListing(work, graph, device, min(LISTING_BYTES, device.free_bytes() // 8))
            return Execution(results, Work((), work.filled), seconds, listing=listing)
        if work.filled is None:
            return Execution(results, Work(()), seconds)
        filled = work.filled
        del work  # and with it what its launches read
        ordered = on_device(filled, graph, forms, is_by_vertex=plan.computes == "triangles")
        values = device.download(ordered, np.int64)
    return Execution(results, Work((), values), seconds)


@memory_for("truss")
def find_truss_on_device(
    plan: Plan, graph: DeviceGraph, forms: DeviceForms, job: TrussJob
) -> tuple[FoundTruss, dict[str, float]]:
    """Find a truss as planned, in the order of the edges and brought back; and the seconds of finding it."""
    check_planned_form(plan, graph)
    known = known_truss(graph.m, job)
    if known is not None:
        return known, {"truss": 0.0}
    device, answer = forms.device, truss_algorithm(plan).truss_on_device(plan.computes)
    with device.memory():
        begin = time.perf_counter()
        found = answer.find(graph, replace(job, progress=never_back(job.progress)), device)
        device.synchronize()
        seconds = {"truss": time.perf_counter() - begin}
        ordered = on_device(found.filled, graph, forms, is_by_vertex=False)
        if plan.computes != "trussness":
            return FoundTruss(found.k, device.download(ordered), found.rounds), seconds
        filled = device.download(ordered, np.int64)
        ordered.sort()
        up_to = device.xp.searchsorted(ordered, device.xp.arange(found.k + 2, dtype=ordered.dtype))
        return FoundTruss(found.k, filled, found.rounds, np.diff(device.download(up_to))), seconds


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


class DeviceListing:
    """The triangles of a graph by number, once a device knows the counts of all arcs.

    Parameters
    ----------
    work : the finished work of a listing on the device
    graph : the graph that it was prepared for
    device : where both lie
    limit_bytes : device memory for the triangles of a piece; where that cannot be had, pieces are halved
    """

    def __init__(self, work: DeviceWork, graph: DeviceGraph, device: CopyingDevice, limit_bytes: int) -> None:
        assert work.filled is not None
        assert work.fill is not None
        self.work, self.device, self.vertex_of = work, device, graph.vertex_of
        self.numbering = Numbering(work.filled, device.download)
        self.piece_triangles = max(1, limit_bytes // PIECE_BYTES)

    @property
    def total(self) -> int:
        """How many triangles there are."""
        return self.numbering.total

    @memory_for("list")
    def stretch(self, start: int, stop: int, on_done: Callable[[int, int], None] | None = None) -> Triples:
        """Triangles number start … stop − 1 as rows of three ascending vertices."""
        triples = np.empty((stop - start, 3), np.uint32)
        begin, pieces = start, 0
        while begin < stop:
            end = min(begin + self.piece_triangles, stop)
            try:
                with self.device.memory():
                    triples[begin - start : end - start] = self.device.download(self._piece(begin, end))
            except DeviceMemoryError:
                if end - begin == 1:
                    raise
                self.piece_triangles = (end - begin) // 2
                continue
            begin, pieces = end, pieces + 1
            if on_done is not None:
                on_done(pieces, pieces - (begin - stop) // self.piece_triangles)
        return triples

    def batches(self, start: int, stop: int, size: int) -> Iterator[Triples]:
        """The same rows, so many at a time."""
        return (self.stretch(at, min(at + size, stop)) for at in range(start, stop, size))

    def _piece(self, start: int, stop: int) -> Array:
        """Rows of ascending vertices on the device, from the whole arcs that hold them."""
        first_arc, before_first, _ = self.numbering.arc_of(start)
        last_arc, _, after_last = self.numbering.arc_of(stop - 1)
        triples = self.device.xp.empty((after_last - before_first, 3), np.uint32)
        assert self.work.fill is not None
        self.work.fill(first_arc, last_arc + 1, triples.reshape(-1))
        return ascending_vertices(triples[start - before_first : stop - before_first], self.vertex_of, self.device.xp)
