"""Batches: tasks that follow each other, whose blocks and work fit the memory together, of about 50 ms of all threads.

A batch is what is counted by one call of compiled code on every thread, written down at once, and lost where a process
is killed. A batch of several tasks takes half of the memory at most: blocks that later ones need stay in the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import repeat
from typing import NamedTuple, SupportsInt

import numpy as np
from numpy.typing import NDArray

from wedgewise.machine.jit import kernel
from wedgewise.run.pace import BATCH_SECONDS
from wedgewise.run.task_memory import BATCHED_TASK_BYTES, Need, TaskMemory
from wedgewise.stages.tasks import Estimates, Pair, TaskTable

Amounts = NDArray[np.uint64]
MAX_TASKS = 1 << 12  # that a stream, a thread or a worker gets at a time; a result is then far below its limit


class PlannedBatch(NamedTuple):
    """Tasks, their blocks, and the most bytes that they take beyond those."""

    tasks: TaskTable
    pairs: set[Pair]
    work_bytes: int


@dataclass(frozen=True, slots=True)
class Batches:
    """Batches that follow each other, each made when it is asked for: as lists of objects they would take 1.5 KB each.

    Attributes
    ----------
    tasks : of all batches, in their order
    bounds : where batches begin in them, and where the last one ends
    work : of every batch
    """

    tasks: TaskTable
    bounds: NDArray[np.int64]
    work: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.work)

    def __getitem__(self, number: int) -> PlannedBatch:
        tasks = self.tasks.take(slice(self.bounds[number], self.bounds[number + 1]))
        return PlannedBatch(tasks, self.pairs(number), int(self.work[number]))

    def __iter__(self) -> Iterator[PlannedBatch]:
        return map(self.__getitem__, range(len(self)))

    def pairs(self, number: int) -> set[Pair]:
        """The blocks of a batch."""
        return pairs_in(self.tasks.take(slice(self.bounds[number], self.bounds[number + 1])))


def pairs_in(tasks: TaskTable) -> set[Pair]:
    """The blocks of tasks."""
    return {divmod(pair, tasks.parts) for pair in np.unique(np.concatenate(tasks.pairs)).tolist()}


class Sizes(NamedTuple):
    """What every task needs: its blocks, by number; bytes that it makes and that threads take; picoseconds."""

    ij: Amounts
    ik: Amounts
    jk: Amounts
    made: Amounts
    threads: Amounts
    time: Amounts


class BatchTally(NamedTuple):
    """What is noted of blocks, by number: the last batch that has it, or looks up in it, and what it makes of it."""

    block_bytes: Amounts
    held_in: Amounts
    made_in: Amounts
    made: Amounts


@kernel
def cut_batches(
    sizes: Sizes, limit_bytes: int, limit_time: int, tally: BatchTally, ends: Amounts, work: Amounts
) -> SupportsInt:
    """Where batches end, and what each takes beyond its blocks; how many there are."""
    zero, one = np.uint64(0), np.uint64(1)
    count, held, made, threads, time, first = zero, zero, zero, zero, zero, zero
    for task in range(np.uint64(len(sizes.ij))):
        ij, ik, jk = sizes.ij[task], sizes.ik[task], sizes.jk[task]
        for _attempt in range(2):
            number = count + one
            more = tally.block_bytes[ij] if tally.held_in[ij] != number else zero
            if ik != ij and tally.held_in[ik] != number:
                more += tally.block_bytes[ik]
            if jk != ij and jk != ik and tally.held_in[jk] != number:
                more += tally.block_bytes[jk]
            before = tally.made[jk] if tally.made_in[jk] == number else zero
            making = max(sizes.made[task], before) - before + np.uint64(BATCHED_TASK_BYTES)
            most = max(threads, sizes.threads[task])
            fits = held + more + made + making + most <= np.uint64(limit_bytes)
            if task == first or (fits and time + sizes.time[task] <= np.uint64(limit_time)):
                break
            ends[count], work[count] = task, made + threads
            count, held, made, threads, time, first = number, zero, zero, zero, zero, np.uint64(task)
        held, made, threads, time = held + more, made + making, most, time + sizes.time[task]
        tally.made[jk], tally.made_in[jk] = max(sizes.made[task], before), count + one
        tally.held_in[ij] = tally.held_in[ik] = tally.held_in[jk] = count + one
    if len(sizes.ij) > 0:
        ends[count], work[count] = len(sizes.ij), made + threads
        count += one
    return count


def batches_of(tasks: TaskTable, memory: TaskMemory, limit_bytes: int, seconds: Estimates) -> Batches:
    """Batches of tasks in their order; `seconds` are those of one thread for each, about."""
    need, pairs = memory.most(tasks), tasks.pairs
    columns = (*pairs, need.made, need.threads, 1e12 * seconds / memory.threads)
    sizes = Sizes(*(np.broadcast_to(column, len(tasks)).astype(np.uint64) for column in columns))
    blocks = memory.blocks.ravel().astype(np.uint64)
    ends, work = np.zeros(len(tasks), np.uint64), np.zeros(len(tasks), np.uint64)
    tally = BatchTally(blocks, *(np.zeros_like(blocks) for _ in range(3)))
    count = int(cut_batches(sizes, limit_bytes // 2, int(1e12 * BATCH_SECONDS), tally, ends, work))
    return Batches(tasks, np.append(0, ends[:count]).astype(np.int64), work[:count].astype(np.int64))


def load_batch_kernels() -> None:
    """Load the kernel that cuts batches."""
    none = np.empty(0, np.uint64)
    cut_batches(Sizes(*repeat(none, 6)), 0, 0, BatchTally(*repeat(none, 4)), none, none)


def needed_together(tasks: TaskTable, need: Need) -> int:
    """The bytes that tasks take beyond their blocks as a batch, by what each of them needs."""
    made, jk = np.broadcast_to(need.made, len(tasks)), tasks.pairs[2]
    order = np.argsort(jk, kind="stable")
    first = np.flatnonzero(np.diff(jk[order], prepend=-1))
    of_blocks = int(np.maximum.reduceat(made[order], first).sum())
    return of_blocks + int(np.max(need.threads)) + BATCHED_TASK_BYTES * len(tasks)
