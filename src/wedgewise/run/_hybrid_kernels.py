"""Which kernels the tasks of a hybrid count will launch: they are prepared with arrays that have a shape and no memory.

So kernels are compiled before the first task begins, and no task seems slow because it was the first to need one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from wedgewise.machine.gpu import Defines, Device, Kernel
from wedgewise.run._hybrid_division import TaskSizes
from wedgewise.run.memory import Pair
from wedgewise.stages.blocks import Block, Task, Triple

SAMPLED_TASKS = 128  # kernels depend on the sizes of blocks, which are much alike among so many


def kernels_of(tasks: Sequence[Task], sizes: TaskSizes, device: Device) -> tuple[Kernel, ...]:
    """The kernels of tasks, or of as many as are looked at, in the order in which they are needed."""
    answer, knobs = sizes.pairing.on_device(), sizes.pairing.gpu_knobs
    noting = _Noting(device)
    for task in tasks[:: max(1, -(-len(tasks) // SAMPLED_TASKS))]:
        ij, ik, jk = (_block(pair, sizes) for pair in ((task.i, task.j), (task.i, task.k), (task.j, task.k)))
        work = answer.prepare(Triple(ij, ik, jk), knobs, task.share, task.shares, noting)
        for batch in work.batches:
            for launch in batch():
                launch()
    return tuple(noting.kernels)


def _block(pair: Pair, sizes: TaskSizes) -> Block:
    counts, (row, column) = sizes.memory.counts, pair
    width = np.uint32 if sizes.offset_bytes(row) == 4 else np.uint64
    offsets, heads = _shaped(int(counts.sizes[row]) + 1, width), _shaped(int(counts.arcs[pair]), np.uint32)
    return Block(offsets, heads, int(counts.sizes[column]))


def _shaped(shape: int | tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """An array of any size, all of whose elements are one."""
    sides = shape if isinstance(shape, tuple) else (shape,)
    return as_strided(np.zeros(1, dtype), sides, (0,) * len(sides))


class _Shapes:
    """NumPy, but that new arrays take no memory."""

    empty = zeros = staticmethod(_shaped)

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


class _Noting:
    """A device that notes launches instead of doing them; sizes are those of a real one."""

    def __init__(self, device: Device) -> None:
        self.xp: Any = _Shapes()
        self.sms, self.shared_bytes = device.sms, device.shared_bytes
        self.kernels: dict[Kernel, None] = {}
        self._device = device

    def launch(
        self,
        stem: str,
        kernel: str,
        grid: int,
        block: int,
        arguments: tuple[Any, ...],
        *,
        shared_bytes: int = 0,
        defines: Defines = (),
        cooperative: bool = False,
    ) -> None:
        self.kernels[Kernel(stem, kernel, defines)] = None

    def resident_blocks(self, stem: str, kernel: str, block: int, *, defines: Defines = ()) -> int:
        return self._device.resident_blocks(stem, kernel, block, defines=defines)

    def synchronize(self) -> None:
        """Nothing is under way."""
