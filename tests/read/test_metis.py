"""METIS graphs: weights, comments, isolated vertices, long rows."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from wedgewise.errors import FormatError
from wedgewise.read import metis, numbers, read_edges
from wedgewise.read.content import open_content

TRIANGLE_WITH_TAIL = [[0, 1], [0, 2], [1, 2], [2, 3]]


def graph(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "g.metis"
    path.write_text(text, newline="")
    return path


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("4 4\n2 3\n1 3\n1 2 4\n3\n", 0),
        ("4 4 0\n2 3\n1 3\n1 2 4\n3", 0),
        ("% first\n4 4\n2 3\n% between\n1 3\n1 2 4\n3\n% last\n", 0),
        ("4 4 1\n2 9 3 8\n1 9 3 7\n1 8 2 7 4 6\n3 6\n", 1),
        ("4 4 10\n5 2 3\n5 1 3\n5 1 2 4\n5 3\n", 1),
        ("4 4 10 2\n5 6 2 3\n5 6 1 3\n5 6 1 2 4\n5 6 3\n", 2),
        ("4 4 111 1\n1 5 2 9 3 8\n1 5 1 9 3 7\n1 5 1 8 2 7 4 6\n1 5 3 6\n", 3),
        ("4 4\r\n2 3\r\n1 3\r\n1 2 4\r\n3\r\n\r\n\r\n", 0),
    ],
)
def test_variants(tmp_path: Path, text: str, columns: int) -> None:
    edges = read_edges(graph(tmp_path, text))
    assert sorted(edges.pairs.tolist()) == TRIANGLE_WITH_TAIL
    assert edges.vertices == 4
    assert len(edges.ignored_columns) == columns


@pytest.mark.parametrize("text", ["5 1\n\n3\n2\n\n\n", "5 1\n\n3\n2\n\n", "% c\n5 1\n% c\n\n3\n% c\n2\n\n\n\n\n"])
def test_blank_lines_are_isolated_vertices(tmp_path: Path, text: str) -> None:
    edges = read_edges(graph(tmp_path, text))
    assert edges.pairs.tolist() == [[1, 2]]
    assert edges.vertices == 5


def star(leaves: int) -> str:
    centre = " ".join(str(leaf) for leaf in range(2, leaves + 2))
    return f"{leaves + 1} {leaves}\n{centre}\n" + "1\n" * leaves


def test_a_row_longer_than_a_block_and_than_the_line_limit(tmp_path: Path) -> None:
    leaves = 200_000
    path = graph(tmp_path, star(leaves))
    assert path.stat().st_size > numbers.BLOCK_BYTES
    edges = read_edges(path)
    assert len(edges.pairs) == leaves
    assert set(edges.pairs[:, 0].tolist()) == {0}


@pytest.mark.parametrize("block_bytes", [20, 33, 64])
def test_block_borders_fall_anywhere(tmp_path: Path, block_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbers, "BLOCK_BYTES", block_bytes)
    partners = [row + 2 if row % 2 == 0 else row for row in range(100)]
    text = "\n".join(f"% a comment of several words\n7 {partner} 5" for partner in partners)
    edges = read_edges(graph(tmp_path, f"100 50 11\n{text}\n"))
    assert edges.pairs.tolist() == [[row, row + 1] for row in range(0, 100, 2)]


@pytest.mark.parametrize("block_bytes", [20, 33, 64])
def test_lines_are_counted_across_blocks_and_comments(
    tmp_path: Path, block_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numbers, "BLOCK_BYTES", block_bytes)
    text = "40 1\n" + "% nothing here\n\n" * 38 + "40\n38\n"
    with pytest.raises(FormatError, match=r"g\.metis:79: vertex 40 lists 38, which does not list it back"):
        read_edges(graph(tmp_path, text))


ONE_SIDED = "a vertex lists one that does not list it back; every edge stands in both of its rows"


def test_an_edge_that_stands_in_one_row_of_a_stream_is_refused() -> None:
    """Without its line: a stream cannot be read again."""
    with pytest.raises(FormatError, match=f"^<stream>: {ONE_SIDED}"):
        read_edges(io.BytesIO(b"3 2\n2 3\n1\n2\n"), format="metis")


@pytest.mark.parametrize("corrected", ["3 2\n2 3\n1\n1\n", "3 0\n\n\n\n"], ids=["balanced", "empty"])
def test_a_file_that_is_corrected_before_its_fault_is_found(
    tmp_path: Path, corrected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, really = graph(tmp_path, "3 2\n2 3\n1\n2\n"), open_content

    def correct(*args: Any) -> Any:
        path.write_text(corrected)
        return really(*args)

    monkeypatch.setattr(metis, "open_content", correct)
    with pytest.raises(FormatError, match=rf"g\.metis: {ONE_SIDED}"):
        read_edges(path)
    monkeypatch.undo()
    assert read_edges(path).vertices == 3
