"""The bit rows of hubs, of a graph or of a block, and how many hubs a graph should have.

Hubs are the highest ids, since ids follow ascending degree. Their rows are a triangular bit matrix over the last `hubs`
ids: row b starts at b's own block of 512 columns, because all its out-neighbours are higher. hubs² / 16 bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from typing import NamedTuple

import numpy as np

from wedgewise.algorithms._contract import Knobs, Shape
from wedgewise.algorithms._passes import MIN_TASKS_PER_THREAD
from wedgewise.algorithms.cpu._records import Rows, row_at, rows_of
from wedgewise.machine.jit import helper, kernel
from wedgewise.machine.primitives import IDS_AT_ONCE, prefetch
from wedgewise.machine.threads import run_tasks
from wedgewise.stages import Keys, OrientedGraph

BLOCK_BITS = 512
HUBS_AHEAD = 4  # how many arcs ahead a hub's row is prefetched
MAX_HUBS = 1 << 15
SAMPLE_ARCS = 1 << 11
ARCS_PER_SAMPLE, WEDGES_PER_SAMPLE = 1 << 7, 1 << 10  # one is sampled of so many arcs, and for so many wedges
MAX_COMPARED = 25  # arcs from a → b on: where more are left of a row, marks are cheaper
HUBS_PER_FILL = 1 << 10

ROW_BYTE = 0.5  # nanoseconds for a byte of the hubs' rows
CHOOSE_HUBS = -1


@dataclass(frozen=True, slots=True)
class Costs:
    """Nanoseconds on one core for an arc a → b: below the hubs, streamed or compared, or to a hub.

    ``compared`` is for an id behind b and 16 heads of b, ``behind`` for an id behind a hub, whatever way it takes.
    The defaults are those of a count, from the figures in docs/decisions/0006-keystone-cpu.md.
    """

    stream_arc: float = 6.0
    stream_test: float = 0.85
    hub_arc: float = 6.0
    probe_test: float = 4.0
    and_block: float = 2.0
    behind: float = 0.0
    compared: float = 0.8


COUNTING = Costs()
CREDITING = Costs(compared=0.0)  # nothing is: who is credited has to be known


class Hubs(NamedTuple):
    """The rows from `base` on, with bits for so many blocks of 512 columns, from `first_column` on.

    Column c is marked at c + `pad`, so that the first column begins a block of marks. `ratio` is how many single tests
    are worth one block of bit rows. Hubs of a block have a `layout`, by number from the `last` row on: the first word
    and the least column of each bit row. Those of a graph need none.
    """

    base: np.uint64
    blocks: np.uint64
    bits: Keys
    ratio: np.uint64
    first_column: np.uint64
    pad: np.uint64
    last: np.uint64
    layout: Keys | None


@helper
def row_word(hub, blocks):  # type: ignore[no-untyped-def]
    """First word of a hub's bit row: rows run from the hub's own block to the last one."""
    block = hub >> np.uint64(9)
    full = (block * (np.uint64(2) * blocks + np.uint64(1) - block) >> np.uint64(1)) << np.uint64(9)
    return (full + (hub & np.uint64(511)) * (blocks - block)) << np.uint64(3)


@helper
def bit_row_at(hubs, b, layout):  # type: ignore[no-untyped-def]
    """The first word of the bit row of hub b, the block of columns that it begins with, and its least column."""
    if layout is None:
        hub = b - hubs.base
        return row_word(hub, hubs.blocks), hub >> np.uint64(9), b + np.uint64(1)
    least = layout[hubs.last - b] & np.uint64(0xFFFFFFFF)
    return layout[hubs.last - b] >> np.uint64(32), least >> np.uint64(9), least


@helper
def prefetch_hub(arcs, arc, hubs):  # type: ignore[no-untyped-def]
    """Ask for the first two lines of the bit row of the hub some arcs ahead."""
    ahead = np.uint64(HUBS_AHEAD)
    if arc + ahead < arcs.end:
        start, _, _ = bit_row_at(hubs, np.uint64(arcs.heads[arc + ahead]), hubs.layout)
        prefetch(hubs.bits, start)
        prefetch(hubs.bits, start + np.uint64(8))


@kernel
def fill_hub_rows(rows: Rows, hubs: Hubs, begin: int, end: int) -> None:
    """Set the bits of the heads of rows begin … end − 1, which are hubs."""
    bits = hubs.bits
    for b in range(np.uint64(begin), np.uint64(end)):
        start, block, _ = bit_row_at(hubs, np.uint64(b), hubs.layout)
        row = row_at(rows, np.uint64(b))
        for arc in range(row.begin, row.end):
            column = np.uint64(row.heads[arc]) - hubs.first_column - (block << np.uint64(9))
            bits[start + (column >> np.uint64(6))] |= np.uint64(1) << (column & np.uint64(63))


def fill_all(rows: Rows, hubs: Hubs, threads: int = 1) -> None:
    """Set the bits of all hubs."""
    first, end = int(hubs.base), len(rows.offsets) - 1

    def fill(part: int, _worker: int) -> None:
        begin = first + part * HUBS_PER_FILL
        fill_hub_rows(rows, hubs, begin, min(end, begin + HUBS_PER_FILL))

    parts = -(-(end - first) // HUBS_PER_FILL)
    run_tasks(fill, parts, min(threads, max(1, parts // MIN_TASKS_PER_THREAD)))


def aligned_zeros(words: int) -> Keys:
    """Zeroed words that start at a cache line: a 512-bit load then never straddles two."""
    buffer = np.zeros(words + 8, np.uint64)
    skip = -buffer.ctypes.data // 8 % 8
    return buffer[skip : skip + words]


def empty_marks(n: int) -> Keys:
    """The bitmap of one thread, with room for the padding."""
    return aligned_zeros((n + 2 * BLOCK_BITS) // 64)


def marks_bytes(n: int) -> int:
    """Bytes of `empty_marks`."""
    return n // 8 + 4 * BLOCK_BITS


def row_bytes(hubs: int) -> int:
    """Bytes of the triangular bit matrix, in whole blocks of 512 bits."""
    blocks = hubs // BLOCK_BITS
    return blocks * (blocks + 1) // 2 * BLOCK_BITS * (BLOCK_BITS // 8)


def largest_hubs(n: int, m: int) -> int:
    """The most hubs whose rows take at most as many bytes as the arcs."""
    arcs_per_pair = row_bytes(BLOCK_BITS) // 8  # `row_bytes` has blocks · (blocks + 1) / 2 pairs of blocks
    blocks = (isqrt(4 * (m // arcs_per_pair) + 1) - 1) // 2
    return min(MAX_HUBS // BLOCK_BITS, n // BLOCK_BITS, blocks) * BLOCK_BITS


def most_hubs(shape: Shape, knobs: Knobs) -> int:
    """How many hubs a graph of this shape may get."""
    hubs = int(knobs["hubs"])
    return largest_hubs(shape.n, shape.m) if hubs == CHOOSE_HUBS else min(hubs, shape.n)


def choose_hubs(graph: OrientedGraph, probe_ratio: int, costs: Costs = COUNTING) -> int:
    """The number of hubs (none, or a power of two blocks) that makes an evenly spaced sample of arcs cheapest."""
    if costs.stream_test * graph.wedges <= ROW_BYTE * row_bytes(BLOCK_BITS):
        return 0  # no hub saves what its rows take
    offsets = graph.offsets
    size = min(SAMPLE_ARCS, 1 + graph.m // ARCS_PER_SAMPLE, 1 + graph.wedges // WEDGES_PER_SAMPLE)
    sample = np.arange(size, dtype=np.int64) * (graph.m - 1) // max(1, size - 1)
    tail_vertex = offsets.searchsorted(sample.astype(offsets.dtype), side="right") - 1
    behind = offsets[tail_vertex + 1].astype(np.int64) - sample - 1
    b = graph.out_neighbours[sample].astype(np.int64)
    second_hops = offsets[b + 1].astype(np.int64) - offsets[b].astype(np.int64)
    from_top = graph.n - b
    blocks_left = -(-from_top // BLOCK_BITS)
    probed = behind <= probe_ratio * blocks_left
    as_hub = costs.hub_arc + np.where(probed, costs.probe_test * behind, costs.and_block * blocks_left)
    as_hub += costs.behind * behind
    as_other = costs.stream_test * second_hops
    if costs.compared > 0:
        compared = costs.compared * behind * (second_hops // IDS_AT_ONCE + 1)
        as_other = np.where(behind < MAX_COMPARED, np.minimum(as_other, compared), as_other)
    as_other += costs.stream_arc
    most = largest_hubs(graph.n, graph.m)
    choices = [0, *(BLOCK_BITS << doubling for doubling in range(7) if BLOCK_BITS << doubling < most), most]
    least = np.searchsorted(choices, from_top)  # the position of the first choice that makes b a hub
    gained = np.bincount(least, as_other - as_hub, len(choices) + 1)[:-1].cumsum() * (graph.m / size)
    return choices[int(np.argmax(gained - [ROW_BYTE * row_bytes(hubs) for hubs in choices]))]


def prepare_hubs(graph: OrientedGraph, knobs: Knobs, threads: int, costs: Costs = COUNTING) -> Hubs:
    """Choose the hubs, unless the knob says how many, and fill their rows."""
    ratio, count = int(knobs["probe_ratio"]), int(knobs["hubs"])
    if count == CHOOSE_HUBS:
        count = choose_hubs(graph, ratio, costs)
    blocks = min(count, graph.n) // BLOCK_BITS
    count = blocks * BLOCK_BITS
    base, bits = np.uint64(graph.n - count), aligned_zeros(row_bytes(count) // 8)
    pad = -int(base) % BLOCK_BITS
    hubs = Hubs(base, np.uint64(blocks), bits, np.uint64(ratio), base, np.uint64(pad), np.uint64(0), None)
    fill_all(rows_of(graph), hubs, threads)
    return hubs
