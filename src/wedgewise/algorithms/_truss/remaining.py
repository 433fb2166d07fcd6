"""The remaining edges of a graph that is peeled: rows, supports and states, packed when many are removed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._truss.counted_edges import supports_among
from wedgewise.algorithms.cpu import _truss_rows as kernels
from wedgewise.algorithms.cpu._truss_close import GONE, REMOVED, RemainingRows
from wedgewise.machine.threads import run_tasks
from wedgewise.stages import Ids, Keys

STEP_EDGES = 1 << 18  # what one task goes through, of edges
STEP_ENTRIES = 1 << 19  # of entries of rows
PACK_SHARE = 4  # rows are packed once a quarter of their edges is removed


@dataclass(slots=True)
class RemainingEdges:
    """Edges with their ends ``low << 32 | high`` ascending, supports, states, and numbers in the graph as it was.

    Row v is ``rows[firsts[v]:stops[v]]``; there are gaps between rows. 37 bytes per edge, 16 per vertex.
    """

    ends: Keys
    numbers: Ids
    supports: Ids
    states: NDArray[np.uint8]
    firsts: Keys
    stops: Keys
    rows: Keys
    threads: int
    renumbered: Ids  # memory that every `pack` uses again: what was never written before costs more than packing

    @classmethod
    def of(cls, ends: Keys, numbers: Ids, supports: Ids, vertices: int, threads: int) -> RemainingEdges:
        """Rows for edges with ends below `vertices`; the arrays are kept and changed."""
        states, firsts = np.zeros(len(ends), np.uint8), np.zeros(vertices + 1, np.uint64)
        by_vertices = np.linspace(0, vertices, threads + 1).astype(np.int64).tolist()
        _each_vertex_range(by_vertices, len(ends), partial(kernels.count_ends, ends, firsts[1:]))
        np.cumsum(firsts, out=firsts)
        stops, rows = firsts[:-1].copy(), np.empty(2 * len(ends), np.uint64)
        by_entries = np.searchsorted(firsts, np.linspace(0, len(rows), threads + 1).astype(np.uint64)).tolist()
        by_entries[0], by_entries[-1] = 0, vertices
        for higher in (True, False):
            _each_vertex_range(by_entries, len(ends), partial(kernels.place_ends, ends, higher, stops, rows))
        renumbered = np.empty(len(ends), np.uint32)
        return cls(ends, numbers, supports, states, firsts[:-1].copy(), stops, rows, threads, renumbered)

    @property
    def arrays(self) -> RemainingRows:
        """What kernels take, until the next `pack`."""
        return RemainingRows(self.ends, self.supports, self.states, self.firsts, self.stops, self.rows)

    @property
    def m(self) -> int:
        """Edges, the removed ones that are not yet packed away included."""
        return len(self.ends)

    @property
    def n(self) -> int:
        """Vertices, likewise."""
        return len(self.firsts)

    def weak(self, bound: int, listed: Ids) -> tuple[Ids, int]:
        """The edges with at most `bound` triangles, and the least support of the others (`GONE` without any).

        Each of them is written into `listed` before, which has room for all edges.
        """
        steps = _steps(self.m)

        def collect(step: int, _worker: int) -> tuple[int, int]:
            begin, end = steps[step], steps[step + 1]
            count, least = kernels.list_weak(self.supports, begin, end, bound, listed, begin)
            return int(count), int(least)

        found = run_tasks(collect, len(steps) - 1, self.threads)
        parts = [listed[begin : begin + count] for begin, (count, _) in zip(steps, found, strict=False)]
        return np.concatenate(parts), min((least for _, least in found), default=GONE)

    def mark_frontier(self, frontier: Ids) -> None:
        """Say of edges that they are in the frontier."""
        self._each(len(frontier), lambda begin, end: kernels.mark_frontier(frontier, begin, end, self.states))

    def remove(self, frontier: Ids, bound: int, removed_at: Ids) -> None:
        """Remove edges, and write `bound` for each of them, by its number in the graph as it was."""
        arrays = self.states, self.supports, self.numbers
        self._each(len(frontier), lambda begin, end: kernels.remove(frontier, begin, end, *arrays, bound, removed_at))

    def pack(self) -> Ids:
        """Forget the removed edges, and vertices once half have no others; the new number of every edge that stays."""
        renumbered = self.renumbered[: self.m]
        staying = self.states != REMOVED
        np.cumsum(staying, dtype=np.uint32, out=renumbered)
        renumbered -= staying
        count = int(np.count_nonzero(staying))
        self._each_row(
            lambda begin, end: kernels.pack_rows(
                self.firsts, self.stops, self.rows, begin, end, self.states, renumbered
            )
        )
        names = self._forget_vertices()
        edges = kernels.EdgeArrays(self.ends, self.numbers, self.supports, self.states)
        for begin in range(0, self.m, STEP_EDGES):  # in order, since edges move to where others were
            kernels.move_edges(begin, min(begin + STEP_EDGES, self.m), edges, renumbered, names)
        self.ends, self.numbers = self.ends[:count], self.numbers[:count]
        self.supports, self.states = self.supports[:count], self.states[:count]
        return renumbered

    def recount(self) -> None:
        """Count the triangles of the packed edges."""
        self.supports = supports_among(self.ends, self.n, self.threads)

    def _forget_vertices(self) -> Ids:
        """Forget the vertices without edges, once they are half of all; the new name of every vertex."""
        kept = self.stops > self.firsts
        if 2 * int(np.count_nonzero(kept)) > self.n:
            return np.arange(self.n, dtype=np.uint32)
        names = np.cumsum(kept, dtype=np.uint32)
        names -= np.uint32(1)
        self.firsts, self.stops = self.firsts[kept], self.stops[kept]
        self._each_row(
            lambda begin, end: kernels.rename_neighbours(self.firsts, self.stops, self.rows, begin, end, names)
        )
        return names

    def _each(self, items: int, work: Callable[[int, int], None]) -> None:
        """Work on ranges of edges."""
        steps = _steps(items)
        run_tasks(lambda step, _worker: work(steps[step], steps[step + 1]), len(steps) - 1, self.threads)

    def _each_row(self, work: Callable[[int, int], None]) -> None:
        """Work on all rows, in ranges with about equally many entries."""
        span = int(self.stops[-1]) if self.n else 0
        cuts = np.searchsorted(self.firsts, np.arange(STEP_ENTRIES, span, STEP_ENTRIES, dtype=np.uint64)).tolist()
        bounds = sorted({0, *cuts, self.n})
        run_tasks(lambda task, _worker: work(bounds[task], bounds[task + 1]), len(bounds) - 1, self.threads)


def _steps(items: int) -> list[int]:
    """Bounds of the ranges that tasks go through."""
    return [*range(0, items, STEP_EDGES), items] if items else [0, 0]


def _each_vertex_range(bounds: list[int], edges: int, work: Callable[[int, int, int, int], None]) -> None:
    """Work on all edges for every range of vertices, in steps: ``work(begin, end, first_vertex, end_vertex)``."""
    steps, stopped, threads = _steps(edges), threading.Event(), len(bounds) - 1

    def go_through(vertex_range: int, _worker: int) -> None:
        for begin, end in pairwise(steps):
            if stopped.is_set():
                return
            work(begin, end, bounds[vertex_range], bounds[vertex_range + 1])

    run_tasks(go_through, threads, threads, on_stop=stopped.set)
