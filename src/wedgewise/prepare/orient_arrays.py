"""Orienting and relabelling in array operations over `xp`: their definition, which small graphs and GPUs go by.

`xp` is NumPy or CuPy; only what both have with one meaning is used. Graphs are those of the host or of the device,
whose fields have the same names. Peak of orienting beyond the simple graph: 16 bytes per edge, the arc and its copy
while sorting, and 28 per slot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.machine.gpu import Array
from wedgewise.prepare.clean_arrays import parts, row_starts
from wedgewise.stages import DeviceGraph, DeviceSimpleGraph, OrientedGraph, SimpleGraph

LARGE_OUT_DEGREE = 100  # TRUST gives such vertices a block of threads, those of out-degree 2 … 100 a warp
SMALL_OUT_DEGREE = 2

AnySimple = SimpleGraph | DeviceSimpleGraph
AnyOriented = OrientedGraph | DeviceGraph


def orient_by_arrays(graph: AnySimple, order: str, xp: Any = np) -> tuple[Array, Array, Array]:
    """The offsets, the out-neighbours and the vertex of every id, when edges follow `order`."""
    if order == "id":
        vertex_of = xp.arange(graph.n, dtype=xp.uint32)
    else:
        vertex_of = ascending_by(graph.degrees if order == "degree" else peeling_rounds_by_arrays(graph, xp), xp)
    rank_of_slot = _by_slot(graph, inverse(vertex_of, xp), xp)
    arcs = xp.empty(graph.m, xp.uint64)
    for part in parts(graph.m):
        low, high = _ends(graph.slot_keys[part], rank_of_slot, xp)
        pack(low, high, arcs[part])
    offsets, out_neighbours = _rows(arcs, graph.n, xp)
    return offsets, out_neighbours, vertex_of


def relabel_by_arrays(graph: AnyOriented, by: str, xp: Any = np) -> tuple[Array, Array, Array]:
    """The offsets, the out-neighbours and the vertex of every id, after a renaming."""
    old_ids = RENAMINGS[by](graph, xp)
    new_id = inverse(old_ids, xp)
    tails, arcs = tails_of_rows(graph.offsets, graph.m, xp), xp.empty(graph.m, xp.uint64)
    for part in parts(graph.m):
        pack(new_id[tails[part]], new_id[graph.out_neighbours[part]], arcs[part])
    offsets, out_neighbours = _rows(arcs, graph.n, xp)
    return offsets, out_neighbours, graph.vertex_of[old_ids]


def arcs_of_edges_by_arrays(simple: AnySimple, oriented: AnyOriented, xp: Any = np) -> Array:
    """The position among the arcs of every edge; unless ids are ranks, an arc may go from the higher to the lower."""
    id_of_slot = _by_slot(simple, inverse(oriented.vertex_of, xp), xp)
    tails, arcs = tails_of_rows(oriented.offsets, oriented.m, xp), xp.empty(oriented.m, xp.uint64)
    for part in parts(oriented.m):
        pack(tails[part], oriented.out_neighbours[part], arcs[part])
    positions = xp.empty(simple.m, oriented.offsets.dtype)
    for part in parts(simple.m):
        low, high = _ends(simple.slot_keys[part], id_of_slot, xp)
        wanted = pack(low, high, xp.empty(len(low), xp.uint64))
        position = xp.searchsorted(arcs, wanted)
        if oriented.named_by != "rank":
            upwards = arcs[xp.minimum(position, len(arcs) - 1)] == wanted
            position = xp.where(upwards, position, xp.searchsorted(arcs, pack(high, low, wanted)))
        positions[part] = position
    return positions


def expected_wedges(degrees: NDArray[Any]) -> int:
    """About how many wedges the degree order leaves, if neighbours were drawn by degree.

    A vertex of degree d then points to a share of its neighbours: that of all ends at vertices of higher degree.
    """
    histogram = np.bincount(degrees).astype(np.float64)
    degree = np.arange(len(histogram))
    ends = histogram * degree
    total = ends.sum()
    if total == 0:
        return 0
    above = (total - np.cumsum(ends) + ends / 2) / total
    out_degree = degree * above
    return int((histogram * out_degree**2).sum() / 2)


def count_wedges(out_degrees: Array) -> int:
    """The sum of C(d, 2), as an exact integer: C(d, 2) < 2^61, so that neither half of their bits overflows a sum."""
    total = 0
    for part in parts(len(out_degrees)):
        wedges = out_degrees[part].astype(np.uint64)
        wedges *= wedges - 1
        wedges >>= 1
        total += int((wedges & 0xFFFFFFFF).sum())
        wedges >>= 32
        total += int(wedges.sum()) << 32
    return total


def pack(tails: Array, heads: Array, arcs: Array) -> Array:
    """Write ``tail << 32 | head``."""
    arcs[...] = tails
    arcs <<= 32
    arcs |= heads
    return arcs


def _ends(keys: Array, id_of_slot: Array, xp: Any) -> tuple[Array, Array]:
    """The lower and the higher id of every edge."""
    ends = id_of_slot[keys.view(xp.uint32).reshape(-1, 2)]  # in the order of the machine's bytes
    return xp.minimum(ends[:, 0], ends[:, 1]), xp.maximum(ends[:, 0], ends[:, 1])


def _rows(arcs: Array, n: int, xp: Any) -> tuple[Array, Array]:
    """CSR of arcs, which are sorted in place."""
    arcs.sort()
    return row_starts(arcs, n, 32, xp), arcs.astype(xp.uint32)


def _by_slot(graph: AnySimple, values: Array, xp: Any) -> Array:
    """Values per vertex laid out by slot."""
    if graph.slots is None:
        return values
    laid_out = xp.zeros(graph.slot_count, values.dtype)
    laid_out[graph.slots] = values
    return laid_out


def inverse(order: Array, xp: Any) -> Array:
    """The position of every number in a permutation."""
    positions = xp.empty(len(order), xp.uint32)
    positions[order] = xp.arange(len(order), dtype=xp.uint32)
    return positions


def ascending_by(weight: Array, xp: Any) -> Array:
    """The numbers 0 … n − 1 by ascending weight below 2^32, ties by number."""
    weighted = pack(weight, xp.arange(len(weight), dtype=xp.uint32), xp.empty(len(weight), xp.uint64))
    weighted.sort()
    return weighted.astype(xp.uint32)


def tails_of_rows(offsets: Array, m: int, xp: Any) -> Array:
    """The row of every position: the numbers of the rows that have any, each from where its row begins."""
    rows = xp.flatnonzero(offsets[1:] != offsets[:-1]).astype(xp.uint32)
    jumps = rows.copy()
    jumps[1:] -= rows[:-1]
    steps = xp.zeros(m, xp.uint32)
    steps[offsets[rows]] = jumps
    return xp.cumsum(steps, dtype=xp.uint32)


def peeling_rounds_by_arrays(graph: AnySimple, xp: Any = np) -> Array:
    """The round in which each vertex goes when all vertices of at most the least remaining degree go at once."""
    offsets, neighbours = symmetric_rows_by_arrays(graph, xp)
    rounds, gone = xp.zeros(graph.n, xp.uint32), xp.zeros(graph.n, xp.bool_)
    remaining = graph.degrees.copy()
    left, bound, number = graph.n, 0, 0
    while left:
        going = xp.flatnonzero(~gone & (remaining <= bound))
        if len(going) == 0:
            bound = int(remaining[~gone].min())
            continue
        rounds[going], gone[going] = number, True
        for row_part in _rows_of(going, offsets, neighbours, xp):
            remaining -= _occurrences(row_part, graph.n, xp)
        left, number = left - len(going), number + 1
    return rounds


def symmetric_rows_by_arrays(graph: AnySimple, xp: Any = np) -> tuple[Array, Array]:
    """Every edge as two arcs, in rows."""
    vertex_of_slot = _by_slot(graph, xp.arange(graph.n, dtype=xp.uint32), xp)
    arcs = xp.empty(2 * graph.m, xp.uint64)
    for part in parts(graph.m):
        low, high = _ends(graph.slot_keys[part], vertex_of_slot, xp)
        pack(low, high, arcs[: graph.m][part])
        pack(high, low, arcs[graph.m :][part])
    return _rows(arcs, graph.n, xp)


def _rows_of(vertices: Array, offsets: Array, neighbours: Array, xp: Any) -> Iterator[Array]:
    """The rows of some vertices one behind the other, in parts."""
    begins = offsets[vertices]
    ends = xp.cumsum(offsets[1:][vertices] - begins, dtype=xp.int64)
    shift = offsets[1:][vertices].astype(xp.int64) - ends
    for part in parts(int(ends[-1])):
        positions = xp.arange(part.start, part.stop)
        yield neighbours[positions + shift[xp.searchsorted(ends, positions, side="right")]]


def _occurrences(ids: Array, n: int, xp: Any) -> Array:
    """How often each id below n occurs."""
    counted = xp.bincount(ids, minlength=n) if len(ids) else xp.zeros(n, xp.int64)  # CuPy refuses to count nothing
    return counted.astype(xp.uint32)


def _by_indegree(graph: AnyOriented, xp: Any) -> Array:
    return ascending_by(~_occurrences(graph.out_neighbours, graph.n, xp), xp)


def _by_collective(graph: AnyOriented, xp: Any) -> Array:
    """Out-neighbours of vertices by descending collective out-degree, each at its first appearance; then the rest.

    Rows ascend by id, so that first appearances are ordered by the earliest visit to a row that has them, then by id.
    """
    out_degrees = xp.diff(graph.offsets)
    before = xp.zeros(graph.m + 1, xp.int64)
    before[1:] = xp.cumsum(out_degrees[graph.out_neighbours], dtype=xp.int64)
    missing = graph.m - xp.diff(before[graph.offsets])  # a collective out-degree is at most m
    visit_of_tail = inverse(visits_by(missing, xp), xp)[tails_of_rows(graph.offsets, graph.m, xp)]
    first_visit = xp.full(graph.n, graph.n, xp.uint32)
    xp.minimum.at(first_visit, graph.out_neighbours, visit_of_tail)
    return ascending_by(first_visit, xp)


def _by_classes(graph: AnyOriented, xp: Any) -> Array:
    return into_classes(_by_collective(graph, xp), xp.diff(graph.offsets), xp)


def visits_by(missing: Array, xp: Any) -> Array:
    """The numbers by ascending weight below 2^64, ties by number."""
    visits = ascending_by(missing & 0xFFFFFFFF, xp)
    return visits[ascending_by(missing[visits] >> 32, xp)]


def into_classes(order: Array, out_degrees: Array, xp: Any) -> Array:
    """An order divided into vertices of large, medium and small out-degree; within a class it stays."""
    degrees = out_degrees[order]
    group = (degrees <= LARGE_OUT_DEGREE).astype(xp.uint32) + (degrees < SMALL_OUT_DEGREE)
    return order[ascending_by(group, xp)]


RENAMINGS: dict[str, Callable[[AnyOriented, Any], Array]] = {
    "indegree": _by_indegree,
    "collective": _by_collective,
    "classes": _by_classes,
}
