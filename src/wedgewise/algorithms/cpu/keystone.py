"""What: mark N+(a) in a bitmap; hubs keep bit rows, so that whole rows are compared at once.

Paper: ours.
Who does what: one task per range of vertices a. Each arc a → b takes the cheapest way to |N+(a) ∩ N+(b)|:

    b below the hubs                     stream N+(b), test each id in a's bitmap
    b a hub, many ids of N+(a) behind b  AND + POPCNT of a's bitmap with b's bit row, 512 bits at a time
    b a hub, few of them                 test those few in b's bit row

Hubs are the highest ids, since ids follow ascending degree: hub rows are a triangular bit matrix over the last `hubs`
ids. Row b starts at b's own block of 512 columns, because all its out-neighbours are higher.
Input: ids by rank. Output: triangles and membership tests (an AND + POPCNT counts as the tests it replaces).
Memory: hubs² / 16 bytes, at most 4 bytes per arc; n / 8 bytes per thread.
The number of hubs is chosen by the cost of a sample of arcs; docs/decisions/0006-keystone-cpu.md has the figures.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._contract import Algorithm, Counts, Knob, Knobs, Shape, Work
from wedgewise.algorithms._ranges import arc_bounds
from wedgewise.execute.threads import run_tasks
from wedgewise.graph import Ids, Keys, OrientedGraph
from wedgewise.machine.jit import helper, kernel, kernel_view
from wedgewise.machine.primitives import count_common_bits, prefetch

BLOCK_BITS = 512
HUBS_AHEAD = 4  # how many arcs ahead a hub's row is prefetched
MAX_HUBS = 1 << 15
SAMPLE_ARCS = 1 << 11
HUBS_PER_FILL = 1 << 10

# nanoseconds on one core, from the figures in the decision page
STREAM_ARC, STREAM_TEST = 6.0, 0.85
HUB_ARC, PROBE_TEST, AND_BLOCK = 6.0, 4.0, 2.0
ROW_BYTE = 0.5
CHOOSE_HUBS = -1


@helper
def row_word(hub, blocks):  # type: ignore[no-untyped-def]
    """First word of a hub's bit row: rows run from the hub's own block to the last one."""
    block = hub >> np.uint64(9)
    full = (block * (np.uint64(2) * blocks + np.uint64(1) - block) >> np.uint64(1)) << np.uint64(9)
    return (full + (hub & np.uint64(511)) * (blocks - block)) << np.uint64(3)


@helper
def fill_rows(offsets, rows, first_hub, begin, end, bits):  # type: ignore[no-untyped-def]
    """Set the bits of the out-neighbours of hubs begin … end − 1 (numbered from the first hub)."""
    base = np.uint64(first_hub)
    blocks = (np.uint64(len(offsets)) - np.uint64(1) - base) >> np.uint64(9)
    for hub in range(np.uint64(begin), np.uint64(end)):
        start = row_word(hub, blocks) - ((hub >> np.uint64(9)) << np.uint64(3))
        for arc in range(np.uint64(offsets[base + hub]), np.uint64(offsets[base + hub + np.uint64(1)])):
            other = np.uint64(rows[arc]) - base
            bits[start + (other >> np.uint64(6))] |= np.uint64(1) << (other & np.uint64(63))


@helper
def count_marked(offsets, rows, b, pad, marks):  # type: ignore[no-untyped-def]
    """How many out-neighbours of b are marked, and how many there are."""
    begin, end = np.uint64(offsets[b]), np.uint64(offsets[b + np.uint64(1)])
    found = np.uint64(0)
    for arc in range(begin, end):
        c = np.uint64(rows[arc]) + pad
        found += (marks[c >> np.uint64(6)] >> (c & np.uint64(63))) & np.uint64(1)
    return found, end - begin


@helper
def find_in_row(offsets, rows, b, c):  # type: ignore[no-untyped-def]
    """Whether c is an out-neighbour of b, and how many ids were looked at: for rows too short to be worth marking."""
    begin, end = np.uint64(offsets[b]), np.uint64(offsets[b + np.uint64(1)])
    arc = begin
    while arc < end and rows[arc] < c:
        arc += np.uint64(1)
    return np.uint64(arc < end and rows[arc] == c), arc - begin + np.uint64(1)


@helper
def probe_row(rows, arc, end, base, bits, origin):  # type: ignore[no-untyped-def]
    """How many ids of ``rows[arc:end]`` have their bit set in the hub row whose bit 0 is in word `origin`."""
    found = np.uint64(0)
    for other in range(arc, end):
        c = np.uint64(rows[other]) - base
        found += (bits[origin + (c >> np.uint64(6))] >> (c & np.uint64(63))) & np.uint64(1)
    return found


@kernel
def run_step(
    filling: bool,
    offsets: NDArray[Any],
    rows: Ids,
    first_hub: int,
    bits: Keys,
    probe_ratio: int,
    begin: int,
    end: int,
    marks: Keys,
) -> Counts:
    """Fill the bit rows of a range of hubs, or count a range of vertices: one kernel to compile and to load."""
    if filling:
        fill_rows(offsets, rows, first_hub, begin, end, bits)
        return np.uint64(0), np.uint64(0)
    triangles, tests = count_range(offsets, rows, first_hub, bits, probe_ratio, begin, end, marks)
    return triangles, tests


@helper
def count_range(offsets, rows, first_hub, bits, probe_ratio, begin, end, marks):  # type: ignore[no-untyped-def]
    """Triangles with their lowest vertex in [begin, end)."""
    one, three, six, nine, low6 = np.uint64(1), np.uint64(3), np.uint64(6), np.uint64(9), np.uint64(63)
    base = np.uint64(first_hub)
    n = np.uint64(len(offsets)) - one
    blocks = (n - base) >> nine
    pad = (np.uint64(512) - (base & np.uint64(511))) & np.uint64(511)
    hub_word = (base + pad) >> six
    ratio = np.uint64(probe_ratio)
    ahead = np.uint64(HUBS_AHEAD)
    triangles, tests = np.uint64(0), np.uint64(0)
    a_end = np.uint64(offsets[begin])
    soon_end = np.uint64(offsets[np.uint64(begin) + one])
    for a in range(np.uint64(begin), np.uint64(end)):
        a_begin = a_end
        a_end = soon_end
        soon_end = np.uint64(offsets[min(a + np.uint64(2), n)])
        if soon_end - a_end > one:
            for arc in range(a_end, soon_end):
                b = np.uint64(rows[arc])
                if b >= base:
                    break
                start = np.uint64(offsets[b])
                prefetch(rows, start)
                prefetch(rows, start + np.uint64(16))
        if a_end - a_begin < np.uint64(3):
            if a_end - a_begin == np.uint64(2):
                found, tested = find_in_row(offsets, rows, np.uint64(rows[a_begin]), rows[a_begin + one])
                triangles += found
                tests += tested
            continue
        split = a_begin
        for arc in range(a_begin, a_end):
            b = np.uint64(rows[arc])
            split += np.uint64(b < base)
            c = b + pad
            marks[c >> six] |= one << (c & low6)
        last = a_end - one
        for arc in range(a_begin, min(split, last)):
            found, tested = count_marked(offsets, rows, np.uint64(rows[arc]), pad, marks)
            triangles += found
            tests += tested
        for arc in range(split, last):
            hub = np.uint64(rows[arc]) - base
            block = hub >> nine
            tail = last - arc
            left = blocks - block
            start = row_word(hub, blocks)
            if arc + ahead < last:
                first = row_word(np.uint64(rows[arc + ahead]) - base, blocks)
                prefetch(bits, first)
                prefetch(bits, first + np.uint64(8))
            if tail <= left * ratio:
                triangles += probe_row(rows, arc + one, a_end, base, bits, start - (block << three))
            else:
                triangles += count_common_bits(marks, hub_word + (block << three), bits, start, left)
            tests += tail
        for arc in range(a_begin, a_end):
            marks[(np.uint64(rows[arc]) + pad) >> six] = np.uint64(0)
    return triangles, tests


def aligned_zeros(words: int) -> Keys:
    """Zeroed words that start at a cache line: a 512-bit load then never straddles two."""
    buffer = np.zeros(words + 8, np.uint64)
    skip = -buffer.ctypes.data // 8 % 8
    return buffer[skip : skip + words]


def row_bytes(hubs: int) -> int:
    """Bytes of the triangular bit matrix, in whole blocks of 512 bits."""
    blocks = hubs // BLOCK_BITS
    return blocks * (blocks + 1) // 2 * BLOCK_BITS * (BLOCK_BITS // 8)


def largest_hubs(n: int, m: int) -> int:
    """The most hubs whose rows take at most as many bytes as the arcs."""
    blocks = min(MAX_HUBS, n) // BLOCK_BITS
    while row_bytes(blocks * BLOCK_BITS) > 4 * m:
        blocks -= 1
    return blocks * BLOCK_BITS


def choose_hubs(graph: OrientedGraph, probe_ratio: int) -> int:
    """The number of hubs (none, or a power of two blocks) that makes an evenly spaced sample of arcs cheapest."""
    if graph.m == 0:
        return 0
    offsets = graph.offsets
    sample = np.linspace(0, graph.m - 1, min(graph.m, SAMPLE_ARCS)).astype(np.int64)
    tail_vertex = np.searchsorted(offsets, sample.astype(offsets.dtype), side="right") - 1
    behind = offsets[tail_vertex + 1].astype(np.int64) - sample - 1
    b = graph.out_neighbours[sample].astype(np.int64)
    second_hops = offsets[b + 1].astype(np.int64) - offsets[b].astype(np.int64)
    from_top = graph.n - b
    blocks_left = -(-from_top // BLOCK_BITS)
    probed = behind <= probe_ratio * blocks_left
    as_hub = HUB_ARC + np.where(probed, PROBE_TEST * behind, AND_BLOCK * blocks_left)
    as_other = STREAM_ARC + STREAM_TEST * second_hops
    most = largest_hubs(graph.n, graph.m)
    choices = [0, *(BLOCK_BITS << doubling for doubling in range(7) if BLOCK_BITS << doubling < most), most]

    def cost(hubs: int) -> float:
        arcs = np.where(from_top <= hubs, as_hub, as_other).sum() * (graph.m / len(sample))
        return float(arcs + ROW_BYTE * row_bytes(hubs))

    return min(choices, key=cost)


def hub_rows(offsets: NDArray[Any], rows: Ids, hubs: int, threads: int) -> Keys:
    """The bit rows of the last `hubs` vertices."""
    bits = aligned_zeros(row_bytes(hubs) // 8)
    first_hub = len(offsets) - 1 - hubs

    def fill(part: int, _worker: int) -> None:
        begin, end = part * HUBS_PER_FILL, min(hubs, (part + 1) * HUBS_PER_FILL)
        run_step(True, offsets, rows, first_hub, bits, 0, begin, end, bits)

    run_tasks(fill, -(-hubs // HUBS_PER_FILL), threads)
    return bits


def prepare(graph: OrientedGraph, knobs: Knobs, threads: int) -> Work:
    """Choose the hubs and fill their rows."""
    offsets, rows = kernel_view(graph.offsets), kernel_view(graph.out_neighbours)
    ratio, hubs = int(knobs["probe_ratio"]), int(knobs["hubs"])
    if hubs == CHOOSE_HUBS:
        hubs = choose_hubs(graph, ratio)
    hubs = min(hubs, graph.n) // BLOCK_BITS * BLOCK_BITS
    bits = hub_rows(offsets, rows, hubs, threads)

    def count(begin: int, end: int, marks: Keys) -> Counts:
        return run_step(False, offsets, rows, graph.n - hubs, bits, ratio, begin, end, marks)

    def workspace() -> Keys:
        return aligned_zeros((graph.n + 2 * BLOCK_BITS) // 64)

    return Work(arc_bounds(graph), count, workspace)


def bytes_needed(shape: Shape, threads: int, knobs: Knobs) -> int:
    hubs = int(knobs["hubs"])
    rows = row_bytes(largest_hubs(shape.n, shape.m) if hubs == CHOOSE_HUBS else min(hubs, shape.n))
    return rows + threads * (shape.n // 8 + 4 * BLOCK_BITS)


ALGORITHM = Algorithm(
    name="keystone",
    device="cpu",
    unit="graph",
    answers=("count",),
    paper="our own engine",
    summary="Marks out-neighbours in a bitmap and compares it with the bit rows of hubs, 512 bits at a time.",
    prepare=prepare,
    bytes_needed=bytes_needed,
    limits="ids by rank",
    relabellings=("rank",),
    knobs=(
        Knob(
            "hubs",
            CHOOSE_HUBS,
            "vertices with bit rows, in multiples of 512; -1 lets a sample choose",
            least=-1,
        ),
        Knob("probe_ratio", 2, "up to so many tests per 512-bit block, single tests replace the block"),
    ),
)
