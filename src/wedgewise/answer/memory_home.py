"""The home of a question in the memory of this machine, computed by its CPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._contract import TRUSSES, Shape, TrussJob
from wedgewise.answer.graph_home import GraphHome
from wedgewise.answer.questions import QUESTIONS, AnswerContext
from wedgewise.answer.response import Clock
from wedgewise.graph import Graph
from wedgewise.machine.progress import Progress
from wedgewise.run.choose import check_preparation, choose_orientation, make_plan
from wedgewise.run.in_memory import execute, find_truss
from wedgewise.run.plan import OrientedShape, Plan
from wedgewise.run.reduce import reduce, reduce_truss
from wedgewise.run.request import Request
from wedgewise.stages import OrientedGraph


@dataclass(frozen=True, slots=True)
class MemoryHome(GraphHome):
    """An oriented graph, and the plan to compute on it."""

    request: Request
    graph: Graph
    oriented: OrientedGraph
    plan: Plan
    leaves_gpu: bool

    @classmethod
    def prepare(
        cls, request: Request, graph: Graph, computes: str, reasons: tuple[str, ...] = (), *, leaves_gpu: bool = False
    ) -> MemoryHome:
        """Orient the graph as the algorithm takes it and plan, or raise where memory is too small for that."""
        order, relabel = choose_orientation(request, "cpu", computes, graph)
        n, m = graph.n, graph.m
        check_preparation(n, m, request)
        oriented = graph.oriented(order, relabel, threads=request.thread_count)
        oriented_shape = OrientedShape(Shape(n, m, oriented.wedges), order, relabel)
        answer_bytes = QUESTIONS[request.question].answer_bytes(computes, n, m)
        plan = make_plan(request, computes, oriented_shape, answer_bytes, reasons)
        return cls(request, graph, oriented, plan, leaves_gpu)

    def run(self, progress: Progress | None, clock: Clock) -> AnswerContext:
        """What is computed as planned; a GPU that has too little memory for it keeps nothing of the graph."""
        plan, oriented = self.plan, self.oriented
        if self.leaves_gpu:
            self.graph.release_device()
            clock.add(self.graph.take_device_seconds())
        if plan.computes == "weighted_triangles":
            oriented = replace(oriented, strengths=self._strengths())
        clock.lap("orient")
        if plan.computes in TRUSSES:
            computed = reduce_truss(find_truss(plan, oriented, truss_job(plan, self.request, progress)), plan)
            clock.lap("truss")
        else:
            computed = reduce(execute(plan, oriented, None if progress is None else count_progress(progress)), plan)
            clock.lap("count")
        return AnswerContext(self.request, self.graph, plan, computed, oriented)

    def _strengths(self) -> NDArray[Any]:
        """What each arc contributes to the product of a triangle."""
        threads, attributes = self.plan.threads, self.graph.attributes
        assert attributes is not None
        by_edge = attributes.strengths(weighted=self.request.details["weighted"], threads=threads)
        by_arc = np.empty_like(by_edge)
        by_arc[self.graph.arcs_of_edges(self.oriented, threads=threads)] = by_edge
        return by_arc


def truss_job(plan: Plan, request: Request, progress: Progress | None) -> TrussJob:
    """Which truss is to be found, and how."""
    return TrussJob(request.details.get("k"), plan.knobs, plan.threads, progress)


def count_progress(progress: Progress) -> Callable[[int, int], None]:
    """Progress of a count."""
    return lambda done, tasks: progress("count", done, tasks)
