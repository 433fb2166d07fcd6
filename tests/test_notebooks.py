"""What notebooks show: objects in a line or a small table, keywords in signatures, progress without widgets."""

from __future__ import annotations

import pickle
import sys
from inspect import signature
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import wedgewise as ww
from wedgewise.machine import notebook
from wedgewise.machine.progress import progress_bar

PAIRS = [(0, 1), (1, 2), (2, 0), (2, 3)]


@pytest.mark.parametrize(
    ("question", "shown"),
    [
        ("count", "count=1"),
        ("triangles", "triangles=<int64 array of 4>"),
        ("list_triangles", "list_triangles=<uint32 array of 1 × 3>"),
        ("transitivity", "transitivity=0.6"),
        ("max_truss", "max_truss=Truss(k=3, vertices=3, edges=3)"),
        ("truss_summary", "truss_summary=<2 rows>"),
        ("generalized_degree", "generalized_degree=<4 rows>"),
    ],
)
def test_a_result_is_one_line(question: str, shown: str) -> None:
    graph = ww.Graph(PAIRS)
    result = ww.run(question, graph)
    assert repr(result).startswith(f"Result({shown}, n=4, m=4, {result.algorithm} on cpu, ")
    assert "\n" not in repr(result)
    assert "verified" not in repr(result)
    assert "4 vertices, 4 edges" in result._repr_html_()


def test_a_result_says_that_it_was_verified() -> None:
    result = ww.run("count", PAIRS, verify=True)
    assert repr(result).endswith(", verified)")
    assert str(result.verified) in result._repr_html_()


def test_a_truss_counts_its_vertices_while_its_graph_is_there() -> None:
    graph = ww.Graph(PAIRS)
    truss = ww.k_truss(graph, 3)
    assert repr(truss) == "Truss(k=3, vertices=3, edges=3)"
    assert "vertices</th>" in truss._repr_html_()
    assert repr(pickle.loads(pickle.dumps(truss))) == "Truss(k=3, edges=3)"
    del graph
    assert repr(truss) == "Truss(k=3, edges=3)"


def test_algorithms_print_as_a_table() -> None:
    lines = repr(ww.algorithms()).splitlines()
    assert len(lines) == len(ww.algorithms()) + 1
    assert lines[0].split() == ["name", "device", "paper"]
    assert "keystone   cpu    our own engine" in lines
    assert ww.algorithms()._repr_html_().count("<tr>") == len(lines)  # type: ignore[attr-defined]
    assert " at 0x" not in repr(list(ww.algorithms()))


def test_graphs_and_plans_are_tables() -> None:
    shown = ww.Graph([("<b>", "a"), ("a", "c")], weights=[1.0, 2.0], directed=True)._repr_html_()
    assert "<td" in shown
    assert "directions and weights" in shown
    plan = ww.explain("count", PAIRS)
    assert plan._repr_html_().count("<tr>") == len(str(plan).splitlines()) - 1
    assert "&lt;b&gt;" in notebook.rows_html(["name"], [["<b>"]])


def test_signatures_show_the_keywords_of_count() -> None:
    count = signature(ww.count).parameters
    for question in (ww.triangles, ww.clustering, ww.k_truss, ww.iter_triangles, ww.write_triangles):
        parameters = signature(question).parameters
        assert "how" not in parameters
        assert parameters["memory_limit"] == count["memory_limit"]


class Shown:
    """What a cell of a notebook shows below it, piece by piece."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def display(self, text: str, *, display_id: bool) -> SimpleNamespace:
        assert display_id
        self.texts.append(text)
        return SimpleNamespace(update=self.texts.append)


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Shown:
    """A process that is the kernel of a notebook, without IPython."""
    shown = Shown()
    ipython: Any = ModuleType("IPython")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=object())
    ipython.display = ModuleType("IPython.display")
    ipython.display.HTML, ipython.display.display = str, shown.display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", ipython.display)
    return shown


def test_progress_in_a_notebook_needs_no_widgets(shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notebook, "SECONDS_BETWEEN_UPDATES", 0.0)
    with progress_bar(True) as progress:
        assert progress is not None
        progress("read", 0, 0)
        progress("count <x>", 1, 4)
    assert shown.texts == [
        "",
        "<progress></progress> read",
        '<progress value="1" max="4"></progress> count &lt;x&gt;',
        "",
    ]


def test_progress_in_a_notebook_is_drawn_now_and_then(shown: Shown) -> None:
    with progress_bar(True) as progress:
        assert progress is not None
        progress("read", 0, 0)
        for done in range(1000):
            progress("count", done, 1000)
    assert len(shown.texts) < 100


def test_a_terminal_is_no_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    ipython: Any = ModuleType("IPython")
    ipython.get_ipython = lambda: None
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    assert not notebook.is_notebook()
