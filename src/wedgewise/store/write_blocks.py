"""Ascending arcs → the files of all blocks, a row of blocks at a time, in pieces.

Arcs come by row part, then by row, then by head. Offsets of a row are written when arcs of a later one come, heads as
they come, so that nothing but a piece is held, however large a block is. Memory: `PIECE_BYTES` for each of
`PIECE_ARCS` arcs, and the buffers of two files for each block of the row.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple, SupportsInt

import numpy as np

from wedgewise.errors import InputError
from wedgewise.machine.files import sync_files
from wedgewise.machine.jit import helper, kernel
from wedgewise.stages import Ids, Keys
from wedgewise.stages.blocks import WIDE_ARCS
from wedgewise.stages.tasks import Pair
from wedgewise.store.manifest import BlockRecord
from wedgewise.store.orient import OrientedRuns
from wedgewise.store.sorted_runs import OnKeys
from wedgewise.store.writer import ArrayWriter, array_writer

PIECE_ARCS = 1 << 20
PIECE_OFFSETS = 1 << 20  # of all blocks of a row
PIECE_BYTES = 8
WEDGES, DEGREE = range(2)  # in the tally: of all rows, and of the row that arcs are still coming to


def write_blocks(
    folder: Path, oriented: OrientedRuns, available_bytes: int, threads: int, on_keys: OnKeys
) -> tuple[dict[Pair, BlockRecord], int]:
    """Write every block: what the manifest says of each, and how many wedges there are; the file of arcs is closed."""
    heaviest = int(oriented.counts.arcs.max(initial=0))
    if heaviest >= WIDE_ARCS:
        raise InputError(f"a block has {heaviest:,} arcs, and a store's have below {WIDE_ARCS:,}; ask for more parts")
    with ExitStack() as stack:
        writer = _Writer(folder, oriented, stack)
        oriented.arcs.merge(writer.add, on_keys, available_bytes, threads)
        writer.finish()
    sync_files(
        [folder / name for record in writer.records.values() for name in (record.offsets.file, record.heads.file)]
    )
    return writer.records, int(writer.tally[WEDGES])


class _Writer:
    """Opens the files of one row part after the other."""

    def __init__(self, folder: Path, oriented: OrientedRuns, stack: ExitStack) -> None:
        self.records: dict[Pair, BlockRecord] = {}
        self.tally = np.zeros(2, np.uint64)
        self._folder, self._oriented, self._stack = folder, oriented, stack
        self._row = self._opened(0)

    def add(self, keys: Keys) -> None:
        """Ascending arcs, beyond those before."""
        while len(keys):
            bound = np.uint64(int(self._oriented.cuts[self._row.part + 1]) << 32)
            cut = int(np.searchsorted(keys, bound))
            for begin in range(0, cut, PIECE_ARCS):
                self._row.add(keys[begin : min(begin + PIECE_ARCS, cut)])
            keys = keys[cut:]
            if len(keys):
                self._go_on()

    def finish(self) -> None:
        """Write the rows that have no arcs behind the last one."""
        while self._row.part < self._oriented.partition.parts - 1:
            self._go_on()
        self._close()

    def _opened(self, part: int) -> _BlockRow:
        self._files = self._stack.enter_context(ExitStack())
        return _BlockRow(self._folder, self._oriented, part, self.tally, self._files)

    def _go_on(self) -> None:
        self._close()
        self._row = self._opened(self._row.part + 1)

    def _close(self) -> None:
        self.records.update(self._row.finish())
        self._files.close()


class PieceBlocks(NamedTuple):
    """The blocks of a row part while a piece is cut, by column: arcs so far, positions in `heads`; and all wedges."""

    cuts: Keys
    arcs: Keys
    positions: Keys
    offsets: Ids
    heads: Ids
    tally: Keys


class _BlockRow:
    """The blocks of one row part while they are written."""

    def __init__(self, folder: Path, oriented: OrientedRuns, part: int, tally: Keys, files: ExitStack) -> None:
        partition, cuts, arcs = oriented.partition, oriented.cuts, oriented.counts.arcs
        self.part = part
        self._first_column = part if partition.is_ordered else 0
        self._sizes, self._first_id = partition.sizes, int(cuts[part])
        self._rows, self._rows_written = self._sizes[part], 0
        columns = range(self._first_column, partition.parts)
        self._rows_at_once = max(1, min(self._rows, PIECE_OFFSETS // len(columns)))
        self._blocks = PieceBlocks(
            cuts[self._first_column :].astype(np.uint64),
            np.zeros(len(columns), np.uint64),
            np.zeros(len(columns), np.uint64),
            np.empty(self._rows_at_once * len(columns), np.uint32),
            np.empty(min(PIECE_ARCS, int(arcs[part].sum())), np.uint32),
            tally,
        )

        def opened(column: int, kind: str, length: int) -> ArrayWriter:
            name = f"block-{part}-{column}.{kind}.npy"
            return files.enter_context(array_writer(folder, name, "<u4", length, to_disk=False))

        self._offsets = [opened(column, "offsets", self._rows + 1) for column in columns]
        self._heads = [opened(column, "heads", int(arcs[part, column])) for column in columns]
        for writer in self._offsets:
            writer.add(np.zeros(1, np.uint32))

    def add(self, keys: Keys) -> None:
        """Ascending arcs of this row part, at most `PIECE_ARCS`."""
        blocks = self._blocks
        in_column = np.zeros(len(self._heads), np.uint64)
        count_columns(keys, blocks.cuts, in_column)
        ends = np.cumsum(in_column)
        blocks.positions[:] = ends - in_column
        self._cut(keys, int(keys[-1] >> np.uint64(32)) - self._first_id)
        begin = 0
        for writer, end in zip(self._heads, ends.tolist(), strict=True):
            writer.add(blocks.heads[begin:end])
            begin = end

    def finish(self) -> dict[Pair, BlockRecord]:
        """Write the offsets of all rows; what the manifest says of the blocks."""
        self._cut(np.empty(0, np.uint64), self._rows)
        return {
            (self.part, column): BlockRecord(
                self.part, column, self._rows, self._sizes[column], heads.written, offsets.record(), heads.record()
            )
            for column, (offsets, heads) in enumerate(
                zip(self._offsets, self._heads, strict=True), start=self._first_column
            )
        }

    def _cut(self, keys: Keys, before: int) -> None:
        """Cut the arcs, and write the offsets of the rows up to `before`; arcs of that row may still come."""
        at, width = 0, self._rows_at_once
        while True:
            end = min(self._rows_written + width, before)
            at = int(cut_rows(keys, at, self._first_id + self._rows_written, self._first_id + end, self._blocks))
            rows = end - self._rows_written
            for column, writer in enumerate(self._offsets if rows else ()):
                writer.add(self._blocks.offsets[column * width : column * width + rows])
            self._rows_written = end
            if end == before:
                return


@helper
def column_of(head, column, cuts):  # type: ignore[no-untyped-def]
    """The column that a head is in, from another one on."""
    one = np.uint64(1)
    while head >= cuts[column + one]:
        column += one
    return column


@kernel
def count_columns(keys: Keys, cuts: Keys, counts: Keys) -> None:
    """Count ascending arcs by the column of their head."""
    half, column, before = np.uint64(32), np.uint64(0), np.uint64(0)
    for i in range(np.uint64(len(keys))):
        if keys[i] >> half != before:
            before, column = keys[i] >> half, np.uint64(0)
        column = column_of(keys[i] & np.uint64(0xFFFFFFFF), column, cuts)
        counts[column] += np.uint64(1)


@kernel
def cut_rows(keys: Keys, at: int, begin: int, end: int, blocks: PieceBlocks) -> SupportsInt:
    """Move the heads of rows [begin, end] to their columns, and write where rows end, the last one excepted.

    Returns the position behind their arcs, which begin at position `at`.
    """
    cuts, arcs, positions, offsets, heads, tally = blocks
    half, one = np.uint64(32), np.uint64(1)
    columns, position = np.uint64(len(arcs)), np.uint64(at)
    width = np.uint64(len(offsets)) // columns
    degree, wedges = tally[DEGREE], tally[WEDGES]
    for row in range(np.uint64(begin), np.uint64(end) + one):
        column = np.uint64(0)
        while position < np.uint64(len(keys)) and keys[position] >> half == row:
            head = keys[position] & np.uint64(0xFFFFFFFF)
            column = column_of(head, column, cuts)
            heads[positions[column]] = head - cuts[column]
            positions[column] += one
            arcs[column] += one
            degree += one
            position += one
        if row < np.uint64(end):
            wedges += degree * (degree - np.uint64(degree > 0)) >> one
            degree = np.uint64(0)
            for every in range(columns):
                offsets[every * width + row - np.uint64(begin)] = arcs[every]
    tally[DEGREE], tally[WEDGES] = degree, wedges
    return position


def load_write_kernels() -> None:
    """Load the kernels."""
    keys, ids = np.zeros(2, np.uint64), np.zeros(1, np.uint32)
    count_columns(keys[:0], keys, keys)
    cut_rows(keys[:0], 0, 0, 0, PieceBlocks(keys, keys[:1], keys[:1], ids, ids, keys))
