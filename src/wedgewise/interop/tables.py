"""Tables with two columns of vertices ⇄ edges: pandas by its columns, everything else by Arrow's PyCapsules.

`wedgewise.read.columns` chooses the columns. Integers are labels as they stand; strings are numbered by first
appearance, and integers beside strings are taken as text. A null is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import InputError
from wedgewise.graph import Column, EdgeList, LabelledGraph, Labels, Origin
from wedgewise.interop.libraries import library
from wedgewise.interop.values import aligned_columns, label_column, weights_of_pairs
from wedgewise.labels import TextLabels
from wedgewise.machine.shortage import memory_for
from wedgewise.read.arrow import check_labels, choose_arrow_columns, edges_of_batches, first_two_serve
from wedgewise.read.checks import finite_weights, interleave, kept_type
from wedgewise.read.columns import ANY_COLUMNS, ColumnChoice, Table, choose_columns, without_generated
from wedgewise.read.limits import MAX_LABEL, Limits

NAME = "<table>"
PANDAS = Origin(NAME, "pandas")
IN_MEMORY_ALREADY = Limits(decompressed_bytes=MAX_LABEL)

Columns = dict[str, NDArray[Any]]


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


def edge_table(graph: LabelledGraph, **columns: Any) -> Columns:
    """Lay the edges out as NumPy columns: the labels of both ends, and what is known of each edge.

    Parameters
    ----------
    graph : the graph
    columns : arrays with one entry per row of ``graph.edges``, such as ``support=wedgewise.edge_support(graph)``

    Returns
    -------
    dict
        ``source`` and ``target`` hold labels (int64, or Python strings), then come the columns as named.

    Examples
    --------
    >>> import wedgewise as ww
    >>> from wedgewise import interop
    >>> interop.edge_table(ww.Graph([(10, 20), (20, 30)]), support=[0, 0])
    {'source': array([10, 20]), 'target': array([20, 30]), 'support': array([0, 0])}
    """
    known = aligned_columns(columns, graph.m, "edge")
    return _joined(labelled_rows(graph.labels, graph.edges, ("source", "target")), known)


def vertex_table(graph: LabelledGraph, **columns: Any) -> Columns:
    """Lay the vertices out as NumPy columns: their labels, and what is known of each.

    Parameters
    ----------
    graph : the graph
    columns : arrays with one entry per vertex, such as ``degree=graph.degrees``

    Returns
    -------
    dict
        ``vertex`` holds labels (int64, or Python strings), then come the columns as named: what ``pandas.DataFrame``,
        ``polars.DataFrame`` and ``pyarrow.table`` take.

    Examples
    --------
    >>> import wedgewise as ww
    >>> from wedgewise import interop
    >>> g = ww.Graph([(10, 20), (20, 30)])
    >>> interop.vertex_table(g, degree=g.degrees)
    {'vertex': array([10, 20, 30]), 'degree': array([1, 2, 1], dtype=uint32)}
    """
    return _joined({"vertex": label_column(graph.labels)}, aligned_columns(columns, graph.n, "vertex"))


def to_arrow(graph: LabelledGraph, **columns: Any) -> Any:
    """Make a ``pyarrow.Table`` of the edges; the columns are those of `edge_table`.

    Examples
    --------
    >>> import wedgewise as ww
    >>> from wedgewise import interop
    >>> table = interop.to_arrow(ww.Graph([("ada", "bob"), ("bob", "cy")]), weight=[0.5, 2.0])
    >>> table.to_pylist()[1]
    {'source': 'bob', 'target': 'cy', 'weight': 2.0}
    """
    return tabulate("pyarrow", lambda: edge_table(graph, **columns))


def to_pandas(graph: LabelledGraph, **columns: Any) -> Any:
    """Make a ``pandas.DataFrame`` of the edges; the columns are those of `edge_table`.

    Examples
    --------
    >>> import wedgewise as ww
    >>> from wedgewise import interop
    >>> interop.to_pandas(ww.Graph([(10, 20), (20, 30)]), weight=[0.5, 2.0])
       source  target  weight
    0      10      20     0.5
    1      20      30     2.0
    """
    return tabulate("pandas", lambda: edge_table(graph, **columns))


def to_polars(graph: LabelledGraph, **columns: Any) -> Any:
    """Make a ``polars.DataFrame`` of the edges; the columns are those of `edge_table`.

    Examples
    --------
    >>> import wedgewise as ww
    >>> from wedgewise import interop
    >>> interop.to_polars(ww.Graph([(10, 20), (20, 30)]), weight=[0.5, 2.0]).rows()
    [(10, 20, 0.5), (20, 30, 2.0)]
    """
    return tabulate("polars", lambda: edge_table(graph, **columns))


@memory_for("table")
def tabulate(module: str, columns: Callable[[], Columns]) -> Any:
    """A table of pandas, polars or pyarrow; columns are made when the library is there."""
    found = library(module)
    return _MAKERS[module](found, columns())


def labelled_rows(labels: Labels, rows: NDArray[Any], names: tuple[str, ...]) -> Columns:
    """Rows of vertices as a column of labels for each of the names."""
    column = label_column(labels)
    return {name: column[rows[:, place]] for place, name in enumerate(names)}


def _pandas_frame(pandas: Any, columns: Columns) -> Any:
    return pandas.DataFrame(columns)


def _polars_frame(polars: Any, columns: Columns) -> Any:
    return polars.DataFrame(
        {
            name: polars.Series(name, column.tolist(), polars.String) if _is_text(column) else column
            for name, column in columns.items()
        }
    )


def _arrow_table(pyarrow: Any, columns: Columns) -> Any:
    try:
        return pyarrow.table(
            {
                name: pyarrow.array(column, pyarrow.string() if _is_text(column) else None)
                for name, column in columns.items()
            }
        )
    except pyarrow.ArrowException as error:
        raise InputError(
            f"labels that make no column of Arrow ({error}); use to_pandas, or name the vertices by integers or strings"
        ) from error


def _is_text(column: NDArray[Any]) -> bool:
    """Whether a column holds strings alone; a library cannot tell by itself where there are no rows."""
    return column.dtype == np.object_ and set(map(type, column)) <= {str}


_MAKERS: dict[str, Callable[[Any, Columns], Any]] = {
    "pandas": _pandas_frame,
    "polars": _polars_frame,
    "pyarrow": _arrow_table,
}


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


def _joined(keys: Mapping[str, NDArray[Any]], columns: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    taken = keys.keys() & columns.keys()
    if taken:
        raise InputError(f"the name {min(taken)!r} is taken by the column of labels; choose another one")
    return {**keys, **columns}
