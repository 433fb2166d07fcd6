"""Who takes which task, block and range: the parts of a hybrid run, one at a time."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from helpers.commands import PATIENCE

from emulate.hybrid_cases import BrokenError, planned_sizes
from wedgewise.algorithms._contract import BatchWork, Pass
from wedgewise.errors import MemoryLimitError, VerificationError
from wedgewise.run._hybrid_queue import STARTING_SECONDS, TaskQueue
from wedgewise.run._hybrid_workers import HostRun, HostWorker, WorkerPool
from wedgewise.run.block_caches import Lease, SharedBlocks
from wedgewise.stages.tasks import BlockCounts, TaskTable


def some_tasks(work: list[float], first: int = 0) -> TaskTable:
    """Tasks of three parts with these numbers and so much work each."""
    none = np.zeros(len(work), np.int32)
    return TaskTable(np.arange(first, first + len(work)), none, none, none, none, np.array(work, np.float64), 3, 1)


def a_queue(
    count: int, device_only: Collection[int] = (), host_tasks: TaskTable | None = None, **options: Any
) -> TaskQueue:
    """Tasks of `count`, `count` − 1 … 1, which are taken one by one."""
    given = {"streams": 2, "threads": 2, "schedule": "cutoff", "cutoff": count // 2, "fits_host": one, **options}
    alone = np.isin(np.arange(count), list(device_only))
    return TaskQueue(
        some_tasks([float(count - at) for at in range(count)]), host_tasks or some_tasks([]), alone, **given
    )


def one(tasks: TaskTable) -> bool:
    return len(tasks) == 1


def numbers(take: Callable[[], TaskTable | None]) -> list[int]:
    return [number for tasks in iter(take, None) for number in tasks.number.tolist()]


def one_of(tasks: TaskTable | None) -> int | None:
    return None if tasks is None else int(tasks.number[0])


def test_streams_take_from_the_heavy_end_and_threads_keep_to_the_cutoff() -> None:
    queue = a_queue(10)
    assert numbers(queue.for_thread) == [9, 8, 7, 6, 5]
    assert numbers(lambda: queue.for_stream(one)) == [0, 1, 2, 3, 4]
    assert not queue.uses.any()
    queue = a_queue(6, schedule="dynamic")
    assert [one_of(queue.for_thread()), one_of(queue.for_stream(one)), one_of(queue.for_thread())] == [0, 1, 2]
    assert numbers(a_queue(4, streams=0).for_thread) == [0, 1, 2, 3]
    assert a_queue(4, threads=0).for_thread() is None


def test_batches_have_a_share_of_what_is_left_and_become_smaller() -> None:
    queue = TaskQueue(
        some_tasks([1.0] * 80),
        some_tasks([]),
        np.zeros(80, np.bool_),
        streams=2,
        threads=1,
        schedule="cutoff",
        cutoff=40,
    )
    taken = [len(batch) for batch in iter(lambda: queue.for_stream(lambda _: True), None)]
    assert taken[:3] == [20, 15, 11]  # a quarter each
    assert taken == sorted(taken, reverse=True)
    assert sum(taken) == 80
    half = TaskQueue(
        some_tasks([1.0] * 80),
        some_tasks([]),
        np.zeros(80, np.bool_),
        streams=2,
        threads=1,
        schedule="cutoff",
        cutoff=40,
    )
    assert len(half.for_stream(lambda tasks: len(tasks) <= 7) or ()) == 5  # 20, 10, 5
    mine = half.for_thread()
    assert mine is not None
    assert mine.number.tolist() == list(range(79, 59, -1))  # of the 40 behind the cut-off


def test_a_batch_takes_no_longer_than_it_is_to() -> None:
    work, none = some_tasks([1.0] * 80), np.zeros(80, np.bool_)
    queue = TaskQueue(
        work, some_tasks([]), none, streams=1, threads=1, schedule="cutoff", cutoff=0, guesses=(0.025, 0.01)
    )
    assert [len(queue.for_stream(lambda _: True) or ()), len(queue.for_thread() or ())] == [5, 2]


def test_a_batch_of_a_stream_is_worth_starting() -> None:
    """Starting one keeps the host busy: what takes less than that is not cut, whatever share it is."""
    work, none = some_tasks([1.0] * 80), np.zeros(80, np.bool_)

    def sizes(seconds: float) -> list[int]:
        guesses = (0.025, seconds)
        queue = TaskQueue(
            work, some_tasks([]), none, streams=4, threads=0, schedule="cutoff", cutoff=0, guesses=guesses
        )
        return [len(tasks) for tasks in iter(lambda: queue.for_stream(lambda _: True), None)]

    assert sizes(STARTING_SECONDS / 80) == [80]
    assert sizes(STARTING_SECONDS / 5) == [20] * 4
    assert sizes(STARTING_SECONDS)[:2] == [10, 8]


def test_tasks_that_are_put_back_are_taken_again() -> None:
    queue = a_queue(6)
    batch = queue.for_stream(lambda _: True)
    assert batch is not None
    uses = queue.uses.copy()
    queue.put_back(batch)
    assert queue.uses.sum() == uses.sum() + 3 * len(batch)
    assert numbers(lambda: queue.for_stream(one)) == list(range(6))


def test_threads_share_what_is_for_them_alone() -> None:
    queue = a_queue(0, host_tasks=some_tasks([1.0] * 8), fits_host=lambda tasks: len(tasks) < 3)
    assert [len(tasks) for tasks in iter(queue.for_thread, None)] == [2, 1, 1, 1, 1, 1, 1]


def paced(thread_seconds: float, stream_seconds: float, **options: Any) -> TaskQueue:
    """A guarded queue of tasks of 10, 9 … 1, of which either side has done two, so that paces are known."""
    queue = a_queue(10, schedule="guarded", cutoff=3, **options)
    for _ in range(2):
        there, here = queue.for_stream(one), queue.for_thread()
        assert there is not None
        assert here is not None
        queue.finish(there, "stream", stream_seconds * float(there.work.sum()), on_device=True)
        queue.finish(here, "thread", thread_seconds * float(here.work.sum()), on_device=False)
    return queue


def test_a_guarded_thread_leaves_what_gpus_would_end_before() -> None:
    """Tasks of 10, 9, 2 and 1 are done, 33 are left: two streams take 33 / 4 seconds, a thread three times its pace."""
    assert one_of(paced(1.35, 0.5).for_thread()) == 7
    assert paced(1.5, 0.5).for_thread() is None
    queue = paced(1.5, 0.5)
    taken = queue.for_stream(one)
    assert taken is not None
    assert queue.hand_over(taken)
    assert one_of(queue.for_thread()) == 2


def test_guarded_threads_go_by_a_guess_until_a_pace_is_seen() -> None:
    """55 in all, 1 for a thread: the guesses say 2 · 1 · 1 against 0.05 / 2 · 55, then 0.09 / 2 · 55."""
    assert a_queue(10, schedule="guarded", guesses=(1.0, 0.05), threads=16).for_thread() is None
    queue = a_queue(10, schedule="guarded", guesses=(1.0, 0.09), threads=16)
    assert one_of(queue.for_thread()) == 9
    assert queue.for_thread() is None
    for _ in range(2):
        tasks = queue.for_stream(one)
        assert tasks is not None
        seen = queue.changes
        queue.finish(tasks, "stream", 1.0 * float(tasks.work.sum()), on_device=True)
    assert queue.changes == seen + 1  # the GPU is slower than it was thought to be: threads look again
    assert one_of(queue.for_thread()) == 8


def test_guarded_threads_leave_all_to_gpus_that_are_far_faster() -> None:
    """A task of 1 among 20 could be done in time; but two streams do a unit in 0.1 seconds, threads in 0.45, then 0.35.

    Twice that is too long, until threads are seen to be as fast as was guessed.
    """
    assert a_queue(20, schedule="guarded", guesses=(1.8, 0.2), threads=4).for_thread() is None
    assert a_queue(20, schedule="guarded", guesses=(1.4, 0.2), threads=4).for_thread() is not None
    queue = a_queue(20, schedule="guarded", guesses=(1.8, 0.2), threads=4)
    for number in (18, 17):
        queue.finish(some_tasks([20.0 - number], number), "thread", 1.8 * (20 - number), on_device=False)
    assert queue.for_thread() is not None


def test_threads_are_not_woken_for_what_they_leave_to_gpus() -> None:
    queue = paced(9.0, 0.1)
    seen, tasks = queue.changes, queue.for_stream(one)
    assert tasks is not None
    queue.finish(tasks, "stream", 0.1, on_device=True)
    assert queue.changes == seen


def test_guarded_streams_leave_all_where_threads_would_end_before() -> None:
    """33 are left: a thread takes 33 seconds, a stream 8 times half its pace for the next one, twice that at worst."""
    assert one_of(paced(1.0, 4.0, threads=1).for_stream(one)) == 2
    queue = paced(1.0, 4.2, threads=1)
    assert queue.for_stream(one) is None
    assert numbers(queue.for_thread) == [7, 6, 5, 4, 3, 2]  # beyond the cut-off
    alone = paced(1.0, 4.2, threads=1, device_only={4})
    assert numbers(lambda: alone.for_stream(one)) == [2, 3, 4, 5, 6, 7]  # one of them is for streams alone: they stay


def no_blocks(room: int) -> SharedBlocks[Any]:
    return SharedBlocks(room, lambda pair: 0, lambda pairs: ["block"] * len(pairs))


def test_nobody_waits_for_the_disk_to_tell_what_happened() -> None:
    found: list[tuple[list[int], bool]] = []
    pool = WorkerPool(a_queue(2), no_blocks(0), 2, lambda tasks, *_: found.append((tasks.tolist(), pool.lock.locked())))
    first = some_tasks([1.0], 1)
    pool.finish(first, [5], [6], [0.0])
    assert found == [([1], False)]
    with pytest.raises(VerificationError, match="counted twice"):
        pool.finish(first, [5], [6], [0.0])
    assert len(found) == 1


def a_thread(pool: WorkerPool) -> HostWorker:
    return HostWorker(pool, planned_sizes(BlockCounts(np.zeros((3, 3), np.int64), np.zeros(3, np.int64))), "thread")


def a_pool(room: int) -> tuple[WorkerPool, list[int]]:
    """One task, so many bytes for blocks and work, and what was found."""
    found: list[int] = []
    return WorkerPool(a_queue(1), no_blocks(room), 1, lambda _tasks, triangles, *_: found.extend(triangles)), found


def work_of(*ranges: int) -> BatchWork:
    """Passes of so many ranges each, which find a triangle in each by two tests."""
    found = np.zeros((1, 3), np.uint64)

    def run(begin: int, end: int, _: Any) -> tuple[int, int]:
        found[0] += np.array([1, 2, 0], np.uint64)
        return 1, 2

    passes = tuple(Pass(np.arange(count + 1), run) for count in ranges)
    return BatchWork(passes, np.zeros(1, np.int64), found, np.zeros(1))


def a_run(*ranges: int) -> HostRun:
    return HostRun(some_tasks([1.0]), Lease({}, 0), work_of(*ranges), 0.0)


def test_idle_threads_help_where_there_is_room_and_something_left() -> None:
    pool, found = a_pool(room=1 << 20)
    run = a_run(3)
    pool.begun += [a_run(), run]
    a_full_pool, nothing = a_pool(room=0)
    a_full_pool.begun = pool.begun
    assert not a_thread(a_full_pool)._help()
    assert a_thread(pool)._help()
    assert not a_thread(pool)._help()
    assert (found, nothing) == ([3], [])
    assert [span.helps for span in pool.spans] == [True]


def test_a_helper_that_finds_all_ranges_taken_looks_on(monkeypatch: pytest.MonkeyPatch) -> None:
    pool, found = a_pool(room=1 << 20)
    pool.begun.append(a_run(2))
    monkeypatch.setattr(HostRun, "take", lambda run: None)  # another thread was faster
    assert not a_thread(pool)._help()
    assert (found, pool.spans) == ([], [])


def test_others_are_roused_for_a_batch_of_several_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    for count in (1, 2):
        pool, found = a_pool(room=1 << 20)
        monkeypatch.setattr(HostWorker, "_work_of", lambda worker, tasks, lease, count=count: work_of(count))
        before = pool.queue.changes
        a_thread(pool)._begin(some_tasks([1.0]))
        assert found == [count]
        assert pool.queue.changes - before == count  # the end of a task is one


def test_a_task_that_never_fits_is_named_unless_all_is_over() -> None:
    pool, found = a_pool(room=0)
    with pytest.raises(MemoryLimitError, match="task 0 and its blocks do not fit the memory; partition into more"):
        a_thread(pool)._begin(some_tasks([1.0]))
    pool.queue.stop()
    a_thread(pool)._begin(some_tasks([1.0]))
    assert found == []


def test_idle_threads_hear_of_every_pass_that_they_can_help_with() -> None:
    pool, _ = a_pool(room=0)
    run = a_run(3, 1, 2)
    before = pool.queue.changes
    assert a_thread(pool)._count_ranges(run) == 6
    assert pool.queue.changes == before + 1  # for the pass of two ranges: one range is taken by who opened it
    triangles, tests, _ = run.work.by_task()
    assert (triangles.tolist(), tests.tolist()) == ([6], [12])


def test_blocks_are_given_up_by_tasks_to_come_and_never_while_held() -> None:
    loaded: list[tuple[int, int]] = []
    uses = {(0, 0): 3, (0, 1): 1, (1, 1): 2}

    def load(pairs: list[tuple[int, int]]) -> list[str]:
        loaded.extend(pairs)
        return list(map(str, pairs))

    cache = SharedBlocks(30, lambda pair: 10, load, uses.__getitem__)
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


def test_who_waits_for_memory_gets_it_from_who_lets_go_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    cache: SharedBlocks[str] = SharedBlocks(10, lambda pair: 10, lambda pairs: list(map(str, pairs)))
    first = cache.lease({(0, 0)}, 0)
    assert first is not None
    waiting, wait = threading.Event(), cache._changed.wait

    def noticed(timeout: float | None = None) -> bool:
        waiting.set()
        return wait(timeout)

    monkeypatch.setattr(cache._changed, "wait", noticed)
    with ThreadPoolExecutor(1) as other:
        second = other.submit(cache.lease, {(1, 1)}, 0)
        assert waiting.wait(PATIENCE)
        assert not second.done()
        cache.release(first)
        lease = second.result(PATIENCE)
    assert lease is not None
    assert lease.blocks == {(1, 1): "(1, 1)"}


def test_what_is_held_stays_beyond_a_smaller_budget() -> None:
    cache: SharedBlocks[str] = SharedBlocks(20, lambda pair: 10, lambda pairs: list(map(str, pairs)))
    first, second = (cache.lease({(number, 0)}, 0) for number in (0, 1))
    assert first is not None
    assert second is not None
    assert cache.shrink() == 10
    assert cache.lease({(2, 0)}, 0, wait=False) is None
    cache.release(first)
    assert (list(cache._slots), cache.shrink()) == ([(1, 0)], 5)
    cache.release(second)
    assert not cache._slots


def test_a_block_that_could_not_be_loaded_is_not_leased_while_others_let_go_of_it() -> None:
    cache: SharedBlocks[str] = SharedBlocks(20, lambda pair: 10, lambda pairs: list(map(str, pairs)))
    lease = cache.lease({(0, 0)}, 0)
    assert lease is not None
    cache._slots[0, 0].failed = True
    assert cache.lease({(0, 0)}, 0, wait=False) is None
    cache.release(lease)
    assert cache.lease({(0, 0)}, 0, wait=False) is not None


def test_a_block_that_one_cannot_load_another_tries_again() -> None:
    begun, go_on = threading.Event(), threading.Event()
    calls = itertools.count()

    def load(pairs: list[tuple[int, int]]) -> list[str]:
        if next(calls) == 0:
            begun.set()
            go_on.wait(10)
            raise BrokenError("the first time")
        return ["block"] * len(pairs)

    cache = SharedBlocks(30, lambda pair: 10, load)
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
