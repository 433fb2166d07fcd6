"""Every command: its options, exit codes, what it prints where, as text, as JSON and into files."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wedgewise as ww

from . import stage, tables
from .shell import COMMAND, ENVIRONMENT, PATIENCE, Ended, run, run_all, run_on_terminal

pytestmark = pytest.mark.compiled
FORMATS = {
    **dict.fromkeys(("txt", "csv", "tsv.gz", "txt.bz2", "csv.xz", "tsv.zst"), "text"),
    **{name: name for name in ("bel", "bel32", "bel64", "npy", "npz", "mtx", "metis", "parquet", "arrow")},
    "bel": "bel32",
    "graph": "metis",
    "feather": "arrow",
    "mtx.gz": "mtx",
    "npy.zst": "npy",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = stage.make_files(tmp_path_factory.mktemp("surface"))
    run_all(stage.MAKING[:2], made)
    return made


@pytest.fixture
def cache(tmp_path: Path) -> dict[str, str]:
    """Datasets in a folder of their own."""
    return {"WEDGEWISE_CACHE": str(tmp_path / "cache")}


def test_options_are_as_recorded(folder: Path) -> None:
    assert tables.commands_table(folder) == tables.recorded("commands")


def test_json_objects_are_as_recorded(tmp_path: Path, cache: dict[str, str]) -> None:
    stage.make_files(tmp_path)
    ended = run_all((*stage.MAKING, *stage.OBJECTS), tmp_path)
    ended |= run_all(stage.DATASETS, tmp_path, environment=cache)
    assert {line: found.stderr for line, found in ended.items() if found.stderr} == {}
    for line, expected in tables.recorded("objects").items():
        assert tables.by_type(tables.shape(ended.pop(line).record)) == expected, line
    assert list(ended) == []


def test_algorithms_are_as_recorded(folder: Path) -> None:
    record = run_all(["algorithms --json"], folder)["algorithms --json"].record
    assert tables.algorithms_table(record) == tables.recorded("algorithms")
    for found, listed in zip(ww.algorithms(), record["algorithms"], strict=True):
        assert {name: _plain(getattr(found, name)) for name in listed if name != "knobs"} == {
            name: value for name, value in listed.items() if name != "knobs"
        }
        assert [_plain(vars_of(knob)) for knob in found.knobs] == listed["knobs"]


def vars_of(knob: Any) -> dict[str, Any]:
    return {name: getattr(knob, name) for name in ("name", "default", "meaning", "choices", "least", "most")}


def _plain(value: Any) -> Any:
    if isinstance(value, dict) and "meaning" in value:
        return {name: _plain(item) for name, item in value.items()}
    return list(value) if isinstance(value, tuple | dict) else value


def test_text_and_exit_codes_are_as_recorded(folder: Path, cache: dict[str, str]) -> None:
    ended = run_all((*stage.TEXT, *stage.FAILING), folder)
    ended |= run_all(stage.FAILING_DATASETS, folder, environment=cache)
    assert tables.text_table(ended) == tables.recorded("text")
    for line, found in ended.items():
        check_streams(line, found)


def check_streams(line: str, found: Ended) -> None:
    """Answers go to standard output, everything else to standard error."""
    if found.code == 0:
        assert found.stderr == "", line
    elif found.code == 1:
        assert found.stdout == "", line
        assert found.stderr.startswith("error: "), line
        assert found.stderr.count("\n") == 1, line
    else:
        assert found.stdout == "", line
        assert found.stderr.startswith("Usage: "), line


def test_files_of_answers_are_as_recorded(folder: Path) -> None:
    written = stage.writing()
    for line, found in run_all(written, folder).items():
        assert (found.code, found.stderr) == (0, ""), line
    assert tables.files_table(folder, written) == tables.recorded("files")
    for command, suffixes in stage.ROWS.items():
        rows = [line.split(",") for line in (folder / stage.output_name(command, "csv")).read_text().splitlines()[1:]]
        for suffix in suffixes:
            held = list(as_rows(tables.arrays_in(folder / stage.output_name(command, suffix))))
            width = len(held[0])
            assert held == [row[-width:] for row in rows], f"{command} {suffix}"  # .npy may hold the answers alone


def as_rows(arrays: Any) -> Iterator[list[str]]:
    """The rows of a file of answers, as text."""
    if isinstance(arrays, np.ndarray):
        columns = arrays.reshape(len(arrays), -1).T.tolist()
    else:
        columns = [
            column.tolist() if isinstance(column, np.ndarray) else column.to_pylist() for column in arrays.values()
        ]
    return ([str(value) for value in row] for row in zip(*columns, strict=True))


def test_standard_input_is_read(folder: Path) -> None:
    lines = ("count -", "triangles - --labels text", "info - --json")
    ended = run_all(lines, folder, stdin="a b\nb c\nc a\n")
    assert ended["count -"] == Ended(0, "1\n", "")
    assert ended["triangles - --labels text"].stdout == "a\t1\nb\t1\nc\t1\n"
    assert ended["info - --json"].record["labels"] == "text"


def test_a_process_by_itself_does_the_same(folder: Path) -> None:
    assert run("count karate.txt", folder) == Ended(0, "45\n", "")
    ended = run("count nowhere.txt --json", folder)
    assert (ended.code, ended.stdout, ended.stderr.count("\n")) == (1, "", 1)
    verbose = run("count karate.txt.xz --verbose --algorithm reference", folder)
    assert (verbose.code, verbose.stdout) == (0, "45\n")
    assert verbose.stderr.endswith(" …\n")


def test_a_terminal_gets_a_report_unless_quiet_is_asked_for(folder: Path) -> None:
    report = run_on_terminal("count karate.txt --algorithm reference", folder)
    assert "45 triangles\n" in report  # behind a bar, where work lasts
    assert "reference on cpu" in report
    assert run_on_terminal("triangles small.txt --quiet", folder) == "0\t1\n1\t2\n2\t2\n3\t1\n7\t0\n"


def test_a_reader_that_leaves_early_is_no_error(folder: Path) -> None:
    command = [*COMMAND, "list", "karate.txt", "--batch", "1"]
    streams: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=folder, env=ENVIRONMENT, **streams) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert (process.wait(PATIENCE), process.stderr.read()) == (0, b"")


def test_every_format_is_written_and_read(folder: Path) -> None:
    files = {suffix: f"karate.out.{suffix}" for suffix in FORMATS}
    ended = run_all([f"convert karate.txt {file} --clean" for file in files.values()], folder)
    assert {found.code for found in ended.values()} == {0}
    expected = ww.read(folder / "karate.txt")
    for suffix, file in files.items():
        graph = ww.read(folder / file)
        assert (graph.n, graph.edges.tolist()) == (expected.n, expected.edges.tolist()), suffix
        assert ww.read(folder / file, format=FORMATS[suffix]).m == 78
