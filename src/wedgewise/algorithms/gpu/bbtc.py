"""What: counts tasks of three blocks by lists or by a map of the columns, with all threads of a device.

Paper: BBTC (Yaşar et al., TPDS 2021), Algorithms 5, 6 and 7; bbtc.cu has the kernels. The host decides by the sizes of
the blocks between lists and maps, and where maps are kept; nothing waits for the device.
Memory beyond the blocks: 4 bytes per row of part i; for maps in global memory a bit per column and block that runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from wedgewise.algorithms._contract import (
    Algorithm,
    DeviceAnswer,
    DeviceTripleAnswer,
    DeviceWork,
    Knob,
    Knobs,
    Launch,
    Shape,
    TripleShape,
)
from wedgewise.algorithms.cpu._records import has_none
from wedgewise.algorithms.cpu.bbtc import ALGORITHM as ON_CPU
from wedgewise.algorithms.cpu.bbtc import takes_map
from wedgewise.algorithms.gpu._launches import THREADS_PER_SM, WARP, blocks_at_once, offset_bits, whole_warps
from wedgewise.algorithms.gpu._triples import (
    LONGEST_ROW,
    ListedRows,
    TripleArrays,
    launches_of,
    listing_bytes,
    rows_in_share,
    widening_bytes,
)
from wedgewise.machine.gpu import Array, Device
from wedgewise.stages import DeviceGraph
from wedgewise.stages.blocks import Block, Triple

STEM = "bbtc"
LAUNCH_ESTIMATE = 1 << 28  # arcs times average degree; skewed blocks take 30 to 60 ms for it on an H200
CHUNK_ARCS = 256
WORD_BYTES, WORD_BITS, STATIC_SHARED_BYTES = 4, 32, 2048
MOST_MAP_BYTES = 1 << 30
MOST_SMS = 256


@dataclass(frozen=True, slots=True)
class Layout:
    """Threads of a block, words of a map, the maps of a block in shared memory, and the bytes that it has of that."""

    block: int
    words: int
    shared_maps: int
    shared_bytes: int

    @classmethod
    def of(cls, columns: int, offset_bytes: int, knobs: Knobs, device: Device) -> Layout:
        block, words = whole_warps(knobs), -(-columns // WORD_BITS)
        rows_bytes = 2 * offset_bytes * block
        for shared_maps in (block // WARP, 1):
            layout = cls(block, words, shared_maps, rows_bytes + shared_maps * WORD_BYTES * words)
            if layout.is_dense_on(device):
                return layout
        return cls(block, words, 0, rows_bytes)

    def is_dense_on(self, device: Device) -> bool:
        """Whether it fits, and half of all threads run at once."""
        fits = self.shared_bytes + STATIC_SHARED_BYTES <= device.shared_bytes
        return fits and 2 * self.block * self.blocks_on(device) >= THREADS_PER_SM * device.sms

    def blocks_on(self, device: Device) -> int:
        """As many as run at once, and as there is memory for their maps."""
        at_once = blocks_at_once(self.block, self.shared_bytes + STATIC_SHARED_BYTES, device)
        return at_once if self.shared_maps else min(at_once, _most_maps(self.words))

    @property
    def most_of_warp(self) -> tuple[int, int]:
        """The most arcs in ij and in ik of a row for a warp: as many as a block has threads, if warps have maps."""
        return (self.block, LONGEST_ROW) if self.shared_maps == self.block // WARP else (0, 0)

    def take_maps(self, blocks: int, device: Device) -> Array:
        """The maps in global memory of so many blocks, all clear."""
        return device.xp.zeros(1 if self.shared_maps else blocks * self.words, device.xp.uint32)


def _most_maps(words: int) -> int:
    return max(1, MOST_MAP_BYTES // (WORD_BYTES * words))


def prepare_triple(triple: Triple, knobs: Knobs, share: int, shares: int, device: Device) -> DeviceWork:
    """Decide how by the sizes of the blocks; one launch, or several of about equal work."""
    found = device.xp.zeros(2, device.xp.uint64)
    rows = rows_in_share(triple.ij.rows, share, shares)
    if rows == 0 or has_none(triple):
        return DeviceWork.at_once((), found)
    arrays = TripleArrays.of(triple)
    launches = arrays.launches(shares, LAUNCH_ESTIMATE)
    if not takes_map(triple, knobs):
        return DeviceWork.at_once(_merges(arrays, knobs, share, shares, launches, found, device), found)
    layout = Layout.of(triple.jk.columns, arrays.ij_offsets.dtype.itemsize, knobs, device)
    listed = ListedRows.of(arrays, share, shares, layout.most_of_warp, launches, device)
    return DeviceWork.at_once(_look_ups(arrays, listed, layout, found, device), found)


def _merges(
    arrays: TripleArrays, knobs: Knobs, share: int, shares: int, launches: int, found: Array, device: Device
) -> Iterator[Launch]:
    """Chunks of consecutive arcs, a warp each, dealt to the launches in turn."""
    arcs, block = len(arrays.ij_heads), whole_warps(knobs)
    warps = -(-arcs // (CHUNK_ARCS * launches))
    sizes = (np.uint32(len(arrays.ij_offsets) - 1), np.uint64(arcs), np.uint32(CHUNK_ARCS))
    launch = partial(device.launch, STEM, "merge_arcs", defines=(offset_bits(arrays.ij_offsets),))
    for number in range(launches):
        numbers = map(np.uint32, (share, shares, number, launches))
        yield partial(launch, -(-warps * WARP // block), block, (*arrays, *sizes, *numbers, found))


def _look_ups(
    arrays: TripleArrays, listed: ListedRows, layout: Layout, found: Array, device: Device
) -> Iterator[Launch]:
    """List the rows; as many blocks as run at once take them in turn."""
    yield from listed.first
    blocks = min(layout.blocks_on(device), len(listed.positions))
    maps = (np.uint32(layout.words), np.uint32(layout.shared_maps), layout.take_maps(blocks, device))
    defines = (offset_bits(arrays.ij_offsets), ("SHARED_MAPS", int(layout.shared_maps > 0)))
    launch = partial(device.launch, STEM, "look_up_arcs", shared_bytes=layout.shared_bytes, defines=defines)
    for number in range(listed.launches):
        yield partial(launch, blocks, layout.block, (*arrays, *listed.arguments(number), *maps, found))


def triple_bytes(shape: TripleShape, knobs: Knobs) -> int:
    """As if maps were in global memory, on the largest of devices."""
    rows_i, rows_j, columns_k = shape.rows_i, shape.rows_j, shape.columns_k
    words, at_once = -(-columns_k // WORD_BITS), MOST_SMS * THREADS_PER_SM // whole_warps(knobs)
    maps = min(rows_i, at_once, _most_maps(max(1, words))) * WORD_BYTES * words
    launches = launches_of(rows_i, rows_j, shape.arcs, LAUNCH_ESTIMATE)
    return maps + listing_bytes(rows_i, launches) + widening_bytes(rows_i, rows_j, *shape.arcs)


def prepare(graph: DeviceGraph, knobs: Knobs, device: Device) -> DeviceWork:
    """A whole graph is the one task of one part."""
    block = Block(graph.offsets, graph.out_neighbours, graph.n)
    return prepare_triple(Triple(block, block, block), knobs, 0, 1, device)


def bytes_needed(shape: Shape, knobs: Knobs) -> int:
    return triple_bytes(TripleShape(shape.n, shape.n, shape.n, shape.m, shape.m, shape.m), knobs)


ALGORITHM = Algorithm(
    name="bbtc",
    device="cuda",
    unit="triple",
    answers={"count": DeviceAnswer(prepare, bytes_needed)},
    paper=ON_CPU.paper,
    summary="Counts every triple of blocks by lists or by a map, with all threads of the device.",
    knobs=(
        *(knob for knob in ON_CPU.knobs if knob.name in ("method", "threshold")),
        Knob("block", 256, "threads of a block: whole warps, at most 1,024", least=32),
    ),
    triples={"count": DeviceTripleAnswer(prepare_triple, triple_bytes)},
)
