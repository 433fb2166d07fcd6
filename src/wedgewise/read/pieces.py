"""Pairs in pieces: what the reader of every format gives, and one array of them, counted while it grows."""

from __future__ import annotations

import mmap
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from wedgewise.stages import Column, EdgeList, Origin
from wedgewise.stages.labels import TextLabels
from wedgewise.stages.limits import Limits, must_look

Piece = NDArray[Any]

COUNTED_BYTES = 8 << 20  # that are asked for at a time
HUGE_PAGES_FROM = 4 << 20
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

    def edge_list(self, pairs: NDArray[Any]) -> EdgeList:
        """All that was found out, with all pairs."""
        return EdgeList(
            pairs,
            self.origin,
            vertices=self.vertices,
            names=self.names,
            columns=self.columns,
            ignored_columns=self.ignored_columns,
            weights=self.weights,
            undirected=self.undirected,
        )


class Receiver(Protocol):
    """Takes the pairs of a file while it is read: ``begin``, ``put`` for every part in any order, ``end``.

    Text of integer labels is handed over chunk by chunk, compressed or not. All other formats are handed over whole
    by ``take`` when they have been checked.
    """

    @property
    def begun(self) -> bool:
        """Whether anything was announced."""

    def begin(self, rows: int, dtype: Any) -> None:
        """Announce a piece of at most that many rows; one that has not ended is void: its labels were too large."""

    def put(self, row: int, pairs: NDArray[Any]) -> None:
        """Pairs of the piece, from `row` on; they may be overwritten afterwards. Called by several threads at once."""

    def end(self) -> None:
        """The piece is complete; rows that nothing was put to do not count."""

    def take(self, pairs: NDArray[Any]) -> None:
        """A whole piece at once."""


def edges_of_pieces(pieces: PairPieces, limits: Limits) -> EdgeList:
    """All pairs in one array, a single piece as it is; MemoryLimitError as soon as memory does not suffice."""
    each = iter(pieces.pieces)
    first = next(each, None)
    second = next(each, None)
    if first is not None and second is None:
        limits.check("pairs", len(first), path=pieces.name)
        return pieces.edge_list(first)
    held = GrowingPairs(limits, pieces.name, expected_pairs=pieces.expected_pairs)
    for piece in (first, second):
        if piece is not None:
            held.add(piece)
    del first, second
    for piece in each:
        held.add(piece)
    return pieces.edge_list(held.array())


class GrowingPairs:
    """Pairs in one array that grows where it lies, so that it never takes twice its size.

    Its pages come from the system and are counted against the limits before they are written to, a few mebibytes at a
    time. Room for the expected pairs is set aside from the start, since moving it takes time; it takes no memory.
    """

    def __init__(self, limits: Limits, path: str, dtype: Any = np.uint32, *, expected_pairs: int | None = None) -> None:
        self._limits, self._path, self._expected = limits, path, expected_pairs or 0
        self._dtype: np.dtype[Any] = np.dtype(dtype)
        self._row_bytes = 2 * self._dtype.itemsize
        self._memory: mmap.mmap | None = None
        self._rows = self._rows_in_all = 0
        self._granted = 0

    def next_rows(self, rows: int, dtype: Any) -> Piece:
        """Where the next rows can be written to, of that type or a wider one; `keep` says how many were."""
        if self._dtype != dtype:
            self._widen(np.dtype(dtype))
        self._reserve(self._rows + rows)
        return self._view(self._rows, self._rows + rows)

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
                self._memory.resize(max(1, self._rows * self._row_bytes))
            found = self._view(0, self._rows)
        self._memory, self._rows, self._granted = None, 0, 0
        return found

    def _view(self, begin: int, end: int) -> Piece:
        assert self._memory is not None
        step = self._row_bytes
        return np.frombuffer(self._memory, self._dtype, 2 * (end - begin), begin * step).reshape(-1, 2)

    def _reserve(self, rows: int) -> None:
        size = rows * self._row_bytes
        if size > self._granted:
            ahead = COUNTED_BYTES if self._limits.memory_bytes is not None else max(COUNTED_BYTES, self._granted // 2)
            more = max(size - self._granted, ahead if self._granted else 0)
            self._limits.check_memory(more, path=self._path)
            self._granted += more
        held = 0 if self._memory is None else len(self._memory)
        if size > held:
            self._resize(max(size, held * 5 // 4))

    def _resize(self, size: int) -> None:
        if self._memory is None:
            set_aside = self._expected * self._row_bytes
            if must_look(self._limits, set_aside):
                set_aside = min(set_aside, self._limits.memory_left() // 2)
            self._memory = _pages(max(size, set_aside))
            return
        try:
            self._memory.resize(size)
        except (BufferError, SystemError, ValueError):  # somebody looks at it, or the system cannot
            larger, held = _pages(size), self._rows * self._row_bytes
            np.frombuffer(larger, np.uint8, held)[:] = np.frombuffer(self._memory, np.uint8, held)
            self._memory = larger

    def _widen(self, dtype: np.dtype[Any]) -> None:
        """Take a wider type: what is there is copied."""
        wide = np.promote_types(self._dtype, dtype) if self._rows else dtype
        if wide.kind not in "iu":  # of signed and unsigned 64 bits; labels fit into either
            wide = np.dtype(np.uint64)
        if wide == self._dtype:
            return
        old, self._dtype, self._row_bytes = self.array(), wide, 2 * wide.itemsize
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
