"""Rounds of eager k-truss on a device; eager.cu has the kernels, the paper and what differs from the authors' code.

A launch covers a range of slots (fine) or rows (coarse) of about equal work in the first round. A row is never cut by
coarse ones: a launch takes as long as its longest row. Between rounds nothing but a counter comes back to the host.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from wedgewise.algorithms._contract import Algorithm, DeviceTrussAnswer, FoundTruss, Knobs, Shape, TrussJob
from wedgewise.algorithms._truss import MIN_K, rounds
from wedgewise.algorithms.cpu.eager import GRANULARITY, ORDERS, PAPER
from wedgewise.algorithms.gpu._arcs import arc_bounds, tails_of
from wedgewise.algorithms.gpu._launches import WARP, grid_for, offset_bits
from wedgewise.machine.gpu import Array, Device
from wedgewise.stages import DeviceGraph

BLOCK = 128
BLOCKS_PER_SM = 64
LAUNCH_STEPS = 1 << 32  # of merges, taken in well under 250 ms on an H200 by fine launches
MAX_SUPPORT = 2**32 - 1  # more than any arc has


class EagerDeviceRows:
    """The remaining arcs of a graph on a device; ``remaining`` counts them."""

    def __init__(self, graph: DeviceGraph, granularity: str, device: Device, block: int = BLOCK) -> None:
        xp = device.xp
        self.remaining = graph.m
        self._graph, self._device, self._block = graph, device, block
        self._kernel = "credit_rows" if granularity == "coarse" else "credit_slots"
        self._begins = xp.arange(graph.n + 1, dtype=graph.offsets.dtype)
        self._begins += graph.offsets
        self._rows = xp.zeros(graph.m + graph.n, xp.uint32)
        self._supports, self._has_counted = xp.zeros(graph.m + graph.n, xp.uint32), False
        self._found = xp.zeros(2, xp.uint64)
        self._bounds = self._terminate(is_coarse=granularity == "coarse")

    def run_round(self, least: int) -> None:
        """Count the supports of the remaining arcs; remove those of less than `least`."""
        if self._has_counted:
            self._supports.fill(0)
        self._has_counted = True
        for number, (begin, end) in enumerate(pairwise(self._bounds)):
            if number > 0:
                self._device.synchronize()  # so that Ctrl-C is heard in between
            ranged = (self._begins, self._rows, np.uint64(begin), np.uint64(end), self._supports)
            self._launch(self._kernel, -(-(end - begin) // self._block), ranged)
        needed = np.uint32(min(least, MAX_SUPPORT))
        pruned = (self._begins, np.uint32(self._graph.n), needed, self._supports, self._rows, self._found)
        self._launch("prune_rows", self._grid(WARP * self._graph.n), pruned)
        self.remaining = self._graph.m - int(self._found[0])

    def least_support(self) -> int:
        """The least support of the remaining arcs, after a round that removed none."""
        xp = self._device.xp
        return int(xp.where(self._rows != 0, self._supports, xp.uint32(MAX_SUPPORT)).min())

    def survivors(self) -> Array:
        """Whether each arc lives."""
        graph = self._graph
        lives = self._device.xp.empty(graph.m, self._device.xp.uint8)
        arguments = (graph.offsets, graph.out_neighbours, self._begins, self._rows, np.uint32(graph.n))
        if graph.m > 0:
            self._launch("mark_living", self._grid(graph.m), (*arguments, np.uint64(graph.m), lives))
        return lives.view(self._device.xp.bool_)

    def _terminate(self, *, is_coarse: bool) -> list[int]:
        """Copy the rows; where launches begin and end, in slots or rows."""
        graph, xp = self._graph, self._device.xp
        if graph.m == 0:
            return [0]
        tails = tails_of(graph, self._device)
        copied = (graph.out_neighbours, tails, np.uint64(graph.m), self._rows)
        self._launch("terminate_rows", self._grid(graph.m), copied)
        cuts = arc_bounds(graph, tails, LAUNCH_STEPS, self._device, merged=True)[1:-1]
        rows = tails[xp.asarray(cuts, xp.int64)].tolist()
        inner = rows if is_coarse else [cut + row for cut, row in zip(cuts, rows, strict=True)]
        return sorted({0, *inner, graph.n if is_coarse else graph.m + graph.n})

    def _launch(self, kernel: str, grid: int, arguments: tuple[Any, ...]) -> None:
        self._device.launch("eager", kernel, grid, self._block, arguments, defines=(offset_bits(self._begins),))

    def _grid(self, threads: int) -> int:
        return grid_for(threads, self._block, BLOCKS_PER_SM, self._device)


def find_trussness(graph: DeviceGraph, job: TrussJob, device: Device) -> FoundTruss:
    numbers = device.xp.full(graph.m, MIN_K, device.xp.uint32)
    return rounds.trussness(_rows(graph, job, device), numbers, job)


def find_k_truss(graph: DeviceGraph, job: TrussJob, device: Device) -> FoundTruss:
    return rounds.k_truss(_rows(graph, job, device), job)


def find_max_truss(graph: DeviceGraph, job: TrussJob, device: Device) -> FoundTruss:
    return rounds.max_truss(_rows(graph, job, device), job)


def _rows(graph: DeviceGraph, job: TrussJob, device: Device) -> EagerDeviceRows:
    return EagerDeviceRows(graph, str(job.knobs[GRANULARITY.name]), device)


def bytes_needed(shape: Shape, knobs: Knobs) -> int:
    """The peak of one k-truss and of the last one: while the least support is looked for.

    Per slot a head, a support, whether it lives and a support of those that do; an offset per vertex; whether each arc
    lived before. While rows are copied, tails and measured work take less.
    """
    n, m = shape.n, shape.m
    offset_bytes = 4 if m < 2**31 else 8
    return 13 * (m + n) + offset_bytes * (n + 1) + m


def bytes_with_numbers(shape: Shape, knobs: Knobs) -> int:
    return bytes_needed(shape, knobs) + 4 * shape.m


ALGORITHM = Algorithm(
    name="eager",
    device="cuda",
    unit="graph",
    answers={
        "trussness": DeviceTrussAnswer(find_trussness, bytes_with_numbers),
        "k_truss": DeviceTrussAnswer(find_k_truss, bytes_needed),
        "max_truss": DeviceTrussAnswer(find_max_truss, bytes_needed),
    },
    paper=PAPER,
    summary="Counts all supports and prunes, round after round, with a thread per non-zero or per row.",
    orders=ORDERS,
    relabellings=("rank",),
    knobs=(GRANULARITY,),
)
