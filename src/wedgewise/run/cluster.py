"""Counting a store with workers in other processes or on other machines.

    tasks ─make_batches→ Assignment ─submit→ Workers ─delivery→ Delivery ─Driver→ {task id: Partial}

A task is a pure function of its number, the store and the options: workers read the blocks from storage that all of
them share, and send a few integers back. Whatever is lost is done again; what arrives twice has to be equal. The driver
writes every finished task into the journal of `count_store`, so that either goes on where the other was ended.

At most two batches per worker are under way: the next one is there when one is finished. Workers send what they have
finished while a batch lasts, so that what is lost with a worker, or with this process, is the task that it was at and
those of the last moment. A batch that workers were lost with is sent again as single tasks, without those. A task that
a worker was lost with is sent again alone, with nothing else under way that could be the reason: when it has ended
enough workers so, it is poison, and the work stops.

A scheduler takes about a millisecond for whatever it passes on, so that a batch lasts 0.2 seconds at least where there
is so much to do, and otherwise a share of the work small enough for workers to end at about the same time. Tasks of a
batch look up in the same block where possible: what is made of it serves all of them. Heavy batches go first, so that
none is left at the end for one worker while the others have nothing to do.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict, deque
from collections.abc import Set
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import count, groupby
from typing import Protocol

import numpy as np

from wedgewise.algorithms import find
from wedgewise.errors import ClusterError, InputError, MemoryLimitError, PreconditionError, VerificationError
from wedgewise.machine import hardware
from wedgewise.machine.budget import LEAST_LIMIT, check_limit
from wedgewise.machine.progress import Progress
from wedgewise.run._cluster_worker import BatchRequest, BatchResult
from wedgewise.run._device_counting import Refusal, counting_key, gpus_for_workers, on_cpu, worker_pairing
from wedgewise.run.checkpoint import Journal
from wedgewise.run.local import Execution, Ran
from wedgewise.run.memory import DRIVEN_TASK_BYTES, TaskMemory, bytes_beside_lists, lists_bytes, triple_answer
from wedgewise.run.outofcore import Finished, StoreTasks, finished_execution, store_plan
from wedgewise.run.plan import Plan, with_reasons
from wedgewise.run.request import Request
from wedgewise.stages.tasks import TaskResults, TaskTable, busy_tasks, task_count
from wedgewise.stages.trust_cut import trust_reasons
from wedgewise.store.open import Store
from wedgewise.store.urls import Folder
from wedgewise.version import __version__

UNDER_WAY_PER_WORKER = 2
MAX_CRASHES_PER_TASK = 3
STEP_SECONDS = 1e-9  # about, of a unit of the estimates on one thread
LEAST_SECONDS, MOST_SECONDS = 0.2, 5.0  # of a batch of several tasks
BATCHES_PER_WORKER = 16
MOST_TASKS = 1 << 12  # whose result is well below its limit


@dataclass(frozen=True, slots=True)
class Assignment:
    """Tasks that one worker does one after the other.

    Attributes
    ----------
    number : of the assignment
    tasks : their numbers
    alone : whether nothing else is under way meanwhile
    refused_by : names of workers that have no memory for one of them
    """

    number: int
    tasks: tuple[int, ...]
    alone: bool = False
    refused_by: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Delivery:
    """What became of a batch, or of its first tasks: the result of a worker, or how many workers were lost with it."""

    batch: Assignment
    result: bytes | None
    deaths: int = 0
    is_whole: bool = True


class Workers(Protocol):
    """Whoever does batches. They may do one twice, and deliver in any order, late or more than once."""

    @property
    def count(self) -> int:
        """How many workers there are now."""

    def has_others(self, names: Set[str]) -> bool:
        """Whether there is a worker that has none of these names."""

    def submit(self, batch: Assignment, message: str) -> None:
        """Have some worker call `wedgewise.run._cluster_worker.count_batch` with the message of a batch."""

    def delivery(self) -> Delivery:
        """Wait for the next delivery."""

    def close(self) -> None:
        """Cancel whatever is under way, and leave nothing behind."""


@dataclass(slots=True)
class WorkerShare:
    """What a worker did: the name of its GPU or "cpu", tasks, and bytes of blocks that it read."""

    counts_on: str
    tasks: int = 0
    read_bytes: int = 0


@dataclass(frozen=True, slots=True)
class ClusterWork:
    """What is to be counted, and how: the same for all workers.

    Attributes
    ----------
    key : of the work; every result carries it
    tasks : those that can have triangles, in the order in which they share blocks
    all_tasks : how many there are, the others included
    asked : what was asked for, with the threads and the memory limit of each worker
    gpus, sharers : what workers of this machine see as CUDA_VISIBLE_DEVICES, and how many have the same GPU
    """

    store: Store
    plan: Plan
    key: str
    tasks: TaskTable
    all_tasks: int
    asked: Request
    gpus: tuple[str, ...] = ()
    sharers: int = 1

    def message(self, batch: Assignment) -> str:
        """What a worker gets."""
        location, asked = self.store.location, self.asked
        return BatchRequest(
            version=__version__,
            store=os.path.abspath(location.path) if isinstance(location, Folder) else str(location),
            fingerprint=self.store.manifest.fingerprint,
            key=self.key,
            device=asked.device,
            sharers=self.sharers,
            algorithm=asked.block_algorithm,
            knobs=dict(asked.knobs or {}),
            threads=asked.threads,
            memory_limit=asked.memory_limit,
            tasks=batch.tasks,
            shares=self.tasks.shares,
        ).to_json()


def assign(request: Request, store: Store) -> ClusterWork:
    """Check what was asked for; threads and memory are divided among workers of this machine, if there are to be.

    The memory limit is one for the size of every worker; on this machine, for all of them together. Threads are those
    that work on a task in each worker: by default what a worker may use, and on this machine its share of that.
    """
    if request.cluster is not None and request.workers is not None:
        raise InputError("pass cluster or workers, not both")
    if store.location.is_in_this_process:
        raise PreconditionError(
            f"{store.location}: no other process sees it; name a folder, or a URL of shared storage"
        )
    asked, here = request, on_cpu(request)
    answer, settings = triple_answer(here.block_algorithm), find(here.block_algorithm, "cpu").settings(here.knobs)
    if request.workers is not None:
        threads, memory_limit = _divided(request.threads, request.memory_limit, request.workers)
        asked = replace(request, threads=threads, memory_limit=memory_limit)
    check_limit(asked.memory_limit)
    bytes_beside_lists(store.location, store.partition, DRIVEN_TASK_BYTES, hardware.available_memory(), request.shares)
    memory = TaskMemory(store.counts, answer, settings, asked.threads or hardware.usable_threads())
    tasks = busy_tasks(store.partition, store.counts, request.shares).in_reuse_order()
    plan, gpus = _plan(asked, store, memory, tasks), gpus_for_workers(request)
    key, all_tasks = counting_key(request, store), task_count(store.partition, request.shares)
    return ClusterWork(store, plan, key, tasks, all_tasks, asked, *gpus)


def _plan(request: Request, store: Store, memory: TaskMemory, tasks: TaskTable) -> Plan:
    """The plan of a count by workers."""
    pairing = worker_pairing(request)
    algorithm, need = on_cpu(request).block_algorithm, memory.heaviest(tasks)[0]
    plan = store_plan(store, algorithm, dict(memory.knobs), memory.threads, need, tasks.shares)
    lists = lists_bytes(store.partition, DRIVEN_TASK_BYTES, tasks.shares)
    rule: tuple[str, ...] = ()
    if request.workers is not None and request.memory_limit is not None:
        rule = trust_reasons(store.partition, store.m, request.workers, request.memory_limit)
    reasons = (
        *plan.reasons[1:],
        f"{len(tasks):,} tasks of three blocks each, for workers that read them from {store.location}",
        f"{lists:,} bytes of tables of tasks in the process that asks",
        *rule,
    )
    if pairing is None:
        return replace(plan, reasons=reasons)
    name = (pairing.gpu or pairing.cpu).name
    return replace(plan, algorithm=name, device=request.device, knobs=pairing.knobs, reasons=(pairing.reason, *reasons))


def _divided(threads: int | None, memory_limit: int | None, workers: int) -> tuple[int, int]:
    """The threads and the memory of each worker of this machine."""
    if workers < 1:
        raise InputError(f"workers is at least 1, not {workers}")
    if memory_limit is None:
        each = max(LEAST_LIMIT, hardware.available_memory() * 3 // 4 // workers)
    else:
        each = memory_limit // workers
        if each < LEAST_LIMIT <= memory_limit:
            raise InputError(
                f"{memory_limit:,} bytes are too few for {workers} workers, which take {LEAST_LIMIT:,} each at least; "
                "allow more, or start fewer"
            )
    return hardware.granted_threads(threads or max(1, hardware.usable_threads() // workers)), each


def tasks_for_workers(request: Request, store: Store) -> StoreTasks:
    """Tasks that the workers of a Dask cluster, or of this machine, count; raise where there is too little memory.

    Raises
    ------
    ClusterError
        While they run, when no scheduler or no worker answers, when versions or graphs differ, or when a task ends its
        workers.
    """
    work, cluster = assign(request, store), request.cluster

    def run(journal: Journal | None, progress: Progress | None) -> Ran:
        from wedgewise.run._dask_workers import connect
        from wedgewise.run._local_workers import LocalWorkers

        driver = Driver(work, journal, progress)
        if driver.left:
            with closing(
                LocalWorkers(request.workers or 1, work.gpus)
                if cluster is None
                else connect(cluster, on_gpus=request.device == "cuda")
            ) as workers:
                driver.run(workers)
        return Ran(driver.finish(), with_reasons(work.plan, driver.reasons))

    return StoreTasks(work.plan, work.key, work.all_tasks, run)


class Driver:
    """Keeps workers busy until every task has a result."""

    def __init__(self, work: ClusterWork, journal: Journal | None = None, progress: Progress | None = None) -> None:
        self._work, self._journal, self._progress = work, journal, progress
        self._results = TaskResults.none(work.all_tasks) if journal is None else journal.results
        self._left = set(work.tasks.number.tolist()) - set(self._results.done.tolist())
        self._numbers = count()
        self._waiting: deque[tuple[int, ...]] = deque()
        self._tasks_to_isolate: deque[int] = deque()
        self._under_way: dict[int, Assignment] = {}
        self._deaths: Counter[int] = Counter()  # of workers, by task that was alone
        self._refused_by: defaultdict[int, set[str]] = defaultdict(set)  # names of workers, by task
        self.shares: dict[str, WorkerShare] = {}

    @property
    def left(self) -> int:
        """How many tasks are still to be done."""
        return len(self._left)

    @property
    def reasons(self) -> tuple[str, ...]:
        """What is to be said of who counted, where GPUs did."""
        shares = sorted(self.shares.values(), key=lambda share: share.counts_on)
        if all(share.counts_on == "cpu" for share in shares):
            return ()
        return tuple(
            f"{len(some)} worker{'s' * (len(some) > 1)} on {name}: {sum(share.tasks for share in some):,} tasks, "
            f"{sum(share.read_bytes for share in some):,} bytes of blocks read"
            for name, group in groupby(shares, key=lambda share: share.counts_on)
            for some in [list(group)]
        )

    def run(self, workers: Workers) -> None:
        """Have all tasks done; an error of ours in a worker is raised as it is."""
        tasks = self._work.tasks
        to_do = tasks.take(np.flatnonzero(~self._results.is_done[tasks.number]))
        self._waiting.extend(make_batches(to_do, workers.count))
        while self._left:
            self._feed(workers)
            self._take(workers.delivery(), workers)

    def finish(self) -> Execution:
        """What all tasks have found."""
        return finished_execution(self._results, self._work.tasks)

    def _feed(self, workers: Workers) -> None:
        """Submit as much as keeps the workers busy, or one suspect when nothing else is under way."""
        while self._tasks_to_isolate and not self._under_way:
            self._submit((self._tasks_to_isolate.popleft(),), workers, alone=True)
        if self._tasks_to_isolate or any(batch.alone for batch in self._under_way.values()):
            return
        while self._waiting and len(self._under_way) < UNDER_WAY_PER_WORKER * max(1, workers.count):
            self._submit(self._waiting.popleft(), workers)

    def _submit(self, tasks: tuple[int, ...], workers: Workers, alone: bool = False) -> None:
        """Submit what has not arrived meanwhile."""
        left = tuple(task for task in tasks if task in self._left)
        if left:
            refused_by = frozenset[str]().union(*(self._refused_by.get(task, ()) for task in left))
            batch = Assignment(next(self._numbers), left, alone, refused_by)
            self._under_way[batch.number] = batch
            workers.submit(batch, self._work.message(batch))

    def _take(self, delivery: Delivery, workers: Workers) -> None:
        batch, is_whole = delivery.batch, delivery.is_whole
        is_new = is_whole and self._under_way.pop(batch.number, None) is not None
        if delivery.result is None:
            if is_new:
                self._take_loss(batch, delivery.deaths)
            return
        result, asked = BatchResult.from_json(delivery.result), Counter(batch.tasks)
        arrived = Counter(result.finished.numbers.tolist() + [refusal.task for refusal in result.refused])
        if result.key != self._work.key or (arrived != asked if is_whole else not arrived <= asked):
            raise VerificationError(f"a worker was asked for tasks {batch.tasks[:5]} … and answered others")
        share = self.shares.setdefault(result.worker, WorkerShare(result.counts_on))
        share.tasks += self._keep(result.finished)
        share.read_bytes += result.read_bytes
        for refusal in result.refused if is_new else ():
            self._take_refusal(refusal, result.worker, workers)

    def _take_refusal(self, refusal: Refusal, worker: str, workers: Workers) -> None:
        """Let a worker with more memory on its GPU do the task, if there is one that has not refused it."""
        number = refusal.task
        if number not in self._left:
            return
        self._refused_by[number].add(worker)
        if not workers.has_others(self._refused_by[number]):
            raise MemoryLimitError(
                f"{self._named(number)} takes {refusal.need:,} bytes on a GPU, and {refusal.available:,} are there for "
                f"it at {worker}, no more at any other worker; partition the graph into more parts, or let CPUs count "
                "what does not fit by device='hybrid'"
            )
        self._waiting.appendleft((number,))

    def _keep(self, finished: Finished) -> int:
        """Keep results, and return how many are new; the others have to be equal in what does not depend on a batch."""
        is_known = self._results.is_done[finished.numbers]
        for task, triangles in zip(finished.numbers[is_known], finished.triangles[is_known], strict=True):
            if (known := self._results.triangles[task]) != triangles:
                raise VerificationError(
                    f"task {task} has {known:,} triangles and, delivered again, {triangles:,}; "
                    "a worker is broken: count again without it"
                )
        new = Finished._make(column[~is_known] for column in finished)
        if len(new.numbers) == 0:
            return 0
        self._left.difference_update(new.numbers.tolist())
        if self._journal is not None:
            self._journal.add(*new)
        else:
            self._results.put(*new)
        if self._progress is not None:
            tasks = len(self._work.tasks)
            self._progress("count", tasks - self.left, tasks)
        return len(new.numbers)

    def _take_loss(self, batch: Assignment, deaths: int) -> None:
        """Tasks that may have ended workers: each by itself, then each alone, then no more."""
        if len(batch.tasks) > 1:
            self._waiting.extendleft((task,) for task in reversed(batch.tasks))
            return
        task = batch.tasks[0]
        if batch.alone:
            self._deaths[task] += deaths
        if self._deaths[task] >= MAX_CRASHES_PER_TASK:
            raise ClusterError(
                f"{self._named(task)} ended {self._deaths[task]} workers when nothing else was under way; look at "
                "their logs, give them more memory, or partition the graph into more parts"
            )
        self._tasks_to_isolate.append(task)

    def _named(self, number: int) -> str:
        """A task in messages."""
        tasks = self._work.tasks
        task = tasks[int(np.flatnonzero(tasks.number == number)[0])]
        return f"task {number} (blocks {task.i}, {task.j}, {task.k})"


def make_batches(tasks: TaskTable, workers: int) -> list[tuple[int, ...]]:
    """The numbers of the tasks of every batch: neighbours, heavy batches first; one that is heavy is by itself."""
    seconds = STEP_SECONDS * tasks.work
    share = float(seconds.sum()) / (BATCHES_PER_WORKER * max(1, workers))
    target = min(MOST_SECONDS, max(LEAST_SECONDS, share))
    batches: list[tuple[float, list[int]]] = []
    for number, taken in zip(tasks.number.tolist(), seconds.tolist(), strict=True):
        if batches and batches[-1][0] + taken <= target and len(batches[-1][1]) < MOST_TASKS:
            batches[-1][1].append(number)
            batches[-1] = batches[-1][0] + taken, batches[-1][1]
        else:
            batches.append((taken, [number]))
    return [tuple(together) for _, together in sorted(batches, key=lambda batch: -batch[0])]
