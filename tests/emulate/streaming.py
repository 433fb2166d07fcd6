"""Emulated devices with streams: kernels run on a thread for each stream, copies arrive when somebody follows them.

Who reads a block before it has come, or a count before the kernels have ended, has wrong numbers. ``live`` are the
bytes of arrays that were sent and that somebody still holds. Memory is as CuPy has it: what one stream gave back stays
its own, unless all of it is free when another finds no room.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emulate.copying import PLENTY, DeviceArray, DeviceNumpy, EmulatedGpu
from emulate.emulator import POISON, EmulationError
from wedgewise.algorithms._contract import Algorithm, DeviceBatch, DeviceTripleAnswer, DeviceWork, Knob, Knobs
from wedgewise.errors import DeviceMemoryError
from wedgewise.machine.gpu import Defines, Kernel
from wedgewise.machine.streams import Moved, Sent, StampTimer
from wedgewise.stages.blocks import Block

Work = Callable[[], object]
TOY_BYTES = 1000
ONE_KERNEL = threading.Lock()  # the emulation is one machine


class Stamp:
    """A point of a stream that its thread comes to."""

    def __init__(self, reached: Future[float]) -> None:
        self._reached = reached

    def synchronize(self) -> None:
        self._reached.result()

    @property
    def at(self) -> float:
        assert self._reached.done(), "the time of a stamp that is not reached"
        return self._reached.result()


class CopyStamp:
    """The end of a copy, which is made when somebody asks for it."""

    def __init__(self, copy: Work = lambda: None) -> None:
        self._copy: Work | None = copy
        self._lock = threading.Lock()
        self.at = time.perf_counter()

    def synchronize(self) -> None:
        with self._lock:
            if self._copy is not None:
                self._copy()
                self._copy = None
                self.at = time.perf_counter()


class Stream:
    """Work in its order, on a thread of its own; after a failure nothing more is done."""

    def __init__(self, device: StreamingEmulator) -> None:
        self._device = device
        self._thread = ThreadPoolExecutor(1)
        self._failure: tuple[type[BaseException], tuple[Any, ...]] | None = None

    def __enter__(self) -> Stream:
        self._device.current.stream = self
        return self

    def __exit__(self, *_: object) -> None:
        self._device.current.stream = None

    def stamp(self) -> Stamp:
        return Stamp(self._thread.submit(self._reach))

    def follow(self, stamp: Any) -> None:
        stamp.synchronize()

    def start(self, work: Work) -> None:
        self._thread.submit(self._do, work)

    def close(self) -> None:
        self._thread.shutdown()

    def _do(self, work: Work) -> None:
        if self._failure is None:
            try:
                work()
            except BaseException as error:
                self._failure = type(error), error.args  # not itself: its traceback holds arrays

    def _reach(self) -> float:
        if self._failure is not None:
            kind, arguments = self._failure
            raise kind(*arguments)
        return time.perf_counter()


class Arena:
    """The memory of one stream: what it took of the device, and how much of that is in use."""

    def __init__(self) -> None:
        self.taken = self.used = 0


class StreamNumpy(DeviceNumpy):
    """NumPy whose arrays are the calling thread's stream's; they go back to it."""

    def _on_device(self, function: Any) -> Any:
        made_by = super()._on_device(function)

        def call(*arguments: Any, **options: Any) -> Any:
            made = made_by(*arguments, **options)
            if isinstance(made, np.ndarray) and all(made is not argument for argument in arguments):
                device: Any = self._device
                device.take(made, getattr(device.current, "stream", None))
            return made

        return call


class StreamingEmulator(EmulatedGpu):
    """A `wedgewise.machine.gpu.StreamingDevice`; ``on_send`` and ``on_kernel`` are called with the number of each.

    ``late`` are the kernels that were started before the device was made ready for them.
    """

    def __init__(self, name: str = "Emulated GPU", capacity: int = PLENTY) -> None:
        super().__init__()
        self.xp = StreamNumpy(self)
        self.name = name
        self.capacity = self.memory_bytes = capacity
        self.current = threading.local()
        self.arenas: dict[Stream | None, Arena] = {}
        self.ready: set[Kernel] = set()
        self.late: set[Kernel] = set()
        self.ready_after: list[int] = []
        self.on_send: Callable[[int], None] = lambda number: None
        self.on_kernel: Callable[[int], None] = lambda number: None
        self.live = self.most_live = self.sends = self.kernels = self.reserved = 0
        self._streams: list[Stream] = []
        self._lock = threading.RLock()  # arrays may be collected anywhere

    @contextmanager
    def memory(self) -> Iterator[None]:
        with self._lock:
            self.depth += 1
        try:
            yield
        finally:
            with self._lock:
                self.depth -= 1
                if self.depth == 0:
                    self._release()

    def using(self) -> AbstractContextManager[None]:
        return self.memory()

    @contextmanager
    def errors(self) -> Iterator[None]:
        yield

    def free_bytes(self) -> int:
        return self.capacity - sum(arena.used for arena in self.arenas.values())

    def get_ready(self, kernels: Iterable[Kernel]) -> None:
        self.ready.update(kernels)
        self.ready_after.append(self.sends)

    def stream(self) -> Stream:
        self._streams.append(Stream(self))
        return self._streams[-1]

    def clock(self) -> StampTimer:
        return lambda stamp: stamp.at  # type: ignore[attr-defined]

    def reserve(self, size: int, stream: Any = None) -> None:
        if self.depth == 0:
            raise EmulationError("device memory was taken outside of the device's own pool")
        with self._lock:
            self._grow(self.arenas.setdefault(stream, Arena()), size)
        self.reserved += size

    def send(self, arrays: Sequence[NDArray[Any]], targets: Sequence[Any]) -> Sent:
        assert all(type(array) is np.ndarray for array in arrays)
        with self._lock:
            self.sends += 1
            number = self.sends
        self.on_send(number)
        copied = [array.copy() for array in arrays]

        def copy() -> None:
            for target, array in zip(targets, copied, strict=True):
                np.copyto(target.view(np.ndarray), array)

        since, begin, end = time.perf_counter(), CopyStamp(), CopyStamp(copy)
        nbytes = sum(array.nbytes for array in arrays)
        return Sent(end, (Moved((since, time.perf_counter()), begin, end, nbytes),))

    def allocate(self, sizes: Sequence[int]) -> list[Any]:
        return [self._taken(np.empty(size, np.uint32)) for size in sizes]

    def launch(
        self,
        stem: str,
        kernel: str,
        grid: int,
        block: int,
        arguments: tuple[Any, ...],
        *,
        defines: Defines = (),
        **options: Any,
    ) -> None:
        run, started = super().launch, Kernel(stem, kernel, defines)
        if started not in self.ready:
            self.late.add(started)

        def alone() -> None:
            with ONE_KERNEL:
                run(stem, kernel, grid, block, arguments, defines=defines, **options)

        self.start(alone)
        self.current.stream.stamp().synchronize()  # as operations on arrays would, which are not the stream's here

    def start(self, work: Work) -> None:
        """Let the calling thread's stream do something."""
        stream = getattr(self.current, "stream", None)
        if stream is None:
            raise EmulationError("a kernel was started outside of a stream")
        with self._lock:
            self.kernels += 1
            number = self.kernels

        def do() -> None:
            self.on_kernel(number)
            work()

        stream.start(do)

    def no_room(self, wanted: int) -> DeviceMemoryError:
        return DeviceMemoryError(self.name, wanted=wanted, free=self.free_bytes())

    def close(self) -> None:
        for stream in self._streams:
            stream.close()

    def take(self, made: Any, stream: Stream | None) -> None:
        """Take the memory of an array, as long as somebody holds it."""
        with self._lock:
            arena = self.arenas.setdefault(stream, Arena())
            self._grow(arena, arena.used + made.nbytes)
            arena.used += made.nbytes
        weakref.finalize(made, self._give_back, arena, made.nbytes)

    def _taken(self, array: NDArray[Any]) -> Any:
        if self.depth == 0:
            raise EmulationError("device memory was taken outside of the device's own pool")
        target = np.empty(array.shape, array.dtype)
        target.view(np.uint8).fill(POISON)
        made = target.view(DeviceArray)
        self.take(made, None)
        with self._lock:
            self.live += array.nbytes
            self.most_live = max(self.most_live, self.live)
        weakref.finalize(made, self._forget, array.nbytes)
        return made

    def _grow(self, arena: Arena, size: int) -> None:
        """Let the memory of a stream be so much at least."""
        more = max(0, size - arena.taken)
        if self._held + more > self.capacity:
            self._release()
        if self._held + more > self.capacity:
            raise self.no_room(more)
        arena.taken += more

    @property
    def _held(self) -> int:
        return sum(arena.taken for arena in self.arenas.values())

    def _release(self) -> None:
        """Give back what no array uses; where one does, all of the stream's memory stays."""
        for arena in self.arenas.values():
            if arena.used == 0:
                arena.taken = 0

    def _give_back(self, arena: Arena, nbytes: int) -> None:
        with self._lock:
            arena.used -= nbytes

    def _forget(self, nbytes: int) -> None:
        with self._lock:
            self.live -= nbytes


def dense(block: Block) -> NDArray[np.int64]:
    """A block as a matrix of zeros and ones."""
    offsets, heads = np.asarray(block.offsets, np.int64), np.asarray(block.heads, np.int64)
    matrix = np.zeros((block.rows, block.columns), np.int64)
    matrix[np.repeat(np.arange(block.rows), np.diff(offsets)), heads] = 1
    return matrix


def prepare_toy(batch: DeviceBatch, knobs: Knobs, device: Any) -> DeviceWork:
    """Count tasks by products of matrices, when the stream comes to it; on a device that only notes, not at all."""
    tasks, found = batch.tasks, device.xp.empty((len(batch.tasks), 3), np.uint64)
    start = getattr(device, "start", lambda work: None)

    def count() -> None:
        view = found.view(np.ndarray)
        for row, (ij, ik, jk, share) in zip(view, zip(*tasks.pairs, tasks.share, strict=True), strict=True):
            blocks = [batch.blocks[divmod(int(pair), tasks.parts)].block for pair in (ij, ik, jk)]
            closed = (dense(blocks[0]) @ dense(blocks[2])) * dense(blocks[1])
            row += np.array([closed[share :: tasks.shares].sum(), int(knobs["weight"]) * blocks[0].m, 1], np.uint64)

    return DeviceWork.at_once((lambda: start(count),), found)


def toy(bytes_needed: int = TOY_BYTES) -> Algorithm:
    """An algorithm that counts three blocks on a device and knows nothing else."""
    return Algorithm(
        name="toy",
        device="cuda",
        unit="triple",
        answers={},
        paper="none",
        summary="Counts by products.",
        knobs=(Knob("weight", 1, "tests by arc"),),
        triples={"count": DeviceTripleAnswer(prepare_toy, lambda *_: bytes_needed)},
    )
