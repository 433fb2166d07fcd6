"""Work on a GPU, told apart: preparing by the host's clock, kernels by the device's, and what was held there."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from wedgewise.algorithms import find
from wedgewise.algorithms._contract import DeviceWork, Launch, Shape, TrussJob
from wedgewise.algorithms._truss import rounds
from wedgewise.algorithms.gpu.eager import EagerDeviceRows
from wedgewise.graph import Graph
from wedgewise.machine import gpu
from wedgewise.run.choose import choose_orientation, make_device_plan
from wedgewise.run.plan import OrientedShape, Plan
from wedgewise.run.request import Request
from wedgewise.stages import DeviceGraph
from wedgewise_bench.stopwatch import Stopwatch

COPIED_BYTES = 1 << 28


class DeviceCount:
    """A count of a graph that lies on the device, prepared once; each `launch` repeats its kernels.

    ``plan`` says who counts. Seconds of kernels are between two events around the clearing of the counters and all
    launches; a count in several batches makes what each of them reads before its launches, outside of these.
    """

    def __init__(
        self,
        graph: Graph,
        algorithm: str,
        knobs: Mapping[str, int | str] | None,
        order: str = "auto",
        relabel: str = "auto",
    ) -> None:
        self.device = gpu.find_device()
        request = Request(device="cuda", algorithm=algorithm, order=order, relabel=relabel, knobs=knobs)
        order, relabel = choose_orientation(request, "cuda", "count", graph)
        self.form = graph.on_device(order, relabel)
        planned = OrientedShape(Shape(self.form.n, self.form.m, self.form.wedges), order, relabel)
        self.plan: Plan = make_device_plan(request, "count", planned, self.device)
        with self.device.memory():
            self._prepare()  # compiles
            self.device.synchronize()
            begin = time.perf_counter()
            self.work, self.kept = self._prepare()
            self.device.synchronize()
            self.prepare_seconds = time.perf_counter() - begin
        self.seconds = 0.0
        self.tests = 0

    def _prepare(self) -> tuple[DeviceWork, tuple[Launch, ...] | None]:
        """What the kernels read; the launches too, where they are all of one batch."""
        work = find(self.plan.algorithm, "cuda").on_device("count").prepare(self.form, self.plan.knobs, self.device)
        return work, work.batches[0]() if len(work.batches) == 1 else None

    def launch(self) -> int:
        """Run all kernels once, timed; the triangles."""
        self.seconds = 0.0
        clearing: tuple[Launch, ...] = (partial(self.work.found.fill, 0),)
        with self.device.memory():
            for batch in self.work.batches or (tuple,):
                launches = batch() if self.kept is None else self.kept
                with Stopwatch(self.device) as watch:
                    for launch in (*clearing, *launches):
                        launch()
                self.seconds += watch.seconds
                clearing = ()
            triangles, tests = self.device.download(self.work.found).tolist()
        self.tests = int(tests)
        return int(triangles)

    def measured(self) -> dict[str, Any]:
        """The latest launch: its seconds, by stage, and the edges of the graph."""
        stages = {"prepare": self.prepare_seconds, "kernel": self.seconds}
        return {"seconds": self.seconds, "stages": stages, "edges": self.plan.m}

    def facts(self) -> dict[str, Any]:
        """Who counted, how much was looked up, in rows of which lengths, and the least time by the device's memory."""
        return {
            "chosen": self.plan.algorithm,
            "vertices": self.plan.n,
            "wedges_tested": self.tests,
            "limit_seconds": reading_seconds(self.form, self.device),
            **out_degrees(self.form, self.device),
        }


class EagerRounds:
    """The published eager k-truss on rows that lie on the device: what its paper times, without making the rows."""

    def __init__(
        self, graph: Graph, knobs: Mapping[str, int | str] | None, order: str = "auto", relabel: str = "auto"
    ) -> None:
        request = Request("k_truss", device="cuda", algorithm="eager", order=order, relabel=relabel, knobs=knobs)
        self.device = gpu.find_device()
        self.form = graph.on_device(*choose_orientation(request, "cuda", "k_truss", graph))
        self.granularity = str(find("eager", "cuda").settings(knobs)["granularity"])

    def seconds(self, k: int) -> float:
        """All rounds down to the k-truss, by the events of the device."""
        with self.device.memory():
            rows = EagerDeviceRows(self.form, self.granularity, self.device)
            with Stopwatch(self.device) as watch:
                rounds.peel(rows, k, TrussJob(k), rows.remaining)
            return watch.seconds


def out_degrees(form: DeviceGraph, device: gpu.Cuda) -> dict[str, float]:
    """The mean, the median and the largest out-degree; of no vertices, none."""
    if not form.n:
        return {}
    with device.memory():
        degrees = device.xp.diff(form.offsets)
        return {
            "out_degree_mean": form.m / form.n,
            "out_degree_median": float(device.xp.median(degrees)),
            "out_degree_most": int(degrees.max()),
        }


def reading_seconds(form: DeviceGraph, device: gpu.Cuda) -> float:
    """The least time of anything that looks at every arc: its arrays read once, as fast as the device copies."""
    with device.memory():
        size = min(COPIED_BYTES, device.free_bytes() // 4)
        source, target = (device.xp.zeros(size, device.xp.uint8) for _ in range(2))
        seconds = []
        for _ in range(3):
            with Stopwatch(device) as watch:
                target[:] = source
            seconds.append(watch.seconds)
        nbytes = int(form.offsets.nbytes) + int(form.out_neighbours.nbytes)
        return min(seconds) * nbytes / (2 * size)  # a copy reads and writes


class DevicePeak:
    """The most device memory that was held at once from now on, by all threads; of several devices, the sum."""

    def __init__(self, devices: Sequence[gpu.Cuda]) -> None:
        self._most = [0] * len(devices)
        for at, device in enumerate(devices):
            device.watch_memory(partial(self._hear, at))

    def _hear(self, at: int, held: int) -> None:
        self._most[at] = max(self._most[at], held)

    @property
    def bytes(self) -> int:
        return sum(self._most)
