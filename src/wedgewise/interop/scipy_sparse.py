"""SciPy sparse matrices ⇄ edges: every stored entry is a pair, every row number a vertex."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wedgewise.errors import InputError
from wedgewise.graph import EdgeList, Origin
from wedgewise.interop.edge_index import to_edge_index
from wedgewise.interop.libraries import library
from wedgewise.interop.values import edge_values, keeps_values, weights_of_pairs
from wedgewise.read.checks import first_outside, interleave

if TYPE_CHECKING:
    from wedgewise.user_graph import Graph

NAME = "<sparse>"


def edges_from_sparse(matrix: Any, weights: Any = None) -> EdgeList:
    """Read the pattern of a square sparse matrix of any SciPy format, with its values where ``weights=True``.

    Explicit zeros count as entries, as in NetworkX; ``matrix.eliminate_zeros()`` takes them out beforehand. Values
    that are stored twice in one place add up, as SciPy has it.
    """
    side = square_side(matrix.shape, NAME)
    weighted = keeps_values(weights, NAME)
    try:
        entries = matrix.tocoo(copy=False)
        if weighted and not entries.has_canonical_format:
            entries = entries.copy()
            entries.sum_duplicates()
    except ValueError as error:
        raise InputError(f"{NAME}: {error}; rebuild the matrix") from error
    pairs = interleave(entries.row, entries.col)
    outside = first_outside(pairs, side)
    if outside is not None:
        raise InputError(f"{NAME}: an index is {outside[1]} where n is {side}; rebuild the matrix")
    kept = weights_of_pairs(entries.data, len(pairs), NAME) if weighted else None
    return EdgeList(pairs, Origin(NAME, f"scipy {matrix.format}"), vertices=side, weights=kept)


def square_side(shape: tuple[Any, ...], name: str) -> int:
    """The number of rows of a matrix that has as many columns."""
    sides = tuple(int(side) for side in shape)
    if len(sides) != 2 or sides[0] != sides[1]:
        raise InputError(f"{name}: shape {sides} is not square; an adjacency matrix has a row and a column per vertex")
    return sides[0]


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
