"""What the workers of a hybrid count share, and those of them that are threads which count batches themselves.

A thread counts a batch by itself, range by range; threads that find no batch to begin help with those that others have
begun. `_hybrid_streams` has the workers that drive GPUs.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from wedgewise.algorithms._contract import BatchWork, Pass
from wedgewise.errors import MemoryLimitError, VerificationError
from wedgewise.run._hybrid_plan import TaskSizes
from wedgewise.run._hybrid_queue import TaskQueue
from wedgewise.run.batches import pairs_in
from wedgewise.run.block_caches import Lease, SharedBlocks
from wedgewise.run.task_memory import PAGE_BYTES
from wedgewise.run.timeline import BatchSpan, Copy
from wedgewise.stages.blocks import Block
from wedgewise.stages.tasks import TaskBatch, TaskTable

Finish = Callable[[Any, Any, Any, Any], None]


@dataclass(slots=True)
class WorkerPool:
    """What all workers share; ``on_finished`` gets numbers, triangles, tests and seconds of tasks."""

    queue: TaskQueue
    blocks: SharedBlocks[Block]
    tasks: int
    on_finished: Finish
    on_progress: Callable[[], None] = lambda: None
    zero: float = field(default_factory=time.perf_counter)
    done: int = 0
    spans: list[BatchSpan] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    begun: list[HostRun] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    keeping: threading.Lock = field(default_factory=threading.Lock)  # while the disk is waited for
    is_finished: Any = None

    def finish(self, tasks: TaskTable, triangles: Any, tests: Any, seconds: Any) -> None:
        """Keep what the tasks of a batch found, once."""
        with self.lock:
            if self.is_finished is None:
                self.is_finished = np.zeros(self.tasks, np.bool_)
            if self.is_finished[tasks.number].any():
                raise VerificationError("a task was counted twice: please report this")
            self.is_finished[tasks.number] = True
            self.done += len(tasks)
        with self.keeping:
            self.on_finished(tasks.number, triangles, tests, seconds)
        self.on_progress()

    def now(self) -> float:
        """Seconds since the beginning."""
        return time.perf_counter() - self.zero


class HostRun:
    """A batch that threads count together, a range of items at a time; passes follow each other."""

    def __init__(self, tasks: TaskTable, lease: Lease[Block], work: BatchWork, seconds: float) -> None:
        self.tasks, self.lease, self.work = tasks, lease, work
        self.seconds = seconds
        self._ranges = [
            [(step, begin, end) for begin, end in pairwise(bounds)]
            for step in work.passes
            if len(bounds := step.bounds.tolist()) > 1
        ][::-1]
        self._under_way = 0
        self._is_ended = False
        self._lock = threading.Lock()

    @property
    def ranges_left(self) -> int:
        """Ranges of the present pass that nobody has."""
        return len(self._ranges[-1]) if self._ranges else 0

    def take(self) -> tuple[Pass, int, int] | None:
        """A range that nobody has; None where all are taken, though some may not be finished."""
        with self._lock:
            if not self.ranges_left:
                return None
            self._under_way += 1
            return self._ranges[-1].pop()

    def add(self, seconds: float) -> bool:
        """A range is finished; the last one of a pass opens the next. Whether others can help with that now."""
        with self._lock:
            self.seconds += seconds
            self._under_way -= 1
            if self._under_way > 0 or self._ranges[-1]:
                return False
            self._ranges.pop()
            return self.ranges_left > 1

    def claim_end(self) -> bool:
        """Whether the batch is finished; true once only."""
        with self._lock:
            ends_now = not self._ranges and not self._is_ended
            self._is_ended |= ends_now
            return ends_now


@dataclass(slots=True)
class HostWorker:
    """A thread that counts."""

    pool: WorkerPool
    sizes: TaskSizes
    name: str

    def run(self) -> None:
        """Until all tasks are finished, whoever does them."""
        queue = self.pool.queue
        while True:
            seen = queue.changes
            tasks = queue.for_thread()
            if tasks is not None:
                self._begin(tasks)
            elif not self._help():
                if queue.is_over:
                    return
                queue.wait_for_change(seen)

    def _begin(self, tasks: TaskTable) -> None:
        pool = self.pool
        lease = pool.blocks.lease(pairs_in(tasks), self.sizes.host_work(tasks))
        if lease is None:
            if pool.queue.is_over:
                return
            raise MemoryLimitError(
                f"task {tasks.number[0]} and its blocks do not fit the memory", "partition into more parts"
            )
        begin = pool.now()
        run = HostRun(tasks, lease, self._work_of(tasks, lease), pool.now() - begin)
        pool.begun.append(run)
        if run.ranges_left > 1:
            pool.queue.rouse()
        self._work(run, begin, helps=False)

    def _work_of(self, tasks: TaskTable, lease: Lease[Block]) -> BatchWork:
        memory = self.sizes.memory
        return memory.answer.counter(memory.knobs)(TaskBatch(lease.blocks, tasks))

    def _help(self) -> bool:
        """Count ranges of a batch that another thread has begun, where there is one and memory for it."""
        for run in tuple(self.pool.begun):
            if not run.ranges_left:
                continue
            memory = self.sizes.memory
            columns = int(memory.counts.sizes[run.tasks.k].max())
            need = memory.answer.thread_bytes(columns, memory.knobs) + PAGE_BYTES
            lease = self.pool.blocks.lease(set(), need, wait=False)
            if lease is None:
                continue
            counted = self._work(run, self.pool.now(), helps=True)
            self.pool.blocks.release(lease)
            if counted:
                return True
        return False

    def _work(self, run: HostRun, begin: float, *, helps: bool) -> bool:
        """Count ranges until none is left; whether there were any."""
        pool, counted = self.pool, self._count_ranges(run)
        if counted or not helps:
            pool.spans.append(span_of(run.tasks, "cpu", self.name, begin, pool.now(), helps=helps))
        if run.claim_end():
            pool.begun.remove(run)
            found = run.work.by_task()
            run.work = NO_WORK
            pool.blocks.release(run.lease)
            pool.finish(run.tasks, *found)
            pool.queue.finish(run.tasks, self.name, run.seconds, on_device=False)
        return counted > 0

    def _count_ranges(self, run: HostRun) -> int:
        """How many there were; what is made of the blocks is held no longer than that."""
        counted = 0
        of: Pass | None = None
        workspace: Any = None
        while not self.pool.queue.is_over and (taken := run.take()) is not None:
            step, first, last = taken
            if step is not of:
                of, workspace = step, step.workspace()
            since = time.perf_counter()
            step.run(first, last, workspace)
            if run.add(time.perf_counter() - since):
                self.pool.queue.rouse()
            counted += 1
        return counted


NO_WORK = BatchWork((), np.empty(0, np.int64), np.empty((0, 3), np.uint64), np.empty(0))


def span_of(
    tasks: TaskTable,
    device: str,
    worker: str,
    begin: float,
    end: float,
    copies: tuple[Copy, ...] = (),
    *,
    helps: bool = False,
) -> BatchSpan:
    """What a worker did for a batch."""
    return BatchSpan(
        int(tasks.number[0]), device, worker, begin, end, float(tasks.work.sum()), copies, helps, len(tasks)
    )
