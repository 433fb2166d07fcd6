"""Streams: work that a device does in its order, beside that of other streams, and copies that nobody waits for.

A stream may follow a stamp of another one; the host sleeps until a stamp is reached. Stamps read the device's clock,
which `zero_clock` sets beside the host's.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

StampTimer = Callable[["Stamp"], float]

HOST_TO_DEVICE, DEVICE_TO_HOST = 1, 2


class Stamp(Protocol):
    """A point in the work of a stream, at which the time is taken; an event of CuPy's is one."""

    def synchronize(self) -> None:
        """Sleep until the stream has come to it."""


class Stream(AbstractContextManager[Any], Protocol):
    """What a thread starts on the device within this context, it starts on the stream."""

    def stamp(self) -> Stamp:
        """The point behind all that was started so far."""

    def follow(self, stamp: Stamp) -> None:
        """Let later work wait for a stamp of any stream of the device."""


@dataclass(frozen=True, slots=True)
class Moved:
    """A piece that was sent: when the host filled a buffer with it, by ``time.perf_counter``, and when it was moved."""

    filled: tuple[float, float]
    begin: Stamp
    end: Stamp
    nbytes: int


@dataclass(frozen=True, slots=True)
class Sent:
    """Arrays on their way to the device, piece by piece: complete at `end`."""

    end: Stamp
    pieces: tuple[Moved, ...]


class CudaStream:
    """A stream of a CUDA device through CuPy; the device is the calling thread's."""

    def __init__(self, cupy: Any, stream: Any = None) -> None:
        self._cuda = cupy.cuda
        self._stream = cupy.cuda.Stream(non_blocking=True) if stream is None else stream

    def __enter__(self) -> CudaStream:
        self._stream.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stream.__exit__(kind, error, trace)

    def stamp(self) -> Stamp:
        stamp: Stamp = self._stream.record(self._cuda.Event(block=True))  # which is waited for asleep
        return stamp

    def follow(self, stamp: Stamp) -> None:
        self._stream.wait_event(stamp)

    def zero_clock(self) -> StampTimer:
        """When stamps were reached, in seconds of ``time.perf_counter``; to be asked once they are."""
        zero = self.stamp()
        zero.synchronize()
        here = time.perf_counter()
        return lambda stamp: here + float(self._cuda.get_elapsed_time(zero, stamp)) / 1e3


class CudaBus:
    """Copies on a stream of their own, by threads whose device may be another; see `wedgewise.machine.ring.Bus`."""

    def __init__(self, cupy: Any, number: int) -> None:
        self._cuda = cupy.cuda
        self._number = number
        with cupy.cuda.Device(number):  # a stream belongs to the device that is current
            self.stream = cupy.cuda.Stream(non_blocking=True)

    def pin(self, size: int) -> NDArray[np.uint8]:
        return np.frombuffer(self._cuda.alloc_pinned_memory(size), np.uint8, size)

    def address(self, array: Any) -> int:
        return int(array.data.ptr)

    def follow(self) -> None:
        self.stream.wait_event(self._cuda.get_current_stream().record())

    def precede(self) -> None:
        with self._cuda.Device(self._number):
            self._cuda.get_current_stream().wait_event(self.stream.record())

    def send(self, buffer: NDArray[np.uint8], address: int) -> Stamp:
        return self._copy(address, buffer.ctypes.data, buffer.nbytes, HOST_TO_DEVICE)

    def fetch(self, address: int, buffer: NDArray[np.uint8]) -> Stamp:
        return self._copy(buffer.ctypes.data, address, buffer.nbytes, DEVICE_TO_HOST)

    def wait(self) -> None:
        self.stream.synchronize()

    def _copy(self, to: int, source: int, size: int, kind: int) -> Stamp:
        with self._cuda.Device(self._number):
            self._cuda.runtime.memcpyAsync(to, source, size, kind, self.stream.ptr)
            copied: Stamp = self.stream.record(self._cuda.Event(disable_timing=True))
            return copied
