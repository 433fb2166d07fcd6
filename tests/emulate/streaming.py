"""Emulated devices with streams: kernels run on a thread for each stream, copies arrive when somebody follows them.

Who reads a block before it has come, or a count before the kernels have ended, has wrong numbers. ``live`` are the
bytes of arrays that were sent and that somebody still holds.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emulate.copying import PLENTY, DeviceArray, EmulatedGpu
from emulate.emulator import POISON, EmulationError
from wedgewise.algorithms._contract import Algorithm, DeviceTripleAnswer, DeviceWork, Knob, Knobs
from wedgewise.blocks import Block, Triple
from wedgewise.errors import DeviceMemoryError
from wedgewise.machine.streams import Clock, Sent

Work = Callable[[], object]
TOY_BYTES = 1000
ONE_KERNEL = threading.Lock()  # the emulation is one machine


class Stamp:
    """A point of a stream that its thread comes to."""

    def __init__(self, reached: Future[float]) -> None:
        self._reached = reached

    def wait(self) -> None:
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

    def wait(self) -> None:
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
        stamp.wait()

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


class StreamingEmulator(EmulatedGpu):
    """A `wedgewise.machine.gpu.StreamingDevice`; ``on_send`` and ``on_kernel`` are called with the number of each."""

    def __init__(self, name: str = "Emulated GPU", capacity: int = PLENTY) -> None:
        super().__init__()
        self.name = name
        self.capacity = capacity
        self.current = threading.local()
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

    def using(self) -> AbstractContextManager[None]:
        return self.memory()

    @contextmanager
    def errors(self) -> Iterator[None]:
        yield

    def free_bytes(self) -> int:
        return self.capacity - self.live

    def stream(self) -> Stream:
        self._streams.append(Stream(self))
        return self._streams[-1]

    def clock(self) -> Clock:
        return lambda stamp: stamp.at  # type: ignore[attr-defined]

    def reserve(self, size: int) -> None:
        if self.depth == 0:
            raise EmulationError("device memory was taken outside of the device's own pool")
        self.reserved = size

    def send(self, array: NDArray[Any]) -> Sent:
        assert type(array) is np.ndarray
        with self._lock:
            self.sends += 1
            number = self.sends
        self.on_send(number)
        target = self._taken(array)
        begin = CopyStamp()
        return Sent(target, begin, CopyStamp(partial(np.copyto, target.view(np.ndarray), array.copy())))

    def launch(self, stem: str, kernel: str, grid: int, block: int, arguments: tuple[Any, ...], **options: Any) -> None:
        run = super().launch

        def alone() -> None:
            with ONE_KERNEL:
                run(stem, kernel, grid, block, arguments, **options)

        self.start(alone)
        self.current.stream.stamp().wait()  # as operations on arrays would, which are not the stream's here

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

    def _taken(self, array: NDArray[Any]) -> Any:
        with self._lock:
            if self.depth == 0:
                raise EmulationError("device memory was taken outside of the device's own pool")
            if self.live + array.nbytes > self.capacity:
                raise self.no_room(array.nbytes)
            self.live += array.nbytes
            self.most_live = max(self.most_live, self.live)
        target = np.empty(array.shape, array.dtype)
        target.view(np.uint8).fill(POISON)
        made = target.view(DeviceArray)
        weakref.finalize(made, self._give_back, array.nbytes)
        return made

    def _give_back(self, nbytes: int) -> None:
        with self._lock:
            self.live -= nbytes


def dense(block: Block) -> NDArray[np.int64]:
    """A block as a matrix of zeros and ones."""
    offsets, heads = np.asarray(block.offsets, np.int64), np.asarray(block.heads, np.int64)
    matrix = np.zeros((block.rows, block.columns), np.int64)
    matrix[np.repeat(np.arange(block.rows), np.diff(offsets)), heads] = 1
    return matrix


def prepare_toy(triple: Triple, knobs: Knobs, share: int, shares: int, device: Any) -> DeviceWork:
    """Count a triple by a product of matrices, when the stream comes to it."""
    found = device.xp.empty(2, np.uint64)

    def count() -> None:
        closed = (dense(triple.ij) @ dense(triple.jk)) * dense(triple.ik)
        view = found.view(np.ndarray)
        view += np.array([closed[share::shares].sum(), int(knobs["weight"]) * triple.ij.m], np.uint64)

    return DeviceWork.at_once((lambda: device.start(count),), found)


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
