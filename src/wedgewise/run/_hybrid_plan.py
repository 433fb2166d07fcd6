"""How a hybrid count is planned: its knobs, a pair of algorithms, parts, GPUs and threads, and which task fits where.

The memory of a GPU is divided so:

    ├─ work of stream 0 ─┼─ of stream 1 ─┼ … ┼─ blocks, shared by all streams ──────────────────────────┤

The memory of a stream is its own, because what is free of one stream's is not given to another: it is as much as any
task takes that a GPU gets. Where so many streams do not fit, each with the blocks of a task, there are fewer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from wedgewise.algorithms import ENGINE, find, registry
from wedgewise.algorithms._contract import Algorithm, DeviceTripleAnswer, Knob, Shape, TripleShape
from wedgewise.errors import InputError, MemoryLimitError, PreconditionError, UnknownNameError
from wedgewise.machine.gpu import StreamingDevice
from wedgewise.run._hybrid_queue import DYNAMIC, GUARDED, SCHEDULES
from wedgewise.run.choose import BLOCK_SECONDS_PER_EDGE, DEVICE_SECONDS, estimated_seconds
from wedgewise.run.memory import BlockSource, Pair, TaskMemory, pairs_of_task
from wedgewise.run.plan import BlockPlan, Form, Plan, plan_of
from wedgewise.stages import OrientedGraph
from wedgewise.stages.blocks import WIDE_ARCS, Task
from wedgewise.stages.tasks import ESTIMATORS, busy_tasks, estimates, heaviest_first, tasks_of

PLACES = BOTH, GPU, CPU = ("both", "gpu", "cpu")
USUAL_PARTS, MOST_PARTS = 4, 64  # 20 tasks; 45,760 tasks
AUTO = "auto"
KNOBS = (
    Knob("places", BOTH, "who counts: GPUs and threads, or one of them alone, to compare", choices=PLACES),
    Knob("schedule", GUARDED, "how tasks are shared out", choices=SCHEDULES),
    Knob("estimator", AUTO, "what tasks are sorted by: arcs for keystone, else time", choices=(AUTO, *ESTIMATORS)),
    Knob("cutoff", 50, "the heaviest tasks, in percent of all, that threads leave to GPUs"),
    Knob("streams", 4, "tasks at a time on each GPU", least=1),
    Knob("parts", 0, "parts that ids are cut into; 0 = 4 or fewer, and more where blocks are to be smaller"),
    Knob("device_bytes", 0, "memory for blocks and tasks on each GPU; 0 = seven eighths of what is free"),
)

Settings = dict[str, int | str]
ARRAY_BYTES = 512  # what arrays on a device begin at multiples of
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

    def on_device(self) -> DeviceTripleAnswer:
        assert self.gpu is not None
        return self.gpu.triples_on_device("count")


def pair_up(name: str, given: Mapping[str, int | str] | None) -> Pairing:
    """The algorithms of one name on both sides; where the host has none of that name, its engine."""
    own = {knob.name: knob.parse((given or {}).get(knob.name, knob.default)) for knob in KNOBS}
    if int(own["cutoff"]) > 100:
        raise InputError(f"knob cutoff is a percentage, at most 100, not {own['cutoff']}")
    asked = ENGINE if name == "auto" else name
    gpu = None if own["places"] == CPU else _counting_blocks(asked, "cuda")
    is_there_alone = (asked, "cpu") not in registry() and (asked, "cuda") in registry()
    cpu = _counting_blocks(ENGINE if is_there_alone else asked, "cpu")
    _check_names(given, own, cpu, gpu)
    if own["estimator"] == AUTO:
        own["estimator"] = "arcs" if asked == ENGINE else "time"
    return Pairing(cpu, gpu, own, _known(cpu, given), {} if gpu is None else _known(gpu, given))


def _counting_blocks(name: str, device: str) -> Algorithm:
    algorithm = find(name, device)
    if "count" not in algorithm.triples:
        able = [other for (other, where), record in registry().items() if where == device and "count" in record.triples]
        raise PreconditionError(
            f"{name} on {device} does not count blocks, which device='hybrid' does; {', '.join(able) or 'none'} do"
        )
    return algorithm


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
    """Few parts, at most the average degree; more where the blocks of two tasks for each stream would not fit a GPU."""
    from wedgewise.prepare.rectilinear import default_parts

    if pairing.own["parts"]:
        return int(pairing.own["parts"])
    parts = min(USUAL_PARTS, default_parts(graph))
    at_once = 0 if pairing.gpu is None else 2 * 3 * int(pairing.own["streams"])
    while parts < MOST_PARTS:
        block_bytes = 8 * graph.m // (parts * (parts + 1)) + 4 * graph.n // parts  # on the average
        if at_once * block_bytes <= device_bytes:
            break
        parts += 1
    return parts


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
    asked: tuple[str, Form],
    held_bytes: int,
    reasons: tuple[str, ...],
) -> Plan:
    """The plan: `asked` are the question and the graph, `held_bytes` what blocks in memory and lists take."""
    pairing, own = sizes.pairing, sizes.pairing.own
    threads = resources.threads
    host_bytes = min(
        resources.host_bytes, threads * max(map(sizes.on_host, division.tasks + division.host_tasks), default=0)
    )
    blocks = BlockPlan(
        parts=source.partition.parts,
        blocks=int((source.counts.arcs > 0).sum()),
        tasks=len(division.estimates),
        host_tasks=len(division.host_tasks),
        device_only_tasks=len(division.device_only),
        devices=tuple(device.name for device in resources.devices),
        streams=division.device_memory.streams if resources.devices else int(own["streams"]),
        threads=threads,
        cutoff=division.cutoff if own["schedule"] != DYNAMIC and resources.devices else 0,
        device_bytes=resources.device_bytes,
        host_bytes=resources.host_bytes,
    )
    return plan_of(
        *asked,
        computes="count",
        algorithm=(pairing.gpu or pairing.cpu).name,
        device="hybrid",
        threads=max(1, threads),
        knobs=pairing.knobs,
        bytes_needed=held_bytes + host_bytes,
        estimated_seconds=estimated_seconds(asked[1].shape, threads, len(resources.devices)),
        reasons=(pairing.reason, *_why_divided(division, int(own["streams"])), *reasons),
        blocks=blocks,
    )


def _why_divided(division: Division, streams: int) -> tuple[str, ...]:
    reasons = []
    if 0 < division.device_memory.streams < streams:
        work = f"the work of a task, {division.device_memory.work:,} bytes"
        reasons.append(
            f"{division.device_memory.streams} of {streams} streams: a GPU has too little memory for {work}, on more"
        )
    if division.host_tasks:
        reasons.append(f"{len(division.host_tasks):,} tasks are for threads alone: they do not fit a GPU")
    if division.device_only:
        reasons.append(f"{len(division.device_only):,} tasks are for GPUs alone: they do not fit the host")
    return tuple(reasons)


@dataclass(frozen=True, slots=True)
class TaskSizes:
    """What tasks take on the host and on a device, in bytes."""

    memory: TaskMemory
    pairing: Pairing
    blocks_are_there: bool

    def host_block(self, pair: Pair) -> int:
        """What a block takes of the host's memory: nothing where all are in memory."""
        return 0 if self.blocks_are_there else self.memory.block(pair)

    def on_host(self, task: Task) -> int:
        return self.memory.work(task) + sum(map(self.host_block, pairs_of_task(task)))

    def offset_bytes(self, part: int) -> int:
        """Of each row of the blocks of a part."""
        return 8 if int(self.memory.counts.arcs[part].max()) >= WIDE_ARCS else 4

    def device_block(self, pair: Pair) -> int:
        counts = self.memory.counts
        offsets = self.offset_bytes(pair[0]) * (int(counts.sizes[pair[0]]) + 1)
        return sum(-(-size // ARRAY_BYTES) * ARRAY_BYTES for size in (offsets, 4 * int(counts.arcs[pair])))

    def device_blocks(self, task: Task) -> int:
        return sum(map(self.device_block, pairs_of_task(task)))

    def device_work(self, task: Task) -> int:
        shape = TripleShape.of(self.memory.counts, task)
        need = self.pairing.on_device().bytes_needed(shape, self.pairing.gpu_knobs)
        return need + WORK_ARRAYS * ARRAY_BYTES

    def on_device(self, task: Task) -> int:
        return self.device_work(task) + self.device_blocks(task)


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """How the memory of each GPU is divided: so many streams with `work` bytes each, and bytes for blocks."""

    streams: int = 0
    work: int = 0
    blocks: int = 0


@dataclass(frozen=True, slots=True)
class Division:
    """Where tasks run: `host_tasks` on threads, `device_only` on GPUs, the others of `tasks` on both.

    ``guesses`` are the seconds that a thread and a stream may take for a unit of the estimates, before any is seen.
    """

    everything: tuple[Task, ...]
    tasks: tuple[Task, ...]
    host_tasks: tuple[Task, ...]
    device_only: frozenset[int]
    estimates: dict[int, float]
    cutoff: int
    device_memory: DeviceMemory
    guesses: tuple[float, float]


def divide(
    source: BlockSource, sizes: TaskSizes, resources: Resources, where: str, shape: Shape, shares: int
) -> Division:
    """Say which task fits where; refuse one that fits nowhere."""
    counts, own = source.counts, sizes.pairing.own
    everything = tasks_of(source.partition, shares)
    working = list(busy_tasks(source.partition, counts, shares))
    by = str(own["estimator"])
    ordered = working if own["schedule"] == DYNAMIC else heaviest_first(counts, working, by)
    fits_host = {task.number for task in ordered if resources.threads and sizes.on_host(task) <= resources.host_bytes}
    for_devices, device_memory = _on_devices(ordered, sizes, resources)
    fits_device = {task.number for task in for_devices}
    for task in ordered:
        if task.number not in fits_host | fits_device:
            raise _refusal(task, sizes, resources, device_memory, where)
    tasks = for_devices if resources.devices else ordered
    host_tasks = [task for task in ordered if task.number not in fits_device] if resources.devices else []
    work = dict(zip((task.number for task in ordered), estimates(counts, ordered, by).tolist(), strict=True))
    cutoff = -(-len(tasks) * int(own["cutoff"]) // 100)
    device_only = frozenset(fits_device - fits_host) if resources.threads else frozenset[int]()
    guesses = _guesses(ordered, sizes, sum(work.values()), shape, device_memory.streams)
    return Division(everything, tuple(tasks), tuple(host_tasks), device_only, work, cutoff, device_memory, guesses)


def _on_devices(tasks: Sequence[Task], sizes: TaskSizes, resources: Resources) -> tuple[list[Task], DeviceMemory]:
    """Tasks whose blocks fit a GPU beside the work of the largest, and the host that they go through."""
    if not resources.devices:
        return [], DeviceMemory()
    able = [
        task
        for task in tasks
        if sizes.on_device(task) <= resources.device_bytes
        and max(map(sizes.host_block, pairs_of_task(task))) <= resources.host_bytes
    ]
    work = max(map(sizes.device_work, able), default=0)
    fitting = [task for task in able if work + sizes.device_blocks(task) <= resources.device_bytes]
    of_a_stream = work + max(map(sizes.device_blocks, fitting), default=0)
    streams = max(1, min(int(sizes.pairing.own["streams"]), resources.device_bytes // max(1, of_a_stream)))
    return fitting, DeviceMemory(streams, work, resources.device_bytes - streams * work)


def _guesses(
    tasks: Sequence[Task], sizes: TaskSizes, estimated: float, shape: Shape, streams: int
) -> tuple[float, float]:
    """What is known of the host's algorithm, and of an H200."""
    cost, arcs = sizes.memory.answer.cost, sizes.memory.counts.arcs
    i, j, k = np.array([(task.i, task.j, task.k) for task in tasks], np.int64).reshape(-1, 3).T
    visited = int((arcs[i, j] + arcs[i, k]).sum())
    here = cost.per_wedge * (shape.wedges or 0) + cost.per_arc * visited + cost.per_task * len(tasks)
    there = streams * (DEVICE_SECONDS + BLOCK_SECONDS_PER_EDGE * shape.m)
    return here / (estimated or 1.0), there / (estimated or 1.0)


def _refusal(
    task: Task, sizes: TaskSizes, resources: Resources, device_memory: DeviceMemory, where: str
) -> MemoryLimitError:
    needs = []
    if resources.threads:
        needs.append(f"{sizes.on_host(task):,} bytes on the host, where {resources.host_bytes:,} are left")
    if resources.devices:
        need = max(sizes.device_work(task), device_memory.work) + sizes.device_blocks(task)
        needs.append(f"{need:,} on a GPU, where {resources.device_bytes:,} are")
    return MemoryLimitError(
        f"{where}: the blocks of parts {task.i}, {task.j}, {task.k} and what is made of them take "
        f"{' and '.join(needs)}; ask for more parts, or allow more memory"
    )
