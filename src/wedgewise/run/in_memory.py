"""Plan → Execution: run a plan's tasks and keep every task's exact integers under its id; or plan → truss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from wedgewise.algorithms import find
from wedgewise.algorithms._contract import Algorithm, FoundTruss, TrussJob, Work
from wedgewise.algorithms._passes import run_pass
from wedgewise.algorithms._truss import MIN_K
from wedgewise.errors import PreconditionError
from wedgewise.machine import jit
from wedgewise.machine.out_of_memory import memory_for
from wedgewise.machine.progress import never_back
from wedgewise.run.plan import Plan
from wedgewise.run.refusals import check_edges
from wedgewise.stages import DeviceGraph, OrientedGraph
from wedgewise.stages.tasks import TaskResults, TaskTable

if TYPE_CHECKING:
    from wedgewise.run.device import DeviceListing
    from wedgewise.run.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Execution:
    """What all tasks have found, and the work with what its passes filled.

    ``seconds`` are those of the stages that a device keeps apart. What a device filled is in the order of the vertices
    or edges already; ``listing`` numbers the triangles where a device has counted those of all arcs.
    """

    results: TaskResults
    work: Work
    seconds: dict[str, float] = field(default_factory=dict)
    listing: DeviceListing | None = None


@dataclass(frozen=True, slots=True)
class TaskRun:
    """What was found, by the plan as it was carried out; of GPUs and threads together, what ran where and when."""

    execution: Execution
    plan: Plan
    timeline: Timeline | None = None


def finished_execution(results: TaskResults, *busy: TaskTable) -> Execution:
    """What all tasks have found, of which those that are not busy have nothing."""
    is_idle = np.ones(len(results.is_done), np.bool_)
    for tasks in busy:
        is_idle[tasks.number] = False
    results.is_done[is_idle] = True
    return Execution(results, Work(()))


@memory_for("count")
def execute(plan: Plan, graph: OrientedGraph, on_done: Callable[[int, int], None] | None = None) -> Execution:
    """Run the passes of the planned algorithm; ``on_done(finished, tasks)`` reports progress."""
    check_planned_form(plan, graph)
    algorithm = find(plan.algorithm, plan.device)
    work = algorithm.on_cpu(plan.computes).prepare(graph, plan.knobs, plan.threads)
    tasks = sum(len(step.bounds) - 1 for step in work.passes)
    found: list[tuple[int, int]] = []
    for step in work.passes:
        before = len(found)
        report = None if on_done is None else lambda finished, before=before: on_done(before + finished, tasks)
        found += run_pass(step, plan.threads, report)
    if not algorithm.compiled:
        jit.work_by_arrays(plan.estimated_seconds)
    return Execution(TaskResults.of(found), work)


@memory_for("truss")
def find_truss(plan: Plan, graph: OrientedGraph, job: TrussJob) -> FoundTruss:
    """Find the truss that is planned, by arc of the oriented graph."""
    check_planned_form(plan, graph)
    known = known_truss(graph.m, job)
    if known is not None:
        return known
    algorithm = truss_algorithm(plan)
    found = algorithm.truss_on_cpu(plan.computes).find(graph, replace(job, progress=never_back(job.progress)))
    if not algorithm.compiled:
        jit.work_by_arrays(plan.estimated_seconds)
    return found


def known_truss(m: int, job: TrussJob) -> FoundTruss | None:
    """The k-trusses that need no look at the graph: all of it, or nothing where m edges are less than C(k, 2)."""
    if job.k is None or needs_rounds(job.k, m):
        return None
    return FoundTruss(job.k, np.full(m, job.k == MIN_K), 0)


def needs_rounds(k: int, m: int) -> bool:
    """Whether the k-truss of m edges depends on their triangles."""
    return k > MIN_K and k * (k - 1) // 2 <= m


def truss_algorithm(plan: Plan) -> Algorithm:
    """The algorithm of a plan; refuses more edges than it takes."""
    algorithm = find(plan.algorithm, plan.device)
    check_edges(plan.m, algorithm)
    return algorithm


def check_planned_form(plan: Plan, graph: OrientedGraph | DeviceGraph) -> None:
    """Refuse a graph in another orientation than the plan has."""
    if (graph.order, graph.named_by) != (plan.order, plan.relabel):
        raise PreconditionError(
            f"planned for {plan.order} order and ids by {plan.relabel}, handed {graph.order} and {graph.named_by}"
        )
