"""What: Green: several threads merge the sorted rows of both ends of an arc, each an equal stretch of the merge path.

Paper: Green, Yalamanchili and Munguia, 2014; green.cu has the kernel. The host writes the tail of every arc, and cuts
the arcs into launches of bounded work.
Memory beyond the oriented graph: 4 bytes per arc of tails, and 16 per chunk of 128 arcs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from wedgewise.algorithms._contract import Algorithm, DeviceAnswer, DeviceWork, Knob, Knobs, Launch, Shape
from wedgewise.algorithms.gpu._arcs import arc_bounds, measuring_bytes, tails_of
from wedgewise.algorithms.gpu._launches import WARP, count_ranges, offset_bits, whole_warps
from wedgewise.machine.gpu import Device
from wedgewise.stages import DeviceGraph

STEM = "green"
LAUNCH_STEPS = 1 << 34  # taken in well under 250 ms on an H200; and blocks of a launch stay below 2^31


@dataclass(frozen=True, slots=True)
class Layout:
    """Threads of a block, threads of an intersection as a power of two, arcs of a block."""

    block: int
    log_threads: int
    block_arcs: int

    @classmethod
    def of(cls, knobs: Knobs) -> Layout:
        block = whole_warps(knobs)
        log_threads = min(int(knobs["threads"]), WARP).bit_length() - 1
        return cls(block, log_threads, max(int(knobs["block_arcs"]), block >> log_threads))


def prepare(graph: DeviceGraph, knobs: Knobs, device: Device) -> DeviceWork:
    """Write the tails; count one range of arcs after the other."""
    found = device.xp.zeros(2, device.xp.uint64)
    if graph.m == 0:
        return DeviceWork.at_once((), found)
    layout, tails = Layout.of(knobs), tails_of(graph, device)
    shape = (np.uint32(layout.log_threads), np.uint32(min(layout.block_arcs, (1 << 32) - 1)))

    def count(begin: int, end: int) -> Launch:
        arcs = (graph.offsets, graph.out_neighbours, tails, *shape, np.uint64(begin), np.uint64(end), found)
        grid = -(-(end - begin) // layout.block_arcs)
        return partial(device.launch, STEM, "count_arcs", grid, layout.block, arcs, defines=(offset_bits(graph),))

    bounds = arc_bounds(graph, tails, LAUNCH_STEPS, device, merged=True)
    return count_ranges(bounds, count, found)


def bytes_needed(shape: Shape, knobs: Knobs) -> int:
    return 4 * shape.m + measuring_bytes(shape.m)


ALGORITHM = Algorithm(
    name="green",
    device="cuda",
    unit="graph",
    answers={"count": DeviceAnswer(prepare, bytes_needed)},
    paper="Green, Yalamanchili, Munguia: Fast Triangle Counting on the GPU, Workshop on Irregular Applications: "
    "Architectures & Algorithms, 2014",
    summary="Merges the sorted rows of both ends of every arc, several threads along one merge path.",
    knobs=(
        Knob("threads", 32, "threads of an intersection: a power of two, 32 at most", least=1),
        Knob("block_arcs", 10, "arcs of a block, at least one for each intersection it has threads for", least=1),
        Knob("block", 512, "threads of a block: whole warps, at most 1,024", least=32),
    ),
)
