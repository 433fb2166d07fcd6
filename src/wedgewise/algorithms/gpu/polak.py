"""What: merges the sorted rows of both ends of every arc, one thread per arc.

Paper: A. Polak, "Counting triangles in large graphs on GPU", 2016; polak.cu has the kernels.
Input: any oriented graph. Output: triangles and steps of the merges. Memory: 4 bytes per arc of tails.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import ceil

import numpy as np

from wedgewise.algorithms._contract import Algorithm, DeviceAnswer, DeviceWork, Knob, Knobs, Shape
from wedgewise.algorithms.gpu._tails import tails_of
from wedgewise.graph import DeviceGraph
from wedgewise.machine.gpu import Device

STEM = "polak"
WARP, MOST_THREADS = 32, 1024
LAUNCH_WEDGES = 1 << 32  # merges of a launch go past about so many wedges, in well under 250 ms
LAUNCH_ARCS = 1 << 30  # blocks of one launch stay below 2^31 for every block size


def prepare(graph: DeviceGraph, knobs: Knobs, device: Device) -> DeviceWork:
    """Write the tails; count one range of arcs after the other."""
    xp, block = device.xp, min(int(knobs["block"]) // WARP * WARP, MOST_THREADS)
    found = xp.zeros(2, xp.uint64)
    if graph.m == 0:
        return DeviceWork.at_once((), found)
    defines = (("OFFSET_BITS", 8 * graph.offsets.dtype.itemsize),)
    tails = tails_of(graph, device)

    def count(begin: int, end: int) -> Callable[[], None]:
        arguments = (graph.offsets, graph.out_neighbours, tails, np.uint64(begin), np.uint64(end), found)
        grid = ceil((end - begin) / block)
        return lambda: device.launch(STEM, "count_arcs", grid, block, arguments, defines=defines)

    bounds = launch_bounds(graph.m, graph.wedges)
    return DeviceWork.at_once((count(begin, end) for begin, end in pairwise(bounds)), found)


def launch_bounds(m: int, wedges: int) -> list[int]:
    """Where launches begin and end: equally many arcs each."""
    launches = max(1, ceil(wedges / LAUNCH_WEDGES), ceil(m / LAUNCH_ARCS))
    return [m * launch // launches for launch in range(launches + 1)]


def bytes_needed(shape: Shape, knobs: Knobs) -> int:
    return 4 * shape.m


ALGORITHM = Algorithm(
    name="polak",
    device="cuda",
    unit="graph",
    answers={"count": DeviceAnswer(prepare, bytes_needed)},
    paper="A. Polak, Counting triangles in large graphs on GPU, 2016 (doi:10.1109/IPDPSW.2016.108)",
    summary="Merges the sorted rows of both ends of every arc, one thread per arc.",
    knobs=(Knob("block", 128, "threads of a block: whole warps, at most 1,024", least=32),),
)
