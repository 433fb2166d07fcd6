"""What: Fox: arcs in six bins by their estimated work, those of bin n take 2^n threads; by searching or by merging.

Paper: Fox et al., 2018; fox.cu has the kernels. The host turns the arcs counted per chunk and bucket into places, and
cuts every bucket into launches of bounded work. A bucket is a bin with a method.
Memory beyond the oriented graph: 12 bytes per arc, and 336 per chunk of 512 arcs.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise

import numpy as np

from wedgewise.algorithms._contract import Algorithm, DeviceAnswer, Knob, Knobs, Launch, Shape
from wedgewise.algorithms.gpu._arcs import tails_of
from wedgewise.algorithms.gpu._launches import (
    WARP,
    counting,
    grid_for,
    offset_bits,
    sums_before,
    whole_warps,
    work_cuts,
)
from wedgewise.machine.gpu import Array, Device
from wedgewise.stages import DeviceGraph

METHODS = ("auto", "merge", "search")  # numbered as the kernels do
BINS, KERNELS = 6, ("search_pairs", "merge_pairs")
BUCKETS = len(KERNELS) * BINS
CHUNK_ARCS, ROUNDS = 512, 8  # as the kernels have them
LAUNCH_WORK = 1 << 35  # steps of searches or merges, done in well under 250 ms on an H200
MAX_SHARE = (1 << 32) - 1
BLOCKS_PER_SM = 256  # of a launch; arcs beyond them are taken in turn
PREPARING_BLOCK, PREPARING_BLOCKS_PER_SM = 256, 16


@counting
def prepare(graph: DeviceGraph, knobs: Knobs, device: Device, found: Array) -> Iterator[Launch]:
    """Put the arcs into buckets; count one bucket after the other."""
    xp, chunks, defines = device.xp, -(-graph.m // CHUNK_ARCS), (offset_bits(graph.offsets),)
    arcs = (graph.offsets, graph.out_neighbours, tails_of(graph, device), np.uint64(graph.m))
    shared = (*arcs, np.uint32(METHODS.index(str(knobs["method"]))), np.uint32(min(int(knobs["share"]), MAX_SHARE)))
    grid = grid_for(WARP * chunks, PREPARING_BLOCK, PREPARING_BLOCKS_PER_SM, device)
    launch, block = partial(device.launch, "fox", defines=defines), whole_warps(knobs)
    counts, work = xp.empty(BUCKETS * chunks, xp.uint32), xp.empty(BUCKETS * chunks, xp.uint64)
    launch("measure_chunks", grid, PREPARING_BLOCK, (*shared, counts, work))
    starts, pairs = sums_before(counts, xp), xp.empty((graph.m, 2), xp.uint32)
    launch("place_arcs", grid, PREPARING_BLOCK, (*shared, starts, pairs))
    for bucket, begin, end in _stretches(starts, work, device):
        kernel, log_threads = divmod(bucket, BINS)
        block_pairs = block // WARP * min(WARP, ROUNDS * WARP >> log_threads)
        stretch = (np.uint32(log_threads), np.uint64(begin), np.uint64(end))
        arguments = (graph.offsets, graph.out_neighbours, pairs, *stretch, found)
        blocks = grid_for(end - begin, block_pairs, BLOCKS_PER_SM, device)
        yield partial(launch, KERNELS[kernel], blocks, block, arguments)


def _stretches(starts: Array, work: Array, device: Device) -> Iterator[tuple[int, int, int]]:
    """Buckets with the places where a launch begins and ends, about `LAUNCH_WORK` apart.

    ``starts`` is where the pairs of each bucket and chunk start, ``work`` their work.
    """
    chunks = len(work) // BUCKETS
    borders = sorted({*range(0, len(work) + 1, chunks), *work_cuts(work, LAUNCH_WORK, device)})
    positions = starts[device.xp.asarray(borders)].tolist()
    for border, (begin, end) in zip(borders, pairwise(positions), strict=False):
        if begin < end:
            yield border // chunks, begin, end


def bytes_needed(shape: Shape, knobs: Knobs) -> int:
    return 12 * shape.m + 28 * BUCKETS * -(-shape.m // CHUNK_ARCS)


ALGORITHM = Algorithm(
    name="fox",
    device="cuda",
    unit="graph",
    answers={"count": DeviceAnswer(prepare, bytes_needed)},
    paper="Fox et al.: Fast and adaptive list intersections on the GPU, IEEE HPEC 2018, 1-7",
    summary="Gives every arc 1, 2, 4 … 32 threads by an estimate of its work; they search or merge.",
    knobs=(
        Knob("method", "search", "how rows are intersected; auto takes what is less work, arc by arc", choices=METHODS),
        Knob("share", 8, "work of a thread: arcs of at most twice as much get twice as many threads", least=1),
        Knob("block", 256, "threads of a block: whole warps, at most 1,024", least=32),
    ),
)
