"""Which lines of the kernels run: gcov's counts of an emulated device, and the code that only a GPU has."""

from __future__ import annotations

import json
import re
import subprocess
from collections import defaultdict
from pathlib import Path

from wedgewise.machine import gpu

Lines = dict[str, dict[int, bool]]

# What the emulation has twins of, which no line of a kernel counts: by name, why.
DEVICE_ONLY = {
    "u8": "a width, which the emulation needs before any kernel",
    "u16": "a width, which the emulation needs before any kernel",
    "u32": "a width, which the emulation needs before any kernel",
    "u64": "a width, which the emulation needs before any kernel",
    "DYNAMIC_SHARED": "shared memory whose size a launch says; the emulation allocates it for every block",
    "STORE_EQUAL": "a plain store, which would be a race of threads of the host; the emulation stores atomically",
    "load_racing": "a volatile load, which would be a race of threads of the host; the emulation loads atomically",
    "store_racing": "a volatile store, which would be a race of threads of the host; the emulation stores atomically",
    "ALL_ARRIVED": "a bit of the barrier of all blocks",
    "meet_grid": "a barrier of all blocks, which spins; the emulation knows who waits for whom",
}
EXCLUDED = re.compile(r"^#ifndef EMULATED\n(.*?)^#endif", re.MULTILINE | re.DOTALL)
DEFINED = re.compile(r"^typedef .*\b(\w+);|^#define (\w+)|^__device__ __forceinline__ [\w ]+?(\w+)\(", re.MULTILINE)


def kernel_files() -> list[Path]:
    return sorted(gpu.KERNEL_FOLDER.rglob("*.cu*"))


def device_only() -> set[str]:
    """The names that kernels define where they are not emulated."""
    excluded = [part for path in kernel_files() for part in EXCLUDED.findall(path.read_text(encoding="utf-8"))]
    return {name for part in excluded for found in DEFINED.findall(part) for name in found if name}


def lines_run(folder: Path) -> Lines:
    """For every kernel file its lines with code, and whether any launch of a coverage build in the folder ran them."""
    lines: Lines = defaultdict(dict)
    for data in folder.rglob("*.gcda"):
        for file, number, has_run in _lines_of(data):
            lines[file][number] = has_run or lines[file].get(number, False)
    return {path.name: lines[path.name] for path in kernel_files()}


def _lines_of(data: Path) -> list[tuple[str, int, bool]]:
    command = ("gcov", "--json-format", "--stdout", data.name)
    reported = subprocess.run(command, cwd=data.parent, capture_output=True, text=True, check=True).stdout
    return [
        (file["file"], line["line_number"], line["count"] > 0)
        for report in map(json.loads, reported.splitlines())
        for file in report["files"]
        for line in file["lines"]
    ]
