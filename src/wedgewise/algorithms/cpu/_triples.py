"""What the algorithms on three blocks share: flat arrays of one width, and ranges of rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._contract import Work
from wedgewise.algorithms._ranges import TASK_ARCS, arc_bounds
from wedgewise.machine.jit import helper, kernel_view
from wedgewise.stages import Ids
from wedgewise.stages.blocks import WIDE_ARCS, Block, Triple

NOTHING = Work(())


class TripleArrays(NamedTuple):
    """Offsets and heads of the blocks ij, ik and jk; offsets have one width, so that kernels have two signatures."""

    ij_offsets: NDArray[Any]
    ij_heads: Ids
    ik_offsets: NDArray[Any]
    ik_heads: Ids
    jk_offsets: NDArray[Any]
    jk_heads: Ids


def arrays_of(triple: Triple) -> TripleArrays:
    """The blocks as kernels take them; offsets are copied only where another block has wider ones."""
    blocks = (triple.ij, triple.ik, triple.jk)
    width = max((block.offsets.dtype for block in blocks), key=lambda dtype: dtype.itemsize)
    ij, ik, jk = (kernel_view(block.offsets.astype(width, copy=False)) for block in blocks)
    return TripleArrays(
        ij, kernel_view(triple.ij.heads), ik, kernel_view(triple.ik.heads), jk, kernel_view(triple.jk.heads)
    )


def widening_bytes(rows_i: int, rows_j: int, *arcs: int) -> int:
    """What `arrays_of` may copy: offsets of blocks that are small beside one with 2^32 arcs or more."""
    return 8 * (2 * rows_i + rows_j + 3) if max(arcs) >= WIDE_ARCS else 0


def has_none(triple: Triple) -> bool:
    """Whether a block has no arcs, and hence the triple no triangles."""
    return 0 in (triple.ij.m, triple.ik.m, triple.jk.m)


def row_bounds(ij: Block) -> NDArray[np.int64]:
    """Ranges of rows with about equally many arcs."""
    return arc_bounds(ij.offsets) if ij.m >= 2 * TASK_ARCS else np.array([0, ij.rows], np.int64)


@helper
def first_of_share(begin, share, shares):  # type: ignore[no-untyped-def]
    """The first row from `begin` on that is `share` modulo `shares`."""
    past = np.uint64(begin) % np.uint64(shares)
    return np.uint64(begin) + (np.uint64(share) + np.uint64(shares) - past) % np.uint64(shares)
