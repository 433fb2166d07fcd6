"""What a graph holds on a GPU: its simple form if it was cleaned there, oriented forms, positions of its edges."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import DeviceMemoryError
from wedgewise.machine.gpu import Array, CopyingDevice
from wedgewise.machine.out_of_memory import memory_for
from wedgewise.prepare.clean import clean_device_bytes, clean_on_device, most_slots
from wedgewise.prepare.orient import arcs_of_edges_on_device, orient_device_bytes, orient_on_device, relabel_on_device
from wedgewise.prepare.ranked_arcs import (
    RAW_DEGREE,
    EndCounts,
    RankedGraph,
    rank_device_bytes,
    rank_on_device,
    simple_device_bytes,
)
from wedgewise.stages import DeviceGraph, DeviceSimpleGraph, EdgeList, OrientedGraph, SimpleGraph
from wedgewise.stages.labels import TextLabels
from wedgewise.stages.limits import Limits

Key = tuple[str, str]


class DeviceForms:
    """The forms of one graph on one device, and the seconds that copying and making them took since last asked.

    The simple form is `simple` if the graph was cleaned here, else that of the `host`.
    """

    def __init__(self, device: CopyingDevice, host: SimpleGraph | None) -> None:
        self.device, self._host = device, host
        self._simple: DeviceSimpleGraph | None = None
        self._ranked: RankedGraph | None = None
        self._oriented: dict[Key, DeviceGraph] = {}
        self._positions: dict[Key, Array] = {}
        self._seconds: dict[str, float] = {}

    def clean(self, edge_list: EdgeList, pairs: Array | None, limits: Limits) -> None:
        """Clean pairs that lie here, or those of the list, which are copied first."""
        count, itemsize = edge_list.pairs.shape[0], edge_list.pairs.dtype.itemsize
        slots = 2 * count if edge_list.vertices is None else edge_list.vertices
        copied = 2 * itemsize * count if pairs is None else 0
        self._check(copied + clean_device_bytes(count, itemsize, slots))
        if pairs is None:
            with self.stage("copy"):
                pairs = self.device.upload(edge_list.pairs)
        with self.stage("clean"):
            self._simple = clean_on_device(edge_list, pairs, self.device, limits=limits)

    @memory_for("clean")
    def rank(self, edge_list: EdgeList, pairs: Array | None, limits: Limits, *, consume: bool) -> None:
        """Make oriented rows of such pairs at once, with one sort, for a graph that is to be counted.

        With `consume`, the memory of pairs that lie here may be overwritten.
        """
        device, count, itemsize = self.device, edge_list.pairs.shape[0], edge_list.pairs.dtype.itemsize
        ids = most_slots(edge_list, count)
        self._check((2 * itemsize * count if pairs is None else 0) + 4 * ids)
        with self.stage("copy"):
            counts = EndCounts(ids, device)
            if pairs is None:
                pairs, consume = device.upload(edge_list.pairs, counts.add), True
            else:
                counts.add(pairs)
        self._check(rank_device_bytes(count, itemsize, counts.slots))
        with self.stage("clean and orient"):
            self._ranked = rank_on_device(edge_list, pairs, device, counts, consume=consume, limits=limits)

    @property
    def cleaned(self) -> DeviceSimpleGraph | RankedGraph | None:
        """What was made of pairs here."""
        return self._simple or self._ranked

    @property
    def is_ranked(self) -> bool:
        """Whether oriented rows were made of pairs at once."""
        return self._ranked is not None

    @property
    def simple(self) -> DeviceSimpleGraph | None:
        """The simple graph of pairs that came here; of ranked ones it is made at the first call."""
        if self._simple is None and self._ranked is not None:
            self._check(simple_device_bytes(self._ranked.slot_count, self._ranked.m))
            with self.stage("clean"):
                self._simple = self._ranked.simple(self.device.xp)
        return self._simple

    def oriented(self, order: str, relabelling: str, made: OrientedGraph | None) -> DeviceGraph:
        """An oriented form, prepared at the first call: copied if it is `made`, else of the simple graph."""
        if self._ranked is not None and order == RAW_DEGREE:
            return self._ranked.oriented
        if (order, relabelling) not in self._oriented:
            if made is not None:
                self._check(made.nbytes)
                with self.stage("copy"):
                    self._oriented[order, relabelling] = copy_graph(made, self.device)
            else:
                by_rank = self._by_rank(order)
                with self.stage("orient"):
                    self._oriented[order, relabelling] = relabel_on_device(by_rank, relabelling, self.device)
        return self._oriented[order, relabelling]

    def positions(self, oriented: DeviceGraph) -> Array:
        """Where each edge is among the arcs of an oriented form, found at the first call."""
        key = (oriented.order, oriented.named_by)
        if key not in self._positions:
            simple = self._simple_form()
            with self.stage("orient"):
                self._positions[key] = arcs_of_edges_on_device(simple, oriented, self.device)
        return self._positions[key]

    def to_host(self) -> SimpleGraph:
        """The simple graph of pairs that came here; made there where the device has too little memory for that."""
        download: Callable[[Any], NDArray[Any]] = self.device.download
        try:
            simple = self.simple
        except DeviceMemoryError:
            assert self._ranked is not None
            simple, download = self._ranked.downloaded(download).simple(np), np.asarray
        assert simple is not None
        slots = None if simple.slots is None else download(simple.slots)
        labels: Any = slots if simple.labels is None else simple.labels
        return SimpleGraph(
            simple.n,
            download(simple.slot_keys),
            slots,
            simple.slot_count,
            download(simple.degrees),
            self.device.download(labels) if lies_on_device(labels) else labels,
            simple.report,
        )

    def degrees(self) -> NDArray[np.uint32]:
        """The degrees of the simple graph that was cleaned here."""
        assert self.simple is not None
        return self.device.download(self.simple.degrees)

    @property
    def seconds(self) -> float:
        """All seconds since they were last taken."""
        return sum(self._seconds.values())

    def take_seconds(self) -> dict[str, float]:
        """Seconds by stage since the last call."""
        taken, self._seconds = self._seconds, {}
        return taken

    @property
    def nbytes(self) -> int:
        """Bytes held on the device."""
        arrays = [
            array for form in self._oriented.values() for array in (form.offsets, form.out_neighbours, form.vertex_of)
        ]
        if self._simple is not None:
            arrays += [self._simple.slot_keys, self._simple.degrees]
        if self._ranked is not None:
            rows = self._ranked.oriented
            arrays += [rows.offsets, rows.out_neighbours, rows.vertex_of]
        if (cleaned := self.cleaned) is not None:
            arrays += [] if cleaned.slots is None else [cleaned.slots]
            arrays += [cleaned.labels] if lies_on_device(cleaned.labels) else []
        return sum(int(array.nbytes) for array in (*arrays, *self._positions.values()))

    def release(self) -> None:
        """Give back what can be prepared again, to others too."""
        with self.device.memory():
            self._oriented.clear()
            self._positions.clear()

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Memory of the device, and the seconds of what is done with it."""
        begin = time.perf_counter()
        with self.device.memory():
            yield
            self.device.synchronize()
        self._seconds[name] = self._seconds.get(name, 0.0) + time.perf_counter() - begin

    def _by_rank(self, order: str) -> DeviceGraph:
        if (order, "rank") not in self._oriented:
            simple = self._simple_form()
            self._check(orient_device_bytes(simple.slot_count, simple.m) * (2 if order == "core" else 1))
            with self.stage("orient"):
                self._oriented[order, "rank"] = orient_on_device(simple, order, self.device)
        return self._oriented[order, "rank"]

    def _simple_form(self) -> DeviceSimpleGraph:
        """The simple graph on the device; a copy of the host's is not kept."""
        if self.simple is not None:
            return self.simple
        host = self._host
        assert host is not None
        self._check(host.slot_keys.nbytes + host.degrees.nbytes)
        with self.stage("copy"):
            slots = None if host.slots is None else self.device.upload(host.slots)
            keys, degrees = self.device.upload(host.slot_keys), self.device.upload(host.degrees)
        return DeviceSimpleGraph(host.n, keys, slots, host.slot_count, degrees, host.labels, host.report)

    def _check(self, need: int) -> None:
        """Refuse what the device has too little memory for, before anything is allocated."""
        free = self.device.free_bytes()
        if need > free:
            raise DeviceMemoryError(self.device.name, wanted=need, free=free)


def lies_on_device(labels: Any) -> bool:
    """Whether labels are an array of a device; None, where they are the slots, is not."""
    return labels is not None and not isinstance(labels, (range, list, TextLabels, np.ndarray))


def copy_graph(graph: OrientedGraph, device: CopyingDevice) -> DeviceGraph:
    """The same graph on the device."""
    offsets, heads, vertex_of = map(device.upload, (graph.offsets, graph.out_neighbours, graph.vertex_of))
    return DeviceGraph(graph.n, offsets, heads, vertex_of, graph.order, graph.named_by, graph.wedges)
