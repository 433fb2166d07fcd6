"""Matrix Market files of every kind that a graph can come in."""

from __future__ import annotations

import io
import time
from pathlib import Path

import numpy as np
import pytest

from wedgewise.errors import FormatError
from wedgewise.read import numbers, read_edges


def matrix(tmp_path: Path, kind: str, body: str) -> Path:
    path = tmp_path / "g.mtx"
    path.write_text(f"%%MatrixMarket matrix coordinate {kind}\n{body}", newline="")
    return path


@pytest.mark.parametrize(
    ("kind", "values", "columns"),
    [
        ("pattern general", ("", ""), 0),
        ("pattern symmetric", ("", ""), 0),
        ("integer general", ("7", "-8"), 1),
        ("real symmetric", ("0.5", "-1.25e-3"), 1),
        ("real general", ("nan", "+INF"), 1),
        ("double skew-symmetric", ("1d5", ".5"), 1),
        ("complex hermitian", ("1 0", "0.5 -2"), 2),
    ],
)
def test_kinds(tmp_path: Path, kind: str, values: tuple[str, str], columns: int) -> None:
    edges = read_edges(matrix(tmp_path, kind, f"% a comment\n\n5 5 2\n2 1 {values[0]}\n4 3 {values[1]}\n"))
    assert edges.pairs.tolist() == [[1, 0], [3, 2]]
    assert edges.vertices == 5
    assert len(edges.ignored_columns) == columns
    assert edges.origin.notes == (kind,)


def test_explicit_zeros_are_entries(tmp_path: Path) -> None:
    assert len(read_edges(matrix(tmp_path, "real general", "3 3 2\n1 2 0\n2 3 0.0\n")).pairs) == 2


@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n", "  \n\t\n"])
def test_line_ends_blank_lines_and_a_missing_last_newline(tmp_path: Path, end: str) -> None:
    body = end.join(["9 9 2", "1  2", "\t3 4 "])
    assert read_edges(matrix(tmp_path, "pattern general", body)).pairs.tolist() == [[0, 1], [2, 3]]


def test_empty_matrix(tmp_path: Path) -> None:
    edges = read_edges(matrix(tmp_path, "pattern general", "0 0 0\n"))
    assert edges.pairs.shape == (0, 2)
    assert edges.vertices == 0


@pytest.mark.parametrize("block_bytes", [24, 31, 64, 1000])
def test_block_borders_fall_anywhere(tmp_path: Path, block_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbers, "BLOCK_BYTES", block_bytes)
    pairs = np.random.default_rng(2).integers(1, 10_000, (300, 2))
    lines = "".join(f"{source} {target} 0.5\n" for source, target in pairs.tolist())
    edges = read_edges(matrix(tmp_path, "real general", f"10000 10000 300\n{lines}"))
    assert edges.pairs.tolist() == (pairs - 1).tolist()


@pytest.mark.parametrize("block_bytes", [24, 31, 64, 1000])
def test_lines_are_counted_across_blocks(tmp_path: Path, block_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbers, "BLOCK_BYTES", block_bytes)
    lines = "12 34\n" * 300 + "12 99\n"
    path = matrix(tmp_path, "pattern general", f"50 50 301\n{lines}")
    with pytest.raises(FormatError, match=r"g\.mtx:303: an index outside 1 … 50: '99'"):
        read_edges(path)


def test_a_word_without_end_is_refused(tmp_path: Path) -> None:
    path = matrix(tmp_path, "pattern general", "9 9 1\n" + "1" * (3 * numbers.BLOCK_BYTES))
    with pytest.raises(FormatError, match="a word of more than 262,144 bytes"):
        read_edges(path)


@pytest.mark.parametrize("line", ["%\n", "% 1 2 3\n", " \n", "\n", "\t\r\n"])
@pytest.mark.parametrize("lines", [1, 7, 200_000])
def test_comments_and_blank_lines_are_skipped_and_counted(tmp_path: Path, line: str, lines: int) -> None:
    path = matrix(tmp_path, "pattern general", line * lines + "3 3 1\n1 2\n")
    assert read_edges(path).pairs.tolist() == [[0, 1]]
    path = matrix(tmp_path, "pattern general", line * lines + "3 x 1\n1 2\n")
    with pytest.raises(FormatError, match=f":{lines + 2}: "):
        read_edges(path)


@pytest.mark.parametrize("line", [b"%\n", b" \n"])
def test_millions_of_comments_take_a_moment(line: bytes) -> None:
    text = b"%%MatrixMarket matrix coordinate pattern general\n" + line * (8 << 20) + b"3 3 1\n1 2\n"
    begun = time.process_time()
    assert read_edges(io.BytesIO(text)).pairs.tolist() == [[0, 1]]
    assert time.process_time() - begun < 3


@pytest.mark.parametrize(("wrong", "said"), [(b"%a\0b\n", "a NUL byte"), (b"%a\xffb\n", "invalid UTF-8")])
@pytest.mark.parametrize("before", [0, 9])
def test_comments_are_text(wrong: bytes, said: str, before: int) -> None:
    banner = b"%%MatrixMarket matrix coordinate pattern general\n"
    with pytest.raises(FormatError, match=f":{before + 2}: {said}"):
        read_edges(io.BytesIO(banner + b"% fine\n" * before + wrong + b"% \xff \0\n3 3 1\n1 2\n"))


def test_a_comment_that_no_line_ends(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="no size line"):
        read_edges(matrix(tmp_path, "pattern general", "% one\n% two"))
