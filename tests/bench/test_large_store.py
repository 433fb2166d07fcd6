"""The run for the record, on a small graph."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path

import pytest

from wedgewise.generate import kronecker

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "large_store.py"


def test_a_kill_is_due_behind_the_first_finished_task(tmp_path: Path) -> None:
    moment = runpy.run_path(str(SCRIPT))["moment"]
    journal = tmp_path / "count.journal"
    first = moment(journal, 0.0)
    assert not first()
    journal.write_text("a task\n")
    assert first()
    second = moment(journal, 0.0)
    assert not second()
    journal.write_text("a task\nanother\n")
    assert second()
    assert not moment(journal, 60.0)()


@pytest.mark.deep
def test_a_run_is_checked_and_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = ["--scale", "8", "--parts", "3", "--kills", "0", "--memory", "1GB"]
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), *given, "--folder", str(tmp_path), "--output", str(tmp_path)])
    runpy.run_path(str(SCRIPT), run_name="__main__")
    (stored,) = tmp_path.glob("large_store-*.jsonl")
    line = json.loads(stored.read_text())
    assert [step["name"] for step in line["steps"]] == ["generate", "partition", "count"]
    assert all(step["seconds"] > 0 and 2**23 < step["peak_bytes"] < 10**9 for step in line["steps"])
    assert (line["pairs"], line["parts"]) == (kronecker(8, seed=1).pairs_count, 3)
    assert (line["is_known"], line["command"].split()[0]) == (True, "large_store.py")
    assert not list(tmp_path.glob("large-store-*"))
