"""SimpleGraph → OrientedGraph, in two separate steps that papers often blur.

`orient` decides the **direction** of every arc, from the lower to the higher vertex of an order:

    degree   ascending degree, ties by vertex
    core     the rounds of peeling vertices of least degree (degeneracy), ties by vertex
    id       the vertices as they are

`relabel` only **renames** vertices afterwards and keeps directions:

    rank        ids follow the order: every arc goes from a lower to a higher id
    indegree    descending in-degree of the oriented graph (TRUST, §4.1)
    collective  the out-neighbours of the vertex with the largest collective out-degree first (TRUST, §4.1)
    classes     out-degree > 100, then 2–100, then < 2; collective order inside each (TRUST, §5.1)

Peak memory beyond the simple graph: 20 bytes per edge (two key buffers and the arcs), and 21 + 4 per counting thread
for every vertex. `arcs_of_edges` says where each edge is among the arcs, in 4 bytes per edge (8 from 2^31 arcs).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.clean import ARRAY_SECONDS_PER_PAIR
from wedgewise.errors import UnknownNameError
from wedgewise.execute.threads import run_tasks
from wedgewise.graph import Ids, Keys, OrientedGraph, SimpleGraph
from wedgewise.machine import jit
from wedgewise.machine.jit import helper, kernel, kernel_view
from wedgewise.radix import SortedKeys, sort_pairs

ORDERS = ("degree", "core", "id")
RELABELLINGS = ("rank", "indegree", "collective", "classes")
CHUNK = 1 << 20
FIND_CHUNK = 1 << 18
LARGE_OUT_DEGREE = 100  # TRUST gives such vertices a block of threads, those of out-degree 2 … 100 a warp
SMALL_OUT_DEGREE = 2


def orient(
    graph: SimpleGraph, order: str = "degree", *, threads: int = 1, compiled: bool | None = None
) -> OrientedGraph:
    """Direct every edge from the lower to the higher vertex of `order`; ids are ranks."""
    if order not in ORDERS:
        raise UnknownNameError(f"no order named {order!r}; there are: {', '.join(ORDERS)}")
    if compiled is None:
        compiled = jit.pays(ARRAY_SECONDS_PER_PAIR * graph.m)
    vertex_of = _by_rank(graph, order, threads, compiled)
    rank = np.empty(graph.n, np.uint32)
    rank[vertex_of] = np.arange(graph.n, dtype=np.uint32)
    found = sort_pairs(graph.slot_pairs, graph.n, threads, rename=graph.by_slot(rank), compiled=compiled)
    offsets, out_neighbours = _rows(found, threads)
    wedges = count_wedges(found.first_counts)
    return OrientedGraph(graph.n, offsets, out_neighbours, vertex_of, order, "rank", wedges)


def relabel(graph: OrientedGraph, by: str, *, threads: int = 1, compiled: bool | None = None) -> OrientedGraph:
    """Rename the vertices of an oriented graph whose ids are ranks; directions stay."""
    if by not in RELABELLINGS:
        raise UnknownNameError(f"no relabelling named {by!r}; there are: {', '.join(RELABELLINGS)}")
    if by == graph.named_by:
        return graph
    if compiled is None:
        compiled = jit.pays(ARRAY_SECONDS_PER_PAIR * graph.m)
    old_ids = {"indegree": _by_indegree, "collective": _by_collective, "classes": _by_classes}[by](graph)
    new_id = np.empty(graph.n, np.uint32)
    new_id[old_ids] = np.arange(graph.n, dtype=np.uint32)
    arcs = np.empty((graph.m, 2), np.uint32)
    arcs[:, 0] = np.repeat(np.arange(graph.n, dtype=np.uint32), graph.out_degrees)
    arcs[:, 1] = graph.out_neighbours
    found = sort_pairs(arcs, graph.n, threads, rename=new_id, directed=True, compiled=compiled)
    offsets, out_neighbours = _rows(found, threads)
    return OrientedGraph(graph.n, offsets, out_neighbours, graph.vertex_of[old_ids], graph.order, by, graph.wedges)


def arcs_of_edges(
    simple: SimpleGraph, oriented: OrientedGraph, *, threads: int = 1, compiled: bool | None = None
) -> NDArray[Any]:
    """The position among the arcs of every edge, in the order of the edges."""
    if compiled is None:
        compiled = jit.pays(ARRAY_SECONDS_PER_PAIR * simple.m)
    id_of = np.empty(simple.n, np.uint32)
    id_of[oriented.vertex_of] = np.arange(simple.n, dtype=np.uint32)
    id_of_slot = simple.by_slot(id_of)
    if not compiled:
        return _arcs_by_arrays(simple, oriented, id_of_slot)
    offsets, rows = kernel_view(oriented.offsets), kernel_view(oriented.out_neighbours)
    places = np.empty(simple.m, oriented.offsets.dtype)

    def find(chunk: int, _worker: int) -> None:
        part = slice(chunk * FIND_CHUNK, (chunk + 1) * FIND_CHUNK)
        find_arcs(simple.slot_keys[part], id_of_slot, offsets, rows, places[part])

    run_tasks(find, -(-simple.m // FIND_CHUNK), threads)
    return places


def _arcs_by_arrays(simple: SimpleGraph, oriented: OrientedGraph, id_of_slot: Ids) -> NDArray[Any]:
    tails = np.repeat(np.arange(oriented.n, dtype=np.uint64), oriented.out_degrees)
    arcs = tails << np.uint64(32) | oriented.out_neighbours
    ends = id_of_slot[simple.slot_pairs].astype(np.uint64)
    places = np.zeros(simple.m, oriented.offsets.dtype)
    for tail, head in (ends.T, ends.T[::-1]):
        wanted = tail << np.uint64(32) | head
        place = np.minimum(np.searchsorted(arcs, wanted), len(arcs) - 1)
        there = arcs[place] == wanted
        places[there] = place[there]
    return places


@helper
def first_not_below(rows, low, high, wanted):  # type: ignore[no-untyped-def]
    """The first position of the sorted ``rows[low:high]`` that is not below `wanted`; `high` if all are."""
    length = high - low
    while length > np.uint64(0):
        half = length >> np.uint64(1)
        below = np.uint64(rows[low + half] < wanted)
        low += below * (half + np.uint64(1))
        length = below * (length - half - np.uint64(1)) + (np.uint64(1) - below) * half
    return low


@kernel
def find_arcs(keys: Keys, id_of_slot: Ids, offsets: NDArray[Any], rows: Ids, places: NDArray[Any]) -> None:
    """Look every edge up in the row of its lower id; where ids are not ranks, it may be in the other row."""
    one = np.uint64(1)
    for i in range(np.uint64(len(keys))):
        u = id_of_slot[keys[i] >> np.uint64(32)]
        v = id_of_slot[keys[i] & np.uint64(0xFFFFFFFF)]
        low, high = np.uint64(min(u, v)), np.uint64(max(u, v))
        end = np.uint64(offsets[low + one])
        place = first_not_below(rows, np.uint64(offsets[low]), end, high)
        if place == end or rows[place] != high:
            place = first_not_below(rows, np.uint64(offsets[high]), np.uint64(offsets[high + one]), low)
        places[i] = place


def count_wedges(out_degrees: Ids) -> int:
    """The sum of C(d, 2), as an exact integer."""
    histogram = np.bincount(out_degrees)
    return sum(int(count) * (d * (d - 1) // 2) for d, count in enumerate(histogram) if count)


def _rows(found: SortedKeys, threads: int) -> tuple[NDArray[Any], Ids]:
    """CSR of sorted arcs; offsets are 64-bit only when arcs can reach 2^31."""
    m = len(found.keys)
    offsets = np.zeros(len(found.first_counts) + 1, np.uint32 if m < 2**31 else np.uint64)
    np.cumsum(found.first_counts, out=offsets[1:])
    out_neighbours = np.empty(m, np.uint32)

    def extract(chunk: int, _worker: int) -> None:
        part = slice(chunk * CHUNK, (chunk + 1) * CHUNK)
        out_neighbours[part] = found.keys[part]  # keeps the low half of each key

    run_tasks(extract, -(-m // CHUNK), threads)
    return offsets, out_neighbours


def _by_rank(graph: SimpleGraph, order: str, threads: int, compiled: bool) -> Ids:
    """The vertices in ascending order."""
    vertices = np.arange(graph.n, dtype=np.uint32)
    if order == "id":
        return vertices
    weight = graph.degrees if order == "degree" else peeling_rounds(graph, threads, compiled)
    weighted = np.empty((graph.n, 2), np.uint32)
    weighted[:, 0] = weight
    weighted[:, 1] = vertices
    bound = max(graph.n, int(weight.max(initial=0)) + 1)
    keys = sort_pairs(weighted, bound, threads, directed=True, compiled=compiled, consume=True).keys
    return keys.astype(np.uint32)  # the low half: the vertex


def peeling_rounds(graph: SimpleGraph, threads: int, compiled: bool) -> Ids:
    """The round in which each vertex goes when all vertices of at most the least remaining degree go at once."""
    offsets, neighbours = _symmetric_rows(graph, threads, compiled)
    rounds, queue = np.zeros(graph.n, np.uint32), np.empty(graph.n, np.uint32)
    remaining, gone = graph.degrees.copy(), np.zeros(graph.n, np.uint8)
    peel = peel_rounds if compiled else peel_rounds.function
    peel(offsets, kernel_view(neighbours), remaining, rounds, queue, gone)
    return rounds


def _symmetric_rows(graph: SimpleGraph, threads: int, compiled: bool) -> tuple[Keys, Ids]:
    both = np.concatenate([graph.edges(), graph.edges()[:, ::-1]])
    found = sort_pairs(both, graph.n, threads, directed=True, compiled=compiled)
    offsets = np.zeros(graph.n + 1, np.uint64)
    np.cumsum(found.first_counts, out=offsets[1:])
    return offsets, found.keys.astype(np.uint32)


@kernel
def peel_rounds(
    offsets: Keys, neighbours: Ids, remaining: Ids, rounds: Ids, queue: Ids, gone: NDArray[np.uint8]
) -> None:
    """Peel in rounds of increasing bound; the queue holds the vertices of the present round, then those of the next."""
    n = np.uint64(len(remaining))
    done, filled = np.uint64(0), np.uint64(0)
    bound, number = np.uint32(0), np.uint32(0)
    while done < n:
        if done == filled:
            bound = np.uint32(0xFFFFFFFF)
            for u in range(n):
                if not gone[u] and remaining[u] < bound:
                    bound = remaining[u]
            for u in range(n):
                if not gone[u] and remaining[u] <= bound:
                    gone[u] = 1
                    queue[filled] = u
                    filled += np.uint64(1)
        stop = filled
        while done < stop:
            v = np.uint64(queue[done])
            done += np.uint64(1)
            rounds[v] = number
            for i in range(offsets[v], offsets[v + np.uint64(1)]):
                w = np.uint64(neighbours[i])
                if not gone[w]:
                    remaining[w] -= np.uint32(1)
                    if remaining[w] <= bound:
                        gone[w] = 1
                        queue[filled] = w
                        filled += np.uint64(1)
        number += np.uint32(1)


def _by_indegree(graph: OrientedGraph) -> NDArray[np.int64]:
    indegree = np.bincount(graph.out_neighbours, minlength=graph.n)
    return np.argsort(-indegree, kind="stable")


def _by_collective(graph: OrientedGraph) -> NDArray[np.int64]:
    """Out-neighbours of vertices by descending collective out-degree, each at its first appearance; then the rest."""
    out_degrees = graph.out_degrees.astype(np.int64)
    before = np.zeros(graph.m + 1, np.int64)
    np.cumsum(out_degrees[graph.out_neighbours], out=before[1:])
    starts = graph.offsets.astype(np.int64)
    collective = before[starts[1:]] - before[starts[:-1]]
    visits = np.argsort(-collective, kind="stable")
    lengths = out_degrees[visits]
    shift = np.repeat(starts[visits] - (np.cumsum(lengths) - lengths), lengths)
    sequence = graph.out_neighbours[np.arange(graph.m) + shift]
    first_seen = np.full(graph.n, graph.m, np.int64)
    first_seen[sequence[::-1]] = np.arange(graph.m)[::-1]  # of repeated indices the last assignment stays: the first
    return np.argsort(first_seen, kind="stable")


def _by_classes(graph: OrientedGraph) -> NDArray[np.int64]:
    collective = _by_collective(graph)
    out_degrees = graph.out_degrees[collective].astype(np.int64)
    group = np.where(out_degrees > LARGE_OUT_DEGREE, 0, np.where(out_degrees >= SMALL_OUT_DEGREE, 1, 2))
    return collective[np.argsort(group, kind="stable")]
