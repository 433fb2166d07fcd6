"""What: trusses by peeling: edges with too few triangles die in rounds, and take their triangles from those that stay.

Paper: ours; peel.cu has the kernel, which goes through all rounds of a launch by itself.
The 3-truss needs no supports: an edge is in it if it is in any triangle. Supports are counted by keystone where there
are many wedges, and where there are few by the kernel that peels, once edges are gone for the degree of an end alone.
For the last truss, levels are skipped: from a guess on, which is halved while nothing is left by it.
Memory beyond the oriented graph: 76 bytes per edge and 64 per vertex.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wedgewise.algorithms._contract import Algorithm, Cost, DeviceTrussAnswer, FoundTruss, Knob, Knobs, Shape, TrussJob
from wedgewise.algorithms._truss import LEAST_K, STAGE
from wedgewise.algorithms.gpu import _keystone_answers, keystone
from wedgewise.algorithms.gpu._peeling import LAST_BOUND, Peeling, peeling_bytes
from wedgewise.errors import PreconditionError
from wedgewise.machine.gpu import Array, Device
from wedgewise.machine.progress import Progress
from wedgewise.stages import DeviceGraph

BLOCK = Knob("block", 512, "threads of a block that peels, in whole warps", least=1)
FEW_WEDGES = 16  # per arc: with more, keystone counts supports
MOST_EDGES = 1 << 31  # each has two entries in rows, whose places have 32 bits


class Trusses:
    """A graph with edges that is ready to be peeled, and to have its supports counted by keystone where that is due."""

    def __init__(self, graph: DeviceGraph, knobs: Knobs, device: Device, *, by_keystone: bool) -> None:
        self._graph, self._device = graph, device
        keystone_knobs = keystone.ALGORITHM.settings(None)
        prepared = _keystone_answers.prepare_edge_support(graph, keystone_knobs, device) if by_keystone else None
        self._support_work = prepared
        self._peeling = Peeling(graph, int(knobs[BLOCK.name]), device)

    def trussness(self, progress: Progress | None) -> FoundTruss:
        numbers = self._peeling.peel(0, LAST_BOUND, self._supports(), progress)
        numbers += np.uint32(LEAST_K)
        return FoundTruss(int(numbers.max()), numbers, self._peeling.rounds)

    def three_truss(self, progress: Progress | None) -> FoundTruss:
        held = self._peeling.in_triangles()
        if progress is not None:
            progress(STAGE, self._graph.m, self._graph.m)
        return FoundTruss(LEAST_K + 1, held, 1)

    def k_truss(self, k: int, progress: Progress | None) -> FoundTruss:
        if k == LEAST_K + 1:
            return self.three_truss(progress)
        bound = k - LEAST_K - 1
        self._peeling.peel(bound, bound, self._supports(), progress)
        return FoundTruss(k, self._peeling.lives(), self._peeling.rounds)

    def max_truss(self, progress: Progress | None) -> FoundTruss:
        xp, supports = self._device.xp, self._supports()
        guess = (_most_k_by_degrees(self._peeling.degrees, xp) if supports is None else _most_k(supports, xp)) // 2
        while True:
            first = max(0, guess - LEAST_K - 1)
            levels = self._peeling.peel(first, LAST_BOUND, None if supports is None else supports.copy(), progress)
            last = int(levels.max())
            if last > first or first == 0:
                return FoundTruss(last + LEAST_K, levels == np.uint32(last), self._peeling.rounds)
            del levels  # there is room for one
            guess //= 2

    def _supports(self) -> Array | None:
        """The triangles of every arc, if keystone is to count them."""
        if self._support_work is None:
            return None
        for batch in self._support_work.batches:
            for launch in batch():
                launch()
                self._device.synchronize()  # so that Ctrl-C is heard in between
        return self._support_work.filled


def find_trussness(graph: DeviceGraph, job: TrussJob, device: Device) -> FoundTruss:
    _check_size(graph)
    if graph.m == 0:
        return FoundTruss(LEAST_K, device.xp.empty(0, device.xp.uint32), 0)
    return Trusses(graph, job.knobs, device, by_keystone=True).trussness(job.progress)


def find_k_truss(graph: DeviceGraph, job: TrussJob, device: Device) -> FoundTruss:
    assert job.k is not None
    _check_size(graph)
    if graph.m == 0:
        return FoundTruss(job.k, device.xp.empty(0, device.xp.bool_), 0)
    by_keystone = job.k > LEAST_K + 1 and has_many_wedges(graph)
    return Trusses(graph, job.knobs, device, by_keystone=by_keystone).k_truss(job.k, job.progress)


def find_max_truss(graph: DeviceGraph, job: TrussJob, device: Device) -> FoundTruss:
    _check_size(graph)
    if graph.m == 0:
        return FoundTruss(LEAST_K, device.xp.empty(0, device.xp.bool_), 0)
    return Trusses(graph, job.knobs, device, by_keystone=has_many_wedges(graph)).max_truss(job.progress)


def has_many_wedges(graph: DeviceGraph) -> bool:
    """Whether keystone counts supports sooner than the kernel that peels."""
    return graph.wedges > FEW_WEDGES * graph.m


def _check_size(graph: DeviceGraph) -> None:
    if graph.m >= MOST_EDGES:
        raise PreconditionError(f"peel on cuda takes fewer than 2^31 edges, not {graph.m:,}; use device='cpu'")


def _most_k(supports: Array, xp: Any) -> int:
    """No k-truss beyond this one has edges: it would need C(k, 2) edges with k − 2 triangles each."""
    at_least = xp.cumsum(xp.bincount(supports)[::-1])[::-1]
    k = xp.arange(len(at_least)) + LEAST_K
    return int(k[at_least >= k * (k - 1) // 2].max())  # that of k = 2 is there


def _most_k_by_degrees(degrees: Array, xp: Any) -> int:
    """The same: it would need k vertices with k − 1 edges each. Degrees ascend."""
    return int(xp.minimum(degrees + np.uint32(1), xp.arange(len(degrees), 0, -1)).max())


def bytes_needed(shape: Shape, knobs: Knobs) -> int:
    """What is peeled, and beside it what keystone holds: items, supports, and a copy of these for the last truss.

    The pool reuses what keystone took to prepare in part only: 14 bytes per edge more were measured.
    """
    return peeling_bytes(shape.n, shape.m) + (16 + 14) * shape.m + 36 * shape.n


ALGORITHM = Algorithm(
    name="peel",
    device="cuda",
    unit="graph",
    answers={
        "trussness": DeviceTrussAnswer(find_trussness, bytes_needed, Cost(1.5e-3, 4e-9, 4e-11, 5e-4, 1e-9)),
        "k_truss": DeviceTrussAnswer(find_k_truss, bytes_needed, Cost(5e-4, 5e-10, 6e-12, 5e-4, 1e-9)),
        "max_truss": DeviceTrussAnswer(find_max_truss, bytes_needed, Cost(1e-3, 1e-9, 2e-11, 5e-4, 1e-9)),
    },
    paper="our own",
    summary="Peels edges in rounds, all of them in one launch whose blocks meet behind each.",
    limits="fewer than 2^31 edges",
    orders=("degree",),
    relabellings=("rank",),
    knobs=(BLOCK,),
    most_arcs=MOST_EDGES,
)
