"""Answers that are neither numbers nor arrays: trusses, degrees by support, similarities; and what has rows."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

VERTEX, EDGE, EDGE_OF_TRUSS, TRIANGLE = "vertex", "edge", "edge of a truss", "triangle"
VERTEX_AND_SUPPORT, LEVEL, PAIR = "vertex and support", "level of a truss", "pair of vertices"


@dataclass(frozen=True, slots=True)
class Rows:
    """What the tables of an answer have a row for, and the name of its value where that is one column."""

    per: str
    value: str = ""

    @property
    def have_labels(self) -> bool:
        """Whether a row names vertices."""
        return self.per != LEVEL


@dataclass(frozen=True, repr=False)
class Truss:
    """The k-truss of a graph: ``edges`` says which of ``Graph.edges`` are in it, ascending; its length is their number.

    It says how many vertices it has as long as its graph is there.

    Examples
    --------
    >>> import wedgewise as ww
    >>> g = ww.Graph([(10, 20), (20, 30), (30, 10), (30, 40)])
    >>> truss = ww.k_truss(g, 3)
    >>> truss
    Truss(k=3, vertices=3, edges=3)
    >>> len(truss), g.subgraph(truss.edges).labels.tolist()
    (3, [10, 20, 30])
    """

    k: int
    edges: NDArray[np.int64]
    _graph: ClassVar[Any] = None  # in a truss that was found, a weak reference to its graph

    @classmethod
    def _in_graph(cls, graph: Any, k: int, edges: NDArray[np.int64]) -> Truss:
        """A truss that knows its graph, without keeping it."""
        truss = cls(k, edges)
        vars(truss)["_graph"] = weakref.ref(graph)
        return truss

    def __len__(self) -> int:
        return len(self.edges)

    def __reduce__(self) -> Any:
        return type(self), (self.k, self.edges)

    def _facts(self) -> dict[str, int]:
        graph = None if self._graph is None else self._graph()
        vertices = {} if graph is None else {"vertices": len(np.unique(graph.edges[self.edges]))}
        return {"k": self.k, **vertices, "edges": len(self)}

    def __repr__(self) -> str:
        return f"Truss({', '.join(f'{name}={value}' for name, value in self._facts().items())})"

    def _repr_html_(self) -> str:
        from wedgewise.machine.notebook import facts_html

        return facts_html("Truss", ((name, f"{value:,}") for name, value in self._facts().items()))


@dataclass(frozen=True, slots=True)
class TrussLevel:
    """What the k-truss of a graph has; vertices without edges in it are not counted.

    Examples
    --------
    >>> import wedgewise as ww
    >>> ww.truss_summary([(0, 1), (1, 2), (2, 0), (2, 3)])[1]
    TrussLevel(k=3, edges=3, vertices=3, components=1)
    """

    k: int
    edges: int
    vertices: int
    components: int


@dataclass(frozen=True, slots=True)
class GeneralizedDegree:
    """How many edges of each support every vertex has, as rows of one sparse table.

    Row v is ``supports[offsets[v]:offsets[v + 1]]``, ascending, with as many ``edges`` of each support.

    Examples
    --------
    >>> import wedgewise as ww
    >>> degrees = ww.generalized_degree([(0, 1), (1, 2), (2, 0), (2, 3)])
    >>> degrees[2], len(degrees)
    ({0: 1, 1: 2}, 4)
    """

    offsets: NDArray[np.int64]
    supports: NDArray[np.int64]
    edges: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, vertex: int) -> dict[int, int]:
        row = slice(*self.offsets[range(len(self))[vertex] :][:2].tolist())
        return dict(zip(self.supports[row].tolist(), self.edges[row].tolist(), strict=True))

    def __iter__(self) -> Iterator[dict[int, int]]:
        return (self[vertex] for vertex in range(len(self)))


@dataclass(frozen=True, slots=True)
class Similarity:
    """How similar pairs of vertices are: both ``ends`` of each pair by number, and ``values`` by the name of a measure.

    Examples
    --------
    >>> import wedgewise as ww
    >>> found = ww.run("similarity", [(0, 1), (1, 2), (2, 0), (2, 3)], measure=["common_neighbors", "jaccard"]).answer
    >>> found.ends.tolist(), found.values["common_neighbors"].tolist()
    ([[0, 1], [0, 2], [1, 2], [2, 3]], [1, 1, 1, 0])
    """

    ends: NDArray[np.uint32]
    values: Mapping[str, NDArray[Any]]

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def columns(self) -> Mapping[str, NDArray[Any]]:
        """The values of every pair, by name."""
        return self.values


@dataclass(frozen=True, slots=True)
class TopSimilar:
    """The most similar partners of some vertices, best first, as rows of one sparse table.

    Row i is about vertex ``vertices[i]``: ``partners[offsets[i]:offsets[i + 1]]`` with their ``values``; partners are
    vertices by number.

    Examples
    --------
    >>> import wedgewise as ww
    >>> top = ww.top_similar([(0, 1), (1, 2), (2, 0), (2, 3)], "jaccard", 2)
    >>> top[3], len(top)
    ([(0, 0.5), (1, 0.5)], 4)
    """

    measure: str
    vertices: NDArray[np.uint32]
    offsets: NDArray[np.int64]
    partners: NDArray[np.uint32]
    values: NDArray[Any]

    def __len__(self) -> int:
        return len(self.vertices)

    def __getitem__(self, row: int) -> list[tuple[int, float]]:
        part = slice(*self.offsets[range(len(self))[row] :][:2].tolist())
        return list(zip(self.partners[part].tolist(), self.values[part].tolist(), strict=True))

    def __iter__(self) -> Iterator[list[tuple[int, float]]]:
        return (self[row] for row in range(len(self)))

    @property
    def columns(self) -> Mapping[str, NDArray[Any]]:
        """The values of every pair, by name."""
        return {self.measure: self.values}

    @property
    def ends(self) -> NDArray[np.uint32]:
        """Both vertices of every pair, row by row."""
        return np.stack([np.repeat(self.vertices, np.diff(self.offsets)), self.partners], axis=1)
