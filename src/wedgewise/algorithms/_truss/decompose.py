"""The truss number of every arc, one k-truss, and the last one that is not empty, by peeling.

Memory beyond the oriented graph: `truss_bytes`.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._contract import FoundTruss, Knobs, Shape, TrussJob
from wedgewise.algorithms._truss import MIN_K, STAGE
from wedgewise.algorithms._truss.counted_edges import CountedEdges, count_edges_of, is_recount_cheaper
from wedgewise.algorithms._truss.peeling import (
    MAX_SHARES,
    SLICE_EDGES,
    SLICES_AT_ONCE,
    TASK_TRIANGLES,
    TASKS_AT_ONCE,
    Peeling,
)
from wedgewise.algorithms._truss.remaining import RemainingEdges
from wedgewise.algorithms.cpu._keystone_supports import edge_support_bytes
from wedgewise.algorithms.cpu._truss_close import BLOCK, GONE
from wedgewise.machine.progress import Progress
from wedgewise.stages import Ids, OrientedGraph

EDGE_BYTES = 73  # counted edges 16, remaining edges 37, frontiers 12, bounds of removal 4, what packing compares 4
COUNTED_BYTES = 16  # of an edge while its support is counted: its ends, its number, and the support
VERTEX_BYTES = 32
STEP_EDGES = 1 << 20


@dataclass(slots=True)
class RoundProgress:
    """Counts rounds, and says after each how many of the edges are removed."""

    progress: Progress | None
    edges: int
    rounds: int = 0

    def left(self, edges: int) -> None:
        self.rounds += 1
        if self.progress is not None:
            self.progress(STAGE, self.edges - edges, self.edges)


def trussness(graph: OrientedGraph, job: TrussJob) -> FoundTruss:
    """The truss number of every arc."""
    whole = count_edges_of(graph, job.threads)
    counted = whole.kept(whole.supports > 0)
    del whole
    progress, removed_at = RoundProgress(job.progress, graph.m), np.zeros(graph.m, np.uint32)
    progress.left(counted.m)
    peeling = _peeling(counted, removed_at, progress, job.threads)
    del counted
    bound = 1
    while (least := peeling.drop(bound)) != GONE:
        bound = max(bound + 1, least)
    removed_at += np.uint32(MIN_K)  # the truss number of every edge
    return FoundTruss(int(removed_at.max(initial=MIN_K)), removed_at, progress.rounds)


def k_truss(graph: OrientedGraph, job: TrussJob) -> FoundTruss:
    """Whether each arc is in the k-truss."""
    assert job.k is not None
    progress = RoundProgress(job.progress, graph.m)
    counted = _truss_of(count_edges_of(graph, job.threads), job.k, progress, job.threads)
    return FoundTruss(job.k, _held(counted, graph.m), progress.rounds)


def max_truss(graph: OrientedGraph, job: TrussJob) -> FoundTruss:
    """The last k-truss that is not empty, without the others: k is bisected, each try begins at the last success."""
    progress = RoundProgress(job.progress, graph.m)
    counted = count_edges_of(graph, job.threads)
    least, most = MIN_K, _most_k(counted)
    while least < most:
        k = (least + most + 1) // 2
        found = _truss_of(counted, k, progress, job.threads)
        if found.m:
            counted, least = found, k
            most = min(most, _most_k(counted))
        else:
            most = k - 1
    return FoundTruss(least, _held(counted, graph.m), progress.rounds)


def truss_bytes(shape: Shape, threads: int, knobs: Knobs) -> int:
    """Peak of any of these beyond the oriented graph: those that look for one truss may count again beside edges."""
    return supports_bytes(shape, threads) + peeling_bytes(shape, threads)


def trussness_bytes(shape: Shape, threads: int, knobs: Knobs) -> int:
    """Peak of `trussness`, which counts supports once, beside ends and numbers alone."""
    return max(supports_bytes(shape, threads) + COUNTED_BYTES * shape.m, peeling_bytes(shape, threads))


def supports_bytes(shape: Shape, threads: int) -> int:
    """What counting the supports takes."""
    return edge_support_bytes(Shape(shape.n, shape.m), threads, {"hubs": -1, "probe_ratio": 2})


def peeling_bytes(shape: Shape, threads: int) -> int:
    """What peeling takes: by edge, by vertex and thread, and buffers."""
    losses = TASKS_AT_ONCE * (2 * TASK_TRIANGLES + (MAX_SHARES + 2) * BLOCK) * 5
    slices = min(shape.m, SLICES_AT_ONCE * SLICE_EDGES) * 32
    return EDGE_BYTES * shape.m + (VERTEX_BYTES + 8 * threads) * shape.n + losses + slices


def _peeling(counted: CountedEdges, removed_at: Ids, progress: RoundProgress, threads: int) -> Peeling:
    """Rounds over counted edges, whose arrays are changed."""
    edges = counted.m
    remaining = RemainingEdges.of(counted.ends, counted.numbers, counted.supports, counted.vertices, threads)
    return Peeling(remaining, removed_at, lambda removed: progress.left(edges - removed))


def _truss_of(counted: CountedEdges, k: int, progress: RoundProgress, threads: int) -> CountedEdges:
    """The k-truss of counted edges: by recounting while most triangles are lost, then by peeling."""
    bound = k - MIN_K - 1
    while is_recount_cheaper(counted, bound):
        counted = counted.kept(counted.supports > np.uint32(bound)).recounted(threads)
        progress.left(counted.m)
    weak = counted.supports <= np.uint32(bound)
    if not counted.supports[weak].any():
        counted = counted.kept(~weak)
        progress.left(counted.m)
        return counted
    removed_at = np.zeros(int(counted.numbers[-1]) + 1, np.uint32)
    peeling = _peeling(deepcopy(counted), removed_at, progress, threads)
    peeling.drop(bound)
    left = peeling.remaining
    left.pack()
    return CountedEdges(left.ends.copy(), left.numbers.copy(), left.supports.copy(), left.n)


def _held(counted: CountedEdges, arcs: int) -> NDArray[np.bool_]:
    """Whether each arc is among the edges."""
    held = np.zeros(arcs, np.bool_)
    held[counted.numbers] = True
    return held


def _most_k(counted: CountedEdges) -> int:
    """No k-truss beyond this one has edges: it would need C(k, 2) of them with k − 2 triangles each."""
    if not counted.m:
        return MIN_K
    with_support = np.zeros(int(counted.supports.max()) + 1, np.int64)
    for begin in range(0, counted.m, STEP_EDGES):
        with_support += np.bincount(counted.supports[begin : begin + STEP_EDGES], minlength=len(with_support))
    edges = np.cumsum(with_support[::-1])[::-1]  # that have so many triangles or more
    k = np.arange(len(edges)) + MIN_K
    held = ((1 + np.sqrt(1 + 8 * edges)) / 2).astype(np.int64)  # the largest k with C(k, 2) edges, give or take one
    return int(np.minimum(k, held + 1).max())
