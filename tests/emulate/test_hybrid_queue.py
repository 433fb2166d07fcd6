"""Who takes which task, block and range: the parts of a hybrid run, one at a time."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from emulate.hybrid_cases import BrokenError, planned_sizes
from wedgewise.algorithms._contract import Pass
from wedgewise.errors import MemoryLimitError, VerificationError
from wedgewise.run._hybrid_queue import SCHEDULES, TaskQueue
from wedgewise.run._hybrid_workers import HostRun, HostWorker, WorkerPool
from wedgewise.run.block_caches import Lease, SharedBlocks
from wedgewise.stages.blocks import Task
from wedgewise.stages.tasks import Counts


def a_queue(count: int, **options: Any) -> TaskQueue:
    tasks = [Task(number, 0, 0, number) for number in range(count)]
    given = {"streams": 2, "threads": 2, "schedule": "cutoff", "cutoff": count // 2, "device_only": (), **options}
    estimates = {number: float(count - number) for number in range(count)}
    return TaskQueue(tasks, (), estimates=estimates, **given)


def numbers(take: Callable[[], Task | None]) -> list[int]:
    return [task.number for task in iter(take, None)]


def test_streams_take_turns_from_the_heavy_end_and_threads_keep_to_the_cutoff() -> None:
    queue = a_queue(10)
    assert numbers(queue.for_thread) == [9, 8, 7, 6, 5]
    assert queue.upcoming(1) == Task(1, 0, 0, 1)
    assert numbers(lambda: queue.for_stream(1)) == [1, 3, 0, 2, 4]
    assert queue.for_stream(0) is None
    assert set(queue.uses.values()) == {0}
    queue = a_queue(6, schedule="dynamic")
    assert [queue.for_thread(), queue.for_stream(1), queue.for_thread()] == [Task(at, 0, 0, at) for at in range(3)]
    assert numbers(a_queue(4, streams=0).for_thread) == [0, 1, 2, 3]
    assert a_queue(4, threads=0).for_thread() is None


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_no_two_streams_prepare_for_the_same_task(schedule: str) -> None:
    queue = a_queue(5, schedule=schedule, streams=3, threads=0)
    for stream in range(3):
        assert queue.for_stream(stream) == Task(stream, 0, 0, stream)
    coming = {stream: queue.upcoming(stream) for stream in (1, 0)}
    assert {task.number for task in coming.values() if task is not None} == {3, 4}
    assert queue.upcoming(2) in coming.values()  # nothing else is left
    assert {stream: queue.for_stream(stream) for stream in (1, 0)} == coming
    assert queue.upcoming(2) is queue.for_stream(2) is None


def test_dynamic_streams_go_on_where_a_thread_took_what_they_prepared_for() -> None:
    queue = a_queue(5, schedule="dynamic")
    assert [queue.upcoming(stream) for stream in (0, 1, 0)] == [Task(at, 0, 0, at) for at in (0, 1, 0)]
    assert queue.for_thread() == Task(0, 0, 0, 0)
    assert queue.upcoming(0) == Task(2, 0, 0, 2)
    assert [queue.for_stream(stream) for stream in (1, 0)] == [Task(at, 0, 0, at) for at in (1, 2)]


def paced(thread_seconds: float, stream_seconds: float, **options: Any) -> TaskQueue:
    """A guarded queue of tasks of 10, 9 … 1, of which either side has done two, so that paces are known."""
    queue = a_queue(10, schedule="guarded", cutoff=3, **options)
    for _ in range(2):
        there, here = queue.for_stream(0), queue.for_thread()
        assert there is not None
        assert here is not None
        queue.finish(there, "stream", stream_seconds * (10 - there.number), on_device=True)
        queue.finish(here, "thread", thread_seconds * (10 - here.number), on_device=False)
    return queue


def test_a_guarded_thread_leaves_what_gpus_would_end_before() -> None:
    """Tasks of 10, 8, 2 and 1 are done, 34 are left: two streams take 17 / 2 seconds, a thread three times its pace."""
    assert paced(1.4, 0.5).for_thread() == Task(7, 0, 0, 7)
    assert paced(1.5, 0.5).for_thread() is None
    queue = paced(1.5, 0.5)
    assert queue.hand_over(Task(6, 0, 0, 6))
    assert queue.for_thread() == Task(6, 0, 0, 6)


def test_guarded_threads_go_by_a_guess_until_a_pace_is_seen() -> None:
    """55 in all, 1 for a thread: the guesses say 2 · 1 · 1 against 0.05 / 2 · 55, then 0.09 / 2 · 55."""
    assert a_queue(10, schedule="guarded", guesses=(1.0, 0.05), threads=16).for_thread() is None
    queue = a_queue(10, schedule="guarded", guesses=(1.0, 0.09), threads=16)
    assert queue.for_thread() == Task(9, 0, 0, 9)
    assert queue.for_thread() is None
    for _ in range(2):
        task = queue.for_stream(0)
        assert task is not None
        seen = queue.changes
        queue.finish(task, "stream", 1.0 * (10 - task.number), on_device=True)
    assert queue.changes == seen + 1  # the GPU is slower than it was thought to be: threads look again
    assert queue.for_thread() == Task(8, 0, 0, 8)


def test_guarded_threads_leave_all_to_gpus_that_are_far_faster() -> None:
    """A task of 1 among 20 could be done in time; but two streams do a unit in 0.1 seconds, threads in 0.45, then 0.35.

    Twice that is too long, until threads are seen to be as fast as was guessed.
    """
    assert a_queue(20, schedule="guarded", guesses=(1.8, 0.2), threads=4).for_thread() is None
    assert a_queue(20, schedule="guarded", guesses=(1.4, 0.2), threads=4).for_thread() is not None
    queue = a_queue(20, schedule="guarded", guesses=(1.8, 0.2), threads=4)
    for number in (18, 17):
        queue.finish(Task(number, 0, 0, number), "thread", 1.8 * (20 - number), on_device=False)
    assert queue.for_thread() is not None


def test_threads_are_not_woken_for_what_they_leave_to_gpus() -> None:
    queue = paced(9.0, 0.1)
    seen, task = queue.changes, queue.for_stream(0)
    assert task is not None
    queue.finish(task, "stream", 0.1 * (10 - task.number), on_device=True)
    assert queue.changes == seen


def test_guarded_streams_leave_all_where_threads_would_end_before() -> None:
    """34 are left: a thread takes 34 seconds, a stream 9 times half its pace for the next one, twice that at worst."""
    assert paced(1.0, 3.7, threads=1).for_stream(1) == Task(1, 0, 0, 1)
    queue = paced(1.0, 3.9, threads=1)
    assert queue.for_stream(1) is None
    assert numbers(queue.for_thread) == [7, 6, 5, 4, 3, 1]  # beyond the cut-off
    alone = paced(1.0, 3.9, threads=1, device_only=frozenset({4}))
    assert numbers(lambda: alone.for_stream(1)) == [1, 3, 5, 7, 4, 6]  # one of them is for streams alone: they stay


def test_nobody_waits_for_the_disk_to_tell_what_happened() -> None:
    found: list[tuple[int, bool]] = []
    blocks: SharedBlocks[Any] = SharedBlocks(0, lambda pair: 0, lambda pair: None, {})
    crew = WorkerPool(a_queue(2), blocks, {}, lambda partial: found.append((partial.task, crew.lock.locked())))
    crew.finish(Task(1, 0, 0, 1), 5, 6)
    assert found == [(1, False)]
    with pytest.raises(VerificationError, match="task 1 was counted twice"):
        crew.finish(Task(1, 0, 0, 1), 5, 6)
    assert len(found) == 1


def a_thread(crew: WorkerPool) -> HostWorker:
    memory = planned_sizes(Counts(np.zeros((1, 1), np.int64), np.zeros(1, np.int64))).memory
    return HostWorker(crew, memory, "thread")


def a_crew(room: int) -> tuple[WorkerPool, list[int]]:
    """One task, so many bytes for blocks and work, and what was found."""
    found: list[int] = []
    blocks: SharedBlocks[Any] = SharedBlocks(room, lambda pair: 0, lambda pair: "block", {})
    return WorkerPool(a_queue(1), blocks, {0: 1.0}, lambda partial: found.append(partial.triangles)), found


def ranges(count: int) -> tuple[Pass, ...]:
    return (Pass(np.arange(count + 1), lambda begin, end, _: (1, 2)),)


def test_idle_threads_help_where_there_is_room_and_something_left() -> None:
    crew, found = a_crew(room=1 << 20)
    run = HostRun(Task(0, 0, 0, 0), Lease({}, 0), ranges(3), 0.0)
    crew.begun += [HostRun(Task(0, 0, 0, 0), Lease({}, 0), (), 0.0), run]
    a_full_crew, nothing = a_crew(room=0)
    a_full_crew.begun = crew.begun
    assert not a_thread(a_full_crew)._help()
    assert a_thread(crew)._help()
    assert not a_thread(crew)._help()
    assert (found, nothing, run.tests) == ([3], [], 6)
    assert [span.helps for span in crew.spans] == [True]


def test_a_helper_that_finds_all_ranges_taken_looks_on(monkeypatch: pytest.MonkeyPatch) -> None:
    crew, found = a_crew(room=1 << 20)
    crew.begun.append(HostRun(Task(0, 0, 0, 0), Lease({}, 0), ranges(2), 0.0))
    monkeypatch.setattr(HostRun, "take", lambda run: None)  # another thread was faster
    assert not a_thread(crew)._help()
    assert (found, crew.spans) == ([], [])


def test_others_are_roused_for_a_task_of_several_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    for count in (1, 2):
        crew, found = a_crew(room=1 << 20)
        monkeypatch.setattr(HostWorker, "_passes", lambda worker, task, lease, count=count: ranges(count))
        before = crew.queue.changes
        a_thread(crew)._begin(Task(0, 0, 0, 0))
        assert found == [count]
        assert crew.queue.changes - before == count  # the end of a task is one


def test_a_task_that_never_fits_is_named_unless_all_is_over() -> None:
    crew, found = a_crew(room=0)
    with pytest.raises(MemoryLimitError, match="task 0 and its blocks do not fit the memory; partition into more"):
        a_thread(crew)._begin(Task(0, 0, 0, 0))
    crew.queue.stop()
    a_thread(crew)._begin(Task(0, 0, 0, 0))
    assert found == []


def test_idle_threads_hear_of_every_pass_that_they_can_help_with() -> None:
    queue = a_queue(1)
    blocks: SharedBlocks[Any] = SharedBlocks(0, lambda pair: 0, lambda pair: None, {})
    crew = WorkerPool(queue, blocks, {0: 1.0}, lambda partial: None)
    passes = tuple(Pass(np.arange(ranges + 1), lambda begin, end, _: (1, 2)) for ranges in (3, 1, 2))
    task = Task(0, 0, 0, 0)
    run = HostRun(task, Lease({}, 0), passes, 0.0)
    worker = a_thread(crew)
    before = queue.changes
    assert worker._count_ranges(run) == 6
    assert queue.changes == before + 1  # for the pass of two ranges: one range is taken by who opened it
    assert (run.triangles, run.tests) == (6, 12)


def test_blocks_are_given_up_by_tasks_to_come_and_never_while_held() -> None:
    loaded: list[tuple[int, int]] = []
    uses = {(0, 0): 3, (0, 1): 1, (1, 1): 2}

    def load(pair: tuple[int, int]) -> str:
        loaded.append(pair)
        return str(pair)

    cache = SharedBlocks(30, lambda pair: 10, load, uses)
    held = cache.lease({(0, 0), (0, 1)}, 5)
    assert held is not None
    assert cache.lease({(1, 1)}, 0, wait=False) is None
    cache.release(held)
    again = cache.lease({(1, 1)}, 10)
    assert again is not None
    assert loaded == [(0, 0), (0, 1), (1, 1)]
    cache.release(again)
    kept = cache.lease({(0, 0)}, 0)
    assert kept is not None
    assert loaded == [(0, 0), (0, 1), (1, 1)]
    assert cache.lease({(0, 1)}, 11, wait=False) is None
    cache.release(kept)
    assert cache.lease({(0, 1)}, 21) is None  # never
    assert cache.peak <= 30


def test_what_is_held_stays_beyond_a_smaller_budget() -> None:
    cache: SharedBlocks[str] = SharedBlocks(20, lambda pair: 10, str, {})
    first, second = (cache.lease({(number, 0)}, 0) for number in (0, 1))
    assert first is not None
    assert second is not None
    assert cache.shrink(20) == 10
    assert cache.lease({(2, 0)}, 0, wait=False) is None
    cache.release(first)
    assert (list(cache._slots), cache.shrink(10)) == ([(1, 0)], 5)
    cache.release(second)
    assert not cache._slots


def test_a_block_that_could_not_be_loaded_is_not_leased_while_others_let_go_of_it() -> None:
    cache: SharedBlocks[str] = SharedBlocks(20, lambda pair: 10, str, {})
    lease = cache.lease({(0, 0)}, 0)
    assert lease is not None
    cache._slots[0, 0].failed = True
    assert cache.lease({(0, 0)}, 0, wait=False) is None
    cache.release(lease)
    assert cache.lease({(0, 0)}, 0, wait=False) is not None


def test_a_block_that_one_cannot_load_another_tries_again() -> None:
    begun, go_on = threading.Event(), threading.Event()
    calls = itertools.count()

    def load(pair: tuple[int, int]) -> str:
        if next(calls) == 0:
            begun.set()
            go_on.wait(10)
            raise BrokenError("the first time")
        return "block"

    cache = SharedBlocks(30, lambda pair: 10, load, {})
    failures: list[BaseException] = []

    def first() -> None:
        try:
            cache.lease({(0, 0)}, 0)
        except BrokenError as error:
            failures.append(error)

    thread = threading.Thread(target=first)
    thread.start()
    begun.wait(10)
    threading.Timer(0.05, go_on.set).start()
    lease = cache.lease({(0, 0)}, 0)
    thread.join()
    assert len(failures) == 1
    assert lease is not None
    assert lease.blocks == {(0, 0): "block"}
