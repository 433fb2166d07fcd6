"""Answers of many rows on the command line: in a file, a pipe, a JSON object, and as a summary for a person."""

from __future__ import annotations

import csv
import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.commands import KARATE, RESULT_KEYS, answer_of, interrupt, invoke, labelled_files
from pyarrow import feather, parquet

import wedgewise as ww
from wedgewise.cli.console import Console
from wedgewise.generate import complete
from wedgewise.report import summary
from wedgewise.report.text import bytes_text, histogram_text, how_facts
from wedgewise.run.listing import Listing
from wedgewise.write.edges import write_edges

PAIRS = [("a", "b"), ("b", "c"), ("c", "a"), ("d", "b"), ("d", "c"), ("d", "e")]  # two triangles on one edge, a leaf
LABELS: dict[str, dict[str, Any]] = {
    "numbers": dict(zip("abcde", range(5), strict=True)),
    "integers": dict(zip("abcde", [3, 50, 2**40, 2**40 + 9, 2**62], strict=True)),
    "text": dict(zip("abcde", ["ada", "bob", "Größe", "cy'", "e,f"], strict=True)),
}
TRIANGLES = [("a", 1), ("b", 2), ("c", 2), ("d", 1), ("e", 0)]
SUPPORT = [("a", "b", 1), ("a", "c", 1), ("b", "c", 2), ("b", "d", 1), ("c", "d", 1), ("d", "e", 0)]
CLUSTERING = [("a", 1.0), ("b", 2 / 3), ("c", 2 / 3), ("d", 1 / 3), ("e", 0.0)]
LISTED = {frozenset("abc"), frozenset("bcd")}
ANSWERS: dict[str, list[tuple[Any, ...]]] = {"triangles": TRIANGLES, "support": SUPPORT, "clustering": CLUSTERING}
QUESTIONS = {"triangles": "triangles", "support": "edge_support", "clustering": "clustering", "list": "list_triangles"}

with_all_labels = pytest.mark.parametrize("labels", LABELS)
for_every_table = pytest.mark.parametrize("command", ANSWERS)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """The graph under every kind of labels."""
    return labelled_files(tmp_path, PAIRS, LABELS)


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every command believe that a person reads it."""
    monkeypatch.setattr(Console, "is_read_by_a_person", True)


@pytest.fixture
def empty(tmp_path: Path) -> str:
    path = tmp_path / "empty.txt"
    path.write_text("# nothing\n")
    return str(path)


def named(rows: list[tuple[Any, ...]], labels: str) -> list[tuple[Any, ...]]:
    """Rows with the labels of one of the files."""
    return [tuple(LABELS[labels].get(cell, cell) for cell in row) for row in rows]


def triangles_in(rows: Any, labels: str) -> set[frozenset[str]]:
    """Listed rows by the letters of their vertices."""
    letter = {label: letter for letter, label in LABELS[labels].items()}
    assert all(len(set(row)) == 3 for row in rows)
    return {frozenset(letter[cell] for cell in row) for row in rows}


def read_back(path: Path) -> list[tuple[Any, ...]]:
    """The rows of a table without its header."""
    if path.suffix == ".csv":
        with path.open(encoding="utf-8", newline="") as file:
            return [tuple(row) for row in csv.reader(file)][1:]
    table = parquet.read_table(path) if path.suffix == ".parquet" else feather.read_table(path)
    return [tuple(row.values()) for row in table.to_pylist()]


@with_all_labels
@for_every_table
def test_a_pipe_gets_labels_and_values_between_tabs(command: str, labels: str, files: dict[str, str]) -> None:
    result = invoke(command, files[labels])
    expected = "".join("\t".join(map(str, row)) + "\n" for row in named(ANSWERS[command], labels))
    assert (result.exit_code, result.stdout, result.stderr) == (0, expected, "")


@with_all_labels
def test_a_pipe_gets_triangles(labels: str, files: dict[str, str]) -> None:
    kind = str if labels == "text" else int
    rows = [tuple(map(kind, line.split("\t"))) for line in invoke("list", files[labels]).stdout.splitlines()]
    assert len(rows) == 2
    assert triangles_in(rows, labels) == LISTED


@with_all_labels
@for_every_table
@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow"])
def test_files_hold_the_table(command: str, labels: str, suffix: str, files: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / f"answer.{suffix}"
    result = invoke(command, files[labels], "-o", str(path))
    expected = named(ANSWERS[command], labels)
    assert (result.exit_code, result.stdout) == (0, f"{len(expected)} rows written to {path}\n")
    if suffix == "csv":
        expected = [tuple(map(str, row)) for row in expected]
    assert read_back(path) == expected


@pytest.mark.parametrize("batch", ["1", "7", "1000"])
@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow", "npy"])
def test_any_batch_lists_the_same(batch: str, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"answer.{suffix}"
    assert invoke("list", KARATE, "--output", str(path), "--batch", batch).exit_code == 0
    rows = np.load(path).tolist() if suffix == "npy" else [list(map(int, row)) for row in read_back(path)]
    assert rows == ww.list_triangles(KARATE).tolist()
    assert len(rows) == 45


@pytest.mark.parametrize("batch", ["1", "7"])
def test_a_listing_in_parts_is_the_whole(batch: str, tmp_path: Path) -> None:
    parts = [tmp_path / "a.npy", tmp_path / "b.npy", tmp_path / "c.npy"]
    cuts = [("--stop", "10"), ("--start", "10", "--stop", "31"), ("--start", "31")]
    for path, cut in zip(parts, cuts, strict=True):
        assert invoke("list", KARATE, "-o", str(path), *cut, "--batch", batch).exit_code == 0
    found = [np.load(path) for path in parts]
    assert [len(part) for part in found] == [10, 21, 14]
    np.testing.assert_array_equal(np.concatenate(found), ww.list_triangles(KARATE))
    assert invoke("list", KARATE, "--start", "44", "--batch", batch).stdout.count("\n") == 1


def test_options_reach_the_listing() -> None:
    plain, by_core = (answer_of("list", KARATE, "--order", order)["answer"] for order in ("degree", "core"))
    assert plain != by_core
    assert sorted(plain) == sorted(by_core)
    record = answer_of("list", KARATE, "--algorithm", "reference", "--threads", "3", "--verify", "--stop", "0")
    assert (record["algorithm"], record["plan"]["threads"], record["answer"]) == ("reference", 3, [])
    assert "recounted by" in record["verified"]


@with_all_labels
@for_every_table
def test_json_has_the_keys_of_result_and_what_rows_belong_to(command: str, labels: str, files: dict[str, str]) -> None:
    record = answer_of(command, files[labels])
    about = "edges" if command == "support" else "labels"
    assert set(record) == {"schema", about} | RESULT_KEYS
    assert (record["schema"], record["question"]) == (1, QUESTIONS[command])
    assert list(record["seconds"]) == ["read and clean", "orient", "count", "answer"]
    expected = named(ANSWERS[command], labels)
    assert record["answer"] == [row[-1] for row in expected]
    assert record[about] == [list(row[:-1]) if about == "edges" else row[0] for row in expected]


@with_all_labels
def test_json_of_a_listing_has_labels(labels: str, files: dict[str, str]) -> None:
    record = answer_of("list", files[labels])
    assert set(record) == {"schema", "total", "start", "stop"} | RESULT_KEYS
    assert triangles_in(record["answer"], labels) == LISTED
    part = answer_of("list", files[labels], "--start", "1", "--stop", "9")
    assert (part["total"], part["start"], part["stop"]) == (2, 1, 2)
    assert part["answer"] == record["answer"][1:]
    assert list(part["seconds"]) == ["read and clean", "orient", "count", "answer"]
    assert part["plan"]["computes"] == "list_triangles"


@pytest.mark.parametrize(("command", "rows"), [("triangles", 5), ("support", 6), ("clustering", 5), ("list", 2)])
def test_json_names_the_file_instead_of_repeating_it(
    command: str, rows: int, files: dict[str, str], tmp_path: Path
) -> None:
    path = str(tmp_path / "answer.csv")
    record = answer_of(command, files["text"], "-o", path)
    assert (record["answer"], record["output"], record["rows"]) == (None, path, rows)
    assert record["question"] == QUESTIONS[command]
    assert "write" in record["seconds"]


def test_quiet_says_nothing_of_a_file(files: dict[str, str], tmp_path: Path) -> None:
    assert invoke("triangles", files["text"], "-q", "-o", str(tmp_path / "answer.csv")).output == ""
    assert (tmp_path / "answer.csv").exists()


def test_transitivity_in_a_pipe_is_the_number_alone(files: dict[str, str], empty: str) -> None:
    assert invoke("transitivity", files["text"]).stdout == "0.6\n"  # 3 · 2 of 10 wedges
    assert invoke("transitivity", KARATE).stdout == f"{135 / 528}\n"
    assert invoke("transitivity", empty).stdout == "0.0\n"
    assert invoke("transitivity", empty, "--undefined", "nan").stdout == "nan\n"
    assert answer_of("transitivity", empty, "--undefined", "nan")["answer"] is None
    assert answer_of("transitivity", KARATE)["answer"] == 135 / 528


def test_undefined_coefficients_can_be_told_apart(files: dict[str, str], tmp_path: Path) -> None:
    assert invoke("clustering", files["numbers"], "--undefined", "nan").stdout.endswith("4\tnan\n")
    answer = answer_of("clustering", files["numbers"], "--undefined", "nan")["answer"]
    assert answer == [1.0, 2 / 3, 2 / 3, 1 / 3, None]
    path = tmp_path / "answer.npy"
    invoke("clustering", files["text"], "--undefined", "nan", "-o", str(path))
    np.testing.assert_array_equal(np.load(path), [1.0, 2 / 3, 2 / 3, 1 / 3, np.nan])


def test_directions_count_when_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "cycle.txt"
    path.write_text("0 1\n1 2\n2 0\n")
    assert answer_of("clustering", str(path))["answer"] == [1.0, 1.0, 1.0]
    assert answer_of("clustering", str(path), "--directed")["answer"] == [0.5, 0.5, 0.5]


@pytest.mark.parametrize("command", QUESTIONS)
def test_an_empty_graph_has_no_rows(command: str, empty: str, tmp_path: Path, person: None) -> None:
    assert answer_of(command, empty)["answer"] == []
    for suffix in ("csv", "parquet", "npy"):
        path = tmp_path / f"answer.{suffix}"
        assert invoke(command, empty, "-o", str(path)).stdout == f"0 rows written to {path}\n"
    written = invoke(command, empty)
    assert written.exit_code == 0
    headline = "average clustering 0.000000" if command == "clustering" else "0 triangles"
    assert written.stdout.startswith(headline)
    assert "█" not in written.stdout


@pytest.mark.parametrize("command", QUESTIONS)
def test_an_empty_graph_prints_nothing_into_a_pipe(command: str, empty: str) -> None:
    assert invoke(command, empty).output == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("triangles", KARATE, "-o", "answer.nix"), "error: answer.nix: the suffix names no format for answers"),
        (("list", "nowhere.txt", "-o", "answer"), "error: answer: the suffix names no format for answers"),
        (("clustering", "nowhere.txt", "-o", "answer.csv"), "error: nowhere.txt: no such file"),
        (("support", KARATE, "-o", "nowhere/answer.csv"), "could not be written"),
        (("list", KARATE, "--start", "46"), "error: start is 46, but there are 45 triangles"),
        (("list", KARATE, "--start", "9", "--stop", "8"), "error: stop is 8, before start at 9"),
        (("list", KARATE, "--algorithm", "example"), "error: example on cpu does not compute list_triangles"),
        (("support", KARATE, "--memory", "1kB"), "bytes and 1,000 are allowed"),
    ],
)
def test_errors_are_one_line_and_leave_nothing(
    arguments: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = invoke(*arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("error: ")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["support", "list"])
def test_text_labels_in_an_array_are_refused_before_the_work(
    command: str, files: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wedgewise.answer.answering.choose_device", None)
    result = invoke(command, files["text"], "-o", str(tmp_path / "answer.npy"))
    assert result.exit_code == 1
    assert ".npy holds numbers, and the labels are text; write .csv or .parquet" in result.stderr
    assert not (tmp_path / "answer.npy").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("list", KARATE, "--batch", "0"),
        ("list", KARATE, "--start", "-1"),
        ("clustering", KARATE, "--undefined", "one"),
        ("triangles", KARATE, "--directed"),
        ("transitivity", KARATE, "-o", "answer.csv"),
    ],
    ids=" ".join,
)
def test_wrong_usage_exits_2(arguments: tuple[str, ...]) -> None:
    result = invoke(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")


def interrupted_after_two(*_: Any, **__: Any) -> Iterator[Any]:
    """A listing that is interrupted after two batches of one triangle."""
    yield np.array([[0, 1, 2]], np.uint32)
    yield np.array([[1, 2, 3]], np.uint32)
    raise KeyboardInterrupt


def test_an_interrupted_pipe_is_told_where_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Listing, "batches", interrupted_after_two)
    result = invoke("list", KARATE, "--start", "5")
    assert (result.exit_code, result.stdout) == (130, "0\t1\t2\n1\t2\t3\n")
    assert result.stderr == "2 triangles were printed; --start 7 continues after them\ninterrupted\n"


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet", "npy"])
def test_an_interrupted_file_is_not_there(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Listing, "batches", interrupted_after_two)
    result = invoke("list", KARATE, "-o", str(tmp_path / f"answer.{suffix}"))
    assert (result.exit_code, result.output) == (130, "interrupted\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.compiled  # in another process
def test_ctrl_c_stops_a_long_listing(tmp_path: Path) -> None:
    write_edges(complete(200).pairs(), tmp_path / "graph.npy")  # 1.3 million triangles, one at a time: minutes
    arguments = ("list", "graph.npy", "--algorithm", "reference", "--batch", "1", "-o", "answer.csv")
    code, rest, seconds = interrupt(tmp_path, "count …\n", signal.SIGINT, *arguments)
    assert (code, rest.removeprefix("list …\n")) == (130, "interrupted\n")
    assert seconds < 1
    assert [path.name for path in tmp_path.iterdir()] == ["graph.npy"]


def test_listing_reports_its_progress(tmp_path: Path) -> None:
    spoken = invoke("list", KARATE, "-o", str(tmp_path / "answer.csv"), "--batch", "9", "--verbose")
    assert spoken.stderr.splitlines() == ["count …", "list …"]


def test_a_person_reads_triangles_of_vertices(files: dict[str, str], person: None) -> None:
    lines = invoke("triangles", files["text"]).stdout.splitlines()
    assert lines[0] == "2 triangles through 4 of 5 vertices"
    assert lines[2] == "  per vertex  1.20 mean, 1 median, 2 largest"
    assert lines[4:10] == [
        "  the largest",
        "  vertex  triangles",
        "  bob     2",
        "  Größe   2",
        "  ada     1",
        "  cy'     1",
    ]
    assert lines[11:15] == [
        "  vertices by triangles",
        f"  0    1  {'█' * 20}",
        f"  1    2  {'█' * 40}",
        f"  2–3  2  {'█' * 40}",
    ]
    assert "  edges      6" in lines[16:]


def test_a_person_reads_support_of_edges(files: dict[str, str], person: None) -> None:
    lines = invoke("support", files["integers"]).stdout.splitlines()
    b, c = LABELS["integers"]["b"], LABELS["integers"]["c"]
    assert lines[0] == "2 triangles through 5 of 6 edges"
    assert lines[2] == "  per edge  1.00 mean, 1 median, 2 largest"
    assert lines[5].split() == ["edge", "triangles"]
    assert lines[6].split() == [str(b), "–", str(c), "2"]
    assert lines[12:16] == [
        "  edges by triangles",
        f"  0    1  {'█' * 10}",
        f"  1    4  {'█' * 40}",
        f"  2–3  1  {'█' * 10}",
    ]


@pytest.mark.parametrize("undefined", ["zero", "nan"])
def test_a_person_reads_clustering(undefined: str, files: dict[str, str], person: None) -> None:
    lines = invoke("clustering", files["numbers"], "--undefined", undefined).stdout.splitlines()
    assert lines[0] == "average clustering 0.533333"
    assert lines[2:5] == [
        "  average    0.533333 over 5 vertices, 0 where undefined",
        "  defined    0.666667 over the 4 where it is defined",
        "  undefined  at 1 vertex (20.0%)",
    ]
    assert lines[6:9] == ["  by degree", "  degree  vertices  average", "  2–3     4         0.6667"]
    assert lines[10] == "  vertices by clustering"
    assert [line.split()[:2] for line in lines[11:21]] == [
        [f"{tenth / 10:.1f}–{(tenth + 1) / 10:.1f}", {3: "1", 6: "2", 9: "1"}.get(tenth, "0")] for tenth in range(10)
    ]


def test_a_person_reads_the_first_triangles(person: None) -> None:
    lines = invoke("list", KARATE, "--start", "30").stdout.splitlines()
    assert lines[0] == "45 triangles"
    assert lines[2].split() == ["number", "u", "v", "w"]
    expected = ww.list_triangles(KARATE, start=30, stop=40).tolist()
    assert [list(map(int, line.split())) for line in lines[3:13]] == [
        [30 + number, *row] for number, row in enumerate(expected)
    ]
    assert lines[14].startswith("  5 more; ")


def test_a_person_reads_transitivity(files: dict[str, str], person: None) -> None:
    lines = invoke("transitivity", files["text"]).stdout.splitlines()
    assert lines[0] == "transitivity 0.6"
    assert lines[2] == "  vertices   5"


def test_what_is_said_of_the_work_is_what_the_result_says() -> None:
    result = ww.run("triangles", KARATE, verify=True, threads=1)
    facts = dict(how_facts(result))
    assert (facts["vertices"], facts["edges"]) == ("34", "78")
    plan = result.plan
    assert facts["work"] == f"{plan.wedges} candidate pairs in {plan.order} order, {result.wedges_tested} tests made"
    assert facts["algorithm"] == f"{result.algorithm} on cpu, 1 thread"
    assert facts["verified"] == result.verified
    assert facts["seconds"] == ", ".join(f"{taken:.3f} {stage}" for stage, taken in result.seconds.items())
    assert facts["memory"] == f"{bytes_text(result.peak_bytes)} peak, the whole process"
    assert facts["cleaned"] == "78 pairs read; dropped: nothing"


@pytest.mark.parametrize(
    ("values", "wanted", "expected"),
    [
        ([5, 1, 5, 7, 0], 3, [3, 0, 2]),
        ([5, 5, 5, 5], 2, [0, 1]),
        ([0, 3, 0], 2, [1]),
        ([0, 0], 2, []),
        ([], 2, []),
    ],
)
def test_the_largest_are_the_first_of_equals(values: list[int], wanted: int, expected: list[int]) -> None:
    assert summary.largest(np.array(values, np.int64), wanted) == expected


def test_the_largest_are_those_of_a_sort() -> None:
    values = np.random.default_rng(1).integers(0, 20, 500)
    assert summary.largest(values, 50) == np.argsort(-values, kind="stable")[:50].tolist()


def test_buckets_double_or_grow_tenfold() -> None:
    assert summary.buckets(np.array([0, 1, 2, 3, 4, 7, 8])) == [("0", 1), ("1", 1), ("2–3", 2), ("4–7", 2), ("8–15", 1)]
    assert summary.buckets(np.array([0, 1, 9, 10, 99_999, 100_000])) == [
        ("0", 1),
        ("1–9", 2),
        ("10–99", 1),
        ("100–999", 0),
        ("1,000–9,999", 0),
        ("10,000–99,999", 1),
        ("100,000–999,999", 1),
    ]
    assert summary.buckets(np.array([2**16 - 1]))[-1] == ("32,768–65,535", 1)
    assert summary.buckets(np.array([2**62]))[-1] == ("1,000,000,000,000,000,000–9,999,999,999,999,999,999", 1)


def test_spread_of_large_and_half_numbers() -> None:
    assert (
        summary.spread(np.array([1_000_001, 2_000_000])) == "1,500,000.50 mean, 1,500,000.5 median, 2,000,000 largest"
    )
    assert summary.spread(np.array([], np.int64)) == "0.00 mean, 0 median, 0 largest"


def test_one_is_in_the_last_tenth() -> None:
    found = dict(summary.tenths(np.array([0.0, 0.05, 0.1, 0.95, 1.0])))
    assert (found["0.0–0.1"], found["0.1–0.2"], found["0.9–1.0"]) == (2, 1, 2)


def test_bars_are_in_proportion() -> None:
    assert histogram_text([("a", 1000), ("bc", 1), ("d", 0)]) == f"  a   1,000  {'█' * 40}\n  bc      1  █\n  d       0"


@pytest.mark.parametrize(
    ("label", "text"),
    [("plain", "plain"), (17, "17"), ("\x1b[31mred", "\\x1b[31mred"), ("a\nb", "a\\nb"), ("x" * 41, "x" * 39 + "…")],
)
def test_labels_cannot_move_the_cursor(label: Any, text: str) -> None:
    assert summary.shown(label) == text


def test_json_is_read_by_strict_readers(files: dict[str, str]) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    printed = invoke("clustering", files["text"], "--undefined", "nan", "--json").stdout
    assert json.loads(printed, parse_constant=refuse)["answer"][-1] is None
