"""Keystone on three blocks: tables of 32 pivots for what is near, rows merged or hashed on chip for the rest.

Paper: ours; keystone_triples.cu has the kernels with tables, keystone_triple_rows.cu those without. Pivots are the last
rows of block jk, near columns the last of part k: with ids by rank, that is where degrees are high. A part is near as a
whole where its tables fit in shared memory and are used enough, as in all parts but the first one or two of those that
are cut rectilinearly; of larger ones, such as hashed parts, the last ids are. The larger a table is, the fewer
blocks a multiprocessor has room for, and the more arcs of block ij must lead into each group of 32 pivots.
Which rows can begin triangles, how many items there are and which block takes them is decided on the device alone.
Memory beyond the blocks: see the kernels; an item for each arc of ij is most of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from wedgewise.algorithms._contract import DeviceWork, Knobs, Launch, TripleShape
from wedgewise.algorithms.cpu._records import has_none
from wedgewise.algorithms.gpu._launches import MOST_THREADS, THREADS_PER_SM, WARP, blocks_at_once, offset_bits
from wedgewise.algorithms.gpu._triples import (
    ListedRows,
    TripleArrays,
    launches_of,
    listing_bytes,
    rows_in_share,
    widening_bytes,
)
from wedgewise.errors import PreconditionError
from wedgewise.machine.gpu import Array, Device
from wedgewise.stages.blocks import Triple

TABLES_STEM, ROWS_STEM = "keystone_triples", "keystone_triple_rows"
MOST_ARCS = (1 << 32) - (1 << 10)  # of a block: strides beyond its last item do not wrap
PIVOTS, IDS_PER_LOAD, ROW_LANES = 32, 8, 8
MOST_COLUMNS = (1 << 16) - 1  # 16-bit ids, and one that no column has
NEAR_IDS = (1 << 14, 1 << 12)  # of a part that is not near as a whole; tables of 64 and 16 KiB
STATIC_SHARED_BYTES = 2048  # of a block with tables, and what the system reserves, at most
BYTES_PER_ARC = 128  # of a table for each arc into its group, at most
MOST_SMALL = (128, 64)  # arcs in ij, heads in ik, of rows that are merged
SMALL_BLOCK, LARGE_BLOCK = 256, 512
MOST_HEADS = 1 << 12  # of a row in slots at once, of which there are twice as many; a power of two
ITEM_BLOCKS, ITEM_BLOCK = 512, 512
FEW_GROUPS = 1 << 12  # counted by every block for itself
RESERVING_BLOCK = 1024
TALLY_WORDS = 2
LAUNCH_LOOKUPS = 1 << 33  # by BBTC's estimate, which knows averages alone: there may be 30 times as many


@dataclass(frozen=True, slots=True)
class Near:
    """How many of the last rows of block jk are pivots, and how many of its last columns their tables cover."""

    rows: int
    columns: int
    pivots: int
    covered: int

    @classmethod
    def choose(cls, triple: Triple, knobs: Knobs, shares: int, device: Device) -> Near:
        """What the knob says, or as much as is used enough; nothing, if not even the last ids are."""
        rows, columns, asked = triple.jk.rows, triple.jk.columns, int(knobs["near_hubs"])
        fits = min(columns, MOST_COLUMNS, (device.shared_bytes - STATIC_SHARED_BYTES) // 16 * 4 - 1)
        if asked:
            return cls(rows, columns, min(rows, asked), min(fits, asked))
        last = (cls(rows, columns, min(rows, size), min(fits, size - 1)) for size in NEAR_IDS)
        for near in cls(rows, columns, rows, fits), *last:
            if near.is_used_by(triple.ij.m // shares) and _id_loads(triple.ik.rows, triple.ik.m) < 1 << 32:
                return near
        return cls(rows, columns, 0, 0)

    def is_used_by(self, arcs: int) -> bool:
        return self.covered > 0 and arcs * BYTES_PER_ARC >= self.groups * self.table_bytes

    @property
    def groups(self) -> int:
        return -(-self.pivots // PIVOTS)

    @property
    def has_few_groups(self) -> bool:
        return self.groups <= FEW_GROUPS

    @property
    def table_bytes(self) -> int:
        return 16 * (self.covered // 4 + 1)

    @property
    def is_all(self) -> bool:
        return (self.pivots, self.covered) == (self.rows, self.columns)

    @property
    def arguments(self) -> tuple[np.uint32, np.uint32]:
        """The first pivot and the first near column."""
        return np.uint32(self.rows - self.pivots), np.uint32(self.columns - self.covered)


def prepare(triple: Triple, knobs: Knobs, share: int, shares: int, device: Device) -> DeviceWork:
    """Choose by the sizes of the blocks what is near; memory is taken when the batch is made."""
    blocks = (triple.ij, triple.ik, triple.jk)
    if (most := max(block.m for block in blocks)) >= MOST_ARCS:
        raise PreconditionError(f"keystone on cuda takes blocks of fewer than 2^32 arcs, not {most:,}; use more parts")
    found = device.xp.zeros(2, device.xp.uint64)
    if has_none(triple) or rows_in_share(triple.ij.rows, share, shares) == 0:
        return DeviceWork.at_once((), found)
    arrays, near = TripleArrays.of(triple), Near.choose(triple, knobs, shares, device)
    cut_into = arrays.launches(shares, LAUNCH_LOOKUPS)
    return DeviceWork((_Task(triple, arrays, near, share, shares, cut_into, knobs, device, found).launches,), found)


@dataclass(frozen=True, slots=True)
class _Task:
    """A share of a triple, what of it is near, into how many launches counting is cut, and what they add to."""

    triple: Triple
    arrays: TripleArrays
    near: Near
    share: int
    shares: int
    cut_into: int
    knobs: Knobs
    device: Device
    found: Array

    def launches(self) -> tuple[Launch, ...]:
        """List the rows; then what is near, and what is not."""
        near, pivots_cut = self.near, self.near.pivots if self.near.covered < self.near.columns else 0
        rows = ListedRows.of(self.arrays, self.share, self.shares, MOST_SMALL, self.cut_into, self.device)
        far_ends = self.device.xp.empty(pivots_cut, self.arrays.ij_offsets.dtype)
        by_tables = self._by_tables(rows, far_ends) if near.pivots > 0 else ()
        return *rows.first, *by_tables, *(() if near.is_all else self._by_rows(rows, far_ends))

    def _by_tables(self, rows: ListedRows, far_ends: Array) -> tuple[Launch, ...]:
        """Items by group, then the groups."""
        near, xp, sizes = self.near, self.device.xp, (np.uint32(self.near.rows), np.uint32(self.near.columns))
        ids = xp.empty(IDS_PER_LOAD * _id_loads(self.triple.ik.rows, self.triple.ik.m), xp.uint16)  # of block ik
        items, group_ends = xp.empty((self.triple.ij.m, 4), xp.uint32), xp.empty(near.groups, xp.uint32)
        block_firsts = xp.empty(ITEM_BLOCKS * near.groups if near.has_few_groups else 0, xp.uint32)
        counters = xp.empty(near.groups + TALLY_WORDS + self.cut_into, xp.uint32)
        group_items, tally = counters[: near.groups], counters[near.groups :]  # what the kernels tell each other
        is_diagonal = np.uint32(self.triple.ij.heads is self.triple.ik.heads)
        counting = (*near.arguments, np.uint32(near.groups), is_diagonal, np.uint32(near.has_few_groups))
        listed, by_group = replace(rows, launches=1).arguments(0), (group_items, block_firsts, tally)
        measured = (*self.arrays, *listed, *sizes, *counting, far_ends, ids, *by_group)
        reserved = (np.uint32(near.groups), group_items, group_ends, tally)
        placed = (*self.arrays[:4], *listed, *counting, *by_group, items)
        counted = (*self.arrays[4:], *sizes, *near.arguments, far_ends, ids, items, group_ends, tally)
        block, reserving = _threads(self.knobs, ITEM_BLOCK), _threads(self.knobs, RESERVING_BLOCK)
        grid = min(
            ITEM_BLOCKS, -(-max(len(rows.positions) * ROW_LANES, near.pivots) // block)
        )  # rows of ij, then of jk
        item_bytes = 4 * near.groups if near.has_few_groups else 0
        launch = partial(self._launch, TABLES_STEM)

        def count(part: int) -> Launch:
            numbers = np.uint32(part), np.uint32(self.cut_into), tally[TALLY_WORDS + part :]
            return launch("count_groups", *self._table_grid, (*counted, *numbers, self.found), near.table_bytes)

        return (
            partial(counters.fill, 0),
            launch("measure_rows", grid, block, measured, item_bytes),
            launch("reserve_items", -(-near.groups // reserving), reserving, reserved),
            launch("place_items", grid, block, placed, item_bytes),
            *map(count, range(self.cut_into)),
        )

    @property
    def _table_grid(self) -> tuple[int, int]:
        """As many blocks as have room for a table each, and their threads: enough for a group's arcs."""
        table_bytes = self.near.table_bytes + STATIC_SHARED_BYTES
        arcs = self.triple.ij.m // (self.shares * self.near.groups)
        block = _threads(self.knobs, max(THREADS_PER_SM * table_bytes // self.device.shared_bytes, arcs))
        return blocks_at_once(block, table_bytes, self.device), block

    def _by_rows(self, rows: ListedRows, far_ends: Array) -> tuple[Launch, ...]:
        """Large rows, then small ones."""
        small, large = _threads(self.knobs, SMALL_BLOCK), _threads(self.knobs, LARGE_BLOCK)
        slots_bytes = 4 * 2 * MOST_HEADS
        large_grid = blocks_at_once(large, slots_bytes, self.device)
        small_grid = self.device.sms * max(1, THREADS_PER_SM // small)
        launches: list[Launch] = []
        for part in range(rows.launches):
            arguments = (*self.arrays, *rows.arguments(part), *self.near.arguments, far_ends)
            large_arguments = (*arguments, np.uint32(MOST_HEADS), self.found)
            launches += [
                self._launch(ROWS_STEM, "count_large_rows", large_grid, large, large_arguments, slots_bytes),
                self._launch(ROWS_STEM, "merge_small_rows", small_grid, small, (*arguments, self.found)),
            ]
        return tuple(launches)

    def _launch(
        self, stem: str, kernel: str, grid: int, block: int, arguments: tuple[Any, ...], shared_bytes: int = 0
    ) -> Launch:
        settings = ("BLOCK", block) if stem == ROWS_STEM else ("LONG_ITEM", int(self.knobs["long_item"]))
        defines, launch = (settings, offset_bits(self.arrays.ij_offsets)), self.device.launch
        return partial(launch, stem, kernel, grid, block, arguments, shared_bytes=shared_bytes, defines=defines)


def _threads(knobs: Knobs, wanted: int) -> int:
    """Whole warps: so many threads, or what the knob allows."""
    return max(1, min(wanted, int(knobs["block"]), MOST_THREADS) // WARP) * WARP


def _id_loads(rows: int, arcs: int) -> int:
    """The most loads that the ids of a block fill when rows are padded."""
    return arcs // IDS_PER_LOAD + rows


def bytes_needed(shape: TripleShape, knobs: Knobs) -> int:
    rows_i, rows_j = shape.rows_i, shape.rows_j
    groups = -(-rows_j // PIVOTS)
    launches = launches_of(rows_i, rows_j, shape.arcs, LAUNCH_LOOKUPS)
    items = 16 * shape.arcs_ij + 2 * IDS_PER_LOAD * _id_loads(rows_i, shape.arcs_ik)
    tables = items + 8 * groups + 4 * (TALLY_WORDS + launches) + 4 * ITEM_BLOCKS * min(groups, FEW_GROUPS)
    far_ends = 8 * rows_j
    widening = widening_bytes(rows_i, rows_j, *shape.arcs)
    return tables + far_ends + listing_bytes(rows_i, launches) + widening
