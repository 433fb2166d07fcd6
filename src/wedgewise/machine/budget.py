"""What is left of a limit on the resident size of this process, and how what it does not need goes back to the system.

The limit is on all of it, interpreter and kernels included. Compiling takes more memory than a small limit allows; it
is done by processes of its own (machine/compilers.py), which end before the work begins.

What goes back is free memory that the allocators, ours and Arrow's, keep for later, and the linker: loading kernels
maps up to 95 MB of LLVM, and how much of that is resident depends on how the system caches the file. Its pages hold
nothing but the file's bytes, and come back from there when a kernel is loaded.

The C library of GNU gives every thread a heap of its own, of 64 MiB of addresses each, and what one thread frees there
no other one takes. Within a limit all threads have one heap: building a store peaks 70 MB lower, in the same time.
"""

from __future__ import annotations

import ctypes
import logging
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from wedgewise.errors import InputError, MemoryLimitError
from wedgewise.machine import hardware
from wedgewise.machine.compilers import end_compilers
from wedgewise.machine.out_of_memory import memory_for
from wedgewise.machine.parameters import as_integer

log = logging.getLogger("wedgewise")

MIN_LIMIT = 256 * 10**6
MORE_PARTS = "raise the limit, or partition the graph into more parts"
RESERVE_BYTES = 24 << 20  # objects, stacks of threads, and what the allocator keeps
MAPPINGS = Path("/proc/self/smaps")
LINKER = "libllvmlite"
DONT_NEED = 4  # MADV_DONTNEED on Linux
MAX_HEAPS = -8  # M_ARENA_MAX of the C library of GNU
MAPPING = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) (\S{4}) \S+ \S+ \S+ *(.*)$")


def check_limit(memory_limit: int | None) -> None:
    """Refuse a limit that the interpreter and the kernels alone may exceed."""
    if memory_limit is not None and as_integer("memory_limit", memory_limit) < MIN_LIMIT:
        raise InputError(
            f"{memory_limit:,} bytes are too few for the interpreter and its kernels; allow {MIN_LIMIT:,} or more"
        )


def check_fits(need: int, available_bytes: int, what: str, remedy: str = "raise the limit") -> None:
    """Refuse what takes more than is left; `what` ends with its verb."""
    if need > available_bytes:
        raise MemoryLimitError(f"{what} {need:,} bytes and {available_bytes:,} are left", remedy)


def bytes_per_worker(memory_limit: int | None, workers: int) -> int:
    """What each of so many workers of this machine may take, of the limit or of what the machine has left."""
    if workers < 1:
        raise InputError(f"workers is at least 1, not {workers}")
    if memory_limit is None:
        return max(MIN_LIMIT, hardware.available_memory() * 3 // 4 // workers)
    each = memory_limit // workers
    if each < MIN_LIMIT <= memory_limit:
        raise InputError(
            f"{memory_limit:,} bytes are too few for {workers} workers, which take {MIN_LIMIT:,} each at least; "
            "allow more, or start fewer"
        )
    return each


@memory_for("plan")
def available_after_loading(memory_limit: int | None, load_kernels: Callable[..., None], *arguments: str) -> int:
    """The bytes that work may take; `load_kernels`, a function of a module, calls every kernel that it needs.

    Parameters
    ----------
    memory_limit : for the resident size of the process; None is what the machine has left
    load_kernels : called here, so that all kernels are loaded before anything is measured
    *arguments : of `load_kernels`
    """
    check_limit(memory_limit)
    if memory_limit is not None or hardware.address_space_left() is not None:
        share_heap()
    if memory_limit is None:
        load_kernels(*arguments)
        return hardware.available_memory() * 3 // 4
    release_memory()
    load_kernels(*arguments)
    end_compilers()
    release_memory()
    resident = hardware.resident_bytes()
    left = min(memory_limit - resident, hardware.available_memory()) - RESERVE_BYTES
    if left <= 0:
        raise MemoryLimitError(
            f"this process holds {resident:,} bytes before the work begins, and {memory_limit:,} are allowed",
            "raise the limit, or free memory in this process",
        )
    return left


def share_heap() -> None:
    """Let threads that begin from now on share the heaps that are there, on Linux with the C library of GNU."""
    if MAPPINGS.exists() and hasattr(c_library := ctypes.CDLL(None), "mallopt"):
        c_library.mallopt(MAX_HEAPS, 1)


def release_memory() -> None:
    """Give back what is not needed; Arrow's alone where the system is not Linux with the C library of GNU."""
    arrow = sys.modules.get("pyarrow")
    if arrow is not None:
        arrow.default_memory_pool().release_unused()
    if not MAPPINGS.exists():
        return
    c_library = ctypes.CDLL(None)
    try:
        mappings = MAPPINGS.read_text()
    except OSError:  # no file can be opened now: the linker stays
        mappings = ""
    for begin, end in _pages_of_the_linker(mappings):
        c_library.madvise(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), DONT_NEED)
    if hasattr(c_library, "malloc_trim"):
        c_library.malloc_trim(ctypes.c_size_t(0))


def _pages_of_the_linker(mappings: str) -> Iterator[tuple[int, int]]:
    """Where its file is mapped and nothing was changed: neither may it be, nor has it been before."""
    bounds: tuple[int, int] | None = None
    for line in mappings.splitlines():
        found = MAPPING.match(line)
        if found is not None:
            begin, end, rights, path = found.groups()
            is_file = LINKER in path and "w" not in rights
            bounds = (int(begin, 16), int(end, 16)) if is_file else None
        elif bounds is not None and line.split() == ["Anonymous:", "0", "kB"]:
            yield bounds
