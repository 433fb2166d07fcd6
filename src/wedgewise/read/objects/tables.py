"""Tables with two columns of vertices ⇄ edges: pandas by its columns, everything else by Arrow's PyCapsules.

`wedgewise.read.columns` chooses the columns. Integers are labels as they stand; strings are numbered by first
appearance, and integers beside strings are taken as text. A null is an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import InputError
from wedgewise.machine.libraries import library
from wedgewise.read.arrow import check_labels, choose_arrow_columns, edges_of_batches, first_two_serve
from wedgewise.read.checks import finite_weights, interleave, kept_type
from wedgewise.read.columns import ANY_COLUMNS, ColumnChoice, Table, choose_columns, without_generated
from wedgewise.read.objects.values import weights_of_pairs
from wedgewise.stages import Column, EdgeList, Origin
from wedgewise.stages.labels import TextLabels
from wedgewise.stages.limits import MAX_LABEL, Limits

NAME = "<table>"
PANDAS = Origin(NAME, "pandas")
IN_MEMORY_ALREADY = Limits(decompressed_bytes=MAX_LABEL)


def edges_from_arrow(table: Any, weights: Any = None, choice: ColumnChoice = ANY_COLUMNS) -> EdgeList:
    """Read anything that exports Arrow's PyCapsules; `weights` names a column, or is one number per row."""
    choice = _with_weight(choice, weights)
    with _failures_named():
        schema, batches = _batches(table)
        chosen = choose_arrow_columns(schema, "auto", choice, NAME)
        edges = edges_of_batches(batches, chosen, Origin(NAME, "Arrow"), IN_MEMORY_ALREADY)
    return _with_weights(edges, weights)


def edges_from_pandas(frame: Any, weights: Any = None, choice: ColumnChoice = ANY_COLUMNS) -> EdgeList:
    """Read a ``pandas.DataFrame`` without Arrow; `weights` names a column, or is one number per row."""
    given = [column if isinstance(column, int) else str(column) for column in frame.columns]
    names = without_generated(given)
    kinds = [_pandas_kind(dtype) for dtype in frame.dtypes]
    ends = choose_columns(Table(NAME, len(given), names, lambda: first_two_serve(kinds)), _with_weight(choice, weights))
    columns = [_pandas_ends(frame.iloc[:, position], given[position]) for position in ends.positions[:2]]
    if any(column.dtype.kind == "O" for column in columns):
        codes, texts = library("pandas").factorize(interleave(*map(_as_texts, columns)).reshape(-1))
        labels = TextLabels.of(texts.tolist())
        edges = EdgeList(kept_type(codes.reshape(-1, 2)), PANDAS, vertices=len(labels), names=labels)
    else:
        pairs = kept_type(interleave(*columns))
        check_labels(pairs, NAME)
        edges = EdgeList(pairs, PANDAS)
    edges = replace(edges, columns=ends.used(names), ignored_columns=ends.ignored(names, len(given)))
    if ends.weight is not None:
        values = frame.iloc[:, ends.weight]
        return replace(edges, weights=finite_weights(_pandas_weights(values), NAME))
    return _with_weights(edges, weights)


def _batches(table: Any) -> tuple[Any, Iterator[Any]]:
    """The schema and the record batches of whatever exports a stream, or else one array of structs."""
    pyarrow = library("pyarrow")
    if hasattr(table, "__arrow_c_stream__"):
        reader = pyarrow.RecordBatchReader.from_stream(table)
        return reader.schema, iter(reader)
    batch = pyarrow.record_batch(table)
    return batch.schema, iter((batch,))


@contextmanager
def _failures_named() -> Iterator[None]:
    """Arrow's own exceptions as ours."""
    pyarrow = library("pyarrow")
    try:
        yield
    except pyarrow.ArrowException as error:
        reason = str(error).split("\n")[0] or type(error).__name__
        raise InputError(f"{NAME}: {reason}; pass a table with a column of sources and one of targets") from error


def _with_weight(choice: ColumnChoice, weights: Any) -> ColumnChoice:
    """The choice, with the column that `weights` names."""
    if not isinstance(weights, str):
        return choice
    if choice.weight is not None:
        raise InputError(f"{NAME}: weight={choice.weight!r} and weights={weights!r}; leave one out")
    return replace(choice, weight=weights)


def _with_weights(edges: EdgeList, weights: Any) -> EdgeList:
    """Add weights that are no column of the table."""
    if weights is None or isinstance(weights, str):
        return edges
    return replace(edges, weights=weights_of_pairs(weights, len(edges.pairs), NAME))


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
    plain: NDArray[Any] = series.to_numpy()
    return plain


def _pandas_ends(series: Any, column: Column) -> NDArray[Any]:
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
