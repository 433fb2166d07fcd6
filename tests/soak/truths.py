"""What every question about a small graph must be answered, by definitions in plain Python and products of matrices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import fsum, isclose, isnan, nan
from typing import Any

import numpy as np
from conformance.trusses import truss_numbers_by_product
from helpers.graphs import Known, directed_clustering_by_product, distinct_edges, known_by_sets
from numpy.typing import NDArray

from wedgewise.answer_types import GeneralizedDegree, Similarity, TopSimilar, Truss, TrussLevel

ROUNDED = ("average_clustering",)  # sums of floats, whose order nobody promises
RELATIVE_TOLERANCE = 1e-12


@dataclass(frozen=True, slots=True)
class Arcs:
    """Distinct arcs without loops, with their weights."""

    pairs: NDArray[np.int64]
    weights: NDArray[np.float64]


class Truth:
    """The answers for one graph, each found when it is first asked for."""

    def __init__(self, pairs: NDArray[Any], n: int, arcs: Arcs | None = None) -> None:
        self.n, self.arcs = n, arcs
        self._pairs = np.asarray(pairs, np.int64).reshape(-1, 2)

    @cached_property
    def edges(self) -> NDArray[np.int64]:
        return distinct_edges(self._pairs)

    @cached_property
    def known(self) -> Known:
        return known_by_sets(self._pairs, self.n)

    @cached_property
    def trussness(self) -> NDArray[np.int64]:
        return truss_numbers_by_product(self._pairs, self.n)

    @cached_property
    def degrees(self) -> list[int]:
        return [int(d) for d in np.bincount(self.edges.reshape(-1), minlength=self.n)]

    @property
    def kmax(self) -> int:
        return int(self.trussness.max(initial=2))

    def answer(self, question: str, details: Mapping[str, Any]) -> Any:
        """What `plain` has to make of the answer."""
        match question:
            case "count" | "triangles" | "edge_support" | "list_triangles":
                return plain(getattr(self.known, question))
            case "clustering" | "average_clustering":
                return self._clustering(question, details)
            case "transitivity":
                paths = sum(d * (d - 1) // 2 for d in self.degrees)
                return 3 * self.known.count / paths if paths else undefined(details)
            case "generalized_degree":
                return self._by_support()
            case "trussness":
                return self.trussness.tolist()
            case "k_truss":
                return self._truss(details["k"])
            case "max_truss":
                return self._truss(self.kmax)
            case "truss_summary":
                return [self._level(k) for k in range(2, self.kmax + 1)] if len(self.edges) else []
            case "truss_components":
                return self._components(self._held(details["k"]))
            case "connected_components":
                return self._all_components()
            case "core_number":
                return self._cores()
            case "degeneracy":
                return max(self._cores(), default=0)
            case "similarity":
                pairs = [tuple(pair) for pair in self.edges.tolist()]
                return {details["measure"]: [self._similarity(u, v, details["measure"]) for u, v in pairs]}
            case "top_similar":
                return [self._partners(u, details["k"], details["measure"]) for u in range(self.n)]
        raise ValueError(f"no truth is known for {question}")

    def _clustering(self, question: str, details: Mapping[str, Any]) -> Any:
        coefficients = self._coefficients(details)
        if question == "clustering":
            return coefficients
        taken = [value for value in coefficients if not isnan(value)]
        taken = [value for value in taken if value or details.get("count_zeros", True)]
        return fsum(taken) / len(taken) if taken else undefined(details)

    def _coefficients(self, details: Mapping[str, Any]) -> list[float]:
        if self.arcs is not None and len(self.arcs.pairs):
            weights = self.arcs.weights if details.get("weighted") else None
            return [float(x) for x in directed_clustering_by_product(self.arcs.pairs, self.n, weights)]
        wedges = [d * (d - 1) // 2 for d in self.degrees]
        counts = self.known.triangles.tolist()
        return [t / w if w else undefined(details) for t, w in zip(counts, wedges, strict=True)]

    def _by_support(self) -> list[dict[int, int]]:
        rows: list[Counter[int]] = [Counter() for _ in range(self.n)]
        for (u, v), support in zip(self.edges.tolist(), self.known.edge_support.tolist(), strict=True):
            rows[u][support] += 1
            rows[v][support] += 1
        return [dict(row) for row in rows]

    @cached_property
    def _rows(self) -> list[set[int]]:
        rows: list[set[int]] = [set() for _ in range(self.n)]
        for u, v in self.edges.tolist():
            rows[u].add(v)
            rows[v].add(u)
        return rows

    def _similarity(self, u: int, v: int, measure: str) -> float:
        c, du, dv = len(self._rows[u] & self._rows[v]), len(self._rows[u]), len(self._rows[v])
        if measure == "common_neighbors" or c == 0:
            return c if measure == "common_neighbors" else 0.0
        return {"jaccard": c / (du + dv - c), "overlap": c / min(du, dv), "sorensen": 2 * c / (du + dv)}[measure]

    def _partners(self, u: int, k: int, measure: str) -> list[tuple[int, float]]:
        able = {v for w in self._rows[u] for v in self._rows[w]} - {u}
        values = [(v, self._similarity(u, v, measure)) for v in able]
        return sorted(values, key=lambda found: (-found[1], found[0]))[:k]

    def _cores(self) -> list[int]:
        cores, left, k = [0] * self.n, set(range(self.n)), 0
        while left:
            peeled = {v for v in left if len(self._rows[v] & left) <= k}
            for v in peeled:
                cores[v] = k
            left -= peeled
            k += not peeled
        return cores

    def _all_components(self) -> list[int]:
        inside = self._components(range(len(self.edges)))
        alone = [-1 - v if number < 0 else number for v, number in enumerate(inside)]
        numbers: dict[int, int] = {}
        return [numbers.setdefault(number, len(numbers)) for number in alone]

    def _held(self, k: int) -> list[int]:
        return [int(edge) for edge in np.flatnonzero(self.trussness >= k)]

    def _truss(self, k: int) -> tuple[int, list[int]]:
        return k, self._held(k)

    def _level(self, k: int) -> tuple[int, int, int, int]:
        held = self._held(k)
        components = self._components(held)
        return k, len(held), sum(number >= 0 for number in components), max(components) + 1

    def _components(self, held: Iterable[int]) -> list[int]:
        """The number of every vertex's component, by least vertices; −1 for one without edges."""
        least = list(range(self.n))
        touched = set()

        def root(vertex: int) -> int:
            while least[vertex] != vertex:
                vertex = least[vertex]
            return vertex

        for u, v in self.edges[list(held)].tolist():
            touched |= {u, v}
            low, high = sorted((root(u), root(v)))
            least[high] = low
        roots = sorted({root(vertex) for vertex in touched})
        return [roots.index(root(vertex)) if vertex in touched else -1 for vertex in range(self.n)]


def undefined(details: Mapping[str, Any]) -> float:
    return nan if details.get("undefined") == "nan" else 0.0


def plain(answer: Any) -> Any:
    """An answer of the library in numbers, lists and dicts of Python."""
    if isinstance(answer, np.ndarray):
        return answer.tolist()
    if isinstance(answer, Similarity):
        return {name: values.tolist() for name, values in answer.values.items()}
    if isinstance(answer, GeneralizedDegree | TopSimilar):
        return list(answer)
    if isinstance(answer, Truss):
        return answer.k, answer.edges.tolist()
    if isinstance(answer, tuple) and all(isinstance(level, TrussLevel) for level in answer):
        return [(level.k, level.edges, level.vertices, level.components) for level in answer]
    return answer


def is_same(question: str, found: Any, expected: Any, details: Mapping[str, Any]) -> bool:
    """Equal, exactly but for sums of floats; undefined coefficients are undefined in both."""
    if question == "list_triangles":
        return bool(sorted(found) == expected)
    if question in ROUNDED or details.get("weighted"):
        return _close(found, expected)
    if question in ("clustering", "transitivity"):
        return repr(found) == repr(expected)  # NaN is itself
    return bool(found == expected)


def _close(found: Any, expected: Any) -> bool:
    if isinstance(found, list):
        return len(found) == len(expected) and all(map(_close, found, expected))
    return repr(found) == repr(expected) or isclose(found, expected, rel_tol=RELATIVE_TOLERANCE, abs_tol=1e-15)
