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

import numpy as np

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
    Hubs,
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
    prefetch_second_hops,
    probe_row,
)
from wedgewise.algorithms.cpu._records import Rows, Stretch, rows_of
from wedgewise.machine.jit import helper, kernel
from wedgewise.machine.primitives import count_common_bits
from wedgewise.stages import Ids, Keys, OrientedGraph


@helper
def keep(found, place, sink):  # type: ignore[no-untyped-def]
    """Note what was found, where there is an array for it."""
    if sink is not None:
        sink[place] = found


@helper
def close_row(rows, row, hubs, marks, opened):  # type: ignore[no-untyped-def]
    """Triangles whose lowest vertex has this row; by arc in `opened`, where that is an array."""
    one = np.uint64(1)
    base, pad, heads = hubs.base, hubs.pad, row.heads
    hub_word = (base + pad) >> np.uint64(6)
    ahead = np.uint64(HUBS_AHEAD)
    last = row.end - one
    triangles, tests = np.uint64(0), np.uint64(0)
    split = mark_row(row, base, pad, marks)
    for arc in range(row.begin, min(split, last)):
        found, tested = count_marked(rows, np.uint64(heads[arc]), pad, marks)
        keep(found, arc, opened)
        triangles += found
        tests += tested
    for arc in range(split, last):
        hub = np.uint64(heads[arc]) - base
        block = hub >> np.uint64(9)
        tail = last - arc
        left = hubs.blocks - block
        start = row_word(hub, hubs.blocks)
        if arc + ahead < last:
            prefetch_hub_row(hubs, heads[arc + ahead])
        if tail <= left * hubs.ratio:
            behind = Stretch(heads, arc + one, row.end)
            found = probe_row(behind, base, hubs.bits, start - (block << np.uint64(3)))
        else:
            found = np.uint64(count_common_bits(marks, hub_word + (block << np.uint64(3)), hubs.bits, start, left))
        keep(found, arc, opened)
        triangles += found
        tests += tail
    clear_row(row, pad, marks)
    return triangles, tests


@kernel
def close_range(rows: Rows, hubs: Hubs, begin: int, end: int, marks: Keys, opened: Ids | None) -> Counts:
    """Triangles with their lowest vertex in [begin, end); by arc in `opened`, where that is an array.

    The last arc of a row opens none and is left as it is.
    """
    one, two = np.uint64(1), np.uint64(2)
    n = np.uint64(len(rows.offsets)) - one
    triangles, tests = np.uint64(0), np.uint64(0)
    a_end = np.uint64(rows.offsets[begin])
    soon_end = np.uint64(rows.offsets[np.uint64(begin) + one])
    for a in range(np.uint64(begin), np.uint64(end)):
        a_begin, a_end = a_end, soon_end
        soon_end = np.uint64(rows.offsets[min(a + two, n)])
        prefetch_second_hops(rows, a_end, soon_end, hubs.base)
        if a_end - a_begin > two:
            found, tested = close_row(rows, Stretch(rows.heads, a_begin, a_end), hubs, marks, opened)
        elif a_end - a_begin == two:
            found, tested = find_in_row(rows, np.uint64(rows.heads[a_begin]), rows.heads[a_begin + one])
            keep(found, a_begin, opened)
        else:
            continue
        triangles += found
        tests += tested
    return triangles, tests


def prepare(graph: OrientedGraph, knobs: Knobs, threads: int) -> Work:
    """Choose the hubs and fill their rows."""
    rows, hubs = rows_of(graph), prepare_hubs(graph, knobs, threads)

    def count(begin: int, end: int, marks: Keys) -> Counts:
        return close_range(rows, hubs, begin, end, marks, None)

    return Work((Pass(arc_bounds(graph.offsets), count, lambda: empty_marks(graph.n)),))


def bytes_needed(shape: Shape, threads: int, knobs: Knobs) -> int:
    return row_bytes(most_hubs(shape, knobs)) + threads * marks_bytes(shape.n)


def prepare_listing(graph: OrientedGraph, knobs: Knobs, threads: int) -> Work:
    """Count what each arc opens; `fill` then writes any stretch of arcs."""
    rows, hubs = rows_of(graph), prepare_hubs(graph, knobs, threads)
    opened = np.zeros(graph.m, np.uint32)

    def count(begin: int, end: int, marks: Keys) -> Counts:
        return close_range(rows, hubs, begin, end, marks, opened)

    def fill(begin: int, end: int, triples: Ids, marks: Keys) -> None:
        write_triangles(rows, hubs, opened, begin, end, marks, triples)

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
