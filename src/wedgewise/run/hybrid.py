"""Counting by block tasks on GPUs and threads together (BBTC, §5): a graph in memory, or a store.

    blocks ─→ tasks by estimate ─→ queue ─┬─ batches of heavy ones → streams of GPUs   copies of the next meanwhile
                                          └─ batches of light ones → threads           several on one at the end

Every task is counted once, by whoever takes its batch; its counts are kept by its number, so that the total does not
depend on who that was. A failure anywhere ends all, within a batch.

Kernels are compiled before the first batch begins, so that none seems slow because it was the first to need one: those
that tasks will launch are found by preparing all of them with arrays that have a shape and no memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from wedgewise.algorithms._contract import DeviceBatch, DeviceBlock, Shape
from wedgewise.algorithms.cpu._batches import with_busy_rows
from wedgewise.errors import DeviceMemoryError, MemoryLimitError
from wedgewise.machine.gpu import Defines, Device, Kernel, StreamingDevice
from wedgewise.machine.out_of_memory import memory_for
from wedgewise.machine.progress import Progress
from wedgewise.machine.streams import Sent
from wedgewise.machine.threads import run_tasks
from wedgewise.run._hybrid_plan import (
    Division,
    Pairing,
    Resources,
    TaskSizes,
    choose_parts,
    describe,
    divide,
    pair_up,
    parts_reasons,
)
from wedgewise.run._hybrid_queue import TaskQueue
from wedgewise.run._hybrid_streams import DeviceWorker, forget_locals
from wedgewise.run._hybrid_workers import Finish, HostWorker, WorkerPool
from wedgewise.run.batches import pairs_in
from wedgewise.run.block_caches import SharedBlocks
from wedgewise.run.checkpoint import Journal
from wedgewise.run.choose import allowed_memory, check_memory
from wedgewise.run.device_blocks import Arrived, Shipment, allocate, send
from wedgewise.run.in_memory import TaskRun, finished_execution
from wedgewise.run.plan import OrientedShape, Plan
from wedgewise.run.request import Request
from wedgewise.run.task_memory import HYBRID_TASK_BYTES, BlockSource, bytes_beside_lists, lists_bytes
from wedgewise.run.timeline import Timeline
from wedgewise.stages import OrientedGraph
from wedgewise.stages.blocks import Block, Blocks, Hashed, Partition
from wedgewise.stages.tasks import BlockCounts, Pair, TaskResults, TaskTable, table_of

if TYPE_CHECKING:
    from wedgewise.store.open import Store

REPLICATING = "trust"  # where it is named, several GPUs that a graph fits share its rows


@dataclass(frozen=True, slots=True)
class GraphBlocks:
    """The blocks of a graph in memory as a source; see `BlockSource`."""

    blocks: Blocks
    counts: BlockCounts

    @property
    def partition(self) -> Partition:
        return self.blocks.partition

    def block(self, row: int, column: int, *, threads: int = 1) -> Block:
        return self.blocks.blocks[row, column]


@dataclass(frozen=True, slots=True)
class HybridTasks:
    """A planned count; ``kernels`` are those that its tasks launch on every device."""

    source: BlockSource
    sizes: TaskSizes
    resources: Resources
    division: Division
    plan: Plan
    kernels: tuple[Kernel, ...]

    @memory_for("count")
    def run(self, journal: Journal | None = None, progress: Progress | None = None) -> TaskRun:
        """Count all tasks that the journal does not have."""
        results = TaskResults.none(self.division.everything) if journal is None else journal.results
        running = _Running(self, results.is_done, results.put if journal is None else journal.add)
        running.go(progress)
        plan = replace(self.plan, reasons=(*self.plan.reasons, *running.pool.notes))
        counted = finished_execution(results, self.division.tasks, self.division.host_tasks)
        return TaskRun(counted, plan, running.timeline())


class _InCaller(Executor):
    """Does work where it is submitted."""

    def submit(self, work: Callable[..., Any], /, *arguments: Any, **options: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(work(*arguments, **options))
        return done


def _new_sender() -> Executor:
    """A thread that sends blocks; without memory for another stack, whoever asks for blocks sends them."""
    sender = ThreadPoolExecutor(1, "wedgewise-sending")
    try:
        sender.submit(int).result()  # starts it
    except RuntimeError:
        return _InCaller()
    return sender


class _Running:
    """The queue, the blocks and the workers of one run."""

    def __init__(self, hybrid: HybridTasks, is_done: NDArray[np.bool_], keep: Finish) -> None:
        division, resources, sizes = hybrid.division, hybrid.resources, hybrid.sizes
        left = np.flatnonzero(~is_done[division.tasks.number])
        host_left = np.flatnonzero(~is_done[division.host_tasks.number])
        self.tasks = division.count
        self.known = self.tasks - len(left) - len(host_left)
        self.hybrid = hybrid
        available_bytes = resources.host_bytes // max(1, resources.threads)
        queue = TaskQueue(
            division.tasks.take(left),
            division.host_tasks.take(host_left),
            division.device_only[left],
            streams=division.device_memory.streams * len(resources.devices),
            threads=resources.threads,
            schedule=str(sizes.pairing.own["schedule"]),
            cutoff=division.cutoff,
            guesses=division.guesses,
            fits_host=lambda tasks: sizes.host_batch(tasks) <= available_bytes,
        )
        blocks = SharedBlocks(resources.host_bytes, sizes.host_block, self._read, queue.uses_of)
        self.pool = WorkerPool(queue, blocks, division.everything, keep)
        self.there: list[DeviceWorker] = []

    def _read(self, pairs: list[Pair]) -> list[Block]:
        return [self.hybrid.sizes.memory.read(self.hybrid.source, pair) for pair in pairs]

    def go(self, progress: Progress | None) -> None:
        """Count all tasks; at the end no device holds blocks any more.

        All that a first task would have to wait for is there before the clock of the run starts: compiled kernels,
        pinned buffers, the memory of blocks and of every stream.
        """
        with ExitStack() as held:
            for number, device in enumerate(self.hybrid.resources.devices):
                held.enter_context(device.memory())
                sender = held.enter_context(_new_sender())
                self.there.append(self._prepare_device(number, device, sender))
                held.callback(self.there[-1].blocks.clear)
                held.callback(sender.shutdown, cancel_futures=True)
            self.pool.zero = time.perf_counter()
            self._work(progress)

    def _work(self, progress: Progress | None) -> None:
        """Let all workers work until no task is left; threads beside GPUs begin where there is a task for them."""
        threads = self._threads()

        def work(worker: DeviceWorker | HostWorker) -> None:
            try:
                worker.run()
            except BaseException as error:
                self.stop()
                forget_locals(error)
                raise

        def join_in() -> None:
            if self.pool.queue.wait_for_threads_task():
                run_tasks(lambda number, _: work(threads[number]), len(threads), len(threads), on_stop=self.stop)

        def report(_ended: int = 0) -> None:
            if progress is not None:
                progress("count", self.known + self.pool.done, self.tasks)

        jobs: list[Callable[[], None]] = [partial(work, worker) for worker in self.there or threads]
        if self.there and threads:
            jobs.append(join_in)
        if len(jobs) == 1:  # the calling thread itself
            self.pool.on_progress = report
        run_tasks(
            lambda number, _: jobs[number](), len(jobs), len(jobs), None if progress is None else report, self.stop
        )

    def stop(self) -> None:
        """Let nobody begin or wait any more."""
        self.pool.queue.stop()
        self.pool.blocks.stop()
        for there in self.there:
            there.blocks.stop()

    def timeline(self) -> Timeline:
        streams = [place for of_all in zip(*(there.places for there in self.there), strict=True) for place in of_all]
        return Timeline(tuple(self.pool.spans), (*streams, *(("cpu", worker.name) for worker in self._threads())))

    def _threads(self) -> list[HostWorker]:
        sizes = self.hybrid.sizes
        return [HostWorker(self.pool, sizes, f"thread {number}") for number in range(self.hybrid.resources.threads)]

    def _prepare_device(self, number: int, device: StreamingDevice, sender: Executor) -> DeviceWorker:
        sizes, memory = self.hybrid.sizes, self.hybrid.division.device_memory
        streams = tuple(device.stream() for _ in range(memory.streams))
        ship = partial(self._ship, device, sender)
        blocks = SharedBlocks(memory.blocks, sizes.device_block, ship, self.pool.queue.uses_of)
        try:
            device.get_ready(self.hybrid.kernels)
            for stream in streams:
                device.reserve(memory.work, stream)
            device.reserve(min(memory.blocks, sizes.all_device_blocks))
        except DeviceMemoryError as error:
            self.pool.notes.append(
                f"{device.name}: {error.reason}; blocks there take {blocks.shrink():,} bytes at most"
            )
        name = device.name if len(self.hybrid.resources.devices) == 1 else f"{device.name} {number}"
        answer, knobs = sizes.pairing.on_device(), sizes.pairing.gpu_knobs
        clock = device.clock()
        return DeviceWorker(self.pool, device, name, streams, blocks, answer, knobs, sizes, memory.tasks, clock)

    def _ship(self, device: StreamingDevice, sender: Executor, pairs: list[Pair]) -> list[Arrived]:
        """Take memory for blocks, and let a thread send them: all at once, or one after the other as they are read."""
        sizes, arrived = self.hybrid.sizes, list[Arrived]()
        there = allocate(list(map(sizes.expected, pairs)), sizes.offset_type, device)
        for number in range(1 if sizes.blocks_are_there else len(pairs)):
            some = slice(None) if sizes.blocks_are_there else slice(number, number + 1)
            shipment = Shipment(sender.submit(self._send, device, pairs[some], there[some]))
            arrived += [Arrived(one, shipment) for one in there[some]]
        return arrived

    def _send(self, device: StreamingDevice, pairs: list[Pair], there: list[DeviceBlock]) -> Sent:
        """Start to copy blocks, which the host has or reads for that."""
        lease = self.pool.blocks.lease(set(pairs), 0)
        if lease is None:
            row, column = pairs[0]
            raise MemoryLimitError(f"block {row}, {column} does not fit the host's memory", "allow more")
        try:
            return send([lease.blocks[pair] for pair in pairs], there, device)
        finally:
            self.pool.blocks.release(lease)


@memory_for("plan")
def plan_graph(
    request: Request, graph: OrientedGraph, reasons: tuple[str, ...] = (), source: GraphBlocks | None = None
) -> HybridTasks:
    """Cut a graph into blocks in memory, unless they are given, and plan their tasks.

    What does not fit is refused before anything is cut.
    """
    pairing = pair_up(request.algorithm, request.knobs)
    resources = Resources.find(pairing, 0, request.thread_count)
    host_bytes, shares = allowed_memory(request), request.share_count
    if source is None:
        parts = choose_parts(graph, pairing, resources.device_bytes)
        if request.shares is None and _is_replicated(graph, pairing, resources):
            parts, shares = 1, len(resources.devices)
            reasons = (*reasons, f"TRUST's rule for {shares} GPUs that each hold the graph: n = 1, m = {shares}")
        lists_rows = resources.threads > 0 and pairing.cpu.triples_on_cpu("count").lists_rows
        source = _cut(graph, parts, request, lists_rows)
        host_bytes -= source.blocks.nbytes
        reasons = (*reasons, *parts_reasons(graph, pairing))
    oriented_shape = OrientedShape(Shape(graph.n, graph.m, graph.wedges), graph.order)
    held_bytes, resources = source.blocks.nbytes, replace(resources, host_bytes=host_bytes)
    return _planned(source, pairing, resources, request.question, oriented_shape, held_bytes, reasons, shares)


def _is_replicated(graph: OrientedGraph, pairing: Pairing, resources: Resources) -> bool:
    """Whether each of several GPUs has the whole graph, and a share of its rows, as TRUST does where it fits (§5.1)."""
    if len(resources.devices) < 2 or pairing.own["parts"] or pairing.gpu is None or pairing.gpu.name != REPLICATING:
        return False
    counts = BlockCounts(np.array([[graph.m]]), np.array([graph.n]))
    sizes, whole = TaskSizes(pairing.host_memory(counts, 0), pairing, True), table_of(Hashed(graph.n, 1), 1)
    need = sizes.all_device_blocks + int(pairing.own["streams"]) * int(sizes.device_work(whole)[0])
    return need <= resources.device_bytes


@memory_for("partition")
def _cut(graph: OrientedGraph, parts: int, request: Request, lists_rows: bool) -> GraphBlocks:
    from wedgewise.prepare.cut_blocks import blocks_bytes, blocks_of
    from wedgewise.prepare.rectilinear import rectilinear

    threads = request.thread_count
    partition = rectilinear(graph, parts, threads=threads)
    lists = min(4 * graph.m, blocks_bytes(partition, 0)) if lists_rows else 0  # of rows that have arcs
    need = blocks_bytes(partition, graph.m) + lists
    check_memory(need, request, f"cutting {graph.m:,} arcs into blocks", "partition the graph into a store")
    blocks = blocks_of(graph, partition, threads=threads)
    if lists_rows:
        pairs = list(blocks.blocks)
        listed = run_tasks(lambda number, _: with_busy_rows(blocks.blocks[pairs[number]]), len(pairs), threads)
        blocks = replace(blocks, blocks=dict(zip(pairs, listed, strict=True)))
    return GraphBlocks(blocks, BlockCounts.of(blocks))


@memory_for("plan")
def plan_store(request: Request, store: Store) -> HybridTasks:
    """Plan the tasks of a store within ``request.memory_limit``, the resident size of this process."""
    from wedgewise.machine.budget import available_after_loading
    from wedgewise.run.outofcore import load_count_kernels

    pairing = pair_up(request.algorithm, request.knobs)
    resources = Resources.find(pairing, 0, request.thread_count)
    host_bytes = available_after_loading(request.memory_limit, load_count_kernels, pairing.cpu.name)
    manifest = store.manifest
    oriented_shape = OrientedShape(Shape(manifest.n, manifest.m, manifest.wedges), manifest.order)
    resources = replace(resources, host_bytes=host_bytes)
    return _planned(store, pairing, resources, "count", oriented_shape, 0, (), request.share_count)


def _planned(
    source: BlockSource,
    pairing: Pairing,
    resources: Resources,
    question: str,
    oriented_shape: OrientedShape,
    held_bytes: int,
    reasons: tuple[str, ...],
    shares: int,
) -> HybridTasks:
    """Tasks within what lists of them leave of the host's memory; `held_bytes` are those of blocks in memory."""
    lists = lists_bytes(source.partition, HYBRID_TASK_BYTES, shares)
    left = bytes_beside_lists(question, source.partition, HYBRID_TASK_BYTES, resources.host_bytes, shares)
    resources = replace(resources, host_bytes=left)
    memory = pairing.host_memory(source.counts, resources.threads)
    sizes = TaskSizes(memory, pairing, isinstance(source, GraphBlocks))
    division = divide(source, sizes, resources, question, oriented_shape.shape, shares)
    reasons = (f"{lists:,} bytes of lists of tasks", *reasons)
    plan = describe(source, sizes, resources, division, question, oriented_shape, held_bytes + lists, reasons)
    kernels = kernels_of(division.tasks, sizes, resources.devices[0]) if resources.devices else ()
    return HybridTasks(source, sizes, resources, division, plan, kernels)


def kernels_of(tasks: TaskTable, sizes: TaskSizes, device: Device) -> tuple[Kernel, ...]:
    """The kernels of tasks, in the order in which they are needed."""
    answer, knobs = sizes.pairing.on_device(), sizes.pairing.gpu_knobs
    noting, blocks = _Noting(device), {pair: _block(pair, sizes) for pair in pairs_in(tasks)} if len(tasks) else {}
    if not blocks:
        return ()
    fresh = [there for there in blocks.values() if there.is_to_be_made]
    launches = list(answer.make(fresh, knobs, noting)) if fresh else []
    for batch in answer.prepare(DeviceBatch(blocks, tasks), knobs, noting).batches:
        launches += batch()
    for launch in launches:
        launch()
    return tuple(noting.kernels)


def _block(pair: Pair, sizes: TaskSizes) -> DeviceBlock:
    counts, (row, column), words = sizes.memory.counts, pair, int(sizes.made_words[pair])
    offsets = _shaped(int(counts.sizes[row]) + 1, sizes.offset_type)
    block = Block(offsets, _shaped(int(counts.arcs[pair]), np.uint32), int(counts.sizes[column]))
    return DeviceBlock(block, _shaped(words, np.uint32) if words else None)


def _shaped(shape: int | tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """An array of any size, all of whose elements are one."""
    sides = shape if isinstance(shape, tuple) else (shape,)
    return as_strided(np.zeros(1, dtype), sides, (0,) * len(sides))


class _Shapes:
    """NumPy, but that new arrays take no memory."""

    empty = zeros = staticmethod(_shaped)

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


class _Noting:
    """A device that notes launches instead of doing them; sizes are those of a real one."""

    def __init__(self, device: Device) -> None:
        self.xp: Any = _Shapes()
        self.sms, self.shared_bytes = device.sms, device.shared_bytes
        self.kernels: dict[Kernel, None] = {}
        self._device = device

    def launch(
        self,
        stem: str,
        kernel: str,
        grid: int,
        block: int,
        arguments: tuple[Any, ...],
        *,
        shared_bytes: int = 0,
        defines: Defines = (),
        cooperative: bool = False,
    ) -> None:
        self.kernels[Kernel(stem, kernel, defines)] = None

    def resident_blocks(self, stem: str, kernel: str, block: int, *, defines: Defines = ()) -> int:
        return self._device.resident_blocks(stem, kernel, block, defines=defines)

    def synchronize(self) -> None:
        """Nothing is under way."""

    def address(self, array: NDArray[Any]) -> int:
        return 0

    def upload(self, array: NDArray[Any]) -> NDArray[Any]:
        return array
