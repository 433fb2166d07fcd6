"""Batches of block tasks for kernels of a device: where their blocks are, and units of work for blocks of threads.

    table   a row of words for each block: where its offsets and heads are, rows, columns, and what was made of it
    tasks   a row for each task: the numbers of its blocks in the table, its share, from where on numbers are near
    units   tasks, or equal parts of long ones: about equal work, taken from a counter; common/batch.cuh has the words

All of it follows from the sizes of blocks. Nothing here waits for the device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._contract import DeviceBatch, DeviceBlock, Launch
from wedgewise.machine.gpu import Array, Defines, Device
from wedgewise.stages.tasks import TaskTable, TripleShape

WIDE_FROM = 1 << 31  # arcs of a block: a stride behind the last of fewer stays within 32 bits
WORDS_PER_BLOCK, FOUND_WORDS = 6, 3
UNIT_WORK, MAX_UNITS = 1 << 15, 1 << 14  # steps of a unit at least; units of a batch, besides one for each task
UNIT_BYTES = 28  # with the counter of a launch of its own
LONGEST_ROW = (1 << 31) - 1
ID_BYTES = 4
Numbers = NDArray[Any]


def listing(threads: int) -> tuple[tuple[str, int], int]:
    """How many rows a block lists on chip, as a define, and the bytes that they take."""
    return ("MAX_LISTED", 2 * threads), 2 * ID_BYTES * threads


class Grid(NamedTuple):
    """How a kernel is launched: blocks and their threads, dynamic shared memory, and how it is compiled."""

    blocks: int
    threads: int
    shared_bytes: int = 0
    defines: Defines = ()


@dataclass(frozen=True, slots=True)
class GpuBatch:
    """A batch as kernels take it; ``found`` has a row for each of its tasks."""

    device: Device
    shape: TripleShape
    table: Array
    tasks: Array
    shares: int
    found: Array
    offset_bits: tuple[str, int]

    @classmethod
    def of(cls, given: DeviceBatch, device: Device, near: Numbers | None = None) -> GpuBatch:
        """Number the blocks; `near` are two further words for each task."""
        tasks = given.tasks
        distinct, numbers = np.unique(np.stack(tasks.pairs), return_inverse=True)
        blocks = [given.blocks[divmod(pair, tasks.parts)] for pair in distinct.tolist()]
        words = np.zeros((len(tasks), 6), np.uint32)
        words[:, :3] = numbers.reshape(3, -1).T
        words[:, 3] = tasks.share
        if near is not None:
            words[:, 4:] = near
        width = width_of(blocks)
        bits, table = ("OFFSET_BITS", 8 * width.itemsize), device.upload(table_of(blocks, width, device))
        found = device.xp.zeros((len(tasks), FOUND_WORDS), device.xp.uint64)
        return cls(device, shape_of(given), table, device.upload(words), tasks.shares, found, bits)

    def launches(
        self, stem: str, kernel: str, grid: Grid, units: Numbers, further: tuple[Any, ...], launches: int = 1
    ) -> tuple[Launch, ...]:
        """Clear the counters, and let as many blocks as run at once take units, in so many launches."""
        xp, launches = self.device.xp, max(1, min(launches, len(units)))
        taken, there = xp.empty(launches, xp.uint32), self.device.upload(np.ascontiguousarray(units, np.uint32))
        bounds = np.linspace(0, len(units), launches + 1).astype(np.int64).tolist()
        defines = (self.offset_bits, *grid.defines)
        made: list[Launch] = [partial(taken.fill, 0)]
        for number, (begin, end) in enumerate(pairwise(bounds)):
            arguments = (self.table, self.tasks, np.uint32(self.shares), there[begin:end], np.uint32(end - begin))
            everything = (*arguments, taken[number:], self.found, *further)
            launch = partial(self.device.launch, stem, kernel, min(grid.blocks, end - begin), grid.threads, everything)
            made.append(partial(launch, shared_bytes=grid.shared_bytes, defines=defines))
        return tuple(made)


def width_of(blocks: Sequence[DeviceBlock]) -> np.dtype[Any]:
    """The type of offsets that suits all blocks."""
    is_wide = any(there.block.offsets.dtype.itemsize > ID_BYTES or there.block.m >= WIDE_FROM for there in blocks)
    return np.dtype(np.uint64 if is_wide else np.uint32)


def table_of(blocks: Sequence[DeviceBlock], width: np.dtype[Any], device: Device) -> NDArray[np.uint64]:
    """Where blocks are; offsets that are narrower than others are replaced by wide ones."""
    table = np.zeros((len(blocks), WORDS_PER_BLOCK), np.uint64)
    for row, there in zip(table, blocks, strict=True):
        block = there.block
        if block.offsets.dtype != width:
            there.block = block = type(block)(block.offsets.astype(width), block.heads, block.columns)
        row[:4] = device.address(block.offsets), device.address(block.heads), block.rows, block.columns
        if there.made is not None:
            items = device.address(there.made)
            row[4:] = items, items + 8 * block.m
    return table


def shape_of(given: DeviceBatch) -> TripleShape:
    """The sizes of all tasks of a batch, a column for each number."""
    tasks = given.tasks
    arcs, rows, columns = (np.zeros(tasks.parts**2, np.int64) for _ in range(3))
    for (row, column), there in given.blocks.items():
        at = row * tasks.parts + column
        arcs[at], rows[at], columns[at] = there.block.m, there.block.rows, there.block.columns
    ij, ik, jk = tasks.pairs
    found: Any = rows[ij], rows[jk], columns[jk], arcs[ij], arcs[ik], arcs[jk]
    return TripleShape(*found)


def has_work(shape: TripleShape, tasks: TaskTable) -> NDArray[np.bool_]:
    """Which tasks have arcs in all of their blocks, and rows in their share."""
    found: NDArray[np.bool_] = np.minimum.reduce(shape.arcs) > 0
    return found & (rows_of_share(shape, tasks) > 0)


def rows_of_share(shape: TripleShape, tasks: TaskTable) -> Numbers:
    """How many rows every task has."""
    rows: Numbers = np.maximum(0, -(-(shape.rows_i - tasks.share) // tasks.shares))
    return rows


def steps_of(shape: TripleShape, shares: int = 1) -> Numbers:
    """About the steps of every task: BBTC's estimate, its arcs, and its rows."""
    degree = np.maximum(shape.arcs_ik / np.maximum(1, shape.rows_i), shape.arcs_jk / np.maximum(1, shape.rows_j))
    steps: Numbers = (shape.arcs_ij * (degree + 4) + shape.rows_i / 8) / shares
    return steps


def work_of_unit(steps: Numbers) -> float:
    """The steps of a unit of all these, of which there are `MAX_UNITS` besides one for each task."""
    return max(UNIT_WORK, float(steps.sum()) / MAX_UNITS)


def units_of(tasks: Numbers, steps: Numbers, most_parts: Any, work: float) -> Numbers:
    """Units of tasks by their positions, or of equal parts of so much work, at most so many; long ones first."""
    first = np.argsort(-steps, kind="stable")
    tasks, steps, most_parts = tasks[first], steps[first], np.broadcast_to(most_parts, len(tasks))[first]
    parts = np.clip(np.ceil(steps / work), 1, most_parts).astype(np.int64)
    units = np.zeros((int(parts.sum()), 6), np.uint32)
    units[:, 0], units[:, 1] = np.repeat(tasks, parts), 1
    units[:, 4] = np.arange(len(units)) - np.repeat(np.cumsum(parts) - parts, parts)
    units[:, 5] = np.repeat(parts, parts)
    return units


def row_units(tasks: Numbers, shape: TripleShape, table: TaskTable, threads: int, work: float) -> Numbers:
    """Units of the tasks at these positions, of at least as many rows as a block has threads."""
    most = -(-rows_of_share(shape, table)[tasks] // threads)
    return units_of(tasks, steps_of(shape, table.shares)[tasks], np.maximum(1, most), work)


def launches_for(tasks: Numbers, shape: TripleShape, shares: int, most: float) -> int:
    """Launches of about `most` steps each."""
    return max(1, int(np.ceil(steps_of(shape, shares)[tasks].sum() / most)))
