"""What: looks every id two hops away from a vertex up among its heads, by binary search.

Paper: Hu, Guan, Zou, 2019; hu.cu has the kernel. The host lists the vertices by descending length of their rows, and
cuts them into launches of bounded work.
Memory beyond the oriented graph: 64 bytes per vertex at its peak, 8 while it counts.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from wedgewise.algorithms._contract import Algorithm, DeviceAnswer, DeviceWork, Knob, Knobs, Launch, Shape
from wedgewise.algorithms.gpu._launches import WARP, count_ranges, offset_bits, whole_warps
from wedgewise.algorithms.gpu._parts import Parts, bytes_of_parts, launch_bounds, parts_of
from wedgewise.machine.gpu import Device
from wedgewise.stages import DeviceGraph

STEM = "hu"
LAUNCH_TESTS = 1 << 34  # about 100 ms on an H200
BLOCKS_PER_SM = 32  # in a grid: enough for an even load, few enough that adding up costs nothing
ID_BYTES, STATIC_SHARED_BYTES = 4, 1024


def prepare(graph: DeviceGraph, knobs: Knobs, device: Device) -> DeviceWork:
    """List the vertices; count one range of them after the other."""
    found = device.xp.zeros(2, device.xp.uint64)
    parts = parts_of(graph, device)
    if len(parts.vertices) == 0:
        return DeviceWork.at_once((), found)
    block = _block(parts, knobs)
    cached = _cached_ids(graph, parts, knobs, device)
    shared_bytes = cached * _bytes_of_cached_id(graph)

    def count(begin: int, end: int) -> Launch:
        span = (np.uint32(cached), np.uint64(begin), np.uint64(end), found)
        arguments = (graph.offsets, graph.out_neighbours, *parts.arguments, *span)
        grid = min(end - begin, BLOCKS_PER_SM * device.sms)
        launch = partial(device.launch, STEM, "count_parts", grid, block, arguments)
        return partial(launch, shared_bytes=shared_bytes, defines=(offset_bits(graph),))

    bounds = launch_bounds(parts, graph, LAUNCH_TESTS, device)
    return count_ranges(bounds, count, found)


def _block(parts: Parts, knobs: Knobs) -> int:
    """Whole warps, and no more of them than can have an id of one vertex each."""
    most_ids = parts.longest_row**2
    return min(whole_warps(knobs), -(-most_ids // WARP) * WARP)


def _bytes_of_cached_id(graph: DeviceGraph) -> int:
    """An id, and where the row of a head begins and how long it is."""
    return ID_BYTES + 2 * int(graph.offsets.dtype.itemsize)


def _cached_ids(graph: DeviceGraph, parts: Parts, knobs: Knobs, device: Device) -> int:
    """No more than the longest row has, so that more blocks run at once."""
    room = (device.shared_bytes - STATIC_SHARED_BYTES) // _bytes_of_cached_id(graph)
    return min(int(knobs["cached"]), parts.longest_row, room)


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
