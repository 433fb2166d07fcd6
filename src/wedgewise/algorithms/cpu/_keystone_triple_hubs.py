"""The bit rows of the hubs of a block jk, and how many hubs there should be for the arcs of a block ij.

Hubs are the last rows of the block, where ids by rank have the long ones, and are numbered from the last one on. A bit
row runs from the block of 512 columns of its least one to the last column. The least column of a hub is the least head
of its row and of all behind it: on the diagonal the bit rows form a triangle, elsewhere a rectangle, and least columns
ascend with b whatever the numbering. Bit rows lie behind as many zero words as a row of all columns has, so that bit 0
of each has a place.

Tasks of a batch that look rows up in the same block share its bit rows, and what those are worth to all of them decides
how many there are. Hubs of all blocks of a batch are laid out, chosen and filled by two kernels.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._contract import Knobs
from wedgewise.algorithms.cpu._batches import BlockTable, CpuBatch, address_of, block_at, columns_of
from wedgewise.algorithms.cpu._keystone_hubs import (
    CHOOSE_HUBS,
    COUNTING,
    MAX_HUBS,
    Hubs,
    aligned_zeros,
    fill_hub_rows,
)
from wedgewise.algorithms.cpu._records import Blocks3, row_at
from wedgewise.machine.jit import helper, kernel
from wedgewise.machine.primitives import array_at
from wedgewise.prepare.orient import first_not_below
from wedgewise.stages import Ids, Keys
from wedgewise.stages.tasks import TripleShape

SAMPLE_ARCS = 1 << 9
ARCS_PER_SAMPLE = 1 << 9
FEWEST_HUBS = 1 << 6
CHOICES = 10  # 2^6 … 2^15 hubs
SPARE_WORDS = 1 << 17
HUB_WORDS = 7
BASE, WIDTH, LAST, BITS, BIT_WORDS, LAYOUT, LAYOUT_WORDS = range(HUB_WORDS)

STREAM_ARC, STREAM_TEST = COUNTING.stream_arc, COUNTING.stream_test
HUB_ARC, PROBE_TEST, AND_BLOCK = COUNTING.hub_arc, COUNTING.probe_test, COUNTING.and_block
UNMARKED_ARC = 20.0  # nanoseconds saved where a's row is so short that it is only probed, never marked
ROW_BYTE = 0.25  # nanoseconds to make a byte of bit rows


class HubTable(NamedTuple):
    """Hubs of several blocks, `HUB_WORDS` each: the first one, blocks of columns, the last; where bits and layout are.

    ``ratio`` is that of all of them; see `Hubs`.
    """

    words: Keys
    ratio: int


class Groups(NamedTuple):
    """Tasks by the block jk that they look up in: group g has those from ``ends[g]`` to ``ends[g + 1] − 1``.

    ``near`` and ``far`` are the blocks ij and ik of every task, ``wanted_hubs`` is the knob.
    """

    jk: Ids
    ends: Ids
    near: Ids
    far: Ids
    shares: int
    wanted_hubs: int


@helper
def lay_out_rows(jk, columns_k, most, limit_words, layout):  # type: ignore[no-untyped-def]
    """Lay out bit rows from the last one on while they fit: first words and least columns; how many do."""
    columns, limit = np.uint64(columns_k), np.uint64(limit_words)
    blocks = (columns + np.uint64(511)) >> np.uint64(9)
    rows = np.uint64(len(jk.offsets)) - np.uint64(1)
    least, words = columns, blocks << np.uint64(3)
    for hub in range(np.uint64(most)):
        row = row_at(jk, rows - np.uint64(1) - hub)
        if row.begin < row.end:
            least = min(least, np.uint64(row.heads[row.begin]))
        layout[hub] = words << np.uint64(32) | least
        words += (blocks - (least >> np.uint64(9))) << np.uint64(3)
        if words > limit:
            return np.uint64(hub)
    layout[np.uint64(most)] = words << np.uint64(32)
    return np.uint64(most)


@helper
def gain_of_hub(row, streamed, entry, columns, ratio):  # type: ignore[no-untyped-def]
    """Nanoseconds that a bit row saves for one arc, given the row of a in ik and how many heads would be streamed."""
    least = entry & np.uint64(0xFFFFFFFF)
    blocks = ((columns + np.uint64(511)) >> np.uint64(9)) - (least >> np.uint64(9))
    tests = row.end - first_not_below(row.heads, row.begin, row.end, least)
    probed = PROBE_TEST * np.float64(tests)
    closing = probed if tests <= blocks * ratio else AND_BLOCK * np.float64(blocks)
    marking = UNMARKED_ARC if row.end - row.begin <= ratio else 0.0
    return STREAM_ARC + STREAM_TEST * np.float64(streamed) + marking - HUB_ARC - closing


@helper
def add_gains(blocks, first, every, laid_out, columns, ratio, layout, gains):  # type: ignore[no-untyped-def]
    """Add what hubs save to the first of so many arcs of ij each, by doublings of their number; in nanoseconds."""
    one, most = np.uint64(1), np.uint64(laid_out)
    arcs, rows_j = np.uint64(len(blocks.ij.heads)), np.uint64(len(blocks.jk.offsets)) - one
    rows_i = np.uint64(len(blocks.ij.offsets)) - one
    for sample in range(first, arcs, every):
        arc = np.uint64(sample)
        b = np.uint64(blocks.ij.heads[arc])
        hub = rows_j - one - b
        a = first_not_below(blocks.ij.offsets, one, rows_i, arc + one) - one
        row, streamed = row_at(blocks.ik, a), row_at(blocks.jk, b)
        if hub < most and row.begin < row.end:
            doubling = np.uint64(0)
            while (np.uint64(FEWEST_HUBS) << doubling) <= hub:
                doubling += one
            gains[doubling] += gain_of_hub(row, streamed.end - streamed.begin, layout[hub], columns, ratio)


@helper
def best_count(laid_out, layout, arcs_each, gains):  # type: ignore[no-untyped-def]
    """How many hubs gain most, given how many arcs a sample stands for, what their bit rows take to make being paid."""
    most, gained, best, chosen = np.uint64(laid_out), 0.0, 0.0, np.uint64(0)
    for number in range(np.uint64(CHOICES)):
        hubs = np.uint64(min(most, np.uint64(FEWEST_HUBS) << number))
        gained += gains[number] * arcs_each
        net = gained - 8.0 * ROW_BYTE * np.float64(layout[hubs] >> np.uint64(32))
        if net > best:
            best, chosen = net, hubs
    return chosen


@kernel
def choose_hubs(
    table: BlockTable, groups: Groups, begin: int, end: int, hubs: HubTable, gains: NDArray[np.float64]
) -> None:
    """Lay out the hubs of the groups begin … end − 1, and choose how many; then the words of their bits are known."""
    one, zero, words = np.uint64(1), np.uint64(0), hubs.words
    for group in range(np.uint64(begin), np.uint64(end)):
        at, number = group * np.uint64(HUB_WORDS), np.uint64(groups.jk[group])
        jk, columns = block_at(table, number), columns_of(table, number)
        (layout,) = array_at(words[at + np.uint64(LAYOUT)], words[at + np.uint64(LAYOUT_WORDS)], words)
        most, limit = np.uint64(len(layout)) - one, words[at + np.uint64(BIT_WORDS)]
        count = np.uint64(lay_out_rows(jk, columns, most, limit, layout))
        if groups.wanted_hubs == CHOOSE_HUBS:
            for choice in range(CHOICES):
                gains[choice] = 0.0
            first, last, arcs = np.uint64(groups.ends[group]), np.uint64(groups.ends[group + one]), zero
            for task in range(first, last):
                arcs += np.uint64(len(block_at(table, groups.near[task]).heads))
            every = max(np.uint64(ARCS_PER_SAMPLE), arcs // np.uint64(SAMPLE_ARCS))
            behind = zero  # how far the next sample is behind the end of the last task
            for task in range(first, last):
                blocks = Blocks3(block_at(table, groups.near[task]), block_at(table, groups.far[task]), jk)
                add_gains(blocks, behind, every, count, columns, np.uint64(hubs.ratio), layout, gains)
                behind = (behind + every - np.uint64(len(blocks.ij.heads)) % every) % every
            count = best_count(count, layout, np.float64(every) / np.float64(groups.shares), gains)
        rows_j = np.uint64(len(jk.offsets)) - one
        words[at + np.uint64(BASE)] = rows_j - count
        words[at + np.uint64(WIDTH)] = (columns + np.uint64(511)) >> np.uint64(9)
        words[at + np.uint64(LAST)] = max(rows_j, one) - one
        words[at + np.uint64(BIT_WORDS)] = layout[count] >> np.uint64(32) if count > zero else zero


@helper
def hubs_at(hubs, group):  # type: ignore[no-untyped-def]
    """The hubs of a group."""
    at, zero, words = np.uint64(group) * np.uint64(HUB_WORDS), np.uint64(0), hubs.words
    (bits,) = array_at(words[at + np.uint64(BITS)], words[at + np.uint64(BIT_WORDS)], words)
    (layout,) = array_at(words[at + np.uint64(LAYOUT)], words[at + np.uint64(LAYOUT_WORDS)], words)
    base, width, last = words[at + np.uint64(BASE)], words[at + np.uint64(WIDTH)], words[at + np.uint64(LAST)]
    return Hubs(base, width, bits, np.uint64(hubs.ratio), zero, zero, last, layout)


@kernel
def fill_hubs(table: BlockTable, groups: Groups, begin: int, end: int, hubs: HubTable) -> None:
    """Fill the bit rows of the groups begin … end − 1."""
    for group in range(np.uint64(begin), np.uint64(end)):
        of_block = hubs_at(hubs, group)
        if len(of_block.bits) > 0:
            rows = block_at(table, np.uint64(groups.jk[group]))
            fill_hub_rows(rows, of_block, of_block.base, of_block.last + np.uint64(1))


class BatchHubs(NamedTuple):
    """The hubs of every group, which group each task is in, and the memory of layouts and bit rows."""

    table: HubTable
    group_of_task: NDArray[np.int64]
    layouts: Keys
    bits: Keys

    def of_only_group(self) -> Hubs:
        """Those of a batch that looks up in one block."""
        base, width, last = self.table.words[[BASE, WIDTH, LAST]]
        zero = np.uint64(0)
        return Hubs(base, width, self.bits, np.uint64(self.table.ratio), zero, zero, last, self.layouts)


def hubs_of(batch: CpuBatch, knobs: Knobs) -> BatchHubs:
    """Choose the hubs of all blocks that a batch looks up in, unless the knob says how many, and fill their rows."""
    near, far, looked_up = batch.numbers
    order = np.argsort(looked_up, kind="stable")
    jk, group_of_task = np.unique(looked_up, return_inverse=True)
    ends = np.append(0, np.searchsorted(looked_up[order], jk, side="right"))
    arcs = np.array([block.m for block in batch.blocks], np.int64)
    rows = np.array([batch.blocks[number].rows for number in jk.tolist()], np.int64)
    most = most_hubs(rows, np.add.reduceat(arcs[near[order]], ends[:-1]), int(knobs["hubs"]))
    layouts, words = np.zeros(int((most + 1).sum()), np.uint64), np.zeros((len(jk), HUB_WORDS), np.uint64)
    words[:, LAYOUT] = address_of(layouts) + 8 * (np.cumsum(most + 1) - most - 1)
    words[:, LAYOUT_WORDS], words[:, BIT_WORDS] = most + 1, limit_words(arcs[jk])
    numbers = (column.astype(np.uint32) for column in (jk, ends, near[order], far[order]))
    of_groups: Any = (*numbers, batch.items.shares, int(knobs["hubs"]))
    groups = Groups(*of_groups)
    hubs = HubTable(words.reshape(-1), int(knobs["probe_ratio"]))
    choose_hubs(batch.items.table, groups, 0, len(jk), hubs, np.zeros(CHOICES))
    lengths = -(-words[:, BIT_WORDS].astype(np.int64) // 8) * 8
    bits = aligned_zeros(int(lengths.sum()))
    words[:, BITS] = address_of(bits) + 8 * (np.cumsum(lengths) - lengths)
    fill_hubs(batch.items.table, groups, 0, len(jk), hubs)
    return BatchHubs(hubs, group_of_task, layouts, bits)


def most_hubs(rows_j: Any, arcs_ij: Any, wanted_hubs: int) -> Any:
    """How many rows may get bits: as many as are wanted, or no more than can be met."""
    return np.minimum(np.minimum(rows_j, MAX_HUBS), arcs_ij if wanted_hubs == CHOOSE_HUBS else wanted_hubs)


def limit_words(arcs_jk: Any) -> Any:
    """The most words of bit rows: 4 bytes per arc and 1 MB, but 16 per arc, while an entry has 32 bits for a word."""
    return np.minimum(np.minimum(arcs_jk // 2 + SPARE_WORDS, 2 * arcs_jk + 16), 2**32 - 1)


def are_hubs_likely(shape: TripleShape, ratio: int) -> Any:
    """Whether bit rows would pay off if all rows were alike."""
    streamed = shape.arcs_jk / np.maximum(1, shape.rows_j)
    tests = shape.arcs_ik / np.maximum(1, shape.rows_i)
    blocks = shape.columns_k // 512 + 1
    closing = np.where(tests <= blocks * ratio, PROBE_TEST * tests, AND_BLOCK * blocks)
    return STREAM_TEST * streamed > closing


def hubs_bytes(shape: TripleShape, knobs: Knobs) -> Any:
    """What bit rows and their layout may take, whichever tasks share them."""
    most = most_hubs(shape.rows_j, MAX_HUBS, int(knobs["hubs"]))
    words = np.minimum(limit_words(shape.arcs_jk), 8 * (most + 1) * (shape.columns_k // 512 + 1))
    return 8 * (words + 16 + most + 1 + HUB_WORDS)
