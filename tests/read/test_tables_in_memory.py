"""Tables in memory: an index of pandas, kinds of labels, positions of columns, and what only looks like a table."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from pyarrow import parquet

import wedgewise as ww
from read.table_forms import TABLE_FORMS, Form
from wedgewise.errors import FormatError, InputError, UnknownNameError

every_table = pytest.mark.parametrize("form", TABLE_FORMS, ids=lambda form: form.name.replace(" ", "-"))

Edges = set[tuple[Any, Any]]


def edges(graph: ww.Graph) -> Edges:
    return {(graph.labels[u], graph.labels[v]) for u, v in graph.edges.tolist()}


def as_parquet(frame: pandas.DataFrame, folder: Path) -> Path:
    path = folder / "frame.parquet"
    frame.to_parquet(path)
    return path


FRAME = pandas.DataFrame({"source": [5, 7, 8], "target": [7, 8, 5], "amount": [70, 50, 90]})
ENDS = {(5, 7), (7, 8), (5, 8)}
INDEXED = {
    "source": FRAME.set_index("source"),
    "target": FRAME.set_index("target"),
    "both": FRAME.set_index(["target", "source"]),
    "a time": FRAME.set_index(pandas.Index([3, 1, 2], name="time")),
    "no name": FRAME.set_index(pandas.Index([3, 1, 2])),
    "text": FRAME.set_index(pandas.Index(["c", "a", "b"])),
    "one of two without a name": FRAME.set_index(["source", pandas.Index([3, 1, 2])]),
}


@pytest.mark.parametrize("name", INDEXED)
def test_levels_of_an_index_with_a_name_are_columns(name: str, tmp_path: Path) -> None:
    frame = INDEXED[name]
    graph = ww.Graph(frame)
    assert edges(graph) == ENDS
    for other in (as_parquet(frame, tmp_path), pyarrow.Table.from_pandas(frame)):
        read = ww.Graph(other)
        assert edges(read) == ENDS
        assert read.cleaned == graph.cleaned


def test_an_index_has_weights_and_positions(tmp_path: Path) -> None:
    frame = FRAME.set_index("amount")
    for form in (frame, as_parquet(frame, tmp_path)):
        graph = ww.Graph(form, source=0, target=1, weight=2)
        assert graph.cleaned.columns == ("source", "target", "amount")
        assert graph.weights is not None
        assert graph.weights.tolist() == [70, 90, 50]


def test_an_index_is_chosen_where_nothing_else_decides() -> None:
    frame = pandas.DataFrame({"x": ["b", "c"], "y": [1.5, 2.5]}, index=pandas.Index(["a", "b"], name="z"))
    with pytest.raises(FormatError, match=r"3 columns, and nothing says which .*: 'x', 'y', 'z'"):
        ww.Graph(frame)
    assert edges(ww.Graph(frame, source="z", target="x")) == {("a", "b"), ("b", "c")}
    assert ww.Graph(frame, weight="y").cleaned.columns == ("x", "z", "y")


def test_a_range_that_pandas_does_not_store_is_missed(tmp_path: Path) -> None:
    frame = pandas.DataFrame({"target": [6, 7], "w": [1, 2]}, index=pandas.RangeIndex(5, 7, name="source"))
    assert edges(ww.Graph(frame)) == {(5, 6), (6, 7)}
    path = as_parquet(frame, tmp_path)
    with pytest.raises(FormatError, match=r"column 'source' is not stored: it was a range .* after \.reset_index\(\)"):
        ww.Graph(path)
    assert edges(ww.Graph(path, source="target", target="w")) == {(1, 6), (2, 7)}
    harmless = FRAME.set_index(pandas.RangeIndex(3, name="row"))
    assert ww.Graph(harmless).cleaned == ww.Graph(as_parquet(harmless, tmp_path)).cleaned


@pytest.mark.parametrize("metadata", [b"{", b"[]", b'{"index_columns": 3}', b'{"index_columns": [{"kind": "range"}]}'])
def test_metadata_of_others_is_no_matter(metadata: bytes) -> None:
    table = pyarrow.table({"a": [1], "b": [2]}).replace_schema_metadata({"pandas": metadata})
    assert edges(ww.Graph(table)) == {(1, 2)}


def test_records_are_no_pairs() -> None:
    with pytest.raises(InputError, match=r"<pairs>: row 0 is a dict, .*; pass a table, such as pandas\.DataFrame"):
        ww.Graph([{"source": 1, "target": 2}, {"source": 2, "target": 3}])
    with pytest.raises(InputError, match="<pairs>: row 1 is a dict"):
        ww.Graph([(1, 2), {"source": 2, "target": 3, "w": 1}])


def test_sets_have_no_directions() -> None:
    for labels in ((1, 2, 3), ("a", "b", "c")):
        one, two, three = labels
        graph = ww.Graph([{one, two}, frozenset((two, three)), {three, one}], directed=True)
        assert ww.clustering(graph).tolist() == [1.0, 1.0, 1.0]


def test_weights_are_given_once() -> None:
    columns = {"u": [1, 2], "v": [2, 3], "w": [4.0, 5.0]}
    for table in (pandas.DataFrame(columns), polars.DataFrame(columns), pyarrow.table(columns), [(1, 2), (2, 3)]):
        for weights in ([1.0, 2.0], "w", True):
            with pytest.raises(InputError, match="weight='w' names a column, and weights are given as well; leave one"):
                ww.Graph(table, weight="w", weights=weights)


def test_weights_of_a_file_are_a_column(tmp_path: Path) -> None:
    (tmp_path / "g.csv").write_text("u,v,w\n1,2,4\n")
    with pytest.raises(InputError, match="name the column that holds them: weight="):
        ww.Graph(tmp_path / "g.csv", weight="w", weights=[1.0])


@every_table
def test_kinds_of_labels(form: Form, tmp_path: Path) -> None:
    numbers = form.make({"u": [7, 8], "v": [8, 9]}, tmp_path)
    assert edges(ww.Graph(numbers, labels="text")) == {("7", "8"), ("8", "9")}
    assert edges(ww.Graph(form.make({"u": [7, 8], "v": [8, 9]}, tmp_path), labels="int")) == {(7, 8), (8, 9)}
    texts = form.make({"u": ["7", "8"], "v": ["8", "9"]}, tmp_path)
    with pytest.raises(FormatError, match=r"columns that are not integers: 'u: .*, v: .*'; cast both"):
        ww.Graph(texts, labels="int")


@pytest.mark.parametrize("data", [[(0, 1)], np.array([[0, 1]]), FRAME, pyarrow.table({"u": [1], "v": [2]})])
def test_unknown_kinds_of_labels(data: Any) -> None:
    with pytest.raises(UnknownNameError, match="no kind of labels named 'number'; there are: auto, int, text"):
        ww.Graph(data, labels="number")


def test_labels_of_what_is_no_table() -> None:
    networkx = pytest.importorskip("networkx")
    assert ww.Graph([(0, 1)], labels="int").m == 1
    assert ww.Graph([("a", "b")], labels="text").m == 1
    mixed = networkx.Graph([("a", 1)])
    for data, labels in (([(0, 1)], "text"), (np.array([[0, 1]]), "text"), ([("0", "1")], "int"), (mixed, "text")):
        with pytest.raises(InputError, match=f"labels='{labels}', but only those of files and tables are converted"):
            ww.Graph(data, labels=labels)


@every_table
def test_an_integer_is_a_position(form: Form, tmp_path: Path) -> None:
    columns = {"2": [1, 2], "x": [8, 9], "0": [2, 3]}
    graph = ww.Graph(form.make(columns, tmp_path), source=0, target=2)
    assert edges(graph) == {(1, 2), (2, 3)}
    assert edges(ww.Graph(form.make(columns, tmp_path), source="2", target="0")) == {(1, 2), (2, 3)}


@every_table
@pytest.mark.parametrize("names", [("1", "2", "3"), ("column_1", "column_2", "column_3")])
def test_names_that_were_made_up_can_be_named(form: Form, names: tuple[str, ...], tmp_path: Path) -> None:
    table = form.make(dict(zip(names, ([1, 2], [8, 9], [2, 3]), strict=True)), tmp_path)
    assert edges(ww.Graph(table, source=names[0], target=names[2])) == {(1, 2), (2, 3)}


def test_an_integer_that_may_be_a_name_is_refused() -> None:
    frame = pandas.DataFrame([[8, 1, 2], [9, 2, 3]], columns=[1, 2, 0])
    message = (
        "source=1 may be the column at position 1 or the one that is named 1, at position 0; pass the name as text"
    )
    with pytest.raises(InputError, match=message):
        ww.Graph(frame, source=1, target=2)
    assert edges(ww.Graph(frame, source="2", target="0")) == {(1, 2), (2, 3)}
    with pytest.raises(InputError, match="source=10 may be"):
        ww.Graph(pandas.DataFrame([[1, 2]], columns=[10, 20]), source=10, target=20)
    assert ww.Graph(pandas.DataFrame([[1, 2]], columns=[True, "x"]), source=1, target=0).m == 1
    plain = pandas.DataFrame([[8, 1, 2], [9, 2, 3]])
    assert edges(ww.Graph(plain, source=1, target=2)) == {(1, 2), (2, 3)}


def test_columns_without_names() -> None:
    assert edges(ww.Graph(pandas.DataFrame([["a", "b", 0.5], ["b", "c", 1.5]]))) == {("a", "b"), ("b", "c")}
    with pytest.raises(FormatError, match="3 columns, and nothing says which"):
        ww.Graph(pandas.DataFrame([["a", "b", "x"], ["b", "c", "y"]]))


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_repeated_names_that_are_not_read_are_harmless(suffix: str, tmp_path: Path) -> None:
    table = pyarrow.table([[1, 2], [8, 9], [2, 3], [8, 9]], names=["source", "x", "target", "x"])
    path = tmp_path / f"g.{suffix}"
    if suffix == "csv":
        path.write_text("source,x,target,x\n1,8,2,8\n2,9,3,9\n")
    else:
        parquet.write_table(table, path)
    for form in (path, table, pandas.DataFrame([[1, 8, 2, 8], [2, 9, 3, 9]], columns=table.column_names)):
        graph = ww.Graph(form)
        assert edges(graph) == {(1, 2), (2, 3)}
        assert graph.cleaned.ignored_columns == ("x", "x")


def test_decimal_weights(tmp_path: Path) -> None:
    frame = pandas.DataFrame({"u": [1, 2], "v": [2, 3], "w": [Decimal("1.5"), Decimal("2.25")]})
    for form in (frame, as_parquet(frame, tmp_path), polars.from_pandas(frame)):
        weights = ww.Graph(form, weight="w").weights
        assert weights is not None
        assert weights.tolist() == [1.5, 2.25]


def test_near_tables_say_how_they_become_one() -> None:
    with pytest.raises(InputError, match=r"<LazyFrame>: is a query .*; pass what its \.collect\(\) gives"):
        ww.Graph(polars.LazyFrame({"u": [1], "v": [2]}))
    with pytest.raises(InputError, match=r"<Series>: is one column, .* such as \.reset_index\(\) gives"):
        ww.Graph(FRAME.groupby(["source", "target"]).size())
