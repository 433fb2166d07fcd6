"""Counts of many parts in turn, on a small graph."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "many_parts.py"


@pytest.mark.deep
def test_every_store_is_counted_and_the_record_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--scale", "8", "--parts", "2", "4", "--repeats", "3", "--threads", "2", "--output", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), *given])
    runpy.run_path(str(SCRIPT), run_name="__main__")
    (stored,) = tmp_path.glob("many_parts-*.jsonl")
    line = json.loads(stored.read_text())
    assert [(store["parts"], store["tasks"], len(store["counts"])) for store in line["stores"]] == [
        (2, 4, 3),
        (4, 20, 3),
    ]
    assert all(0 < kernels < 2 * seconds for store in line["stores"] for seconds, kernels in store["counts"])
    assert len(capsys.readouterr().out.splitlines()) == 3
