"""Memory of the device that others have taken."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from wedgewise.machine import gpu


@contextmanager
def left(wanted: int) -> Iterator[None]:
    """Take all of the device's memory but about so many bytes."""
    device = gpu.find_device()
    with device.memory():
        pass  # unused blocks of the pool go back
    runtime = device.xp.cuda.runtime
    taken = runtime.malloc(runtime.memGetInfo()[0] - wanted)
    try:
        yield
    finally:
        runtime.free(taken)
