"""The home of a question on a GPU."""

from __future__ import annotations

from dataclasses import dataclass, replace

from wedgewise.algorithms import registry
from wedgewise.algorithms._contract import TRUSSES, Shape
from wedgewise.answer.memory_home import MemoryHome, count_progress, truss_job
from wedgewise.answer.questions import AnswerContext
from wedgewise.answer.response import Clock
from wedgewise.errors import DeviceMemoryError
from wedgewise.graph import Graph
from wedgewise.machine import gpu
from wedgewise.machine.progress import Progress
from wedgewise.run.choose import choose_orientation, make_device_plan, with_more_batches
from wedgewise.run.device import execute_on_device, find_truss_on_device
from wedgewise.run.plan import OrientedShape, Plan
from wedgewise.run.reduce import Computed, reduce, reduce_truss
from wedgewise.run.request import Request
from wedgewise.stages import DeviceGraph


@dataclass(frozen=True, slots=True)
class DeviceHome:
    """An oriented graph on the GPU, the plan to compute on it, and why the GPU was chosen."""

    request: Request
    graph: Graph
    oriented: DeviceGraph
    plan: Plan
    reasons: tuple[str, ...]

    @classmethod
    def prepare(
        cls, request: Request, graph: Graph, computes: str, reasons: tuple[str, ...]
    ) -> DeviceHome | MemoryHome:
        """Orient the graph there and plan; if the GPU runs out of memory, the CPU takes over."""
        try:
            order, relabel = choose_orientation(request, "cuda", computes, graph)
            oriented = graph.on_device(order, relabel)
            oriented_shape = OrientedShape(Shape(oriented.n, oriented.m, oriented.wedges), order, relabel)
            plan = make_device_plan(request, computes, oriented_shape, gpu.find_device(), reasons)
            return cls(request, graph, oriented, plan, reasons)
        except DeviceMemoryError as error:
            return _cpu_instead(request, graph, computes, reasons, error)

    def cpu_instead(self, error: DeviceMemoryError) -> MemoryHome:
        """The home that takes over when the GPU runs out of memory on the way."""
        return _cpu_instead(self.request, self.graph, self.plan.computes, self.reasons, error)

    def run(self, progress: Progress | None, clock: Clock) -> AnswerContext:
        """What is computed as planned, in more batches when memory runs out."""
        plan = self.plan
        while True:
            try:
                computed, seconds = self._compute(plan, progress)
                break
            except DeviceMemoryError as error:
                plan = with_more_batches(plan, error)
        clock.add({**self.graph.device_forms.take_seconds(), **seconds})
        return AnswerContext(self.request, self.graph, plan, computed)

    def _compute(self, plan: Plan, progress: Progress | None) -> tuple[Computed, dict[str, float]]:
        """What is computed, and its seconds by stage."""
        forms = self.graph.device_forms
        if plan.computes in TRUSSES:
            job = truss_job(plan, self.request, progress)
            found, seconds = find_truss_on_device(plan, self.oriented, forms, job)
            return reduce_truss(found, plan), seconds
        execution = execute_on_device(
            plan, self.oriented, forms, None if progress is None else count_progress(progress)
        )
        return reduce(execution, plan), execution.seconds


def _cpu_instead(
    request: Request, graph: Graph, computes: str, reasons: tuple[str, ...], error: DeviceMemoryError
) -> MemoryHome:
    """The same question for the CPU, by the same algorithm if it has one of that name."""
    why = f"on the CPU, because the GPU has too little memory: {error.reason}"
    request = replace(request, device="cpu", knobs=None)
    if request.algorithm != "auto" and (request.algorithm, "cpu") not in registry():
        request = replace(request, algorithm="auto", order="auto", relabel="auto")
    return MemoryHome.prepare(request, graph, computes, (*reasons, why))
