"""A ring of pinned buffers: how arrays in pageable memory get to a device and back.

A device copies from pinned memory several times faster than from pageable memory, but pinning an array takes longer
than copying it. So arrays pass through `BUFFERS` buffers that stay pinned: threads fill some of them while the bus
empties others. Each thread takes whole pieces: the next piece of the array, then the buffer that has been on its way
for longest. Buffers belong to nobody between two pieces, so any number of transfers may run at once.

The buffers hold 64 MiB, which caches of a host may keep; all of them are pinned for the first array, or by `Ring.pin`,
and kept.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from wedgewise.machine import hardware
from wedgewise.machine.streams import Moved, Stamp
from wedgewise.machine.threads import run_tasks

PIECE_BYTES, BUFFERS = 1 << 22, 16
SECTION_BYTES = 1 << 26  # whole pieces that are worked on together while later ones are on their way
COPYING_THREADS = 8
STAGING_THREADS = 4  # of each array, where several arrays are on their way at once
DIRECT_BYTES = 1 << 20

Bytes = NDArray[np.uint8]
Arrived = Callable[[int, int], None]


class Bus(Protocol):
    """Copies between pinned memory and a device, one after the other, while the host does something else."""

    def pin(self, size: int) -> Bytes:
        """New pinned memory."""

    def address(self, array: Any) -> int:
        """Where an array of the device lies."""

    def follow(self) -> None:
        """Let later copies wait for all that the calling thread has started on the device."""

    def precede(self) -> None:
        """Let what the calling thread starts on the device from now on wait for all copies so far."""

    def send(self, buffer: Bytes, address: int) -> Stamp:
        """Start a copy to the device; the point behind it."""

    def fetch(self, address: int, buffer: Bytes) -> Stamp:
        """Start a copy from the device; the point behind it."""

    def wait(self) -> None:
        """Wait until no copy is under way."""


@dataclass(slots=True)
class _RingBuffer:
    """A buffer and the last copy out of it."""

    memory: Bytes | None = None
    sent: Stamp | None = None

    def buffer(self, bus: Bus, size: int) -> Bytes:
        """The first bytes, free to be overwritten."""
        if self.memory is None:
            self.memory = bus.pin(PIECE_BYTES)
        if self.sent is not None:
            self.sent.synchronize()
            self.sent = None
        return self.memory[:size]


class Ring:
    """Copies arrays through pinned buffers; several threads may use it at once."""

    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self._is_pinned = False
        self._slots: SimpleQueue[_RingBuffer] = SimpleQueue()
        for _ in range(BUFFERS):
            self._slots.put(_RingBuffer())

    def pin(self) -> None:
        """Pin all buffers, which takes about as long as copying them ten times; the next ones would wait for it."""
        if self._is_pinned:
            return
        for _ in range(BUFFERS):  # one at a time: another thread may do the same
            with self._free_slot() as slot:
                slot.buffer(self.bus, 0)
        self._is_pinned = True

    def send(self, source: NDArray[Any], target: Any, arrived: Arrived | None = None) -> None:
        """Copy an array to one of as many bytes on the device; it is there on return.

        Both are C-contiguous. However this ends, by Ctrl-C too, nothing is on its way afterwards. Threads call
        ``arrived(begin, end)`` for ranges of bytes, each once: work that is started then waits for no other copies.
        """
        flat, address = _bytes(source), self.bus.address(target)
        sections = None if arrived is None else _Sections(len(flat), self.bus, arrived)

        def copy(begin: int, end: int) -> None:
            self._send(flat[begin:end], address + begin)
            if sections is not None:
                sections.count(begin, end)

        self._in_pieces(copy, len(flat))

    def fetch(self, source: Any, target: NDArray[Any]) -> None:
        """Copy an array of the device to one of as many elements, of any type; otherwise as `send`."""
        dtype, flat, address = source.dtype, target.reshape(-1), self.bus.address(source)

        def copy(begin: int, end: int) -> None:
            part = flat[begin // dtype.itemsize : end // dtype.itemsize]
            with self._free_slot() as slot:
                buffer = slot.buffer(self.bus, end - begin)
                self.bus.fetch(address + begin, buffer).synchronize()
                part[:] = buffer.view(dtype)

        self._in_pieces(copy, len(flat) * dtype.itemsize)

    def _in_pieces(self, copy: Callable[[int, int], None], size: int) -> None:
        """Call ``copy(begin, end)`` for every piece of so many bytes, from several threads."""
        begins = range(0, size, PIECE_BYTES)
        self.pin()
        self.bus.follow()
        try:
            run_tasks(lambda at, _: copy(begins[at], min(begins[at] + PIECE_BYTES, size)), len(begins), _threads())
        finally:
            self.bus.wait()

    def stage(self, source: NDArray[Any], target: Any) -> None:
        """Start to copy an array to the device from the calling thread alone.

        On return `source` may change; `target` is complete after ``bus.wait()``. Whoever made it calls ``bus.follow()``
        before.
        """
        flat, address = _bytes(source), self.bus.address(target)
        for begin in range(0, len(flat), PIECE_BYTES):
            self._send(flat[begin : begin + PIECE_BYTES], address + begin)

    def stage_timed(
        self, sources: Sequence[NDArray[Any]], targets: Sequence[Any], stamp: Callable[[], Stamp]
    ) -> tuple[Moved, ...]:
        """The same for several arrays from several threads; small ones share a piece.

        Arrays whose targets follow each other are one copy. Returns when each piece was where; ``stamp()`` is a point
        among the copies.
        """
        pieces = _packed(list(map(_bytes, sources)), list(map(self.bus.address, targets)))

        def send(piece: int, _: int) -> Moved:
            return self._send_packed(pieces[piece], stamp)

        return tuple(run_tasks(send, len(pieces), min(STAGING_THREADS, _threads())))

    def _send_packed(self, parts: list[tuple[Bytes, int]], stamp: Callable[[], Stamp]) -> Moved:
        """Copy what fits one buffer together, each part to its own address."""
        size = sum(len(part) for part, _ in parts)
        with self._free_slot() as slot:
            buffer = slot.buffer(self.bus, size)
            since, at = time.perf_counter(), 0
            for part, _ in parts:
                buffer[at : at + len(part)] = part
                at += len(part)
            filled, before = (since, time.perf_counter()), stamp()
            for begin, end, address in _stretches(parts):
                slot.sent = self.bus.send(buffer[begin:end], address)
            return Moved(filled, before, stamp(), size)

    def _send(self, piece: Bytes, address: int) -> None:
        with self._free_slot() as slot:
            buffer = slot.buffer(self.bus, len(piece))
            buffer[:] = piece
            slot.sent = self.bus.send(buffer, address)

    @contextmanager
    def _free_slot(self) -> Iterator[_RingBuffer]:
        """The slot that has been on its way for longest."""
        slot = self._slots.get()
        try:
            yield slot
        finally:
            self._slots.put(slot)


class _Sections:
    """Which sections of an array are on their way with all of their bytes; work on them follows their copies."""

    def __init__(self, size: int, bus: Bus, arrived: Arrived) -> None:
        self._bus, self._arrived = bus, arrived
        self._ends = [min(begin + SECTION_BYTES, size) for begin in range(0, size, SECTION_BYTES)]
        self._left = [end - number * SECTION_BYTES for number, end in enumerate(self._ends)]
        self._lock = threading.Lock()

    def count(self, begin: int, end: int) -> None:
        """A range within one section is on its way; behind the last one, start the work on the section."""
        section = begin // SECTION_BYTES
        with self._lock:
            self._left[section] -= end - begin
            is_complete = self._left[section] == 0
        if is_complete:
            self._bus.precede()
            self._arrived(section * SECTION_BYTES, self._ends[section])


class _PieceMemory(NamedTuple):
    """Memory on the device for the rows of one piece, and which of them have come."""

    rows: Any
    stretches: list[tuple[int, int]]

    def filled(self) -> list[Any]:
        """The rows that have come, in as few parts as there are; an empty part where none has."""
        bounds = [[0, 0]]
        for begin, end in sorted(self.stretches):
            if begin == bounds[-1][1]:
                bounds[-1][1] = end
            else:
                bounds.append([begin, end])
        return [self.rows[begin:end] for begin, end in bounds]


class Arriving(AbstractContextManager["Arriving"]):
    """Pairs on their way to a device: parts are copied while later ones are still being parsed.

        with device.arriving() as arriving:
            edge_list = read_edges(path, receiver=arriving)
            pairs = arriving.finish()

    Text of integer labels comes chunk by chunk, compressed or not: ``begin``, ``put`` for every part in any order,
    ``end``. All other formats come whole, by ``take``, when they have been checked. A text file takes 8 bytes of device
    memory per line (16 where a label needs 64 bits), comments included. Leaving the context waits for copies under way.
    """

    def __init__(self, xp: Any, ring: Ring) -> None:
        self._xp = xp
        self._ring = ring
        self._pieces: list[_PieceMemory] = []
        self._last_is_open = False

    def __exit__(self, *_: object) -> None:
        self._ring.bus.wait()

    @property
    def begun(self) -> bool:
        """Whether anything was announced."""
        return bool(self._pieces)

    def begin(self, rows: int, dtype: Any) -> None:
        """Take memory for a piece of at most that many rows; one that has not ended is forgotten."""
        if self._last_is_open:
            self._ring.bus.wait()
            self._pieces.pop()
        self._pieces.append(_PieceMemory(self._xp.empty((rows, 2), dtype), []))
        self._last_is_open = True
        self._ring.bus.follow()

    def put(self, row: int, pairs: NDArray[Any]) -> None:
        """Copy pairs to the rows from `row` on; several threads may do so at once."""
        piece = self._pieces[-1]
        self._ring.stage(pairs, piece.rows[row : row + len(pairs)])
        piece.stretches.append((row, row + len(pairs)))

    def end(self) -> None:
        """The piece is complete; rows that nothing was put to do not count."""
        self._last_is_open = False

    def take(self, pairs: NDArray[Any]) -> None:
        """All rows of a piece at once, copied by several threads."""
        self.begin(len(pairs), pairs.dtype)
        piece = self._pieces[-1]
        self._ring.send(pairs, piece.rows)
        piece.stretches.append((0, len(pairs)))
        self.end()

    def finish(self) -> Any:
        """All pairs, shape (k, 2), in the memory they came to if they lie there in one stretch.

        Otherwise they are joined, which takes as much memory again until the parts are given back.
        """
        self._ring.bus.wait()
        parts = [part for piece in self._pieces for part in piece.filled()]
        self._pieces.clear()
        return parts[0] if len(parts) == 1 else self._xp.concatenate(parts)


def _bytes(array: NDArray[Any]) -> Bytes:
    return array.reshape(-1).view(np.uint8)


def _packed(flats: list[Bytes], addresses: list[int]) -> list[list[tuple[Bytes, int]]]:
    """The bytes of arrays with the addresses that they go to, as many together as a buffer holds."""
    pieces: list[list[tuple[Bytes, int]]] = []
    available_bytes = 0
    for flat, address in zip(flats, addresses, strict=True):
        begin = 0
        while begin < len(flat):
            if available_bytes == 0:
                pieces.append([])
                available_bytes = PIECE_BYTES
            part = flat[begin : begin + available_bytes]
            pieces[-1].append((part, address + begin))
            begin += len(part)
            available_bytes -= len(part)
    return pieces


def _stretches(parts: list[tuple[Bytes, int]]) -> list[tuple[int, int, int]]:
    """Where parts whose addresses follow each other begin and end in a buffer that has all of them, and go to."""
    found: list[tuple[int, int, int]] = []
    at = 0
    for part, address in parts:
        begin, last_address = at, address
        if found and found[-1][2] + at - found[-1][0] == address:
            begin, _, last_address = found.pop()
        at += len(part)
        found.append((begin, at, last_address))
    return found


def _threads() -> int:
    return min(COPYING_THREADS, hardware.usable_threads())
