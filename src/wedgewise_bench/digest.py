"""What an answer says, in a form that does not depend on how a system numbers its vertices and edges.

Every answer implies the number of triangles T, and T may be known:

    count, transitivity τ         T, T = τ · wedges / 3
    triangles t, clustering c     T = Σ t / 3, t = c · d (d − 1) / 2
    edge_support s                T = Σ s / 3
    list_triangles                T rows

Trusses imply other numbers, which may be known as well: a k-truss that of its edges, truss numbers and the last truss
the largest k.

What these numbers do not tell is in the digest: the sum modulo 2^64 of one hash per row, where a row is the original
ids of a vertex, an edge or a triangle in ascending order, and its number. Rows of number zero are left out,
so that it does not matter whether a system keeps isolated vertices.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

ROWS_AT_ONCE = 2**20
LARGEST_EXACT = 2**50
TOLERANCE = 1e-3
MIN_K = 2
FIRST_FACTOR = np.uint64(0x9E3779B97F4A7C15)
SECOND_FACTOR = np.uint64(0xBF58476D1CE4E5B9)
SHIFT = np.uint64(29)


class Frame(Protocol):
    """What the entries of an answer stand for: the id and degree of each vertex, the two ends of each edge."""

    @property
    def ids(self) -> NDArray[Any]: ...
    @property
    def degrees(self) -> NDArray[Any]: ...
    @property
    def first(self) -> NDArray[Any]: ...
    @property
    def second(self) -> NDArray[Any]: ...


def summarise(question: str, frame: Frame, answer: Any) -> tuple[int, str]:
    """The number that an answer implies, and its digest; the latter is empty for single numbers.

    Parameters
    ----------
    question : what was asked
    frame : what the entries stand for
    answer : a number, an array by vertex or by edge of the frame, or an array of triangles as vertices of it; of a
        k-truss the numbers of its edges in the frame, of the last truss k and these

    Raises
    ------
    ArithmeticError : numbers that no simple graph has
    """
    match question:
        case "count":
            return int(answer), ""
        case "transitivity":
            return int(nearest(np.float64(answer) * int(wedges_at(frame.degrees).sum()) / 3)), ""
        case "list_triangles":
            rows = np.asarray(answer).reshape(-1, 3)
            return len(rows), _digest(frame, rows, np.broadcast_to(np.int64(1), len(rows)))
        case "edge_support":
            return _by_corners(frame, _edges_of(frame), np.asarray(answer))
        case "trussness":
            return _by_truss(frame, np.asarray(answer))
        case "k_truss":
            rows = _edges_of(frame)[np.asarray(answer, np.int64)]
            return len(rows), _digest(frame, rows, np.broadcast_to(np.int64(1), len(rows)))
        case "max_truss":
            k, held = answer
            rows = _edges_of(frame)[np.asarray(held, np.int64)]
            return int(k), _digest(frame, rows, np.broadcast_to(np.int64(k), len(rows)))
        case "clustering":
            answer = nearest(np.asarray(answer) * wedges_at(frame.degrees))
    return _by_corners(frame, np.arange(len(frame.ids))[:, None], np.asarray(answer))


def wedges_at(degrees: NDArray[Any]) -> NDArray[np.int64]:
    """How many pairs of edges meet at each vertex."""
    wide = degrees.astype(np.int64)
    return wide * (wide - 1) // 2


def nearest(values: Any) -> NDArray[np.int64]:
    """The integers that rounded quotients stand for."""
    whole = np.rint(values)
    # negated, so that NaN is refused as well
    if not (np.all(np.abs(values - whole) <= TOLERANCE) and np.all(whole < LARGEST_EXACT)):
        raise ArithmeticError("coefficients that do not determine integers")
    integers: NDArray[np.int64] = whole.astype(np.int64)
    return integers


def _by_corners(frame: Frame, rows: NDArray[Any], numbers: NDArray[Any]) -> tuple[int, str]:
    """Summarise numbers of which every triangle contributes to three."""
    if len(numbers) != len(rows):
        raise ArithmeticError(f"{len(numbers):,} numbers for {len(rows):,} rows")
    total = int(numbers.sum(dtype=np.int64))
    if total % 3:
        raise ArithmeticError(f"the sum is {total:,}, which three does not divide")
    return total // 3, _digest(frame, rows, numbers)


def _by_truss(frame: Frame, numbers: NDArray[Any]) -> tuple[int, str]:
    """Summarise truss numbers by the largest, which is 2 in a graph without edges."""
    if len(numbers) != len(frame.first):
        raise ArithmeticError(f"{len(numbers):,} numbers for {len(frame.first):,} edges")
    if np.any(numbers < MIN_K):
        raise ArithmeticError(f"a truss number of {numbers.min()}: every edge is in the {MIN_K}-truss")
    return int(numbers.max(initial=MIN_K)), _digest(frame, _edges_of(frame), numbers)


def _edges_of(frame: Frame) -> NDArray[Any]:
    return np.stack([frame.first, frame.second], axis=1)


def _digest(frame: Frame, rows: NDArray[Any], numbers: NDArray[Any]) -> str:
    total = sum(int(part.sum(dtype=np.uint64)) for part in _hashes(frame.ids, rows, numbers))
    return f"{total % 2**64:016x}"


def _hashes(ids: NDArray[Any], rows: NDArray[Any], numbers: NDArray[Any]) -> Iterator[NDArray[np.uint64]]:
    """One hash per row, many at a time."""
    for start in range(0, len(rows), ROWS_AT_ONCE):
        part = slice(start, start + ROWS_AT_ONCE)
        named = np.sort(ids[rows[part]].astype(np.uint64), axis=1)
        hashed = numbers[part].astype(np.uint64)
        is_counted = hashed != 0
        for column in named.T:
            hashed = _mixed(hashed * FIRST_FACTOR ^ column)
        yield hashed[is_counted]


def _mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Spread every bit over the word."""
    words = (words ^ (words >> SHIFT)) * SECOND_FACTOR
    return words ^ (words >> SHIFT)
