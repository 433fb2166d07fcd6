"""Blocks → edges: the arcs of a store as rows of two vertices, a piece of a block at a time.

Rows come block by block, by row part and column part, and within a block by id. In each, the lower vertex is first, as
in ``Graph.edges``; the number of an edge there is the position of its key ``lower << 32 | higher`` among all keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.run.memory import BlockSource
from wedgewise.stages import Ids, Keys
from wedgewise.stages.blocks import Block
from wedgewise.store.manifest import Pair, pairs_of

PIECE_ROWS = 1 << 17
PIECE_BYTES = 64 * PIECE_ROWS  # an edge's numbers, ids and vertices, its key, and a row that is made of it
ARRAY_EDGE_BYTES = 24  # keys, their order and the values: three numbers at a time

Values = Callable[[Pair], NDArray[Any]]


def edge_pieces(source: BlockSource, vertex_of: Ids) -> Iterator[tuple[Pair, slice, Ids, Ids]]:
    """Every edge once: its block, its position there, its lower and higher vertex, at most `PIECE_ROWS` at a time."""
    arcs = source.counts.arcs
    for pair in pairs_of(source.partition):
        if not arcs[pair]:
            continue
        rows, columns = (vertex_of[source.partition.ids(part)] for part in pair)
        block = source.block(*pair)
        for begin in range(0, block.m, PIECE_ROWS):
            piece = slice(begin, min(block.m, begin + PIECE_ROWS))
            tails, heads = rows[_tails(block, piece)], columns[block.heads[piece]]
            yield pair, piece, np.minimum(tails, heads), np.maximum(tails, heads)


def value_pieces(source: BlockSource, vertex_of: Ids, values: Values) -> Iterator[tuple[Ids, Ids, NDArray[np.int64]]]:
    """Every edge once, with its value; ``values(pair)`` are those of a block's arcs."""
    last, of_block = None, np.empty(0, np.int64)
    for pair, piece, lower, higher in edge_pieces(source, vertex_of):
        if pair != last:
            last, of_block = pair, values(pair)
        yield lower, higher, of_block[piece].astype(np.int64)


def values_by_edge(source: BlockSource, vertex_of: Ids, values: Values) -> NDArray[np.int64]:
    """The values of all edges in the order of ``Graph.edges``; `ARRAY_EDGE_BYTES` per edge at its peak."""
    keys = np.empty(_arcs(source), np.uint64)
    found = np.empty(len(keys), np.uint32)
    at = 0
    for lower, higher, piece in value_pieces(source, vertex_of, values):
        keys[at : at + len(piece)] = _keys(lower, higher)
        found[at : at + len(piece)] = piece
        at += len(piece)
    order = np.argsort(keys)
    del keys
    return found[order].astype(np.int64)


def edge_numbers(source: BlockSource, all_edges: BlockSource, vertex_of: Ids) -> NDArray[np.int64]:
    """Which of ``Graph.edges`` the edges of a source are, ascending; `ARRAY_EDGE_BYTES` per edge of all at its peak."""
    everywhere = _sorted_keys(all_edges, vertex_of)
    return np.searchsorted(everywhere, _sorted_keys(source, vertex_of))


def all_edges(source: BlockSource, vertex_of: Ids) -> NDArray[np.uint32]:
    """The rows of ``Graph.edges``; 16 bytes per edge at its peak."""
    keys = _sorted_keys(source, vertex_of)
    edges = np.empty((len(keys), 2), np.uint32)
    for begin in range(0, len(keys), PIECE_ROWS):
        piece = slice(begin, begin + PIECE_ROWS)
        edges[piece, 0] = keys[piece] >> np.uint64(32)
        edges[piece, 1] = keys[piece]  # keeps the low half of each key
    return edges


def vertices_with_edges(source: BlockSource) -> int:
    """How many ids of a source have an arc."""
    partition = source.partition
    arcs, marks = source.counts.arcs, [np.zeros(size, np.bool_) for size in partition.sizes]
    for i, j in pairs_of(partition):
        if arcs[i, j]:
            block = source.block(i, j)
            marks[i] |= block.offsets[1:] > block.offsets[:-1]
            marks[j][block.heads] = True
    return sum(int(np.count_nonzero(part)) for part in marks)


def _sorted_keys(source: BlockSource, vertex_of: Ids) -> Keys:
    keys, at = np.empty(_arcs(source), np.uint64), 0
    for _, _, lower, higher in edge_pieces(source, vertex_of):
        keys[at : at + len(lower)] = _keys(lower, higher)
        at += len(lower)
    keys.sort()
    return keys


def _keys(lower: Ids, higher: Ids) -> Keys:
    return lower.astype(np.uint64) << np.uint64(32) | higher


def _arcs(source: BlockSource) -> int:
    return int(source.counts.arcs.sum())


def _tails(block: Block, piece: slice) -> NDArray[np.int64]:
    """The row of every arc of a piece."""
    ends = np.array([piece.start, piece.stop - 1], block.offsets.dtype)
    first, last = (np.searchsorted(block.offsets, ends, side="right") - 1).tolist()
    bounds = np.clip(block.offsets[first : last + 2], piece.start, piece.stop)
    return np.repeat(np.arange(first, last + 1), np.diff(bounds))
