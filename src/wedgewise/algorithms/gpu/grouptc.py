"""What: GroupTC: a block takes the intersections of many consecutive arcs at once, by binary search.

Paper: Li et al., section V; grouptc.cu has the kernels. The host writes the tail of every arc, and cuts the chunks into
launches of bounded work.
Memory beyond the oriented graph: 4 bytes per arc, and 16 per chunk where one launch is not enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np

from wedgewise.algorithms._contract import Algorithm, Cost, DeviceAnswer, Knob, Knobs, Launch, Shape
from wedgewise.algorithms.gpu._arcs import tails_of
from wedgewise.algorithms.gpu._launches import counting, offset_bits, whole_warps, work_bounds
from wedgewise.machine.gpu import Array, Device
from wedgewise.stages import DeviceGraph

LAUNCH_KEYS = 1 << 33  # about 50 ms on an H200
KEYS_PER_CHUNK = 128  # what a chunk costs before its first key
SEARCH_BYTES, ID_BYTES = 32, 4
STATIC_SHARED_BYTES = 1024
MAX_ARCS = 1024
LARGEST_FACTOR = (1 << 32) - 1  # no list is longer than this, so the table is never swapped
PREPARING_BLOCK, PREPARING_BLOCKS_PER_SM = 256, 64


@dataclass(frozen=True, slots=True)
class ChunkLayout:
    """The knobs as far as the device allows: arcs of a chunk, ids in shared memory, threads of a block."""

    chunk_arcs: int
    cached: int
    block: int
    swap_factor: int

    @classmethod
    def of(cls, knobs: Knobs, device: Device) -> ChunkLayout:
        chunk_arcs = _chunk_arcs(knobs)
        available_bytes = device.shared_bytes - STATIC_SHARED_BYTES - SEARCH_BYTES * chunk_arcs
        cached = min(int(knobs["cached"]), available_bytes // ID_BYTES)
        return cls(chunk_arcs, cached, whole_warps(knobs), min(int(knobs["swap_factor"]), LARGEST_FACTOR))

    @property
    def shared_bytes(self) -> int:
        return SEARCH_BYTES * self.chunk_arcs + ID_BYTES * self.cached


def _chunk_arcs(knobs: Knobs) -> int:
    return min(int(knobs["chunk"]), MAX_ARCS)


@counting
def prepare(graph: DeviceGraph, knobs: Knobs, device: Device, found: Array) -> Iterator[Launch]:
    """Write the tails; count one range of chunks after the other, which are measured if it must be."""
    xp, layout = device.xp, ChunkLayout.of(knobs, device)
    launch = partial(device.launch, "grouptc", defines=(offset_bits(graph.offsets),))
    arcs = (
        graph.offsets,
        graph.out_neighbours,
        tails_of(graph, device),
        np.uint64(graph.m),
        np.uint32(layout.chunk_arcs),
        np.uint32(layout.swap_factor),
    )
    chunks = -(-graph.m // layout.chunk_arcs)
    bounds = [0, chunks]
    most_keys = max(1, layout.swap_factor) * graph.wedges  # an arc has at most so many keys for each id behind it
    if most_keys + KEYS_PER_CHUNK * chunks > LAUNCH_KEYS:
        work = xp.full(chunks, KEYS_PER_CHUNK, xp.uint64)
        grid = min(chunks, PREPARING_BLOCKS_PER_SM * device.sms)
        launch("measure_chunks", grid, PREPARING_BLOCK, (*arcs, np.uint64(chunks), work))
        bounds = work_bounds(work, LAUNCH_KEYS, device)
    for begin, end in pairwise(bounds):
        arguments = (*arcs, np.uint32(layout.cached), np.uint64(begin), found)
        yield partial(launch, "count_chunks", end - begin, layout.block, arguments, shared_bytes=layout.shared_bytes)


def bytes_needed(shape: Shape, knobs: Knobs) -> int:
    return 4 * shape.m + 16 * -(-shape.m // _chunk_arcs(knobs))


ALGORITHM = Algorithm(
    name="grouptc",
    device="cuda",
    unit="graph",
    answers={"count": DeviceAnswer(prepare, bytes_needed, Cost(2.5e-5, 0, 6.9e-12, 5e-5, 2e-11))},
    paper="Li, Xu, Pham, Tu, Zhou: A Comparative Study of Intersection-Based Triangle Counting Algorithms on GPUs, "
    "IEEE IPDPS 2024, §V",
    summary="A block searches for the keys of many consecutive arcs as one list, shared out evenly.",
    limits="ids by rank",
    relabellings=("rank",),
    knobs=(
        Knob("chunk", 256, "consecutive arcs of a block, at most 1,024", least=1),
        Knob("swap_factor", 2, "search N+(v) instead of N+(u) where it is more than so many times as long"),
        Knob("cached", 2048, "ids of the chunk's own rows in shared memory, as far as it reaches"),
        Knob("block", 256, "threads of a block: whole warps, at most 1,024", least=32),
    ),
)
