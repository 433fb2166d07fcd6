"""Parquet files: texts in every encoding, their dictionaries and pages, and footers that lie."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import wedgewise as ww
from wedgewise.errors import FormatError
from wedgewise.read import _parquet, read_edges
from wedgewise.read._parquet import Page, longest_entry, look_at_pages, row_groups

NAMES = [f"user{number % 97}" for number in range(500)]


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "zstd", "lz4"])
@pytest.mark.parametrize(
    "how",
    [
        {"use_dictionary": True},
        {"use_dictionary": True, "dictionary_pagesize_limit": 64, "data_page_size": 64, "write_batch_size": 16},
        {"use_dictionary": False},
        {"use_dictionary": False, "column_encoding": "DELTA_BYTE_ARRAY"},
        {"use_dictionary": False, "column_encoding": "DELTA_LENGTH_BYTE_ARRAY"},
        {"data_page_version": "2.0"},
        {"store_schema": False, "write_page_index": True},
    ],
    ids=lambda how: "-".join(map(str, how.values())),
)
def test_texts_are_read_however_they_are_encoded(tmp_path: Path, how: dict[str, object], codec: str) -> None:
    path = tmp_path / "texts.parquet"
    table = pa.table({"source": NAMES, "target": NAMES[1:] + NAMES[:1]})
    parquet.write_table(table, path, compression=codec, row_group_size=200, **how)
    found, expected = ww.read(path), ww.Graph(table)
    assert list(found.labels) == list(expected.labels)
    assert found.edges.tolist() == expected.edges.tolist()


def mixed_texts(path: Path, codec: str) -> pa.Table:
    """A file of texts, of which the first pages refer to a dictionary and the others do not."""
    table = pa.table({"source": NAMES, "target": NAMES[1:] + NAMES[:1]})
    how = {"dictionary_pagesize_limit": 64, "data_page_size": 64, "write_batch_size": 16}
    parquet.write_table(table, path, compression=codec, **how)
    return table


def dictionary_page(path: Path) -> Page:
    column = parquet.ParquetFile(path).metadata.row_group(0).column(0)
    with path.open("rb") as file:
        pages = look_at_pages(file, column.dictionary_page_offset, column.total_compressed_size, True, str(path))
    assert pages.dictionary is not None
    return pages.dictionary


def longest_in(path: Path, page: Page, codec: str | None) -> int:
    with path.open("rb") as file:
        return longest_entry(file, page, codec)


def test_a_dictionary_of_an_old_codec_is_taken_to_be_one_text(tmp_path: Path) -> None:
    """LZ4 as Hadoop framed it: Arrow reads it, and blocks without the frames too."""
    path = tmp_path / "texts.parquet"
    table = mixed_texts(path, "lz4")
    data = path.read_bytes()
    for column in (b"\x06source", b"\x06target"):
        assert data.count(column + b"\x15\x0e") == 1
        data = data.replace(column + b"\x15\x0e", column + b"\x15\x0a")  # the codec: 7 becomes 5
    path.write_bytes(data)
    page = dictionary_page(path)
    assert longest_in(path, page, "lz4_raw") == len("user10")
    assert longest_in(path, page, None) == page.plain > 100
    found, expected = ww.read(path), ww.Graph(table)
    assert list(found.labels) == list(expected.labels)
    assert found.edges.tolist() == expected.edges.tolist()


@pytest.mark.parametrize("codec", ["snappy", "zstd"])
def test_a_dictionary_that_does_not_decompress_is_damaged(tmp_path: Path, codec: str) -> None:
    path = tmp_path / "texts.parquet"
    mixed_texts(path, codec)
    page, data = dictionary_page(path), bytearray(path.read_bytes())
    data[page.data : page.data + page.compressed] = b"\xff" * page.compressed
    path.write_bytes(data)
    assert longest_in(path, page, codec) == page.plain
    with pytest.raises(FormatError, match=r"(?i)texts\.parquet: is not readable by Arrow: .*(corrupt|failed)"):
        read_edges(path)


@pytest.mark.parametrize("use_dictionary", [True, False])
def test_headers_of_pages_are_as_long_as_the_texts_that_they_quote(tmp_path: Path, use_dictionary: bool) -> None:
    path, texts = tmp_path / "texts.parquet", ["a" * 1000, "b" * 1500, "c" * 1900]
    table = pa.table({"source": texts, "target": texts[1:] + texts[:1]})
    parquet.write_table(table, path, use_dictionary=use_dictionary, write_statistics=True)
    graph = ww.read(path)
    assert list(graph.labels) == texts
    assert ww.count(graph) == 1


def parts_of(table: pa.Table) -> tuple[bytes, bytes, bytes, bytes]:
    """A Parquet file: what is before its footer, and the footer before, in and behind the list of row groups."""
    written = io.BytesIO()
    parquet.write_table(table, written, store_schema=False)
    data = written.getvalue()
    begin = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer, at = data[begin:-8], 0
    for kind in (_parquet.INT32, _parquet.LIST, _parquet.INT64):  # version, schema, rows
        at = _parquet._skip(footer, at + 1, kind, 0)
    end = _parquet._skip(footer, at + 1, _parquet.LIST, 0)
    return data[:begin], footer[:at], footer[at:end], footer[end:]


def test_a_row_group_without_a_column_of_the_schema_is_damaged(tmp_path: Path) -> None:
    columns: dict[str, Any] = {"source": [0, 1, 2], "target": [1, 2, 0]}
    pages, _, groups, _ = parts_of(pa.table({"source": columns["source"]}))
    _, before, _, behind = parts_of(pa.table(columns))
    footer = before + groups + behind
    path = tmp_path / "graph.parquet"
    path.write_bytes(pages + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(FormatError, match=r"a row group without the column 'target'; the file is damaged: write it"):
        read_edges(path)


@pytest.mark.parametrize(
    "footer", [b"", b"\x00", b"\x19\x1c\x00", b"\x49\x1c\x00\x00", b"\x49\x1c\x19\x0c\x00\x00", b"\xff" * 20]
)
def test_a_footer_without_columns_is_damaged(footer: bytes) -> None:
    with pytest.raises(FormatError, match="its footer does not list its columns"):
        row_groups(footer, "graph.parquet")


PAGE = bytes([0x15, 0x00, 0x15, 0x02, 0x15, 0x02, 0x00])  # a data page of one byte, plain and compressed
HEADERS = {
    "cut off": PAGE[:3],
    "no kind": b"\x00",
    "longer than its column": bytes([0x15, 0x00, 0x15, 0x02, 0x15, 0xFE, 0x7F, 0x00]),
    "a page of fewer than no values": bytes([0x15, 0x00, 0x15, 0x02, 0x15, 0x02, 0x2C, 0x15, 0x01, 0x00, 0x00]),
    "two dictionaries": bytes([0x15, 0x04, 0x15, 0x00, 0x15, 0x00, 0x00]) * 2,
    "structs without end": b"\x1c" * 200,
    "a number without end": b"\x15" + b"\xff" * 300,
    "an unknown type": b"\x1f" + b"\x00" * 300,
    "text behind the end": b"\x18\x7f" + b"a" * 9,
}


@pytest.mark.parametrize("text", HEADERS.values(), ids=HEADERS)
def test_headers_of_pages_that_cannot_be_are_damage(text: bytes) -> None:
    with pytest.raises(FormatError, match="no page of a column at byte"):
        look_at_pages(io.BytesIO(text), 0, len(text), False, "graph.parquet")


def test_a_page_is_counted_by_its_header() -> None:
    text = bytes([0x15, 0x00, 0x15, 0x02, 0x15, 0x02, 0x18, 0x01, 0x61, 0x17, *bytes(8), 0x00, 0x00])
    assert look_at_pages(io.BytesIO(text), 0, len(text), False, "graph.parquet").page_bytes == 2
