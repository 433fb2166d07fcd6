"""What: pivots on the middle vertex; near the hubs, one look-up tests an id against up to 32 pivots.

Paper: ours; keystone.cu counts, keystone_prepare.cu splits the rows at the hubs and places the items by pivot. The host
chooses how many hubs there are and waits for the device twice: for how much to allocate, and for the work of launches.
Memory beyond the oriented graph: per arc 4 bytes of tails and at most 4 of 16-bit ids; per vertex 56 and 32 of padding
of rows; in each batch of pivots, per arc at most 16 of items, half a byte of their cost, and 16 of searches, or 32 with
offsets of 64 bits.
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
MAX_LOADS = (1 << 32) - 1
PREPARING_BLOCK, PREPARING_BLOCKS_PER_SM = 256, 8
TILE_ARCS, MAX_TILES = 1 << 12, 1 << 12  # of arcs whose items a block places, more where there would be more tiles
CHUNK = 32  # as in keystone_prepare.cu
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
    def groups(self) -> int:
        return self.units - self.first_near

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
        loads = xp.empty(n, xp.uint32), xp.empty(n, xp.uint32)
        for_each(device, graph, "split_rows", n, (*rows, *hubs.arguments, *begins, *loads))
        near_start, hub_start = (sums_before(of_rows, xp, xp.uint32) for of_rows in loads)
        most_loads = graph.m // IDS_PER_LOAD + n  # every row is padded to whole ones
        near_ids, hub_ids = (xp.empty(IDS_PER_LOAD * most_loads, xp.uint16) for _ in range(2))
        arguments = (*rows, tails_of(graph, device), *begins, near_start, hub_start, *hubs.arguments)
        return cls(arguments, near_start, hub_start, near_ids, hub_ids)


def for_each(device: Device, graph: DeviceGraph, kernel: str, count: int, arguments: tuple[Any, ...]) -> None:
    """A preparing kernel over so many rows, arcs, units or items."""
    grid = grid_for(count, PREPARING_BLOCK, PREPARING_BLOCKS_PER_SM, device)
    device.launch(PREPARING_STEM, kernel, grid, PREPARING_BLOCK, arguments, defines=(offset_bits(graph.offsets),))


def for_tiles(
    device: Device, graph: DeviceGraph, kernel: str, tiles: Tiles, groups: int, arguments: tuple[Any, ...]
) -> None:
    """One with a block per tile of arcs, which has a number of each group."""
    shared_bytes, defines = 4 * groups, (offset_bits(graph.offsets),)
    device.launch(
        PREPARING_STEM, kernel, tiles.count, PREPARING_BLOCK, arguments, shared_bytes=shared_bytes, defines=defines
    )


@dataclass(frozen=True, slots=True)
class Tiles:
    """How many tiles the arcs are cut into, and of how many arcs."""

    count: int
    arcs: int

    @classmethod
    def of(cls, m: int) -> Tiles:
        arcs = max(TILE_ARCS, -(-m // MAX_TILES))
        return cls(-(-m // arcs), arcs)


@dataclass(frozen=True, slots=True)
class Tables:
    """Which units have one and which unit each is of; how many tables and items come before each unit."""

    has_table: Array
    units: Array
    ends: Array
    before: Array
    items_before: Array

    @classmethod
    def of(
        cls, graph: DeviceGraph, pivot_items: Array, tile_starts: Array, groups: int, least_loads: int, device: Device
    ) -> Tables:
        """Of the pivots below the groups those with enough loads, and all groups."""
        xp, far = device.xp, len(pivot_items)
        count = far + groups
        has_table, flags, items = xp.empty(count, xp.uint8), xp.empty(count, xp.uint32), xp.empty(count, xp.uint32)
        sizes = np.uint32(min(least_loads, MAX_LOADS)), np.uint32(far), np.uint32(count)
        chosen = pivot_items, tile_starts, np.uint32(Tiles.of(graph.m).count), *sizes, has_table, flags, items
        for_each(device, graph, "choose_tables", count, chosen)
        before, items_before = (sums_before(counts, xp, xp.uint32) for counts in (flags, items))
        units, ends = flags, items  # whose memory serves again
        for_each(device, graph, "list_tables", count, (has_table, before, items_before, sizes[2], units, ends))
        return cls(has_table, units, ends, before, items_before)


@dataclass(frozen=True, slots=True)
class Pivoting:
    """What all batches share: rows split at the hubs, and which units have tables."""

    graph: DeviceGraph
    hubs: HubsOnDevice
    knobs: Knobs
    device: Device
    found: Array
    split: Split
    unit_arcs: Array
    searchable: Array
    tile_starts: Array
    tables: Tables

    @classmethod
    def of(cls, graph: DeviceGraph, knobs: Knobs, device: Device, found: Array) -> Pivoting:
        xp, hubs = device.xp, HubsOnDevice.choose(graph, knobs, device.shared_bytes)
        split = Split.of(graph, hubs, device)
        tiles, pivot_items = Tiles.of(graph.m), xp.zeros(hubs.first_near, xp.uint64)
        items_of_tile = xp.empty(hubs.groups * tiles.count, xp.uint32)
        unit_arcs = xp.zeros(hubs.units if int(knobs["batches"]) > 1 else 0, xp.uint32)
        searchable = xp.zeros(1, xp.uint64)
        ids, sums = (split.near_ids, split.hub_ids), (pivot_items, items_of_tile, np.uint32(hubs.groups))
        sizes, arcs = (np.uint64(graph.m), np.uint32(tiles.arcs)), (unit_arcs, np.uint32(len(unit_arcs)), searchable)
        measured = (*split.arguments, *sizes, *ids, *sums, *arcs)
        for_tiles(device, graph, "measure_arcs", tiles, hubs.groups, measured)
        starts = sums_before(items_of_tile, xp, xp.uint32)
        tables = Tables.of(graph, pivot_items, starts, hubs.groups, _least_far_loads(graph, knobs), device)
        return cls(graph, hubs, knobs, device, found, split, unit_arcs, searchable, starts, tables)

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
        return (*self._near_launches(placed), *self._far_launches(placed))

    def _place(self, first_unit: int, end_unit: int) -> BatchItems:
        xp, device, graph, tables = self.device.xp, self.device, self.graph, self.tables
        far_end = max(first_unit, min(self.hubs.first_near, end_unit))
        units = xp.asarray([first_unit, far_end, end_unit], np.uint32)
        first_table, far_tables_end, _ = tables.before[units].tolist()
        first_item, far_items_end, end_item = tables.items_before[units].tolist()
        items = xp.empty((end_item - first_item, 4), xp.uint32)
        searches = xp.empty((self._most_searches(first_unit, far_end), 4), graph.offsets.dtype)
        totals, units_taken = xp.zeros(3, xp.uint64), (np.uint64(graph.m), np.uint32(first_unit), np.uint32(end_unit))
        placed = (*self.split.arguments, *units_taken, tables.has_table, tables.before)
        if far_end > first_unit:
            next_item = tables.items_before[first_unit:far_end] - xp.uint32(first_item)
            for_each(device, graph, "place_far", graph.m, (*placed, next_item, items, searches, totals[2:]))
        if end_unit > far_end:
            tiles, groups = Tiles.of(graph.m), self.hubs.groups
            starts = np.uint32(tiles.arcs), self.tile_starts, np.uint32(groups)
            near = (*placed, *starts, tables.items_before, np.uint32(first_item), items)
            for_tiles(device, graph, "place_near", tiles, groups, near)
        far_items = far_items_end - first_item
        costs = xp.empty(-(-(len(items) - far_items) // CHUNK), xp.uint64)
        table_cost = np.uint32(GROUP_COST)
        if len(items) > 0:
            counted = (items, np.uint32(far_items), np.uint32(len(items)), table_cost, costs, totals)
            for_each(device, graph, "add_costs", len(items) + CHUNK, counted)
        near_cost, far_cost, search_count = totals.tolist()
        ends = tables.ends if first_item == 0 else tables.ends - xp.uint32(first_item)
        return BatchItems(
            items, ends, (first_table, far_tables_end), searches[:search_count], costs, far_items, near_cost, far_cost
        )

    def _most_searches(self, first_unit: int, far_end: int) -> int:
        """How many arcs there are at most to search, of the units of single pivots."""
        if far_end == first_unit:
            return 0
        arcs = self.unit_arcs[first_unit:far_end] if len(self.unit_arcs) > 0 else self.searchable
        return int(arcs.sum(dtype=self.device.xp.uint64))

    def _near_launches(self, placed: BatchItems) -> Iterator[Launch]:
        """Blocks that search, and take the items of groups, of about equal cost."""
        searches, block = placed.searches, self.near_block
        if placed.near_cost == len(searches) == 0:
            return
        shared_bytes = 4 * (self.hubs.near + 1)
        xp, grid = self.device.xp, blocks_at_once(block, shared_bytes, self.device)
        launches = max(-(-placed.near_cost // LAUNCH_COST), -(-len(searches) // LAUNCH_SEARCHES))
        cuts = xp.empty(launches * grid + 1, xp.uint32)
        before, chunks = sums_before(placed.costs, xp), np.uint32(len(placed.costs))
        ends = np.uint32(len(cuts) - 1), np.uint32(placed.far_items), np.uint32(len(placed.items))
        for_each(self.device, self.graph, "write_cuts", len(cuts), (before, chunks, *ends, cuts))
        tables = (
            self.graph.out_neighbours,
            np.uint32(self.hubs.n),
            np.uint32(self.hubs.near),
            self.split.near_start,
            self.split.near_ids,
            placed.items,
            self.tables.units,
            placed.table_ends,
        )
        for launch in range(launches):
            first, end = (len(searches) * part // launches for part in (launch, launch + 1))
            share = cuts[launch * grid : (launch + 1) * grid + 1], searches[first:end], np.uint32(end - first)
            yield self._launch("count_near", grid, block, (*tables, *share, self.found), shared_bytes)

    def _far_launches(self, placed: BatchItems) -> Iterator[Launch]:
        """As many blocks as there is memory for a bitmap each."""
        if placed.far_items == 0:
            return
        first_table, end_table = placed.far_tables
        bitmap_bytes = 4 * (self.hubs.hubs // 32 + 1)
        fitting = self.device.shared_bytes // (bitmap_bytes + RESERVED_SHARED_BYTES)
        grid = self.device.sms * max(1, min(fitting, BLOCKS_PER_SM))
        bitmaps = (
            np.uint32(self.hubs.hubs),
            self.split.hub_start,
            self.split.hub_ids,
            placed.items,
            self.tables.units,
            placed.table_ends,
        )
        launches = min(-(-placed.far_cost // LAUNCH_COST), end_table - first_table)
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
    """What the counting kernels of a batch go through: items by table, where those of each table end, and searches.

    Items of single pivots come first, `far_items` of them, with the tables in the range `far_tables`. ``costs`` are
    those of every `CHUNK` of the other items, whose sum is `near_cost`.
    """

    items: Array
    table_ends: Array
    far_tables: tuple[int, int]
    searches: Array
    costs: Array
    far_items: int
    near_cost: int
    far_cost: int


def _least_far_loads(graph: DeviceGraph, knobs: Knobs) -> int:
    """The smaller a graph is, the more work of a pivot repays the launch that makes bitmaps."""
    if graph.m >= VERY_MANY_ARCS:
        chosen = 32
    else:
        chosen = 64 if graph.m >= MANY_ARCS else 128
    return int(knobs["least_far_loads"]) or chosen


def bytes_needed(shape: Shape, knobs: Knobs) -> int:
    wide = shape.m >= 1 << 31
    offset = 8 if wide else 4
    shared = (4 + 4) * shape.m + (2 * offset + 4 * 4 + 2 * 2 * IDS_PER_LOAD + 40) * shape.n
    groups = min(shape.n, int(knobs["near_hubs"]) or MAX_NEAR_HUBS, MAX_HUBS) // NEAR_PIVOTS + 1
    tiles = 8 * groups * Tiles.of(shape.m).count
    batch = (16 + 1 + 4 * offset) * -(-shape.m // max(1, int(knobs["batches"])))
    return shared + tiles + batch


ALGORITHM = Algorithm(
    name="keystone",
    device="cuda",
    unit="graph",
    answers={
        "count": DeviceAnswer(prepare, bytes_needed, Cost(2.39e-5, 1.4e-11, 4.0e-13, 1.5e-3, 7e-11)),
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
