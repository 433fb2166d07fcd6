"""python-graphblas matrices ⇄ edges: every stored entry is a pair, every row number a vertex."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wedgewise.graph import EdgeList, Origin
from wedgewise.interop.edge_index import to_edge_index
from wedgewise.interop.libraries import library
from wedgewise.interop.scipy_sparse import square_side
from wedgewise.interop.values import edge_values, keeps_values, weights_of_pairs
from wedgewise.read.checks import interleave

if TYPE_CHECKING:
    from wedgewise.user_graph import Graph

NAME = "<graphblas>"


def edges_from_graphblas(matrix: Any, weights: Any = None) -> EdgeList:
    """Read the pattern of a square matrix, with its values where ``weights=True``."""
    side = square_side(matrix.shape, NAME)
    weighted = keeps_values(weights, NAME)
    rows, columns, values = matrix.to_coo(values=weighted, sort=False)
    kept = weights_of_pairs(values, len(rows), NAME)
    return EdgeList(interleave(rows, columns), Origin(NAME, "GraphBLAS"), vertices=side, weights=kept)


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
