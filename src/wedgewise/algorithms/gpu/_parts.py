"""Parts of rows, for kernels that take a vertex at a time: heaviest first, long rows in several parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from wedgewise.algorithms.gpu._launches import WARP, grid_for, offset_bits, work_bounds
from wedgewise.machine.gpu import Array, Device
from wedgewise.stages import DeviceGraph

MIN_ARCS = 2  # of a vertex that begins a triangle
PART_ARCS = 4096
PART_COST = 8  # ids that a part takes the time of before its first, at the least
BLOCK, BLOCKS_PER_SM = 256, 64


@dataclass(frozen=True, slots=True)
class Parts:
    """Part i has the arcs of ``vertices[i]`` from place ``firsts[i]`` of the row on, `part_arcs` or what is left."""

    vertices: Array
    firsts: Array
    longest_row: int
    part_arcs: int

    @property
    def arguments(self) -> tuple[Any, ...]:
        return self.vertices, self.firsts, np.uint32(self.part_arcs)


def parts_of(graph: DeviceGraph, device: Device) -> Parts:
    """The rows of a graph with arcs that can begin a triangle, the longest first, so that they are not last to end."""
    xp = device.xp
    degrees = xp.diff(graph.offsets).astype(xp.uint32)
    vertices = xp.flatnonzero(degrees >= MIN_ARCS).astype(xp.uint32)
    vertices = vertices[xp.argsort(~degrees[vertices])]
    longest = int(degrees.max())
    firsts = xp.zeros(len(vertices), xp.uint32)
    if longest > PART_ARCS:
        counts = (degrees[vertices].astype(xp.uint64) + np.uint64(PART_ARCS - 1)) // np.uint64(PART_ARCS)
        ends = xp.cumsum(counts)
        numbers = xp.arange(int(ends[-1]), dtype=xp.uint64)
        rows = xp.searchsorted(ends, numbers, side="right")
        firsts = ((numbers + counts[rows] - ends[rows]) * np.uint64(PART_ARCS)).astype(xp.uint32)
        vertices = vertices[rows]
    return Parts(vertices, firsts, longest, PART_ARCS)


def launch_bounds(parts: Parts, graph: DeviceGraph, launch_tests: int, device: Device) -> list[int]:
    """Where launches begin and end among the parts, so that each has about so many tests; measured if it must be."""
    count = len(parts.vertices)
    if count == 0 or graph.m * parts.longest_row + PART_COST * count <= launch_tests:
        return sorted({0, count})
    xp = device.xp
    work = xp.full(count, PART_COST, xp.uint64)
    grid = grid_for(WARP * count, BLOCK, BLOCKS_PER_SM, device)
    arguments = (graph.offsets, graph.out_neighbours, *parts.arguments, np.uint64(count), work)
    device.launch("parts", "measure_parts", grid, BLOCK, arguments, defines=(offset_bits(graph.offsets),))
    return work_bounds(work, launch_tests, device)


def bytes_of_parts(n: int, m: int) -> int:
    """Device memory that parts take at their peak, in bytes: while they are sorted, numbered or measured."""
    return 64 * (n + m // PART_ARCS + 1)
