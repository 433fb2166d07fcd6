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

Extra work: all slices together do each task three times. Vertices take exactly the tests of three counts; arcs take
those of two, and in role 2 others, since a and b change places there (2.4 counts' on Kronecker 18 in 4 parts).
`_slice_triangles` and `_slice_supports` say how; both are counts of three blocks (`_keystone_triples`) that say whose
triangles they found, or credit c (`_slice_credit`). Slices do not depend on the number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wedgewise.algorithms._contract import Knobs, TripleShape
from wedgewise.algorithms.cpu._keystone_close import ROWS_AT_ONCE, BlockTask
from wedgewise.algorithms.cpu._keystone_credit import Ledger, Marks, empty_ledger, ledger_bytes
from wedgewise.algorithms.cpu._keystone_hubs import empty_marks, marks_bytes
from wedgewise.algorithms.cpu._keystone_triple_hubs import BlockHubs, hubs_bytes
from wedgewise.algorithms.cpu._keystone_triples import task_of
from wedgewise.algorithms.cpu._triples import widening_bytes
from wedgewise.stages import Ids
from wedgewise.stages.blocks import Triple


def opening(triple: Triple, knobs: Knobs) -> BlockTask:
    """What kernels take that add to a, b or a → b."""
    return task_of(triple, BlockHubs(knobs))


def closing(triple: Triple, knobs: Knobs) -> BlockTask:
    """What kernels take that credit c: bit rows lie behind so many words that bit 0 of each has a place."""
    return task_of(triple, BlockHubs(knobs, front=_front_words(triple.jk.columns)))


def opening_workspace(triple: Triple) -> tuple[Marks, Ids]:
    """Marks, and rows to be visited."""
    return Marks(empty_marks(triple.jk.columns)), _rows_at_once()


def closing_workspace(triple: Triple, credit_type: type[np.unsignedinteger[Any]]) -> tuple[Ledger, Ids]:
    """Marks and credits, and rows to be visited."""
    return empty_ledger(triple.jk.columns, credit_type), _rows_at_once()


def shared_bytes(shape: TripleShape, knobs: Knobs) -> int:
    """What all threads share."""
    return hubs_bytes(shape, knobs) + 8 * _front_words(shape.columns_k) + widening_bytes(shape)


def opening_bytes(columns_k: int) -> int:
    """What one thread takes."""
    return marks_bytes(columns_k) + 4 * ROWS_AT_ONCE


def closing_bytes(columns_k: int, credit_bytes: int) -> int:
    """What one thread takes that has credits of so many bytes."""
    return ledger_bytes(columns_k, credit_bytes) + 4 * ROWS_AT_ONCE


def _rows_at_once() -> Ids:
    return np.empty(ROWS_AT_ONCE, np.uint32)


def _front_words(columns: int) -> int:
    """The words of a bit row of all columns."""
    return (columns + 511) // 512 * 8
