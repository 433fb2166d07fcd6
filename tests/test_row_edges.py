"""`ww.edge_ids`: every row of a table finds the edge that it became."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from read.table_forms import FORMS, Form

import wedgewise as ww

every_form = pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name.replace(" ", "-"))

ROWS = [("ann", "bob"), ("bob", "cy"), ("cy", "ann"), ("bob", "ann"), ("cy", "cy"), ("ann", "bob"), ("cy", "dee")]
TABLE: dict[str, list[Any]] = {
    "amount": [5, 1, 2, 3, 4, 5, 6],
    "sender": [sender for sender, _ in ROWS],
    "receiver": [receiver for _, receiver in ROWS],
}


def expected(graph: ww.Graph, rows: list[tuple[Any, Any]]) -> list[int]:
    """By a dictionary of all edges."""
    number_of = {
        frozenset((graph.labels[u], graph.labels[v])): number for number, (u, v) in enumerate(graph.edges.tolist())
    }
    return [-1 if u == v else number_of[frozenset((u, v))] for u, v in rows]


@every_form
def test_every_form_joins_back(form: Form, tmp_path: Path) -> None:
    table = form.make(TABLE, tmp_path)
    graph = ww.Graph(pandas.DataFrame(TABLE))
    found = ww.edge_ids(graph, table)
    assert found.dtype == np.int64
    assert found.tolist() == expected(graph, ROWS)


def test_answers_are_right_for_every_row() -> None:
    frame = pandas.DataFrame(TABLE)
    graph = ww.Graph(frame)
    ids = ww.edge_ids(graph, frame)
    frame["support"] = np.where(ids < 0, 0, ww.edge_support(graph)[ids])
    assert frame["support"].tolist() == [1, 1, 1, 1, 0, 1, 0]


pairs = st.tuples(st.integers(0, 8), st.integers(0, 8))


@settings(max_examples=100, deadline=None)
@given(st.lists(pairs, min_size=1, max_size=40), st.sampled_from([1, 10**3, 10**15]), st.booleans())
def test_random_rows(rows: list[tuple[int, int]], step: int, as_text: bool) -> None:
    labelled: list[tuple[Any, Any]] = [(step * u, step * v) for u, v in rows]
    if as_text:
        labelled = [(f"v{u}", f"v{v}") for u, v in labelled]
    graph = ww.Graph(labelled)
    assert ww.edge_ids(graph, labelled).tolist() == expected(graph, labelled)
    half = labelled[::2]
    assert ww.edge_ids(graph, half).tolist() == expected(graph, half)


def test_columns_are_named_as_for_a_graph() -> None:
    frame = pandas.DataFrame({"amount": [1, 2], "user": [1, 2], "item": [2, 3]})
    graph = ww.Graph(frame, source="user", target="item")
    assert ww.edge_ids(graph, frame, source="user", target="item").tolist() == [0, 1]
    with pytest.raises(ww.errors.FormatError, match="nothing says which columns are the ends"):
        ww.edge_ids(ww.Graph([(1, 2), (2, 3)]), frame)


BOUGHT = pandas.DataFrame({"source": [1, 2, 3], "target": [2, 3, 1], "buyer": [1, 1, 2], "shop": [3, 2, 3]})


@every_form
def test_columns_are_those_of_the_graph(form: Form, tmp_path: Path) -> None:
    graph = ww.Graph(BOUGHT, source="buyer", target="shop")
    columns = {str(name): values.tolist() for name, values in BOUGHT.items()}
    assert ww.edge_ids(graph, form.make(columns, tmp_path)).tolist() == [1, 0, 2]
    named = ww.edge_ids(graph, form.make(columns, tmp_path), source="source", target="target")
    assert named.tolist() == [0, 2, 1]


def test_other_columns_have_to_be_named() -> None:
    graph = ww.Graph(BOUGHT, source="buyer", target="shop")
    with pytest.raises(ww.errors.InputError, match="no column 'buyer' to take sources from") as caught:
        ww.edge_ids(graph, BOUGHT[["source", "target"]])
    note = "the graph was made of columns 'buyer' and 'shop'; pass source=… and target=… to take others"
    assert caught.value.__notes__ == [note]
    with pytest.raises(ww.errors.InputError, match="no column 'user'") as said:
        ww.edge_ids(graph, BOUGHT, source="user", target="shop")
    assert not hasattr(said.value, "__notes__")
    assert ww.edge_ids(graph, BOUGHT[["buyer", "shop"]].to_numpy()).tolist() == [1, 0, 2]


def test_positions_are_those_of_the_graph(tmp_path: Path) -> None:
    path = tmp_path / "g.txt"
    path.write_text("1 2 3\n2 1 2\n3 3 1\n")
    graph = ww.Graph(path, source=1, target=2)
    assert ww.edge_ids(graph, path).tolist() == expected(graph, [(2, 3), (1, 2), (3, 1)])
    assert ww.edge_ids(graph, path, source=0, target=1).tolist() == expected(graph, [(1, 2), (2, 1), (3, 3)])


def test_the_first_line_is_what_it_was(tmp_path: Path) -> None:
    path = tmp_path / "g.csv"
    path.write_text("source,target\nann,bob\nbob,ann\n")
    graph = ww.Graph(path, header=False)
    assert ww.edge_ids(graph, path).tolist() == [0, 1, 1]
    assert ww.edge_ids(graph, str(path), header=True).tolist() == [1, 1]
    path.write_text("guest,shop\nann,bob\nbob,ann\n")
    assert ww.edge_ids(ww.Graph(path, header=True), path).tolist() == [0, 0]
    assert ww.edge_ids(graph, pandas.DataFrame({"u": ["ann"], "v": ["bob"]})).tolist() == [1]


def test_labels_are_of_the_kind_of_the_graph(tmp_path: Path) -> None:
    path = tmp_path / "z.csv"
    path.write_text("source,target\n007,8\n7,9\n7,8\n8,9\n")
    graph = ww.Graph(path, labels="text")
    assert ww.edge_ids(graph, path).tolist() == [0, 3, 1, 2]
    assert ww.edge_ids(graph, path, labels="int").tolist() == [1, 3, 1, 2]
    assert ww.edge_ids(graph, np.array([[7, 8]])).tolist() == [1]
    np.save(tmp_path / "pairs.npy", np.array([[7, 8]]))
    assert ww.edge_ids(graph, tmp_path / "pairs.npy").tolist() == [1]
    numbers = ww.Graph(path)
    assert ww.edge_ids(numbers, path).tolist() == [0, 1, 0, 2]
    path.write_text("source,target\na,b\n7,8\nc,d\n")
    with pytest.raises(ww.errors.FormatError, match=r"z\.csv:2"):
        ww.edge_ids(numbers, path, missing="ignore")


def test_labels_of_any_kind_are_looked_up_as_they_come() -> None:
    networkx = pytest.importorskip("networkx")
    graph = ww.Graph(networkx.Graph([("a", 1), (1, "b")]))
    assert ww.edge_ids(graph, pandas.DataFrame({"u": ["a"], "v": ["b"]}), missing="ignore").tolist() == [-1]


def test_a_row_that_is_no_edge_is_named() -> None:
    graph = ww.Graph(ROWS)
    for row in (("ann", "dee"), ("ann", "eve"), ("eve", "fay")):
        with pytest.raises(ww.errors.InputError, match=rf"row 1, '{row[0]}' to '{row[1]}', is no edge of <pairs>"):
            ww.edge_ids(graph, [("ann", "bob"), row])
        assert ww.edge_ids(graph, [("ann", "bob"), row], missing="ignore").tolist() == [0, -1]
    with pytest.raises(ww.errors.UnknownNameError, match="'drop' to treat missing edges; there are: error, ignore"):
        ww.edge_ids(graph, ROWS, missing="drop")


def test_dropped_leaves_are_missing() -> None:
    graph = ww.Graph(ROWS, drop_leaves=True)
    assert ww.edge_ids(graph, ROWS, missing="ignore").tolist() == [0, 2, 1, 0, -1, 0, -1]


def test_integers_are_found_among_text() -> None:
    graph = ww.Graph(pandas.DataFrame({"source": [1, 2, 3], "target": ["a", "b", "2"]}))
    assert ww.edge_ids(graph, [("1", "a"), ("2", "3")]).tolist() == expected(graph, [("1", "a"), ("2", "3")])
    assert ww.edge_ids(graph, np.array([[2, 3]])).tolist() == expected(graph, [("2", "3")])


def test_labels_in_any_order() -> None:
    """igraph's names are labels in the order of its vertices."""
    igraph = pytest.importorskip("igraph")
    other = igraph.Graph(edges=[(0, 1), (1, 2), (2, 0)])
    other.vs["name"] = [30, 10, 20]
    graph = ww.Graph(other)
    assert ww.edge_ids(graph, [(10, 30), (20, 10)]).tolist() == expected(graph, [(10, 30), (20, 10)])


def test_nothing() -> None:
    graph = ww.Graph(ROWS)
    assert ww.edge_ids(graph, np.empty((0, 2), np.int64)).tolist() == []
    nobody = ww.Graph(np.empty((0, 2), np.int64))
    assert ww.edge_ids(nobody, [("a", "a")]).tolist() == [-1]
    assert ww.edge_ids(nobody, [(0, 1)], missing="ignore").tolist() == [-1]
