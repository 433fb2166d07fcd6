"""Every kernel under AddressSanitizer, UndefinedBehaviorSanitizer and ThreadSanitizer; and which of its lines ran."""

from __future__ import annotations

import json
import subprocess
from collections import defaultdict
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from emulate.emulated_cases import (
    ATLAS,
    BLOCKS,
    COMPLETE,
    EMPTY,
    RECORDS,
    SKEWED,
    Case,
    block_knob,
    needs_compiler,
    settings,
    takes_wide_offsets,
)
from emulate.sanitized import Job, run_apart
from wedgewise.machine import gpu

pytestmark = [needs_compiler, pytest.mark.deep]
SOME_GRAPHS = (EMPTY, ATLAS, SKEWED, COMPLETE, "star-300", "book-300", "path-65")
LEAST_COVERED = 0.95
TRUSS_CHECKS = ("emulate.eager_cases:check_all", "emulate.peel_cases:check_all")
SANITIZED_CHECKS = (*TRUSS_CHECKS, "emulate.triple_cases:check_some")
CHECKS = (
    "emulate.truss_cases:check_all",
    *TRUSS_CHECKS,
    "emulate.triple_cases:check_all",
)  # the first has more threads than ThreadSanitizer takes
PTX_TWINS = "ptx.cuh"  # what an emulated instruction does is not what the GPU runs

for_every_algorithm = pytest.mark.parametrize("algorithm", RECORDS)


def cases_of(algorithm: str) -> list[Case]:
    """Every answer: some graphs; on a skewed one all orders, knobs, widths, two sizes of blocks and many launches."""
    record = RECORDS[algorithm]
    small, larger = (block_knob(record, block) for block in BLOCKS[:2])
    cases = [Case(algorithm, graph, small) for graph in SOME_GRAPHS]
    cases += [Case(algorithm, SKEWED, small, *form) for form in product(record.orders, record.relabellings)]
    cases += [Case(algorithm, SKEWED, small | setting) for setting in settings(record) if "block" not in setting]
    cases += [Case(algorithm, SKEWED, larger), Case(algorithm, SKEWED, small, small_launches=True)]
    if takes_wide_offsets(algorithm):
        cases.append(Case(algorithm, SKEWED, small, wide_offsets=True))
    return [replace(case, question=question) for question, case in product(record.answers, cases)]


@for_every_algorithm
@pytest.mark.parametrize("sanitizer", ["address,undefined", "thread"])
def test_no_sanitizer_has_anything_to_report(algorithm: str, sanitizer: str) -> None:
    if report := run_apart(Job(sanitizer, tuple(cases_of(algorithm)))):
        pytest.fail(report, pytrace=False)


@pytest.mark.parametrize("check", SANITIZED_CHECKS)
@pytest.mark.parametrize("sanitizer", ["address,undefined", "thread"])
def test_no_sanitizer_has_anything_to_report_of_trusses_and_triples(check: str, sanitizer: str) -> None:
    if report := run_apart(Job(sanitizer, checks=(check,))):
        pytest.fail(report, pytrace=False)


@pytest.fixture(scope="module")
def lines_run(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[int, bool]]:
    """For every kernel file its lines with code, and whether any case ran them."""
    folder = tmp_path_factory.mktemp("coverage")
    for algorithm in RECORDS:
        assert run_apart(Job(None, tuple(cases_of(algorithm)), coverage_folder=str(folder))) == ""
    assert run_apart(Job(None, coverage_folder=str(folder), checks=CHECKS)) == ""
    lines: dict[str, dict[int, bool]] = defaultdict(dict)
    for data in folder.rglob("*.gcda"):
        for file, number, ran in _lines_of(data):
            lines[file][number] = ran or lines[file].get(number, False)
    return lines


def _lines_of(data: Path) -> list[tuple[str, int, bool]]:
    command = ("gcov", "--json-format", "--stdout", data.name)
    reported = subprocess.run(command, cwd=data.parent, capture_output=True, text=True, check=True).stdout
    return [
        (file["file"], line["line_number"], line["count"] > 0)
        for report in map(json.loads, reported.splitlines())
        for file in report["files"]
        for line in file["lines"]
    ]


@pytest.mark.parametrize("name", sorted(path.name for path in gpu.KERNEL_FOLDER.rglob("*.cu*")))
def test_nearly_every_line_runs(name: str, lines_run: dict[str, dict[int, bool]]) -> None:
    if name == PTX_TWINS:
        pytest.skip("instructions of the GPU have twins here")
    ran = lines_run[name]
    missed = sorted(number for number in ran if not ran[number])
    (path,) = gpu.KERNEL_FOLDER.rglob(name)
    text = path.read_text(encoding="utf-8").splitlines()
    listed = "\n".join(f"{name}:{number}: {text[number - 1]}" for number in missed)
    assert len(missed) <= (1 - LEAST_COVERED) * len(ran), listed
    assert ran or path.suffix != ".cu"
