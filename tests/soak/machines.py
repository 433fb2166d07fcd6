"""Where operations run: emulated GPUs in the place of real ones, and work in pieces so small that graphs have many."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

import pytest
from emulate.copying import EmulatedGpu, install
from emulate.emulator import release_threads
from emulate.streaming import StreamingEmulator
from helpers.stores import in_tiny_pieces

from wedgewise.algorithms import _passes, _ranges
from wedgewise.machine import gpu
from wedgewise.run import listing

DEVICE_BYTES = (1 << 40, 1 << 20)
TINY = (
    (_ranges, "TASK_ARCS", 32),
    (_ranges, "SMALL_WORK", 0),
    (_passes, "MIN_TASKS_PER_THREAD", 1),
    (listing, "TASK_TRIANGLES", 7),
)


@contextmanager
def pieces(random: Random) -> Iterator[str]:
    """As they are, or so small that borders of tasks, pieces and files lie within a small graph; which."""
    with pytest.MonkeyPatch.context() as patch:
        if random.random() < 0.5:
            yield "in the usual pieces"
            return
        in_tiny_pieces(patch)
        for module, name, value in TINY:
            patch.setattr(module, name, value)
        yield "in tiny pieces"


@contextmanager
def unsynced() -> Iterator[None]:
    """Nobody waits for a disk, where no power is cut."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda _: None)
        yield


@contextmanager
def emulated_gpu() -> Iterator[EmulatedGpu]:
    """A GPU that everybody finds."""
    with pytest.MonkeyPatch.context() as patch:
        device = EmulatedGpu()
        install(device, patch)
        try:
            yield device
        finally:
            release_threads()


@contextmanager
def emulated_gpus(random: Random) -> Iterator[list[StreamingEmulator]]:
    """One to three GPUs with streams, of plenty of memory or of little, that block tasks find."""
    capacity = random.choice(DEVICE_BYTES)
    made = [StreamingEmulator(f"Emulated GPU {number}", capacity) for number in range(random.randint(1, 3))]
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(gpu, "find_devices", lambda: tuple(made))
            yield made
    finally:
        for device in made:
            device.close()
        release_threads()
