"""The workers of a hybrid count: threads that count batches themselves, and a thread for each stream of each GPU.

A thread counts a batch by itself, range by range; threads that find no batch to begin help with those that others have
begun. The thread of a stream sleeps while the device works. It starts a batch by a few launches, starts to copy the
blocks of the next one, waits for the first, fetches what all of its tasks found, and goes on (BBTC, algorithm 7).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from wedgewise.algorithms._contract import (
    BatchWork,
    DeviceBatch,
    DeviceTripleAnswer,
    DeviceWork,
    Knobs,
    Pass,
)
from wedgewise.errors import DeviceMemoryError, MemoryLimitError, VerificationError
from wedgewise.machine.gpu import StreamingDevice
from wedgewise.machine.streams import Stamp, StampTimer, Stream
from wedgewise.run._hybrid_plan import TaskSizes
from wedgewise.run._hybrid_queue import Fits, TaskQueue
from wedgewise.run.batches import pairs_in
from wedgewise.run.block_caches import Lease, SharedBlocks
from wedgewise.run.device_blocks import Arrived, shipments_of
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


@dataclass(slots=True)
class DeviceWorkers:
    """A device, the blocks on it, and how a batch is counted there; one stream at a time makes what blocks lack."""

    device: StreamingDevice
    name: str
    streams: tuple[Stream, ...]
    blocks: SharedBlocks[Arrived]
    answer: DeviceTripleAnswer
    knobs: Knobs
    sizes: TaskSizes
    most_tasks: int
    clock: StampTimer
    making: threading.Lock = field(default_factory=threading.Lock)

    @property
    def fits(self) -> Fits:
        """Whether the blocks of a batch fit beside those of other streams, and of the batch after it."""
        budget, sizes = self.blocks.budget, self.sizes
        all_fit, available_bytes = sizes.all_device_blocks <= budget, budget // (2 * len(self.streams))
        return lambda tasks: (
            len(tasks) <= self.most_tasks and (all_fit or sizes.device_blocks_of(tasks) <= available_bytes)
        )


@dataclass(slots=True)
class StreamWorker:
    """The thread of one stream."""

    pool: WorkerPool
    there: DeviceWorkers
    stream: Stream
    name: str

    def run(self) -> None:
        """Until no task is left to begin."""
        queue, ahead = self.pool.queue, None
        with self.there.device.using():
            while not queue.is_over:
                tasks, lease = ahead or (queue.for_stream(self.there.fits), None)
                ahead = None
                if tasks is None:
                    return
                if lease is None:
                    tasks, lease = self._lease(tasks)
                if lease is not None:
                    ahead = self._count(tasks, lease)
            if ahead is not None and ahead[1] is not None:
                self.there.blocks.release(ahead[1])

    def _lease(self, tasks: TaskTable) -> tuple[TaskTable, Lease[Arrived] | None]:
        """The blocks of a batch, or of its first tasks; without memory for one it is handed over."""
        cache, queue = self.there.blocks, self.pool.queue
        while True:
            budget = cache.budget
            try:
                lease = cache.lease(pairs_in(tasks), 0)
            except DeviceMemoryError as error:
                self._shrink(error, budget)
                continue
            if lease is not None or queue.is_over:
                return tasks, lease
            if len(tasks) == 1:
                self._hand_over(tasks)
                return tasks, None
            tasks = self._first_half(tasks)

    def _count(self, tasks: TaskTable, lease: Lease[Arrived]) -> tuple[TaskTable, Lease[Arrived] | None] | None:
        """Count a batch, and bring the blocks of the next one meanwhile; the next one, with its blocks if they came."""
        there, budget = self.there, self.there.blocks.budget
        tasks = tasks.take(np.lexsort((tasks.i, tasks.pairs[2])))  # those that look up in one block follow each other
        try:
            with there.device.errors():
                work, begin, end = self._launch(tasks, lease)
        except DeviceMemoryError as error:
            self.stream.stamp().synchronize()  # what was launched may read the blocks
            there.blocks.release(lease)
            self._shrink(error, budget)
            if len(tasks) > 1:
                return self._first_half(tasks), None
            self._hand_over(tasks)
            return None
        try:
            ahead = self._bring_next()
        finally:
            self._wait_for(end)  # what was launched reads the blocks, however that ended
        with self.stream:
            triangles, tests, ticks = there.device.download(work.found).T
        copies = self._copies(lease)
        del work  # which holds the blocks, too
        there.blocks.release(lease)
        since, until = self._seconds(begin), self._seconds(end)
        self.pool.spans.append(span_of(tasks, there.name, self.name, since, until, copies))
        shares = ticks.astype(np.float64) / max(1.0, float(ticks.sum()))
        self.pool.finish(tasks, triangles, tests, (until - since) * shares)
        self.pool.queue.finish(tasks, self.name, until - since, on_device=True)
        return ahead

    def _first_half(self, tasks: TaskTable) -> TaskTable:
        """The first tasks of a batch that does not fit; the others are nobody's again."""
        half = len(tasks) // 2
        self.pool.queue.put_back(tasks.take(slice(half, None)))
        return tasks.take(slice(half))

    def _wait_for(self, end: Stamp) -> None:
        end.synchronize()

    def _launch(self, tasks: TaskTable, lease: Lease[Arrived]) -> tuple[DeviceWork, Stamp, Stamp]:
        """Start all that counts a batch, behind the copies of its blocks; its arrays, and from when to when it runs."""
        there, stream = self.there, self.stream
        for shipment in shipments_of(lease.blocks.values()):
            stream.follow(shipment.sent.end)
        with stream:
            self._make(lease)
            blocks = {pair: arrived.there for pair, arrived in lease.blocks.items()}
            work = there.answer.prepare(DeviceBatch(blocks, tasks), there.knobs, there.device)
            work.found.fill(0)
            begin = None
            for batch in work.batches:
                launches = batch()
                begin = begin or stream.stamp()  # not before: other threads may hold the interpreter meanwhile
                for launch in launches:
                    launch()
            return work, begin or stream.stamp(), stream.stamp()

    def _make(self, lease: Lease[Arrived]) -> None:
        """Make of blocks what nobody has made of them yet, or follow who did."""
        there, stream = self.there, self.stream
        with there.making:
            fresh = [arrived for arrived in lease.blocks.values() if arrived.there.is_to_be_made]
            if fresh:
                try:
                    for launch in there.answer.make([arrived.there for arrived in fresh], there.knobs, there.device):
                        launch()
                except BaseException:
                    stream.stamp().synchronize()  # before another makes the same
                    raise
                stamp = stream.stamp()
                for arrived in fresh:
                    arrived.there.is_made, arrived.made_at = True, stamp
        for stamp in {id(at): at for arrived in lease.blocks.values() if (at := arrived.made_at) is not None}.values():
            stream.follow(stamp)

    def _bring_next(self) -> tuple[TaskTable, Lease[Arrived] | None] | None:
        """Take the next batch, and start to copy its blocks, as far as they fit beside those under way."""
        tasks = self.pool.queue.for_stream(self.there.fits)
        if tasks is None:
            return None
        budget = self.there.blocks.budget
        try:
            return tasks, self.there.blocks.lease(pairs_in(tasks), 0, wait=False)
        except DeviceMemoryError as error:
            self._shrink(error, budget)
            return tasks, None

    def _shrink(self, error: DeviceMemoryError, budget: int) -> None:
        """Take less than the budget that was found to be too much."""
        left = self.there.blocks.shrink(budget)
        self.pool.notes.append(
            f"{self.there.name}: {error.reason}; blocks there take {left:,} bytes at most from then on"
        )

    def _hand_over(self, tasks: TaskTable) -> None:
        if not self.pool.queue.hand_over(tasks):
            need = int(self.there.sizes.on_device(tasks).max())
            raise DeviceMemoryError(self.there.name, wanted=need, free=self.there.blocks.budget)
        self.pool.notes.append(
            f"{len(tasks):,} tasks from task {tasks.number[0]} on went to the CPU, since {self.there.name} had too "
            "little memory for them"
        )

    def _copies(self, lease: Lease[Arrived]) -> tuple[Copy, ...]:
        """The copies of blocks that no batch before this one has recorded."""
        with self.pool.lock:
            fresh = [shipment for shipment in shipments_of(lease.blocks.values()) if not shipment.is_recorded]
            for shipment in fresh:
                shipment.is_recorded = True
        zero, seconds = self.pool.zero, self._seconds
        return tuple(
            Copy(
                seconds(piece.begin), seconds(piece.end), piece.nbytes, (piece.filled[0] - zero, piece.filled[1] - zero)
            )
            for shipment in fresh
            for piece in shipment.sent.pieces
        )

    def _seconds(self, stamp: Stamp) -> float:
        return self.there.clock(stamp) - self.pool.zero
