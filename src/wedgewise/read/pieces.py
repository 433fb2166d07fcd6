"""Pairs in pieces: what the reader of every format gives, and one array of them, counted while it grows.

And what every reader asks of an array of pairs before it becomes an EdgeList.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import InputError
from wedgewise.machine.hardware import usable_threads
from wedgewise.machine.threads import run_tasks
from wedgewise.stages import Column, EdgeList, Origin
from wedgewise.stages.labels import TextLabels
from wedgewise.stages.limits import MAX_LABEL, Limits, available_bytes_for

Piece = NDArray[Any]

COUNTED_BYTES = 8 << 20  # that are asked for at a time
HUGE_PAGES_FROM = 4 << 20
KEPT_DTYPES = (np.dtype(np.int32), np.dtype(np.int64), np.dtype(np.uint32), np.dtype(np.uint64))
SCAN_VALUES = 2**21
_PRIVATE = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}


@dataclass(slots=True)
class PairPieces:
    """The pairs of one source in arrays of shape (k, 2), to be taken once; whoever makes them sets what comes late.

    Attributes
    ----------
    origin : where they come from; its notes may be added to while pieces are taken
    pieces : integer labels, or numbers below `vertices`; nobody writes to a piece after it was given
    expected_pairs : how many there are, by the size of a text file about; None where nothing is known
    vertices, names, columns, ignored_columns, weights, undirected : as in `EdgeList`; known when all pieces were taken
    """

    origin: Origin
    pieces: Iterable[Piece] = ()
    expected_pairs: int | None = None
    vertices: int | None = None
    names: TextLabels | list[Any] | NDArray[Any] | None = None
    columns: tuple[Column, ...] = ()
    ignored_columns: tuple[Column, ...] = ()
    weights: NDArray[np.float64] | None = None
    undirected: bool = False

    @property
    def name(self) -> str:
        """Of the source, for messages."""
        return self.origin.name


def edges_of_pieces(pieces: PairPieces, limits: Limits) -> EdgeList:
    """All pairs in one array, a single piece as it is; MemoryLimitError as soon as memory does not suffice."""
    each = iter(pieces.pieces)
    first = next(each, None)
    second = next(each, None)
    if first is not None and second is None:
        limits.check("pairs", len(first), path=pieces.origin.name)
        pairs = first
    else:
        held = GrowingPairs(limits, pieces.name, expected_pairs=pieces.expected_pairs)
        for piece in (first, second):
            if piece is not None:
                held.add(piece)
        del first, second
        for piece in each:
            held.add(piece)
        pairs = held.array()
    return EdgeList(
        pairs,
        pieces.origin,
        vertices=pieces.vertices,
        names=pieces.names,
        columns=pieces.columns,
        ignored_columns=pieces.ignored_columns,
        weights=pieces.weights,
        undirected=pieces.undirected,
    )


class GrowingPairs:
    """Pairs in one array that grows where it lies, so that it never takes twice its size.

    Its pages come from the system and are counted against the limits before they are written to, a few mebibytes at a
    time. Room for the expected pairs is set aside from the start, since moving it takes time; it takes no memory.
    """

    def __init__(self, limits: Limits, path: str, dtype: Any = np.uint32, *, expected_pairs: int | None = None) -> None:
        self._limits, self._path, self._expected = limits, path, expected_pairs or 0
        self._dtype: np.dtype[Any] = np.dtype(dtype)
        self._memory: mmap.mmap | None = None
        self._rows = self._rows_in_all = self._granted = 0

    def next_rows(self, rows: int, dtype: Any) -> Piece:
        """Where the next rows can be written to, of that type or a wider one; `keep` says how many were."""
        if self._dtype != dtype:
            self._widen(np.dtype(dtype))
        row_bytes = 2 * self._dtype.itemsize
        begin, end = self._rows * row_bytes, (self._rows + rows) * row_bytes
        if end > self._granted:
            ahead = COUNTED_BYTES if self._limits.memory_bytes is not None else max(COUNTED_BYTES, self._granted // 2)
            more = max(end - self._granted, ahead if self._granted else 0)
            self._limits.check_memory(more, path=self._path)
            self._granted += more
        if self._memory is None:
            set_aside = self._expected * row_bytes
            self._memory = _pages(max(end, min(set_aside, available_bytes_for(set_aside, self._limits) // 2)))
        elif end > len(self._memory):
            self._grow(self._memory, max(end, len(self._memory) * 5 // 4))
        return np.frombuffer(self._memory, self._dtype, 2 * rows, begin).reshape(-1, 2)

    def keep(self, rows: int) -> None:
        """The first so many of the next rows are pairs."""
        self._rows += rows
        self._rows_in_all += rows
        self._limits.check("pairs", self._rows_in_all, path=self._path)

    def add(self, piece: Piece) -> None:
        """Pairs behind those that are there."""
        if len(piece):
            self.next_rows(len(piece), piece.dtype)[:] = piece
        self.keep(len(piece))

    def array(self) -> Piece:
        """All pairs; they are given up."""
        found = np.empty((0, 2), self._dtype)
        if self._memory is not None:
            with suppress(BufferError, SystemError, ValueError):  # what was not used stays where it cannot be helped
                self._memory.resize(max(1, self._rows * 2 * self._dtype.itemsize))
            found = np.frombuffer(self._memory, self._dtype, 2 * self._rows).reshape(-1, 2)
        self._memory, self._rows, self._granted = None, 0, 0
        return found

    def _grow(self, memory: mmap.mmap, size: int) -> None:
        try:
            memory.resize(size)
        except (BufferError, SystemError, ValueError):  # somebody looks at it, or the system cannot
            self._memory, held = _pages(size), self._rows * 2 * self._dtype.itemsize
            np.frombuffer(self._memory, np.uint8, held)[:] = np.frombuffer(memory, np.uint8, held)

    def _widen(self, dtype: np.dtype[Any]) -> None:
        """Take a wider type: what is there is copied."""
        wide = np.promote_types(self._dtype, dtype) if self._rows else dtype
        if wide.kind not in "iu":  # of signed and unsigned 64 bits; labels fit into either
            wide = np.dtype(np.uint64)
        if wide == self._dtype:
            return
        old, self._dtype = self.array(), wide
        if len(old):
            self.next_rows(len(old), wide)[:] = old
            self._rows = len(old)


def _pages(size: int) -> mmap.mmap:
    """Memory of our own, which is taken page by page when it is written to."""
    try:
        pages = mmap.mmap(-1, size, **_PRIVATE)
    except OSError as error:
        raise MemoryError(f"no memory for {size:,} bytes") from error
    if size >= HUGE_PAGES_FROM and hasattr(mmap, "MADV_HUGEPAGE"):
        pages.madvise(mmap.MADV_HUGEPAGE)
    return pages


def kept_type(values: NDArray[Any]) -> NDArray[Any]:
    """The integers contiguous, aligned, native, 4 or 8 bytes wide: the same memory where they already are."""
    if values.dtype in KEPT_DTYPES:
        return np.require(values, requirements=["C", "A"])
    wide_enough = values.dtype.itemsize >= 4
    return values.astype(values.dtype.newbyteorder("=") if wide_enough else np.int32, order="C")


def first_outside(values: NDArray[Any], below: int = MAX_LABEL + 1) -> tuple[int, int] | None:
    """Position (in flat order) and value of the first number outside 0 … below − 1, or None."""
    lowest, highest = np.iinfo(values.dtype).min, np.iinfo(values.dtype).max
    if lowest >= 0 and highest < below:
        return None
    bound = min(below, highest + 1)
    flat = values.reshape(-1)
    unsigned = flat.view(f"{flat.dtype.byteorder}u{flat.itemsize}")  # in which negative numbers are the largest

    def is_outside(block: int, _worker: int) -> bool:
        return int(unsigned[block * SCAN_VALUES : (block + 1) * SCAN_VALUES].max()) >= bound

    blocks = run_tasks(is_outside, -(-len(flat) // SCAN_VALUES), usable_threads())
    if True not in blocks:
        return None
    begin = blocks.index(True) * SCAN_VALUES
    at = begin + int(np.argmax(unsigned[begin : begin + SCAN_VALUES] >= bound))
    return at, int(flat[at])


def finite_weights(values: NDArray[Any], name: str) -> NDArray[np.float64]:
    """Weights as float64, the same memory where they are that already; every one must be a finite number."""
    if values.dtype.kind not in "biuf":
        raise InputError(f"{name}: {_first_not_a_number(values)}; weights are real numbers")
    finite = np.isfinite(values)
    if not finite.all():
        row = int(np.argmin(finite))
        raise InputError(f"{name}: the weight of row {row} is {values[row]}; drop such rows or give them a number")
    return np.ascontiguousarray(values, np.float64)


def _first_not_a_number(values: NDArray[Any]) -> str:
    """What keeps an array from holding weights: the first odd value of an array of objects, else its type."""
    if values.dtype.kind == "O" and values.ndim == 1:
        for row, value in enumerate(values):
            if not isinstance(value, Real):
                return f"the weight of row {row} is {value!r} of type {type(value).__name__}"
    return f"weights of dtype {values.dtype}"


def interleave(sources: NDArray[Any], targets: NDArray[Any], dtype: Any = None) -> NDArray[Any]:
    """Two index arrays as one (k, 2) array of a type, by default the wider one."""
    pairs = np.empty((len(sources), 2), dtype or np.promote_types(sources.dtype, targets.dtype))
    pairs[:, 0] = sources
    pairs[:, 1] = targets
    return pairs
