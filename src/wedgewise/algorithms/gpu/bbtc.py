"""What: counts batches of tasks by lists or by a map of the columns, with all threads of a device.

Paper: BBTC (Yaşar et al., TPDS 2021), Algorithms 5, 6 and 7; bbtc.cu has the kernels. The host decides by the sizes of
the blocks between lists and maps, and where maps are kept; nothing waits for the device.
Memory beyond the blocks: for maps in global memory a bit per column and block that runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from wedgewise.algorithms._contract import (
    Algorithm,
    DeviceAnswer,
    DeviceBatch,
    DeviceBlock,
    DeviceTripleAnswer,
    DeviceWork,
    Knob,
    Knobs,
    Launch,
    Shape,
)
from wedgewise.algorithms.cpu.bbtc import ALGORITHM as ON_CPU
from wedgewise.algorithms.cpu.bbtc import is_by_map
from wedgewise.algorithms.gpu._batches import (
    LONGEST_ROW,
    MAX_UNITS,
    UNIT_BYTES,
    GpuBatch,
    Grid,
    Numbers,
    has_work,
    launches_for,
    listing,
    row_units,
    steps_of,
    units_of,
    work_of_unit,
)
from wedgewise.algorithms.gpu._launches import MAX_SMS, THREADS_PER_SM, WARP, blocks_at_once, whole_warps
from wedgewise.machine.gpu import Array, Device
from wedgewise.stages import DeviceGraph
from wedgewise.stages.blocks import Block, Hashed
from wedgewise.stages.tasks import TaskTable, TripleShape, table_of

STEM = "bbtc"
LAUNCH_ESTIMATE = 1 << 30  # steps; skewed blocks take 100 to 200 ms for so many on an H200
CHUNK_ARCS = 256
WORD_BYTES, WORD_BITS, STATIC_SHARED_BYTES = 4, 32, 2048
MAX_MAP_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class MapLayout:
    """Threads of a block, words of a map, the maps of a block in shared memory, and the bytes that it has of that."""

    block: int
    words: int
    shared_maps: int
    shared_bytes: int

    @classmethod
    def of(cls, columns: int, offset_bytes: int, knobs: Knobs, device: Device) -> MapLayout:
        block, words = whole_warps(knobs), -(-columns // WORD_BITS)
        rows_bytes = 2 * offset_bytes * block
        for shared_maps in (block // WARP, 1):
            layout = cls(block, words, shared_maps, rows_bytes + shared_maps * WORD_BYTES * words)
            if layout.is_dense_on(device):
                return layout
        return cls(block, words, 0, rows_bytes)

    def is_dense_on(self, device: Device) -> bool:
        """Whether it fits, and half of all threads run at once."""
        fits = self.shared_bytes + self.static_bytes <= device.shared_bytes
        return fits and 2 * self.block * self.blocks_on(device) >= THREADS_PER_SM * device.sms

    @property
    def static_bytes(self) -> int:
        """What a block has of shared memory besides."""
        return STATIC_SHARED_BYTES + listing(self.block)[1]

    def blocks_on(self, device: Device) -> int:
        """As many as run at once, and as there is memory for their maps."""
        at_once = blocks_at_once(self.block, self.shared_bytes + self.static_bytes, device)
        return at_once if self.shared_maps else min(at_once, _most_maps(self.words))

    @property
    def most_of_warp(self) -> tuple[int, int]:
        """The most arcs in ij and in ik of a row for a warp: as many as a block has threads, if warps have maps."""
        return (self.block, LONGEST_ROW) if self.shared_maps == self.block // WARP else (0, 0)

    def take_maps(self, blocks: int, device: Device) -> Array:
        """The maps in global memory of so many blocks, all clear."""
        return device.xp.zeros(1 if self.shared_maps else blocks * self.words, device.xp.uint32)


def _most_maps(words: int) -> int:
    return max(1, MAX_MAP_BYTES // (WORD_BYTES * words))


def prepare_batch(given: DeviceBatch, knobs: Knobs, device: Device) -> DeviceWork:
    """Decide how by the sizes of blocks; one launch for each way, or several of about equal work."""
    batch, tasks = GpuBatch.of(given, device), given.tasks
    shape = batch.shape
    is_working, maps = has_work(shape, tasks), _are_by_map(shape, knobs)
    work = work_of_unit(steps_of(shape, tasks.shares)[is_working])
    launches: list[Launch] = []
    merging = np.flatnonzero(is_working & ~maps)
    if len(merging):
        launches += _merges(batch, merging, tasks, work, knobs)
    looking, columns_k = np.flatnonzero(is_working & maps), np.asarray(shape.columns_k)
    layouts: dict[int, MapLayout] = {}
    for columns in np.unique(columns_k[looking]).tolist():
        layouts[columns] = MapLayout.of(columns, batch.offset_bits[1] // 8, knobs, device)
    for shared_maps in sorted({layout.shared_maps for layout in layouts.values()}):
        widest = max(columns for columns, layout in layouts.items() if layout.shared_maps == shared_maps)
        alike = [columns for columns, layout in layouts.items() if layout.shared_maps == shared_maps]
        chosen = looking[np.isin(columns_k[looking], alike)]
        launches += _look_ups(batch, chosen, tasks, work, layouts[widest])
    return DeviceWork.at_once(launches, batch.found, kept=given)


def _are_by_map(shape: TripleShape, knobs: Knobs) -> Any:
    """Whether maps are for tasks of these sizes, by the densest block of each."""
    degrees = np.divide(shape.arcs, np.maximum(1, (shape.rows_i, shape.rows_i, shape.rows_j)))
    return is_by_map(degrees, knobs)


def _merges(batch: GpuBatch, chosen: Numbers, tasks: TaskTable, work: float, knobs: Knobs) -> tuple[Launch, ...]:
    """Chunks of consecutive arcs, a warp each."""
    block, shape = whole_warps(knobs), batch.shape
    chunks = -(-np.asarray(shape.arcs_ij)[chosen] // (CHUNK_ARCS * (block // WARP)))
    units = units_of(chosen, steps_of(shape, tasks.shares)[chosen], np.maximum(1, chunks), work)
    grid = Grid(blocks_at_once(block, STATIC_SHARED_BYTES, batch.device), block)
    launches = launches_for(chosen, shape, tasks.shares, LAUNCH_ESTIMATE)
    return batch.launches(STEM, "merge_arcs", grid, units, (np.uint32(CHUNK_ARCS),), launches)


def _look_ups(batch: GpuBatch, chosen: Numbers, tasks: TaskTable, work: float, layout: MapLayout) -> tuple[Launch, ...]:
    """As many blocks as run at once take units in turn, and list the rows of each."""
    units = row_units(chosen, batch.shape, tasks, layout.block, work)
    blocks = min(layout.blocks_on(batch.device), len(units))
    sizes = map(np.uint32, (*layout.most_of_warp, layout.words, layout.shared_maps))
    grid = Grid(
        blocks,
        layout.block,
        layout.shared_bytes,
        (("SHARED_MAPS", int(layout.shared_maps > 0)), listing(layout.block)[0]),
    )
    further = (*sizes, layout.take_maps(blocks, batch.device))
    launches = launches_for(chosen, batch.shape, tasks.shares, LAUNCH_ESTIMATE)
    return batch.launches(STEM, "look_up_arcs", grid, units, further, launches)


def triple_bytes(shape: TripleShape, knobs: Knobs) -> Any:
    """Units, and the maps of tasks that have some as if they were in global memory, on the largest of devices."""
    words, at_once = -(-shape.columns_k // WORD_BITS), MAX_SMS * THREADS_PER_SM // whole_warps(knobs)
    most = np.maximum(1, MAX_MAP_BYTES // (WORD_BYTES * np.maximum(1, words)))
    maps = np.minimum(at_once, most) * WORD_BYTES * words
    return np.where(_are_by_map(shape, knobs), maps, 0) + UNIT_BYTES * MAX_UNITS


def prepare(graph: DeviceGraph, knobs: Knobs, device: Device) -> DeviceWork:
    """A whole graph is the one task of one part."""
    block = DeviceBlock(Block(graph.offsets, graph.out_neighbours, graph.n))
    work = prepare_batch(DeviceBatch({(0, 0): block}, table_of(Hashed(graph.n, 1))), knobs, device)
    return DeviceWork(work.batches, work.found[0, :2], kept=work.kept)


def bytes_needed(shape: Shape, knobs: Knobs) -> int:
    return int(triple_bytes(TripleShape(shape.n, shape.n, shape.n, shape.m, shape.m, shape.m), knobs))


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
    triples={"count": DeviceTripleAnswer(prepare_batch, triple_bytes)},
)
