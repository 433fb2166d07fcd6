"""Run numbered tasks on Python threads: kernels are serial and release the GIL, so this is all the threading there is.

Workers take task numbers from one shared counter (dynamic chunks). Tasks last about 50 ms at most, so Ctrl-C and a
failing task stop everything within that time; compiling a kernel, which a first task may have to, is ended. Nothing
outlives the call: forks and concurrent callers are safe.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from wedgewise.machine.jit import stop_compiling

TaskValue = TypeVar("TaskValue")

WAIT_SECONDS = 0.05


def run_tasks(
    task: Callable[[int, int], TaskValue],
    tasks: int,
    threads: int,
    on_done: Callable[[int], None] | None = None,
    on_stop: Callable[[], None] | None = None,
) -> list[TaskValue]:
    """Return ``[task(0, worker), …, task(tasks - 1, worker)]`` in task order, computed on `threads` threads.

    ``worker`` is below min(threads, tasks) and is held by one thread at a time, so it can index private workspaces.
    ``on_done(finished)`` is called in the calling thread, about twenty times a second and once at the end.
    ``on_stop()`` is called there before threads are waited for, whatever the reason, so that tasks that last can stop.
    """
    workers = min(threads, tasks)
    if workers <= 1:
        return _run_here(task, tasks, on_done)
    return _Threads(task, tasks, workers, on_done, on_stop).run()


def run_chunks(work: Callable[[slice], TaskValue], items: int, size: int, threads: int) -> list[TaskValue]:
    """What `work` returns for every chunk of so many items, in their order, on `threads` threads."""
    return run_tasks(lambda chunk, _: work(slice(chunk * size, (chunk + 1) * size)), -(-items // size), threads)


def _run_here(
    task: Callable[[int, int], TaskValue], tasks: int, on_done: Callable[[int], None] | None
) -> list[TaskValue]:
    results = []
    for number in range(tasks):
        results.append(task(number, 0))
        if on_done is not None:
            on_done(number + 1)
    return results


class _Threads(Generic[TaskValue]):
    """The threads of one `run_tasks` call."""

    def __init__(
        self,
        task: Callable[[int, int], TaskValue],
        tasks: int,
        workers: int,
        on_done: Callable[[int], None] | None,
        on_stop: Callable[[], None] | None,
    ) -> None:
        self.task = task
        self.tasks = tasks
        self.on_done = on_done
        self.on_stop = on_stop
        self.next_task = itertools.count()  # next() on it is atomic
        self.results: dict[int, TaskValue] = {}
        self.failure: BaseException | None = None
        self.stop = False
        self.threads = [
            threading.Thread(target=self._work, args=(worker,), name=f"wedgewise-{worker}", daemon=True)
            for worker in range(workers)
        ]
        self.ended = [threading.Event() for _ in range(workers)]  # an interrupted join forgets its thread

    def run(self) -> list[TaskValue]:
        try:
            if not self._start():
                self._work(0)
            for ended in self.ended[: len(self.threads)]:
                self._wait(ended)
        finally:
            self.stop = True
            if self.on_stop is not None:
                self.on_stop()
            while alive := [thread for thread in self.threads if thread.is_alive()]:
                stop_compiling([thread.ident for thread in alive if thread.ident is not None])
                alive[0].join(WAIT_SECONDS)
        if self.failure is not None:
            raise self.failure
        if self.on_done is not None:
            self.on_done(self.tasks)
        return [self.results[number] for number in range(self.tasks)]

    def _start(self) -> bool:
        """Start as many threads as the system has room for; without any, the caller does the work."""
        for number, thread in enumerate(self.threads):
            try:
                thread.start()
            except RuntimeError:  # no memory for another stack
                del self.threads[number:]
                break
        return bool(self.threads)

    def _wait(self, ended: threading.Event) -> None:
        while not ended.wait(WAIT_SECONDS):  # a signal that another thread took wakes nobody, and is heard in between
            if self.on_done is not None:
                self.on_done(len(self.results))

    def _work(self, worker: int) -> None:
        try:
            while not self.stop:
                number = next(self.next_task)
                if number >= self.tasks:
                    return
                self.results[number] = self.task(number, worker)
        except BaseException as error:  # handed to the calling thread, which raises it
            if self.failure is None:  # what comes later may be but a consequence
                self.failure = error
            self.stop = True
        finally:
            self.ended[worker].set()
