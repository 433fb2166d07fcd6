"""Pairs on their way to a device: parts are copied while later ones are still being parsed.

    with device.arriving() as arriving:
        edge_list = read_edges(path, receiver=arriving)
        pairs = arriving.finish()

Text of integer labels comes chunk by chunk, compressed or not: ``begin``, ``put`` for every part in any order, ``end``.
All other formats come whole, by ``take``, when they have been checked. A text file takes 8 bytes of device memory per
line (16 where a label needs 64 bits), comments included.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from wedgewise.machine.ring import Ring


class _PieceMemory:
    """Memory on the device for the rows of one piece, and which of them have come."""

    def __init__(self, rows: Any) -> None:
        self.rows = rows
        self.stretches: list[tuple[int, int]] = []

    def filled(self) -> list[Any]:
        """The rows that have come, in as few parts as there are; an empty part where none has."""
        bounds = [[0, 0]]
        for begin, end in sorted(self.stretches):
            if begin == bounds[-1][1]:
                bounds[-1][1] = end
            else:
                bounds.append([begin, end])
        return [self.rows[begin:end] for begin, end in bounds]


class Arriving:
    """Pairs that a device receives. Leaving the context waits for copies under way, whatever happened."""

    def __init__(self, xp: Any, ring: Ring) -> None:
        self._xp = xp
        self._ring = ring
        self._pieces: list[_PieceMemory] = []
        self._last_is_open = False

    def __enter__(self) -> Arriving:
        return self

    def __exit__(self, *_: object) -> None:
        self._ring.wait()

    @property
    def begun(self) -> bool:
        """Whether anything was announced."""
        return bool(self._pieces)

    def begin(self, rows: int, dtype: Any) -> None:
        """Take memory for a piece of at most that many rows; one that has not ended is forgotten."""
        if self._last_is_open:
            self._ring.wait()
            self._pieces.pop()
        self._pieces.append(_PieceMemory(self._xp.empty((rows, 2), dtype)))
        self._last_is_open = True
        self._ring.follow()

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
        self._ring.wait()
        parts = [part for piece in self._pieces for part in piece.filled()]
        self._pieces.clear()
        return parts[0] if len(parts) == 1 else self._xp.concatenate(parts)
