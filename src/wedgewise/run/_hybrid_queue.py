"""The tasks of a hybrid count: streams take heavy ones from one end of a queue, threads light ones from the other.

    heaviest                     cut-off                          lightest
    ├─ 0 1 2 │ 3 4 │ 5 6 … ─────────┼ … │ 8 9 │ 10 11 12 ──────────────┤
    batches of streams                   batches of threads

Nobody takes a task: what is taken is a batch of tasks that follow each other, of a share of what is left, so that
batches become smaller toward the end; but none of a stream is so small that starting it takes longer. A stream takes
its next batch while the present one runs, so that its blocks can be copied meanwhile. Schedules:

    cutoff     BBTC's (§5): threads take the lightest, and none before the cut-off
    guarded    the same, but threads leave all to devices that are over `FAR_FASTER` times as fast as all threads
               together, whose copies they would only slow down; a thread takes no more than it is done with before the
               devices are, at the pace seen so far or guessed, with all tasks; and streams that are seen to be so slow
               leave all to threads
    dynamic    tasks in the order of their numbers, each to whoever comes first (BBTC, table 5)

Without streams, threads take the heaviest first. Tasks that fit no device, or that did not fit one after
all, are for threads alone.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from math import inf

import numpy as np
from numpy.typing import NDArray

from wedgewise.run.batches import MAX_TASKS
from wedgewise.run.pace import BATCH_SECONDS, TaskPace
from wedgewise.stages.tasks import Pair, TaskTable

CUTOFF, GUARDED, DYNAMIC = SCHEDULES = ("cutoff", "guarded", "dynamic")
CAUTION = 2.0  # a task may take so much longer than it was thought to
FAR_FASTER = 8.0
STARTING_SECONDS = 5e-3  # that the host is busy with a batch of a stream, and other streams wait for that
BATCHES_LEFT = 2  # for each worker, of what is left when it takes one

Fits = Callable[[TaskTable], bool]


class TaskQueue:
    """Who does which batch; every method may be called by any thread.

    Parameters
    ----------
    tasks : for streams and threads, in the order of the schedule
    host_tasks : for threads alone
    device_only : which of `tasks` are for streams alone
    streams : how many streams take part
    threads : how many threads do
    schedule : one of `SCHEDULES`
    cutoff : how many of the tasks threads never take
    guesses : seconds that a thread and a stream may take for a unit of work
    fits_host : whether a batch and its blocks fit the host beside those of other threads

    Attributes
    ----------
    uses : by block, how many tasks that nobody has taken yet need it
    """

    def __init__(
        self,
        tasks: TaskTable,
        host_tasks: TaskTable,
        device_only: NDArray[np.bool_],
        *,
        streams: int,
        threads: int,
        schedule: str,
        cutoff: int,
        guesses: tuple[float, float] | tuple[None, None] = (None, None),
        fits_host: Fits = lambda _tasks: True,
    ) -> None:
        self.uses = np.zeros(tasks.parts**2, np.int64)
        self.changes = 0
        self._changed = threading.Condition()
        self._tasks = tasks
        self._host_tasks = deque([host_tasks] if len(host_tasks) else [])
        self._streams, self._threads, self._schedule = streams, threads, schedule
        self._cutoff = cutoff if streams and schedule != DYNAMIC else 0
        self._is_free = np.ones(len(tasks), np.bool_)
        self._for_threads = ~device_only
        self._is_left_to_threads = False
        self._unfinished = len(tasks) + len(host_tasks)
        self._stopped = False
        self._device_work = float(tasks.work.sum())  # that devices have to do or may do
        self._untaken_work = self._device_work
        self._here, self._there = map(TaskPace, guesses)
        self._fits_host = fits_host
        for table in (tasks, host_tasks):
            self._use(table, 1)

    def uses_of(self, pair: Pair) -> int:
        """How many tasks that nobody has taken yet need a block."""
        return int(self.uses[pair[0] * self._tasks.parts + pair[1]])

    @property
    def is_over(self) -> bool:
        """Whether all tasks are finished, or none may be begun any more."""
        return self._stopped or self._unfinished == 0

    def for_stream(self, fits: Fits) -> TaskTable | None:
        """The next batch of a stream, which has it from now on; None where there is none left."""
        with self._changed:
            free = self._free_positions(self._is_free)
            if self._stopped or len(free) == 0:
                return None
            if not self._is_worthwhile_there(float(self._tasks.work[free[0]])):
                self._is_left_to_threads, self._cutoff = True, 0
                self._notify()
                return None
            least = self._there.work_in(STARTING_SECONDS * self._streams, unknown=0.0)
            share = max(self._untaken_work / (BATCHES_LEFT * self._streams), least)
            most = min(share, self._there.work_in(BATCH_SECONDS))
            return self._take(self._some_of(free, most, fits))

    def for_thread(self) -> TaskTable | None:
        """A batch for a thread, which has it from now on; None where there is none at present."""
        with self._changed:
            if self._stopped or not self._threads:
                return None
            if self._host_tasks:
                return self._take_host_tasks()
            free = self._worthwhile_here()
            if len(free) == 0:
                return None
            most = min(self._share_of_thread(free), self._here.work_in(BATCH_SECONDS), self._most_worthwhile_here())
            chosen = self._take(self._some_of(free, most, self._fits_host))
            self._device_work -= float(chosen.work.sum())
            return chosen

    def hand_over(self, tasks: TaskTable) -> bool:
        """Leave a batch of a stream to the threads; whether there are any, and all of it fits the host."""
        with self._changed:
            if not self._threads or not self._for_threads[self._positions(tasks)].all():
                return False
            self._host_tasks.append(tasks)
            self._device_work -= float(tasks.work.sum())
            self._use(tasks, 1)
            self._notify()
            return True

    def put_back(self, tasks: TaskTable) -> None:
        """Tasks of a stream are nobody's again."""
        with self._changed:
            self._is_free[self._positions(tasks)] = True
            self._untaken_work += float(tasks.work.sum())
            self._use(tasks, 1)

    def finish(self, tasks: TaskTable, worker: str, seconds: float, *, on_device: bool) -> None:
        """A batch is finished, after so many seconds of a stream or of threads."""
        with self._changed:
            work = float(tasks.work.sum())
            (self._there if on_device else self._here).add(worker, work, seconds)
            if on_device:
                self._device_work -= work
            self._unfinished -= len(tasks)
            if self._unfinished == 0 or (on_device and len(self._worthwhile_here())):
                self._notify()

    def stop(self) -> None:
        """Nobody begins another task."""
        with self._changed:
            self._stopped = True
            self._notify()

    def rouse(self) -> None:
        """Let those who wait look again."""
        with self._changed:
            self._notify()

    def wait_for_threads_task(self) -> bool:
        """Sleep until there is a task for threads; whether there is one, before all are finished."""
        with self._changed:
            self._changed.wait_for(lambda: self.is_over or self._host_tasks or len(self._worthwhile_here()) > 0)
            return not self.is_over

    def wait_for_change(self, seen: int) -> None:
        """Sleep until there were more than `seen` changes, or the work is over."""
        with self._changed:
            self._changed.wait_for(lambda: self.changes != seen or self.is_over)

    def _notify(self) -> None:
        self.changes += 1
        self._changed.notify_all()

    def _use(self, tasks: TaskTable, times: int) -> None:
        for pairs in tasks.pairs:
            self.uses += times * np.bincount(pairs, minlength=len(self.uses))

    def _positions(self, tasks: TaskTable) -> NDArray[np.int64]:
        """Where tasks of the queue stand in it."""
        order = np.argsort(self._tasks.number)
        return order[np.searchsorted(self._tasks.number, tasks.number, sorter=order)]

    def _free_positions(self, which: NDArray[np.bool_]) -> NDArray[np.int64]:
        return np.flatnonzero(which)[:MAX_TASKS]

    def _some_of(self, positions: NDArray[np.int64], most_work: float, fits: Fits) -> NDArray[np.int64]:
        """As many of the first positions as have so much work and fit, or one."""
        count = max(1, int(np.searchsorted(np.cumsum(self._tasks.work[positions]), most_work, side="right")))
        while count > 1 and not fits(self._tasks.take(positions[:count])):
            count //= 2
        return positions[:count]

    def _take(self, positions: NDArray[np.int64]) -> TaskTable:
        chosen = self._tasks.take(positions)
        self._is_free[positions] = False
        self._untaken_work -= float(chosen.work.sum())
        self._use(chosen, -1)
        return chosen

    def _take_host_tasks(self) -> TaskTable:
        """A share of the tasks that are for threads alone."""
        tasks = self._host_tasks.popleft()
        most = min(float(tasks.work.sum()) / (BATCHES_LEFT * self._threads), self._here.work_in(BATCH_SECONDS))
        count = max(1, int(np.searchsorted(np.cumsum(tasks.work), most, side="right")))
        while count > 1 and not self._fits_host(tasks.take(slice(count))):
            count //= 2
        if count < len(tasks):
            self._host_tasks.appendleft(tasks.take(slice(count, None)))
        chosen = tasks.take(slice(count))
        self._use(chosen, -1)
        return chosen

    def _share_of_thread(self, free: NDArray[np.int64]) -> float:
        return float(self._tasks.work[free].sum()) / (BATCHES_LEFT * self._threads)

    def _worthwhile_here(self) -> NDArray[np.int64]:
        """Tasks that a thread may take now, those first that it begins with; none where even the first is too much."""
        if not self._threads:
            return np.empty(0, np.int64)
        free = self._is_free & self._for_threads
        if self._schedule == DYNAMIC or not self._streams:
            return self._free_positions(free)
        light = (self._cutoff + np.flatnonzero(free[self._cutoff :]))[::-1][:MAX_TASKS]
        if len(light) and float(self._tasks.work[light[0]]) > self._most_worthwhile_here():
            return light[:0]
        return light

    def _most_worthwhile_here(self) -> float:
        """The work that a thread is likely to be done with before the devices would be with it and all other tasks."""
        here, there = self._here.likely, self._there.likely
        if self._schedule != GUARDED or self._is_left_to_threads or not self._streams or here is None or there is None:
            return inf
        of_devices = there / self._streams
        of_threads = here / self._threads * (CAUTION if self._here.seen is None else 1.0)  # they share memory and cores
        if of_threads > FAR_FASTER * of_devices:
            return -inf
        return of_devices * self._device_work / (CAUTION * here)

    def _is_worthwhile_there(self, work: float) -> bool:
        """Whether a stream is likely to be done with a task before the threads would be with it and all others."""
        here, there = self._here.seen, self._there.seen
        is_for_streams = not self._threads or not self._for_threads.all()
        if self._schedule != GUARDED or is_for_streams or here is None or there is None:
            return True
        alone = there / self._streams  # the last ones have the device to themselves
        return CAUTION * alone * work <= here / self._threads * self._untaken_work
