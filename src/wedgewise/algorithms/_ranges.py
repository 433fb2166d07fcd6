"""Cut work into tasks of about equal size."""

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.stages import OrientedGraph

TASK_TESTS = 10_000_000  # about 20 ms of membership tests
TASK_ARCS = 1 << 15
MIN_TASKS = 64
SMALL_WORK = 1 << 10  # not worth more than one task


def even_bounds(work: NDArray[Any], task_work: int = TASK_TESTS, least: int = MIN_TASKS) -> NDArray[np.int64]:
    """Bounds of at least so many ranges of about equal work over items 0 … len(work), none of them empty.

    Less than `SMALL_WORK` is one range.
    """
    before = np.zeros(len(work) + 1, np.float64)  # an estimate for scheduling, not a count
    np.cumsum(work, out=before[1:])
    tasks = max(least, ceil(before[-1] / task_work)) if before[-1] >= SMALL_WORK else 1
    return cut_rows(before, min(len(work), tasks))


def arc_bounds(offsets: NDArray[Any]) -> NDArray[np.int64]:
    """Bounds of ranges of rows with about equally many arcs; cheap, since it looks at the cuts alone."""
    return cut_rows(offsets, min(len(offsets) - 1, int(offsets[-1]) // TASK_ARCS))


def cut_rows(before: NDArray[Any], tasks: int) -> NDArray[np.int64]:
    """Bounds of so many ranges at most of items, given what lies before each and before the end; none is empty."""
    end = len(before) - 1
    if tasks <= 1:
        return np.arange(0, end + 1, max(1, end))
    cuts = np.searchsorted(before, np.linspace(0, float(before[-1]), tasks + 1)[1:-1].astype(before.dtype))
    bounds = np.concatenate([[0], cuts, [end]]).astype(np.int64)
    kept: NDArray[np.int64] = bounds[np.append(True, bounds[1:] != bounds[:-1])]
    return kept


def two_hop_work(graph: OrientedGraph) -> NDArray[np.float64]:
    """Per vertex u, the sum of d(u) + d(v) over its out-neighbours v: what a merge or a mark-and-scan reads."""
    out_degrees = graph.out_degrees.astype(np.float64)
    arcs_before = np.zeros(graph.m + 1, np.float64)
    np.cumsum(out_degrees[graph.out_neighbours], out=arcs_before[1:])
    sums: NDArray[np.float64] = arcs_before[graph.offsets[1:]] - arcs_before[graph.offsets[:-1]]
    return sums + out_degrees * out_degrees + 1
