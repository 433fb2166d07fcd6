"""What a worker does with a batch of tasks, and what it and the driver say to each other.

    BatchRequest    tasks for a worker, and all that it has to know to do them
    BatchResult  what the tasks found, or the error of ours that ended them; at most 1 MB

Both are JSON: neither side unpickles a class of which the other has another form. A worker does one batch at a time,
with an open store and its last blocks kept for the next one.

What is finished is sent every now and then, so that little is done again where this worker or its driver is killed.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from inspect import signature
from typing import Any

import numpy as np

from wedgewise import errors
from wedgewise.errors import ClusterError, VerificationError, WedgewiseError
from wedgewise.machine.out_of_memory import memory_for
from wedgewise.run.outofcore import Finished, plan_count, work_key
from wedgewise.run.request import Request
from wedgewise.store.open import open_store
from wedgewise.version import __version__

PROGRESS_SECONDS = 0.05  # between results that are sent before their batch is finished

_one_at_a_time = threading.Lock()
_state: WorkerState | None = None
MOST_RESULT_BYTES = 10**6
PLAIN = (str, int, float, type(None))


def count_batch(
    message: str, memory_limit: int | None = None, progress: Callable[[bytes], None] = lambda result: None
) -> bytes:
    """Do the tasks of a batch; a limit for this process replaces none. An error of ours is a result as well.

    On the way, `progress` gets the tasks that were finished since the last call; the result at the end has all.
    """
    try:
        batch = BatchRequest.from_json(message)
        with _one_at_a_time:
            return _do(batch, batch.memory_limit or memory_limit, progress).to_json()
    except WedgewiseError as error:
        return error_to_json(error)


@memory_for("count")
def _do(batch: BatchRequest, memory_limit: int | None, progress: Callable[[bytes], None]) -> BatchResult:
    """What the tasks of a batch found; sent on the way where they last."""
    finished, sent, since = list[Finished](), 0, time.monotonic()
    for some in _state_for(batch, memory_limit).count(batch.tasks):
        finished.append(some)
        if time.monotonic() - since >= PROGRESS_SECONDS:
            progress(BatchResult(batch.key, joined(finished[sent:])).to_json())
            sent, since = len(finished), time.monotonic()
    return BatchResult(batch.key, joined(finished))


def joined(finished: Sequence[Finished]) -> Finished:
    """What several batches found, as one."""
    return Finished._make(np.concatenate(column) for column in zip(*finished, strict=True))


def _state_for(batch: BatchRequest, memory_limit: int | None) -> WorkerState:
    """The state of the last batch, or another one where this is other work."""
    global _state
    if _state is None or _state.settings != _settings(batch, memory_limit):
        _state = None  # before there is another one
        _state = WorkerState(batch, memory_limit)
    return _state


class WorkerState:
    """An open store, kernels that are loaded, and blocks as far as they fit."""

    def __init__(self, batch: BatchRequest, memory_limit: int | None) -> None:
        self.settings = _settings(batch, memory_limit)
        store = open_store(batch.store)
        if store.manifest.fingerprint != batch.fingerprint:
            raise ClusterError(
                f"{batch.store}: a worker finds the graph {store.manifest.fingerprint[:12]} there, and the driver has "
                f"{batch.fingerprint[:12]}; name storage that all workers share"
            )
        asked = Request(
            memory_limit=memory_limit,
            threads=batch.threads,
            algorithm=batch.algorithm,
            knobs=batch.knobs,
            shares=batch.shares,
        )
        self._counting, plan = plan_count(asked, store)
        if work_key(store, plan.algorithm, plan.knobs, batch.shares) != batch.key:
            raise ClusterError(
                f"{batch.store}: a worker finds the graph there in other parts than the driver; name storage that all "
                "workers share"
            )
        self._blocks = self._counting.cache()
        self._position = np.zeros(self._counting.all_tasks, np.int64)
        self._position[self._counting.tasks.number] = np.arange(len(self._counting.tasks))

    def count(self, numbers: Sequence[int]) -> Iterator[Finished]:
        """What tasks find, a few after the other."""
        tasks = self._counting.tasks.take(self._position[list(numbers)])
        return self._counting.each(self._counting.batches(tasks), self._blocks)


def _settings(batch: BatchRequest, memory_limit: int | None) -> tuple[str, str, int | None, int | None]:
    """What batches of the same work under the same limits share."""
    return batch.store, batch.key, batch.threads, memory_limit


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """Tasks of a store for one worker.

    Attributes
    ----------
    version : of the program that asks
    store : a folder or a URL, the same for all workers
    fingerprint : of the graph that has to be there
    key : of the work, which every result carries; see `wedgewise.run.outofcore.work_key`
    threads : for a worker; None is all that it may use
    memory_limit : for the size of a worker; None is what its machine has left
    tasks : their numbers
    shares : how many tasks the rows of every three parts are dealt to
    """

    version: str
    store: str
    fingerprint: str
    key: str
    algorithm: str
    knobs: Mapping[str, int | str]
    threads: int | None
    memory_limit: int | None
    tasks: tuple[int, ...]
    shares: int = 1

    def to_json(self) -> str:
        """The batch as text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> BatchRequest:
        """The batch that a driver of the same version wrote."""
        whole = json.loads(text)
        if whole["version"] != __version__:
            raise ClusterError(
                f"the driver has wedgewise {whole['version']} and a worker {__version__}; install the same version "
                "on both"
            )
        return cls(**{**whole, "tasks": tuple(whole["tasks"])})


@dataclass(frozen=True, slots=True)
class BatchResult:
    """What the tasks of a batch found."""

    key: str
    finished: Finished

    def to_json(self) -> bytes:
        """The result as text of bounded size."""
        columns = [column.tolist() for column in self.finished]
        text = json.dumps({"key": self.key, "finished": columns}).encode()
        if len(text) > MOST_RESULT_BYTES:
            raise VerificationError(
                f"{len(columns[0]):,} tasks make a result of {len(text):,} bytes, over {MOST_RESULT_BYTES:,}: please "
                "report this"
            )
        return text

    @classmethod
    def from_json(cls, text: bytes) -> BatchResult:
        """The result that a worker wrote; the error of ours that it has instead is raised."""
        whole = json.loads(text)
        if "error" in whole:
            raise _error_from(whole["error"])
        types = (np.int64, np.uint64, np.uint64, np.float64)
        columns = (np.array(column, dtype) for column, dtype in zip(whole["finished"], types, strict=True))
        return cls(whole["key"], Finished._make(columns))


def error_to_json(error: WedgewiseError) -> bytes:
    """An error of ours as a result."""
    plain = {name: value for name, value in vars(error).items() if isinstance(value, PLAIN)}
    return json.dumps({"error": {"type": type(error).__name__, "message": str(error), "fields": plain}}).encode()


def _error_from(described: Mapping[str, Any]) -> WedgewiseError:
    """The error that a worker met, as itself."""
    kind: type[WedgewiseError] = getattr(errors, described["type"])
    if "__init__" not in vars(kind):
        return kind(described["message"])
    return kind(**{name: described["fields"][name] for name in signature(kind).parameters})
