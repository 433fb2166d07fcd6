"""What `Graph` and the questions refuse, and the defects that verification would find."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import igraph
import networkx as nx
import numpy as np
import pyarrow
import pytest
from scipy.sparse import csr_array

import wedgewise as ww
from wedgewise import generate
from wedgewise.algorithms import find
from wedgewise.algorithms._contract import Shape
from wedgewise.answer import verify
from wedgewise.cli import doctor
from wedgewise.errors import InputError, PreconditionError, UnknownLabelError, VerificationError
from wedgewise.machine import jit, signatures
from wedgewise.prepare import clean
from wedgewise.prepare.orient import adjacency
from wedgewise.run.choose import make_plan
from wedgewise.run.plan import OrientedShape
from wedgewise.run.request import Request
from wedgewise.stages import EdgeList, OrientedGraph, Origin
from wedgewise.stages.labels import TextLabels
from wedgewise.stages.vertex_index import VertexIndex

TRIANGLE = [(0, 1), (1, 2), (2, 0)]


def test_a_graph_shows_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "g.txt"
    path.write_text("4 5\n5 6\n")
    assert repr(ww.read(path)) == f"Graph({str(path)!r}, n=3, m=2)"


def test_the_number_of_vertices_is_said_once() -> None:
    matrix = csr_array(([1], ([0], [1])), shape=(3, 3))
    assert ww.Graph(matrix).n == 3
    with pytest.raises(InputError, match="names its own 3 vertices; leave n out"):
        ww.Graph(matrix, n=5)
    with pytest.raises(InputError, match="n is at least 0, not -1"):
        ww.Graph(TRIANGLE, n=-1)


def test_names_stay_with_the_vertices_that_stay(tmp_path: Path) -> None:
    path = tmp_path / "g.txt"
    path.write_text("leaf ada\nada bob\nbob eve\neve ada\n")
    graph = ww.read(path, drop_leaves=True)
    assert graph.labels == ["ada", "bob", "eve"]
    assert graph.cleaned.leaves_dropped == 1
    assert ww.count(graph) == 1


@pytest.mark.parametrize("spread", [10**9, 10**12])
def test_more_distinct_labels_than_ids_are_refused(monkeypatch: pytest.MonkeyPatch, spread: int) -> None:
    monkeypatch.setattr(clean, "MAX_ID", 3)
    pairs = [(0, spread), (2 * spread, 3 * spread)]
    with pytest.raises(InputError, match="4 distinct labels; at most 3 vertices are supported"):
        ww.Graph(pairs)


def test_an_algorithm_answers_what_it_declares() -> None:
    with pytest.raises(PreconditionError, match="forward on cpu does not compute triangles"):
        make_plan(Request("clustering", algorithm="forward"), "triangles", OrientedShape(Shape(3, 3, 1)))


def test_large_graphs_are_verified_by_a_compiled_method() -> None:
    plan = replace(ww.explain("count", TRIANGLE), wedges=verify.BY_ARRAYS_WEDGES + 1)
    assert verify._recount_method(replace(plan, algorithm="keystone")) == "hashmap"
    assert verify._recount_method(replace(plan, algorithm="hashmap")) == "forward"


def test_a_lost_arc_does_not_pass_verification(monkeypatch: pytest.MonkeyPatch) -> None:
    prepare = ww.Graph.oriented

    def lossy(graph: ww.Graph, order: str, *how: str, threads: int | None) -> OrientedGraph:
        oriented = prepare(graph, order, *how, threads=threads)
        return replace(oriented, out_neighbours=oriented.out_neighbours[:-1]) if order == "core" else oriented

    monkeypatch.setattr(ww.Graph, "oriented", lossy)
    with pytest.raises(VerificationError, match="189 arcs for 190 edges"):
        ww.count(generate.complete(20).pairs(), verify=True)


def test_two_algorithms_of_one_name_are_a_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    walk: Any = pkgutil.iter_modules
    monkeypatch.setattr(pkgutil, "iter_modules", lambda folders: [*walk(folders)] * 2)
    with pytest.raises(RuntimeError, match=r"algorithms\.\w+ and wedgewise\.algorithms\.\w+ have one name"):
        importlib.import_module("wedgewise.algorithms")._modules.__wrapped__()


def test_an_algorithm_is_named_as_its_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        importlib.import_module("wedgewise.algorithms"),
        "_modules",
        lambda: {("fast", "cpu"): "wedgewise.algorithms.cpu.forward"},
    )
    with pytest.raises(RuntimeError, match=r"cpu\.forward defines forward on cpu: name it so"):
        find("fast", "cpu")


def test_a_count_imports_no_other_algorithms() -> None:
    asked = "import sys, wedgewise as ww; ww.count([(0, 1), (1, 2), (2, 0)])\n"
    asked += "print(*[name for name in sys.modules if name.startswith('wedgewise.algorithms.') and '._' not in name])"
    ran = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert set(ran.stdout.split()) == {f"wedgewise.algorithms.{name}" for name in ("cpu", "cpu.keystone", "reference")}


def test_warming_says_what_it_compiles(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def compile_one(listener: Any) -> None:
        if listener is not None:
            listener("compiling forward.count_range")

    monkeypatch.setattr(signatures, "listed", list)
    monkeypatch.setattr(jit, "on_compile", compile_one)
    assert doctor.warm_kernels()["compiled"] == 1
    assert capsys.readouterr().err == "compiling forward.count_range\n"


SQUARE = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)]  # with one diagonal; vertex 4 is isolated
NAMES = ["ada", "bob", "cy", "", "é😀"]


def edges_named(names: Any) -> EdgeList:
    return EdgeList(np.array(SQUARE), Origin("square", "pairs"), vertices=5, names=names)


LABELLED: dict[str, tuple[Any, list[Any], list[Any]]] = {  # a source, its labels, what is no label
    "range": (edges_named(None), [0, 1, 2, 3, 4], [5, -1, True, 1.0, "0", None, 2**70, b"0"]),
    "ascending": (edges_named(np.array([2, 3, 5, 2**40, 2**62])), [2, 3, 5, 2**40, 2**62], [0, 4, 2**63, 2.0, False]),
    "unsigned": (edges_named(np.array([2, 3, 5, 7, 11], np.uint32)), [2, 3, 5, 7, 11], [-2, 2**32 + 2, 2**64, "2"]),
    "any order": (edges_named(np.array([7, -3, 9, 0, 8])), [7, -3, 9, 0, 8], [1, -4, 10, 7.0, True]),
    "text": (edges_named(TextLabels.of(NAMES)), NAMES, ["eve", 0, None, b"ada", "\ud800", ("ada",), 1.5]),
    "objects": (edges_named([("a", 1), "a", 2, None, 2.5]), [("a", 1), "a", 2, None, 2.5], [("a", 2), "b", 3]),
}
every_kind = pytest.mark.parametrize("kind", LABELLED)
ROWS = [[1, 2, 3], [0, 2], [0, 1, 3], [0, 2], []]


@every_kind
def test_a_graph_is_asked_by_label(kind: str) -> None:
    source, labels, others = LABELLED[kind]
    graph = ww.Graph(source)
    assert len(graph) == graph.n == 5
    for vertex, label in enumerate(labels):
        assert label in graph
        assert graph.index(label) == vertex
        assert graph.degree(label) == len(ROWS[vertex])
        assert list(graph.neighbors(label)) == [labels[other] for other in ROWS[vertex]]
    for other in others:
        assert other not in graph
        with pytest.raises(UnknownLabelError, match=r"square: no vertex has the label .*; there are 5 vertices"):
            graph.index(other if not isinstance(other, tuple) or kind == "objects" else [other])
    assert labels not in graph


@every_kind
def test_a_graph_is_asked_by_many_labels(kind: str) -> None:
    source, labels, others = LABELLED[kind]
    graph, order = ww.Graph(source), [3, 0, 0, 4]
    asked = [labels[vertex] for vertex in order]
    found = graph.index(asked)
    assert isinstance(found, np.ndarray)
    assert (found.dtype, found.tolist()) == (np.int64, order)
    assert np.asarray(graph.degree(asked)).tolist() == [len(ROWS[vertex]) for vertex in order]
    rows = [list(row) for row in graph.neighbors(asked)]
    assert rows == [[labels[other] for other in ROWS[vertex]] for vertex in order]
    for ask in (graph.index, graph.degree, graph.neighbors):
        assert len(ask([])) == 0
        with pytest.raises(KeyError) as raised:
            ask([*asked, others[0], others[1]])
        assert f"no vertex has the label {others[0]!r};" in str(raised.value)


def test_labels_come_in_columns_of_every_library() -> None:
    import pandas
    import polars

    text, numbers = ww.Graph(edges_named(TextLabels.of(NAMES))), ww.Graph(edges_named(np.array([7, 1, 9, 0, 8])))
    for make in (list, tuple, np.array, TextLabels.of, pyarrow.array, pandas.Series, pandas.Index, polars.Series):
        assert text.index(make(["cy", ""])).tolist() == [2, 3]
    chunked = pyarrow.chunked_array([["cy"], [""]])
    assert text.index(chunked).tolist() == [2, 3]
    assert text.index(np.array(["cy", ""], np.object_)).tolist() == [2, 3]
    assert text.index(np.str_("cy")) == text.index(np.array("cy")) == 2
    for make in (list, tuple, np.array, pyarrow.array, pandas.Series, pandas.Index, polars.Series):
        assert numbers.index(make([9, 7])).tolist() == [2, 0]
    for dtype in (np.uint8, np.uint64, np.int16, np.object_):
        assert numbers.index(np.array([9, 7], dtype)).tolist() == [2, 0]
    assert numbers.index(np.int64(9)) == numbers.index(np.array(9)) == 2
    assert numbers.index(range(7, 10)).tolist() == [0, 4, 2]
    for odd in (pyarrow.array([7, None]), polars.Series([7, None]), pandas.Series([7, None], dtype="Int64")):
        with pytest.raises(UnknownLabelError, match=r"the label (None|<NA>);"):
            numbers.index(odd)
    for column in (np.array([7.0]), np.array([True]), np.array([2**63], np.uint64), pandas.Series([7.0])):
        with pytest.raises(UnknownLabelError):
            numbers.index(column)
    with pytest.raises(InputError, match=r"labels of shape \(1, 2\); pass them in one row"):
        numbers.index(np.array([[7, 1]]))


def test_neighbours_are_of_the_kind_of_the_labels() -> None:
    for kind, expected in (("range", np.int64), ("unsigned", np.int64), ("any order", np.int64)):
        source, labels, _ = LABELLED[kind]
        row = ww.Graph(source).neighbors(labels[0])
        assert isinstance(row, np.ndarray)
        assert row.dtype == expected
    assert isinstance(ww.Graph(edges_named(TextLabels.of(NAMES))).neighbors("ada"), TextLabels)
    assert isinstance(ww.Graph(LABELLED["objects"][0]).neighbors("a"), list)


def test_what_cannot_be_hashed_is_no_vertex() -> None:
    graph = ww.Graph(LABELLED["objects"][0])
    assert {"a"} not in graph
    with pytest.raises(UnknownLabelError, match="whose labels are objects"):
        graph.index({"a"})


def test_of_equal_labels_the_first_is_found() -> None:
    names: Any
    for names in (TextLabels.of(["a", "b", "a", "b", "c"]), np.array([5, 4, 5, 4, 3]), [None, "b", None, "b", 3]):
        graph = ww.Graph(edges_named(names))
        assert [graph.index(names[vertex]) for vertex in range(5)] == [0, 1, 0, 1, 4]
    assert ww.Graph(edges_named(np.array([3, 3, 4, 4, 5]))).index([3, 4, 5]).tolist() == [0, 2, 4]


def test_a_graph_without_vertices_has_no_labels() -> None:
    names: Any
    for names in (None, np.empty(0, np.int64), TextLabels.of([]), []):
        graph = ww.Graph(EdgeList(np.empty((0, 2), np.int64), Origin("nothing", "pairs"), vertices=0, names=names))
        assert len(graph) == 0
        assert 0 not in graph
        assert "" not in graph
        with pytest.raises(UnknownLabelError, match="there are 0 vertices"):
            graph.index(0)


def test_an_unknown_label_is_shown_in_short() -> None:
    with pytest.raises(UnknownLabelError) as raised:
        ww.Graph(edges_named(TextLabels.of(NAMES))).index("x" * 10**6)
    assert len(str(raised.value)) < 200
    assert str(raised.value).startswith("square: no vertex")


def test_slots_that_are_no_vertices_are_no_neighbours() -> None:
    """Labels 1, 2, 4 and 7 serve as slots."""
    graph = ww.Graph([(7, 2), (4, 7), (1, 7), (1, 2)])
    assert graph.neighbors(7).tolist() == [1, 2, 4]
    assert graph.neighbors([4, 1])[1].tolist() == [2, 7]
    assert 3 not in graph


@pytest.mark.parametrize("compiled", [True, False])
def test_rows_of_all_vertices_are_the_same_by_kernels_and_arrays(compiled: bool) -> None:
    graph = ww.Graph(generate.kronecker(6).pairs())
    rows = adjacency(graph.simple, compiled=compiled)
    for vertex in range(graph.n):
        ends = graph.edges[(graph.edges == vertex).any(axis=1)]
        assert rows.of(vertex).tolist() == sorted(ends[ends != vertex].tolist())


def test_what_is_prepared_for_labels_is_counted_and_released() -> None:
    for names in (TextLabels.of(NAMES), np.array([7, 1, 9, 0, 8])):
        graph = ww.Graph(edges_named(names))
        alone = graph.nbytes
        graph.neighbors(names[0])
        with_rows = graph.nbytes
        assert with_rows >= alone + 8 * graph.m
        graph.release()
        assert graph.nbytes == alone
        assert graph.index(names[1]) == 1
    assert graph.nbytes == alone + 5 * (8 + 8)  # the order of the labels, and a copy in it


def test_threads_share_what_is_prepared_for_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    make = VertexIndex.__init__

    def counted(self: VertexIndex, *args: Any) -> None:
        made.append(1)
        make(self, *args)

    monkeypatch.setattr(VertexIndex, "__init__", counted)
    count = 2000
    names = TextLabels.of([f"label {number}" for number in range(count)])
    ring = np.column_stack([np.arange(count), np.roll(np.arange(count), 1)])
    graph = ww.Graph(EdgeList(ring, Origin("ring", "pairs"), vertices=count, names=names))
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: (graph.index(names), graph.neighbors("label 7")), range(16)))
    assert len(made) == 1
    for numbers, row in found:
        assert (numbers == np.arange(count)).all()
        assert row == ["label 6", "label 8"]


def test_labels_of_files_and_tables_are_compact(tmp_path: Path) -> None:
    path = tmp_path / "g.txt"
    path.write_text("ada bob\nbob é\n")
    table = pyarrow.table({"source": ["ada", "bob"], "target": ["bob", "é"]})
    pairs = [("ada", "bob"), ("bob", "é")]
    for source in (path, table, table.to_pandas(), pairs, nx.Graph(pairs), igraph.Graph.TupleList(pairs)):
        found = ww.Graph(source).labels
        assert isinstance(found, TextLabels)
        assert found == ["ada", "bob", "é"]
        assert found.nbytes == 4 * 8 + 8
