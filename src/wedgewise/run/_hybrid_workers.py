"""The workers of a hybrid count: threads that count batches themselves, and one thread for each GPU.

A thread counts a batch by itself, range by range; threads that find no batch to begin help with those that others have
begun. The thread of a GPU sends the blocks of a batch, starts it on a stream by a few launches, and does the same for
the next ones meanwhile, as long as there are idle streams. Then it sleeps until the first batch ends, and fetches what
all of its tasks found (BBTC, algorithm 7, has a thread for each stream: those would wait for the interpreter).
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

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
from wedgewise.run._hybrid_queue import TaskQueue
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
                f"task {tasks.number[0]} and its blocks do not fit the memory; partition into more parts"
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


class StartedBatch(NamedTuple):
    """A batch that a stream counts, or will once its blocks have come; from when to when it does."""

    tasks: TaskTable
    lease: Lease[Arrived]
    work: DeviceWork
    stream: int
    begin: Stamp
    end: Stamp


@dataclass(slots=True)
class DeviceWorker:
    """The thread of a device: it starts batches on streams that are idle, and waits for the one that began first.

    ``idle`` are streams by number; ``ahead`` is a batch that was taken and is not begun.
    """

    pool: WorkerPool
    device: StreamingDevice
    name: str
    streams: tuple[Stream, ...]
    blocks: SharedBlocks[Arrived]
    answer: DeviceTripleAnswer
    knobs: Knobs
    sizes: TaskSizes
    most_tasks: int
    clock: StampTimer
    idle: deque[int] = field(init=False)
    under_way: deque[StartedBatch] = field(default_factory=deque)
    ahead: TaskTable | None = None

    def __post_init__(self) -> None:
        self.idle = deque(range(len(self.streams)))

    @property
    def places(self) -> list[tuple[str, str]]:
        """The device and each of its streams, as a timeline names them."""
        return [(self.name, self._place(stream)) for stream in range(len(self.streams))]

    def run(self) -> None:
        """Until no task is left to begin."""
        with self.device.using():
            try:
                while not self.pool.queue.is_over:
                    if self.idle and self._begin():
                        continue
                    if not self.under_way:
                        return
                    self._finish(self.under_way.popleft())
            finally:
                self._abandon()

    def _fits(self, tasks: TaskTable) -> bool:
        """Whether the blocks of a batch fit beside those of other streams, and of the batch after it."""
        budget, sizes = self.blocks.budget, self.sizes
        if len(tasks) > self.most_tasks:
            return False
        available_bytes = budget // (2 * len(self.streams))
        return sizes.all_device_blocks <= budget or sizes.device_blocks_of(tasks) <= available_bytes

    def _begin(self) -> bool:
        """Start the next batch, or take less of one that does not fit; whether there may be more to begin now."""
        tasks = self.pool.queue.for_stream(self._fits) if self.ahead is None else self.ahead
        if tasks is None:
            return False
        try:
            lease = self.blocks.lease(pairs_in(tasks), 0, wait=False)
        except DeviceMemoryError as error:
            self._shrink(error)
            self.ahead = tasks
            return True
        if lease is not None:
            self.ahead = self._start(tasks, lease)
            return True
        self.ahead = tasks if self.under_way else self._less_of(tasks)
        return not self.under_way

    def _start(self, tasks: TaskTable, lease: Lease[Arrived]) -> TaskTable | None:
        """Let a stream count a batch; where there is too little memory for that, the part that is to be tried next."""
        tasks = tasks.take(np.lexsort((tasks.i, tasks.pairs[2])))  # those that look up in one block follow each other
        stream = self.idle.popleft()
        try:
            with self.device.errors():
                self.under_way.append(StartedBatch(tasks, lease, *self._launch(tasks, lease, stream)))
            return None
        except DeviceMemoryError as error:
            self.streams[stream].stamp().synchronize()  # what was launched may read the blocks
            self.idle.append(stream)
            self.blocks.release(lease)
            self._shrink(error)
            return self._less_of(tasks)

    def _launch(self, tasks: TaskTable, lease: Lease[Arrived], number: int) -> tuple[DeviceWork, int, Stamp, Stamp]:
        """Start all that counts a batch, behind the copies of its blocks."""
        stream = self.streams[number]
        with stream:
            for shipment in shipments_of(lease.blocks.values()):
                stream.follow(shipment.sent.end)
            self._make(lease, stream)
            blocks = {pair: arrived.there for pair, arrived in lease.blocks.items()}
            work = self.answer.prepare(DeviceBatch(blocks, tasks), self.knobs, self.device)
            work.found.fill(0)
            begin = None
            for batch in work.batches:
                launches = batch()
                begin = begin or stream.stamp()
                for launch in launches:
                    launch()
            return work, number, begin or stream.stamp(), stream.stamp()

    def _make(self, lease: Lease[Arrived], stream: Stream) -> None:
        """Make of blocks what no batch has made of them yet, or follow the stream that does."""
        arrived = tuple(lease.blocks.values())
        for stamp in {id(at): at for one in arrived if (at := one.made_at) is not None}.values():
            stream.follow(stamp)
        fresh = [one for one in arrived if one.there.is_to_be_made]
        if fresh:
            for launch in self.answer.make([one.there for one in fresh], self.knobs, self.device):
                launch()
            stamp = stream.stamp()
            for one in fresh:
                one.there.is_made, one.made_at = True, stamp

    def _finish(self, batch: StartedBatch) -> None:
        """Wait for a batch, and keep what its tasks found."""
        try:
            batch.end.synchronize()
            with self.streams[batch.stream]:
                triangles, tests, ticks = self.device.download(batch.work.found).T
            copies = self._copies(batch.lease)
        finally:
            self.blocks.release(batch.lease)
        self.idle.append(batch.stream)
        tasks, place, since, until = (
            batch.tasks,
            self._place(batch.stream),
            *map(self._seconds, (batch.begin, batch.end)),
        )
        self.pool.spans.append(span_of(tasks, self.name, place, since, until, copies))
        shares = ticks.astype(np.float64) / max(1.0, float(ticks.sum()))
        self.pool.finish(tasks, triangles, tests, (until - since) * shares)
        self.pool.queue.finish(tasks, place, until - since, on_device=True)

    def _abandon(self) -> None:
        """Wait for batches that nobody asks for any more: what was launched reads the blocks, however that ended."""
        while self.under_way:
            batch = self.under_way.popleft()
            with suppress(Exception):  # of which there was another before
                batch.end.synchronize()
            self.blocks.release(batch.lease)

    def _less_of(self, tasks: TaskTable) -> TaskTable | None:
        """The first half of a batch that does not fit, the others being nobody's again; one task goes to threads."""
        half = len(tasks) // 2
        if half:
            self.pool.queue.put_back(tasks.take(slice(half, None)))
            return tasks.take(slice(half))
        if not self.pool.queue.hand_over(tasks):
            raise DeviceMemoryError(self.name, wanted=int(self.sizes.on_device(tasks).max()), free=self.blocks.budget)
        self.pool.notes.append(
            f"{len(tasks):,} tasks from task {tasks.number[0]} on went to the CPU, since {self.name} had too "
            "little memory for them"
        )
        return None

    def _shrink(self, error: DeviceMemoryError) -> None:
        """Take less than the budget that was found to be too much."""
        left = self.blocks.shrink()
        self.pool.notes.append(f"{self.name}: {error.reason}; blocks there take {left:,} bytes at most from then on")

    def _copies(self, lease: Lease[Arrived]) -> tuple[Copy, ...]:
        """The copies of blocks that no batch before this one has recorded."""
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
        return self.clock(stamp) - self.pool.zero

    def _place(self, stream: int) -> str:
        return f"{self.name} stream {stream}"
