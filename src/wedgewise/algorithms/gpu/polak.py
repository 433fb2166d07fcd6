"""What: merges the sorted rows of both ends of every arc, one thread per arc.

Paper: A. Polak, "Counting triangles in large graphs on GPU", 2016; polak.cu has the kernels.
Input: any oriented graph. Output: triangles and steps of the merges. Memory: 4 bytes per arc of tails.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from math import ceil

import numpy as np

from wedgewise.algorithms._contract import Algorithm, Cost, DeviceAnswer, Knob, Knobs, Launch, Shape
from wedgewise.algorithms.gpu._arcs import tails_of
from wedgewise.algorithms.gpu._launches import counting, offset_bits, whole_warps
from wedgewise.machine.gpu import Array, Device
from wedgewise.stages import DeviceGraph

LAUNCH_WEDGES = 1 << 32  # merges of a launch go past about so many wedges, in well under 250 ms
LAUNCH_ARCS = 1 << 30  # blocks of one launch stay below 2^31 for every block size


@counting
def prepare(graph: DeviceGraph, knobs: Knobs, device: Device, found: Array) -> Iterator[Launch]:
    """Write the tails; count one range of arcs after the other."""
    block, tails, defines = whole_warps(knobs), tails_of(graph, device), (offset_bits(graph.offsets),)
    for begin, end in pairwise(launch_bounds(graph.m, graph.wedges)):
        arguments = (graph.offsets, graph.out_neighbours, tails, np.uint64(begin), np.uint64(end), found)
        grid = ceil((end - begin) / block)
        yield partial(device.launch, "polak", "count_arcs", grid, block, arguments, defines=defines)


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
    answers={"count": DeviceAnswer(prepare, bytes_needed, Cost(2.0e-5, 0, 7.4e-12, 4e-5, 2e-11))},
    paper="Polak: Counting triangles in large graphs on GPU, IEEE IPDPSW 2016, 740-746",
    summary="Merges the sorted rows of both ends of every arc, one thread per arc.",
    knobs=(Knob("block", 128, "threads of a block: whole warps, at most 1,024", least=32),),
)
