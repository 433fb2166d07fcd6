"""An answer → the columns of its table, by the labels of its graph.

question              columns                        a row per
triangles             vertex, triangles              vertex
clustering            vertex, clustering             vertex
truss_components      vertex, component              vertex
core_number           vertex, core                   vertex
connected_components  vertex, component              vertex
generalized_degree    vertex, support, edges         vertex and support
edge_support          source, target, support        edge
trussness             source, target, truss          edge
k_truss, max_truss    source, target                 edge of the truss
list_triangles        u, v, w                        triangle
similarity            source, target, measures       edge or pair
top_similar           source, target, measure        vertex and partner
truss_summary         k, edges, vertices, components k
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.answer.questions import QUESTIONS
from wedgewise.answer_types import (
    EDGE,
    EDGE_OF_TRUSS,
    PAIR,
    TRIANGLE,
    VERTEX,
    VERTEX_AND_SUPPORT,
    GeneralizedDegree,
    Similarity,
    TopSimilar,
    Truss,
    TrussLevel,
)
from wedgewise.errors import InputError
from wedgewise.interop.tables import NamedColumns, edge_table, labelled_rows, vertex_table
from wedgewise.stages import LabelledGraph


def answer_columns(question: str, answer: Any, graph: LabelledGraph | None) -> NamedColumns:
    """The columns of an answer that has rows, as NumPy arrays."""
    rows = QUESTIONS[question].rows
    if rows is None:
        raise InputError(f"the answer to {question} is one number, which makes no table; it is result.answer: {answer}")
    if not rows.have_labels:
        return _levels(answer)
    assert graph is not None
    return COLUMNS[rows.per](graph, rows.value, answer)


def _per_vertex(graph: LabelledGraph, name: str, values: NDArray[Any]) -> NamedColumns:
    return vertex_table(graph, **{name: values})


def _per_edge(graph: LabelledGraph, name: str, values: NDArray[Any]) -> NamedColumns:
    return edge_table(graph, **{name: values})


def _edges_of_truss(graph: LabelledGraph, _name: str, truss: Truss) -> NamedColumns:
    return labelled_rows(graph.labels, graph.edges[truss.edges], ("source", "target"))


def _triangles(graph: LabelledGraph, _name: str, rows: NDArray[np.uint32]) -> NamedColumns:
    return labelled_rows(graph.labels, rows, ("u", "v", "w"))


def _degrees_by_support(graph: LabelledGraph, _name: str, degrees: GeneralizedDegree) -> NamedColumns:
    vertices = np.repeat(np.arange(len(degrees)), np.diff(degrees.offsets))
    labels = labelled_rows(graph.labels, vertices[:, None], ("vertex",))
    return {**labels, "support": degrees.supports, "edges": degrees.edges}


def _values_of_pairs(graph: LabelledGraph, _name: str, found: Similarity | TopSimilar) -> NamedColumns:
    return {**labelled_rows(graph.labels, found.ends, ("source", "target")), **found.columns}


def _levels(levels: tuple[TrussLevel, ...]) -> NamedColumns:
    return {
        part.name: np.array([getattr(level, part.name) for level in levels], np.int64) for part in fields(TrussLevel)
    }


COLUMNS: dict[str, Callable[[LabelledGraph, str, Any], NamedColumns]] = {
    VERTEX: _per_vertex,
    VERTEX_AND_SUPPORT: _degrees_by_support,
    EDGE: _per_edge,
    EDGE_OF_TRUSS: _edges_of_truss,
    PAIR: _values_of_pairs,
    TRIANGLE: _triangles,
}
