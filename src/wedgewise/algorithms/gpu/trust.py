"""What: TRUST: looks the second hop of every vertex up in a hash table of its row, with threads by its out-degree.

Paper: Pandey et al., TRUST: Triangle Counting Reloaded on GPUs, IEEE TPDS 32(11), 2021; trust.cu has the kernels. The
host lists the vertices by class, takes memory for the tables, and cuts the vertices into launches of bounded work.
The paper's ablations are knobs. Its reorderings are relabellings: "collective" and "indegree" of section 4.1, "classes"
of section 5.1, and their baseline, the order by degree, as "rank".
Memory beyond the oriented graph: 4 bytes for each place of the tables of all blocks that run at once; 4 per vertex as
it counts, 32 at its peak; 256 per thread to copy rows; 44 per arc where the table is built for every arc.
On three blocks, trust_triples.cu hashes the row of ik and looks the second hop through ij and jk up, for a batch of
tasks at a time. Rows are listed by their partial degrees on the device, so that nothing waits for it.
Memory beyond the blocks: the tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from wedgewise.algorithms._contract import (
    Algorithm,
    DeviceAnswer,
    DeviceBatch,
    DeviceTripleAnswer,
    DeviceWork,
    Knob,
    Knobs,
    Launch,
    Shape,
)
from wedgewise.algorithms.gpu._arcs import tails_of
from wedgewise.algorithms.gpu._batches import (
    LONGEST_ROW,
    MAX_UNITS,
    UNIT_BYTES,
    GpuBatch,
    Grid,
    has_work,
    launches_for,
    listing,
    row_units,
    steps_of,
    work_of_unit,
)
from wedgewise.algorithms.gpu._launches import (
    MAX_SMS,
    MAX_THREADS,
    THREADS_PER_SM,
    WARP,
    blocks_at_once,
    counting,
    grid_for,
    offset_bits,
    work_bounds,
)
from wedgewise.machine.gpu import Array, Device
from wedgewise.stages import DeviceGraph
from wedgewise.stages.tasks import TripleShape

STEM, TRIPLES_STEM = "trust", "trust_triples"
COMBINATIONS = {"virtual": (0, 32), "physical": (1, 32), "warp": (2, 32), "subwarp16": (2, 16), "subwarp8": (2, 8)}
COPIED_PER_THREAD = 64
MAX_BLOCKS = 1024  # with a table each, as in the paper
MAX_BUCKETS, MAX_CAPACITY = 128, 1024
MAX_CHUNK = (1 << 31) - 1  # chunks and their counter are 32-bit numbers
ID_BYTES, STATIC_SHARED_BYTES = 4, 2048
LAUNCH_TESTS = 1 << 34  # about 60 ms at the pace of the authors' program on an H200
LAUNCH_ESTIMATE = 1 << 30  # steps, of which skewed blocks have ten times as many; 100 ms at the authors' pace
THREADS_PER_TEST = 2  # an estimate: before its first look-up a vertex costs half of its threads one each
MIN_OUT_DEGREE = 2  # a triangle's lowest vertex has two arcs
MEASURING_BLOCK, MEASURING_BLOCKS_PER_SM = 256, 64


@dataclass(frozen=True, slots=True)
class TableLayout:
    """Hash tables by the knobs, as far as device and rows allow: threads and buckets of a block, places of each."""

    block: int
    buckets: int
    capacity: int
    cached: int
    shared_bytes: int
    combination: int
    lanes: int

    @classmethod
    def of(cls, knobs: Knobs, offset_bytes: int, longest: int, device: Device, static_bytes: int = 0) -> TableLayout:
        block, capacity = _block(knobs), min(_capacity(knobs), longest)
        rows_bytes = 2 * offset_bytes * block
        ids = (device.shared_bytes - STATIC_SHARED_BYTES - static_bytes - rows_bytes) // ID_BYTES
        buckets = block // WARP * _power_of_two(min(_buckets(knobs), ids // (block // WARP)))
        cached = min(int(knobs["cached"]), capacity, ids // buckets - 1)
        combination, lanes = COMBINATIONS[str(knobs["combination"])]
        return cls(block, buckets, capacity, cached, rows_bytes + ID_BYTES * buckets * (1 + cached), combination, lanes)

    def blocks(self, device: Device) -> int:
        """As many as run at once."""
        return min(MAX_BLOCKS, blocks_at_once(self.block, self.shared_bytes + STATIC_SHARED_BYTES, device))

    def take_tables(self, blocks: int, device: Device) -> tuple[Any, ...]:
        """What kernels read of the tables of so many blocks: their sizes, places in global memory, room for copies."""
        xp, is_physical = device.xp, self.combination == COMBINATIONS["physical"][0]
        sizes = (np.uint32(self.buckets), np.uint32(self.cached), np.uint32(self.capacity))
        far = xp.empty(max(1, blocks * self.buckets * (self.capacity - self.cached)), xp.uint32)
        copied = xp.empty(blocks * self.block * COPIED_PER_THREAD if is_physical else 1, xp.uint32)
        return *sizes, far, copied, np.uint32(self.lanes)


def table_bytes(knobs: Knobs, longest: Any) -> Any:
    """What the tables of one block take of global memory at most, for rows of at most so many ids."""
    block = _block(knobs)
    positions = block // WARP * _buckets(knobs) * np.minimum(_capacity(knobs), longest)
    return ID_BYTES * (positions + (block * COPIED_PER_THREAD if knobs["combination"] == "physical" else 0))


def chunk_of(knobs: Knobs) -> int:
    return min(int(knobs["chunk"]), MAX_CHUNK)


def _power_of_two(most: int) -> int:
    return 1 << most.bit_length() - 1


def _block(knobs: Knobs) -> int:
    return _power_of_two(min(int(knobs["block"]), MAX_THREADS))


def _buckets(knobs: Knobs) -> int:
    """Those of a warp; hashing takes the last bits of an id."""
    return _power_of_two(min(int(knobs["buckets"]), MAX_BUCKETS))


def _capacity(knobs: Knobs) -> int:
    return min(int(knobs["capacity"]), MAX_CAPACITY)


@dataclass(frozen=True, slots=True)
class Units:
    """What tables are built for, those of blocks first: vertices, or arcs with their tails."""

    vertices: Array
    arcs: Array
    of_blocks: int
    per_arc: bool

    @classmethod
    def of(cls, graph: DeviceGraph, knobs: Knobs, degrees: Array, longest: int, device: Device) -> Units:
        most = longest if knobs["cooptimisation"] == "off" else min(int(knobs["large"]), longest)
        if knobs["construction"] == "vertex":
            rows, of_blocks = _by_class(degrees, most, device.xp)
            return cls(rows.astype(device.xp.uint32), graph.offsets, of_blocks, per_arc=False)
        tails = tails_of(graph, device)
        arcs, of_blocks = _by_class(degrees[tails], most, device.xp)
        return cls(tails[arcs], arcs.astype(graph.offsets.dtype), of_blocks, per_arc=True)


def _by_class(degrees: Array, most: int, xp: Any) -> tuple[Array, int]:
    """The numbers of the rows longer than `most` (>= 1), then of the others with a pair; and how many the first are."""
    large = xp.flatnonzero(degrees > most)
    small = xp.flatnonzero((degrees <= most) & (degrees >= MIN_OUT_DEGREE))
    return xp.concatenate([large, small]), len(large)


@counting
def prepare(graph: DeviceGraph, knobs: Knobs, device: Device, found: Array) -> Iterator[Launch]:
    """List the vertices by class; count one range of them after the other."""
    return _launches(graph, knobs, device, found, device.xp.zeros(1, device.xp.uint32))


def table_figures(graph: DeviceGraph, knobs: Knobs, device: Device) -> dict[str, int]:
    """Count once, and say how full buckets became: the maximum over all tables (the paper's table 3).

    Where buckets overflow, ids that they pass on count in each bucket that they ask.
    """
    found, fullest = device.xp.zeros(2, device.xp.uint64), device.xp.zeros(1, device.xp.uint32)
    for launch in _launches(graph, knobs, device, found, fullest) if graph.m > 0 else ():
        launch()
    device.synchronize()
    return {"max_collisions": int(fullest[0])}


def _launches(graph: DeviceGraph, knobs: Knobs, device: Device, found: Array, fullest: Array) -> Iterator[Launch]:
    """Take memory for the tables; a launch for each range of units. By `fullest` ids was the fullest bucket asked."""
    degrees = device.xp.diff(graph.offsets)
    longest = int(degrees.max())
    if longest < MIN_OUT_DEGREE:
        return
    units = Units.of(graph, knobs, degrees, longest, device)
    layout = TableLayout.of(knobs, graph.offsets.dtype.itemsize, longest, device)
    chunk = max(chunk_of(knobs), -(-len(units.vertices) // MAX_CHUNK))
    blocks = min(layout.blocks(device), len(units.vertices))
    shared = (*_read_by_all(graph, units), np.uint32(chunk), *layout.take_tables(blocks, device))
    counters, offset = device.xp.zeros(3, device.xp.uint32), graph.offsets.dtype.type
    defines = (offset_bits(graph.offsets), ("COMBINATION", layout.combination))
    launch = partial(device.launch, STEM, "count_units", shared_bytes=layout.shared_bytes, defines=defines)
    for begin, end in pairwise(_bounds(graph, units, longest, layout.block, device)):
        middle = min(max(begin, units.of_blocks), end)
        wanted = max(-(-(middle - begin) // chunk), -(-(end - middle) // (chunk * layout.block // WARP)))
        arguments = (*shared, offset(begin), offset(middle), offset(end), counters, found, fullest)
        yield partial(launch, min(blocks, wanted), layout.block, arguments)


def _read_by_all(graph: DeviceGraph, units: Units) -> tuple[Any, ...]:
    return graph.offsets, graph.out_neighbours, units.vertices, units.arcs, np.uint32(units.per_arc)


def _bounds(graph: DeviceGraph, units: Units, longest: int, block: int, device: Device) -> list[int]:
    """Where launches begin and end: about `LAUNCH_TESTS` look-ups each."""
    xp, count = device.xp, len(units.vertices)
    if graph.m * longest + block // THREADS_PER_TEST * count <= LAUNCH_TESTS:
        return [0, count]
    work = xp.full(count, WARP // THREADS_PER_TEST, xp.uint64)
    work[: units.of_blocks] = block // THREADS_PER_TEST
    grid = grid_for(WARP * count, MEASURING_BLOCK, MEASURING_BLOCKS_PER_SM, device)
    arguments = (*_read_by_all(graph, units), graph.offsets.dtype.type(count), work)
    device.launch(STEM, "measure_units", grid, MEASURING_BLOCK, arguments, defines=(offset_bits(graph.offsets),))
    return work_bounds(work, LAUNCH_TESTS, device)


def bytes_needed(shape: Shape, knobs: Knobs) -> int:
    of_arcs = knobs["construction"] == "edge"
    blocks = min(MAX_BLOCKS, shape.m if of_arcs else shape.n)
    return blocks * int(table_bytes(knobs, shape.n)) + 32 * shape.n + (44 * shape.m if of_arcs else 0)


def prepare_batch(given: DeviceBatch, knobs: Knobs, device: Device) -> DeviceWork:
    """Units of all tasks in one launch, or in several of about equal work.

    As many blocks as run at once take units in turn; there is memory for their tables.
    """
    batch = GpuBatch.of(given, device)
    working = np.flatnonzero(has_work(batch.shape, given.tasks))
    if len(working) == 0:
        return DeviceWork.at_once((), batch.found)
    longest = int(np.minimum(batch.shape.columns_k, batch.shape.arcs_ik)[working].max())
    layout = TableLayout.of(knobs, batch.offset_bits[1] // 8, longest, device, listing(_block(knobs))[1])
    work = work_of_unit(steps_of(batch.shape, given.tasks.shares)[working])
    units = row_units(working, batch.shape, given.tasks, layout.block, work)
    blocks = min(layout.blocks(device), len(units))
    most, chunk = most_of_warp(layout, knobs), min(chunk_of(knobs), MAX_THREADS)
    how = (*map(np.uint32, (*most, chunk, knobs["construction"] == "edge")), *layout.take_tables(blocks, device))
    grid = Grid(
        blocks, layout.block, layout.shared_bytes, (("COMBINATION", layout.combination), listing(layout.block)[0])
    )
    launches = launches_for(working, batch.shape, given.tasks.shares, LAUNCH_ESTIMATE)
    return DeviceWork.at_once(
        batch.launches(TRIPLES_STEM, "count_tasks", grid, units, how, launches), batch.found, kept=given
    )


def most_of_warp(layout: TableLayout, knobs: Knobs) -> tuple[int, int]:
    """The most arcs in ij and in ik of a row that is for a warp: by the knob, and by the places of buckets on chip."""
    if knobs["cooptimisation"] == "off":
        return LONGEST_ROW, LONGEST_ROW
    large, on_chip = int(knobs["large"]), layout.buckets * WARP // layout.block * layout.cached
    return min(large, LONGEST_ROW), min(max(large, on_chip), LONGEST_ROW)


def triple_bytes(shape: TripleShape, knobs: Knobs) -> Any:
    """The tables of as many blocks as run on the largest of devices, and the units of a batch."""
    blocks = min(MAX_BLOCKS, MAX_SMS * THREADS_PER_SM // _block(knobs))
    longest = np.minimum(shape.columns_k, shape.arcs_ik)
    return np.where(longest > 0, blocks * table_bytes(knobs, longest), 0) + UNIT_BYTES * MAX_UNITS


ALGORITHM = Algorithm(
    name="trust",
    device="cuda",
    unit="graph",
    answers={"count": DeviceAnswer(prepare, bytes_needed)},
    paper="Pandey et al.: TRUST: Triangle counting reloaded on GPUs, IEEE TPDS 32(11), 2021, 2646-2660",
    summary="Looks the second hop of every vertex up in a hash table of its row, by a block or a warp.",
    relabellings=("collective", "rank", "indegree", "classes"),
    knobs=(
        Knob("combination", "virtual", "how the rows of the second hop are shared out", choices=tuple(COMBINATIONS)),
        Knob("construction", "vertex", "what a table is built for, or rebuilt for", choices=("vertex", "edge")),
        Knob("cooptimisation", "on", "whether large vertices get blocks; off: all get warps", choices=("on", "off")),
        Knob("large", 100, "out-degree above which a vertex gets a block", least=1),
        Knob("chunk", 1, "vertices that are taken at a time; the paper also has 3 and 7", least=1),
        Knob("buckets", 32, "of a warp, and for each warp of a block: a power of two, at most 128", least=1),
        Knob("cached", 6, "places of each bucket in shared memory, as far as it reaches"),
        Knob("capacity", 128, "places of a bucket, at most 1,024; then ids go to the next one", least=1),
        Knob("block", 1024, "threads of a block: a power of two, at most 1,024", least=32),
    ),
    triples={"count": DeviceTripleAnswer(prepare_batch, triple_bytes)},
)
