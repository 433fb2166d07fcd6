"""As much of CuPy as `wedgewise.machine.gpu.Cuda` touches, in the host's memory; ``failing`` makes a call raise."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

FREE_BYTES, POOLED_BYTES, DEVICES = 1000, 24, 3


class CUDARuntimeError(RuntimeError):
    def __init__(self, status: int) -> None:
        self.status = status
        super().__init__(f"cudaError {status}")


class CUDADriverError(RuntimeError):
    def __init__(self, status: int) -> None:
        self.status = status
        super().__init__(f"CUDA_ERROR {status}")


class OutOfMemoryError(MemoryError):
    pass


class DeviceArray(np.ndarray[Any, np.dtype[Any]]):
    """An array that says where it lies as CuPy's do, and that NumPy does not take for its own."""

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
        self.devices: list[int] = []  # those that are entered
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
            driver=SimpleNamespace(CUDADriverError=CUDADriverError),
            runtime=SimpleNamespace(
                CUDARuntimeError=CUDARuntimeError,
                getDeviceProperties=self._properties,
                memGetInfo=lambda: (FREE_BYTES + sum(self.devices), 2 * FREE_BYTES),
                getDeviceCount=lambda: DEVICES,
                memcpyAsync=self._copy,
            ),
        )

    def note(self, call: str) -> None:
        self.calls.append(call)
        if call in self.failing:
            raise self.failing[call]

    def empty(self, shape: Any, dtype: Any) -> Any:
        self.note("empty")
        return np.full(shape, 77, dtype).view(DeviceArray)

    def array(self, array: NDArray[Any], order: str) -> Any:
        self.note("array")
        return np.array(array, order=order).view(DeviceArray)  # type: ignore[call-overload]

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
        return SimpleNamespace(get_function=lambda name: _Function(self))

    def _pool(self) -> Any:
        return SimpleNamespace(
            malloc=object(), free_all_blocks=lambda: self.note("free_all_blocks"), free_bytes=lambda: POOLED_BYTES
        )

    @contextmanager
    def _device(self, number: int) -> Iterator[None]:
        self.devices.append(number)
        yield
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
        cupy.events += 1
        self.at = cupy.events

    def synchronize(self) -> None:
        self._cupy.note("wait")


class _Stream:
    ptr = 0

    def __init__(self, cupy: FakeCupy, name: str) -> None:
        self._cupy = cupy
        self._name = name

    def record(self, event: _Event | None = None) -> _Event:
        return event or _Event(self._cupy)

    def wait_event(self, event: _Event) -> None:
        self._cupy.note(f"{self._name} follows")

    def synchronize(self) -> None:
        self._cupy.note(f"{self._name} synchronize")

    def __enter__(self) -> _Stream:
        self._cupy.note(f"to {self._name}")
        return self

    def __exit__(self, *_: object) -> None:
        self._cupy.note(f"from {self._name}")


class _Function:
    shared_size_bytes = 0
    max_dynamic_shared_size_bytes = 0

    def __init__(self, cupy: FakeCupy) -> None:
        self._cupy = cupy

    def __call__(self, *arguments: Any, **options: Any) -> None:
        self._cupy.note("launch")
