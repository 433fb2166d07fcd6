"""`Graph`: what it takes, holds and answers by label; it never changes."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

import wedgewise as ww
from wedgewise import errors, interop

from .stage import make_files

PAIRS = [(10, 20), (20, 30), (30, 10), (30, 40), (40, 40), (20, 10), (10, 20)]
NAMES = {10: "ada", 20: "bob", 30: "cy", 40: "di"}
TEXT = [(NAMES[u], NAMES[v]) for u, v in PAIRS]


def test_what_a_graph_holds() -> None:
    graph: Any = ww.Graph(PAIRS)
    assert (graph.n, graph.m, len(graph), graph.paths, graph.directed, graph.weights) == (4, 4, 4, 5, False, None)
    assert (graph.labels.tolist(), graph.labels.dtype) == ([10, 20, 30, 40], np.uint32)
    assert list(ww.Graph([(0, 2**40)]).labels) == [0, 2**40]
    assert ww.Graph([(0, 1), (1, 2)], n=5).labels == range(5)
    assert (graph.edges.tolist(), graph.edges.dtype) == ([[0, 1], [0, 2], [1, 2], [2, 3]], np.uint32)
    assert (graph.degrees.tolist(), graph.degrees.dtype) == ([2, 2, 3, 1], np.uint32)
    dropped = graph.cleaned
    assert (dropped.pairs, dropped.edges, dropped.loops, dropped.duplicates, dropped.reversed_copies) == (7, 4, 1, 1, 1)
    assert (dropped.leaves_dropped, dropped.dropped_columns, dropped.columns, dropped.notes) == (0, 0, (), ())
    assert repr(graph) == "Graph('<pairs>', n=4, m=4)"
    assert type(graph.nbytes) is int
    assert graph.device_nbytes == 0


def test_a_graph_is_asked_by_label() -> None:
    graph = ww.Graph(TEXT)
    assert list(graph.labels) == ["ada", "bob", "cy", "di"] == graph.labels
    assert ("cy" in graph, "eve" in graph, 10 in graph) == (True, False, False)
    assert (graph.index("cy"), type(graph.index("cy"))) == (2, int)
    assert (graph.index(["di", "ada"]).tolist(), graph.index(["di"]).dtype) == ([3, 0], np.int64)
    assert (graph.degree("cy"), type(graph.degree("cy"))) == (3, int)
    assert (graph.degree(["di", "ada"]).tolist(), graph.degree(["di"]).dtype) == ([1, 2], np.uint32)
    assert graph.neighbors("cy") == ["ada", "bob", "di"]
    assert graph.neighbors(["di", "ada"]) == [["cy"], ["bob", "cy"]]
    numbers = ww.Graph(PAIRS)
    assert (numbers.neighbors(30).tolist(), numbers.neighbors(30).dtype) == ([10, 20, 40], np.int64)
    for column in (np.array([40, 10]), pd.Series([40, 10]), pl.Series([40, 10]), pa.array([40, 10])):
        assert numbers.index(column).tolist() == [3, 0]
    with pytest.raises(errors.UnknownLabelError):
        graph.index("eve")


def test_subgraphs_and_release() -> None:
    graph = ww.Graph(TEXT)
    smaller = graph.subgraph(ww.k_truss(graph, 3).edges)
    assert (smaller.labels, smaller.edges.tolist()) == (["ada", "bob", "cy"], [[0, 1], [0, 2], [1, 2]])
    before = graph.nbytes
    graph.release()
    assert graph.nbytes < before
    assert ww.count(graph) == 1


def test_options_of_reading() -> None:
    assert ww.Graph([(0, 1), (1, 2)], n=5).n == 5
    assert list(ww.Graph(PAIRS, drop_leaves=True).labels) == [10, 20, 30]
    assert ww.Graph(PAIRS, directed=True).directed
    weights: Any = ww.Graph(PAIRS, weights=range(7)).weights
    assert (weights.tolist(), weights.dtype) == ([6, 2, 1, 3], np.float64)
    for combine, expected in (("last", 6), ("sum", 11), ("max", 6), ("min", 0)):
        combined = ww.Graph(PAIRS, weights=range(7), combine=combine).weights
        assert combined is not None
        assert combined[0] == expected
    directed = ww.Graph(PAIRS, weights=range(7), directed=True).weights
    assert directed is not None
    assert directed.shape == (4, 2)


def test_files_and_their_columns(tmp_path: Path) -> None:
    make_files(tmp_path)
    graph = ww.read(tmp_path / "names.csv", weight="amount")
    assert (graph.n, graph.m, graph.cleaned.columns) == (5, 6, ("source", "target", "amount"))
    assert graph.labels == ["ada", "bob", "cy", "di", "eve"]
    assert ww.read(tmp_path / "names.csv", source="source", target="amount", labels="text").n == 10
    assert ww.read(tmp_path / "names.csv", source=0, target=1, header=False).m == 7
    assert ww.read(str(tmp_path / "karate.txt.xz")).m == 78
    assert ww.read(tmp_path / "karate.txt", format="text", labels="text").labels[0] == "0"
    assert ww.count(tmp_path / "karate.txt") == ww.count(ww.Graph(str(tmp_path / "karate.txt"))) == 45


def table(kind: Any) -> Any:
    return kind({"source": [u for u, _ in PAIRS], "target": [v for _, v in PAIRS], "more": list("abcdefg")})


def matrix() -> Any:
    rows, columns = np.array(PAIRS).T // 10 - 1
    return scipy.sparse.coo_array((np.ones(7), (rows, columns)), shape=(4, 4))


class Tensor:
    """What speaks DLPack and nothing else."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **how: Any) -> Any:
        return self.array.__dlpack__(**how)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


@pytest.mark.parametrize(
    ("source", "labels"),
    [
        (np.array(PAIRS), [10, 20, 30, 40]),
        (np.array(PAIRS, np.uint16), [10, 20, 30, 40]),
        (Tensor(np.array(PAIRS)), [10, 20, 30, 40]),
        (iter(PAIRS), [10, 20, 30, 40]),
        (TEXT, ["ada", "bob", "cy", "di"]),
        (nx.Graph(PAIRS), [10, 20, 30, 40]),
        (nx.MultiDiGraph(TEXT), ["ada", "bob", "cy", "di"]),
        (matrix(), [0, 1, 2, 3]),
        (scipy.sparse.csc_matrix(matrix()), [0, 1, 2, 3]),
        (table(pd.DataFrame), [10, 20, 30, 40]),
        (table(pl.DataFrame), [10, 20, 30, 40]),
        (table(pa.table), [10, 20, 30, 40]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_kind_of_source(source: Any, labels: list[Any]) -> None:
    graph = ww.Graph(source)
    assert list(graph.labels) == labels
    assert graph.edges.tolist() == [[0, 1], [0, 2], [1, 2], [2, 3]]
    assert ww.triangles(graph).tolist() == [1, 1, 1, 0]


def test_rows_of_a_table_find_their_edges() -> None:
    graph = ww.Graph(TEXT)
    ids: Any = ww.edge_ids(graph, TEXT)
    assert (ids.tolist(), ids.dtype) == ([0, 2, 1, 3, -1, 0, 0], np.int64)
    assert ww.edge_ids(graph, [("ada", "di")], missing="ignore").tolist() == [-1]
    with pytest.raises(errors.InputError):
        ww.edge_ids(graph, [("ada", "di")])


def test_copies_are_the_same_graph() -> None:
    for graph in (ww.Graph(PAIRS), ww.Graph(TEXT), ww.Graph(PAIRS, weights=range(7), directed=True)):
        ww.triangles(graph)
        for again in (pickle.loads(pickle.dumps(graph)), copy.deepcopy(graph), copy.copy(graph)):
            assert list(again.labels) == list(graph.labels)
            assert again.edges.tolist() == graph.edges.tolist()
            assert again.cleaned == graph.cleaned
            assert ww.clustering(again).tolist() == ww.clustering(graph).tolist()
            check_read_only(again)


def check_read_only(graph: ww.Graph) -> None:
    arrays: list[Any] = [graph.edges, graph.degrees, *([] if graph.weights is None else [graph.weights])]
    if isinstance(graph.labels, np.ndarray):
        arrays.append(graph.labels)
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_a_graph_never_changes() -> None:
    pairs = np.array(PAIRS)
    graph = ww.Graph(pairs)
    check_read_only(graph)
    pairs[:] = 0
    assert graph.edges.tolist() == [[0, 1], [0, 2], [1, 2], [2, 3]]
    answer = ww.triangles(graph)
    answer[:] = 99
    assert ww.triangles(graph).tolist() == [1, 1, 1, 0]
    with pytest.raises(AttributeError):
        graph.n = 5  # type: ignore[misc]


def test_graphs_go_out_to_other_libraries() -> None:
    graph = ww.Graph([*TEXT, ("eve", "eve")])
    support = ww.edge_support(graph)
    rows = [("ada", "bob", 1), ("ada", "cy", 1), ("bob", "cy", 1), ("cy", "di", 0)]
    frame, lazy = interop.to_pandas(graph, support=support), interop.to_polars(graph, support=support)
    arrow = interop.to_arrow(graph, support=support)
    assert (type(frame), list(frame.columns)) == (pd.DataFrame, ["source", "target", "support"])
    assert list(frame.itertuples(index=False, name=None)) == rows == lazy.rows()
    assert (type(lazy), type(arrow)) == (pl.DataFrame, pa.Table)
    assert [tuple(row.values()) for row in arrow.to_pylist()] == rows
    columns = interop.edge_table(graph, support=support)
    assert {name: type(column) for name, column in columns.items()} == dict.fromkeys(columns, np.ndarray)
    assert list(interop.vertex_table(graph, t=ww.triangles(graph))["vertex"]) == ["ada", "bob", "cy", "di", "eve"]
    sparse = interop.to_scipy(graph, values=support)
    assert (type(sparse), sparse.shape) == (scipy.sparse.csr_array, (5, 5))
    assert sparse.toarray().tolist()[2] == [1, 1, 0, 0, 0]
    back = interop.to_networkx(graph)
    assert (type(back), list(back), back.number_of_edges()) == (nx.Graph, ["ada", "bob", "cy", "di", "eve"], 4)
    index: Any = interop.to_edge_index(graph)
    assert (index.dtype, index.shape) == (np.int64, (2, 8))
    assert ww.count(interop.from_edge_index(index, n=5)) == 1
    pairs = interop.edges_from(np.array(PAIRS))
    assert (pairs.pairs.tolist(), pairs.vertices) == ([list(pair) for pair in PAIRS], None)


@pytest.mark.parametrize("name", ["igraph", "networkit", "graphblas"])
def test_graphs_of_other_libraries_come_back(name: str) -> None:
    pytest.importorskip(name)
    graph = ww.Graph(TEXT)
    there = getattr(interop, f"to_{name}")(graph)
    assert type(there).__module__.startswith(name)
    assert ww.Graph(there).edges.tolist() == graph.edges.tolist()
