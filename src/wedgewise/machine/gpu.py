"""The GPU: what it can do, its kernels, its memory. Imports without CuPy; needs it only to find a device.

Host code of a GPU algorithm talks to a `Device`: arrays of its ``xp``, kernels by stem and name, launches. `Cuda` is
the real one. The tests have another, whose ``xp`` is NumPy and whose kernels run on the CPU, so that the same host code
and the same kernel text run where there is no GPU.

Kernel text is one piece: the widths and block sizes as a prelude of ``#define``, and every ``#include "common/…"``
pasted in, because CuPy's cache of compiled kernels looks at the text alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import DeviceError, DeviceMemoryError, MissingDependencyError
from wedgewise.machine.ring import DIRECT_BYTES, Arriving, Ring
from wedgewise.machine.streams import CudaBus, CudaStream, Sent, Stamp, StampTimer, Stream

DRIVER_NODES = ("/dev/nvidia0", "/dev/dxg")
LOAD_SECONDS = 2.2  # CuPy, the device's context, the first kernels from CuPy's cache
KERNEL_FOLDER = Path(__file__).resolve().parent.parent / "algorithms" / "gpu"
INCLUDE = re.compile(r'^#include "(common/\w+\.cuh)"$', re.MULTILINE)
NO_MEMORY = 2  # cudaErrorMemoryAllocation and CUDA_ERROR_OUT_OF_MEMORY
SORT_OUT_OF_MEMORY = "std::bad_alloc"  # what CuPy raises when its sorts cannot have device memory
FORKED = (
    "CUDA does not survive a fork: this process was forked from one that had used the GPU; start processes by spawn, "
    "multiprocessing.get_context('spawn') for instance, or use device='cpu'"
)

Array = Any  # of the device's xp
Defines = tuple[tuple[str, int], ...]

_answers: set[object] = set()  # under way, by any thread
_waiting: set[Cuda] = set()  # devices whose unused memory goes back when one of these ends


class Kernel(NamedTuple):
    """A kernel as it is compiled: the stem of its file, its name, the defines."""

    stem: str
    name: str
    defines: Defines


class Device(Protocol):
    """What the host code of GPU algorithms needs.

    ``xp`` is the array module, ``sms`` how many blocks run at once at least, ``shared_bytes`` what one block may have
    of shared memory. ``address`` is where an array begins. ``launch`` starts a kernel of a stem's file; arguments are
    arrays of `xp` and NumPy scalars. The blocks of a cooperative launch are all there at once and may wait for each
    other: ``resident_blocks`` says how many.
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
        defines: Defines = (),
        cooperative: bool = False,
    ) -> None: ...

    def resident_blocks(self, stem: str, kernel: str, block: int, *, defines: Defines = ()) -> int: ...

    def synchronize(self) -> None: ...

    def address(self, array: Array) -> int: ...

    def upload(self, array: NDArray[Any]) -> Array: ...


class CopyingDevice(Device, Protocol):
    """A device whose memory arrays are copied to and from; ``memory`` is the context in which it may be taken."""

    name: str

    def memory(self) -> AbstractContextManager[None]: ...

    def free_bytes(self) -> int: ...

    def upload(self, array: NDArray[Any], arrived: Callable[[Array], None] | None = None) -> Array: ...

    def download(self, array: Array, dtype: Any = None) -> NDArray[Any]: ...

    def arriving(self) -> Arriving: ...


class StreamingDevice(CopyingDevice, Protocol):
    """A device that works on several streams and copies meanwhile; see `wedgewise.machine.streams`."""

    memory_bytes: int

    def using(self) -> AbstractContextManager[None]: ...

    def get_ready(self, kernels: Iterable[Kernel]) -> None: ...

    def stream(self) -> Stream: ...

    def reserve(self, size: int, stream: Stream | None = None) -> None: ...

    def send(self, arrays: Sequence[NDArray[Any]], targets: Sequence[Array]) -> Sent: ...

    def allocate(self, sizes: Sequence[int]) -> list[Array]: ...

    def clock(self) -> StampTimer: ...

    def errors(self) -> AbstractContextManager[None]: ...


def kernel_text(stem: str, defines: Defines = ()) -> str:
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
        device = find_device()
    except (DeviceError, MissingDependencyError) as error:
        return str(error)
    return FORKED if isinstance(device, Cuda) and device.is_lost_by_fork else None


def is_likely() -> bool:
    """Whether a look for a device is worth loading CuPy: it is installed, and the system has a driver's device."""
    return any(os.path.exists(node) for node in DRIVER_NODES) and find_spec("cupy") is not None


@contextmanager
def memory_of_an_answer() -> Iterator[None]:
    """Let the stages of an answer take over what earlier ones leave unused; at the end it goes back."""
    this = object()
    _answers.add(this)
    try:
        yield
    finally:
        _answers.remove(this)
        for device in tuple(_waiting):
            _waiting.discard(device)
            device.release_unused()


def load_seconds() -> float:
    """What finding the device takes of a process that has not yet."""
    return 0.0 if find_device.cache_info().currsize else LOAD_SECONDS


@cache
def find_device() -> Cuda:
    """The first CUDA device."""
    try:
        import cupy
    except Exception as error:  # a broken installation may raise anything
        if isinstance(error, ModuleNotFoundError) and error.name == "cupy":
            raise MissingDependencyError(
                'a CUDA device needs CuPy: pip install "wedgewise[cuda13]", or cuda12 for older drivers'
            ) from error
        raise DeviceError(f"CuPy is installed but cannot be imported: {error}; install it again") from error
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise DeviceError(f"no CUDA device can be used: {error}; device='cpu' needs none") from error
    if count == 0:
        raise DeviceError("no CUDA device is there; device='cpu' needs none")
    return Cuda(cupy)


def find_devices() -> tuple[Cuda, ...]:
    """All CUDA devices."""
    first = find_device()
    return first, *(_further_device(number) for number in range(1, first.xp.cuda.runtime.getDeviceCount()))


@cache
def _further_device(number: int) -> Cuda:
    return Cuda(find_device().xp, number)


class Cuda:
    """A CUDA device through CuPy, with a memory pool of its own.

    What kernels read is made within `memory`, where the device is the calling thread's.
    """

    def __init__(self, cupy: Any, number: int = 0) -> None:
        self.xp = cupy
        self.number = number
        self._process = os.getpid()
        properties = cupy.cuda.runtime.getDeviceProperties(number)
        self.name: str = properties["name"].decode()
        self.sms: int = properties["multiProcessorCount"]
        self.shared_bytes: int = properties["sharedMemPerBlockOptin"]
        self.memory_bytes: int = properties["totalGlobalMem"]
        self._pool = cupy.cuda.MemoryPool()
        self._hear_of_memory: Callable[[int], None] | None = None

    @property
    def is_lost_by_fork(self) -> bool:
        """Whether it was found by another process, from which this one was forked."""
        return self._process != os.getpid()

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
        """Start a kernel; errors of the launch itself are raised here, those of the kernel at the next synchronize."""
        with self.errors():
            function = self._function(stem, kernel, defines)
            if cooperative:  # not by RawModule(enable_cooperative_groups=True): that links a library which wheels lack
                function.kernel((grid,), (block,), arguments, shared_bytes, enable_cooperative_groups=True)
            else:
                function((grid,), (block,), arguments, shared_mem=shared_bytes)

    def resident_blocks(self, stem: str, kernel: str, block: int, *, defines: Defines = ()) -> int:
        """How many blocks of a cooperative launch without dynamic shared memory are there at once."""
        with self.errors():
            function = self._function(stem, kernel, defines)
            driver = self.xp.cuda.driver
            return self.sms * int(driver.occupancyMaxActiveBlocksPerMultiprocessor(function.kernel.ptr, block, 0))

    @cache  # noqa: B019  (devices stay as long as the process)
    def _function(self, stem: str, kernel: str, defines: Defines) -> Any:
        function = self._module(stem, defines).get_function(kernel)
        function.max_dynamic_shared_size_bytes = self.shared_bytes - function.shared_size_bytes
        return function

    @cache  # noqa: B019
    def _module(self, stem: str, defines: Defines) -> Any:
        return self.xp.RawModule(code=kernel_text(stem, defines), options=("-std=c++17",))

    def synchronize(self) -> None:
        """Wait for everything that was started; a lost device or a kernel's fault ends here."""
        with self.errors():
            self.xp.cuda.get_current_stream().synchronize()

    @contextmanager
    def memory(self) -> Iterator[None]:
        """Take device memory from our own pool, never the caller's; what is left unused goes back at the end.

        Within `memory_of_an_answer`, it stays for later stages until the end of that.

        Inside, a lost device is a DeviceError and memory that cannot be had a DeviceMemoryError, whoever noticed it.
        """
        with self.using():
            try:
                yield
            finally:
                if _answers:
                    _waiting.add(self)
                else:
                    self.release_unused()

    def release_unused(self) -> None:
        """Give back memory that no array has."""
        if not self.is_lost_by_fork:
            with self._current():
                self._pool.free_all_blocks()

    @contextmanager
    def using(self) -> Iterator[None]:
        """The same for a further thread, while others are at work: nothing goes back at the end."""
        with self._current(), self.xp.cuda.using_allocator(self._take):
            yield

    def watch_memory(self, hear: Callable[[int], None]) -> None:
        """Tell after every piece of memory that is taken, by whichever thread, how many bytes are held in all."""
        self._hear_of_memory = hear

    def _take(self, size: int) -> Any:
        memory = self._pool.malloc(size)
        if self._hear_of_memory is not None:
            self._hear_of_memory(int(self._pool.used_bytes()))
        return memory

    def free_bytes(self) -> int:
        """Device memory that can be had."""
        with self.errors():
            return self._free_bytes()

    def _free_bytes(self) -> int:
        with self.xp.cuda.Device(self.number):
            free, _total = self.xp.cuda.runtime.memGetInfo()
            return int(free) + int(self._pool.free_bytes())

    def upload(self, array: NDArray[Any], arrived: Callable[[Array], None] | None = None) -> Array:
        """Copy an array, or a mapped file, to the device; it is there on return.

        From 1 MiB on it goes through the ring of pinned buffers, whose threads read the array, or the file, piece by
        piece while earlier ones are on their way. They call ``arrived`` with every part of its elements that has come.
        """
        hear = arrived or (lambda _part: None)
        with self._current():
            if array.nbytes < DIRECT_BYTES:
                target = self.xp.array(array, order="C")
                hear(target.reshape(-1))
                return target
            target = self.xp.empty(array.shape, array.dtype)
            flat, size = target.reshape(-1), array.itemsize

            def start(begin: int, end: int) -> None:
                with self._current():
                    hear(flat[begin // size : end // size])

            self._ring.send(np.ascontiguousarray(array), target, None if arrived is None else start)
            return target

    def download(self, array: Array, dtype: Any = None) -> NDArray[Any]:
        """Copy an array to the host, from 1 MiB on through the ring, whose threads make it one of another type."""
        with self._current():
            if array.nbytes < DIRECT_BYTES:
                copied: NDArray[Any] = self.xp.asnumpy(array)
                return copied if dtype is None else copied.astype(dtype, copy=False)
            target = np.empty(array.shape, array.dtype if dtype is None else dtype)
            self._ring.fetch(self.xp.ascontiguousarray(array), target)
            return target

    def arriving(self) -> Arriving:
        """Who receives pairs part by part while later ones are still being parsed."""
        return Arriving(self.xp, self._ring)

    def get_ready(self, kernels: Iterable[Kernel]) -> None:
        """Do by one thread what a first use would take long for: compile kernels, or load them, and pin the ring."""
        with self._current():
            for kernel in kernels:
                self._function(*kernel)
            self._ring.pin()

    def stream(self) -> CudaStream:
        """A new stream."""
        with self._current():
            return CudaStream(self.xp)

    def reserve(self, size: int, stream: Stream | None = None) -> None:
        """Take memory at once for what a stream will make, or for arrays to be sent; it goes back with `memory`.

        What is free of one stream's is not given to another, as long as others use the same piece of it.
        """
        with self._current(), self._copies if stream is None else stream:
            self.xp.empty(size, self.xp.uint8)

    def send(self, arrays: Sequence[NDArray[Any]], targets: Sequence[Array]) -> Sent:
        """Start to copy arrays to those of `allocate`; they may change on return, and have come at ``Sent.end``."""
        with self.errors():
            pieces = self._ring.stage_timed(list(map(np.ascontiguousarray, arrays)), targets, self._stamp_copies)
            return Sent(self._stamp_copies(), pieces)

    def allocate(self, sizes: Sequence[int]) -> list[Array]:
        """Memory of the stream of copies: so many 32-bit words each, of any value.

        It goes back to that stream once nobody holds it: not before all work that reads it has ended.
        """
        with self.errors(), self._copies:
            return [self.xp.empty(size, np.uint32) for size in sizes]

    def address(self, array: Array) -> int:
        """Where an array of this device begins."""
        return int(array.data.ptr)

    def clock(self) -> StampTimer:
        """When stamps were reached, in seconds of ``time.perf_counter``."""
        with self.errors():
            return self._copies.zero_clock()

    def _stamp_copies(self) -> Stamp:
        """The point behind the copies so far, asked for by threads whose device may be another."""
        with self.xp.cuda.Device(self.number):
            return self._copies.stamp()

    @cached_property
    def _bus(self) -> CudaBus:
        return CudaBus(self.xp, self.number)

    @cached_property
    def _ring(self) -> Ring:
        return Ring(self._bus)

    @cached_property
    def _copies(self) -> CudaStream:
        return CudaStream(self.xp, self._bus.stream)

    @contextmanager
    def _current(self) -> Iterator[None]:
        """The calling thread uses this device."""
        with self.errors(), self.xp.cuda.Device(self.number):
            yield

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Say in our own errors what CUDA and CuPy say in theirs."""
        if self.is_lost_by_fork:
            raise DeviceError(FORKED)
        cuda = self.xp.cuda
        try:
            yield
        except MemoryError as error:
            if not isinstance(error, cuda.memory.OutOfMemoryError) and str(error) != SORT_OUT_OF_MEMORY:
                raise
            raise DeviceMemoryError(self.name, wanted=_bytes_wanted(error), free=self._free_bytes()) from error
        except (cuda.runtime.CUDARuntimeError, cuda.driver.CUDADriverError) as error:
            if error.status == NO_MEMORY:
                raise DeviceMemoryError(self.name, wanted=None, free=self._free_bytes()) from error
            raise DeviceError(
                f"{self.name} failed: {error}; start a new process, and use device='cpu' if it happens again"
            ) from error


def _bytes_wanted(error: Exception) -> int | None:
    """The number in CuPy's message, "Out of memory allocating 1,024 bytes …"."""
    found = re.search(r"([\d,]+) bytes", str(error))
    return None if found is None else int(found.group(1).replace(",", ""))
