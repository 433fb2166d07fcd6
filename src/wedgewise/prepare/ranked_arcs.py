"""Raw pairs → oriented rows on a device with one sort, in the order of the raw degrees; a simple graph only if asked.

    pairs ─count ends→ raw degrees ─sort→ ranks ─pairs to keys, sort→ keys ─first of each arc→ rows

The raw degree of a vertex counts loops and copies too: any total order gives the exact count. Keys are those that
`clean_arrays` sorts, of ranks instead of slots, so that its report follows from them; keys of 32-bit pairs that nobody
else holds lie in the pairs' memory. ``ranked_arcs.cu`` has the kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wedgewise.machine.gpu import Array, Device
from wedgewise.machine.out_of_memory import memory_for
from wedgewise.prepare.clean import NumberedPairs, number_on_device, report_of, unsigned
from wedgewise.prepare.clean_arrays import SORTED_KEY_BYTES, parts, run_lengths, temporary_bytes
from wedgewise.prepare.orient_arrays import ascending_by, count_wedges, inverse, pack, tails_of_rows
from wedgewise.prepare.radix import changed
from wedgewise.stages import CleanReport, DeviceGraph, DeviceSimpleGraph, EdgeList, Labels
from wedgewise.stages.limits import DEFAULT_LIMITS, Limits

RAW_DEGREE = "raw-degree"
STEM = "ranked_arcs"
MAX_PAIRS = 1 << 31  # from here on, a raw degree might need more than 32 bits
BLOCK, BLOCKS_PER_SM = 256, 32
TILE_KEYS = 2048  # as in ranked_arcs.cu


@dataclass(frozen=True, slots=True)
class RankedGraph:
    """An oriented graph whose ids are ranks by raw degree, and what else its simple graph is made of."""

    oriented: DeviceGraph
    slots: Array | None
    slot_count: int
    labels: Labels | None
    report: CleanReport

    @property
    def n(self) -> int:
        return self.oriented.n

    @property
    def m(self) -> int:
        return self.oriented.m

    def simple(self, xp: Any) -> DeviceSimpleGraph:
        """What `clean_on_device` makes of the same pairs, to the byte."""
        graph = self.oriented
        slot_of = graph.vertex_of if self.slots is None else self.slots[graph.vertex_of]
        tails, keys = tails_of_rows(graph.offsets, graph.m, xp), xp.empty(graph.m, xp.uint64)
        for part in parts(graph.m):
            u, v = slot_of[tails[part]], slot_of[graph.out_neighbours[part]]
            pack(xp.minimum(u, v), xp.maximum(u, v), keys[part])
        del tails
        keys.sort()
        seconds = keys.astype(xp.uint32)
        seconds.sort()
        by_slot = run_lengths(keys, self.slot_count, 32, xp) + run_lengths(seconds, self.slot_count, 0, xp)
        degrees = by_slot if self.slots is None else by_slot[self.slots]
        labels = self.labels if self.labels is not None or self.slots is not None else range(graph.n)
        return DeviceSimpleGraph(graph.n, keys, self.slots, self.slot_count, degrees, labels, self.report)

    def downloaded(self, download: Callable[[Array], NDArray[Any]]) -> RankedGraph:
        """The same on the host."""
        graph, slots = self.oriented, None if self.slots is None else download(self.slots)
        offsets, heads, vertex_of = map(download, (graph.offsets, graph.out_neighbours, graph.vertex_of))
        rows = replace(graph, offsets=offsets, out_neighbours=heads, vertex_of=vertex_of)
        return replace(self, oriented=rows, slots=slots)


class EndCounts:
    """How often each id below a bound is an end of pairs that come in parts, and the largest id of all."""

    def __init__(self, ids: int, device: Device) -> None:
        self._device = device
        self._largest = device.xp.zeros(1, device.xp.uint64)
        self.degrees = device.xp.zeros(ids, device.xp.uint32)

    @classmethod
    def of(cls, pairs: Array, ids: int, device: Device) -> EndCounts:
        """Those of pairs that are there."""
        counts = cls(ids, device)
        counts.add(pairs)
        return counts

    def add(self, pairs: Array) -> None:
        """Count the ends of more pairs; several threads may."""
        ends = unsigned(pairs).reshape(-1)
        arguments = (ends, np.uint64(len(ends)), np.uint64(len(self.degrees)), self.degrees, self._largest)
        _launch(self._device, "count_ends", len(ends), arguments, ends)

    @property
    def largest(self) -> int:
        """The largest id, by its bits."""
        return int(self._largest[0])

    @property
    def slots(self) -> int | None:
        """How many ids there are up to the largest; None where some are not below the bound."""
        return self.largest + 1 if self.largest < len(self.degrees) else None


@memory_for("clean")
def rank_on_device(
    edge_list: EdgeList,
    pairs: Array,
    device: Device,
    counts: EndCounts,
    *,
    consume: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> RankedGraph:
    """Oriented rows of raw pairs that lie on a device, whose ends were counted, with the errors of `clean`.

    There are some pairs, fewer than `MAX_PAIRS`. With `consume`, their memory may be overwritten.
    """
    xp = device.xp
    numbered = number_on_device(edge_list, pairs, counts.largest, xp, limits)
    if numbered.anew:
        counts = EndCounts.of(numbered.pairs, numbered.slot_count, device)
    ranks = _Ranks.of(counts.degrees[: numbered.slot_count].copy(), numbered.labels, xp)
    keys = _sorted_keys(numbered, ranks.of_slot, device, edge_list.origin.name, consume=consume or numbered.anew)
    oriented, loops, duplicates = _rows(keys, ranks.vertex_of, device)
    report = report_of(edge_list, len(pairs), oriented.m, loops, duplicates)
    return RankedGraph(oriented, ranks.slots, numbered.slot_count, numbered.labels, report)


def rank_device_bytes(pairs: int, itemsize: int, slots: int | None) -> int:
    """At most what `rank_on_device` takes beyond the pairs and the counts of their ends.

    Per pair: a key and the sort's copy of it, and, where labels must be numbered (slots are None), two numbers and two
    labels. Per slot: a degree, its key and the sort's copy, a rank, a vertex, and numbers while these are made.
    """
    numbering = (8 + 2 * itemsize) * pairs if slots is None else 0
    slots = 2 * pairs if slots is None else slots
    return SORTED_KEY_BYTES * pairs + numbering + 48 * slots + temporary_bytes(slots)


def simple_device_bytes(slots: int, m: int) -> int:
    """At most what making a simple graph takes beyond the rows.

    Per edge: a key and the sort's copy, or its second end and a copy of these. Per slot: rows and counts of both ends.
    """
    return (SORTED_KEY_BYTES + 4) * m + 28 * slots + temporary_bytes(max(slots, m))


class _Ranks(NamedTuple):
    """The slots that are vertices, None for all of them; the rank of each slot; the vertex of each rank."""

    slots: Array | None
    of_slot: Array
    vertex_of: Array

    @classmethod
    def of(cls, degrees: Array, labels: Any, xp: Any) -> _Ranks:
        """By ascending degree, ties by slot; slots that do not occur are no vertices unless there are labels."""
        order = ascending_by(degrees, xp)
        ranks = inverse(order, xp)
        occurs = degrees > 0
        silent = len(degrees) - (int(xp.count_nonzero(occurs)) if labels is None else len(degrees))
        if silent == 0:
            return cls(None, ranks, order)
        vertex_of_slot = xp.cumsum(occurs, dtype=xp.uint32) - xp.uint32(1)
        return cls(xp.flatnonzero(occurs).astype(xp.uint32), ranks - xp.uint32(silent), vertex_of_slot[order[silent:]])


def _sorted_keys(numbered: NumberedPairs, ranks: Array, device: Device, name: str, *, consume: bool) -> Array:
    """The keys of `clean_arrays` of all pairs, by ranks; an id that is no slot is one that has changed."""
    xp, pairs = device.xp, numbered.pairs
    outside = xp.zeros(1, xp.uint32)
    consume = consume and pairs.dtype.itemsize == 4
    keys = pairs.view(xp.uint64).reshape(-1) if consume else xp.empty(len(pairs), xp.uint64)
    arguments = (pairs, np.uint64(len(pairs)), ranks, np.uint64(numbered.slot_count), keys, outside)
    _launch(device, "write_keys", len(pairs), arguments, pairs)
    if int(outside[0]) > 0:
        raise changed(name)
    keys.sort()
    return keys


def _rows(keys: Array, vertex_of: Array, device: Device) -> tuple[DeviceGraph, int, int]:
    """CSR of the arcs that sorted keys hold, how many keys are loops, and how many equal the one before."""
    xp, count, n = device.xp, np.uint64(len(keys)), len(vertex_of)
    tiles = -(-len(keys) // TILE_KEYS)
    arcs, dropped = xp.zeros(tiles + 1, xp.uint32), xp.zeros(2, xp.uint64)
    device.launch(STEM, "count_arcs", tiles, BLOCK, (keys, count, arcs[1:], dropped))
    before = xp.cumsum(arcs, dtype=xp.uint64)
    m = int(before[-1])
    heads, out_degrees = xp.empty(m, xp.uint32), xp.zeros(n, xp.uint32)
    device.launch(STEM, "write_arcs", tiles, BLOCK, (keys, count, before, np.uint64(m), heads, out_degrees))
    offsets = xp.zeros(n + 1, xp.uint32 if m < 2**31 else xp.uint64)
    xp.cumsum(out_degrees, dtype=offsets.dtype, out=offsets[1:])
    duplicates, loops = dropped.tolist()
    oriented = DeviceGraph(n, offsets, heads, vertex_of, RAW_DEGREE, "rank", count_wedges(out_degrees))
    return oriented, loops, duplicates


def _launch(device: Device, kernel: str, count: int, arguments: tuple[Any, ...], ids: Array) -> None:
    """A kernel over so many ends or pairs, compiled for ids of this width."""
    grid = max(1, min(-(-count // BLOCK), BLOCKS_PER_SM * device.sms))
    device.launch(STEM, kernel, grid, BLOCK, arguments, defines=(("ID_BITS", 8 * int(ids.dtype.itemsize)),))
