"""The page of a graph: it shows the facts, escapes what users wrote, and is one file; the command that makes it."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.commands import KARATE, answer_of, invoke
from helpers.graphs import fixture_path

import wedgewise as ww
from wedgewise.answer_types import TrussLevel
from wedgewise.cli.report import OwnGraph
from wedgewise.errors import MissingDependencyError
from wedgewise.machine import libraries
from wedgewise.report import explorer, graph_numbers
from wedgewise.report.charts import Chart
from wedgewise.report.explorer import explorer_data
from wedgewise.report.graph_facts import GraphFacts, graph_facts
from wedgewise.report.graph_page import MAX_ROWS, graph_page, levels_table, page_of, share
from wedgewise.report.truss_drawing import laid_out
from wedgewise.store.manifest import MANIFEST

ODD = "<script>alert('owned')</script>"
VOID = {"meta", "link", "br", "input"}
SECTIONS = [
    "Summary",
    "Degrees",
    "Triangles per vertex",
    "Clustering by degree",
    "Trusses",
    "The last truss",
    "Vertices that stand out",
    "Explore",
    "What was cleaned",
    "What it cost",
]
PAIRS: dict[str, list[Any]] = {
    "empty": [],
    "one vertex": [(7, 7)],
    "one edge": [("a", "b")],
    "a star": [(0, 1), (0, 2), (0, 3)],
    "one triangle": [(0, 1), (1, 2), (2, 0)],
}


class Reader(HTMLParser):
    """Collects the rows of every table by its caption, headings, and texts; complains about tags that do not match."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tables: dict[str, list[list[str]]] = {}
        self.headings: list[str] = []
        self.drawings = 0
        self.scripts = 0
        self.text = ""
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        self.drawings += tag == "svg"
        self.scripts += tag == "script" and ("type", "application/json") not in attrs
        if tag == "caption":
            self.rows: list[list[str]] = []
            self.caption = ""
        elif tag == "tr":
            self.rows.append([])
        elif tag in ("th", "td"):
            self.rows[-1].append("")
        elif tag == "h2":
            self.headings.append("")
        assert not any(name.startswith("on") for name, _ in attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        if tag == "table":
            self.tables[self.caption] = self.rows[1:]

    def handle_data(self, data: str) -> None:
        if "script" in self.open or "style" in self.open:
            return
        self.text += data
        if "caption" in self.open:
            self.caption += data
        elif "td" in self.open or "th" in self.open:
            self.rows[-1][-1] += data
        elif "h2" in self.open:
            self.headings[-1] += data


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have empty drawings, for tests of what stands beside them."""
    monkeypatch.setattr(Chart, "svg", lambda _: "<svg></svg>")


@cache
def karate() -> GraphFacts:
    return graph_facts(fixture_path("karate"))


@cache
def karate_page() -> str:
    return page_of(karate())


def test_page_shows_the_summary() -> None:
    read = Reader(karate_page())
    assert read.headings == SECTIONS
    shown = {row[0]: row[1] for row in read.tables["The graph in numbers"]}
    assert shown == {
        "vertices": "34",
        "of these without an edge": "0",
        "edges": "78",
        "triangles": "45",
        "transitivity": "0.255682",
        "average clustering": "0.570638",
        "average clustering where it is defined": "0.587931",
        "largest degree": "17",
        "average degree": "4.59",
        "degeneracy": "4",
        "largest truss number": "5",
        "connected components": "1",
        "vertices of the largest component": "34 (100.0% of all)",
    }
    assert "34 vertices and 78 edges, 45 triangles" in read.text


def test_page_shows_classes_trusses_and_vertices() -> None:
    facts, read = karate(), Reader(karate_page())
    assert read.tables["Vertices by degree"] == [
        ["1", "1", "2.94%"],
        ["2–3", "17", "50.00%"],
        ["4–7", "11", "32.35%"],
        ["8–15", "3", "8.82%"],
        ["16–31", "2", "5.88%"],
    ]
    assert [row[1] for row in read.tables["Vertices by triangles"]] == [
        f"{item.vertices:,}" for item in facts.triangles.classes
    ]
    assert [row[2] for row in read.tables["Average clustering by degree"]] == [
        f"{item.clustering:.6f}" for item in facts.clustering_by_degree
    ]
    (levels,) = (rows for caption, rows in read.tables.items() if caption.startswith("What each k-truss has"))
    assert [row[:4] for row in levels] == [
        ["2", "78", "34", "1"],
        ["3", "67", "32", "1"],
        ["4", "25", "12", "2"],
        ["5", "14", "6", "1"],
    ]
    assert read.tables["Its components"] == [["1", "6", "14", "0.933"]]
    assert "Component 1: 0, 1, 2, 3, 7, 13" in read.text
    for caption, top in [("Most triangles", facts.top_by_triangles), ("Largest degree", facts.top_by_degree)]:
        (rows,) = (rows for text, rows in read.tables.items() if text.startswith(caption))
        assert rows == [
            [str(item.label), str(item.triangles), str(item.degree), f"{item.clustering:.6f}", str(item.truss)]
            for item in top
        ]


@pytest.mark.usefixtures("undrawn")
def test_page_shows_what_was_cleaned_and_what_it_cost() -> None:
    facts = graph_facts([(0, 1), (1, 0), (1, 2), (2, 0), (2, 2), (0, 1)])
    read = Reader(page_of(facts))
    assert [row[1] for row in read.tables["From pairs to edges"]] == ["6", "1", "1", "1", "0", "3"]
    assert [row[0] for row in read.tables["How the questions were answered"]] == ["triangles", "trussness"]
    for text in (facts.machine, f"wedgewise {facts.version}", *(step.reasons[0] for step in facts.steps)):
        assert text in read.text
    stages = {row[0]: row[1] for row in read.tables["Wall-clock seconds by stage"]}
    assert stages == {stage: f"{taken:.3f}" for stage, taken in facts.seconds.items()}


@pytest.mark.usefixtures("undrawn")
def test_page_says_what_was_not_read(tmp_path: Path) -> None:
    (tmp_path / "weighted.txt").write_text("0 1 5 7\n1 2 6 8\n")
    assert "Not read: 2 further columns: 2, 3." in Reader(page_of(graph_facts(tmp_path / "weighted.txt"))).text


@pytest.mark.parametrize("name", PAIRS)
def test_small_graphs_have_pages(name: str) -> None:
    read = Reader(graph_page(PAIRS[name]))
    has_edges = any(u != v for u, v in PAIRS[name])
    assert read.headings == [title for title in SECTIONS if has_edges or title != "Explore"]
    assert [row[1] for row in read.tables["The graph in numbers"]][2] == str(sum(u != v for u, v in PAIRS[name]))
    assert "nan" not in read.text


def explored(graph: ww.Graph) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(explorer_data(graph, ww.triangles(graph), ww.trussness(graph)))
    return found


def test_the_explorer_knows_every_vertex_and_edge() -> None:
    graph = ww.Graph([("ada", "bob"), ("bob", "cy"), ("cy", "ada"), ("cy", "</script>")])
    assert explored(graph) == {
        "labels": ["ada", "bob", "cy", "</script>"],
        "from": [0, 0, 1, 2],
        "to": [1, 2, 2, 3],
        "truss": [3, 3, 3, 2],
        "triangles": [1, 1, 1, 0],
    }
    assert graph_page(graph).count("</script>") == 2


def test_only_small_graphs_have_an_explorer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explorer, "MAX_EDGES", 77)
    assert "Explore" not in Reader(graph_page(fixture_path("karate"))).headings


def test_the_last_truss_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    clique = [(u, v) for v in range(6) for u in range(v)]
    page = graph_page([*clique, (5, 6), (6, 7)])
    assert "Its largest component, drawn: 6 vertices and 15 edges" in page
    assert page.count("<circle") == 6
    monkeypatch.setattr(graph_numbers, "MAX_DRAWN", 4)
    assert "with most edges, drawn: 4 vertices and 6 edges" in graph_page(clique)


def test_a_layout_is_the_same_every_time_and_keeps_vertices_apart() -> None:
    edges = np.array([(u, v) for v in range(8) for u in range(v)])
    points = laid_out(9, edges)
    assert (points == laid_out(9, edges)).all()
    apart = np.hypot(*(points[:, None] - points[None]).transpose(2, 0, 1))
    assert apart[~np.eye(9, dtype=bool)].min() > 0.1
    assert apart[8, :8].min() > apart[:8, :8].max() / 2  # the one without edges lies outside


def test_drawings_are_there() -> None:
    assert Reader(karate_page()).drawings == 6


@pytest.mark.usefixtures("undrawn")
def test_what_users_wrote_is_shown_as_they_wrote_it() -> None:
    pairs = [(ODD, "`x`"), ("`x`", "a&amp;b"), ("a&amp;b", ODD), ("a&amp;b", "\u202egnp"), ("\x1b[31m", ODD)]
    page = graph_page(pairs)
    read = Reader(page)
    assert "<script>alert" not in page
    assert read.scripts == 1
    (rows,) = (rows for caption, rows in read.tables.items() if caption.startswith("Largest degree"))
    labels = {row[0] for row in rows}
    assert labels == {ODD, "`x`", "a&amp;b", r"\u202egnp", r"\x1b[31m"}
    assert f"{ODD}, `x`, a&amp;b" in read.text


@pytest.mark.usefixtures("undrawn")
def test_names_of_files_are_escaped() -> None:
    page = page_of(replace(karate(), source=f"folder/{ODD}.txt", notes=("`gz`",)))
    read = Reader(page)
    assert read.scripts == 1
    assert f"{ODD}.txt: 34 vertices" in read.text
    assert "Read as text, `gz`" in read.text


def test_page_needs_nothing_else() -> None:
    page = karate_page()
    for start in ('src="', 'href="http', "@import", "url(http"):
        assert start not in page
    assert "Content-Security-Policy" in page


@pytest.mark.usefixtures("undrawn")
def test_directions_are_mentioned() -> None:
    assert "keeps directions" in page_of(replace(karate(), directed=True))
    assert "keeps directions" not in karate_page()


def test_long_tables_of_trusses_are_cut_in_the_middle() -> None:
    levels = [TrussLevel(k, 10**6 - k, 1000, 1) for k in range(2, 500)]
    read = Reader(levels_table(levels))
    ((caption, rows),) = read.tables.items()
    assert len(rows) == MAX_ROWS
    assert (rows[0][0], rows[-1][0]) == ("2", "499")
    assert f"Left out in the middle: {498 - MAX_ROWS} rows" in caption


def test_shares_are_never_rounded_to_nothing() -> None:
    found = [share(part, whole)[0] for part, whole in [(0, 0), (0, 5), (1, 10**6), (1, 10**4), (1, 3), (5, 5)]]
    assert found == ["0.00%", "0.00%", "<0.01%", "0.01%", "33.33%", "100.00%"]


def test_equal_trusses_share_a_row() -> None:
    levels = [TrussLevel(2, 30, 20, 2), *(TrussLevel(k, 10, 5, 1) for k in (3, 4, 5))]
    ((_, rows),) = Reader(levels_table(levels)).tables.items()
    assert rows == [["2", "30", "20", "2", "0.158"], ["3–5", "10", "5", "1", "1.00"]]


@pytest.mark.usefixtures("undrawn")
def test_command_writes_the_page(tmp_path: Path) -> None:
    output = tmp_path / "karate.html"
    result = invoke("report", "--graph", KARATE, "--output", str(output))
    assert (result.exit_code, result.stdout) == (0, f"{output}\n")
    read = Reader(output.read_text(encoding="utf-8"))
    assert read.headings == SECTIONS
    assert "read and clean" in read.text


@pytest.mark.usefixtures("undrawn")
def test_command_prints_the_facts(tmp_path: Path) -> None:
    output = tmp_path / "karate.html"
    record = answer_of("report", "--graph", KARATE, "--drop-leaves", "--threads", "1")
    assert record["files"] == []
    assert record["cleaned"]["leaves_dropped"] == 1
    assert record["summary"]["triangles"] == 45
    assert record["steps"][0]["threads"] == 1
    record = answer_of("report", "--graph", KARATE, "--output", str(output))
    assert record["files"] == [str(output)]
    assert record["summary"] == json.loads(json.dumps(karate().to_dict()))["summary"]
    assert output.exists()


def test_command_reads_standard_input_and_labels() -> None:
    result = invoke("report", "--graph", "-", "--json", "--labels", "text", stdin="1 2\n2 3\n3 1\n")
    assert [vertex["label"] for vertex in json.loads(result.stdout)["top_by_degree"]] == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--graph", KARATE], 2, "--output G.html"),
        (["--graph", KARATE, "results.jsonl", "--output", "page.html"], 2, "leave out RESULTS"),
        (["--graph", KARATE, "--png", "folder"], 2, "leave out RESULTS"),
        (["results.jsonl", "--threads", "1", "--output", "page.html"], 2, "name one with --graph"),
        ([], 2, "a graph with --graph"),
        (["--graph", KARATE, "--output", "no/such/folder/page.html"], 1, "its folder is not there"),
        (["--graph", "no such file", "--json"], 1, "no such file"),
        (["--graph", KARATE, "--memory", "1kB", "--json"], 1, "alone take less"),
        (["--graph", KARATE, "--device", "hybrid", "--json"], 1, "use cuda or cpu"),
    ],
)
def test_wrong_usage(
    arguments: list[str], code: int, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = invoke("report", *arguments)
    assert result.exit_code == code
    assert says in result.output
    assert list(tmp_path.iterdir()) == []


def test_command_refuses_a_store(tmp_path: Path) -> None:
    (tmp_path / MANIFEST).touch()
    result = invoke("report", "--graph", str(tmp_path), "--json")
    assert result.exit_code == 1
    assert "is a store" in result.output


def test_missing_matplotlib_is_found_before_the_graph_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(module: str) -> Any:
        raise MissingDependencyError(f"{module} is needed")

    def never(*_: Any) -> None:
        raise AssertionError("read")

    monkeypatch.setattr(libraries, "library", missing)
    monkeypatch.setattr(OwnGraph, "facts", never)
    result = invoke("report", "--graph", KARATE, "--output", str(tmp_path / "page.html"))
    assert (result.exit_code, result.output) == (1, "error: matplotlib is needed\n")


@pytest.mark.deep
@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Chromium")
def test_browser_renders_the_page_and_runs_nothing_of_the_users(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(graph_page([(ODD, "b"), ("b", "c"), ("c", ODD), ("c", "d")]), encoding="utf-8")
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    log = ["--enable-logging=stderr", "--v=0", "--dump-dom", path.as_uri()]
    ran = subprocess.run([*command, *log], capture_output=True, text=True, timeout=120, check=True)
    assert "CONSOLE" not in ran.stderr
    assert ran.stdout.count('aria-sort="none"') > 20
    assert "<script>alert" not in ran.stdout
    assert "<dt>truss level</dt><dd>3</dd>" in ran.stdout  # the explorer shows the vertex with most triangles
    assert "Neighbours, those of the densest trusses first" in ran.stdout
