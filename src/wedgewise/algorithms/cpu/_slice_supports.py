"""What: the triangles of the arcs of a block, from one task of three blocks in one role (see `_slice_tasks`).

    role 0   a count that adds to a → b: each range has its own rows a
    role 1   credits to c, settled at the arcs a → c after each row a: each range has its own rows a
    role 2   the same with a and b in each other's place: block ij is turned, so that row b has its in-neighbours a;
             with the row of b in jk marked, each a credits the heads of its row in ik. Each range has its own rows b

No two ranges write to the same arc, and each adds to a support once per row: supports are below 2^31, since an edge has
no more triangles than there are vertices.
Memory: bit rows as for a count, for role 2 those of ik; per thread a bit per column, and 4 bytes for roles 1 and 2; for
role 2 the turned block, 4 bytes per arc of ij and an offset per row of jk.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._contract import Counts, Knobs, Pass, SliceMethod, TripleShape, Work
from wedgewise.algorithms.cpu._keystone_close import Sinks, close_range
from wedgewise.algorithms.cpu._keystone_credit import Ledger, Marks
from wedgewise.algorithms.cpu._records import Span
from wedgewise.algorithms.cpu._slice_tasks import (
    closing,
    closing_bytes,
    closing_workspace,
    opening,
    opening_bytes,
    opening_workspace,
    shared_bytes,
)
from wedgewise.algorithms.cpu._triples import NOTHING, has_none, row_bounds
from wedgewise.machine.jit import kernel, kernel_view
from wedgewise.stages import Ids
from wedgewise.stages.blocks import WIDE_ARCS, Block, Triple


@kernel
def turn_block(offsets: NDArray[Any], heads: Ids, turned_offsets: NDArray[Any], tails: Ids) -> None:
    """Sort the arcs of a block by head: row b of the turned block has the rows a of the arcs a → b, ascending.

    Arcs to b are counted at b + 2 and summed; then entry b + 1 is where the next tail of b goes, and in the end where
    the tails of b + 1 begin.
    """
    one, two = np.uint64(1), np.uint64(2)
    for arc in range(np.uint64(len(heads))):
        turned_offsets[np.uint64(heads[arc]) + two] += one
    for place in range(one, np.uint64(len(turned_offsets))):
        turned_offsets[place] += turned_offsets[place - one]
    for a in range(np.uint64(len(offsets)) - one):
        for arc in range(np.uint64(offsets[a]), np.uint64(offsets[a + one])):
            head = np.uint64(heads[arc])
            tails[turned_offsets[head + one]] = a
            turned_offsets[head + one] += one


def prepare(triple: Triple, role: int, filled: Ids, knobs: Knobs) -> Work:
    """Add the triangles of a task to the arcs of block ij, ik or jk."""
    if has_none(triple):
        return NOTHING
    if role == 0:
        return _prepare_near(triple, filled, knobs)
    return _prepare_far(triple if role == 1 else turned(triple), filled, knobs)


def turned(triple: Triple) -> Triple:
    """The triple in which a and b have changed places: its far arcs, a → c, are the arcs b → c."""
    ij = triple.ij
    offsets, tails = np.zeros(ij.columns + 2, ij.offsets.dtype), np.empty(ij.m, np.uint32)
    turn_block(kernel_view(ij.offsets), kernel_view(ij.heads), offsets, tails)
    return Triple(Block(offsets[:-1], tails, ij.rows), triple.jk, triple.ik)


def _prepare_near(triple: Triple, filled: Ids, knobs: Knobs) -> Work:
    task, sinks = opening(triple, knobs), Sinks(by_arc=filled)

    def run(begin: int, end: int, workspace: tuple[Marks, Ids]) -> Counts:
        return close_range(task, Span(begin, end), *workspace, sinks)

    return Work((Pass(row_bounds(triple.ij), run, lambda: opening_workspace(triple)),), filled)


def _prepare_far(triple: Triple, filled: Ids, knobs: Knobs) -> Work:
    task, sinks = closing(triple, knobs), Sinks(by_far_arc=filled)

    def run(begin: int, end: int, workspace: tuple[Ledger, Ids]) -> Counts:
        return close_range(task, Span(begin, end), *workspace, sinks)

    return Work((Pass(row_bounds(triple.ij), run, lambda: closing_workspace(triple, np.uint32)),), filled)


def bytes_needed(shape: TripleShape, role: int, threads: int, knobs: Knobs) -> int:
    if role == 2:
        arcs, rows = shape.arcs_ij, shape.rows_j
        far = shape._replace(rows_i=rows, rows_j=shape.rows_i, arcs_ik=shape.arcs_jk, arcs_jk=shape.arcs_ik)
        turned_block = 4 * arcs + (4 if arcs < WIDE_ARCS else 8) * (rows + 2)
        return turned_block + bytes_needed(far, 1, threads, knobs)
    own = opening_bytes(shape.columns_k) if role == 0 else closing_bytes(shape.columns_k, 4)
    return shared_bytes(shape, knobs) + threads * own


EDGE_SUPPORT = SliceMethod(prepare, bytes_needed)
