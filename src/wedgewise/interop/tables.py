"""Tables with two columns of vertices ⇄ edges: pandas by its columns, everything else by Arrow's PyCapsules.

The ends of an edge are the columns named source/target, src/dst, u/v or from/to, else the first two
columns. Integers are labels as they stand; strings are numbered by first appearance. A null is an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import InputError
from wedgewise.graph import EdgeList, Origin
from wedgewise.interop.libraries import library
from wedgewise.interop.values import aligned_columns, label_column, weights_of_pairs
from wedgewise.read.arrow import check_labels, edges_of_batches, end_columns, end_positions
from wedgewise.read.checks import interleave, kept_type
from wedgewise.read.limits import MAX_LABEL, Limits

if TYPE_CHECKING:
    from wedgewise.user_graph import Graph

NAME = "<table>"
IN_MEMORY_ALREADY = Limits(decompressed_bytes=MAX_LABEL)


def edges_from_arrow(table: Any, weights: Any = None) -> EdgeList:
    """Read anything that exports Arrow's PyCapsules; `weights` names a column, or is one number per row."""
    values: Any = weights
    with _failures_named():
        schema, batches = _batches(table)
        ends = end_columns(schema, "auto", NAME)
        if isinstance(weights, str):
            _check_column(weights, schema.names)
            values = []
            batches = _collecting(batches, weights, values)
        edges = edges_of_batches(batches, ends, schema, Origin(NAME, "Arrow"), IN_MEMORY_ALREADY)
        if isinstance(weights, str):
            pieces = [piece.to_numpy(zero_copy_only=False) for piece in values]
            values = np.concatenate(pieces) if pieces else np.empty(0)
    return _with_weights(edges, schema.names, ends, weights, values)


def edges_from_pandas(frame: Any, weights: Any = None) -> EdgeList:
    """Read a ``pandas.DataFrame`` without Arrow; `weights` names a column, or is one number per row."""
    columns = [str(column) for column in frame.columns]
    at = end_positions(columns, NAME)
    ends = [columns[position] for position in at]
    sources, targets = (_pandas_ends(frame.iloc[:, position], columns[position]) for position in at)
    if (sources.dtype.kind == "O") != (targets.dtype.kind == "O"):
        raise InputError(f"{NAME}: columns {ends[0]!r} and {ends[1]!r} are not both integers or both strings; cast one")
    origin = Origin(NAME, "pandas")
    pairs = interleave(sources, targets)
    if pairs.dtype.kind == "O":
        codes, names = library("pandas").factorize(pairs.reshape(-1))
        edges = EdgeList(kept_type(codes.reshape(-1, 2)), origin, vertices=len(names), names=names.tolist())
    else:
        pairs = kept_type(pairs)
        check_labels(pairs, NAME)
        edges = EdgeList(pairs, origin)
    if isinstance(weights, str):
        _check_column(weights, columns)
        return _with_weights(edges, columns, ends, weights, frame.iloc[:, columns.index(weights)].to_numpy())
    return _with_weights(edges, columns, ends, weights, weights)


def edge_table(graph: Graph, **columns: Any) -> dict[str, NDArray[Any]]:
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
    labels = label_column(graph.labels)
    ends = {"source": labels[graph.edges[:, 0]], "target": labels[graph.edges[:, 1]]}
    return _joined(ends, aligned_columns(columns, graph.m, "edge"))


def vertex_table(graph: Graph, **columns: Any) -> dict[str, NDArray[Any]]:
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


def to_arrow(graph: Graph, **columns: Any) -> Any:
    """Make a ``pyarrow.Table`` of the edges; the columns are those of `edge_table`.

    Examples
    --------
    >>> import wedgewise as ww
    >>> from wedgewise import interop
    >>> table = interop.to_arrow(ww.Graph([("ada", "bob"), ("bob", "cy")]), weight=[0.5, 2.0])
    >>> table.to_pylist()[1]
    {'source': 'bob', 'target': 'cy', 'weight': 2.0}
    """
    return library("pyarrow").table(edge_table(graph, **columns))


def to_pandas(graph: Graph, **columns: Any) -> Any:
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
    return library("pandas").DataFrame(edge_table(graph, **columns))


def to_polars(graph: Graph, **columns: Any) -> Any:
    """Make a ``polars.DataFrame`` of the edges; the columns are those of `edge_table`.

    Examples
    --------
    >>> import wedgewise as ww
    >>> from wedgewise import interop
    >>> interop.to_polars(ww.Graph([(10, 20), (20, 30)]), weight=[0.5, 2.0]).rows()
    [(10, 20, 0.5), (20, 30, 2.0)]
    """
    return library("polars").DataFrame(edge_table(graph, **columns))


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


def _collecting(batches: Iterator[Any], column: str, into: list[Any]) -> Iterator[Any]:
    """The same batches; one of their columns is kept on the way."""
    for batch in batches:
        into.append(batch.column(column))
        yield batch


def _check_column(name: str, names: list[str]) -> None:
    if names.count(name) != 1:
        many = "no column" if name not in names else "more than one column"
        raise InputError(f"{NAME}: {many} {name!r} to take weights from; there are: {', '.join(map(repr, names))}")


def _with_weights(edges: EdgeList, columns: list[str], ends: list[str], weights: Any, values: Any) -> EdgeList:
    """Add checked weights; a column that they came from was not dropped."""
    used = {*ends, weights} if isinstance(weights, str) else {*ends}
    kept = weights_of_pairs(values, len(edges.pairs), NAME)
    return replace(edges, weights=kept, dropped_columns=len(columns) - len(used))


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


def _joined(keys: Mapping[str, NDArray[Any]], columns: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    taken = keys.keys() & columns.keys()
    if taken:
        raise InputError(f"the name {min(taken)!r} is taken by the column of labels; choose another one")
    return {**keys, **columns}
