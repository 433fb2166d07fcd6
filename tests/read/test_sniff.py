"""Content decides about the format; the suffix only where content cannot; `format` overrides both."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

from wedgewise.errors import FormatError, InputError, UnknownNameError
from wedgewise.read import FORMATS, read_edges
from wedgewise.read.sniff import data_suffix
from wedgewise.write.edges import write_edges

EDGES = np.array([[0, 1], [1, 2], [0, 2], [2, 5]])


@pytest.mark.parametrize(
    ("written", "expected"),
    [("npy", "npy"), ("npz", "npz"), ("mtx", "Matrix Market"), ("parquet", "Parquet"), ("arrow", "Arrow")],
)
@pytest.mark.parametrize("named", ["g", "g.txt", "g.graph", "g.gz"])
def test_a_signature_outweighs_the_suffix(tmp_path: Path, written: str, expected: str, named: str) -> None:
    pytest.importorskip("pyarrow")
    source = tmp_path / f"source.{written}"
    write_edges(EDGES, source)
    target = tmp_path / named
    source.rename(target)
    assert read_edges(target).origin.format == expected


@pytest.mark.parametrize("suffix", ["bel", "bel32", "bel64"])
@pytest.mark.parametrize(
    "beginning",
    [
        b"ARROW1\0\0",
        b"%%MatrixMarket m",
        b"PAR1\x15\0\x15\0",
        b"\x93NUMPY\1\0v\0{     ",
        b"\x80\4abcdef",
    ],
)
def test_the_suffix_of_raw_pairs_is_believed(tmp_path: Path, suffix: str, beginning: bytes) -> None:
    path = tmp_path / f"g.{suffix}"
    path.write_bytes(beginning + bytes(-len(beginning) % 16) + bytes(16))
    named = read_edges(path, format=suffix)
    assert read_edges(path).pairs.tolist() == named.pairs.tolist()
    assert read_edges(path).origin.format == named.origin.format


@pytest.mark.parametrize(
    ("name", "expected"),
    [("g.metis", "METIS"), ("g.graph", "METIS"), ("g.GRAPH", "METIS"), ("g.txt", "text"), ("g", "text")],
)
def test_the_suffix_tells_metis_from_an_edge_list(tmp_path: Path, name: str, expected: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"2 1\n2\n1\n" if expected == "METIS" else b"2 1\n2 3\n1 3\n")
    assert read_edges(path).origin.format == expected


def test_format_overrides_the_suffix(tmp_path: Path) -> None:
    path = tmp_path / "g.graph"
    path.write_bytes(b"2 1\n5 7\n")
    assert read_edges(path, format="text").pairs.tolist() == [[2, 1], [5, 7]]
    path = tmp_path / "pairs.dat"
    path.write_bytes(EDGES.astype("<i4").tobytes())
    assert read_edges(path, format="bel32").pairs.tolist() == EDGES.tolist()


def test_a_wrong_format_is_named_by_its_reader(tmp_path: Path) -> None:
    path = tmp_path / "g.txt"
    path.write_bytes(b"0 1\n")
    with pytest.raises(FormatError, match=r"no \.npy header"):
        read_edges(path, format="npy")


def test_a_stream_is_sniffed_like_a_file(tmp_path: Path) -> None:
    path = tmp_path / "g.mtx"
    write_edges(EDGES, path)
    edges = read_edges(io.BytesIO(path.read_bytes()))
    assert edges.origin.format == "Matrix Market"
    assert edges.vertices == 6


def test_matrix_market_banner_in_any_case(tmp_path: Path) -> None:
    path = tmp_path / "g"
    path.write_bytes(b"%%matrixmarket MATRIX Coordinate Pattern Symmetric\n2 2 1\n2 1\n")
    assert read_edges(path).pairs.tolist() == [[1, 0]]


def test_names_of_formats_and_labels_are_listed(tmp_path: Path) -> None:
    path = tmp_path / "g.txt"
    path.write_bytes(b"0 1\n")
    with pytest.raises(UnknownNameError, match=f"no format named 'xls'; there are: {', '.join(FORMATS)}"):
        read_edges(path, format="xls")
    with pytest.raises(UnknownNameError, match="no kind of labels named 'float'; there are: auto, int, text"):
        read_edges(path, labels="float")


def test_text_labels_are_refused_where_a_format_has_none(tmp_path: Path) -> None:
    path = tmp_path / "g.npy"
    write_edges(EDGES, path)
    with pytest.raises(InputError, match='labels="text" where the format holds integers'):
        read_edges(path, labels="text")


@pytest.mark.parametrize(
    ("name", "suffix"),
    [("a/b.mtx.gz", ".mtx"), ("b.gz", ""), ("B.BEL", ".bel"), ("-", ""), ("x.tar.metis.ZST", ".metis")],
)
def test_compression_suffixes_are_left_aside(name: str, suffix: str) -> None:
    assert data_suffix(name) == suffix
