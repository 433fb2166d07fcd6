"""The benchmark of Dask workers that share a GPU, as its rehearsal on the CPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import wedgewise as ww
from wedgewise.generate import kronecker

pytest.importorskip("distributed")
SCRIPT = Path(__file__).parents[2] / "benchmarks" / "gpu_cluster.py"


@pytest.mark.compiled  # in other processes
def test_workers_are_timed_and_one_is_killed(tmp_path: Path) -> None:
    given = ["--scale", "10", "--device", "cpu", "--workers", "2", "--folder", tmp_path, "--output", tmp_path / "out"]
    ran = subprocess.run(
        [sys.executable, str(SCRIPT), *map(str, given)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    (stored,) = (tmp_path / "out").glob("gpu_cluster-*.jsonl")
    record = json.loads(stored.read_text())
    assert (record["device"], record["parts"]) == (None, 8)
    counts = record["counts"]
    assert [counted["what"] for counted in counts] == ["just started", "again", "one is killed"]
    known = ww.count(kronecker(10, seed=1).pairs())
    assert all(counted["triangles"] == known and counted["seconds"] > 0 for counted in counts)
    for counted in counts:
        shares = counted["shares"].values()
        assert sum(tasks for _, tasks, _ in shares) == 120
        assert sum(read for *_, read in shares) == counted["read_bytes"]
        assert {counts_on for counts_on, *_ in shares} == {"cpu"}
    assert list(tmp_path.iterdir()) == [tmp_path / "out"]
