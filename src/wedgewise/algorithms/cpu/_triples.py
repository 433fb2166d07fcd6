"""What the algorithms on three blocks share: flat arrays of one width, and ranges of rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._contract import TripleShape, Work
from wedgewise.algorithms._ranges import TASK_ARCS, arc_bounds
from wedgewise.algorithms.cpu._records import Rows
from wedgewise.machine.jit import kernel_view
from wedgewise.stages.blocks import WIDE_ARCS, Block, Triple

NOTHING = Work(())


class Blocks3(NamedTuple):
    """The rows of the blocks ij, ik and jk; offsets have one width, so that kernels have two signatures."""

    ij: Rows
    ik: Rows
    jk: Rows


def blocks_in(triple: Triple) -> Blocks3:
    """The blocks as kernels take them; offsets are copied only where another block has wider ones."""
    blocks = (triple.ij, triple.ik, triple.jk)
    width = max((block.offsets.dtype for block in blocks), key=lambda dtype: dtype.itemsize)

    def rows_in(block: Block) -> Rows:
        return Rows(kernel_view(block.offsets.astype(width, copy=False)), kernel_view(block.heads))

    return Blocks3(*map(rows_in, blocks))


def widening_bytes(shape: TripleShape) -> int:
    """What `blocks_in` may copy: offsets of blocks that are small beside one with 2^32 arcs or more."""
    return 8 * (2 * shape.rows_i + shape.rows_j + 3) if max(shape.arcs) >= WIDE_ARCS else 0


def has_none(triple: Triple) -> bool:
    """Whether a block has no arcs, and hence the triple no triangles."""
    return 0 in (triple.ij.m, triple.ik.m, triple.jk.m)


def row_bounds(ij: Block) -> NDArray[np.int64]:
    """Ranges of rows with about equally many arcs."""
    return arc_bounds(ij.offsets) if ij.m >= 2 * TASK_ARCS else np.array([0, ij.rows], np.int64)
