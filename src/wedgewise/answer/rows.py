"""Answers with a row per vertex, edge or triangle: the columns of a table, and whether a file can hold it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from wedgewise.answer_types import Similarity, TopSimilar, Truss
from wedgewise.errors import InputError
from wedgewise.graph import Graph
from wedgewise.read.sniff import data_suffix
from wedgewise.stages import Labels
from wedgewise.write.answers import Answers, check_labels, per_edge, per_pair, per_vertex, some_edges, with_value


@dataclass(frozen=True, slots=True)
class AnswerRows:
    """The vertices that a row names, and the table of an answer."""

    ends: int
    table: Callable[[Graph, Any], Answers] | None = None


def _column(table: Callable[[Graph, str, Any], Answers], name: str) -> Callable[[Graph, Any], Answers]:
    return lambda graph, values: table(graph, name, values)


def _edges_of(graph: Graph, truss: Truss) -> Answers:
    return some_edges(graph, truss.edges)


def _numbered_edges_of(graph: Graph, truss: Truss) -> Answers:
    """The rows that every edge's truss number has of the largest one."""
    return with_value(_edges_of(graph, truss), "truss", truss.k)


def _values_of_pairs(graph: Graph, found: Similarity) -> Answers:
    return per_pair(graph, found.ends, found.values)


def _partners(graph: Graph, found: TopSimilar) -> Answers:
    return per_pair(graph, found.ends, {found.measure: found.values})


ROWS = {
    "triangles": AnswerRows(1, _column(per_vertex, "triangles")),
    "edge_support": AnswerRows(2, _column(per_edge, "support")),
    "clustering": AnswerRows(1, _column(per_vertex, "clustering")),
    "trussness": AnswerRows(2, _column(per_edge, "truss")),
    "k_truss": AnswerRows(2, _edges_of),
    "max_truss": AnswerRows(2, _numbered_edges_of),
    "list_triangles": AnswerRows(3),
    "similarity": AnswerRows(2, _values_of_pairs),
    "top_similar": AnswerRows(2, _partners),
}
OF_PAIRS = ("similarity", "top_similar")


def table_of(question: str, graph: Graph, answer: Any) -> Answers:
    """The rows of an answer."""
    make = ROWS[question].table
    assert make is not None
    return make(graph, answer)


def check_output(output: str, question: str, labels: Labels) -> None:
    """Refuse a file that could not hold the answer."""
    if question in OF_PAIRS and data_suffix(output) == ".npy":
        raise InputError(f"{output}: .npy holds numbers of one type, and values beside labels are two; write .npz")
    check_labels(output, labels, ROWS[question].ends)
