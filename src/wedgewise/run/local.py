"""Plan → Partials: run a plan's tasks and keep every task's exact integers under its id."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from wedgewise.algorithms import find
from wedgewise.algorithms._contract import Work
from wedgewise.algorithms._passes import Partial, run_pass
from wedgewise.errors import PreconditionError
from wedgewise.machine import jit
from wedgewise.machine.out_of_memory import memory_for
from wedgewise.run.plan import Plan
from wedgewise.stages import OrientedGraph

if TYPE_CHECKING:
    from wedgewise.run.device_listing import DeviceListing
    from wedgewise.run.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Execution:
    """All partials by task id, how many tasks there had to be, and the work with what its passes filled.

    ``seconds`` are those of the stages that a device keeps apart. What a device filled is in the order of the vertices
    or edges already; ``listing`` numbers the triangles where a device has counted those of all arcs. ``task_seconds``
    are those of the tasks that were timed.
    """

    tasks: int
    partials: dict[int, Partial]
    work: Work
    seconds: dict[str, float] = field(default_factory=dict)
    listing: DeviceListing | None = None
    task_seconds: dict[int, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ran:
    """What was found, by the plan as it was carried out; of GPUs and threads together, what ran where and when."""

    execution: Execution
    plan: Plan
    timeline: Timeline | None = None


@memory_for("count")
def execute(plan: Plan, graph: OrientedGraph, on_done: Callable[[int, int], None] | None = None) -> Execution:
    """Answer for `graph` as planned; ``on_done(finished, tasks)`` reports progress."""
    if (graph.order, graph.named_by) != (plan.order, plan.relabel):
        raise PreconditionError(
            f"planned for {plan.order} order and ids by {plan.relabel}, handed {graph.order} and {graph.named_by}"
        )
    algorithm = find(plan.algorithm, plan.device)
    work = algorithm.on_cpu(plan.computes).prepare(graph, plan.knobs, plan.threads)
    tasks = sum(len(step.bounds) - 1 for step in work.passes)
    partials: dict[int, Partial] = {}
    for step in work.passes:
        before = len(partials)
        report = None if on_done is None else lambda finished, before=before: on_done(before + finished, tasks)
        for partial in run_pass(step, before, plan.threads, report):
            partials[partial.task] = partial
    if not algorithm.compiled:
        jit.work_by_arrays(plan.estimated_seconds)
    return Execution(tasks, partials, work)
