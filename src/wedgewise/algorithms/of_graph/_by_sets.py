"""The definition, in array operations over all edges: what the answers of methods are checked by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._similarity import lane_weights
from wedgewise.errors import VerificationError
from wedgewise.graph import Graph
from wedgewise.stages import Ids, Keys

SAMPLE, MIN_SAMPLE = 64, 4
SAMPLE_WORK = 1 << 31  # each of the sample looks at all edges


def sample_of(sizes: NDArray[Any], m: int) -> NDArray[np.int64]:
    """Which of these to look at: the largest, and random ones, as many as `SAMPLE_WORK` allows; seeded by the sizes."""
    wanted = min(len(sizes), max(MIN_SAMPLE, min(SAMPLE, SAMPLE_WORK // max(1, m))))
    drawn = np.random.default_rng([len(sizes), m]).choice(len(sizes), wanted, replace=False)
    return np.union1d(drawn, [int(sizes.argmax())] if wanted else []).astype(np.int64)


def neighbours_of(graph: Graph, vertex: int) -> Ids:
    """The neighbours of a vertex, looked for among all edges."""
    edges = graph.edges
    found: Ids = np.concatenate([edges[edges[:, 0] == vertex, 1], edges[edges[:, 1] == vertex, 0]])
    return found


def check_sums(graph: Graph, ends: NDArray[Any], lanes: Sequence[str], sums: Keys) -> str:
    """Hold the sums of sampled pairs to those over the neighbours of both ends."""
    weights = lane_weights(graph.degrees, lanes)
    sample = sample_of(graph.degrees[ends].min(axis=1) if len(ends) else np.zeros(0), graph.m).tolist()
    for pair in sample:
        u, v = ends[pair].tolist()
        expected = weights[np.intersect1d(neighbours_of(graph, u), neighbours_of(graph, v))].sum(axis=0)
        if not np.array_equal(expected, sums[pair]):
            raise VerificationError(
                f"{graph.labels[u]!r} and {graph.labels[v]!r}: common neighbours come to {sums[pair].tolist()}, by "
                f"definition to {expected.tolist()}: please report this"
            )
    return f"{len(sample):,} pairs by the neighbours of both ends"
