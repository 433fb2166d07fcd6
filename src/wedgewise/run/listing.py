"""Any stretch of a graph's triangles, by number: what bounded, resumable listings are made of.

Triangles are numbered by the arc a → b that opens them, then by c. The counts of all arcs say where each arc's
triangles begin, so that any numbers can be listed without those before. Memory: 4 bytes per arc for the counts, 16 per
`BLOCK_ARCS` arcs, and 12 per triangle of a stretch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._contract import Work
from wedgewise.errors import InputError, MissingDependencyError
from wedgewise.machine import jit
from wedgewise.machine.jit import kernel, kernel_view
from wedgewise.machine.out_of_memory import memory_for
from wedgewise.machine.threads import run_tasks
from wedgewise.run.row_order import ascending_vertices
from wedgewise.stages import Ids, OrientedGraph

BLOCK_ARCS = 1 << 12
TASK_TRIANGLES = 1 << 16  # 0.8 MB of output: still in cache when ids are turned into vertices
ARRAY_SECONDS_PER_TRIANGLE = 1e-7
ARRAY_TRIANGLES = 1 << 12  # named at a time without the kernel, whose temporaries are small then

Triples = NDArray[np.uint32]


def wrapper(output: str) -> Callable[[Triples], Any]:
    """What turns rows of vertices into the form that was asked for."""
    if output == "numpy":
        return lambda triples: triples
    if output != "arrow":
        raise InputError(f"output is numpy or arrow, not {output!r}")
    try:
        import pyarrow
    except ImportError as error:
        raise MissingDependencyError('output="arrow" needs pyarrow: pip install "wedgewise[arrow]"') from error
    return lambda triples: pyarrow.RecordBatch.from_arrays(
        [pyarrow.array(np.ascontiguousarray(column)) for column in triples.T], names=["u", "v", "w"]
    )


class Numbering:
    """Which arc opens the triangle of a number, from the counts of all arcs, wherever these lie."""

    def __init__(self, opened: Any, download: Callable[[Any], NDArray[Any]] = np.asarray) -> None:
        self.opened, self._download = opened, download
        full = len(opened) // BLOCK_ARCS
        in_full = full * BLOCK_ARCS
        self._blocks = np.zeros(-(-len(opened) // BLOCK_ARCS) + 1, np.int64)  # triangles before each block of arcs
        self._blocks[1 : full + 1] = download(opened[:in_full].reshape(full, BLOCK_ARCS).sum(axis=1, dtype=np.int64))
        self._blocks[full + 1 :] = int(opened[in_full:].sum(dtype=np.int64))
        np.cumsum(self._blocks, out=self._blocks)

    @property
    def total(self) -> int:
        """How many triangles there are."""
        return int(self._blocks[-1])

    def arc_of(self, number: int) -> tuple[int, int, int]:
        """The arc that opens a triangle, and how many triangles come before those of that arc and before its end."""
        block = int(np.searchsorted(self._blocks, number, side="right")) - 1
        counts = self._download(self.opened[block * BLOCK_ARCS : (block + 1) * BLOCK_ARCS])
        ends = self._blocks[block] + np.cumsum(counts, dtype=np.int64)
        within = int(np.searchsorted(ends, number, side="right"))
        return block * BLOCK_ARCS + within, int(ends[within] - counts[within]), int(ends[within])


class Listing:
    """The triangles of a graph by number, once the counts of all arcs are known."""

    def __init__(self, work: Work, graph: OrientedGraph, threads: int) -> None:
        assert work.filled is not None
        assert work.fill is not None
        self.work, self.threads, self.vertex_of = work, threads, graph.vertex_of
        self.opened = work.filled
        self.numbering = Numbering(work.filled)
        self._workspaces: dict[int, Any] = {}

    @property
    def total(self) -> int:
        """How many triangles there are."""
        return self.numbering.total

    @memory_for("list")
    def stretch(self, start: int, stop: int, on_done: Callable[[int, int], None] | None = None) -> Triples:
        """Triangles number start … stop − 1 as rows of three ascending vertices."""
        triples = np.empty((stop - start, 3), np.uint32)
        cuts = np.unique([start, *range(start + TASK_TRIANGLES, stop, TASK_TRIANGLES), stop]).tolist()

        def task(number: int, worker: int) -> None:
            begin, end = cuts[number], cuts[number + 1]
            self._write(begin, end, triples[begin - start : end - start], worker)

        tasks = len(cuts) - 1
        run_tasks(task, tasks, self.threads, None if on_done is None else lambda done: on_done(done, tasks))
        return triples

    def batches(self, start: int, stop: int, size: int) -> Iterator[Triples]:
        """The same rows, so many at a time."""
        return (self.stretch(at, min(at + size, stop)) for at in range(start, stop, size))

    def _write(self, start: int, stop: int, triples: Triples, worker: int) -> None:
        """List numbers start … stop − 1: arcs that lie inside go straight to their rows."""
        first_arc, before_first, _ = self.numbering.arc_of(start)
        last_arc, before_last, after_last = self.numbering.arc_of(stop - 1)
        whole_first = first_arc if before_first == start else first_arc + 1
        whole_end = last_arc + 1 if after_last == stop else last_arc
        done = 0
        if whole_first > first_arc:
            part = self._fill(first_arc, first_arc + 1, worker)[start - before_first : stop - before_first]
            done = len(part)
            triples[:done] = part
        if whole_first < whole_end:
            inside = (stop if whole_end > last_arc else before_last) - start - done
            self._fill(whole_first, whole_end, worker, triples[done : done + inside])
            done += inside
        if done < len(triples):
            triples[done:] = self._fill(last_arc, last_arc + 1, worker)[: len(triples) - done]
        self._name(triples)

    def _name(self, triples: Triples) -> None:
        """Turn ids into vertices, ascending in each row."""
        if jit.pays(ARRAY_SECONDS_PER_TRIANGLE * len(triples), name_triples):
            name_triples(self.vertex_of, kernel_view(triples))
            return
        for begin in range(0, len(triples), ARRAY_TRIANGLES):
            some = triples[begin : begin + ARRAY_TRIANGLES]
            some[:] = ascending_vertices(some, self.vertex_of, np)

    def _fill(self, begin: int, end: int, worker: int, triples: Triples | None = None) -> Triples:
        """The triangles that arcs begin … end − 1 open, by id."""
        if triples is None:
            triples = np.empty((int(self.opened[begin:end].sum(dtype=np.int64)), 3), np.uint32)
        if worker not in self._workspaces:
            self._workspaces[worker] = self.work.passes[0].workspace() if self.work.passes else None
        assert self.work.fill is not None
        self.work.fill(begin, end, triples.reshape(-1), self._workspaces[worker])
        return triples


@kernel
def name_triples(vertex_of: Ids, triples: Ids) -> None:
    """Replace the three ids of every row by their vertices, ascending."""
    for row in range(np.uint64(len(triples)) // np.uint64(3)):
        at = row * np.uint64(3)
        a, b, c = vertex_of[triples[at]], vertex_of[triples[at + np.uint64(1)]], vertex_of[triples[at + np.uint64(2)]]
        low, high = min(a, b), max(a, b)
        triples[at] = min(low, c)
        triples[at + np.uint64(1)] = max(low, min(high, c))
        triples[at + np.uint64(2)] = max(high, c)
