"""Answers in files: what is read back is what was answered, under the labels of the graph."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import os
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

import wedgewise as ww
from wedgewise.errors import InputError, MissingDependencyError, StorageError, UnknownNameError, VerificationError
from wedgewise.write import answers as module
from wedgewise.write.answers import Answers, per_edge, per_triangle, per_vertex, some_edges, with_value, write_answers

SHAPE = [(0, 1), (1, 2), (2, 0), (2, 3)]  # a triangle and a tail
NAMES = ["plain", 'a "quoted", one', "two\nlines", "größe"]
LABELS: dict[str, list[Any]] = {
    "numbers": [0, 1, 2, 3],
    "integers": [7, 500, 2**31 + 5, 2**53 + 1],
    "text": NAMES,
}
OPEN: dict[str, Callable[..., Any]] = {"": open, ".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}

with_all_labels = pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)


def tail_graph(labels: list[Any]) -> ww.Graph:
    return ww.Graph([(labels[u], labels[v]) for u, v in SHAPE])


def answers_about(graph: ww.Graph) -> dict[str, Answers]:
    """Every kind of answer about the triangle with a tail."""
    return {
        "triangles": per_vertex(graph, "triangles", ww.triangles(graph)),
        "clustering": per_vertex(graph, "clustering", ww.clustering(graph, undefined="nan")),
        "support": per_edge(graph, "support", ww.edge_support(graph)),
        "list": per_triangle(graph.labels, 1, ww.iter_triangles(graph)),
        "edges": some_edges(graph, np.flatnonzero(ww.edge_support(graph))),
        "edges with a value": with_value(some_edges(graph, np.flatnonzero(ww.edge_support(graph))), "truss", 3),
    }


def expected_rows(labels: list[Any]) -> dict[str, list[tuple[Any, ...]]]:
    a, b, c, d = labels
    return {
        "triangles": [(a, 1), (b, 1), (c, 1), (d, 0)],
        "clustering": [(a, 1.0), (b, 1.0), (c, 1 / 3), (d, None)],
        "support": [(a, b, 1), (a, c, 1), (b, c, 1), (c, d, 0)],
        "list": [(a, b, c)],
        "edges": [(a, b), (a, c), (b, c)],
        "edges with a value": [(a, b, 3), (a, c, 3), (b, c, 3)],
    }


COLUMNS = {
    "triangles": ("vertex", "triangles"),
    "clustering": ("vertex", "clustering"),
    "support": ("u", "v", "support"),
    "list": ("u", "v", "w"),
    "edges": ("u", "v"),
    "edges with a value": ("u", "v", "truss"),
}
IN_COLUMNS = [kind for kind in COLUMNS if kind != "list"]  # a listing comes in rows
with_all_answers = pytest.mark.parametrize("kind", COLUMNS)


@with_all_labels
@with_all_answers
@pytest.mark.parametrize(("suffix", "separator"), [(".csv", ","), (".tsv", "\t")])
@pytest.mark.parametrize("compression", OPEN)
def test_text_is_read_back(
    kind: str, labels: list[Any], suffix: str, separator: str, compression: str, tmp_path: Path
) -> None:
    path = tmp_path / f"answer{suffix}{compression}"
    write_answers(answers_about(tail_graph(labels))[kind], path)
    with OPEN[compression](path, "rt", encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file, delimiter=separator, strict=True)
    assert tuple(header) == COLUMNS[kind]
    expected = [tuple("nan" if cell is None else str(cell) for cell in row) for row in expected_rows(labels)[kind]]
    assert list(map(tuple, rows)) == expected


@with_all_labels
@with_all_answers
@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".feather"])
def test_tables_are_read_back(kind: str, labels: list[Any], suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"answer{suffix}"
    write_answers(answers_about(tail_graph(labels))[kind], path)
    table = parquet.read_table(path) if suffix == ".parquet" else feather.read_table(path)
    assert tuple(table.column_names) == COLUMNS[kind]
    rows = [tuple(None if cell != cell else cell for cell in row.values()) for row in table.to_pylist()]
    assert rows == expected_rows(labels)[kind]


@with_all_labels
@pytest.mark.parametrize(("kind", "dtype"), [("triangles", np.int64), ("clustering", np.float64)])
def test_arrays_of_vertices_hold_values_in_the_order_of_labels(
    kind: str, dtype: Any, labels: list[Any], tmp_path: Path
) -> None:
    path = tmp_path / "answer.npy"
    write_answers(answers_about(tail_graph(labels))[kind], path)
    array = np.load(path)
    assert (array.shape, array.dtype) == ((4,), dtype)
    expected = [np.nan if row[-1] is None else row[-1] for row in expected_rows(labels)[kind]]
    np.testing.assert_array_equal(array, expected)


@pytest.mark.parametrize("labels", [LABELS["numbers"], LABELS["integers"]], ids=["numbers", "integers"])
@pytest.mark.parametrize("kind", ["support", "list", "edges", "edges with a value"])
@pytest.mark.parametrize("compression", ["", ".gz"])
def test_arrays_of_edges_and_triangles_hold_integer_labels(
    kind: str, labels: list[Any], compression: str, tmp_path: Path
) -> None:
    path = tmp_path / f"answer.npy{compression}"
    write_answers(answers_about(tail_graph(labels))[kind], path)
    with OPEN[compression](path, "rb") as file:
        array = np.load(file)
    assert array.tolist() == [list(row) for row in expected_rows(labels)[kind]]
    narrow = kind in ("list", "edges") and labels == LABELS["numbers"]
    assert array.dtype == (np.int32 if narrow else np.int64)


@pytest.mark.parametrize("labels", [LABELS["numbers"], LABELS["integers"]], ids=["numbers", "integers"])
@pytest.mark.parametrize("kind", IN_COLUMNS)
@pytest.mark.parametrize("compression", OPEN)
def test_archives_hold_an_array_per_column(kind: str, labels: list[Any], compression: str, tmp_path: Path) -> None:
    path = tmp_path / f"answer.npz{compression}"
    write_answers(answers_about(tail_graph(labels))[kind], path)
    with OPEN[compression](path, "rb") as file, np.load(io.BytesIO(file.read()), allow_pickle=False) as archive:
        columns = {name: archive[name] for name in archive.files}
    assert tuple(columns) == COLUMNS[kind]
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    assert [tuple(None if cell != cell else cell for cell in row) for row in rows] == expected_rows(labels)[kind]
    narrow = np.dtype(np.int32 if labels == LABELS["numbers"] else np.int64)
    values = {"triangles": np.int64, "clustering": np.float64, "support": np.int64, "truss": np.int64}
    assert {name: column.dtype for name, column in columns.items()} == {
        name: values.get(name, narrow) for name in COLUMNS[kind]
    }


def test_an_archive_is_the_same_bytes_every_time(tmp_path: Path) -> None:
    for name in ("a.npz", "b.npz"):
        write_answers(answers_about(tail_graph(LABELS["numbers"]))["support"], tmp_path / name)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    with zipfile.ZipFile(tmp_path / "a.npz") as archive:
        sizes_follow = 0x08  # readers that start at the front need the sizes there
        assert [member.flag_bits & sizes_follow for member in archive.infolist()] == [0, 0, 0]


def test_a_listing_is_not_written_by_column(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"answer.npz: .npz holds columns, .* write .npy or .parquet"):
        write_answers(answers_about(tail_graph(LABELS["numbers"]))["list"], tmp_path / "answer.npz")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("kind", "suffix"), [("support", "npy"), ("list", "npy"), ("edges", "npy"), *((kind, "npz") for kind in IN_COLUMNS)]
)
def test_text_labels_are_no_numbers(kind: str, suffix: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=rf"answer.{suffix}: .{suffix} holds numbers, .* write .csv or .parquet"):
        write_answers(answers_about(tail_graph(NAMES))[kind], tmp_path / f"answer.{suffix}")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("kind", "suffix"),
    [
        *((kind, suffix) for kind in COLUMNS for suffix in ("csv", "parquet", "arrow", "npy")),
        *((kind, "npz") for kind in IN_COLUMNS),
    ],
)
def test_an_empty_graph_has_an_empty_answer(kind: str, suffix: str, tmp_path: Path) -> None:
    graph = ww.Graph(np.empty((0, 2), np.int64))
    path = tmp_path / f"answer.{suffix}"
    answers = {**answers_about(graph), "list": per_triangle(graph.labels, 0, ww.iter_triangles(graph))}
    write_answers(answers[kind], path)
    if suffix == "csv":
        assert path.read_text() == ",".join(COLUMNS[kind]) + "\n"
    elif suffix == "npy":
        assert len(np.load(path)) == 0
    elif suffix == "npz":
        assert {name: column.tolist() for name, column in np.load(path).items()} == {name: [] for name in COLUMNS[kind]}
    else:
        table = parquet.read_table(path) if suffix == "parquet" else feather.read_table(path)
        assert (table.num_rows, tuple(table.column_names)) == (0, COLUMNS[kind])


@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow", "npy", "npz"])
def test_many_blocks_are_one_answer(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TABLE_ROWS", 7)
    monkeypatch.setattr(module, "TEXT_ROWS", 3)
    graph = ww.Graph([(u, v) for v in range(1000, 1009) for u in range(1000, v)])
    path = tmp_path / f"answer.{suffix}"
    write_answers(per_edge(graph, "support", np.arange(36)), path)
    expected = [[u + 1000, v + 1000, at] for at, (u, v) in enumerate(graph.edges.tolist())]
    if suffix == "csv":
        assert np.loadtxt(path, dtype=int, delimiter=",", skiprows=1).tolist() == expected
    elif suffix == "npy":
        assert np.load(path).tolist() == expected
    elif suffix == "npz":
        with np.load(path) as archive:
            assert np.stack([archive[name] for name in COLUMNS["support"]], axis=1).tolist() == expected
    else:
        table = parquet.read_table(path) if suffix == "parquet" else feather.read_table(path)
        assert [list(row.values()) for row in table.to_pylist()] == expected


def test_floats_keep_all_digits(tmp_path: Path) -> None:
    graph = tail_graph(LABELS["numbers"])
    values = np.array([1 / 3, 5e-324, 0.1 + 0.2, 1.0])
    write_answers(per_vertex(graph, "clustering", values), tmp_path / "answer.csv")
    with (tmp_path / "answer.csv").open(newline="") as file:
        assert [float(row["clustering"]) for row in csv.DictReader(file)] == values.tolist()


def test_labels_that_are_no_text_are_written_nowhere(tmp_path: Path) -> None:
    graph = ww.Graph(nx.Graph([(("a", 1), "b"), ("b", 2.5), (2.5, ("a", 1))]))
    answers = per_vertex(graph, "triangles", ww.triangles(graph))
    for suffix in ("csv", "tsv", "parquet", "arrow"):
        with pytest.raises(InputError, match=r"the label \('a', 1\) of type tuple is no text"):
            write_answers(answers, tmp_path / f"answer.{suffix}")
    assert os.listdir(tmp_path) == []
    write_answers(answers, tmp_path / "answer.npy")
    assert np.load(tmp_path / "answer.npy").tolist() == [1, 1, 1]


def test_integer_labels_are_as_narrow_as_they_can_be(tmp_path: Path) -> None:
    for labels, kind in ((LABELS["numbers"], pa.int32()), (LABELS["integers"], pa.int64())):
        write_answers(answers_about(tail_graph(labels))["list"], tmp_path / "answer.parquet")
        assert parquet.read_schema(tmp_path / "answer.parquet").types == [kind] * 3


@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow", "npy"])
@pytest.mark.parametrize("announced", [0, 2])
def test_an_answer_with_other_rows_than_announced_is_refused(suffix: str, announced: int, tmp_path: Path) -> None:
    graph = tail_graph(LABELS["numbers"])
    with pytest.raises(VerificationError, match=f"1 rows of {announced} that were counted"):
        write_answers(per_triangle(graph.labels, announced, ww.iter_triangles(graph)), tmp_path / f"answer.{suffix}")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npy", "npz"])
def test_edges_with_other_rows_than_announced_are_refused(suffix: str, tmp_path: Path) -> None:
    answers = some_edges(tail_graph(LABELS["numbers"]), np.arange(3))
    with pytest.raises(VerificationError, match="3 rows of 4 that were counted"):
        write_answers(replace(answers, rows=4), tmp_path / f"answer.{suffix}")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["answer", "answer.txt", "answer.gz", "answer.npx"])
def test_unknown_suffixes_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=rf"{name}: the suffix names no format for answers; .* \.csv, \.tsv"):
        write_answers(answers_about(tail_graph(LABELS["numbers"]))["list"], tmp_path / name)
    assert os.listdir(tmp_path) == []


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="could not be written"):
        write_answers(answers_about(tail_graph(LABELS["numbers"]))["list"], tmp_path / "nowhere" / "answer.csv")


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_pyarrow_is_named_where_it_is_missing(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingDependencyError, match=r"wedgewise\[arrow\]"):
        write_answers(answers_about(tail_graph(LABELS["numbers"]))["list"], tmp_path / f"answer.{suffix}")
    assert os.listdir(tmp_path) == []
