"""What a worker does with a batch of tasks, and what it and the driver say to each other.

    BatchRequest    tasks for a worker, and all that it has to know to do them
    BatchResult     what the tasks found, or the `WedgewiseError` that ended them; at most 1 MB

Both are JSON: neither side unpickles a class of which the other has another form.

What is finished is sent every now and then, so that little is done again where this worker or its driver is killed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from inspect import signature
from typing import Any

import numpy as np

from wedgewise import errors
from wedgewise.errors import ClusterError, MissingFileError, VerificationError, WedgewiseError
from wedgewise.run._device_counting import DeviceCounting, Refusal, find_worker_device, on_cpu, refusals, worker_pairing
from wedgewise.run.outofcore import Finished, count_key, counting_within
from wedgewise.run.request import Request
from wedgewise.stages.tasks import TaskTable, busy_tasks, task_count
from wedgewise.store.manifest import MANIFEST
from wedgewise.store.open import Store, open_store
from wedgewise.store.urls import location_of
from wedgewise.version import __version__

PROGRESS_SECONDS = 0.05  # between results that are sent before their batch is finished
MAX_RESULT_BYTES = 10**6
NOTHING = Finished(np.zeros(0, np.int64), np.zeros(0, np.uint64), np.zeros(0, np.uint64), np.zeros(0))
PLAIN = (str, int, float, type(None))


def process_name(pid: int) -> str:
    """What a worker of this machine is called."""
    return f"process {pid}"


def open_shared_store(name: str, worker: str, work_folder: str | None = None) -> Store:
    """The store that a driver names; refuse one that only others see."""
    try:
        with location_of(name).opened(MANIFEST):
            pass
    except MissingFileError as error:
        raise ClusterError(
            f"worker {worker} cannot see the store {name}; put it where all workers can read it"
        ) from error
    return open_store(name, work_folder)


def joined(finished: Sequence[Finished]) -> Finished:
    """What several batches found, as one."""
    return Finished._make(np.concatenate(column) for column in zip(NOTHING, *finished, strict=True))


class CountState:
    """An open store, kernels that are loaded, and blocks as far as they fit in memory or on a GPU."""

    def __init__(self, request: BatchRequest, memory_limit: int | None, worker: str) -> None:
        self.settings = request.without_tasks(), memory_limit
        store = open_shared_store(request.store, worker)
        if store.manifest.fingerprint != request.fingerprint:
            raise ClusterError(
                f"{request.store}: a worker finds the graph {store.manifest.fingerprint[:12]} there, and the driver "
                f"has {request.fingerprint[:12]}; name storage that all workers share"
            )
        counting = Request(
            device=request.device,
            algorithm=request.algorithm,
            knobs=request.knobs,
            threads=request.threads,
            memory_limit=memory_limit,
            shares=request.shares,
        )
        if count_key(counting, store) != request.key:
            raise ClusterError(
                f"{request.store}: a worker finds the graph there in other parts than the driver; name storage that "
                "all workers share"
            )
        self._store, self._request, self._key = store, counting, request.key
        self._tasks = busy_tasks(store.partition, store.counts, request.shares).in_reuse_order()
        self._position = np.zeros(task_count(store.partition, request.shares), np.int64)
        self._position[self._tasks.number] = np.arange(len(self._tasks))
        pairing = worker_pairing(counting)
        self._request_on_cpu = on_cpu(counting, pairing)
        device = find_worker_device(counting, pairing, worker)
        self._on_device = None if device is None else DeviceCounting(counting, store, device, request.sharers)
        self._on_cpu: CpuCounting | None = None
        if device is None:
            self._on_cpu = CpuCounting(self._request_on_cpu, store)

    @property
    def counts_on(self) -> str:
        """The name of the GPU, or "cpu"."""
        return "cpu" if self._on_device is None else self._on_device.name

    @property
    def read_bytes(self) -> int:
        """Of blocks so far."""
        return sum(counting.read_bytes for counting in (self._on_device, self._on_cpu) if counting is not None)

    def do(self, numbers: Sequence[int], worker: str, progress: Callable[[bytes], None]) -> bytes:
        """What tasks found; where they last, `progress` gets what was finished since the last call."""
        finished, refused, sent, since, read = list[Finished](), list[Refusal](), 0, time.monotonic(), self.read_bytes
        for found in self.count(numbers):
            if isinstance(found, Refusal):
                refused.append(found)
                continue
            finished.append(found)
            if time.monotonic() - since >= PROGRESS_SECONDS:
                some, more = joined(finished[sent:]), self.read_bytes - read
                progress(BatchResult(self._key, worker, some, (), self.counts_on, more).to_json())
                sent, since, read = len(finished), time.monotonic(), self.read_bytes
        rest = self.read_bytes - read
        return BatchResult(self._key, worker, joined(finished), tuple(refused), self.counts_on, rest).to_json()

    def count(self, numbers: Sequence[int]) -> Iterator[Finished | Refusal]:
        """What tasks find, a few after the other; what does not fit the GPU is counted on the CPU, or refused."""
        tasks = self._tasks.take(self._position[list(numbers)])
        if self._on_device is None:
            yield from self._count_on_cpu(tasks)
            return
        for found in self._on_device.count(tasks):
            if isinstance(found, Refusal) and self._request.device == "hybrid":
                yield from self._count_on_cpu(self._tasks.take(self._position[[found.task]]))
            else:
                yield found

    def close(self) -> None:
        """Release the memory of the GPU."""
        if self._on_device is not None:
            self._on_device.close()

    def _count_on_cpu(self, tasks: TaskTable) -> Iterator[Finished | Refusal]:
        if self._on_cpu is None:
            self._on_cpu = CpuCounting(self._request_on_cpu, self._store)
        return self._on_cpu.count(tasks)


class CpuCounting:
    """What a worker has to count on its CPU."""

    def __init__(self, request: Request, store: Store) -> None:
        self.counting = counting_within(request, store)
        self.blocks = self.counting.cache()

    @property
    def read_bytes(self) -> int:
        """Of blocks so far."""
        return self.blocks.read_bytes

    def count(self, tasks: TaskTable) -> Iterator[Finished | Refusal]:
        """What tasks find, a batch after the other; those that take more memory than there is are refused."""
        counting = self.counting
        need = counting.memory.by_task(tasks)
        yield from refusals(tasks, need, counting.available_bytes, on_gpu=False)
        yield from counting.count_batches(counting.batches(tasks.take(need <= counting.available_bytes)), self.blocks)


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """Tasks of a store for one worker.

    Attributes
    ----------
    version : of the program that asks
    store : a folder or a URL, the same for all workers
    fingerprint : of the graph that has to be there
    key : of the work, which every result carries; see `wedgewise.run.outofcore.count_key`
    device, sharers : what counts, as in a `Request`, and how many workers have the same GPU
    algorithm, knobs : as they were asked for
    threads : for a worker; None is all that it may use
    memory_limit : for the size of a worker; None is what its machine has left
    tasks : their numbers
    shares : how many tasks the rows of every three parts are dealt to
    """

    version: str
    store: str
    fingerprint: str
    key: str
    device: str
    sharers: int
    algorithm: str
    knobs: Mapping[str, int | str]
    threads: int | None
    memory_limit: int | None
    tasks: tuple[int, ...]
    shares: int = 1

    def without_tasks(self) -> BatchRequest:
        """What requests for other tasks of the same work share."""
        return replace(self, tasks=())

    def to_json(self) -> str:
        """The batch as text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> BatchRequest:
        """The batch that a driver of the same version wrote."""
        whole = json.loads(text)
        check_version(whole)
        return cls(**{**whole, "tasks": tuple(whole["tasks"])})


@dataclass(frozen=True, slots=True)
class BatchResult:
    """What the tasks of a batch found.

    Attributes
    ----------
    key : of the work
    worker : its name
    finished : what tasks found
    refused : tasks that its GPU has no memory for
    counts_on : the name of its GPU, or "cpu"
    read_bytes : of blocks since the last result
    """

    key: str
    worker: str
    finished: Finished
    refused: tuple[Refusal, ...] = ()
    counts_on: str = "cpu"
    read_bytes: int = 0

    def to_json(self) -> bytes:
        """The result as text of bounded size."""
        columns = [column.tolist() for column in self.finished]
        whole = {name: getattr(self, name) for name in ("key", "worker", "refused", "counts_on", "read_bytes")}
        text = json.dumps({**whole, "finished": columns}).encode()
        if len(text) > MAX_RESULT_BYTES:
            raise VerificationError(
                f"{len(columns[0]):,} tasks make a result of {len(text):,} bytes, over {MAX_RESULT_BYTES:,}: please "
                "report this"
            )
        return text

    @classmethod
    def from_json(cls, text: bytes) -> BatchResult:
        """The result that a worker wrote; the `WedgewiseError` that it has instead is raised."""
        whole = json.loads(text)
        if "error" in whole:
            raise error_from(whole["error"])
        types = (np.int64, np.uint64, np.uint64, np.float64)
        columns = (np.array(column, dtype) for column, dtype in zip(whole["finished"], types, strict=True))
        refused = tuple(Refusal._make(refusal) for refusal in whole["refused"])
        return cls(**{**whole, "finished": Finished._make(columns), "refused": refused})


def check_version(message: Mapping[str, Any]) -> None:
    """Refuse a driver of another version."""
    if message["version"] != __version__:
        raise ClusterError(
            f"the driver has wedgewise {message['version']} and a worker {__version__}; install the same version on "
            "both"
        )


def error_to_json(error: WedgewiseError) -> bytes:
    """A `WedgewiseError` as a result."""
    plain = {name: value for name, value in vars(error).items() if isinstance(value, PLAIN)}
    return json.dumps({"error": {"type": type(error).__name__, "message": str(error), "fields": plain}}).encode()


def error_from(described: Mapping[str, Any]) -> WedgewiseError:
    """The error that a worker met, as itself."""
    kind: type[WedgewiseError] = getattr(errors, described["type"])
    if "__init__" not in vars(kind):
        return kind(described["message"])
    return kind(**{name: described["fields"][name] for name in signature(kind).parameters})
