"""The triangles of every vertex of a part and of every arc of a block, from all tasks that have some of them.

For a triangle a → b → c, a → c in the task (i, j, k), a role says which of its vertices, or arcs, a slice has:

    role   vertex   of       arc     of
    0      a        part i   a → b   block ij
    1      b        part j   a → c   block ik
    2      c        part k   b → c   block jk

A triangle is in one task, and each of the three roles of a task belongs to one slice. A slice sums up all pairs (task,
role) that belong to it, and so every triangle is added exactly once to each of its vertices and arcs. That holds on the
diagonal: in the task (i, i, k), blocks ik and jk are one, whose slice takes the task twice, once for a → c and once for
b → c, which are different arcs of the block; the slice of part i takes it for a and for b; and in (i, i, i) one slice
has all three roles. Nothing here depends on how ids are numbered within parts, nor on whether parts are ordered.

Both are counts of three blocks that say whose triangles they found:

    vertices   role 0 adds to a: each range has its own rows a. Role 1 adds to b and role 2 credits c, in arrays of each
               thread, which are added up by ranges when all rows are done
    arcs       role 0 adds to a → b; role 1 credits c, and moves the credits to the arcs a → c after each row a. Role 2
               does the same with a and b in each other's place: block ij is turned, so that row b has its in-neighbours
               a; with the row of b in jk marked, each a credits the heads of its row in ik. No two ranges write to the
               same arc. Supports are below 2^31, since an edge has no more triangles than there are vertices

Extra work: all slices together do each task three times. Vertices take exactly the tests of three counts; arcs take
those of two, and in role 2 others, since a and b change places there (2.4 counts' on Kronecker 18 in 4 parts). Slices
do not depend on the number of threads.
Memory: bit rows as for a count, for role 2 of arcs those of ik; per thread a bit per column; for vertices 8 bytes per
vertex of part j or k in roles 1 and 2; for arcs 4 bytes per column in roles 1 and 2, and in role 2 the turned block, 4
bytes per arc of ij and an offset per row of jk.
"""

from __future__ import annotations

import numpy as np

from wedgewise.algorithms._contract import Knobs, SliceMethod, TripleShape, Work
from wedgewise.algorithms.cpu._keystone_close import (
    Sinks,
    Workspace,
    closing_pass,
    counting_bytes,
    counting_workspace,
    crediting_bytes,
    crediting_workspace,
)
from wedgewise.algorithms.cpu._keystone_heads import by_head
from wedgewise.algorithms.cpu._keystone_rows import SPARE
from wedgewise.algorithms.cpu._keystone_supports import sum_pass
from wedgewise.algorithms.cpu._keystone_triple_hubs import hubs_bytes
from wedgewise.algorithms.cpu._keystone_triples import task_of
from wedgewise.algorithms.cpu._records import NOTHING, blocks_in, has_none, widening_bytes
from wedgewise.stages import Ids, Keys
from wedgewise.stages.blocks import WIDE_ARCS, Block, Triple


def prepare_triangles(triple: Triple, role: int, filled: Keys, knobs: Knobs) -> Work:
    """Add the triangles of a task to the vertices of part i, j or k."""
    if has_none(triple):
        return NOTHING
    task, columns = task_of(triple, knobs), triple.jk.columns
    if role == 0:
        return Work((closing_pass(task, lambda: counting_workspace(columns, Sinks(by_row=filled))),), filled)
    by_thread: list[Keys] = []

    def workspace() -> Workspace:
        if role == 1:
            by_head = np.zeros(len(filled), np.uint64)
            by_thread.append(by_head)
            return counting_workspace(columns, Sinks(by_head=by_head))
        space = crediting_workspace(columns, np.uint64)
        by_thread.append(space[0].credit[SPARE:])
        return space

    return Work((closing_pass(task, workspace), sum_pass(by_thread, filled, counted=role == 1)), filled)


def prepare_supports(triple: Triple, role: int, filled: Ids, knobs: Knobs) -> Work:
    """Add the triangles of a task to the arcs of block ij, ik or jk."""
    if has_none(triple):
        return NOTHING
    if role == 2:
        triple = turned(triple)
    task, columns = task_of(triple, knobs), triple.jk.columns

    def workspace() -> Workspace:
        if role == 0:
            return counting_workspace(columns, Sinks(by_arc=filled))
        return crediting_workspace(columns, np.uint32, Sinks(by_far_arc=filled))

    return Work((closing_pass(task, workspace),), filled)


def turned(triple: Triple) -> Triple:
    """The triple in which a and b have changed places: its far arcs, a → c, are the arcs b → c."""
    ij = triple.ij
    heads = by_head(blocks_in(triple).ij, ij.columns, idle=0)
    return Triple(Block(heads.offsets, heads.tails, ij.rows), triple.jk, triple.ik)


def triangles_bytes(shape: TripleShape, role: int, threads: int, knobs: Knobs) -> int:
    counting = counting_bytes(shape.columns_k)
    own = (counting, counting + 8 * shape.rows_j, crediting_bytes(shape.columns_k, 8))[role]
    return int(hubs_bytes(shape, knobs) + widening_bytes(shape) + threads * own)


def supports_bytes(shape: TripleShape, role: int, threads: int, knobs: Knobs) -> int:
    if role == 2:
        arcs, rows = shape.arcs_ij, shape.rows_j
        far = shape._replace(rows_i=rows, rows_j=shape.rows_i, arcs_ik=shape.arcs_jk, arcs_jk=shape.arcs_ik)
        turned_block = 4 * arcs + (4 if arcs < WIDE_ARCS else 8) * (rows + 2)
        return turned_block + supports_bytes(far, 1, threads, knobs)
    own = counting_bytes(shape.columns_k) if role == 0 else crediting_bytes(shape.columns_k, 4)
    return int(hubs_bytes(shape, knobs) + widening_bytes(shape) + threads * own)


TRIANGLES = SliceMethod(prepare_triangles, triangles_bytes)
EDGE_SUPPORT = SliceMethod(prepare_supports, supports_bytes)
