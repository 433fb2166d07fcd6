"""Counting on a store within a memory limit: a task at a time, its three blocks in memory, threads within the task.

Tasks run in an order that uses the same blocks again, not heaviest first: since all threads work on one task, none is
left waiting at the end, and what a task costs beyond its work is the blocks that it has to read. For fixed i and j, k
goes up and down in turn. The order is known beforehand, so that the block to give up for another one is the one that is
needed last (Belady's rule, which no other can beat).

Memory: the blocks of a task, what its algorithm makes of them, and 4 bytes per column for each further thread; blocks
of tasks to come stay as far as the limit allows. A journal in the store has every finished task.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from wedgewise import __version__
from wedgewise.algorithms import find
from wedgewise.algorithms._contract import Work
from wedgewise.blocks import Block, Task, Triple
from wedgewise.errors import MemoryLimitError
from wedgewise.execute.journal import JOURNAL, Journal, key_of
from wedgewise.execute.local import Execution, Partial, run_pass
from wedgewise.execute.task_memory import Pair, TaskMemory, pairs_of_task, triple_answer
from wedgewise.machine import hardware, jit
from wedgewise.machine.budget import room_within
from wedgewise.partition.store import Store, first_fault, open_store
from wedgewise.partition.tasks import tasks_of
from wedgewise.plan import ENGINE, Plan
from wedgewise.reduce import Computed, reduce

Tell = Callable[[str, int, int], None] | None

REHEARSED = 1 << 8  # vertices of a clique: so many that the engine has hubs


@dataclass(frozen=True, slots=True)
class StoreCount:
    """The triangles of a store, how they were counted, and how many tasks a journal had already."""

    computed: Computed
    plan: Plan
    resumed: int

    @property
    def triangles(self) -> int:
        return self.computed.triangles


def count_store(
    store: Store | str | os.PathLike[str],
    *,
    memory_limit: int | None = None,
    threads: int | None = None,
    algorithm: str = "auto",
    knobs: Mapping[str, int | str] | None = None,
    progress: Tell = None,
    resume: bool = True,
    journal: bool = True,
) -> StoreCount:
    """Count the triangles of a store, exactly.

    Parameters
    ----------
    store : an open store, or its folder
    memory_limit : for the resident size of this process, interpreter included; what is left by default
    threads : how many threads work on a task
    algorithm : the name of one that counts three blocks at a time; "auto" is the engine
    knobs : its parameters
    progress : a callable (stage, done, total)
    resume : go on where a count with the same options was ended; without it, start again
    journal : write down every finished task, into the store

    Raises
    ------
    MemoryLimitError
        When the blocks of some task do not fit.
    InputError
        When there is a journal of another graph or of other options.
    """
    opened = store if isinstance(store, Store) else open_store(store)
    counting, plan = plan_count(opened, memory_limit, threads, algorithm, knobs)
    written = Journal(opened.folder / JOURNAL, _key(opened, plan)) if journal else None
    if written is not None:
        if not resume:
            written.remove()
        written.read()
    resumed = 0 if written is None else len(written.done)
    execution = counting.run(written, progress)
    computed = reduce(execution, plan)
    if written is not None:
        written.remove()
    return StoreCount(computed, plan, resumed)


def plan_count(
    store: Store,
    memory_limit: int | None,
    threads: int | None,
    algorithm: str,
    knobs: Mapping[str, int | str] | None = None,
) -> tuple[Counting, Plan]:
    """Load the kernels, measure what is left, and refuse a store whose heaviest task takes more."""
    name = ENGINE if algorithm == "auto" else algorithm
    answer, settings = triple_answer(name), find(name, "cpu").settings(knobs)
    room = room_within(memory_limit, rehearse, (first_fault.function.__module__, answer.prepare.__module__), name)
    memory = TaskMemory(store.counts, answer, settings, threads or hardware.usable_threads())
    counting = Counting(store, memory, room).with_fitting_threads()
    return counting, _plan(store, name, settings, counting.memory.threads, counting.check_room())


def reuse_order(tasks: Sequence[Task]) -> list[Task]:
    """Tasks by i and j, and by k up and down in turn."""
    ordered: list[Task] = []
    groups: dict[Pair, list[Task]] = {}
    for task in tasks:
        groups.setdefault((task.i, task.j), []).append(task)
    for number, group in enumerate(groups.values()):
        ordered += group if number % 2 == 0 else group[::-1]
    return ordered


class Counting:
    """Tasks of a store, and what each of them takes."""

    def __init__(self, store: Store, memory: TaskMemory, room: int) -> None:
        self.store, self.memory, self.room = store, memory, room
        self.tasks = tasks_of(store.partition)
        self.order = [task for task in reuse_order(self.tasks) if memory.has_work(task)]

    def with_fitting_threads(self) -> Counting:
        """The same on as many threads as the room allows, halved as often as that takes."""
        if self.memory.threads == 1 or self.memory.heaviest(self.order)[0] <= self.room:
            return self
        fewer = replace(self.memory, threads=self.memory.threads // 2)
        return Counting(self.store, fewer, self.room).with_fitting_threads()

    def check_room(self) -> int:
        """What the heaviest task takes; refuse it where there is less."""
        need, heaviest = self.memory.heaviest(self.order)
        if heaviest is not None and need > self.room:
            raise MemoryLimitError(
                f"{self.store.folder}: the blocks {heaviest.i}, {heaviest.j}, {heaviest.k} and what is made of them "
                f"take {need:,} bytes and {self.room:,} are left; raise the limit, or partition the graph "
                "into more parts"
            )
        return need

    def run(self, journal: Journal | None, tell: Tell) -> Execution:
        """Every task that the journal does not have."""
        partials = {task.number: Partial(task.number, 0, 0) for task in self.tasks}
        if journal is not None:
            partials.update(journal.done)
        to_do = [task for task in self.order if journal is None or task.number not in journal.done]
        cache = _Cache(self.store, self.memory, to_do)
        done = len(self.order) - len(to_do)
        for position, task in enumerate(to_do):
            partial = self._count(task, cache.triple(position, self.room - self.memory.work(task)))
            if journal is not None:
                journal.add(partial)
            partials[task.number] = partial
            done += 1
            if tell is not None:
                tell("count", done, len(self.order))
        return Execution(len(self.tasks), partials, Work(()))

    def _count(self, task: Task, triple: Triple) -> Partial:
        triangles = tests = 0
        for step in self.memory.answer.prepare(triple, self.memory.knobs, task.share, task.shares).passes:
            for partial in run_pass(step, 0, self.memory.threads, None):
                triangles += partial.triangles
                tests += partial.tests
        return Partial(task.number, triangles, tests)


class _Cache:
    """Blocks in memory; which one goes first is known from the tasks to come."""

    def __init__(self, store: Store, memory: TaskMemory, tasks: Sequence[Task]) -> None:
        self._store, self._memory, self._tasks = store, memory, tasks
        self._held: dict[Pair, Block] = {}
        self._uses: dict[Pair, list[int]] = {}  # positions of tasks, the next one last
        for position in range(len(tasks) - 1, -1, -1):
            for pair in pairs_of_task(tasks[position]):
                self._uses.setdefault(pair, []).append(position)

    def triple(self, position: int, room: int) -> Triple:
        """The blocks of the task at a position; all that are held take no more than `room` bytes."""
        task = self._tasks[position]
        wanted = pairs_of_task(task)
        self._make_room(wanted, room)
        for pair in wanted:
            if pair not in self._held:
                self._held[pair] = self._store.block(*pair, threads=self._memory.threads)
            self._uses[pair].pop()
        return Triple(self._held[task.i, task.j], self._held[task.i, task.k], self._held[task.j, task.k])

    def _make_room(self, wanted: set[Pair], room: int) -> None:
        """Give up what no task needs any more, and then what is needed last, until the wanted blocks fit."""
        for pair in [pair for pair in self._held if not self._uses[pair]]:
            del self._held[pair]
        while sum(self._memory.block(pair) for pair in wanted | self._held.keys()) > room:
            last = max(self._held.keys() - wanted, key=lambda pair: self._uses[pair][-1])
            del self._held[last]


def _plan(store: Store, algorithm: str, knobs: dict[str, int | str], threads: int, need: int) -> Plan:
    manifest = store.manifest
    return Plan(
        question="count",
        computes="count",
        algorithm=algorithm,
        device="cpu",
        order=manifest.order,
        relabel="rank",
        threads=threads,
        knobs=knobs,
        n=manifest.n,
        m=manifest.m,
        wedges=manifest.wedges,
        bytes_needed=need,
        estimated_seconds=0.0,
        reasons=(
            f"a store of {len(manifest.blocks):,} blocks: those of a task are in memory, and others as far as they fit",
        ),
    )


def _key(store: Store, plan: Plan) -> str:
    """What results depend on: the graph, its parts, and how they are counted."""
    return key_of(
        fingerprint=store.manifest.fingerprint,
        partition=store.partition.to_dict(),
        algorithm=plan.algorithm,
        knobs=plan.knobs,
        version=__version__,
    )


def rehearse(algorithm: str) -> None:
    """Load every kernel that counting on a store calls: count a clique, in each way that the algorithm knows."""
    if jit.JIT_DISABLED:
        return
    rows, columns = np.triu_indices(REHEARSED, 1)
    offsets = np.append(0, np.cumsum(np.bincount(rows, minlength=REHEARSED))).astype(np.uint32)
    heads = columns.astype(np.uint32)
    first_fault(offsets, heads, REHEARSED, 0, REHEARSED)
    knobs, answer = find(algorithm, "cpu").knobs, triple_answer(algorithm)
    ways = [{}, *({knob.name: choice} for knob in knobs for choice in knob.choices)]
    block, other = Block(offsets, heads, REHEARSED), Block(offsets, heads, REHEARSED)
    for way in ways:
        for triple in (Triple(block, block, block), Triple(block, other, block)):
            work = answer.prepare(triple, find(algorithm, "cpu").settings(way), 0, 1)
            for step in work.passes:
                run_pass(step, 0, 1, None)
