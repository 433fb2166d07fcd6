"""The in-neighbours: for each b from some vertex on, the tails a of the arcs a → b, but for the last arcs of each row.

A counting sort: each task has a range of heads and looks for it in every row (rows are sorted), so that
no two threads write to the same place and tails come out ascending for any number of threads.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._contract import Shape
from wedgewise.algorithms.cpu._records import Rows, row_at
from wedgewise.machine.jit import kernel
from wedgewise.machine.threads import run_tasks
from wedgewise.prepare.orient import first_not_below
from wedgewise.stages import Ids

SAMPLE_HEADS = 1 << 12
STEP_ARCS = 1 << 23  # about 50 ms for one range of heads


class InNeighbours(NamedTuple):
    """Vertex b has the in-neighbours ``tails[offsets[b - least]:offsets[b - least + 1]]``, ascending.

    So many arcs at the end of each row are left out as are idle.
    """

    least: int
    idle: int
    offsets: NDArray[Any]
    tails: Ids


@kernel
def sort_by_head(
    placing: bool, rows: Rows, begin: int, end: int, first_head: int, end_head: int, sorted_arcs: InNeighbours
) -> None:
    """Go through rows begin … end − 1: count the arcs to each head of an interval, or place their tails.

    Arcs to b are counted at b + 2 and summed; then entry b + 1 is where the next tail of b goes, and in the end where
    the tails of b + 1 begin (b numbered from the least head).
    """
    one, idle = np.uint64(1), np.uint64(sorted_arcs.idle)
    low, high, least = np.uint64(first_head), np.uint64(end_head), np.uint64(sorted_arcs.least)
    shift = one if placing else np.uint64(2)
    for a in range(np.uint64(begin), np.uint64(end)):
        heads, arc, row_end = row_at(rows, a)
        if row_end - arc <= idle or np.uint64(heads[row_end - idle - one]) < low:
            continue
        last = row_end - idle
        if np.uint64(heads[arc]) < low:
            arc = first_not_below(heads, arc, last, low)
        while arc < last and np.uint64(heads[arc]) < high:
            position = np.uint64(heads[arc]) - least + shift
            if placing:
                sorted_arcs.tails[sorted_arcs.offsets[position]] = a
            sorted_arcs.offsets[position] += one
            arc += one


def in_neighbours(rows: Rows, n: int, least: int = 0, *, idle: int, threads: int = 1) -> InNeighbours:
    """Sort arcs to `n` heads, but for the idle ones, by head, from head `least` on: the in-neighbours of those."""
    head_offsets = np.zeros(n - least + 2, rows.offsets.dtype)
    bounds = _head_range_bounds(rows.heads, least, n, threads)
    cuts = np.arange(STEP_ARCS, len(rows.heads), STEP_ARCS).astype(rows.offsets.dtype)
    steps = sorted({0, *np.searchsorted(rows.offsets, cuts).tolist(), len(rows.offsets) - 1})

    def go_through(placing: bool, found: InNeighbours) -> None:
        for begin, end in pairwise(steps):

            def task(head_range: int, _worker: int, begin: int = begin, end: int = end) -> None:
                sort_by_head(placing, rows, begin, end, bounds[head_range], bounds[head_range + 1], found)

            run_tasks(task, len(bounds) - 1, threads)

    go_through(False, InNeighbours(least, idle, head_offsets, rows.heads))
    np.cumsum(head_offsets, out=head_offsets)
    tails = np.empty(int(head_offsets[-1]), np.uint32)
    go_through(True, InNeighbours(least, idle, head_offsets, tails))
    return InNeighbours(least, idle, head_offsets[:-1], tails)


def _head_range_bounds(heads: Ids, least: int, n: int, ranges: int) -> list[int]:
    """Ranges of the heads from `least` on with about equally many arcs, by a sample."""
    sample = np.sort(heads[:: max(1, len(heads) // SAMPLE_HEADS)])
    sample = sample[sample >= least]
    cuts = sample[np.arange(1, ranges) * len(sample) // ranges].tolist() if len(sample) else []
    return sorted({least, *cuts, n})


def in_neighbours_bytes(shape: Shape) -> int:
    """Bytes of the in-neighbours."""
    return 4 * shape.m + (8 if shape.m >= 1 << 31 else 4) * (shape.n + 2)
