"""How a hybrid count is planned: its knobs, a pair of algorithms, parts, the places, and what the plan says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from wedgewise.algorithms import ENGINE, find, registry
from wedgewise.algorithms._contract import Algorithm, DeviceTripleAnswer, Knob, Shape
from wedgewise.errors import InputError, PreconditionError, UnknownNameError
from wedgewise.machine.gpu import StreamingDevice
from wedgewise.run._hybrid_queue import DYNAMIC, GUARDED, SCHEDULES
from wedgewise.run.plan import BlockPlan, Plan, estimated_seconds
from wedgewise.stages import OrientedGraph
from wedgewise.stages.blocks import Block, Partition
from wedgewise.stages.tasks import ESTIMATORS, Counts

if TYPE_CHECKING:
    from wedgewise.run._hybrid_division import Division, TaskSizes

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


class BlockSource(Protocol):
    """Who has the blocks: a store, or a graph in memory."""

    @property
    def partition(self) -> Partition: ...

    @property
    def counts(self) -> Counts: ...

    def block(self, row: int, column: int, *, threads: int = 1) -> Block: ...


@dataclass(frozen=True, slots=True)
class Pairing:
    """The algorithm of the host, that of GPUs, and all knobs."""

    cpu: Algorithm
    gpu: Algorithm | None
    own: Settings
    cpu_knobs: Settings
    gpu_knobs: Settings

    @property
    def name(self) -> str:
        return self.cpu.name if self.gpu is None else self.gpu.name

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
    own = _own_settings(given)
    asked = ENGINE if name == "auto" else name
    gpu = None if own["places"] == CPU else _counting_blocks(asked, "cuda")
    is_there_alone = (asked, "cpu") not in registry() and (asked, "cuda") in registry()
    cpu = _counting_blocks(ENGINE if is_there_alone else asked, "cpu")
    _check_names(given, own, cpu, gpu)
    if own["estimator"] == AUTO:
        own["estimator"] = "arcs" if asked == ENGINE else "time"
    return Pairing(cpu, gpu, own, _known(cpu, given), {} if gpu is None else _known(gpu, given))


def _own_settings(given: Mapping[str, int | str] | None) -> Settings:
    own = {knob.name: knob.parse((given or {}).get(knob.name, knob.default)) for knob in KNOBS}
    if int(own["cutoff"]) > 100:
        raise InputError(f"knob cutoff is a percentage, at most 100, not {own['cutoff']}")
    return own


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
    settings = algorithm.settings({name: value for name, value in (given or {}).items() if name in names})
    return settings


def choose_parts(graph: OrientedGraph, pairing: Pairing, device_bytes: int) -> int:
    """Few parts, at most the average degree; more where the blocks of two tasks for each stream would not fit a GPU."""
    from wedgewise.prepare.rectilinear import default_parts

    if pairing.own["parts"]:
        return int(pairing.own["parts"])
    parts = min(USUAL_PARTS, default_parts(graph))
    at_once = 0 if pairing.gpu is None else 2 * 3 * int(pairing.own["streams"])
    while parts < MOST_PARTS and at_once * _block_bytes(graph, parts) > device_bytes:
        parts += 1
    return parts


def _block_bytes(graph: OrientedGraph, parts: int) -> int:
    """What a block takes on the average."""
    return 8 * graph.m // (parts * (parts + 1)) + 4 * graph.n // parts


@dataclass(frozen=True, slots=True)
class Places:
    """What there is to count on."""

    devices: Sequence[StreamingDevice]
    device_bytes: int
    room: int
    threads: int

    @classmethod
    def find(cls, pairing: Pairing, room: int, threads: int) -> Places:
        """The GPUs, as far as they take part, and what each may take at most; the threads that count."""
        from wedgewise.machine import gpu

        if pairing.gpu is None:
            return cls((), 0, room, threads)
        devices = gpu.find_devices()
        free = min(device.free_bytes() for device in devices) * 7 // 8
        budget = int(pairing.own["device_bytes"]) or free
        counting = 0 if pairing.own["places"] == GPU else max(1, threads - len(devices))
        return cls(devices, min(budget, free), room, counting)


def describe(
    source: BlockSource,
    sizes: TaskSizes,
    places: Places,
    division: Division,
    asked: tuple[str, str, Shape],
    held_bytes: int,
    reasons: tuple[str, ...],
) -> Plan:
    """The plan: `asked` are question, order and shape, `held_bytes` what blocks in memory and lists take."""
    question, order, shape = asked
    pairing, own = sizes.pairing, sizes.pairing.own
    threads = places.threads
    host_bytes = min(places.room, threads * max(map(sizes.on_host, division.tasks + division.host_tasks), default=0))
    blocks = BlockPlan(
        parts=source.partition.parts,
        blocks=int((source.counts.arcs > 0).sum()),
        tasks=len(division.estimates),
        host_tasks=len(division.host_tasks),
        device_only_tasks=len(division.device_only),
        devices=tuple(device.name for device in places.devices),
        streams=division.room.streams if places.devices else int(own["streams"]),
        threads=threads,
        cutoff=division.cutoff if own["schedule"] != DYNAMIC and places.devices else 0,
        device_bytes=places.device_bytes,
        host_bytes=places.room,
    )
    return Plan(
        question=question,
        computes="count",
        algorithm=pairing.name,
        device="hybrid",
        order=order,
        relabel="rank",
        threads=max(1, threads),
        knobs=pairing.knobs,
        n=shape.n,
        m=shape.m,
        wedges=shape.wedges or 0,
        bytes_needed=held_bytes + host_bytes,
        estimated_seconds=estimated_seconds(shape, threads, len(places.devices)),
        reasons=(pairing.reason, *_why_divided(division, int(own["streams"])), *reasons),
        blocks=blocks,
    )


def _why_divided(division: Division, streams: int) -> tuple[str, ...]:
    reasons = []
    if 0 < division.room.streams < streams:
        work = f"the work of a task, {division.room.work:,} bytes"
        reasons.append(f"{division.room.streams} of {streams} streams: a GPU has no room for {work}, on more")
    if division.host_tasks:
        reasons.append(f"{len(division.host_tasks):,} tasks are for threads alone: they do not fit a GPU")
    if division.device_only:
        reasons.append(f"{len(division.device_only):,} tasks are for GPUs alone: they do not fit the host")
    return tuple(reasons)
