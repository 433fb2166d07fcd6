"""Plan → Partials: run a plan's tasks and keep every task's exact integers under its id."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from wedgewise.algorithms import find
from wedgewise.errors import PreconditionError
from wedgewise.execute.threads import run_tasks
from wedgewise.graph import OrientedGraph
from wedgewise.machine import jit
from wedgewise.plan import Plan

LEAST_TASKS_PER_THREAD = 4  # for less, starting a thread takes longer than it saves


@dataclass(frozen=True, slots=True)
class Partial:
    """What one task found."""

    task: int
    triangles: int
    tests: int


@dataclass(frozen=True, slots=True)
class Execution:
    """All partials by task id, and how many tasks there had to be."""

    tasks: int
    partials: dict[int, Partial]


def execute(plan: Plan, graph: OrientedGraph, on_done: Callable[[int, int], None] | None = None) -> Execution:
    """Count `graph` as planned; ``on_done(finished, tasks)`` reports progress."""
    if (graph.order, graph.named_by) != (plan.order, plan.relabel):
        raise PreconditionError(
            f"planned for {plan.order} order and ids by {plan.relabel}, handed {graph.order} and {graph.named_by}"
        )
    algorithm = find(plan.algorithm, plan.device)
    work = algorithm.prepare(graph, plan.knobs, plan.threads)
    tasks = len(work.bounds) - 1
    bounds = work.bounds.tolist()
    workspaces: dict[int, Any] = {}

    def run(task: int, worker: int) -> Partial:
        if worker not in workspaces:
            workspaces[worker] = work.workspace()
        triangles, tests = work.count(bounds[task], bounds[task + 1], workspaces[worker])
        return Partial(task, int(triangles), int(tests))

    report = None if on_done is None else lambda finished: on_done(finished, tasks)
    found = run_tasks(run, tasks, min(plan.threads, max(1, tasks // LEAST_TASKS_PER_THREAD)), report)
    if not algorithm.compiled:
        jit.work_by_arrays(plan.estimated_seconds)
    return Execution(tasks, {partial.task: partial for partial in found})
