"""What: H-INDEX: hashes the shorter row of both ends of an arc, and looks the ids of the longer one up.

Paper: Pandey et al., 2019; hindex.cu has the kernels. The host writes the tail of every arc, takes memory for the
tables of what runs at once, and cuts the arcs into launches of bounded work.
Memory beyond the oriented graph: 4 bytes per arc, and 1 GiB at most for tables, unless one block needs more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import isqrt

import numpy as np

from wedgewise.algorithms._contract import Algorithm, DeviceAnswer, Knob, Knobs, Launch, Shape
from wedgewise.algorithms.gpu._arcs import arc_bounds, measuring_bytes, tails_of
from wedgewise.algorithms.gpu._launches import (
    MAX_THREADS,
    THREADS_PER_SM,
    WARP,
    blocks_at_once,
    counting,
    offset_bits,
    whole_warps,
)
from wedgewise.machine.gpu import Array, Device
from wedgewise.stages import DeviceGraph

LAUNCH_IDS = 1 << 33  # of the rows of a launch's arcs: about 100 ms on an H200, and fewer than 2^31 arcs
MAX_SMS, MAX_BUCKETS = 256, 1024
ARCS_AT_ONCE = {"warp": 8, "block": 1}  # of a warp, or of a block
TABLES_BYTES = 1 << 30
ID_BYTES, STATIC_SHARED_BYTES = 4, 1024


def _buckets(knobs: Knobs) -> int:
    """A power of two."""
    return 1 << min(int(knobs["buckets"]), MAX_BUCKETS).bit_length() - 1


@dataclass(frozen=True, slots=True)
class HindexLayout:
    """The knobs as far as device and graph allow; ``teams`` is how many tables a block has."""

    unit: str
    block: int
    teams: int
    buckets: int
    cached: int
    capacity: int

    @classmethod
    def of(cls, knobs: Knobs, longest_row: int, device: Device) -> HindexLayout:
        buckets = _buckets(knobs)
        least_capacity = -(-longest_row // buckets)  # so that the longest row fits, wherever its ids belong
        capacity = max(least_capacity, min(int(knobs["capacity"]), longest_row))
        unit, fitting_ids = str(knobs["unit"]), (device.shared_bytes - STATIC_SHARED_BYTES) // (ID_BYTES * buckets)
        block = whole_warps(knobs) if unit == "block" else min(whole_warps(knobs), WARP * fitting_ids)
        teams = 1 if unit == "block" else block // WARP
        return cls(unit, block, teams, buckets, min(int(knobs["cached"]), capacity, fitting_ids // teams - 1), capacity)

    @property
    def shared_bytes(self) -> int:
        return ID_BYTES * self.teams * self.buckets * (1 + self.cached)

    @property
    def positions(self) -> int:
        """What a block's tables have in global memory."""
        return self.teams * self.buckets * (self.capacity - self.cached)

    def blocks(self, device: Device) -> int:
        """As many as run at once, and as there is memory for."""
        running = blocks_at_once(self.block, self.shared_bytes + STATIC_SHARED_BYTES, device)
        return max(1, min(running, TABLES_BYTES // (ID_BYTES * max(1, self.positions))))


@counting
def prepare(graph: DeviceGraph, knobs: Knobs, device: Device, found: Array) -> Iterator[Launch]:
    """Write the tails, take memory for the tables; count one range of arcs after the other."""
    xp = device.xp
    layout = HindexLayout.of(knobs, int(xp.diff(graph.offsets).max()), device)
    tails, grid = tails_of(graph, device), layout.blocks(device)
    sizes = (np.uint32(size) for size in (layout.buckets, layout.cached, layout.capacity))
    positions = xp.empty(max(1, grid * layout.positions), xp.uint32)
    arguments = (graph.offsets, graph.out_neighbours, tails, *sizes, positions)
    launch = partial(device.launch, "hindex", f"count_by_{layout.unit}", shared_bytes=layout.shared_bytes)
    for begin, end in pairwise(arc_bounds(graph, tails, LAUNCH_IDS, device, merged=True)):
        span = (np.uint64(begin), np.uint32(end - begin), found)
        blocks = min(grid, -(-(end - begin) // (layout.teams * ARCS_AT_ONCE[layout.unit])))
        yield partial(launch, blocks, layout.block, (*arguments, *span), defines=(offset_bits(graph.offsets),))


def bytes_needed(shape: Shape, knobs: Knobs) -> int:
    longest_row = shape.n if shape.wedges is None else min(shape.n, isqrt(2 * shape.wedges) + 1)
    of_one_table = ID_BYTES * (_buckets(knobs) * min(int(knobs["capacity"]), longest_row) + longest_row)
    of_one_block, of_all = MAX_THREADS // WARP * of_one_table, MAX_SMS * THREADS_PER_SM // WARP * of_one_table
    tables = max(of_one_block, min(of_all, TABLES_BYTES))
    return 4 * (shape.m + shape.n) + measuring_bytes(shape.m) + tables


ALGORITHM = Algorithm(
    name="hindex",
    device="cuda",
    unit="graph",
    answers={"count": DeviceAnswer(prepare, bytes_needed)},
    paper="Pandey et al.: H-INDEX: Hash-indexing for parallel triangle counting on GPUs, IEEE HPEC 2019, 1-7",
    summary="A warp or a block hashes the shorter row of an arc's ends and looks the longer one up.",
    knobs=(
        Knob("unit", "warp", "what takes an arc", choices=("warp", "block")),
        Knob("buckets", 32, "buckets of a table: a power of two, at most 1,024", least=1),
        Knob("cached", 16, "ids of each bucket in shared memory, as far as it reaches"),
        Knob(
            "capacity", 128, "ids of a bucket before the next one takes them, where that leaves room for all", least=1
        ),
        Knob("block", 256, "threads of a block: whole warps, at most 1,024", least=32),
    ),
)
