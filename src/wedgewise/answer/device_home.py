"""The home of a question on a GPU."""

from __future__ import annotations

from dataclasses import dataclass

from wedgewise.algorithms._contract import TRUSSES, Shape
from wedgewise.answer.graph_home import GraphHome
from wedgewise.answer.memory_home import count_progress, truss_job
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
class DeviceHome(GraphHome):
    """An oriented graph on the GPU, and the plan to compute on it."""

    request: Request
    graph: Graph
    oriented: DeviceGraph
    plan: Plan

    @classmethod
    def prepare(cls, request: Request, graph: Graph, computes: str, reasons: tuple[str, ...]) -> DeviceHome:
        """Orient the graph there and plan, or raise where the GPU's memory is too small for that."""
        order, relabel = choose_orientation(request, "cuda", computes, graph)
        oriented = graph.on_device(order, relabel)
        oriented_shape = OrientedShape(Shape(oriented.n, oriented.m, oriented.wedges), order, relabel)
        plan = make_device_plan(request, computes, oriented_shape, gpu.find_device(), reasons)
        return cls(request, graph, oriented, plan)

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
