"""Sparse matrices of SciPy and python-graphblas → edges: every stored entry is a pair, every row number a vertex."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import InputError
from wedgewise.machine.libraries import library
from wedgewise.read.objects.foreign import foreign, keeps_values, refuse_masked, weights_of_pairs
from wedgewise.read.pieces import first_outside, interleave
from wedgewise.stages import EdgeList, Origin

Entries = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]  # rows, columns, values

NAME, GRAPHBLAS = "<sparse>", "<graphblas>"
REMEDY = "rebuild the matrix"
PARTS = ("data", "indices", "indptr", "row", "col", "offsets")  # arrays that matrices of one format or another have


def edges_from_sparse(matrix: Any, weights: Any = None) -> EdgeList:
    """Read the pattern of a square sparse matrix of any SciPy format, with its values where ``weights=True``.

    Explicit zeros count as entries, as in NetworkX; ``matrix.eliminate_zeros()`` takes them out beforehand. Values
    that are stored twice in one place add up, as SciPy has it.
    """
    side = square_side(matrix.shape, NAME)
    weighted = keeps_values(weights, NAME)
    for part in PARTS:
        refuse_masked(getattr(matrix, part, None), NAME)
    with foreign(NAME, REMEDY):
        rows, columns, values = _READERS.get(matrix.format, _in_coordinates)(matrix)
        pairs = _pairs(rows, columns, side)
        if weighted:
            pairs, values = _summed(pairs, values, side)
    kept = weights_of_pairs(values, len(pairs), NAME) if weighted else None
    return EdgeList(pairs, Origin(NAME, f"scipy {matrix.format}"), vertices=side, weights=kept)


def _by_line(matrix: Any) -> Entries:
    """Of a matrix whose rows, or whose columns, are stored one after the other."""
    by_row = matrix.format == "csr"
    lines, indices = _compressed(matrix.indptr, matrix.indices, matrix.shape[0 if by_row else 1])
    rows, columns = (lines, indices) if by_row else (indices, lines)
    return rows, columns, matrix.data[: len(rows)]


def _by_block(matrix: Any) -> Entries:
    """Every place of every block that is stored."""
    height, width = matrix.blocksize
    rows, columns = _compressed(matrix.indptr, matrix.indices, matrix.shape[0] // height)
    down, across = np.arange(height)[:, np.newaxis], np.arange(width)
    every = (len(rows), height, width)
    rows, columns = (ends.astype(np.int64)[:, np.newaxis, np.newaxis] for ends in (rows, columns))
    rows, columns = np.broadcast_to(rows * height + down, every), np.broadcast_to(columns * width + across, every)
    return rows.reshape(-1), columns.reshape(-1), matrix.data[: len(rows)].reshape(-1)


def _in_coordinates(matrix: Any) -> Entries:
    entries = matrix.tocoo(copy=False)
    return entries.row, entries.col, entries.data


_READERS: dict[str, Callable[[Any], Entries]] = {"csr": _by_line, "csc": _by_line, "bsr": _by_block}


def _compressed(starts: NDArray[Any], indices: NDArray[Any], lines: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """The line and the index of every entry; SciPy, asked for that, counts in the type of the indices, unchecked."""
    if starts.dtype.kind not in "iu":
        raise _broken(f"indptr of dtype {starts.dtype} where integers are needed")
    begins = starts.astype(np.int64)  # a copy, which nobody changes
    lengths = np.diff(begins)
    if len(begins) != lines + 1 or begins[0] != 0 or (lengths < 0).any() or begins[-1] > len(indices):
        raise _broken(f"indptr does not cut {len(indices)} indices into {lines} lines")
    return np.repeat(np.arange(lines, dtype=_wide_enough(lines)), lengths), indices[: begins[-1]]


def _pairs(rows: NDArray[Any], columns: NDArray[Any], side: int) -> NDArray[Any]:
    """Rows and columns as pairs, each below `side`."""
    for indices in (rows, columns):
        if indices.dtype.kind not in "iu" or indices.shape != (len(rows),):
            raise _broken(
                f"indices of dtype {indices.dtype} and shape {indices.shape} where {len(rows)} integers belong"
            )
        outside = first_outside(indices, side)
        if outside is not None:
            raise _broken(f"an index is {outside[1]} where n is {side}")
    return interleave(rows, columns, _wide_enough(side))


def _summed(pairs: NDArray[Any], values: NDArray[Any], side: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """The entries with one value for each place, added up as floats: sums of narrow integers would wrap around."""
    wide = values.astype(np.float64) if values.dtype.kind in "biuf" else values.copy()
    entries = library("scipy.sparse").coo_array((wide, (pairs[:, 0], pairs[:, 1])), shape=(side, side))
    entries.sum_duplicates()
    return interleave(entries.row, entries.col), entries.data


def _wide_enough(count: int) -> type[np.integer[Any]]:
    """The type for numbers below `count`."""
    return np.int32 if count <= 2**31 else np.int64


def _broken(reason: str) -> InputError:
    return InputError(f"{NAME}: {reason}; {REMEDY}")


def square_side(shape: tuple[Any, ...], name: str) -> int:
    """The number of rows of a matrix that has as many columns."""
    sides = tuple(int(side) for side in shape)
    if len(sides) != 2 or sides[0] != sides[1]:
        raise InputError(f"{name}: shape {sides} is not square; an adjacency matrix has a row and a column per vertex")
    return sides[0]


def edges_from_graphblas(matrix: Any, weights: Any = None) -> EdgeList:
    """Read the pattern of a square matrix, with its values where ``weights=True``."""
    side = square_side(matrix.shape, GRAPHBLAS)
    weighted = keeps_values(weights, GRAPHBLAS)
    rows, columns, values = matrix.to_coo(values=weighted, sort=False)
    kept = weights_of_pairs(values, len(rows), GRAPHBLAS)
    return EdgeList(interleave(rows, columns), Origin(GRAPHBLAS, "GraphBLAS"), vertices=side, weights=kept)
