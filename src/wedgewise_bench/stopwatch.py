"""Seconds of what runs inside a ``with`` block: on the host, or on a device between two events of its stream."""

from __future__ import annotations

import time
from typing import Any

from wedgewise.machine.gpu import Device


class Stopwatch:
    """Seconds by the host's clock; those of a GPU, where one is given, by its own events.

    A device without events, which an emulated one is, is waited for.
    """

    def __init__(self, device: Device | None = None) -> None:
        self._device = device
        self._events: Any = getattr(device.xp, "cuda", None) if device is not None else None

    def __enter__(self) -> Stopwatch:
        self._begin = self._mark()
        return self

    def __exit__(self, *_: object) -> None:
        self._end = self._mark()

    @property
    def seconds(self) -> float:
        """How long the block took; a GPU is waited for."""
        if self._events is None:
            return float(self._end - self._begin)
        self._end.synchronize()
        return float(self._events.get_elapsed_time(self._begin, self._end)) / 1e3

    def _mark(self) -> Any:
        if self._events is None:
            if self._device is not None:
                self._device.synchronize()
            return time.perf_counter()
        event = self._events.Event()
        event.record()
        return event
