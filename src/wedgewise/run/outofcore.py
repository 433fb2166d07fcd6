"""Counting on a store within a memory limit: a task at a time, its three blocks in memory, threads within the task.

Tasks run in an order that uses the same blocks again, not heaviest first: since all threads work on one task, none is
left waiting at the end, and what a task costs beyond its work is the blocks that it has to read, and what is made of
block jk. For fixed j and k, i goes up and down in turn: what was made of jk serves all of them. The order is known
beforehand, so that the block to evict for another one is the one that is needed last (Belady's rule, which no other
can beat).

Memory: lists of all tasks, the blocks of one, what its algorithm makes of them, and 4 bytes per column for each further
thread; blocks of tasks to come stay as far as the limit allows. A journal in the store has every finished task.

What a count will take is found before a block is read, from the sizes of all blocks in the manifest. Memory comes from
a rehearsal with sizes instead of blocks: which blocks are held when each task runs is decided by the same `BlockCache`,
and what a task makes of its blocks is what its algorithm expects; it may be more, but never more than was kept free for
it. The same rehearsal knows the bytes that are read. Seconds are straight lines in the wedges of the graph and in the
arcs and tasks that are visited, with the slopes of the algorithm: on the machine that these were measured on, from 0.6
to 1.3 of what keystone took.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import NamedTuple

import numpy as np

from wedgewise.algorithms import find
from wedgewise.algorithms._contract import Knobs, PrepareTask, Shape, Work
from wedgewise.algorithms._passes import Partial, run_pass
from wedgewise.errors import FormatError, MemoryLimitError
from wedgewise.machine import jit
from wedgewise.machine.budget import available_after_loading
from wedgewise.machine.out_of_memory import memory_for
from wedgewise.machine.progress import Progress
from wedgewise.run.block_caches import BlockCache, triple_of
from wedgewise.run.journal import LINE_BYTES, Journal, key_of, open_journal
from wedgewise.run.local import Execution, Ran
from wedgewise.run.memory import (
    COUNTED_TASK_BYTES,
    BlockSource,
    Pair,
    TaskMemory,
    bytes_beside_lists,
    lists_bytes,
    triple_answer,
)
from wedgewise.run.plan import Form, Plan, plan_of, with_reasons
from wedgewise.run.reduce import Computed, can_occur, reduce
from wedgewise.run.request import Request
from wedgewise.run.timeline import Timeline
from wedgewise.stages.blocks import Block, Task, Triple
from wedgewise.stages.tasks import tasks_of
from wedgewise.store.manifest import MANIFEST
from wedgewise.store.open import Store, first_fault
from wedgewise.version import __version__

PROCESS = "the interpreter and its kernels"
REHEARSED = 1 << 8  # vertices of a clique: so many that the engine has hubs
READ_BYTES_PER_SECOND = 3.3e8  # from the page cache, checksums and rows checked
JOURNAL_SECONDS = 4e-3  # a line of the journal on the disk


@dataclass(frozen=True, slots=True)
class StoreCount:
    """The triangles of a store, how they were counted, and how many tasks a journal had already.

    ``task_seconds`` are by number of task, without the reading of blocks; a journal has those of earlier runs.
    ``timeline`` is what ran where and when, where GPUs took part.
    """

    computed: Computed
    plan: Plan
    resumed: int
    task_seconds: Mapping[int, float] = field(default_factory=dict)
    timeline: Timeline | None = None

    @property
    def triangles(self) -> int:
        return self.computed.triangles


@dataclass(frozen=True, slots=True)
class StoreTasks:
    """The tasks of a store as they are planned.

    Attributes
    ----------
    key : what their results depend on
    busy : how many of them can have triangles
    run : counts those that the journal does not have, and writes each down there when it is finished
    """

    plan: Plan
    key: str
    busy: int
    run: Callable[[Journal | None, Progress | None], Ran]


class Finished(NamedTuple):
    """What a task found, and how long that took without the reading of its blocks."""

    partial: Partial
    seconds: float


@memory_for("count")
def count_store(
    request: Request, store: Store, tasks: StoreTasks, progress: Progress | None = None, *, journal: bool = True
) -> StoreCount:
    """Count the triangles of a store as planned, exactly; with a journal, every finished task is written down there.

    Raises
    ------
    InputError
        When there is a journal of another graph or of other options.
    """
    keeping = open_journal(store, tasks.key, tasks.busy, resume=request.resume)
    with keeping if journal else nullcontext((None, ())) as (written, notes):
        resumed = 0 if written is None else len(written.done)
        ran = tasks.run(written, progress)
        computed = total_of(store, ran.execution, ran.plan)
        if written is not None:
            written.remove()
    return StoreCount(computed, with_reasons(ran.plan, notes), resumed, ran.execution.task_seconds, ran.timeline)


def tasks_from_disk(request: Request, store: Store) -> StoreTasks:
    """Tasks that this process counts one after the other, on all threads, within the memory limit."""
    counting, plan = plan_count(request, store)
    key = work_key(store, plan.algorithm, plan.knobs)
    return StoreTasks(plan, key, len(counting.order), lambda *given: Ran(counting.run(*given), plan))


def plan_count(request: Request, store: Store) -> tuple[Counting, Plan]:
    """Load the kernels, measure what is left of the limit, and refuse a store whose heaviest task takes more."""
    name = request.block_algorithm
    answer, settings = triple_answer(name), find(name, "cpu").settings(request.knobs)
    limit_bytes = available_after_loading(request.memory_limit, load_kernels, name)
    limit_bytes = bytes_beside_lists(store.location, store.partition, COUNTED_TASK_BYTES, limit_bytes)
    memory = TaskMemory(store.counts, answer, settings, request.thread_count)
    counting = Counting(store, memory, limit_bytes).with_fitting_threads()
    counting.check_fits()
    return counting, _predicted(store, request.block_algorithm, counting)


def total_of(store: Store, execution: Execution, plan: Plan) -> Computed:
    """The sum of all tasks; refuse a store that says of itself what makes the sum impossible."""
    triangles = sum(partial.triangles for partial in execution.partials.values())
    if not can_occur(triangles, plan):
        raise FormatError(
            f"says that there are {plan.m:,} edges and {plan.wedges:,} wedges, and {triangles:,} triangles were found",
            path=store.location.name_of(MANIFEST),
            remedy="start again by --restart (resume=False), and if that is not it, partition the graph again",
        )
    return reduce(execution, plan)


def reuse_order(tasks: Sequence[Task]) -> list[Task]:
    """Tasks by j and k, and by i up and down in turn."""
    ordered: list[Task] = []
    groups: dict[Pair, list[Task]] = {}
    for task in tasks:
        groups.setdefault((task.j, task.k), []).append(task)
    for number, pair in enumerate(sorted(groups)):
        ordered += groups[pair] if number % 2 == 0 else groups[pair][::-1]
    return ordered


class Counting:
    """Tasks of a store, or of what lives of its `blocks`, and what each of them takes."""

    def __init__(
        self,
        store: Store,
        memory: TaskMemory,
        available_bytes: int,
        blocks: BlockSource | None = None,
        *,
        shares: int = 1,
    ) -> None:
        self.store, self.memory, self.available_bytes, self._blocks = store, memory, available_bytes, blocks or store
        self.tasks = tasks_of(store.partition, shares)
        self.order = [task for task in reuse_order(self.tasks) if memory.has_work(task)]

    def with_fitting_threads(self) -> Counting:
        """The same on as many threads as the memory allows, halved as often as that takes."""
        fewer = copy(self)
        while fewer.memory.threads > 1 and fewer.memory.heaviest(self.order)[0] > self.available_bytes:
            fewer.memory = replace(fewer.memory, threads=fewer.memory.threads // 2)
        return fewer

    def check_fits(self) -> int:
        """What the heaviest task takes; refuse it where there is less."""
        need, heaviest = self.memory.heaviest(self.order)
        if heaviest is not None and need > self.available_bytes:
            raise MemoryLimitError(
                f"{self.store.location}: the blocks {heaviest.i}, {heaviest.j}, {heaviest.k} and what is made of them "
                f"take {need:,} bytes and {self.available_bytes:,} are left; raise the limit, or partition the graph "
                "into more parts"
            )
        return need

    def run(self, journal: Journal | None, progress: Progress | None) -> Execution:
        """Every task that the journal does not have."""
        partials = {task.number: Partial(task.number, 0, 0) for task in self.tasks}
        if journal is not None:
            partials.update(journal.done)
        to_do = [task for task in self.order if journal is None or task.number not in journal.done]
        seconds = {} if journal is None else dict(journal.seconds)
        cache, steps = BlockCache(self._read, self.memory.block, to_do), iter(range(len(to_do)))
        counted = self.each(to_do, lambda _task, limit_bytes: cache.blocks(next(steps), limit_bytes))
        for done, (partial, taken) in enumerate(counted, len(self.order) - len(to_do) + 1):
            partials[partial.task], seconds[partial.task] = partial, taken
            if journal is not None:
                journal.add(partial, taken)
            if progress is not None:
                progress("count", done, len(self.order))
        return Execution(len(self.tasks), partials, Work(()), task_seconds=seconds)

    def _read(self, pair: Pair) -> Block:
        return self._blocks.block(*pair, threads=self.memory.threads)

    def each(self, tasks: Iterable[Task], blocks: Callable[[Task, int], Mapping[Pair, Block]]) -> Iterator[Finished]:
        """What tasks find, one after the other.

        ``blocks(task, limit_bytes)`` has those of a task within a limit. Tasks that look up in the same block share
        what is made of it.
        """
        for _pair, group in groupby(tasks, key=looked_up_in):
            together = list(group)
            prepare = self.memory.answer.in_turn(self.memory.knobs, len(together))
            for task in together:
                triple = triple_of(blocks(task, self.available_bytes - self.memory.work(task)), task)
                begin = time.perf_counter()
                partial = self.count(task, triple, prepare)
                seconds = time.perf_counter() - begin
                del triple  # or blocks that the cache evicts would stay
                yield Finished(partial, seconds)

    def count(self, task: Task, triple: Triple, prepare: PrepareTask) -> Partial:
        """What one task finds."""
        return Partial(task.number, *run_passes(prepare(triple, task.share, task.shares), self.memory.threads))


def looked_up_in(task: Task) -> Pair:
    """The block whose rows a task looks up."""
    return task.j, task.k


def store_plan(store: Store, algorithm: str, knobs: dict[str, int | str], threads: int, need: int) -> Plan:
    """The plan of a count, as far as it does not depend on who counts."""
    manifest = store.manifest
    return plan_of(
        "count",
        Form(Shape(manifest.n, manifest.m, manifest.wedges), manifest.order),
        algorithm=algorithm,
        threads=threads,
        knobs=knobs,
        bytes_needed=need,
        reasons=(
            f"a store of {len(manifest.blocks):,} blocks: those of a task are in memory, and others as far as they fit",
        ),
        beyond=PROCESS,
    )


def _predicted(store: Store, algorithm: str, counting: Counting) -> Plan:
    """The plan of a count, with what it will take."""
    memory = counting.memory
    found = predict(counting.order, memory, counting.available_bytes, store.manifest.wedges)
    lists = lists_bytes(store.partition, COUNTED_TASK_BYTES)
    plan = store_plan(store, algorithm, dict(memory.knobs), memory.threads, found.peak_bytes + lists)
    reasons = (
        f"at most {found.held_bytes:,} bytes of blocks and {found.work_bytes:,} of what is made of them",
        f"{lists:,} bytes of lists of tasks",
        f"{found.read_bytes:,} bytes of blocks are read for {found.tasks:,} tasks",
        f"up to {LINE_BYTES * found.tasks:,} bytes of disk for finished tasks, until all are counted",
    )
    return replace(plan, estimated_seconds=found.seconds, reasons=(*plan.reasons, *reasons))


def work_key(store: Store, algorithm: str, knobs: Knobs) -> str:
    """What results depend on: the graph, its parts, and how they are counted."""
    return key_of(
        fingerprint=store.manifest.fingerprint,
        partition=store.partition.to_dict(),
        algorithm=algorithm,
        knobs=dict(knobs),
        version=__version__,
    )


def load_kernels(algorithm: str) -> None:
    """Load every kernel that counting on a store calls: count a clique, in each way that the algorithm knows."""
    if jit.JIT_DISABLED:
        return
    knobs, answer = find(algorithm, "cpu").knobs, triple_answer(algorithm)
    block, other = checked_clique(), checked_clique()
    for way in ({}, *({knob.name: choice} for knob in knobs for choice in knob.choices)):
        for triple in (Triple(block, block, block), Triple(block, other, block)):
            run_passes(answer.prepare(triple, find(algorithm, "cpu").settings(way), 0, 1), 1)


def checked_clique() -> Block:
    """A block to load kernels with, checked as one that was read."""
    rows, columns = np.triu_indices(REHEARSED, 1)
    offsets = np.append(0, np.cumsum(np.bincount(rows, minlength=REHEARSED))).astype(np.uint32)
    block = Block(offsets, columns.astype(np.uint32), REHEARSED)
    first_fault(block.offsets, block.heads, REHEARSED, 0, REHEARSED)
    return block


def run_passes(work: Work, threads: int) -> tuple[int, int]:
    """Run all passes of some work; the triangles that were found, and the tests."""
    found = [partial for step in work.passes for partial in run_pass(step, 0, threads, None)]
    return sum(partial.triangles for partial in found), sum(partial.tests for partial in found)


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a count will take.

    Attributes
    ----------
    held_bytes, work_bytes : blocks, and what is made of them, when both together are most
    read_bytes : of blocks, again where they were evicted in between
    tasks : that have work
    seconds : of the count, about
    """

    held_bytes: int
    work_bytes: int
    read_bytes: int
    tasks: int
    seconds: float

    @property
    def peak_bytes(self) -> int:
        """The most that is held at a time, beyond what the process held before."""
        return self.held_bytes + self.work_bytes


def predict(tasks: Sequence[Task], memory: TaskMemory, limit_bytes: int, wedges: int) -> Prediction:
    """What tasks with work will take in this order, when blocks and what is made of them may take so much.

    Parameters
    ----------
    tasks : none takes more than the limit
    memory : what each of them takes
    limit_bytes : of blocks and what is made of them
    wedges : of the graph, in its order
    """
    cache = BlockCache(lambda _pair: None, memory.block, tasks)
    n, m = int(memory.counts.sizes.sum()), int(memory.counts.arcs.sum())
    is_skewed = wedges * n > m * m  # behind an arc are more others than if all vertices had as many
    held = work = 0
    for step, task in enumerate(tasks):
        cache.blocks(step, limit_bytes - memory.work(task))
        expected = memory.expected_work(task, is_skewed)
        if cache.held_bytes + expected > held + work:
            held, work = cache.held_bytes, expected
    return Prediction(held, work, cache.read_bytes, len(tasks), _seconds(tasks, memory, cache.read_bytes, wedges))


def _seconds(tasks: Sequence[Task], memory: TaskMemory, read_bytes: int, wedges: int) -> float:
    cost, counts = memory.answer.cost, memory.counts
    i, j, k = np.array([(task.i, task.j, task.k) for task in tasks], np.int64).reshape(-1, 3).T
    arcs = int((counts.arcs[i, j] + counts.arcs[i, k]).sum())
    counting = (cost.per_wedge * wedges + cost.per_arc * arcs) / memory.threads
    preparing = (cost.per_task + JOURNAL_SECONDS) * len(tasks)
    return counting + preparing + read_bytes / READ_BYTES_PER_SECOND
