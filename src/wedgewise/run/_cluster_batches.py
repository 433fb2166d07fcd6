"""Tasks → batches: so much work at a time that passing it on costs next to nothing.

A scheduler takes about a millisecond for whatever it passes on, so that a batch lasts 0.2 seconds at least where there
is so much to do, and otherwise a share of the work small enough for workers to end at about the same time. Tasks of a
batch look up in the same block where possible: what is made of it serves all of them. Heavy batches go first, so that
none is left at the end for one worker while the others have nothing to do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from wedgewise.run.outofcore import looked_up_in
from wedgewise.stages.blocks import Task
from wedgewise.stages.tasks import Counts, estimates

STEP_SECONDS = 1e-9  # about, of a unit of the estimates on one thread
LEAST_SECONDS, MOST_SECONDS = 0.2, 5.0  # of a batch of several tasks
BATCHES_PER_WORKER = 16
MOST_TASKS = 1 << 12  # whose reply is well below its limit

Load = tuple[float, list[Task]]  # seconds, and tasks of one batch


def make_batches(counts: Counts, tasks: Sequence[Task], workers: int) -> list[tuple[int, ...]]:
    """The numbers of the tasks of every batch; tasks come in the order in which they share blocks."""
    seconds = {
        task.number: STEP_SECONDS * float(steps) for task, steps in zip(tasks, estimates(counts, tasks), strict=True)
    }
    share = sum(seconds.values()) / (BATCHES_PER_WORKER * max(1, workers))
    target = min(MOST_SECONDS, max(LEAST_SECONDS, share))
    groups = [list(group) for _pair, group in groupby(tasks, key=looked_up_in)]
    pieces = [piece for group in groups for piece in _cut(group, seconds, target)]
    batches = sorted(_joined(pieces, target), key=lambda load: -load[0])
    return [tuple(task.number for task in batch) for _, batch in batches]


def _cut(tasks: Sequence[Task], seconds: dict[int, float], target: float) -> Iterator[Load]:
    """Stretches of tasks of about so many seconds each; a task that takes longer is one by itself."""
    load, stretch = 0.0, list[Task]()
    for task in tasks:
        if stretch and (load + seconds[task.number] > target or len(stretch) == MOST_TASKS):
            yield load, stretch
            load, stretch = 0.0, []
        load += seconds[task.number]
        stretch.append(task)
    yield load, stretch


def _joined(pieces: Sequence[Load], target: float) -> Iterator[Load]:
    """Neighbours together while they are light."""
    load, joined = 0.0, list[Task]()
    for more, tasks in pieces:
        if joined and (load + more > target or len(joined) + len(tasks) > MOST_TASKS):
            yield load, joined
            load, joined = 0.0, []
        load += more
        joined = joined + tasks
    if joined:
        yield load, joined
