"""The child's own code, run in this process."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from bench import bench_dummy as dummy
from bench.bench_helpers import make_graph
from wedgewise.bench import child


def reports_of(
    folder: Path,
    algorithm: str,
    row: str = "count",
    *,
    question: str = "count",
    repeats: int = child.MOST_REPEATS,
    **details: int,
) -> list[dict[str, Any]]:
    graph = make_graph(folder)
    job = {
        "source": dummy.__file__,
        "name": "dummy",
        "algorithm": algorithm,
        "threads": 1,
        "knobs": {},
        "question": question,
        "details": details,
        "row": row,
        "repeats": repeats,
        "pairs_path": str(graph.pairs_path),
        "text_path": str(graph.text_path),
    }
    reading, writing = os.pipe()
    child.main(job, writing)
    with os.fdopen(reading) as pipe:
        return [json.loads(line) for line in pipe]


@pytest.mark.parametrize("row", ["count", "edges"])
def test_stages_then_repeats_then_the_peak(tmp_path: Path, row: str) -> None:
    reports = reports_of(tmp_path, "right", row)
    stages = [line["stage"] for line in reports if "stage" in line]
    answers = [line["answer"] for line in reports if "answer" in line]
    assert stages == ["load", "prepare", "count", *["count", "check"] * child.MOST_REPEATS]
    assert answers == [dummy.TRIANGLES] * child.MOST_REPEATS
    assert reports[-1]["peak_bytes"] > 2**20


def test_file_row_answers_once(tmp_path: Path) -> None:
    reports = reports_of(tmp_path, "right", "file")
    assert [line["answer"] for line in reports if "answer" in line] == [dummy.TRIANGLES]


def test_long_runs_are_timed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "LONG_SECONDS", 0.0)
    reports = reports_of(tmp_path, "right")
    assert sum("timed" in line for line in reports) == 1


def test_repeats_have_a_limit(tmp_path: Path) -> None:
    assert sum("timed" in line for line in reports_of(tmp_path, "right", repeats=2)) == 2


def test_what_needs_no_warming_up_is_timed_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "cold.py"
    source.write_text(Path(dummy.__file__).read_text().replace("warms_up: ClassVar[bool] = True", "warms_up = False"))
    monkeypatch.setattr(dummy, "__file__", str(source))
    stages = [line["stage"] for line in reports_of(tmp_path, "right", repeats=1) if "stage" in line]
    assert stages == ["load", "prepare", "count", "check"]


def test_another_question_is_asked_and_summarised(tmp_path: Path) -> None:
    reports = reports_of(tmp_path, "right", question="triangles", repeats=1)
    assert [line["stage"] for line in reports if "stage" in line] == [
        *("load", "prepare", "triangles", "triangles", "check")
    ]
    (found,) = [line for line in reports if "answer" in line]
    assert (found["answer"], len(found["digest"])) == (1, 16)


def test_parameters_reach_the_system(tmp_path: Path) -> None:
    found = [
        line
        for k in (3, 4)
        for line in reports_of(tmp_path, "right", question="k_truss", repeats=1, k=k)
        if "answer" in line
    ]
    assert [(line["answer"], line["edges"]) for line in found] == [(3, 3), (0, 3)]


def test_coefficients_that_imply_no_counts_are_a_failure(tmp_path: Path) -> None:
    last = reports_of(tmp_path, "wrong", question="clustering")[-1]
    assert last["failed"] == "crashed"
    assert "do not determine integers" in last["message"]


@pytest.mark.parametrize(
    ("algorithm", "status"),
    [("missing", "unavailable"), ("error", "crashed"), ("refused", "out_of_memory")],
)
def test_exceptions_become_reports(tmp_path: Path, algorithm: str, status: str) -> None:
    assert reports_of(tmp_path, algorithm)[-1]["failed"] == status


def test_memory_of_a_process_that_is_gone_is_unknown() -> None:
    assert child.resident_bytes(2**30) is None
    assert child.peak_bytes(2**30) is None


def test_peak_is_at_least_what_is_resident() -> None:
    resident, peak = child.resident_bytes(), child.peak_bytes()
    assert resident is not None
    assert peak is not None
    assert 2**20 < resident <= peak


def test_a_system_comes_from_a_python_file(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"notes\.txt is no Python file"):
        child._class_of(str(tmp_path / "notes.txt"), "dummy")


def test_the_child_ends_when_its_input_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[int] = []
    monkeypatch.setattr(os, "read", lambda _descriptor, _size: b"")
    monkeypatch.setattr(os, "_exit", ended.append)
    child._end_with_parent()
    assert ended == [1]
