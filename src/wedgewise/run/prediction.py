"""What a count of a store will take, found before a block is read: the sizes of all blocks are in its manifest.

Memory comes from a rehearsal with sizes instead of blocks: which blocks are held when each task runs is decided by the
same `BlockCache`, and what a task makes of its blocks is what its algorithm expects; it may be more, but never more
than was made room for. The same rehearsal knows the bytes that are read. Seconds are straight lines in the wedges of
the graph and in the arcs and tasks that are visited, with the slopes of the algorithm: on the machine that these were
measured on, from 0.6 to 1.3 of what keystone took.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wedgewise.run.block_cache import BlockCache
from wedgewise.run.memory import Pair, PairsOfTasks, TaskMemory
from wedgewise.stages.blocks import Task

READ_BYTES_PER_SECOND = 3.3e8  # from the page cache, checksums and rows checked
JOURNAL_SECONDS = 4e-3  # a line of the journal on the disk


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a count will take.

    Attributes
    ----------
    held_bytes, work_bytes : blocks, and what is made of them, when both together are most
    read_bytes : of blocks, again where they had to be given up in between
    tasks : that have work
    seconds : of the count, about
    """

    held_bytes: int
    work_bytes: int
    read_bytes: int
    tasks: int
    seconds: float

    @property
    def peak_bytes(self) -> int:
        """The most that is held at a time, beyond what the process held before."""
        return self.held_bytes + self.work_bytes


def predict(tasks: Sequence[Task], memory: TaskMemory, room: int, wedges: int) -> Prediction:
    """What tasks with work will take in this order, when blocks and what is made of them have so much room.

    Parameters
    ----------
    tasks : none takes more than the room
    memory : what each of them takes
    room : bytes
    wedges : of the graph, in its order
    """
    cache = BlockCache(_nothing, memory.block, PairsOfTasks(tasks))
    n, m = int(memory.counts.sizes.sum()), int(memory.counts.arcs.sum())
    is_skewed = wedges * n > m * m  # behind an arc are more others than if all vertices had as many
    held = work = 0
    for step, task in enumerate(tasks):
        cache.blocks(step, room - memory.work(task))
        expected = memory.expected_work(task, is_skewed)
        if cache.held_bytes + expected > held + work:
            held, work = cache.held_bytes, expected
    return Prediction(held, work, cache.read_bytes, len(tasks), _seconds(tasks, memory, cache.read_bytes, wedges))


def _nothing(_pair: Pair) -> None:
    """In place of a block."""


def _seconds(tasks: Sequence[Task], memory: TaskMemory, read_bytes: int, wedges: int) -> float:
    cost, counts = memory.answer.cost, memory.counts
    i, j, k = np.array([(task.i, task.j, task.k) for task in tasks], np.int64).reshape(-1, 3).T
    arcs = int((counts.arcs[i, j] + counts.arcs[i, k]).sum())
    counting = (cost.per_wedge * wedges + cost.per_arc * arcs) / memory.threads
    preparing = (cost.per_task + JOURNAL_SECONDS) * len(tasks)
    return counting + preparing + read_bytes / READ_BYTES_PER_SECOND
