"""Lists of tasks, labels and offsets are part of what is planned: measured, and refused before they are made."""

from __future__ import annotations

import shutil
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from helpers.graphs import fixture_pairs
from helpers.store_counts import each_task_by_itself
from helpers.stores import names_in
from numpy.typing import NDArray

import wedgewise as ww
from wedgewise.algorithms import find
from wedgewise.algorithms._contract import Shape
from wedgewise.errors import MemoryLimitError, StorageError
from wedgewise.run import hybrid, outofcore, sliced_answer
from wedgewise.run._hybrid_plan import Resources, pair_up
from wedgewise.run.block_caches import BlockCache
from wedgewise.run.checkpoint import (
    JOURNAL,
    MAX_LINE_BYTES,
    TASKS_PER_LINE,
    Journal,
    journal_bytes,
    key_of,
)
from wedgewise.run.cluster import ClusterWork, Driver, make_batches
from wedgewise.run.outofcore import Counting, Finished
from wedgewise.run.plan import OrientedShape
from wedgewise.run.sliced_answer import SlicedAnswer
from wedgewise.run.task_memory import (
    COUNTED_TASK_BYTES,
    DRIVEN_TASK_BYTES,
    HYBRID_TASK_BYTES,
    SLICED_TASK_BYTES,
    TaskMemory,
    triple_answer,
)
from wedgewise.run.timeline import BatchSpan
from wedgewise.stages.blocks import Hashed, Partition, Rectilinear
from wedgewise.stages.tasks import BlockCounts, TaskResults, TaskTable, busy_tasks, table_of, task_count
from wedgewise.store import build as store_build
from wedgewise.store import sort_and_deduplicate as settle
from wedgewise.store.build import write_store
from wedgewise.store.orient import Wanted

ORDERED, DEALT = Rectilinear(np.linspace(0, 10**6, 21).astype(np.int64)), Hashed(10**6, 12)
MANY = Rectilinear(np.linspace(0, 10**6, 65).astype(np.int64))


@dataclass(frozen=True, slots=True)
class Imagined:
    """Blocks that have arcs, and are never read."""

    partition: Partition

    @property
    def counts(self) -> BlockCounts:
        parts = self.partition.parts
        arcs = np.full((parts, parts), 1000, np.int64)
        return BlockCounts(
            np.triu(arcs) if self.partition.is_ordered else arcs, np.array(self.partition.sizes, np.int64)
        )

    def block(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("no block is read")


def traced(make: Callable[[], Any]) -> int:
    """The most that something takes while it is made."""
    tracemalloc.start()
    try:
        kept = make()
        peak = tracemalloc.get_traced_memory()[1]
        del kept
        return peak
    finally:
        tracemalloc.stop()


def lists_of_a_count(source: Any) -> Any:
    """All that `Counting.run` holds of tasks when the last one is finished."""
    memory = TaskMemory(source.counts, triple_answer("keystone"), find("keystone", "cpu").settings(None), 1)
    counting = Counting(source, memory, 1 << 40)
    with each_task_by_itself():
        batches, results = counting.batches(counting.tasks), TaskResults.none(counting.all_tasks)
    assert len(batches) == len(counting.tasks)
    cache = BlockCache[None](lambda pairs: [None] * len(pairs), memory.block, batches.pairs, len(batches))
    results.put(*found_by(counting.tasks))
    return counting, batches, cache, results, results.by_seconds


def found_by(tasks: TaskTable) -> Finished:
    """What tasks may have found."""
    numbers = tasks.number.astype(np.uint64)
    return Finished(tasks.number, numbers + np.uint64(10**9), numbers, tasks.number.astype(np.float64))


def lists_of_owners(source: Any) -> Any:
    """All that `SlicedAnswer.compute` holds of them."""
    sliced = SlicedAnswer(source, "edge_support", available_bytes=1 << 40)
    cuts, ends = sliced._cut_all(sliced.slices, 0)  # which is too little for two tasks in a batch

    def pairs(step: int) -> set[tuple[int, int]]:
        return sliced._pairs(sliced._tasks(cuts, step))

    return sliced, cuts, ends, BlockCache[None](lambda _: [], lambda _: 0, pairs, len(cuts.work))


def lists_of_a_driver(source: Any) -> Any:
    """All that a driver of workers holds of them when the last one has arrived."""
    all_tasks = task_count(source.partition)
    busy = busy_tasks(source.partition, source.counts).in_reuse_order()
    driver = Driver(ClusterWork(source, None, "", busy, all_tasks, None))  # type: ignore[arg-type]
    batches = make_batches(replace(busy, work=np.full(len(busy), 1e15)), 2)  # each by itself
    assert len(batches) == len(busy)
    driver._keep(found_by(busy))
    return driver, batches


def lists_of_a_hybrid_count(source: Any) -> Any:
    """All that threads hold of them when they have counted each."""
    pairing = pair_up("auto", {"places": "cpu"})
    oriented_shape = OrientedShape(Shape(10**6, int(source.counts.arcs.sum()), 10**7))
    planned = hybrid._planned(source, pairing, Resources.find(pairing, 1 << 40, 2), "count", oriented_shape, 0, (), 1)
    results, tasks = TaskResults.none(planned.division.everything), planned.division.tasks
    running = hybrid._Running(planned, results.is_done, results.put)
    for at, task in enumerate(tasks):
        running.pool.finish(tasks.take(slice(at, at + 1)), 10**9 + task.number, 10**9, 1.5)
        span = BatchSpan(task.number, "cpu", "thread 1", 1.5 * at, 1.5 * at + 1, float(tasks.work[at]))
        running.pool.spans.append(span)
    return planned, running, results, results.by_seconds


LISTS: dict[Callable[[Any], Any], int] = {
    lists_of_a_count: COUNTED_TASK_BYTES,
    lists_of_owners: SLICED_TASK_BYTES,
    lists_of_a_driver: DRIVEN_TASK_BYTES,
    lists_of_a_hybrid_count: HYBRID_TASK_BYTES,
}


@pytest.mark.parametrize("make", LISTS)
@pytest.mark.parametrize("partition", [ORDERED, DEALT])
def test_lists_take_what_is_stated(partition: Partition, make: Callable[[Any], Any]) -> None:
    source, tasks = Imagined(partition), task_count(partition)
    assert tasks == len(table_of(partition))
    make(Imagined(Hashed(10, 2)))  # loads what is loaded once
    assert 0.7 * LISTS[make] * tasks < traced(lambda: make(source)) <= LISTS[make] * tasks + 100_000


@pytest.mark.deep
@pytest.mark.parametrize("make", [lists_of_a_count, lists_of_owners])
def test_long_lists_take_what_is_stated(make: Callable[[Any], Any]) -> None:
    test_lists_take_what_is_stated(MANY, make)


def test_too_many_tasks_are_refused_before_they_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = write_store(fixture_pairs("karate"), tmp_path / "store", parts=4)

    def listed(*_: object) -> Any:
        raise AssertionError("tasks were listed")

    lists = {"count": COUNTED_TASK_BYTES, "triangles": SLICED_TASK_BYTES, "k_truss": 2 * SLICED_TASK_BYTES}
    for question, each in lists.items():
        details: dict[str, Any] = {"k": 4} if question == "k_truss" else {}
        need = 20 * each
        with monkeypatch.context() as patch:
            for module in (outofcore, sliced_answer):
                patch.setattr(module, "busy_tasks", listed)
            patch.setattr(outofcore, "available_after_loading", lambda *_, need=need: need - 1)
            patch.setattr(sliced_answer, "bytes_for_slices", lambda *_, need=need: need - 1)
            refusal = (
                rf"store: lists of 20 tasks of 4 parts take {need:,} bytes and {need - 1:,} are left; .*fewer parts"
            )
            with pytest.raises(MemoryLimitError, match=refusal):
                ww.run(question, store.folder, **details)
        assert ww.explain(question, store.folder, **details).bytes_needed > need
    assert f"{20 * COUNTED_TASK_BYTES:,} bytes of tables of tasks" in str(ww.explain("count", store.folder))


def test_parts_are_chosen_with_lists_in_mind() -> None:
    """More parts make smaller blocks and longer lists: what keeps to a limit has both."""
    counts = Imagined(ORDERED).counts
    lists = COUNTED_TASK_BYTES * task_count(ORDERED)
    fits = [
        Wanted("rectilinear", None, room, 1).keeps_to_it(counts, ORDERED, "count")
        for room in (lists - 1, lists + 1, lists + (1 << 24))
    ]
    assert fits == [False, False, True]


def test_lines_are_no_longer_than_is_stated(tmp_path: Path) -> None:
    tasks = TASKS_PER_LINE + 1
    journal = Journal(tmp_path / JOURNAL, key_of(a=1), 16_777_216)
    columns = np.full(tasks, 2**63, np.uint64), np.full(tasks, 2**63, np.uint64), np.full(tasks, 1.2345678901234567e05)
    journal.add(16_777_215 - np.arange(tasks), *columns)
    lines = (tmp_path / JOURNAL).read_bytes().splitlines(keepends=True)
    assert len(lines) == 2
    assert all(len(line) <= MAX_LINE_BYTES for line in lines)
    assert sum(map(len, lines)) <= journal_bytes(tasks)


class Usage(NamedTuple):
    free: int


def test_a_journal_has_to_fit_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = write_store(fixture_pairs("karate"), tmp_path / "store", parts=2)
    assert f"up to {journal_bytes(4):,} bytes of disk for finished tasks" in str(ww.explain("count", store.folder))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(journal_bytes(4) - 1))
    with pytest.raises(StorageError, match=r"count keeps 1,408 bytes on disk while it works, and 1,407 are free there"):
        ww.count(store.folder)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(journal_bytes(4)))
    assert ww.count(store.folder) == 45


def test_offsets_of_many_parts_are_stated_and_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path of many vertices: its blocks have hardly an arc, and an offset per row each."""
    pairs = np.column_stack([np.arange(9_999), np.arange(1, 10_000)])
    said: list[str] = []
    store = write_store(pairs, tmp_path / "store", parts=8, scheme="hashed", say=said.append)
    files = sum((store.folder / record.file).stat().st_size for record in store.files()) - 4 * 10_000
    stated = int(said[1].split(" take ")[1].split(" ")[0].replace(",", ""))
    assert stated - 2 * 4096 * 64 <= files <= stated
    assert f"{4 * (8 * 10_000 + 64):,} of them for offsets" in said[1]
    free = iter([10**9, 10**9, stated - 1])
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(next(free)))
    with pytest.raises(StorageError, match=rf"64 blocks take {stated:,} bytes of disk and .*or ask for fewer parts"):
        write_store(pairs, tmp_path / "other", parts=8, scheme="hashed")
    assert names_in(tmp_path) == ["store"]


def test_labels_that_were_numbered_are_part_of_the_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rooms: list[int] = []
    really = store_build._bytes_beside_vertices

    def room_beside(slots: int, wanted: Wanted, room: int) -> int:
        rooms.append(room)
        return really(slots, wanted, room)

    monkeypatch.setattr(store_build, "_bytes_beside_vertices", room_beside)
    monkeypatch.setattr(store_build, "available_after_loading", lambda *_: 1 << 28)
    monkeypatch.setattr("wedgewise.machine.hardware.resident_bytes", lambda: 0)
    pairs: NDArray[Any] = fixture_pairs("karate")
    for number, factor in enumerate((1, 2**40)):
        write_store(pairs * factor, tmp_path / str(number))
    assert rooms == [1 << 28, (1 << 28) - 8 * 34]


def test_arrays_by_vertex_take_what_is_stated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While slots are ranked, for labels that have to be numbered as well."""
    slots, peaks = 100_000, []
    really = settle.rank

    def ranked(*arguments: Any) -> Any:
        tracemalloc.start()
        try:
            return really(*arguments)
        finally:
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()

    monkeypatch.setattr(store_build, "rank", ranked)
    ring = np.column_stack([np.arange(slots), (np.arange(slots) + 1) % slots])
    for number, factor in enumerate((1, 2**40)):
        write_store(ring * factor, tmp_path / str(number), parts=1)
    beside = 5 * slots  # degrees and loops were there before
    assert all(beside + peak <= settle.SLOT_BYTES * slots + 200_000 for peak in peaks), peaks
