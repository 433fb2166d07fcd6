"""Any stretch of a graph's triangles, by number, as a device lists them.

Numbers and rows are those of `wedgewise.run.listing`. Triangles are written, turned into vertices and brought back
in pieces. Device memory: `PIECE_BYTES` per triangle of a piece within the limit; a piece begins and ends with whole
arcs, so that up to two arcs' triangles come on top.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from wedgewise.algorithms._contract import DeviceWork
from wedgewise.errors import DeviceMemoryError
from wedgewise.machine.gpu import Array, CopyingDevice
from wedgewise.machine.out_of_memory import memory_for
from wedgewise.run.listing import Numbering, Triples
from wedgewise.stages import DeviceGraph

PIECE_BYTES = 60  # of a triangle: 12 as ids, 48 while they are turned into ascending vertices


class DeviceListing:
    """The triangles of a graph by number, once a device knows the counts of all arcs.

    Parameters
    ----------
    work : the finished work of a listing on the device
    graph : the graph that it was prepared for
    device : where both lie
    limit_bytes : device memory for the triangles of a piece; where that cannot be had, pieces are halved
    """

    def __init__(self, work: DeviceWork, graph: DeviceGraph, device: CopyingDevice, limit_bytes: int) -> None:
        assert work.filled is not None
        assert work.fill is not None
        self.work, self.device, self.vertex_of = work, device, graph.vertex_of
        self.numbering = Numbering(work.filled, device.download)
        self.piece_triangles = max(1, limit_bytes // PIECE_BYTES)

    @property
    def total(self) -> int:
        """How many triangles there are."""
        return self.numbering.total

    @memory_for("list")
    def stretch(self, start: int, stop: int, on_done: Callable[[int, int], None] | None = None) -> Triples:
        """Triangles number start … stop − 1 as rows of three ascending vertices."""
        triples = np.empty((stop - start, 3), np.uint32)
        begin, pieces = start, 0
        while begin < stop:
            end = min(begin + self.piece_triangles, stop)
            try:
                with self.device.memory():
                    triples[begin - start : end - start] = self.device.download(self._piece(begin, end))
            except DeviceMemoryError:
                if end - begin == 1:
                    raise
                self.piece_triangles = (end - begin) // 2
                continue
            begin, pieces = end, pieces + 1
            if on_done is not None:
                on_done(pieces, pieces - (begin - stop) // self.piece_triangles)
        return triples

    def batches(self, start: int, stop: int, size: int) -> Iterator[Triples]:
        """The same rows, so many at a time."""
        return (self.stretch(at, min(at + size, stop)) for at in range(start, stop, size))

    def _piece(self, start: int, stop: int) -> Array:
        """Rows of ascending vertices on the device, from the whole arcs that hold them."""
        first_arc, before_first, _ = self.numbering.arc_of(start)
        last_arc, _, after_last = self.numbering.arc_of(stop - 1)
        triples = self.device.xp.empty((after_last - before_first, 3), np.uint32)
        assert self.work.fill is not None
        self.work.fill(first_arc, last_arc + 1, triples.reshape(-1))
        return self._named(triples[start - before_first : stop - before_first])

    def _named(self, triples: Array) -> Array:
        """Ids turned into vertices, ascending in each row."""
        xp = self.device.xp
        u, v, w = (self.vertex_of[triples[:, column]] for column in range(3))
        low, high = xp.minimum(u, v), xp.maximum(u, v)
        return xp.stack([xp.minimum(low, w), xp.maximum(low, xp.minimum(high, w)), xp.maximum(high, w)], axis=1)
