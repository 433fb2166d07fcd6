"""What: looks every id two hops away from a vertex up among its heads, by binary search.

Paper: Hu, Guan, Zou, 2019; hu.cu has the kernel. The host lists the vertices by descending length of their rows, and
cuts them into launches of bounded work.
Memory beyond the oriented graph: 64 bytes per vertex at its peak, 8 while it counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise

import numpy as np

from wedgewise.algorithms._contract import Algorithm, DeviceAnswer, Knob, Knobs, Launch, Shape
from wedgewise.algorithms.gpu._launches import WARP, counting, offset_bits, whole_warps
from wedgewise.algorithms.gpu._parts import bytes_of_parts, launch_bounds, parts_of
from wedgewise.machine.gpu import Array, Device
from wedgewise.stages import DeviceGraph

LAUNCH_TESTS = 1 << 34  # about 100 ms on an H200
BLOCKS_PER_SM = 32  # in a grid: enough for an even load, few enough that adding up costs nothing
ID_BYTES, STATIC_SHARED_BYTES = 4, 1024


@counting
def prepare(graph: DeviceGraph, knobs: Knobs, device: Device, found: Array) -> Iterator[Launch]:
    """List the vertices; count one range of them after the other."""
    parts = parts_of(graph, device)
    longest = parts.longest_row
    block = min(whole_warps(knobs), -(-(longest**2) // WARP) * WARP)  # no more warps than have an id of one vertex each
    id_bytes = ID_BYTES + 2 * int(graph.offsets.dtype.itemsize)  # an id, and where its row begins and how long it is
    fitting_ids = (device.shared_bytes - STATIC_SHARED_BYTES) // id_bytes
    cached = min(int(knobs["cached"]), longest, fitting_ids)  # fewer let more blocks run at once
    defines = (offset_bits(graph.offsets),)
    launch = partial(device.launch, "hu", "count_parts", shared_bytes=cached * id_bytes, defines=defines)
    for begin, end in pairwise(launch_bounds(parts, graph, LAUNCH_TESTS, device)):
        span = (np.uint32(cached), np.uint64(begin), np.uint64(end), found)
        arguments = (graph.offsets, graph.out_neighbours, *parts.arguments, *span)
        yield partial(launch, min(end - begin, BLOCKS_PER_SM * device.sms), block, arguments)


def bytes_needed(shape: Shape, knobs: Knobs) -> int:
    return bytes_of_parts(shape.n, shape.m)


ALGORITHM = Algorithm(
    name="hu",
    device="cuda",
    unit="graph",
    answers={"count": DeviceAnswer(prepare, bytes_needed)},
    paper="Hu, Guan, Zou: Triangle counting on GPU using fine-grained task distribution, IEEE ICDEW 2019, 225-232",
    summary="A block walks the two-hop lists of a vertex with a fixed stride and searches its cached heads.",
    knobs=(
        Knob("cached", 3000, "ids of a row in shared memory, as far as it reaches"),
        Knob("block", 256, "threads of a block: whole warps, at most 1,024", least=32),
    ),
)
