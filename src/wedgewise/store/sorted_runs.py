"""Ascending runs of 64-bit keys in a temporary file, and all of their keys together in ascending order.

A run is written once and read once, in pieces, side by side with all other runs. What is below the least of the last
keys that were read of each run is complete, so that it can be sorted and handed on: there is no tree of losers, but a
sort by digits of arrays that fit into memory. For a file of k keys in r runs, that is k reads in all, each of about
1 / r of the memory.

Merging goes in rounds. While the keys of a round are sorted, each thread having a range of values, those of the round
before are consumed and the runs are read on:

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

FEWEST_KEYS = 1 << 9  # of a run, at a time
MAX_KEYS = 1 << 20  # at a time, of all runs: what more memory would not make faster
RANGE_KEYS = 1 << 14  # of a range of values, at least
SAMPLED = 64  # keys for each value that ranges are cut at
KEY_BYTES = 8
MERGED_BYTES = 5 * KEY_BYTES  # of a key at a time: read, read on, sorted, the space for that, and consumed

OnKeys = Callable[[int], None]


class Runs:
    """Runs of distinct ascending keys, one behind the other in a file, which any thread may write and read."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._ends = [0]
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

    def close(self) -> None:
        """Free the disk that the file takes."""
        self._file.close()

    def merge(
        self, consume: Callable[[Keys], Any], on_keys: OnKeys, available_bytes: int, threads: int, *, shift: int = 0
    ) -> None:
        """Hand all keys of all runs to `consume`, in ascending arrays each beyond the one before, and close the file.

        Keys that are equal but for the lowest `shift` bits are in one array, which may be overwritten. `on_keys` is
        told in the calling thread how many were consumed. All that takes `available_bytes` bytes of memory.
        """
        runs = len(self._ends) - 1
        need = MERGED_BYTES * FEWEST_KEYS * runs
        if need > available_bytes:
            raise MemoryLimitError(f"merging {runs:,} runs takes {need:,} bytes; raise the memory limit")
        at_once = max(FEWEST_KEYS, min(available_bytes // MERGED_BYTES, MAX_KEYS) // max(1, runs))
        cursors = [_Cursor(self, begin, end, at_once) for begin, end in pairwise(self._ends)]
        _refill(cursors)
        ascending: list[Keys] = []
        while cursors or ascending:
            ranges = _ranges(_taken(cursors, shift), threads, shift)
            beside: list[Callable[[], Any]] = [partial(_consume, consume, ascending), partial(_refill, cursors)]
            tasks = beside + [partial(_sorted, pieces) for pieces in ranges]
            found = run_tasks(partial(_call, tasks), len(tasks), threads)
            on_keys(sum(map(len, ascending)))
            ascending = found[len(beside) :]
            cursors = [cursor for cursor in cursors if cursor.has_more or len(cursor.waiting)]
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


def _taken(cursors: list[_Cursor], shift: int) -> list[Keys]:
    """What is complete of all that was read: ascending pieces."""
    bound = min((cursor.waiting[-1] for cursor in cursors if cursor.has_more), default=None)
    if bound is not None:
        bound = bound >> np.uint64(shift) << np.uint64(shift)
    return [piece for cursor in cursors if len(piece := cursor.take(bound))]


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


def _refill(cursors: list[_Cursor]) -> None:
    for cursor in cursors:
        cursor.refill()


def sorted_run(keys: Keys, spare: Keys) -> Keys:
    """Sort keys, and drop copies; both arrays are overwritten."""
    run = sort_keys(keys, spare)
    differs = run[1:] != run[:-1]
    return run if differs.all() else run[np.append(True, differs)]
