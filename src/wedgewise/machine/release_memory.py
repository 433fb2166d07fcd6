"""Memory that this process holds and does not need, given back to the system where that can be done.

Free memory that the allocators, ours and Arrow's, keep for later, and the linker: loading kernels maps up to 95 MB of
LLVM, and how much of that is resident depends on how the system caches the file. Its pages hold nothing but the file's
bytes, and come back from there when a kernel is loaded.
"""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Iterator
from pathlib import Path

MAPPINGS = Path("/proc/self/smaps")
LINKER = "libllvmlite"
DONT_NEED = 4  # MADV_DONTNEED on Linux
MAPPING = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) (\S{4}) \S+ \S+ \S+ *(.*)$")


def release_memory() -> None:
    """Give all of it back; Arrow's alone where the system is not Linux with the C library of GNU."""
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
