"""Batches of block tasks for kernels of the CPU: one call goes through many tasks, each with three blocks of its own.

A kernel cannot take a list of arrays. It takes a table of where the blocks are instead, and items: ranges of rows of a
task, with the numbers of its blocks in the table. Whoever prepares a batch keeps its blocks while it is counted.

    item   ij, ik, jk    numbers of blocks
           begin, end    rows of part i
           share         of how many, a batch says
           flag, group   what an algorithm has to know of a task
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._contract import BatchWork, Counts, Pass
from wedgewise.algorithms._ranges import TASK_ARCS, arc_bounds, even_bounds
from wedgewise.algorithms.cpu._records import Blocks3, Rows, Span, widest_offsets
from wedgewise.machine.jit import helper, kernel, kernel_view
from wedgewise.machine.primitives import array_at
from wedgewise.stages import Ids, Keys
from wedgewise.stages.blocks import Block, Triple
from wedgewise.stages.tasks import TaskBatch

BLOCK_WORDS = 7
ITEM_WORDS = 8
IJ, IK, JK, BEGIN, END, SHARE, FLAG, GROUP = range(ITEM_WORDS)
ARC_NANOSECONDS, TEST_NANOSECONDS = 8.0, 0.25  # about: of an arc of ij or ik, and of a unit of BBTC's estimate
RANGE_NANOSECONDS = 2_000_000
ITEM_BYTES = 160  # of an item and its results; a task may have one per `TASK_ARCS` arcs


class BlockTable(NamedTuple):
    """The blocks of a batch: where offsets, heads and busy rows of each are, their lengths, how many columns it has.

    ``offsets`` and ``heads`` are empty arrays of the types of both; busy rows that nobody listed are none.
    """

    words: Keys
    offsets: NDArray[Any]
    heads: Ids


class CpuBatchItems(NamedTuple):
    """What a kernel goes through, `ITEM_WORDS` numbers each, of so many shares."""

    table: BlockTable
    items: Ids
    shares: int


class CpuBatch(NamedTuple):
    """A batch as kernels take it.

    Attributes
    ----------
    items : for the kernel
    task_of_item : positions among the tasks of the batch
    nanoseconds : of every item, about
    numbers : the blocks ij, ik and jk of every task, by their numbers in the table
    blocks : by their numbers
    kept : the arrays that the table leads to beside those of the blocks
    """

    items: CpuBatchItems
    task_of_item: NDArray[np.int64]
    nanoseconds: NDArray[np.float64]
    numbers: NDArray[np.int64]
    blocks: tuple[Block, ...]
    kept: list[NDArray[Any]]

    @property
    def words(self) -> Ids:
        """The numbers of every item, a row each."""
        return self.items.items.reshape(-1, ITEM_WORDS)

    @property
    def widest(self) -> int:
        """The most columns of a block that is looked up in."""
        return max(int(self.blocks[number].columns) for number in set(self.numbers[2].tolist()))


@helper
def block_at(table, number):  # type: ignore[no-untyped-def]
    """The rows of a block of a table."""
    at = np.uint64(number) * np.uint64(BLOCK_WORDS)
    words = table.words
    (offsets,) = array_at(words[at], words[at + np.uint64(1)], table.offsets)
    (heads,) = array_at(words[at + np.uint64(2)], words[at + np.uint64(3)], table.heads)
    return Rows(offsets, heads)


@helper
def columns_of(table, number):  # type: ignore[no-untyped-def]
    """How many columns a block of a table has."""
    return table.words[np.uint64(number) * np.uint64(BLOCK_WORDS) + np.uint64(6)]


@helper
def busy_rows_at(table, number):  # type: ignore[no-untyped-def]
    """The busy rows of a block of a table, in a tuple."""
    at = np.uint64(number) * np.uint64(BLOCK_WORDS)
    return array_at(table.words[at + np.uint64(4)], table.words[at + np.uint64(5)], table.heads)


@helper
def item_at(batch, number):  # type: ignore[no-untyped-def]
    """The blocks of an item, and its rows."""
    at = np.uint64(number) * np.uint64(ITEM_WORDS)
    items, table = batch.items, batch.table
    blocks = Blocks3(
        block_at(table, items[at + np.uint64(IJ)]),
        block_at(table, items[at + np.uint64(IK)]),
        block_at(table, items[at + np.uint64(JK)]),
    )
    begin, end, share = items[at + np.uint64(BEGIN)], items[at + np.uint64(END)], items[at + np.uint64(SHARE)]
    return blocks, Span(np.uint64(begin), np.uint64(end), np.uint64(share), np.uint64(batch.shares))


@helper
def put_found(found, number, triangles, tests, taken):  # type: ignore[no-untyped-def]
    """Write down what an item found, and the ticks that it took."""
    at = np.uint64(number) * np.uint64(3)
    found[at] = triangles
    found[at + np.uint64(1)] = tests
    found[at + np.uint64(2)] = taken


def batch_of(batch: TaskBatch, flags: Any = 0, cut: Callable[[Triple], NDArray[np.int64]] | None = None) -> CpuBatch:
    """Number the blocks of a batch, and cut its long tasks into items.

    Parameters
    ----------
    flags : of every task
    cut : the bounds of the items of a long task; by default ranges with about equally many arcs
    """
    tasks = batch.tasks
    distinct, numbers = np.unique(np.stack(tasks.pairs), return_inverse=True)
    numbers = numbers.reshape(3, -1)
    blocks = tuple(batch.blocks[divmod(pair, tasks.parts)] for pair in distinct.tolist())
    lengths = np.array([(len(block.heads), len(block.offsets) - 1) for block in blocks], np.int64).T
    arcs, rows = lengths[:, numbers]
    bounds = {}
    for at in np.flatnonzero(arcs[0] >= 2 * TASK_ARCS).tolist():
        triple = Triple(*(blocks[number] for number in numbers[:, at]))
        bounds[at] = arc_bounds(triple.ij.offsets) if cut is None else cut(triple)
    ranges = np.ones(len(tasks), np.int64)
    ranges[list(bounds)] = [len(found) - 1 for found in bounds.values()]
    task_of_item = np.repeat(np.arange(len(tasks)), ranges)
    items = np.zeros((len(task_of_item), ITEM_WORDS), np.uint32)
    items[:, IJ : JK + 1] = numbers.T[task_of_item]
    items[:, END], items[:, SHARE] = rows[0][task_of_item], tasks.share[task_of_item]
    items[:, FLAG] = np.broadcast_to(flags, len(tasks))[task_of_item]
    first = np.cumsum(ranges) - ranges
    for at, found in bounds.items():
        of_task = slice(first[at], first[at] + ranges[at])
        items[of_task, BEGIN], items[of_task, END] = found[:-1], found[1:]
    estimated = arcs[0] * np.maximum(arcs[1] / np.maximum(rows[0], 1), arcs[2] / np.maximum(rows[2], 1))
    nanoseconds = ARC_NANOSECONDS * (arcs[0] + arcs[1]) + TEST_NANOSECONDS * estimated + rows[0]
    table, kept = _table_of(blocks)
    prepared = CpuBatchItems(table, items.reshape(-1), tasks.shares)
    return CpuBatch(prepared, task_of_item, (nanoseconds / ranges / tasks.shares)[task_of_item], numbers, blocks, kept)


def _table_of(blocks: tuple[Block, ...]) -> tuple[BlockTable, list[NDArray[Any]]]:
    """Where blocks are, and the arrays there; offsets are copied only where another block has wider ones."""
    width, none = widest_offsets(blocks), np.empty(0, np.uint32)
    words: list[int] = []
    kept: list[NDArray[Any]] = [none]
    for block in blocks:
        if block.offsets.dtype == width:
            words += places_of(block) if block.places is None else block.places
        else:
            widened = replace(block, offsets=block.offsets.astype(width), places=None)
            kept.append(widened.offsets)
            words += places_of(widened)
        words.append(block.columns)
    return BlockTable(np.array(words, np.uint64), np.empty(0, width), none), kept


def places_of(block: Block) -> tuple[int, ...]:
    """Where the offsets, the heads and the busy rows of a block are, and how many there are of each."""
    arrays = (block.offsets, block.heads, block.offsets[:0] if block.busy_rows is None else block.busy_rows)
    return tuple(word for array in arrays for word in (address_of(array), len(array)))


@kernel
def list_rows(offsets: NDArray[Any], busy: Ids) -> None:
    """The rows that have arcs, of which there are so many."""
    one, count, last = np.uint64(1), np.uint64(0), np.uint64(len(busy))
    row = np.uint64(0)
    while count < last:
        if offsets[row + one] > offsets[row]:
            busy[count] = row
            count += one
        row += one


def with_busy_rows(block: Block) -> Block:
    """The same block with a list of the rows that have arcs, at most 4 bytes for each row and each arc."""
    if block.busy_rows is not None:
        return block
    busy = np.empty(int(np.count_nonzero(block.offsets[1:] != block.offsets[:-1])), np.uint32)
    list_rows(kernel_view(block.offsets), busy)
    listed = replace(block, busy_rows=busy)
    return replace(listed, places=places_of(listed))


def address_of(array: NDArray[Any]) -> int:
    """Where an array begins."""
    return int(array.__array_interface__["data"][0])


def batch_work(
    batch: CpuBatch, count: Callable[[int, int, Any, Keys], Counts], workspace: Callable[[], Any]
) -> BatchWork:
    """All items in ranges of about two milliseconds; ``count(begin, end, own, found)`` writes what each has found."""
    items = len(batch.task_of_item)
    found, seconds = np.zeros(3 * items, np.uint64), np.zeros(items)

    def run(begin: int, end: int, own: Any) -> Counts:
        since = time.perf_counter()
        counted = count(begin, end, own, found)
        taken = time.perf_counter() - since
        ticks = found[3 * begin + 2 : 3 * end : 3].astype(np.float64)
        seconds[begin:end] = ticks * (taken / max(1.0, float(ticks.sum())))
        return counted

    bounds = even_bounds(batch.nanoseconds, RANGE_NANOSECONDS, least=1)
    kept = batch.blocks, batch.kept
    return BatchWork((Pass(bounds, run, workspace),), batch.task_of_item, found.reshape(-1, 3), seconds, kept)
