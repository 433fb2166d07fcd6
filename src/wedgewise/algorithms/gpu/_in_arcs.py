"""The arcs of a graph by head, for kernels that need those into a vertex side by side."""

from __future__ import annotations

from typing import Any

import numpy as np

from wedgewise.machine.gpu import Array
from wedgewise.stages import DeviceGraph


def arcs_by_head(graph: DeviceGraph, xp: Any) -> tuple[Array, Array]:
    """The places of fewer than 2^32 arcs by head, then by tail; where those of each head begin, with the end of all.

    At the peak 20 bytes per arc: keys while they are sorted, and places.
    """
    keys = graph.out_neighbours.astype(xp.uint64)
    keys <<= np.uint64(32)
    keys |= xp.arange(graph.m, dtype=xp.uint64)
    keys.sort()
    begin = xp.searchsorted(keys, xp.arange(graph.n + 1, dtype=xp.uint64) << np.uint64(32))
    return keys.astype(xp.uint32), begin
