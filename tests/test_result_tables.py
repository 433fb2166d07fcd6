"""Results as tables of pandas, polars and Arrow: every question, by labels, from wherever the answer came."""

from __future__ import annotations

import copy
import os
import pickle
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pandas
import polars
import pyarrow
import pytest
from pyarrow import parquet

import wedgewise as ww
from wedgewise import generate
from wedgewise.answer import fit
from wedgewise.answer.cut import FileGraph
from wedgewise.answer.questions import QUESTIONS
from wedgewise.errors import FormatError, InputError, MissingDependencyError, MissingFileError
from wedgewise.run import choose
from wedgewise.store.build import write_store

Row = tuple[Any, ...]

NUMBERS = {"count", "average_clustering", "transitivity", "degeneracy"}
TABULATED = [name for name in QUESTIONS if name not in NUMBERS]
FROM_STORES = ["triangles", "edge_support", "k_truss"]
DETAILS: dict[str, dict[str, Any]] = {
    "k_truss": {"k": 4},
    "truss_components": {"k": 4},
    "clustering": {"undefined": "nan"},
    "list_triangles": {"start": 3, "stop": 40},
    "similarity": {"measure": ["cosine", "common_neighbors"]},
    "top_similar": {"k": 2},
}
COLUMNS = {
    "triangles": ["vertex", "triangles"],
    "clustering": ["vertex", "clustering"],
    "truss_components": ["vertex", "component"],
    "generalized_degree": ["vertex", "support", "edges"],
    "edge_support": ["source", "target", "support"],
    "trussness": ["source", "target", "truss"],
    "k_truss": ["source", "target"],
    "max_truss": ["source", "target"],
    "list_triangles": ["u", "v", "w"],
    "truss_summary": ["k", "edges", "vertices", "components"],
    "core_number": ["vertex", "core"],
    "connected_components": ["vertex", "component"],
    "similarity": ["source", "target", "cosine", "common_neighbors"],
    "top_similar": ["source", "target", "jaccard"],
}
FRACTIONS = {"clustering", "cosine", "jaccard"}
LABELS = {"vertex", "source", "target", "u", "v", "w"}
PAIRS = [(7 * u + 5, 7 * v + 5) for u, v in generate.small_world(40, 6, 0.2, seed=2).pairs().tolist()] + [(5, 999)]
SPELLED: dict[str, Callable[[int], Any]] = {"integers": int, "text": lambda label: f"vértex {label}"}
LIBRARIES: dict[str, Callable[[ww.Result], Any]] = {
    "pandas": ww.Result.to_pandas,
    "polars": ww.Result.to_polars,
    "pyarrow": ww.Result.to_arrow,
}

every_library = pytest.mark.parametrize("library", LIBRARIES)
every_spelling = pytest.mark.parametrize("spelling", SPELLED)


def spelled(spelling: str) -> list[tuple[Any, Any]]:
    spell = SPELLED[spelling]
    return [(spell(u), spell(v)) for u, v in PAIRS]


def graph_file(folder: Path, spelling: str) -> Path:
    path = folder / f"{spelling}.csv"
    path.write_text("".join(f"{u},{v}\n" for u, v in spelled(spelling)), encoding="utf-8")
    return path


def asked(question: str, source: Any, **how: Any) -> ww.Result:
    return ww.run(question, source, threads=2, **DETAILS.get(question, {}), **how)


def rows_of(table: Any) -> list[Row]:
    """The rows of a table in Python's own types."""
    if isinstance(table, pandas.DataFrame):
        return list(table.itertuples(index=False, name=None))
    if isinstance(table, polars.DataFrame):
        return table.rows()
    return [tuple(row.values()) for row in table.to_pylist()]


def columns_of(table: Any) -> list[str]:
    return list(table.column_names if isinstance(table, pyarrow.Table) else table.columns)


def expected_rows(graph: ww.Graph, question: str, answer: Any) -> list[Row]:
    """What the rows should be, by the labels and edges of the graph in memory, in plain Python."""
    labels = [label if isinstance(label, str) else int(label) for label in graph.labels]
    edges = [tuple(edge) for edge in graph.edges.tolist()]
    if question == "truss_summary":
        return [(level.k, level.edges, level.vertices, level.components) for level in answer]
    if question == "generalized_degree":
        return [(labels[v], support, many) for v, row in enumerate(answer) for support, many in row.items()]
    if question in ("k_truss", "max_truss"):
        return [tuple(labels[end] for end in edges[edge]) for edge in answer.edges.tolist()]
    if question == "list_triangles":
        return [tuple(labels[v] for v in row) for row in answer.tolist()]
    if question == "similarity":
        values = zip(*(column.tolist() for column in answer.values.values()), strict=True)
        return [(labels[u], labels[v], *row) for (u, v), row in zip(answer.ends.tolist(), values, strict=True)]
    if question == "top_similar":
        return [(labels[u], labels[v], value) for u, row in enumerate(answer) for v, value in row]
    if question in ("edge_support", "trussness"):
        return [(labels[u], labels[v], value) for (u, v), value in zip(edges, answer.tolist(), strict=True)]
    return list(zip(labels, answer.tolist(), strict=True))


def same_rows(found: list[Row], expected: list[Row]) -> bool:
    """Whether rows are alike; NaN is NaN."""
    return [tuple(map(repr, row)) for row in found] == [tuple(map(repr, row)) for row in expected]


def check_tables(result: ww.Result, graph: ww.Graph, answer: Any) -> None:
    """Every library has the rows of an answer about a graph in memory."""
    expected = expected_rows(graph, result.question, answer)
    assert expected
    for to_table in LIBRARIES.values():
        table = to_table(result)
        assert columns_of(table) == COLUMNS[result.question]
        assert same_rows(rows_of(table), expected)


@every_spelling
@pytest.mark.parametrize("question", TABULATED)
def test_every_answer_about_a_graph(question: str, spelling: str) -> None:
    graph = ww.Graph(spelled(spelling))
    result = asked(question, graph)
    check_tables(result, graph, result.answer)


@every_spelling
@pytest.mark.parametrize("question", TABULATED)
def test_every_answer_about_a_file(tmp_path: Path, question: str, spelling: str) -> None:
    path = graph_file(tmp_path, spelling)
    result = asked(question, path)
    path.unlink()
    graph = ww.Graph(spelled(spelling))
    check_tables(result, graph, asked(question, graph).answer)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A store of each spelling."""
    folder = tmp_path_factory.mktemp("stores")
    return {
        spelling: write_store(graph_file(folder, spelling), folder / f"{spelling}-store", parts=3).folder
        for spelling in SPELLED
    }


@every_spelling
@pytest.mark.parametrize("question", FROM_STORES)
def test_every_answer_about_a_store(stores: dict[str, Path], question: str, spelling: str) -> None:
    graph = ww.Graph(spelled(spelling))
    result = asked(question, stores[spelling])
    check_tables(result, graph, asked(question, graph).answer)


@pytest.fixture
def short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is answered in memory, neither files nor graphs."""
    (tmp_path / "passing").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "passing"))
    monkeypatch.setattr(fit, "SMALL_BYTES", 0)
    monkeypatch.setattr(fit, "cleaning_bytes", lambda n, pairs, threads: 1 << 62)
    monkeypatch.setattr(fit, "_allowed", lambda limit: 1000)
    monkeypatch.setattr(choose, "orient_bytes", lambda n, m, threads: 10**15)


@every_spelling
@pytest.mark.parametrize("held", [False, True], ids=["file", "graph"])
@pytest.mark.parametrize("question", FROM_STORES)
def test_every_answer_from_disk(
    tmp_path: Path, request: pytest.FixtureRequest, question: str, held: bool, spelling: str
) -> None:
    graph = ww.Graph(spelled(spelling))
    answer = asked(question, graph).answer
    graph.release()
    request.getfixturevalue("short")
    result = asked(question, graph if held else graph_file(tmp_path, spelling), memory_limit=1 << 34)
    assert result.plan.reasons[0].startswith("from disk, because memory is too small: ")
    assert os.listdir(tmp_path / "passing") == []
    check_tables(result, graph, answer)
    if held:
        assert result.graph is graph
    else:
        assert isinstance(result.graph, FileGraph)
        again = result.graph.edges
        assert again is result.graph.edges


@pytest.mark.usefixtures("short")
def test_a_file_that_changed_since_labels_nothing(tmp_path: Path) -> None:
    path = graph_file(tmp_path, "text")
    result = asked("triangles", path)
    before = path.stat()
    path.write_bytes(path.read_bytes()[::-1].strip() + b"\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    with pytest.raises(InputError, match=r"text\.csv: has changed since it was asked; ask again"):
        result.to_pandas()


def test_a_store_that_changed_since_labels_nothing(tmp_path: Path) -> None:
    store = write_store(graph_file(tmp_path, "text"), tmp_path / "store")
    result = asked("triangles", store.folder)
    assert store.manifest.labels is not None
    labels = store.folder / store.manifest.labels.file
    labels.write_bytes(labels.read_bytes().replace(b"999", b"998"))
    with pytest.raises(FormatError, match="has other bytes than were written"):
        result.to_polars()
    labels.unlink()
    with pytest.raises(MissingFileError, match="cannot be opened"):
        result.to_polars()


@every_library
@pytest.mark.parametrize("question", sorted(NUMBERS))
def test_one_number_is_no_table(question: str, library: str) -> None:
    result = asked(question, PAIRS)
    with pytest.raises(InputError) as caught:
        LIBRARIES[library](result)
    assert str(caught.value) == (
        f"the answer to {question} is one number, which makes no table; it is result.answer: {result.answer}"
    )


def is_label_type(column: Any, library: str, spelling: str) -> bool:
    if spelling == "integers":
        return str(column.type if library == "pyarrow" else column.dtype).lower() == "int64"
    if library == "pandas":
        return bool(pandas.api.types.is_string_dtype(column.dtype))
    return bool(column.type == pyarrow.string() if library == "pyarrow" else column.dtype == polars.String)


@every_spelling
@pytest.mark.parametrize("question", TABULATED)
def test_columns_have_the_types_of_labels_and_answers(question: str, spelling: str) -> None:
    result = asked(question, ww.Graph(spelled(spelling)))
    for library, to_table in LIBRARIES.items():
        table = to_table(result)
        for name in columns_of(table):
            column = table[name]
            if name in LABELS:
                assert is_label_type(column, library, spelling)
            else:
                found = str(column.type if library == "pyarrow" else column.dtype).lower()
                assert found in (("float64", "double") if name in FRACTIONS else ("int64",))


@every_library
def test_what_is_not_a_number_stays_so(library: str) -> None:
    table = LIBRARIES[library](ww.run("clustering", [(0, 1), (1, 2), (2, 0), (2, 3)], undefined="nan"))
    assert repr(rows_of(table)[3]) == "(3, nan)"
    if library == "pyarrow":
        assert table["clustering"].null_count == 0


@every_library
@every_spelling
def test_a_table_without_rows_has_its_types(spelling: str, library: str) -> None:
    table = LIBRARIES[library](ww.run("k_truss", spelled(spelling), k=50))
    assert rows_of(table) == []
    assert columns_of(table) == ["source", "target"]
    if (spelling, library) != ("text", "pandas"):  # without rows, text of pandas is a column of objects
        assert all(is_label_type(table[name], library, spelling) for name in ("source", "target"))


@every_spelling
@pytest.mark.parametrize("question", ["edge_support", "trussness", "k_truss"])
def test_parquet_is_read_back_as_the_same_graph(tmp_path: Path, question: str, spelling: str) -> None:
    graph = ww.Graph(spelled(spelling))
    result = asked(question, graph)
    parquet.write_table(result.to_arrow(), tmp_path / "answer.parquet")
    again = ww.Graph(tmp_path / "answer.parquet")
    due = graph.subgraph(result.answer.edges) if question == "k_truss" else graph
    assert edges_by_label(again) == edges_by_label(due)
    assert ww.count(again) == ww.count(due)


def edges_by_label(graph: ww.Graph) -> set[frozenset[Any]]:
    labels = list(graph.labels)
    return {frozenset((labels[u], labels[v])) for u, v in graph.edges.tolist()}


@every_library
def test_a_missing_library_is_named_before_anything_is_read(monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    result = asked("edge_support", PAIRS)
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.setattr(ww.Graph, "labels", None)
    with pytest.raises(MissingDependencyError, match=f"{library} is needed for this; install it with: pip install "):
        LIBRARIES[library](result)


def test_labels_of_any_kind() -> None:
    nodes = networkx.Graph([((0, 0), "a"), ("a", 7), (7, (0, 0))])
    result = ww.run("triangles", nodes)
    assert rows_of(result.to_pandas()) == rows_of(result.to_polars()) == [((0, 0), 1), ("a", 1), (7, 1)]
    with pytest.raises(InputError, match=r"labels that make no column of Arrow \(.*\); use to_pandas, or name"):
        result.to_arrow()


def test_the_graph_is_no_part_of_what_a_result_says() -> None:
    graph = ww.Graph(PAIRS)
    result = asked("truss_components", graph)
    assert result.graph is graph
    assert "graph" not in result.to_dict()
    assert "Graph(" not in repr(result)
    number = asked("count", graph)
    assert number.graph is None
    assert asked("truss_summary", graph).graph is None
    other = ww.Graph([(0, 1)])
    assert number == pickle.loads(pickle.dumps(number))
    assert number == type(number)(**{**_fields(number), "graph": other})


def _fields(result: ww.Result) -> dict[str, Any]:
    return {name: getattr(result, name) for name in result.__dataclass_fields__}


@pytest.mark.parametrize("again", [lambda result: pickle.loads(pickle.dumps(result)), copy.deepcopy])
@pytest.mark.parametrize("way", ["graph", "store", "disk"])
def test_results_cross_processes_with_their_graph(
    again: Callable[[ww.Result], ww.Result], way: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    path = graph_file(tmp_path, "integers")
    source: Any = ww.Graph(PAIRS) if way == "graph" else path
    if way == "store":
        source = write_store(path, tmp_path / "store", parts=3).folder
    elif way == "disk":
        request.getfixturevalue("short")
    result = asked("triangles", source)
    other = again(result)
    assert np.array_equal(other.answer, result.answer)
    assert other.to_dict() == result.to_dict()
    assert other.to_pandas().equals(result.to_pandas())


def test_a_graph_that_only_a_result_holds_keeps_nothing_prepared(tmp_path: Path) -> None:
    for source in (PAIRS, graph_file(tmp_path, "integers")):
        made = asked("edge_support", source).graph
        assert isinstance(made, ww.Graph)
        assert made.nbytes == made.simple.nbytes
    graph = ww.Graph(PAIRS)
    asked("edge_support", graph)
    assert graph.nbytes > graph.simple.nbytes
