"""Graphs with known answers for all tests, and oracles that share no code with the library."""

from __future__ import annotations

import json
import lzma
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from math import isqrt
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise import generate
from wedgewise.answer.questions import QUESTIONS
from wedgewise.generate import EdgeStream
from wedgewise.machine.jit import JIT_DISABLED

FIXTURES = Path(__file__).parents[1] / "fixtures"
Facts = dict[str, dict[str, Any]]


def _facts(filename: str) -> Facts:
    facts: Facts = json.loads((FIXTURES / filename).read_text(encoding="utf-8"))
    return facts


OF_GRAPHS = (
    "core_number",
    "degeneracy",
    "connected_components",
    "similarity",
    "top_similar",
)  # by methods of their own
TRIANGLE_QUESTIONS = tuple(name for name in QUESTIONS if "truss" not in name and name not in OF_GRAPHS)
TRUTHS = _facts("truths.json")
PUBLISHED_GENERATED = _facts("graphchallenge_generated.json")

# where kernels run as plain Python, what they do is the same on smaller graphs
MAX_EDGES = 700 if JIT_DISABLED else 10**6
DENSE = "lesmis" if JIT_DISABLED else "jazz"  # has trusses in several rounds


def of_fit_size(*names: str) -> tuple[str, ...]:
    """Those of the fixtures that kernels, compiled or not, are done with in little time."""
    return tuple(name for name in names if TRUTHS[name]["m"] < MAX_EDGES)


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
class LocalForm:
    """A graph whose degrees alone say how many triangles each vertex and each edge is in."""

    stream: EdgeStream
    of_vertex: Callable[[int], int]
    of_edge: Callable[[int, int], int]


def truss_details(question: str, k: int = 5) -> dict[str, Any]:
    """The parameters of a question about trusses, or of what is computed for it."""
    return {"k": k} if question in ("k_truss", "truss_components") else {}


def _multipartite(stream: EdgeStream) -> LocalForm:
    """Complete with parts: a vertex sees all edges but those of its own part, an edge all vertices but two parts."""
    n, m = stream.n, stream.pairs_count
    return LocalForm(stream, lambda d: m - (n - d) * d, lambda d, e: d + e - n)


def _wheel(rim: int) -> LocalForm:
    return LocalForm(generate.wheel(rim), lambda d: rim if d == rim else 2, lambda d, e: 1 if d == e else 2)


def _windmill(blades: int, clique: int) -> LocalForm:
    in_blade = (clique - 1) * (clique - 2) // 2
    stream = generate.windmill(blades, clique=clique)
    return LocalForm(stream, lambda d: d // (clique - 1) * in_blade, lambda d, e: clique - 2)


def _book(pages: int) -> LocalForm:
    return LocalForm(generate.book(pages), lambda d: d - 1, lambda d, e: min(d, e) - 1)


def _same_everywhere(stream: EdgeStream, of_vertex: int, of_edge: int) -> LocalForm:
    return LocalForm(stream, lambda d: of_vertex, lambda d, e: of_edge)


LOCAL_FORMS: tuple[LocalForm, ...] = (
    _multipartite(generate.complete(3)),
    _multipartite(generate.complete(70)),
    _multipartite(generate.complete_tripartite(2, 3, 4)),
    _multipartite(generate.complete_tripartite(1, 17, 40)),
    _multipartite(generate.turan(13, 4)),
    _multipartite(generate.octahedron(3)),
    _multipartite(generate.octahedron(20)),
    _multipartite(generate.star(300)),
    _wheel(4),
    _wheel(257),
    _windmill(60, 3),
    _windmill(9, 6),
    _book(1),
    _book(300),
    _same_everywhere(generate.cycle(3), 1, 1),
    _same_everywhere(generate.cycle(64), 0, 0),
    _same_everywhere(generate.path(65), 0, 0),
    _same_everywhere(generate.petersen(), 0, 0),
    _same_everywhere(generate.hypercube(7), 0, 0),
    _same_everywhere(generate.torus3d(3), 3, 1),
    _same_everywhere(generate.torus3d(5), 0, 0),
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


@dataclass(frozen=True, slots=True)
class Known:
    """What the answers for one graph must be, in the order of its vertices 0 … n − 1 and of its edges, ascending."""

    count: int
    triangles: NDArray[np.int64]
    edge_support: NDArray[np.int64]
    list_triangles: NDArray[np.int64]


def distinct_edges(pairs: NDArray[Any]) -> NDArray[np.int64]:
    """Every edge once, u < v, ascending."""
    ends = np.sort(np.asarray(pairs, np.int64).reshape(-1, 2), axis=1)
    return np.unique(ends[ends[:, 0] != ends[:, 1]], axis=0)


def known_by_sets(pairs: NDArray[Any], n: int) -> Known:
    """Everything by common neighbours, in sets of plain Python integers."""
    edges = distinct_edges(pairs).tolist()
    adjacent: list[set[int]] = [set() for _ in range(n)]
    for u, v in edges:
        adjacent[u].add(v)
        adjacent[v].add(u)
    common = [adjacent[u] & adjacent[v] for u, v in edges]
    rows = [(u, v, w) for (u, v), third in zip(edges, common, strict=True) for w in sorted(third) if w > v]
    at_vertex = [0] * n
    for row in rows:
        for vertex in row:
            at_vertex[vertex] += 1
    return Known(
        len(rows),
        np.array(at_vertex, np.int64),
        np.array([len(third) for third in common], np.int64),
        np.array(rows, np.int64).reshape(-1, 3),
    )


def local_by_product(pairs: NDArray[Any], n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Triangles of every vertex and of every edge, from A² ∘ A of the whole symmetric adjacency matrix A."""
    from scipy.sparse import coo_array

    edges = distinct_edges(pairs)
    tails, heads = np.concatenate([edges, edges[:, ::-1]]).T
    adjacency = coo_array((np.ones(len(tails), np.int64), (tails, heads)), shape=(n, n)).tocsr()
    walks = (adjacency @ adjacency) * adjacency
    at_vertex = np.asarray(walks.sum(axis=1)).reshape(-1) // 2  # each triangle is walked around both ways
    at_edge = np.asarray(walks.tocsr()[edges[:, 0], edges[:, 1]]).reshape(-1) if len(edges) else np.empty(0, np.int64)
    return at_vertex, at_edge


def directed_clustering_by_product(
    pairs: NDArray[Any], n: int, weights: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Fagiolo's coefficients, diag(S³) / 2 (D (D − 1) − 2 r) with S = W^⅓ + (W^⅓)ᵀ; distinct arcs without loops."""
    from scipy.sparse import coo_array

    arcs = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(n, n)).tocsr()
    total = np.asarray(arcs.sum(axis=0) + arcs.sum(axis=1)).reshape(-1)
    reciprocal = np.asarray((arcs * arcs.T).sum(axis=1)).reshape(-1)
    if weights is not None:
        roots = np.cbrt(weights / weights.max())
        arcs = coo_array((roots, (pairs[:, 0], pairs[:, 1])), shape=(n, n)).tocsr()
    both = arcs + arcs.T
    walks = np.asarray(((both @ both) * both).sum(axis=1)).reshape(-1)
    possible = 2 * (total * (total - 1) - 2 * reciprocal)
    coefficients = np.zeros(n)
    np.divide(walks, possible, out=coefficients, where=possible > 0)
    return coefficients


def both_ways(pairs: NDArray[Any], seed: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Distinct arcs for the edges of a graph, about a third of them in both directions, with positive weights."""
    random = np.random.default_rng(seed)
    edges = distinct_edges(pairs)
    turned = random.random(len(edges)) < 0.5
    first = np.where(turned[:, None], edges[:, ::-1], edges)
    second = first[random.random(len(edges)) < 1 / 3, ::-1]
    arcs = random.permutation(np.concatenate([first, second]))
    return arcs, random.uniform(0.1, 5.0, len(arcs))


def random_pairs(n: int, m: int, seed: int) -> NDArray[np.int64]:
    """So many random pairs of vertices; loops and copies may occur."""
    return np.random.default_rng(seed).integers(0, n, (m, 2))


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
