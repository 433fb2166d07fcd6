"""Ascending runs of 64-bit keys in a temporary file, and all of their keys together in ascending order.

A run is written once and read once, in pieces, side by side with all other runs. Some of its keys, which stay in memory
as its index, say where in the file the keys below any value end, up to a few. So all keys are divided at values that
have about equally many between them, however unlike the runs are; what lies between two of these is read of each run,
sorted by digits and handed on: there is no tree of losers.

Merging goes in rounds, from one of these values to the next. While the keys of a round are sorted, each thread having a
range of values, those of the round before are consumed and the runs are read on:

    read     keys 2   keys 3   keys 4
    sort     keys 1   keys 2   keys 3
    consume           keys 1   keys 2
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from threading import Lock
from typing import Any, BinaryIO

import numpy as np

from wedgewise.errors import MemoryLimitError, StorageError
from wedgewise.machine.threads import run_tasks
from wedgewise.prepare.radix import sort_keys
from wedgewise.stages import Keys

INDEXED_KEYS = 1 << 9  # of which one is in the index
ROUND_KEYS = 1 << 20  # at a time, of all runs: what more memory would not make faster
RANGE_KEYS = 1 << 14  # of a range of values, at least
SAMPLED = 64  # keys for each value that ranges are cut at
KEY_BYTES = 8
MERGED_BYTES = 5 * KEY_BYTES  # of a key at a time: read, read on, sorted, the space for that, and consumed
MIN_INDEXED = 3  # of each run: one between bounds, one that these cut, and what waits behind that

OnKeys = Callable[[int], None]


class Runs:
    """Runs of distinct ascending keys, one behind the other in a file, which any thread may write and read."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._ends = [0]
        self._indices = list[Keys]()
        self._lock = Lock()

    @property
    def keys(self) -> int:
        """How many keys there are in all runs."""
        return self._ends[-1]

    def add(self, keys: Keys) -> None:
        """Write a run."""
        if len(keys):
            with self._lock:
                self._file.seek(KEY_BYTES * self._ends[-1])
                self._file.write(keys.view(np.uint8).data)
                self._ends.append(self._ends[-1] + len(keys))
                self._indices.append(keys[::INDEXED_KEYS].copy())

    def close(self) -> None:
        """Free the disk that the file takes."""
        self._file.close()

    def merge(
        self, consume: Callable[[Keys], Any], on_keys: OnKeys, available_bytes: int, threads: int, *, shift: int = 0
    ) -> None:
        """Hand all keys of all runs to `consume`, in ascending arrays each beyond the one before, and close the file.

        Keys that are equal but for the lowest `shift` bits are in one array, which may be overwritten. `on_keys` is
        called in the calling thread with the number of keys that were consumed. All that takes `available_bytes` bytes
        of memory.
        """
        runs = len(self._indices)
        beside = 2 * KEY_BYTES * sum(map(len, self._indices))
        need = beside + MERGED_BYTES * MIN_INDEXED * INDEXED_KEYS * runs
        if need > available_bytes:
            raise MemoryLimitError(f"merging {runs:,} runs takes {need:,} bytes; raise the memory limit")
        most_keys = max(ROUND_KEYS, 2 * MIN_INDEXED * INDEXED_KEYS * runs)
        round_keys = min((available_bytes - beside) // MERGED_BYTES, most_keys)
        bounds = _bounds(self._indices, max(1, round_keys // INDEXED_KEYS - 2 * runs), shift)
        cursors = [
            _Cursor(self, *stretch, index) for stretch, index in zip(pairwise(self._ends), self._indices, strict=True)
        ]
        _read_to(cursors, bounds[0])
        ascending: list[Keys] = []
        for bound, next_bound in pairwise([*bounds, None]):
            ranges = _ranges([piece for cursor in cursors if len(piece := cursor.take(bound))], threads, shift)
            meanwhile: list[Callable[[], Any]] = [
                partial(_consume, consume, ascending),
                partial(_read_to, cursors, next_bound),
            ]
            tasks = meanwhile + [partial(_sorted, pieces) for pieces in ranges]
            found = run_tasks(partial(_call, tasks), len(tasks), threads)
            on_keys(sum(map(len, ascending)))
            ascending = found[len(meanwhile) :]
        _consume(consume, ascending)
        on_keys(sum(map(len, ascending)))
        self.close()

    def stretch(self, begin: int, end: int) -> Keys:
        """Keys by their position in the file."""
        keys = np.empty(end - begin, np.uint64)
        with self._lock:
            self._file.seek(KEY_BYTES * begin)
            if self._file.readinto(keys.view(np.uint8).data) != keys.nbytes:  # type: ignore[attr-defined]
                raise StorageError("a temporary file became shorter while it was read; check the disk")
        return keys

    def each(self) -> Iterator[Keys]:
        """One run after the other."""
        return (self.stretch(begin, end) for begin, end in pairwise(self._ends))

    def stretches(self, keys: int) -> Iterator[Keys]:
        """All keys as they lie in the file, so many at a time."""
        for begin in range(0, self.keys, keys):
            yield self.stretch(begin, min(begin + keys, self.keys))


class _Cursor:
    """How far a run was read, and what of it still waits."""

    def __init__(self, runs: Runs, begin: int, end: int, index: Keys) -> None:
        self._runs, self._begin, self._at, self._end, self._index = runs, begin, begin, end, index
        self._waiting: Keys = np.empty(0, np.uint64)

    def read_to(self, bound: np.uint64 | None) -> None:
        """Read on until all keys below a bound are there; to the end without one."""
        stop = self._end
        if bound is not None:
            stop = min(stop, self._begin + INDEXED_KEYS * int(np.searchsorted(self._index, bound)))
        if stop > self._at:
            self._waiting = np.concatenate((self._waiting, self._runs.stretch(self._at, stop)))
            self._at = stop

    def take(self, bound: np.uint64 | None) -> Keys:
        """What is below the bound; all of it without one."""
        cut = len(self._waiting) if bound is None else int(np.searchsorted(self._waiting, bound))
        taken, self._waiting = self._waiting[:cut], self._waiting[cut:]
        return taken


def _bounds(indices: list[Keys], indexed: int, shift: int) -> list[np.uint64 | None]:
    """Values with at most so many indexed keys between them, but for the lowest bits of keys; None is behind all."""
    keys = np.sort(np.concatenate(indices)) if indices else np.empty(0, np.uint64)
    return [*np.unique(keys[indexed::indexed] >> np.uint64(shift) << np.uint64(shift)), None]


def _read_to(cursors: list[_Cursor], bound: np.uint64 | None) -> None:
    for cursor in cursors:
        cursor.read_to(bound)


def _ranges(pieces: list[Keys], threads: int, shift: int) -> list[list[Keys]]:
    """Ascending pieces cut at the same values, into ranges of about as many keys, one for each thread."""
    total = sum(map(len, pieces))
    count = min(threads, total // RANGE_KEYS)
    if count <= 1:
        return [pieces] if pieces else []
    step = max(1, total // (SAMPLED * count))
    sample = np.sort(np.concatenate([piece[min(step, len(piece)) // 2 :: step] for piece in pieces]))
    values = sample[np.arange(1, count) * len(sample) // count] >> np.uint64(shift) << np.uint64(shift)
    cuts = [[0, *np.searchsorted(piece, values).tolist(), len(piece)] for piece in pieces]
    return [[piece[cut[at] : cut[at + 1]] for piece, cut in zip(pieces, cuts, strict=True)] for at in range(count)]


def _sorted(pieces: list[Keys]) -> Keys:
    keys = np.concatenate(pieces)
    return sort_keys(keys, np.empty_like(keys))


def _call(tasks: list[Callable[[], Any]], number: int, _worker: int) -> Any:
    return tasks[number]()


def _consume(consume: Callable[[Keys], Any], ascending: list[Keys]) -> None:
    for keys in ascending:
        if len(keys):
            consume(keys)


def sorted_run(keys: Keys, spare: Keys) -> Keys:
    """Sort keys, and drop copies; both arrays are overwritten."""
    run = sort_keys(keys, spare)
    differs = run[1:] != run[:-1]
    return run if differs.all() else run[np.append(True, differs)]
