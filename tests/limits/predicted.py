"""Run as a program: one piece of work in a process of its own, with what was predicted for it and what it took.

    python predicted.py store FOLDER ALGORITHM THREADS LIMIT      the count of a store; LIMIT may be 0 for none
    python predicted.py graph FILE QUESTION ALGORITHM THREADS     a question about a graph in memory

Prints two numbers of bytes: predicted, and resident at most beyond what was resident when the work began, kernels
loaded and inputs held.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import wedgewise as ww
from wedgewise import generate
from wedgewise.run.outofcore import plan_count
from wedgewise.run.request import Request
from wedgewise.store.open import open_store

STATUS, FORGET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
SMALL = generate.kronecker(scale=10, seed=2)


def resident(which: str) -> int:
    (kilobytes,) = [line.split()[1] for line in STATUS.read_text().splitlines() if line.startswith(which)]
    return int(kilobytes) * 1024


def forgets_peaks() -> bool:
    """Whether the system lets a process begin its peak anew; this one's is begun anew."""
    try:
        FORGET.write_text("5")
        return resident("VmHWM") <= resident("VmRSS") + (1 << 22)
    except (OSError, ValueError):
        return False


def peak_of(work: Callable[[], Any]) -> int:
    """What a piece of work adds to the resident size at most."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    before = resident("VmRSS")
    FORGET.write_text("5")  # the peak begins anew
    work()
    return resident("VmHWM") - before


def of_store(folder: str, algorithm: str, threads: str, limit: str) -> tuple[int, int]:
    counting, plan = plan_count(
        Request(memory_limit=int(limit) or None, threads=int(threads), algorithm=algorithm), open_store(folder)
    )
    return plan.bytes_needed, peak_of(lambda: counting.run(None, None))


def of_graph(file: str, question: str, algorithm: str, threads: str) -> tuple[int, int]:
    how: dict[str, Any] = {"algorithm": algorithm, "threads": int(threads)}
    ww.run(question, SMALL.pairs(), **how)
    graph = ww.Graph(np.load(file))
    predicted = ww.explain(question, graph, **how).bytes_needed
    return predicted, peak_of(lambda: ww.run(question, graph, **how))


if __name__ == "__main__":
    print(*{"store": of_store, "graph": of_graph}[sys.argv[1]](*sys.argv[2:]))
