"""PyTorch Geometric's ``edge_index``, a (2, k) array of sources and targets ⇄ Graph → sparse matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import InputError
from wedgewise.graph import Graph
from wedgewise.interop.tables import edge_values
from wedgewise.machine.gpu import find_device
from wedgewise.machine.libraries import library
from wedgewise.read.objects.arrays import device_view, lies_on_cuda
from wedgewise.read.objects.foreign import as_array


def from_edge_index(edge_index: Any, n: int | None = None, **options: Any) -> Graph:
    """Make a graph of a (2, k) array whose rows are sources and targets.

    Parameters
    ----------
    edge_index : (2, k) array of integers: NumPy's, or any that speaks DLPack, such as a PyTorch tensor, in the host's
        memory or on a CUDA device. The two rows are interleaved where they lie, which takes one copy, unless the array
        is the transpose of a C-contiguous (k, 2) array.
    n : number of vertices, ``data.num_nodes``; without it the vertices are the ids that occur
    options : further keywords of `wedgewise.Graph`, such as ``weights=data.edge_weight``

    Returns
    -------
    Graph

    Examples
    --------
    >>> import numpy as np
    >>> from wedgewise import interop
    >>> interop.from_edge_index(np.array([[0, 1, 2], [1, 2, 0]]), n=4)
    Graph('<array>', n=4, m=3)
    """
    ends = device_view(edge_index, find_device()) if lies_on_cuda(edge_index) else as_array(edge_index)
    if ends.ndim != 2 or ends.shape[0] != 2:
        raise InputError(
            f"<edge_index>: shape {ends.shape} where (2, k) is needed; "
            "one row per edge, of shape (k, 2), goes to wedgewise.Graph"
        )
    return Graph(ends.T, n=n, **options)


def to_edge_index(graph: Graph) -> NDArray[np.int64]:
    """Give every edge in both directions as a (2, 2m) array of vertex indices.

    The first m columns are the rows of ``graph.edges`` and the other m the same edges reversed, so that
    ``np.tile(values, 2)`` lays values per edge out alike.

    Examples
    --------
    >>> import wedgewise as ww
    >>> from wedgewise import interop
    >>> interop.to_edge_index(ww.Graph([(0, 1), (1, 2)]))
    array([[0, 1, 1, 2],
           [1, 2, 0, 1]])
    """
    both = np.empty((2, 2 * graph.m), np.int64)
    both[:, : graph.m] = graph.edges.T
    both[:, graph.m :] = graph.edges.T[::-1]
    return both


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
