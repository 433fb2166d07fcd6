"""A digest tells different answers apart and does not depend on how vertices and edges are numbered."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from wedgewise_bench import digest
from wedgewise_bench.digest import summarise
from wedgewise_bench.words import QUESTIONS

EDGES = np.array([[0, 1], [0, 2], [1, 2], [1, 3], [2, 3], [3, 4]])
IDS = np.array([10, 20, 30, 40, 50])
ANSWERS: dict[str, Any] = {
    "count": 2,
    "triangles": np.array([1, 2, 2, 1, 0]),
    "edge_support": np.array([1, 1, 2, 1, 1, 0]),
    "clustering": np.array([1, 2 / 3, 2 / 3, 1 / 3, 0]),
    "transitivity": 6 / 10,
    "list_triangles": np.array([[0, 1, 2], [1, 2, 3]]),
    "trussness": np.array([3, 3, 3, 3, 3, 2]),
    "k_truss": np.array([0, 1, 2, 3, 4]),
    "max_truss": (3, np.array([0, 1, 2, 3, 4])),
}
IMPLIED = {"trussness": 3, "k_truss": 5, "max_truss": 3}
BY_EDGE = ("edge_support", "trussness")
BY_VERTEX = ("triangles", "clustering")


def frame_of(edges: NDArray[Any], ids: NDArray[Any]) -> Any:
    degrees = np.bincount(edges.reshape(-1), minlength=len(ids))
    return SimpleNamespace(ids=ids, degrees=degrees, first=edges[:, 0], second=edges[:, 1])


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_answer_implies_a_number(question: str) -> None:
    number, mark = summarise(question, frame_of(EDGES, IDS), ANSWERS[question])
    assert number == IMPLIED.get(question, 2)
    assert len(mark) == (0 if question in ("count", "transitivity") else 16)


@pytest.mark.parametrize("question", [name for name in QUESTIONS if name not in ("count", "transitivity")])
def test_digest_does_not_depend_on_the_numbering(question: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digest, "ROWS_AT_ONCE", 2)
    new_name = np.array([3, 0, 4, 1, 2])
    order = np.array([5, 2, 0, 1, 4, 3])
    edges = new_name[EDGES][order][:, ::-1]
    ids = np.empty_like(IDS)
    ids[new_name] = IDS
    answer = ANSWERS[question]
    if question in BY_VERTEX:
        renamed = np.empty_like(answer)
        renamed[new_name] = answer
    elif question in BY_EDGE:
        renamed = answer[order]
    elif question == "list_triangles":
        renamed = new_name[answer][::-1, [2, 0, 1]]
    else:
        place = np.argsort(order)
        renamed = place[answer] if question == "k_truss" else (answer[0], place[answer[1]])
    expected = summarise(question, frame_of(EDGES, IDS), answer)
    assert summarise(question, frame_of(edges, ids), renamed) == expected


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("triangles", [2, 1, 2, 1, 0]),
        ("triangles", [1, 2, 2, 0, 1]),
        ("edge_support", [1, 1, 2, 1, 0, 1]),
        ("edge_support", [2, 1, 1, 1, 1, 0]),
        ("list_triangles", [[0, 1, 2], [1, 2, 4]]),
        ("list_triangles", [[0, 1, 2], [0, 1, 2]]),
        ("trussness", [3, 3, 3, 3, 2, 3]),
        ("k_truss", [0, 1, 2, 3, 5]),
    ],
)
def test_digest_tells_answers_of_the_same_total_apart(question: str, answer: list[Any]) -> None:
    right = summarise(question, frame_of(EDGES, IDS), ANSWERS[question])
    other = summarise(question, frame_of(EDGES, IDS), np.array(answer))
    assert other[0] == right[0]
    assert other[1] != right[1]


def test_digest_of_a_last_truss_has_its_edges_and_its_k() -> None:
    frame, (k, held) = frame_of(EDGES, IDS), ANSWERS["max_truss"]
    found = {summarise("max_truss", frame, answer) for answer in ((k, held), (k, held[1:]), (k + 1, held))}
    assert [number for number, _ in sorted(found)] == [3, 3, 4]
    assert len({mark for _, mark in found}) == 3


def test_isolated_vertices_do_not_matter() -> None:
    with_more = frame_of(EDGES, np.array([*IDS.tolist(), 60]))
    answer = np.append(ANSWERS["triangles"], 0)
    assert summarise("triangles", with_more, answer) == summarise("triangles", frame_of(EDGES, IDS), answer[:-1])


def test_clustering_has_the_digest_of_its_triangles() -> None:
    frame = frame_of(EDGES, IDS)
    assert summarise("clustering", frame, ANSWERS["clustering"]) == summarise("triangles", frame, ANSWERS["triangles"])


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("triangles", [1, 2, 2, 1, 1]),
        ("triangles", [1, 2, 2, 1]),
        ("edge_support", [1, 1, 2, 1, 1]),
        ("clustering", [1.0, 0.5, 0.5, 0.5, 0.0]),
        ("clustering", [1.0, 2 / 3, 2 / 3, 1 / 3, np.nan]),
        ("transitivity", 0.55),
        ("trussness", [3, 3, 3, 3, 3]),
        ("trussness", [3, 3, 3, 3, 3, 1]),
    ],
)
def test_numbers_that_no_graph_has_are_refused(question: str, answer: Any) -> None:
    with pytest.raises(ArithmeticError):
        summarise(question, frame_of(EDGES, IDS), np.array(answer))


def test_a_graph_without_edges() -> None:
    empty = frame_of(np.empty((0, 2), np.int64), np.empty(0, np.int64))
    for question in ("triangles", "edge_support", "clustering", "list_triangles"):
        assert summarise(question, empty, np.empty(0)) == (0, "0" * 16)
    assert summarise("k_truss", empty, []) == (0, "0" * 16)
    assert summarise("trussness", empty, np.empty(0)) == summarise("max_truss", empty, (2, [])) == (2, "0" * 16)
