"""Which task of a hybrid count fits where, how the memory of a GPU is divided, and how fast either side may be.

    ├─ work of stream 0 ─┼─ of stream 1 ─┼ … ┼─ blocks, shared by all streams ──────────────────────────┤

The memory of a stream is its own, because what is free of one stream's is not given to another: it is as much as any
task takes that a GPU gets. Where so many streams have no room, each with the blocks of a task, there are fewer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from wedgewise.algorithms._contract import Shape, TripleShape
from wedgewise.errors import MemoryLimitError
from wedgewise.run._hybrid_plan import BlockSource, Pairing, Places
from wedgewise.run._hybrid_queue import DYNAMIC
from wedgewise.run.memory import Pair, TaskMemory, pairs_of_task
from wedgewise.run.plan import BLOCK_SECONDS_PER_EDGE, DEVICE_SECONDS
from wedgewise.stages.blocks import WIDE_ARCS, Task
from wedgewise.stages.tasks import estimates, heaviest_first, tasks_of

ARRAY_BYTES = 512  # what arrays on a device begin at multiples of
WORK_ARRAYS = 16  # of a task, at most


@dataclass(frozen=True, slots=True)
class TaskSizes:
    """What tasks take on the host and on a device, in bytes."""

    memory: TaskMemory
    pairing: Pairing
    blocks_are_there: bool

    def host_block(self, pair: Pair) -> int:
        """What a block takes of the host's room: nothing where all are in memory."""
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
class DeviceRoom:
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
    room: DeviceRoom
    guesses: tuple[float, float]


def divide(source: BlockSource, sizes: TaskSizes, places: Places, where: str, shape: Shape) -> Division:
    """Say which task fits where; refuse one that fits nowhere."""
    counts, own = source.counts, sizes.pairing.own
    everything = tasks_of(source.partition)
    working = [task for task in everything if sizes.memory.has_work(task)]
    by = str(own["estimator"])
    ordered = working if own["schedule"] == DYNAMIC else heaviest_first(counts, working, by)
    fits_host = _fitting(ordered, places.threads > 0, sizes.on_host, places.room)
    for_devices, room = _on_devices(ordered, sizes, places)
    fits_device = {task.number for task in for_devices}
    for task in ordered:
        if task.number not in fits_host | fits_device:
            raise _refusal(task, sizes, places, room, where)
    tasks = for_devices if places.devices else ordered
    host_tasks = [task for task in ordered if task.number not in fits_device] if places.devices else []
    work = dict(zip((task.number for task in ordered), estimates(counts, ordered, by).tolist(), strict=True))
    cutoff = -(-len(tasks) * int(own["cutoff"]) // 100)
    device_only = frozenset(fits_device - fits_host) if places.threads else frozenset[int]()
    guesses = _guesses(ordered, sizes, sum(work.values()), shape, room.streams)
    return Division(everything, tuple(tasks), tuple(host_tasks), device_only, work, cutoff, room, guesses)


def _fitting(tasks: Sequence[Task], is_there: bool, size_of: Callable[[Task], int], room: int) -> set[int]:
    return {task.number for task in tasks if is_there and size_of(task) <= room}


def _on_devices(tasks: Sequence[Task], sizes: TaskSizes, places: Places) -> tuple[list[Task], DeviceRoom]:
    """Tasks whose blocks fit a GPU beside the work of the largest, and the host that they go through."""
    if not places.devices:
        return [], DeviceRoom()
    able = [
        task
        for task in tasks
        if sizes.on_device(task) <= places.device_bytes
        and max(map(sizes.host_block, pairs_of_task(task))) <= places.room
    ]
    work = max(map(sizes.device_work, able), default=0)
    fitting = [task for task in able if work + sizes.device_blocks(task) <= places.device_bytes]
    of_a_stream = work + max(map(sizes.device_blocks, fitting), default=0)
    streams = max(1, min(int(sizes.pairing.own["streams"]), places.device_bytes // max(1, of_a_stream)))
    return fitting, DeviceRoom(streams, work, places.device_bytes - streams * work)


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


def _refusal(task: Task, sizes: TaskSizes, places: Places, room: DeviceRoom, where: str) -> MemoryLimitError:
    needs = []
    if places.threads:
        needs.append(f"{sizes.on_host(task):,} bytes on the host, where {places.room:,} are left")
    if places.devices:
        need = max(sizes.device_work(task), room.work) + sizes.device_blocks(task)
        needs.append(f"{need:,} on a GPU, where {places.device_bytes:,} are")
    return MemoryLimitError(
        f"{where}: the blocks of parts {task.i}, {task.j}, {task.k} and what is made of them take "
        f"{' and '.join(needs)}; ask for more parts, or allow more memory"
    )
