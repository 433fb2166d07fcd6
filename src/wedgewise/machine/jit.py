"""The only caller of Numba: lazy kernels with a cache that cannot go stale.

`@kernel` marks a serial function over a range of work. Numba is imported at the first call, not before; kernels and the
helpers they call may live in any module. Compiled code is kept in a folder named by a hash of every source file of the
package with the versions of Numba and wedgewise: Numba's own cache looks at one file only and returns the old machine
code after a helper in another file was edited. Where no folder is writable, kernels are compiled for this process.

With the environment variable NUMBA_DISABLE_JIT=1 kernels run as plain Python (slow; for coverage and debugging).
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
import types
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

Parameters = ParamSpec("Parameters")
Value = TypeVar("Value")

log = logging.getLogger("wedgewise")

JIT_DISABLED = os.environ.get("NUMBA_DISABLE_JIT", "0") == "1"
CACHE_VARIABLE = "WEDGEWISE_CACHE"

_compile_lock = threading.RLock()
_compile_listener: Callable[[str], None] | None = None


class Kernel(Generic[Parameters, Value]):
    """A function that is compiled at its first call; calling it from another kernel inlines or links it."""

    def __init__(self, function: Callable[Parameters, Value], inline: bool) -> None:
        self.function = function
        self.inline = inline
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self._dispatcher: Any = None

    def __call__(self, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Value:
        dispatcher = self._dispatcher
        if dispatcher is None:
            if JIT_DISABLED:
                return self.function(*args, **kwargs)
            dispatcher = self.dispatcher()
        return dispatcher(*args, **kwargs)  # type: ignore[no-any-return]

    def dispatcher(self) -> Any:
        """The Numba dispatcher, made once; the machine code itself is loaded or compiled per signature."""
        with _compile_lock:
            if self._dispatcher is None:
                self._dispatcher = _make_dispatcher(self)
            return self._dispatcher

    @property
    def signatures(self) -> list[Any]:
        """The argument types this kernel was loaded or compiled for in this process."""
        return [] if self._dispatcher is None else list(self._dispatcher.signatures)


def kernel(function: Callable[Parameters, Value]) -> Kernel[Parameters, Value]:
    """Mark an entry point: compiled without the GIL, cached on disk."""
    return Kernel(function, inline=False)


def helper(function: Callable[Parameters, Value]) -> Kernel[Parameters, Value]:
    """Mark a function that only kernels call: compiled into them."""
    return Kernel(function, inline=True)


def kernel_view(array: NDArray[Any]) -> NDArray[Any]:
    """The same memory as a one-dimensional C-contiguous unsigned array, always flagged writable.

    Read-only and mapped arrays have another Numba type, which would compile a second copy of the kernel. Kernels do not
    write to arrays that they were handed through a read-only view.
    """
    if not array.flags.c_contiguous:
        raise TypeError("kernel_view needs a C-contiguous array")
    flat = array.reshape(-1)
    unsigned = flat.view(np.dtype(f"u{flat.dtype.itemsize}")) if flat.dtype.kind in "ib" else flat
    if unsigned.flags.writeable or unsigned.size == 0:
        return unsigned if unsigned.flags.writeable else np.empty(0, unsigned.dtype)
    return np.asarray(_WritableAlias(unsigned))


class _WritableAlias:
    """Lends an array's memory with the read-only flag left out; keeps the array alive."""

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array
        interface = dict(array.__array_interface__)
        interface["data"] = (interface["data"][0], False)
        self.__array_interface__ = interface


def is_loaded() -> bool:
    """Whether Numba is already imported: the cost model charges its load time only when it is not."""
    return JIT_DISABLED or "numba" in sys.modules


def on_compile(listener: Callable[[str], None] | None) -> None:
    """Tell `listener` one line for every kernel that has to be compiled rather than loaded."""
    global _compile_listener
    _compile_listener = listener


def cache_folder() -> Path | None:
    """Where compiled kernels of exactly these sources live; None where nothing is writable."""
    root = _cache_root()
    if root is None:
        return None
    folder = root / f"kernels-{_sources_hash()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".probe-{os.getpid()}-{threading.get_ident()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        log.info("kernel cache %s is not writable (%s): compiling for this process only", folder, error)
        return None
    return folder


def _cache_root() -> Path | None:
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
def _sources_hash() -> str:
    import hashlib

    import numba

    package = Path(__file__).resolve().parent.parent
    digest = hashlib.sha256(numba.__version__.encode())
    for source in sorted(package.rglob("*.py")):
        digest.update(str(source.relative_to(package)).encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _make_dispatcher(marked: Kernel[Any, Any]) -> Any:
    import numba

    from wedgewise.machine import primitives

    primitives.register_with_numba()
    function = _with_dispatchers_as_globals(marked.function)
    dispatcher = numba.njit(nogil=True, boundscheck=False, error_model="numpy", forceinline=marked.inline)(function)
    if not marked.inline:
        _announce_compiling(dispatcher, f"{marked.function.__module__.rpartition('.')[2]}.{marked.__name__}")
        folder = cache_folder()
        if folder is not None:
            _keep_in(folder, dispatcher)
    return dispatcher


def _with_dispatchers_as_globals(function: Callable[..., Any]) -> Callable[..., Any]:
    """A copy of `function` that sees compiled helpers where the module has `Kernel` objects."""
    names = set(function.__code__.co_names)
    visible = {
        name: value.dispatcher() if name in names and isinstance(value, Kernel) else value
        for name, value in function.__globals__.items()
    }
    copy = types.FunctionType(function.__code__, visible, function.__name__, function.__defaults__)
    copy.__module__ = function.__module__
    copy.__qualname__ = function.__qualname__
    return copy


def _announce_compiling(dispatcher: Any, name: str) -> None:
    """Wrap the compiler (not the cache) of one dispatcher so that a first use says what it is doing."""
    compiler = dispatcher._compiler
    compile_now = compiler.compile

    def announced(*args: Any, **kwargs: Any) -> Any:
        if _compile_listener is not None:
            _compile_listener(f"compiling {name} for this machine (once)")
        begin = time.perf_counter()
        result = compile_now(*args, **kwargs)
        log.info("compiled %s in %.2f s", name, time.perf_counter() - begin)
        return result

    compiler.compile = announced


def _keep_in(folder: Path, dispatcher: Any) -> None:
    """Give one dispatcher our cache folder, leaving the user's Numba settings alone."""
    from numba.core import caching

    class Locator(caching._CacheLocator):  # type: ignore[misc]
        def __init__(self, function: Any) -> None:
            self._function = function

        def get_cache_path(self) -> str:
            return str(folder)

        def get_source_stamp(self) -> str:
            return folder.name

        def get_disambiguator(self) -> str:
            return str(self._function.__code__.co_firstlineno)

    class Implementation(caching.CompileResultCacheImpl):  # type: ignore[misc]
        def __init__(self, function: Any) -> None:
            self._lineno = function.__code__.co_firstlineno
            self._locator = Locator(function)
            self._filename_base = self.get_filename_base(f"{function.__module__}.{function.__qualname__}", "")

    class KernelCache(caching.Cache):  # type: ignore[misc]
        _impl_class = Implementation

    dispatcher._cache = KernelCache(dispatcher.py_func)
    dispatcher._can_cache = True
