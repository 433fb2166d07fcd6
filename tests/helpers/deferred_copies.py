"""A bus without a device: copies wait until somebody waits for them, so that who forgets to wait has wrong bytes."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray


class LateMark:
    def __init__(self, bus: LateBus, number: int) -> None:
        self._bus = bus
        self._number = number

    def synchronize(self) -> None:
        self._bus.finish(self._number)


class LateBus:
    """`wedgewise.machine.ring.Bus` between arrays of NumPy; `on_copy` is called with the number of every copy."""

    def __init__(self, on_copy: Callable[[int], None] = lambda number: None) -> None:
        self.pinned: list[int] = []
        self.follows = 0
        self.copies = 0
        self.on_copy = on_copy
        self._waiting: list[tuple[int, int, int, NDArray[Any]]] = []
        self._done = 0
        self._lock = threading.Lock()

    @property
    def under_way(self) -> int:
        return len(self._waiting)

    def pin(self, size: int) -> NDArray[np.uint8]:
        self.pinned.append(size)
        return np.full(size, 0xA5, np.uint8)

    def address(self, array: Any) -> int:
        return int(array.ctypes.data)

    def follow(self) -> None:
        self.follows += 1

    def precede(self) -> None:
        self.wait()

    def send(self, buffer: NDArray[np.uint8], address: int) -> LateMark:
        return self._start(address, buffer.ctypes.data, buffer)

    def fetch(self, address: int, buffer: NDArray[np.uint8]) -> LateMark:
        return self._start(buffer.ctypes.data, address, buffer)

    def wait(self) -> None:
        self.finish(self.copies)

    def finish(self, number: int) -> None:
        """Do the copies up to that number, in their order."""
        with self._lock:
            while self._done < number and self._waiting:
                to, source, size, _kept = self._waiting.pop(0)
                ctypes.memmove(to, source, size)
                self._done += 1

    def _start(self, to: int, source: int, buffer: NDArray[np.uint8]) -> LateMark:
        with self._lock:
            number = self.copies + 1
            self.on_copy(number)
            self.copies = number
            self._waiting.append((to, source, buffer.nbytes, buffer))
            return LateMark(self, number)
