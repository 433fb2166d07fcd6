"""Random pairs with loops, copies, both directions and isolated vertices, and the simple graph that they make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class MessyGraph:
    """Pairs among vertices 0 … n − 1 as they come from somewhere, with a weight each."""

    n: int
    pairs: NDArray[np.int64]
    weights: NDArray[np.float64]

    @property
    def edges(self) -> list[tuple[int, int]]:
        """What must be left of them: u < v, each once, ascending."""
        return sorted({(min(u, v), max(u, v)) for u, v in self.pairs.tolist() if u != v})

    @property
    def arcs(self) -> list[tuple[int, int]]:
        return [(u, v) for u, v in self.pairs.tolist()]


def messy_graph(seed: int, n: int = 25, pairs: int = 60) -> MessyGraph:
    """Of the n vertices the last three are isolated; at least one loop, one copy and one reversed copy occur."""
    random = np.random.default_rng(seed)
    drawn = random.integers(0, n - 3, (pairs, 2))
    (u, v), extra = drawn[0], drawn[1:2]
    mess = np.array([[v, u], [u, u], [u, v]])
    together = np.concatenate((drawn, extra, mess))
    return MessyGraph(n, together, random.uniform(0.5, 4.0, len(together)))


def edges_of(graph: Any) -> list[tuple[int, int]]:
    """The edges of a wedgewise.Graph as pairs of vertex numbers."""
    return [(u, v) for u, v in graph.edges.tolist()]


GRAPHS = [
    *(messy_graph(seed) for seed in range(4)),
    messy_graph(9, n=200, pairs=2500),
    MessyGraph(5, np.empty((0, 2), np.int64), np.empty(0)),
]
