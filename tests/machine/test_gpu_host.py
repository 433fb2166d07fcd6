"""What is said where there is no GPU or where it fails, how arrays get there, and the kernel text: all without one."""

from __future__ import annotations

import builtins
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from helpers.fake_cupy import (
    FREE_BYTES,
    POOLED_BYTES,
    CUDADriverError,
    CUDARuntimeError,
    DeviceArray,
    FakeCupy,
    OutOfMemoryError,
)

import wedgewise as ww
from wedgewise.algorithms._contract import Shape
from wedgewise.errors import (
    DeviceError,
    DeviceMemoryError,
    MemoryLimitError,
    MissingDependencyError,
    PreconditionError,
)
from wedgewise.machine import gpu, ring
from wedgewise.machine.out_of_memory import memory_for
from wedgewise.read import read_edges
from wedgewise.run.choose import make_device_plan
from wedgewise.run.plan import OrientedShape
from wedgewise.run.request import Request

TRIANGLE = [(0, 1), (1, 2), (2, 0)]


@pytest.fixture(autouse=True)
def forget_devices() -> Any:
    """Look for a device anew, before and after."""
    for look in (gpu.find_device, gpu._further_device):
        look.cache_clear()
    yield
    for look in (gpu.find_device, gpu._further_device):
        look.cache_clear()


def hide_cupy(monkeypatch: pytest.MonkeyPatch, error: ImportError) -> None:
    """Make importing CuPy fail."""
    real = builtins.__import__

    def importer(name: str, *args: Any, **more: Any) -> Any:
        if name == "cupy":
            raise error
        return real(name, *args, **more)

    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    monkeypatch.setattr(builtins, "__import__", importer)


def test_without_cupy_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    hide_cupy(monkeypatch, ModuleNotFoundError("No module named 'cupy'", name="cupy"))
    with pytest.raises(MissingDependencyError, match=r"wedgewise\[cuda13\]"):
        ww.count(TRIANGLE, device="cuda")
    assert "needs CuPy" in str(gpu.why_no_device())


def test_a_broken_cupy_is_told_from_a_missing_one(monkeypatch: pytest.MonkeyPatch) -> None:
    hide_cupy(monkeypatch, ImportError("libcublas is missing"))
    with pytest.raises(DeviceError, match="cannot be imported: libcublas is missing"):
        gpu.find_device()


@pytest.mark.parametrize("devices", [0, None])
def test_cupy_without_a_device(devices: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusal(RuntimeError):
        pass

    def count_devices() -> int:
        if devices is None:
            raise Refusal("the driver is too old")
        return devices

    fake: Any = ModuleType("cupy")
    fake.cuda = ModuleType("cuda")
    fake.cuda.runtime = ModuleType("runtime")
    fake.cuda.runtime.CUDARuntimeError = Refusal
    fake.cuda.runtime.getDeviceCount = count_devices
    monkeypatch.setitem(sys.modules, "cupy", fake)
    with pytest.raises(DeviceError, match=r"device='cpu' needs none"):
        gpu.find_device()


def test_what_no_gpu_algorithm_computes_names_those_that_do() -> None:
    asked = Request("clustering", algorithm="polak")
    with pytest.raises(PreconditionError, match=r"polak on cuda does not compute weighted_triangles.*keystone on cpu"):
        make_device_plan(asked, "weighted_triangles", OrientedShape(Shape(3, 3, 1)), gpu.Cuda(FakeCupy()))


@pytest.mark.parametrize("stem", sorted(path.stem for path in gpu.KERNEL_FOLDER.glob("*.cu")))
def test_kernel_text_is_one_piece_with_its_defines(stem: str) -> None:
    text = gpu.kernel_text(stem, (("OFFSET_BITS", 64),))
    assert text.startswith("#define OFFSET_BITS 64\n")
    assert '#include "common/' not in text
    assert text.count("#define WARP ") == 1


LARGE = np.arange(3 * ring.PIECE_BYTES // 4 + 5, dtype=np.uint32)


@pytest.fixture
def fake() -> FakeCupy:
    return FakeCupy()


@pytest.fixture
def device(fake: FakeCupy) -> gpu.Cuda:
    return gpu.Cuda(fake)


@pytest.mark.parametrize("size", [0, 1, ring.DIRECT_BYTES - 1])
def test_small_arrays_go_directly(size: int, fake: FakeCupy, device: gpu.Cuda) -> None:
    sent = np.arange(size).astype(np.uint8)
    assert np.array_equal(device.download(device.upload(sent)), sent)
    assert fake.calls == ["array", "asnumpy"]


def test_large_arrays_go_through_the_ring(fake: FakeCupy, device: gpu.Cuda) -> None:
    device.get_ready(())
    assert fake.calls == ["pin"] * ring.BUFFERS
    fake.calls.clear()
    there = device.upload(LARGE)
    assert there.dtype == LARGE.dtype
    assert fake.calls[:2] == ["empty", "copying follows"]
    assert (fake.calls.count("copy"), fake.calls[-1]) == (4, "copying synchronize")
    fake.calls.clear()
    assert np.array_equal(device.download(there), LARGE)
    assert fake.calls[0] == "copying follows"
    assert (fake.calls.count("copy"), fake.calls[-1]) == (4, "copying synchronize")


@pytest.mark.parametrize("size", [1000, len(LARGE)])
def test_what_works_on_parts_of_an_array_follows_their_copies(
    size: int, fake: FakeCupy, device: gpu.Cuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ring, "SECTION_BYTES", ring.PIECE_BYTES)
    arrived: list[Any] = []
    there = device.upload(LARGE[:size].reshape(-1, 1), arrived.append)
    assert there.shape == (size, 1)
    assert np.array_equal(np.sort(np.concatenate([np.array(part) for part in arrived])), LARGE[:size])
    assert all(part.ndim == 1 and np.shares_memory(part, there) for part in arrived)
    sections = -(-LARGE[:size].nbytes // ring.PIECE_BYTES)
    assert len(arrived) == sections
    assert fake.calls.count("current follows") == (sections if size > 1000 else 0)


def test_arrays_are_sent_without_waiting(fake: FakeCupy, device: gpu.Cuda, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ring, "STAGING_THREADS", 1)  # several would call in any order
    clock = device.clock()
    fake.calls.clear()
    there = np.zeros_like(LARGE).view(DeviceArray)
    sent = device.send([LARGE], [there])
    assert np.array_equal(there, LARGE)
    assert fake.calls == ["pin", "copy"] * 4
    assert [piece.nbytes for piece in sent.pieces] == [ring.PIECE_BYTES] * 3 + [20]
    for piece in sent.pieces:
        assert piece.filled[0] <= piece.filled[1]
        assert clock(piece.end) - clock(piece.begin) == pytest.approx(2)  # an event for the buffer is between
        assert clock(piece.end) < clock(sent.end)
    stream = device.stream()
    stream.follow(sent.end)
    with stream:
        pass
    stamp: Any = stream.stamp()
    assert stamp.sleeps
    stamp.synchronize()
    assert fake.calls[-4:] == ["copying follows", "to copying", "from copying", "wait"]
    assert device.send([LARGE[:0]], [there[:0]]).pieces == ()


def test_small_arrays_share_a_buffer(fake: FakeCupy, device: gpu.Cuda) -> None:
    arrays = [LARGE[:10], LARGE[:0], LARGE[5:100], LARGE]
    targets = [np.zeros_like(array).view(DeviceArray) for array in arrays]
    sent = device.send(arrays, targets)
    assert all(np.array_equal(there, here) for there, here in zip(targets, arrays, strict=True))
    assert sum(piece.nbytes for piece in sent.pieces) == sum(array.nbytes for array in arrays)
    assert len(sent.pieces) == 4


def test_arrays_whose_targets_follow_each_other_are_one_copy(fake: FakeCupy, device: gpu.Cuda) -> None:
    (there,) = device.allocate([9])
    device.send([LARGE[:3], LARGE[:5]], [there[:3], there[3:8]])
    assert fake.calls.count("copy") == 1
    assert np.array_equal(there[:8], [*LARGE[:3], *LARGE[:5]])


def test_room_is_of_the_stream_of_copies(fake: FakeCupy, device: gpu.Cuda) -> None:
    assert [array.size for array in device.allocate([3, 5])] == [3, 5]
    assert fake.calls == ["to copying", "empty", "empty", "from copying"]


def test_the_clock_is_the_host_s(device: gpu.Cuda) -> None:
    before = time.perf_counter()
    clock = device.clock()
    after = time.perf_counter()
    assert before <= clock(device.stream().stamp()) - 1 <= after  # the first event after the clock's own


def test_memory_is_reserved_on_the_stream_of_copies(fake: FakeCupy, device: gpu.Cuda) -> None:
    device.reserve(100)
    assert fake.calls == ["to copying", "empty", "from copying"]
    fake.calls.clear()
    device.reserve(100, device.stream())
    assert fake.calls == ["to copying", "empty", "from copying"]
    fake.failing["empty"] = OutOfMemoryError("Out of memory allocating 100 bytes")
    with pytest.raises(DeviceMemoryError, match="100 bytes were asked for"):
        device.reserve(100)


def test_as_many_blocks_meet_as_are_there_at_once(fake: FakeCupy, device: gpu.Cuda) -> None:
    assert device.resident_blocks("peel", "peel", 256) == 4 * device.sms
    device.launch("peel", "peel", 4 * device.sms, 256, (), cooperative=True)
    assert fake.calls == ["compile", "launch together"]


def test_a_device_that_is_ready_has_nothing_left_to_compile_or_pin(fake: FakeCupy, device: gpu.Cuda) -> None:
    kernels = [gpu.Kernel("polak", "count", (("OFFSET_BITS", 32),)), gpu.Kernel("polak", "count", ())]
    device.get_ready(kernels)
    assert (fake.calls.count("compile"), fake.calls.count("pin")) == (2, ring.BUFFERS)
    fake.calls.clear()
    device.launch("polak", "count", 1, 32, (), defines=kernels[0].defines)
    device.send([LARGE], [np.zeros_like(LARGE).view(DeviceArray)])
    device.upload(LARGE)
    device.get_ready(kernels)
    assert not {"compile", "pin"} & set(fake.calls)


def test_arrays_of_a_further_device_go_there_and_come_from_there(fake: FakeCupy) -> None:
    """By threads of the ring, whose device is the first, and by a caller whose device is another."""
    device = gpu.Cuda(fake, 2)
    for array in (LARGE, LARGE[:9]):
        there = device.upload(array)
        assert there.lies_on == 2
        assert np.array_equal(device.download(there), array)
    fake.failing["empty"] = OutOfMemoryError("Out of memory allocating 8 bytes")
    with pytest.raises(DeviceMemoryError) as caught:
        device.upload(LARGE)
    assert caught.value.free == FREE_BYTES + POOLED_BYTES + 2
    assert fake.devices == []


def test_all_devices_are_found(fake: FakeCupy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", fake)
    devices = gpu.find_devices()
    assert [device.number for device in devices] == [0, 1, 2]
    assert devices == gpu.find_devices()
    assert [device.free_bytes() for device in devices] == [1024, 1025, 1026]
    with devices[2].memory():
        assert fake.devices == [2]
    assert fake.devices == []


def test_strided_arrays_and_files_arrive(device: gpu.Cuda, tmp_path: Path) -> None:
    pairs = LARGE[: len(LARGE) // 2 * 2].reshape(-1, 2)
    strided = np.asfortranarray(pairs)
    assert np.array_equal(device.download(device.upload(strided)), pairs)
    np.save(tmp_path / "pairs.npy", pairs)
    assert np.array_equal(device.download(device.upload(read_edges(tmp_path / "pairs.npy").pairs)), pairs)


def test_pairs_arrive_while_they_are_parsed(device: gpu.Cuda, tmp_path: Path) -> None:
    (tmp_path / "pairs.txt").write_text("1 2\n# nothing\n3 4\n5 4294967296\n")
    with device.arriving() as arriving:
        edge_list = read_edges(tmp_path / "pairs.txt", receiver=arriving)
        there = arriving.finish()
    assert there.dtype == edge_list.pairs.dtype == np.uint64
    assert there.tolist() == [[1, 2], [3, 4], [5, 2**32]]


STEPS: dict[str, tuple[str, Callable[[gpu.Cuda], Any]]] = {
    "launching": ("launch", lambda device: device.launch("polak", "count", 1, 32, ())),
    "synchronizing": ("current synchronize", lambda device: device.synchronize()),
    "sending": ("copy", lambda device: device.upload(LARGE)),
    "fetching": ("wait", lambda device: device.download(device.xp.array(LARGE, "C"))),
    "sending little": ("array", lambda device: device.upload(LARGE[:9])),
    "fetching little": ("asnumpy", lambda device: device.download(LARGE[:9])),
    "pinning": ("pin", lambda device: device.upload(LARGE)),
}


@pytest.mark.parametrize("error", [CUDARuntimeError(700), CUDADriverError(700)])
@pytest.mark.parametrize("step", STEPS)
def test_a_lost_device_is_one_error(step: str, error: Exception, fake: FakeCupy, device: gpu.Cuda) -> None:
    call, act = STEPS[step]
    fake.failing[call] = error
    with pytest.raises(DeviceError, match=r"Fake GPU failed: .* 700; start a new process, and use device='cpu'"):
        act(device)


def test_a_lost_device_has_no_free_memory(fake: FakeCupy, device: gpu.Cuda) -> None:
    def lost() -> tuple[int, int]:
        raise CUDARuntimeError(700)

    fake.cuda.runtime.memGetInfo = lost
    with pytest.raises(DeviceError, match=r"Fake GPU failed: .* 700; start a new process"):
        device.free_bytes()


@pytest.mark.parametrize("step", STEPS)
def test_no_memory_is_another(step: str, fake: FakeCupy, device: gpu.Cuda) -> None:
    call, act = STEPS[step]
    fake.failing[call] = CUDARuntimeError(gpu.NO_MEMORY)
    with pytest.raises(DeviceMemoryError) as caught:
        act(device)
    assert (caught.value.wanted, caught.value.free) == (None, FREE_BYTES + POOLED_BYTES)


def test_memory_that_is_not_there_says_what_was_wanted_and_what_is_free(fake: FakeCupy, device: gpu.Cuda) -> None:
    fake.failing["empty"] = OutOfMemoryError("Out of memory allocating 8,192 bytes (allocated so far: 4,096 bytes).")
    with pytest.raises(DeviceMemoryError) as caught, device.memory():
        fake.empty(1024, np.uint64)
    assert isinstance(caught.value, MemoryLimitError)
    assert isinstance(caught.value, MemoryError)
    assert (caught.value.device, caught.value.wanted, caught.value.free) == ("Fake GPU", 8192, 1024)
    assert str(caught.value).startswith("Fake GPU: 8,192 bytes were asked for and 1,024 are free; use device='cpu'")
    assert fake.calls == ["using_allocator", "empty", "free_all_blocks"]


def test_stages_of_an_answer_pass_memory_on_which_goes_back_at_its_end(fake: FakeCupy, device: gpu.Cuda) -> None:
    with gpu.memory_of_an_answer():
        for _ in range(3):
            with device.memory():
                fake.empty(1, np.uint64)
        assert fake.calls.count("free_all_blocks") == 0
    assert fake.calls.count("free_all_blocks") == 1
    with gpu.memory_of_an_answer():
        pass  # in which no memory was taken
    assert fake.calls.count("free_all_blocks") == 1


def test_whoever_watches_hears_of_all_memory(device: gpu.Cuda) -> None:
    heard: list[int] = []
    device.watch_memory(heard.append)
    with device.memory():
        device._take(100)
        device._take(28)
    assert heard == [100, 128]


def test_sorts_without_room_are_a_shortage_of_the_device(device: gpu.Cuda) -> None:
    with pytest.raises(DeviceMemoryError) as caught, device.memory():
        raise MemoryError("std::bad_alloc")  # as CuPy does when the memory of a sort cannot be had
    assert (caught.value.wanted, caught.value.free) == (None, FREE_BYTES + POOLED_BYTES)


def test_a_stage_leaves_shortages_of_the_device_to_the_device(fake: FakeCupy, device: gpu.Cuda) -> None:
    fake.failing["empty"] = OutOfMemoryError("Out of memory allocating 8 bytes")
    with pytest.raises(DeviceMemoryError, match="8 bytes were asked for"), device.memory(), memory_for("read"):
        fake.empty(1, np.uint64)
    with pytest.raises(MemoryLimitError, match="read: memory ran out"), device.memory(), memory_for("read"):
        raise MemoryError


def test_errors_of_others_pass_through_memory(fake: FakeCupy, device: gpu.Cuda) -> None:
    with pytest.raises(MemoryError) as caught, device.memory():
        raise MemoryError("the host's")
    assert not isinstance(caught.value, DeviceMemoryError)
    with pytest.raises(DeviceError, match="Fake GPU failed: cudaError 999"), device.memory():
        raise CUDARuntimeError(999)
    assert fake.calls.count("free_all_blocks") == 2


FORK = """
import os, sys
from helpers.fake_cupy import FakeCupy
sys.modules["cupy"] = FakeCupy()
import wedgewise as ww
from wedgewise.run import choose
from wedgewise.errors import DeviceError
from wedgewise.machine import gpu

gpu.is_likely = lambda: True
choose._seconds_there = lambda *_: 0.0
graph = ww.Graph([(0, 1), (1, 2), (2, 0), (2, 3)])
there = graph.device_forms.device.upload(graph.degrees)
child = os.fork()
if child == 0:
    for source in (graph, graph.edges):
        result = ww.run("count", source)
        print(result.device, result.answer)
    for ask in (
        lambda: ww.count(graph, device="cuda"),
        lambda: ww.Graph(graph.edges, device="cuda"),
        lambda: ww.count(graph, device="hybrid"),
        lambda: graph.device_forms.device.download(there),
    ):
        try:
            ask()
        except DeviceError as error:
            print(error)
    sys.stdout.flush()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert gpu.why_no_device() is None
"""


def test_a_device_of_the_process_before_a_fork_is_lost(
    fake: FakeCupy, device: gpu.Cuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    there, parent = device.upload(LARGE[:5]), os.getpid()
    fake.calls.clear()
    monkeypatch.setattr(os, "getpid", lambda: parent + 1)
    for ask in (lambda: device.download(there), lambda: device.upload(LARGE[:5])):
        with pytest.raises(DeviceError) as caught:
            ask()
        assert str(caught.value) == gpu.FORKED
    assert fake.calls == []


def test_a_forked_child_goes_on_without_the_device() -> None:
    """CUDA does not survive a fork: `auto` takes the host, and only what asks for the device fails."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(
        [sys.executable, "-c", FORK], capture_output=True, text=True, timeout=120, env=environment, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.splitlines() == ["cpu 1"] * 2 + [gpu.FORKED] * 4
