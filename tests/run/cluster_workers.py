"""Workers to test with: in this process, and functions that real ones call to die, stop or fail at a known task."""

from __future__ import annotations

import os
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator, Set
from contextlib import ExitStack, closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

from emulate.streaming import StreamingEmulator, toy

from wedgewise.algorithms import registry
from wedgewise.algorithms._contract import BatchWork
from wedgewise.errors import DeviceError, FormatError
from wedgewise.machine import gpu
from wedgewise.run import batches
from wedgewise.run._count_worker import PROGRESS_SECONDS
from wedgewise.run._dask_workers import do_batch
from wedgewise.run._device_counting import DeviceCounting
from wedgewise.run._dispatch import Assignment, Delivery
from wedgewise.run._slice_worker import SliceState
from wedgewise.run._worker_process import main
from wedgewise.run._worker_requests import do_request, release_state
from wedgewise.run.outofcore import Counting, Finished
from wedgewise.stages.tasks import TaskTable
from wedgewise.store.manifest import FileRecord


class FakeWorkers:
    """Does batches in this process, when a delivery is waited for; `deliver` says what becomes of each."""

    def __init__(self, workers: int = 2, deliver: Callable[[Assignment, bytes], list[Delivery]] | None = None) -> None:
        self.count = workers
        self.batches: list[Assignment] = []
        self.under_way: deque[tuple[Assignment, str]] = deque()
        self.most_under_way = 0
        self._deliver = deliver or (lambda batch, reply: [Delivery(batch, reply)])
        self._deliveries: deque[Delivery] = deque()
        self.is_closed = False
        self.names = frozenset(f"worker {number}" for number in range(workers))
        self.told: tuple[int, ...] = ()  # by whoever delivers

    def has_others(self, names: Set[str]) -> bool:
        return not self.names <= names

    def submit(self, batch: Assignment, order: str) -> None:
        assert not batch.alone or not self.under_way
        self.batches.append(batch)
        self.under_way.append((batch, order))
        self.most_under_way = max(self.most_under_way, len(self.under_way))

    def delivery(self) -> Delivery:
        while not self._deliveries:
            assert self.under_way, "waits for nothing"
            batch, order = self.under_way.popleft()
            self._deliveries.extend(self._deliver(batch, do_request(order, worker=self.worker_for(batch))))
        return self._deliveries.popleft()

    def worker_for(self, batch: Assignment) -> str:
        """Workers in turn, of those that have not refused it."""
        able = sorted(self.names - batch.refused_by)
        return able[batch.number % len(able)]

    def close(self) -> None:
        self.is_closed = True
        release_state()


def misbehaving(how: str, at: tuple[int, ...], folder: str, *asked: Any) -> bytes:
    """What workers of Dask are made to call: `do_batch`, which misbehaves."""
    with misbehaviour(how, at, folder):
        return do_batch(*asked)


def serve_misbehaving(how: str, at: tuple[int, ...], folder: str) -> None:
    """What worker processes of this machine are made to run instead of `main`."""
    with misbehaviour(how, at, folder):
        main()


def serve_emulated(how: str = "", at: tuple[int, ...] = (), folder: str | None = None) -> None:
    """The same with an emulated GPU, where CUDA_VISIBLE_DEVICES has one."""
    with closing(emulate_gpu(os.environ["CUDA_VISIBLE_DEVICES"])):
        if folder is None:
            main()
        else:
            serve_misbehaving(how, at, folder)


def emulate_gpu(number: str = "0") -> StreamingEmulator:
    """Let this process have an emulated GPU, unless it has no number, and an algorithm of its own for that."""
    device = StreamingEmulator(f"Emulated GPU {number}")

    def find_devices() -> tuple[StreamingEmulator, ...]:
        if not number:
            raise DeviceError("no CUDA device is there")
        return (device,)

    gpu.find_devices = find_devices  # type: ignore[assignment]
    registry()["toy", "cuda"] = toy()
    return device


@cache
def gpu_of_this_process() -> StreamingEmulator:
    """That of a worker of Dask, from the first batch on."""
    return emulate_gpu(str(os.getpid()))


def on_emulated_gpu(*asked: Any) -> bytes:
    """What workers of Dask are made to call: `do_batch`, with a GPU."""
    gpu_of_this_process()
    return do_batch(*asked)


def live_bytes() -> int:
    """What is on the GPU of this worker."""
    return gpu_of_this_process().live


@contextmanager
def misbehaviour(how: str, at: tuple[int, ...], folder: str) -> Iterator[None]:
    """Have this process, a task at a time, "die", "stop", "fail" or "break" when some begin for the first time.

    With "poison", it dies whenever these begin. The folder gets a file NUMBER-TIME for every task that begins. With
    "slow", tasks last long enough to be told before their batch is finished.
    """
    really_count, really_on_device = Counting.count, DeviceCounting._count

    def begin(numbers: list[int]) -> None:
        for task in numbers:
            is_first = _time(Path(folder), task) == 0
            if task in at and (is_first or how == "poison"):
                _misbehave(how)
        if how == "slow":
            time.sleep(1.2 * PROGRESS_SECONDS)

    def count(self: Counting, work: BatchWork, tasks: TaskTable) -> Finished:
        begin(tasks.number.tolist())
        return really_count(self, work, tasks)

    def on_device(self: DeviceCounting, tasks: TaskTable, *blocks: Any) -> Finished | None:
        begin(tasks.number.tolist())
        return really_on_device(self, tasks, *blocks)

    def write(self: SliceState, number: int) -> FileRecord:
        begin([number])
        return really_write(self, number)

    really_write = SliceState.write
    patches: tuple[tuple[Any, str, Any], ...] = (
        (batches, "BATCH_SECONDS", 0.0),
        (Counting, "count", count),
        (DeviceCounting, "_count", on_device),
        (SliceState, "write", write),
    )
    with ExitStack() as held:
        for kind, name, patch in patches:
            held.enter_context(mock.patch.object(kind, name, patch))
        yield


def _time(folder: Path, task: int) -> int:
    """How often a task has begun before, in all processes."""
    times = 0
    while True:
        try:
            os.close(os.open(folder / f"{task}-{times}", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            times += 1
        else:
            return times


def _misbehave(how: str) -> None:
    if how == "fail":
        raise FormatError("is damaged", path="somewhere", remedy="mend it")
    if how == "break":
        raise ZeroDivisionError("nothing that we foresee")
    os.kill(os.getpid(), signal.SIGSTOP if how == "stop" else signal.SIGKILL)


def children(pid: int) -> list[int]:
    """The processes that a process has started, as far as they have not ended."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        if int(fields[1]) == pid:
            found.append(int(entry.parent.name))
    return found
