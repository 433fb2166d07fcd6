"""What other libraries hold → EdgeList: NumPy arrays, lists of pairs, SciPy sparse matrices."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from wedgewise.errors import InputError
from wedgewise.graph import EdgeList
from wedgewise.interop.arrays import edges_from_array, edges_from_pairs
from wedgewise.interop.scipy_sparse import edges_from_sparse

__all__ = ["edges_from"]


def edges_from(source: Any) -> EdgeList:
    """Read pairs out of an object in memory.

    Parameters
    ----------
    source : one of

        * a NumPy array of integers of shape (k, 2): C-contiguous ones of 4 and 8 bytes are kept
          without a copy, other integer types are widened;
        * a SciPy sparse matrix or array, square: every stored entry is a pair, explicit zeros included (as
          NetworkX has it), and vertices are row numbers;
        * an iterable of pairs of integers, or of pairs of strings (vertices numbered by first appearance).

    Raises
    ------
    InputError
        When the object is none of these, or holds a negative, a fraction, a bool or a number above 2^63 − 1;
        the message names the row.

    Examples
    --------
    >>> edges_from([("ada", "bob"), ("bob", "cy")]).names
    ['ada', 'bob', 'cy']
    """
    if isinstance(source, np.ndarray):
        return edges_from_array(source)
    if _is_sparse(source):
        return edges_from_sparse(source)
    if isinstance(source, Iterable) and not isinstance(source, str | bytes | bytearray | Mapping):
        return edges_from_pairs(source)
    raise InputError(
        f"cannot read edges from {type(source).__name__}; pass a (k, 2) integer array, an iterable of pairs, "
        "a SciPy sparse matrix or a path"
    )


def _is_sparse(source: Any) -> bool:
    """Whether SciPy made this object; SciPy is not imported for the question."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and bool(sparse.issparse(source))
