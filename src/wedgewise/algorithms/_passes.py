"""Run the passes of an algorithm on threads; every task returns its exact counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wedgewise.algorithms._contract import BatchWork, Pass, Work
from wedgewise.machine.threads import run_tasks

MIN_TASKS_PER_THREAD = 4  # for less, starting a thread takes longer than it saves


def run_passes(work: Work | BatchWork, threads: int) -> int:
    """Run all passes of some work; the triangles that were found."""
    return sum(triangles for step in work.passes for triangles, _ in run_pass(step, threads))


def run_pass(step: Pass, threads: int, on_done: Callable[[int], None] | None = None) -> list[tuple[int, int]]:
    """The triangles and the tests that every task of a pass finds; few of them run on fewer threads."""
    tasks = len(step.bounds) - 1
    bounds = step.bounds.tolist()
    workspaces: dict[int, Any] = {}

    def run(task: int, worker: int) -> tuple[int, int]:
        if worker not in workspaces:
            workspaces[worker] = step.workspace()
        triangles, tests = step.run(bounds[task], bounds[task + 1], workspaces[worker])
        return int(triangles), int(tests)

    return run_tasks(run, tasks, min(threads, max(1, tasks // MIN_TASKS_PER_THREAD)), on_done)
