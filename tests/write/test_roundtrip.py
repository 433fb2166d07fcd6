"""What is written in any format and compression is read back, edge for edge."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from wedgewise.read import read_edges
from wedgewise.write.edges import WRITERS, write_edges

pytest.importorskip("pyarrow")
pytest.importorskip("zstandard")

COMPRESSIONS = ("", ".gz", ".bz2", ".xz", ".zst")
KEEP_ORDER = [name for name, writer in WRITERS.items() if writer.labels != "none"]
ROWS_ONLY = [name for name, writer in WRITERS.items() if writer.labels == "none"]
EDGES = np.array([[0, 1], [1, 2], [0, 2], [7, 9], [2, 5], [3, 70_000], [70_000, 12_345_678]])


def edge_set(pairs: NDArray[Any]) -> list[tuple[int, int]]:
    return sorted((min(pair), max(pair)) for pair in pairs.tolist())


def in_blocks(edges: NDArray[Any], size: int) -> Iterator[NDArray[Any]]:
    for begin in range(0, len(edges), size):
        yield edges[begin : begin + size]


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("name", KEEP_ORDER)
def test_pairs_come_back_in_order(tmp_path: Path, name: str, compression: str) -> None:
    path = tmp_path / f"g.{name}{compression}"
    assert write_edges(EDGES, path) == len(EDGES)
    edges = read_edges(path)
    assert edges.pairs.tolist() == EDGES.tolist()
    assert edges.origin.name.startswith(str(path))


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("name", ROWS_ONLY)
def test_edges_and_isolated_rows_come_back(tmp_path: Path, name: str, compression: str) -> None:
    path = tmp_path / f"g.{name}{compression}"
    assert write_edges(EDGES[:5], path, vertices=12) == 5
    edges = read_edges(path)
    assert edge_set(edges.pairs) == edge_set(EDGES[:5])
    assert edges.vertices == 12


@pytest.mark.parametrize("compression", ["", ".gz"])
@pytest.mark.parametrize("name", list(WRITERS))
def test_a_stream_of_blocks_writes_what_an_array_does(tmp_path: Path, name: str, compression: str) -> None:
    source = EDGES[:5] if name in ROWS_ONLY else EDGES
    count = 12 if name in ROWS_ONLY else 20_000_000
    whole, streamed = tmp_path / f"whole.{name}{compression}", tmp_path / f"streamed.{name}{compression}"
    write_edges(source, whole, vertices=count)
    assert write_edges(in_blocks(source, 2), streamed, vertices=count) == len(source)
    assert edge_set(read_edges(streamed).pairs) == edge_set(read_edges(whole).pairs) == edge_set(source)


@pytest.mark.parametrize("name", list(WRITERS))
def test_no_edges_at_all(tmp_path: Path, name: str) -> None:
    path = tmp_path / f"g.{name}"
    nothing = np.empty((0, 2), np.int64)
    assert write_edges(nothing, path, vertices=3) == 0
    if name in ("txt", "tsv", "csv"):
        assert path.read_bytes() == b""
        return
    edges = read_edges(path)
    assert edges.pairs.shape == (0, 2)
    assert edges.vertices == (3 if name in (*ROWS_ONLY, "npz") else None)


@pytest.mark.parametrize("name", ["txt", "tsv", "csv", "parquet", "arrow"])
def test_text_labels_come_back(tmp_path: Path, name: str) -> None:
    path = tmp_path / f"g.{name}"
    names = ["ada", "bob", "10.1/x(2);3", "Ωmega"]
    pairs = np.array([[0, 1], [1, 2], [2, 3], [3, 0]])
    write_edges(pairs, path, labels=names)
    edges = read_edges(path)
    assert edges.names == names
    assert edges.pairs.tolist() == pairs.tolist()


def test_integer_labels_are_written_in_place_of_vertices(tmp_path: Path) -> None:
    path = tmp_path / "g.txt"
    write_edges(np.array([[0, 1], [1, 2]]), path, labels=np.array([100, 2**40, 7]))
    assert path.read_text() == f"100 {2**40}\n{2**40} 7\n"


@pytest.mark.parametrize("width", [1, 3, 4, 5, 8, 9, 12, 13, 19])
def test_decimal_text_of_every_width(tmp_path: Path, width: int) -> None:
    path = tmp_path / "g.txt"
    edge = min(10**width - 1, 2**63 - 1)
    pairs = np.array([[0, edge], [10 ** (width - 1), 1], [min(10_000, edge), min(10_001, edge)]], np.uint64)
    write_edges(pairs, path)
    assert path.read_text() == "".join(f"{source} {target}\n" for source, target in pairs.tolist())


def test_many_random_edges_through_block_borders(tmp_path: Path) -> None:
    pairs = np.random.default_rng(5).integers(0, 300_000, (150_000, 2))
    pairs = pairs[pairs[:, 0] < pairs[:, 1]]
    pairs = np.unique(pairs, axis=0)
    for name in ("txt", "mtx", "metis", "npy", "bel"):
        path = tmp_path / f"g.{name}"
        write_edges(pairs, path)
        read = np.sort(read_edges(path).pairs.astype(np.int64), axis=1)
        assert np.array_equal(np.unique(read, axis=0), pairs)
        assert len(read) == len(pairs)
