"""Every line of every kernel runs in the emulator; what only a GPU runs is listed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from emulate.emulated_cases import RECORDS, cases_of, needs_compiler
from emulate.emulator import HEADER
from emulate.kernel_lines import DEVICE_ONLY, Lines, device_only, kernel_files, lines_run
from emulate.sanitized import Job, run_apart

CHECKS = (
    "emulate.eager_cases:check_all",
    "emulate.peel_cases:check_all",
    "emulate.triple_cases:check_some",
    "emulate.rare_cases:check_all",
    "emulate.ranked_cases:check_all",
)
NAMES = [path.name for path in kernel_files()]


def test_what_only_a_gpu_runs_is_listed_and_has_its_twin() -> None:
    assert device_only() == set(DEVICE_ONLY)
    twins = HEADER.read_text(encoding="utf-8")
    assert [name for name in DEVICE_ONLY if not re.search(rf"\b{name}\b", twins)] == ["ALL_ARRIVED"]  # of meet_grid


def test_no_kernel_has_instructions_of_its_own() -> None:
    """PTX would need a twin for each."""
    assert [path.name for path in kernel_files() if re.search(r"\basm\b", path.read_text(encoding="utf-8"))] == []


def test_files_have_names_of_their_own() -> None:
    assert len(set(NAMES)) == len(NAMES)


def lines_that_run(folder: Path) -> Lines:
    for algorithm in RECORDS:
        assert run_apart(Job(None, tuple(cases_of(algorithm)), coverage_folder=str(folder))) == ""
    assert run_apart(Job(None, coverage_folder=str(folder), checks=CHECKS)) == ""
    return lines_run(folder)


@needs_compiler
@pytest.mark.deep
def test_every_line_runs(tmp_path: Path) -> None:
    """In one test, which runs all kernels once."""
    lines = lines_that_run(tmp_path)
    missed = []
    for path in kernel_files():
        has_run, text = lines[path.name], path.read_text(encoding="utf-8").splitlines()
        missed += [f"{path.name}:{number}: {text[number - 1]}" for number in sorted(has_run) if not has_run[number]]
        assert has_run or path.suffix != ".cu", path.name
    assert missed == []
