"""Gates: named points that work passes, each of which a test can let fail at its n-th passing, once or from then on.

    with installed(Fault("storage.fsync", 2)) as passed: ...

The package knows nothing of them. A gate lies where the package asks the system for something, and what it then gets is
what the system answers when it refuses: an error number, a null pointer for NumPy, a thread that cannot be started.
"""

from __future__ import annotations

import builtins
import errno
import io
import mmap
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any
from unittest import mock

from emulate.copying import EmulatedGpu
from emulate.streaming import StreamingEmulator

from helpers import numpy_memory
from wedgewise.errors import DeviceError, DeviceMemoryError
from wedgewise.machine import threads

JUMP_SECONDS = 86_400.0
MAPPED = "memory.mapping"


def _refusal(number: int) -> Callable[[], BaseException]:
    return lambda: OSError(number, os.strerror(number))


GATES: dict[str, Callable[[], BaseException]] = {
    "storage.open": _refusal(errno.EMFILE),
    "storage.read": _refusal(errno.EIO),
    "storage.write": _refusal(errno.ENOSPC),
    "storage.fsync": _refusal(errno.EIO),
    "storage.rename": _refusal(errno.EACCES),
    "storage.truncate": _refusal(errno.ENOSPC),
    "storage.unlink": _refusal(errno.EACCES),
    "storage.mkdir": _refusal(errno.ENOSPC),
    "storage.rmdir": _refusal(errno.EBUSY),
    "storage.list": _refusal(errno.EIO),
    "memory.array": MemoryError,
    MAPPED: _refusal(errno.ENOMEM),
    "memory.device": lambda: DeviceMemoryError("Emulated GPU", wanted=None, free=77),
    "executor.thread": lambda: RuntimeError("can't start new thread"),
    "executor.task": lambda: MemoryError("no workspace"),
    "launch.memory": lambda: DeviceMemoryError("Emulated GPU", wanted=None, free=77),
    "launch.lost": lambda: DeviceError("Emulated GPU failed: it fell off the bus; start a new process"),
    "clock": lambda: AssertionError("clocks do not fail: they jump"),
}


@dataclass(frozen=True, slots=True)
class Fault:
    """Which passing of a gate fails: that behind so many others, or that one and `always` all later ones."""

    gate: str
    behind: int
    always: bool = False


class Passed:
    """How often each gate was passed, and how many of these passings failed."""

    def __init__(self, fault: Fault | None) -> None:
        self.fault = fault
        self.times: Counter[str] = Counter()
        self.failed = 0
        self._lock = threading.Lock()

    def fails(self, gate: str) -> bool:
        """Pass a gate; whether it is to fail."""
        with self._lock:
            number = self.times[gate]
            self.times[gate] += 1
            fault = self.fault
            if fault is None or fault.gate != gate:
                return False
            fails = number >= fault.behind if fault.always else number == fault.behind
            self.failed += fails
            return fails

    def through(self, gate: str) -> None:
        """Pass a gate, or fail as the system would."""
        if self.fails(gate):
            raise GATES[gate]()


@contextmanager
def installed(fault: Fault | None = None, *, array_bytes: int = 1) -> Iterator[Passed]:
    """Watch all gates within the block, and let a passing fail.

    Parameters
    ----------
    fault : what fails; without it passings are counted only
    array_bytes : the least size of an array that passes ``memory.array``
    """
    passed = Passed(fault)
    with (
        numpy_memory.watched(lambda size: size >= array_bytes and passed.fails("memory.array")),
        mock.patch.multiple(builtins, open=_opener(passed)),
        mock.patch.multiple(io, open=_opener(passed)),
        mock.patch.multiple(os, **_system_calls(passed)),
        mock.patch.multiple(mmap, mmap=_passing(passed, MAPPED, mmap.mmap)),
        mock.patch.multiple(threading.Thread, start=_starter(passed)),
        mock.patch.multiple(threads, _run_here=_working(passed, threads._run_here), _Threads=_failing_threads(passed)),
        mock.patch.multiple(EmulatedGpu, launch=_launcher(passed), check_taking=_taker(passed)),
        mock.patch.multiple(StreamingEmulator, **_streaming(passed)),
        mock.patch.multiple(time, **_clocks(passed)),
    ):
        yield passed


def _passing(passed: Passed, gate: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function behind a gate."""

    def call(*arguments: Any, **options: Any) -> Any:
        passed.through(gate)
        return function(*arguments, **options)

    return call


def _system_calls(passed: Passed) -> dict[str, Any]:
    """The calls of the system; none of these tests ends the machine, so that nothing has to reach its disk."""
    calls: dict[str, Any] = {
        "open": os.open,
        "read": os.read,
        "write": os.write,
        "fsync": lambda _file: None,
        "replace": os.replace,
        "ftruncate": os.ftruncate,
        "unlink": os.unlink,
        "mkdir": os.mkdir,
        "rmdir": os.rmdir,
        "listdir": os.listdir,
        "scandir": os.scandir,
    }
    names = {"replace": "rename", "ftruncate": "truncate", "listdir": "list", "scandir": "list"}
    return {name: _passing(passed, f"storage.{names.get(name, name)}", call) for name, call in calls.items()}


def _opener(passed: Passed) -> Callable[..., Any]:
    """`open`, for files whose reading and writing pass gates below their buffers."""

    class File(io.FileIO):
        def readinto(self, buffer: Any) -> Any:
            passed.through("storage.read")
            return super().readinto(buffer)

        def readall(self) -> bytes:
            passed.through("storage.read")
            return super().readall()

        def write(self, data: Any) -> Any:
            passed.through("storage.write")
            return super().write(data)

    def opened(
        file: Any,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
        closefd: bool = True,
        opener: Any = None,
    ) -> Any:
        passed.through("storage.open")
        raw = File(file, mode.replace("b", "").replace("t", ""), closefd, opener)
        if buffering == 0:
            return raw
        wrapping: Any = io.BufferedRandom if "+" in mode else io.BufferedReader if "r" in mode else io.BufferedWriter
        buffered = wrapping(raw)
        return buffered if "b" in mode else io.TextIOWrapper(buffered, encoding, errors, newline)

    return opened


def _starter(passed: Passed) -> Callable[[threading.Thread], None]:
    """`Thread.start` for threads of the package; they take NumPy's memory where the calling thread does."""
    start = threading.Thread.start

    def started(thread: threading.Thread) -> None:
        if thread.name.startswith("wedgewise"):
            passed.through("executor.thread")
        run, context = thread.run, copy_context()
        thread.run = lambda: context.run(run)  # type: ignore[method-assign]
        start(thread)

    return started


def _working(passed: Passed, run: Callable[..., Any]) -> Callable[..., Any]:
    """What runs tasks, each of them behind a gate."""
    return lambda task, *arguments: run(_passing(passed, "executor.task", task), *arguments)


def _failing_threads(passed: Passed) -> type[threads._Threads[Any]]:
    class FailingThreads(threads._Threads[Any]):
        def __init__(self, task: Any, *arguments: Any) -> None:
            super().__init__(_passing(passed, "executor.task", task), *arguments)

    return FailingThreads


def _launcher(passed: Passed) -> Callable[..., None]:
    launch = EmulatedGpu.launch

    def launched(device: EmulatedGpu, *arguments: Any, **options: Any) -> None:
        passed.through("launch.memory")
        passed.through("launch.lost")
        launch(device, *arguments, **options)

    return launched


def _streaming(passed: Passed) -> dict[str, Any]:
    """What a device with streams is asked for: memory, and work that is started."""
    takes = ("stream", "reserve", "send")
    asked = {name: _passing(passed, "memory.device", getattr(StreamingEmulator, name)) for name in takes}
    return {**asked, "start": _passing(passed, "launch.lost", StreamingEmulator.start)}


def _taker(passed: Passed) -> Callable[[EmulatedGpu, int], None]:
    check = EmulatedGpu.check_taking

    def checked(device: EmulatedGpu, size: int) -> None:
        passed.through("memory.device")
        check(device, size)

    return checked


def _clocks(passed: Passed) -> dict[str, Any]:
    """Clocks that go back a day where they fail once, and a day further at every look where they fail always."""
    back = 0.0

    def jumping(clock: Callable[[], float]) -> Callable[[], float]:
        def look() -> float:
            nonlocal back
            if passed.fails("clock"):
                back += JUMP_SECONDS
            return clock() - back

        return look

    return {name: jumping(getattr(time, name)) for name in ("perf_counter", "monotonic", "time")}
