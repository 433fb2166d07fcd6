"""`Result`, its tables and its dictionary; `Plan`; `Truss` and the other answers that are no arrays."""

from __future__ import annotations

import json
import pickle
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import wedgewise as ww
from wedgewise import errors

from .truths import QUESTIONS

LABELS: dict[str, list[Any]] = {"integers": [100, 200, 300, 400], "text": ["ada", "bob", "cy", "di"]}
TABLES: dict[str, tuple[dict[str, Any], list[tuple[Any, ...]]]] = {  # columns with their types, and rows by vertex
    "triangles": ({"vertex": "label", "triangles": np.int64}, [(0, 1), (1, 1), (2, 1), (3, 0)]),
    "clustering": ({"vertex": "label", "clustering": np.float64}, [(0, 1.0), (1, 1.0), (2, 1 / 3), (3, 0.0)]),
    "truss_components": ({"vertex": "label", "component": np.int64}, [(0, 0), (1, 0), (2, 0), (3, -1)]),
    "generalized_degree": (
        {"vertex": "label", "support": np.int64, "edges": np.int64},
        [(0, 1, 2), (1, 1, 2), (2, 0, 1), (2, 1, 2), (3, 0, 1)],
    ),
    "edge_support": (
        {"source": "label", "target": "label", "support": np.int64},
        [(0, 1, 1), (0, 2, 1), (1, 2, 1), (2, 3, 0)],
    ),
    "trussness": (
        {"source": "label", "target": "label", "truss": np.int64},
        [(0, 1, 3), (0, 2, 3), (1, 2, 3), (2, 3, 2)],
    ),
    "k_truss": ({"source": "label", "target": "label"}, [(0, 1), (0, 2), (1, 2)]),
    "max_truss": ({"source": "label", "target": "label"}, [(0, 1), (0, 2), (1, 2)]),
    "list_triangles": ({"u": "label", "v": "label", "w": "label"}, [(0, 1, 2)]),
    "truss_summary": (
        {"k": np.int64, "edges": np.int64, "vertices": np.int64, "components": np.int64},
        [(2, 4, 4, 1), (3, 3, 3, 1)],
    ),
}
DETAILS: dict[str, dict[str, Any]] = {"k_truss": {"k": 3}, "truss_components": {"k": 3}}
RESULT_KEYS = {"schema", "answer", "question", "algorithm", "device", "plan", "seconds", "n", "m", "cleaned"} | {
    *("wedges_tested", "verified", "peak_bytes", "machine", "version", "timeline"),
}


def ask(question: str, kind: str, **how: Any) -> ww.Result:
    names = LABELS[kind]
    pairs = [(names[u], names[v]) for u, v in ((0, 1), (1, 2), (2, 0), (2, 3))]
    return ww.run(question, pairs, **DETAILS.get(question, {}), **how)


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("question", TABLES)
def test_tables_have_labels_and_types(question: str, kind: str) -> None:
    columns, rows = TABLES[question]
    named = [column for column, dtype in columns.items() if dtype == "label"]
    expected = [
        tuple(LABELS[kind][value] if column in named else value for column, value in zip(columns, row, strict=True))
        for row in rows
    ]
    result = ask(question, kind)
    frame, lazy, arrow = result.to_pandas(), result.to_polars(), result.to_arrow()
    assert (type(frame), type(lazy), type(arrow)) == (pd.DataFrame, pl.DataFrame, pa.Table)
    assert list(frame.columns) == lazy.columns == arrow.column_names == list(columns)
    assert list(frame.itertuples(index=False, name=None)) == lazy.rows() == expected
    assert [tuple(row.values()) for row in arrow.to_pylist()] == expected
    for column, dtype in columns.items():
        is_text = dtype == "label" and kind == "text"
        wanted = np.dtype(np.int64 if dtype == "label" else dtype)
        assert (arrow[column].type == pa.string()) if is_text else (frame[column].dtype == wanted)


@pytest.mark.parametrize("question", sorted(set(QUESTIONS) - set(TABLES)))
def test_one_number_is_no_table(question: str) -> None:
    result = ask(question, "text")
    for convert in (result.to_pandas, result.to_polars, result.to_arrow):
        with pytest.raises(errors.InputError):
            convert()


def test_what_a_result_says() -> None:
    result = ask("count", "integers", algorithm="forward", threads=2, verify=True)
    assert (result.answer, result.question, result.algorithm, result.device) == (1, "count", "forward", "cpu")
    assert (result.n, result.m, result.cleaned.pairs, result.version) == (4, 4, 4, ww.__version__)
    assert (type(result.wedges_tested), type(result.peak_bytes), type(result.machine)) == (int, int, str)
    assert type(result.verified) is str
    assert (list(result.seconds), result.task_seconds, result.timeline) == (
        ["read and clean", "orient", "count", "verify"],
        {},
        None,
    )
    assert type(result.plan) is ww.Plan
    assert result.plan.algorithm == "forward"
    with pytest.raises(FrozenInstanceError):
        result.answer = 2  # type: ignore[misc]


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_result_is_json(question: str) -> None:
    result = ask(question, "text")
    record = json.loads(json.dumps(result.to_dict()))
    assert record["schema"] == 1
    assert set(record) == RESULT_KEYS
    answers: dict[str, Any] = {
        "k_truss": {"k": 3, "edges": [0, 1, 2]},
        "max_truss": {"k": 3, "edges": [0, 1, 2]},
        "generalized_degree": {"offsets": [0, 1, 2, 4, 5], "supports": [1, 1, 0, 1, 0], "edges": [2, 2, 1, 2, 1]},
        "truss_summary": [
            {"k": 2, "edges": 4, "vertices": 4, "components": 1},
            {"k": 3, "edges": 3, "vertices": 3, "components": 1},
        ],
    }
    assert record["answer"] == answers.get(question, np.asarray(result.answer, object).tolist())


def test_nan_is_null_in_json() -> None:
    assert ask("clustering", "text", undefined="nan").to_dict()["answer"][-1] is None


def test_results_cross_processes() -> None:
    for question in TABLES:
        result = ask(question, "text")
        again = pickle.loads(pickle.dumps(result))
        assert again.to_pandas().equals(result.to_pandas())
        assert again.plan == result.plan


def test_a_plan_says_what_would_be_done() -> None:
    plan = ww.explain("transitivity", [(0, 1), (1, 2), (2, 0)], algorithm="latapy", threads=1, order="core")
    assert (plan.question, plan.computes, plan.algorithm, plan.device) == ("transitivity", "count", "latapy", "cpu")
    assert (plan.order, plan.threads, plan.n, plan.m, plan.wedges) == ("core", 1, 3, 3, 1)
    assert list(plan.knobs) == ["threshold"]
    assert type(plan.bytes_needed) is int
    assert type(plan.estimated_seconds) is float
    assert all(type(reason) is str for reason in plan.reasons)
    assert str(plan).startswith("transitivity: latapy on cpu, 1 threads\n")
    assert str(plan).count("\n  because   ") == len(plan.reasons)


def test_trusses_and_degrees_are_sequences() -> None:
    graph = ww.Graph([(0, 1), (1, 2), (2, 0), (2, 3)])
    truss = ww.k_truss(graph, 3)
    assert (truss.k, len(truss), truss.edges.tolist()) == (3, 3, [0, 1, 2])
    degrees = ww.generalized_degree(graph)
    assert (len(degrees), degrees[2], degrees[-1]) == (4, {0: 1, 1: 2}, {0: 1})
    assert list(degrees) == [{1: 2}, {1: 2}, {0: 1, 1: 2}, {0: 1}]
    assert {degrees.offsets.dtype, degrees.supports.dtype, degrees.edges.dtype} == {np.dtype(np.int64)}
    with pytest.raises(IndexError):
        degrees[4]


def test_progress_is_told() -> None:
    told: list[tuple[str, int, int]] = []
    ww.count(ww.generate.kronecker(8).pairs(), progress=lambda *stage: told.append(stage))
    assert told
    assert all((type(stage), type(done), type(total)) == (str, int, int) for stage, done, total in told)
