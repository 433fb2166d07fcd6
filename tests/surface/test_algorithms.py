"""Every algorithm of the CPU answers every question that it declares, on graphs whose answers are known."""

from __future__ import annotations

from itertools import product
from typing import Any

import networkx as nx
import numpy as np
import pytest

import wedgewise as ww
from wedgewise import errors

from .truths import COMPUTED_AS, GRAPHS, QUESTIONS, check, known, plain

pytestmark = pytest.mark.compiled

RECORDS = {record.name: record for record in ww.algorithms() if record.device == "cpu"}
TYPES: dict[str, Any] = {"count": int, "average_clustering": float, "transitivity": float}
DTYPES = {
    **dict.fromkeys(("triangles", "edge_support", "trussness", "truss_components"), np.int64),
    "list_triangles": np.uint32,
    "clustering": np.float64,
}


def check_type(question: str, answer: Any, graph: ww.Graph) -> None:
    """The Python type, the type of numbers and the shape that the documentation says."""
    if question in TYPES:
        assert type(answer) is TYPES[question]
    elif question in DTYPES:
        by_edge = question in ("edge_support", "trussness")
        assert answer.dtype == DTYPES[question]
        rows = len(answer) if question == "list_triangles" else graph.m if by_edge else graph.n
        assert answer.shape == ((rows, 3) if question == "list_triangles" else (rows,))
    elif question in ("k_truss", "max_truss"):
        assert (type(answer), type(answer.k), answer.edges.dtype) == (ww.Truss, int, np.int64)
    elif question == "truss_summary":
        assert type(answer) is tuple
        assert all(type(level) is ww.TrussLevel for level in answer)


@pytest.mark.parametrize("algorithm", ["auto", *RECORDS])
@pytest.mark.parametrize("name", GRAPHS)
def test_every_question(name: str, algorithm: str) -> None:
    graph, truth = known(name).graph, known(name)
    for question, asked in QUESTIONS.items():
        if algorithm != "auto" and COMPUTED_AS.get(question, question) not in RECORDS[algorithm].answers:
            with pytest.raises(errors.PreconditionError):
                ww.run(question, graph, algorithm=algorithm, **asked[-1])
            continue
        for details in asked:
            if question == "list_triangles" and details.get("start", 0) > len(truth.listed):
                continue
            result = ww.run(question, graph, algorithm=algorithm, device="cpu", **details)
            check(question, details, result.answer, truth)
            check_type(question, result.answer, graph)
            assert algorithm in ("auto", result.algorithm)
            if question == "generalized_degree":
                continue  # its rows have no order of their own to compare by
            if algorithm == "auto" or name == "karate":  # the function hands the same on, whatever the graph
                function = getattr(ww, question)
                assert plain(function(graph, algorithm=algorithm, device="cpu", **details)) == plain(result.answer)


@pytest.mark.parametrize("name", ["karate", "clustered"])
@pytest.mark.parametrize("algorithm", RECORDS)
def test_every_order_relabelling_and_knob(name: str, algorithm: str) -> None:
    graph, truth, record = known(name).graph, known(name), RECORDS[algorithm]
    question = "count" if "count" in record.answers else "trussness"
    settings: list[dict[str, Any]] = [
        {"order": order, "relabel": relabel} for order, relabel in product(record.orders, record.relabellings)
    ]
    for knob in record.knobs:
        values = knob.choices or (knob.default, knob.least, int(knob.default) + 1)
        settings += [{"knobs": {knob.name: value}} for value in values]
    for setting in settings:
        result = ww.run(question, graph, algorithm=algorithm, **setting)
        check(question, {}, result.answer, truth)
        if "order" in setting:
            assert (result.plan.order, result.plan.relabel) == (setting["order"], setting["relabel"])
        else:
            assert setting["knobs"].items() <= result.plan.knobs.items()


@pytest.mark.parametrize("name", ["atlas", "clustered"])
def test_answers_are_the_same_bits_by_any_algorithm_and_threads(name: str) -> None:
    graph = known(name).graph
    for question in ("triangles", "edge_support", "list_triangles", "clustering", "trussness"):
        able = [name for name, record in RECORDS.items() if COMPUTED_AS.get(question, question) in record.answers]
        assert len(able) > 1
        bits = {
            ww.run(question, graph, algorithm=algorithm, threads=threads).answer.tobytes()
            for algorithm, threads in product(able, (1, 3))
        }
        assert len(bits) == 1, question


@pytest.mark.parametrize(
    "algorithm", [name for name, record in RECORDS.items() if "weighted_triangles" in record.answers]
)
@pytest.mark.parametrize("make", [nx.Graph, nx.DiGraph])
def test_weighted_and_directed_clustering_are_networkx_s(make: Any, algorithm: str) -> None:
    rng = np.random.default_rng(5)
    arcs = [(u, v) for u, v in rng.integers(0, 60, (900, 2)).tolist() if u != v]
    source = make()
    source.add_nodes_from(range(60))
    source.add_weighted_edges_from((u, v, w) for (u, v), w in zip(arcs, rng.uniform(0.1, 3, len(arcs)), strict=True))
    directed = make is nx.DiGraph
    graph = ww.Graph(source, weights="weight", directed=directed)
    assert graph.directed == directed
    for weighted in (False, True):
        expected = nx.clustering(source, weight="weight" if weighted else None, backend="networkx")
        answer = ww.clustering(graph, weighted=weighted, algorithm="auto" if not (weighted or directed) else algorithm)
        np.testing.assert_allclose(answer, list(expected.values()), rtol=1e-10, atol=1e-14)
        mean = ww.average_clustering(graph, weighted=weighted)
        np.testing.assert_allclose(mean, np.mean(list(expected.values())), rtol=1e-10)


def test_listings_come_in_batches_and_files(tmp_path: Any) -> None:
    graph = known("karate").graph
    whole = ww.list_triangles(graph)
    batches = list(ww.iter_triangles(graph, batch=7))
    assert [len(rows) for rows in batches] == [7, 7, 7, 7, 7, 7, 3]
    assert {rows.dtype for rows in batches} == {np.dtype(np.uint32)}
    np.testing.assert_array_equal(np.concatenate(batches), whole)
    np.testing.assert_array_equal(
        np.concatenate(list(ww.iter_triangles(graph, start=5, stop=20, batch=4))), whole[5:20]
    )
    (batch,) = ww.iter_triangles(graph, output="arrow")
    assert (type(batch).__name__, batch.schema.names) == ("RecordBatch", ["u", "v", "w"])
    assert ww.write_triangles(graph, tmp_path / "all.csv", batch=7) == 45
    lines = (tmp_path / "all.csv").read_text().splitlines()
    assert lines == ["u,v,w", *(",".join(map(str, row)) for row in whole.tolist())]
    assert ww.write_triangles(graph, tmp_path / "some.npy", start=40) == 5
    np.testing.assert_array_equal(np.load(tmp_path / "some.npy"), whole[40:])


def test_verification_says_how() -> None:
    graph = known("karate").graph
    for question, asked in QUESTIONS.items():
        result = ww.run(question, graph, verify=True, **asked[-1])
        assert isinstance(result.verified, str), question
        check(question, asked[-1], result.answer, known("karate"))
