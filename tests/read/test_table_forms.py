"""The same table is the same graph, or the same error, in every form."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wedgewise as ww
from read.table_forms import FORMS, TABLE_FORMS, TEXT_FORMS, Columns, Form

every_form = pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name.replace(" ", "-"))

Edges = set[tuple[Any, Any]]


def edges(graph: ww.Graph) -> Edges:
    return {(graph.labels[u], graph.labels[v]) for u, v in graph.edges.tolist()}


CYCLE = ([1, 2, 3], [2, 3, 1])
NAMES = (["ann", "bob", "cy"], ["bob", "cy", "ann"])
AMOUNT = [0.5, 7.25, 1e3]

# table, keywords of Graph, columns used, columns ignored
READ: dict[str, tuple[Columns, dict[str, Any], tuple[str | int, ...], tuple[str | int, ...]]] = {
    "two columns": ({"a": CYCLE[0], "b": CYCLE[1]}, {}, ("a", "b"), ()),
    "two columns of text": ({"a": NAMES[0], "b": NAMES[1]}, {"header": True}, ("a", "b"), ()),
    "an id first": ({"id": [7, 8, 9], "source": CYCLE[0], "target": CYCLE[1]}, {}, ("source", "target"), ("id",)),
    "fraud": (
        {"sender": NAMES[0], "receiver": NAMES[1], "amount": AMOUNT},
        {},
        ("sender", "receiver"),
        ("amount",),
    ),
    "target first": ({"target": NAMES[1], "source": NAMES[0]}, {}, ("source", "target"), ()),
    "case and suffix": (
        {"Amount": AMOUNT, "Sender_ID": NAMES[0], "Receiver_ID": NAMES[1]},
        {},
        ("Sender_ID", "Receiver_ID"),
        ("Amount",),
    ),
    "numbered": (
        {"Node_1": CYCLE[0], "Node_2": CYCLE[1], "w": AMOUNT},
        {},
        ("Node_1", "Node_2"),
        ("w",),
    ),
    "chosen by name": (
        {"amount": [1, 2, 3], "user": CYCLE[0], "item": CYCLE[1]},
        {"source": "user", "target": "item"},
        ("user", "item"),
        ("amount",),
    ),
    "chosen by position": (
        {"amount": [1, 2, 3], "user": NAMES[0], "item": NAMES[1]},
        {"source": 1, "target": 2, "header": True},
        ("user", "item"),
        ("amount",),
    ),
    "chosen against their names": (
        {"source": [9, 9, 9], "target": [8, 8, 8], "x": CYCLE[0], "y": CYCLE[1]},
        {"source": "x", "target": "y"},
        ("x", "y"),
        ("source", "target"),
    ),
    "the weight leaves two": (
        {"amount": [1, 2, 3], "user": CYCLE[0], "item": CYCLE[1]},
        {"weight": "amount"},
        ("user", "item", "amount"),
        (),
    ),
    "names that a library made up": (
        {"V1": CYCLE[0], "V2": CYCLE[1], "V3": AMOUNT},
        {},
        (0, 1),
        (2,),
    ),
    "one end named": (
        {"source": CYCLE[0], "z": [7, 8, 9], "target": CYCLE[1]},
        {"source": "Source"},
        ("source", "target"),
        ("z",),
    ),
    "the other end named": (
        {"z": AMOUNT, "sender": NAMES[0], "receiver": NAMES[1]},
        {"target": "receiver", "weight": "Z"},
        ("sender", "receiver", "z"),
        (),
    ),
    "positions of NumPy": (
        {"z": AMOUNT, "a": CYCLE[0], "b": CYCLE[1]},
        {"source": np.int64(1), "target": np.uint8(2), "weight": np.intp(0)},
        ("a", "b", "z"),
        (),
    ),
    "labels that begin like comments": (
        {"source": ["#a", "%b", "c"], "target": ["%b", "c", "#a"]},
        {},
        ("source", "target"),
        (),
    ),
    "labels with blanks, commas, semicolons and quotes": (
        {"source": ["Smith, Ann", "a b;c", 'O"Neil'], "target": ["a b;c", 'O"Neil', "Smith, Ann"]},
        {},
        ("source", "target"),
        (),
    ),
    "numbers that are missing": (
        {"a": NAMES[0], "b": NAMES[1], "w": [5, None, 7]},
        {"source": 0, "target": 1},
        ("a", "b"),
        ("w",),
    ),
    "numbers before the ends": (
        {"w": [5, 6, 7], "a": NAMES[0], "b": NAMES[1]},
        {"source": 1, "target": 2},
        ("a", "b"),
        ("w",),
    ),
    "integers beside text": (
        {"source": [1, 2, 3], "target": ["b", "c", "d"]},
        {},
        ("source", "target"),
        (),
    ),
}


NOT_BETWEEN_BLANKS = ("labels that begin like comments", "numbers that are missing")


@every_form
@pytest.mark.parametrize("name", READ)
def test_the_same_graph(form: Form, name: str, tmp_path: Path) -> None:
    columns, options, used, ignored = READ[name]
    if form.name == "blanks" and name in NOT_BETWEEN_BLANKS:
        pytest.skip("blanks cannot say so")
    if form in TABLE_FORMS:
        options = {key: value for key, value in options.items() if key != "header"}
    graph = ww.Graph(form.make(columns, tmp_path), **options)
    values = [list(columns.values())[end] if isinstance(end, int) else columns[end] for end in used]
    ends = values[:2]
    if name == "integers beside text":
        ends = [list(map(str, values)) for values in ends]
    wanted = {tuple(sorted(pair)) for pair in zip(*ends, strict=True)}
    assert {tuple(sorted(edge)) for edge in edges(graph)} == wanted
    assert (graph.cleaned.columns, graph.cleaned.ignored_columns) == (used, ignored)
    assert graph.cleaned.dropped_columns == len(ignored)
    if len(used) == 3:
        assert graph.weights is not None
        by_pair = {tuple(sorted(pair[:2])): pair[2] for pair in zip(*values, strict=True)}
        found = {tuple(sorted(edge)): weight for edge, weight in zip(_labelled(graph), graph.weights, strict=True)}
        assert found == by_pair


def _labelled(graph: ww.Graph) -> list[tuple[Any, Any]]:
    return [(graph.labels[u], graph.labels[v]) for u, v in graph.edges.tolist()]


# table, keywords of Graph, what the message says
REFUSED: dict[str, tuple[Columns, dict[str, Any], str]] = {
    "nothing decides": (
        {"amount": [1, 2, 3], "user": CYCLE[0], "item": CYCLE[1]},
        {},
        "3 columns, and nothing says which columns are the ends of an edge: 'amount', 'user', 'item'; name the two",
    ),
    "two readings": (
        {"from_id": CYCLE[0], "to_id": CYCLE[1], "from_name": NAMES[0], "to_name": NAMES[1]},
        {},
        "4 columns, and more than one pair of columns is named like the ends of an edge: 'from_id', 'to_id',",
    ),
    "no such column": (
        {"source": CYCLE[0], "target": CYCLE[1]},
        {"source": "sender", "target": "target"},
        "no column 'sender' to take sources from; there are: 'source', 'target'",
    ),
    "no such position": (
        {"source": CYCLE[0], "target": CYCLE[1]},
        {"source": 0, "target": 5},
        "no column 5 to take targets from; there are: 'source', 'target'",
    ),
    "one column for both": (
        {"source": CYCLE[0], "target": CYCLE[1]},
        {"source": 0, "target": "source"},
        "one column is named for source and target",
    ),
    "a weight that is no number": (
        {"source": CYCLE[0], "target": CYCLE[1], "w": ["1", "x", "2"]},
        {"weight": "w"},
        "weight",
    ),
}


@every_form
@pytest.mark.parametrize("name", REFUSED)
def test_the_same_error(form: Form, name: str, tmp_path: Path) -> None:
    columns, options, message = REFUSED[name]
    with pytest.raises(ww.errors.InputError) as caught:
        ww.Graph(form.make(columns, tmp_path), **options)
    assert message in str(caught.value)


def test_a_column_is_a_name_or_a_position() -> None:
    with pytest.raises(ww.errors.InputError, match=r"source=1\.5: a column is a name, or a position from 0"):
        ww.Graph([(0, 1)], source=1.5)  # type: ignore[arg-type]
    with pytest.raises(ww.errors.UnknownNameError, match="header='no'; there are: True, False, 'auto'"):
        ww.Graph([(0, 1)], header="no")


@pytest.mark.parametrize("data", [[(0, 1)], np.array([[0, 1]])], ids=["pairs", "array"])
def test_what_has_no_columns_says_so(data: Any) -> None:
    with pytest.raises(ww.errors.InputError, match="source, target given, but it is no table; leave source and target"):
        ww.Graph(data, source=0, target=1)


@pytest.mark.parametrize("form", TABLE_FORMS, ids=lambda form: form.name.replace(" ", "-"))
def test_only_text_has_a_header(form: Form, tmp_path: Path) -> None:
    with pytest.raises(ww.errors.InputError, match="header=True, but only text files have a header; leave header out"):
        ww.Graph(form.make({"u": [0], "v": [1]}, tmp_path), header=True)


def test_formats_without_columns_say_so(tmp_path: Path) -> None:
    np.save(tmp_path / "pairs.npy", np.array([[0, 1]]))
    with pytest.raises(ww.errors.InputError, match=r"pairs\.npy: source, target given, but the format has no columns"):
        ww.read(tmp_path / "pairs.npy", source=0, target=1)


labels = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"], exclude_characters="#%\"',;"), min_size=1)
tables_of_text = st.lists(st.tuples(labels, labels, st.floats(-1e300, 1e300)), min_size=2, max_size=12)
tables_of_numbers = st.lists(
    st.tuples(st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1), st.floats(-1e300, 1e300)), min_size=2, max_size=12
)


@settings(max_examples=30, deadline=None)
@given(st.one_of(tables_of_text, tables_of_numbers))
def test_all_forms_agree(rows: list[tuple[Any, Any, float]]) -> None:
    columns = dict(zip(("w", "Source", "target"), zip(*((w, u, v) for u, v, w in rows), strict=True), strict=True))
    found = []
    for form in FORMS:
        labels = "text" if form in TEXT_FORMS and isinstance(rows[0][0], str) else "auto"
        with tempfile.TemporaryDirectory() as folder:
            graph = ww.Graph(form.make(columns, Path(folder)), weight="w", combine="sum", labels=labels)
        assert graph.weights is not None
        found.append((list(graph.labels), graph.edges.tolist(), graph.weights.tolist(), graph.cleaned.pairs))
    for form, other in zip(FORMS, found, strict=True):
        assert other == found[0], form.name
