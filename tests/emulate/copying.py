"""Emulated devices that arrays are copied to and from, as `wedgewise.machine.gpu.CopyingDevice` has it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import pytest
from helpers.deferred_copies import LateBus
from numpy.typing import NDArray

from emulate.emulator import EmulatedDevice, EmulationError, PoisonedNumpy
from wedgewise.errors import DeviceMemoryError
from wedgewise.interop import matrices
from wedgewise.machine import gpu
from wedgewise.machine.ring import Arriving, Ring
from wedgewise.prepare import device_forms
from wedgewise.read.objects import arrays
from wedgewise.stages import EdgeList

PLENTY = 1 << 40


class CopyingEmulator(EmulatedDevice):
    """An emulated device whose arrays are copies of the host's; ``free`` is what it says to have left."""

    name = "Emulated GPU"

    def __init__(self) -> None:
        super().__init__()
        self.free = PLENTY
        self.depth = 0

    @contextmanager
    def memory(self) -> Iterator[None]:
        """``depth`` counts who is inside."""
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1

    def free_bytes(self) -> int:
        return self.free

    def upload(self, array: NDArray[Any], arrived: Callable[[Any], None] | None = None) -> Any:
        return _in_halves(array.copy(), arrived)

    def download(self, array: Any, dtype: Any = None) -> NDArray[Any]:
        return np.array(array, dtype)

    def arriving(self) -> Arriving:
        return Arriving(self.xp, Ring(LateBus()))


class DeviceArray(np.ndarray[Any, np.dtype[Any]]):
    """An array that is not the host's: it cannot be computed with together with one that is."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        operands = (*inputs, *options.get("out", ()))
        if any(type(operand) is np.ndarray and operand.ndim for operand in operands):
            raise EmulationError(f"{ufunc.__name__} mixes arrays of the host and of the device")
        outputs = {"out": tuple(map(_of_host, options["out"]))} if "out" in options else {}
        found = getattr(ufunc, method)(*map(_of_host, inputs), **{**options, **outputs})
        return found.view(DeviceArray) if isinstance(found, np.ndarray) else found


def _in_halves(array: Any, arrived: Callable[[Any], None] | None) -> Any:
    """The array, after what hears of the parts that come has heard of both halves, the second one first."""
    if arrived is not None:
        flat = array.reshape(-1)
        arrived(flat[len(flat) // 2 :])
        arrived(flat[: len(flat) // 2])
    return array


def _of_host(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, DeviceArray) else value


class DeviceNumpy(PoisonedNumpy):
    """NumPy whose functions make arrays of a device, where its memory may be taken and there is room for each."""

    def __init__(self, device: EmulatedGpu) -> None:
        self._device = device

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if isinstance(found, (type, np.ufunc)) or not callable(found):
            return found
        return self._on_device(found)

    def empty(self, shape: Any, dtype: Any = np.float64) -> Any:  # type: ignore[override]
        return self._on_device(np.empty)(shape, dtype, poisoned=True)

    def empty_like(self, other: Any) -> Any:  # type: ignore[override]
        return self.empty(other.shape, other.dtype)

    def from_dlpack(self, source: Any) -> Any:
        return source.on_device

    def asarray(self, source: Any, dtype: Any = None) -> Any:
        return source.on_device if hasattr(source, "on_device") else self._on_device(np.asarray)(source, dtype)

    def _on_device(self, function: Any) -> Any:
        """The function; arrays that it makes are looked at before anybody has them."""

        def call(*arguments: Any, poisoned: bool = False, **options: Any) -> Any:
            made = function(*arguments, **options)
            if not isinstance(made, np.ndarray):
                return made
            if made.base is None and all(made is not argument for argument in arguments):
                self._device.check_taking(made.nbytes)
            return PoisonedNumpy.empty(made.shape, made.dtype).view(DeviceArray) if poisoned else made.view(DeviceArray)

        return call


class EmulatedGpu(CopyingEmulator):
    """One that keeps the host's arrays and its own apart, and has no room for an array of more than ``free`` bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.xp = DeviceNumpy(self)
        self.launches = 0
        self.hear_of_memory: Callable[[int], None] = lambda _held: None

    def launch(self, stem: str, kernel: str, grid: int, block: int, arguments: tuple[Any, ...], **options: Any) -> None:
        if any(type(argument) is np.ndarray for argument in arguments):
            raise EmulationError(f"{kernel} was handed an array of the host")
        self.launches += 1
        super().launch(stem, kernel, grid, block, arguments, **options)

    def upload(self, array: NDArray[Any], arrived: Callable[[Any], None] | None = None) -> Any:
        assert type(array) in (np.ndarray, np.memmap)
        self.check_taking(array.nbytes)
        return _in_halves(np.array(array, order="C").view(DeviceArray), arrived)

    def download(self, array: Any, dtype: Any = None) -> NDArray[Any]:
        assert isinstance(array, DeviceArray)
        return super().download(array, dtype)

    def check_taking(self, size: int) -> None:
        if self.depth == 0:
            raise EmulationError("device memory was taken outside of the device's own pool")
        if size > self.free:
            raise DeviceMemoryError(self.name, wanted=size, free=self.free)
        self.hear_of_memory(size)

    def watch_memory(self, hear: Callable[[int], None]) -> None:
        """Tell of every array alone: what else is held is NumPy's."""
        self.hear_of_memory = hear


class LyingThere:
    """An array of somebody else's that says it lies on a CUDA device, by DLPack or by CUDA's interface alone."""

    def __init__(self, pairs: NDArray[Any], *, by_dlpack: bool) -> None:
        self.on_device = pairs.view(DeviceArray)
        if by_dlpack:
            self.__dlpack__ = lambda: None
            self.__dlpack_device__ = lambda: (arrays.CUDA_DEVICES[0], 0)
        else:
            self.__cuda_array_interface__ = {"shape": pairs.shape}


def install(device: EmulatedGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let everybody find this device, and take its arrays for those that do not lie on the host."""

    @cache
    def find_device() -> EmulatedGpu:
        return device

    for module in (gpu, arrays, matrices):
        monkeypatch.setattr(module, "find_device", find_device)
    monkeypatch.setattr(device_forms, "lies_on_device", lambda labels: isinstance(labels, DeviceArray))
    monkeypatch.setattr(EdgeList, "lies_on_device", property(lambda edges: isinstance(edges.pairs, DeviceArray)))
