"""Ascending arcs → the files of all blocks, a row of blocks at a time, in pieces.

Arcs come by row part, then by row, then by head. Offsets of a row are written when arcs of a later one come, heads as
they come, so that nothing but a piece is held, however large a block is. Memory: about `PIECE_BYTES` for each of
`PIECE_ARCS` arcs or `PIECE_ROWS` rows, and the buffers of two files for each block of the row.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import InputError
from wedgewise.stages import Keys
from wedgewise.stages.blocks import WIDE_ARCS
from wedgewise.store.manifest import BlockRecord, Pair
from wedgewise.store.orient import OrientedRuns
from wedgewise.store.sort_and_deduplicate import OnKeys
from wedgewise.store.writer import array_writer

PIECE_ARCS = 1 << 18
PIECE_ROWS = 1 << 18
PIECE_BYTES = 48
HALF, LOW_HALF = np.uint64(32), np.uint64(0xFFFFFFFF)


def write_blocks(
    folder: Path, oriented: OrientedRuns, available_bytes: int, on_keys: OnKeys
) -> dict[Pair, BlockRecord]:
    """Write every block; the file of the arcs is closed."""
    heaviest = int(oriented.counts.arcs.max(initial=0))
    if heaviest >= WIDE_ARCS:
        raise InputError(f"a block has {heaviest:,} arcs, and a store's have below {WIDE_ARCS:,}; ask for more parts")
    ascending = _Ascending(oriented.arcs.merged(available_bytes))
    records: dict[Pair, BlockRecord] = {}
    for part in range(oriented.partition.parts):
        with ExitStack() as stack:
            row = _BlockRow(folder, oriented, part, stack)
            for keys in ascending.below(int(oriented.cuts[part + 1]) << 32):
                row.add(keys)
                on_keys(len(keys))
            records.update(row.finish())
    oriented.arcs.close()
    return records


class _Ascending:
    """Arrays of ascending keys, to be taken up to one bound after the other."""

    def __init__(self, arrays: Iterator[Keys]) -> None:
        self._arrays = arrays
        self._rest: Keys = np.empty(0, np.uint64)

    def below(self, bound: int) -> Iterator[Keys]:
        """All that is left below the bound, in pieces."""
        while True:
            cut = int(np.searchsorted(self._rest, np.uint64(bound)))
            for begin in range(0, cut, PIECE_ARCS):
                yield self._rest[begin : min(begin + PIECE_ARCS, cut)]
            self._rest = self._rest[cut:]
            if len(self._rest):
                return
            following = next(self._arrays, None)
            if following is None:
                return
            self._rest = following


class _BlockRow:
    """The blocks of one row part while they are written."""

    def __init__(self, folder: Path, oriented: OrientedRuns, part: int, stack: ExitStack) -> None:
        partition, cuts = oriented.partition, oriented.cuts
        self._part = part
        self._first_column = part if partition.is_ordered else 0
        self._first_id, self._rows = int(cuts[part]), partition.sizes[part]
        self._cuts = cuts.astype(np.uint64)
        self._sizes = partition.sizes
        self._rows_written = 0  # rows whose offsets are written
        self._offsets, self._heads = {}, {}
        for column in range(self._first_column, partition.parts):
            name = f"block-{part}-{column}"
            arcs = int(oriented.counts.arcs[part, column])
            self._offsets[column] = stack.enter_context(
                array_writer(folder, f"{name}.offsets.npy", "<u4", self._rows + 1)
            )
            self._heads[column] = stack.enter_context(array_writer(folder, f"{name}.heads.npy", "<u4", arcs))
            self._offsets[column].add(np.zeros(1, np.uint32))

    def add(self, keys: Keys) -> None:
        """Ascending arcs of this row part."""
        rows = (keys >> HALF) - np.uint64(self._first_id)
        heads = keys & LOW_HALF
        columns = (np.searchsorted(self._cuts, heads, side="right") - 1).astype(np.uint16)
        order = np.argsort(columns, kind="stable")
        bounds = np.searchsorted(columns[order], np.arange(len(self._sizes) + 1))
        rows_of = {column: rows[order[bounds[column] : bounds[column + 1]]].astype(np.int64) for column in self._heads}
        self._write_offsets(int(rows[-1]), rows_of)
        for column, writer in self._heads.items():
            writer.add(heads[order[bounds[column] : bounds[column + 1]]] - self._cuts[column])

    def finish(self) -> dict[Pair, BlockRecord]:
        """Write the offsets of all rows; what the manifest says of the blocks."""
        nothing = np.empty(0, np.int64)
        self._write_offsets(self._rows, dict.fromkeys(self._heads, nothing))
        return {
            (self._part, column): BlockRecord(
                self._part,
                column,
                self._rows,
                self._sizes[column],
                heads.written,
                self._offsets[column].record(),
                heads.record(),
            )
            for column, heads in self._heads.items()
        }

    def _write_offsets(self, before: int, rows_of: dict[int, NDArray[np.int64]]) -> None:
        """Write the offsets of the rows up to `before`, given the rows of arcs whose heads are written next."""
        for begin in range(self._rows_written, before, PIECE_ROWS):
            end = min(begin + PIECE_ROWS, before)
            for column, rows in rows_of.items():
                first, last = np.searchsorted(rows, (begin, end))
                counts = np.bincount(rows[first:last] - begin, minlength=end - begin)
                self._offsets[column].add(self._heads[column].written + int(first) + np.cumsum(counts))
        self._rows_written = max(self._rows_written, before)
