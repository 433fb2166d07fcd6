"""The home of a question in the memory of this machine, computed by its CPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._contract import TRUSSES, Shape, TrussJob
from wedgewise.answer.found import Clock, Found
from wedgewise.answer.questions import QUESTIONS, Asked
from wedgewise.graph import Graph
from wedgewise.machine.progress import Tell
from wedgewise.run.plan import Plan, check_preparation, choose_orientation, make_plan
from wedgewise.run.reduce import Computed, reduce, reduce_truss
from wedgewise.run.request import Request
from wedgewise.stages import OrientedGraph


@dataclass(frozen=True, slots=True)
class Memory:
    """An oriented graph, and the plan to compute on it."""

    request: Request
    graph: Graph
    oriented: OrientedGraph
    plan: Plan
    clock: Clock

    @classmethod
    def prepare(cls, request: Request, graph: Graph, computes: str, reasons: tuple[str, ...], clock: Clock) -> Memory:
        """Orient the graph and plan, or raise where memory has no room for that."""
        oriented, plan = orient_and_plan(request, graph, computes, reasons)
        return cls(request, graph, oriented, plan, clock)

    def run(self, tell: Tell | None) -> Found:
        """What is computed as planned."""
        request, graph, plan, oriented = self.request, self.graph, self.plan, self.oriented
        if plan.computes == "weighted_triangles":
            strengths = _strengths(graph, oriented, request.details["weighted"], plan.threads)
            oriented = replace(oriented, strengths=strengths)
        self.clock.lap("orient")
        computed = compute(plan, oriented, request.details, tell)
        self.clock.lap("truss" if plan.computes in TRUSSES else "count")
        return Found(Asked(request, graph, oriented, computed, plan.threads), plan)


def orient_and_plan(
    request: Request, graph: Graph, computes: str, reasons: tuple[str, ...] = ()
) -> tuple[OrientedGraph, Plan]:
    """The graph as the algorithm takes it, and the plan; what does not fit is refused before."""
    order, relabel = choose_orientation(request, "cpu", computes, graph)
    n, m = graph.n, graph.m
    check_preparation(n, m, request)
    oriented = graph.oriented(order, relabel, threads=request.threads)
    answer_bytes = QUESTIONS[request.question].answer_bytes(computes, n, m)
    shape = Shape(n, m, oriented.wedges)
    return oriented, make_plan(request, computes, shape, order, relabel, answer_bytes, reasons)


def compute(plan: Plan, oriented: OrientedGraph, details: Mapping[str, Any], tell: Tell | None) -> Computed:
    """Execute a plan, and check what comes of it."""
    from wedgewise.run.local import execute
    from wedgewise.run.trusses import find_truss

    if plan.computes in TRUSSES:
        return reduce_truss(find_truss(plan, oriented, truss_job(plan, details, tell)), plan)
    return reduce(execute(plan, oriented, counting(tell)), plan)


def truss_job(plan: Plan, details: Mapping[str, Any], tell: Tell | None) -> TrussJob:
    """Which truss is to be found, and how."""
    return TrussJob(details.get("k"), plan.knobs, plan.threads, tell)


def counting(tell: Tell | None) -> Callable[[int, int], None] | None:
    """Progress of a count."""
    return None if tell is None else lambda done, tasks: tell("count", done, tasks)


def _strengths(graph: Graph, oriented: OrientedGraph, weighted: bool, threads: int) -> NDArray[Any]:
    """What each arc contributes to the product of a triangle."""
    assert graph.attributes is not None
    by_edge = graph.attributes.strengths(weighted=weighted, threads=threads)
    by_arc = np.empty_like(by_edge)
    by_arc[graph.arcs_of_edges(oriented, threads=threads)] = by_edge
    return by_arc
