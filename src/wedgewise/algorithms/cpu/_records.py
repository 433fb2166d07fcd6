"""What kernels of the CPU take as one argument: arrays and bounds that belong together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, SupportsInt

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._contract import Work
from wedgewise.machine.jit import helper, kernel_view
from wedgewise.stages import Ids, OrientedGraph
from wedgewise.stages.blocks import WIDE_ARCS, Block
from wedgewise.stages.tasks import TripleShape

NOTHING = Work(())


class Rows(NamedTuple):
    """Row v is ``heads[offsets[v]:offsets[v + 1]]``."""

    offsets: NDArray[Any]
    heads: Ids


class RowPart(NamedTuple):
    """A row, or part of one, within a kernel: ``heads[begin:end]``."""

    heads: Ids
    begin: np.uint64
    end: np.uint64


class Span(NamedTuple):
    """The rows from `begin` to `end` − 1 that are `share` modulo `shares`."""

    begin: SupportsInt
    end: SupportsInt
    share: SupportsInt = 0
    shares: SupportsInt = 1


class Blocks3(NamedTuple):
    """The rows of the blocks ij, ik and jk; offsets have one width, so that kernels have two signatures."""

    ij: Rows
    ik: Rows
    jk: Rows


def rows_of(graph: OrientedGraph) -> Rows:
    """The out-neighbours of every vertex."""
    return Rows(kernel_view(graph.offsets), kernel_view(graph.out_neighbours))


def whole(graph: OrientedGraph) -> Blocks3:
    """A graph as three times the same block."""
    return Blocks3(*3 * (rows_of(graph),))


def rows_in(block: Block) -> Rows:
    """The rows of a block as kernels take them."""
    return Rows(kernel_view(block.offsets), kernel_view(block.heads))


def widest_offsets(blocks: Iterable[Block]) -> np.dtype[Any]:
    """The type of the widest offsets of blocks."""
    return max((block.offsets.dtype for block in blocks), key=lambda dtype: dtype.itemsize)


def widening_bytes(shape: TripleShape) -> Any:
    """What offsets may take that are copied: those of blocks that are small beside one with 2^32 arcs or more."""
    copied = 8 * (2 * shape.rows_i + shape.rows_j + 3)
    return np.where(np.maximum.reduce(shape.arcs) >= WIDE_ARCS, copied, 0)


@helper
def row_at(rows, v):  # type: ignore[no-untyped-def]
    """The row of v."""
    return RowPart(rows.heads, np.uint64(rows.offsets[v]), np.uint64(rows.offsets[v + np.uint64(1)]))


@helper
def first_in(span):  # type: ignore[no-untyped-def]
    """The first row of a span."""
    begin, share, shares = np.uint64(span.begin), np.uint64(span.share), np.uint64(span.shares)
    return begin + (share + shares - begin % shares) % shares
