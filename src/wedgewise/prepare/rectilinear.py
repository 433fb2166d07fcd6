"""BBTC's cuts: symmetric rectilinear partitioning by probing loads along the diagonal (PaL; BBTC, §4.1).

Given the largest load L that a block may have, cuts are made greedily from the first id on: part k ends as far behind
its beginning as all of its blocks, those above the diagonal and the one on it, keep to L. Bisection finds an L for
which p parts suffice, whereas they do not for L − 1.

            cuts       ┆x             the blocks of part k grow with x alone: what is left of
       ┌────┬─────┬────┆──            them is cut already
    0  │    │     │ 0k ┆
       └────┼─────┼────┆──            load of block jk = Q(end j, x) − Q(begin j, x)
    j       │     │ jk ┆                                 − Q(end j, begin k) + Q(begin j, begin k)
            └─────┼────┆──
    k             │ kk ┆              Q(r, c): arcs from segments before r to segments before c

Loads come from prefix sums over a grid of at most `SEGMENTS` segments of ids, so that arcs are read once, whatever p is
and however many loads are probed. With no more ids than that, each is a segment of its own and the cuts are PaL's to
the id. Otherwise segments have about equally many arcs in and out, and cuts fall between them.

Memory: 8 bytes per entry of the grid, 34 MB at most (three such grids to probe both ways), and 2 per vertex; before
that 16 per vertex and, for the sampled heads, 16 MB at most.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import InputError
from wedgewise.machine.jit import kernel, kernel_view
from wedgewise.machine.threads import run_tasks
from wedgewise.stages import Ids, OrientedGraph
from wedgewise.stages.blocks import Rectilinear

SEGMENTS = 1 << 11
MAX_PARTS = 1 << 10
SAMPLED_HEADS = 1 << 20
TASK_SEGMENTS = 1 << 4

ArcsBefore = NDArray[np.int64]


def rectilinear(
    graph: OrientedGraph, parts: int | None = None, *, threads: int = 1, both_ways: bool = False
) -> Rectilinear:
    """Cut the ids of a graph into parts whose blocks have evenly many arcs.

    Parameters
    ----------
    graph : its ids are ranks, so that arcs go from lower to higher ids
    parts : how many, or None for the average out-degree (BBTC, §7.3); some may be empty
    threads : how many threads read the arcs
    both_ways : also probe from the last id backwards, and keep the cuts whose heaviest block is lighter; PaL itself
        goes forwards, and leaves all leaves of a star in one part since no arc is among them

    Returns
    -------
    cuts for the load L of the heaviest block, such that probing for L − 1 fails
    """
    if graph.named_by != "rank":
        raise InputError(f"ids follow {graph.named_by!r}, not the order; partition the graph before relabelling it")
    parts = default_parts(graph) if parts is None else parts
    if not 1 <= parts <= MAX_PARTS:
        raise InputError(f"a graph is cut into 1 … {MAX_PARTS:,} parts, not {parts:,}; ask for other parts")
    bounds = segment_bounds(graph)
    before = arcs_before(graph, bounds, threads)
    cuts = probe_a_load(before, parts)
    if both_ways:
        backwards = len(bounds) - 1 - probe_a_load(mirrored(before), parts)[::-1]
        cuts = min(cuts, backwards, key=lambda found: heaviest(before, found))
    return Rectilinear(bounds[cuts])


def default_parts(graph: OrientedGraph) -> int:
    """The average out-degree, around which BBTC found the best times."""
    return min(MAX_PARTS, max(1, round(graph.m / max(1, graph.n))))


def segment_bounds(graph: OrientedGraph) -> NDArray[np.int64]:
    """Bounds of segments of ids that have about equally many arcs, at most `SEGMENTS`; the in-degrees are sampled."""
    if graph.n <= SEGMENTS:
        return np.arange(graph.n + 1)
    step = max(1, graph.m // SAMPLED_HEADS)
    arcs = np.bincount(graph.out_neighbours[::step], minlength=graph.n)
    arcs *= step
    np.cumsum(arcs, out=arcs)
    arcs += graph.offsets[1:].astype(np.int64)
    inner = np.searchsorted(arcs, np.linspace(0, arcs[-1], SEGMENTS + 1)[1:-1], side="right")
    return np.unique(np.concatenate([[0], inner, [graph.n]]))


def arcs_before(graph: OrientedGraph, bounds: NDArray[np.int64], threads: int) -> ArcsBefore:
    """Q[r, c]: how many arcs lead from the first r segments to the first c segments."""
    segments = len(bounds) - 1
    counts = np.zeros((segments + 1, segments + 1), np.int64)
    rows = kernel_view(counts[1:])
    segment_of = np.repeat(np.arange(segments, dtype=np.uint16), np.diff(bounds))
    starts = graph.offsets[bounds].astype(np.uint64)
    heads = kernel_view(graph.out_neighbours)

    def count(number: int, _worker: int) -> None:
        begin = number * TASK_SEGMENTS
        count_heads(starts, heads, segment_of, begin, min(begin + TASK_SEGMENTS, segments), rows)

    run_tasks(count, -(-segments // TASK_SEGMENTS), threads)
    np.cumsum(counts, axis=1, out=counts)
    np.cumsum(counts, axis=0, out=counts)
    return counts


@kernel
def count_heads(
    starts: NDArray[np.uint64],
    heads: Ids,
    segment_of: NDArray[np.uint16],
    begin: int,
    end: int,
    rows: NDArray[np.uint64],
) -> None:
    """Count the arcs from each segment in [begin, end) by the segment of their head, in a row of its own."""
    one = np.uint64(1)
    width = np.uint64(len(starts))
    for segment in range(np.uint64(begin), np.uint64(end)):
        row = segment * width + one
        for arc in range(starts[segment], starts[segment + one]):
            rows[row + np.uint64(segment_of[heads[arc]])] += one


def mirrored(before: ArcsBefore) -> ArcsBefore:
    """The prefix sums when segments are counted from the last one and arcs turned, so that they lead upwards again."""
    after: ArcsBefore = before[-1, -1] - before[::-1, -1] - before[-1, ::-1, None] + before[::-1, ::-1].T
    return after


def heaviest(before: ArcsBefore, cuts: NDArray[np.int64]) -> int:
    """The most arcs of a block between cuts."""
    return int(np.diff(np.diff(before[np.ix_(cuts, cuts)], axis=0), axis=1).max())


def probe_a_load(before: ArcsBefore, parts: int) -> NDArray[np.int64]:
    """Cuts between segments for a load, found by bisection, that so many parts keep to, whereas not to one less."""
    arcs = int(before[-1, -1])
    low, high = -(-2 * arcs // (parts * (parts + 1))), arcs  # below the average nothing suffices, all of them do
    cuts = probe(before, parts, high)
    while low < high:
        load = (low + high) // 2
        found = probe(before, parts, load)
        if found is None:
            low = load + 1
        else:
            high, cuts = load, found
    assert cuts is not None
    return cuts


def probe(before: ArcsBefore, parts: int, load: int) -> NDArray[np.int64] | None:
    """Cuts with no block above the load, each as far on as it can be; None where so many parts do not suffice."""
    segments = len(before) - 1
    cuts = np.full(parts + 1, segments)
    cuts[0] = 0
    for part in range(parts):
        cuts[part + 1] = end = _farthest(before, cuts[: part + 1], load)
        if end == segments:
            return cuts
        if end == cuts[part]:
            return None
    return None


def _farthest(before: ArcsBefore, cuts: NDArray[np.int64], load: int) -> int:
    """The last end of a part that begins at the last cut for which none of its blocks is above the load."""
    begin = int(cuts[-1])
    taken = before[cuts, begin]
    low, high = begin, len(before) - 1
    while low < high:
        end = (low + high + 1) // 2
        columns = before[cuts, end] - taken
        above = np.diff(columns)
        on = before[end, end] - before[begin, end]
        if on <= load and not (above > load).any():
            low = end
        else:
            high = end - 1
    return low
