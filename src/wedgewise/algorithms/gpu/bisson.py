"""What: marks the heads of a vertex in a bitmap, and looks the rows of those heads up in it.

Paper: Bisson, Fatica, 2017, with the compaction of 2018; bisson.cu has the kernels. The host chooses by the average
degree what takes a vertex, numbers the bits, takes memory for the bitmaps of what runs at once, and cuts the vertices
into launches of bounded work.
Memory beyond the oriented graph: 64 bytes per vertex at its peak, 8 while it counts; 4 per arc of compacted heads; for
bitmaps at most what the knob says, unless one block needs more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np

from wedgewise.algorithms._contract import Algorithm, DeviceAnswer, Knob, Knobs, Launch, Shape
from wedgewise.algorithms.gpu._launches import (
    THREADS_PER_SM,
    WARP,
    blocks_at_once,
    counting,
    offset_bits,
    whole_warps,
)
from wedgewise.algorithms.gpu._parts import bytes_of_parts, launch_bounds, parts_of
from wedgewise.machine.gpu import Array, Device
from wedgewise.stages import DeviceGraph

LAUNCH_TESTS = 1 << 32  # about 50 ms on an H200
BLOCK_DEGREE, WARP_DEGREE = 38.0, 3.8  # the paper's average degrees: above the first, from the second on
UNITS = ("auto", "block", "warp", "thread")
BLOCKS_PER_SM, MAX_SMS = 32, 256
MIN_SHARED = {"block": 1, "warp": 4}  # bitmaps in shared memory from which on they are faster there
WORD_BYTES, WORD_BITS, STATIC_SHARED_BYTES = 4, 32, 1024
MIB = 1 << 20


def unit_for(n: int, m: int, knobs: Knobs) -> str:
    """What takes a vertex: what was asked for, or by the average degree of the oriented graph."""
    if knobs["unit"] != "auto":
        return str(knobs["unit"])
    if m > BLOCK_DEGREE * n:
        return "block"
    return "warp" if m >= WARP_DEGREE * n else "thread"


@dataclass(frozen=True, slots=True)
class BitmapLayout:
    """What takes a vertex, threads of a block, words of a bitmap, and whether bitmaps are in shared memory."""

    unit: str
    block: int
    words: int
    is_shared: bool

    @classmethod
    def of(cls, unit: str, bits: int, knobs: Knobs, device: Device) -> BitmapLayout:
        words, block = -(-bits // WORD_BITS), whole_warps(knobs)
        fitting = (device.shared_bytes - STATIC_SHARED_BYTES) // (WORD_BYTES * words)
        least = MIN_SHARED.get(unit)
        is_shared = knobs["shared"] == "fits" and least is not None and fitting >= least
        if is_shared and unit == "warp":
            block = WARP * _warps_of_block(WORD_BYTES * words, min(block // WARP, fitting), device)
        return cls(unit, block, words, is_shared)

    @property
    def teams(self) -> int:
        """Bitmaps of a block."""
        return {"block": 1, "warp": self.block // WARP, "thread": self.block}[self.unit]

    @property
    def bitmap_bytes(self) -> int:
        """Of all bitmaps of a block."""
        return WORD_BYTES * self.words * self.teams

    def blocks(self, device: Device, most_bytes: int) -> int:
        """As many as run at once, and as there is memory for."""
        if self.is_shared:
            return blocks_at_once(self.block, self.bitmap_bytes + STATIC_SHARED_BYTES, device)
        return max(1, min(blocks_at_once(self.block, STATIC_SHARED_BYTES, device), most_bytes // self.bitmap_bytes))


def _warps_of_block(bitmap_bytes: int, most_warps: int, device: Device) -> int:
    """So many that the most of them run at once, each with a bitmap in shared memory."""

    def at_once(warps: int) -> int:
        fitting = device.shared_bytes // (bitmap_bytes * warps + STATIC_SHARED_BYTES)
        return warps * min(fitting, THREADS_PER_SM // (WARP * warps), BLOCKS_PER_SM)

    return max(range(1, most_warps + 1), key=at_once)


@counting
def prepare(graph: DeviceGraph, knobs: Knobs, device: Device, found: Array) -> Iterator[Launch]:
    """Number the bits, list the vertices, take memory for bitmaps; count one range of vertices after the other."""
    parts = parts_of(graph, device)
    bit_count, bits = _compacted(graph, device) if knobs["compaction"] == "on" else (graph.n, graph.out_neighbours)
    layout = BitmapLayout.of(unit_for(graph.n, graph.m, knobs), bit_count, knobs, device)
    most_blocks = min(layout.blocks(device, MIB * int(knobs["bitmap_mib"])), -(-len(parts.vertices) // layout.teams))
    words = 1 if layout.is_shared else most_blocks * layout.teams * layout.words
    bitmaps = device.xp.zeros(words, device.xp.uint32)
    arguments = (graph.offsets, graph.out_neighbours, bits, *parts.arguments, np.uint32(layout.words), bitmaps)
    defines = (offset_bits(graph.offsets), ("SHARED_BITMAPS", int(layout.is_shared)))
    shared_bytes = layout.bitmap_bytes if layout.is_shared else 0
    launch = partial(device.launch, "bisson", f"count_by_{layout.unit}", shared_bytes=shared_bytes, defines=defines)
    for begin, end in pairwise(launch_bounds(parts, graph, LAUNCH_TESTS, device)):
        span = (np.uint64(begin), np.uint64(end), found)
        grid = min(most_blocks, -(-(end - begin) // layout.teams))
        yield partial(launch, grid, layout.block, (*arguments, *span))


def _compacted(graph: DeviceGraph, device: Device) -> tuple[int, Array]:
    """How many vertices are heads, and for every arc the number of its own among them."""
    xp = device.xp
    is_head = xp.zeros(graph.n, xp.uint32)
    is_head[graph.out_neighbours] = 1
    heads_up_to = xp.cumsum(is_head, dtype=xp.uint32)
    return int(heads_up_to[-1]), (heads_up_to - is_head)[graph.out_neighbours]


def bytes_needed(shape: Shape, knobs: Knobs) -> int:
    team = {"block": whole_warps(knobs), "warp": WARP, "thread": 1}[unit_for(shape.n, shape.m, knobs)]
    bitmap = WORD_BYTES * -(-shape.n // WORD_BITS)
    of_one_block, of_all = whole_warps(knobs) // team * bitmap, MAX_SMS * THREADS_PER_SM // team * bitmap
    bitmaps = max(of_one_block, min(of_all, MIB * int(knobs["bitmap_mib"])))
    compacted = 4 * shape.m + 12 * shape.n if knobs["compaction"] == "on" else 0
    return bytes_of_parts(shape.n, shape.m) + compacted + bitmaps


ALGORITHM = Algorithm(
    name="bisson",
    device="cuda",
    unit="graph",
    answers={"count": DeviceAnswer(prepare, bytes_needed)},
    paper="Bisson, Fatica: High performance exact triangle counting on GPUs, IEEE TPDS 28(12), 2017, 3501-3510",
    summary="A block, a warp or a thread marks the heads of a vertex in a bitmap and looks their rows up.",
    knobs=(
        Knob(
            "unit",
            "auto",
            "what takes a vertex; auto: above 38 arcs per vertex a block, from 3.8 a warp",
            choices=UNITS,
        ),
        Knob("compaction", "on", "bits for those vertices alone that are heads", choices=("on", "off")),
        Knob("shared", "fits", "bitmaps in shared memory where they fit, or never", choices=("fits", "never")),
        Knob("bitmap_mib", 4096, "memory for bitmaps that are not in shared memory, in MiB; a block's at the least"),
        Knob("block", 256, "threads of a block: whole warps, at most 1,024", least=32),
    ),
)
