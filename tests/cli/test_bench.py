"""``wedgewise bench``: suites by name, records and tables, checked answers, exit codes, and going on later."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from bench.canned_cells import SKEWED, data_folder, make_record
from bench.test_limits import wait_until
from helpers.commands import COMMAND, PATIENCE, answer_of, interrupt, invoke, run_on_terminal

import wedgewise as ww
from wedgewise.cli.bench import repeat_options
from wedgewise_bench.record import Cell, Outcome, read_records
from wedgewise_bench.runner import Bench
from wedgewise_bench.suite_files import declared_suites


@pytest.fixture
def options(tmp_path: Path) -> list[str]:
    """Two small graphs whose answers are known, one thread, one repeat."""
    data, work = data_folder(tmp_path), tmp_path / "work"
    return ["--data", str(data), "--work", str(work), "--threads", "1", "--repeats", "1", "--systems", "wedgewise"]


@pytest.fixture
def canned(monkeypatch: pytest.MonkeyPatch) -> list[Cell]:
    """Let every cell answer at once; the list collects those that ran."""
    ran: list[Cell] = []

    def run_cell(_bench: Bench, cell: Cell, _started: object) -> Outcome:
        ran.append(cell)
        return Outcome("ok", answer=1, seconds=(0.5,), edges=10)

    monkeypatch.setattr(Bench, "run_cell", run_cell)
    return ran


def test_without_a_suite_they_are_listed() -> None:
    lines = invoke("bench").stdout.splitlines()
    assert [line.split(maxsplit=1) for line in lines] == [
        [suite.name, suite.summary] for suite in declared_suites().values()
    ]
    listed = answer_of("bench")
    assert listed["schema"] == 1
    names = ["smoke", "cpu", "answers", "trusses", "eager", "blocks", "balance"]
    assert set(names) <= {suite["name"] for suite in listed["suites"]}


def test_records_are_kept_and_tables_are_printed(options: list[str], tmp_path: Path) -> None:
    records, tables = tmp_path / "new" / "R.jsonl", tmp_path / "R.md"
    asked = ["--graphs", "skewed", "--questions", "count", "triangles", "k_truss[k=kmax]"]
    result = invoke("bench", "answers", *options, *asked, "--output", str(records), "--tables", str(tables))
    assert (result.exit_code, result.stderr) == (0, "")
    assert tables.read_text() == result.stdout.removesuffix("\n")
    assert "## `triangles`: the triangles of every vertex" in result.stdout
    found = read_records(records)
    assert [record.cell.question for record in found] == asked[3:]
    last = ww.max_truss(SKEWED.pairs())
    triangles = ww.count(SKEWED.pairs())
    assert [record.outcome.answer for record in found] == [triangles, triangles, len(last)]
    assert {record.outcome.status for record in found} == {"ok"}
    assert str(tmp_path) not in records.read_text()


def test_eager_is_compared_as_published(options: list[str]) -> None:
    result = invoke("bench", "eager", *options, "--graphs", "skewed", "--threads", "1", "2", "--devices", "cpu")
    assert result.exit_code == 0, result.output
    kmax = ww.max_truss(SKEWED.pairs()).k
    rows = re.findall(r"^\| skewed +\| +(\d+) \| +(\d) \| .* ME/s \| .* ME/s \(.*×\) \|$", result.stdout, re.MULTILINE)
    assert rows == [("3", "1"), ("3", "2"), (str(kmax), "1"), (str(kmax), "2")]
    assert re.search(r"\| threads +\| +eager\[granularity=fine\] +\| +eager\[granularity=coarse\] ", result.stdout)
    assert re.search(r"^\| geometric mean ", result.stdout, re.MULTILINE)


FEW = """
name = "few"
summary = "a few"
graphs = ["kronecker-8-seed1"]
real = ["clique", "nowhere"]
tables = "metrics"

[[matrix]]
systems = ["wedgewise"]
devices = ["cpu", "cuda"]
"""


def test_a_suite_may_be_a_file(options: list[str], canned: list[Cell], tmp_path: Path) -> None:
    (tmp_path / "few.toml").write_text(FEW)
    result = invoke("bench", str(tmp_path / "few.toml"), *options, "--devices", "cpu")
    assert result.exit_code == 0, result.output
    assert [(cell.graph, cell.device) for cell in canned] == [("kronecker-8-seed1", "cpu"), ("clique", "cpu")]
    assert result.stdout.startswith("# a few\n")
    assert "## Rates and bytes" in result.stdout
    assert result.stdout.endswith("\nnot here: nowhere\n\n")
    (tmp_path / "few.toml").write_text(FEW.replace("devices", "device"))
    wrong = invoke("bench", str(tmp_path / "few.toml"), *options)
    assert (wrong.exit_code, wrong.stdout) == (1, "")
    assert "few.toml: matrix 1, device: is no key of this place; there are: systems, devices" in wrong.stderr


def test_programs_take_part(options: list[str], canned: list[Cell], tmp_path: Path) -> None:
    programs = tmp_path / "programs.toml"
    programs.write_text("[[program]]\nname = 'tc'\ncommand = ['./tc', '{text}']\ncount = '(\\d+)'\n")
    programs.write_text(programs.read_text() + programs.read_text().replace("'tc'", "'other'"))
    command = ["bench", "cpu", *options, "--graphs", "clique", "--rows", "count", "--programs", str(programs)]
    results = tmp_path / "R.jsonl"
    result = invoke(*command, "--systems", "tc", "--output", str(results))
    assert result.exit_code == 0, result.output
    assert [cell.system for cell in canned] == ["wedgewise", "tc"]
    assert re.search(r"\| wedgewise +\| +tc +\|", result.stdout)
    assert {record.setting.versions["tc"].split()[0] for record in read_records(results)} == {"declared"}
    everybody = [word for word in command if word not in ("--systems", "wedgewise")]
    assert invoke(*everybody).exit_code == 0
    assert {"tc", "other", "igraph"} <= {cell.system for cell in canned}


def test_a_run_goes_on_in_the_latest_file_of_its_suite(options: list[str], canned: list[Cell], tmp_path: Path) -> None:
    command = ["bench", "answers", *options, "--graphs", "clique", "--questions", "count", "triangles"]
    assert invoke(*command).exit_code == 0
    (today,) = (tmp_path / "work").glob("answers-*.jsonl")
    earlier = today.rename(today.with_name("answers-2000-01-02.jsonl"))
    earlier.with_name("answers-2000-01-01.jsonl").write_text("not read\n")
    earlier.with_name("answers-more-2000-01-03.jsonl").write_text("not read\n")
    assert answer_of(*command, "--resume")["output"] == str(earlier)
    assert len(canned) == 2
    assert answer_of(*command)["output"] == str(today)
    assert len(canned) == 4


def test_records_are_compared(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("A.jsonl", "B.jsonl")]
    for path, seconds in zip(paths, (1.0, 2.0), strict=True):
        path.write_text(make_record("wedgewise", (seconds,) * 9).to_line() + "\n")
    before, after = map(str, paths)
    slower = invoke("bench", "--compare", before, after, "--tables", str(tmp_path / "C.md"))
    assert slower.exit_code == 1
    assert (tmp_path / "C.md").read_text() == slower.stdout.removesuffix("\n")
    assert "## Slower beyond noise" in slower.stdout
    assert invoke("bench", "--compare", after, before).exit_code == 0
    assert answer_of("bench", "--compare", before, before)["tally"] == {"same": 1}
    assert invoke("bench", "smoke", "--compare", before, after).exit_code == 2


def test_rows_of_the_count(options: list[str], canned: list[Cell]) -> None:
    result = invoke("bench", "cpu", *options, "--graphs", "clique", "--rows", "file", "count")
    assert result.exit_code == 0, result.output
    assert [cell.row for cell in canned] == ["count", "file"]
    assert "## From a text file to the count" in result.stdout


def test_options_of_several_values_reach_the_cells(options: list[str], canned: list[Cell]) -> None:
    ways = ["--algorithms", "peel", "eager[granularity=coarse]", "--questions", "trussness", "max_truss"]
    again = ["--threads", "2", "3", "--graphs", "skewed", "--graphs", "clique", "--memory", "1GB"]
    record = answer_of("bench", "trusses", *options, *ways, *again, "--limit-seconds", "7")
    assert {cell.way for cell in canned} == {"peel", "eager[granularity=coarse]"}
    assert {cell.threads for cell in canned} == {1, 2, 3}
    assert {cell.graph for cell in canned} == {"skewed", "clique"}
    assert {cell.question for cell in canned} == {"trussness", "max_truss"}
    assert record["records"][0]["limits"] == {"seconds": 7.0, "memory_bytes": 10**9, "repeats": 1}


def test_json_has_the_records(options: list[str], canned: list[Cell], tmp_path: Path) -> None:
    results = tmp_path / "R.jsonl"
    record = answer_of("bench", "answers", *options, "--graphs", "clique", "--output", str(results))
    assert set(record) == {"schema", "suite", "output", "failures", "records", "not_here"}
    assert (record["schema"], record["suite"], record["failures"]) == (1, "answers", 0)
    assert record["output"] == str(results)
    assert record["records"] == [json.loads(line) for line in results.read_text().splitlines()]
    assert len(record["records"]) == len(canned) == 9


@pytest.mark.parametrize("as_json", [False, True])
def test_wrong_answers_exit_1(options: list[str], tmp_path: Path, as_json: bool) -> None:
    truths = json.loads((tmp_path / "truths.json").read_text())
    truths["clique"]["triangles"] += 1
    (tmp_path / "truths.json").write_text(json.dumps(truths))
    asked = ["--graphs", "clique", "--questions", "count", *(["--json"] if as_json else [])]
    result = invoke("bench", "answers", *options, *asked)
    assert (result.exit_code, result.stderr) == (1, "1 of 1 cells failed\n")
    if as_json:
        record = json.loads(result.stdout)
        assert (record["failures"], record["records"][0]["status"]) == (1, "wrong")
    else:
        assert "wrong, 35 instead of 36" in result.stdout


def test_our_own_algorithms_that_disagree_exit_1(options: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def run_cell(_bench: Bench, cell: Cell, _started: object) -> Outcome:
        return Outcome("ok", answer=1, seconds=(0.5,), digest="right" if cell.algorithm == "peel" else "wrong")

    monkeypatch.setattr(Bench, "run_cell", run_cell)
    ways = ["--graphs", "clique", "--questions", "trussness", "--algorithms", "peel", "eager"]
    result = invoke("bench", "smoke", *options, *ways)
    assert (result.exit_code, result.stderr) == (1, "2 of 2 cells failed\n")


@pytest.mark.parametrize(
    "arguments",
    [("nix",), ("smoke", "--threads", "0"), ("smoke", "--memory", "much"), ("smoke", "--graphs"), ("smoke", "--nix")],
    ids=" ".join,
)
def test_wrong_usage_exits_2(arguments: tuple[str, ...]) -> None:
    result = invoke("bench", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Error" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("smoke", "--graphs", "nix"), "error: no graph named 'nix'; there are: "),
        (("smoke", "--systems", "nix"), "error: no system named 'nix'"),
        (("eager", "--data", "nowhere"), "no truths.json in or above it"),
        (("smoke", "--output", "."), "is a folder; name a file"),
        (("cpu", "--questions", "trussness"), "cpu asks for a count alone"),
    ],
)
def test_errors_are_one_line_and_leave_nothing(
    arguments: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = invoke("bench", *arguments, "--work", "work")
    assert (result.exit_code, result.stdout) == (1, "")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_run_goes_on_where_it_was(
    options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []

    def run_cell(_bench: Bench, cell: Cell, _started: object) -> Outcome:
        if len(ran) == 2:
            ran.append("interrupted")
            raise KeyboardInterrupt
        ran.append(cell.question)
        return Outcome("ok", answer=1, seconds=(0.5,))

    monkeypatch.setattr(Bench, "run_cell", run_cell)
    results = tmp_path / "R.jsonl"
    command = ["bench", "answers", *options, "--graphs", "clique", "--output", str(results)]
    stopped = invoke(*command)
    assert (stopped.exit_code, stopped.stdout) == (130, "")
    assert stopped.stderr == f"finished cells are in {results}; --resume continues after them\ninterrupted\n"
    assert len(read_records(results)) == 2
    assert invoke(*command, "--resume").exit_code == 0
    asked = [record.cell.question for record in read_records(results)]
    assert ran == [*asked[:2], "interrupted", *asked[2:]]
    assert len(set(asked)) == len(asked) == 9


@pytest.mark.compiled  # in another process
def test_ctrl_c_ends_a_run(options: list[str], tmp_path: Path) -> None:
    arguments = ("bench", "answers", *options, "--graphs", "clique", "--output", "R.jsonl")
    code, rest, seconds = interrupt(tmp_path, "prepare …\n", signal.SIGINT, *arguments)
    assert code == 130
    assert rest.endswith("interrupted\n")
    assert "Traceback" not in rest
    assert seconds < 2


@pytest.mark.deep
def test_sigterm_ends_a_cell_with_its_files(options: list[str], tmp_path: Path) -> None:
    programs, begun, temporary = tmp_path / "programs.toml", tmp_path / "begun", tmp_path / "temporary"
    temporary.mkdir()
    script = f"open({str(begun)!r}, 'w').close(); import time; time.sleep(600)"
    words = json.dumps([sys.executable, "-c", script])
    programs.write_text(f"[[program]]\nname = 'hang'\ncommand = {words}\ncount = '(.)'\n")
    asked = ["--graphs", "clique", "--programs", str(programs), "--systems", "hang", "--output", "R.jsonl"]
    with subprocess.Popen(
        [*COMMAND, "bench", "answers", *options, "--questions", "count", *asked],
        cwd=tmp_path,
        env=os.environ | {"TMPDIR": str(temporary)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            wait_until(begun.exists)
            assert [path.name[:15] for path in temporary.iterdir()] == ["wedgewise-cell-"]
            process.terminate()
            _, said = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
    assert process.returncode == 143
    assert "finished cells are in R.jsonl" in said
    assert list(temporary.iterdir()) == []


def test_a_pipe_hears_of_cells_with_verbose_only(options: list[str], canned: list[Cell]) -> None:
    command = ["bench", "smoke", *options, "--graphs", "clique", "--questions", "triangles"]
    assert invoke(*command).stderr == ""
    lines = invoke(*command, "--verbose").stderr.splitlines()
    assert lines[:2] == ["prepare …", "cells …"]
    assert [line.split()[:4] for line in lines[2:]] == [
        ["clique", "triangles", f"wedgewise/{name}", "1"] for name in ("keystone", "reference")
    ]


@pytest.mark.compiled  # in another process
def test_a_terminal_sees_every_cell_and_the_tables(options: list[str]) -> None:
    written = run_on_terminal("bench", "answers", *options, "--graphs", "clique", "--questions", "count")
    assert re.search(r"clique\s+count\s+wedgewise\s+1\s+[\d.]+ [mµ]s", written)
    assert "# Triangle answers on the CPU, all in one run" in written


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("eager --threads 1 2 --json", "eager --threads 1 --threads 2 --json"),
        ("--graphs a b --threads 1 -- eager", "--graphs a --graphs b --threads 1 -- eager"),
        ("eager --output R --threads 4 --threads 8", "eager --output R --threads 4 --threads 8"),
        ("eager --threads", "eager --threads"),
        ("--work a b", "--work a b"),
        ("", ""),
    ],
)
def test_options_are_repeated_before_each_value(arguments: str, expected: str) -> None:
    assert repeat_options(arguments.split(), {"--graphs", "--threads"}) == expected.split()


@pytest.mark.compiled  # in another process
def test_other_commands_do_not_load_the_comparison() -> None:
    shown = "import sys, wedgewise.cli.app; print([name for name in sys.modules if name.startswith('wedgewise_bench')])"
    loaded = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True)
    assert loaded.stdout == "[]\n"
