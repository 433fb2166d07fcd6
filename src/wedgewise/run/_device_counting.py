"""Counting the tasks of a worker on its GPU: blocks stay there between batches, within a budget.

A batch lasts about 50 ms, by the pace of those before it; until a second one has shown that, batches are of one task.
A task whose blocks and work take more than the budget is refused with both figures, and so is one with a block that
does not fit the memory of the worker on its way. Where the GPU runs out of memory before that, all blocks go, the
budget is halved, and the task is tried again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._contract import DEVICE_TASK_BYTES, DeviceBatch, DeviceBlock
from wedgewise.errors import DeviceError, DeviceMemoryError, MissingDependencyError
from wedgewise.machine import gpu, hardware
from wedgewise.machine.budget import RESERVE_BYTES
from wedgewise.machine.gpu import StreamingDevice
from wedgewise.machine.streams import Stream
from wedgewise.run._hybrid_plan import GPU, Pairing, TaskSizes, pair_up
from wedgewise.run.block_caches import BlockCache
from wedgewise.run.device_blocks import allocate, send
from wedgewise.run.outofcore import Finished
from wedgewise.run.pace import BATCH_SECONDS, TaskPace
from wedgewise.run.request import Request
from wedgewise.run.task_memory import pairs_of_task
from wedgewise.stages.tasks import Pair, TaskTable
from wedgewise.store.open import Store

VISIBLE = "CUDA_VISIBLE_DEVICES"  # as dask-cuda sets it for its workers
USABLE = 7 / 8  # of a GPU's memory; the rest is for what its driver and fragments take


class Refusal(NamedTuple):
    """A task that takes more bytes than are available to a worker, on its GPU or in its memory."""

    task: int
    need: int
    available: int
    on_gpu: bool


def refusals(tasks: TaskTable, need: NDArray[np.int64], available: int, *, on_gpu: bool) -> list[Refusal]:
    """One for each task that needs more bytes than are available."""
    taken = zip(tasks.number.tolist(), need.tolist(), strict=True)
    return [Refusal(task, some, available, on_gpu) for task, some in taken if some > available]


def worker_pairing(request: Request) -> Pairing | None:
    """The algorithms of a GPU, and of a CPU, of workers that may use theirs; None where all count on their CPU."""
    if request.device not in ("cuda", "hybrid"):
        return None
    given = dict(request.knobs or {})
    return pair_up(request.algorithm, {**given, "places": GPU} if request.device == "cuda" else given)


def on_cpu(request: Request, pairing: Pairing | None) -> Request:
    """The same on the CPU of a worker."""
    if pairing is None:
        return request
    return replace(request, device="cpu", algorithm=pairing.cpu.name, knobs=pairing.cpu_knobs)


def find_worker_device(request: Request, pairing: Pairing | None, worker: str) -> StreamingDevice | None:
    """The first GPU that this process sees, which CUDA_VISIBLE_DEVICES says; None where its CPU is to count instead."""
    if pairing is None or pairing.gpu is None:
        return None
    try:
        return gpu.find_devices()[0]
    except (DeviceError, MissingDependencyError) as error:
        if request.device == "hybrid":
            return None
        if isinstance(error, MissingDependencyError):
            raise MissingDependencyError(
                f"worker {worker} has no CuPy; install wedgewise[cuda13] there, or leave out device="
            ) from error
        raise DeviceError(f"worker {worker}: {error}") from error


def gpus_for_workers(request: Request, pairing: Pairing | None) -> tuple[tuple[str, ...], int]:
    """What each worker of this machine sees as CUDA_VISIBLE_DEVICES, and how many have the same GPU; none without GPUs.

    With device="cuda" they have the GPUs in turn; with "hybrid" the first of them have one each, and the others none.
    """
    workers = request.workers
    if pairing is None or pairing.gpu is None or workers is None:
        return (), 1
    try:
        count = len(gpu.find_devices())
    except (DeviceError, MissingDependencyError):
        if request.device == "cuda":
            raise
        count = 0
    named = os.environ.get(VISIBLE, "")
    visible = named.split(",")[:count] if named else [str(number) for number in range(count)]
    if request.device == "hybrid":
        return tuple((visible + [""] * workers)[:workers]), 1
    return tuple(visible[number % count] for number in range(workers)), -(-workers // count)


class DeviceCounting:
    """A GPU, and the blocks of a store that are on it.

    Parameters
    ----------
    request : with the memory limit of this process
    sharers : how many workers have the same GPU, whose memory is divided among them
    """

    def __init__(self, request: Request, store: Store, device: StreamingDevice, sharers: int) -> None:
        pairing = worker_pairing(request)
        assert pairing is not None
        sizes = TaskSizes(pairing.host_memory(store.counts, 0), pairing, False)
        self._store, self._sizes, self._threads = store, sizes, request.thread_count
        self._device, self._stream = device, device.stream()
        free = int(min(device.free_bytes(), device.memory_bytes // sharers) * USABLE)
        self.budget = min(free, int(pairing.own["device_bytes"]) // sharers or free)
        left = hardware.available_memory() * 3 // 4
        if request.memory_limit is not None:
            left = request.memory_limit - hardware.resident_bytes() - RESERVE_BYTES
        self._host_bytes = left
        self._pace = TaskPace()
        self._read_before = 0
        self._cache = self._empty_cache()

    @property
    def name(self) -> str:
        return self._device.name

    @property
    def read_bytes(self) -> int:
        """Of blocks so far."""
        return self._read_before + self._cache.read_bytes

    def count(self, tasks: TaskTable) -> Iterator[Finished | Refusal]:
        """What tasks find, a batch after the other; those that do not fit are refused."""
        blocks = self._sizes.memory.blocks.ravel()
        largest = np.maximum.reduce([blocks[pairs] for pairs in tasks.pairs])  # is in memory on its way to the GPU
        yield from refusals(tasks, largest, self._host_bytes, on_gpu=False)
        tasks = tasks.take(largest <= self._host_bytes)
        first = 0
        while first < len(tasks):
            last, pairs, work_bytes = self._batch(tasks, first)
            if last == first:
                one = tasks.take(slice(first, first + 1))
                yield Refusal(int(one.number[0]), int(self._sizes.on_device(one)[0]), self.budget, on_gpu=True)
                first += 1
                continue
            batch = tasks.take(slice(first, last))
            found = self._count(batch, pairs, work_bytes)
            if found is None:
                self.close()
                self.budget //= 2
                continue
            self._pace.add(self.name, float(batch.work.sum()), float(found.seconds.sum()))
            yield found
            first = last

    def _count(self, tasks: TaskTable, pairs: frozenset[Pair], work_bytes: int) -> Finished | None:
        """What a batch finds; None where the GPU ran out of memory, though it should not have."""
        with self._device.using():
            try:
                with self._device.errors(), self._stream:
                    batch = DeviceBatch(self._blocks(pairs, work_bytes), tasks)
                    return count_on_device(batch, self._sizes, self._device, self._stream)
            except DeviceMemoryError:
                self._stream.stamp().synchronize()  # what was launched may read the blocks
                return None

    def close(self) -> None:
        """Release all blocks."""
        self._read_before = self.read_bytes
        self._cache = self._empty_cache()
        with self._device.memory():
            pass

    def _batch(self, tasks: TaskTable, first: int) -> tuple[int, frozenset[Pair], int]:
        """Where the batch ends that begins with a task, its blocks, and what it takes beside them."""
        pairs, held, heaviest, beside, last = frozenset[Pair](), 0, 0, 0, first
        works, left = self._sizes.device_work(tasks), self._pace.work_in(BATCH_SECONDS, unknown=0.0)
        while last < len(tasks):
            more = pairs_of_task(tasks[last]) - pairs
            held += sum(map(self._sizes.device_block, more))
            heaviest = max(heaviest, int(works[last]))
            need = heaviest + (last - first) * DEVICE_TASK_BYTES
            left -= float(tasks.work[last])
            if held + need > (self.budget if last == first else self.budget // 2) or (last > first and left < 0.0):
                break
            pairs, beside, last = pairs | more, need, last + 1
        return last, pairs, beside

    def _blocks(self, pairs: frozenset[Pair], work_bytes: int) -> dict[Pair, DeviceBlock]:
        """Blocks that are there, or on their way, and what is made of them; work on the stream waits for that."""
        there = self._cache.blocks(pairs, self.budget - work_bytes)
        blocks = {pair: there[pair] for pair in pairs}
        fresh = [block for block in blocks.values() if block.is_to_be_made]
        pairing = self._sizes.pairing
        for launch in pairing.on_device().make(fresh, pairing.gpu_knobs, self._device) if fresh else ():
            launch()
        for block in fresh:
            block.is_made = True
        return blocks

    def _empty_cache(self) -> BlockCache[DeviceBlock]:
        return BlockCache(self._send, self._sizes.device_block)

    def _send(self, pairs: list[Pair]) -> list[DeviceBlock]:
        """Read blocks and copy them to the device, one after the other."""
        return [self._ship(pair) for pair in pairs]

    def _ship(self, pair: Pair) -> DeviceBlock:
        block, sizes = self._store.block(*pair, threads=self._threads), self._sizes
        there = allocate([sizes.expected(pair)], sizes.offset_type, self._device)
        self._stream.follow(send([block], there, self._device).end)
        return there[0]


def count_on_device(batch: DeviceBatch, sizes: TaskSizes, device: StreamingDevice, stream: Stream) -> Finished:
    """What the tasks of a batch find, whose blocks are on the device, by a stream, which is the calling thread's."""
    begin = time.perf_counter()
    work = sizes.pairing.on_device().prepare(batch, sizes.pairing.gpu_knobs, device)
    work.found.fill(0)
    for step in work.batches:
        for launch in step():
            launch()
    stream.stamp().synchronize()
    triangles, tests, ticks = device.download(work.found).T
    shares = ticks.astype(np.float64) / max(1.0, float(ticks.sum()))
    return Finished(batch.tasks.number, triangles, tests, (time.perf_counter() - begin) * shares)
