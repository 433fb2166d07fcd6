"""Kernels: Python functions that Numba compiles once per machine, and that every later process loads without Numba.

`@kernel` marks a serial function over a range of work; kernels and the helpers they call may live in any module. At the
first call with given argument types the kernel's machine code is taken from the libraries that the package came with
(machine/shipped.py). Where there are none for this processor, it is looked up in the cache folder and loaded through
llvmlite alone (0.07 s once; importing Numba and its first cached function would take 0.7 s). Where it is missing there
too, Numba compiles it and the code is stored for next time.

The cache folder is named by a hash of the compiler's version and of the processor, a file in it by a hash of the
sources and values that its kernel depends on (machine/kernel_sources.py): Numba's own cache looks at one file only
and returns the old machine code after a helper in another file was edited. Where no folder is writable, or others can
write to it, kernels are compiled for this process. A stored kernel that is damaged, or that others can have written,
is compiled again.

Arguments that belong together travel as a record, a NamedTuple of arrays, numbers, None and other records: it is taken
apart where a kernel is called and made again within its machine code. A field that is None is None to the compiler too:
handed on as an argument of a helper, it selects what is compiled (``record.field is None`` cannot be typed).

With the environment variable NUMBA_DISABLE_JIT=1 kernels run as plain Python (slow; for coverage and debugging).
"""

from __future__ import annotations

import ctypes
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import MemoryLimitError, StorageError
from wedgewise.machine import hardware
from wedgewise.machine.kernel_sources import identity_of, source_of
from wedgewise.machine.libraries import check_installed, is_installed
from wedgewise.machine.own_files import UntrustedFileError, make_own_folder, notice_once, read_own, why_not_own

if TYPE_CHECKING:
    from wedgewise.machine import native

Parameters = ParamSpec("Parameters")
Value = TypeVar("Value")
Kinds = tuple[str | type, ...]

log = logging.getLogger("wedgewise")

JIT_DISABLED = os.environ.get("NUMBA_DISABLE_JIT", "0") == "1"
CACHE_VARIABLE = "WEDGEWISE_CACHE"
OBJECT_SUFFIX = ".kernel"
NONE = "none"  # the kind of an argument that is not there
NOTICE = "compiling kernels for this machine, once (`wedgewise doctor --warm` compiles all of them ahead)"
SHIPPED_SECONDS, LOAD_SECONDS, COMPILE_SECONDS = 0.01, 0.15, 2.0
COMPILE_BYTES = 1 << 29  # generous: what LLVM with Numba was seen to take

_compile_lock = threading.RLock()
_compile_listener: Callable[[str], None] | None = None
_any_loaded = False
_is_announced = False
_loading_thread: int | None = None
_array_seconds = 0.0
_interpreting = threading.local()


class CpuKernel(Generic[Parameters, Value]):
    """A function that is loaded or compiled at its first call; a call from another kernel is compiled into that one.

    Arguments are one-dimensional C-contiguous arrays, numbers, None and records of those; results are unsigned numbers,
    a tuple of them, or None. Kernels allocate nothing.
    """

    def __init__(self, function: Callable[Parameters, Value], inline: bool) -> None:
        self.function = function
        self.inline = inline
        self.source = source_of(function.__code__.co_filename)
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self.title = f"{function.__module__.rpartition('.')[2]}.{function.__name__}"
        self._loaded: dict[Kinds, Callable[..., Any]] = {}
        self._was_stored = False
        self._locks: dict[Kinds, threading.RLock] = {}  # two signatures are compiled at once, one of them once

    def __call__(self, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Value:
        if JIT_DISABLED or getattr(_interpreting, "is_on", False):
            whole: Any = [item.argument if type(item) is TakenApart else item for item in args]
            return self.function(*whole, **kwargs)
        flat: list[Any] = []
        kinds = tuple(_take_apart(args, flat))
        loaded = self._loaded.get(kinds)
        if loaded is None:
            loaded = self.load(kinds)
        return loaded(*flat)  # type: ignore[no-any-return]

    def interpreted(self, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Value:
        """Run as plain Python, and what it calls too: for work that is not worth a kernel's loading."""
        _interpreting.is_on = True
        try:
            return self.function(*args, **kwargs)
        finally:
            _interpreting.is_on = False

    @property
    def signatures(self) -> list[Kinds]:
        """The kinds of arguments this kernel was loaded or compiled for in this process."""
        return list(self._loaded)

    @property
    def is_stored(self) -> bool:
        """Whether this process, an earlier one or the maker of the package has compiled this kernel, for whatever
        arguments and sources."""
        from wedgewise.machine import shipped

        if not self._was_stored:
            root, name = cache_root(), f"{self.function.__module__}.{self.__name__}-*{OBJECT_SUFFIX}"
            self._was_stored = (
                bool(self._loaded) or shipped.is_there() or (root is not None and any(root.glob(f"kernels-*/{name}")))
            )
        return self._was_stored

    def load(self, kinds: Kinds) -> Callable[..., Any]:
        """The machine code for these kinds of arguments: as shipped, as stored, or compiled now."""
        global _any_loaded
        with self._locks.setdefault(kinds, threading.RLock()):
            if kinds not in self._loaded:
                self._loaded[kinds] = _load_or_compile(self, kinds)
                _any_loaded = True
            return self._loaded[kinds]


def kernel(function: Callable[Parameters, Value]) -> CpuKernel[Parameters, Value]:
    """Mark an entry point: runs without the GIL, kept on disk."""
    return CpuKernel(function, inline=False)


def helper(function: Callable[Parameters, Value]) -> CpuKernel[Parameters, Value]:
    """Mark a function that only kernels call: compiled into them."""
    return CpuKernel(function, inline=True)


def kernel_view(array: NDArray[Any]) -> NDArray[Any]:
    """The same memory as a one-dimensional C-contiguous unsigned array, so that kernels need few signatures."""
    if not array.flags.c_contiguous:
        raise TypeError("kernel_view needs a C-contiguous array")
    flat = array.reshape(-1)
    return flat.view(np.dtype(f"u{flat.dtype.itemsize}")) if flat.dtype.kind in "ib" else flat


class TakenApart:
    """An argument of many calls that is taken apart once: arrays are their address and length from then on."""

    __slots__ = ("argument", "kinds", "numbers")

    def __init__(self, argument: Any) -> None:
        flat: list[Any] = []
        self.argument = argument  # keeps the arrays
        self.kinds = _take_apart((argument,), flat)
        self.numbers = [number for item in flat for number in numbers_of(item)]


def taken_apart(argument: Value) -> Value:
    """The same argument to the kernels of one pass, each call of which would otherwise take it apart."""
    apart: Any = TakenApart(argument)
    return apart  # type: ignore[no-any-return]


def numbers_of(argument: Any) -> tuple[int, ...]:
    """What machine code is handed for a number or an array, which is its address and length."""
    if type(argument) is not np.ndarray:
        return (int(argument),)
    if not argument.flags.c_contiguous:
        raise TypeError("kernels need C-contiguous arrays")
    return argument.__array_interface__["data"][0], argument.size


def stop_compiling(threads: Collection[int]) -> None:
    """End the compiling that these threads are at or wait for: it takes seconds, and hears no signal there."""
    from wedgewise.machine.compilers import StoppedCompilingError, stop_asking

    global _loading_thread
    stop_asking(threads)
    loading = _loading_thread
    if loading is not None and loading in threads:
        _loading_thread = None  # the exception is raised in it once
        raised = ctypes.py_object(StoppedCompilingError)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(loading), raised)


def is_loaded() -> bool:
    """Whether kernels run at no further cost."""
    return JIT_DISABLED or _any_loaded


def load_seconds(*needed: CpuKernel[Any, Any]) -> float:
    """What is still to be paid before these kernels run: loading, for the first ones of a process, or compiling.

    Work done by arrays so far counts as paid, so that a process that asks many small questions loads kernels as soon as
    they would have been the cheaper choice from the start. Compiling takes longer than the figure for it, but once per
    machine: it is an investment in the runs to come.
    """
    from wedgewise.machine import shipped

    if JIT_DISABLED:
        return 0.0
    seconds = SHIPPED_SECONDS if shipped.is_there() else LOAD_SECONDS
    if is_loaded():
        seconds = 0.0
    if not all(marked.is_stored for marked in needed):
        seconds = COMPILE_SECONDS
    return max(0.0, seconds - _array_seconds)


def pays(array_seconds: float, *needed: CpuKernel[Any, Any]) -> bool:
    """Whether these kernels are worth their loading for work that arrays do in so many seconds.

    If not, the seconds count as paid towards loading them later. Kernels that run as plain Python are slower than
    arrays, and never worth it.
    """
    cost = load_seconds(*needed)
    if not JIT_DISABLED and (cost == 0 or array_seconds > cost):
        return True
    work_by_arrays(array_seconds)
    return False


def work_by_arrays(seconds: float) -> None:
    """Count seconds of work by arrays as paid towards loading kernels later."""
    global _array_seconds
    _array_seconds += seconds


def on_compile(listener: Callable[[str], None] | None) -> None:
    """Tell `listener` one line for every kernel that has to be compiled; None: somebody at a terminal, once."""
    global _compile_listener
    _compile_listener = listener


def cache_folder() -> Path | None:
    """Where kernels that this compiler made for this processor live; None where nothing is writable."""
    root = cache_root()
    if root is None:
        return None
    folder = root / f"kernels-{_compiler_identity()}"
    try:
        make_own_folder(folder)
    except OSError as error:
        notice_once("folder", f"kernel cache {folder} cannot be made ({error}): compiling for this process only")
        return None
    reason = why_not_own(folder)
    if reason is not None:
        notice_once("folder", f"kernel cache {folder} is not used, because {reason}: compiling for this process only")
        return None
    return folder if os.access(folder, os.W_OK | os.X_OK) else None


def _take_apart(arguments: Iterable[Any], flat: list[Any]) -> list[str | type]:
    """How arguments are passed; the arrays and numbers among them, and in records, are appended to `flat`.

    ``u8`` is a number, ``*u8`` an array of such, ``i8`` an integer of Python; a record is its type before its fields.
    """
    kinds: list[str | type] = []
    for argument in arguments:
        if argument is None:
            kinds.append(NONE)
        elif isinstance(argument, tuple):
            kinds.append(type(argument))
            kinds += _take_apart(argument, flat)
        elif type(argument) is TakenApart:
            kinds += argument.kinds
            flat += argument.numbers
        else:
            flat.append(argument)
            if type(argument) is np.ndarray:
                kinds.append("*" + argument.dtype.str[1:])
            else:
                kinds.append("i8" if isinstance(argument, int) else argument.dtype.str[1:])
    return kinds


def cache_root() -> Path | None:
    """The folder of everything that is kept on this machine; None for a user without a home."""
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return Path(named)
    xdg = os.environ.get("XDG_CACHE_HOME")
    if xdg:
        return Path(xdg) / "wedgewise"
    try:
        return Path.home() / ".cache" / "wedgewise"
    except RuntimeError:  # no HOME and no password entry
        return None


@cache
def _compiler_identity() -> str:
    """A hash of the compiler's version and of the processor, without importing Numba."""
    import hashlib
    import importlib.util

    from wedgewise.machine import native

    digest = hashlib.sha256(native.processor().encode() if is_installed("llvmlite") else b"no compiler")
    compiler = importlib.util.find_spec("numba")
    if compiler is not None and compiler.origin is not None:
        digest.update(Path(compiler.origin).with_name("_version.py").read_bytes())
    return digest.hexdigest()[:16]


def _check_memory(need: int) -> None:
    """Refuse to start what would end the process: LLVM aborts when it runs out of memory."""
    available = hardware.available_memory()
    if need > available:
        raise MemoryLimitError(
            f"loading kernels takes {need:,} bytes and {available:,} are available", "use a machine with more memory"
        )


def _load_or_compile(marked: CpuKernel[Any, Any], kinds: Kinds) -> Callable[..., Any]:
    from wedgewise.machine import native, shipped

    found = shipped.shipped_kernel(marked, kinds)
    if found is not None:
        return found
    _check_memory(native.linking_bytes())
    path = _path_of(marked, kinds)
    code = None if path is None else _stored(path)
    if code is None:
        code = _compile(marked, kinds)
        if path is not None:
            _store(path, code)
    return native.callable_of(code, marked.title)


def _compile(marked: CpuKernel[Any, Any], kinds: Kinds) -> native.NativeObject:
    """Have another process compile a kernel; this one does where that cannot be."""
    global _loading_thread
    from wedgewise.machine import compilers, native

    check_installed("numba")
    _check_memory(COMPILE_BYTES)
    (_compile_listener or _announce_compiling)(f"compiling {marked.title} for this machine (once)")
    begin = time.perf_counter()
    stored = compilers.compile_elsewhere(marked, kinds, marked.title)
    if stored is not None:
        code = native.NativeObject.from_bytes(stored, marked.title)
    else:
        with _compile_lock:
            _loading_thread = threading.get_ident()
            try:
                code = native.compile_object(marked, kinds)
            finally:
                _loading_thread = None
    log.info("compiled %s in %.2f s", marked.title, time.perf_counter() - begin)
    return code


def _announce_compiling(_line: str) -> None:
    """Say once, to who works with Python at a terminal or in a notebook, what takes so long."""
    global _is_announced
    if not _is_announced and sys.stderr is not None and (sys.stderr.isatty() or "ipykernel" in sys.modules):
        _is_announced = True
        with suppress(OSError):
            sys.stderr.write(f"wedgewise: {NOTICE}\n")
            sys.stderr.flush()


def _path_of(marked: CpuKernel[Any, Any], kinds: Kinds) -> Path | None:
    """Where the machine code of a kernel is kept; None where it cannot be kept, or is not known by its sources."""
    identity, folder = identity_of(marked, kinds), cache_folder()
    if folder is None or identity is None:
        return None
    return folder / f"{marked.function.__module__}.{marked.__name__}-{identity}{OBJECT_SUFFIX}"


def _stored(path: Path) -> native.NativeObject | None:
    """The kernel of a file; None where there is none that can be read_trusted, which is removed."""
    from wedgewise.machine import native

    try:
        data = read_own(path)
        return None if data is None else native.NativeObject.from_bytes(data, _title_of(path))
    except (UntrustedFileError, native.DamagedObjectError) as error:
        notice_once("kernel", f"stored kernels are not read_trusted, because {error}: compiling again")
        with suppress(OSError):
            path.unlink()
        return None


def _store(path: Path, code: native.NativeObject) -> None:
    """Keep a kernel for later processes of this user."""
    from wedgewise.machine.files import atomic_write

    try:
        with atomic_write(path, mode=0o600) as file:
            file.write(code.to_bytes(_title_of(path)))
    except StorageError as error:
        notice_once("storing", f"{error}: kernels are compiled for this process only")


def _title_of(path: Path) -> str:
    """Which kernel a file holds, of which sources, compiler and processor: its name and that of its folder."""
    return f"{path.parent.name}/{path.name}"
