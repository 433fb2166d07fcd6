"""What: the triangles of the vertices of a part, from one task of three blocks in one role (see `_owned_tasks`).

    role 0   a count that adds to a: each range has its own rows a
    role 1   a count that adds to b, and
    role 2   credits to c, in arrays of each thread, which are added up by ranges when all rows are done

Memory: bit rows as for a count; per thread a bit per column, and 8 bytes per vertex of part j or k for roles 1 and 2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._contract import Counts, Knobs, OwnedAnswer, Pass, Work
from wedgewise.algorithms.cpu._keystone_credit import SPARE, Ledger
from wedgewise.algorithms.cpu._keystone_triple_rows import close_range
from wedgewise.algorithms.cpu._owned_tasks import (
    closing,
    closing_bytes,
    closing_workspace,
    opening,
    opening_bytes,
    opening_workspace,
    shared_bytes,
)
from wedgewise.algorithms.cpu._triples import NOTHING, has_none, row_bounds
from wedgewise.machine.jit import kernel
from wedgewise.stages import Ids, Keys
from wedgewise.stages.blocks import Triple

TASK_IDS = 1 << 15


@kernel
def open_rows(
    ij_offsets: NDArray[Any],
    ij_heads: Ids,
    ik_offsets: NDArray[Any],
    ik_heads: Ids,
    jk_offsets: NDArray[Any],
    jk_heads: Ids,
    columns_k: int,
    hubs: int,
    places: Keys,
    bits: Keys,
    probe_ratio: int,
    idle_arcs: int,
    begin: int,
    end: int,
    marks: Keys,
    active: Ids,
    by_row: Keys,
) -> Counts:
    """Add the triangles with a in [begin, end) to a."""
    triangles, tests = close_range(
        ij_offsets,
        ij_heads,
        ik_offsets,
        ik_heads,
        jk_offsets,
        jk_heads,
        columns_k,
        hubs,
        places,
        bits,
        probe_ratio,
        idle_arcs,
        0,
        1,
        begin,
        end,
        marks,
        active,
        by_row,
        None,
        None,
        None,
        None,
        None,
    )
    return triangles, tests


@kernel
def open_heads(
    ij_offsets: NDArray[Any],
    ij_heads: Ids,
    ik_offsets: NDArray[Any],
    ik_heads: Ids,
    jk_offsets: NDArray[Any],
    jk_heads: Ids,
    columns_k: int,
    hubs: int,
    places: Keys,
    bits: Keys,
    probe_ratio: int,
    idle_arcs: int,
    begin: int,
    end: int,
    marks: Keys,
    active: Ids,
    by_head: Keys,
) -> Counts:
    """Add the triangles with a in [begin, end) to b, in an array of one thread."""
    triangles, tests = close_range(
        ij_offsets,
        ij_heads,
        ik_offsets,
        ik_heads,
        jk_offsets,
        jk_heads,
        columns_k,
        hubs,
        places,
        bits,
        probe_ratio,
        idle_arcs,
        0,
        1,
        begin,
        end,
        marks,
        active,
        None,
        by_head,
        None,
        None,
        None,
        None,
    )
    return triangles, tests


@kernel
def close_heads(
    ij_offsets: NDArray[Any],
    ij_heads: Ids,
    ik_offsets: NDArray[Any],
    ik_heads: Ids,
    jk_offsets: NDArray[Any],
    jk_heads: Ids,
    columns_k: int,
    hubs: int,
    places: Keys,
    bits: Keys,
    probe_ratio: int,
    idle_arcs: int,
    begin: int,
    end: int,
    marks: Keys,
    active: Ids,
    scratch: Keys,
    credit: Keys,
) -> Counts:
    """Credit the triangles with a in [begin, end) to c, in an array of one thread; how many is seen there."""
    triangles, tests = close_range(
        ij_offsets,
        ij_heads,
        ik_offsets,
        ik_heads,
        jk_offsets,
        jk_heads,
        columns_k,
        hubs,
        places,
        bits,
        probe_ratio,
        idle_arcs,
        0,
        1,
        begin,
        end,
        marks,
        active,
        None,
        None,
        None,
        scratch,
        credit,
        None,
    )
    return triangles, tests


def prepare(triple: Triple, role: int, filled: Keys, knobs: Knobs) -> Work:
    """Add the triangles of a task to the vertices of part i, j or k."""
    if has_none(triple):
        return NOTHING
    return (_prepare_lowest, _prepare_middle, _prepare_highest)[role](triple, filled, knobs)


def _prepare_lowest(triple: Triple, filled: Keys, knobs: Knobs) -> Work:
    arguments = opening(triple, knobs)

    def run(begin: int, end: int, workspace: tuple[Keys, Ids]) -> Counts:
        return open_rows(*arguments, begin, end, *workspace, filled)

    return Work((Pass(row_bounds(triple.ij), run, lambda: opening_workspace(triple)),), filled)


def _prepare_middle(triple: Triple, filled: Keys, knobs: Knobs) -> Work:
    arguments = opening(triple, knobs)
    by_thread: list[Keys] = []

    def workspace() -> tuple[Keys, Ids, Keys]:
        own = np.zeros(len(filled), np.uint64)
        by_thread.append(own)
        return *opening_workspace(triple), own

    def run(begin: int, end: int, own: tuple[Keys, Ids, Keys]) -> Counts:
        _, tests = open_heads(*arguments, begin, end, *own)
        return 0, tests

    return Work((Pass(row_bounds(triple.ij), run, workspace), _sum_of(by_thread, filled)), filled)


def _prepare_highest(triple: Triple, filled: Keys, knobs: Knobs) -> Work:
    arguments = closing(triple, knobs)
    by_thread: list[Keys] = []

    def workspace() -> tuple[Ledger, Ids]:
        ledger, rows = closing_workspace(triple, np.uint64)
        by_thread.append(ledger.credit[SPARE:])
        return ledger, rows

    def run(begin: int, end: int, own: tuple[Ledger, Ids]) -> Counts:
        ledger, rows = own
        return close_heads(*arguments, begin, end, ledger.marks, rows, ledger.scratch, ledger.credit)

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


def bytes_needed(
    rows_i: int,
    rows_j: int,
    columns_k: int,
    arcs_ij: int,
    arcs_ik: int,
    arcs_jk: int,
    role: int,
    threads: int,
    knobs: Knobs,
) -> int:
    own = (opening_bytes(columns_k), opening_bytes(columns_k) + 8 * rows_j, closing_bytes(columns_k, 8))[role]
    return shared_bytes(rows_i, rows_j, columns_k, (arcs_ij, arcs_ik, arcs_jk), knobs) + threads * own


TRIANGLES = OwnedAnswer(prepare, bytes_needed)
