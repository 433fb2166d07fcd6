"""Objects in memory → EdgeList: NumPy and DLPack arrays, tables, sparse matrices, graphs of other libraries.

No library is imported before it is needed: an object can only be of a library that somebody else has imported.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from wedgewise.errors import InputError
from wedgewise.machine.out_of_memory import memory_for
from wedgewise.read.columns import ANY_COLUMNS, ColumnChoice
from wedgewise.read.objects.arrays import edges_from_array, edges_from_device, edges_from_pairs, lies_on_cuda
from wedgewise.read.objects.foreign import array_from_dlpack, foreign, viewed, weights_of_pairs
from wedgewise.read.objects.graphs import edges_from_igraph, edges_from_networkit, edges_from_networkx
from wedgewise.read.objects.sparse_matrices import edges_from_graphblas, edges_from_sparse
from wedgewise.read.objects.tables import edges_from_arrow, edges_from_pandas
from wedgewise.stages import EdgeList
from wedgewise.stages.labels import TextLabels

Reader = Callable[[Any, Any], EdgeList]


@memory_for("read")
def edges_from(source: Any, weights: Any = None, columns: ColumnChoice = ANY_COLUMNS, labels: str = "auto") -> EdgeList:
    """Read pairs out of an object in memory.

    Parameters
    ----------
    source : one of

        * a NumPy array of integers of shape (k, 2), or another library's that speaks DLPack or has a
          ``__cuda_array_interface__`` and lies in the host's memory or on a CUDA device: C-contiguous ones of 4 and 8
          bytes are kept without a copy where they lie, other integer types are widened; a memoryview is such an array;
        * a SciPy sparse matrix or array, or a python-graphblas Matrix, square: every stored entry is a pair,
          explicit zeros included (as NetworkX has it), and vertices are row numbers;
        * a NetworkX, igraph or NetworKit graph: every vertex stays, in its order;
        * a pandas DataFrame, or any table that exports Arrow's PyCapsules (polars, pyarrow, DuckDB …): two columns of
          integers or strings, which `wedgewise.read.columns` chooses;
        * an iterable of pairs of integers, or of pairs of strings (vertices numbered by first appearance).
    weights : one finite number per pair; or True for the values of a matrix or of a weighted NetworKit graph; or the
        name of an edge attribute or of a column
    columns : which columns of a table are the ends and the weight, as far as the caller says so
    labels : "int" or "text" to say what the labels of a table are, "auto" to take them as they are

    Raises
    ------
    InputError
        When the object is none of these, or holds a negative, a fraction, a bool or a number above 2^63 − 1;
        the message names the row.
    MissingDependencyError
        When a table needs pyarrow to be read, or an array on a CUDA device needs CuPy, and it is not installed.

    Examples
    --------
    >>> edges_from([("ada", "bob"), ("bob", "cy")]).names
    ['ada', 'bob', 'cy']
    """
    if weights is not None and columns.weight is not None:
        raise InputError(f"weight={columns.weight!r} names a column, and weights are given as well; leave one out")
    name = f"<{type(source).__name__}>"
    if _is_of(source, "pandas", ("Series",)):
        raise InputError(f"{name}: is one column, and edges have two; pass a DataFrame, such as .reset_index() gives")
    if _is_of(source, "polars", ("LazyFrame",)):
        raise InputError(f"{name}: is a query that has no rows yet; pass what its .collect() gives")
    read_table = _reader_of_tables(source)
    if read_table is not None:
        columns.check_header_unused("<table>")
        with foreign("<table>", "pass a table with a column of sources and one of targets"):
            names_column = isinstance(weights, str)
            edges = read_table(source, replace(columns, weight=weights) if names_column else columns, labels)
            if weights is not None and not names_column:
                edges = replace(edges, weights=weights_of_pairs(weights, len(edges.pairs), "<table>"))
            return edges
    columns.check_unused(name, "it is no table")
    edges = _edges_of_others(source, weights)
    found = "text" if isinstance(edges.names, TextLabels) else "other" if isinstance(edges.names, list) else "int"
    if labels not in ("auto", found):
        raise InputError(f"{name}: labels={labels!r}, but only those of files and tables are converted; leave it out")
    return edges


def _edges_of_others(source: Any, weights: Any) -> EdgeList:
    """Read what is no table."""
    if isinstance(source, memoryview):
        source = viewed(source, "<memoryview>")
    if isinstance(source, np.ndarray):
        return edges_from_array(source, weights)
    for module, classes, reader in _READERS:
        if _is_of(source, module, classes):
            with foreign(f"<{module.partition('.')[0]}>", "pass a whole graph that nobody changes meanwhile"):
                return reader(source, weights)
    if lies_on_cuda(source):
        return edges_from_device(source, weights)
    if hasattr(source, "__dlpack__") and hasattr(source, "__dlpack_device__"):
        return edges_from_array(array_from_dlpack(source), weights)
    if isinstance(source, Iterable) and not isinstance(source, str | bytes | bytearray | Mapping):
        return edges_from_pairs(source, weights)
    raise InputError(
        f"cannot read edges from {type(source).__name__}; pass a (k, 2) integer array, an iterable of pairs, "
        "a SciPy sparse matrix, a table, a graph of another library or a path"
    )


def _edges_from_networkx(graph: Any, weights: Any) -> EdgeList:
    edges = edges_from_networkx(graph, weights)
    is_name = weights is None or isinstance(weights, str)
    if not is_name and not any(weights in data for *_, data in graph.edges(data=True)):
        raise InputError(f"<networkx>: no edge has an attribute {weights!r}; pass the name of one that edges have")
    return edges


_READERS: tuple[tuple[str, tuple[str, ...], Reader], ...] = (
    ("scipy.sparse", ("sparray", "spmatrix"), edges_from_sparse),
    ("networkx", ("Graph",), _edges_from_networkx),
    ("igraph", ("Graph",), edges_from_igraph),
    ("networkit.graph", ("Graph",), edges_from_networkit),
    ("graphblas.core.matrix", ("Matrix", "TransposedMatrix"), edges_from_graphblas),
)


def is_table(source: Any) -> bool:
    """Whether an object is a table, which has columns."""
    return _reader_of_tables(source) is not None


def _reader_of_tables(source: Any) -> Callable[[Any, ColumnChoice, str], EdgeList] | None:
    """What reads a table; None for what is none."""
    if _is_of(source, "pandas", ("DataFrame",)):
        return edges_from_pandas
    speaks_arrow = hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__")
    return edges_from_arrow if speaks_arrow and not isinstance(source, np.ndarray) else None


def _is_of(source: Any, module: str, classes: tuple[str, ...]) -> bool:
    """Whether a library made this object; it is not imported for the question."""
    loaded = sys.modules.get(module)
    return any(isinstance(source, getattr(loaded, name, ())) for name in classes)
