"""The script that measures trusses on a GPU, on small graphs and an emulated one."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest
from emulate.copying import EmulatedGpu, install
from emulate.emulated_cases import needs_compiler

import wedgewise as ww
from bench.canned_cells import data_folder
from wedgewise.algorithms import registry

SCRIPTS = Path(__file__).resolve().parents[2] / "benchmarks"


def run_script(monkeypatch: pytest.MonkeyPatch, name: str, *arguments: str) -> int:
    path = str(SCRIPTS / name)
    monkeypatch.setattr(sys, "argv", [path, *arguments])
    status: int = runpy.run_path(path)["main"]()
    return status


@pytest.fixture
def emulated(monkeypatch: pytest.MonkeyPatch) -> EmulatedGpu:
    device = EmulatedGpu()
    install(device, monkeypatch)
    return device


@needs_compiler
@pytest.mark.usefixtures("emulated")
def test_gpu_script_measures_and_checks_every_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data, output = data_folder(tmp_path), tmp_path / "out"
    output.mkdir()
    parts = [what for what in ("eager", "peel", "threads") if what != "peel" or ("peel", "cuda") in registry()]
    options = ["--data", str(data), "--graphs", "skewed", "--scales", "--repeats", "1", "--output", str(output)]
    assert run_script(monkeypatch, "trusses_gpu.py", "--what", *parts, *options, "--threads", "1", "2") == 0
    found = [json.loads(line) for line in (output / "trusses_gpu.jsonl").read_text().splitlines()]
    assert [sum(line["what"] == what for line in found) for what in ("eager", "threads")] == [4, 8]
    assert {line["what"] for line in found} == set(parts)
    assert {line["problem"] for line in found} == {None}
    printed = capsys.readouterr().out
    assert (output / "trusses_gpu.md").read_text() in printed
    assert "fine over coarse" in printed
    assert str(tmp_path) not in (output / "trusses_gpu.jsonl").read_text()


@needs_compiler
@pytest.mark.usefixtures("emulated")
def test_gpu_script_fails_on_wrong_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from wedgewise.algorithms.gpu import eager

    def lying(rows: Any) -> Any:
        return ~right(rows)

    right = eager.EagerDeviceRows.survivors
    monkeypatch.setattr(eager.EagerDeviceRows, "survivors", lying)
    options = ["--data", str(data_folder(tmp_path)), "--graphs", "clique", "--scales", "--repeats", "1"]
    assert run_script(monkeypatch, "trusses_gpu.py", "--what", "eager", *options) == 1
    assert "eager[granularity=fine] on clique, k_truss[k=3]: 21 edges are wrong" in capsys.readouterr().out


def test_gpu_script_refuses_a_host_that_contradicts_what_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = data_folder(tmp_path, **{"3": 20})
    with pytest.raises(ww.errors.VerificationError, match="another 3-truss than the 20 edges known"):
        run_script(monkeypatch, "trusses_gpu.py", "--what", "threads", "--data", str(data), "--graphs", "clique")
