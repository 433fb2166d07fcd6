"""What: TRUST: looks the second hop of every vertex up in a hash table of its row, with threads by its out-degree.

Paper: Pandey et al., TRUST: Triangle Counting Reloaded on GPUs, IEEE TPDS 32(11), 2021; trust.cu has the kernels. The
host lists the vertices by class, takes memory for the tables, and cuts the vertices into launches of bounded work.
The paper's ablations are knobs. Its reorderings are relabellings: "collective" and "indegree" of section 4.1, "classes"
of section 5.1, and their baseline, the order by degree, as "rank".
Memory beyond the oriented graph: 4 bytes for each place of the tables of all blocks that run at once; 4 per vertex as
it counts, 32 at its peak; 256 per thread to copy rows; 44 per arc where the table is built for every arc.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from wedgewise.algorithms._contract import (
    Algorithm,
    DeviceAnswer,
    DeviceTripleAnswer,
    DeviceWork,
    Knob,
    Knobs,
    Launch,
    Shape,
)
from wedgewise.algorithms.gpu._arcs import tails_of
from wedgewise.algorithms.gpu._launches import WARP, offset_bits, work_bounds
from wedgewise.algorithms.gpu._trust_tables import COMBINATIONS, MOST_BLOCKS, MOST_CHUNK, Layout, chunk_of, table_bytes
from wedgewise.algorithms.gpu._trust_triples import prepare_triple, triple_bytes
from wedgewise.machine.gpu import Array, Device
from wedgewise.stages import DeviceGraph

STEM = "trust"
LAUNCH_TESTS = 1 << 34  # about 60 ms at the pace of the authors' program on an H200
THREADS_PER_TEST = 2  # an estimate: before its first look-up a vertex costs half of its threads one each
LEAST_OUT_DEGREE = 2  # a triangle's lowest vertex has two arcs
MEASURING_BLOCK, MEASURING_BLOCKS_PER_SM = 256, 64


@dataclass(frozen=True, slots=True)
class Units:
    """What tables are built for, those of blocks first: vertices, or arcs with their tails."""

    owners: Array
    arcs: Array
    of_blocks: int
    per_arc: bool

    @classmethod
    def of(cls, graph: DeviceGraph, knobs: Knobs, degrees: Array, longest: int, device: Device) -> Units:
        most = longest if knobs["cooptimisation"] == "off" else min(int(knobs["large"]), longest)
        if knobs["construction"] == "vertex":
            vertices, of_blocks = _by_class(degrees, most, device.xp)
            return cls(vertices.astype(device.xp.uint32), graph.offsets, of_blocks, per_arc=False)
        tails = tails_of(graph, device)
        arcs, of_blocks = _by_class(degrees[tails], most, device.xp)
        return cls(tails[arcs], arcs.astype(graph.offsets.dtype), of_blocks, per_arc=True)


def _by_class(degrees: Array, most: int, xp: Any) -> tuple[Array, int]:
    """The numbers of the rows longer than `most` (>= 1), then of the others with a pair; and how many the first are."""
    large = xp.flatnonzero(degrees > most)
    small = xp.flatnonzero((degrees <= most) & (degrees >= LEAST_OUT_DEGREE))
    return xp.concatenate([large, small]), len(large)


@dataclass(frozen=True, slots=True)
class Counting:
    """A prepared count: its launches, what they find, and by how many ids the fullest bucket was asked."""

    launches: tuple[Launch, ...]
    found: Array
    fullest: Array

    @classmethod
    def of(cls, graph: DeviceGraph, knobs: Knobs, device: Device) -> Counting:
        xp = device.xp
        found, fullest = xp.zeros(2, xp.uint64), xp.zeros(1, xp.uint32)
        degrees = graph.offsets[1:] - graph.offsets[:-1]
        longest = int(degrees.max()) if graph.m > 0 else 0
        if longest < LEAST_OUT_DEGREE:
            return cls((), found, fullest)
        units = Units.of(graph, knobs, degrees, longest, device)
        return cls(tuple(_launches(graph, knobs, longest, units, found, fullest, device)), found, fullest)


def prepare(graph: DeviceGraph, knobs: Knobs, device: Device) -> DeviceWork:
    """List the vertices by class; count one range of them after the other."""
    counting = Counting.of(graph, knobs, device)
    return DeviceWork.at_once(counting.launches, counting.found)


def table_figures(graph: DeviceGraph, knobs: Knobs, device: Device) -> dict[str, int]:
    """Count once, and say how full buckets became: the maximum over all tables (the paper's table 3).

    Where buckets overflow, ids that they pass on count in each bucket that they ask.
    """
    counting = Counting.of(graph, knobs, device)
    for launch in counting.launches:
        launch()
    device.synchronize()
    return {"max_collisions": int(counting.fullest[0])}


def _launches(
    graph: DeviceGraph, knobs: Knobs, longest: int, units: Units, found: Array, fullest: Array, device: Device
) -> Iterator[Launch]:
    """Take memory for the tables; a launch for each range of units."""
    layout = Layout.of(knobs, graph.offsets.dtype.itemsize, longest, device)
    chunk = max(chunk_of(knobs), -(-len(units.owners) // MOST_CHUNK))
    blocks = min(layout.blocks(device), len(units.owners))
    shared = (*_read_by_all(graph, units), np.uint32(chunk), *layout.take_tables(blocks, device))
    counters, offset = device.xp.zeros(3, device.xp.uint32), graph.offsets.dtype.type
    defines = (offset_bits(graph), ("COMBINATION", layout.combination))
    for begin, end in pairwise(_bounds(graph, units, longest, layout.block, device)):
        middle = min(max(begin, units.of_blocks), end)
        wanted = max(-(-(middle - begin) // chunk), -(-(end - middle) // (chunk * layout.block // WARP)))
        arguments = (*shared, offset(begin), offset(middle), offset(end), counters, found, fullest)
        launch = partial(device.launch, STEM, "count_units", min(blocks, wanted), layout.block, arguments)
        yield partial(launch, shared_bytes=layout.shared_bytes, defines=defines)


def _read_by_all(graph: DeviceGraph, units: Units) -> tuple[Any, ...]:
    return graph.offsets, graph.out_neighbours, units.owners, units.arcs, np.uint32(units.per_arc)


def _bounds(graph: DeviceGraph, units: Units, longest: int, block: int, device: Device) -> list[int]:
    """Where launches begin and end: about `LAUNCH_TESTS` look-ups each."""
    xp, count = device.xp, len(units.owners)
    if graph.m * longest + block // THREADS_PER_TEST * count <= LAUNCH_TESTS:
        return [0, count]
    work = xp.full(count, WARP // THREADS_PER_TEST, xp.uint64)
    work[: units.of_blocks] = block // THREADS_PER_TEST
    grid = min(-(-count * WARP // MEASURING_BLOCK), MEASURING_BLOCKS_PER_SM * device.sms)
    arguments = (*_read_by_all(graph, units), graph.offsets.dtype.type(count), work)
    device.launch(STEM, "measure_units", grid, MEASURING_BLOCK, arguments, defines=(offset_bits(graph),))
    return work_bounds(work, LAUNCH_TESTS, device)


def bytes_needed(shape: Shape, knobs: Knobs) -> int:
    of_arcs = knobs["construction"] == "edge"
    blocks = min(MOST_BLOCKS, shape.m if of_arcs else shape.n)
    return blocks * table_bytes(knobs, shape.n) + 32 * shape.n + (44 * shape.m if of_arcs else 0)


ALGORITHM = Algorithm(
    name="trust",
    device="cuda",
    unit="graph",
    answers={"count": DeviceAnswer(prepare, bytes_needed)},
    paper="Pandey et al.: TRUST: Triangle counting reloaded on GPUs, IEEE TPDS 32(11), 2021, 2646-2660",
    summary="Looks the second hop of every vertex up in a hash table of its row, by a block or a warp.",
    relabellings=("collective", "rank", "indegree", "classes"),
    knobs=(
        Knob("combination", "virtual", "how the rows of the second hop are shared out", choices=tuple(COMBINATIONS)),
        Knob("construction", "vertex", "what a table is built for, or rebuilt for", choices=("vertex", "edge")),
        Knob("cooptimisation", "on", "whether large vertices get blocks; off: all get warps", choices=("on", "off")),
        Knob("large", 100, "out-degree above which a vertex gets a block", least=1),
        Knob("chunk", 1, "vertices that are taken at a time; the paper also has 3 and 7", least=1),
        Knob("buckets", 32, "of a warp, and for each warp of a block: a power of two, at most 128", least=1),
        Knob("cached", 6, "places of each bucket in shared memory, as far as it reaches"),
        Knob("capacity", 128, "places of a bucket, at most 1,024; then ids go to the next one", least=1),
        Knob("block", 1024, "threads of a block: a power of two, at most 1,024", least=32),
    ),
    triples={"count": DeviceTripleAnswer(prepare_triple, triple_bytes)},
)
