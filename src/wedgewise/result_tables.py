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

from wedgewise.answer_types import GeneralizedDegree, Similarity, TopSimilar, Truss, TrussLevel
from wedgewise.errors import InputError
from wedgewise.interop.tables import NamedColumns, edge_table, labelled_rows, vertex_table
from wedgewise.stages import LabelledGraph


def answer_columns(question: str, answer: Any, graph: LabelledGraph | None) -> NamedColumns:
    """The columns of an answer that has rows, as NumPy arrays."""
    if question == "truss_summary":
        return _levels(answer)
    if question not in LABELLED:
        raise InputError(f"the answer to {question} is one number, which makes no table; it is result.answer: {answer}")
    assert graph is not None
    return LABELLED[question](graph, answer)


def _per_vertex(name: str) -> Callable[[LabelledGraph, NDArray[Any]], NamedColumns]:
    return lambda graph, values: vertex_table(graph, **{name: values})


def _per_edge(name: str) -> Callable[[LabelledGraph, NDArray[Any]], NamedColumns]:
    return lambda graph, values: edge_table(graph, **{name: values})


def _edges_of_truss(graph: LabelledGraph, truss: Truss) -> NamedColumns:
    return labelled_rows(graph.labels, graph.edges[truss.edges], ("source", "target"))


def _triangles(graph: LabelledGraph, rows: NDArray[np.uint32]) -> NamedColumns:
    return labelled_rows(graph.labels, rows, ("u", "v", "w"))


def _degrees_by_support(graph: LabelledGraph, degrees: GeneralizedDegree) -> NamedColumns:
    vertices = np.repeat(np.arange(len(degrees)), np.diff(degrees.offsets))
    labels = labelled_rows(graph.labels, vertices[:, None], ("vertex",))
    return {**labels, "support": degrees.supports, "edges": degrees.edges}


def _values_of_pairs(graph: LabelledGraph, found: Similarity) -> NamedColumns:
    return {**labelled_rows(graph.labels, found.ends, ("source", "target")), **found.values}


def _partners(graph: LabelledGraph, found: TopSimilar) -> NamedColumns:
    return {**labelled_rows(graph.labels, found.ends, ("source", "target")), found.measure: found.values}


def _levels(levels: tuple[TrussLevel, ...]) -> NamedColumns:
    return {
        part.name: np.array([getattr(level, part.name) for level in levels], np.int64) for part in fields(TrussLevel)
    }


LABELLED: dict[str, Callable[[LabelledGraph, Any], NamedColumns]] = {
    "triangles": _per_vertex("triangles"),
    "clustering": _per_vertex("clustering"),
    "truss_components": _per_vertex("component"),
    "core_number": _per_vertex("core"),
    "connected_components": _per_vertex("component"),
    "similarity": _values_of_pairs,
    "top_similar": _partners,
    "generalized_degree": _degrees_by_support,
    "edge_support": _per_edge("support"),
    "trussness": _per_edge("truss"),
    "k_truss": _edges_of_truss,
    "max_truss": _edges_of_truss,
    "list_triangles": _triangles,
}
