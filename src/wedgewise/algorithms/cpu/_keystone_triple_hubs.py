"""The bit rows of the hubs of a block jk, and how many hubs there should be for the arcs of a block ij.

Hubs are the last rows of the block, where ids by rank have the long ones, and are numbered from the last one on. A bit
row runs from the block of 512 columns of its least one to the last column. The least column of a hub is the least head
of its row and of all behind it: on the diagonal the bit rows form a triangle, elsewhere a rectangle, and least columns
ascend with b whatever the numbering. Bit rows lie behind as many zero words as a row of all columns has, so that bit 0
of each has a place.

Tasks that look rows up in the same block share its bit rows: `BlockHubs` makes them once, and more when a later task is
worth it; since hubs are numbered from the last row on, more of them begin with the same ones.
"""

from __future__ import annotations

from typing import NamedTuple, SupportsInt

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._contract import Knobs, TripleShape
from wedgewise.algorithms.cpu._keystone_hubs import (
    BLOCK_BITS,
    CHOOSE_HUBS,
    COUNTING,
    MAX_HUBS,
    Hubs,
    aligned_zeros,
    fill_all,
)
from wedgewise.algorithms.cpu._records import Blocks3, Rows, row_at
from wedgewise.machine.jit import helper, kernel
from wedgewise.prepare.orient import first_not_below
from wedgewise.stages import Keys
from wedgewise.stages.blocks import Triple

SAMPLE_ARCS = 1 << 9
ARCS_PER_SAMPLE = 1 << 6
FEWEST_HUBS = 1 << 6
CHOICES = 10  # 2^6 … 2^15 hubs
SPARE_WORDS = 1 << 17

STREAM_ARC, STREAM_TEST = COUNTING.stream_arc, COUNTING.stream_test
HUB_ARC, PROBE_TEST, AND_BLOCK = COUNTING.hub_arc, COUNTING.probe_test, COUNTING.and_block
UNMARKED_ARC = 20.0  # nanoseconds saved where a's row is so short that it is only probed, never marked
ROW_BYTE = 0.25  # nanoseconds to make a byte of bit rows


class Choice(NamedTuple):
    """What hubs are chosen by: how many are laid out and how many made, for how many tasks and shares of one."""

    columns: int
    laid_out: int
    made: int
    probe_ratio: int
    shares: int
    tasks: int


@kernel
def lay_out_rows(jk: Rows, columns_k: int, most: int, limit_words: int, layout: Keys) -> SupportsInt:
    """Lay out bit rows from the last one on while they fit: first words and least columns; how many do."""
    columns, limit = np.uint64(columns_k), np.uint64(limit_words)
    blocks = (columns + np.uint64(511)) >> np.uint64(9)
    last = np.uint64(len(jk.offsets)) - np.uint64(2)
    least, words = columns, blocks << np.uint64(3)
    for hub in range(np.uint64(most)):
        row = row_at(jk, last - hub)
        if row.begin < row.end:
            least = min(least, np.uint64(row.heads[row.begin]))
        layout[hub] = words << np.uint64(32) | least
        words += (blocks - (least >> np.uint64(9))) << np.uint64(3)
        if words > limit:
            return np.uint64(hub)
    layout[most] = words << np.uint64(32)
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


@kernel
def choose_hubs(blocks: Blocks3, choice: Choice, layout: Keys, gains: NDArray[np.float64]) -> SupportsInt:
    """How many hubs make a sample of the arcs of ij cheapest, if tasks share what has yet to be made."""
    one, columns, ratio = np.uint64(1), np.uint64(choice.columns), np.uint64(choice.probe_ratio)
    most = np.uint64(choice.laid_out)
    arcs, rows_j = np.uint64(len(blocks.ij.heads)), np.uint64(len(blocks.jk.offsets)) - one
    rows_i = np.uint64(len(blocks.ij.offsets)) - one
    samples = min(np.uint64(SAMPLE_ARCS), arcs // np.uint64(ARCS_PER_SAMPLE) + one)
    for sample in range(samples):
        arc = sample * arcs // samples
        b = np.uint64(blocks.ij.heads[arc])
        hub = rows_j - one - b
        a = first_not_below(blocks.ij.offsets, one, rows_i, arc + one) - one
        row, streamed = row_at(blocks.ik, a), row_at(blocks.jk, b)
        if hub < most and row.begin < row.end:
            doubling = np.uint64(0)
            while (np.uint64(FEWEST_HUBS) << doubling) <= hub:
                doubling += one
            gains[doubling] += gain_of_hub(row, streamed.end - streamed.begin, layout[hub], columns, ratio)
    arcs_each = np.float64(arcs) / np.float64(samples) / np.float64(choice.shares)
    word_each, there = 8.0 * ROW_BYTE / np.float64(choice.tasks), layout[np.uint64(choice.made)] >> np.uint64(32)
    gained, best, chosen = 0.0, 0.0, np.uint64(0)
    for number in range(np.uint64(CHOICES)):
        hubs = np.uint64(min(most, np.uint64(FEWEST_HUBS) << number))
        gained += gains[number] * arcs_each
        words = layout[hubs] >> np.uint64(32)
        net = gained - word_each * np.float64(max(words, there) - there)
        if net > best:
            best, chosen = net, hubs
    return chosen


class BlockHubs:
    """The hubs of one block jk, for `tasks` tasks that look rows up in it, one after the other."""

    def __init__(self, knobs: Knobs, tasks: int = 1) -> None:
        self._asked, self._ratio, self._tasks = int(knobs["hubs"]), int(knobs["probe_ratio"]), tasks
        self._laid_out = self._made = 0
        self._layout = np.zeros(1, np.uint64)
        self._bits = aligned_zeros(0)

    def of(self, triple: Triple, blocks: Blocks3, shares: int) -> Hubs:
        """Choose the hubs for a task, unless the knob says how many, and fill the rows that are not there yet."""
        jk = triple.jk
        most = most_hubs(jk.rows, triple.ij.m, self._asked)
        if most >= len(self._layout) == self._laid_out + 1:
            self._layout = np.zeros(most + 1, np.uint64)
            self._laid_out = int(lay_out_rows(blocks.jk, jk.columns, most, limit_words(jk.m), self._layout))
        count = self._laid_out
        if self._asked == CHOOSE_HUBS:
            choice = Choice(jk.columns, count, self._made, self._ratio, shares, self._tasks)
            count = int(choose_hubs(blocks, choice, self._layout, np.zeros(CHOICES)))
        is_more = count > self._made
        if is_more:
            self._made, self._bits = count, aligned_zeros(0)  # given up before there are more
            self._bits = aligned_zeros(int(self._layout[count]) >> 32)
        wide, zero = -(-jk.columns // BLOCK_BITS), np.uint64(0)
        base, blocks_wide, ratio, last = map(np.uint64, (jk.rows - count, wide, self._ratio, jk.rows - 1))
        hubs = Hubs(base, blocks_wide, self._bits, ratio, zero, zero, last, self._layout)
        if is_more:
            fill_all(blocks.jk, hubs)
        return hubs


def most_hubs(rows_j: int, arcs_ij: int, asked: int) -> int:
    """How many rows may get bits: those asked for, or no more than can be met."""
    return min(rows_j, MAX_HUBS, arcs_ij if asked == CHOOSE_HUBS else asked)


def limit_words(arcs_jk: int) -> int:
    """The most words of bit rows: 4 bytes per arc and 1 MB, while an entry has 32 bits for a word."""
    return min(arcs_jk // 2 + SPARE_WORDS, 2**32 - 1)


def are_hubs_likely(shape: TripleShape, ratio: int) -> bool:
    """Whether bit rows would pay off if all rows were alike."""
    streamed, tests = shape.arcs_jk / max(1, shape.rows_j), shape.arcs_ik / max(1, shape.rows_i)
    blocks = shape.columns_k // 512 + 1
    return STREAM_TEST * streamed > (PROBE_TEST * tests if tests <= blocks * ratio else AND_BLOCK * blocks)


def hubs_bytes(shape: TripleShape, knobs: Knobs) -> int:
    """What bit rows and their layout may take, whichever tasks share them."""
    most = most_hubs(shape.rows_j, MAX_HUBS, int(knobs["hubs"]))
    words = min(limit_words(shape.arcs_jk), 8 * (most + 1) * (shape.columns_k // 512 + 1))
    return 8 * (words + 8 + most + 1 + CHOICES)
