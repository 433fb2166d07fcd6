"""What a worker does with slices of an answer, and what it and the driver say to each other, as JSON.

SliceRequest    numbers of slices, and all that a worker has to know to compute them
SliceResult     what it has written into the folder of the work
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from wedgewise.errors import ClusterError
from wedgewise.machine import hardware
from wedgewise.run._count_worker import check_version, error_from, open_shared_store
from wedgewise.run.checkpoint import write_slice
from wedgewise.run.sliced_answer import slices_within
from wedgewise.run.truss_of_store import Round, StorePeeling, loading_bytes
from wedgewise.store.manifest import FileRecord


class SliceState:
    """An open store, kernels that are loaded, and of a truss the remaining arcs after the round before."""

    def __init__(self, request: SliceRequest, memory_limit: int | None, worker: str) -> None:
        self.settings = request.without_tasks(), memory_limit
        self._folder = Path(request.folder)
        store = open_shared_store(request.store, worker, request.work_folder)
        if (store.manifest.fingerprint, store.partition.to_dict()) != (request.fingerprint, request.partition):
            raise ClusterError(
                f"{request.store}: a worker finds another graph there; name storage that all workers share"
            )
        if not self._folder.is_dir() or store.beside(self._folder.name) != self._folder:
            raise ClusterError(
                f"{request.folder}: a worker does not see this folder, where slices are written; name one that all "
                "workers share by --work (work_folder=)"
            )
        self._sliced = slices_within(
            store,
            request.computes,
            memory_limit,
            threads=hardware.granted_threads(request.threads),
            algorithm=request.algorithm,
            knobs=request.knobs,
            rounds_bytes=None if request.k is None else loading_bytes(store.counts),
        )
        self._slices = {each.number: each for each in self._sliced.slices}
        self._peeling: StorePeeling | None = None
        self._before: Round | None = None
        if request.k is not None:
            self._peeling = StorePeeling(store, request.k, self._sliced)
            self._before = self._peeling.round(request.round_number - 1)

    def do(self, numbers: Sequence[int], _worker: str, _progress: Callable[[bytes], None]) -> bytes:
        """Compute slices and write them."""
        return SliceResult(self.settings[0].folder, {number: self.write(number) for number in numbers}).to_json()

    def close(self) -> None:
        """Nothing is held but memory of this process."""

    def write(self, number: int) -> FileRecord:
        """Compute a slice and write it; what was written."""
        wanted, k = [self._slices[number]], self.settings[0].k
        if self._peeling is None or self._before is None or k is None:
            ((_, found),) = self._sliced.compute(wanted)
        else:
            ((_, kept),) = self._peeling.after_round(self._before, k, wanted)
            found = kept.to_array()
        return write_slice(self._folder, number, found)


@dataclass(frozen=True, slots=True)
class SliceRequest:
    """Slices of an answer about a store for one worker.

    Attributes
    ----------
    version : of the program that asks
    store : a folder or a URL, the same for all workers
    work_folder, folder : that of the driver, if it was named, and where slices are written
    fingerprint, partition : of the graph that has to be there
    computes, algorithm, knobs : what is computed, and how
    threads, memory_limit : as in a `BatchRequest`
    k, round_number : of a truss
    slices : their numbers
    """

    version: str
    store: str
    work_folder: str | None
    folder: str
    fingerprint: str
    partition: Mapping[str, Any]
    computes: str
    algorithm: str
    knobs: Mapping[str, int | str]
    threads: int | None
    memory_limit: int | None
    k: int | None
    round_number: int
    slices: tuple[int, ...]

    def with_slices(self, slices: tuple[int, ...]) -> SliceRequest:
        """The same for other slices."""
        return replace(self, slices=slices)

    def without_tasks(self) -> SliceRequest:
        """What requests for other slices of the same work share."""
        return self.with_slices(())

    def to_json(self) -> str:
        """The request as text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> SliceRequest:
        """The request that a driver of the same version wrote."""
        whole = json.loads(text)
        check_version(whole)
        return cls(**{**whole, "slices": tuple(whole["slices"])})


@dataclass(frozen=True, slots=True)
class SliceResult:
    """What was written, by number, into which folder."""

    folder: str
    records: Mapping[int, FileRecord]

    def to_json(self) -> bytes:
        """The result as text."""
        records = [[number, *asdict(record).values()] for number, record in self.records.items()]
        return json.dumps({"folder": self.folder, "records": records}).encode()

    @classmethod
    def from_json(cls, text: bytes) -> SliceResult:
        """The result that a worker wrote; the `WedgewiseError` that it has instead is raised."""
        whole = json.loads(text)
        if "error" in whole:
            raise error_from(whole["error"])
        return cls(whole["folder"], {number: FileRecord(*record) for number, *record in whole["records"]})
