"""Canned cells and records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import bench_dummy as dummy

from wedgewise.bench.graphs import BenchGraph, PreparedGraph, prepare
from wedgewise.bench.record import Cell, Outcome, Record, Setting
from wedgewise.bench.runner import Bench
from wedgewise.bench.systems import systems_in
from wedgewise.bench.watch import CellLimits

SETTING = Setting({"processor": "P", "system": "S"}, {"python": "3.11"}, "abc123", "benchmarks/cpu.py")
LIMITS = {"seconds": 120.0, "memory_bytes": 10**9}


def make_record(system: str, seconds: tuple[float, ...] = (), *, status: str = "ok", **changes: Any) -> Record:
    """A record of one cell; `changes` go to the cell or the outcome, whichever has a field of that name."""
    cell: dict[str, Any] = {"algorithm": "default", "graph": "g", "row": "count", "threads": 2, "question": "count"}
    cell |= {name: changes.pop(name) for name in list(changes) if name in cell}
    load = changes.pop("load", 1.0)
    answer = 45 if status == "ok" else None
    outcome = Outcome(status, **({"answer": answer, "seconds": seconds} | changes))
    return Record(Cell(system, **cell), outcome, SETTING, "2030-01-01T00:00:00+00:00", 1000, 45, LIMITS, load)


def make_graph(folder: Path, triangles: int | None = dummy.TRIANGLES) -> PreparedGraph:
    """Three pairs on disk."""
    import numpy as np

    pairs = np.array([[0, 1], [1, 2], [0, 2]], np.int32)
    return prepare(BenchGraph("g", lambda: "mark", lambda: pairs, triangles), folder)


def make_bench(folder: Path, *, seconds: float = 20.0, triangles: int | None = dummy.TRIANGLES) -> Bench:
    """A bench with the dummy system and one tiny graph."""
    (system,) = systems_in(dummy)
    graph = make_graph(folder / "work", triangles)
    limits = CellLimits(seconds, 400 * 2**20)
    return Bench({"dummy": system}, {"g": graph}, limits, SETTING, folder / "results.jsonl")


def dummy_cell(algorithm: str, row: str = "count", *, question: str = "count", **knobs: int) -> Cell:
    """A cell of the dummy system."""
    return Cell("dummy", algorithm, "g", row, 1, knobs, question)
