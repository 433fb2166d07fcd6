"""Graphs whose answers are known: by definition in plain Python, and by NetworkX."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, cached_property
from itertools import combinations
from typing import Any

import networkx as nx
import numpy as np

import wedgewise as ww

QUESTIONS: dict[str, tuple[dict[str, Any], ...]] = {  # every question, with the details that it is asked with
    "count": ({},),
    "triangles": ({},),
    "edge_support": ({},),
    "list_triangles": ({}, {"start": 1, "stop": 3}),
    "clustering": ({}, {"undefined": "nan"}),
    "average_clustering": ({}, {"undefined": "nan"}, {"count_zeros": False}),
    "transitivity": ({}, {"undefined": "nan"}),
    "generalized_degree": ({},),
    "trussness": ({},),
    "k_truss": ({"k": 2}, {"k": 3}, {"k": 4}, {"k": 99}),
    "max_truss": ({},),
    "truss_summary": ({},),
    "truss_components": ({"k": 3},),
}
COMPUTED_AS = {  # what an algorithm has to compute for a question, where that has another name
    "clustering": "triangles",
    "average_clustering": "triangles",
    "transitivity": "count",
    "generalized_degree": "edge_support",
    "truss_summary": "trussness",
    "truss_components": "k_truss",
}


@dataclass(frozen=True)
class Known:
    """A NetworkX graph of the nodes 0 … n − 1 without loops, and what is true of it."""

    nx_graph: Any

    @property
    def graph(self) -> ww.Graph:
        """The same as wedgewise holds it."""
        return ww.Graph(np.array(self.edges, np.int64).reshape(-1, 2), n=self.n)

    @cached_property
    def n(self) -> int:
        return len(self.nx_graph)

    @cached_property
    def edges(self) -> list[tuple[int, int]]:
        return sorted((min(edge), max(edge)) for edge in self.nx_graph.edges())

    @cached_property
    def neighbours(self) -> list[set[int]]:
        return [set(self.nx_graph[v]) for v in range(self.n)]

    @cached_property
    def listed(self) -> list[tuple[int, int, int]]:
        rows = self.neighbours
        return sorted((u, v, w) for u, v in self.edges for w in rows[u] & rows[v] if w > v)

    @cached_property
    def support(self) -> list[int]:
        at = Counter(edge for three in self.listed for edge in combinations(three, 2))
        return [at[edge] for edge in self.edges]

    @cached_property
    def truss(self) -> list[int]:
        """The truss number of every edge, by taking edges away until nothing changes."""
        number = dict.fromkeys(self.edges, 2)
        left, k = set(self.edges), 2
        while left:
            number.update(dict.fromkeys(left, k))
            k += 1
            left = _truss(left, k)
        return [number[edge] for edge in self.edges]

    def truss_edges(self, k: int) -> list[int]:
        return [edge for edge, number in enumerate(self.truss) if number >= k]

    def truss_parts(self, k: int) -> list[list[int]]:
        """The components of a truss, by least vertex."""
        found = nx.Graph([self.edges[edge] for edge in self.truss_edges(k)])
        return sorted(sorted(part) for part in nx.connected_components(found))

    @cached_property
    def coefficients(self) -> list[float]:
        found = nx.clustering(self.nx_graph, backend="networkx")
        return [float(found[v]) for v in range(self.n)]

    def answer(self, question: str, details: dict[str, Any]) -> Any:
        """What a question must be answered, as `plain` has it."""
        return getattr(self, f"_{question}")(**details)

    def _count(self) -> int:
        return len(self.listed)

    def _triangles(self) -> list[int]:
        at = Counter(v for three in self.listed for v in three)
        return [at[v] for v in range(self.n)]

    def _edge_support(self) -> list[int]:
        return self.support

    def _list_triangles(self, start: int = 0, stop: int | None = None) -> Any:
        if (start, stop) == (0, None):
            return list(map(list, self.listed))
        return min(stop if stop is not None else len(self.listed), len(self.listed)) - start  # how many; any order

    def _clustering(self, undefined: str = "zero") -> list[float | None]:
        if undefined == "zero":
            return list(self.coefficients)
        return [c if len(row) > 1 else None for c, row in zip(self.coefficients, self.neighbours, strict=True)]

    def _average_clustering(self, undefined: str = "zero", count_zeros: bool = True) -> float | None:
        values = [c for c in self._clustering(undefined) if c is not None and (count_zeros or c != 0)]
        return sum(values) / len(values) if values else 0.0 if undefined == "zero" else None

    def _transitivity(self, undefined: str = "zero") -> float | None:
        wedges = sum(len(row) * (len(row) - 1) // 2 for row in self.neighbours)
        return 3 * len(self.listed) / wedges if wedges else 0.0 if undefined == "zero" else None

    def _generalized_degree(self) -> list[dict[int, int]]:
        found = nx.generalized_degree(self.nx_graph, backend="networkx")
        return [dict(sorted(found[v].items())) for v in range(self.n)]

    def _trussness(self) -> list[int]:
        return self.truss

    def _k_truss(self, k: int) -> dict[str, Any]:
        return {"k": k, "edges": self.truss_edges(k)}

    def _max_truss(self) -> dict[str, Any]:
        return self._k_truss(max(self.truss, default=2))

    def _truss_summary(self) -> list[dict[str, int]]:
        levels = []
        for k in range(2, max(self.truss, default=1) + 1):
            parts = self.truss_parts(k)
            sizes = {"vertices": sum(map(len, parts)), "components": len(parts)}
            levels.append({"k": k, "edges": len(self.truss_edges(k)), **sizes})
        return levels

    def _truss_components(self, k: int) -> list[int]:
        inside = {v: number for number, part in enumerate(self.truss_parts(k)) for v in part}
        return [inside.get(v, -1) for v in range(self.n)]


def _truss(edges: set[tuple[int, int]], k: int) -> set[tuple[int, int]]:
    """The edges of the k-truss of a graph of these edges."""
    rows: dict[int, set[int]] = {}
    for u, v in edges:
        rows.setdefault(u, set()).add(v)
        rows.setdefault(v, set()).add(u)
    dying = {(u, v) for u, v in edges if len(rows[u] & rows[v]) < k - 2}
    while dying:
        edges = edges - dying
        touched = set()
        for u, v in dying:
            rows[u].discard(v)
            rows[v].discard(u)
            touched |= {u, v}
        near = {(min(u, v), max(u, v)) for u in touched for v in rows[u]}
        dying = {(u, v) for u, v in near if len(rows[u] & rows[v]) < k - 2}
    return edges


def plain(answer: Any) -> Any:
    """An answer in Python's own numbers, lists and dictionaries; None for NaN."""
    if isinstance(answer, np.ndarray):
        return plain(answer.tolist())
    if isinstance(answer, list | tuple):
        return [plain(item) for item in answer]
    if isinstance(answer, float):
        return None if answer != answer else answer
    if is_dataclass(answer) and not hasattr(answer, "__getitem__"):
        return {part.name: plain(getattr(answer, part.name)) for part in fields(answer)}
    return answer if isinstance(answer, int) else list(answer)


def check(question: str, details: dict[str, Any], answer: Any, known: Known) -> None:
    """Hold an answer to the truth: exactly, or for means of floats within rounding."""
    expected, found = known.answer(question, details), plain(answer)
    if question == "list_triangles":
        found = sorted(found) if details == {} else len(found)
    if question in ("clustering", "average_clustering", "transitivity"):
        np.testing.assert_allclose(np.array(found, float), np.array(expected, float), rtol=1e-12)
    else:
        assert found == expected, (question, details)


GRAPHS = {
    "atlas": lambda: nx.disjoint_union_all(nx.graph_atlas_g()),  # every graph of up to seven vertices
    "clique": lambda: nx.complete_graph(9),
    "tripartite": lambda: nx.convert_node_labels_to_integers(nx.complete_multipartite_graph(3, 4, 5)),
    "wheel": lambda: nx.wheel_graph(8),
    "windmill": lambda: nx.windmill_graph(5, 4),
    "petersen": nx.petersen_graph,
    "karate": lambda: nx.Graph(nx.karate_club_graph().edges()),
    "sparse": lambda: nx.gnp_random_graph(120, 0.03, seed=1),
    "clustered": lambda: nx.powerlaw_cluster_graph(300, 6, 0.7, seed=2),
    "star": lambda: nx.star_graph(70),
    "no edges": lambda: nx.empty_graph(5),
    "no vertices": nx.Graph,
}


@cache
def known(name: str) -> Known:
    """One of the graphs, made once."""
    return Known(GRAPHS[name]())
