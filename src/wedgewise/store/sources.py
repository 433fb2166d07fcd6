"""Whatever holds pairs → pieces of bounded size, read once: files as their readers give them, all others in slices."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from wedgewise.generate.stream import EdgeStream
from wedgewise.read import Request, check_names, open_pairs
from wedgewise.read.columns import ANY_COLUMNS, ColumnChoice
from wedgewise.read.pieces import PairPieces, Piece
from wedgewise.stages import EdgeList, Origin
from wedgewise.stages.limits import Limits

if TYPE_CHECKING:
    from wedgewise.graph import Graph

PIECE_PAIRS = 1 << 17


@dataclass(frozen=True, slots=True)
class How:
    """How a source is read."""

    labels: str
    format: str | None
    limits: Limits
    threads: int
    columns: ColumnChoice = ANY_COLUMNS

    @property
    def request(self) -> Request:
        """The same, for a reader."""
        check_names(self.format, self.labels)
        return Request(self.labels, self.columns, self.limits, self.threads)


@contextmanager
def open_pieces(source: Any, how: How) -> Iterator[PairPieces]:
    """The pairs of a path, a stream, a generator, a `Graph`, or whatever else that accepts."""
    if isinstance(source, EdgeStream):
        blocks = source.blocks(threads=how.threads)
        yield PairPieces(Origin(source.name, "generator"), blocks, source.pairs_count)
    elif isinstance(source, (str, os.PathLike)) or hasattr(source, "read"):
        with open_pairs(source, how.format, how.request) as (_, pieces):
            yield pieces
    else:
        from wedgewise.graph import Graph
        from wedgewise.read.objects import edges_from

        if isinstance(source, Graph):
            yield _edges_of(source)
        else:
            yield _sliced(edges_from(source, columns=how.columns, labels=how.labels))


def _sliced(edge_list: EdgeList) -> PairPieces:
    pairs = edge_list.pairs
    slices = (pairs[at : at + PIECE_PAIRS].copy() for at in range(0, len(pairs), PIECE_PAIRS))  # others may write there
    return PairPieces(
        edge_list.origin,
        slices,
        len(pairs),
        vertices=edge_list.vertices,
        names=edge_list.names,
        columns=edge_list.columns,
        ignored_columns=edge_list.ignored_columns,
    )


def _edges_of(graph: Graph) -> PairPieces:
    """The edges of a graph by the numbers of its vertices; what these are called stays with it."""
    return PairPieces(graph.origin, numbered_edges(graph), graph.m, vertices=graph.n)


def numbered_edges(graph: Graph) -> Iterator[Piece]:
    """The edges of a graph as pairs of vertices, in ascending order; which end comes first is left open."""
    simple = graph.simple
    pairs = simple.slot_pairs
    pieces = (pairs[at : at + PIECE_PAIRS] for at in range(0, len(pairs), PIECE_PAIRS))
    if simple.slots is None:
        return pieces
    vertex_of = simple.by_slot(np.arange(simple.n, dtype=np.uint32))
    return (vertex_of[piece] for piece in pieces)


def expected_pairs(path: str | os.PathLike[str], how: How) -> int | None:
    """How many pairs a file has, about, by its size and its beginning; None where they do not tell."""
    with open_pairs(path, how.format, how.request) as (_, pieces):
        return pieces.expected_pairs
