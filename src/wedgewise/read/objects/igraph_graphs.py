"""igraph's graphs → edges: vertex order and isolated vertices stay."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import InputError
from wedgewise.read.objects.foreign import Weights, weights_of_pairs
from wedgewise.stages import EdgeList, Origin
from wedgewise.stages.labels import TextLabels
from wedgewise.stages.limits import MAX_LABEL

NAME = "<igraph>"


def edges_from_igraph(graph: Any, weights: Any = None) -> EdgeList:
    """Read the edges of an ``igraph.Graph``; `weights` is an edge attribute's name, or one number per edge."""
    count = graph.ecount()
    ends = np.fromiter(chain.from_iterable(graph.get_edgelist()), np.int64, 2 * count)
    return EdgeList(
        ends.reshape(-1, 2),
        Origin(NAME, "igraph"),
        vertices=graph.vcount(),
        names=_names(graph),
        weights=_weights(graph, weights, count),
        undirected=not graph.is_directed(),
    )


def _names(graph: Any) -> TextLabels | NDArray[np.int64] | None:
    """The attribute ``name`` where it can serve as labels: all strings, or all integers from 0 to 2^63 − 1."""
    if "name" not in graph.vertex_attributes():
        return None
    names: list[Any] = graph.vs["name"]
    kinds = set(map(type, names))
    if kinds == {str}:
        return TextLabels.of(names)
    if kinds == {int} and min(names) >= 0 and max(names) <= MAX_LABEL:
        return np.array(names, np.int64)
    return None


def _weights(graph: Any, weights: Any, count: int) -> Weights | None:
    if not isinstance(weights, str):
        return weights_of_pairs(weights, count, NAME)
    attributes = graph.edge_attributes()
    if weights not in attributes:
        known = ", ".join(map(repr, attributes)) or "none"
        raise InputError(f"{NAME}: no edge attribute {weights!r}; there are: {known}")
    return weights_of_pairs(graph.es[weights], count, NAME)
