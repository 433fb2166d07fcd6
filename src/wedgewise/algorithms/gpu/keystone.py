"""What: pivots on the middle vertex; near the hubs, one look-up tests an id against up to 32 pivots.

Paper: ours; keystone.cu counts, keystone_prepare.cu splits the rows at the hubs and makes the items. The host chooses
how many hubs there are, sorts the items by pivot and cuts them into equal shares for the blocks.
Memory beyond the oriented graph: per arc 4 bytes of tails, at most 4 of 16-bit ids, 16 of items and 16 of searches, and
as much again while items are sorted; per vertex 40.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from wedgewise.algorithms._contract import Algorithm, DeviceAnswer, DeviceWork, Knob, Knobs, Shape
from wedgewise.algorithms.gpu._tails import tails_of
from wedgewise.errors import PreconditionError
from wedgewise.graph import DeviceGraph
from wedgewise.machine.gpu import Array, Device

STEM, PREPARING_STEM = "keystone", "keystone_prepare"
NEAR_PIVOTS = 32
IDS_PER_LOAD = 8
MOST_FAR_HUBS = (1 << 16) - 1  # 16-bit ids, and one that no vertex has
PREPARING_BLOCK = 256
PREPARING_BLOCKS_PER_SM = 16
THREADS_PER_SM = 2048
GROUP_COST = 512  # loads that building a near table takes the time of
CHOOSE = 0


@dataclass(frozen=True, slots=True)
class Tables:
    """How many hubs the tables cover."""

    near: int
    far: int

    @classmethod
    def choose(cls, graph: DeviceGraph, knobs: Knobs) -> Tables:
        near = min(graph.n, int(knobs["near_hubs"]) or (1 << 14 if graph.m >= 1 << 21 else 1 << 12))
        return cls(near, max(near, min(graph.n, int(knobs["far_hubs"]))))


def prepare(graph: DeviceGraph, knobs: Knobs, device: Device) -> DeviceWork:
    """Make everything that the kernels read; then counting is a launch for each kind of pivot that there is."""
    if graph.m >= 1 << 31:
        raise PreconditionError(f"keystone on cuda takes fewer than 2^31 arcs, not {graph.m:,}; use device='cpu'")
    found = device.xp.zeros(2, device.xp.uint64)
    if graph.m == 0:
        return DeviceWork.at_once((), found)
    tables = Tables.choose(graph, knobs)
    split = _split_rows(graph, tables, device)
    placed = _place_items(graph, tables, split, int(knobs["least_loads"]), device)
    launches = [
        _near_launch(graph, tables, split, placed, knobs, device, found),
        _far_launch(graph, tables, split, placed, knobs, device, found),
    ]
    return DeviceWork.at_once((launch for launch in launches if launch is not None), found)


@dataclass(frozen=True, slots=True)
class Split:
    """Rows cut at the hubs: where hubs begin, how many loads come before each row's, and their 16-bit ids."""

    tails: Array
    near_begin: Array
    far_begin: Array
    near_start: Array
    far_start: Array
    near_ids: Array
    far_ids: Array


def _split_rows(graph: DeviceGraph, tables: Tables, device: Device) -> Split:
    xp, n = device.xp, graph.n
    near_begin, far_begin = (xp.empty(n, graph.offsets.dtype) for _ in range(2))
    near_loads, far_loads = (xp.zeros(n + 1, xp.uint32) for _ in range(2))
    arguments = (
        graph.offsets,
        graph.out_neighbours,
        np.uint32(n),
        np.uint32(n - tables.near),
        np.uint32(n - tables.far),
        near_begin,
        far_begin,
        near_loads,
        far_loads,
    )
    device.launch(PREPARING_STEM, "split_rows", -(-n // PREPARING_BLOCK), PREPARING_BLOCK, arguments)
    near_start, far_start = _before_each(xp, near_loads), _before_each(xp, far_loads)
    near_ids = xp.full(IDS_PER_LOAD * int(near_start[-1]), tables.near, xp.uint16)
    far_ids = xp.full(IDS_PER_LOAD * int(far_start[-1]), tables.far, xp.uint16)
    return Split(tails_of(graph, device), near_begin, far_begin, near_start, far_start, near_ids, far_ids)


def _before_each(xp: Any, counts: Array) -> Array:
    """What comes before each entry; the last entry of `counts` is spare and becomes the total."""
    before = xp.zeros_like(counts)
    xp.cumsum(counts[:-1], out=before[1:])
    return before


@dataclass(frozen=True, slots=True)
class Placed:
    """What the counting kernels go through: items by group and by pivot, and searches."""

    near_items: Array
    group_ends: Array
    far_items: Array
    pivots: Array
    items_before: Array
    tasks: Array


def _place_items(graph: DeviceGraph, tables: Tables, split: Split, least_loads: int, device: Device) -> Placed:
    """Count the items of groups and pivots, give bitmaps to pivots with enough of them, and place the items."""
    xp, n = device.xp, graph.n
    first_near = n - tables.near
    group_items = xp.zeros(-(-tables.near // NEAR_PIVOTS) + 1, xp.uint32)
    pivot_items, pivot_loads = (xp.zeros(first_near + 1, xp.uint32) for _ in range(2))
    shared = (
        graph.offsets,
        graph.out_neighbours,
        split.tails,
        split.near_begin,
        split.far_begin,
        split.near_start,
        split.far_start,
        np.uint32(first_near),
        np.uint32(n - tables.far),
        np.uint64(graph.m),
    )
    grid = min(-(-graph.m // PREPARING_BLOCK), PREPARING_BLOCKS_PER_SM * device.sms)
    measured = (*shared, split.near_ids, split.far_ids, group_items, pivot_items, pivot_loads)
    device.launch(PREPARING_STEM, "measure_arcs", grid, PREPARING_BLOCK, measured)
    has_bitmap = pivot_loads >= max(1, least_loads)
    groups, pivots = _before_each(xp, group_items), _before_each(xp, pivot_items * has_bitmap)
    near_items, far_items = xp.empty((int(groups[-1]), 4), xp.uint32), xp.empty((int(pivots[-1]), 2), xp.uint32)
    tasks, task_count = xp.empty((graph.m, 4), xp.uint32), xp.zeros(1, xp.uint32)
    cursors = groups.copy(), pivots.copy()
    placed = (*shared, has_bitmap.view(xp.uint8), *cursors, near_items, far_items, tasks, task_count)
    device.launch(PREPARING_STEM, "place_arcs", grid, PREPARING_BLOCK, placed)
    near_items = _by_tail(xp, near_items, near_items[:, 3])
    owners = xp.searchsorted(pivots, xp.arange(len(far_items), dtype=pivots.dtype), side="right")
    far_items = _by_tail(xp, far_items, owners)
    heavy_first = xp.flatnonzero(has_bitmap[:-1])[::-1].astype(xp.uint32)
    return Placed(near_items, groups[1:], far_items, heavy_first, pivots, tasks[: int(task_count[0])])


def _by_tail(xp: Any, items: Array, owner: Array) -> Array:
    """Items by owner, then by tail: neighbours in memory, and of like length, since degrees ascend with ids."""
    return items[xp.argsort(owner.astype(xp.uint64) << np.uint64(32) | items[:, 0])]


def _near_launch(
    graph: DeviceGraph, tables: Tables, split: Split, placed: Placed, knobs: Knobs, device: Device, found: Array
) -> Callable[[], None] | None:
    """Blocks that search, and take near items of about equal cost."""
    if len(placed.near_items) == 0 and len(placed.tasks) == 0:
        return None
    block, shared_bytes = _block(knobs), 4 * (tables.near + 1)
    grid = device.sms * max(1, min(device.shared_bytes // shared_bytes, THREADS_PER_SM // block))
    cuts = _equal_shares(device.xp, placed.near_items, grid)
    arguments = (
        graph.offsets,
        graph.out_neighbours,
        np.uint32(graph.n),
        np.uint32(tables.near),
        split.near_ids,
        placed.near_items,
        placed.group_ends,
        cuts,
        placed.tasks,
        np.uint32(len(placed.tasks)),
        found,
    )
    return _launch(device, "count_near", grid, block, arguments, shared_bytes, knobs)


def _far_launch(
    graph: DeviceGraph, tables: Tables, split: Split, placed: Placed, knobs: Knobs, device: Device, found: Array
) -> Callable[[], None] | None:
    """As many warps as have room for a bitmap each."""
    if len(placed.pivots) == 0:
        return None
    bitmap_bytes = 4 * (tables.far // 32 + 1)
    block = min(1024, device.shared_bytes // bitmap_bytes * 32)
    arguments = (
        graph.offsets,
        graph.out_neighbours,
        np.uint32(graph.n),
        np.uint32(tables.far),
        split.far_begin,
        split.far_ids,
        placed.pivots,
        np.uint32(len(placed.pivots)),
        placed.items_before,
        placed.far_items,
        found,
    )
    return _launch(device, "count_far", device.sms, block, arguments, block // 32 * bitmap_bytes, knobs)


def _launch(
    device: Device, kernel: str, grid: int, block: int, arguments: tuple[Any, ...], shared_bytes: int, knobs: Knobs
) -> Callable[[], None]:
    lanes = 1 << min(32, int(knobs["lanes"])).bit_length() - 1
    defines = (("LANES", lanes), ("BLOCK", block))
    return partial(device.launch, STEM, kernel, grid, block, arguments, shared_bytes=shared_bytes, defines=defines)


def _block(knobs: Knobs) -> int:
    """Whole warps, as many as a block may have."""
    return min(1024, -(-int(knobs["block"]) // 32) * 32)


def _equal_shares(xp: Any, items: Array, blocks: int) -> Array:
    """Cuts between ranges of about equal cost: their loads, and the building of a table for every new group."""
    cuts = xp.zeros(blocks + 1, xp.uint32)
    if len(items) == 0:
        return cuts
    cost = (items[:, 1] - items[:, 0]).astype(xp.int64) + 2
    cost[1:] += GROUP_COST * (items[1:, 3] != items[:-1, 3])
    before = xp.cumsum(cost)
    cuts[1:-1] = xp.searchsorted(before, xp.arange(1, blocks) * int(before[-1]) // blocks)
    cuts[-1] = len(items)
    return cuts


def bytes_needed(shape: Shape, knobs: Knobs) -> int:
    return (4 + 4 + 2 * 16 + 16 + 8) * shape.m + (40 + 4 * IDS_PER_LOAD) * shape.n


ALGORITHM = Algorithm(
    name="keystone",
    device="cuda",
    unit="graph",
    answers={"count": DeviceAnswer(prepare, bytes_needed)},
    paper="our own engine",
    summary="Looks each id behind a pivot up in a table of 32 pivots at once.",
    limits="ids by rank, fewer than 2^31 arcs",
    relabellings=("rank",),
    knobs=(
        Knob("near_hubs", CHOOSE, "ids that tables of 32 pivots cover; 0 chooses by the number of arcs"),
        Knob("far_hubs", MOST_FAR_HUBS, "ids that the bitmaps of single pivots cover", least=1),
        Knob("least_loads", 32, "loads of 8 ids from which on a pivot below the near hubs has a bitmap"),
        Knob("lanes", 2, "threads that stream an item together: a power of two, 32 at most", least=1),
        Knob("block", 1024, "threads of a block, whole warps, 1,024 at most", least=1),
    ),
)
