"""The threads of streams: one for each stream of each device of a hybrid count.

Such a thread sleeps while the device works. It starts a task, starts to copy the blocks of the next one, waits for the
first, and goes on (BBTC, algorithm 7).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from wedgewise.algorithms._contract import DeviceTripleAnswer, DeviceWork, Knobs
from wedgewise.errors import DeviceMemoryError
from wedgewise.machine.gpu import StreamingDevice
from wedgewise.machine.streams import Clock, Moved, Sent, Stamp, Stream
from wedgewise.run._hybrid_cache import Lease, SharedBlocks
from wedgewise.run._hybrid_workers import Crew
from wedgewise.run.block_cache import triple_of
from wedgewise.run.memory import pairs_of_task
from wedgewise.run.timeline import Copy, Span
from wedgewise.stages.blocks import Block, Task


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
    streams: tuple[Stream, ...]
    blocks: SharedBlocks[Arrived]
    answer: DeviceTripleAnswer
    knobs: Knobs
    task_bytes: Callable[[Task], int]
    clock: Clock


@dataclass(slots=True)
class StreamWorker:
    """The thread of one stream."""

    crew: Crew
    there: DevicePlace
    stream: Stream
    number: int
    place: str

    def run(self) -> None:
        """Until no task is left to begin."""
        queue = self.crew.queue
        with self.there.device.using():
            ahead: tuple[Task, Lease[Arrived]] | None = None
            while (task := queue.for_stream(self.number)) is not None:
                lease = self._lease(task, ahead)
                ahead = None if lease is None else self._count(task, lease)
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
                lease = cache.lease(pairs_of_task(task), 0)
            except DeviceMemoryError as error:
                self._shrink(error, budget)
                continue
            if lease is None and not self.crew.queue.is_over:
                self._hand_over(task)
            return lease

    def _count(self, task: Task, lease: Lease[Arrived]) -> tuple[Task, Lease[Arrived]] | None:
        """Count a task, and bring the blocks of the next one meanwhile; the next one, if they came."""
        there, budget = self.there, self.there.blocks.budget
        try:
            with there.device.errors():
                work, begin, end = self._launch(task, lease)
        except DeviceMemoryError as error:
            self.stream.stamp().wait()  # what was launched may read the blocks
            there.blocks.release(lease)
            self._shrink(error, budget)
            self._hand_over(task)
            return None
        ahead = self._bring_next()
        end.wait()
        with self.stream:
            triangles, tests = there.device.download(work.found).tolist()
        copies = self._copies(lease)
        del work  # which holds the blocks, too
        there.blocks.release(lease)
        since, until = self._seconds(begin), self._seconds(end)
        estimate = self.crew.estimates[task.number]
        self.crew.tell(Span(task.number, there.name, self.place, since, until, estimate, copies))
        self.crew.finish(task, triangles, tests)
        self.crew.queue.finish(task, self.place, until - since, on_device=True)
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
        """Start to copy what the next task needs, as far as there is room beside those under way."""
        task = self.crew.queue.upcoming(self.number)
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
        self.crew.note(f"{self.there.name}: {error.shortage}; blocks there take {left:,} bytes at most from then on")

    def _hand_over(self, task: Task) -> None:
        if not self.crew.queue.hand_over(task):
            need = self.there.task_bytes(task)
            raise DeviceMemoryError(self.there.name, wanted=need, free=self.there.blocks.budget)
        self.crew.note(f"task {task.number} went to the CPU, since {self.there.name} had no room for it")

    def _copies(self, lease: Lease[Arrived]) -> tuple[Copy, ...]:
        """The copies of blocks that no task before this one has told of."""
        with self.crew.lock:
            fresh = [arrived for arrived in lease.blocks.values() if not arrived.is_told]
            for arrived in fresh:
                arrived.is_told = True
        pieces = [piece for arrived in fresh for sent in arrived.sent for piece in sent.pieces]
        return tuple(map(self._copy, pieces))

    def _copy(self, piece: Moved) -> Copy:
        since, until = (at - self.crew.zero for at in piece.filled)
        return Copy(self._seconds(piece.begin), self._seconds(piece.end), piece.nbytes, (since, until))

    def _seconds(self, stamp: Stamp) -> float:
        return self.there.clock(stamp) - self.crew.zero
