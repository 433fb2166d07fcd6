"""Counting by block tasks on GPUs and threads together (BBTC, §5): a graph in memory, or a store.

    blocks ─→ tasks by estimate ─→ queue ─┬─ heavy ones → streams of GPUs   copies of the next task meanwhile
                                          └─ light ones → threads           several on one task when none is left

Every task is counted once, by whoever takes it; its counts are kept by its number, so that the total does not depend on
who that was. A failure anywhere ends all, within a task.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from wedgewise.algorithms._contract import Shape, Work
from wedgewise.algorithms._passes import Partial
from wedgewise.errors import DeviceMemoryError, MemoryLimitError
from wedgewise.machine import hardware
from wedgewise.machine.gpu import Kernel, StreamingDevice
from wedgewise.machine.out_of_memory import memory_for
from wedgewise.machine.threads import run_tasks
from wedgewise.run._hybrid_cache import SharedBlocks
from wedgewise.run._hybrid_division import Division, TaskSizes, divide
from wedgewise.run._hybrid_kernels import kernels_of
from wedgewise.run._hybrid_plan import BlockSource, Pairing, Places, choose_parts, describe, pair_up
from wedgewise.run._hybrid_queue import TaskQueue
from wedgewise.run._hybrid_streams import Arrived, DevicePlace, StreamWorker
from wedgewise.run._hybrid_workers import Crew, HostWorker
from wedgewise.run.journal import Journal
from wedgewise.run.local import Execution, Ran
from wedgewise.run.memory import HYBRID_TASK_BYTES, Pair, TaskMemory, lists_bytes, room_beside_lists
from wedgewise.run.plan import Plan, allowed_memory, check_memory
from wedgewise.run.request import Request
from wedgewise.run.timeline import Timeline
from wedgewise.stages import OrientedGraph
from wedgewise.stages.blocks import Block, Blocks, Partition
from wedgewise.stages.tasks import Counts

if TYPE_CHECKING:
    from wedgewise.store.open import Store

Tell = Callable[[str, int, int], None] | None


@dataclass(frozen=True, slots=True)
class GraphBlocks:
    """The blocks of a graph in memory as a source; see `BlockSource`."""

    blocks: Blocks
    counts: Counts

    @property
    def partition(self) -> Partition:
        return self.blocks.partition

    def block(self, row: int, column: int, *, threads: int = 1) -> Block:
        return self.blocks.blocks[row, column]


@dataclass(frozen=True, slots=True)
class Hybrid:
    """A planned count; ``kernels`` are those that its tasks launch on every device."""

    source: BlockSource
    sizes: TaskSizes
    places: Places
    division: Division
    plan: Plan
    kernels: tuple[Kernel, ...]

    @memory_for("count")
    def run(self, tell: Tell = None, journal: Journal | None = None) -> Ran:
        """Count all tasks that the journal does not have."""
        known = {} if journal is None else dict(journal.done)
        keep = (lambda found: None) if journal is None else journal.add
        with _Running(self, known, keep) as running:
            running.go(tell)
        found = {task.number: Partial(task.number, 0, 0) for task in self.division.everything}
        execution = Execution(len(found), {**found, **known, **running.crew.partials}, Work(()))
        plan = replace(self.plan, reasons=(*self.plan.reasons, *running.crew.notes))
        return Ran(execution, plan, running.timeline())


class _Running:
    """The queue, the blocks and the workers of one run; at its end no device holds blocks any more.

    All that a first task would have to wait for is there before the clock of the run starts: compiled kernels, pinned
    buffers, the memory of blocks and of every stream.
    """

    def __init__(self, hybrid: Hybrid, known: Mapping[int, Partial], keep: Callable[[Partial], None]) -> None:
        division, places, schedule = hybrid.division, hybrid.places, str(hybrid.sizes.pairing.own["schedule"])
        tasks = [task for task in division.tasks if task.number not in known]
        host_tasks = [task for task in division.host_tasks if task.number not in known]
        streams = division.room.streams * len(places.devices)
        self.tasks = len(division.estimates)
        self.known = len(known.keys() & division.estimates.keys())
        self.hybrid = hybrid
        queue = TaskQueue(
            tasks,
            host_tasks,
            division.device_only,
            division.estimates,
            streams=streams,
            threads=places.threads,
            schedule=schedule,
            cutoff=division.cutoff,
            guesses=division.guesses,
        )
        blocks = SharedBlocks(places.room, hybrid.sizes.host_block, self._read, queue.uses)
        self.crew = Crew(queue, blocks, division.estimates, keep)
        self.there: list[DevicePlace] = []
        self._held = ExitStack()

    def __enter__(self) -> _Running:
        with ExitStack() as held:
            for number, device in enumerate(self.hybrid.places.devices):
                held.enter_context(device.memory())
                held.callback(self._drop_blocks)
                self.there.append(self._place(number, device))
            self._held = held.pop_all()
        self.crew.start_clock()
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def go(self, tell: Tell) -> None:
        """Let all workers work until no task is left; threads beside streams begin where there is a task for them."""
        streams, threads = self._streams(), self._threads()

        def work(worker: StreamWorker | HostWorker) -> None:
            try:
                worker.run()
            except BaseException as error:
                self.stop()
                _forget_locals(error)
                raise

        def join_in() -> None:
            if self.crew.queue.wait_for_threads_task():
                run_tasks(lambda number, _: work(threads[number]), len(threads), len(threads), on_stop=self.stop)

        def report(_ended: int = 0) -> None:
            if tell is not None:
                tell("count", self.known + len(self.crew.partials), self.tasks)

        jobs: list[Callable[[], None]] = [partial(work, worker) for worker in streams or threads]
        if streams and threads:
            jobs.append(join_in)
        if len(jobs) == 1:  # the calling thread itself
            self.crew.on_progress = report
        run_tasks(lambda number, _: jobs[number](), len(jobs), len(jobs), None if tell is None else report, self.stop)

    def stop(self) -> None:
        """Let nobody begin or wait any more."""
        self.crew.queue.stop()
        self.crew.blocks.stop()
        for there in self.there:
            there.blocks.stop()

    def timeline(self) -> Timeline:
        there = [(worker.there.name, worker.place) for worker in self._streams()]
        return Timeline(tuple(self.crew.spans), (*there, *(("cpu", worker.place) for worker in self._threads())))

    def _streams(self) -> list[StreamWorker]:
        """The workers of all streams, in turn over the devices."""
        return [
            StreamWorker(self.crew, there, stream, at * len(self.there) + number, f"{there.name} stream {at}")
            for at in range(self.hybrid.division.room.streams)
            for number, there in enumerate(self.there)
            for stream in [there.streams[at]]
        ]

    def _threads(self) -> list[HostWorker]:
        memory = self.hybrid.sizes.memory
        return [HostWorker(self.crew, memory, f"thread {number}") for number in range(self.hybrid.places.threads)]

    def _place(self, number: int, device: StreamingDevice) -> DevicePlace:
        sizes, room, uses = self.hybrid.sizes, self.hybrid.division.room, self.crew.queue.uses
        streams = tuple(device.stream() for _ in range(room.streams))
        blocks = SharedBlocks(room.blocks, sizes.device_block, partial(self._send, device), uses)
        try:
            device.get_ready(self.hybrid.kernels)
            for stream in streams:
                device.reserve(room.work, stream)
            device.reserve(min(room.blocks, sum(map(sizes.device_block, uses))))
        except DeviceMemoryError as error:
            less = blocks.shrink(blocks.budget)
            self.crew.note(f"{device.name}: {error.shortage}; blocks there take {less:,} bytes at most")
        name = device.name if len(self.hybrid.places.devices) == 1 else f"{device.name} {number}"
        answer, knobs = sizes.pairing.on_device(), sizes.pairing.gpu_knobs
        return DevicePlace(device, name, streams, blocks, answer, knobs, sizes.on_device, device.clock())

    def _drop_blocks(self) -> None:
        for there in self.there:
            there.blocks.clear()

    def _read(self, pair: Pair) -> Block:
        return self.hybrid.source.block(*pair)

    def _send(self, device: StreamingDevice, pair: Pair) -> Arrived:
        """Start to copy a block, which the host has or reads for that."""
        lease = self.crew.blocks.lease({pair}, 0)
        if lease is None:
            raise MemoryLimitError(f"block {pair[0]}, {pair[1]} does not fit the host's memory; allow more")
        try:
            return Arrived.of(lease.blocks[pair], device)
        finally:
            self.crew.blocks.release(lease)


@memory_for("plan")
def plan_graph(
    request: Request, graph: OrientedGraph, because: tuple[str, ...] = (), source: GraphBlocks | None = None
) -> Hybrid:
    """Cut a graph into blocks in memory, unless they are given, and plan their tasks.

    What does not fit is refused before anything is cut.
    """
    pairing = pair_up(request.algorithm, request.knobs)
    places = Places.find(pairing, 0, hardware.granted_threads(request.threads))
    room = allowed_memory(request)
    if source is None:
        source = _cut(graph, choose_parts(graph, pairing, places.device_bytes), request)
        room -= source.blocks.nbytes
    asked = request.question, graph.order, Shape(graph.n, graph.m, graph.wedges)
    return _planned(source, pairing, replace(places, room=room), asked, source.blocks.nbytes, because)


@memory_for("partition")
def _cut(graph: OrientedGraph, parts: int, request: Request) -> GraphBlocks:
    from wedgewise.prepare.cut_blocks import blocks_bytes, blocks_of
    from wedgewise.prepare.rectilinear import rectilinear

    threads = hardware.granted_threads(request.threads)
    partition = rectilinear(graph, parts, threads=threads)
    need = blocks_bytes(partition, graph.m)
    check_memory(need, request, f"cutting {graph.m:,} arcs into blocks", "partition the graph into a store")
    blocks = blocks_of(graph, partition, threads=threads)
    return GraphBlocks(blocks, Counts.of(blocks))


@memory_for("plan")
def plan_store(request: Request, store: Store) -> Hybrid:
    """Plan the tasks of a store within ``request.memory_limit``, the resident size of this process."""
    from wedgewise.machine.budget import room_within
    from wedgewise.run.outofcore import rehearse

    pairing = pair_up(request.algorithm, request.knobs)
    places = Places.find(pairing, 0, hardware.granted_threads(request.threads))
    room = room_within(request.memory_limit, rehearse, pairing.cpu.name)
    manifest = store.manifest
    asked = "count", manifest.order, Shape(manifest.n, manifest.m, manifest.wedges)
    return _planned(store, pairing, replace(places, room=room), asked, 0, ())


def _planned(
    source: BlockSource,
    pairing: Pairing,
    places: Places,
    asked: tuple[str, str, Shape],
    held_bytes: int,
    because: tuple[str, ...],
) -> Hybrid:
    """Tasks within what lists of them leave of the host's room; `held_bytes` are those of blocks in memory."""
    lists = lists_bytes(source.partition, HYBRID_TASK_BYTES)
    places = replace(places, room=room_beside_lists(asked[0], source.partition, HYBRID_TASK_BYTES, places.room))
    memory = TaskMemory(source.counts, pairing.cpu.triples_on_cpu("count"), pairing.cpu_knobs, 1)
    sizes = TaskSizes(memory, pairing, isinstance(source, GraphBlocks))
    division = divide(source, sizes, places, asked[0], asked[2])
    reasons = (f"{lists:,} bytes of lists of tasks", *because)
    plan = describe(source, sizes, places, division, asked, held_bytes + lists, reasons)
    kernels = kernels_of(division.tasks, sizes, places.devices[0]) if places.devices else ()
    return Hybrid(source, sizes, places, division, plan, kernels)


def _forget_locals(error: BaseException | None) -> None:
    """Let no traceback keep blocks on a device: whoever handles the error may hold it for long."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__
