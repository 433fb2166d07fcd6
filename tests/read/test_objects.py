"""Arrays, lists and sparse matrices in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from wedgewise.errors import InputError
from wedgewise.read.objects import edges_from

EDGES = [[0, 1], [1, 2], [2, 40]]


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32, np.uint64])
def test_contiguous_arrays_are_not_copied(dtype: type) -> None:
    array: NDArray[Any] = np.array(EDGES, dtype)
    edges = edges_from(array)
    assert np.shares_memory(edges.pairs, array)
    assert edges.vertices is None


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", ">i4", ">u8"])
def test_other_integers_are_widened(dtype: str) -> None:
    edges = edges_from(np.array(EDGES, dtype))
    assert edges.pairs.tolist() == EDGES
    assert edges.pairs.dtype in (np.int32, np.int64, np.uint32, np.uint64)


def test_views_are_made_contiguous() -> None:
    wide = np.arange(12).reshape(3, 4)
    edges = edges_from(wide[:, ::2])
    assert edges.pairs.tolist() == [[0, 2], [4, 6], [8, 10]]
    assert edges.pairs.flags.c_contiguous
    assert edges_from(np.array(EDGES).T.copy().T).pairs.flags.c_contiguous


def test_mapped_and_read_only_arrays() -> None:
    array = np.array(EDGES)
    array.flags.writeable = False
    assert np.shares_memory(edges_from(array).pairs, array)


@pytest.mark.parametrize(
    "source",
    [
        [(0, 1), (1, 2), (2, 40)],
        iter([(0, 1), (1, 2), (2, 40)]),
        ((a, b) for a, b in EDGES),
        [np.array(pair) for pair in EDGES],
        [(np.int32(0), 1), (1, np.uint64(2)), (2, 40)],
    ],
)
def test_pairs_of_integers(source: Any) -> None:
    assert edges_from(source).pairs.tolist() == EDGES


def test_pairs_of_strings_are_numbered_by_first_appearance() -> None:
    edges = edges_from([("b", "c"), ("a", "b"), ("b", "d")])
    assert edges.names == ["b", "c", "a", "d"]
    assert edges.pairs.tolist() == [[0, 1], [2, 0], [0, 3]]
    assert edges.vertices == 4


def test_nothing() -> None:
    assert edges_from([]).pairs.shape == (0, 2)
    assert edges_from(np.empty((0, 2), np.int64)).pairs.shape == (0, 2)


@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
def test_sparse_matrices(layout: str) -> None:
    sparse = pytest.importorskip("scipy.sparse")
    dense = np.zeros((5, 5))
    dense[0, 1] = dense[1, 2] = dense[3, 0] = 2.5
    for matrix in (sparse.csr_matrix(dense), sparse.csr_array(dense)):
        edges = edges_from(matrix.asformat(layout))
        assert sorted(edges.pairs.tolist()) == [[0, 1], [1, 2], [3, 0]]
        assert edges.vertices == 5
        assert edges.origin.format == f"scipy {layout}"


def test_explicit_zeros_are_edges() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    matrix = sparse.coo_array(([0.0, 1.0], ([0, 1], [1, 2])), shape=(3, 3))
    assert len(edges_from(matrix).pairs) == 2
    matrix.eliminate_zeros()
    assert len(edges_from(matrix).pairs) == 1


REFUSED: list[tuple[Any, str]] = [
    (
        np.array([[0.0, 1.0]]),
        "<array>: dtype float64 where integers are needed; vertices are integers: convert",
    ),
    (
        np.array([[True, False]]),
        "<array>: dtype bool where integers are needed; if this is an adjacency matrix",
    ),
    (
        np.array([["a", "b"]]),
        "<array>: dtype <U1 where integers are needed; for text labels pass array.tolist()",
    ),
    (
        np.array([[0, None]]),
        "<array>: dtype object where integers are needed; pass an integer array, or a list",
    ),
    (np.array([[0j, 1j]]), "<array>: dtype complex128 where integers are needed; pass an integer array"),
    (
        np.zeros((2, 7), int),
        "<array>: shape (2, 7) where (k, 2) is needed; two rows look like sources and targets",
    ),
    (np.zeros((4, 4), int), "<array>: shape (4, 4) where (k, 2) is needed; if this is an adjacency matrix"),
    (np.zeros(6, int), "<array>: shape (6,) where (k, 2) is needed; pass one row per edge: source, target"),
    (
        np.array([[0, 1], [2, -3]]),
        "<array>: row 1 holds -3; vertices are non-negative integers: renumber them",
    ),
    (
        np.array([[0, 2**63]], np.uint64),
        f"<array>: row 0 holds {2**63}; labels go up to 2^63 − 1: renumber them",
    ),
    ([(0, 1), (2, -3)], "<pairs>: row 1 holds -3; vertices are non-negative integers: renumber them"),
    ([(0, 1), (2, 2**63)], f"<pairs>: row 1 holds {2**63}; labels go up to 2^63 − 1: renumber them"),
    ([(0, 1), (2, -(2**70))], f"<pairs>: row 1 holds {-(2**70)}; vertices are non-negative integers"),
    ([(0, 1), (2, 3, 4)], "<pairs>: row 1 is (2, 3, 4), not a pair; pass pairs such as (0, 1)"),
    ([0, 1], "<pairs>: row 0 is 0, not a pair; pass pairs such as (0, 1)"),
    (["ab", "cd"], "<pairs>: row 0 is 'ab', not a pair; pass pairs such as (0, 1)"),
    (
        [(0, 1), (2, "3")],
        "<pairs>: row 1 holds '3' of type str; pass pairs that are all integers or all strings",
    ),
    (
        [("a", "b"), ("c", 3)],
        "<pairs>: row 1 holds 3 of type int; pass pairs that are all integers or",
    ),
    ([(0, 1.5)], "<pairs>: row 0 holds 1.5 of type float; pass pairs that are all integers or all strings"),
    ([(0, True)], "<pairs>: row 0 holds True of type bool; pass pairs that are all integers or all strings"),
    (
        {0: [1]},
        "cannot read edges from dict; pass a (k, 2) integer array, an iterable of pairs, a SciPy sparse",
    ),
    (
        7,
        "cannot read edges from int; pass a (k, 2) integer array",
    ),
]


@pytest.mark.parametrize(("source", "message"), REFUSED)
def test_refusals(source: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        edges_from(source)
    assert str(caught.value).startswith(message)


def test_sparse_refusals() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(InputError, match=r"<sparse>: shape \(2, 3\) is not square"):
        edges_from(sparse.csr_array((2, 3)))
    broken = sparse.csr_array(np.eye(3))
    broken.indices[1] = 7
    with pytest.raises(InputError, match=r"<sparse>: .*7.* rebuild the matrix"):
        edges_from(broken)
    broken = sparse.coo_array(np.eye(3))
    broken.row[1] = 7
    with pytest.raises(InputError, match="<sparse>: an index is 7 where n is 3; rebuild the matrix"):
        edges_from(broken)
