"""The bit rows of the hubs of a block jk, and how many hubs there should be for the arcs of a block ij.

Hubs are the last rows of the block, where ids by rank have the long ones, and are numbered from the last one on. A bit
row runs from the block of 512 columns of its least one to the last column. The least column of a hub is the least head
of its row and of all behind it: on the diagonal the bit rows form a triangle, elsewhere a rectangle, and least columns
ascend with b whatever the numbering.

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
    HUBS_AHEAD,
    HUBS_PER_FILL,
    MAX_HUBS,
    aligned_zeros,
)
from wedgewise.algorithms.cpu._records import Rows, row_at
from wedgewise.algorithms.cpu._triples import Blocks3
from wedgewise.machine.jit import helper, kernel
from wedgewise.machine.primitives import prefetch
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


class TripleHubs(NamedTuple):
    """The rows of block jk from `base` to `last`, the last one first: where each begins, its least column, its bits.

    There are so many `blocks` of 512 columns; `ratio` is how many single tests are worth one of them.
    """

    base: np.uint64
    last: np.uint64
    blocks: np.uint64
    places: Keys
    bits: Keys
    ratio: np.uint64


class Choice(NamedTuple):
    """What hubs are chosen by: how many are placed and how many made, for how many tasks and shares of one."""

    columns: int
    placed: int
    made: int
    probe_ratio: int
    shares: int
    tasks: int


@helper
def first_column(place):  # type: ignore[no-untyped-def]
    """Where the bit row at this place begins: at the block of 512 columns of its least one."""
    return place & np.uint64(0xFFFFFE00)


@helper
def prefetch_hub(arcs, arc, hubs, front):  # type: ignore[no-untyped-def]
    """Ask for the bit row of the hub some arcs ahead; bit rows lie behind `front` words."""
    ahead = np.uint64(HUBS_AHEAD)
    if arc + ahead < arcs.end:
        soon = front + (hubs.places[hubs.last - np.uint64(arcs.heads[arc + ahead])] >> np.uint64(32))
        prefetch(hubs.bits, soon)
        prefetch(hubs.bits, soon + np.uint64(8))


@kernel
def place_rows(jk: Rows, columns_k: int, most: int, limit_words: int, places: Keys) -> SupportsInt:
    """Lay out bit rows from the last one on while they fit; how many do. A place is its word, and its least column."""
    columns, limit = np.uint64(columns_k), np.uint64(limit_words)
    blocks = (columns + np.uint64(511)) >> np.uint64(9)
    last = np.uint64(len(jk.offsets)) - np.uint64(2)
    least, words = columns, np.uint64(0)
    for hub in range(np.uint64(most)):
        row = row_at(jk, last - hub)
        if row.begin < row.end:
            least = min(least, np.uint64(row.heads[row.begin]))
        places[hub] = words << np.uint64(32) | least
        words += (blocks - (least >> np.uint64(9))) << np.uint64(3)
        if words > limit:
            return np.uint64(hub)
    places[most] = words << np.uint64(32)
    return np.uint64(most)


@helper
def gain_of_hub(row, streamed, place, columns, ratio):  # type: ignore[no-untyped-def]
    """Nanoseconds that a bit row saves for one arc, given the row of a in ik and how many heads would be streamed."""
    least = place & np.uint64(0xFFFFFFFF)
    blocks = ((columns + np.uint64(511)) >> np.uint64(9)) - (least >> np.uint64(9))
    tests = row.end - first_not_below(row.heads, row.begin, row.end, least)
    probed = PROBE_TEST * np.float64(tests)
    closing = probed if tests <= blocks * ratio else AND_BLOCK * np.float64(blocks)
    marking = UNMARKED_ARC if row.end - row.begin <= ratio else 0.0
    return STREAM_ARC + STREAM_TEST * np.float64(streamed) + marking - HUB_ARC - closing


@kernel
def choose_hubs(blocks: Blocks3, choice: Choice, places: Keys, gains: NDArray[np.float64]) -> SupportsInt:
    """How many of the placed hubs make a sample of the arcs of ij cheapest, if tasks share what has yet to be made."""
    one, columns, ratio = np.uint64(1), np.uint64(choice.columns), np.uint64(choice.probe_ratio)
    most = np.uint64(choice.placed)
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
            gains[doubling] += gain_of_hub(row, streamed.end - streamed.begin, places[hub], columns, ratio)
    arcs_each = np.float64(arcs) / np.float64(samples) / np.float64(choice.shares)
    word_each, there = 8.0 * ROW_BYTE / np.float64(choice.tasks), places[np.uint64(choice.made)] >> np.uint64(32)
    gained, best, chosen = 0.0, 0.0, np.uint64(0)
    for number in range(np.uint64(CHOICES)):
        hubs = np.uint64(min(most, np.uint64(FEWEST_HUBS) << number))
        gained += gains[number] * arcs_each
        words = places[hubs] >> np.uint64(32)
        net = gained - word_each * np.float64(max(words, there) - there)
        if net > best:
            best, chosen = net, hubs
    return chosen


@kernel
def fill_hub_rows(jk: Rows, begin: int, end: int, places: Keys, bits: Keys) -> None:
    """Set the bits of hubs begin … end − 1, counted from the last row."""
    last = np.uint64(len(jk.offsets)) - np.uint64(2)
    for hub in range(np.uint64(begin), np.uint64(end)):
        start, first = places[hub] >> np.uint64(32), first_column(places[hub])
        row = row_at(jk, last - hub)
        for arc in range(row.begin, row.end):
            column = np.uint64(row.heads[arc]) - first
            bits[start + (column >> np.uint64(6))] |= np.uint64(1) << (column & np.uint64(63))


class BlockHubs:
    """The hubs of one block jk, for `tasks` tasks that look rows up in it, one after the other.

    The bit rows lie behind `front` words that are zero.
    """

    def __init__(self, knobs: Knobs, tasks: int = 1, front: int = 0) -> None:
        self._front = front
        self._asked, self._ratio, self._tasks = int(knobs["hubs"]), int(knobs["probe_ratio"]), tasks
        self._placed = self._made = 0
        self._places = np.zeros(1, np.uint64)
        self._bits = aligned_zeros(front)

    def of(self, triple: Triple, blocks: Blocks3, shares: int) -> TripleHubs:
        """Choose the hubs for a task, unless the knob says how many, and fill the rows that are not there yet."""
        most = most_hubs(triple.jk.rows, triple.ij.m, self._asked)
        if most >= len(self._places) == self._placed + 1:
            self._place(triple, blocks, most)
        count = self._choose(triple, blocks, shares) if self._asked == CHOOSE_HUBS else self._placed
        if count > self._made:
            self._fill(blocks, count)
        rows, wide = triple.jk.rows, -(-triple.jk.columns // BLOCK_BITS)
        base, last, ratio = np.uint64(rows - count), np.uint64(rows - 1), np.uint64(self._ratio)
        return TripleHubs(base, last, np.uint64(wide), self._places, self._bits, ratio)

    def _place(self, triple: Triple, blocks: Blocks3, most: int) -> None:
        self._places = np.zeros(most + 1, np.uint64)
        limit = limit_words(triple.jk.m)
        self._placed = int(place_rows(blocks.jk, triple.jk.columns, most, limit, self._places))

    def _choose(self, triple: Triple, blocks: Blocks3, shares: int) -> int:
        choice = Choice(triple.jk.columns, self._placed, self._made, self._ratio, shares, self._tasks)
        return int(choose_hubs(blocks, choice, self._places, np.zeros(CHOICES)))

    def _fill(self, blocks: Blocks3, count: int) -> None:
        self._bits = aligned_zeros(0)  # given up before there are more
        self._bits = aligned_zeros(self._front + (int(self._places[count]) >> 32))
        self._made = count
        for begin in range(0, count, HUBS_PER_FILL):
            end = min(count, begin + HUBS_PER_FILL)
            fill_hub_rows(blocks.jk, begin, end, self._places, self._bits[self._front :])


def most_hubs(rows_j: int, arcs_ij: int, asked: int) -> int:
    """How many rows may get bits: those asked for, or no more than can be met."""
    return min(rows_j, MAX_HUBS, arcs_ij if asked == CHOOSE_HUBS else asked)


def limit_words(arcs_jk: int) -> int:
    """The most words of bit rows: 4 bytes per arc and 1 MB, while a place has 32 bits for a word."""
    return min(arcs_jk // 2 + SPARE_WORDS, 2**32 - 1)


def are_hubs_likely(shape: TripleShape, ratio: int) -> bool:
    """Whether bit rows would pay off if all rows were alike."""
    streamed, tests = shape.arcs_jk / max(1, shape.rows_j), shape.arcs_ik / max(1, shape.rows_i)
    blocks = shape.columns_k // 512 + 1
    return STREAM_TEST * streamed > (PROBE_TEST * tests if tests <= blocks * ratio else AND_BLOCK * blocks)


def hubs_bytes(shape: TripleShape, knobs: Knobs) -> int:
    """What bit rows and their places may take, whichever tasks share them."""
    most = most_hubs(shape.rows_j, MAX_HUBS, int(knobs["hubs"]))
    words = min(limit_words(shape.arcs_jk), 8 * most * (shape.columns_k // 512 + 1))
    return 8 * (words + 8 + most + 1 + CHOICES)
