"""Arrays to a real device and back, pairs that arrive while they are parsed, and arrays that lie there already."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from devices.real_device import needs_device
from wedgewise import interop
from wedgewise.errors import DeviceMemoryError, InputError
from wedgewise.machine import gpu
from wedgewise.machine.ring import BUFFERS, DIRECT_BYTES, PIECE_BYTES
from wedgewise.read import read_edges
from wedgewise.read.objects.arrays import device_pairs
from wedgewise.write import edges as write

pytestmark = needs_device

SIZES = (0, 1, DIRECT_BYTES - 8, DIRECT_BYTES, PIECE_BYTES, PIECE_BYTES + 8, (BUFFERS + 3) * PIECE_BYTES + 24)
MANAGED_MEMORY = 3


@pytest.fixture
def device() -> gpu.Cuda:
    return gpu.find_device()


def some_pairs(count: int, dtype: Any = np.uint32) -> NDArray[Any]:
    return np.random.default_rng(count).integers(0, 100, (count, 2)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint32, np.uint64, np.float64])
@pytest.mark.parametrize("size", SIZES)
def test_arrays_arrive_whole_both_ways(device: gpu.Cuda, dtype: Any, size: int) -> None:
    sent = np.random.default_rng(size).integers(0, 200, size // np.dtype(dtype).itemsize).astype(dtype)
    there = device.upload(sent)
    assert (there.dtype, there.shape) == (sent.dtype, sent.shape)
    assert np.array_equal(device.xp.asnumpy(there), sent)
    assert np.array_equal(device.download(there), sent)


def test_strided_arrays(device: gpu.Cuda) -> None:
    pairs = some_pairs(3_000_000)
    assert np.array_equal(device.download(device.upload(np.asfortranarray(pairs))), pairs)
    assert np.array_equal(device.download(device.upload(pairs)[::2, ::-1]), pairs[::2, ::-1])


def test_mapped_files(device: gpu.Cuda, tmp_path: Path) -> None:
    pairs = some_pairs(3_000_000)
    np.save(tmp_path / "pairs.npy", pairs)
    mapped = read_edges(tmp_path / "pairs.npy").pairs
    assert not mapped.flags.owndata
    assert np.array_equal(device.download(device.upload(mapped)), pairs)


def test_copies_wait_for_kernels_on_any_stream(device: gpu.Cuda) -> None:
    xp, size = device.xp, 1 << 24
    with device.memory(), xp.cuda.Stream(non_blocking=True):
        for step in range(20):
            values = xp.zeros(size, xp.uint32)
            for _ in range(50):
                values += 1
            assert (device.download(values) == 50).all()
            del values
            there = device.upload(np.full(size, step, np.uint32))
            assert int(there.max()) == int(there.min()) == step
        device.synchronize()


def test_transfers_at_once(device: gpu.Cuda) -> None:
    sent = [some_pairs(1_000_000 + number) for number in range(6)]
    equal = [False] * len(sent)

    def transfer(number: int) -> None:
        equal[number] = np.array_equal(device.download(device.upload(sent[number])), sent[number])

    threads = [threading.Thread(target=transfer, args=(number,)) for number in range(len(sent))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(equal)


def test_an_interrupted_upload_leaves_the_device_usable(device: gpu.Cuda) -> None:
    sent = np.zeros(1 << 28, np.uint32)
    timer = threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        any(device.upload(sent) is None for _ in range(1000))
    timer.join()
    pairs = some_pairs(5_000_000)
    assert np.array_equal(device.download(device.upload(pairs)), pairs)


@pytest.mark.parametrize("suffix", ["txt", "txt.gz", "npy", "bel32"])
def test_pairs_arrive_from_files(device: gpu.Cuda, suffix: str, tmp_path: Path) -> None:
    source = tmp_path / f"pairs.{suffix}"
    write.write_edges(some_pairs(3_000_000, np.int32), source)
    with device.memory(), device.arriving() as arriving:
        edge_list = read_edges(source, receiver=arriving)
        there = arriving.finish()
        assert there.dtype == edge_list.pairs.dtype
        assert np.array_equal(device.xp.asnumpy(there), edge_list.pairs)


def test_wide_labels_and_comments_arrive(device: gpu.Cuda, tmp_path: Path) -> None:
    source = tmp_path / "pairs.txt"
    write.write_edges(some_pairs(1_000_000), source)
    lines = source.read_bytes()
    source.write_bytes(lines + b"# nothing\n" * 1000 + lines + b"1 4294967296\n")
    with device.memory(), device.arriving() as arriving:
        edge_list = read_edges(source, receiver=arriving)
        there = arriving.finish()
        assert there.dtype == np.uint64
        assert np.array_equal(device.xp.asnumpy(there), edge_list.pairs)


def test_too_much_memory_is_refused_and_less_is_not(device: gpu.Cuda) -> None:
    wanted = 1 << 50
    with pytest.raises(DeviceMemoryError) as caught, device.memory():
        device.xp.empty(wanted, np.uint8)
    assert caught.value.wanted == wanted
    assert 0 < caught.value.free <= device.memory_bytes
    with device.memory():
        assert int(device.xp.arange(10).sum()) == 45


def test_memory_is_never_managed(device: gpu.Cuda) -> None:
    with device.memory():
        there = device.upload(some_pairs(1000))
        assert device.xp.cuda.runtime.pointerGetAttributes(there.data.ptr).type != MANAGED_MEMORY


class InterfaceAlone:
    """What Numba's arrays are: CUDA's array interface and no DLPack."""

    def __init__(self, array: Any) -> None:
        self.__cuda_array_interface__ = array.__cuda_array_interface__
        self.kept = array


@pytest.mark.parametrize("wrap", [lambda array: array, InterfaceAlone], ids=["cupy", "interface"])
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32, np.uint64])
def test_arrays_on_the_device_are_not_copied(device: gpu.Cuda, dtype: Any, wrap: Any) -> None:
    there = device.upload(some_pairs(1000, dtype))
    pairs = device_pairs(wrap(there), device)
    assert pairs is not None
    assert pairs.data.ptr == there.data.ptr
    assert (pairs.dtype, pairs.shape) == (there.dtype, there.shape)
    edges = interop.edges_from(wrap(there))
    assert edges.pairs.data.ptr == there.data.ptr  # type: ignore[attr-defined]
    assert edges.origin.name == "<device array>"


def test_other_arrays_on_the_device_are_copied_there(device: gpu.Cuda) -> None:
    narrow, wide = some_pairs(1000, np.uint8), some_pairs(1000, np.int64)
    for source, expected in (
        (device.upload(narrow), narrow),
        (device.upload(wide)[::2], wide[::2]),
        (device.upload(wide.T.copy()).T, wide),
    ):
        pairs = device_pairs(source, device)
        assert pairs is not None
        assert pairs.flags.c_contiguous
        assert np.array_equal(device.download(pairs), expected)


def test_bad_arrays_on_the_device_are_refused(device: gpu.Cuda) -> None:
    negative = np.array([[0, 1], [5, -2]])
    with pytest.raises(InputError, match="<device array>: row 1 holds -2; vertices are non-negative"):
        device_pairs(device.upload(negative), device)
    with pytest.raises(InputError, match="<device array>: dtype float64 where integers are needed"):
        device_pairs(device.upload(negative.astype(np.float64)), device)


def test_tensors_of_torch(device: gpu.Cuda) -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.arange(20, device="cuda").reshape(-1, 2)
    pairs = device_pairs(tensor, device)
    assert pairs is not None
    assert pairs.data.ptr == tensor.data_ptr()
    assert pairs.tolist() == tensor.tolist()
