"""Parquet files → record batches that take a few mebibytes each, however large their row groups are.

Columns are read page by page, and what that takes is asked for before each row group. Numbers take 8 bytes per row.
Texts come as codes where all pages of the row group refer to a small dictionary; otherwise there are so few rows at a
time that their texts fit.

What reading a column takes is known by the headers of its pages, before any page is decoded. The footer of a file says
where its columns lie and how large they are, and nothing checks that. The header of a page says how large that page is
when it is decompressed, and Arrow takes no more. Both are Thrift structs in the compact protocol: fields of one byte
for the type and the distance to the field before, then the value. Arrow has read the footer too, but ends the process
when it is asked about a column whose facts contradict each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from wedgewise.errors import FormatError
from wedgewise.read._arrow_messages import DAMAGED
from wedgewise.read._arrow_values import with_what_is_beside
from wedgewise.stages.limits import Limits

ThriftFields = dict[int, Any]

BATCH_ROWS, BATCH_TEXT_BYTES = 1 << 16, 2 << 20
FEW_ENTRIES = 1 << 14  # of a dictionary, which Arrow copies for every batch
ASKED_ROWS = 4 * BATCH_ROWS  # by which what is kept of them grows by a few mebibytes
SMALL_BYTES = 4 << 20  # that are not asked for: they are given back before the next row group
ROW_BYTES = 96  # of the chosen columns and the pairs made of them
TEXT_COPIES = 4  # of the texts of a batch, at the same time
STREAM_BYTES = 1 << 20  # of a column that are read at a time
END_BYTES = 8  # of a file: the length of the footer, and a signature
FOOTER_BYTES = 400  # that a byte of a footer takes at most: a column chunk of three bytes becomes 700
MIN_ITEM_BYTES, FEW_ITEMS = 8, 1000  # of the lists in a footer

DATA_PAGE, DICTIONARY_PAGE, DATA_PAGE_V2 = 0, 2, 3
CODED = (2, 8)  # PLAIN_DICTIONARY, RLE_DICTIONARY
DELTA_LENGTHS, DELTA_TEXTS = 6, 7
FIRST_HEADER_BYTES, MAX_HEADER_BYTES = 256, 16 << 20
SLACK_BYTES = 100  # that old writers forgot to count
DEEPEST = 32
MIN_ENTRY_BYTES = 4  # of a dictionary, in its page
ENTRY_BYTES, CODED_ENTRY_BYTES = 16, 256  # of a dictionary beside its page; of one whose codes are given as they are
COPIES, CODED_COPIES = 2, 6  # of its page, likewise, batch after batch
LENGTH_BYTES = 8  # of a text whose length is stored apart, for all texts of a page at once

TRUE, FALSE, BYTE, INT32, INT64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = 1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12
CODECS = {0: "", 1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd", 7: "lz4_raw"}


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
            thrift_container_size_limit=self._footer_bytes // MIN_ITEM_BYTES + FEW_ITEMS,
        )

    def batches(self, names: list[str]) -> Iterator[Any]:
        """Record batches of some columns."""
        leaves = self._leaves(names)
        texts = [leaf.path for leaf in leaves if leaf.is_text]
        plain, coded = self._open([]), self._open(texts)
        unasked = 0
        for number, (group_rows, all_chunks) in enumerate(row_groups(self._footer(), self._name)):
            if not group_rows:
                continue
            for leaf in leaves:
                if leaf.number >= len(all_chunks):
                    raise FormatError(f"a row group without the column {leaf.path!r}", path=self._name, remedy=DAMAGED)
            chunks = [all_chunks[leaf.number] for leaf in leaves]
            columns = [
                look_at_pages(self._file, chunk.begin, chunk.size, leaf.is_text, self._name)
                for chunk, leaf in zip(chunks, leaves, strict=True)
            ]
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


@dataclass(frozen=True, slots=True)
class Chunk:
    """A column in one row group: where its pages lie, and how they are compressed, None where nobody knows."""

    begin: int
    size: int
    codec: str | None


@dataclass(frozen=True, slots=True)
class Page:
    """One page: what it is, where its data lies, its bytes, the values that it declares and how they are encoded."""

    kind: int
    data: int
    compressed: int
    plain: int
    values: int
    encoding: int


@dataclass(slots=True)
class ColumnPages:
    """The pages of a column in one row group.

    Attributes
    ----------
    values : of all pages, nulls included
    page_bytes : that Arrow holds of a page at most
    dictionary : the page of it, where there is one
    text_bytes_per_row : of pages that hold texts one by one: what one page has for each of its rows
    longest_text : of pages in which a text can repeat the one before: no text is longer than such a page
    is_coded, is_plain : whether any page and any other page refers to the dictionary
    """

    values: int = 0
    page_bytes: int = 0
    dictionary: Page | None = None
    text_bytes_per_row: float = 0.0
    longest_text: int = 0
    is_coded: bool = False
    is_plain: bool = False

    @property
    def entries(self) -> int:
        """Of the dictionary, at most."""
        page = self.dictionary
        return 0 if page is None else min(page.values, page.plain // MIN_ENTRY_BYTES + 1)

    def held_bytes(self, as_codes: bool) -> int:
        """What Arrow holds of the column at most: one page and the dictionary."""
        copies, entry_bytes = (CODED_COPIES, CODED_ENTRY_BYTES) if as_codes else (COPIES, ENTRY_BYTES)
        dictionary = 0 if self.dictionary is None else self.dictionary.compressed + self.dictionary.plain
        return self.page_bytes + copies * dictionary + entry_bytes * self.entries


def row_groups(footer: bytes, name: str) -> list[tuple[int, list[Chunk]]]:
    """The row groups that a footer lists: how many rows each has, and its columns."""
    try:
        groups = _struct(footer, 0, 0)[0][4]
        return [(group[3], [_chunk(column[3]) for column in group[1]]) for group in groups]
    except (IndexError, KeyError, TypeError, ValueError):
        raise FormatError("its footer does not list its columns", path=name, remedy=DAMAGED) from None


def _chunk(facts: ThriftFields) -> Chunk:
    return Chunk(min(facts[9], facts.get(11) or facts[9]), facts[7], CODECS.get(facts[4]))


def look_at_pages(file: BinaryIO, begin: int, size: int, is_text: bool, name: str) -> ColumnPages:
    """Read the headers of all pages from `begin` on."""
    found = ColumnPages()
    for page in _pages(file, begin, begin + size, name):
        if page.kind == DICTIONARY_PAGE:
            if found.dictionary is not None:
                raise _damaged(name, page.data)
            found.dictionary = page
        elif page.kind in (DATA_PAGE, DATA_PAGE_V2):
            _add_data_page(found, page, is_text)
    return found


def longest_entry(file: BinaryIO, page: Page, codec: str | None) -> int:
    """The bytes of the longest text of a dictionary; as many as the page has, where that cannot be told."""
    import pyarrow

    if codec is None:
        return page.plain
    file.seek(page.data)
    text = file.read(page.compressed)
    if codec:
        try:
            text = pyarrow.Codec(codec).decompress(text, page.plain, asbytes=True)
        except (pyarrow.ArrowException, OSError, ValueError):  # Arrow will say what is wrong, if anything is
            return page.plain
    longest = at = 0
    while at + MIN_ENTRY_BYTES <= len(text):
        length = int.from_bytes(text[at : at + MIN_ENTRY_BYTES], "little")
        longest = max(longest, length)
        at += MIN_ENTRY_BYTES + length
    return min(longest, page.plain)


def _add_data_page(found: ColumnPages, page: Page, is_text: bool) -> None:
    held = page.compressed + page.plain
    found.values += page.values
    if page.encoding in CODED:
        found.is_coded = True
    else:
        found.is_plain = True
        if is_text:
            found.text_bytes_per_row = max(found.text_bytes_per_row, page.plain / max(1, page.values))
            held += 2 * page.plain  # a batch may begin and end within a page
    if page.encoding in (DELTA_LENGTHS, DELTA_TEXTS):
        held += LENGTH_BYTES * page.values
    if page.encoding == DELTA_TEXTS:
        found.longest_text = max(found.longest_text, page.plain)
    found.page_bytes = max(found.page_bytes, held)


def _pages(file: BinaryIO, begin: int, end: int, name: str) -> Iterator[Page]:
    while begin < end:
        fields, length = _header(file, begin, name)
        kind, plain, compressed = (fields.get(number) for number in (1, 2, 3))
        if not isinstance(kind, int) or not isinstance(plain, int) or not isinstance(compressed, int):
            raise _damaged(name, begin)
        if plain < 0 or compressed < 0 or begin + length + compressed > end + SLACK_BYTES:
            raise _damaged(name, begin)
        values, encoding = _values_of(fields, kind)
        if values < 0:
            raise _damaged(name, begin)
        yield Page(kind, begin + length, compressed, plain, values, encoding)
        begin += length + compressed


def _values_of(fields: ThriftFields, kind: int) -> tuple[int, int]:
    """How many values a page declares, and their encoding: fields of the header that its kind has within its own."""
    inner = fields.get({DATA_PAGE: 5, DICTIONARY_PAGE: 7, DATA_PAGE_V2: 8}.get(kind, 0))
    if not isinstance(inner, dict):
        return 0, -1
    values, encoding = inner.get(1), inner.get(4 if kind == DATA_PAGE_V2 else 2)
    return (values if isinstance(values, int) else 0), (encoding if isinstance(encoding, int) else -1)


def _header(file: BinaryIO, begin: int, name: str) -> tuple[ThriftFields, int]:
    """The fields of the header at a position, and its length: a longer part is read until it is complete."""
    size = FIRST_HEADER_BYTES
    while True:
        file.seek(begin)
        text = file.read(size)
        try:
            return _struct(text, 0, 0)
        except IndexError:
            if size >= MAX_HEADER_BYTES or len(text) < size:
                raise _damaged(name, begin) from None
            size *= 16
        except ValueError:
            raise _damaged(name, begin) from None


def _damaged(name: str, begin: int) -> FormatError:
    return FormatError(f"no page of a column at byte {begin:,}", path=name, remedy=DAMAGED)


def _struct(text: bytes, at: int, depth: int) -> tuple[ThriftFields, int]:
    """The integers, the structs and the lists of structs in a struct, by their fields' numbers; where it ends."""
    if depth > DEEPEST:
        raise ValueError
    fields: ThriftFields = {}
    number = 0
    while text[at]:
        kind, step = text[at] & 15, text[at] >> 4
        number, at = (number + step, at + 1) if step else _integer(text, at + 1)
        if kind in (INT32, INT64):
            fields[number], at = _integer(text, at)
        elif kind == STRUCT:
            fields[number], at = _struct(text, at, depth + 1)
        elif kind == LIST and text[at] & 15 == STRUCT:
            count, _, at = _container(text, at, LIST)
            structs = fields[number] = []
            for _ in range(count):
                found, at = _struct(text, at, depth + 1)
                structs.append(found)
        elif kind not in (TRUE, FALSE):  # whose value is their type
            at = _skip(text, at, kind, depth)
    return fields, at + 1


def _skip(text: bytes, at: int, kind: int, depth: int) -> int:
    """Where a value ends that nobody asked for."""
    if kind in (TRUE, FALSE, BYTE):
        return at + 1
    if kind < DOUBLE:
        return _varint(text, at)[1]
    if kind == DOUBLE:
        return at + 8
    if kind == BINARY:
        length, at = _varint(text, at)
        return _inside(text, at + length)
    if kind == STRUCT:
        return _struct(text, at, depth + 1)[1]
    count, kinds, at = _container(text, at, kind)
    for _ in range(count):
        for each in kinds:
            at = _inside(text, _skip(text, at, each, depth + 1))
    return at


def _container(text: bytes, at: int, kind: int) -> tuple[int, tuple[int, ...], int]:
    """How many items a list, a set or a map has, the types of what each consists of, and where they begin."""
    if kind in (LIST, SET):
        kinds = (text[at] & 15,)
        count, at = (text[at] >> 4, at + 1) if text[at] >> 4 < 15 else _varint(text, at + 1)
        return count, kinds, at
    if kind == MAP:
        count, at = _varint(text, at)
        return (count, (text[at] >> 4, text[at] & 15), at + 1) if count else (0, (), at)
    raise ValueError


def _inside(text: bytes, at: int) -> int:
    if at > len(text):
        raise IndexError
    return at


def _varint(text: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 70:
        byte = text[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
    raise ValueError


def _integer(text: bytes, at: int) -> tuple[int, int]:
    """A signed number: the lowest bit is its sign."""
    value, at = _varint(text, at)
    return (value >> 1) ^ -(value & 1), at
