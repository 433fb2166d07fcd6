"""``wedgewise truss``: rows in a pipe and in files, objects, what a person reads, wrong usage and interruptions."""

from __future__ import annotations

import csv
import signal
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.commands import KARATE, RESULT_KEYS, answer_of, interrupt, invoke, labelled_files
from pyarrow import feather, parquet

import wedgewise as ww
from wedgewise.answer_types import TrussLevel
from wedgewise.cli.console import Console
from wedgewise.generate import kronecker
from wedgewise.report.summary import MAX_LEVELS, levels_text
from wedgewise.write.edges import write_edges

PAIRS = [*((u, v) for v in "abcd" for u in "abcd" if u < v), ("d", "e"), ("e", "f"), ("f", "d"), ("f", "g")]
NUMBERS = {"ab": 4, "ac": 4, "ad": 4, "bc": 4, "bd": 4, "cd": 4, "de": 3, "df": 3, "ef": 3, "fg": 2}
LABELS: dict[str, dict[str, Any]] = {
    "numbers": dict(zip("abcdefg", range(7), strict=True)),
    "integers": dict(zip("abcdefg", [3, 50, 51, 2**40, 2**40 + 9, 2**61, 2**62], strict=True)),
    "text": dict(zip("abcdefg", ["ada", "bob", "cy", "dee", "Größe", "f'", "g,h"], strict=True)),
}
CHOICES: dict[str, tuple[str, ...]] = {
    "nothing": (),
    "all": ("--all",),
    "k": ("--k", "3"),
    "beyond": ("--k", "5"),
    "max": ("--max",),
}
COLUMNS = {
    "nothing": ("u", "v", "truss"),
    "all": ("u", "v", "truss"),
    "k": ("u", "v"),
    "beyond": ("u", "v"),
    "max": ("u", "v", "truss"),
}
QUESTIONS = {"nothing": "trussness", "all": "trussness", "k": "k_truss", "beyond": "k_truss", "max": "max_truss"}
LEVELS = [(2, 10, 7, 1), (3, 9, 6, 1), (4, 6, 4, 1)]

with_all_labels = pytest.mark.parametrize("labels", LABELS)
for_every_choice = pytest.mark.parametrize("choice", CHOICES)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """A clique of four, a triangle at its corner and a tail, under every kind of labels."""
    return labelled_files(tmp_path, PAIRS, LABELS)


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every command believe that a person reads it."""
    monkeypatch.setattr(Console, "is_read_by_a_person", True)


def rows_of(choice: str, labels: str) -> list[tuple[Any, ...]]:
    """What a choice has to give, in the order of the edges."""
    least = {"k": 3, "beyond": 5, "max": 4}.get(choice, 2)
    names = LABELS[labels]
    return [
        (*(names[end] for end in ends), *((number,) if COLUMNS[choice][-1] == "truss" else ()))
        for ends, number in NUMBERS.items()
        if number >= least
    ]


@with_all_labels
@for_every_choice
def test_a_pipe_gets_a_line_per_edge(choice: str, labels: str, files: dict[str, str]) -> None:
    result = invoke("truss", files[labels], *CHOICES[choice])
    expected = "".join("\t".join(map(str, row)) + "\n" for row in rows_of(choice, labels))
    assert (result.exit_code, result.stdout, result.stderr) == (0, expected, "")


@with_all_labels
@for_every_choice
@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet", "arrow"])
def test_tables_hold_the_columns(choice: str, labels: str, suffix: str, files: dict[str, str], tmp_path: Path) -> None:
    path, expected = tmp_path / f"answer.{suffix}", rows_of(choice, labels)
    result = invoke("truss", files[labels], *CHOICES[choice], "-o", str(path))
    assert (result.exit_code, result.stdout) == (0, f"{len(expected)} rows written to {path}\n")
    if suffix in ("csv", "tsv"):
        with path.open(encoding="utf-8", newline="") as file:
            header, *rows = csv.reader(file, delimiter="\t" if suffix == "tsv" else ",")
        assert (tuple(header), [tuple(row) for row in rows]) == (
            COLUMNS[choice],
            [tuple(map(str, row)) for row in expected],
        )
    else:
        table = parquet.read_table(path) if suffix == "parquet" else feather.read_table(path)
        assert tuple(table.column_names) == COLUMNS[choice]
        assert [tuple(row.values()) for row in table.to_pylist()] == expected


@pytest.mark.parametrize("labels", ["numbers", "integers"])
@for_every_choice
def test_arrays_hold_integers(choice: str, labels: str, files: dict[str, str], tmp_path: Path) -> None:
    expected = rows_of(choice, labels)
    for suffix in ("npy", "npz"):
        written = invoke("truss", files[labels], *CHOICES[choice], "-o", str(tmp_path / f"answer.{suffix}"))
        assert written.exit_code == 0, written.output
    whole = np.load(tmp_path / "answer.npy", allow_pickle=False)
    assert (whole.shape[1], [tuple(row) for row in whole.tolist()]) == (len(COLUMNS[choice]), expected)
    with np.load(tmp_path / "answer.npz", allow_pickle=False) as columns:
        assert tuple(columns.files) == COLUMNS[choice]
        assert list(zip(*(columns[name].tolist() for name in columns.files), strict=True)) == expected


@pytest.mark.parametrize("suffix", ["npy", "npz"])
def test_text_labels_in_an_array_are_refused_before_the_work(
    suffix: str, files: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wedgewise.answer.answering.choose_device", None)
    result = invoke("truss", files["text"], "-o", str(tmp_path / f"answer.{suffix}"))
    assert (result.exit_code, result.stdout) == (1, "")
    assert f".{suffix} holds numbers, and the labels are text; write .csv or .parquet" in result.stderr
    assert not (tmp_path / f"answer.{suffix}").exists()


@with_all_labels
@pytest.mark.parametrize("choice", ["nothing", "all"])
def test_json_has_the_numbers_and_the_levels(choice: str, labels: str, files: dict[str, str]) -> None:
    record = answer_of("truss", files[labels], *CHOICES[choice])
    assert set(record) == {"schema", "edges", "levels"} | RESULT_KEYS
    assert (record["schema"], record["question"], record["answer"]) == (1, "trussness", list(NUMBERS.values()))
    assert record["edges"] == [[LABELS[labels][end] for end in ends] for ends in NUMBERS]
    assert [tuple(level.values()) for level in record["levels"]] == LEVELS
    assert set(record["levels"][0]) == {field.name for field in fields(TrussLevel)}


@with_all_labels
@pytest.mark.parametrize(("choice", "level"), [("k", LEVELS[1]), ("beyond", (5, 0, 0, 0)), ("max", LEVELS[2])])
def test_json_of_one_truss(choice: str, level: tuple[int, ...], labels: str, files: dict[str, str]) -> None:
    record = answer_of("truss", files[labels], *CHOICES[choice])
    assert set(record) == {"schema", "levels"} | RESULT_KEYS
    assert record["question"] == QUESTIONS[choice]
    assert record["answer"] == {"k": level[0], "edges": [list(row[:2]) for row in rows_of(choice, labels)]}
    assert [tuple(item.values()) for item in record["levels"]] == [level]


@for_every_choice
def test_json_names_the_file_instead_of_repeating_it(choice: str, files: dict[str, str], tmp_path: Path) -> None:
    path = str(tmp_path / "answer.csv")
    record = answer_of("truss", files["text"], *CHOICES[choice], "-o", path)
    assert (record["answer"], record["output"], record["rows"]) == (None, path, len(rows_of(choice, "text")))
    assert record["question"] == QUESTIONS[choice]
    assert "write" in record["seconds"]


def test_the_rows_of_max_are_rows_of_all() -> None:
    every, largest = (invoke("truss", KARATE, choice).stdout.splitlines() for choice in ("--all", "--max"))
    assert largest == [row for row in every if row.endswith("\t5")]
    assert len(largest) == 14


@pytest.mark.parametrize("choice", [(), ("--k", "4"), ("--max",)])
def test_options_reach_the_question(choice: tuple[str, ...]) -> None:
    plain = answer_of("truss", KARATE, *choice, "--device", "cpu")
    record = answer_of(
        *("truss", KARATE, *choice, "--algorithm", "eager", "--knob", "granularity=coarse", "--order", "core"),
        *("--threads", "3", "--memory", "1GB", "--verify"),
    )
    assert (record["algorithm"], record["device"]) == ("eager", "cpu")
    assert record["plan"]["knobs"] == {"granularity": "coarse"}
    assert (record["plan"]["order"], record["plan"]["threads"]) == ("core", 3)
    assert record["verified"] is not None
    assert (plain["verified"], plain["answer"]) == (None, record["answer"])


@pytest.mark.parametrize(
    ("choice", "answer", "headline"),
    [
        ("nothing", [], "no edges"),
        ("all", [], "no edges"),
        ("k", {"k": 3, "edges": []}, "0 edges in the 3-truss"),
        ("beyond", {"k": 5, "edges": []}, "0 edges in the 5-truss"),
        ("max", {"k": 2, "edges": []}, "0 edges in the 2-truss"),
    ],
)
def test_an_empty_graph_has_no_rows(choice: str, answer: Any, headline: str, tmp_path: Path, person: None) -> None:
    empty = tmp_path / "empty.txt"
    empty.write_text("# nothing\n")
    assert answer_of("truss", str(empty), *CHOICES[choice])["answer"] == answer
    for suffix in ("csv", "npy", "npz"):
        path = tmp_path / f"answer.{suffix}"
        written = invoke("truss", str(empty), *CHOICES[choice], "-o", str(path))
        assert written.stdout == f"0 rows written to {path}\n"
    shown = invoke("truss", str(empty), *CHOICES[choice])
    assert (shown.exit_code, shown.stdout.partition("\n")[0]) == (0, headline)


def test_a_person_reads_every_truss(files: dict[str, str], person: None) -> None:
    lines = invoke("truss", files["text"]).stdout.splitlines()
    assert lines[0] == "largest truss number 4"
    assert lines[2:7] == [
        "  what each k-truss has",
        "  k  edges  vertices  components",
        "  2  10     7         1",
        "  3  9      6         1",
        "  4  6      4         1",
    ]
    facts = dict(line.split(maxsplit=1) for line in lines[8:])
    assert facts["edges"] == "10"
    assert facts["work"].endswith(" order")
    assert " truss" in facts["seconds"]


@pytest.mark.parametrize(
    ("choice", "headline", "vertices"),
    [
        ("k", "9 edges in the 3-truss", "6"),
        ("beyond", "0 edges in the 5-truss", "0"),
        ("max", "6 edges in the 4-truss, the last with edges", "4"),
    ],
)
def test_a_person_reads_one_truss(
    choice: str, headline: str, vertices: str, files: dict[str, str], person: None
) -> None:
    lines = invoke("truss", files["text"], *CHOICES[choice]).stdout.splitlines()
    assert lines[0] == headline
    assert lines[2].split() == ["its", "vertices", vertices]
    expected = [list(row[:2]) for row in rows_of(choice, "text")]
    if expected:
        assert [line.split() for line in lines[5 : 6 + len(expected)]] == [["u", "v"], *expected]


def test_a_person_reads_the_first_edges_of_a_large_truss(person: None) -> None:
    lines = invoke("truss", KARATE, "--k", "3").stdout.splitlines()
    assert lines[0] == "67 edges in the 3-truss"
    assert lines[-11].startswith("  57 more; --output writes all")


def test_levels_with_the_same_edges_share_a_row() -> None:
    levels = [TrussLevel(2, 50, 20, 2), *(TrussLevel(k, 45, 10, 1) for k in range(3, 11))]
    assert levels_text(levels).splitlines() == [
        "  k     edges  vertices  components",
        "  2     50     20        2",
        "  3–10  45     10        1",
    ]


@pytest.mark.parametrize("count", [MAX_LEVELS, MAX_LEVELS + 1, 1000])
def test_long_tables_lose_their_middle(count: int) -> None:
    lines = levels_text([TrussLevel(k, 10_000 - k, 3, 1) for k in range(2, count + 2)]).splitlines()[1:]
    first, last = lines[0].split(), lines[-1].split()
    assert (first[:2], last[:2]) == (["2", "9,998"], [f"{count + 1:,}", f"{10_000 - count - 1:,}"])
    assert [line.split()[0] for line in lines].count("…") == (count > MAX_LEVELS)
    assert len(lines) == min(count, MAX_LEVELS + 1)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--k", "3", "--max"),
        ("--k", "3", "--all"),
        ("--max", "--all"),
        ("--k", "1"),
        ("--k", "-3"),
        ("--k", "three"),
        ("--k",),
    ],
    ids=" ".join,
)
def test_wrong_usage_exits_2(arguments: tuple[str, ...]) -> None:
    result = invoke("truss", KARATE, *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--k" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("truss", "nowhere.txt"), "error: nowhere.txt: no such file"),
        (("truss", KARATE, "-o", "answer.nix"), "error: answer.nix: the suffix names no format for answers"),
        (("truss", KARATE, "-o", "nowhere/answer.npz"), "could not be written"),
        (("truss", KARATE, "--algorithm", "forward"), "error: forward on cpu does not compute trussness"),
        (("truss", KARATE, "--max", "--memory", "1kB"), "bytes and 1,000 are allowed"),
        (("explain", KARATE, "--question", "k_truss"), "error: k is an integer of at least 2"),
        (("explain", KARATE, "--k", "3"), "error: count has no parameter 'k'"),
    ],
)
def test_errors_are_one_line_and_leave_nothing(
    arguments: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = invoke(*arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_explain_names_the_truss() -> None:
    plan = answer_of("explain", KARATE, "--question", "k_truss", "--k", "4")
    assert (plan["question"], plan["computes"]) == ("k_truss", "k_truss")


def test_stages_are_told() -> None:
    spoken = invoke("truss", KARATE, "--verbose").stderr.splitlines()
    assert "truss …" in spoken


def test_rounds_are_told() -> None:
    told: list[tuple[str, int, int]] = []
    ww.run("trussness", KARATE, progress=lambda *step: told.append(step), algorithm="peel")
    rounds = [step for step in told if step[0] == "truss"]
    assert len(rounds) > 1
    assert rounds[-1][1] == rounds[-1][2] == 78


@pytest.mark.compiled  # in another process
def test_ctrl_c_stops_a_decomposition(tmp_path: Path) -> None:
    write_edges(kronecker(11, seed=1).pairs(), tmp_path / "graph.npy")
    arguments = ("truss", "graph.npy", "--algorithm", "reference", "-o", "answer.npz")  # hundreds of rounds
    code, rest, seconds = interrupt(tmp_path, "truss …\n", signal.SIGINT, *arguments)
    assert (code, rest) == (130, "interrupted\n")
    assert seconds < 1
    assert [path.name for path in tmp_path.iterdir()] == ["graph.npy"]


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet", "npy", "npz", "npz.gz"])
def test_an_interrupted_file_is_not_there(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("wedgewise.write.answers._parts", interrupted)
    result = invoke("truss", KARATE, "-o", str(tmp_path / f"answer.{suffix}"))
    assert (result.exit_code, result.output) == (130, "interrupted\n")
    assert list(tmp_path.iterdir()) == []


def test_the_levels_are_those_of_the_library() -> None:
    assert answer_of("truss", KARATE)["levels"] == [asdict(level) for level in ww.truss_summary(KARATE)]
