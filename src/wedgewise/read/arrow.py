"""Parquet, Arrow IPC and Feather → EdgeList (the extra `arrow`).

The ends of an edge are the columns named source/target, src/dst, u/v or from/to, else the first two
columns. Integers are labels as they stand; strings are numbered by first appearance. A null is an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import FormatError, MemoryLimitError, MissingDependencyError, WedgewiseError
from wedgewise.graph import EdgeList, Origin
from wedgewise.read.checks import first_outside, interleave, kept_type
from wedgewise.read.content import Content
from wedgewise.read.limits import Limits

COLUMN_NAMES = (("source", "target"), ("src", "dst"), ("u", "v"), ("from", "to"))
TEXT_TYPES = ("string", "large_string", "string_view")
STREAM_SIGNATURE = b"\xff\xff\xff\xff"
BATCH_ROWS = 2**20
BYTES_PER_PAIR = 16
DAMAGED = "the file is damaged: write it again"


def read_parquet(content: Content, limits: Limits, labels: str = "auto") -> EdgeList:
    """Read the two columns of a Parquet file that hold the ends of the edges."""
    pyarrow = import_pyarrow()
    from pyarrow import parquet

    with _failures_named(content.name):
        file = parquet.ParquetFile(pyarrow.BufferReader(pyarrow.py_buffer(content.whole())))
        _check_rows(file.metadata.num_rows, limits, content.name)
        ends = end_columns(file.schema_arrow, labels, content.name)
        batches = file.iter_batches(BATCH_ROWS, columns=ends, use_threads=False)
        return edges_of_batches(batches, ends, file.schema_arrow, Origin(content.name, "Parquet"), limits)


def read_arrow(content: Content, limits: Limits, labels: str = "auto") -> EdgeList:
    """Read the two columns of an Arrow IPC file, stream or Feather file that hold the ends of the edges."""
    pyarrow = import_pyarrow()
    from pyarrow import ipc

    with _failures_named(content.name):
        source = pyarrow.BufferReader(pyarrow.py_buffer(content.whole()))
        if content.head(4) == STREAM_SIGNATURE:
            reader = ipc.open_stream(source)
            batches = iter(reader)
        else:
            reader = ipc.open_file(source)
            batches = (reader.get_batch(number) for number in range(reader.num_record_batches))
        ends = end_columns(reader.schema, labels, content.name)
        return edges_of_batches(batches, ends, reader.schema, Origin(content.name, "Arrow"), limits)


def import_pyarrow() -> Any:
    """The module, or the remedy when it is missing."""
    try:
        import pyarrow
    except ImportError as error:
        raise MissingDependencyError(
            'Parquet and Arrow files need pyarrow; install it with: pip install "wedgewise[arrow]"'
        ) from error
    return pyarrow


@contextmanager
def _failures_named(name: str) -> Iterator[None]:
    """Arrow's own exceptions as ours."""
    import pyarrow

    try:
        yield
    except WedgewiseError:
        raise
    except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError, OSError, UnicodeDecodeError) as error:
        reason = str(error).split("\n")[0] or type(error).__name__
        raise FormatError("is not readable by Arrow", path=name, text=reason, remedy=DAMAGED) from error
    except MemoryError as error:
        raise MemoryLimitError(
            f"{name}: Arrow could not allocate what the file declares ({error}); it is damaged or too large"
        ) from error


def _check_rows(rows: int, limits: Limits, name: str) -> None:
    limits.check("pairs", rows, path=name)
    limits.check("decompressed_bytes", rows * BYTES_PER_PAIR, path=name)


def end_positions(names: list[str], name: str) -> tuple[int, int]:
    """Where the two columns are that hold the ends of the edges: by name, else the first two."""
    there = [column.lower() for column in names]
    ends = next((pair for pair in COLUMN_NAMES if set(pair) <= set(there)), tuple(there[:2]))
    if len(ends) < 2 or any(there.count(end) != 1 for end in ends):
        raise FormatError(
            "no two columns to take the ends of edges from",
            path=name,
            text=", ".join(names),
            remedy="name them source and target",
        )
    return there.index(ends[0]), there.index(ends[1])


def end_columns(schema: Any, labels: str, name: str) -> list[str]:
    """The names of the two columns, which hold both integers or both strings."""
    columns = [schema.names[position] for position in end_positions(schema.names, name)]
    kinds = [_kind(schema.field(column).type) for column in columns]
    wanted = {"auto": ("int", "text"), "int": ("int",), "text": ("text",)}[labels]
    if kinds[0] != kinds[1] or kinds[0] not in wanted:
        types = ", ".join(f"{column}: {schema.field(column).type}" for column in columns)
        needed = {"auto": "integers, or both strings", "int": "integers", "text": "strings"}[labels]
        raise FormatError(
            f"columns that are not both {needed}", path=name, text=types, remedy="cast both to one of these"
        )
    return columns


def _kind(kind: Any) -> str:
    from pyarrow import types

    if types.is_integer(kind):
        return "int"
    value = kind.value_type if types.is_dictionary(kind) else kind
    return "text" if str(value) in TEXT_TYPES else "other"


def edges_of_batches(batches: Iterator[Any], ends: list[str], schema: Any, origin: Origin, limits: Limits) -> EdgeList:
    """Collect the two columns batch by batch, each checked before it is trusted."""
    pieces: tuple[list[Any], list[Any]] = ([], [])
    rows = 0
    for batch in batches:
        for piece, end in zip(pieces, ends, strict=True):
            column = batch.column(batch.schema.get_field_index(end))
            column.validate(full=True)
            if column.null_count:
                null = rows + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
                raise FormatError(
                    f"row {null} of column {end!r} is null", path=origin.name, remedy="drop rows with nulls"
                )
            piece.append(column)
        rows += batch.num_rows
        _check_rows(rows, limits, origin.name)
    dropped = len(schema.names) - 2
    if _kind(schema.field(ends[0]).type) == "text":
        pairs, names = _number_texts(*pieces)
        return EdgeList(pairs, origin, vertices=len(names), names=names, dropped_columns=dropped)
    pairs = kept_type(interleave(_integers(pieces[0]), _integers(pieces[1])))
    check_labels(pairs, origin.name)
    return EdgeList(pairs, origin, dropped_columns=dropped)


def _integers(pieces: list[Any]) -> NDArray[Any]:
    """The values of one column; int64 where there are none."""
    arrays = [piece.to_numpy(zero_copy_only=False) for piece in pieces]
    return np.concatenate(arrays) if arrays else np.empty(0, np.int64)


def check_labels(pairs: NDArray[Any], name: str) -> None:
    """Refuse two integer columns that have no common type, or hold what no label can be."""
    if pairs.dtype.kind not in "iu":
        raise FormatError("one column is uint64 and the other signed", path=name, remedy="cast both to int64")
    outside = first_outside(pairs)
    if outside is not None:
        raise FormatError(
            f"row {outside[0] // 2} holds a number outside 0 … 2^63 − 1",
            path=name,
            text=str(outside[1]),
            remedy="renumber the vertices from 0",
        )


def _number_texts(sources: list[Any], targets: list[Any]) -> tuple[NDArray[Any], list[str]]:
    """Vertex numbers by first appearance, reading row by row, source before target."""
    import pyarrow

    pieces = [piece.cast(pyarrow.large_string()) for piece in (*sources, *targets)]
    texts = pyarrow.chunked_array(pieces, pyarrow.large_string())
    rows = len(texts) // 2
    row_by_row = interleave(np.arange(rows), np.arange(rows, 2 * rows)).reshape(-1)
    encoded = texts.combine_chunks().take(pyarrow.array(row_by_row)).dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    return kept_type(codes.reshape(-1, 2)), encoded.dictionary.to_pylist()
