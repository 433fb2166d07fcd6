"""What: the obvious answer, in array operations: list every wedge, look its closing arc up among all arcs.

Paper: none; the definition.
Who does what: one task per range of arcs a → b; all c behind b in N+(a), batch by batch. Answers other than a count are
filled by one batch after the other.
Trusses are found by products of the adjacency matrix (Blanco, Low, Kim, HPEC 2019): rounds of AᵀA ∘ A over the edges
that remain.
Input: any oriented graph. Output: triangles and wedges tested. Memory: 24 bytes per arc and `BATCH_WEDGES` × 72 bytes.
It needs no compiler, so a fresh process answers small graphs with it, and `verify=True` recounts by it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._contract import Algorithm, Answer, Counts, Knobs, Pass, Shape, TrussJob, Work
from wedgewise.algorithms._ranges import even_bounds
from wedgewise.algorithms._truss import rounds
from wedgewise.algorithms._truss.reference import ProductRounds, product_bytes
from wedgewise.stages import Ids, OrientedGraph

BATCH_WEDGES = 1 << 19

Positions = NDArray[np.int64]


class Closed(NamedTuple):
    """Closed wedges a → b, a → c by the positions of their three arcs, in the order of the first two."""

    ab: Positions
    ac: Positions
    bc: Positions


class Wedges:
    """All pairs of arcs with one tail, numbered by their first arc."""

    def __init__(self, graph: OrientedGraph) -> None:
        self.graph, degrees = graph, graph.out_degrees
        tails = np.repeat(np.arange(graph.n, dtype=np.uint64), degrees)
        self.keys = tails << np.uint64(32) | graph.out_neighbours  # ascending: rows in order, each row sorted
        row_ends = np.repeat(graph.offsets[1:].astype(np.int64), degrees)
        self.of_arc = row_ends - np.arange(1, graph.m + 1)

    def closed(self, begin: int, end: int) -> Closed:
        """The closed ones among those with their first arc in [begin, end)."""
        looked_up = self.looked_up(begin, end)
        hit = looked_up.bc >= 0
        return Closed(*(arcs[hit] for arcs in looked_up))

    def looked_up(self, begin: int, end: int) -> Closed:
        """All of them, with −1 for a closing arc that is not there."""
        lengths = self.of_arc[begin:end]
        first = np.repeat(np.arange(begin, end), lengths)
        starts = np.arange(begin + 1, end + 1) - (np.cumsum(lengths) - lengths)
        second = np.arange(len(first)) + np.repeat(starts, lengths)
        b, c = (self.graph.out_neighbours[arcs].astype(np.uint64) for arcs in (first, second))
        third = self._find(b << np.uint64(32) | c)
        if self.graph.named_by != "rank":  # then ids do not say which way the closing arc goes
            third = np.maximum(third, self._find(c << np.uint64(32) | b))
        return Closed(first, second, third)

    def _find(self, wanted: NDArray[np.uint64]) -> Positions:
        """The position of each wanted arc; −1 where there is none."""
        position = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        return np.where(self.keys[position] == wanted, position, -1)


def prepare_count(graph: OrientedGraph, knobs: Knobs, threads: int) -> Work:
    """Cut the arcs into batches of wedges."""
    wedges = Wedges(graph)

    def run(begin: int, end: int, _workspace: None) -> Counts:
        closing = wedges.looked_up(begin, end).bc
        return np.count_nonzero(closing >= 0), len(closing)

    return Work((Pass(even_bounds(wedges.of_arc, BATCH_WEDGES), run),))


def _one_by_one(wedges: Wedges, credit: Callable[[Closed], None]) -> tuple[Pass, ...]:
    """A pass for each batch, so that no two of them write at once and sums are taken in one order."""

    def run(begin: int, end: int, _workspace: None) -> Counts:
        closed = wedges.closed(begin, end)
        credit(closed)
        return len(closed.ab), int(wedges.of_arc[begin:end].sum())

    bounds = even_bounds(wedges.of_arc, BATCH_WEDGES, least=1)
    return tuple(Pass(bounds[i : i + 2], run) for i in range(len(bounds) - 1))


def prepare_triangles(graph: OrientedGraph, knobs: Knobs, threads: int) -> Work:
    """Credit each triangle to its three vertices."""
    return _by_vertex(graph, np.zeros(graph.n, np.uint64), lambda _closed: np.uint64(1))


def prepare_weighted(graph: OrientedGraph, knobs: Knobs, threads: int) -> Work:
    """Credit the product of each triangle's arc strengths to its three vertices, in the order of the wedges."""
    assert graph.strengths is not None
    s = graph.strengths
    return _by_vertex(graph, np.zeros(graph.n, s.dtype), lambda closed: s[closed.ab] * s[closed.ac] * s[closed.bc])


def _by_vertex(graph: OrientedGraph, filled: NDArray[Any], worth: Callable[[Closed], Any]) -> Work:
    """Credit what each triangle is worth to its three vertices."""
    wedges = Wedges(graph)

    def credit(closed: Closed) -> None:
        each = worth(closed)
        for corner in _corners(wedges, closed):
            np.add.at(filled, corner, each)

    return Work(_one_by_one(wedges, credit), filled)


def prepare_support(graph: OrientedGraph, knobs: Knobs, threads: int) -> Work:
    """Credit each triangle to its three arcs."""
    wedges, filled = Wedges(graph), np.zeros(graph.m, np.uint32)

    def credit(closed: Closed) -> None:
        for arcs in closed:
            np.add.at(filled, arcs, np.uint32(1))

    return Work(_one_by_one(wedges, credit), filled)


def prepare_list(graph: OrientedGraph, knobs: Knobs, threads: int) -> Work:
    """Count the triangles that each arc opens, and list those of any range of arcs."""
    wedges, filled = Wedges(graph), np.zeros(graph.m, np.uint32)

    def credit(closed: Closed) -> None:
        np.add.at(filled, closed.ab, np.uint32(1))

    def fill(begin: int, end: int, triples: NDArray[np.uint32], _workspace: None) -> None:
        rows, done = triples.reshape(-1, 3), 0
        for first, stop in pairwise(begin + even_bounds(wedges.of_arc[begin:end], BATCH_WEDGES, least=1)):
            closed = wedges.closed(first, stop)
            for column, corner in enumerate(_corners(wedges, closed)):
                rows[done : done + len(closed.ab), column] = corner
            done += len(closed.ab)

    return Work(_one_by_one(wedges, credit), filled, fill)


def _corners(wedges: Wedges, closed: Closed) -> tuple[Ids, Ids, Ids]:
    """The ids of a, b and c."""
    heads = wedges.graph.out_neighbours
    return (wedges.keys[closed.ab] >> np.uint64(32)).astype(np.uint32), heads[closed.ab], heads[closed.ac]


def remaining_edges(graph: OrientedGraph, job: TrussJob) -> ProductRounds:
    tails = np.repeat(np.arange(graph.n, dtype=np.uint32), graph.out_degrees)
    return ProductRounds(np.stack([tails, graph.out_neighbours], axis=1), graph.n)


def bytes_needed(shape: Shape, threads: int, knobs: Knobs) -> int:
    wedges = BATCH_WEDGES if shape.wedges is None else min(BATCH_WEDGES, shape.wedges)
    return 24 * shape.m + threads * 72 * wedges


def bytes_by_vertex(shape: Shape, threads: int, knobs: Knobs) -> int:
    return bytes_needed(shape, 1, knobs) + 8 * shape.n


def bytes_by_arc(shape: Shape, threads: int, knobs: Knobs) -> int:
    return bytes_needed(shape, 1, knobs) + 4 * shape.m


def bytes_of_listing(shape: Shape, threads: int, knobs: Knobs) -> int:
    return bytes_needed(shape, threads, knobs) + 4 * shape.m


def bytes_of_trusses(shape: Shape, threads: int, knobs: Knobs) -> int:
    return product_bytes(shape.n, shape.m) + 13 * shape.m


ALGORITHM = Algorithm(
    name="reference",
    device="cpu",
    unit="graph",
    answers={
        "count": Answer(prepare_count, bytes_needed),
        "triangles": Answer(prepare_triangles, bytes_by_vertex),
        "weighted_triangles": Answer(prepare_weighted, bytes_by_vertex),
        "edge_support": Answer(prepare_support, bytes_by_arc),
        "list_triangles": Answer(prepare_list, bytes_of_listing),
        **rounds.answers(remaining_edges, bytes_of_trusses),
    },
    paper="the definition",
    summary="Lists every wedge and looks its closing arc up among all arcs, in array operations.",
    compiled=False,
)
