"""Ascending runs of 64-bit keys in a temporary file, and all of their keys together in ascending order.

A run is written once and read once, in pieces, side by side with all other runs. What is below the least of the last
keys that were read of each run is complete, so that it can be sorted and handed on: there is no tree of losers, and
the sort is NumPy's, of arrays that fit into memory. For a file of k keys in r runs, that is k reads in all, each of
about 1 / r of the memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import BinaryIO

import numpy as np

from wedgewise.errors import MemoryLimitError, StorageError
from wedgewise.machine.threads import run_tasks
from wedgewise.stages import Keys

FEWEST_KEYS = 1 << 9  # of a run, at a time
MOST_KEYS = 1 << 21  # at a time, of all runs: what more memory would not make faster
KEY_BYTES = 8


class Runs:
    """Runs of distinct ascending keys, one behind the other in a file."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._ends = [0]

    @property
    def keys(self) -> int:
        """How many keys there are in all runs."""
        return self._ends[-1]

    def add(self, keys: Keys) -> None:
        """Write a run."""
        if len(keys):
            self._file.seek(KEY_BYTES * self._ends[-1])
            self._file.write(keys.view(np.uint8).data)
            self._ends.append(self._ends[-1] + len(keys))

    def close(self) -> None:
        """Free the disk that the file takes."""
        self._file.close()

    def merged(self, available_bytes: int, shift: int = 0) -> Iterator[Keys]:
        """All keys of all runs in ascending arrays, each beyond the one before, in `available_bytes` bytes of memory.

        Keys that are equal but for the lowest `shift` bits are in one array. The arrays may be overwritten.
        """
        runs = len(self._ends) - 1
        need = 2 * KEY_BYTES * FEWEST_KEYS * runs
        if need > available_bytes:
            raise MemoryLimitError(f"merging {runs:,} runs takes {need:,} bytes; raise the memory limit")
        at_once = max(FEWEST_KEYS, min(available_bytes // (2 * KEY_BYTES), MOST_KEYS) // max(1, runs))
        cursors = [_Cursor(self, begin, end, at_once) for begin, end in pairwise(self._ends)]
        while cursors:
            for cursor in cursors:
                cursor.refill()
            bound = min((cursor.waiting[-1] for cursor in cursors if cursor.has_more), default=None)
            if bound is not None:
                bound = bound >> np.uint64(shift) << np.uint64(shift)
            joined = np.concatenate([cursor.take(bound) for cursor in cursors])
            joined.sort()
            yield joined
            cursors = [cursor for cursor in cursors if cursor.has_more or len(cursor.waiting)]

    def stretch(self, begin: int, end: int) -> Keys:
        """Keys by their position in the file."""
        keys = np.empty(end - begin, np.uint64)
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

    def __init__(self, runs: Runs, begin: int, end: int, at_once: int) -> None:
        self._runs = runs
        self._at, self._end, self._at_once = begin, end, at_once
        self.waiting: Keys = np.empty(0, np.uint64)

    @property
    def has_more(self) -> bool:
        """Whether there are keys that were not read yet."""
        return self._at < self._end

    def refill(self) -> None:
        """Read on, where less than half of what may wait is left."""
        if self.has_more and len(self.waiting) <= self._at_once // 2:
            stop = min(self._end, self._at + self._at_once - len(self.waiting))
            self.waiting = np.concatenate((self.waiting, self._runs.stretch(self._at, stop)))
            self._at = stop

    def take(self, bound: np.uint64 | None) -> Keys:
        """What is below the bound; all of it without one."""
        cut = len(self.waiting) if bound is None else int(np.searchsorted(self.waiting, bound))
        taken, self.waiting = self.waiting[:cut], self.waiting[cut:]
        return taken


def sorted_runs(keys: Keys, threads: int) -> list[Keys]:
    """Sort keys in place, in as many runs as there are threads, and drop copies within a run."""
    bounds = np.linspace(0, len(keys), min(threads, max(1, len(keys))) + 1).astype(np.int64).tolist()

    def sort(part: int, _worker: int) -> Keys:
        run = keys[bounds[part] : bounds[part + 1]]
        run.sort()
        return run[np.append(True, run[1:] != run[:-1])] if len(run) else run

    return run_tasks(sort, len(bounds) - 1, threads)
