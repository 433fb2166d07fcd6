"""Who works on a hybrid count: a thread for each stream of each device, and threads that count themselves.

The thread of a stream sleeps while the device works. It starts a task, starts to copy the blocks of the next one, waits
for the first, and goes on (BBTC, algorithm 7). A thread of the host counts a task by itself, range by range; threads
that find no task to begin help with those that others have begun.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from wedgewise.algorithms._contract import DeviceTripleAnswer, DeviceWork, Knobs, Pass
from wedgewise.blocks import Block, Task
from wedgewise.errors import DeviceMemoryError, MemoryLimitError, VerificationError
from wedgewise.execute._hybrid_cache import Lease, SharedBlocks
from wedgewise.execute._hybrid_queue import TaskQueue
from wedgewise.execute.block_cache import triple_of
from wedgewise.execute.local import Partial
from wedgewise.execute.task_memory import PAGE_BYTES, TaskMemory, pairs_of_task
from wedgewise.execute.timeline import Copy, Span
from wedgewise.machine.gpu import StreamingDevice
from wedgewise.machine.streams import Clock, Sent, Stamp, Stream


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

    def finish(self, task: Task, triangles: int, tests: int) -> None:
        """Keep what a task found, once."""
        partial = Partial(task.number, triangles, tests)
        with self.lock:
            if task.number in self.partials:
                raise VerificationError(f"task {task.number} was counted twice: please report this")
            self.on_finished(partial)
            self.partials[task.number] = partial
        self.on_progress()

    def tell(self, span: Span) -> None:
        with self.lock:
            self.spans.append(span)

    def note(self, reason: str) -> None:
        with self.lock:
            self.notes.append(reason)

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

    def add(self, triangles: int, tests: int, seconds: float) -> None:
        """A range is finished; the last one of a pass opens the next."""
        with self._lock:
            self.triangles += triangles
            self.tests += tests
            self.seconds += seconds
            self._under_way -= 1
            if self._under_way == 0 and not self._ranges[-1]:
                self._ranges.pop()

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
            run.add(int(triangles), int(tests), time.perf_counter() - since)
            counted += 1
        return counted

    def _end(self, run: HostRun) -> None:
        self.crew.begun.remove(run)
        self.crew.blocks.release(run.lease)
        self.crew.finish(run.task, run.triangles, run.tests)
        self.crew.queue.finish(run.task, self.place, run.seconds, on_device=False)


@dataclass(slots=True)
class Arrived:
    """A block on a device, or on its way there."""

    block: Block
    sent: tuple[Sent, Sent]
    is_told: bool = False

    @classmethod
    def of(cls, block: Block, device: StreamingDevice) -> Arrived:
        """Start to copy a block."""
        offsets, heads = device.send(block.offsets), device.send(block.heads)
        return cls(Block(offsets.array, heads.array, block.columns), (offsets, heads))


@dataclass(slots=True)
class DevicePlace:
    """A device, the blocks on it, and how a task is counted there."""

    device: StreamingDevice
    name: str
    blocks: SharedBlocks[Arrived]
    answer: DeviceTripleAnswer
    knobs: Knobs
    work_bytes: Callable[[Task], int]
    clock: Clock


@dataclass(slots=True)
class StreamWorker:
    """The thread of one stream."""

    crew: Crew
    there: DevicePlace
    number: int
    place: str

    def run(self) -> None:
        """Until no task is left to begin."""
        device, queue = self.there.device, self.crew.queue
        with device.using():
            stream = device.stream()
            ahead: tuple[Task, Lease[Arrived]] | None = None
            while (task := queue.for_stream(self.number)) is not None:
                lease = self._lease(task, ahead)
                ahead = None if lease is None else self._count(task, lease, stream)
            if ahead is not None:
                self.there.blocks.release(ahead[1])

    def _lease(self, task: Task, ahead: tuple[Task, Lease[Arrived]] | None) -> Lease[Arrived] | None:
        """The blocks of a task, which may have been copied ahead; without room the task is handed over."""
        cache = self.there.blocks
        if ahead is not None:
            if ahead[0] is task:
                return ahead[1]
            cache.release(ahead[1])
        while True:
            budget = cache.budget
            try:
                lease = cache.lease(pairs_of_task(task), self.there.work_bytes(task))
            except DeviceMemoryError as error:
                self._shrink(error, budget)
                continue
            if lease is None and not self.crew.queue.is_over:
                self._hand_over(task)
            return lease

    def _count(self, task: Task, lease: Lease[Arrived], stream: Stream) -> tuple[Task, Lease[Arrived]] | None:
        """Count a task, and bring the blocks of the next one meanwhile; the next one, if they came."""
        there, budget = self.there, self.there.blocks.budget
        since = time.perf_counter()
        try:
            with there.device.errors():
                work, begin, end = self._launch(task, lease, stream)
        except DeviceMemoryError as error:
            stream.stamp().wait()  # what was launched may read the blocks
            there.blocks.release(lease)
            self._shrink(error, budget)
            self._hand_over(task)
            return None
        ahead = self._bring_next()
        end.wait()
        with stream:
            triangles, tests = there.device.download(work.found).tolist()
        copies = self._copies(lease)
        del work  # which holds the blocks, too
        there.blocks.release(lease)
        span = self._seconds(begin), self._seconds(end)
        self.crew.tell(Span(task.number, there.name, self.place, *span, self.crew.estimates[task.number], copies))
        self.crew.finish(task, triangles, tests)
        self.crew.queue.finish(task, self.place, time.perf_counter() - since, on_device=True)
        return ahead

    def _launch(self, task: Task, lease: Lease[Arrived], stream: Stream) -> tuple[DeviceWork, Stamp, Stamp]:
        """Start all that counts a task, behind the copies of its blocks; its arrays, and from when to when it runs."""
        there = self.there
        for arrived in lease.blocks.values():
            for sent in arrived.sent:
                stream.follow(sent.end)
        blocks = {pair: arrived.block for pair, arrived in lease.blocks.items()}
        with stream:
            begin = stream.stamp()
            work = there.answer.prepare(triple_of(blocks, task), there.knobs, task.share, task.shares, there.device)
            work.found.fill(0)
            for batch in work.batches:
                for launch in batch():
                    launch()
            return work, begin, stream.stamp()

    def _bring_next(self) -> tuple[Task, Lease[Arrived]] | None:
        """Start to copy what the next task needs, as far as there is room beside those under way."""
        task = self.crew.queue.upcoming(self.number)
        if task is None:
            return None
        budget = self.there.blocks.budget
        try:
            lease = self.there.blocks.lease(pairs_of_task(task), self.there.work_bytes(task), wait=False)
        except DeviceMemoryError as error:
            self._shrink(error, budget)
            return None
        return None if lease is None else (task, lease)

    def _shrink(self, error: DeviceMemoryError, budget: int) -> None:
        """Take less than the budget that was found to be too much."""
        left = self.there.blocks.shrink(budget)
        self.crew.note(f"{self.there.name}: {error.shortage}; blocks there take {left:,} bytes at most from then on")

    def _hand_over(self, task: Task) -> None:
        if not self.crew.queue.hand_over(task):
            need = self.there.work_bytes(task)
            raise DeviceMemoryError(self.there.name, wanted=need, free=self.there.blocks.budget)
        self.crew.note(f"task {task.number} went to the CPU, since {self.there.name} had no room for it")

    def _copies(self, lease: Lease[Arrived]) -> tuple[Copy, ...]:
        """The copies of blocks that no task before this one has told of."""
        with self.crew.lock:
            fresh = [arrived for arrived in lease.blocks.values() if not arrived.is_told]
            for arrived in fresh:
                arrived.is_told = True
        return tuple(
            Copy(self._seconds(sent.begin), self._seconds(sent.end), sent.array.nbytes)
            for arrived in fresh
            for sent in arrived.sent
        )

    def _seconds(self, stamp: Stamp) -> float:
        return self.there.clock(stamp) - self.crew.zero
