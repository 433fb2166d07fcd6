"""Tables with two columns of vertices ⇄ edges: pandas by its columns, everything else by Arrow's PyCapsules.

`wedgewise.read.columns` chooses the columns. Integers are labels as they stand; strings are numbered by first
appearance, and integers beside strings are taken as text. A null is an error.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import InputError
from wedgewise.machine.libraries import library
from wedgewise.read.arrow import check_labels, choose_arrow_columns, choose_named_columns, label_kind, pieces_of_batches
from wedgewise.read.columns import ColumnChoice
from wedgewise.read.pieces import edges_of_pieces, finite_weights, interleave, kept_type
from wedgewise.stages import EdgeList, Origin
from wedgewise.stages.labels import TextLabels
from wedgewise.stages.limits import MAX_LABEL, Limits

NAME = "<table>"
PANDAS = Origin(NAME, "pandas")
IN_MEMORY_ALREADY = Limits(decompressed_bytes=MAX_LABEL)


def edges_from_arrow(table: Any, choice: ColumnChoice, labels: str) -> EdgeList:
    """Read anything that exports Arrow's PyCapsules."""
    pyarrow = library("pyarrow")
    try:
        if hasattr(table, "__arrow_c_stream__"):
            batches = pyarrow.RecordBatchReader.from_stream(table)
            schema = batches.schema
        else:  # one array of structs
            batches = [pyarrow.record_batch(table)]
            schema = batches[0].schema
        chosen = choose_arrow_columns(schema, labels, choice, NAME)
        pieces = pieces_of_batches(batches, chosen, Origin(NAME, "Arrow"), IN_MEMORY_ALREADY)
        return edges_of_pieces(pieces, IN_MEMORY_ALREADY)
    except pyarrow.ArrowException as error:
        reason = str(error).split("\n")[0] or type(error).__name__
        raise InputError(f"{NAME}: {reason}; pass a table with a column of sources and one of targets") from error


def edges_from_pandas(frame: Any, choice: ColumnChoice, labels: str) -> EdgeList:
    """Read a ``pandas.DataFrame`` without Arrow.

    Levels of the index that have a name are columns behind the others, as they are where pandas writes a file.
    """
    numbers = {name: position for position, name in enumerate(frame.columns) if type(name) is int}
    for role, column in choice.given.items():  # names of a frame may be integers
        if isinstance(column, int) and numbers.get(column, column) != column:
            raise InputError(
                f"{NAME}: {role}={column} may be the column at position {column} or the one that is named {column}, "
                f"at position {numbers[column]}; pass the name as text, such as {role}='{column}'"
            )
    levels = [level for level, name in enumerate(frame.index.names) if name is not None]
    given = [str(name) for name in (*frame.columns, *(frame.index.names[level] for level in levels))]

    def column_at(position: int) -> Any:
        beyond = position - frame.shape[1]
        return frame.iloc[:, position] if beyond < 0 else frame.index.get_level_values(levels[beyond]).to_series()

    def kinds() -> list[str]:
        return [_pandas_kind(column_at(position).dtype) for position in range(len(given))]

    ends, names = choose_named_columns(NAME, given, kinds, choice)
    columns = [_pandas_ends(column_at(position), given[position]) for position in ends.positions[:2]]
    found = ["text" if column.dtype.kind == "O" else "int" for column in columns]
    types = (f"{given[position]}: {column_at(position).dtype}" for position in ends.positions[:2])
    if label_kind(found, types, labels, NAME) == "text":
        codes, texts = library("pandas").factorize(interleave(*map(_as_texts, columns)).reshape(-1))
        known = TextLabels.of(texts.tolist())
        edges = EdgeList(kept_type(codes.reshape(-1, 2)), PANDAS, vertices=len(known), names=known)
    else:
        pairs = kept_type(interleave(*columns))
        check_labels(pairs, NAME)
        edges = EdgeList(pairs, PANDAS)
    kept = None if ends.weight is None else finite_weights(_pandas_weights(column_at(ends.weight)), NAME)
    used, ignored = ends.among(names, len(given))
    return replace(edges, columns=used, ignored_columns=ignored, weights=kept)


def _pandas_kind(dtype: Any) -> str:
    """What a column without a name may be: as in Arrow's tables."""
    types = library("pandas").api.types
    if types.is_integer_dtype(dtype):
        return "int"
    return "number" if types.is_numeric_dtype(dtype) else "text"


def _as_texts(column: NDArray[Any]) -> NDArray[Any]:
    """A column of labels as Python strings."""
    return column if column.dtype.kind == "O" else column.astype(str).astype(object)


def _pandas_weights(series: Any) -> NDArray[Any]:
    """A column of weights, NaN where there is none."""
    types = library("pandas").api.types
    if types.is_numeric_dtype(series.dtype) and not types.is_complex_dtype(series.dtype):
        values: NDArray[Any] = series.to_numpy(np.float64, na_value=np.nan)
        return values
    if types.infer_dtype(series) == "decimal":
        series = series.astype(np.float64)
    plain: NDArray[Any] = series.to_numpy()
    return plain


def _pandas_ends(series: Any, column: str) -> NDArray[Any]:
    """One column of vertices, all integers or all Python strings."""
    nulls = series.isna().to_numpy()
    if nulls.any():
        raise InputError(f"{NAME}: row {int(np.argmax(nulls))} of column {column!r} is null; drop rows with nulls")
    values: NDArray[Any] = series.to_numpy()
    if values.dtype.kind in "iu":
        return values
    if values.dtype.kind == "O" and library("pandas").api.types.infer_dtype(values) in ("string", "empty"):
        return values
    raise InputError(f"{NAME}: column {column!r} of dtype {series.dtype}; cast it to integers or to strings")
