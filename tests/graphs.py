"""Graphs with known answers for all tests, and two oracles that share no code with the library."""

from __future__ import annotations

import json
import lzma
from dataclasses import dataclass
from itertools import combinations
from math import isqrt
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise import generate
from wedgewise.generate import EdgeStream

FIXTURES = Path(__file__).parent / "fixtures"
Facts = dict[str, dict[str, Any]]


def _facts(filename: str) -> Facts:
    facts: Facts = json.loads((FIXTURES / filename).read_text(encoding="utf-8"))
    return facts


TRUTHS = _facts("truths.json")
PUBLISHED_GENERATED = _facts("graphchallenge_generated.json")

CLOSED_FORMS: tuple[EdgeStream, ...] = (
    generate.complete(3),
    generate.complete(9),
    generate.complete(70),
    generate.complete_tripartite(2, 3, 4),
    generate.complete_tripartite(1, 17, 40),
    generate.turan(13, 4),
    generate.turan(6, 6),
    generate.octahedron(3),
    generate.octahedron(20),
    generate.star(0),
    generate.star(300),
    generate.wheel(3),
    generate.wheel(4),
    generate.wheel(257),
    generate.windmill(60),
    generate.windmill(9, clique=6),
    generate.book(1),
    generate.book(300),
    generate.cycle(3),
    generate.cycle(64),
    generate.path(1),
    generate.path(65),
    generate.petersen(),
    generate.hypercube(7),
    generate.grid8(1),
    generate.grid8(17),
    generate.torus3d(3),
    generate.torus3d(5),
    generate.small_world(50, 8, 0),
    generate.kronecker_of_stars((3, 4, 5), "Bk"),
    generate.kronecker_of_stars((3, 4, 5, 9), "B1k"),
    generate.kronecker_of_stars((4, 5, 9), "B2k"),
)


@dataclass(frozen=True, slots=True)
class SmallGraph:
    """A simple graph that is small enough to be looked at as a set of edges (u, v) with u < v."""

    n: int
    edges: frozenset[tuple[int, int]]

    @property
    def m(self) -> int:
        return len(self.edges)

    @property
    def pairs(self) -> NDArray[np.int64]:
        """The edges as an array of shape (m, 2), ascending."""
        return np.array(sorted(self.edges), np.int64).reshape(-1, 2)

    @property
    def degrees(self) -> list[int]:
        return [sum(v in edge for edge in self.edges) for v in range(self.n)]


def small_graph(n: int, edges: Any) -> SmallGraph:
    """A SmallGraph from pairs in any direction, repeated or not, loops left out."""
    return SmallGraph(n, frozenset((min(u, v), max(u, v)) for u, v in edges if u != v))


def count_by_triples(graph: SmallGraph) -> int:
    """Triangles by looking at every three vertices."""
    edges = graph.edges
    return sum((a, b) in edges and (a, c) in edges and (b, c) in edges for a, b, c in combinations(range(graph.n), 3))


def count_by_product(pairs: NDArray[Any], n: int) -> int:
    """Triangles as the sum of L² ∘ L, where L holds each edge once, from lower to higher degree."""
    from scipy.sparse import coo_array

    ends = np.sort(pairs.astype(np.int64), axis=1)
    ends = np.unique(ends[ends[:, 0] != ends[:, 1]], axis=0)
    rank = np.empty(n, np.int64)
    rank[np.argsort(np.bincount(ends.ravel(), minlength=n), kind="stable")] = np.arange(n)
    ends = np.sort(rank[ends], axis=1)
    lower = coo_array((np.ones(len(ends), np.int64), (ends[:, 0], ends[:, 1])), shape=(n, n)).tocsr()
    return int(((lower @ lower) * lower).sum())


def published_generated(name: str) -> EdgeStream:
    """Our graph for a key of PUBLISHED_GENERATED: "Theory-3-4-B1k" is a product of stars, "g-E-N" a grid."""
    family, *numbers, last = name.split("-")
    if family == "Theory":
        return generate.kronecker_of_stars(tuple(map(int, numbers)), last)
    return generate.grid8(isqrt(int(last)))


def fixture_path(name: str) -> Path:
    """The file of a fixture; its truths are ``TRUTHS[name]``."""
    return FIXTURES / f"{name}.el.xz"


def fixture_pairs(name: str) -> NDArray[np.int64]:
    """The pairs of a fixture as the file has them."""
    tokens = lzma.decompress(fixture_path(name).read_bytes()).split()
    return np.array(tokens, np.int64).reshape(-1, 2)
