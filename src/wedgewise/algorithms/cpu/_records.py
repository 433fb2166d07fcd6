"""What kernels of the CPU take as one argument: arrays and bounds that belong together."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wedgewise.machine.jit import helper, kernel_view
from wedgewise.stages import Ids, OrientedGraph


class Rows(NamedTuple):
    """Row v is ``heads[offsets[v]:offsets[v + 1]]``."""

    offsets: NDArray[Any]
    heads: Ids


class Stretch(NamedTuple):
    """A row, or part of one, within a kernel: ``heads[begin:end]``."""

    heads: Ids
    begin: np.uint64
    end: np.uint64


class Span(NamedTuple):
    """The rows from `begin` to `end` − 1 that are `share` modulo `shares`."""

    begin: int
    end: int
    share: int = 0
    shares: int = 1


def rows_of(graph: OrientedGraph) -> Rows:
    """The out-neighbours of every vertex."""
    return Rows(kernel_view(graph.offsets), kernel_view(graph.out_neighbours))


@helper
def row_at(rows, v):  # type: ignore[no-untyped-def]
    """The row of v."""
    return Stretch(rows.heads, np.uint64(rows.offsets[v]), np.uint64(rows.offsets[v + np.uint64(1)]))


@helper
def first_in(span):  # type: ignore[no-untyped-def]
    """The first row of a span."""
    begin, share, shares = np.uint64(span.begin), np.uint64(span.share), np.uint64(span.shares)
    return begin + (share + shares - begin % shares) % shares
