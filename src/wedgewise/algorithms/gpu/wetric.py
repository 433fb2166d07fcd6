"""What: counts wedge by wedge; a thread finds the wedge of a number, constructs it, and looks for its closing arc.

Paper: Spaan, Chen, Bader, Varbanescu: Wedge-Parallel Triangle Counting for GPUs (WeTriC), Euro-Par 2025. wetric.cu has
the wedge-parallel kernels, wetric_coarse.cu those by vertex and by edge of the paper's tables 2 and 5. This is what the
host does for them: sum up the wedges, fill the matrix, cut the work into launches.
Without reordering: ``order="id"``, and the matrix covers the last vertices as they are.
Memory beyond the oriented graph, at its peak: 24 bytes per vertex by wedge and by vertex; arrow wedges 20 per arc and
12 per vertex; lists of arcs 4 or 8 per arc; x² / 16 bytes for a matrix of x vertices. While it counts: 8 bytes per
vertex by wedge, and 8 per arc for arrow wedges; the lists; the matrix.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import ceil
from typing import Any

import numpy as np

from wedgewise.algorithms._contract import Algorithm, Cost, DeviceAnswer, DeviceWork, Knob, Knobs, Launch, Shape
from wedgewise.algorithms.gpu._launches import WARP, grid_for, offset_bits, sums_before, whole_warps
from wedgewise.machine.gpu import Array, Defines, Device
from wedgewise.prepare.ranked_arcs import RAW_DEGREE
from wedgewise.stages import DeviceGraph

COMBINATIONS = (
    *("outgoing-wedge", "arrow-wedge"),
    *("outgoing-edge", "arrow-edge", "mixed-edge"),
    *("outgoing-vertex", "arrow-vertex", "mixed-vertex"),
)
STYLES = ("outgoing", "arrow", "mixed")  # their numbers in wetric_coarse.cu
LISTED_NUMBERS = {"search": 0, "sources": 1, "pairs": 2}  # of every arc
RETRIEVALS = tuple(LISTED_NUMBERS)
MAX_SPREAD = 32  # a thread keeps its searches in the bits of a word
MAX_ROUNDS = 8
BLOCKS_PER_SM = 64  # in a grid: enough for an even load, few enough that adding up costs nothing
PREPARING_BLOCK = 256
LAUNCH_WEDGES = {RAW_DEGREE: 1 << 31, "degree": 1 << 31, "core": 1 << 31, "id": 1 << 28}  # by id, searches are long
LAUNCH_TESTS = 1 << 29  # by vertex and by edge
THREAD_TESTS = 1 << 17  # of one thread in a launch: about 100 ms of dependent loads


@dataclass(frozen=True, slots=True)
class WetricSetting:
    """The knobs as the kernels can have them."""

    style: str
    unit: str
    retrieval: str
    spread: int
    cooperation: bool
    matrix_length: int
    block: int

    @classmethod
    def of(cls, knobs: Knobs, n: int) -> WetricSetting:
        style, unit = str(knobs["combination"]).split("-")
        return cls(
            style,
            unit,
            str(knobs["retrieval"]),
            min(int(knobs["spread"]), MAX_SPREAD),
            knobs["cooperation"] == "on",
            min(int(knobs["matrix_length"]), n),
            whole_warps(knobs),
        )

    @property
    def matrix_words(self) -> int:
        """The bits below the diagonal, each row in whole words: the sum of ceil(i / 32) over i < matrix_length."""
        full, rest = divmod(max(0, self.matrix_length - 1), 32)
        return (full + 1) * (16 * full + rest)


@dataclass(frozen=True, slots=True)
class Prepared:
    """What every launch is given."""

    graph: DeviceGraph
    setting: WetricSetting
    device: Device
    matrix: Array
    found: Array

    @classmethod
    def of(cls, graph: DeviceGraph, knobs: Knobs, device: Device) -> Prepared:
        setting = WetricSetting.of(knobs, graph.n)
        found = device.xp.zeros(2, device.xp.uint64)
        return cls(graph, setting, device, filled_matrix(graph, setting, device), found)

    @property
    def arguments(self) -> tuple[Any, ...]:
        graph = self.graph
        first_dense = np.uint32(graph.n - self.setting.matrix_length)
        return graph.offsets, graph.out_neighbours, self.matrix, np.uint32(graph.n), first_dense

    @property
    def defines(self) -> Defines:
        return (offset_bits(self.graph.offsets), ("BLOCK", self.setting.block))

    def grid(self, threads: int) -> int:
        """Blocks for so many threads; those that are too many go around."""
        return grid_for(threads, self.setting.block, BLOCKS_PER_SM, self.device)


def filled_matrix(graph: DeviceGraph, setting: WetricSetting, device: Device) -> Array:
    """The arcs among the last vertices as bits; one word at least, which steps without a look-up read."""
    xp = device.xp
    matrix = xp.zeros(max(1, setting.matrix_words), xp.uint32)
    if setting.matrix_length > 1:
        first_dense = np.uint32(graph.n - setting.matrix_length)
        grid = grid_for(setting.matrix_length * WARP, PREPARING_BLOCK, BLOCKS_PER_SM, device)
        arguments = (graph.offsets, graph.out_neighbours, np.uint32(graph.n), first_dense, matrix)
        device.launch("wetric", "fill_matrix", grid, PREPARING_BLOCK, arguments, defines=(offset_bits(graph.offsets),))
    return matrix


def prepare(graph: DeviceGraph, knobs: Knobs, device: Device) -> DeviceWork:
    """Build what the kernels read, and cut the work into launches."""
    prepared = Prepared.of(graph, knobs, device)
    if graph.m == 0:
        return DeviceWork.at_once((), prepared.found)
    by_unit = {"wedge": _by_wedge, "edge": _by_edge, "vertex": _by_vertex}[prepared.setting.unit]
    return DeviceWork.at_once(by_unit(prepared), prepared.found)


def _outgoing_before(graph: DeviceGraph, xp: Any) -> Array:
    """How many outgoing wedges the vertices before each have."""
    wedges = xp.diff(graph.offsets).astype(xp.uint64)
    wedges *= wedges - np.uint64(1)
    wedges //= np.uint64(2)
    return sums_before(wedges, xp)


def _arrows_before(graph: DeviceGraph, xp: Any) -> Array:
    """How many arrow wedges the arcs before each open."""
    out_degrees = xp.diff(graph.offsets).astype(xp.uint32)
    return sums_before(out_degrees[graph.out_neighbours], xp)


@dataclass(frozen=True, slots=True)
class NumberedWedges:
    """The kernel of a wedge style, the sums by which it finds a wedge, and how many there are."""

    kernel: str
    before: tuple[Array, ...]
    total: int

    @classmethod
    def of(cls, graph: DeviceGraph, style: str, xp: Any) -> NumberedWedges:
        if style == "outgoing":
            return cls("count_outgoing", (_outgoing_before(graph, xp),), graph.wedges)
        before_arc = _arrows_before(graph, xp)
        return cls("count_arrows", (before_arc[graph.offsets], before_arc), int(before_arc[-1]))


def _by_wedge(prepared: Prepared) -> Iterator[Launch]:
    """Equal ranges of wedges."""
    wedges = NumberedWedges.of(prepared.graph, prepared.setting.style, prepared.device.xp)
    for begin, end in _ranges(wedges.total, LAUNCH_WEDGES[prepared.graph.order]):
        yield wedge_launch(prepared, wedges, begin, end)


def wedge_launch(prepared: Prepared, wedges: NumberedWedges, begin: int, end: int) -> Launch:
    """Count among the wedges numbered begin … end − 1."""
    setting, device = prepared.setting, prepared.device
    bytes_of_round = setting.block * (prepared.graph.offsets.dtype.itemsize + 4)  # for a spread of one
    spread = min(setting.spread, (device.shared_bytes // bytes_of_round - 1) | 1)
    rounds = max(1, min(MAX_ROUNDS, (end - begin) // (setting.block * spread * BLOCKS_PER_SM * device.sms)))
    return partial(
        device.launch,
        "wetric",
        wedges.kernel,
        prepared.grid(ceil((end - begin) / (rounds * spread))),
        setting.block,
        (*prepared.arguments, *wedges.before, np.uint64(begin), np.uint64(end), np.uint32(rounds), prepared.found),
        shared_bytes=bytes_of_round * (spread | 1),
        defines=(*prepared.defines, ("SPREAD", spread), ("COOPERATION", int(setting.cooperation))),
    )


def _by_edge(prepared: Prepared) -> Iterator[Launch]:
    """Equal ranges of arcs."""
    graph = prepared.graph
    tests = int(_arrows_before(graph, prepared.device.xp)[-1]) if prepared.setting.style == "arrow" else graph.wedges
    listed = _list_of_arcs(prepared)
    for begin, end in _ranges(graph.m, max(1, graph.m * LAUNCH_TESTS // max(tests, 1))):
        yield _coarse_launch(prepared, "count_by_edge", end - begin, (listed, np.uint64(begin), np.uint64(end)))


def _list_of_arcs(prepared: Prepared) -> Array:
    """The tails of all arcs, or both ends of each, or nothing."""
    graph, setting, xp = prepared.graph, prepared.setting, prepared.device.xp
    listed = xp.empty(graph.m * LISTED_NUMBERS[setting.retrieval], xp.uint32)
    if len(listed):
        arguments = (graph.offsets, graph.out_neighbours, np.uint32(graph.n), np.uint64(graph.m), listed)
        grid, defines = prepared.grid(graph.m), (*prepared.defines, *_variant(setting))
        prepared.device.launch("wetric_coarse", "list_arcs", grid, setting.block, arguments, defines=defines)
    return listed


def _by_vertex(prepared: Prepared) -> Iterator[Launch]:
    """Ranges of vertices with about equally many wedges, and where rows are long, ranges of each row's arcs."""
    graph, xp = prepared.graph, prepared.device.xp
    arrow = prepared.setting.style == "arrow"
    before = _arrows_before(graph, xp)[graph.offsets] if arrow else _outgoing_before(graph, xp)
    marks = xp.arange(LAUNCH_TESTS, int(before[-1]), LAUNCH_TESTS, dtype=xp.uint64)
    cuts = [0, *xp.searchsorted(before, marks).tolist(), graph.n]
    out_degrees = xp.diff(graph.offsets)
    arcs_at_once = max(1, THREAD_TESTS // int(out_degrees.max()))
    for begin, end in pairwise(sorted(set(cuts))):
        for first_arc, last_arc in _ranges(int(out_degrees[begin:end].max()), arcs_at_once):
            span = tuple(np.uint32(number) for number in (begin, end, first_arc, last_arc))
            yield _coarse_launch(prepared, "count_by_vertex", end - begin, span)


def _coarse_launch(prepared: Prepared, kernel: str, threads: int, arguments: tuple[Any, ...]) -> Launch:
    return partial(
        prepared.device.launch,
        "wetric_coarse",
        kernel,
        prepared.grid(threads),
        prepared.setting.block,
        (*prepared.arguments, *arguments, prepared.found),
        defines=(*prepared.defines, *_variant(prepared.setting)),
    )


def _variant(setting: WetricSetting) -> Defines:
    retrieval = RETRIEVALS.index(setting.retrieval) if setting.unit == "edge" else 0
    return (("STYLE", STYLES.index(setting.style)), ("RETRIEVAL", retrieval))


def _ranges(total: int, at_once: int) -> Iterator[tuple[int, int]]:
    return ((begin, min(total, begin + at_once)) for begin in range(0, total, at_once))


def bytes_needed(shape: Shape, knobs: Knobs) -> int:
    setting = WetricSetting.of(knobs, shape.n)
    sums = 0 if setting.unit == "edge" else 24 * (shape.n + 1)
    arrows = 20 * (shape.m + 1) + 12 * (shape.n + 1) if setting.style == "arrow" else 0
    listed = 4 * LISTED_NUMBERS[setting.retrieval] * shape.m if setting.unit == "edge" else 0
    return 4 * max(1, setting.matrix_words) + sums + arrows + listed


ALGORITHM = Algorithm(
    name="wetric",
    device="cuda",
    unit="graph",
    answers={"count": DeviceAnswer(prepare, bytes_needed, Cost(2.36e-5, 7.3e-12, 3.2e-12, 3.3e-4, 1e-11))},
    paper="Spaan, Chen, Bader, Varbanescu: Wedge-Parallel Triangle Counting for GPUs, Euro-Par 2025",
    summary="Gives every thread the same number of wedges and looks for their closing arcs in bits or by search.",
    limits='ids by rank; order="id" leaves the vertices as they are, the paper\'s graphs without reordering',
    relabellings=("rank",),
    knobs=(
        Knob("combination", COMBINATIONS[0], "wedge style and what a thread is given", choices=COMBINATIONS),
        Knob("spread", 7, "wedges of a thread, at most 32 and what shared memory holds; of *-wedge", least=1),
        Knob("cooperation", "on", "threads test their wedges in turn; of *-wedge", choices=("on", "off")),
        Knob("matrix_length", 25_000, "last vertices whose arcs are kept as bits"),
        Knob("retrieval", RETRIEVALS[0], "how a thread gets its arc; of *-edge", choices=RETRIEVALS),
        Knob("block", 256, "threads of a block, in whole warps, at most 1024", least=32),
    ),
)
