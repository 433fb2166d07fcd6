"""The machine code that the wheel ships: every listed kernel compiled and linked, a library per level of processors.

    python tools/kernels.py FOLDER [LEVEL …]

Numba compiles in as many processes as there are cores, for the level that its environment variables name. What is left
of an object is one symbol, so that all of them go into one library, which needs no other.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from wedgewise.machine import hardware, native, shipped, signatures

LINK = ("cc", "-shared", "-nostdlib", "-Wl,--build-id=none", "-Wl,-z,noexecstack")


def build(level: shipped.Level, folder: Path) -> None:
    """Write the library of a level, and what is in it."""
    os.environ |= {"NUMBA_CPU_NAME": level.processor, "NUMBA_CPU_FEATURES": level.features}  # for the processes
    numbers = range(len(signatures.listed(wide=True)))
    with ProcessPoolExecutor(hardware.usable_threads(), get_context("spawn"), native.only_emit) as pool:
        made = list(pool.map(compile_listed, numbers))
    library = shipped.library_path(level, folder)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as objects:
        for number, (_, _, code) in enumerate(made):
            Path(objects, f"{number}.o").write_bytes(code)
        paths = [os.path.join(objects, f"{number}.o") for number in range(len(made))]
        subprocess.run([*LINK, "-o", library, *paths], check=True)
    contents = {
        "sha256": hashlib.sha256(library.read_bytes()).hexdigest(),
        "results": {symbol: results for symbol, results, _ in made},
    }
    library.with_suffix(".json").write_text(json.dumps(contents, indent=1) + "\n")


def compile_listed(number: int) -> tuple[str, int, bytes]:
    """The name, number of results and object of a kernel of the list."""
    marked, kinds = signatures.listed(wide=True)[number]
    symbol = shipped.symbol_of(marked, kinds)
    code, results = native.compile_for_library(marked, kinds, symbol)
    return symbol, results, code


def main() -> None:
    folder, *names = sys.argv[1:]
    for level in shipped.LEVELS:
        if not names or level.name in names:
            begin = time.perf_counter()
            build(level, Path(folder))
            library = shipped.library_path(level, Path(folder))
            print(f"{library}: {library.stat().st_size:,} bytes, {time.perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    main()
