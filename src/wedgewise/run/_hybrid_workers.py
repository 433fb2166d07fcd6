"""Threads that count tasks of a hybrid count themselves, and what they share with those of streams.

A thread counts a task by itself, range by range; threads that find no task to begin help with those that others have
begun.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from wedgewise.algorithms._contract import Pass
from wedgewise.algorithms._passes import Partial
from wedgewise.errors import MemoryLimitError, VerificationError
from wedgewise.run._hybrid_cache import Lease, SharedBlocks
from wedgewise.run._hybrid_queue import TaskQueue
from wedgewise.run.block_cache import triple_of
from wedgewise.run.memory import PAGE_BYTES, TaskMemory, pairs_of_task
from wedgewise.run.timeline import Span
from wedgewise.stages.blocks import Block, Task


@dataclass(slots=True)
class Crew:
    """What all workers share."""

    queue: TaskQueue
    blocks: SharedBlocks[Block]
    estimates: dict[int, float]
    on_finished: Callable[[Partial], None]
    on_progress: Callable[[], None] = lambda: None
    zero: float = field(default_factory=time.perf_counter)
    partials: dict[int, Partial] = field(default_factory=dict)
    spans: list[Span] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    begun: list[HostRun] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    keeping: threading.Lock = field(default_factory=threading.Lock)  # while the disk is waited for

    def finish(self, task: Task, triangles: int, tests: int) -> None:
        """Keep what a task found, once."""
        partial = Partial(task.number, triangles, tests)
        with self.lock:
            if task.number in self.partials:
                raise VerificationError(f"task {task.number} was counted twice: please report this")
            self.partials[task.number] = partial
        with self.keeping:
            self.on_finished(partial)
        self.on_progress()

    def tell(self, span: Span) -> None:
        with self.lock:
            self.spans.append(span)

    def note(self, reason: str) -> None:
        with self.lock:
            self.notes.append(reason)

    def start_clock(self) -> None:
        """The beginning is now."""
        self.zero = time.perf_counter()

    def now(self) -> float:
        """Seconds since the beginning."""
        return time.perf_counter() - self.zero


class HostRun:
    """A task that threads count together, a range of rows at a time; passes follow each other."""

    def __init__(self, task: Task, lease: Lease[Block], passes: tuple[Pass, ...], seconds: float) -> None:
        self.task, self.lease = task, lease
        self.triangles = self.tests = 0
        self.seconds = seconds
        self._ranges = [
            [(step, begin, end) for begin, end in pairwise(bounds)]
            for step in passes
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

    def add(self, triangles: int, tests: int, seconds: float) -> bool:
        """A range is finished; the last one of a pass opens the next. Whether others can help with that now."""
        with self._lock:
            self.triangles += triangles
            self.tests += tests
            self.seconds += seconds
            self._under_way -= 1
            if self._under_way > 0 or self._ranges[-1]:
                return False
            self._ranges.pop()
            return self.ranges_left > 1

    def claim_end(self) -> bool:
        """Whether the task is finished; true once only."""
        with self._lock:
            ends_now = not self._ranges and not self._is_ended
            self._is_ended |= ends_now
            return ends_now


@dataclass(slots=True)
class HostWorker:
    """A thread that counts."""

    crew: Crew
    memory: TaskMemory
    place: str

    def run(self) -> None:
        """Until all tasks are finished, whoever does them."""
        queue = self.crew.queue
        while True:
            seen = queue.changes
            task = queue.for_thread()
            if task is not None:
                self._begin(task)
            elif not self._help():
                if queue.is_over:
                    return
                queue.wait_for_change(seen)

    def _begin(self, task: Task) -> None:
        crew = self.crew
        need = self.memory.work(task)
        lease = crew.blocks.lease(pairs_of_task(task), need)
        if lease is None:
            if crew.queue.is_over:
                return
            raise MemoryLimitError(
                f"task {task.number} and its blocks do not fit the memory; partition into more parts"
            )
        begin = crew.now()
        run = HostRun(task, lease, self._passes(task, lease), crew.now() - begin)
        crew.begun.append(run)
        if run.ranges_left > 1:
            crew.queue.rouse()
        self._work(run, begin, helps=False)

    def _passes(self, task: Task, lease: Lease[Block]) -> tuple[Pass, ...]:
        triple = triple_of(lease.blocks, task)
        return self.memory.answer.prepare(triple, self.memory.knobs, task.share, task.shares).passes

    def _help(self) -> bool:
        """Count ranges of a task that another thread has begun, where there is one and room for it."""
        for run in tuple(self.crew.begun):
            if not run.ranges_left:
                continue
            columns = int(self.memory.counts.sizes[run.task.k])
            room = self.memory.answer.thread_bytes(columns, self.memory.knobs) + PAGE_BYTES
            lease = self.crew.blocks.lease(set(), room, wait=False)
            if lease is None:
                continue
            counted = self._work(run, self.crew.now(), helps=True)
            self.crew.blocks.release(lease)
            if counted:
                return True
        return False

    def _work(self, run: HostRun, begin: float, *, helps: bool) -> bool:
        """Count ranges until none is left; whether there were any."""
        crew, counted = self.crew, self._count_ranges(run)
        if counted or not helps:
            estimate = crew.estimates[run.task.number]
            crew.tell(Span(run.task.number, "cpu", self.place, begin, crew.now(), estimate, helps=helps))
        if run.claim_end():
            self._end(run)
        return counted > 0

    def _count_ranges(self, run: HostRun) -> int:
        """How many there were; what is made of the blocks is held no longer than that."""
        counted = 0
        of: Pass | None = None
        workspace: Any = None
        while not self.crew.queue.is_over and (taken := run.take()) is not None:
            step, first, last = taken
            if step is not of:
                of, workspace = step, step.workspace()
            since = time.perf_counter()
            triangles, tests = step.run(first, last, workspace)
            if run.add(int(triangles), int(tests), time.perf_counter() - since):
                self.crew.queue.rouse()
            counted += 1
        return counted

    def _end(self, run: HostRun) -> None:
        self.crew.begun.remove(run)
        self.crew.blocks.release(run.lease)
        self.crew.finish(run.task, run.triangles, run.tests)
        self.crew.queue.finish(run.task, self.place, run.seconds, on_device=False)
