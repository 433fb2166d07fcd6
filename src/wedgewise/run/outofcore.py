"""Counting on a store within a memory limit: a batch of tasks at a time, its blocks in memory, threads within it.

Tasks run in an order that uses the same blocks again, not heaviest first: since all threads work on one batch, none is
left waiting at the end, and what a task costs beyond its work is the blocks that it has to read, and what is made of
block jk. For fixed j and k, i goes up and down in turn: what was made of jk serves all of them. The order is known
beforehand, so that the block to evict for another one is the one that is needed last (Belady's rule, which no other
can beat).

Memory: tables of all tasks, the blocks of a batch, what its algorithm makes of them, and what each thread takes; blocks
of batches to come stay as far as the limit allows. A journal in the store has every finished batch.

What a count will take is found before a block is read, from the sizes of all blocks in the manifest. Memory comes from
a dry run with sizes instead of blocks: which blocks are held when each batch runs is decided by the same
`BlockCache`, and what a batch makes of its blocks is what its algorithm expects; it may be more, but never more than
was kept free for it. The same dry run knows the bytes that are read. Seconds are straight lines in the wedges of the
graph and in the arcs and tasks that are visited, with the slopes of the algorithm: on the machine that these were
measured on, from 0.6 to 1.3 of what keystone took.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import nullcontext
from copy import copy
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms import find
from wedgewise.algorithms._contract import BatchWork, Knobs, Shape
from wedgewise.algorithms._passes import run_passes
from wedgewise.algorithms.cpu._batches import with_busy_rows
from wedgewise.errors import FormatError
from wedgewise.machine import jit
from wedgewise.machine.budget import MORE_PARTS, available_after_loading, check_fits
from wedgewise.machine.out_of_memory import memory_for
from wedgewise.machine.progress import Progress
from wedgewise.machine.threads import run_tasks
from wedgewise.run.batches import Batches, batches_of, load_batch_kernels, needed_together
from wedgewise.run.block_caches import BlockCache
from wedgewise.run.checkpoint import Journal, journal_bytes, key_of, open_journal
from wedgewise.run.in_memory import Execution, TaskRun, finished_execution
from wedgewise.run.plan import OrientedShape, Plan, plan_of, with_reasons
from wedgewise.run.reduce import Computed, can_occur, reduce
from wedgewise.run.request import Request
from wedgewise.run.shares import dealt
from wedgewise.run.task_memory import (
    COUNTED_TASK_BYTES,
    BlockSource,
    TaskMemory,
    bytes_beside_lists,
    lists_bytes,
    triple_answer,
)
from wedgewise.run.timeline import Timeline
from wedgewise.stages.blocks import Block, Triple
from wedgewise.stages.tasks import Estimates, Pair, TaskBatch, TaskResults, TaskTable, busy_tasks, exact_sum, task_count
from wedgewise.store.manifest import MANIFEST
from wedgewise.store.open import Store, first_fault
from wedgewise.version import __version__

PROCESS = "the interpreter and its kernels"
CLIQUE_VERTICES = 1 << 8  # of a graph that kernels are loaded with: so many that the engine has hubs
READ_BYTES_PER_SECOND = 3.3e8  # from the page cache, checksums and rows checked


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
    count : how many there are, those without work included
    run : counts those that the journal does not have, and writes each down there when it is finished
    """

    plan: Plan
    key: str
    count: int
    run: Callable[[Journal | None, Progress | None], TaskRun]


class Finished(NamedTuple):
    """What the tasks of a batch found, by their numbers; seconds are those of one thread, without reading."""

    numbers: NDArray[np.int64]
    triangles: NDArray[np.uint64]
    tests: NDArray[np.uint64]
    seconds: Estimates


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
    keeping = open_journal(store, tasks.key, tasks.count, resume=request.resume)
    with keeping if journal else nullcontext((None, ())) as (written, notes):
        resumed = 0 if written is None else len(written.results.done)
        ran = tasks.run(written, progress)
        computed = total_of(store, ran.execution, ran.plan)
        if written is not None:
            written.remove()
    seconds = ran.execution.results.by_seconds
    return StoreCount(computed, with_reasons(ran.plan, notes), resumed, seconds, ran.timeline)


def tasks_from_disk(request: Request, store: Store) -> StoreTasks:
    """Tasks that this process counts one after the other, on all threads, within the memory limit."""
    counting, plan = plan_count(request, store)
    return StoreTasks(
        plan, count_key(request, store), counting.all_tasks, lambda *given: TaskRun(counting.run(*given), plan)
    )


def plan_count(request: Request, store: Store) -> tuple[Counting, Plan]:
    """What counts a store, and its plan; refuse a store whose heaviest task takes more than there is."""
    counting = counting_within(request, store)
    counting.check_fits()
    return counting, _predicted(store, request.block_algorithm, counting)


def counting_within(request: Request, store: Store) -> Counting:
    """What counts a store within what is left of the memory limit when its kernels are loaded."""
    name = request.block_algorithm
    answer, settings = triple_answer(name), find(name, "cpu").settings(request.knobs)
    limit_bytes = available_after_loading(request.memory_limit, load_count_kernels, name)
    limit_bytes = bytes_beside_lists(
        store.location, store.partition, COUNTED_TASK_BYTES, limit_bytes, request.share_count
    )
    memory = TaskMemory(store.counts, answer, settings, request.thread_count)
    return Counting(store, memory, limit_bytes, shares=request.share_count).with_fitting_threads()


def total_of(store: Store, execution: Execution, plan: Plan) -> Computed:
    """The sum of all tasks; refuse a store that says of itself what makes the sum impossible."""
    triangles = exact_sum(execution.results.triangles)
    if not can_occur(triangles, plan):
        raise FormatError(
            f"says that there are {plan.m:,} edges and {plan.wedges:,} wedges, and {triangles:,} triangles were found",
            path=store.location.name_of(MANIFEST),
            remedy="start again by --restart (resume=False), and if that is not it, partition the graph again",
        )
    return reduce(execution, plan)


class Counting:
    """Tasks of a store, or of the remaining arcs of its `blocks`, and what each of them takes."""

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
        self.all_tasks = task_count(store.partition, shares)
        self.tasks = busy_tasks(store.partition, memory.counts, shares).in_reuse_order()

    def with_fitting_threads(self) -> Counting:
        """The same on as many threads as the memory allows, halved as often as that takes."""
        fewer = copy(self)
        while fewer.memory.threads > 1 and fewer.memory.heaviest(self.tasks)[0] > self.available_bytes:
            fewer.memory = replace(fewer.memory, threads=fewer.memory.threads // 2)
        return fewer

    def check_fits(self) -> int:
        """What the heaviest task takes; refuse it where there is less."""
        need, heaviest = self.memory.heaviest(self.tasks)
        if heaviest is not None:
            blocks = f"the blocks {heaviest.i}, {heaviest.j}, {heaviest.k} and what is made of them take"
            check_fits(need, self.available_bytes, f"{self.store.location}: {blocks}", MORE_PARTS)
        return need

    def run(self, journal: Journal | None, progress: Progress | None) -> Execution:
        """Every task that the journal does not have."""
        results = journal.results if journal is not None else TaskResults.none(self.all_tasks)
        left = self.tasks.take(np.flatnonzero(~results.is_done[self.tasks.number]))
        done = len(self.tasks) - len(left)
        for finished in self.count_batches(self.batches(left)):
            if journal is not None:
                journal.add(*finished)
            else:
                results.put(*finished)
            done += len(finished.numbers)
            if progress is not None:
                progress("count", done, len(self.tasks))
        return finished_execution(results, self.tasks)

    def batches(self, tasks: TaskTable) -> Batches:
        """Tasks in batches, in their order."""
        return batches_of(tasks, self.memory, self.available_bytes, seconds_of(tasks, self.memory))

    def count_batches(self, batches: Batches, cache: BlockCache[Block] | None = None) -> Iterator[Finished]:
        """What batches find, one after the other; without a cache, their own blocks are known to be all."""
        if cache is None:
            cache = self.cache(batches)
        looked_up: list[int] | None = None
        for batch in batches:
            before, looked_up = looked_up, np.unique(batch.tasks.pairs[2]).tolist()
            if looked_up != before:  # what was made of other blocks is released before these are read
                prepare = self.memory.answer.counter(self.memory.knobs)
            blocks = cache.blocks(batch.pairs, self.available_bytes - batch.work_bytes)
            yield self.count(prepare(TaskBatch(blocks, batch.tasks)), batch.tasks)

    def cache(self, batches: Batches | None = None) -> BlockCache[Block]:
        """Blocks in memory for these batches, or for whatever comes."""
        if batches is None:
            return BlockCache(self._read, self.memory.block)
        return BlockCache(self._read, self.memory.block, batches.pairs, len(batches))

    def _read(self, pairs: list[Pair]) -> list[Block]:
        """Read blocks on all threads: several at a time, or the rows of one."""
        threads, alone = self.memory.threads, len(pairs) == 1

        def read(number: int, _worker: int) -> Block:
            return self.memory.read(self._blocks, pairs[number], threads if alone else 1)

        return run_tasks(read, len(pairs), threads)

    def count(self, work: BatchWork, tasks: TaskTable) -> Finished:
        """What a batch finds."""
        run_passes(work, self.memory.threads)
        return Finished(tasks.number, *work.by_task())


def store_plan(
    store: Store, algorithm: str, knobs: dict[str, int | str], threads: int, need: int, shares: int = 1
) -> Plan:
    """The plan of a count, as far as it does not depend on who counts."""
    manifest = store.manifest
    return plan_of(
        "count",
        OrientedShape(Shape(manifest.n, manifest.m, manifest.wedges), manifest.order),
        algorithm=algorithm,
        threads=threads,
        knobs=knobs,
        bytes_needed=need,
        reasons=(
            f"a store of {len(manifest.blocks):,} blocks: those of a task are in memory, and others as far as they fit",
            *dealt(shares),
        ),
        beyond=PROCESS,
    )


def _predicted(store: Store, algorithm: str, counting: Counting) -> Plan:
    """The plan of a count, with what it will take."""
    memory = counting.memory
    found = predict(counting, store.manifest.wedges)
    shares = counting.tasks.shares
    lists = lists_bytes(store.partition, COUNTED_TASK_BYTES, shares)
    plan = store_plan(store, algorithm, dict(memory.knobs), memory.threads, found.peak_bytes + lists, shares)
    reasons = (
        f"at most {found.held_bytes:,} bytes of blocks and {found.work_bytes:,} of what is made of them",
        f"{lists:,} bytes of tables of tasks",
        f"{found.read_bytes:,} bytes of blocks are read for {found.tasks:,} tasks in {found.batches:,} batches",
        f"up to {journal_bytes(found.tasks):,} bytes of disk for finished tasks, until all are counted",
    )
    return replace(plan, estimated_seconds=found.seconds, reasons=(*plan.reasons, *reasons))


def count_key(request: Request, store: Store) -> str:
    """What the finished tasks of a count depend on: neither on the device that counts them, nor on memory or knobs."""
    return work_key(store, request.block_algorithm, {}, request.share_count)


def work_key(store: Store, algorithm: str, knobs: Knobs, shares: int = 1) -> str:
    """What results depend on: the graph, its parts, and how they are computed."""
    return key_of(
        fingerprint=store.manifest.fingerprint,
        partition=store.partition.to_dict(),
        algorithm=algorithm,
        knobs=dict(knobs),
        shares=shares,
        version=__version__,
    )


def load_count_kernels(algorithm: str) -> None:
    """Load every kernel that counting on a store calls: count a clique, in each way that the algorithm knows."""
    if jit.JIT_DISABLED:
        return
    load_batch_kernels()
    knobs, answer = find(algorithm, "cpu").knobs, triple_answer(algorithm)
    block, other = (with_busy_rows(checked_clique()) for _ in range(2))
    for way in ({}, *({knob.name: choice} for knob in knobs for choice in knob.choices)):
        for triple in (Triple(block, block, block), Triple(block, other, block)):
            run_passes(answer.prepare(triple, find(algorithm, "cpu").settings(way)), 1)


def checked_clique() -> Block:
    """A block to load kernels with, checked as one that was read."""
    rows, columns = np.triu_indices(CLIQUE_VERTICES, 1)
    offsets = np.append(0, np.cumsum(np.bincount(rows, minlength=CLIQUE_VERTICES))).astype(np.uint32)
    block = Block(offsets, columns.astype(np.uint32), CLIQUE_VERTICES)
    first_fault(block.offsets, block.heads, CLIQUE_VERTICES, 0, CLIQUE_VERTICES)
    return block


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a count will take.

    Attributes
    ----------
    held_bytes, work_bytes : blocks, and what is made of them, when both together are most
    read_bytes : of blocks, again where they were evicted in between
    tasks, batches : that have work
    seconds : of the count, about
    """

    held_bytes: int
    work_bytes: int
    read_bytes: int
    tasks: int
    batches: int
    seconds: float

    @property
    def peak_bytes(self) -> int:
        """The most that is held at a time, beyond what the process held before."""
        return self.held_bytes + self.work_bytes


def predict(counting: Counting, wedges: int) -> Prediction:
    """What a count will take, of a graph with so many wedges in its order; none of its tasks takes too much."""
    memory, batches = counting.memory, counting.batches(counting.tasks)
    cache = BlockCache[None](_no_blocks, memory.block, batches.pairs, len(batches))
    n, m = int(memory.counts.sizes.sum()), int(memory.counts.arcs.sum())
    is_skewed = wedges * n > m * m  # behind an arc are more others than if all vertices had as many
    held = work = 0
    for batch in batches:
        cache.blocks(batch.pairs, counting.available_bytes - batch.work_bytes)
        expected = needed_together(batch.tasks, memory.expected(batch.tasks, is_skewed))
        if cache.held_bytes + expected > held + work:
            held, work = cache.held_bytes, expected
    seconds = float(seconds_of(counting.tasks, memory, wedges).sum()) / memory.threads
    read = cache.read_bytes
    return Prediction(held, work, read, len(counting.tasks), len(batches), seconds + read / READ_BYTES_PER_SECOND)


def _no_blocks(pairs: Collection[Pair]) -> list[None]:
    return [None] * len(pairs)


def seconds_of(tasks: TaskTable, memory: TaskMemory, wedges: int | None = None) -> Estimates:
    """The seconds of one thread for every task, about; by BBTC's estimate where the wedges are not known."""
    cost, arcs, (ij, ik, _) = memory.answer.cost, memory.counts.arcs.ravel(), tasks.pairs
    tests = tasks.work if wedges is None else tasks.work * (wedges / (float(tasks.work.sum()) or 1.0))
    return cost.per_wedge * tests + cost.per_arc * (arcs[ij] + arcs[ik]) / tasks.shares + cost.per_task
