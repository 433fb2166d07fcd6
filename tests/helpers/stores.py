"""Stores to test with: made of small graphs in small pieces, and changed in every way that a disk or a person may."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from wedgewise.graph import Graph
from wedgewise.machine import jit
from wedgewise.machine.budget import MIN_LIMIT, RESERVE_BYTES
from wedgewise.read import numpy_files, pairs_file
from wedgewise.run.sliced_answer import SlicedAnswer
from wedgewise.store import orient, read_pairs, write_blocks
from wedgewise.store import sorted_runs as runs
from wedgewise.store.manifest import MANIFEST
from wedgewise.store.open import Store

NO_EDGES = np.empty((0, 2), np.int64)
WITHOUT_TRIANGLES = (NO_EDGES, np.array([[3, 3]]), np.array([[3, 3], [5, 5], [7, 7]]), np.array([[0, 1], [2, 2]]))

TINY = (
    (read_pairs, "RUN_KEYS", 40),
    (read_pairs, "PIECE_PAIRS", 13),
    (pairs_file, "BLOCK_BYTES", 112),
    (numpy_files, "PIECE_ROWS", 7),
    (runs, "INDEXED_KEYS", 4),
    (runs, "ROUND_KEYS", 64),
    (runs, "RANGE_KEYS", 9),
    (orient, "ORIENT_KEYS", 31),
    (write_blocks, "PIECE_ARCS", 17),
    (write_blocks, "PIECE_OFFSETS", 5),
)


def at_most(parts: int, graph: Graph) -> int:
    """So many parts, where there are as many vertices."""
    return min(parts, max(1, graph.n))


def in_tiny_pieces(patch: pytest.MonkeyPatch) -> None:
    """Make small graphs cross the borders of pieces, runs, merges and rows."""
    for module, name, value in TINY:
        patch.setattr(module, name, value)


def interpret_kernels(patch: pytest.MonkeyPatch) -> None:
    """Let kernels be plain functions, though nothing else knows."""
    patch.setattr(jit, "JIT_DISABLED", False)
    patch.setattr(jit.CpuKernel, "__call__", lambda kernel, *given: kernel.function(*given))


def change_manifest(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Rewrite the manifest."""
    path = folder / MANIFEST
    whole = json.loads(path.read_text())
    change(whole)
    path.write_text(json.dumps(whole))


def reseal(folder: Path, number: int, which: str, array: NDArray[Any]) -> None:
    """Put other numbers into a block, with a manifest that vouches for them."""
    path = Path()

    def change(whole: dict[str, Any]) -> None:
        nonlocal path
        record = whole["blocks"][number][which]
        path = folder / record["file"]
        np.save(path, array)
        record["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()

    change_manifest(folder, change)


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def read_everything(store: Store) -> None:
    """Every block, and everything about vertices."""
    for pair in store.manifest.blocks:
        store.block(*pair)
    store.vertex_of()
    store.labels()


WATCHED = """
import os, sys
held = bytearray(int(os.environ.get("HELD_BYTES", 0)))
from wedgewise.cli import main
sys.argv = ["wedgewise", *sys.argv[1:]]
try:
    main()
finally:
    lines = open("/proc/self/status").read().split("\\n")
    (peak,) = [line.split()[1] for line in lines if line.startswith("VmHWM")]
    print(int(peak) * 1024, file=sys.stderr)
"""


def run_measured(
    *arguments: str, cwd: Path, env: dict[str, str] | None = None
) -> tuple[int, subprocess.CompletedProcess[str]]:
    """The largest resident size of a command, and how it ended."""
    ran = subprocess.run(
        [sys.executable, "-c", WATCHED, *arguments], cwd=cwd, env=env, capture_output=True, text=True, check=False
    )
    return int(ran.stderr.split()[-1]), ran


def peak_of(*arguments: str, cwd: Path, env: dict[str, str] | None = None) -> tuple[int, str]:
    """The largest resident size of a command that succeeds, and what it printed."""
    peak, ran = run_measured(*arguments, cwd=cwd, env=env)
    assert ran.returncode == 0, ran.stderr
    return peak, ran.stdout


def computed_slices(patch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of the slices that are computed from now on."""
    found: list[int] = []
    really = SlicedAnswer.compute

    def compute(self: Any, slices: Any, progress: Any = None) -> Any:
        found.extend(one.number for one in slices)
        return really(self, slices, progress)

    patch.setattr(SlicedAnswer, "compute", compute)
    return found


KILLED_AT_SLICE = """
import os, signal, sys
import wedgewise as ww
from wedgewise.run import checkpoint
folder, question, number, moment = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
left, really_write, really_append = number, checkpoint.write_array, checkpoint.append_line
def die(): os.kill(os.getpid(), signal.SIGKILL)
def write(*what, **how):
    global left
    left -= 1
    if left < 0 and moment == "before": die()
    return really_write(*what, **how)
def append(*what, **how):
    if left < 0 and moment == "between": die()
    really_append(*what, **how)
    if left < 0: die()
checkpoint.write_array, checkpoint.append_line = write, append
ww.run(question, folder, **({"k": 8} if question == "k_truss" else {}))
"""


def kill_at_slice(store: Store, question: str, number: int, moment: str) -> None:
    """Begin a question, and kill it at a slice: before its file, between that and its line, or after both."""
    died = subprocess.run(
        [sys.executable, "-c", KILLED_AT_SLICE, str(store.folder), question, str(number), moment],
        capture_output=True,
        check=False,
    )
    assert died.returncode == -signal.SIGKILL, died.stderr


BEGUN = """
from wedgewise import cli
from wedgewise.machine import hardware
from wedgewise.store import build as store_build
store_build.load_build_kernels()
print(hardware.resident_bytes())
"""
COMMAND_BYTES = 18_000_000  # that a command takes more than this


def limit_leaving(left: int) -> tuple[dict[str, str], int]:
    """An environment for `peak_of` in which a process begins so large that about so much is left of a limit; the limit.

    That is the least one, unless a process is larger by itself: libraries take more memory where the system maps their
    files in larger pieces.
    """
    for _ in range(2):  # the first one compiles what is missing
        begun = subprocess.run([sys.executable, "-c", BEGUN], capture_output=True, text=True, check=True)
    held = MIN_LIMIT - RESERVE_BYTES - COMMAND_BYTES - int(begun.stdout) - left
    return {**os.environ, "HELD_BYTES": str(max(0, held))}, MIN_LIMIT + max(0, -held)
