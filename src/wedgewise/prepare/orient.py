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
for every vertex; on a device `orient_device_bytes`. `arcs_of_edges` says where each edge is among the arcs, in 4 bytes
per edge (8 from 2^31 arcs).
"""

from __future__ import annotations

from typing import Any, SupportsInt

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import UnknownNameError
from wedgewise.machine import jit
from wedgewise.machine.gpu import Array, Device
from wedgewise.machine.jit import helper, kernel, kernel_view
from wedgewise.machine.out_of_memory import memory_for
from wedgewise.machine.threads import run_chunks
from wedgewise.prepare.clean import ARRAY_SECONDS_PER_PAIR
from wedgewise.prepare.clean_arrays import SORTED_KEY_BYTES, parts, temporary_bytes
from wedgewise.prepare.orient_arrays import (
    RENAMINGS,
    arcs_of_edges_by_arrays,
    count_wedges,
    inverse,
    orient_by_arrays,
    relabel_by_arrays,
    symmetric_rows_by_arrays,
    tails_of_rows,
)
from wedgewise.prepare.radix import SortedKeys, run_step, sort_pairs
from wedgewise.stages import Adjacency, DeviceGraph, DeviceSimpleGraph, Ids, Keys, OrientedGraph, SimpleGraph

ORDERS = ("degree", "core", "id")
RELABELLINGS = ("rank", "indegree", "collective", "classes")
CHUNK = 1 << 20
FIND_CHUNK = 1 << 18
PEEL_ARCS = 1 << 24  # at once
PEELED = ("done", "filled", "stop", "bound", "number")  # where `peel_rounds` is


@memory_for("orient")
def orient(
    graph: SimpleGraph, order: str = "degree", *, threads: int = 1, compiled: bool | None = None
) -> OrientedGraph:
    """Direct every edge from the lower to the higher vertex of `order`; ids are ranks."""
    _check("order", order, ORDERS)
    compiled = jit.pays(ARRAY_SECONDS_PER_PAIR * graph.m, run_step) if compiled is None else compiled
    if compiled:
        vertex_of = _by_rank(graph, order, threads)
        rename = graph.by_slot(inverse(vertex_of, np))
        offsets, out_neighbours = _rows(sort_pairs(graph.slot_pairs, graph.n, threads, rename=rename), threads)
        del rename
    else:
        offsets, out_neighbours, vertex_of = orient_by_arrays(graph, order)
    wedges = count_wedges(np.diff(offsets))
    return OrientedGraph(graph.n, offsets, out_neighbours, vertex_of, order, "rank", wedges)


@memory_for("orient")
def orient_on_device(graph: DeviceSimpleGraph, order: str, device: Device) -> DeviceGraph:
    """What `orient` makes, to the byte, of a graph that lies on a device."""
    _check("order", order, ORDERS)
    offsets, out_neighbours, vertex_of = orient_by_arrays(graph, order, device.xp)
    wedges = count_wedges(device.xp.diff(offsets))
    return DeviceGraph(graph.n, offsets, out_neighbours, vertex_of, order, "rank", wedges)


def orient_device_bytes(n: int, m: int) -> int:
    """At most what `orient_on_device` takes beyond the simple graph of n slots, by degree or id; by core twice that.

    Per edge: an arc and the sort's copy of it. Per slot: a weight, its key and the sort's copy, or ranks and offsets.
    """
    return SORTED_KEY_BYTES * m + 28 * n + temporary_bytes(max(n, m))


@memory_for("orient")
def relabel(graph: OrientedGraph, by: str, *, threads: int = 1, compiled: bool | None = None) -> OrientedGraph:
    """Rename the vertices of an oriented graph whose ids are ranks; directions stay."""
    _check("relabelling", by, RELABELLINGS)
    if by == graph.named_by:
        return graph
    compiled = jit.pays(ARRAY_SECONDS_PER_PAIR * graph.m, run_step) if compiled is None else compiled
    if compiled:
        old_ids = RENAMINGS[by](graph, np)
        vertex_of = graph.vertex_of[old_ids]
        arcs = np.empty((graph.m, 2), np.uint32)
        arcs[:, 0] = tails_of_rows(graph.offsets, graph.m, np)
        arcs[:, 1] = graph.out_neighbours
        found = sort_pairs(arcs, graph.n, threads, rename=inverse(old_ids, np), directed=True)
        offsets, out_neighbours = _rows(found, threads)
    else:
        offsets, out_neighbours, vertex_of = relabel_by_arrays(graph, by)
    return OrientedGraph(graph.n, offsets, out_neighbours, vertex_of, graph.order, by, graph.wedges)


@memory_for("orient")
def relabel_on_device(graph: DeviceGraph, by: str, device: Device) -> DeviceGraph:
    """What `relabel` makes, to the byte, of a graph that lies on a device."""
    _check("relabelling", by, RELABELLINGS)
    if by == graph.named_by:
        return graph
    offsets, out_neighbours, vertex_of = relabel_by_arrays(graph, by, device.xp)
    return DeviceGraph(graph.n, offsets, out_neighbours, vertex_of, graph.order, by, graph.wedges)


def _check(what: str, name: str, known: tuple[str, ...]) -> None:
    if name not in known:
        raise UnknownNameError(f"no {what} named {name!r}; there are: {', '.join(known)}")


@memory_for("orient")
def adjacency(graph: SimpleGraph, *, threads: int = 1, compiled: bool | None = None) -> Adjacency:
    """The neighbours of every vertex. Peak beyond the simple graph: 40 bytes per edge."""
    compiled = jit.pays(2 * ARRAY_SECONDS_PER_PAIR * graph.m, run_step) if compiled is None else compiled
    rows = _symmetric_rows(graph, threads) if compiled else symmetric_rows_by_arrays(graph)
    return Adjacency(*rows)


@memory_for("orient")
def arcs_of_edges(
    simple: SimpleGraph, oriented: OrientedGraph, *, threads: int = 1, compiled: bool | None = None
) -> NDArray[Any]:
    """The position among the arcs of every edge, in the order of the edges."""
    compiled = jit.pays(ARRAY_SECONDS_PER_PAIR * simple.m, find_arcs) if compiled is None else compiled
    if not compiled:
        return np.asarray(arcs_of_edges_by_arrays(simple, oriented))
    id_of_slot = simple.by_slot(inverse(oriented.vertex_of, np))
    offsets, rows = kernel_view(oriented.offsets), kernel_view(oriented.out_neighbours)
    positions = np.empty(simple.m, oriented.offsets.dtype)

    def find(part: slice) -> None:
        find_arcs(simple.slot_keys[part], id_of_slot, offsets, rows, positions[part])

    run_chunks(find, simple.m, FIND_CHUNK, threads)
    return positions


def arcs_of_edges_on_device(simple: DeviceSimpleGraph, oriented: DeviceGraph, device: Device) -> Array:
    """What `arcs_of_edges` finds, for graphs that lie on a device."""
    return arcs_of_edges_by_arrays(simple, oriented, device.xp)


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
def find_arcs(keys: Keys, id_of_slot: Ids, offsets: NDArray[Any], rows: Ids, positions: NDArray[Any]) -> None:
    """Look every edge up in the row of its lower id; where ids are not ranks, it may be in the other row."""
    one = np.uint64(1)
    for i in range(np.uint64(len(keys))):
        u = id_of_slot[keys[i] >> np.uint64(32)]
        v = id_of_slot[keys[i] & np.uint64(0xFFFFFFFF)]
        low, high = np.uint64(min(u, v)), np.uint64(max(u, v))
        end = np.uint64(offsets[low + one])
        position = first_not_below(rows, np.uint64(offsets[low]), end, high)
        if position == end or rows[position] != high:
            position = first_not_below(rows, np.uint64(offsets[high]), np.uint64(offsets[high + one]), low)
        positions[i] = position


def _rows(found: SortedKeys, threads: int) -> tuple[NDArray[Any], Ids]:
    """CSR of sorted arcs; offsets are 64-bit only when arcs can reach 2^31."""
    m = len(found.keys)
    offsets = np.zeros(len(found.first_counts) + 1, np.uint32 if m < 2**31 else np.uint64)
    np.cumsum(found.first_counts, out=offsets[1:])
    out_neighbours = np.empty(m, np.uint32)

    def extract(part: slice) -> None:
        out_neighbours[part] = found.keys[part]  # keeps the low half of each key

    run_chunks(extract, m, CHUNK, threads)
    return offsets, out_neighbours


def _by_rank(graph: SimpleGraph, order: str, threads: int) -> Ids:
    """The vertices in ascending order."""
    vertices = np.arange(graph.n, dtype=np.uint32)
    if order == "id":
        return vertices
    weight = graph.degrees if order == "degree" else peeling_rounds(graph, threads)
    weighted = np.empty((graph.n, 2), np.uint32)
    weighted[:, 0] = weight
    weighted[:, 1] = vertices
    bound = max(graph.n, int(weight.max(initial=0)) + 1)
    keys = sort_pairs(weighted, bound, threads, directed=True, consume=True).keys
    return keys.astype(np.uint32)  # the low half: the vertex


def peeling_rounds(graph: SimpleGraph, threads: int) -> Ids:
    """The round in which each vertex goes when all vertices of at most the least remaining degree go at once."""
    offsets, neighbours = _symmetric_rows(graph, threads)
    rounds, queue = np.zeros(graph.n, np.uint32), np.empty(graph.n, np.uint32)
    remaining, gone = graph.degrees.copy(), np.zeros(graph.n, np.uint8)
    at = np.zeros(len(PEELED), np.uint64)
    while int(peel_rounds(kernel_view(offsets), neighbours, remaining, rounds, queue, gone, at, PEEL_ARCS)):
        pass
    return rounds


def _symmetric_rows(graph: SimpleGraph, threads: int) -> tuple[NDArray[Any], Ids]:
    """Every edge as two arcs, in rows."""
    vertex_of_slot = graph.by_slot(np.arange(graph.n, dtype=np.uint32))
    found = sort_pairs(_both_ways(graph), graph.n, threads, rename=vertex_of_slot, directed=True, consume=True)
    return _rows(found, threads)


def _both_ways(graph: SimpleGraph) -> NDArray[np.uint32]:
    """Every edge as two pairs of slots."""
    both = np.empty((2 * graph.m, 2), np.uint32)
    for part in parts(graph.m):
        both[: graph.m][part] = graph.slot_pairs[part]
        both[graph.m :][part] = graph.slot_pairs[part, ::-1]
    return both


@kernel
def peel_rounds(
    offsets: NDArray[Any],
    neighbours: Ids,
    remaining: Ids,
    rounds: Ids,
    queue: Ids,
    gone: NDArray[np.uint8],
    at: Keys,
    most: int,
) -> SupportsInt:
    """Peel in rounds of increasing bound; the queue holds the vertices of the present round, then those of the next.

    `at` is where the last call has left off; this one ends behind `most` arcs and rows, with how many rows are left.
    """
    n, left = np.uint64(len(remaining)), np.int64(most)
    done, filled, stop, bound, number = at[0], at[1], at[2], np.uint32(at[3]), np.uint32(at[4])
    while done < n and left > 0:
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
            left -= np.int64(n)
        if done == stop:
            stop = filled
        while done < stop and left > 0:
            v = np.uint64(queue[done])
            done += np.uint64(1)
            rounds[v] = number
            first, end = np.uint64(offsets[v]), np.uint64(offsets[v + np.uint64(1)])
            left -= np.int64(end - first) + np.int64(1)
            for i in range(first, end):
                w = np.uint64(neighbours[i])
                if not gone[w]:
                    remaining[w] -= np.uint32(1)
                    if remaining[w] <= bound:
                        gone[w] = 1
                        queue[filled] = w
                        filled += np.uint64(1)
        if done == stop:
            number += np.uint32(1)
    at[0], at[1], at[2], at[3], at[4] = done, filled, stop, np.uint64(bound), np.uint64(number)
    return np.uint64(n - done)
