"""Edges and vertices as tables: NumPy columns, pandas, polars and Arrow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import InputError
from wedgewise.machine.libraries import library
from wedgewise.machine.out_of_memory import memory_for
from wedgewise.read.objects.foreign import as_array
from wedgewise.stages import LabelledGraph, Labels

NamedColumns = dict[str, NDArray[Any]]


def edge_table(graph: LabelledGraph, **columns: Any) -> NamedColumns:
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


def vertex_table(graph: LabelledGraph, **columns: Any) -> NamedColumns:
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
def tabulate(module: str, columns: Callable[[], NamedColumns]) -> Any:
    """A table of pandas, polars or pyarrow; columns are made when the library is there."""
    found = library(module)
    return _MAKERS[module](found, columns())


def labelled_rows(labels: Labels, rows: NDArray[Any], names: tuple[str, ...]) -> NamedColumns:
    """Rows of vertices as a column of labels for each of the names."""
    column = label_column(labels)
    return {name: column[rows[:, column_number]] for column_number, name in enumerate(names)}


def edge_values(values: Any, m: int) -> NDArray[Any]:
    """An array with one entry per edge."""
    return aligned_columns({"values": values}, m, "edge")["values"]


def aligned_columns(columns: Mapping[str, Any], count: int, of: str) -> dict[str, NDArray[Any]]:
    """Named arrays with one entry per edge, or per vertex, each."""
    arrays = {name: as_array(column, name) for name, column in columns.items()}
    for name, array in arrays.items():
        if array.shape != (count,):
            raise InputError(f"{name} has shape {array.shape}; it needs one entry per {of}: {count}")
    return arrays


def label_column(labels: Labels) -> NDArray[Any]:
    """Labels as an array: int64 where they are integers, else Python objects."""
    if isinstance(labels, range):
        return np.arange(labels.start, labels.stop, dtype=np.int64)
    if isinstance(labels, np.ndarray) and labels.dtype.kind in "iu":
        return labels.astype(np.int64)
    return np.fromiter(labels, np.object_, len(labels))


def _joined(keys: Mapping[str, NDArray[Any]], columns: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    taken = keys.keys() & columns.keys()
    if taken:
        raise InputError(f"the name {min(taken)!r} is taken by the column of labels; choose another one")
    return {**keys, **columns}


def _polars_frame(polars: Any, columns: NamedColumns) -> Any:
    return polars.DataFrame(
        {
            name: polars.Series(name, column.tolist(), polars.String) if _is_text(column) else column
            for name, column in columns.items()
        }
    )


def _arrow_table(pyarrow: Any, columns: NamedColumns) -> Any:
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


_MAKERS: dict[str, Callable[[Any, NamedColumns], Any]] = {
    "pandas": lambda pandas, columns: pandas.DataFrame(columns),
    "polars": _polars_frame,
    "pyarrow": _arrow_table,
}
