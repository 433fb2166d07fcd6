"""The tail of every arc, for kernels that take an arc at a time."""

from __future__ import annotations

import numpy as np

from wedgewise.algorithms.gpu._launches import offset_bits
from wedgewise.machine.gpu import Array, Device
from wedgewise.stages import DeviceGraph

BLOCK, BLOCKS_PER_SM = 256, 64


def tails_of(graph: DeviceGraph, device: Device) -> Array:
    """The tail of every arc, in 4 bytes each."""
    tails = device.xp.empty(graph.m, device.xp.uint32)
    grid = min(-(-graph.m // BLOCK), BLOCKS_PER_SM * device.sms)
    arguments = (graph.offsets, np.uint32(graph.n), np.uint64(graph.m), tails)
    device.launch("tails", "write_tails", grid, BLOCK, arguments, defines=(offset_bits(graph),))
    return tails
