"""Who takes pairs while a file is read, so that they can be on their way before the last line is parsed."""

from __future__ import annotations

from typing import Any, Protocol

from numpy.typing import NDArray


class Receiver(Protocol):
    """Takes the pairs of a file in pieces: ``begin``, ``put`` for every part in any order, ``end``.

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
