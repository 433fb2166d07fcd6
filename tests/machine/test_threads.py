"""Tasks on threads: order, failures, progress, and signals."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from wedgewise.machine.threads import run_tasks


@pytest.mark.parametrize("threads", [1, 2, 7, 50])
def test_tasks_come_back_in_order_with_private_workers(threads: int) -> None:
    busy = [False] * threads

    def task(number: int, worker: int) -> int:
        assert not busy[worker]
        busy[worker] = True
        busy[worker] = False
        return number * number

    assert run_tasks(task, 40, threads) == [number * number for number in range(40)]
    assert run_tasks(task, 0, threads) == []


@pytest.mark.parametrize("threads", [1, 3])
def test_a_failing_task_stops_the_others_and_is_raised(threads: int) -> None:
    ran: list[int] = []

    def task(number: int, _worker: int) -> None:
        ran.append(number)
        if number == 5:
            raise ZeroDivisionError("task 5")

    before = threading.active_count()
    with pytest.raises(ZeroDivisionError, match="task 5"):
        run_tasks(task, 10_000, threads)
    assert len(ran) < 10_000
    assert threading.active_count() == before


def test_progress_is_told_while_tasks_run() -> None:
    is_told, told = threading.Event(), list[int]()

    def task(number: int, _worker: int) -> bool:
        return is_told.wait(60)

    def progress(done: int) -> None:
        told.append(done)
        is_told.set()

    assert run_tasks(task, 3, 2, progress) == [True] * 3
    assert (told[0], told[-1]) == (0, 3)


@pytest.mark.parametrize("room", [0, 1, 2])
def test_a_system_without_room_for_threads_gets_the_work_done(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[threading.Thread] = []
    start = threading.Thread.start

    def limited(thread: threading.Thread) -> None:
        if len(started) == room:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", limited)
    assert run_tasks(lambda number, worker: number, 20, 4) == list(range(20))
    assert len(started) == room


@pytest.mark.parametrize("threads", [1, 2])
def test_progress_ends_at_the_total(threads: int) -> None:
    told: list[int] = []
    run_tasks(lambda number, worker: None, 30, threads, told.append)
    assert told[-1] == 30
    assert told == sorted(told)


@pytest.mark.skipif(os.name != "posix", reason="signals as on POSIX")
def test_a_signal_that_another_thread_took_is_heard() -> None:
    """The system may hand a signal to any thread that does not block it, which wakes nobody else."""
    heard, in_time = threading.Event(), list[bool]()

    def hear(_number: int, _frame: object) -> None:
        heard.set()
        raise KeyboardInterrupt

    def task(number: int, _worker: int) -> None:
        if number == 0:
            time.sleep(0.2)  # until the calling thread waits
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1})
            signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)
        in_time.append(heard.wait(20))

    before = signal.signal(signal.SIGUSR1, hear)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    try:
        with pytest.raises(KeyboardInterrupt):
            run_tasks(task, 2, 2)
        assert all(in_time)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGUSR1, before)
