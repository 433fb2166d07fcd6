"""Matrices of SciPy and python-graphblas, both ways."""

from __future__ import annotations

from typing import Any

import graphblas
import numpy as np
import pytest
import scipy.sparse
from numpy.typing import NDArray

import wedgewise as ww
from interop.messy_pairs import GRAPHS, MessyGraph, edges_of, messy_graph
from wedgewise import interop
from wedgewise.errors import InputError

every_graph = pytest.mark.parametrize("messy", GRAPHS, ids=range(len(GRAPHS)))


def in_scipy(messy: MessyGraph) -> Any:
    return scipy.sparse.coo_array((messy.weights, tuple(messy.pairs.T)), shape=(messy.n, messy.n))


def in_graphblas(messy: MessyGraph) -> Any:
    rows, columns = messy.pairs.T
    return graphblas.Matrix.from_coo(
        rows, columns, messy.weights, nrows=messy.n, ncols=messy.n, dtype=float, dup_op=graphblas.binary.plus
    )


@pytest.mark.parametrize("make", [in_scipy, in_graphblas])
@every_graph
def test_rows_are_vertices(make: Any, messy: MessyGraph) -> None:
    graph = ww.Graph(make(messy))
    assert graph.n == messy.n
    assert graph.labels == range(messy.n)
    assert edges_of(graph) == messy.edges


@pytest.mark.parametrize("make", [in_scipy, in_graphblas])
def test_entries_keep_their_direction(make: Any) -> None:
    messy = messy_graph(1)
    edges = interop.edges_from(make(messy))
    assert not edges.undirected
    assert set(map(tuple, edges.pairs.tolist())) == set(messy.arcs)


@pytest.mark.parametrize("make", [in_scipy, lambda messy: in_scipy(messy).tocsr(), in_graphblas])
def test_values_are_weights_and_add_up(make: Any) -> None:
    messy = messy_graph(2)
    edges = interop.edges_from(make(messy), True)
    assert edges.weights is not None
    total: dict[tuple[int, int], float] = {}
    for arc, weight in zip(messy.arcs, messy.weights.tolist(), strict=True):
        total[arc] = total.get(arc, 0.0) + weight
    found = dict(zip(map(tuple, edges.pairs.tolist()), edges.weights.tolist(), strict=True))
    assert found == pytest.approx(total)


def test_adding_values_up_leaves_the_matrix_as_it_was() -> None:
    matrix = in_scipy(messy_graph(2))
    before = matrix.nnz
    interop.edges_from(matrix, True)
    assert matrix.nnz == before


def test_boolean_entries_weigh_one() -> None:
    pattern = scipy.sparse.csr_array(np.array([[False, True], [True, False]]))
    kept = interop.edges_from(pattern, True).weights
    assert kept is not None
    assert kept.tolist() == [1.0, 1.0]


def test_a_transposed_matrix_of_graphblas() -> None:
    matrix = graphblas.Matrix.from_coo([0, 1], [1, 2], [5.0, 7.0], nrows=4, ncols=4)
    edges = interop.edges_from(matrix.T, True)
    assert sorted(map(tuple, edges.pairs.tolist())) == [(1, 0), (2, 1)]
    assert edges.vertices == 4


@every_graph
def test_to_scipy(messy: MessyGraph) -> None:
    graph = ww.Graph(messy.pairs, n=messy.n)
    matrix = interop.to_scipy(graph)
    assert isinstance(matrix, scipy.sparse.csr_array)
    assert matrix.dtype == np.int64
    assert matrix.has_canonical_format
    expected = np.zeros((messy.n, messy.n), np.int64)
    for u, v in messy.edges:
        expected[u, v] = expected[v, u] = 1
    assert np.array_equal(matrix.toarray(), expected)
    assert edges_of(ww.Graph(matrix)) == messy.edges


@every_graph
@pytest.mark.parametrize("dtype", [np.uint32, np.float32])
def test_values_of_edges_in_scipy(messy: MessyGraph, dtype: type) -> None:
    graph = ww.Graph(messy.pairs, n=messy.n)
    values: NDArray[Any] = np.arange(1, graph.m + 1).astype(dtype)
    matrix = interop.to_scipy(graph, values=values)
    assert matrix.dtype == dtype
    assert [matrix[u, v] for u, v in messy.edges] == values.tolist()
    assert (matrix != matrix.T).nnz == 0


def test_triangles_by_powers_of_the_matrix() -> None:
    graph = ww.Graph(GRAPHS[4].pairs)
    matrix = interop.to_scipy(graph)
    assert int((matrix @ matrix * matrix).sum()) == 6 * ww.count(graph)


@every_graph
def test_to_graphblas(messy: MessyGraph) -> None:
    graph = ww.Graph(messy.pairs, n=messy.n)
    matrix = interop.to_graphblas(graph)
    assert matrix.shape == (messy.n, messy.n)
    assert matrix.nvals == 2 * graph.m
    assert edges_of(ww.Graph(matrix)) == messy.edges
    values = np.linspace(1, 2, graph.m)
    rows, columns, found = interop.to_graphblas(graph, values=values).to_coo()
    per_arc = dict(zip(zip(rows.tolist(), columns.tolist(), strict=True), found.tolist(), strict=True))
    for value, (u, v) in zip(values.tolist(), messy.edges, strict=True):
        assert per_arc[u, v] == per_arc[v, u] == value


@pytest.mark.parametrize(
    ("source", "weights", "message"),
    [
        (scipy.sparse.csr_array((3, 3)), "w", "<sparse>: weights are the values that it holds; pass weights=True"),
        (scipy.sparse.csr_array(np.eye(2) * 1j), True, "<sparse>: weights of dtype complex128; weights are real"),
        (scipy.sparse.csr_array(np.diag([1, np.nan])), True, "<sparse>: the weight of row 1 is nan; drop such rows"),
        (graphblas.Matrix(float, 2, 3), None, "<graphblas>: shape (2, 3) is not square; an adjacency matrix has"),
        (graphblas.Matrix(float, 3, 3), [1.0], "<graphblas>: weights are the values that it holds; pass weights=True"),
    ],
)
def test_refusals(source: Any, weights: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        interop.edges_from(source, weights)
    assert str(caught.value).startswith(message)


def test_values_must_fit() -> None:
    graph = ww.Graph([(0, 1), (1, 2)])
    for convert in (interop.to_scipy, interop.to_graphblas):
        with pytest.raises(InputError, match=r"values has shape \(3,\); it needs one entry per edge: 2"):
            convert(graph, values=[1, 2, 3])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint32", "float32", "bool", "longdouble"])
@pytest.mark.parametrize("format", ["coo", "csr", "csc"])
def test_values_that_are_stored_twice_add_up_as_floats(dtype: str, format: str) -> None:
    largest = int(np.iinfo(dtype).max) if dtype.startswith(("int", "uint")) else 1
    indices, offsets = np.array([1, 1]), np.array([0, 2, 2])
    values = np.array([largest, largest], dtype)
    form = (values, (np.array([0, 0]), indices)) if format == "coo" else (values, indices, offsets)
    matrix = getattr(scipy.sparse, f"{format}_array")(form, shape=(2, 2))
    weights = ww.Graph(matrix, weights=True).weights
    assert weights is not None
    assert weights.tolist() == [2.0 * largest]
