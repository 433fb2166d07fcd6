"""The command `similarity`: in a pipe, to a person, in parts and interrupted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.commands import KARATE, answer_of, invoke

import wedgewise as ww
from wedgewise.cli import answers
from wedgewise.cli.console import Console


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "graph.txt"
    path.write_text("ada bob\nbob cy\ncy ada\ncy dee\n")
    return str(path)


def test_partners_come_in_parts_as_they_come_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = invoke("similarity", KARATE, "--top", "3").stdout
    monkeypatch.setattr(answers, "PRINTED_VERTICES", 5)
    assert invoke("similarity", KARATE, "--top", "3").stdout == whole
    parts = [invoke("similarity", KARATE, "--top", "3", *part).stdout for part in (("--stop", "20"), ("--start", "20"))]
    assert "".join(parts) == whole
    top = ww.top_similar(KARATE, "jaccard", 3)
    labels = ww.read(KARATE).labels
    rows = [f"{labels[u]}\t{labels[v]}\t{value!r}\n" for u, row in enumerate(top) for v, value in row]
    assert whole == "".join(rows)


def test_an_interrupted_pipe_is_told_where_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    print_rows: Any = answers._print_rows
    came: Iterator[int] = iter(range(9))

    def interrupted(table: Any) -> None:
        if next(came) == 2:
            raise KeyboardInterrupt
        print_rows(table)

    monkeypatch.setattr(answers, "PRINTED_VERTICES", 5)
    monkeypatch.setattr(answers, "_print_rows", interrupted)
    found = invoke("similarity", KARATE, "--top", "2")
    assert found.exit_code == 130
    assert "the partners of the first 10 vertices were printed; --start 10 continues after them" in found.stderr
    monkeypatch.undo()
    rest = invoke("similarity", KARATE, "--top", "2", "--start", "10").stdout
    assert found.stdout + rest == invoke("similarity", KARATE, "--top", "2").stdout


def test_a_person_reads_the_largest_values(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Console, "is_read_by_a_person", True)
    lines = invoke("similarity", file, "--measure", "overlap,jaccard").stdout.splitlines()
    assert lines[0] == "4 pairs of vertices, the largest overlap first"
    assert lines[3].split() == ["ada", "bob", "0.5", "0.333333"]
    assert invoke("similarity", file, "--top", "1").stdout.startswith("4 pairs of vertices, the largest jaccard first")


def test_values_beside_labels_are_no_npy(file: str, tmp_path: Path) -> None:
    refused = invoke("similarity", file, "--output", str(tmp_path / "found.npy"))
    assert (refused.exit_code, "write .npz" in refused.stderr) == (1, True)


def test_pairs_of_a_file_are_compared(file: str, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("dee,ada\ndee,bob\n")
    record = answer_of("similarity", file, "--pairs", str(pairs), "--measure", "common_neighbors")
    assert (record["answer"]["values"], record["pairs"]) == (
        {"common_neighbors": [1, 1]},
        [["dee", "ada"], ["dee", "bob"]],
    )


@pytest.mark.parametrize(
    "options",
    [("--start", "1"), ("--stop", "1"), ("--exclude-neighbors",), ("--top", "1", "--pairs", "x"), ("--top", "0")],
)
def test_options_that_do_not_go_together(file: str, options: tuple[str, ...]) -> None:
    assert invoke("similarity", file, *options).exit_code == 2
