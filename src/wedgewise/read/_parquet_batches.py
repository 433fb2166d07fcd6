"""Parquet files → record batches that take a few mebibytes each, however large their row groups are.

Columns are read page by page, and what that takes is asked for before each row group. Numbers take 8 bytes per row.
Texts come as codes where all pages of the row group refer to a small dictionary; otherwise there are so few rows at a
time that their texts fit. `_parquet_pages` knows both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from wedgewise.errors import FormatError
from wedgewise.read._arrow_values import with_what_is_beside
from wedgewise.read._parquet_pages import (
    DAMAGED,
    Chunk,
    ColumnPages,
    RowGroup,
    longest_entry,
    look_at_pages,
    row_groups,
)
from wedgewise.stages.limits import Limits

BATCH_ROWS, BATCH_TEXT_BYTES = 1 << 16, 2 << 20
FEW_ENTRIES = 1 << 14  # of a dictionary, which Arrow copies for every batch
ASKED_ROWS = 4 * BATCH_ROWS  # by which what is kept of them grows by a few mebibytes
SMALL_BYTES = 4 << 20  # that are not asked for: they are given back before the next row group
ROW_BYTES = 96  # of the chosen columns and the pairs made of them
TEXT_COPIES = 4  # of the texts of a batch, at the same time
STREAM_BYTES = 1 << 20  # of a column that are read at a time
END_BYTES = 8  # of a file: the length of the footer, and a signature
FOOTER_BYTES = 400  # that a byte of a footer takes at most: a column chunk of three bytes becomes 700
LEAST_ITEM_BYTES, FEW_ITEMS = 8, 1000  # of the lists in a footer


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A column as Parquet numbers them; some are codes whether or not that was asked for."""

    number: int
    path: str
    is_text: bool
    is_coded: bool


class ParquetSource:
    """An open Parquet file.

    Attributes
    ----------
    schema, rows : of the file, as its footer says
    """

    def __init__(self, file: BinaryIO, name: str, limits: Limits) -> None:
        self._file, self._name, self._limits = file, name, limits
        self._footer_bytes = _footer_bytes(file)
        limits.check_memory(FOOTER_BYTES * self._footer_bytes, path=name)
        opened = self._open([])
        self._columns = opened.metadata.schema
        self.schema = opened.schema_arrow
        self.rows: int = opened.metadata.num_rows

    def _open(self, coded: list[str]) -> Any:
        """Arrow's reader, which gives some columns as codes."""
        from pyarrow import parquet

        return parquet.ParquetFile(
            self._file,
            pre_buffer=False,
            buffer_size=STREAM_BYTES,
            read_dictionary=coded,
            thrift_container_size_limit=self._footer_bytes // LEAST_ITEM_BYTES + FEW_ITEMS,
        )

    def batches(self, names: list[str]) -> Iterator[Any]:
        """Record batches of some columns."""
        leaves = self._leaves(names)
        texts = [leaf.path for leaf in leaves if leaf.is_text]
        plain, coded = self._open([]), self._open(texts)
        unasked = 0
        for number, group in enumerate(row_groups(self._footer(), self._name)):
            if not group.rows:
                continue
            chunks = [self._chunk(group, leaf) for leaf in leaves]
            columns = [self._pages(chunk, leaf) for chunk, leaf in zip(chunks, leaves, strict=True)]
            of_texts = [found for found in zip(leaves, chunks, columns, strict=True) if found[0].is_text]
            as_codes = all(pages.entries <= FEW_ENTRIES and not pages.is_plain for *_, pages in of_texts)
            held = sum(pages.held_bytes(as_codes or leaf.is_coded) for leaf, pages in zip(leaves, columns, strict=True))
            fixed = STREAM_BYTES * len(leaves) + with_what_is_beside(held)
            rows, passing = BATCH_ROWS, 0
            if not as_codes:
                self._ask_for(fixed)
                longest = max(self._longest_text(chunk, pages) for _, chunk, pages in of_texts)
                rows = max(1, min(BATCH_ROWS, int(BATCH_TEXT_BYTES / max(1, longest))))
                passing = TEXT_COPIES * BATCH_TEXT_BYTES * len(of_texts)
            passing += ROW_BYTES * min(rows, max(pages.values for pages in columns))
            self._ask_for(fixed + passing)
            reader = coded if as_codes else plain
            for batch in reader.iter_batches(rows, row_groups=[number], columns=names, use_threads=False):
                yield batch
                unasked += batch.num_rows
                if unasked >= ASKED_ROWS:
                    self._limits.check_memory(passing, path=self._name)
                    unasked = 0

    def _ask_for(self, more: int) -> None:
        if more > SMALL_BYTES:
            self._limits.check_memory(more, path=self._name)

    def _leaves(self, names: list[str]) -> list[_Leaf]:
        """What Arrow reads when it is asked for these columns: those called so, and what lies in columns called so."""
        from pyarrow import types

        prefixes = tuple(f"{name}." for name in names)
        columns = [(number, self._columns.column(number)) for number in range(len(self._columns))]
        coded = {field.name for field in self.schema if types.is_dictionary(field.type)}
        return [
            _Leaf(number, column.path, column.physical_type == "BYTE_ARRAY", column.path in coded)
            for number, column in columns
            if column.path in names or column.path.startswith(prefixes)
        ]

    def _footer(self) -> bytes:
        size = self._file.seek(0, 2)
        self._file.seek(max(0, size - END_BYTES - self._footer_bytes))
        return self._file.read(self._footer_bytes)

    def _chunk(self, group: RowGroup, leaf: _Leaf) -> Chunk:
        if leaf.number >= len(group.chunks):
            raise FormatError(f"a row group without the column {leaf.path!r}", path=self._name, remedy=DAMAGED)
        return group.chunks[leaf.number]

    def _pages(self, chunk: Chunk, leaf: _Leaf) -> ColumnPages:
        """What the pages of a column take in one row group."""
        return look_at_pages(self._file, chunk.begin, chunk.size, leaf.is_text, self._name)

    def _longest_text(self, chunk: Chunk, pages: ColumnPages) -> float:
        """The most bytes that rows of a column of texts have, each."""
        longest = max(pages.text_bytes_per_row, pages.longest_text)
        if not pages.is_coded or pages.dictionary is None:
            return longest
        return max(longest, longest_entry(self._file, pages.dictionary, chunk.codec))


def _footer_bytes(file: BinaryIO) -> int:
    """The length of the footer, which stands behind it; what is no Parquet file at all is for Arrow to say."""
    size = file.seek(0, 2)
    file.seek(max(0, size - END_BYTES))
    declared = int.from_bytes(file.read(END_BYTES)[:4], "little")
    return min(declared, size)
