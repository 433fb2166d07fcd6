"""What: Green: several threads merge the sorted rows of both ends of an arc, each an equal stretch of the merge path.

Paper: Green, Yalamanchili and Munguia, 2014; green.cu has the kernel. The host writes the tail of every arc, and cuts
the arcs into launches of bounded work.
Memory beyond the oriented graph: 4 bytes per arc of tails, and 16 per chunk of 128 arcs.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise

import numpy as np

from wedgewise.algorithms._contract import Algorithm, DeviceAnswer, Knob, Knobs, Launch, Shape
from wedgewise.algorithms.gpu._arcs import arc_bounds, measuring_bytes, tails_of
from wedgewise.algorithms.gpu._launches import WARP, counting, offset_bits, whole_warps
from wedgewise.machine.gpu import Array, Device
from wedgewise.stages import DeviceGraph

LAUNCH_STEPS = 1 << 34  # taken in well under 250 ms on an H200; and blocks of a launch stay below 2^31


def log_threads(knobs: Knobs) -> int:
    """Threads of an intersection, as a power of two."""
    return min(int(knobs["threads"]), WARP).bit_length() - 1


@counting
def prepare(graph: DeviceGraph, knobs: Knobs, device: Device, found: Array) -> Iterator[Launch]:
    """Write the tails; count one range of arcs after the other."""
    block, tails, log = whole_warps(knobs), tails_of(graph, device), log_threads(knobs)
    block_arcs = max(int(knobs["block_arcs"]), block >> log)
    shape = (np.uint32(log), np.uint32(min(block_arcs, (1 << 32) - 1)))
    launch = partial(device.launch, "green", "count_arcs", defines=(offset_bits(graph.offsets),))
    for begin, end in pairwise(arc_bounds(graph, tails, LAUNCH_STEPS, device, merged=True)):
        arcs = (graph.offsets, graph.out_neighbours, tails, *shape, np.uint64(begin), np.uint64(end), found)
        yield partial(launch, -(-(end - begin) // block_arcs), block, arcs)


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
