"""The benchmark of block tasks on a GPU, on an emulated one: what it counts, and what its records say."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from emulate.emulated_cases import needs_compiler

pytestmark = needs_compiler
SCRIPT = Path(__file__).parents[2] / "benchmarks" / "triples_gpu.py"


def run(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), "--emulate", "--scale", "6", "--repeats", "1", *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_every_algorithm_is_timed_for_the_workers_of_the_rule(tmp_path: Path) -> None:
    done = run("--ids", "classes", "--cuts", "hashed:1", "hashed:2", "--workers", "3", "9", "--output", str(tmp_path))
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in (tmp_path / "triples_gpu.jsonl").read_text().splitlines()]
    found = [(record["cut"], record["shares"], record["workers"]) for record in records]
    asked = [("hashed:1", 3, [3]), ("hashed:1", 9, [9]), ("hashed:2", 1, [3]), ("hashed:2", 2, [9])]
    assert found == [cut for cut in asked for _ in range(3)]
    assert [record["algorithm"] for record in records] == ["bbtc", "keystone", "trust"] * 4
    for record in records:
        report = record["report"]
        assert len(record["tasks"]) == report["timed"] == report["tasks"]
        assert report["unpartitioned"] > 0
        (makespan,) = report["makespans"]
        assert makespan["speedup"]["time"] == report["unpartitioned"] / makespan["seconds"]["time"]
    assert "time IR by time" in done.stdout
    assert "Kronecker 6, hashed:2 by classes, m = 2: trust" in done.stdout


def test_ids_by_classes_are_for_hashed_parts() -> None:
    refused = run("--ids", "classes", "--cuts", "rectilinear:2")
    assert (refused.returncode, "are for hashed parts" in refused.stderr) == (2, True)
