"""What: the triangles of the vertices of a part, from one task of three blocks in one role (see `_slice_tasks`).

    role 0   a count that adds to a: each range has its own rows a
    role 1   a count that adds to b, and
    role 2   credits to c, in arrays of each thread, which are added up by ranges when all rows are done

Memory: bit rows as for a count; per thread a bit per column, and 8 bytes per vertex of part j or k for roles 1 and 2.
"""

from __future__ import annotations

import numpy as np

from wedgewise.algorithms._contract import Counts, Knobs, Pass, SliceMethod, TripleShape, Work
from wedgewise.algorithms.cpu._keystone_close import Sinks, close_range
from wedgewise.algorithms.cpu._keystone_credit import SPARE, Ledger, Marks
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
from wedgewise.stages import Ids, Keys
from wedgewise.stages.blocks import Triple

TASK_IDS = 1 << 15


def prepare(triple: Triple, role: int, filled: Keys, knobs: Knobs) -> Work:
    """Add the triangles of a task to the vertices of part i, j or k."""
    if has_none(triple):
        return NOTHING
    return (_prepare_lowest, _prepare_middle, _prepare_highest)[role](triple, filled, knobs)


def _prepare_lowest(triple: Triple, filled: Keys, knobs: Knobs) -> Work:
    task, sinks = opening(triple, knobs), Sinks(by_row=filled)

    def run(begin: int, end: int, workspace: tuple[Marks, Ids]) -> Counts:
        return close_range(task, Span(begin, end), *workspace, sinks)

    return Work((Pass(row_bounds(triple.ij), run, lambda: opening_workspace(triple)),), filled)


def _prepare_middle(triple: Triple, filled: Keys, knobs: Knobs) -> Work:
    task = opening(triple, knobs)
    by_thread: list[Keys] = []

    def workspace() -> tuple[Marks, Ids, Sinks]:
        by_head = np.zeros(len(filled), np.uint64)
        by_thread.append(by_head)
        return *opening_workspace(triple), Sinks(by_head=by_head)

    def run(begin: int, end: int, own: tuple[Marks, Ids, Sinks]) -> Counts:
        _, tests = close_range(task, Span(begin, end), *own)
        return 0, tests

    return Work((Pass(row_bounds(triple.ij), run, workspace), _sum_of(by_thread, filled)), filled)


def _prepare_highest(triple: Triple, filled: Keys, knobs: Knobs) -> Work:
    task = closing(triple, knobs)
    by_thread: list[Keys] = []

    def workspace() -> tuple[Ledger, Ids]:
        ledger, rows = closing_workspace(triple, np.uint64)
        by_thread.append(ledger.credit[SPARE:])
        return ledger, rows

    def run(begin: int, end: int, own: tuple[Ledger, Ids]) -> Counts:
        return close_range(task, Span(begin, end), *own, Sinks())

    return Work((Pass(row_bounds(triple.ij), run, workspace), _sum_of(by_thread, filled)), filled)


def _sum_of(by_thread: list[Keys], filled: Keys) -> Pass:
    """Add what all threads have, by ranges; only here their triangles are counted."""

    def add_up(begin: int, end: int, _workspace: None) -> Counts:
        triangles = 0
        for own in by_thread:
            filled[begin:end] += own[begin:end]
            triangles += int(own[begin:end].sum())
        return triangles, 0

    return Pass(np.append(np.arange(0, len(filled), TASK_IDS), len(filled)), add_up)


def bytes_needed(shape: TripleShape, role: int, threads: int, knobs: Knobs) -> int:
    counting = opening_bytes(shape.columns_k)
    own = (counting, counting + 8 * shape.rows_j, closing_bytes(shape.columns_k, 8))[role]
    return shared_bytes(shape, knobs) + threads * own


TRIANGLES = SliceMethod(prepare, bytes_needed)
