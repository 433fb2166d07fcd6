"""Peel a graph: edges with too few triangles die in rounds, and take their triangles from those that stay.

A round of many dying edges goes on all threads: `close_edges` writes down, task by task, which edges lose a triangle,
sorted into shares; then `take_triangles` applies the losses, each share by one owner. A round of few is peeled
serially, and so are those that follow from it, until there are many.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._truss.living import PACK_SHARE, Living
from wedgewise.algorithms.cpu import _truss_close as close
from wedgewise.algorithms.cpu import _truss_rows as rows
from wedgewise.algorithms.cpu._truss_close import BLOCK, FOUND
from wedgewise.machine.threads import run_tasks
from wedgewise.stages import Ids, Keys

SLICE_EDGES = 1 << 17  # dying edges that are sorted at once
SLICES_AT_ONCE = 8
LEAST_STEPS, MOST_STEPS = 1 << 16, 1 << 21  # of one task
TASK_TRIANGLES = 1 << 17  # more than any edge has that dies: k ≤ √(2m) + 1
TASKS_AT_ONCE = 16
SHARE_EDGES_BITS, MOST_SHARES = 17, 128
FEW_EDGES = 1024  # dying edges that are not worth a round on all threads
SERIAL_STEPS = 1 << 24

OnRound = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Workspace:
    """What one thread needs: marks by vertex, the last stamp, the list of found triangles."""

    marks: Keys
    stamps: Keys
    found: Keys

    @classmethod
    def of(cls, vertices: int) -> Workspace:
        return cls(np.zeros(vertices, np.uint64), np.zeros(1, np.uint64), np.empty(FOUND, np.uint64))


@dataclass(slots=True)
class Losses:
    """Blocks that tasks write losses into, each task to its own; block b is ``losses[b * BLOCK:(b + 1) * BLOCK]``."""

    share_bits: int
    share_count: int
    blocks_per_task: int
    losses: Ids
    fills: Ids
    shares: Ids
    cursors: Keys
    counters: NDArray[np.uint64]

    @classmethod
    def of(cls, edges: int) -> Losses:
        bits = max(SHARE_EDGES_BITS, (max(1, edges) // MOST_SHARES).bit_length())
        count = (edges >> bits) + 1
        blocks = 2 * TASK_TRIANGLES // (BLOCK - 1) + count + 1
        total = TASKS_AT_ONCE * blocks
        return cls(
            bits,
            count,
            blocks,
            np.empty(total * BLOCK, np.uint32),
            np.empty(total, np.uint32),
            np.empty(total, np.uint32),
            np.empty(TASKS_AT_ONCE * count, np.uint64),
            np.zeros((TASKS_AT_ONCE, 2), np.uint64),
        )

    def of_task(self, slot: int) -> tuple[Any, ...]:
        """Cursors, fills, shares, losses and counters of one task."""
        part = slice(slot * self.blocks_per_task, (slot + 1) * self.blocks_per_task)
        places = slice(part.start * BLOCK, part.stop * BLOCK)
        cursors = self.cursors[slot * self.share_count : (slot + 1) * self.share_count]
        return cursors, self.fills[part], self.shares[part], self.losses[places], self.counters[slot]

    def by_share(self, tasks: int) -> tuple[Ids, NDArray[np.int64]]:
        """The blocks in use by so many tasks, by share, and where the blocks of each share begin."""
        used = [
            np.arange(int(self.counters[slot, close.USED]), dtype=np.uint32) + np.uint32(slot * self.blocks_per_task)
            for slot in range(tasks)
        ]
        blocks = np.concatenate(used)
        shares = self.shares[blocks]
        order = np.argsort(shares, kind="stable")
        return blocks[order], np.searchsorted(shares[order], np.arange(self.share_count + 1)).astype(np.int64)


@dataclass(slots=True)
class Peeling:
    """The rounds over a living graph, which settle every edge at the bound by which it dies.

    ``on_round(edges)`` is told how many have died so far.
    """

    living: Living
    settled: Ids
    on_round: OnRound | None = None
    workspaces: dict[int, Workspace] = field(init=False, default_factory=dict)
    losses: Losses = field(init=False)
    falling: Ids = field(init=False)
    dead: int = field(init=False, default=0)
    buried: int = field(init=False, default=0)
    rounds: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.losses = Losses.of(self.living.m)
        self.falling = np.empty(self.living.m, np.uint32)

    def drop(self, bound: int) -> int:
        """Let all edges die that have at most `bound` triangles, also by others' death.

        Where there are none, the least support of all (`GONE` without edges); else `bound`.
        """
        dying, least = self.living.weak(bound)
        if not len(dying):
            return least
        while len(dying):
            self.living.doom(dying)
            dying = self._serial(dying, bound) if len(dying) <= FEW_EDGES else self._round(dying, bound)
            if self.dead * PACK_SHARE >= self.living.m:
                dying = self._pack(dying)
        return bound

    def _pack(self, dying: Ids) -> Ids:
        renumbered = self.living.pack()
        self.dead = 0
        self.workspaces.clear()
        del self.losses  # before others take their place
        self.losses = Losses.of(self.living.m)
        self.falling = self.falling[: self.living.m]
        return renumbered[dying]

    def _bury(self, dying: Ids, bound: int) -> None:
        self.living.bury(dying, bound, self.settled)
        self.dead += len(dying)
        self.buried += len(dying)
        self.rounds += 1
        if self.on_round is not None:
            self.on_round(self.buried)

    def _workspace(self, worker: int) -> Workspace:
        if worker not in self.workspaces:
            self.workspaces[worker] = Workspace.of(self.living.n)
        return self.workspaces[worker]

    def _serial(self, dying: Ids, bound: int) -> Ids:
        """Peel one edge after the other until none or many are waiting; those."""
        graph, queue = self.living, self.falling
        own = self._workspace(0)
        done, filled = 0, len(dying)
        queue[:filled] = dying
        structure = graph.ends, graph.firsts, graph.stops, graph.rows, graph.supports, graph.states
        while 0 < filled - done <= FEW_EDGES:
            ends = close.peel_serially(
                queue, done, filled, FEW_EDGES, SERIAL_STEPS, bound, *structure, own.marks, own.stamps, own.found
            )
            done, filled = (int(end) for end in ends)
        waiting = queue[done:filled].copy()
        self._bury(queue[:done], bound)
        return waiting

    def _round(self, dying: Ids, bound: int) -> Ids:
        """Let many edges die at the same time; those that fall by it."""
        fallen = np.zeros(self.losses.share_count, np.uint64)
        for begin in range(0, len(dying), SLICES_AT_ONCE * SLICE_EDGES):
            some = dying[begin : begin + SLICES_AT_ONCE * SLICE_EDGES]
            slices = -(-len(some) // SLICE_EDGES)

            def cut(part: int, _worker: int, some: Ids = some) -> tuple[Keys, list[int]]:
                return self._tasks(some, part)

            sliced = run_tasks(cut, slices, self.living.threads)
            tasks = [(keys, *pair) for keys, bounds in sliced for pair in pairwise(bounds)]
            for first in range(0, len(tasks), TASKS_AT_ONCE):
                self._close(tasks[first : first + TASKS_AT_ONCE], bound, fallen)
        self._bury(dying, bound)
        starts = np.arange(self.losses.share_count) << self.losses.share_bits
        parts = [self.falling[a : a + int(count)] for a, count in zip(starts.tolist(), fallen, strict=True)]
        return np.concatenate(parts)

    def _tasks(self, dying: Ids, part: int) -> tuple[Keys, list[int]]:
        """The keys of a slice of dying edges with triangles, sorted, and the bounds of tasks over them."""
        graph = self.living
        begin, end = part * SLICE_EDGES, min(len(dying), (part + 1) * SLICE_EDGES)
        keys = np.empty(end - begin, np.uint64)
        shape = graph.ends, graph.firsts, graph.stops, graph.supports
        count, steps = rows.key_edges(dying, begin, end, *shape, keys)
        keys = keys[: int(count)]
        keys.sort()
        bounds = np.zeros(len(keys) + 2, np.uint64)
        most = min(MOST_STEPS, max(LEAST_STEPS, int(steps) // TASKS_AT_ONCE))
        tasks = int(rows.cut_tasks(keys, *shape, most, TASK_TRIANGLES, bounds))
        return keys, bounds[: tasks + 1].tolist()

    def _close(self, cuts: list[tuple[Keys, int, int]], bound: int, fallen: Keys) -> None:
        """Find the triangles of some tasks' edges, and take them from those that stay."""
        graph, losses = self.living, self.losses
        structure = graph.ends, graph.firsts, graph.stops, graph.rows, graph.states
        tasks = len(cuts)

        def find(task: int, worker: int) -> None:
            own = self._workspace(worker)
            spaces = *structure, own.marks, own.stamps, own.found, losses.share_bits, *losses.of_task(task)
            close.close_edges(*cuts[task], *spaces)

        run_tasks(find, tasks, graph.threads)
        blocks, starts = losses.by_share(tasks)
        targets = np.linspace(0, len(blocks), graph.threads + 1)
        owners = starts[np.searchsorted(starts, targets)].tolist()

        def take(owner: int, _worker: int) -> None:
            close.take_triangles(
                blocks,
                owners[owner],
                owners[owner + 1],
                losses.fills,
                losses.losses,
                bound,
                losses.share_bits,
                graph.supports,
                self.falling,
                fallen,
                losses.shares,
            )

        run_tasks(take, graph.threads, graph.threads)
