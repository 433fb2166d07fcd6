"""What: rounds of eager k-truss: supports by merging rows that end in a zero, then weak arcs are removed.

Paper: M. Blanco, T. M. Low, K. Kim, "Exploration of fine-grained parallelism for load balancing eager k-truss on GPU
and CPU", HPEC 2019, Algorithms 2 and 3, Listing 1.
Who does what: the arc a → b merges what stands behind b in the row of a with the row of b; each common c credits
a → b, a → c and b → c at once. A coarse task is a range of rows, a fine one a range of slots, equally many in each;
a row is pruned by one task, which moves what remains to its front and fills up with zeros.
Input: ids by rank, so that no arc leads to vertex 0; the slot of an arc is its position plus its tail, and behind each
row stands a zero. Output: the slots that remain, and their supports after a round that removed none.
Memory: 9 bytes per slot, m + n of them, and 4 more for every further thread.
Differs from the authors' code in: 32-bit supports instead of 16-bit ones, which wrap at 65,536 triangles; supports of
its own for every thread, added up where rows are pruned, instead of one array with atomic updates: as exact, and the
same for any number of threads; threads take tasks of some milliseconds, on average, from a shared counter instead of
one equal part each. Coarse tasks never cut a row, so that Ctrl-C may wait for the longest one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._contract import Algorithm, Knob, Knobs, Shape, TrussJob
from wedgewise.algorithms._ranges import MIN_TASKS, arc_bounds
from wedgewise.algorithms._truss import rounds
from wedgewise.machine.jit import helper, kernel, kernel_view
from wedgewise.machine.threads import run_tasks
from wedgewise.stages import Ids, OrientedGraph

PAPER = (
    "Blanco, Low, Kim: Exploration of fine-grained parallelism for load balancing eager k-truss on GPU and CPU, "
    "IEEE HPEC 2019"
)
ORDERS = ("id", "degree", "core")  # the first is the paper's: the upper triangle of the adjacency matrix
GRANULARITY = Knob(
    "granularity", "fine", "what a task is made of: rows (coarse) or non-zeros (fine)", choices=("fine", "coarse")
)
TASK_STEPS = 2_000_000  # of merges, about 4 ms, in a task of the first round on average
MAX_SUPPORT = 2**32 - 1  # more than any arc has


@helper
def credit_slot(begins, rows, slot, supports):  # type: ignore[no-untyped-def]
    """Credit the triangles that the arc at a slot opens to all of their arcs."""
    one = np.uint64(1)
    behind, other = slot + one, np.uint64(begins[np.uint64(rows[slot])])
    x, y = rows[behind], rows[other]
    opened = np.uint32(0)
    while x != 0 and y != 0:
        if x == y:
            supports[behind] += np.uint32(1)
            supports[other] += np.uint32(1)
            opened += np.uint32(1)
            behind += one
            other += one
            x, y = rows[behind], rows[other]
        elif x < y:
            behind += one
            x = rows[behind]
        else:
            other += one
            y = rows[other]
    supports[slot] += opened


@kernel
def credit_slots(begins: NDArray[Any], rows: Ids, begin: int, end: int, supports: Ids) -> None:
    """Fine: the arcs at slots begin … end − 1."""
    for slot in range(np.uint64(begin), np.uint64(end)):
        if rows[slot] != 0:
            credit_slot(begins, rows, slot, supports)


@kernel
def credit_rows(begins: NDArray[Any], rows: Ids, begin: int, end: int, supports: Ids) -> None:
    """Coarse: the arcs of rows begin … end − 1."""
    for u in range(np.uint64(begin), np.uint64(end)):
        slot = np.uint64(begins[u])
        while rows[slot] != 0:
            credit_slot(begins, rows, slot, supports)
            slot += np.uint64(1)


@kernel
def prune_rows(begins: NDArray[Any], rows: Ids, shares: Ids, least: int, begin: int, end: int) -> int:
    """Add the shares up into the first one; keep what has at least so much support in rows begin … end − 1."""
    one, slots, needed = np.uint64(1), np.uint64(len(rows)), np.uint64(least)
    remaining = np.uint64(0)
    for u in range(np.uint64(begin), np.uint64(end)):
        slot = position = np.uint64(begins[u])
        while rows[slot] != 0:
            support = shares[slot]
            share = slot + slots
            while share < np.uint64(len(shares)):
                support += shares[share]
                shares[share] = np.uint32(0)
                share += slots
            shares[slot] = support
            if np.uint64(support) >= needed:
                rows[position] = rows[slot]
                position += one
                remaining += one
            slot += one
        for gone in range(position, slot):
            rows[gone] = np.uint32(0)
    return remaining  # type: ignore[return-value]


@kernel
def terminate_rows(offsets: NDArray[Any], heads: Ids, rows: Ids, begin: int, end: int) -> int:
    """Copy rows begin … end − 1 with a zero behind each; the lengths of the rows that their arcs lead to, summed."""
    one, lengths = np.uint64(1), np.uint64(0)
    for u in range(np.uint64(begin), np.uint64(end)):
        for arc in range(np.uint64(offsets[u]), np.uint64(offsets[u + one])):
            v = np.uint64(heads[arc])
            rows[arc + u] = heads[arc]
            lengths += np.uint64(offsets[v + one]) - np.uint64(offsets[v])
        rows[np.uint64(offsets[u + one]) + u] = np.uint32(0)
    return lengths  # type: ignore[return-value]


@kernel
def mark_remaining(
    offsets: NDArray[Any], heads: Ids, begins: NDArray[Any], rows: Ids, remains: NDArray[np.uint8], begin: int, end: int
) -> int:
    """Say of every arc of rows begin … end − 1 whether it is still there, in the order of the arcs; how many are."""
    remaining = np.uint64(0)
    for u in range(np.uint64(begin), np.uint64(end)):
        slot = np.uint64(begins[u])
        for arc in range(np.uint64(offsets[u]), np.uint64(offsets[u + np.uint64(1)])):
            is_there = heads[arc] == rows[slot]
            remains[arc] = np.uint8(is_there)
            slot += np.uint64(is_there)
        remaining += slot - np.uint64(begins[u])
    return remaining  # type: ignore[return-value]


class EagerRows:
    """The remaining arcs of a graph; ``remaining`` counts them."""

    def __init__(self, graph: OrientedGraph, granularity: str, threads: int) -> None:
        self.remaining = graph.m
        self._threads = threads
        self._offsets, self._heads = kernel_view(graph.offsets), kernel_view(graph.out_neighbours)
        self._begins = np.arange(graph.n + 1, dtype=self._offsets.dtype)
        self._begins += self._offsets
        self._rows = np.empty(graph.m + graph.n, np.uint32)
        self._row_bounds = arc_bounds(self._begins)
        self._credit = credit_rows if granularity == "coarse" else credit_slots
        self._items = graph.n if granularity == "coarse" else graph.m + graph.n
        lengths = self._by_rows(partial(terminate_rows, self._offsets, self._heads, self._rows))
        self._steps_per_arc = (graph.wedges + lengths) / max(1, graph.m)
        workers = max(1, min(threads, self._tasks()))
        self._shares = np.zeros(workers * len(self._rows), np.uint32)

    def run_round(self, least: int) -> None:
        """Count the supports of the remaining arcs; remove those of less than `least`."""
        tasks, slots = self._tasks(), len(self._rows)
        self._shares[:slots] = 0

        def credit(task: int, worker: int) -> None:
            begin, end = (self._items * cut // tasks for cut in (task, task + 1))
            self._credit(self._begins, self._rows, begin, end, self._shares[worker * slots : (worker + 1) * slots])

        run_tasks(credit, tasks, self._threads)
        least = min(least, self.remaining)
        self.remaining = self._by_rows(partial(prune_rows, self._begins, self._rows, self._shares, least))

    def least_support(self) -> int:
        """The least support of the remaining arcs, after a round that removed none."""
        supports = self._shares[: len(self._rows)]
        return int(supports.min(where=self._rows != 0, initial=MAX_SUPPORT))

    def survivors(self) -> NDArray[np.bool_]:
        """Whether each arc remains."""
        remains = np.empty(len(self._heads), np.bool_)
        self._by_rows(
            partial(mark_remaining, self._offsets, self._heads, self._begins, self._rows, kernel_view(remains))
        )
        return remains

    def _by_rows(self, run: Callable[[int, int], int]) -> int:
        """The sum of what is found in ranges of rows with about equally many slots."""
        bounds = self._row_bounds

        def task(number: int, _worker: int) -> int:
            return int(run(int(bounds[number]), int(bounds[number + 1])))

        return sum(run_tasks(task, len(bounds) - 1, self._threads))

    def _tasks(self) -> int:
        """How many tasks the items of a round are cut into; they depend on the remaining arcs, not on the threads."""
        return min(self._items, max(MIN_TASKS, int(self.remaining * self._steps_per_arc / TASK_STEPS)))


def remaining_rows(graph: OrientedGraph, job: TrussJob) -> EagerRows:
    return EagerRows(graph, str(job.knobs[GRANULARITY.name]), job.threads)


def bytes_needed(shape: Shape, threads: int, knobs: Knobs) -> int:
    """The peak of one k-truss and of the last one.

    Per slot a head, supports for every thread, and whether it remains while the least support is looked for; an offset
    per vertex; whether each arc lived before.
    """
    n, m = shape.n, shape.m
    offset_bytes = 4 if m < 2**31 else 8
    return (5 + 4 * threads) * (m + n) + offset_bytes * (n + 1) + m


ALGORITHM = Algorithm(
    name="eager",
    device="cpu",
    unit="graph",
    answers=rounds.answers(remaining_rows, bytes_needed),
    paper=PAPER,
    summary="Counts all supports and prunes, round after round, over rows that end in a zero.",
    orders=ORDERS,
    relabellings=("rank",),
    knobs=(GRANULARITY,),
)
