"""Answers of many numbers by workers: each computes a slice and writes it into the folder of the work.

    slices ─Dispatcher→ Workers ─→ FOLDER/slice-N.npy, and back its SHA-256 ─→ FinishedSlices

A slice is a pure function of its number, the store and the options; one of a truss also of the round before. The driver
accepts a slice when it finds in the folder what the worker has said, so that this folder has to be one that all of them
share. Whatever is lost is done again, and what arrives twice has to be equal.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from types import TracebackType

from wedgewise.errors import VerificationError
from wedgewise.machine.files import make_folder, storage_errors
from wedgewise.run._device_counting import Refusal
from wedgewise.run._dispatch import Assignment, Dispatcher, Workers
from wedgewise.run._slice_worker import SliceRequest, SliceResult
from wedgewise.run.checkpoint import FinishedSlices
from wedgewise.run.cluster import name_for_workers, open_workers, per_worker
from wedgewise.run.request import Request
from wedgewise.run.sliced_answer import AnswerSlice, SlicedAnswer
from wedgewise.store.open import Store
from wedgewise.version import __version__


class SliceWorkers:
    """Workers that compute slices of one answer; they are there from the first slice to the end of the block."""

    def __init__(self, request: Request, store: Store, sliced: SlicedAnswer) -> None:
        self._request, self._store, self._sliced = request, store, sliced
        self._request_per_worker = per_worker(request, store)
        self._held = ExitStack()
        self._workers: Workers | None = None

    def __enter__(self) -> SliceWorkers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held.close()

    def compute(
        self, finished: FinishedSlices, wanted: Sequence[AnswerSlice], *, k: int | None = None, round_number: int = 0
    ) -> Iterator[AnswerSlice]:
        """Have slices computed; each is among those that are finished when it comes."""
        if not wanted:
            return
        with storage_errors(finished.folder, "made", "check the folders above it"):
            make_folder(finished.folder, parents=True)
        each, sliced = self._request_per_worker, self._sliced
        request = SliceRequest(
            version=__version__,
            store=name_for_workers(self._store),
            work_folder=None if self._store.work_folder is None else os.path.abspath(self._store.work_folder),
            folder=os.path.abspath(finished.folder),
            fingerprint=self._store.manifest.fingerprint,
            partition=self._store.partition.to_dict(),
            computes=sliced.computes,
            algorithm=sliced.algorithm,
            knobs=dict(sliced.knobs),
            threads=each.threads,
            memory_limit=each.memory_limit,
            k=k,
            round_number=round_number,
            slices=(),
        )
        if self._workers is None:
            self._workers = self._held.enter_context(open_workers(self._request))
        driver = SliceDriver(request, finished, wanted)
        yield from driver.run(self._workers)


class SliceDriver(Dispatcher):
    """Has workers compute slices."""

    def __init__(self, request: SliceRequest, finished: FinishedSlices, wanted: Sequence[AnswerSlice]) -> None:
        self._request, self._finished = request, finished
        self._slices = {each.number: each for each in wanted}
        self._arrived: deque[AnswerSlice] = deque()
        super().__init__(self._slices)

    def run(self, workers: Workers) -> Iterator[AnswerSlice]:
        """Each slice when it is finished."""
        for _ in self.dispatch([(number,) for number in self._slices], workers):
            while self._arrived:
                yield self._arrived.popleft()

    def message(self, batch: Assignment) -> str:
        return self._request.with_slices(batch.tasks).to_json()

    def receive(self, text: bytes, batch: Assignment, *, is_whole: bool, is_new: bool) -> list[tuple[str, Refusal]]:
        result = SliceResult.from_json(text)
        if result.folder != self._request.folder and not is_new:  # of a round before
            return []
        if result.folder != self._request.folder or tuple(result.records) != batch.tasks:
            raise VerificationError(
                f"a worker was asked for slices {batch.tasks[:5]} of {self._request.folder} and answered others"
            )
        for number, record in result.records.items():
            self._finished.accept(number, record)
            if number in self._left:
                self._left.discard(number)
                self._arrived.append(self._slices[number])
        return []

    def named(self, number: int) -> str:
        return f"slice {number} ({self._request.computes} of {self._slices[number].of})"
