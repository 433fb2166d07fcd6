"""Counting a store with workers in other processes or on other machines.

    tasks ─make_batches→ Assignment ─submit→ Workers ─delivery→ Delivery ─Driver→ TaskResults

A task is a pure function of its number, the store and the options: workers read the blocks from storage that all of
them share, and send a few integers back. Whatever is lost is done again; what arrives twice has to be equal. The driver
writes every finished task into the journal of `count_store`, so that either resumes what the other has left.

Workers send what they have finished while an assignment lasts, so that what is lost with a worker, or with this
process, is the batch that it was at and what it finished in the last moment. `Dispatcher` decides who does what.

A scheduler takes about a millisecond for whatever it passes on, so that a batch lasts 0.2 seconds at least where there
is so much to do, and otherwise a share of the work small enough for workers to end at about the same time. Tasks of a
batch look up in the same block where possible: what is made of it serves all of them. Heavy batches go first, so that
none is left at the end for one worker while the others have nothing to do.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from wedgewise.algorithms import find
from wedgewise.errors import VerificationError
from wedgewise.machine import hardware
from wedgewise.machine.budget import bytes_per_worker, check_limit
from wedgewise.machine.progress import Progress
from wedgewise.run._count_worker import BatchRequest, BatchResult
from wedgewise.run._device_counting import Refusal, gpus_for_workers, on_cpu, worker_pairing
from wedgewise.run._dispatch import Assignment, Dispatcher, Workers
from wedgewise.run.batches import MAX_TASKS
from wedgewise.run.checkpoint import Journal
from wedgewise.run.choose import BLOCK_SECONDS_PER_EDGE
from wedgewise.run.in_memory import Execution, TaskRun, finished_execution
from wedgewise.run.outofcore import (
    READ_BYTES_PER_SECOND,
    Finished,
    StoreTasks,
    count_key,
    store_plan,
)
from wedgewise.run.plan import Plan, with_reasons
from wedgewise.run.refusals import check_workers
from wedgewise.run.request import Request
from wedgewise.run.task_memory import (
    DRIVEN_TASK_BYTES,
    TaskMemory,
    all_block_bytes,
    bytes_beside_lists,
    lists_bytes,
    triple_answer,
)
from wedgewise.stages.tasks import TaskResults, TaskTable, busy_tasks, task_count
from wedgewise.stages.trust_cut import trust_reasons
from wedgewise.store.open import Store
from wedgewise.store.urls import Folder
from wedgewise.version import __version__

STEP_SECONDS = 1e-9  # about, of a unit of the estimates on one thread of a CPU
MIN_SECONDS, MAX_SECONDS = 0.2, 5.0  # of a batch of several tasks
BATCHES_PER_WORKER = 16


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
    request_per_worker : the request, with the threads and the memory limit of each worker
    gpus, sharers : what workers of this machine see as CUDA_VISIBLE_DEVICES, and how many have the same GPU
    """

    store: Store
    plan: Plan
    key: str
    tasks: TaskTable
    all_tasks: int
    request_per_worker: Request
    gpus: tuple[str, ...] = ()
    sharers: int = 1

    @property
    def step_seconds(self) -> float:
        """Of a unit of the estimates, about; where all workers count on GPUs, most of that goes to reading blocks.

        Nobody knows beforehand which worker gets a batch: where some have no GPU, it is as long as one of those takes.
        """
        if self.request_per_worker.device != "cuda":
            return STEP_SECONDS
        reading = float(all_block_bytes(self.store.counts).sum()) / READ_BYTES_PER_SECOND
        return (reading + BLOCK_SECONDS_PER_EDGE * self.store.m) / (float(self.tasks.work.sum()) or 1.0)

    def message(self, batch: Assignment) -> str:
        """What a worker gets."""
        request = self.request_per_worker
        return BatchRequest(
            version=__version__,
            store=name_for_workers(self.store),
            fingerprint=self.store.manifest.fingerprint,
            key=self.key,
            device=request.device,
            sharers=self.sharers,
            algorithm=request.block_algorithm,
            knobs=dict(request.knobs or {}),
            threads=request.threads,
            memory_limit=request.memory_limit,
            tasks=batch.tasks,
            shares=self.tasks.shares,
        ).to_json()


def name_for_workers(store: Store) -> str:
    """Where workers find a store."""
    location = store.location
    return os.path.abspath(location.path) if isinstance(location, Folder) else str(location)


def cluster_work(request: Request, store: Store) -> ClusterWork:
    """Check what was asked for; threads and memory are divided among workers of this machine, if there are to be.

    The memory limit is one for the size of every worker; on this machine, for all of them together. Threads are those
    that work on a task in each worker: by default what a worker may use, and on this machine its share of that.
    """
    each, pairing = per_worker(request, store), worker_pairing(request)
    here = on_cpu(request, pairing)
    answer, settings = triple_answer(here.block_algorithm), find(here.block_algorithm, "cpu").settings(here.knobs)
    bytes_beside_lists(
        store.location, store.partition, DRIVEN_TASK_BYTES, hardware.available_memory(), request.share_count
    )
    memory = TaskMemory(store.counts, answer, settings, each.threads or hardware.usable_threads())
    tasks = busy_tasks(store.partition, store.counts, request.share_count).in_reuse_order()
    plan = _plan(each, store, memory, tasks, here.block_algorithm)
    if pairing is not None:
        name, reasons = (pairing.gpu or pairing.cpu).name, (pairing.reason, *plan.reasons)
        plan = replace(plan, algorithm=name, device=request.device, knobs=pairing.knobs, reasons=reasons)
    key, all_tasks = count_key(request, store), task_count(store.partition, request.share_count)
    return ClusterWork(store, plan, key, tasks, all_tasks, each, *gpus_for_workers(request, pairing))


def _plan(request: Request, store: Store, memory: TaskMemory, tasks: TaskTable, algorithm: str) -> Plan:
    """The plan of a count by workers, on their CPUs."""
    need = memory.heaviest(tasks)[0]
    plan = store_plan(store, algorithm, dict(memory.knobs), memory.threads, need, tasks.shares)
    lists = lists_bytes(store.partition, DRIVEN_TASK_BYTES, tasks.shares)
    rule: tuple[str, ...] = ()
    if request.workers is not None and request.memory_limit is not None:
        rule = trust_reasons(store.partition, store.m, request.workers, request.memory_limit, tasks.shares)
    reasons = (
        *plan.reasons[1:],
        f"{len(tasks):,} tasks of three blocks each, for workers that read them from {store.location}",
        f"{lists:,} bytes of tables of tasks in the process that asks",
        *rule,
    )
    return replace(plan, reasons=reasons)


def per_worker(request: Request, store: Store) -> Request:
    """The request with the threads and the memory of each worker; what no worker can do is refused."""
    check_workers(request, store)
    each = request
    if request.workers is not None:
        memory_limit = bytes_per_worker(request.memory_limit, request.workers)
        threads = request.threads or max(1, hardware.usable_threads() // request.workers)
        each = replace(request, threads=threads, memory_limit=memory_limit)
    check_limit(each.memory_limit)
    return each


@contextmanager
def open_workers(request: Request, gpus: tuple[str, ...] = ()) -> Iterator[Workers]:
    """The workers that were asked for."""
    from wedgewise.run._dask_workers import connect
    from wedgewise.run._process_workers import LocalWorkers

    if request.cluster is None:
        workers: Workers = LocalWorkers(request.workers or 1, gpus)
    else:
        workers = connect(request.cluster, on_gpus=request.device == "cuda")
    with closing(workers):
        yield workers


def tasks_for_workers(request: Request, store: Store) -> StoreTasks:
    """Tasks that the workers of a Dask cluster, or of this machine, count; raise where there is too little memory.

    Raises
    ------
    ClusterError
        While they run, when no scheduler or no worker answers, when versions or graphs differ, or when a task ends its
        workers.
    """
    work = cluster_work(request, store)

    def run(journal: Journal | None, progress: Progress | None) -> TaskRun:
        driver = Driver(work, journal, progress)
        if driver.left:
            with open_workers(request, work.gpus) as workers:
                driver.run(workers)
        return TaskRun(driver.finish(), with_reasons(work.plan, driver.reasons))

    return StoreTasks(work.plan, work.key, work.all_tasks, run)


class Driver(Dispatcher):
    """Has workers count every task."""

    def __init__(self, work: ClusterWork, journal: Journal | None = None, progress: Progress | None = None) -> None:
        self._work, self._journal, self._progress = work, journal, progress
        self._results = TaskResults.none(work.all_tasks) if journal is None else journal.results
        super().__init__(set(work.tasks.number.tolist()) - set(self._results.done.tolist()))
        self.shares: dict[str, WorkerShare] = {}

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
        """Have all tasks done; a `WedgewiseError` in a worker is raised as it is."""
        tasks = self._work.tasks
        to_do = tasks.take(np.flatnonzero(~self._results.is_done[tasks.number]))
        for _ in self.dispatch(make_batches(to_do, workers.count, self._work.step_seconds), workers):
            pass

    def message(self, batch: Assignment) -> str:
        return self._work.message(batch)

    def receive(self, text: bytes, batch: Assignment, *, is_whole: bool, is_new: bool) -> list[tuple[str, Refusal]]:
        result, expected = BatchResult.from_json(text), Counter(batch.tasks)
        arrived = Counter(result.finished.numbers.tolist() + [refusal.task for refusal in result.refused])
        if result.key != self._work.key or (arrived != expected if is_whole else not arrived <= expected):
            raise VerificationError(f"a worker was asked for tasks {batch.tasks[:5]} … and answered others")
        share = self.shares.setdefault(result.worker, WorkerShare(result.counts_on))
        share.tasks += self._keep(result.finished)
        share.read_bytes += result.read_bytes
        return [(result.worker, refusal) for refusal in result.refused if is_new]

    def finish(self) -> Execution:
        """What all tasks have found."""
        return finished_execution(self._results, self._work.tasks)

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

    def named(self, number: int) -> str:
        """A task in messages."""
        tasks = self._work.tasks
        task = tasks[int(np.flatnonzero(tasks.number == number)[0])]
        return f"task {number} (blocks {task.i}, {task.j}, {task.k})"


def make_batches(tasks: TaskTable, workers: int, step_seconds: float = STEP_SECONDS) -> list[tuple[int, ...]]:
    """The numbers of the tasks of every batch: neighbours, heavy batches first; one that is heavy is by itself."""
    seconds = step_seconds * tasks.work
    share = float(seconds.sum()) / (BATCHES_PER_WORKER * max(1, workers))
    target = min(MAX_SECONDS, max(MIN_SECONDS, share))
    batches: list[tuple[float, list[int]]] = []
    for number, taken in zip(tasks.number.tolist(), seconds.tolist(), strict=True):
        if batches and batches[-1][0] + taken <= target and len(batches[-1][1]) < MAX_TASKS:
            batches[-1][1].append(number)
            batches[-1] = batches[-1][0] + taken, batches[-1][1]
        else:
            batches.append((taken, [number]))
    return [tuple(together) for _, together in sorted(batches, key=lambda batch: -batch[0])]
