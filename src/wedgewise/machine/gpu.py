"""The GPU: what it can do, its kernels, its memory. Imports without CuPy; needs it only to find a device.

Host code of a GPU algorithm talks to a `Device`: arrays of its ``xp``, kernels by stem and name, launches. `Cuda` is
the real one. The tests have another, whose ``xp`` is NumPy and whose kernels run on the CPU, so that the same host code
and the same kernel text run where there is no GPU.

Kernel text is one piece: the widths and block sizes as a prelude of ``#define``, and every ``#include "common/…"``
pasted in, because CuPy's cache of compiled kernels looks at the text alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import DeviceError, MemoryLimitError, MissingDependencyError
from wedgewise.execute.threads import run_tasks
from wedgewise.machine import hardware

KERNEL_FOLDER = Path(__file__).resolve().parent.parent / "algorithms" / "gpu"
INCLUDE = re.compile(r'^#include "(common/\w+\.cuh)"$', re.MULTILINE)
RING_BYTES, RING_BUFFERS = 1 << 24, 4
STAGING_THREADS = 8

Array = Any  # of the device's xp


class Device(Protocol):
    """What the host code of GPU algorithms needs.

    ``xp`` is the array module, ``sms`` how many blocks run at once at least, ``shared_bytes`` what one block may have
    of shared memory. ``launch`` starts a kernel of a stem's file; arguments are arrays of `xp` and NumPy scalars.
    """

    xp: Any
    sms: int
    shared_bytes: int

    def launch(
        self,
        stem: str,
        kernel: str,
        grid: int,
        block: int,
        arguments: tuple[Any, ...],
        *,
        shared_bytes: int = 0,
        defines: tuple[tuple[str, int], ...] = (),
    ) -> None: ...

    def synchronize(self) -> None: ...


def kernel_text(stem: str, defines: tuple[tuple[str, int], ...] = ()) -> str:
    """The whole text of a stem's kernels, as it is compiled."""
    prelude = "".join(f"#define {name} {value}\n" for name, value in defines)
    return prelude + _pasted((KERNEL_FOLDER / f"{stem}.cu").read_text(encoding="utf-8"), set())


def _pasted(text: str, seen: set[str]) -> str:
    """The text with its headers in place, each once."""

    def paste(match: re.Match[str]) -> str:
        name = match.group(1)
        if name in seen:
            return ""
        seen.add(name)
        return _pasted((KERNEL_FOLDER / name).read_text(encoding="utf-8"), seen)

    return INCLUDE.sub(paste, text)


def why_no_device() -> str | None:
    """Why there is no GPU to use here; None if there is one."""
    try:
        find_device()
    except (DeviceError, MissingDependencyError) as error:
        return str(error)
    return None


@cache
def find_device() -> Cuda:
    """The first CUDA device."""
    try:
        import cupy
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and error.name == "cupy":
            raise MissingDependencyError(
                'device="cuda" needs CuPy: pip install "wedgewise[cuda13]", or cuda12 for older drivers'
            ) from error
        raise DeviceError(f"CuPy is installed but cannot be imported: {error}; install it again") from error
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise DeviceError(f"no CUDA device can be used: {error}; device='cpu' needs none") from error
    if count == 0:
        raise DeviceError("no CUDA device is there; device='cpu' needs none")
    return Cuda(cupy)


class Cuda:
    """A CUDA device through CuPy, with a memory pool of its own."""

    def __init__(self, cupy: Any) -> None:
        self.xp = cupy
        properties = cupy.cuda.runtime.getDeviceProperties(0)
        self.name: str = properties["name"].decode()
        self.sms: int = properties["multiProcessorCount"]
        self.shared_bytes: int = properties["sharedMemPerBlockOptin"]
        self.memory_bytes: int = properties["totalGlobalMem"]
        self._pool = cupy.cuda.MemoryPool()
        self._pinned: list[Any] = []

    def launch(
        self,
        stem: str,
        kernel: str,
        grid: int,
        block: int,
        arguments: tuple[Any, ...],
        *,
        shared_bytes: int = 0,
        defines: tuple[tuple[str, int], ...] = (),
    ) -> None:
        """Start a kernel; errors of the launch itself are raised here, those of the kernel at the next synchronize."""
        function = self._function(stem, kernel, defines)
        function((grid,), (block,), arguments, shared_mem=shared_bytes)

    @cache  # noqa: B019  (there is one device per process)
    def _function(self, stem: str, kernel: str, defines: tuple[tuple[str, int], ...]) -> Any:
        function = self._module(stem, defines).get_function(kernel)
        function.max_dynamic_shared_size_bytes = self.shared_bytes - function.shared_size_bytes
        return function

    @cache  # noqa: B019
    def _module(self, stem: str, defines: tuple[tuple[str, int], ...]) -> Any:
        return self.xp.RawModule(code=kernel_text(stem, defines), options=("-std=c++17",))

    def synchronize(self) -> None:
        """Wait for everything that was started; a lost device or a kernel's fault ends here."""
        try:
            self.xp.cuda.get_current_stream().synchronize()
        except self.xp.cuda.runtime.CUDARuntimeError as error:
            raise DeviceError(
                f"{self.name} failed: {error}; start a new process, and use device='cpu' if it happens again"
            ) from error

    @contextmanager
    def memory(self) -> Iterator[None]:
        """Take device memory from our own pool, never the caller's; what is left unused goes back at the end."""
        try:
            with self.xp.cuda.using_allocator(self._pool.malloc):
                yield
        except self.xp.cuda.memory.OutOfMemoryError as error:
            raise MemoryLimitError(f"{self.name}: {error}; use device='cpu' or a smaller graph") from error
        finally:
            self._pool.free_all_blocks()

    def free_bytes(self) -> int:
        """Device memory that can be had."""
        free, _total = self.xp.cuda.runtime.memGetInfo()
        return int(free) + int(self._pool.free_bytes())

    def upload(self, array: NDArray[Any]) -> Array:
        """Copy an array to the device through a ring of pinned buffers, which several threads fill."""
        flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        target = self.xp.empty(array.shape, array.dtype)
        stream = self.xp.cuda.get_current_stream()
        ring = self._ring()
        passed = [self.xp.cuda.Event() for _ in ring]
        for number, begin in enumerate(range(0, flat.nbytes, RING_BYTES)):
            slot = number % len(ring)
            if number >= len(ring):
                passed[slot].synchronize()
            piece = flat[begin : begin + RING_BYTES]
            buffer = np.frombuffer(ring[slot], np.uint8, piece.nbytes)
            _copy_in_parts(piece, buffer)
            pointer = target.data.ptr + begin
            self.xp.cuda.runtime.memcpyAsync(pointer, ring[slot].ptr, piece.nbytes, _HOST_TO_DEVICE, stream.ptr)
            passed[slot].record(stream)
        return target

    def download(self, array: Array) -> NDArray[Any]:
        """Copy an array to the host."""
        copied: NDArray[Any] = self.xp.asnumpy(array)
        return copied

    def _ring(self) -> list[Any]:
        if not self._pinned:
            self._pinned = [self.xp.cuda.alloc_pinned_memory(RING_BYTES) for _ in range(RING_BUFFERS)]
        return self._pinned


_HOST_TO_DEVICE = 1


def _copy_in_parts(source: NDArray[np.uint8], target: NDArray[np.uint8]) -> None:
    """Copy on several threads: one core fills pinned memory far slower than the bus empties it."""
    parts = min(STAGING_THREADS, hardware.usable_threads())
    cuts = np.linspace(0, len(source), parts + 1).astype(np.int64).tolist()

    def copy(part: int, _worker: int) -> None:
        target[cuts[part] : cuts[part + 1]] = source[cuts[part] : cuts[part + 1]]

    run_tasks(copy, parts, parts)
