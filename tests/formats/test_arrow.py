"""Parquet, Arrow IPC and Feather tables."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from wedgewise.errors import FormatError, LimitError, MemoryLimitError, MissingDependencyError
from wedgewise.read import arrow, read_edges
from wedgewise.read.limits import Limits

pyarrow = pytest.importorskip("pyarrow")

KINDS = ("parquet", "arrow", "feather", "stream")


def save(folder: Path, kind: str, columns: dict[str, Any]) -> Path:
    from pyarrow import feather, ipc, parquet

    path = folder / f"g.{kind}"
    table = columns if isinstance(columns, pyarrow.Table) else pyarrow.table(columns)
    if kind == "parquet":
        parquet.write_table(table, path, row_group_size=2)
    elif kind == "feather":
        feather.write_feather(table, str(path), compression="lz4")
    else:
        with (ipc.new_file if kind == "arrow" else ipc.new_stream)(str(path), table.schema) as writer:
            writer.write_table(table, 2)
    return path


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("names", [("source", "target"), ("Src", "DST"), ("u", "v"), ("from", "to"), ("left", "right")])
def test_integer_columns(tmp_path: Path, kind: str, names: tuple[str, str]) -> None:
    extra = {"weight": [0.5, 0.5, 0.5]} if names == ("left", "right") else {}
    before = {} if extra else {"id": [9, 9, 9]}
    path = save(tmp_path, kind, before | {names[0]: [0, 1, 2], names[1]: [1, 2, 40]} | extra)
    edges = read_edges(path)
    assert edges.pairs.tolist() == [[0, 1], [1, 2], [2, 40]]
    assert edges.dropped_columns == 1
    assert edges.vertices is None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("as_dictionary", [False, True])
def test_strings_are_numbered_by_first_appearance(tmp_path: Path, kind: str, as_dictionary: bool) -> None:
    columns = [pyarrow.array(texts) for texts in (["b", "a", "b"], ["c", "b", "d"])]
    if as_dictionary:
        columns = [column.dictionary_encode() for column in columns]
    edges = read_edges(save(tmp_path, kind, dict(zip(("u", "v"), columns, strict=True))))
    assert edges.names == ["b", "c", "a", "d"]
    assert edges.pairs.tolist() == [[0, 1], [2, 0], [0, 3]]
    assert edges.vertices == 4


@pytest.mark.parametrize("kind", KINDS)
def test_no_rows(tmp_path: Path, kind: str) -> None:
    empty = pyarrow.array([], pyarrow.int64())
    assert read_edges(save(tmp_path, kind, {"u": empty, "v": empty})).pairs.shape == (0, 2)
    texts = pyarrow.array([], pyarrow.string())
    assert read_edges(save(tmp_path, kind, {"u": texts, "v": texts})).names == []


INTEGERS = pyarrow.array([0, 1, 2])
REFUSED = [
    ({"u": [0, 1, None], "v": INTEGERS}, {}, "row 2 of column 'u' is null; drop rows with nulls"),
    ({"u": INTEGERS}, {}, "no two columns to take the ends of edges from: 'u'; name them source and target"),
    (
        {"u": INTEGERS, "v": ["a", "b", "c"]},
        {},
        "columns that are not both integers, or both strings: 'u: int64",
    ),
    (
        {"u": [0.5, 1.0, 2.0], "v": INTEGERS},
        {},
        "columns that are not both integers, or both strings: 'u: double",
    ),
    ({"u": INTEGERS, "v": INTEGERS}, {"labels": "text"}, "columns that are not both strings: 'u: int64"),
    ({"u": INTEGERS, "v": [1, -5, 2]}, {}, "row 1 holds a number outside 0 … 2^63 − 1: '-5'; renumber"),
    (
        {"u": INTEGERS, "v": pyarrow.array([1, 2, 3], pyarrow.uint64())},
        {},
        "one column is uint64 and the other",
    ),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("columns", "options", "message"), REFUSED)
def test_refusals(tmp_path: Path, kind: str, columns: dict[str, Any], options: dict[str, str], message: str) -> None:
    path = save(tmp_path, kind, columns)
    with pytest.raises(FormatError) as caught:
        read_edges(path, **options)  # type: ignore[arg-type]
    assert str(caught.value).startswith(f"{path}: {message}")


def test_more_rows_than_the_limits_allow(tmp_path: Path) -> None:
    path = save(tmp_path, "parquet", {"u": INTEGERS, "v": INTEGERS})
    with pytest.raises(LimitError, match="pairs 3 over the limit of 2"):
        read_edges(path, limits=Limits(pairs=2))
    with pytest.raises(LimitError, match="decompressed bytes 48 over the limit of 40"):
        read_edges(path, limits=Limits(decompressed_bytes=40))


def test_without_pyarrow_the_remedy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(tmp_path, "parquet", {"u": INTEGERS, "v": INTEGERS})
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingDependencyError, match=r'pip install "wedgewise\[arrow\]"'):
        read_edges(path)


def test_what_arrow_cannot_allocate_is_ours() -> None:
    refused = pytest.raises(MemoryLimitError, match=r"g\.parquet: Arrow could not allocate what the file declares")
    with refused, arrow._failures_named("g.parquet"):
        raise MemoryError("malloc of size 2^60 failed")
