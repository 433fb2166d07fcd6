"""Blocks as matrices, at random; and the triangles of three of them, by a product."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.stages.blocks import Block, Triple

Matrix = NDArray[np.bool_]
NARROW, WIDE = np.uint32, np.uint64
# the offsets of three blocks: wide ones in one of them, and in all; each choice is compiled on its own
WIDER = ((WIDE, NARROW, NARROW), (NARROW, WIDE, NARROW), (NARROW, NARROW, WIDE), (WIDE, WIDE, WIDE))


def block_of(matrix: Matrix, width: type[np.unsignedinteger[Any]] = np.uint32) -> Block:
    """A block with an arc for every entry."""
    offsets = np.concatenate([[0], matrix.sum(axis=1).cumsum()]).astype(width)
    return Block(offsets, np.nonzero(matrix)[1].astype(np.uint32), matrix.shape[1])


def count_blocks_by_product(ij: Matrix, ik: Matrix, jk: Matrix, share: int = 0, shares: int = 1) -> int:
    """The triangles of a triple by its definition."""
    paths = ij[share::shares].astype(np.float64) @ jk.astype(np.float64)  # exact below 2^53
    return int(paths[ik[share::shares]].sum())


def random_matrix(seed: int, rows: int, columns: int, density: float) -> Matrix:
    """Entries at random, more of them in later rows and columns, as with ids by rank."""
    chances = np.outer(np.linspace(0.2, 1.8, rows), np.linspace(0.2, 1.8, columns)) * density
    return np.random.default_rng(seed).random((rows, columns)) < chances


def ascending(seed: int, size: int, density: float) -> Matrix:
    """Entries above the diagonal, as in a block on the diagonal of an ordered partition."""
    return np.triu(random_matrix(seed, size, size, density), 1)


def unordered(seed: int, size: int, density: float) -> Matrix:
    """An acyclic block on the diagonal whose numbering does not follow the arcs."""
    shuffled = np.random.default_rng(seed).permutation(size)
    return ascending(seed, size, density)[np.ix_(shuffled, shuffled)]


def triple_of(matrices: tuple[Matrix, Matrix, Matrix], width: type[np.unsignedinteger[Any]] = np.uint32) -> Triple:
    """Blocks of three matrices; the same matrix gives the same block."""
    made = {id(matrix): block_of(matrix, width) for matrix in matrices}
    return Triple(*(made[id(matrix)] for matrix in matrices))
