"""What: compare short rows, mark long ones in a bitmap; hubs keep bit rows, so that whole rows are compared at once.

Paper: ours.
Who does what: one task per range of vertices a. Each arc a → b takes the cheapest way to |N+(a) ∩ N+(b)|:

    b below the hubs, few ids behind b   compare each of those few with N+(b), 16 ids at a time
    b below the hubs, more of them       stream N+(b), test each id in a's bitmap
    b a hub, many ids of N+(a) behind b  AND + POPCNT of a's bitmap with b's bit row, 512 bits at a time
    b a hub, few of them                 test those few in b's bit row

Hubs are the highest ids, since ids follow ascending degree: hub rows are a triangular bit matrix over the last `hubs`
ids. Row b starts at b's own block of 512 columns, because all its out-neighbours are higher.
Input: ids by rank. Output: triangles and membership tests (comparing and AND + POPCNT count as the tests they replace).
Memory: hubs² / 16 bytes, at most 4 bytes per arc; n / 8 bytes and 8 KB per thread.
The number of hubs is chosen by the cost of a sample of arcs; docs/decisions/0006-keystone-cpu.md has the figures.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wedgewise.algorithms._contract import Algorithm, Answer, Knob, Knobs, Shape, TripleAnswer, Work
from wedgewise.algorithms.cpu import _keystone_slices as slices
from wedgewise.algorithms.cpu import _keystone_supports as supports
from wedgewise.algorithms.cpu import _keystone_triples as triples
from wedgewise.algorithms.cpu import _weighted as weighted
from wedgewise.algorithms.cpu._keystone_close import (
    RowWorkspace,
    Sinks,
    close_range,
    closing_pass,
    counting_bytes,
    counting_workspace,
    graph_task,
)
from wedgewise.algorithms.cpu._keystone_hubs import CHOOSE_HUBS, most_hubs, prepare_hubs, row_bytes
from wedgewise.algorithms.cpu._keystone_listing import write_triangles
from wedgewise.algorithms.cpu._records import rows_of
from wedgewise.stages import Ids, OrientedGraph


def prepare(graph: OrientedGraph, knobs: Knobs, threads: int) -> Work:
    """Choose the hubs and fill their rows."""
    task = graph_task(graph, prepare_hubs(graph, knobs, threads))
    return Work((closing_pass(task, lambda: counting_workspace(graph.n)),))


def bytes_needed(shape: Shape, threads: int, knobs: Knobs) -> int:
    return row_bytes(most_hubs(shape, knobs)) + threads * counting_bytes(shape.n)


def prepare_listing(graph: OrientedGraph, knobs: Knobs, threads: int) -> Work:
    """Count what each arc opens; `fill` then writes any stretch of arcs."""
    rows, hubs = rows_of(graph), prepare_hubs(graph, knobs, threads)
    opened = np.zeros(graph.m, np.uint32)

    def fill(begin: int, end: int, triples: Ids, workspace: RowWorkspace[Any]) -> None:
        write_triangles(rows, hubs, opened, begin, end, workspace.marks.marks, triples)

    counting = closing_pass(graph_task(graph, hubs), lambda: counting_workspace(graph.n, Sinks(by_arc=opened)))
    return Work((counting,), opened, fill)


def listing_bytes(shape: Shape, threads: int, knobs: Knobs) -> int:
    return bytes_needed(shape, threads, knobs) + 4 * shape.m


ALGORITHM = Algorithm(
    name="keystone",
    device="cpu",
    unit="graph",
    answers={
        "count": Answer(prepare, bytes_needed, (close_range,)),
        "triangles": Answer(supports.prepare_triangles, supports.triangles_bytes, (close_range,)),
        "edge_support": Answer(supports.prepare_edge_support, supports.edge_support_bytes, (supports.add_opposite,)),
        "list_triangles": Answer(prepare_listing, listing_bytes, (write_triangles,)),
        "weighted_triangles": Answer(weighted.prepare, weighted.bytes_needed, (weighted.weigh_range,)),
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
            triples.counter,
            triples.bytes_needed,
            triples.thread_bytes,
            expected_bytes=triples.expected_bytes,
            lists_rows=True,
        )
    },
    sliced={"triangles": slices.TRIANGLES, "edge_support": slices.EDGE_SUPPORT},
)
