"""Ranges of arcs of about equal work, for launches that take a bounded time each."""

from __future__ import annotations

import numpy as np

from wedgewise.algorithms.gpu._launches import WARP, offset_bits, work_cuts
from wedgewise.machine.gpu import Array, Device
from wedgewise.stages import DeviceGraph

BLOCK, BLOCKS_PER_SM = 256, 16
CHUNK_ARCS = 128
ARC_COST = 16  # keys or steps that an arc takes the time of before its first one


def arc_bounds(graph: DeviceGraph, tails: Array, most_work: int, device: Device, *, merged: bool) -> list[int]:
    """Where launches begin and end: about `most_work` keys of searches, or steps of merges, each.

    A launch has fewer than ``most_work / ARC_COST`` arcs.
    """
    xp, m = device.xp, graph.m
    work = xp.empty(-(-m // CHUNK_ARCS), xp.uint64)
    grid = min(-(-m // (BLOCK // WARP * CHUNK_ARCS)), BLOCKS_PER_SM * device.sms)
    arcs = (graph.offsets, graph.out_neighbours, tails, np.uint64(m))
    costs = (np.uint32(CHUNK_ARCS), np.uint32(merged), np.uint32(ARC_COST))
    device.launch("arc_work", "measure_arcs", grid, BLOCK, (*arcs, *costs, work), defines=(offset_bits(graph),))
    cuts = work_cuts(work, most_work, device)
    return sorted({0, *(CHUNK_ARCS * cut for cut in cuts), m})


def bytes_needed(m: int) -> int:
    """What measuring takes: the work of each chunk, and its running sum."""
    return 16 * -(-m // CHUNK_ARCS)
