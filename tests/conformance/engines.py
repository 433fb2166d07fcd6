"""Every answer of every algorithm that the registry discovers for the CPU: no list to keep, none left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from helpers.graphs import (
    DENSE,
    TRUTHS,
    Known,
    SmallGraph,
    both_ways,
    directed_clustering_by_product,
    fixture_pairs,
    known_by_sets,
)
from numpy.typing import NDArray

import wedgewise as ww
from wedgewise import generate
from wedgewise.algorithms._contract import TRUSSES, Algorithm, Knob
from wedgewise.machine.jit import JIT_DISABLED

RECORDS: tuple[Algorithm, ...] = tuple(record for record in ww.algorithms() if record.device == "cpu")
COUNTING: tuple[Algorithm, ...] = tuple(record for record in RECORDS if "count" in record.answers)
CPU_ALGORITHMS: tuple[str, ...] = tuple(record.name for record in COUNTING)

# the question that hands out what an algorithm computes; trusses have a module of their own
QUESTIONS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "count": ("count", {}),
    "triangles": ("triangles", {}),
    "edge_support": ("edge_support", {}),
    "list_triangles": ("list_triangles", {}),
    "weighted_triangles": ("clustering", {"weighted": True}),
}


def counted_by(record: Algorithm) -> tuple[str, ...]:
    """What an algorithm computes besides trusses."""
    return tuple(computes for computes in record.answers if computes not in TRUSSES)


ENGINES: tuple[tuple[str, str], ...] = tuple(
    (record.name, computes) for record in RECORDS for computes in counted_by(record)
)

ORIENTATIONS: tuple[tuple[str, str, str, str], ...] = tuple(
    (record.name, computes, order, relabel)
    for record in RECORDS
    for computes, order, relabel in product(counted_by(record), record.orders, record.relabellings)
)


def knob_values(knob: Knob) -> tuple[int | str, ...]:
    """The values of a knob that are worth trying: all choices, or the extremes and those near the default."""
    if knob.choices:
        return knob.choices
    default, largest = int(knob.default), 3 if knob.name == "parts" else 2**31 - 1  # no more parts than vertices
    tried = {knob.least, knob.least + 1, default // 2, default, default + 1, 2 * default, largest}
    return tuple(sorted(value for value in tried if value >= knob.least))


KNOB_SETTINGS: tuple[tuple[str, str, str, int | str], ...] = tuple(
    (record.name, computes, knob.name, value)
    for record in RECORDS
    for computes in counted_by(record)
    for knob in record.knobs
    for value in knob_values(knob)
)


def that_answer(*computes: str, compiled: bool = False) -> tuple[str, ...]:
    """The algorithms that compute all of these; on request the compiled ones alone."""
    able = (record for record in RECORDS if set(computes) <= set(record.answers))
    return tuple(record.name for record in able if record.compiled or not compiled)


for_every_algorithm = pytest.mark.parametrize("algorithm", CPU_ALGORITHMS)
for_every_engine = pytest.mark.parametrize(("algorithm", "computes"), ENGINES)
for_every_local_algorithm = pytest.mark.parametrize("algorithm", that_answer("triangles", "edge_support"))


@dataclass(frozen=True, slots=True)
class Held:
    """A graph that keeps directions and weights, with what every question about it must be answered."""

    graph: ww.Graph
    known: Known
    directed_clustering: NDArray[np.float64]
    weighted_clustering: NDArray[np.float64]


SKEWED = generate.kronecker(6 if JIT_DISABLED else 10, seed=1)
CLIQUE = generate.complete(23 if JIT_DISABLED else 97)
# all small graphs as one, a dense real one, a skewed one, a clique; smaller ones where kernels run as plain Python
VARIED_GRAPHS = (
    "dolphins" if JIT_DISABLED else "atlas_union",
    DENSE,
    "skewed",
    "clique",
)


@cache
def held(name: str) -> Held:
    """One of the varied graphs, prepared once for all tests."""
    if name in TRUTHS:
        pairs, n = fixture_pairs(name), TRUTHS[name]["n"]
    else:
        stream = {"skewed": SKEWED, "clique": CLIQUE}[name]
        pairs, n = stream.pairs(), stream.n
    arcs, weights = both_ways(pairs, seed=n)
    return Held(
        ww.Graph(arcs, n=n, directed=True, weights=weights),
        known_by_sets(pairs, n),
        directed_clustering_by_product(arcs, n),
        directed_clustering_by_product(arcs, n, weights),
    )


def ask(computes: str, graph: ww.Graph, algorithm: str, **options: Any) -> ww.Result:
    """The result that shows what an algorithm computes."""
    question, details = QUESTIONS[computes]
    result = ww.run(question, graph, algorithm=algorithm, **details, **options)
    assert (result.algorithm, result.device, result.plan.computes) == (algorithm, "cpu", computes)
    return result


def check(computes: str, answer: Any, expected: Held) -> None:
    """Hold an answer to what is known: exactly, or for weighted sums within rounding."""
    if computes == "weighted_triangles":
        np.testing.assert_allclose(answer, expected.weighted_clustering, rtol=1e-12, atol=1e-15)
        return
    if computes == "count":
        assert type(answer) is int
    elif computes == "list_triangles":
        assert answer.dtype == np.uint32
        answer = in_order(answer)
    else:
        assert answer.dtype == np.int64
    np.testing.assert_array_equal(answer, getattr(expected.known, computes))


def in_order(triples: NDArray[Any]) -> NDArray[Any]:
    """The rows of a listing in ascending order; what is inside a row stays."""
    ascending: NDArray[Any] = triples[np.lexsort(triples.T[::-1])]
    return ascending


def as_bytes(answer: Any) -> bytes:
    """All bits of an answer."""
    return np.asarray(answer).tobytes()


def graph_of(source: Any, n: int | None = None) -> ww.Graph:
    """The library's graph for a SmallGraph or whatever else `ww.Graph` accepts."""
    if isinstance(source, SmallGraph):
        source, n = source.pairs, source.n
    return ww.Graph(source, n=n, threads=1)


def count(source: Any, algorithm: str, n: int | None = None) -> int:
    """How many triangles the library finds."""
    return ww.count(graph_of(source, n), algorithm=algorithm, device="cpu", threads=1)


def triangles(source: Any, algorithm: str, n: int | None = None) -> NDArray[np.int64]:
    """How many triangles the library finds at each vertex."""
    return ww.triangles(graph_of(source, n), algorithm=algorithm, threads=1)


def supports(source: Any, algorithm: str, n: int | None = None) -> dict[tuple[int, int], int]:
    """How many triangles the library finds at each edge (u, v), u < v."""
    graph = graph_of(source, n)
    found = ww.edge_support(graph, algorithm=algorithm, threads=1)
    return dict(zip(map(tuple, graph.edges.tolist()), found.tolist(), strict=True))
