"""The benchmark of hybrid runs: its ways, and what it says."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any


def benchmark() -> Any:
    path = Path(__file__).parents[2] / "benchmarks" / "hybrid_gpu.py"
    spec = importlib.util.spec_from_file_location("hybrid_gpu", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["hybrid_gpu"] = module  # where dataclasses look for it
    spec.loader.exec_module(module)
    return module


def test_ways_are_knobs() -> None:
    script = benchmark()
    assert script.knobs_of("gpu", 4, 2, 50)["places"] == "gpu"
    assert script.knobs_of("dynamic", 4, 2, 50)["schedule"] == "dynamic"
    assert script.knobs_of("density", 4, 2, 50) == {
        "parts": 4,
        "streams": 2,
        "cutoff": 50,
        "schedule": "cutoff",
        "estimator": "density",
    }


def test_the_benchmark_says_what_it_measured() -> None:
    script = benchmark()
    none, wrong, item = (script.Measured("g", 1, 4, "auto", "gpu") for _ in range(3))
    wrong.problem = "no"
    for seconds in (3.0, 1.0, 2.0):
        item.repeats.append(seconds)
        item.seen[seconds] = {"tasks": 20, "batches": 5, "busy": 0.5}
    assert item.cells[4:8] == ["2000.00", "3", "20", "5"]
    assert (none.cells[4], wrong.cells[4]) == ("no time left", "no")
    assert len({len(one.cells) for one in (none, wrong, item)}) == 1
    assert "What went wrong" in script.text_of([item, wrong], {})
