"""Batches of tasks: what they and their blocks take, how long they last, and what is kept of them after a kill."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import weakref
from collections.abc import Callable, Set
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from helpers.graphs import DENSE, TRUTHS, fixture_pairs
from helpers.store_counts import count_store
from numpy.typing import NDArray

from wedgewise import generate
from wedgewise.algorithms import find
from wedgewise.algorithms.cpu import _keystone_triple_hubs, _keystone_triples
from wedgewise.machine.jit import JIT_DISABLED
from wedgewise.run import checkpoint
from wedgewise.run.block_caches import BlockCache
from wedgewise.run.checkpoint import FLUSH_SECONDS, JOURNAL, FinishedSlices, Journal, key_of, write_slice
from wedgewise.run.outofcore import Counting, seconds_of
from wedgewise.run.pace import BATCH_SECONDS
from wedgewise.run.task_memory import TaskMemory, triple_answer
from wedgewise.stages.blocks import Block, Rectilinear
from wedgewise.stages.tasks import BlockCounts, Pair, table_of
from wedgewise.store.build import write_store
from wedgewise.store.open import Store

SCALE = 8 if JIT_DISABLED else 14


MANY = Rectilinear(np.linspace(0, 10**7, 65).astype(np.int64))


def counting(store: Store, available_bytes: int) -> Counting:
    memory = TaskMemory(store.counts, triple_answer("keystone"), find("keystone", "cpu").settings(None), 1)
    return Counting(store, memory, available_bytes)


@dataclass(frozen=True, slots=True)
class Watched:
    """Arrays, and how many bytes of them somebody still has."""

    arrays: list[Callable[[], NDArray[Any] | None]] = field(default_factory=list)

    def add(self, *arrays: NDArray[Any] | None) -> None:
        self.arrays.extend(weakref.ref(array) for array in arrays if array is not None)

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for ref in self.arrays if (array := ref()) is not None)


@pytest.mark.parametrize("scheme", ["rectilinear", "hashed"])
def test_blocks_and_hubs_of_earlier_batches_keep_to_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    """Nothing that was evicted is alive when the blocks of the next batch have come, nor hubs that it does not use."""
    store = write_store(generate.kronecker(SCALE, seed=1), tmp_path / "store", parts=3, scheme=scheme)
    least = counting(store, 0).memory.heaviest(counting(store, 0).tasks)[0]
    blocks, hubs, seen = Watched(), Watched(), list[tuple[int, int, int]]()
    really_read, really_cached = Counting._read, BlockCache.blocks

    def read(self: Counting, pairs: list[Pair]) -> list[Block]:
        found = really_read(self, pairs)
        for block in found:
            blocks.add(block.offsets, block.heads, block.busy_rows)
        return found

    def cached(self: BlockCache[Any], wanted: Set[Pair], limit_bytes: int) -> Any:
        held = really_cached(self, wanted, limit_bytes)
        seen.append((blocks.nbytes, hubs.nbytes, limit_bytes))
        return held

    def made(*given: Any) -> Any:
        found = _keystone_triple_hubs.hubs_of(*given)
        hubs.add(found.layouts, found.bits)
        return found

    monkeypatch.setattr(Counting, "_read", read)
    monkeypatch.setattr(BlockCache, "blocks", cached)
    monkeypatch.setattr(_keystone_triples, "hubs_of", made)
    for available in (4 * least, 2 * least, least + 10_000, least):
        seen.clear()
        counting(store, available).run(None, None)
        for held, made_bytes, limit_bytes in seen:
            assert held <= limit_bytes
            assert held + made_bytes <= available
    assert scheme == "rectilinear" or max(made_bytes for _, made_bytes, _ in seen) > 0


def test_a_task_in_a_table_takes_forty_bytes_at_most() -> None:
    for table in (table_of(MANY), table_of(MANY).in_reuse_order(), table_of(MANY, shares=3)):
        columns = (table.number, table.i, table.j, table.k, table.share, table.work)
        assert sum(column.nbytes for column in columns) <= 40 * len(table)


@pytest.mark.parametrize("threads", [1, 16])
def test_many_tasks_are_cut_into_batches_of_about_fifty_milliseconds(threads: int) -> None:
    """Of all threads, where memory is no limit; no batch could have the first task of the next one, too."""
    arcs = np.triu(np.random.default_rng(1).integers(1, 2 * 10**5, (MANY.parts, MANY.parts)))
    counts = BlockCounts(arcs, np.array(MANY.sizes, np.int64))
    memory = TaskMemory(counts, triple_answer("keystone"), find("keystone", "cpu").settings(None), threads)
    source: Any = Imagined(MANY, counts)
    of_all = Counting(source, memory, 1 << 60)
    batches, seconds = of_all.batches(of_all.tasks), seconds_of(of_all.tasks, memory) / threads
    assert len(of_all.tasks) == 45_760
    assert BATCH_SECONDS == 0.05
    assert len(batches) > 20
    for begin, end in pairwise(batches.bounds.tolist()):
        assert end - begin > 1
        assert seconds[begin:end].sum() <= BATCH_SECONDS + 1e-6
        assert end == len(seconds) or seconds[begin : end + 1].sum() > BATCH_SECONDS - 1e-6


@dataclass(frozen=True, slots=True)
class Imagined:
    """Blocks that are never read."""

    partition: Rectilinear
    counts: BlockCounts


Adds = Callable[[int], None]
ONE = np.ones(1, np.uint64)


def adds_tasks(folder: Path, count: int) -> Adds:
    journal = Journal(folder / JOURNAL, key_of(a=1), count)
    return lambda number: journal.add([number], [0], [0], [0.0])


def adds_slices(folder: Path, _count: int) -> Adds:
    slices = FinishedSlices(folder / "slices", key_of(a=1))
    return lambda number: slices.put(number, ONE)


def adds_slices_of_workers(folder: Path, _count: int) -> Adds:
    slices = FinishedSlices(folder, key_of(a=1))
    return lambda number: slices.accept(number, write_slice(folder, number, ONE))


@pytest.mark.parametrize("adds", [adds_tasks, adds_slices, adds_slices_of_workers])
@pytest.mark.parametrize("batch_seconds", [0.001, 0.05, 3.0])
def test_a_journal_is_synced_once_a_second_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch_seconds: float, adds: Callable[[Path, int], Adds]
) -> None:
    """However many batches there are in a second; and a second after it was written, a line is on the disk."""
    clock, synced = [100.0], set[float]()
    really = os.fsync

    def fsync(descriptor: int) -> None:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            synced.add(clock[0])
        really(descriptor)

    monkeypatch.setattr(checkpoint, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(os, "fsync", fsync)
    batches = 600
    add = adds(tmp_path, batches)
    for number in range(batches):
        clock[0] += batch_seconds
        add(number)
    moments = sorted(synced)
    assert all(after - before >= FLUSH_SECONDS for before, after in pairwise([100.0, *moments]))
    latest = FLUSH_SECONDS + batch_seconds + 1e-6
    assert all(after - before <= latest for before, after in pairwise([100.0, *moments, clock[0]]))


def test_a_slice_that_replaces_another_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver has perhaps synced the one that was there, and does not look at this one again."""
    synced, really = list[int](), os.fsync

    def fsync(descriptor: int) -> None:
        synced.append(descriptor)
        really(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    write_slice(tmp_path, 0, ONE)
    assert not synced
    write_slice(tmp_path, 0, ONE)
    assert synced


KILLED = """
import os, signal, sys
from wedgewise.run import batches, checkpoint
import wedgewise as ww
folder, left, batches.BATCH_SECONDS = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
really = checkpoint.append_line
def append(*what, **how):
    global left
    really(*what, **how)
    left -= 1
    if left == 0: os.kill(os.getpid(), signal.SIGKILL)
checkpoint.append_line = append
ww.count(folder)
"""


@pytest.mark.compiled  # in another process
@pytest.mark.parametrize("number", [1, 3])
def test_progress_goes_on_after_a_kill(tmp_path: Path, number: int) -> None:
    """From the tasks of all batches that were written down, of which each has several, to all of them."""
    store = write_store(fixture_pairs(DENSE), tmp_path / "store", parts=8)
    whole = counting(store, 1 << 40)
    tasks, limit = len(whole.tasks), float(seconds_of(whole.tasks, whole.memory).sum()) / 8
    command = [sys.executable, "-c", KILLED, str(store.folder), str(number), str(limit)]
    died = subprocess.run(command, capture_output=True, check=False)
    assert died.returncode == -signal.SIGKILL, died.stderr
    assert len((store.folder / JOURNAL).read_bytes().splitlines()) == number
    told: list[tuple[str, int, int]] = []
    found = count_store(store, progress=lambda *what: told.append(what))
    assert found.triangles == TRUTHS[DENSE]["triangles"]
    assert number < found.resumed < tasks
    done = [found.resumed, *(done for _, done, _ in told)]
    assert all(before < after for before, after in pairwise(done))
    assert {(stage, total) for stage, _, total in told} == {("count", tasks)}
    assert done[-1] == tasks
