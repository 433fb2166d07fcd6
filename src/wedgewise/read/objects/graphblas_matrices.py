"""python-graphblas matrices ⇄ edges: every stored entry is a pair, every row number a vertex."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wedgewise.read.checks import interleave
from wedgewise.read.objects.scipy_sparse import square_side
from wedgewise.read.objects.values import keeps_values, weights_of_pairs
from wedgewise.stages import EdgeList, Origin

if TYPE_CHECKING:
    pass

NAME = "<graphblas>"


def edges_from_graphblas(matrix: Any, weights: Any = None) -> EdgeList:
    """Read the pattern of a square matrix, with its values where ``weights=True``."""
    side = square_side(matrix.shape, NAME)
    weighted = keeps_values(weights, NAME)
    rows, columns, values = matrix.to_coo(values=weighted, sort=False)
    kept = weights_of_pairs(values, len(rows), NAME)
    return EdgeList(interleave(rows, columns), Origin(NAME, "GraphBLAS"), vertices=side, weights=kept)
