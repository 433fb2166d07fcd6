"""Answers with a row per vertex, edge or triangle: the columns of a table, and whether a file can hold it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wedgewise.answer.questions import QUESTIONS
from wedgewise.answer_types import EDGE, EDGE_OF_TRUSS, PAIR, TRIANGLE, VERTEX, Rows, Similarity, TopSimilar, Truss
from wedgewise.errors import InputError
from wedgewise.graph import Graph
from wedgewise.read.sniff import data_suffix
from wedgewise.stages import Labels
from wedgewise.write.answers import Answers, check_labels, per_edge, per_pair, per_vertex, some_edges, with_value


def _edges_of_truss(graph: Graph, name: str, truss: Truss) -> Answers:
    """Its edges; with a name, the rows that every edge's truss number has of them."""
    edges = some_edges(graph, truss.edges)
    return with_value(edges, name, truss.k) if name else edges


def _values_of_pairs(graph: Graph, _name: str, found: Similarity | TopSimilar) -> Answers:
    return per_pair(graph, found.ends, found.columns)


ENDS = {VERTEX: 1, EDGE: 2, EDGE_OF_TRUSS: 2, PAIR: 2, TRIANGLE: 3}  # the vertices that a row names
TABLES: dict[str, Callable[[Graph, str, Any], Answers]] = {
    VERTEX: per_vertex,
    EDGE: per_edge,
    EDGE_OF_TRUSS: _edges_of_truss,
    PAIR: _values_of_pairs,
}


def table_of(question: str, graph: Graph, answer: Any) -> Answers:
    """The rows of an answer."""
    rows = _rows_of(question)
    return TABLES[rows.per](graph, rows.value, answer)


def check_output(output: str, question: str, labels: Labels) -> None:
    """Refuse a file that could not hold the answer."""
    per = _rows_of(question).per
    if per == PAIR and data_suffix(output) == ".npy":
        raise InputError(f"{output}: .npy holds numbers of one type, and values beside labels are two; write .npz")
    check_labels(output, labels, ENDS[per])


def _rows_of(question: str) -> Rows:
    rows = QUESTIONS[question].rows
    assert rows is not None
    return rows
