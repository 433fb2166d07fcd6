"""Arrays that say that they lie on a CUDA device, viewed by a fake CuPy in the host's memory."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from helpers.fake_cupy import CUDARuntimeError, FakeCupy
from numpy.typing import NDArray

from wedgewise import interop
from wedgewise.errors import DeviceError, InputError, MissingDependencyError
from wedgewise.interop import matrices
from wedgewise.machine import gpu
from wedgewise.prepare import device_forms
from wedgewise.read.objects import arrays
from wedgewise.read.objects.arrays import device_pairs, lies_on_cuda

HOST, CUDA, CUDA_MANAGED = 1, 2, 13
EDGES = [[0, 1], [1, 2], [2, 40]]


class Tensor:
    """Speaks DLPack and nothing else; its memory is not the host's."""

    def __init__(self, array: NDArray[Any], kind: int = CUDA) -> None:
        self.on_host = array
        self.kind = kind

    def __dlpack__(self, **options: Any) -> Any:
        raise BufferError("no host can view this")

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.kind, 0


class NumbaArray:
    """Has CUDA's array interface and nothing else."""

    def __init__(self, array: NDArray[Any]) -> None:
        self.on_host = array
        self.__cuda_array_interface__ = {"shape": array.shape, "typestr": array.dtype.str, "version": 3}


@pytest.fixture
def fake() -> FakeCupy:
    return FakeCupy()


@pytest.fixture
def device(fake: FakeCupy, monkeypatch: pytest.MonkeyPatch) -> gpu.Cuda:
    found = gpu.Cuda(fake)
    for module in (arrays, matrices):
        monkeypatch.setattr(module, "find_device", lambda: found)
    return found


for_every_kind = pytest.mark.parametrize(
    "wrap", [Tensor, NumbaArray, lambda array: Tensor(array, CUDA_MANAGED)], ids=["dlpack", "interface", "managed"]
)


def test_labels_of_the_host_are_told_from_those_of_a_device() -> None:
    labels: tuple[Any, ...] = (None, range(3), ["a"], np.arange(3), object())
    assert list(map(device_forms.lies_on_device, labels)) == [False, False, False, False, True]


@for_every_kind
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32, np.uint64])
def test_contiguous_arrays_are_not_copied(wrap: Any, dtype: Any, device: gpu.Cuda) -> None:
    array: NDArray[Any] = np.array(EDGES, dtype)
    pairs = device_pairs(wrap(array), device)
    assert isinstance(pairs, device.xp.ndarray)
    assert np.shares_memory(pairs, array)
    assert (pairs.dtype, pairs.tolist()) == (dtype, EDGES)


@for_every_kind
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16])
def test_narrow_integers_are_widened(wrap: Any, dtype: Any, device: gpu.Cuda) -> None:
    pairs = device_pairs(wrap(np.array(EDGES, dtype)), device)
    assert pairs is not None
    assert (pairs.dtype, pairs.tolist()) == (np.int32, EDGES)


@for_every_kind
def test_other_layouts_are_made_contiguous(wrap: Any, device: gpu.Cuda) -> None:
    for array in (np.array(EDGES).T.copy().T, np.repeat(EDGES, 2, axis=0)[::2], np.array(EDGES)[:, ::-1]):
        pairs = device_pairs(wrap(array), device)
        assert pairs is not None
        assert pairs.flags.c_contiguous
        assert pairs.tolist() == array.tolist()


@pytest.mark.parametrize("source", [np.array(EDGES), EDGES, Tensor(np.array(EDGES), HOST), "path", None])
def test_what_lies_elsewhere_is_told_apart(source: Any) -> None:
    assert not lies_on_cuda(source)


@for_every_kind
@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.array([[0.5, 1.0]]), "<device array>: dtype float64 where integers are needed; vertices are integers"),
        (np.ones((3, 3), bool), "<device array>: dtype bool where integers are needed; if this is an adjacency matrix"),
        (np.zeros((2, 7), int), "<device array>: shape (2, 7) where (k, 2) is needed; two rows look like sources"),
        (np.zeros(4, int), "<device array>: shape (4,) where (k, 2) is needed; pass one row per edge"),
        (np.array([[0, 1], [2, -1]], np.int32), "<device array>: row 1 holds -1; vertices are non-negative integers"),
        (np.array([[-7, 1]], np.int8), "<device array>: row 0 holds -7; vertices are non-negative integers"),
        (np.array([[0, -(2**63)]], np.int64), "<device array>: row 0 holds -9223372036854775808; vertices are"),
        (np.array([[0, 2**63]], np.uint64), "<device array>: row 0 holds 9223372036854775808; labels go up to 2^63"),
    ],
)
def test_arrays_are_checked_as_those_of_the_host_are(
    wrap: Any, array: NDArray[Any], message: str, device: gpu.Cuda
) -> None:
    with pytest.raises(InputError) as caught:
        device_pairs(wrap(array), device)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("array", [np.array([[0, 2**63 - 1]], np.uint64), np.array([[0, 2**32 - 1]], np.uint32)])
def test_the_largest_labels_are_taken(array: NDArray[Any], device: gpu.Cuda) -> None:
    pairs = device_pairs(Tensor(array), device)
    assert pairs is not None
    assert pairs.tolist() == array.tolist()


@for_every_kind
def test_edges_stay_on_the_device(wrap: Any, fake: FakeCupy, device: gpu.Cuda) -> None:
    edges = interop.edges_from(wrap(np.array(EDGES)), [1, 2, 3])
    assert isinstance(edges.pairs, device.xp.ndarray)
    assert (edges.origin.name, edges.pairs.tolist()) == ("<device array>", EDGES)
    assert edges.weights is not None
    assert edges.weights.tolist() == [1.0, 2.0, 3.0]
    assert "using_allocator" in fake.calls
    assert interop.edges_from(wrap(np.empty((0, 2), np.int64))).pairs.shape == (0, 2)


@for_every_kind
def test_edge_index_is_transposed_on_the_device(wrap: Any, device: gpu.Cuda, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(matrices, "Graph", lambda pairs, **options: seen.append((pairs, options)))
    interop.from_edge_index(wrap(np.array(EDGES).T.copy()), n=50)
    (pairs, options), *_ = seen
    assert isinstance(pairs, device.xp.ndarray)
    assert (pairs.tolist(), options) == (EDGES, {"n": 50})
    with pytest.raises(InputError, match=r"<edge_index>: shape \(3, 2\) where \(2, k\) is needed"):
        interop.from_edge_index(wrap(np.array(EDGES)))


def test_what_cannot_be_viewed_is_refused(fake: FakeCupy, device: gpu.Cuda, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: Any) -> Any:
        raise BufferError("it needs a gradient")

    monkeypatch.setattr(fake, "from_dlpack", refuse)
    with pytest.raises(InputError, match="<device array>: it needs a gradient; pass a CuPy array"):
        interop.edges_from(Tensor(np.array(EDGES)))


def test_another_device_than_the_first_is_refused(
    fake: FakeCupy, device: gpu.Cuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fake.ndarray, "__dlpack_device__", lambda self: (CUDA, 3), raising=False)
    with pytest.raises(InputError, match="<device array>: lies on CUDA device 3 where device 0 is used"):
        interop.edges_from(Tensor(np.array(EDGES)))


def test_a_device_lost_meanwhile_is_no_fault_of_the_array(
    fake: FakeCupy, device: gpu.Cuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(source: Any) -> Any:
        raise CUDARuntimeError(700)

    monkeypatch.setattr(fake, "from_dlpack", fail)
    with pytest.raises(DeviceError, match="Fake GPU failed"):
        interop.edges_from(Tensor(np.array(EDGES)))


@for_every_kind
def test_without_cupy_the_extra_is_named(wrap: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu.find_device.cache_clear()
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(MissingDependencyError, match=r"wedgewise\[cuda13\]"):
        interop.edges_from(wrap(np.array(EDGES)))
    with pytest.raises(MissingDependencyError, match=r"wedgewise\[cuda13\]"):
        interop.from_edge_index(wrap(np.array(EDGES).T))
