"""Keystone on batches of tasks: tables of 32 pivots for what is near, rows merged or hashed on chip for the rest.

Paper: ours; keystone_triples.cu has the kernels with tables, keystone_triple_rows.cu those without. Pivots are the last
rows of block jk, near columns the last of part k: with ids by rank, that is where degrees are high. A part is near as a
whole where its tables fit in shared memory and are used enough, as in all parts but the first one or two of those that
are cut rectilinearly; of larger ones, such as hashed parts, the last ids are. Tasks of a batch with the same block jk
have its tables together: the larger these are, the more arcs of their blocks ij must lead into each group of 32 pivots.
Which rows have pivots in a group is found once for each block ij, when it comes to the device.
Memory beyond the blocks: see the kernels; an item for each arc of every block is most of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from wedgewise.algorithms._contract import DeviceBatch, DeviceBlock, DeviceWork, Knobs, Launch
from wedgewise.algorithms.gpu._batches import (
    ID_BYTES,
    MAX_UNITS,
    UNIT_BYTES,
    GpuBatch,
    Grid,
    Numbers,
    has_work,
    launches_for,
    listing,
    row_units,
    shape_of,
    steps_of,
    table_of,
    width_of,
    work_of_unit,
)
from wedgewise.algorithms.gpu._launches import MAX_THREADS, THREADS_PER_SM, WARP, blocks_at_once
from wedgewise.errors import PreconditionError
from wedgewise.machine.gpu import Device
from wedgewise.stages.tasks import TaskTable, TripleShape

MAX_PARTS = 1 << 15  # of a group
TABLES_STEM, ROWS_STEM = "keystone_triples", "keystone_triple_rows"
MAX_ARCS = (1 << 32) - (1 << 10)  # of a block: strides beyond its last item do not wrap
PIVOTS = 32
NEAR_IDS = (1 << 14, 1 << 12)  # of a part that is not near as a whole; tables of 64 and 16 KiB
STATIC_SHARED_BYTES = 2048  # of a block with tables, and what the system reserves, at most
BYTES_PER_ARC = 128  # of a table for each arc into its group, at most
TABLE_CLASSES = (12 << 10, 48 << 10)  # tables of about one size are looked up in by one launch
TABLE_USES = 8  # steps of a unit at least, for each that its table takes
MIN_TABLE_THREADS = 256
MAX_SMALL = (128, 64)  # arcs in ij, heads in ik, of rows that are merged
ROWS_BLOCK, ITEM_BLOCK, RESERVING_BLOCK = 512, 512, 1024
MAX_HEADS = 1 << 12  # of a row in slots at once, of which there are twice as many; a power of two
FEW_GROUPS = 1 << 12  # counted by every block for itself
MAKING_STEPS, MAX_MAKING = 1 << 15, 256  # arcs and rows for each block of a launch that makes items; its blocks
MAKING_BYTES = 1 << 20  # while items are made
LAUNCH_STEPS = 1 << 33  # which know averages alone: there may be 30 times as many


class Near(NamedTuple):
    """From where on rows of block jk are pivots, and columns are near, by task."""

    first_pivot: Numbers
    first_column: Numbers

    @property
    def words(self) -> Numbers:
        return np.stack(self, axis=1)

    @classmethod
    def choose(cls, shape: TripleShape, arcs: Numbers, knobs: Knobs, device: Device) -> Near:
        """What the knob says, or as much as is used enough by so many arcs of blocks ij, or nothing."""
        rows: Any = shape.rows_j
        columns: Any = shape.columns_k
        wanted = int(knobs["near_hubs"])
        fits = np.minimum(columns, (device.shared_bytes - STATIC_SHARED_BYTES) // 16 * 4)
        if wanted:
            return cls._last(shape, np.minimum(rows, wanted), np.minimum(fits, wanted))
        near = cls(rows, columns)
        for size in (*NEAR_IDS[::-1], None):  # the last that is used enough is the one
            pivots = rows if size is None else np.minimum(rows, size)
            last = cls._last(shape, pivots, fits if size is None else np.minimum(fits, size))
            table_bytes = 4.0 * (columns - last.first_column)
            is_used = arcs * BYTES_PER_ARC >= (rows - last.first_pivot) / PIVOTS * table_bytes
            near = cls(*(np.where(is_used, there, so_far) for there, so_far in zip(last, near, strict=True)))
        return near

    @classmethod
    def _last(cls, shape: TripleShape, pivots: Numbers, covered: Numbers) -> Near:
        """So many pivots, or a few more: whole groups."""
        return cls((shape.rows_j - pivots) // PIVOTS * PIVOTS, shape.columns_k - covered)

    def table_bytes(self, shape: TripleShape) -> Numbers:
        """Of the table of a group."""
        return 16 * (-(-(shape.columns_k - self.first_column) // 4))


def prepare(given: DeviceBatch, knobs: Knobs, device: Device) -> DeviceWork:
    """Choose by the sizes of the blocks what is near; then what is near, and what is not."""
    if (most := max((there.block.m for there in given.blocks.values()), default=0)) >= MAX_ARCS:
        raise PreconditionError(f"keystone on cuda takes blocks of fewer than 2^32 arcs, not {most:,}; use more parts")
    tasks, shape = given.tasks, shape_of(given)
    works, firsts = has_work(shape, tasks), np.flatnonzero(np.diff(tasks.pairs[2], prepend=-1))
    arcs = np.where(works, shape.arcs_ij, 0) // tasks.shares
    run = np.repeat(np.arange(len(firsts)), np.diff(firsts, append=len(tasks)))  # with the same block jk
    near = Near.choose(shape, np.add.reduceat(arcs, firsts)[run], knobs, device)
    batch = GpuBatch.of(given, device, near.words)
    launches = [*_by_tables(batch, tasks, near, firsts, knobs), *_by_rows(batch, tasks, near, works, knobs)]
    return DeviceWork.at_once(launches, batch.found, kept=given)


def _by_tables(batch: GpuBatch, tasks: TaskTable, near: Near, firsts: Numbers, knobs: Knobs) -> tuple[Launch, ...]:
    """Units of groups, for all tasks with the same block jk; tables of about one size in a launch."""
    shape, table_bytes = batch.shape, near.table_bytes(batch.shape)
    rows_j: Any = shape.rows_j
    arcs_jk: Any = shape.arcs_jk
    is_used = has_work(shape, tasks) & (near.first_pivot < shape.rows_j) & (table_bytes > 0)
    lengths, used = np.diff(firsts, append=len(tasks)), np.logical_or.reduceat(is_used, firsts)
    degree = shape.arcs_ik / np.maximum(1, shape.rows_i)
    looked_up = np.where(is_used, shape.arcs_ij * (2 + degree / 2), 0) / tasks.shares
    begin = near.first_pivot[firsts] // PIVOTS
    groups = -(-rows_j[firsts] // PIVOTS) - begin
    entered = arcs_jk[firsts] + groups * (table_bytes[firsts] / 64 + 64)
    steps = np.add.reduceat(looked_up, firsts) + entered
    unit = np.maximum(work_of_unit(steps[used]), TABLE_USES * entered / np.maximum(1, groups))
    classes = np.searchsorted(TABLE_CLASSES, table_bytes[firsts])
    launches: list[Launch] = []
    for size in np.unique(classes[used]).tolist():
        which = np.flatnonzero(used & (classes == size))
        runs = PivotRuns(firsts[which], lengths[which], begin[which], groups[which], steps[which])
        cut_into = max(1, int(np.ceil(runs.steps.sum() / LAUNCH_STEPS)))
        grid = _table_grid(int(table_bytes[runs.first].max()), knobs, batch.device)
        launches += batch.launches(TABLES_STEM, "count_groups", grid, runs.units(unit[which]), (), cut_into)
    return tuple(launches)


class PivotRuns(NamedTuple):
    """Tasks that follow each other and have the same block jk; groups of its rows, and steps of all."""

    first: Numbers
    length: Numbers
    begin: Numbers
    groups: Numbers
    steps: Numbers

    def units(self, work: Numbers | float) -> Numbers:
        """A group each, or several where they are short, or equal parts of a long one; long ones first.

        Several are far from each other, since those with the most items are neighbours. There are no more units than
        one for each run, and twice as many as its steps have units of so much work.
        """
        of_group = self.steps / self.groups
        parts = np.clip(np.ceil(of_group / work), 1, MAX_PARTS).astype(np.int64)
        together = np.clip(work // of_group, 1, self.groups).astype(np.int64)
        pieces = -(-self.groups // together)
        order = np.argsort(-of_group / parts, kind="stable")
        run = np.repeat(order, (pieces * parts)[order])
        units = np.zeros((len(run), 6), np.uint32)
        before = np.cumsum((pieces * parts)[order]) - (pieces * parts)[order]
        number = np.arange(len(run)) - np.repeat(before, (pieces * parts)[order])
        units[:, 0], units[:, 1] = self.first[run], self.length[run]
        units[:, 2], units[:, 3] = self.begin[run] + number // parts[run], pieces[run]
        units[:, 4], units[:, 5] = number % parts[run], parts[run]
        return units


def _table_grid(table_bytes: int, knobs: Knobs, device: Device) -> Grid:
    """As many blocks as there is memory for a table each; all threads of a multiprocessor among them."""
    shared = table_bytes + STATIC_SHARED_BYTES
    block = _threads(knobs, max(MIN_TABLE_THREADS, THREADS_PER_SM * shared // device.shared_bytes))
    return Grid(blocks_at_once(block, shared, device), block, table_bytes)


def _by_rows(batch: GpuBatch, tasks: TaskTable, near: Near, works: Numbers, knobs: Knobs) -> tuple[Launch, ...]:
    """Units of tasks of which not all is near."""
    chosen = np.flatnonzero(works & ((near.first_pivot > 0) | (near.first_column > 0)))
    if len(chosen) == 0:
        return ()
    block, slots_bytes = _threads(knobs, ROWS_BLOCK), ID_BYTES * 2 * MAX_HEADS
    listed, listed_bytes = listing(block)
    static_bytes = STATIC_SHARED_BYTES + listed_bytes + 16 * block
    grid = Grid(
        blocks_at_once(block, slots_bytes + static_bytes, batch.device), block, slots_bytes, (("BLOCK", block), listed)
    )
    work = work_of_unit(steps_of(batch.shape, tasks.shares)[chosen])
    units = row_units(chosen, batch.shape, tasks, block, work)
    cut_into = launches_for(chosen, batch.shape, tasks.shares, LAUNCH_STEPS)
    most = tuple(map(np.uint32, (*MAX_SMALL, MAX_HEADS)))
    return batch.launches(ROWS_STEM, "count_rows", grid, units, most, cut_into)


def _threads(knobs: Knobs, wanted: int) -> int:
    """Whole warps: so many threads, or what the knob allows."""
    return max(1, min(wanted, int(knobs["block"]), MAX_THREADS) // WARP) * WARP


def make(blocks: Sequence[DeviceBlock], knobs: Knobs, device: Device) -> tuple[Launch, ...]:
    """Find the items of blocks: as many blocks at a time as `MAKING_BYTES` are enough for."""
    width = width_of(blocks)
    table, given = device.upload(table_of(blocks, width, device)), [there.block for there in blocks]
    steps, columns = (np.array(of, np.int64) for of in zip(*((b.m + b.rows, b.columns) for b in given), strict=True))
    parts = np.clip(steps // max(MAKING_STEPS, int(steps.sum()) // MAX_UNITS), 1, MAX_MAKING)
    firsts = _firsts(parts, columns)
    most = max(MAKING_BYTES // ID_BYTES, int(firsts.max(initial=0)))
    before, bounds = _offsets(firsts, most)
    first_units = np.concatenate([[0], np.cumsum(parts)])
    units = np.zeros((int(first_units[-1]), 6), np.uint32)
    units[:, 0], units[:, 2] = np.repeat(np.arange(len(blocks)), parts), np.repeat(before, parts)
    units[:, 4], units[:, 5] = np.arange(len(units)) - np.repeat(first_units[:-1], parts), np.repeat(parts, parts)
    there = device.upload(units)
    scratch = device.xp.empty(max(1, min(most, int(firsts.sum()))), device.xp.uint32)
    launches: list[Launch] = []
    for begin, end in pairwise(bounds):
        arguments = table, there[first_units[begin] : first_units[end]], np.uint32(FEW_GROUPS), scratch
        counters = ID_BYTES * int((firsts // parts)[begin:end].max())
        launches += _making(arguments, counters, ("OFFSET_BITS", 8 * width.itemsize), device)
    return tuple(launches)


def _firsts(parts: Numbers, columns: Any) -> Numbers:
    """Where the items of each part begin in every group: so many numbers, none where there are many groups."""
    groups = -(-columns // PIVOTS)
    return np.where(groups <= FEW_GROUPS, parts * groups, 0)


def _offsets(sizes: Numbers, most: int) -> tuple[Numbers, list[int]]:
    """Where each has its place among others that take no more than `most` together, and where those begin and end."""
    ends, before, bounds = np.cumsum(sizes), np.zeros(len(sizes), np.int64), [0]
    while (begin := bounds[-1]) < len(sizes):
        taken = ends[begin] - sizes[begin]
        end = max(begin + 1, int(np.searchsorted(ends, taken + most, side="right")))
        before[begin:end] = ends[begin:end] - sizes[begin:end] - taken
        bounds.append(end)
    return before, bounds


def _making(arguments: tuple[Any, ...], shared_bytes: int, bits: tuple[str, int], device: Device) -> tuple[Launch, ...]:
    """Clear, count, reserve and place; every kernel has a block for each part of a block."""
    launch = partial(device.launch, TABLES_STEM, defines=(bits,))
    grid = len(arguments[1])
    return (
        partial(launch, "clear_groups", grid, ITEM_BLOCK, arguments),
        partial(launch, "count_items", grid, ITEM_BLOCK, arguments, shared_bytes=shared_bytes),
        partial(launch, "reserve_items", grid, RESERVING_BLOCK, arguments),
        partial(launch, "place_items", grid, ITEM_BLOCK, arguments, shared_bytes=shared_bytes),
    )


def made_words(arcs: Any, columns: Any, knobs: Knobs) -> Any:
    """Two for every item, of which there are at most as many as arcs, and the ends of all groups."""
    return 2 * arcs + -(-columns // PIVOTS) + 1


def bytes_needed(shape: TripleShape, knobs: Knobs) -> Any:
    """Units of tables and of rows, or those by which items are made, and what is counted meanwhile."""
    steps = shape.arcs_ij + shape.rows_i, shape.arcs_ik + shape.rows_i, shape.arcs_jk + shape.rows_j
    columns = shape.rows_j, shape.columns_k, shape.columns_k
    firsts = [_firsts(np.clip(of // MAKING_STEPS, 1, MAX_MAKING), to) for of, to in zip(steps, columns, strict=True)]
    units, making = UNIT_BYTES * MAX_UNITS, ID_BYTES * np.maximum.reduce(firsts)
    return units + np.maximum(2 * units, np.maximum(MAKING_BYTES, making))
