"""Graph → sparse matrices of SciPy and python-graphblas."""

from __future__ import annotations

from typing import Any

import numpy as np

from wedgewise.graph import Graph
from wedgewise.interop.edge_index import to_edge_index
from wedgewise.interop.tables import edge_values
from wedgewise.machine.libraries import library


def to_scipy(graph: Graph, values: Any = None) -> Any:
    """Make the symmetric adjacency matrix in CSR, indices sorted within each row.

    Parameters
    ----------
    graph : the graph; rows are vertex numbers, and a matrix has nowhere to keep labels
    values : one per row of ``graph.edges``, stored in both places of an edge, such as
        ``wedgewise.edge_support(graph)``; without them every entry is 1, as a 64-bit integer, so that powers of the
        matrix count walks

    Returns
    -------
    scipy.sparse.csr_array

    Examples
    --------
    >>> import wedgewise as ww
    >>> from wedgewise import interop
    >>> interop.to_scipy(ww.Graph([(0, 1), (1, 2)]), values=[5, 7]).toarray()
    array([[0, 5, 0],
           [5, 0, 7],
           [0, 7, 0]])
    """
    sparse = library("scipy.sparse")
    column = np.ones(graph.m, np.int64) if values is None else edge_values(values, graph.m)
    targets, sources = to_edge_index(graph)  # the lower ends of a row come before the higher: sorted as they stand
    entries = (np.tile(column, 2), (sources, targets))
    return sparse.coo_array(entries, shape=(graph.n, graph.n)).tocsr()


def to_graphblas(graph: Graph, values: Any = None) -> Any:
    """Make the symmetric adjacency matrix as a ``graphblas.Matrix``.

    Parameters
    ----------
    graph : the graph; rows are vertex numbers, and a matrix has nowhere to keep labels
    values : one per row of ``graph.edges``, stored in both places of an edge; without them every entry is 1, which
        GraphBLAS stores once for all

    Returns
    -------
    graphblas.Matrix

    Examples
    --------
    >>> import wedgewise as ww
    >>> from wedgewise import interop
    >>> matrix = interop.to_graphblas(ww.Graph([(0, 1), (1, 2)]))
    >>> matrix.shape, matrix.nvals
    ((3, 3), 4)
    """
    graphblas = library("graphblas")
    rows, columns = to_edge_index(graph)
    entries = 1 if values is None else np.tile(edge_values(values, graph.m), 2)
    return graphblas.Matrix.from_coo(rows, columns, entries, nrows=graph.n, ncols=graph.n)
