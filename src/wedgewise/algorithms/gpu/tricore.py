"""What: TriCore: a warp per arc searches the shorter row's ids in the longer row, whose top levels it caches.

Paper: Hu, Liu and Huang, 2018; tricore.cu has the kernel. The host writes the tail of every arc, and cuts the arcs into
launches of bounded work.
Memory beyond the oriented graph: 4 bytes per arc of tails, and 16 per chunk of 128 arcs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np

from wedgewise.algorithms._contract import Algorithm, DeviceAnswer, Knob, Knobs, Launch, Shape
from wedgewise.algorithms.gpu._arcs import arc_bounds, measuring_bytes, tails_of
from wedgewise.algorithms.gpu._launches import WARP, counting, grid_for, offset_bits, whole_warps
from wedgewise.machine.gpu import Array, Device
from wedgewise.stages import DeviceGraph

LAUNCH_KEYS = 1 << 33  # searched for in well under 250 ms on an H200
ROUND_ARCS = 16  # arcs that a warp takes at once
BLOCKS_PER_SM = 256  # of a launch; arcs beyond them are taken in turn
STATIC_SHARED_BYTES = 1024
SAMPLE_BYTES = 2 * 4  # a warp holds samples of two trees
MAX_LEVELS = 10


@dataclass(frozen=True, slots=True)
class TreeLayout:
    """The knobs as far as the device allows: threads of a block, and levels that fit for every warp."""

    block: int
    levels: int
    shared_bytes: int

    @classmethod
    def of(cls, knobs: Knobs, offset_bytes: int, device: Device) -> TreeLayout:
        row_bytes = 2 * offset_bytes  # an offset and a length, aligned
        block = whole_warps(knobs)
        available_bytes = (device.shared_bytes - STATIC_SHARED_BYTES) // (block // WARP) - row_bytes * WARP
        levels = min(int(knobs["levels"]), MAX_LEVELS, (available_bytes // SAMPLE_BYTES).bit_length() - 1)
        return cls(block, levels, block // WARP * (row_bytes * WARP + (SAMPLE_BYTES << levels)))


@counting
def prepare(graph: DeviceGraph, knobs: Knobs, device: Device, found: Array) -> Iterator[Launch]:
    """Write the tails; count one range of arcs after the other."""
    layout, tails = TreeLayout.of(knobs, graph.offsets.dtype.itemsize, device), tails_of(graph, device)
    defines = (offset_bits(graph.offsets), ("LEVELS", layout.levels))
    launch = partial(device.launch, "tricore", "count_arcs", shared_bytes=layout.shared_bytes, defines=defines)
    for begin, end in pairwise(arc_bounds(graph, tails, LAUNCH_KEYS, device, merged=False)):
        arcs = (graph.offsets, graph.out_neighbours, tails, np.uint64(begin), np.uint64(end), found)
        grid = grid_for(end - begin, layout.block // WARP * ROUND_ARCS, BLOCKS_PER_SM, device)
        yield partial(launch, grid, layout.block, arcs)


def bytes_needed(shape: Shape, knobs: Knobs) -> int:
    return 4 * shape.m + measuring_bytes(shape.m)


ALGORITHM = Algorithm(
    name="tricore",
    device="cuda",
    unit="graph",
    answers={"count": DeviceAnswer(prepare, bytes_needed)},
    paper="Hu, Liu, Huang: TriCore: Parallel triangle counting on GPUs, SC18, 2018, 171-182",
    summary="A warp per arc searches one row's ids in the longer row, the top levels of which it holds on chip.",
    knobs=(
        Knob("levels", 5, "levels of the search tree in shared memory, as far as it reaches, at most 10"),
        Knob("block", 256, "threads of a block: whole warps, at most 1,024", least=32),
    ),
)
