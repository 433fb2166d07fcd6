"""Arrays through DLPack, ``edge_index`` both ways, and weights beside arrays and pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import wedgewise as ww
from interop.messy_pairs import GRAPHS, MessyGraph, edges_of
from wedgewise import interop
from wedgewise.errors import InputError

CUDA = 2
EDGES = [[0, 1], [1, 2], [2, 40]]


class Tensor:
    """Speaks DLPack and nothing else, as other libraries' tensors do."""

    def __init__(self, array: NDArray[Any], device: int = 1) -> None:
        self._array = array
        self._device = device

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device, 0


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32, np.uint64])
def test_contiguous_tensors_are_not_copied(dtype: type) -> None:
    array: NDArray[Any] = np.array(EDGES, dtype)
    edges = interop.edges_from(Tensor(array))
    assert np.shares_memory(edges.pairs, array)
    assert edges.pairs.tolist() == EDGES


def test_other_tensors_are_copied_once() -> None:
    narrow = interop.edges_from(Tensor(np.array(EDGES, np.int16)))
    assert narrow.pairs.tolist() == EDGES
    strided = interop.edges_from(Tensor(np.array(EDGES).T.copy().T))
    assert strided.pairs.tolist() == EDGES
    assert strided.pairs.flags.c_contiguous


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32, np.uint64])
def test_counting_leaves_a_tensor_as_it_was(dtype: type) -> None:
    array: NDArray[Any] = np.array([[2, 1], [0, 2], [1, 0], [1, 0]], dtype)
    before = array.copy()
    assert ww.count(Tensor(array)) == 1
    assert np.array_equal(array, before)


@pytest.mark.parametrize("kind", [8, 10, 14])
def test_tensors_on_other_devices_are_refused(kind: int) -> None:
    message = rf"<dlpack>: the array lies on a device \(DLPack type {kind}, number 0\); copy it"
    with pytest.raises(InputError, match=message):
        interop.edges_from(Tensor(np.array(EDGES), kind))
    with pytest.raises(InputError, match=message):
        interop.from_edge_index(Tensor(np.array(EDGES).T, kind))


def test_weights_on_a_device_are_refused() -> None:
    with pytest.raises(InputError, match="<dlpack>: the array lies on a device"):
        interop.edges_from(EDGES, Tensor(np.ones(3), CUDA))


def test_what_dlpack_cannot_export_is_refused() -> None:
    dates = np.zeros((3, 2), "M8[s]")
    with pytest.raises(InputError, match=r"<dlpack>: .*; pass a NumPy array"):
        interop.edges_from(Tensor(dates))


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.array([[0.5, 1.0]]), "<array>: dtype float64 where integers are needed"),
        (np.zeros((2, 7), int), "<array>: shape (2, 7) where (k, 2) is needed; two rows look like sources and targets"),
        (np.array([[0, -1]]), "<array>: row 0 holds -1; vertices are non-negative integers"),
    ],
)
def test_tensors_are_checked_as_arrays_are(array: NDArray[Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        interop.edges_from(Tensor(array))
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("wrap", [np.asarray, Tensor, lambda array: array.tolist()])
@pytest.mark.parametrize("messy", GRAPHS[:5], ids=range(5))
def test_from_edge_index(wrap: Any, messy: MessyGraph) -> None:
    graph = interop.from_edge_index(wrap(messy.pairs.T.copy()), n=messy.n)
    assert graph.n == messy.n
    assert edges_of(graph) == messy.edges


def test_edge_index_of_two_edges_is_not_taken_for_pairs() -> None:
    """(2, 2) could be either: the function says which."""
    edge_index = np.array([[0, 0], [1, 2]])
    assert edges_of(interop.from_edge_index(edge_index)) == [(0, 1), (0, 2)]
    assert interop.from_edge_index(np.empty((2, 0), np.int64), n=3).m == 0


def test_from_edge_index_hands_keywords_on() -> None:
    graph = interop.from_edge_index(np.array([[0, 1], [1, 2]]), weights=Tensor(np.array([0.5, 2.0])), directed=True)
    assert graph.directed
    assert graph.weights is not None
    assert graph.weights.tolist() == [[0.5, 0.0], [2.0, 0.0]]


@pytest.mark.parametrize("shape", [(3, 2), (2,), (2, 3, 1)])
def test_other_shapes_are_no_edge_index(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match=r"<edge_index>: shape \(.*\) where \(2, k\) is needed; one row per edge"):
        interop.from_edge_index(np.zeros(shape, int))


@pytest.mark.parametrize("messy", GRAPHS, ids=range(len(GRAPHS)))
def test_to_edge_index(messy: MessyGraph) -> None:
    graph = ww.Graph(messy.pairs, n=messy.n)
    edge_index = interop.to_edge_index(graph)
    assert edge_index.shape == (2, 2 * graph.m)
    assert edge_index.dtype == np.int64
    assert list(zip(*edge_index.tolist(), strict=True)) == messy.edges + [(v, u) for u, v in messy.edges]
    assert edges_of(interop.from_edge_index(edge_index, n=graph.n)) == messy.edges


@pytest.mark.parametrize(
    "source", [np.array(EDGES), EDGES, [("a", "b"), ("b", "c"), ("c", "d")], Tensor(np.array(EDGES))]
)
@pytest.mark.parametrize(
    "weights", [[1, 2, 3], (1.0, 2.0, 3.0), np.array([1, 2, 3], np.uint8), Tensor(np.array([1, 2, 3]))]
)
def test_weights_beside_pairs(source: Any, weights: Any) -> None:
    kept = interop.edges_from(source, weights).weights
    assert kept is not None
    assert kept.dtype == np.float64
    assert kept.tolist() == [1.0, 2.0, 3.0]


def test_weights_of_64_bits_are_not_copied() -> None:
    weights = np.array([1.0, 2.0, 3.0])
    for given in (weights, Tensor(weights)):
        kept = interop.edges_from(np.array(EDGES), given).weights
        assert kept is not None
        assert np.shares_memory(kept, weights)


def test_no_weights() -> None:
    assert interop.edges_from(EDGES).weights is None
    assert interop.edges_from(EDGES, False).weights is None


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 2], "weights of shape (2,) for 3 pairs; pass one number per pair"),
        (np.ones((3, 1)), "weights of shape (3, 1) for 3 pairs; pass one number per pair"),
        (5, "weights of shape () for 3 pairs; pass one number per pair"),
        (True, "weights=True where pairs have no values; pass one number per pair"),
        ("weight", "weights='weight' where pairs have no values; pass one number per pair"),
        ([1, 2, None], "the weight of row 2 is None of type NoneType; weights are real numbers"),
        (["1", "2", "3"], "weights of dtype <U1; weights are real numbers"),
        ([1j, 2, 3], "weights of dtype complex128; weights are real numbers"),
        ([1, float("nan"), 2], "the weight of row 1 is nan; drop such rows or give them a number"),
        ([1, 2, -float("inf")], "the weight of row 2 is -inf; drop such rows or give them a number"),
    ],
)
def test_weights_that_are_refused(weights: Any, message: str) -> None:
    for name, source in (("<array>", np.array(EDGES)), ("<pairs>", EDGES)):
        with pytest.raises(InputError) as caught:
            interop.edges_from(source, weights)
        assert str(caught.value) == f"{name}: {message}"


def test_ragged_weights_are_refused() -> None:
    with pytest.raises(InputError, match=r"<pairs>: weights: .*; pass a NumPy array"):
        interop.edges_from(EDGES, [[1], [1, 2], [3]])
