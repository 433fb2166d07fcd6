"""Every way to find trusses that the registry discovers for the CPU, and truss numbers that share no code with them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, count
from typing import Any

import numpy as np
import pytest
from helpers.graphs import SmallGraph, distinct_edges
from numpy.typing import NDArray

import wedgewise as ww
from conformance.engines import RECORDS, graph_of
from wedgewise.algorithms._contract import TRUSSES

Edge = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Way:
    """An algorithm with one of its choices."""

    algorithm: str
    knob: str = ""
    value: str = ""

    @property
    def how(self) -> dict[str, Any]:
        """The options of a question that is answered this way."""
        return {"algorithm": self.algorithm, "device": "cpu", "knobs": {self.knob: self.value} if self.knob else None}

    def __str__(self) -> str:
        return f"{self.algorithm}-{self.value}" if self.value else self.algorithm


TRUSS_RECORDS = tuple(record for record in RECORDS if set(TRUSSES) <= set(record.answers))
TRUSS_WAYS: tuple[Way, ...] = tuple(
    way
    for record in TRUSS_RECORDS
    for way in [
        Way(record.name),
        *(Way(record.name, knob.name, str(v)) for knob in record.knobs for v in knob.choices if v != knob.default),
    ]
)

for_every_truss_algorithm = pytest.mark.parametrize("algorithm", [record.name for record in TRUSS_RECORDS])
for_every_truss_way = pytest.mark.parametrize("way", TRUSS_WAYS, ids=str)


def truss_numbers(source: Any, algorithm: str, n: int | None = None) -> dict[Edge, int]:
    """The truss number that the library finds for each edge (u, v), u < v."""
    graph = graph_of(source, n)
    found = ww.trussness(graph, algorithm=algorithm, device="cpu", threads=1)
    assert found.dtype == np.int64
    return dict(zip(map(tuple, graph.edges.tolist()), found.tolist(), strict=True))


def truss_edges(g: SmallGraph, k: int, algorithm: str) -> set[Edge]:
    """The edges that the library finds in the k-truss."""
    graph = graph_of(g)
    found = ww.k_truss(graph, k, algorithm=algorithm, device="cpu", threads=1)
    assert found.k == k
    return set(map(tuple, graph.edges[found.edges].tolist()))


def truss_numbers_by_subsets(g: SmallGraph) -> dict[Edge, int]:
    """By definition: of all sets of edges that hold an edge, the largest least support within the set, + 2."""
    edges = sorted(g.edges)
    bit = {edge: 1 << place for place, edge in enumerate(edges)}
    subsets = np.arange(1 << len(edges))
    support = {edge: np.zeros(len(subsets), np.int64) for edge in edges}
    for a, b, c in combinations(range(g.n), 3):
        sides = ((a, b), (a, c), (b, c))
        if g.edges.issuperset(sides):
            triangle = sum(bit[side] for side in sides)
            for side in sides:
                support[side] += subsets & triangle == triangle
    least = np.full(len(subsets), len(edges))
    for edge in edges:
        held = subsets & bit[edge] > 0
        least[held] = np.minimum(least, support[edge])[held]
    return {edge: int(least[subsets & bit[edge] > 0].max()) + 2 for edge in edges}


def truss_numbers_by_product(pairs: NDArray[Any], n: int) -> NDArray[np.int64]:
    """For each edge, ascending: from A² ∘ A of the living edges again and again, k by k."""
    from scipy.sparse import coo_array

    edges = distinct_edges(pairs)
    numbers = np.full(len(edges), 2, np.int64)
    living = np.arange(len(edges))
    for k in count(3):
        while len(living):
            tails, heads = edges[living].T
            upper = coo_array((np.ones(len(living), np.int64), (tails, heads)), shape=(n, n)).tocsr()
            adjacency = (upper + upper.T).tocsr()
            support = np.asarray(((adjacency @ adjacency) * adjacency).tocsr()[tails, heads]).reshape(-1)
            if (support >= k - 2).all():
                break
            living = living[support >= k - 2]
        if not len(living):
            return numbers
        numbers[living] = k
    raise AssertionError
