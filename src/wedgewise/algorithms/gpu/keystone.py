"""What: pivots on the middle vertex; near the hubs, one look-up tests an id against up to 32 pivots.

Paper: ours; keystone.cu counts, keystone_prepare.cu splits the rows at the hubs and makes the items. The host chooses
how many hubs there are, sorts the items by pivot and cuts them into equal shares for the blocks.
Memory beyond the oriented graph: per arc 4 bytes of tails and at most 4 of 16-bit ids; per vertex 44, and 32 of padding
of rows; in each batch of pivots, per arc at most 16 of items, 24 while they are sorted or shared out, and 16 of
searches, or 32 with offsets of 64 bits.
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
    Cost,
    DeviceAnswer,
    DeviceTripleAnswer,
    DeviceWork,
    Knob,
    Knobs,
    Launch,
    Shape,
)
from wedgewise.algorithms.gpu import _keystone_answers as answers
from wedgewise.algorithms.gpu import _keystone_triples as triples
from wedgewise.algorithms.gpu._arcs import tails_of
from wedgewise.algorithms.gpu._launches import (
    blocks_at_once,
    grid_for,
    offset_bits,
    rounded_up_to_warps,
    sums_before,
)
from wedgewise.errors import PreconditionError
from wedgewise.machine.gpu import Array, Device
from wedgewise.stages import DeviceGraph

STEM, PREPARING_STEM = "keystone", "keystone_prepare"
NEAR_PIVOTS = 32
IDS_PER_LOAD = 8
MAX_HUBS = (1 << 16) - 1  # 16-bit ids, and one that no vertex has
MAX_NEAR_HUBS = (1 << 14) - 1  # with the same spare id, a table of 64 KiB: two blocks to a multiprocessor
FEW_NEAR_HUBS = (1 << 12) - 1
MANY_ARCS = 1 << 21  # from here on, large tables pay
MAX_ARCS = 1 << 32
PREPARING_BLOCK = 256
PREPARING_BLOCKS_PER_SM = 16
BLOCKS_PER_SM = 32
RESERVED_SHARED_BYTES = 1024  # of every block, by the system
FAR_BLOCK, LARGE_FAR_BLOCK = 64, 128  # threads that share a bitmap
VERY_MANY_ARCS = 1 << 25  # from here on, pivots keep the larger block busy
GROUP_COST = 4096  # loads that building a table takes the time of
LAUNCH_COST = 1 << 34  # loads and tables of a launch, about 100 ms on an H200
LAUNCH_SEARCHES = 1 << 28
CHOOSE = 0


@dataclass(frozen=True, slots=True)
class HubsOnDevice:
    """How many of the highest ids are hubs, and near hubs; see common/keystone.cuh for units."""

    n: int
    near: int
    hubs: int

    @classmethod
    def choose(cls, graph: DeviceGraph, knobs: Knobs, shared_bytes: int) -> HubsOnDevice:
        near = int(knobs["near_hubs"]) or (MAX_NEAR_HUBS if graph.m >= MANY_ARCS else FEW_NEAR_HUBS)
        near = min(graph.n, near, MAX_HUBS, shared_bytes // 4 - 1)
        return cls(graph.n, near, max(near, min(graph.n, int(knobs["hubs"]), MAX_HUBS)))

    @property
    def first_near(self) -> int:
        return self.n - self.near

    @property
    def units(self) -> int:
        return self.first_near + -(-self.near // NEAR_PIVOTS)

    @property
    def arguments(self) -> tuple[Any, ...]:
        return np.uint32(self.n), np.uint32(self.first_near), np.uint32(self.n - self.hubs)


def prepare(graph: DeviceGraph, knobs: Knobs, device: Device) -> DeviceWork:
    """Split the rows, measure the units, and cut them into batches of bounded memory and work."""
    if graph.m >= MAX_ARCS:
        raise PreconditionError(f"keystone on cuda takes fewer than 2^32 arcs, not {graph.m:,}; use device='cpu'")
    found = device.xp.zeros(2, device.xp.uint64)
    if graph.m == 0:
        return DeviceWork.at_once((), found)
    pivoting = Pivoting.of(graph, knobs, device, found)
    bounds = pivoting.batch_bounds(int(knobs["batches"]))
    return DeviceWork(tuple(partial(pivoting.batch, begin, end) for begin, end in pairwise(bounds)), found)


@dataclass(frozen=True, slots=True)
class Split:
    """Rows cut at the hubs: how many loads come before each row's, and their 16-bit ids.

    Every kernel over arcs begins with `arguments`: the graph, where hubs begin in rows, those loads, and the hubs.
    """

    arguments: tuple[Any, ...]
    near_start: Array
    hub_start: Array
    near_ids: Array
    hub_ids: Array

    @classmethod
    def of(cls, graph: DeviceGraph, hubs: HubsOnDevice, device: Device) -> Split:
        xp, n, rows = device.xp, graph.n, (graph.offsets, graph.out_neighbours)
        begins = xp.empty(n, graph.offsets.dtype), xp.empty(n, graph.offsets.dtype)  # of near hubs, of hubs
        loads = xp.zeros(n, xp.uint32), xp.zeros(n, xp.uint32)
        _for_each(device, graph, "split_rows", n, (*rows, *hubs.arguments, *begins, *loads))
        near_start, hub_start = (sums_before(of_rows, xp, xp.uint32) for of_rows in loads)
        near_ids = xp.full(IDS_PER_LOAD * int(near_start[-1]), hubs.near, xp.uint16)
        hub_ids = xp.full(IDS_PER_LOAD * int(hub_start[-1]), hubs.hubs, xp.uint16)
        arguments = (*rows, tails_of(graph, device), *begins, near_start, hub_start, *hubs.arguments)
        return cls(arguments, near_start, hub_start, near_ids, hub_ids)


def _for_each(device: Device, graph: DeviceGraph, kernel: str, count: int, arguments: tuple[Any, ...]) -> None:
    """A preparing kernel over so many rows, arcs or items."""
    grid = grid_for(count, PREPARING_BLOCK, PREPARING_BLOCKS_PER_SM, device)
    device.launch(PREPARING_STEM, kernel, grid, PREPARING_BLOCK, arguments, defines=(offset_bits(graph.offsets),))


@dataclass(frozen=True, slots=True)
class Pivoting:
    """What all batches share: rows split at the hubs, units that have tables, the number of each table."""

    graph: DeviceGraph
    hubs: HubsOnDevice
    knobs: Knobs
    device: Device
    found: Array
    split: Split
    unit_arcs: Array
    has_table: Array
    table_of: Array
    units: Array

    @classmethod
    def of(cls, graph: DeviceGraph, knobs: Knobs, device: Device, found: Array) -> Pivoting:
        xp, hubs = device.xp, HubsOnDevice.choose(graph, knobs, device.shared_bytes)
        split = Split.of(graph, hubs, device)
        pivot_loads = xp.zeros(hubs.first_near, xp.uint64)
        unit_arcs = xp.zeros(hubs.units if int(knobs["batches"]) > 1 else 0, xp.uint32)
        sums = split.near_ids, split.hub_ids, pivot_loads, unit_arcs, np.uint32(len(unit_arcs))
        _for_each(device, graph, "measure_arcs", graph.m, (*split.arguments, np.uint64(graph.m), *sums))
        has_table = xp.ones(hubs.units, xp.bool_)
        has_table[: hubs.first_near] = pivot_loads >= _least_far_loads(graph, knobs)
        table_of = xp.cumsum(has_table, dtype=xp.uint32) - xp.uint32(1)  # of units that have one
        units = xp.flatnonzero(has_table).astype(xp.uint32)
        return cls(graph, hubs, knobs, device, found, split, unit_arcs, has_table.view(xp.uint8), table_of, units)

    def batch_bounds(self, batches: int) -> list[int]:
        """Ranges of units with about equally many arcs."""
        xp, units = self.device.xp, self.hubs.units
        batches = min(batches, units)
        if batches == 1:
            return [0, units]
        arcs = xp.cumsum(self.unit_arcs, dtype=xp.uint64)
        wanted = xp.asarray([self.graph.m * batch // batches for batch in range(1, batches)], xp.uint64)
        return sorted({0, *(cut + 1 for cut in xp.searchsorted(arcs, wanted).tolist()), units})

    def batch(self, first_unit: int, end_unit: int) -> tuple[Launch, ...]:
        """Place the items and searches of a range of units; then counting is a launch for each kind that there is."""
        placed = self._place(first_unit, end_unit)
        bounds = self.device.xp.asarray([first_unit, self.hubs.first_near, end_unit], self.units.dtype)
        first, middle, end = self.device.xp.searchsorted(self.units, bounds).tolist()
        far_end = max(first, min(middle, end))
        far_items = int(placed.table_ends[far_end - 1]) if far_end > first else 0
        return (*self._near_launches(placed, far_items), *self._far_launches(placed, first, far_end, far_items))

    def _place(self, first_unit: int, end_unit: int) -> BatchItems:
        xp, graph, device = self.device.xp, self.graph, self.device
        ranged = (
            *self.split.arguments,
            np.uint64(graph.m),
            np.uint32(first_unit),
            np.uint32(end_unit),
            self.has_table,
        )
        counts = xp.zeros(2, xp.uint64)
        _for_each(device, graph, "count_items", graph.m, (*ranged, counts))
        item_count, search_count = (int(count) for count in counts.tolist())
        keys, searches = xp.empty(item_count, xp.uint64), xp.empty((search_count, 4), graph.offsets.dtype)
        placed = (*ranged, self.table_of, keys, searches, xp.zeros(2, xp.uint32))
        _for_each(device, graph, "place_arcs", graph.m, placed)
        keys.sort()
        items = xp.empty((item_count, 4), xp.uint32)
        if item_count > 0:
            written = (*self.split.arguments, keys, np.uint32(item_count), items)
            _for_each(device, graph, "write_items", item_count, written)
        after = xp.arange(1, len(self.units) + 1, dtype=xp.uint64) << np.uint64(32)
        return BatchItems(items, xp.searchsorted(keys, after).astype(xp.uint32), searches)

    def _near_launches(self, placed: BatchItems, first_item: int) -> Iterator[Launch]:
        """Blocks that search, and take the items of groups, of about equal cost."""
        items, searches, block = placed.items[first_item:], placed.searches, self.near_block
        if len(items) == len(searches) == 0:
            return
        shared_bytes = 4 * (self.hubs.near + 1)
        xp, grid = self.device.xp, blocks_at_once(block, shared_bytes, self.device)
        cost_before = _cost_before(xp, items)
        launches = max(-(-int(cost_before[-1]) // LAUNCH_COST), -(-len(searches) // LAUNCH_SEARCHES))
        ends = xp.arange(launches * grid + 1) * int(cost_before[-1]) // (launches * grid)  # of equal shares
        cuts = xp.searchsorted(cost_before, ends).astype(xp.uint32) + xp.uint32(first_item)
        tables = (
            self.graph.out_neighbours,
            np.uint32(self.hubs.n),
            np.uint32(self.hubs.near),
            self.split.near_start,
            self.split.near_ids,
            placed.items,
            self.units,
            placed.table_ends,
        )
        for launch in range(launches):
            first, end = (len(searches) * part // launches for part in (launch, launch + 1))
            share = cuts[launch * grid : (launch + 1) * grid + 1], searches[first:end], np.uint32(end - first)
            yield self._launch("count_near", grid, block, (*tables, *share, self.found), shared_bytes)

    def _far_launches(self, placed: BatchItems, first_table: int, end_table: int, item_count: int) -> Iterator[Launch]:
        """As many blocks as there is memory for a bitmap each."""
        if item_count == 0:
            return
        bitmap_bytes = 4 * (self.hubs.hubs // 32 + 1)
        fitting = self.device.shared_bytes // (bitmap_bytes + RESERVED_SHARED_BYTES)
        grid = self.device.sms * max(1, min(fitting, BLOCKS_PER_SM))
        bitmaps = (
            np.uint32(self.hubs.hubs),
            self.split.hub_start,
            self.split.hub_ids,
            placed.items,
            self.units,
            placed.table_ends,
        )
        cost = int(_cost_before(self.device.xp, placed.items[:item_count])[-1])
        launches = min(-(-cost // LAUNCH_COST), end_table - first_table)
        bounds = [first_table + (end_table - first_table) * launch // launches for launch in range(launches + 1)]
        for begin, end in pairwise(bounds):
            arguments = (*bitmaps, np.uint32(begin), np.uint32(end), self.found)
            yield self._launch("count_far", grid, self.far_block, arguments, bitmap_bytes)

    @property
    def near_block(self) -> int:
        return rounded_up_to_warps(int(self.knobs["block"]))

    @property
    def far_block(self) -> int:
        return LARGE_FAR_BLOCK if self.graph.m >= VERY_MANY_ARCS else FAR_BLOCK

    def _launch(self, kernel: str, grid: int, block: int, arguments: tuple[Any, ...], shared_bytes: int) -> Launch:
        defines = (
            ("LONG_ITEM", int(self.knobs["long_item"])),
            ("BLOCK", self.near_block),
            ("FAR_BLOCK", self.far_block),
            offset_bits(self.graph.offsets),
        )
        launch = partial(self.device.launch, shared_bytes=shared_bytes, defines=defines)
        return partial(launch, STEM, kernel, grid, block, arguments)


@dataclass(frozen=True, slots=True)
class BatchItems:
    """What the counting kernels of a batch go through: items by table, where those of each table end, and searches."""

    items: Array
    table_ends: Array
    searches: Array


def _least_far_loads(graph: DeviceGraph, knobs: Knobs) -> int:
    """The smaller a graph is, the more work of a pivot repays the launch that makes bitmaps."""
    if graph.m >= VERY_MANY_ARCS:
        chosen = 32
    else:
        chosen = 64 if graph.m >= MANY_ARCS else 128
    return int(knobs["least_far_loads"]) or chosen


def _cost_before(xp: Any, items: Array) -> Array:
    """What comes before each item, and all of it: loads, and the building of every new table."""
    cost = xp.zeros(len(items) + 1, xp.int64)
    cost[1:] = items[:, 1]
    cost[1:] -= items[:, 0]
    cost[1:] += 2
    cost[2:] += GROUP_COST * (items[1:, 3] != items[:-1, 3])
    return xp.cumsum(cost)


def bytes_needed(shape: Shape, knobs: Knobs) -> int:
    wide = shape.m >= 1 << 31
    offset = 8 if wide else 4
    shared = (4 + 4) * shape.m + (2 * offset + 4 * 4 + 2 * 2 * IDS_PER_LOAD + 20) * shape.n
    batch = (16 + 24 + 4 * offset) * -(-shape.m // max(1, int(knobs["batches"])))
    return shared + batch


ALGORITHM = Algorithm(
    name="keystone",
    device="cuda",
    unit="graph",
    answers={
        "count": DeviceAnswer(prepare, bytes_needed, Cost(2.39e-5, 1.4e-11, 4.0e-13, 2e-3, 2.2e-10)),
        "triangles": DeviceAnswer(
            answers.prepare_triangles, answers.triangles_bytes, Cost(1e-4, 0, 5e-12, 2.5e-3, 3e-10)
        ),
        "edge_support": DeviceAnswer(
            answers.prepare_edge_support, answers.edge_support_bytes, Cost(5e-5, 0, 4.5e-12, 2.5e-3, 3e-10)
        ),
        "list_triangles": DeviceAnswer(
            answers.prepare_listing, answers.listing_bytes, Cost(5e-5, 0, 3.2e-12, 2.5e-3, 3e-10)
        ),
    },
    triples={"count": DeviceTripleAnswer(triples.prepare, triples.bytes_needed, triples.made_words, triples.make)},
    paper="our own engine",
    summary="Looks each id behind a pivot up in a table of 32 pivots at once.",
    limits="ids by rank, fewer than 2^32 arcs",
    relabellings=("rank",),
    most_arcs=MAX_ARCS,
    knobs=(
        Knob("near_hubs", CHOOSE, "ids that tables of 32 pivots cover; 0 chooses by the number of arcs"),
        Knob("hubs", MAX_HUBS, "ids that the bitmaps of single pivots cover, 65,535 at most", least=1),
        Knob("least_far_loads", CHOOSE, "loads of 8 ids from which on a pivot has a bitmap; 0 chooses by the arcs"),
        Knob("long_item", 8, "loads of 8 ids from which on 8 threads stream an item together, not 2", least=1),
        Knob("block", 1024, "threads of a block, whole warps, 1,024 at most", least=1),
        Knob("batches", 1, "ranges of pivots that are prepared one after the other, to save memory", least=1),
    ),
)
