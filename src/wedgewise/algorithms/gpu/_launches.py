"""What the host code of GPU algorithms shares: blocks of whole warps, grids, and launches of bounded work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import numpy as np

from wedgewise.algorithms._contract import DeviceWork, Knobs, Launch
from wedgewise.machine.gpu import Array, Device
from wedgewise.stages import DeviceGraph

WARP, MAX_THREADS = 32, 1024
THREADS_PER_SM = 2048
MAX_SMS = 256  # of any device, for what is said of memory


def counting(
    launches: Callable[[DeviceGraph, Knobs, Device, Array], Iterator[Launch]],
) -> Callable[[DeviceGraph, Knobs, Device], DeviceWork]:
    """Prepare a count by launches that add to the array `found`; a graph without arcs needs none."""

    @wraps(launches)
    def prepare(graph: DeviceGraph, knobs: Knobs, device: Device) -> DeviceWork:
        found = device.xp.zeros(2, device.xp.uint64)
        made = tuple(launches(graph, knobs, device, found)) if graph.m > 0 else ()
        return DeviceWork.at_once(made, found)

    return prepare


def whole_warps(knobs: Knobs) -> int:
    """The threads of a block, by the knob of that name: whole warps, at most 1,024."""
    return min(int(knobs["block"]) // WARP * WARP, MAX_THREADS)


def rounded_up_to_warps(threads: int, most: int = MAX_THREADS) -> int:
    """So many threads of a block or a few more: whole warps."""
    return min(most, -(-threads // WARP) * WARP)


def offset_bits(offsets: Array) -> tuple[str, int]:
    """The define that says how wide offsets are."""
    return "OFFSET_BITS", 8 * int(offsets.dtype.itemsize)


def grid_for(threads: int, block: int, most_per_sm: int, device: Device) -> int:
    """Blocks for so many threads; where that is too many for each multiprocessor, they go around."""
    return min(-(-threads // block), most_per_sm * device.sms)


def blocks_at_once(block: int, shared_bytes: int, device: Device) -> int:
    """How many blocks of so many threads, and of so much shared memory each, run at the same time."""
    return device.sms * max(1, min(THREADS_PER_SM // block, device.shared_bytes // shared_bytes))


def sums_before(counts: Array, xp: Any, dtype: Any = np.uint64) -> Array:
    """The sum of what comes before each entry, and at the end that of all."""
    before = xp.zeros(len(counts) + 1, dtype)
    xp.cumsum(counts, dtype=dtype, out=before[1:])
    return before


def work_cuts(work: Array, most_work: int, device: Device) -> list[int]:
    """The entries of `work` before which to cut, so that each piece has about `most_work`."""
    xp = device.xp
    done = xp.cumsum(work, dtype=xp.uint64)
    pieces = -(-int(done[-1]) // most_work)
    if pieces <= 1:
        return []
    marks = xp.arange(1, pieces, dtype=xp.uint64) * xp.uint64(most_work)
    cuts: list[int] = xp.searchsorted(done, marks, side="right").tolist()
    return cuts


def work_bounds(work: Array, most_work: int, device: Device) -> list[int]:
    """Where launches begin and end among the entries of `work`, so that each has about `most_work`."""
    return sorted({0, *work_cuts(work, most_work, device), len(work)})
