"""Tables of pandas, polars, pyarrow and of anything that exports Arrow's PyCapsules, both ways."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import pytest

import wedgewise as ww
from interop.messy_pairs import GRAPHS, MessyGraph, edges_of, messy_graph
from wedgewise import interop
from wedgewise.errors import InputError, MissingDependencyError

Maker = Callable[[dict[str, Any]], Any]


class OnlyStream:
    """A table that says nothing about itself but how to export it."""

    def __init__(self, columns: dict[str, Any]) -> None:
        self._table = pyarrow.table(columns)

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


class OnlyArray:
    """One record batch that says nothing about itself but how to export it."""

    def __init__(self, columns: dict[str, Any]) -> None:
        self._batch = pyarrow.RecordBatch.from_pydict({name: pyarrow.array(column) for name, column in columns.items()})

    def __arrow_c_array__(self, requested_schema: object = None) -> Any:
        return self._batch.__arrow_c_array__(requested_schema)


def in_pieces(columns: dict[str, Any]) -> Any:
    table = pyarrow.table(columns)
    return pyarrow.concat_tables([table.slice(0, 3), table.slice(3, 0), table.slice(3)])


def batch(columns: dict[str, Any]) -> Any:
    return pyarrow.RecordBatch.from_pydict({name: pyarrow.array(column) for name, column in columns.items()})


MAKERS: list[Maker] = [pandas.DataFrame, polars.DataFrame, pyarrow.table, in_pieces, batch, OnlyStream, OnlyArray]
every_table = pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
every_arrow_table = pytest.mark.parametrize("make", MAKERS[1:], ids=lambda make: make.__name__)


@every_table
@pytest.mark.parametrize("messy", GRAPHS[:5], ids=range(5))
def test_integers_are_labels(make: Maker, messy: MessyGraph) -> None:
    labels = 10 * messy.pairs + 7
    graph = ww.Graph(make({"u": labels[:, 0].copy(), "v": labels[:, 1].copy()}))
    assert list(graph.labels) == sorted(set(labels.reshape(-1).tolist()))
    assert [(graph.labels[u], graph.labels[v]) for u, v in edges_of(graph)] == [
        (10 * u + 7, 10 * v + 7) for u, v in messy.edges
    ]


@every_table
def test_n_gives_isolated_vertices(make: Maker) -> None:
    graph = ww.Graph(make({"u": [0, 1], "v": [1, 4]}), n=6)
    assert (graph.n, edges_of(graph)) == (6, [(0, 1), (1, 4)])


@every_table
def test_strings_are_numbered_by_first_appearance(make: Maker) -> None:
    edges = interop.edges_from(make({"u": ["b", "a", "b", "ä"], "v": ["c", "b", "d", "a"]}))
    assert edges.names == ["b", "c", "a", "d", "ä"]
    assert edges.pairs.tolist() == [[0, 1], [2, 0], [0, 3], [4, 2]]
    assert edges.vertices == 5


@every_table
@pytest.mark.parametrize(
    ("names", "dropped"),
    [
        (("weight", "source", "target"), 1),
        (("when", "dst", "src"), 1),
        (("other", "V", "U"), 1),
        (("other", "from", "to"), 1),
        (("left", "right"), 0),
    ],
)
def test_columns_are_found_by_name(make: Maker, names: tuple[str, ...], dropped: int) -> None:
    ends = {"source": 0, "src": 0, "u": 0, "from": 0, "left": 0, "target": 1, "dst": 1, "v": 1, "to": 1, "right": 1}
    edges = interop.edges_from(make({name: [ends.get(name.lower(), 9)] for name in names}))
    assert edges.pairs.tolist() == [[0, 1]]
    assert len(edges.ignored_columns) == dropped


@every_table
def test_a_column_of_weights(make: Maker) -> None:
    table = make({"weight": [2, 3, 5, 7], "u": [0, 1, 2, 2], "v": [1, 2, 0, 0], "other": [0, 0, 0, 0]})
    edges = interop.edges_from(table, "weight")
    assert edges.weights is not None
    assert edges.weights.dtype == np.float64
    assert edges.weights.tolist() == [2.0, 3.0, 5.0, 7.0]
    assert len(edges.ignored_columns) == 1
    beside = interop.edges_from(table, np.array([1.5, 2.5, 3.5, 4.5]))
    assert beside.weights is not None
    assert beside.weights.tolist() == [1.5, 2.5, 3.5, 4.5]
    assert len(beside.ignored_columns) == 2


@every_table
def test_a_null_is_refused_by_its_row(make: Maker) -> None:
    nothing = np.nan if make is pandas.DataFrame else None
    for column in ([0, 1, 2, nothing], ["a", "b", "c", None]):
        other = column[:1] * 4
        with pytest.raises(InputError, match="<table>: row 3 of column 'v' is null; drop rows with nulls"):
            interop.edges_from(make({"u": other, "v": column}))
    with pytest.raises(InputError, match="<table>: the weight of row 1 is nan"):
        interop.edges_from(make({"u": [0, 1], "v": [1, 2], "w": [1.0, nothing]}), "w")


@every_table
@pytest.mark.parametrize(
    ("columns", "weights", "message"),
    [
        ({"u": [0]}, None, "<table>: no two columns to take the ends of edges from: 'u'; name them source and target"),
        ({"u": [0], "v": [-3]}, None, "<table>: row 0 holds a number outside 0 … 2^63 − 1: '-3'; renumber"),
        (
            {"u": np.array([0], np.uint64), "v": np.array([1], np.int64)},
            None,
            "<table>: one column is uint64 and the other signed; cast both to int64",
        ),
        ({"u": [0], "v": [1]}, "w", "<table>: no column 'w' to take weights from; there are: 'u', 'v'"),
        ({"u": [0], "v": [1], "w": ["x"]}, "w", "<table>: the weight of row 0 is 'x' of type str; weights are real"),
        ({"u": [0], "v": [1]}, [1, 2], "<table>: weights of shape (2,) for 1 pairs; pass one number per pair"),
        ({"u": [0], "v": [1]}, True, "<table>: weights=True where pairs have no values; pass one number per pair"),
    ],
)
def test_refusals(make: Maker, columns: dict[str, Any], weights: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        interop.edges_from(make(columns), weights)
    assert str(caught.value).startswith(message)


@every_arrow_table
def test_types_are_refused(make: Maker) -> None:
    with pytest.raises(InputError, match="columns that are not integers or strings: 'u: int64, v: double'"):
        interop.edges_from(make({"u": [0], "v": [0.5]}))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"u": [0], "v": [0.5]}, "<table>: column 'v' of dtype float64; cast it to integers or to strings"),
        ({"u": ["b"], "v": [("a",)]}, "<table>: column 'v' of dtype object; cast it to integers or to strings"),
        ({"u": [True], "v": [False]}, "<table>: column 'u' of dtype bool; cast it to integers or to strings"),
    ],
)
def test_types_of_pandas_are_refused(columns: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        interop.edges_from(pandas.DataFrame(columns))
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("dtype", ["Int64", "UInt32", "int8", "int64[pyarrow]", "category"])
def test_integer_types_of_pandas(dtype: str) -> None:
    frame = pandas.DataFrame({"u": pandas.Series([0, 1], dtype=dtype), "v": pandas.Series([1, 2], dtype=dtype)})
    assert interop.edges_from(frame).pairs.tolist() == [[0, 1], [1, 2]]


@pytest.mark.parametrize("dtype", ["object", "string", "str", "category"])
def test_text_types_of_pandas(dtype: str) -> None:
    frame = pandas.DataFrame({"u": pandas.Series(["b", "c"], dtype=dtype), "v": pandas.Series(["a", "b"], dtype=dtype)})
    edges = interop.edges_from(frame)
    assert edges.names == ["b", "a", "c"]
    assert edges.pairs.tolist() == [[0, 1], [2, 0]]


def test_pandas_columns_need_no_names() -> None:
    graph = ww.Graph(pandas.DataFrame(np.array([[0, 1, 5], [1, 2, 5]])))
    assert edges_of(graph) == [(0, 1), (1, 2)]
    assert graph.cleaned.dropped_columns == 1


@every_table
def test_nothing(make: Maker) -> None:
    edges = interop.edges_from(make({"u": np.empty(0, np.int64), "v": np.empty(0, np.int64)}))
    assert edges.pairs.shape == (0, 2)
    weighted = make({"u": np.empty(0, np.int64), "v": np.empty(0, np.int64), "w": np.empty(0)})
    kept = interop.edges_from(weighted, "w").weights
    assert kept is not None
    assert len(kept) == 0


def test_a_frame_of_pandas_without_rows_or_types() -> None:
    assert interop.edges_from(pandas.DataFrame({"u": [], "v": []}, dtype=object)).pairs.shape == (0, 2)


def test_a_series_of_pandas_is_no_table() -> None:
    with pytest.raises(InputError, match="<Series>: is one column, and edges have two; pass a DataFrame"):
        interop.edges_from(pandas.Series([1, 2]))


@pytest.mark.parametrize("single", [polars.Series([1, 2]), pyarrow.array([1, 2])])
def test_a_single_column_is_no_table(single: Any) -> None:
    with pytest.raises(InputError, match=r"<table>: .*; pass a table with a column of sources and one of targets"):
        interop.edges_from(single)


def test_arrow_is_needed_for_what_is_not_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    table = polars.DataFrame({"u": [0], "v": [1]})
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingDependencyError, match=r'pyarrow is needed.*pip install "wedgewise\[arrow\]"'):
        interop.edges_from(table)
    assert interop.edges_from(pandas.DataFrame({"u": [0], "v": [1]})).pairs.tolist() == [[0, 1]]


def rows_of(table: Any) -> list[tuple[Any, ...]]:
    if isinstance(table, pandas.DataFrame):
        return list(table.itertuples(index=False, name=None))
    return polars.DataFrame(table).rows()


CONVERTERS = [interop.to_arrow, interop.to_pandas, interop.to_polars]


@pytest.mark.parametrize("convert", CONVERTERS)
@pytest.mark.parametrize("messy", GRAPHS, ids=range(len(GRAPHS)))
def test_edges_of_a_graph_as_a_table(convert: Any, messy: MessyGraph) -> None:
    graph = ww.Graph(messy.pairs, n=messy.n)
    values = np.linspace(0, 1, graph.m)
    table = convert(graph, score=values, place=np.arange(graph.m))
    assert rows_of(table) == [
        (u, v, value, place) for place, ((u, v), value) in enumerate(zip(messy.edges, values.tolist(), strict=True))
    ]
    if graph.m:
        again = interop.edges_from(table, "score")
        assert again.pairs.tolist() == graph.edges.tolist()
        assert again.weights is not None
        assert again.weights.tolist() == values.tolist()


@pytest.mark.parametrize("convert", CONVERTERS)
@pytest.mark.parametrize("labels", [["b", "a", "d"], [30, 10, 2**40]])
def test_labels_come_back(convert: Any, labels: list[Any]) -> None:
    graph = ww.Graph([(labels[0], labels[1]), (labels[1], labels[2])])
    table = convert(graph)
    assert rows_of(table) == [(graph.labels[u], graph.labels[v]) for u, v in edges_of(graph)]
    again = ww.Graph(table)
    assert list(again.labels) == list(graph.labels)
    assert edges_of(again) == edges_of(graph)


def test_a_table_of_vertices() -> None:
    messy = messy_graph(5)
    graph = ww.Graph(messy.pairs, n=messy.n)
    table = interop.vertex_table(graph, degree=graph.degrees)
    assert table["vertex"].tolist() == list(range(messy.n))
    assert pandas.DataFrame(table)["degree"].tolist() == graph.degrees.tolist()
    assert pyarrow.table(table).num_rows == polars.DataFrame(table).height == messy.n
    named = interop.vertex_table(ww.Graph([("b", "a")]))
    assert named["vertex"].tolist() == ["b", "a"]


def test_columns_of_tables_are_checked() -> None:
    graph = ww.Graph([(0, 1), (1, 2)])
    with pytest.raises(InputError, match=r"degree has shape \(2,\); it needs one entry per vertex: 3"):
        interop.vertex_table(graph, degree=[1, 2])
    with pytest.raises(InputError, match="the name 'source' is taken by the column of labels; choose another one"):
        interop.edge_table(graph, source=[1, 2])
