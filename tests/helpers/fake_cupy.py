"""As much of CuPy as `wedgewise.machine.gpu.Cuda` touches, in the host's memory; ``failing`` makes a call raise.

Every thread has its own current device, the first unless it says otherwise. Streams, events and arrays are of the
device that was current when they were made; an event cannot be recorded by a stream of another.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

FREE_BYTES, POOLED_BYTES, DEVICES = 1000, 24, 3
INVALID_HANDLE = 400


class CUDARuntimeError(RuntimeError):
    def __init__(self, status: int) -> None:
        self.status = status
        super().__init__(f"cudaError {status}")


class CUDADriverError(RuntimeError):
    def __init__(self, status: int) -> None:
        self.status = status
        super().__init__(f"CUDA_ERROR {status}")


class OutOfMemoryError(MemoryError):
    __module__ = "cupy.cuda.memory"


class DeviceArray(np.ndarray[Any, np.dtype[Any]]):
    """An array that says where it lies as CuPy's do, and that NumPy does not take for its own."""

    lies_on = 0

    @property
    def data(self) -> Any:
        return SimpleNamespace(ptr=self.ctypes.data)

    @data.setter
    def data(self, value: Any) -> None:
        raise AttributeError("data")


class FakeCupy:
    """Pass it to `Cuda`. ``calls`` collects what was called, in order."""

    ndarray, uint8 = DeviceArray, np.uint8

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.failing: dict[str, Exception] = {}
        self.events = 0
        self._entered = threading.local()
        self.cuda = SimpleNamespace(
            MemoryPool=self._pool,
            using_allocator=self._using,
            alloc_pinned_memory=self._pin,
            get_current_stream=lambda: _Stream(self, "current"),
            Stream=lambda non_blocking: _Stream(self, "copying"),
            Event=lambda block=False, disable_timing=False: _Event(self, block),
            Device=self._device,
            get_elapsed_time=lambda begin, end: 1e3 * (end.at - begin.at),
            memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
            driver=SimpleNamespace(
                CUDADriverError=CUDADriverError,
                occupancyMaxActiveBlocksPerMultiprocessor=lambda kernel, block, dynamic: kernel // block,
            ),
            runtime=SimpleNamespace(
                CUDARuntimeError=CUDARuntimeError,
                getDeviceProperties=self._properties,
                memGetInfo=lambda: (FREE_BYTES + self.device, 2 * FREE_BYTES),
                getDeviceCount=lambda: DEVICES,
                memcpyAsync=self._copy,
            ),
        )

    @property
    def devices(self) -> list[int]:
        """Those that the calling thread has entered."""
        if not hasattr(self._entered, "numbers"):
            self._entered.numbers = []
        numbers: list[int] = self._entered.numbers
        return numbers

    @property
    def device(self) -> int:
        """The calling thread's."""
        return self.devices[-1] if self.devices else 0

    def note(self, call: str) -> None:
        self.calls.append(call)
        if call in self.failing:
            raise self.failing[call]

    def empty(self, shape: Any, dtype: Any) -> Any:
        self.note("empty")
        return self._made(np.full(shape, 77, dtype))

    def array(self, array: NDArray[Any], order: str) -> Any:
        self.note("array")
        return self._made(np.array(array, order=order))  # type: ignore[call-overload]

    def asnumpy(self, array: Any) -> NDArray[Any]:
        self.note("asnumpy")
        return np.array(array)

    def ascontiguousarray(self, array: Any) -> Any:
        return np.ascontiguousarray(array).view(DeviceArray)

    def concatenate(self, arrays: list[Any]) -> Any:
        return np.concatenate(arrays).view(DeviceArray)

    def flatnonzero(self, array: Any) -> Any:
        return np.flatnonzero(array)

    def from_dlpack(self, source: Any) -> Any:
        """A view of what a fake source holds, which may not be on the host."""
        return np.from_dlpack(source.on_host).view(DeviceArray)

    def asarray(self, source: Any) -> Any:
        return np.asarray(source.on_host).view(DeviceArray)

    def RawModule(self, code: str, options: tuple[str, ...]) -> Any:
        self.note("compile")
        return SimpleNamespace(get_function=lambda name: _Function(self))

    def _made(self, array: NDArray[Any]) -> Any:
        made = array.view(DeviceArray)
        made.lies_on = self.device
        return made

    def _pool(self) -> Any:
        taken: list[int] = []
        return SimpleNamespace(
            malloc=taken.append,
            used_bytes=lambda: sum(taken),
            free_all_blocks=lambda: self.note("free_all_blocks"),
            free_bytes=lambda: POOLED_BYTES,
        )

    @contextmanager
    def _device(self, number: int) -> Iterator[None]:
        self.devices.append(number)
        try:
            yield
        finally:
            self.devices.pop()

    @contextmanager
    def _using(self, allocator: object) -> Iterator[None]:
        self.note("using_allocator")
        yield

    def _pin(self, size: int) -> bytearray:
        self.note("pin")
        return bytearray(size)

    def _copy(self, to: int, source: int, size: int, kind: int, stream: int) -> None:
        self.note("copy")
        assert kind in (1, 2)
        ctypes.memmove(to, source, size)

    def _properties(self, number: int) -> dict[str, Any]:
        sizes = dict.fromkeys(("multiProcessorCount", "sharedMemPerBlockOptin", "totalGlobalMem"), 1 << 16)
        return {"name": b"Fake GPU", **sizes}


class _Event:
    """Events are a second apart."""

    def __init__(self, cupy: FakeCupy, sleeps: bool = False) -> None:
        self._cupy = cupy
        self.sleeps = sleeps
        self.device = cupy.device
        cupy.events += 1
        self.at = cupy.events

    def record(self) -> None:
        self._cupy.note("record")

    def synchronize(self) -> None:
        self._cupy.note("wait")


class _Stream:
    ptr = 0

    def __init__(self, cupy: FakeCupy, name: str) -> None:
        self._cupy = cupy
        self._name = name
        self.device = cupy.device

    def record(self, event: _Event | None = None) -> _Event:
        recorded = event or _Event(self._cupy)
        if recorded.device != self.device:
            raise CUDARuntimeError(INVALID_HANDLE)
        return recorded

    def wait_event(self, event: _Event) -> None:
        self._cupy.note(f"{self._name} follows")

    def synchronize(self) -> None:
        self._cupy.note(f"{self._name} synchronize")

    def __enter__(self) -> _Stream:
        self._cupy.note(f"to {self._name}")
        return self

    def __exit__(self, *_: object) -> None:
        self._cupy.note(f"from {self._name}")


class _Kernel:
    """As CuPy's driver has it."""

    ptr = 1 << 10  # as many threads of it fit a multiprocessor

    def __init__(self, cupy: FakeCupy) -> None:
        self._cupy = cupy

    def __call__(self, *arguments: Any, enable_cooperative_groups: bool) -> None:
        assert enable_cooperative_groups
        self._cupy.note("launch together")


class _Function:
    shared_size_bytes = 0
    max_dynamic_shared_size_bytes = 0

    def __init__(self, cupy: FakeCupy) -> None:
        self._cupy = cupy
        self.kernel = _Kernel(cupy)

    def __call__(self, *arguments: Any, **options: Any) -> None:
        self._cupy.note("launch")
