"""The workers of a hybrid count: threads that count tasks themselves, and a thread for each stream of each GPU.

A thread counts a task by itself, range by range; threads that find no task to begin help with those that others have
begun. The thread of a stream sleeps while the device works. It starts a task, starts to copy the blocks of the next
one, waits for the first, and goes on (BBTC, algorithm 7).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from wedgewise.algorithms._contract import DeviceTripleAnswer, DeviceWork, Knobs, Pass
from wedgewise.algorithms._passes import Partial
from wedgewise.errors import DeviceMemoryError, MemoryLimitError, VerificationError
from wedgewise.machine.gpu import StreamingDevice
from wedgewise.machine.streams import Clock, Sent, Stamp, Stream
from wedgewise.run._hybrid_queue import TaskQueue
from wedgewise.run.block_caches import Lease, SharedBlocks, triple_of
from wedgewise.run.memory import PAGE_BYTES, TaskMemory, pairs_of_task
from wedgewise.run.timeline import Copy, TaskSpan
from wedgewise.stages.blocks import Block, Task


@dataclass(slots=True)
class WorkerPool:
    """What all workers share."""

    queue: TaskQueue
    blocks: SharedBlocks[Block]
    estimates: dict[int, float]
    on_finished: Callable[[Partial], None]
    on_progress: Callable[[], None] = lambda: None
    zero: float = field(default_factory=time.perf_counter)
    partials: dict[int, Partial] = field(default_factory=dict)
    spans: list[TaskSpan] = field(default_factory=list)
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

    pool: WorkerPool
    memory: TaskMemory
    name: str

    def run(self) -> None:
        """Until all tasks are finished, whoever does them."""
        queue = self.pool.queue
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
        pool = self.pool
        lease = pool.blocks.lease(pairs_of_task(task), self.memory.work(task))
        if lease is None:
            if pool.queue.is_over:
                return
            raise MemoryLimitError(
                f"task {task.number} and its blocks do not fit the memory; partition into more parts"
            )
        begin = pool.now()
        run = HostRun(task, lease, self._passes(task, lease), pool.now() - begin)
        pool.begun.append(run)
        if run.ranges_left > 1:
            pool.queue.rouse()
        self._work(run, begin, helps=False)

    def _passes(self, task: Task, lease: Lease[Block]) -> tuple[Pass, ...]:
        triple = triple_of(lease.blocks, task)
        return self.memory.answer.prepare(triple, self.memory.knobs, task.share, task.shares).passes

    def _help(self) -> bool:
        """Count ranges of a task that another thread has begun, where there is one and memory for it."""
        for run in tuple(self.pool.begun):
            if not run.ranges_left:
                continue
            columns = int(self.memory.counts.sizes[run.task.k])
            need = self.memory.answer.thread_bytes(columns, self.memory.knobs) + PAGE_BYTES
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
            estimate = pool.estimates[run.task.number]
            pool.spans.append(TaskSpan(run.task.number, "cpu", self.name, begin, pool.now(), estimate, helps=helps))
        if run.claim_end():
            pool.begun.remove(run)
            pool.blocks.release(run.lease)
            pool.finish(run.task, run.triangles, run.tests)
            pool.queue.finish(run.task, self.name, run.seconds, on_device=False)
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
            triangles, tests = step.run(first, last, workspace)
            if run.add(int(triangles), int(tests), time.perf_counter() - since):
                self.pool.queue.rouse()
            counted += 1
        return counted


@dataclass(slots=True)
class Arrived:
    """A block on a device, or on its way there."""

    block: Block
    sent: tuple[Sent, Sent]
    is_recorded: bool = False

    @classmethod
    def of(cls, block: Block, device: StreamingDevice) -> Arrived:
        """Start to copy a block."""
        offsets, heads = device.send(block.offsets), device.send(block.heads)
        return cls(Block(offsets.array, heads.array, block.columns), (offsets, heads))


@dataclass(slots=True)
class DeviceWorkers:
    """A device, the blocks on it, and how a task is counted there."""

    device: StreamingDevice
    name: str
    streams: tuple[Stream, ...]
    blocks: SharedBlocks[Arrived]
    answer: DeviceTripleAnswer
    knobs: Knobs
    task_bytes: Callable[[Task], int]
    clock: Clock


@dataclass(slots=True)
class StreamWorker:
    """The thread of one stream."""

    pool: WorkerPool
    there: DeviceWorkers
    stream: Stream
    number: int
    name: str

    def run(self) -> None:
        """Until no task is left to begin."""
        queue = self.pool.queue
        with self.there.device.using():
            ahead: tuple[Task, Lease[Arrived]] | None = None
            while (task := queue.for_stream(self.number)) is not None:
                lease = self._lease(task, ahead)
                ahead = None if lease is None else self._count(task, lease)
            if ahead is not None:
                self.there.blocks.release(ahead[1])

    def _lease(self, task: Task, ahead: tuple[Task, Lease[Arrived]] | None) -> Lease[Arrived] | None:
        """The blocks of a task, which may have been copied ahead; without memory for them the task is handed over."""
        cache = self.there.blocks
        if ahead is not None:
            if ahead[0] is task:
                return ahead[1]
            cache.release(ahead[1])
        while True:
            budget = cache.budget
            try:
                lease = cache.lease(pairs_of_task(task), 0)
            except DeviceMemoryError as error:
                self._shrink(error, budget)
                continue
            if lease is None and not self.pool.queue.is_over:
                self._hand_over(task)
            return lease

    def _count(self, task: Task, lease: Lease[Arrived]) -> tuple[Task, Lease[Arrived]] | None:
        """Count a task, and bring the blocks of the next one meanwhile; the next one, if they came."""
        there, budget = self.there, self.there.blocks.budget
        try:
            with there.device.errors():
                work, begin, end = self._launch(task, lease)
        except DeviceMemoryError as error:
            self.stream.stamp().synchronize()  # what was launched may read the blocks
            there.blocks.release(lease)
            self._shrink(error, budget)
            self._hand_over(task)
            return None
        ahead = self._bring_next()
        end.synchronize()
        with self.stream:
            triangles, tests = there.device.download(work.found).tolist()
        copies = self._copies(lease)
        del work  # which holds the blocks, too
        there.blocks.release(lease)
        since, until = self._seconds(begin), self._seconds(end)
        estimate = self.pool.estimates[task.number]
        self.pool.spans.append(TaskSpan(task.number, there.name, self.name, since, until, estimate, copies))
        self.pool.finish(task, triangles, tests)
        self.pool.queue.finish(task, self.name, until - since, on_device=True)
        return ahead

    def _launch(self, task: Task, lease: Lease[Arrived]) -> tuple[DeviceWork, Stamp, Stamp]:
        """Start all that counts a task, behind the copies of its blocks; its arrays, and from when to when it runs."""
        there, stream = self.there, self.stream
        for arrived in lease.blocks.values():
            for sent in arrived.sent:
                stream.follow(sent.end)
        blocks = {pair: arrived.block for pair, arrived in lease.blocks.items()}
        with stream:
            work = there.answer.prepare(triple_of(blocks, task), there.knobs, task.share, task.shares, there.device)
            work.found.fill(0)
            begin = None
            for batch in work.batches:
                launches = batch()
                begin = begin or stream.stamp()  # not before: other threads may hold the interpreter meanwhile
                for launch in launches:
                    launch()
            return work, begin or stream.stamp(), stream.stamp()

    def _bring_next(self) -> tuple[Task, Lease[Arrived]] | None:
        """Start to copy what the next task needs, as far as it fits beside those under way."""
        task = self.pool.queue.upcoming(self.number)
        if task is None:
            return None
        budget = self.there.blocks.budget
        try:
            lease = self.there.blocks.lease(pairs_of_task(task), 0, wait=False)
        except DeviceMemoryError as error:
            self._shrink(error, budget)
            return None
        return None if lease is None else (task, lease)

    def _shrink(self, error: DeviceMemoryError, budget: int) -> None:
        """Take less than the budget that was found to be too much."""
        left = self.there.blocks.shrink(budget)
        self.pool.notes.append(
            f"{self.there.name}: {error.shortage}; blocks there take {left:,} bytes at most from then on"
        )

    def _hand_over(self, task: Task) -> None:
        if not self.pool.queue.hand_over(task):
            need = self.there.task_bytes(task)
            raise DeviceMemoryError(self.there.name, wanted=need, free=self.there.blocks.budget)
        self.pool.notes.append(
            f"task {task.number} went to the CPU, since {self.there.name} had too little memory for it"
        )

    def _copies(self, lease: Lease[Arrived]) -> tuple[Copy, ...]:
        """The copies of blocks that no task before this one has recorded."""
        with self.pool.lock:
            fresh = [arrived for arrived in lease.blocks.values() if not arrived.is_recorded]
            for arrived in fresh:
                arrived.is_recorded = True
        zero, seconds = self.pool.zero, self._seconds
        return tuple(
            Copy(
                seconds(piece.begin), seconds(piece.end), piece.nbytes, (piece.filled[0] - zero, piece.filled[1] - zero)
            )
            for arrived in fresh
            for sent in arrived.sent
            for piece in sent.pieces
        )

    def _seconds(self, stamp: Stamp) -> float:
        return self.there.clock(stamp) - self.pool.zero
