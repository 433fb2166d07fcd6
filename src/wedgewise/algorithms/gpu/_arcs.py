"""The arcs of a graph on a device: the tail of each, those into each vertex, and ranges of about equal work."""

from __future__ import annotations

from typing import Any

import numpy as np

from wedgewise.algorithms.gpu._launches import WARP, grid_for, offset_bits, work_cuts
from wedgewise.machine.gpu import Array, Device
from wedgewise.stages import DeviceGraph

BLOCK, TAIL_BLOCKS_PER_SM, WORK_BLOCKS_PER_SM = 256, 64, 16
ARCS_PER_THREAD = 8  # as in tails.cu
CHUNK_ARCS = 128
ARC_COST = 16  # keys or steps that an arc takes the time of before its first one


def tails_of(graph: DeviceGraph, device: Device) -> Array:
    """The tail of every arc, in 4 bytes each."""
    tails = device.xp.empty(graph.m, device.xp.uint32)
    grid = grid_for(-(-graph.m // ARCS_PER_THREAD), BLOCK, TAIL_BLOCKS_PER_SM, device)
    arguments = (graph.offsets, np.uint32(graph.n), np.uint64(graph.m), tails)
    device.launch("tails", "write_tails", grid, BLOCK, arguments, defines=(offset_bits(graph.offsets),))
    return tails


def arcs_by_head(graph: DeviceGraph, xp: Any) -> tuple[Array, Array]:
    """The positions of fewer than 2^32 arcs by head, then by tail; where those of each head begin, with the end of all.

    At the peak 20 bytes per arc: keys while they are sorted, and positions.
    """
    keys = graph.out_neighbours.astype(xp.uint64)
    keys <<= np.uint64(32)
    keys |= xp.arange(graph.m, dtype=xp.uint64)
    keys.sort()
    begin = xp.searchsorted(keys, xp.arange(graph.n + 1, dtype=xp.uint64) << np.uint64(32))
    return keys.astype(xp.uint32), begin


def arc_bounds(graph: DeviceGraph, tails: Array, most_work: int, device: Device, *, merged: bool) -> list[int]:
    """Where launches begin and end: about `most_work` keys of searches, or steps of merges, each.

    A launch has fewer than ``most_work / ARC_COST`` arcs.
    """
    xp, m = device.xp, graph.m
    work = xp.empty(-(-m // CHUNK_ARCS), xp.uint64)
    grid = grid_for(WARP * len(work), BLOCK, WORK_BLOCKS_PER_SM, device)
    arcs = (graph.offsets, graph.out_neighbours, tails, np.uint64(m))
    costs = (np.uint32(CHUNK_ARCS), np.uint32(merged), np.uint32(ARC_COST))
    device.launch("arc_work", "measure_arcs", grid, BLOCK, (*arcs, *costs, work), defines=(offset_bits(graph.offsets),))
    return sorted({0, *(CHUNK_ARCS * cut for cut in work_cuts(work, most_work, device)), m})


def measuring_bytes(m: int) -> int:
    """What `arc_bounds` takes: the work of each chunk, and its running sum."""
    return 16 * -(-m // CHUNK_ARCS)
