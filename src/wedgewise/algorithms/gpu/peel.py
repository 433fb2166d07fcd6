"""What: trusses by peeling: edges with too few triangles die in rounds, and take their triangles from those that stay.

Paper: ours; peel.cu has the kernel, which goes through all rounds of a launch by itself.
The 3-truss needs no supports: an edge is in it if it is in any triangle. Supports are counted by keystone where there
are many wedges, and where there are few by the kernel that peels, once edges are gone for the degree of an end alone.
For the last truss, levels are skipped: from a guess on, which is halved while nothing is left by it.
Memory beyond the oriented graph: 76 bytes per edge and 64 per vertex.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from wedgewise.algorithms._contract import Algorithm, Cost, DeviceTrussAnswer, FoundTruss, Knob, Knobs, Shape, TrussJob
from wedgewise.algorithms._truss import MIN_K, STAGE
from wedgewise.algorithms.gpu import _keystone_answers, keystone
from wedgewise.algorithms.gpu._arcs import arcs_by_head, tails_of
from wedgewise.algorithms.gpu._launches import grid_for, rounded_up_to_warps
from wedgewise.errors import PreconditionError
from wedgewise.machine.gpu import Array, Device
from wedgewise.machine.progress import Progress
from wedgewise.stages import DeviceGraph

BLOCK = Knob("block", 512, "threads of a block that peels, in whole warps", least=1)
FEW_WEDGES = 16  # per arc: with more, keystone counts supports
MAX_EDGES = 1 << 31  # each has two entries in rows, whose positions have 32 bits
STEM, ROWS_STEM = "peel", "peel_rows"
SHORT_THREADS, BLOCKS_PER_SM = 256, 64  # where every thread or group has a few edges
LANES, MAX_STEPS = 8, 128  # of a search for one triangle, until it is left over
LONG_ROW = 256  # entries that a block packs
MIN_PACKED = 1 << 12  # edges for which packing pays
MAX_WAITING = 1 << 10  # edges that fell in a round, put aside by a block
LAUNCH_PHASES, LAUNCH_EDGES = 256, 1 << 24  # of one launch: phases, and edges that die or are counted
LAUNCH_SEARCHES = 1 << 26  # edges for which one triangle is looked for
ALIVE = 2**32 - 1
NO_LIST = 2
LAST_BOUND = 2**32 - 2
CLEARED = [0, 0, 0, ALIVE] * 3  # what three phases tell


class Stand(NamedTuple):
    """Where the peeling stands; the fields are those of peel_state.cuh, in their order."""

    bound: int
    round: int = 1
    head: int = 0
    end: int = 0
    tail: int = 0
    listed: int = 0
    which: int = NO_LIST
    packed: int = 0
    gone: int = 0
    counted: int = 0
    is_pruned: int = 0
    is_done: int = 0
    phases: int = 0


class PeelingOnDevice:
    """A graph with edges, oriented by degree, that is being peeled: rows of all neighbours, the round of each death.

    Edges are packed away from the rows as they die.
    """

    def __init__(self, graph: DeviceGraph, block: int, device: Device) -> None:
        xp = device.xp
        self.graph, self.device = graph, device
        self._block = rounded_up_to_warps(block)
        self.tails = tails_of(graph, device)
        self._positions, in_begin = arcs_by_head(graph, xp)
        self._offsets, self._in_begins = graph.offsets.astype(xp.uint32, copy=False), in_begin.astype(xp.uint32)
        self.begins = self._in_begins + self._offsets
        self.degrees = self.begins[1:] - self.begins[:-1]
        self._first_long = int(xp.searchsorted(self.degrees, xp.asarray([LONG_ROW], xp.uint32), side="right")[0])
        self._leaves_over = int(self.degrees[-1]) > LANES * (MAX_STEPS + 1)
        self._neighbours, self._edges = xp.empty(2 * graph.m, xp.uint32), xp.empty(2 * graph.m, xp.uint32)
        self._queue, self._lists = xp.empty(graph.m, xp.uint32), xp.empty(2 * graph.m, xp.uint32)
        self._when, self._stops = xp.empty(graph.m, xp.uint32), xp.empty(graph.n, xp.uint32)
        self._arrivals = xp.zeros(1, xp.uint32)
        self._flags_and_count = xp.empty(-(-graph.m // 4) * 4 + 4, xp.uint8)
        self._flags, self._left_count = self._flags_and_count[: graph.m], self._flags_and_count[-4:].view(xp.uint32)
        self._write_rows()
        self.rounds = 0

    def in_triangles(self) -> Array:
        """Whether each edge is in a triangle; before anything is peeled."""
        graph, flags, left_count = self.graph, self._flags, self._left_count
        self._flags_and_count.fill(0)
        rows = self.begins, self._neighbours, self._edges, self.tails, graph.out_neighbours
        launch = partial(self.device.launch, ROWS_STEM, block=SHORT_THREADS, defines=(("LANES", LANES),))
        for begin in range(0, graph.m, LAUNCH_SEARCHES):
            end = min(graph.m, begin + LAUNCH_SEARCHES)
            sizes = np.uint32(begin), np.uint32(end), np.uint32(MAX_STEPS)
            searched = (*rows, *sizes, flags, self._queue, left_count)
            launch("find_triangles", grid=self._grid(LANES * (end - begin)), arguments=searched)
            if end < graph.m:
                self.device.synchronize()  # so that Ctrl-C is heard in between
        if self._leaves_over:
            left_over = (*rows, self._queue, left_count, flags)
            launch("find_left_over", grid=BLOCKS_PER_SM * self.device.sms, arguments=left_over)
        return flags.view(self.device.xp.bool_)

    def peel(self, first: int, last: int, supports: Array | None, progress: Progress | None) -> Array:
        """Let edges die that have at most so many triangles, for all bounds from first to last.

        Supports, if they are known, are written over. Returned are those of dead edges as the bound that they died by.
        """
        graph, device, xp = self.graph, self.device, self.device.xp
        if self.rounds > 0:
            self._write_rows()
        stand = Stand(first, packed=graph.m)  # all edges live; supports are counted behind pruning by degrees
        if supports is None:
            supports = xp.zeros(graph.m, xp.uint32)
        else:
            stand = stand._replace(counted=graph.m, is_pruned=1)
        state = xp.asarray(np.array([*CLEARED, *stand], np.uint32))
        self._when.fill(ALIVE)
        self._stops[:] = self.begins[1:]
        rows = self.begins, self._stops, self._neighbours, self._edges, np.uint32(graph.n), np.uint32(self._first_long)
        edges = self.tails, graph.out_neighbours, supports, self._when, np.uint32(graph.m)
        limits = np.uint32(last), np.uint32(LAUNCH_PHASES), np.uint32(LAUNCH_EDGES)
        tally, stands = state[: len(CLEARED)], state[len(CLEARED) :]
        arguments = (*rows, *edges, self._queue, self._lists, *limits, self._arrivals, tally, stands)
        defines = (("BLOCK_THREADS", self._block), ("MIN_PACKED", MIN_PACKED), ("MAX_WAITING", MAX_WAITING))
        grid = device.resident_blocks(STEM, "peel", self._block, defines=defines)
        while not stand.is_done:
            device.launch(STEM, "peel", grid, self._block, arguments, defines=defines, cooperative=True)
            stand = Stand(*stands.tolist())  # waits for the launch, so that Ctrl-C is heard in between
            if progress is not None:
                progress(STAGE, graph.m - stand.packed + stand.gone, graph.m)
        self.rounds += stand.round
        return supports

    def lives(self) -> Array:
        """Whether each edge lives, behind `peel`."""
        return self._when == np.uint32(ALIVE)

    def _write_rows(self) -> None:
        graph = self.graph
        made_of = self._offsets, graph.out_neighbours, self.tails, self._positions, self._in_begins, np.uint32(graph.m)
        arguments = (*made_of, self._neighbours, self._edges)
        self.device.launch(ROWS_STEM, "write_rows", self._grid(graph.m), SHORT_THREADS, arguments)

    def _grid(self, threads: int) -> int:
        return grid_for(threads, SHORT_THREADS, BLOCKS_PER_SM, self.device)


class TrussesOnDevice:
    """A graph with edges that is ready to be peeled, and to have its supports counted by keystone where that is due."""

    def __init__(self, graph: DeviceGraph, knobs: Knobs, device: Device, *, by_keystone: bool) -> None:
        self._graph, self._device = graph, device
        keystone_knobs = keystone.ALGORITHM.settings(None)
        prepared = _keystone_answers.prepare_edge_support(graph, keystone_knobs, device) if by_keystone else None
        self._support_work = prepared
        self._peeling = PeelingOnDevice(graph, int(knobs[BLOCK.name]), device)

    def trussness(self, job: TrussJob) -> FoundTruss:
        numbers = self._peeling.peel(0, LAST_BOUND, self._supports(), job.progress)
        numbers += np.uint32(MIN_K)
        return FoundTruss(int(numbers.max()), numbers, self._peeling.rounds)

    def k_truss(self, job: TrussJob) -> FoundTruss:
        assert job.k is not None
        if job.k > MIN_K + 1:
            bound = job.k - MIN_K - 1
            self._peeling.peel(bound, bound, self._supports(), job.progress)
            return FoundTruss(job.k, self._peeling.lives(), self._peeling.rounds)
        held = self._peeling.in_triangles()
        if job.progress is not None:
            job.progress(STAGE, self._graph.m, self._graph.m)
        return FoundTruss(job.k, held, 1)

    def max_truss(self, job: TrussJob) -> FoundTruss:
        xp, supports = self._device.xp, self._supports()
        guess = (_most_k_by_degrees(self._peeling.degrees, xp) if supports is None else _most_k(supports, xp)) // 2
        while True:
            first = max(0, guess - MIN_K - 1)
            levels = self._peeling.peel(first, LAST_BOUND, None if supports is None else supports.copy(), job.progress)
            last = int(levels.max())
            if last > first or first == 0:
                return FoundTruss(last + MIN_K, levels == np.uint32(last), self._peeling.rounds)
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
    return _find(TrussesOnDevice.trussness, graph, job, device, device.xp.uint32, by_keystone=True)


def find_k_truss(graph: DeviceGraph, job: TrussJob, device: Device) -> FoundTruss:
    by_keystone = job.k != MIN_K + 1 and has_many_wedges(graph)
    return _find(TrussesOnDevice.k_truss, graph, job, device, device.xp.bool_, by_keystone=by_keystone)


def find_max_truss(graph: DeviceGraph, job: TrussJob, device: Device) -> FoundTruss:
    return _find(TrussesOnDevice.max_truss, graph, job, device, device.xp.bool_, by_keystone=has_many_wedges(graph))


def _find(
    how: Callable[[TrussesOnDevice, TrussJob], FoundTruss],
    graph: DeviceGraph,
    job: TrussJob,
    device: Device,
    dtype: Any,
    *,
    by_keystone: bool,
) -> FoundTruss:
    """Find trusses of a graph that is not too large; one without edges has none."""
    if graph.m >= MAX_EDGES:
        raise PreconditionError(f"peel on cuda takes fewer than 2^31 edges, not {graph.m:,}; use device='cpu'")
    if graph.m == 0:
        return FoundTruss(job.k or MIN_K, device.xp.empty(0, dtype), 0)
    return how(TrussesOnDevice(graph, job.knobs, device, by_keystone=by_keystone), job)


def has_many_wedges(graph: DeviceGraph) -> bool:
    """Whether keystone counts supports sooner than the kernel that peels."""
    return graph.wedges > FEW_WEDGES * graph.m


def _most_k(supports: Array, xp: Any) -> int:
    """No k-truss beyond this one has edges: it would need C(k, 2) edges with k − 2 triangles each."""
    at_least = xp.cumsum(xp.bincount(supports)[::-1])[::-1]
    k = xp.arange(len(at_least)) + MIN_K
    return int(k[at_least >= k * (k - 1) // 2].max())  # that of k = 2 is there


def _most_k_by_degrees(degrees: Array, xp: Any) -> int:
    """The same: it would need k vertices with k − 1 edges each. Degrees ascend."""
    return int(xp.minimum(degrees + np.uint32(1), xp.arange(len(degrees), 0, -1)).max())


def peeling_bytes(n: int, m: int) -> int:
    """Device memory beyond the oriented graph, supports included, at the peak.

    Of an edge its tail 4, its place 4, its entries in rows 16, in the queue 4, in two lists 8, its support 4, the
    round of its death 4, whether it lives or is in a triangle 2; of a vertex two begins, a degree and a stop. While
    arcs are sorted by head, less.
    """
    return 46 * m + 28 * (n + 1) + (1 << 12)


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
    most_arcs=MAX_EDGES,
)
