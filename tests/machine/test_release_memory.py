"""What a process does not need goes back to the system, and comes back when it is used."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from wedgewise.machine import budget
from wedgewise.machine.hardware import resident_bytes

ON_LINUX = pytest.mark.skipif(not budget.MAPPINGS.exists(), reason="reads mappings from /proc")

MAPPINGS = """\
7f0000000000-7f0000010000 r--p 00000000 fe:00 11 /lib/python/site-packages/llvmlite/binding/libllvmlite.so
Rss:                  64 kB
Anonymous:             0 kB
VmFlags: rd mr mw me sd
7f0000010000-7f0000050000 r-xp 00010000 fe:00 11 /a folder/llvmlite/binding/libllvmlite.so
Rss:                 256 kB
Anonymous:             0 kB
7f0000050000-7f0000060000 r--p 00050000 fe:00 11 /lib/python/site-packages/llvmlite/binding/libllvmlite.so
Anonymous:            32 kB
7f0000060000-7f0000070000 rw-p 00060000 fe:00 11 /lib/python/site-packages/llvmlite/binding/libllvmlite.so
Anonymous:             0 kB
7f0000070000-7f0000080000 r--p 00000000 fe:00 12 /lib/libc.so.6
Anonymous:             0 kB
7f0000080000-7f0000090000 rw-p 00000000 00:00 0
Anonymous:             0 kB
"""


def test_only_pages_that_are_the_linkers_file_byte_by_byte() -> None:
    """Neither those that relocation has changed and then locked, nor those that may change, nor another library's."""
    assert list(budget._pages_of_the_linker(MAPPINGS)) == [
        (0x7F0000000000, 0x7F0000010000),
        (0x7F0000010000, 0x7F0000050000),
    ]


LOADED_AND_GIVEN_BACK = """
from wedgewise.machine import hardware, native
from wedgewise.machine.budget import release_memory
native._engine()
release_memory()
before = hardware.resident_bytes()
from llvmlite import binding
touched = binding.parse_assembly("define i32 @f() { ret i32 7 }")
machine = binding.Target.from_default_triple().create_target_machine()
code = machine.emit_object(touched)
allocator_keeps = [bytes(1000) for _ in range(40_000)]
del allocator_keeps
held = hardware.resident_bytes()
release_memory()
after = hardware.resident_bytes()
assert machine.emit_object(touched) == code
print(before, held, after)
"""


@ON_LINUX
def test_the_linker_is_given_back_and_works_on() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", LOADED_AND_GIVEN_BACK], capture_output=True, text=True, check=True
    ).stdout
    before, held, after = map(int, ran.split())
    assert held - after > 10**7, "what was touched since"
    assert after - before < held - after


def test_without_mappings_to_read_nothing_is_done(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(budget, "MAPPINGS", tmp_path / "smaps")
    monkeypatch.setattr(ctypes, "CDLL", None)
    budget.release_memory()


def test_a_c_library_that_trims_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """musl has no such function."""
    calls: list[tuple[int, int, int]] = []

    class Musl:
        def __init__(self, name: None) -> None:
            """The library of this process."""

        def madvise(self, begin: ctypes.c_void_p, size: ctypes.c_size_t, advice: int) -> None:
            calls.append((begin.value or 0, size.value, advice))

    (tmp_path / "smaps").write_text(MAPPINGS)
    monkeypatch.setattr(budget, "MAPPINGS", tmp_path / "smaps")
    monkeypatch.setattr(ctypes, "CDLL", Musl)
    budget.release_memory()
    assert calls == [(0x7F0000000000, 0x10000, 4), (0x7F0000010000, 0x40000, 4)]


def test_what_arrow_keeps_is_given_back() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    block = pyarrow.allocate_buffer(64 << 20)
    np.frombuffer(block, np.uint8)[:] = 1
    del block
    budget.release_memory()
    held = resident_bytes()
    pyarrow.default_memory_pool().release_unused()
    assert held - resident_bytes() < 32 << 20


def test_the_linker_stays_where_no_file_can_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "MAPPINGS", tmp_path)  # a folder cannot be read
    budget.release_memory()


HEAPS_OF_THREADS = """
import sys, threading
from wedgewise.machine.budget import share_heap
if sys.argv[1] == "shared":
    share_heap()
everybody = threading.Barrier(5)

def take():
    held = [bytes(1000) for _ in range(1000)]
    everybody.wait()
    everybody.wait()

threads = [threading.Thread(target=take) for _ in range(4)]
for thread in threads:
    thread.start()
everybody.wait()
with open("/proc/self/maps") as mappings:
    bounds = [line.split()[0].split("-") for line in mappings if " ---p " in line]
everybody.wait()
print(sum(int(end, 16) - int(begin, 16) > 1 << 25 for begin, end in bounds))
"""


@ON_LINUX
@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="another C library than that of GNU")
def test_threads_share_one_heap_within_a_limit() -> None:
    """Each would keep 64 MiB of addresses, and what it frees, for itself."""
    own, shared = (
        int(subprocess.check_output([sys.executable, "-c", HEAPS_OF_THREADS, how])) for how in ("own", "shared")
    )
    assert (own > 0, shared) == (True, 0)
