"""Peel a graph: edges with too few triangles are removed in rounds, and take their triangles from those that stay.

The edges of a round are its frontier. A round of many goes on all threads: `close_edges` writes down, task by task,
which edges lose a triangle, sorted into shares; then `take_triangles` applies the losses, each share by one task. A
round of few is peeled serially, and so are those that follow from it, until there are many. Where a round removes much
of what remains, nothing is taken from the rest: its triangles are counted again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._truss.remaining import PACK_SHARE, RemainingEdges
from wedgewise.algorithms.cpu import _truss_close as close
from wedgewise.algorithms.cpu import _truss_rows as rows
from wedgewise.algorithms.cpu._truss_close import BLOCK, FOUND, LOSING, LossBlocks, Workspace
from wedgewise.machine.threads import run_tasks
from wedgewise.stages import Ids, Keys

SLICE_EDGES = 1 << 17  # edges of a frontier that are sorted at once
SLICES_AT_ONCE = 8
MIN_STEPS, MAX_STEPS = 1 << 16, 1 << 21  # of one task
TASK_TRIANGLES = 1 << 17  # more than any edge has that is removed: k ≤ √(2m) + 1
TASKS_AT_ONCE = 16
SHARE_EDGES_BITS, MAX_SHARES = 17, 128
FEW_EDGES = 1024  # edges that are not worth a round on all threads
SERIAL_STEPS = 1 << 24
RECOUNT_SHARE = 6  # edges whose triangles are counted again in the time that taking those of one takes
RECOUNT_PART = 2  # counting more than half of the edges again would take memory that is not planned for

OnRound = Callable[[int], None]


@dataclass(slots=True)
class Losses:
    """Blocks that tasks write losses into, each task to its own."""

    share_count: int
    blocks_per_task: int
    blocks: LossBlocks
    cursors: Keys
    counters: NDArray[np.uint64]

    @classmethod
    def of(cls, edges: int) -> Losses:
        bits = max(SHARE_EDGES_BITS, (max(1, edges) // MAX_SHARES).bit_length())
        count = (edges >> bits) + 1
        blocks = 2 * TASK_TRIANGLES // (BLOCK - 1) + count + 1
        total = TASKS_AT_ONCE * blocks
        losses, (fills, shares) = np.empty(total * BLOCK, np.uint32), np.empty((2, total), np.uint32)
        return cls(
            count,
            blocks,
            LossBlocks(np.uint64(bits), losses, fills, shares),
            np.empty(TASKS_AT_ONCE * count, np.uint64),
            np.zeros((TASKS_AT_ONCE, 2), np.uint64),
        )

    def of_task(self, slot: int) -> tuple[LossBlocks, Keys, Keys]:
        """Blocks, cursors and counters of one task."""
        part = slice(slot * self.blocks_per_task, (slot + 1) * self.blocks_per_task)
        positions = slice(part.start * BLOCK, part.stop * BLOCK)
        bits, losses, fills, shares = self.blocks
        cursors = self.cursors[slot * self.share_count : (slot + 1) * self.share_count]
        return LossBlocks(bits, losses[positions], fills[part], shares[part]), cursors, self.counters[slot]

    def by_share(self, tasks: int) -> tuple[Ids, NDArray[np.int64]]:
        """The blocks in use by so many tasks, by share, and where the blocks of each share begin."""
        used = [
            np.arange(int(self.counters[slot, close.USED]), dtype=np.uint32) + np.uint32(slot * self.blocks_per_task)
            for slot in range(tasks)
        ]
        blocks = np.concatenate(used)
        shares = self.blocks.shares[blocks]
        order = np.argsort(shares, kind="stable")
        return blocks[order], np.searchsorted(shares[order], np.arange(self.share_count + 1)).astype(np.int64)


@dataclass(slots=True)
class Peeling:
    """The rounds over a graph that remove every edge.

    Attributes
    ----------
    remaining : the edges, which rounds change
    removed_at : the bound at which each edge was removed; its truss number is that + 2
    on_round : called with the number of edges that are removed so far
    """

    remaining: RemainingEdges
    removed_at: Ids
    on_round: OnRound | None = None
    workspaces: dict[int, Workspace] = field(init=False, default_factory=dict)
    losses: Losses = field(init=False)
    next_frontier: Ids = field(init=False)
    most_recounted: int = field(init=False)
    removed_in_rows: int = field(init=False, default=0)
    removed: int = field(init=False, default=0)
    rounds: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.losses = Losses.of(self.remaining.m)
        self.next_frontier = np.empty(self.remaining.m, np.uint32)
        self.most_recounted = self.remaining.m // RECOUNT_PART

    def drop(self, bound: int) -> int:
        """Remove all edges that have at most `bound` triangles, or come down to that as others are removed.

        Where there are none, the least support of all (`GONE` without edges); else `bound`.
        """
        frontier, least = self.remaining.weak(bound, self.next_frontier)
        if not len(frontier):
            return least
        while len(frontier):
            if self._is_recount_cheaper(len(frontier)):
                frontier = self._recount(frontier, bound)
                continue
            self.remaining.mark_frontier(frontier)
            frontier = self._serial(frontier, bound) if len(frontier) <= FEW_EDGES else self._round(frontier, bound)
            if self.removed_in_rows * PACK_SHARE >= self.remaining.m:
                frontier = self._pack(frontier)
        return bound

    def _is_recount_cheaper(self, frontier: int) -> bool:
        """Whether to count the edges behind a frontier again, instead of taking its triangles from them."""
        left = self.remaining.m - self.removed_in_rows - frontier
        return frontier > FEW_EDGES and left <= min(frontier * RECOUNT_SHARE, self.most_recounted)

    def _recount(self, frontier: Ids, bound: int) -> Ids:
        """Remove many edges, and count the triangles of the others; the next frontier."""
        self._remove(frontier, bound)
        self._pack(frontier[:0])
        self.remaining.recount()
        return self.remaining.weak(bound, self.next_frontier)[0]

    def _pack(self, frontier: Ids) -> Ids:
        renumbered = self.remaining.pack()
        self.removed_in_rows = 0
        self.next_frontier = self.next_frontier[: self.remaining.m]
        return renumbered[frontier]

    def _remove(self, frontier: Ids, bound: int) -> None:
        self.remaining.remove(frontier, bound, self.removed_at)
        self.removed_in_rows += len(frontier)
        self.removed += len(frontier)
        self.rounds += 1
        if self.on_round is not None:
            self.on_round(self.removed)

    def _workspace(self, worker: int) -> Workspace:
        if worker not in self.workspaces:
            marks, stamps = np.zeros(self.remaining.n, np.uint64), np.zeros(1, np.uint64)
            self.workspaces[worker] = Workspace(marks, stamps, np.empty(FOUND, np.uint64), np.empty(LOSING, np.uint32))
        return self.workspaces[worker]

    def _serial(self, frontier: Ids, bound: int) -> Ids:
        """Peel one edge after the other until none or many are waiting; those."""
        remaining, queue, own = self.remaining.arrays, self.next_frontier, self._workspace(0)
        done, filled = 0, len(frontier)
        queue[:filled] = frontier
        while 0 < filled - done <= FEW_EDGES:
            ends = close.peel_serially(queue, done, filled, FEW_EDGES, SERIAL_STEPS, bound, remaining, own)
            done, filled = (int(end) for end in ends)
        waiting = queue[done:filled].copy()
        self._remove(queue[:done], bound)
        return waiting

    def _round(self, frontier: Ids, bound: int) -> Ids:
        """Remove many edges at the same time; the next frontier."""
        found = np.zeros(self.losses.share_count, np.uint64)
        for begin in range(0, len(frontier), SLICES_AT_ONCE * SLICE_EDGES):
            some = frontier[begin : begin + SLICES_AT_ONCE * SLICE_EDGES]
            slices = -(-len(some) // SLICE_EDGES)

            def cut(part: int, _worker: int, some: Ids = some) -> tuple[Keys, list[int]]:
                return self._tasks(some, part)

            sliced = run_tasks(cut, slices, self.remaining.threads)
            tasks = [(keys, *pair) for keys, bounds in sliced for pair in pairwise(bounds)]
            for first in range(0, len(tasks), TASKS_AT_ONCE):
                self._close(tasks[first : first + TASKS_AT_ONCE], bound, found)
        self._remove(frontier, bound)
        starts = np.arange(self.losses.share_count) << int(self.losses.blocks.share_bits)
        parts = [self.next_frontier[a : a + int(count)] for a, count in zip(starts.tolist(), found, strict=True)]
        return np.concatenate(parts)

    def _tasks(self, frontier: Ids, part: int) -> tuple[Keys, list[int]]:
        """The sorted keys of the edges with triangles in a slice of the frontier, and the bounds of tasks over them."""
        remaining = self.remaining.arrays
        begin, end = part * SLICE_EDGES, min(len(frontier), (part + 1) * SLICE_EDGES)
        keys = np.empty(end - begin, np.uint64)
        count, steps = rows.key_edges(frontier, begin, end, remaining, keys)
        keys = keys[: int(count)]
        keys.sort()
        bounds = np.zeros(len(keys) + 2, np.uint64)
        most = min(MAX_STEPS, max(MIN_STEPS, int(steps) // TASKS_AT_ONCE))
        tasks = int(rows.cut_tasks(keys, remaining, most, TASK_TRIANGLES, bounds))
        return keys, bounds[: tasks + 1].tolist()

    def _close(self, cuts: list[tuple[Keys, int, int]], bound: int, found: Keys) -> None:
        """Find the triangles of some tasks' edges, and take them from those that stay."""
        remaining, losses, threads = self.remaining.arrays, self.losses, self.remaining.threads
        tasks = len(cuts)

        def find(task: int, worker: int) -> None:
            close.close_edges(*cuts[task], remaining, self._workspace(worker), *losses.of_task(task))

        run_tasks(find, tasks, threads)
        blocks, starts = losses.by_share(tasks)
        targets = np.linspace(0, len(blocks), threads + 1)
        bounds = starts[np.searchsorted(starts, targets)].tolist()

        def take(task: int, _worker: int) -> None:
            begin, end = bounds[task], bounds[task + 1]
            close.take_triangles(
                blocks, begin, end, losses.blocks, bound, remaining.supports, self.next_frontier, found
            )

        run_tasks(take, threads, threads)
