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

from wedgewise.algorithms._contract import Algorithm, Answer, Counts, Knob, Knobs, Pass, Shape, TripleAnswer, Work
from wedgewise.algorithms._ranges import arc_bounds
from wedgewise.algorithms.cpu import _keystone_supports as supports
from wedgewise.algorithms.cpu import _keystone_triples as triples
from wedgewise.algorithms.cpu import _owned_supports as owned_supports
from wedgewise.algorithms.cpu import _owned_triangles as owned_triangles
from wedgewise.algorithms.cpu import _weighted as weighted
from wedgewise.algorithms.cpu._keystone_hubs import (
    CHOOSE_HUBS,
    HUBS_AHEAD,
    empty_marks,
    marks_bytes,
    most_hubs,
    prefetch_hub_row,
    prepare_hubs,
    row_bytes,
    row_word,
)
from wedgewise.algorithms.cpu._keystone_listing import write_triangles
from wedgewise.algorithms.cpu._keystone_rows import (
    clear_row,
    count_marked,
    find_in_row,
    mark_row,
    padding,
    prefetch_second_hops,
    probe_row,
)
from wedgewise.machine.jit import helper, kernel, kernel_view
from wedgewise.machine.primitives import count_common_bits
from wedgewise.stages import Ids, Keys, OrientedGraph


@helper
def close_row(offsets, rows, begin, end, base, blocks, pad, bits, ratio, marks, opened):  # type: ignore[no-untyped-def]
    """Triangles whose lowest vertex has the row ``rows[begin:end]``; by arc in `opened`, where that is an array."""
    one = np.uint64(1)
    hub_word = (base + pad) >> np.uint64(6)
    ahead = np.uint64(HUBS_AHEAD)
    last = end - one
    triangles, tests = np.uint64(0), np.uint64(0)
    split = mark_row(rows, begin, end, base, pad, marks)
    for arc in range(begin, min(split, last)):
        found, tested = count_marked(offsets, rows, np.uint64(rows[arc]), pad, marks)
        if opened is not None:
            opened[arc] = found
        triangles += found
        tests += tested
    for arc in range(split, last):
        hub = np.uint64(rows[arc]) - base
        block = hub >> np.uint64(9)
        tail = last - arc
        left = blocks - block
        start = row_word(hub, blocks)
        if arc + ahead < last:
            prefetch_hub_row(bits, np.uint64(rows[arc + ahead]) - base, blocks)
        if tail <= left * ratio:
            found = probe_row(rows, arc + one, end, base, bits, start - (block << np.uint64(3)))
        else:
            found = np.uint64(count_common_bits(marks, hub_word + (block << np.uint64(3)), bits, start, left))
        if opened is not None:
            opened[arc] = found
        triangles += found
        tests += tail
    clear_row(rows, begin, end, pad, marks)
    return triangles, tests


@helper
def close_range(offsets, rows, first_hub, bits, probe_ratio, begin, end, marks, opened):  # type: ignore[no-untyped-def]
    """Triangles with their lowest vertex in [begin, end); by arc in `opened`, where that is an array."""
    one, two = np.uint64(1), np.uint64(2)
    base, ratio = np.uint64(first_hub), np.uint64(probe_ratio)
    n = np.uint64(len(offsets)) - one
    blocks = (n - base) >> np.uint64(9)
    pad = padding(base)
    triangles, tests = np.uint64(0), np.uint64(0)
    a_end = np.uint64(offsets[begin])
    soon_end = np.uint64(offsets[np.uint64(begin) + one])
    for a in range(np.uint64(begin), np.uint64(end)):
        a_begin, a_end = a_end, soon_end
        soon_end = np.uint64(offsets[min(a + two, n)])
        prefetch_second_hops(offsets, rows, a_end, soon_end, base)
        if a_end - a_begin > two:
            found, tested = close_row(offsets, rows, a_begin, a_end, base, blocks, pad, bits, ratio, marks, opened)
        elif a_end - a_begin == two:
            found, tested = find_in_row(offsets, rows, np.uint64(rows[a_begin]), rows[a_begin + one])
            if opened is not None:
                opened[a_begin] = found
        else:
            continue
        triangles += found
        tests += tested
    return triangles, tests


@kernel
def count_range(
    offsets: NDArray[Any], rows: Ids, first_hub: int, bits: Keys, probe_ratio: int, begin: int, end: int, marks: Keys
) -> Counts:
    """Triangles with their lowest vertex in [begin, end)."""
    triangles, tests = close_range(offsets, rows, first_hub, bits, probe_ratio, begin, end, marks, None)
    return triangles, tests


@kernel
def open_range(
    offsets: NDArray[Any],
    rows: Ids,
    first_hub: int,
    bits: Keys,
    probe_ratio: int,
    begin: int,
    end: int,
    marks: Keys,
    opened: Ids,
) -> Counts:
    """The same, and how many each arc opens; the last arc of a row opens none and is left as it is."""
    triangles, tests = close_range(offsets, rows, first_hub, bits, probe_ratio, begin, end, marks, opened)
    return triangles, tests


def prepare(graph: OrientedGraph, knobs: Knobs, threads: int) -> Work:
    """Choose the hubs and fill their rows."""
    offsets, rows = kernel_view(graph.offsets), kernel_view(graph.out_neighbours)
    hubs = prepare_hubs(graph, knobs, threads)

    def count(begin: int, end: int, marks: Keys) -> Counts:
        return count_range(offsets, rows, hubs.first, hubs.bits, hubs.probe_ratio, begin, end, marks)

    return Work((Pass(arc_bounds(graph.offsets), count, lambda: empty_marks(graph.n)),))


def bytes_needed(shape: Shape, threads: int, knobs: Knobs) -> int:
    return row_bytes(most_hubs(shape, knobs)) + threads * marks_bytes(shape.n)


def prepare_listing(graph: OrientedGraph, knobs: Knobs, threads: int) -> Work:
    """Count what each arc opens; `fill` then writes any stretch of arcs."""
    offsets, rows = kernel_view(graph.offsets), kernel_view(graph.out_neighbours)
    hubs = prepare_hubs(graph, knobs, threads)
    opened = np.zeros(graph.m, np.uint32)

    def count(begin: int, end: int, marks: Keys) -> Counts:
        return open_range(offsets, rows, hubs.first, hubs.bits, hubs.probe_ratio, begin, end, marks, opened)

    def fill(begin: int, end: int, triples: Ids, marks: Keys) -> None:
        write_triangles(offsets, rows, hubs.first, hubs.bits, opened, begin, end, marks, triples)

    return Work((Pass(arc_bounds(graph.offsets), count, lambda: empty_marks(graph.n)),), opened, fill)


def listing_bytes(shape: Shape, threads: int, knobs: Knobs) -> int:
    return bytes_needed(shape, threads, knobs) + 4 * shape.m


ALGORITHM = Algorithm(
    name="keystone",
    device="cpu",
    unit="graph",
    answers={
        "count": Answer(prepare, bytes_needed),
        "triangles": Answer(supports.prepare_triangles, supports.triangles_bytes),
        "edge_support": Answer(supports.prepare_edge_support, supports.edge_support_bytes),
        "list_triangles": Answer(prepare_listing, listing_bytes),
        "weighted_triangles": Answer(weighted.prepare, weighted.bytes_needed),
    },
    paper="our own engine",
    summary="Marks out-neighbours in a bitmap and compares it with the bit rows of hubs, 512 bits at a time.",
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
    triples={
        "count": TripleAnswer(
            triples.prepare,
            triples.bytes_needed,
            triples.thread_bytes,
            triples.prepare_in_turn,
            expected_bytes=triples.expected_bytes,
        )
    },
    owned={"triangles": owned_triangles.TRIANGLES, "edge_support": owned_supports.EDGE_SUPPORT},
)
