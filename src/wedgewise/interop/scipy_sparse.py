"""SciPy sparse matrices → EdgeList: every stored entry is a pair, every row number a vertex."""

from __future__ import annotations

from typing import Any

from wedgewise.errors import InputError
from wedgewise.graph import EdgeList, Origin
from wedgewise.read.checks import first_outside, interleave


def edges_from_sparse(matrix: Any) -> EdgeList:
    """Read the pattern of a square sparse matrix of any SciPy format.

    Explicit zeros count as entries, as in NetworkX; ``matrix.eliminate_zeros()`` takes them out beforehand.
    """
    shape = tuple(int(side) for side in matrix.shape)
    if len(shape) != 2 or shape[0] != shape[1]:
        raise InputError(
            f"<sparse>: shape {shape} is not square; an adjacency matrix has a row and a column per vertex"
        )
    try:
        entries = matrix.tocoo()
    except ValueError as error:
        raise InputError(f"<sparse>: {error}; rebuild the matrix") from error
    pairs = interleave(entries.row, entries.col)
    outside = first_outside(pairs, shape[0])
    if outside is not None:
        raise InputError(f"<sparse>: an index is {outside[1]} where n is {shape[0]}; rebuild the matrix")
    return EdgeList(pairs, Origin("<sparse>", f"scipy {matrix.format}"), vertices=shape[0])
