"""The benchmark of hybrid runs: its budget of time, and what it compares with."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest


def benchmark() -> Any:
    path = Path(__file__).parents[2] / "benchmarks" / "hybrid_gpu.py"
    spec = importlib.util.spec_from_file_location("hybrid_gpu", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["hybrid_gpu"] = module  # where dataclasses look for it
    spec.loader.exec_module(module)
    return module


def test_the_benchmark_keeps_to_its_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    script = benchmark()
    options = script.parse(["--threads", "16"])
    need = [script.Budget(0.0, options).need(scale) for scale in options.scales]
    assert need == sorted(need)
    assert sum(need) < options.budget < 480
    monkeypatch.setattr(script.time, "perf_counter", lambda: 100.0)
    alone = script.parse(["--threads", "16", "--scales", "20", "--repeats", "9", "--cell-seconds", "4"])
    budget = script.Budget(110.0, alone)
    for seconds, runs in ((0.1, 9), (0.5, 8), (1.0, 4), (3.0, 3), (11.0, 1)):
        assert [budget.allows(20, [seconds] * done) for done in range(10)] == [done < runs for done in range(10)]
    both = script.Budget(110.0, script.parse(["--threads", "16", "--scales", "20", "24"]))
    assert both.allows(24, [])
    assert not both.allows(20, [])  # the time is the other's
    ways = [way for way, _ in script.cells(options, 22)]
    assert ways == ["gpu", "cpu", "guarded", "cutoff", "dynamic", "time", "density", "degree"]
    assert [way for way, _ in script.cells(options, 24)] == ways[:5]


def test_the_benchmark_compares_with_the_faster_side() -> None:
    script = benchmark()
    items = [
        script.Measured("g", 1, way, 8, 50, seconds, (seconds,) * 3)
        for way, seconds in (("gpu", 2.0), ("cpu", 4.0), ("guarded", 2.5), ("cutoff", 2.1))
    ]
    failed = script.Measured("g", 1, "dynamic", 8, 50, problem="no")
    other = script.Measured("g", 1, "guarded", 4, 50, 1.0, (1.0,))
    ratios = [script.best_ratio(item, [*items, failed, other]) for item in (*items, failed, other)]
    assert ratios == [1, 2, 1.25, 1.05, None, None]
    assert script.table_of(items).count("(too slow)") == 1
