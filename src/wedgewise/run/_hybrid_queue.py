"""The tasks of a hybrid count: streams take heavy ones from one end of a queue, threads light ones from the other.

    heaviest                     cut-off                          lightest
    ├─ 0 ── 1 ── 2 ── 3 ── 4 ── 5 ──┼── 6 ── 7 ── 8 ── 9 ── 10 ── 11 ─┤
    stream 0: 0, 4, 8 …             threads: 11, 10 … 6
    stream 1: 1, 5, 9 …

A stream takes every S-th task, so that it knows its next one, whose blocks can be copied meanwhile; tasks that threads
have taken are left out, and a stream without any left takes those of others, first such as no other is preparing for.
Schedules:

    cutoff     BBTC's (§5): threads take the lightest, and none before the cut-off
    guarded    the same, but threads leave all to devices that are over `FAR_FASTER` times as fast as all threads
               together, whose copies they would only slow down; a thread leaves a task to the devices where these, at
               the pace seen so far or guessed, would be done with all tasks before the thread were with this one; and
               streams that are seen to be so slow leave all to threads
    dynamic    tasks in the order of their numbers, each to whoever comes first (BBTC, table 5)

Without streams, threads take the heaviest first. Tasks that fit no device, or that did not fit one after
all, are for threads alone.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from wedgewise.run.memory import Pair, pairs_of_task
from wedgewise.stages.blocks import Task

CUTOFF, GUARDED, DYNAMIC = SCHEDULES = ("cutoff", "guarded", "dynamic")
CAUTION = 2.0  # a task may take so much longer than it was thought to
FAR_FASTER = 8.0


@dataclass(slots=True)
class _Pace:
    """How much of the estimates was done, in how many seconds of a stream or thread."""

    guess: float | None = None
    work: float = 0.0
    seconds: float = 0.0
    first_seen: set[str] = field(default_factory=set)

    def add(self, worker: str, work: float, seconds: float) -> None:
        """Take a task into account, unless it is the first of its worker, which may load and compile."""
        if worker in self.first_seen:
            self.work += work
            self.seconds += seconds
        self.first_seen.add(worker)

    @property
    def seen(self) -> float | None:
        """Seconds for a unit of work; None as long as none was done."""
        return self.seconds / self.work if self.work > 0 else None

    @property
    def likely(self) -> float | None:
        """What was seen, or else the guess, where there is one."""
        return self.guess if self.seen is None else self.seen


class TaskQueue:
    """Who does which task; every method may be called by any thread.

    Parameters
    ----------
    tasks : for streams and threads, in the order of the schedule
    host_tasks : for threads alone
    device_only : the numbers of those among `tasks` that are for streams alone
    estimates : the work of every task, by number
    streams : how many streams take part
    threads : how many threads do
    schedule : one of `SCHEDULES`
    cutoff : how many of the tasks threads never take
    guesses : seconds that a thread and a stream may take for a unit of the estimates
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        host_tasks: Sequence[Task],
        device_only: Collection[int],
        estimates: Mapping[int, float],
        *,
        streams: int,
        threads: int,
        schedule: str,
        cutoff: int,
        guesses: tuple[float, float] | tuple[None, None] = (None, None),
    ) -> None:
        self.uses: dict[Pair, int] = {}  # by tasks that nobody has taken yet
        self.changes = 0
        self._changed = threading.Condition()
        self._tasks, self._estimates = tasks, estimates
        self._host_tasks = deque(host_tasks)
        self._streams, self._threads, self._schedule = streams, threads, schedule
        self._cutoff = cutoff if streams and schedule != DYNAMIC else 0
        self._is_taken = bytearray(len(tasks))
        self._is_left_to_threads = False
        self._device_only = device_only
        self._first, self._first_for_threads, self._last = 0, 0, len(tasks) - 1
        self._next = list(range(streams))
        self._promised: list[int | None] = [None] * streams  # what each is preparing for
        self._unfinished = len(tasks) + len(host_tasks)
        self._stopped = False
        self._device_work = sum(estimates[task.number] for task in tasks)  # that devices have to do or may do
        self._untaken_work = self._device_work
        self._here, self._there = map(_Pace, guesses)
        for task in (*tasks, *host_tasks):
            for pair in pairs_of_task(task):
                self.uses[pair] = self.uses.get(pair, 0) + 1

    @property
    def is_over(self) -> bool:
        """Whether all tasks are finished, or none may be begun any more."""
        return self._stopped or self._unfinished == 0

    def for_stream(self, stream: int) -> Task | None:
        """The next task of a stream, which has it from now on; None where there is none left."""
        with self._changed:
            position = None if self._stopped else self._position_for(stream)
            if position is None:
                return None
            if not self._is_worthwhile_there(self._tasks[position]):
                self._is_left_to_threads, self._cutoff = True, 0
                self._notify()
                return None
            return self._take(position)

    def upcoming(self, stream: int) -> Task | None:
        """The task that a stream will have next, unless somebody takes it before; others take it after all others."""
        with self._changed:
            position = self._promised[stream] = self._position_for(stream)
            return None if position is None else self._tasks[position]

    def for_thread(self) -> Task | None:
        """A task for a thread, which has it from now on; None where there is none at present."""
        with self._changed:
            if self._stopped or not self._threads:
                return None
            if self._host_tasks:
                task = self._host_tasks.popleft()
                self._count_down(task)
                return task
            position = self._position_worthwhile_here()
            if position is None:
                return None
            self._device_work -= self._estimates[self._tasks[position].number]
            return self._take(position)

    def hand_over(self, task: Task) -> bool:
        """Leave a task of a stream to the threads; whether there are any, and it fits the host."""
        with self._changed:
            if not self._threads or task.number in self._device_only:
                return False
            self._host_tasks.append(task)
            self._device_work -= self._estimates[task.number]
            for pair in pairs_of_task(task):
                self.uses[pair] += 1
            self._notify()
            return True

    def finish(self, task: Task, worker: str, seconds: float, *, on_device: bool) -> None:
        """A task is finished, after so many seconds of a stream or of threads."""
        with self._changed:
            work = self._estimates[task.number]
            (self._there if on_device else self._here).add(worker, work, seconds)
            if on_device:
                self._device_work -= work
            self._unfinished -= 1
            if self._unfinished == 0 or (on_device and self._position_worthwhile_here() is not None):
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
            self._changed.wait_for(
                lambda: self.is_over or self._host_tasks or self._position_worthwhile_here() is not None
            )
            return not self.is_over

    def wait_for_change(self, seen: int) -> None:
        """Sleep until there were more than `seen` changes, or the work is over."""
        with self._changed:
            self._changed.wait_for(lambda: self.changes != seen or self.is_over)

    def _notify(self) -> None:
        self.changes += 1
        self._changed.notify_all()

    def _position_for(self, stream: int) -> int | None:
        promised = self._promised[stream]
        if promised is not None and not self._is_taken[promised]:
            return promised
        if self._schedule == DYNAMIC:
            return self._front_for(stream)
        position = self._next[stream]
        while position < len(self._tasks) and self._is_taken[position]:
            position += self._streams
        self._next[stream] = position
        return position if position < len(self._tasks) else self._front_for(stream)

    def _position_worthwhile_here(self) -> int | None:
        if not self._threads:
            return None
        position = self._position_for_thread()
        return None if position is None or not self._is_worthwhile_here(self._tasks[position]) else position

    def _position_for_thread(self) -> int | None:
        if self._schedule == DYNAMIC or not self._streams:
            while self._first_for_threads < len(self._tasks) and not self._is_for_threads(self._first_for_threads):
                self._first_for_threads += 1
            return self._first_for_threads if self._first_for_threads < len(self._tasks) else None
        while self._last >= self._cutoff and not self._is_for_threads(self._last):
            self._last -= 1
        return self._last if self._last >= self._cutoff else None

    def _is_for_threads(self, position: int) -> bool:
        """Whether a thread may take a task: nobody has it, and it fits the host."""
        return not self._is_taken[position] and self._tasks[position].number not in self._device_only

    def _front_for(self, stream: int) -> int | None:
        """The first task that nobody has and no other stream is preparing for, or else the first that nobody has."""
        while self._first < len(self._tasks) and self._is_taken[self._first]:
            self._first += 1
        of_others = {position for other, position in enumerate(self._promised) if other != stream}
        untaken = (at for at in range(self._first, len(self._tasks)) if not self._is_taken[at])
        first = next(untaken, None)
        return first if first not in of_others else next((at for at in untaken if at not in of_others), first)

    def _is_worthwhile_here(self, task: Task) -> bool:
        """Whether a thread is likely to be done with a task before the devices would be with it and all others."""
        here, there = self._here.likely, self._there.likely
        if self._schedule != GUARDED or self._is_left_to_threads or not self._streams or here is None or there is None:
            return True
        of_devices = there / self._streams
        of_threads = here / self._threads * (CAUTION if self._here.seen is None else 1.0)  # they share memory and cores
        if of_threads > FAR_FASTER * of_devices:
            return False
        return CAUTION * here * self._estimates[task.number] <= of_devices * self._device_work

    def _is_worthwhile_there(self, task: Task) -> bool:
        """Whether a stream is likely to be done with a task before the threads would be with it and all others."""
        here, there = self._here.seen, self._there.seen
        if self._schedule != GUARDED or not self._threads or self._device_only or here is None or there is None:
            return True
        alone = there / self._streams  # the last ones have the device to themselves
        return CAUTION * alone * self._estimates[task.number] <= here / self._threads * self._untaken_work

    def _take(self, position: int) -> Task:
        self._is_taken[position] = 1
        self._untaken_work -= self._estimates[self._tasks[position].number]
        self._count_down(self._tasks[position])
        return self._tasks[position]

    def _count_down(self, task: Task) -> None:
        for pair in pairs_of_task(task):
            self.uses[pair] -= 1
