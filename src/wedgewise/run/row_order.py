"""What was computed by id or by arc → in the order of the vertices or of the edges, wherever it was computed.

    whole graph on the CPU    `by_vertex` and `by_edge`, in parts on all threads
    whole graph on a GPU      `on_device`, before it is brought back
    blocks of a store         part by part and block by block; edges are sorted by their keys
    triangles                 `ascending_vertices`

Rows of the edges of blocks come by row part and column part, and within a block by id. In each, the lower vertex is
first, as in ``Graph.edges``; the number of an edge there is the position of its key ``lower << 32 | higher`` among all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.machine.threads import run_chunks, run_tasks
from wedgewise.stages import DeviceGraph, Ids, Keys, OrientedGraph
from wedgewise.stages.blocks import Block, Partition
from wedgewise.stages.tasks import Pair
from wedgewise.store.manifest import pairs_of

if TYPE_CHECKING:
    from wedgewise.graph import Graph
    from wedgewise.machine.gpu import Array
    from wedgewise.prepare.device_forms import DeviceForms
    from wedgewise.run.task_memory import BlockSource

CHUNK = 1 << 18
PIECE_ROWS = 1 << 17
ARRAY_EDGE_BYTES = 24  # keys, their order and the values: three numbers at a time

Values = Callable[[Pair], NDArray[Any]]


def by_vertex(filled: NDArray[Any], oriented: OrientedGraph) -> NDArray[Any]:
    """What was computed by id, in the order of the vertices; counts as signed integers."""
    answer = np.empty(len(filled), np.float64 if filled.dtype == np.float64 else np.int64)
    answer[oriented.vertex_of] = filled
    return answer


def by_edge(
    filled: NDArray[Any], oriented: OrientedGraph, graph: Graph, threads: int, dtype: type = np.int64
) -> NDArray[Any]:
    """What was computed by arc, in the order of the edges; counts as signed integers."""
    answer: NDArray[Any] = np.empty(len(filled), dtype)
    positions = None if oriented.follows_edges else graph.arcs_of_edges(oriented, threads=threads)

    def fill(chunk: int, _worker: int) -> None:
        part = slice(chunk * CHUNK, (chunk + 1) * CHUNK)
        answer[part] = filled[part] if positions is None else filled[positions[part]]

    run_tasks(fill, -(-len(filled) // CHUNK), threads)
    return answer


def numbers_of_true(flags: NDArray[np.bool_], threads: int) -> NDArray[np.int64]:
    """What `numpy.flatnonzero` finds, by threads."""
    ends = np.cumsum([0, *run_chunks(lambda part: int(np.count_nonzero(flags[part])), len(flags), CHUNK, threads)])
    numbers = np.empty(int(ends[-1]), np.int64)

    def write(chunk: int, _worker: int) -> None:
        begin = chunk * CHUNK
        np.add(np.flatnonzero(flags[begin : begin + CHUNK]), begin, out=numbers[ends[chunk] : ends[chunk + 1]])

    run_tasks(write, len(ends) - 1, threads)
    return numbers


def on_device(filled: Array, graph: DeviceGraph, forms: DeviceForms, *, is_by_vertex: bool) -> Array:
    """What a GPU computed by id or by arc, in the order of the vertices or edges, still there."""
    if not is_by_vertex:
        return filled if graph.follows_edges else filled[forms.positions(graph)]
    ordered = forms.device.xp.empty_like(filled)
    ordered[graph.vertex_of] = filled
    return ordered


def ascending_vertices(triples: Array, vertex_of: Array, xp: Any) -> Array:
    """Ids of triangles turned into vertices, ascending in each row."""
    u, v, w = (vertex_of[triples[:, column]] for column in range(3))
    low, high = xp.minimum(u, v), xp.maximum(u, v)
    return xp.stack([xp.minimum(low, w), xp.maximum(low, xp.minimum(high, w)), xp.maximum(high, w)], axis=1)


def vertices_of_parts(
    partition: Partition, vertex_of: Ids, values: Callable[[int], NDArray[Any]], dtype: type
) -> NDArray[Any]:
    """The values of all parts in the order of the vertices; ``values(part)`` are those of a part's ids."""
    answer: NDArray[Any] = np.empty(len(vertex_of), dtype)
    for part in range(partition.parts):
        answer[vertex_of[partition.ids(part)]] = values(part)
    return answer


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
    keys = np.empty(int(source.counts.arcs.sum()), np.uint64)
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


def degrees_of(source: BlockSource, vertex_of: Ids) -> Ids:
    """The degree of every vertex."""
    partition, arcs = source.partition, source.counts.arcs
    of_parts = [np.zeros(size, np.uint32) for size in partition.sizes]
    for i, j in pairs_of(partition):
        if arcs[i, j]:
            block = source.block(i, j)
            of_parts[i] += np.diff(block.offsets).astype(np.uint32, copy=False)
            for begin in range(0, block.m, PIECE_ROWS):
                heads = block.heads[begin : begin + PIECE_ROWS]
                of_parts[j] += np.bincount(heads, minlength=block.columns).astype(np.uint32)
    return vertices_of_parts(partition, vertex_of, of_parts.__getitem__, np.uint32)


def _sorted_keys(source: BlockSource, vertex_of: Ids) -> Keys:
    keys, at = np.empty(int(source.counts.arcs.sum()), np.uint64), 0
    for _, _, lower, higher in edge_pieces(source, vertex_of):
        keys[at : at + len(lower)] = _keys(lower, higher)
        at += len(lower)
    keys.sort()
    return keys


def _keys(lower: Ids, higher: Ids) -> Keys:
    return lower.astype(np.uint64) << np.uint64(32) | higher


def _tails(block: Block, piece: slice) -> NDArray[np.int64]:
    """The row of every arc of a piece."""
    ends = np.array([piece.start, piece.stop - 1], block.offsets.dtype)
    first, last = (np.searchsorted(block.offsets, ends, side="right") - 1).tolist()
    bounds = np.clip(block.offsets[first : last + 2], piece.start, piece.stop)
    return np.repeat(np.arange(first, last + 1), np.diff(bounds))
