"""The same relations on graphs large enough for hubs, bitmaps and many tasks."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from conformance.engines import count, for_every_algorithm
from graphs import count_by_product
from numpy.typing import NDArray

from wedgewise.generate import EdgeStream, kronecker, small_world, uniform, words
from wedgewise.machine.jit import JIT_DISABLED

SCALE = 7 if JIT_DISABLED else 11
GRAPHS = (
    kronecker(SCALE, seed=3),
    uniform(2**SCALE, 2 ** (SCALE + 4), seed=3),
    small_world(2**SCALE, 16, 0.1, seed=3),
)

for_every_graph = pytest.mark.parametrize("stream", GRAPHS, ids=lambda stream: stream.name)


def edges_of(stream: EdgeStream) -> NDArray[Any]:
    """The distinct edges of a stream, u < v."""
    pairs = np.sort(stream.pairs(), axis=1)
    return np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)


@for_every_algorithm
@for_every_graph
def test_masked_product(algorithm: str, stream: EdgeStream) -> None:
    pairs = stream.pairs()
    assert count(pairs, algorithm, n=stream.n) == count_by_product(pairs, stream.n)


@for_every_algorithm
@for_every_graph
def test_relabelling_and_shuffling(algorithm: str, stream: EdgeStream) -> None:
    pairs = stream.pairs()
    order = np.argsort(words.words(1, 0, len(pairs)), kind="stable")
    names = np.argsort(words.words(2, 0, stream.n), kind="stable")
    assert count(names[pairs[order]], algorithm, n=stream.n) == count(pairs, algorithm, n=stream.n)


@for_every_algorithm
@for_every_graph
def test_apex(algorithm: str, stream: EdgeStream) -> None:
    edges = edges_of(stream)
    spokes = np.column_stack([np.arange(stream.n), np.full(stream.n, stream.n)])
    with_apex = count(np.concatenate([edges, spokes]), algorithm, n=stream.n + 1)
    assert with_apex == count(edges, algorithm, n=stream.n) + len(edges)


@for_every_algorithm
def test_disjoint_union(algorithm: str) -> None:
    first, second = GRAPHS[0], GRAPHS[1]
    both = np.concatenate([first.pairs(), second.pairs() + first.n])
    separate = count(first.pairs(), algorithm) + count(second.pairs(), algorithm)
    assert count(both, algorithm, n=first.n + second.n) == separate


@for_every_algorithm
@for_every_graph
def test_sum_over_colour_triples(algorithm: str, stream: EdgeStream) -> None:
    pairs = stream.pairs()
    colours = words.numbers_below(4, 5, 0, stream.n)

    def of_colours(some: tuple[int, ...]) -> int:
        kept = np.isin(colours, some)
        return count(pairs[kept[pairs].all(axis=1)], algorithm, n=stream.n)

    triples, two, one = (sum(map(of_colours, combinations(range(4), size))) for size in (3, 2, 1))
    assert count(pairs, algorithm, n=stream.n) == triples - two + one
