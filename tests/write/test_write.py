"""What writers refuse, and what they leave behind when they do."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from wedgewise.errors import InputError, MissingDependencyError, UnknownNameError
from wedgewise.read import read_edges
from wedgewise.write import edges as write
from wedgewise.write._decimal import spell
from wedgewise.write.edges import BLOCK_PAIRS, WRITERS, write_edges, writer_of

PATH = np.array([[0, 1], [1, 2]])
COMPRESSORS: dict[str, Any] = {"gz": gzip.GzipFile, "bz2": bz2.BZ2File, "xz": lzma.LZMAFile}

REFUSED: list[tuple[str, Any, dict[str, Any], str]] = [
    (
        "g.txt",
        np.array([[0.5, 1.0]]),
        {},
        "a block of float64 and shape (1, 2); pass integer arrays of shape (k, 2)",
    ),
    ("g.txt", np.arange(3), {}, "a block of int64 and shape (3,); pass integer arrays of shape (k, 2)"),
    ("g.txt", np.array([[0, 1], [2, -1]]), {}, "row 1 holds -1, outside 0 … 2^63 − 1; renumber vertices"),
    ("g.mtx", PATH, {"vertices": 2}, "row 1 holds 2, outside 0 … 1; renumber vertices"),
    ("g.txt", PATH, {"labels": ["a", "b"]}, "row 1 holds 2, outside 0 … 1; renumber vertices"),
    ("g.txt", PATH, {"labels": ["a", "b", "c d"]}, "{path}: the label 'c d' cannot stand in a text file"),
    ("g.csv", PATH, {"labels": ["a", "#b", "c"]}, "{path}: the label '#b' cannot stand in a text file"),
    ("g.csv", PATH, {"labels": ["#", "", "é,"]}, "{path}: the label '#' cannot stand in a text file"),
    ("g.csv", PATH, {"labels": ["a", "", "é,"]}, "{path}: the label '' cannot stand in a text file"),
    ("g.csv", PATH, {"labels": ["a#", "é", "é,"]}, "{path}: the label 'é,' cannot stand in a text file"),
    ("g.csv", PATH, {"labels": ["a", "b", ("c", 1)]}, "the label ('c', 1) of type tuple is no text"),
    (
        "g.npy",
        PATH,
        {"labels": ["a", "b", "c"]},
        "{path}: this format holds integers only; write text labels",
    ),
    (
        "g.mtx",
        PATH,
        {"labels": np.arange(3)},
        "{path}: this format numbers vertices by row; write it without",
    ),
    (
        "g.txt",
        PATH,
        {"labels": np.array([0.0, 1.0, 2.0])},
        "{path}: labels of float64 that are not all 0 … 2^63 − 1; write text labels",
    ),
    (
        "g.npy",
        PATH,
        {"labels": np.array([0, 1, -1])},
        "{path}: labels of int64 that are not all 0 … 2^63 − 1; write text labels",
    ),
    (
        "g.csv",
        PATH,
        {"labels": np.array([0, 1, 2**63], np.uint64)},
        "{path}: labels of uint64 that are not all 0 … 2^63 − 1; write text labels",
    ),
    ("g.metis", np.array([[0, 1], [1, 0]]), {}, "{path}: METIS holds simple graphs"),
    ("g.metis", np.array([[1, 1]]), {}, "{path}: METIS holds simple graphs"),
    ("g.metis", np.array([[1, 2**31]]), {}, "{path}: METIS holds simple graphs of below 2^31 vertices"),
    (
        "g.bel32",
        np.array([[0, 2**31]]),
        {},
        "{path}: an id of 2^31 or more does not fit; name the file .bel64",
    ),
    (
        "g.bel",
        np.array([[0, 2**32]]),
        {},
        "{path}: ids of 2^32 and more look like 32-bit pairs; name the file",
    ),
    (
        "g.bel",
        np.array([[1, 0], [2, 0]]),
        {},
        "{path}: pairs that all end in 0 look like 64-bit ids; name the file",
    ),
]


@pytest.mark.parametrize(("name", "edges", "options", "message"), REFUSED)
def test_refusals_leave_nothing(
    tmp_path: Path, name: str, edges: NDArray[Any], options: dict[str, Any], message: str
) -> None:
    path = tmp_path / name
    with pytest.raises(InputError) as caught:
        write_edges(edges, path, **options)
    assert str(caught.value).startswith(message.format(path=path))
    assert os.listdir(tmp_path) == []


def test_a_stream_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "g.txt"
    path.write_text("old")

    def blocks() -> Iterator[NDArray[Any]]:
        yield PATH
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_edges(blocks(), path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["g.txt"]


def test_formats_are_listed(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=f"no format named 'xls' to write; there are: {', '.join(WRITERS)}"):
        write_edges(PATH, tmp_path / "g.xls")
    assert writer_of("g.dat", "csv") is WRITERS["csv"]
    assert writer_of("G.MTX.GZ") is WRITERS["mtx"]


def test_zst_without_zstandard_names_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(MissingDependencyError, match=r'pip install "wedgewise\[zstd\]"'):
        write_edges(PATH, tmp_path / "g.txt.zst")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("suffix", [".txt", ".txt.gz", ".npz", ".mtx", ".bel"])
def test_the_same_edges_give_the_same_bytes(tmp_path: Path, suffix: str) -> None:
    first, second = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
    write_edges(PATH, first)
    write_edges(PATH, second)
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize(("suffix", "compression"), COMPRESSORS.items())
@pytest.mark.parametrize("name", ["txt", "npy", "npz", "mtx", "metis", "parquet", "arrow"])
def test_signals_are_heard_between_small_pieces(
    tmp_path: Path, name: str, suffix: str, compression: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []

    def write(file: Any, data: Any, usual: Any = compression.write) -> int:
        sizes.append(len(data))
        return int(usual(file, data))

    monkeypatch.setattr(compression, "write", write)
    monkeypatch.setattr("wedgewise.write.compressed.PIECE_BYTES", 500)
    pairs = np.argwhere(np.triu(np.ones((150, 150)), 1))
    write_edges(pairs, tmp_path / f"g.{name}.{suffix}")
    assert max(sizes) == 500
    assert len(read_edges(tmp_path / f"g.{name}.{suffix}").pairs) == len(pairs)


def test_compression_that_is_interrupted_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, pieces = tmp_path / "g.npz.xz", iter(range(3))
    path.write_text("old")

    def write(file: Any, data: Any, usual: Any = lzma.LZMAFile.write) -> int:
        if next(pieces, None) is None:
            raise KeyboardInterrupt
        return int(usual(file, data))

    monkeypatch.setattr(lzma.LZMAFile, "write", write)
    with pytest.raises(KeyboardInterrupt):
        write_edges(np.arange(2**14).reshape(-1, 2), path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == [path.name]


def test_scipy_reads_what_is_written(tmp_path: Path) -> None:
    scipy_io = pytest.importorskip("scipy.io")
    path = tmp_path / "g.mtx"
    write_edges(PATH, path, vertices=4)
    matrix = scipy_io.mmread(path).toarray()
    assert matrix.shape == (4, 4)
    assert np.argwhere(np.triu(matrix)).tolist() == PATH.tolist()
    assert np.array_equal(matrix, matrix.T)


def test_numpy_reads_what_is_written(tmp_path: Path) -> None:
    write_edges(PATH, tmp_path / "g.npy")
    write_edges(PATH, tmp_path / "g.npz", vertices=4)
    assert np.load(tmp_path / "g.npy").tolist() == PATH.tolist()
    with np.load(tmp_path / "g.npz") as archive:
        assert archive["edges"].tolist() == PATH.tolist()
        assert int(archive["n"]) == 4


@pytest.mark.parametrize("suffix", [".metis", ".npz", ".npz.gz", ".npy", ".npy.gz"])
def test_blocks_are_written_as_one(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Formats that begin with a count."""
    pairs = np.argwhere(np.triu(np.random.default_rng(1).random((60, 60)) < 0.2, 1))
    for name, most in (("whole", BLOCK_PAIRS), ("blocks", 7)):
        monkeypatch.setattr(write, "BLOCK_PAIRS", most)
        monkeypatch.setattr(write, "METIS_NEIGHBOURS", most)
        assert write_edges(pairs, tmp_path / f"{name}{suffix}", vertices=61) == len(pairs)
    assert (tmp_path / f"whole{suffix}").read_bytes() == (tmp_path / f"blocks{suffix}").read_bytes()
    found = read_edges(tmp_path / f"blocks{suffix}")
    assert sorted({(min(pair), max(pair)) for pair in found.pairs.tolist()}) == [tuple(pair) for pair in pairs.tolist()]


def test_ids_between_31_and_32_bits(tmp_path: Path) -> None:
    pairs = np.array([[0, 2**32 - 1], [2**31, 0]], np.uint32)
    write_edges(pairs, tmp_path / "g.bel")
    assert (tmp_path / "g.bel").stat().st_size == 32
    assert read_edges(tmp_path / "g.bel").pairs.tolist() == pairs.tolist()
    write_edges(pairs[1:] - 2 * (pairs[1:] > 0), tmp_path / "g.mtx")
    assert (tmp_path / "g.mtx").read_text().splitlines()[2:] == [f"{2**31 - 1} 1"]
    assert read_edges(tmp_path / "g.mtx").pairs.tolist() == [[2**31 - 2, 0]]


def test_no_numbers_are_no_text() -> None:
    assert spell(np.empty(0, np.uint32), np.empty(0, np.uint32)) == b""
