"""Small Parquet and Arrow files that ask for much memory, and how they are made in little."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from pyarrow import ipc, parquet

ROWS = 8 << 20
LONG, MIDDLING = "x" * 100_000, "x" * 20_000


def _zeros(rows: int = ROWS) -> Any:
    return pyarrow.array(np.zeros(rows, np.int64))


def _table(column: Any) -> Any:
    return pyarrow.table({"u": column, "v": column})


def _repeated(values: list[str], times: int) -> Any:
    """A column of many rows that refer to the same memory."""
    return pyarrow.chunked_array([pyarrow.array(values)] * times)


def runs(path: Path) -> None:
    """Row after row of one pair, in runs of a few bytes."""
    batch = pyarrow.record_batch({"u": _zeros(1 << 20), "v": _zeros(1 << 20)})
    with parquet.ParquetWriter(path, batch.schema) as writer:
        for _ in range(ROWS >> 20):
            writer.write_batch(batch)


def page(path: Path) -> None:
    """One page per column that expands to 64 MiB."""
    parquet.write_table(
        _table(_zeros()),
        path,
        use_dictionary=False,
        compression="zstd",
        write_statistics=False,
        data_page_size=1 << 30,
        max_rows_per_page=ROWS,
        write_batch_size=ROWS,
        row_group_size=ROWS,
    )


def _varint(value: int, length: int = 0) -> bytes:
    """A number as Thrift writes it, with bytes that say nothing up to a length."""
    value, text = value << 1, list[int]()
    while value > 127 or len(text) + 1 < length:
        text.append(value & 127 | 128)
        value >>= 7
    return bytes([*text, value])


def lying_page(path: Path) -> None:
    """The same, with a footer that says that its columns have 100 bytes."""
    page(path)
    column = parquet.read_metadata(path).row_group(0).column(0)
    said = _varint(column.total_uncompressed_size)
    data = path.read_bytes()
    assert data.count(said) >= 2
    path.write_bytes(data.replace(said, _varint(100, len(said))))
    assert parquet.read_metadata(path).row_group(0).column(0).total_uncompressed_size == 100


def lengths(path: Path) -> None:
    """Empty texts, of which a page holds the lengths alone; they are decoded all at once."""
    offsets = pyarrow.py_buffer(np.zeros(ROWS + 1, np.int32))
    texts = pyarrow.StringArray.from_buffers(ROWS, offsets, pyarrow.py_buffer(b""))
    parquet.write_table(
        _table(texts),
        path,
        use_dictionary=False,
        column_encoding="DELTA_LENGTH_BYTE_ARRAY",
        compression="zstd",
        write_statistics=False,
        data_page_size=1 << 30,
        max_rows_per_page=ROWS,
        row_group_size=ROWS,
    )


def footer(path: Path) -> None:
    """Some bytes that declare a row group of 900,000 columns."""
    leaves = b"".join(b"\x15\x04\x25\x00\x18\x01" + name + b"\x00" for name in (b"u", b"v"))
    schema = b"\x3c\x48\x06schema\x15\x04\x00" + leaves
    groups = b"\x1c\x19\xfc" + _varint(900_000 // 2) + b"\x26\x00\x00" * 10
    text = b"\x15\x02\x19" + schema + b"\x16\x00\x19" + groups
    path.write_bytes(b"PAR1" + text + len(text).to_bytes(4, "little") + b"PAR1")


def _ipc(path: Path, column: Any, make: Any = ipc.new_file, compression: str | None = "zstd") -> None:
    table = _table(column)
    with make(str(path), table.schema, options=ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table)


def buffers(path: Path) -> None:
    """Compressed buffers that expand to 64 MiB each."""
    _ipc(path, _zeros())


def stream(path: Path) -> None:
    """The same as a stream."""
    _ipc(path, _zeros(), ipc.new_stream)


def dictionary(path: Path) -> None:
    """A compressed dictionary that ten rows refer to."""
    _ipc(path, pyarrow.DictionaryArray.from_arrays(pyarrow.array(np.zeros(10, np.int32)), _zeros(2 * ROWS)))


def run_ends(path: Path) -> None:
    """Two runs of two billion rows."""
    ends = pyarrow.array([1, 2**31 - 1], pyarrow.int32())
    _ipc(path, pyarrow.RunEndEncodedArray.from_arrays(ends, pyarrow.array([1, 2])), compression=None)


def coded_text(path: Path) -> None:
    """A long text in row after row, all of them codes: 6 GB if it were written out."""
    parquet.write_table(_table(pyarrow.DictionaryArray.from_arrays(np.zeros(1 << 16, np.int32), [LONG])), path)


def plain_text(path: Path, encoding: str = "PLAIN") -> None:
    """Long texts one behind the other in compressed pages, 200 MB in all."""
    column = _repeated([LONG] * 8, 125)
    parquet.write_table(_table(column), path, use_dictionary=False, column_encoding=encoding, compression="zstd")


def delta_text(path: Path) -> None:
    """Long texts, each stored as what it has in common with the one before."""
    plain_text(path, "DELTA_BYTE_ARRAY")


def mixed_text(path: Path) -> None:
    """Codes of a long text, then so many others that the column goes on without codes."""
    many = pyarrow.array([f"label{number:09}" for number in range(1 << 17)])
    column = pyarrow.chunked_array([pyarrow.array([MIDDLING] * 32)] * 200 + [many])
    parquet.write_table(_table(column), path, store_schema=False)


def one_text(path: Path, rows: int = 4) -> None:
    """One text that all rows refer to, of as many mebibytes as the file's name says: a few bytes when compressed."""
    mebibytes = int(path.stem.rpartition("_")[2])
    column = pyarrow.DictionaryArray.from_arrays(np.zeros(rows, np.int32), ["x" * (mebibytes << 20)])
    if path.suffix == ".arrow":
        _ipc(path, column)
    else:
        parquet.write_table(_table(column), path, compression="zstd")


def one_text_in_batches(path: Path) -> None:
    """The same in so many rows that they come in several batches, each with its dictionary."""
    one_text(path, 1 << 18)


def views(path: Path) -> None:
    """Texts that are views of one long text."""
    rows = 2000
    view = np.zeros((rows, 4), np.int32)
    view[:, 0], view[:, 1] = len(LONG), np.frombuffer(b"xxxx", np.int32)[0]
    texts = pyarrow.py_buffer(view), pyarrow.py_buffer(LONG.encode())
    _ipc(path, pyarrow.Array.from_buffers(pyarrow.string_view(), rows, [None, *texts]), compression=None)


REFUSED: dict[str, Callable[[Path], None]] = {
    "runs.parquet": runs,
    "page.parquet": page,
    "lying_page.parquet": lying_page,
    "lengths.parquet": lengths,
    "footer.parquet": footer,
    "buffers.arrow": buffers,
    "stream.arrow": stream,
    "dictionary.arrow": dictionary,
    "run_ends.arrow": run_ends,
    **{f"text_{mebibytes}.{kind}": one_text for mebibytes in (20, 40, 50) for kind in ("parquet", "arrow")},
    "texts_10.parquet": one_text_in_batches,
    "texts_20.parquet": one_text_in_batches,
}
READ: dict[str, Callable[[Path], None]] = {
    "coded_text.parquet": coded_text,
    "plain_text.parquet": plain_text,
    "delta_text.parquet": delta_text,
    "mixed_text.parquet": mixed_text,
    "views.arrow": views,
}
