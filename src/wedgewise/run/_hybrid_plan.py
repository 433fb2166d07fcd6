"""How a hybrid count is planned: its knobs, a pair of algorithms, parts, GPUs and threads, and which tasks fit where.

The memory of a GPU is divided so:

    ├─ work of stream 0 ─┼─ of stream 1 ─┼ … ┼─ blocks, shared by all streams ──────────────────────────┤

The memory of a stream is its own, because what is free of one stream's is not given to another: it is as much as any
task takes that a GPU gets. Where so many streams do not fit, each with the blocks of a task, there are fewer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms import ENGINE, find_able, registry
from wedgewise.algorithms._contract import DEVICE_TASK_BYTES, Algorithm, DeviceTripleAnswer, Knob, Shape
from wedgewise.errors import MemoryLimitError, UnknownNameError
from wedgewise.machine.gpu import StreamingDevice
from wedgewise.run._hybrid_queue import CUTOFF, DYNAMIC, GUARDED, SCHEDULES
from wedgewise.run.batches import MAX_TASKS, needed_together
from wedgewise.run.choose import BLOCK_SECONDS_PER_EDGE, DEVICE_SECONDS, estimated_seconds
from wedgewise.run.device_blocks import ARRAY_BYTES, DeviceLayout, Expected
from wedgewise.run.plan import BlockPlan, OrientedShape, Plan, plan_of
from wedgewise.run.shares import dealt
from wedgewise.run.task_memory import BATCHED_TASK_BYTES, BlockSource, TaskMemory
from wedgewise.stages import OrientedGraph
from wedgewise.stages.blocks import check_parts
from wedgewise.stages.tasks import (
    ESTIMATORS,
    BlockCounts,
    Pair,
    TaskTable,
    TripleShape,
    busy_tasks,
    task_count,
)

COUNTED_ON = BOTH, GPU, CPU = ("both", "gpu", "cpu")
USUAL_PARTS, MAX_PARTS = 4, 64  # 20 tasks; 45,760 tasks
AUTO = "auto"
PUBLISHED = "bbtc"  # runs as its paper has it where it is named: parts by the average degree, a cut-off
KNOBS = (
    Knob("places", BOTH, "who counts: GPUs and threads, or one of them alone, to compare", choices=COUNTED_ON),
    Knob("schedule", GUARDED, "how tasks are shared out; bbtc by itself: cutoff", choices=SCHEDULES),
    Knob("estimator", AUTO, "what tasks are sorted by: arcs for keystone, else time", choices=(AUTO, *ESTIMATORS)),
    Knob("cutoff", 50, "the heaviest tasks, in percent of all, that threads leave to GPUs", most=100),
    Knob("streams", 4, "batches at a time on each GPU", least=1),
    Knob(
        "parts",
        0,
        "parts that ids are cut into; 0 = 4 or fewer, for bbtc the average degree, or more where memory is small",
    ),
    Knob("device_bytes", 0, "memory for blocks and tasks on each GPU; 0 = seven eighths of what is free"),
)

Settings = dict[str, int | str]
ByteCounts = NDArray[np.int64]
WIDE_FROM = 1 << 31  # arcs of a block: kernels then take wide offsets, and all blocks on a device have them
WORK_ARRAYS = 16  # of a task, at most


@dataclass(frozen=True, slots=True)
class Pairing:
    """The algorithm of the host, that of GPUs, and all knobs."""

    cpu: Algorithm
    gpu: Algorithm | None
    own: Settings
    cpu_knobs: Settings
    gpu_knobs: Settings

    @property
    def knobs(self) -> Settings:
        """All of them; of two of one name, that of the GPUs."""
        return {**self.cpu_knobs, **self.gpu_knobs, **self.own}

    @property
    def reason(self) -> str:
        if self.gpu is None:
            return f"{self.cpu.name} on threads"
        if self.own["places"] == GPU:
            return f"{self.gpu.name} on GPUs"
        return f"{self.gpu.name} on GPUs and {self.cpu.name} on threads"

    def host_memory(self, counts: BlockCounts, threads: int) -> TaskMemory:
        """What tasks take of the host, each on one of so many threads; without threads nobody lists rows of blocks."""
        answer = self.cpu.triples_on_cpu("count")
        return TaskMemory(counts, answer if threads else replace(answer, lists_rows=False), self.cpu_knobs, 1)

    def on_device(self) -> DeviceTripleAnswer:
        assert self.gpu is not None
        return self.gpu.triples_on_device("count")


def pair_up(name: str, given: Mapping[str, int | str] | None) -> Pairing:
    """The algorithms of one name on both sides; where the host has none of that name, its engine."""
    own = {knob.name: knob.parse((given or {}).get(knob.name, knob.default)) for knob in KNOBS}
    algorithm = ENGINE if name == "auto" else name
    gpu = None if own["places"] == CPU else _counting_blocks(algorithm, "cuda")
    is_there_alone = (algorithm, "cpu") not in registry() and (algorithm, "cuda") in registry()
    cpu = _counting_blocks(ENGINE if is_there_alone else algorithm, "cpu")
    _check_names(given, own, cpu, gpu)
    if algorithm == PUBLISHED and "schedule" not in (given or {}):
        own["schedule"] = CUTOFF
    if own["estimator"] == AUTO:
        own["estimator"] = "arcs" if algorithm == ENGINE else "time"
    return Pairing(cpu, gpu, own, _known(cpu, given), {} if gpu is None else _known(gpu, given))


def _counting_blocks(name: str, device: str) -> Algorithm:
    what = "count blocks, which device='hybrid' does"
    return find_able(name, device, lambda record: "count" in record.triples, what)


def _check_names(given: Mapping[str, int | str] | None, own: Settings, cpu: Algorithm, gpu: Algorithm | None) -> None:
    known = {*own, *(knob.name for algorithm in (cpu, gpu) if algorithm is not None for knob in algorithm.knobs)}
    for name in given or {}:
        if name not in known:
            raise UnknownNameError(f"neither hybrid nor {cpu.name} has a knob {name!r}; there are: {', '.join(known)}")


def _known(algorithm: Algorithm, given: Mapping[str, int | str] | None) -> Settings:
    """The knobs of an algorithm; those that hybrid has itself are hybrid's alone."""
    names = {knob.name for knob in algorithm.knobs} - {knob.name for knob in KNOBS}
    return algorithm.settings({name: value for name, value in (given or {}).items() if name in names})


def choose_parts(graph: OrientedGraph, pairing: Pairing, device_bytes: int) -> int:
    """Few parts, or the average degree for BBTC; more where two tasks for each stream would not fit a GPU."""
    from wedgewise.prepare.rectilinear import default_parts

    parts = int(pairing.own["parts"])
    if parts:
        check_parts(parts, graph.n)
        return parts
    parts = min(MAX_PARTS if pairing.cpu.name == PUBLISHED else USUAL_PARTS, default_parts(graph))
    at_once = 0 if pairing.gpu is None else 2 * 3 * int(pairing.own["streams"])
    while parts < min(MAX_PARTS, graph.n):
        block_bytes = 8 * graph.m // (parts * (parts + 1)) + 4 * graph.n // parts  # on the average
        if at_once * block_bytes <= device_bytes:
            break
        parts += 1
    return parts


def parts_reasons(graph: OrientedGraph, pairing: Pairing) -> tuple[str, ...]:
    """What a plan says where BBTC would take more parts than are ever chosen."""
    from wedgewise.prepare.rectilinear import default_parts

    average = default_parts(graph)
    if int(pairing.own["parts"]) or pairing.cpu.name != PUBLISHED or average <= MAX_PARTS:
        return ()
    return (f"{MAX_PARTS} parts, the most that are chosen: the average out-degree is {average:,}",)


@dataclass(frozen=True, slots=True)
class Resources:
    """What there is to count on."""

    devices: Sequence[StreamingDevice]
    device_bytes: int
    host_bytes: int
    threads: int

    @classmethod
    def find(cls, pairing: Pairing, host_bytes: int, threads: int) -> Resources:
        """The GPUs, as far as they take part, and what each may take at most; the threads that count."""
        from wedgewise.machine import gpu

        if pairing.gpu is None:
            return cls((), 0, host_bytes, threads)
        devices = gpu.find_devices()
        free = min(device.free_bytes() for device in devices) * 7 // 8
        budget = int(pairing.own["device_bytes"]) or free
        counting = 0 if pairing.own["places"] == GPU else max(1, threads - len(devices))
        return cls(devices, min(budget, free), host_bytes, counting)


def describe(
    source: BlockSource,
    sizes: TaskSizes,
    resources: Resources,
    division: Division,
    question: str,
    oriented_shape: OrientedShape,
    held_bytes: int,
    reasons: tuple[str, ...],
) -> Plan:
    """The plan; `held_bytes` are what blocks in memory and lists take."""
    pairing, own = sizes.pairing, sizes.pairing.own
    threads = resources.threads
    of_tasks = [int(sizes.on_host(tasks).max(initial=0)) for tasks in (division.tasks, division.host_tasks)]
    host_bytes = min(resources.host_bytes, threads * max(of_tasks))
    blocks = BlockPlan(
        parts=source.partition.parts,
        blocks=int((source.counts.arcs > 0).sum()),
        tasks=division.count,
        host_tasks=len(division.host_tasks),
        device_only_tasks=int(division.device_only.sum()),
        devices=tuple(device.name for device in resources.devices),
        streams=division.device_memory.streams if resources.devices else int(own["streams"]),
        threads=threads,
        cutoff=division.cutoff if own["schedule"] != DYNAMIC and resources.devices else 0,
        device_bytes=resources.device_bytes,
        host_bytes=resources.host_bytes,
    )
    return plan_of(
        question,
        oriented_shape,
        computes="count",
        algorithm=(pairing.gpu or pairing.cpu).name,
        device="hybrid",
        threads=max(1, threads),
        knobs=pairing.knobs,
        bytes_needed=held_bytes + host_bytes,
        estimated_seconds=estimated_seconds(oriented_shape.shape, threads, len(resources.devices)),
        reasons=(
            pairing.reason,
            *dealt(division.tasks.shares),
            *_why_divided(division, int(own["streams"])),
            *reasons,
        ),
        blocks=blocks,
    )


def _why_divided(division: Division, streams: int) -> tuple[str, ...]:
    reasons = []
    if 0 < division.device_memory.streams < streams:
        work = f"the work of a task, {division.device_memory.work:,} bytes"
        reasons.append(
            f"{division.device_memory.streams} of {streams} streams: a GPU has too little memory for {work}, on more"
        )
    if len(division.host_tasks):
        reasons.append(f"{len(division.host_tasks):,} tasks are for threads alone: they do not fit a GPU")
    if division.device_only.any():
        reasons.append(f"{int(division.device_only.sum()):,} tasks are for GPUs alone: they do not fit the host")
    return tuple(reasons)


@dataclass(frozen=True, slots=True)
class TaskSizes:
    """What tasks take on the host and on a device, in bytes; of many tasks a number each.

    Attributes
    ----------
    host_blocks : what blocks take of the host's memory, by row part and column part: nothing where all are in memory
    device_block_bytes : the same on a device, with what is made of each there, of `made_words` 32-bit words
    """

    memory: TaskMemory
    pairing: Pairing
    blocks_are_there: bool
    host_blocks: ByteCounts = field(init=False)
    made_words: ByteCounts = field(init=False)
    device_block_bytes: ByteCounts = field(init=False)

    def __post_init__(self) -> None:
        counts, pairing = self.memory.counts, self.pairing
        host = np.zeros_like(self.memory.blocks) if self.blocks_are_there else self.memory.blocks
        made = np.zeros_like(counts.arcs)
        if pairing.gpu is not None:
            made = made + pairing.on_device().made_words(counts.arcs, counts.sizes[None, :], pairing.gpu_knobs)
        words = DeviceLayout.of(self.offset_type, counts.sizes[:, None], counts.arcs, made).end
        sizes = -(-4 * words // ARRAY_BYTES) * ARRAY_BYTES
        for name, value in (("host_blocks", host), ("made_words", made), ("device_block_bytes", sizes)):
            object.__setattr__(self, name, value)

    @property
    def offset_type(self) -> np.dtype[Any]:
        """That of all blocks on a device."""
        return np.dtype(np.uint64 if int(self.memory.counts.arcs.max(initial=0)) >= WIDE_FROM else np.uint32)

    def host_block(self, pair: Pair) -> int:
        return int(self.host_blocks[pair])

    def device_block(self, pair: Pair) -> int:
        return int(self.device_block_bytes[pair])

    def expected(self, pair: Pair) -> Expected:
        """What is known of a block that comes to a device."""
        counts, (row, column) = self.memory.counts, pair
        arcs, words = int(counts.arcs[pair]), int(self.made_words[pair])
        return Expected(int(counts.sizes[row]), int(counts.sizes[column]), arcs, words)

    @property
    def all_device_blocks(self) -> int:
        """What all blocks take of a device that any task has."""
        return int(self.device_block_bytes[self.memory.counts.arcs > 0].sum())

    def on_host(self, tasks: TaskTable) -> ByteCounts:
        need = self.memory.most(tasks)
        found: ByteCounts = need.made + need.threads + BATCHED_TASK_BYTES + _distinct(self.host_blocks, tasks)
        return found

    def host_work(self, tasks: TaskTable) -> int:
        """What a batch takes on the host beyond its blocks."""
        return needed_together(tasks, self.memory.most(tasks))

    def host_batch(self, tasks: TaskTable) -> int:
        """What a batch takes on the host."""
        return self.host_work(tasks) + _sum_of(self.host_blocks, tasks)

    def device_blocks_of(self, tasks: TaskTable) -> int:
        """What the blocks of a batch take on a device."""
        return _sum_of(self.device_block_bytes, tasks)

    def device_work(self, tasks: TaskTable) -> ByteCounts:
        """What a task takes on a device beside its blocks, as a batch of its own."""
        need = self.pairing.on_device().bytes_needed(
            TripleShape.of_all(self.memory.counts, tasks), self.pairing.gpu_knobs
        )
        return np.broadcast_to(need + WORK_ARRAYS * ARRAY_BYTES + DEVICE_TASK_BYTES, len(tasks)).astype(np.int64)

    def on_device(self, tasks: TaskTable) -> ByteCounts:
        return self.device_work(tasks) + _distinct(self.device_block_bytes, tasks)


def _distinct(block_bytes: ByteCounts, tasks: TaskTable) -> ByteCounts:
    """What the blocks of every task take."""
    sizes, (ij, ik, jk) = block_bytes.ravel(), tasks.pairs
    found: ByteCounts = sizes[ij] + np.where(ik == ij, 0, sizes[ik]) + np.where((jk == ij) | (jk == ik), 0, sizes[jk])
    return found


def _sum_of(block_bytes: ByteCounts, tasks: TaskTable) -> int:
    """What the blocks of all tasks take together."""
    needed = np.zeros(block_bytes.size, np.bool_)
    for pairs in tasks.pairs:
        needed[pairs] = True
    return int(block_bytes.ravel()[needed].sum())


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """How the memory of each GPU is divided: so many streams with `work` bytes each, and bytes for blocks.

    A batch has so many tasks at most.
    """

    streams: int = 0
    work: int = 0
    blocks: int = 0
    tasks: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class Division:
    """Where tasks run: `host_tasks` on threads, `device_only` of the others on GPUs, the rest of `tasks` on both.

    ``everything`` is how many there are, those without work included; ``guesses`` are the seconds that a thread and a
    stream may take for a unit of work, before any is seen.
    """

    everything: int
    tasks: TaskTable
    host_tasks: TaskTable
    device_only: NDArray[np.bool_]
    cutoff: int
    device_memory: DeviceMemory
    guesses: tuple[float, float]

    @property
    def count(self) -> int:
        """How many tasks have work."""
        return len(self.tasks) + len(self.host_tasks)


def divide(
    source: BlockSource, sizes: TaskSizes, resources: Resources, where: str, shape: Shape, shares: int
) -> Division:
    """Say which task fits where; refuse one that fits nowhere."""
    own, none = sizes.pairing.own, slice(0)
    ordered = busy_tasks(source.partition, source.counts, shares, str(own["estimator"]))
    if own["schedule"] != DYNAMIC:
        ordered = ordered.heaviest_first()
    fits_host = np.full(len(ordered), resources.threads > 0)
    if resources.threads:
        fits_host &= sizes.on_host(ordered) <= resources.host_bytes
    fits_device, device_memory = _on_devices(ordered, sizes, resources)
    nowhere = np.flatnonzero(~(fits_host | fits_device))
    if len(nowhere):
        raise _refusal(ordered.take(nowhere[:1]), sizes, resources, device_memory, where)
    tasks = ordered.take(fits_device) if resources.devices else ordered
    host_tasks = ordered.take(~fits_device) if resources.devices else ordered.take(none)
    device_only = (
        (~fits_host)[fits_device] if resources.devices and resources.threads else np.zeros(len(tasks), np.bool_)
    )
    cutoff = -(-len(tasks) * int(own["cutoff"]) // 100)
    guesses = _guesses(ordered, sizes, shape, device_memory.streams)
    count = task_count(source.partition, shares)
    return Division(count, tasks, host_tasks, device_only, cutoff, device_memory, guesses)


def _on_devices(tasks: TaskTable, sizes: TaskSizes, resources: Resources) -> tuple[NDArray[np.bool_], DeviceMemory]:
    """Which tasks' blocks fit a GPU beside the work of the largest, and the host that they go through."""
    if not resources.devices or len(tasks) == 0:
        return np.zeros(len(tasks), np.bool_), DeviceMemory(min(len(resources.devices), 1))
    works, blocks, host = sizes.device_work(tasks), sizes.on_device(tasks), sizes.host_blocks.ravel()
    blocks = blocks - works
    largest = np.maximum.reduce([host[pair] for pair in tasks.pairs])
    able = (works + blocks <= resources.device_bytes) & (largest <= resources.host_bytes)
    available_bytes, work = resources.device_bytes, int(works[able].max(initial=0))
    fitting = able & (work + blocks <= available_bytes)
    of_a_stream = work + int(blocks[fitting].max(initial=0))
    streams = max(1, min(int(sizes.pairing.own["streams"]), available_bytes // max(1, of_a_stream)))
    left = available_bytes - streams * of_a_stream
    further = left // (4 * streams * DEVICE_TASK_BYTES)  # a quarter is for lists of tasks
    in_batch = 1 + max(0, min(further, MAX_TASKS - 1, len(tasks) - 1))
    work += (in_batch - 1) * DEVICE_TASK_BYTES
    return fitting, DeviceMemory(streams, work, available_bytes - streams * work, in_batch)


def _guesses(tasks: TaskTable, sizes: TaskSizes, shape: Shape, streams: int) -> tuple[float, float]:
    """What is known of the host's algorithm, and of an H200."""
    cost, arcs, (ij, ik, _) = sizes.memory.answer.cost, sizes.memory.counts.arcs.ravel(), tasks.pairs
    visited, estimated = int((arcs[ij] + arcs[ik]).sum()), float(tasks.work.sum())
    here = cost.per_wedge * (shape.wedges or 0) + cost.per_arc * visited + cost.per_task * len(tasks)
    there = streams * (DEVICE_SECONDS + BLOCK_SECONDS_PER_EDGE * shape.m)
    return here / (estimated or 1.0), there / (estimated or 1.0)


def _refusal(
    one: TaskTable, sizes: TaskSizes, resources: Resources, device_memory: DeviceMemory, where: str
) -> MemoryLimitError:
    needs, task = [], one[0]
    if resources.threads:
        needs.append(f"{int(sizes.on_host(one)[0]):,} bytes on the host, where {resources.host_bytes:,} are left")
    if resources.devices:
        work = int(sizes.device_work(one)[0])
        need = max(work, device_memory.work) + int(sizes.on_device(one)[0]) - work
        needs.append(f"{need:,} on a GPU, where {resources.device_bytes:,} are")
    return MemoryLimitError(
        f"{where}: the blocks of parts {task.i}, {task.j}, {task.k} and what is made of them take "
        f"{' and '.join(needs)}",
        "ask for more parts, or allow more memory",
    )
