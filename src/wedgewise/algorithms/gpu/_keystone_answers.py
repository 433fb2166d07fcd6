"""What: triangles per vertex, per arc, and themselves, pivoting on the middle vertex.

Paper: ours; keystone_answers.cu has the kernels. Arcs are sorted by head, so that those into one pivot lie side by
side. Pivots with enough work get a bitmap each, and their in-arcs are cut into shares of about equal cost, one per
block; the other arcs are searched. The triangles of a vertex are half of what its arcs have, out of it and into it.
Memory beyond the oriented graph: while arcs are sorted and sorted out, `PREPARING_BYTES` each; afterwards 8 per arc of
items and 4 of the answer, 4 of tails for a listing, and for the sums per vertex 4 of places and 20 while they are made.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from wedgewise.algorithms._contract import DeviceWork, Knobs, Launch, Shape
from wedgewise.algorithms.gpu._arcs import arcs_by_head, tails_of
from wedgewise.algorithms.gpu._launches import WARP, grid_for, offset_bits, rounded_up_to_warps
from wedgewise.errors import PreconditionError
from wedgewise.machine.gpu import Array, Device
from wedgewise.stages import DeviceGraph

STEM = "keystone_answers"
LANES = 8  # threads that take an arc together
IDS_PER_LOAD = 8  # what the knob least_far_loads is counted in
MIN_LOADS = 8  # its value where it is to be chosen
MAX_THREADS = 256
SEARCH_BLOCKS_PER_SM = 256
SHARES_PER_SM = 32  # several times as many as run at once: blocks that end early make room
MIN_SHARE = 1 << 14
ITEM_COST, PIVOT_COST = 8, 1 << 10  # tests that take as long as an in-arc's beginning, a pivot's bitmap
MAX_HUBS = 1 << 16  # positions within a bitmap have 16 bits
ROW_COUNTERS = 2048  # with them and a bitmap of 65,536 ids, eight blocks have room on an SM
LAUNCH_COST = 1 << 34  # in tests
LAUNCH_SEARCHES = 1 << 24  # in arcs, as are writes
LAUNCH_WRITES = 1 << 22
PREPARING_BYTES, PREPARING_VERTEX_BYTES = 64, 64  # of an arc and of a vertex


@dataclass(frozen=True, slots=True)
class InArcsOnDevice:
    """Arcs by head, then by tail: their positions, the ends of their tails' rows, and where each head's begin."""

    positions: Array
    row_ends: Array
    begin: Array


def prepare_edge_support(graph: DeviceGraph, knobs: Knobs, device: Device) -> DeviceWork:
    """The triangles of each arc."""
    _refuse_too_many_arcs(graph)
    xp = device.xp
    found, supports = xp.zeros(2, xp.uint64), xp.zeros(graph.m, xp.uint32)
    if graph.m == 0:
        return DeviceWork.at_once((), found, supports)
    in_arcs = _by_head(graph, tails_of(graph, device), xp)
    launches = _credit_launches(graph, in_arcs, knobs, device, supports, found, credit_all=True)
    return DeviceWork((partial(_anew, supports, launches),), found, supports)


def prepare_triangles(graph: DeviceGraph, knobs: Knobs, device: Device) -> DeviceWork:
    """The triangles of each vertex, from those of its arcs."""
    _refuse_too_many_arcs(graph)
    xp = device.xp
    found, triangles, supports = xp.zeros(2, xp.uint64), xp.zeros(graph.n, xp.uint64), xp.zeros(graph.m, xp.uint32)
    if graph.m == 0:
        return DeviceWork.at_once((), found, triangles)
    in_arcs = _by_head(graph, tails_of(graph, device), xp)
    launches = _credit_launches(graph, in_arcs, knobs, device, supports, found, credit_all=True)
    positions, begin = in_arcs.positions, in_arcs.begin

    def add_up() -> None:
        both = _sums(xp, supports, graph.offsets) + _sums(xp, supports[positions], begin)
        triangles[:] = both // np.uint64(2)  # each triangle of a vertex has two arcs at it

    return DeviceWork((partial(_anew, supports, (*launches, add_up)),), found, triangles)


def prepare_listing(graph: DeviceGraph, knobs: Knobs, device: Device) -> DeviceWork:
    """How many triangles each arc opens, and what writes those of a range of arcs."""
    _refuse_too_many_arcs(graph)
    xp = device.xp
    found, opened = xp.zeros(2, xp.uint64), xp.zeros(graph.m, xp.uint32)
    if graph.m == 0:
        return DeviceWork((), found, opened, lambda begin, end, triples: None)
    tails, block = tails_of(graph, device), rounded_up_to_warps(int(knobs["block"]), MAX_THREADS)
    in_arcs = _by_head(graph, tails, xp)
    launches = _credit_launches(graph, in_arcs, knobs, device, opened, found, credit_all=False)
    fill = partial(_write_triangles, graph, tails, opened, block, device)
    return DeviceWork((partial(_anew, opened, launches),), found, opened, fill)


def _refuse_too_many_arcs(graph: DeviceGraph) -> None:
    if graph.m >= 1 << 32:
        raise PreconditionError(f"keystone on cuda answers for fewer than 2^32 arcs, not {graph.m:,}; use device='cpu'")


def _anew(credits: Array, launches: tuple[Launch, ...]) -> tuple[Launch, ...]:
    """Launches that add to credits, from zero on."""
    credits.fill(0)
    return launches


def _by_head(graph: DeviceGraph, tails: Array, xp: Any) -> InArcsOnDevice:
    """Sort the arcs by head."""
    positions, begin = arcs_by_head(graph, xp)
    return InArcsOnDevice(positions, graph.offsets[1:].astype(xp.uint32)[tails[positions]], begin)


def _credit_launches(
    graph: DeviceGraph,
    in_arcs: InArcsOnDevice,
    knobs: Knobs,
    device: Device,
    credits: Array,
    found: Array,
    *,
    credit_all: bool,
) -> tuple[Launch, ...]:
    """Launches that credit each triangle to its three arcs, or to the one that opens it."""
    block, hubs = rounded_up_to_warps(int(knobs["block"]), MAX_THREADS), min(graph.n, MAX_HUBS, int(knobs["hubs"]))
    least_tests = (int(knobs["least_far_loads"]) or MIN_LOADS) * IDS_PER_LOAD * block // WARP
    pivoted, pivots_end, shares, searched = _items(graph, in_arcs, least_tests, device)
    launch = partial(device.launch, STEM, defines=(*_defines(graph), ("CREDIT_ALL", int(credit_all))))
    sizes = np.uint32(graph.n), np.uint32(hubs), np.uint32(ROW_COUNTERS)
    shared_bytes = 6 * (hubs // 32 + 1) + 4 * ROW_COUNTERS
    rows = graph.offsets, graph.out_neighbours

    def pivots(cuts: Array) -> Launch:
        arguments = (*rows, *sizes, pivoted, pivots_end, cuts, credits, found)
        return partial(launch, "credit_pivots", len(cuts) - 1, block, arguments, shared_bytes=shared_bytes)

    def searches(part: Array) -> Launch:
        arguments = (*rows, part, np.uint32(len(part)), credits, found)
        return partial(launch, "credit_arcs", _grid(len(part), block, device), block, arguments)

    starts = range(0, len(searched), LAUNCH_SEARCHES)
    return *map(pivots, shares), *(searches(searched[start : start + LAUNCH_SEARCHES]) for start in starts)


def _items(
    graph: DeviceGraph, in_arcs: InArcsOnDevice, least_tests: int, device: Device
) -> tuple[Array, Array, tuple[Array, ...], Array]:
    """Leave out in-arcs that nothing lies behind, and sort the others out by the work of their pivots.

    Returned are in-arcs of pivots with a bitmap, where those of each pivot end, cuts into shares, and the others.
    """
    xp = device.xp
    degrees = graph.offsets[1:] - graph.offsets[:-1]
    behind = in_arcs.row_ends - in_arcs.positions - np.uint32(1)
    tests = _sums(xp, behind, in_arcs.begin)
    heads = graph.out_neighbours[in_arcs.positions]
    useful = (behind > 0) & (degrees > 0)[heads]
    of_pivot = (tests >= np.uint64(least_tests))[heads]
    chosen = xp.flatnonzero(useful & of_pivot)
    others = xp.flatnonzero(useful & ~of_pivot)
    pivots = heads[chosen]
    cuts = _equal_shares(behind[chosen], pivots, degrees, device)
    pivots_end = xp.searchsorted(pivots, xp.arange(graph.n, dtype=xp.uint32), side="right").astype(xp.uint32)
    pivoted, searched = (
        xp.stack([in_arcs.positions[which], in_arcs.row_ends[which]], axis=1) for which in (chosen, others)
    )
    return pivoted, pivots_end, cuts, searched


def _equal_shares(behind: Array, pivots: Array, degrees: Array, device: Device) -> tuple[Array, ...]:
    """For every launch, cuts between shares of about equal cost: tests, in-arcs' beginnings, every pivot's bitmap."""
    xp = device.xp
    if len(pivots) == 0:
        return ()
    cost = behind.astype(xp.int64) + ITEM_COST
    cost[1:] += (PIVOT_COST + degrees[pivots[1:]].astype(xp.int64)) * (pivots[1:] != pivots[:-1])
    before = xp.cumsum(cost)
    total = int(before[-1])
    launches = -(-total // LAUNCH_COST)
    shares = min(SHARES_PER_SM * device.sms, -(-total // (launches * MIN_SHARE)))
    cuts = xp.zeros(launches * shares + 1, xp.uint32)
    cuts[1:-1] = xp.searchsorted(before, xp.arange(1, launches * shares) * (total // (launches * shares)))
    cuts[-1] = len(pivots)
    return tuple(cuts[launch * shares : (launch + 1) * shares + 1] for launch in range(launches))


def _sums(xp: Any, values: Array, begin: Array) -> Array:
    """The sums of the values of each row."""
    before = xp.zeros(len(values) + 1, xp.uint64)
    before[1:] = xp.cumsum(values, dtype=xp.uint64)
    at_rows = before[begin]
    return at_rows[1:] - at_rows[:-1]  # while `before` is held: a pool does not reuse a block whole that they lie in


def _write_triangles(
    graph: DeviceGraph, tails: Array, opened: Array, block: int, device: Device, begin: int, end: int, triples: Array
) -> None:
    """Write the triangles that arcs begin … end − 1 open, so many arcs in a launch."""
    xp = device.xp
    before = xp.zeros(1, xp.uint64)
    for first in range(begin, end, LAUNCH_WRITES):
        stop = min(first + LAUNCH_WRITES, end)
        ends = xp.cumsum(opened[first:stop], dtype=xp.uint64) + before
        rows = graph.offsets, graph.out_neighbours, tails
        arguments = (*rows, opened, ends, np.uint64(first), np.uint32(stop - first), triples)
        grid = _grid(stop - first, block, device)
        device.launch(STEM, "write_triangles", grid, block, arguments, defines=_defines(graph))
        before = ends[-1:]


def _grid(items: int, block: int, device: Device) -> int:
    return grid_for(items * LANES, block, SEARCH_BLOCKS_PER_SM, device)


def _defines(graph: DeviceGraph) -> tuple[tuple[str, int], ...]:
    return offset_bits(graph.offsets), ("LANES", LANES)


def edge_support_bytes(shape: Shape, knobs: Knobs) -> int:
    return PREPARING_BYTES * shape.m + PREPARING_VERTEX_BYTES * shape.n


def triangles_bytes(shape: Shape, knobs: Knobs) -> int:
    return edge_support_bytes(shape, knobs) + 8 * shape.n


def listing_bytes(shape: Shape, knobs: Knobs) -> int:
    return edge_support_bytes(shape, knobs) + 16 * min(shape.m, LAUNCH_WRITES)
