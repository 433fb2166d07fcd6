"""Canned cells and records, and a folder of graphs with what is known of them."""

from __future__ import annotations

import json
import lzma
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import wedgewise as ww
from bench import bench_dummy as dummy
from wedgewise.generate import complete, kronecker
from wedgewise_bench.graphs import BenchGraph, PreparedGraph, prepare
from wedgewise_bench.record import Cell, Outcome, Record, RunSetting
from wedgewise_bench.runner import Bench
from wedgewise_bench.systems import systems_in
from wedgewise_bench.watch import CellLimits

SETTING = RunSetting({"processor": "P", "system": "S"}, {"python": "3.11"}, "abc123", "wedgewise bench cpu")
SKEWED = kronecker(5, seed=2)
LIMITS = {"seconds": 120.0, "memory_bytes": 10**9}


def make_record(system: str, seconds: tuple[float, ...] = (), *, status: str = "ok", **changes: Any) -> Record:
    """A record of one cell; `changes` go to the cell or the outcome, whichever has a field of that name."""
    cell: dict[str, Any] = {"algorithm": "default", "graph": "g", "row": "count", "threads": 2, "question": "count"}
    cell |= {"knobs": {}, "device": "cpu"}
    cell |= {name: changes.pop(name) for name in list(changes) if name in cell}
    load, details = changes.pop("load", 1.0), changes.pop("details", {})
    answer = 45 if status == "ok" else None
    outcome = Outcome(status, **({"answer": answer, "seconds": seconds} | changes))
    return Record(Cell(system, **cell), outcome, SETTING, "2030-01-01T00:00:00+00:00", 1000, 45, LIMITS, load, details)


def make_graph(
    folder: Path, triangles: int | None = dummy.TRIANGLES, trusses: Mapping[int, int] = MappingProxyType({})
) -> PreparedGraph:
    """Three pairs on disk."""
    import numpy as np

    pairs = np.array([[0, 1], [1, 2], [0, 2]], np.int32)
    return prepare(BenchGraph("g", lambda: "mark", lambda: pairs, triangles, trusses), folder)


def make_bench(
    folder: Path,
    *,
    seconds: float = 20.0,
    triangles: int | None = dummy.TRIANGLES,
    trusses: Mapping[int, int] = MappingProxyType({}),
) -> Bench:
    """A bench with the dummy system and one tiny graph."""
    (system,) = systems_in(dummy)
    graph = make_graph(folder / "work", triangles, trusses)
    limits = CellLimits(seconds, 400 * 2**20)
    return Bench({"dummy": system}, {"g": graph}, limits, SETTING, folder / "results.jsonl")


def dummy_cell(algorithm: str, row: str = "count", *, question: str = "count", **knobs: int) -> Cell:
    """A cell of the dummy system."""
    return Cell("dummy", algorithm, "g", row, 1, knobs, question)


def data_folder(folder: Path, **changes: int) -> Path:
    """A skewed graph and a clique with what is known of them, `changes` to their trusses by k included."""
    (folder / "graphs").mkdir()
    truths: dict[str, Any] = {}
    for name, stream in (("skewed", SKEWED), ("clique", complete(7))):
        graph = ww.Graph(stream.pairs())
        text = "".join(f"{u} {v}\n" for u, v in graph.edges.tolist())
        (folder / "graphs" / f"{name}.el.xz").write_bytes(lzma.compress(text.encode()))
        numbers = ww.trussness(graph, algorithm="reference")
        edges = {str(k): int((numbers >= k).sum()) for k in range(2, int(numbers.max()) + 1)}
        truths[name] = {"m": graph.m, "triangles": ww.count(graph), "truss_edges_by_k": edges | changes}
    (folder / "truths.json").write_text(json.dumps(truths))
    return folder / "graphs"
