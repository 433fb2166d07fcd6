"""OrientedGraph and Partition → Blocks: two sweeps over the arcs, in parallel, one part of the rows after the other.

The first sweep counts the arcs from each chunk of rows to each part, which says where every chunk's share of every
block begins; the second writes heads and offsets there. Rows ascend, and numbers within a part ascend with ids, so that
nothing is sorted.

The blocks of part i lie one behind the other in an array of heads and an array of offsets (block CSR), so that a part's
rows can be built, stored and given back before the next part's: see `row_blocks`.

Memory: the blocks themselves, `blocks_bytes` at most, and about 500 bytes of Python objects each. While part i is
built, also 8 bytes per row of that part, and 24 per part for every chunk of `CHUNK_ARCS` arcs or `CHUNK_ROWS` rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import InputError
from wedgewise.machine.jit import kernel, kernel_view
from wedgewise.machine.threads import run_tasks
from wedgewise.stages import Ids, Keys, OrientedGraph
from wedgewise.stages.blocks import WIDE_ARCS, Block, Blocks, Partition, Rectilinear

CHUNK_ARCS = 1 << 18
CHUNK_ROWS = 1 << 16


def blocks_of(graph: OrientedGraph, partition: Partition, *, threads: int = 1) -> Blocks:
    """All blocks of a graph, in memory.

    Parameters
    ----------
    graph : with ids that are ranks, where the partition is ordered
    partition : a division of the graph's ids
    threads : how many threads read and write
    """
    blocks = {}
    for part in range(partition.parts):
        blocks.update(row_blocks(graph, partition, part, threads=threads))
    return Blocks(partition, blocks, graph.n, graph.m)


def row_blocks(
    graph: OrientedGraph, partition: Partition, part: int, *, threads: int = 1
) -> dict[tuple[int, int], Block]:
    """The blocks with the rows of one part, by pairs of parts."""
    _check(graph, partition)
    rows, bounds = _rows_of(graph, partition, part)
    counts = np.zeros((len(bounds) - 1, partition.parts), np.uint64)

    def count(chunk: int, _worker: int) -> None:
        count_parts(rows, bounds[chunk], bounds[chunk + 1], counts[chunk])

    run_tasks(count, len(counts), threads)
    arcs = counts.sum(axis=0, dtype=np.int64)
    ends = np.cumsum(arcs)
    positions = np.cumsum(counts, axis=0) - counts  # within each block
    first_column = part if partition.is_ordered else 0
    columns = partition.parts - first_column
    wide = int(arcs.max()) >= WIDE_ARCS
    offsets = np.empty((columns, bounds[-1] + 1), np.uint64 if wide else np.uint32)
    offsets[:, 0] = 0
    heads = np.empty(int(ends[-1]), np.uint32)
    begins = (ends - arcs).astype(np.uint64)
    blocks = PartBlocks(begins, first_column, kernel_view(offsets), heads)

    def fill(chunk: int, _worker: int) -> None:
        fill_rows(rows, bounds[chunk], bounds[chunk + 1], positions[chunk], blocks)

    run_tasks(fill, len(counts), threads)
    return {
        (part, column): Block(offsets[number], heads[begins[column] : ends[column]], size)
        for number, (column, size) in enumerate(list(enumerate(partition.sizes))[first_column:])
    }


def blocks_bytes(partition: Partition, m: int) -> int:
    """What all blocks of a graph with m arcs take: each arc once, each row once for every part that it may reach."""
    parts = partition.parts
    reached = range(parts, 0, -1) if partition.is_ordered else [parts] * parts
    rows = sum(columns * (size + 1) for columns, size in zip(reached, partition.sizes, strict=True))
    return 4 * m + (4 if m < WIDE_ARCS else 8) * rows


def _check(graph: OrientedGraph, partition: Partition) -> None:
    if partition.n != graph.n:
        raise InputError(f"the partition divides {partition.n:,} ids and the graph has {graph.n:,}; partition it again")
    if partition.is_ordered and graph.named_by != "rank":
        raise InputError(f"ids follow {graph.named_by!r}, not the order; partition the graph before relabelling it")


class PartRows(NamedTuple):
    """The rows of one part: row r is that of id ``first + r · step``; the parts of heads follow `cuts`, or `step`."""

    offsets: NDArray[Any]
    out_neighbours: Ids
    first: int
    step: int
    cuts: Keys


class PartBlocks(NamedTuple):
    """The blocks of a part's rows, from a column on, one behind the other; each begins at its entry of `begins`."""

    begins: Keys
    first_column: int
    offsets: NDArray[Any]
    heads: Ids


def _rows_of(graph: OrientedGraph, partition: Partition, part: int) -> tuple[PartRows, list[int]]:
    """The rows of one part, and the bounds of chunks of bounded work."""
    count = partition.sizes[part]
    if isinstance(partition, Rectilinear):
        first, step, cuts = int(partition.cuts[part]), 1, partition.cuts.astype(np.uint64)
    else:
        first, step, cuts = part, partition.parts, np.empty(0, np.uint64)
    starts = graph.offsets[first : first + count * step : step].astype(np.uint64)
    rows = PartRows(kernel_view(graph.offsets), kernel_view(graph.out_neighbours), first, step, cuts)
    return rows, _chunk_bounds(starts, CHUNK_ARCS * step)


def _chunk_bounds(starts: Keys, arcs: int) -> list[int]:
    """Bounds of chunks of rows, cut where so many arcs have gone by and at every `CHUNK_ROWS` rows."""
    if len(starts) == 0:
        return [0, 0]
    by_rows = np.arange(0, len(starts), CHUNK_ROWS)
    by_arcs = np.searchsorted(starts, np.arange(int(starts[0]), int(starts[-1]), arcs).astype(np.uint64))
    bounds: list[int] = np.unique(np.concatenate([by_rows, by_arcs, [len(starts)]])).tolist()
    return bounds


@kernel
def count_parts(rows: PartRows, begin: int, end: int, counts: Keys) -> None:
    """Count the arcs from rows [begin, end) by the part of their head: that of the cuts, or modulo `step`."""
    offsets, neighbours, first, step, cuts = rows
    one, stride, ordered = np.uint64(1), np.uint64(step), len(cuts) > 0
    for row in range(np.uint64(begin), np.uint64(end)):
        tail = np.uint64(first) + row * stride
        part = np.uint64(0)
        for arc in range(np.uint64(offsets[tail]), np.uint64(offsets[tail + one])):
            head = np.uint64(neighbours[arc])
            if ordered:
                while head >= cuts[part + one]:
                    part += one
            else:
                part = head % stride
            counts[part] += one


@kernel
def fill_rows(rows: PartRows, begin: int, end: int, positions: Keys, blocks: PartBlocks) -> None:
    """Write the arcs from rows [begin, end) and where each row ends in every block.

    ``positions[part]`` counts the arcs that lie before in the block of that part.
    """
    offsets, neighbours, first, step, cuts = rows
    one, stride, ordered = np.uint64(1), np.uint64(step), len(cuts) > 0
    parts, skipped = np.uint64(len(blocks.begins)), np.uint64(blocks.first_column)
    width = np.uint64(len(blocks.offsets)) // (parts - skipped)  # an offset more than rows, for each block
    for row in range(np.uint64(begin), np.uint64(end)):
        tail = np.uint64(first) + row * stride
        part = np.uint64(0)
        for arc in range(np.uint64(offsets[tail]), np.uint64(offsets[tail + one])):
            head = np.uint64(neighbours[arc])
            if ordered:
                while head >= cuts[part + one]:
                    part += one
                local = head - cuts[part]
            else:
                local = head // stride
                part = head - local * stride
            blocks.heads[blocks.begins[part] + positions[part]] = local
            positions[part] += one
        for column in range(skipped, parts):
            blocks.offsets[(column - skipped) * width + row + one] = positions[column]
