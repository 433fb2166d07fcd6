"""A graph on a device that is being peeled: rows of all neighbours, supports, the round of each edge's death."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from wedgewise.algorithms._truss import STAGE
from wedgewise.algorithms.gpu._arcs import arcs_by_head, tails_of
from wedgewise.machine.gpu import Array, Device
from wedgewise.machine.progress import Progress
from wedgewise.stages import DeviceGraph

STEM, ROWS_STEM = "peel", "peel_rows"
WARP, MOST_THREADS = 32, 1024
SHORT_THREADS, BLOCKS_PER_SM = 256, 64  # where every thread or group has a few edges
LANES, MOST_STEPS = 8, 128  # of a search for one triangle, until it is left over
LONG_ROW = 256  # entries that a block packs
LEAST_PACKED = 1 << 12  # edges for which packing pays
MOST_WAITING = 1 << 10  # edges that fell in a round, put aside by a block
LAUNCH_PHASES, LAUNCH_EDGES = 256, 1 << 24  # of one launch: phases, and edges that die or are counted
LAUNCH_SEARCHES = 1 << 26  # edges for which one triangle is looked for
ALIVE = 2**32 - 1
NO_LIST = 2
LAST_BOUND = 2**32 - 2
CLEARED = [0, 0, 0, ALIVE] * 3  # what three phases tell


@dataclass(frozen=True, slots=True)
class Stand:
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

    @classmethod
    def at_first(cls, bound: int, m: int, *, counted: bool) -> Stand:
        """All m edges live; their supports are known, or are counted behind pruning by degrees."""
        return cls(bound, packed=m, counted=m if counted else 0, is_pruned=int(counted))

    def fields(self) -> list[int]:
        return [getattr(self, name) for name in self.__slots__]


class Peeling:
    """The rows of an oriented graph by degree with edges, from which they are packed away as they die."""

    def __init__(self, graph: DeviceGraph, block: int, device: Device) -> None:
        xp = device.xp
        self.graph, self.device = graph, device
        self._block = min(MOST_THREADS, -(-block // WARP) * WARP)
        self.tails = tails_of(graph, device)
        self._places, in_begin = arcs_by_head(graph, xp)
        self._offsets, self._in_begins = graph.offsets.astype(xp.uint32, copy=False), in_begin.astype(xp.uint32)
        self.begins = self._in_begins + self._offsets
        self.degrees = self.begins[1:] - self.begins[:-1]
        self._first_long = int(xp.searchsorted(self.degrees, xp.asarray([LONG_ROW], xp.uint32), side="right")[0])
        self._leaves_over = int(self.degrees[-1]) > LANES * (MOST_STEPS + 1)
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
            sizes = np.uint32(begin), np.uint32(end), np.uint32(MOST_STEPS)
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
        stand = Stand.at_first(first, graph.m, counted=supports is not None)
        supports = xp.zeros(graph.m, xp.uint32) if supports is None else supports
        state = xp.asarray(np.array([*CLEARED, *stand.fields()], np.uint32))
        self._when.fill(ALIVE)
        self._stops[:] = self.begins[1:]
        rows = self.begins, self._stops, self._neighbours, self._edges, np.uint32(graph.n), np.uint32(self._first_long)
        edges = self.tails, graph.out_neighbours, supports, self._when, np.uint32(graph.m)
        limits = np.uint32(last), np.uint32(LAUNCH_PHASES), np.uint32(LAUNCH_EDGES)
        told, stands = state[: len(CLEARED)], state[len(CLEARED) :]
        arguments = (*rows, *edges, self._queue, self._lists, *limits, self._arrivals, told, stands)
        defines = (("BLOCK_THREADS", self._block), ("LEAST_PACKED", LEAST_PACKED), ("MOST_WAITING", MOST_WAITING))
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
        made_of = self._offsets, graph.out_neighbours, self.tails, self._places, self._in_begins, np.uint32(graph.m)
        arguments = (*made_of, self._neighbours, self._edges)
        self.device.launch(ROWS_STEM, "write_rows", self._grid(graph.m), SHORT_THREADS, arguments)

    def _grid(self, threads: int) -> int:
        return min(-(-threads // SHORT_THREADS), BLOCKS_PER_SM * self.device.sms)


def peeling_bytes(n: int, m: int) -> int:
    """Device memory beyond the oriented graph, supports included, at the peak.

    Of an edge its tail 4, its place 4, its entries in rows 16, in the queue 4, in two lists 8, its support 4, the
    round of its death 4, whether it lives or is in a triangle 2; of a vertex two begins, a degree and a stop. While
    arcs are sorted by head, less.
    """
    return 46 * m + 28 * (n + 1) + (1 << 12)
