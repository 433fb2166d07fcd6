"""The workers of a hybrid count that drive GPUs, a thread for all streams of each.

It lets another thread send the blocks of a batch, and starts the batch before it on a stream by a few launches, as long
as there are idle streams. Then it sleeps until the first batch ends, and fetches what all of the tasks found (BBTC,
algorithm 7, has a thread for each stream: those would wait for the interpreter).
"""

from __future__ import annotations

import traceback
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from wedgewise.algorithms._contract import DeviceBatch, DeviceTripleAnswer, DeviceWork, Knobs
from wedgewise.errors import DeviceMemoryError
from wedgewise.machine.gpu import StreamingDevice
from wedgewise.machine.streams import Stamp, StampTimer, Stream
from wedgewise.run._hybrid_plan import TaskSizes
from wedgewise.run._hybrid_workers import WorkerPool, span_of
from wedgewise.run.batches import pairs_in
from wedgewise.run.block_caches import Lease, SharedBlocks
from wedgewise.run.device_blocks import Arrived, shipments_of
from wedgewise.run.timeline import Copy
from wedgewise.stages.tasks import TaskTable


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

    ``idle`` are streams by number; ``brought`` is the next batch, whose blocks are on their way; ``ahead`` are those
    that were taken and did not fit so far.
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
    ahead: list[TaskTable] = field(default_factory=list)
    brought: tuple[TaskTable, Lease[Arrived]] | None = None

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
                    self.brought = self.brought or self._bring()
                    if self.brought is not None and self.idle:
                        tasks, lease = self.brought
                        self.brought = self._bring()  # sent while the one before it is planned
                        self._start(tasks, lease)
                    elif self.under_way:
                        self._finish(self.under_way.popleft())
                    elif not self.ahead:
                        return
            finally:
                self._abandon()

    def _fits(self, tasks: TaskTable) -> bool:
        """Whether the blocks of a batch fit beside those of other streams, and of the batch after it."""
        budget, sizes = self.blocks.budget, self.sizes
        if len(tasks) > self.most_tasks:
            return False
        available_bytes = budget // (2 * len(self.streams))
        return sizes.all_device_blocks <= budget or sizes.device_blocks_of(tasks) <= available_bytes

    def _bring(self) -> tuple[TaskTable, Lease[Arrived]] | None:
        """The next batch, or less of one that does not fit; None where there is none, or another has to end first."""
        while tasks := self.ahead.pop() if self.ahead else self.pool.queue.for_stream(self._fits):
            is_alone = not self.under_way and self.brought is None
            try:
                lease = self.blocks.lease(pairs_in(tasks), 0, wait=False)
            except DeviceMemoryError as error:
                self._shrink(error)
                self.ahead.append(tasks)
            else:
                if lease is not None:
                    return tasks, lease
                if is_alone:
                    self._retry_less_of(tasks)
                else:
                    self.ahead.append(tasks)
            if not is_alone:
                break
        return None

    def _start(self, tasks: TaskTable, lease: Lease[Arrived]) -> None:
        """Let a stream count a batch, or try less of it again where there is too little memory for that."""
        tasks = tasks.take(np.lexsort((tasks.i, tasks.pairs[2])))  # those that look up in one block follow each other
        stream = self.idle.popleft()
        try:
            with self.device.errors():
                self.under_way.append(StartedBatch(tasks, lease, *self._launch(tasks, lease, stream)))
        except DeviceMemoryError as error:
            forget_locals(error)
            self.streams[stream].stamp().synchronize()  # what was launched may read the blocks
            self.idle.append(stream)
            self.blocks.forget(lease)
            if self.brought is not None:  # which may wait for the same block
                self.ahead.append(self.brought[0])
                self.blocks.forget(self.brought[1])
                self.brought = None
            self._shrink(error)
            if len(tasks) > 1:
                self._retry_less_of(tasks)
            else:
                self.ahead.append(tasks)

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
        """Release what is left, and wait before for all that was launched: it reads the blocks, however it ended."""
        for stream in self.streams:
            with suppress(Exception):  # of which there was another before
                stream.stamp().synchronize()
        if self.brought is not None:
            self.blocks.release(self.brought[1])
            self.brought = None
        while self.under_way:
            self.blocks.release(self.under_way.popleft().lease)

    def _retry_less_of(self, tasks: TaskTable) -> None:
        """Try half of a batch that does not fit, the others being nobody's again; one task alone goes to threads."""
        half = len(tasks) // 2
        if half:
            self.pool.queue.put_back(tasks.take(slice(half, None)))
            self.ahead.append(tasks.take(slice(half)))
            return
        if not self.pool.queue.hand_over(tasks):
            raise DeviceMemoryError(self.name, wanted=int(self.sizes.on_device(tasks).max()), free=self.blocks.budget)
        self.pool.notes.append(
            f"{len(tasks):,} tasks from task {tasks.number[0]} on went to the CPU, since {self.name} had too "
            "little memory for them"
        )

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


def forget_locals(error: BaseException | None) -> None:
    """Let no traceback keep blocks on a device: whoever handles the error may hold it for long."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__
