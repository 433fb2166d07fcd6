"""Random NetworkX graphs of every kind that the backend takes, by seed, and comparing answers within rounding."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import networkx as nx

FIVE_KINDS_OF_NODE = ("in order", "shuffled", "sparse", "text", "mixed")


def nodes_of_kind(kind: str, count: int, rng: random.Random) -> list[Hashable]:
    """Nodes to be numbered by position, by table, by look-up; of one type or of several."""
    numbers = list(range(count))
    if kind == "shuffled":
        rng.shuffle(numbers)
        return [number - count // 2 for number in numbers]
    if kind == "sparse":
        return [number * 10**15 + rng.randrange(10**6) for number in numbers]
    if kind == "text":
        return [f"node {number}" for number in numbers]
    if kind == "mixed":
        makers = (lambda i: i, str, lambda i: (i, "pair"), lambda i: frozenset({i}), lambda i: i + 0.5)
        return [rng.choice(makers)(number) for number in numbers]
    return [*numbers]


def random_graph(seed: int, make: Any = nx.Graph, *, weights: str | None = None) -> Any:
    """A graph with isolated nodes and self-loops; `weights` is "positive" or "signed", on most of the edges."""
    rng = random.Random(seed)
    count = rng.randrange(1, 40)
    nodes = nodes_of_kind(FIVE_KINDS_OF_NODE[seed % len(FIVE_KINDS_OF_NODE)], count, rng)
    graph = make()
    graph.add_nodes_from(nodes)
    for _ in range(rng.randrange(1 + count * 6)):
        u, v = rng.choice(nodes), rng.choice(nodes)
        if weights is None or rng.random() < 0.2:
            graph.add_edge(u, v)
        else:
            graph.add_edge(u, v, weight=rng.uniform(-4 if weights == "signed" else 0.1, 4))
    return graph


def some_nodes(graph: Any, seed: int) -> list[Hashable]:
    """Nodes in another order, one of them twice, and two things that are not nodes."""
    rng = random.Random(seed)
    chosen = rng.sample(list(graph), rng.randrange(1, len(graph) + 1))
    return [*chosen, chosen[0], "nowhere", -1]


def assert_same(ours: Any, theirs: Any) -> None:
    """Equal answers with equal order of keys, floats within rounding, made of Python's own types."""
    if isinstance(theirs, Counter):
        assert type(ours) is Counter
        assert ours == theirs
        assert {type(number) for item in ours.items() for number in item} <= {int}
    elif isinstance(theirs, dict):
        assert list(ours) == list(theirs)
        assert type(ours) is type(theirs)
        for key, value in theirs.items():
            assert_same(ours[key], value)
    elif isinstance(theirs, float) or isinstance(ours, float):
        assert type(ours) in (int, float)
        assert math.isclose(ours, theirs, rel_tol=1e-12, abs_tol=1e-12)
    else:
        assert type(ours) is type(theirs)
        assert ours == theirs


def sets_of_three(triangles: Iterable[tuple[Any, ...]]) -> list[frozenset[Any]]:
    """Triangles without their order, each as often as it came, in a fixed order."""
    return sorted(map(frozenset, triangles), key=lambda three: sorted(map(repr, three)))


@contextmanager
def priority(name: str = "wedgewise") -> Iterator[None]:
    """Have NetworkX ask a backend first, as a user's one line does."""
    before = nx.config.backend_priority.algos
    nx.config.backend_priority.algos = [name]
    try:
        yield
    finally:
        nx.config.backend_priority.algos = before
