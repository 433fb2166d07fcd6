"""Machine code that lies in the installed package: a library of all kernels for each level of processors.

``make wheel`` compiles the kernels that are listed (machine/signatures.py) and links them; here the library of the
highest level that this processor has is opened. A kernel is found in it by the sources and values that it was made of,
as in the cache, so that the code of edited sources is not called.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from wedgewise.machine import hardware
from wedgewise.machine.kernel_sources import identity_of
from wedgewise.machine.own_files import OTHERS_WRITE, notice_once

FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Level:
    """Processors that have the same instructions: as LLVM calls them, and as Linux does."""

    name: str
    processor: str
    features: str
    flags: frozenset[str]


V3_FLAGS = frozenset(["avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave", "popcnt", "sse4_2"])
V4_FLAGS = V3_FLAGS | frozenset(["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"])
LEVELS = (  # the highest one first
    Level("x86-64-v4-vpopcntdq", "x86-64-v4", "+avx512vpopcntdq", V4_FLAGS | {"avx512_vpopcntdq"}),
    Level("x86-64-v3", "x86-64-v3", "+avx2", V3_FLAGS),
)


@dataclass(frozen=True, slots=True)
class KernelLibrary:
    """A library that was opened, and how many results each kernel in it has."""

    level: Level
    opened: Any
    results: dict[str, int]


def fitting_level() -> Level | None:
    """The highest level that this processor has and kernels came for; None also where the system does not say."""
    flags = hardware.processor_flags()
    return next((level for level in LEVELS if level.flags <= flags and library_path(level, FOLDER).exists()), None)


def library_path(level: Level, folder: Path) -> Path:
    """Where the kernels of a level lie; beside it, in a ``.json``, what is in the file."""
    return folder / f"kernels-{level.name}.so"


@cache
def is_there() -> bool:
    """Whether the package came with kernels for this processor; they are not opened."""
    return fitting_level() is not None


@cache
def library() -> KernelLibrary | None:
    """The kernels that came for this processor; None where there are none that can be trusted."""
    level = fitting_level()
    if level is None:
        return None
    try:
        return open_library(level, FOLDER)
    except (OSError, ValueError, KeyError) as error:
        notice_once("shipped", f"shipped kernels are not used, because {error}")
        return None


def open_library(level: Level, folder: Path) -> KernelLibrary:
    """Open the kernels of a level, where they are what was shipped.

    Raises
    ------
    OSError
        When the file cannot be read, is damaged, or others can have written it.
    """
    path = library_path(level, folder)
    _check_as_trusted_as_sources(path)
    shipped = json.loads(path.with_suffix(".json").read_text())
    if hashlib.sha256(path.read_bytes()).hexdigest() != shipped["sha256"]:
        raise OSError(f"{path} is damaged")
    return KernelLibrary(level, ctypes.CDLL(os.fspath(path)), shipped["results"])


def shipped_kernel(marked: Any, kinds: tuple[str | type, ...]) -> Callable[..., Any] | None:
    """The kernel as it was shipped; None where it was not, for these kinds of arguments and these sources."""
    code = library()
    return None if code is None else kernel_in(code, marked, kinds)


def kernel_in(code: KernelLibrary, marked: Any, kinds: tuple[str | type, ...]) -> Callable[..., Any] | None:
    """A kernel of a library; None where it is not in there."""
    from wedgewise.machine import native

    symbol = symbol_of(marked, kinds)
    if symbol not in code.results:
        return None
    address = ctypes.cast(getattr(code.opened, symbol), ctypes.c_void_p).value
    assert address is not None
    return native.callable_at(address, native.flat_kinds(kinds), code.results[symbol], marked.title)


def symbol_of(marked: Any, kinds: tuple[str | type, ...]) -> str:
    """What a kernel is called in a library: its name, and all that its machine code depends on."""
    return f"{marked.function.__module__}.{marked.__name__}-{identity_of(marked, kinds)}"


def _check_as_trusted_as_sources(path: Path) -> None:
    """Machine code is to be a regular file that nobody can have written who cannot write the sources beside it."""
    status, sources = os.lstat(path), os.stat(__file__)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(f"{path} is no regular file")
    if status.st_uid != sources.st_uid:
        raise OSError(f"{path} belongs to another user than the sources beside it (uid {status.st_uid})")
    if os.name == "posix" and status.st_mode & ~sources.st_mode & OTHERS_WRITE:
        raise OSError(f"{path} can be written by others than the sources beside it")
