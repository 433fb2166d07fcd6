"""The home of a question on a GPU."""

from __future__ import annotations

from dataclasses import dataclass

from wedgewise.algorithms._contract import TRUSSES, Shape
from wedgewise.answer.found import Clock, Found
from wedgewise.answer.memory import counting, truss_job
from wedgewise.answer.questions import Asked
from wedgewise.errors import DeviceMemoryError
from wedgewise.graph import Graph
from wedgewise.machine import gpu
from wedgewise.machine.progress import Tell
from wedgewise.run.plan import Plan, choose_orientation, make_device_plan, with_more_batches
from wedgewise.run.reduce import Computed, reduce, reduce_truss
from wedgewise.run.request import Request
from wedgewise.stages import DeviceGraph


@dataclass(frozen=True, slots=True)
class Device:
    """An oriented graph on the GPU, and the plan to compute on it."""

    request: Request
    graph: Graph
    oriented: DeviceGraph
    plan: Plan
    clock: Clock

    @classmethod
    def prepare(cls, request: Request, graph: Graph, computes: str, reasons: tuple[str, ...], clock: Clock) -> Device:
        """Orient the graph there and plan, or raise where the GPU has no room for that."""
        order, relabel = choose_orientation(request, "cuda", computes, graph)
        oriented = graph.on_device(order, relabel)
        shape = Shape(oriented.n, oriented.m, oriented.wedges)
        plan = make_device_plan(request, computes, shape, order, relabel, gpu.find_device(), reasons)
        return cls(request, graph, oriented, plan, clock)

    def run(self, tell: Tell | None) -> Found:
        """What is computed as planned, in more batches when memory runs out."""
        plan = self.plan
        while True:
            try:
                computed, taken = self._compute(plan, tell)
                break
            except DeviceMemoryError as error:
                plan = with_more_batches(plan, error)
        self.clock.add({**self.graph.device_forms.take_seconds(), **taken})
        return Found(Asked(self.request, self.graph, None, computed, plan.threads), plan)

    def _compute(self, plan: Plan, tell: Tell | None) -> tuple[Computed, dict[str, float]]:
        """What is computed, and its seconds by stage."""
        from wedgewise.run.device import execute_on_device
        from wedgewise.run.trusses import find_truss_on_device

        forms = self.graph.device_forms
        if plan.computes in TRUSSES:
            job = truss_job(plan, self.request.details, tell)
            found, seconds = find_truss_on_device(plan, self.oriented, forms, job)
            return reduce_truss(found, plan), seconds
        execution = execute_on_device(plan, self.oriented, forms, counting(tell))
        return reduce(execution, plan), execution.seconds
