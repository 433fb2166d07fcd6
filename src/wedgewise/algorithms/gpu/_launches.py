"""What the host code of GPU algorithms shares: blocks of whole warps, and launches of bounded work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Protocol

from wedgewise.algorithms._contract import DeviceWork, Knobs, Launch
from wedgewise.machine.gpu import Array, Device

WARP, MOST_THREADS = 32, 1024
THREADS_PER_SM = 2048


class HasOffsets(Protocol):
    """A graph, or blocks of one."""

    @property
    def offsets(self) -> Array: ...


def whole_warps(knobs: Knobs) -> int:
    """The threads of a block, by the knob of that name: whole warps, at most 1,024."""
    return min(int(knobs["block"]) // WARP * WARP, MOST_THREADS)


def offset_bits(graph: HasOffsets) -> tuple[str, int]:
    """The define that says how wide offsets are."""
    return "OFFSET_BITS", 8 * int(graph.offsets.dtype.itemsize)


def blocks_at_once(block: int, shared_bytes: int, device: Device) -> int:
    """How many blocks of so many threads, and of so much shared memory each, run at the same time."""
    return device.sms * max(1, min(THREADS_PER_SM // block, device.shared_bytes // shared_bytes))


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


def count_ranges(bounds: Sequence[int], count: Callable[[int, int], Launch], found: Array) -> DeviceWork:
    """A launch for each range between two bounds, one after the other."""
    return DeviceWork.at_once((count(begin, end) for begin, end in pairwise(bounds)), found)
