"""The tasks of a pass on threads, each with its exact integers under its number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from wedgewise.algorithms._contract import Pass
from wedgewise.machine.threads import run_tasks

MIN_TASKS_PER_THREAD = 4  # for less, starting a thread takes longer than it saves


@dataclass(frozen=True, slots=True)
class Partial:
    """What one task found; tasks are numbered through all passes."""

    task: int
    triangles: int
    tests: int


def run_pass(step: Pass, first_task: int, threads: int, on_done: Callable[[int], None] | None) -> list[Partial]:
    """Run the tasks of a pass, numbered from `first_task` on; for few of them, on fewer threads."""
    tasks = len(step.bounds) - 1
    bounds = step.bounds.tolist()
    workspaces: dict[int, Any] = {}

    def run(task: int, worker: int) -> Partial:
        if worker not in workspaces:
            workspaces[worker] = step.workspace()
        triangles, tests = step.run(bounds[task], bounds[task + 1], workspaces[worker])
        return Partial(first_task + task, int(triangles), int(tests))

    return run_tasks(run, tasks, min(threads, max(1, tasks // MIN_TASKS_PER_THREAD)), on_done)
