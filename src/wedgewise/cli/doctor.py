"""``wedgewise doctor``: what this installation has, and the kernels compiled ahead of their first use."""

from __future__ import annotations

import platform
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import wedgewise
from wedgewise.cli.console import say
from wedgewise.datasets import BUNDLED, bundled
from wedgewise.errors import MissingFileError
from wedgewise.machine import gpu, hardware, jit, shipped, signatures
from wedgewise.machine.threads import run_tasks
from wedgewise.report.objects import Object
from wedgewise.report.text import bytes_text, facts_text

REQUIRED = ("numpy", "numba", "typer", "rich")
EXTRAS = {
    "arrow": "pyarrow",
    "cluster": "distributed",
    "cuda13": "cupy-cuda13x",
    "cuda12": "cupy-cuda12x",
    "networkx": "networkx",
    "report": "matplotlib",
    "scipy": "scipy",
    "zstd": "zstandard",
}


def examine(warmed: Object | None) -> Object:
    """Everything that a report of trouble should say."""
    folder = None if jit.JIT_DISABLED else jit.cache_folder()
    return {
        "version": wedgewise.__version__,
        "package": str(Path(wedgewise.__file__).parent),
        "python": f"{platform.python_version()} ({sys.executable})",
        "packages": {name: version_of(name) for name in REQUIRED},
        "extras": {extra: version_of(name) for extra, name in EXTRAS.items()},
        "machine": hardware.look().description,
        "threads": hardware.usable_threads(),
        "memory_bytes": hardware.available_memory(),
        "gpu": gpu.why_no_device() or gpu.find_device().name,
        "jit": not jit.JIT_DISABLED,
        "cache": None if folder is None else str(folder),
        "kernels_shipped": 0 if (library := shipped.library()) is None else len(library.results),
        "kernels_cached": 0 if folder is None else len(list(folder.glob(f"*{jit.OBJECT_SUFFIX}"))),
        "bundled": {name: _is_there(name) for name in BUNDLED},
        "warmed": warmed,
    }


def version_of(package: str) -> str | None:
    """The installed version, found without importing the package."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _is_there(name: str) -> bool:
    try:
        return bundled(name).is_file()
    except MissingFileError:
        return False


def warm_kernels() -> Object:
    """Have every listed kernel, all at once, saying what is compiled."""
    compiled: list[str] = []

    def listen(line: str) -> None:
        compiled.append(line)
        say(line)

    begin = time.perf_counter()
    kernels = [] if jit.JIT_DISABLED else signatures.listed()
    jit.on_compile(listen)
    try:  # who waits for a kernel keeps no core busy
        run_tasks(lambda task, _worker: kernels[task][0].load(kernels[task][1]), len(kernels), len(kernels))
    finally:
        jit.on_compile(None)
    return {"compiled": len(compiled), "seconds": time.perf_counter() - begin}


def doctor_text(record: Object) -> str:
    """The examination as a person reads it."""
    facts = [
        ("python", record["python"]),
        *((name, version or _missing_text(name, record)) for name, version in record["packages"].items()),
        *(
            (f"[{extra}]", version or f'not installed: pip install "wedgewise[{extra}]"')
            for extra, version in record["extras"].items()
        ),
        ("machine", record["machine"]),
        ("memory", f"{bytes_text(record['memory_bytes'])} available"),
        ("gpu", record["gpu"]),
        ("kernels", _kernels_text(record)),
        *(
            (name, "bundled" if there else "MISSING: reinstall from a wheel")
            for name, there in record["bundled"].items()
        ),
    ]
    return f"wedgewise {record['version']} in {record['package']}\n\n{facts_text(facts)}"


def _missing_text(name: str, record: dict[str, Any]) -> str:
    return "not needed: kernels are shipped" if name == "numba" and record["kernels_shipped"] else "MISSING"


def _kernels_text(record: dict[str, Any]) -> str:
    if not record["jit"]:
        return "run as plain Python: NUMBA_DISABLE_JIT is set"
    if record["kernels_shipped"]:
        return f"{record['kernels_shipped']} shipped for processors like this one"
    if record["cache"] is None:
        return f"no folder is writable by you alone: compiled in every process; name one with {jit.CACHE_VARIABLE}"
    state = f"{record['kernels_cached']} compiled in {record['cache']}"
    if record["warmed"] is not None:
        return f"{state} ({record['warmed']['compiled']} of them now, in {record['warmed']['seconds']:.1f} s)"
    return state if record["kernels_cached"] else f"{state}; `wedgewise doctor --warm` compiles them ahead"
