"""Bytes that come in pieces: made ahead by a thread, filled into arrays; and bytes that are sought in like a file."""

from __future__ import annotations

import io
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Fill = Callable[[Bytes], int]

_AHEAD_BYTES = 16 * 2**20


def filling(pieces: Iterator[bytes] | Iterator[memoryview]) -> Fill:
    """A function that fills arrays with the bytes of the pieces."""
    left = memoryview(b"")

    def fill(out: Bytes) -> int:
        nonlocal left
        filled = 0
        while filled < len(out):
            if not left:
                left = memoryview(next(pieces, b""))
                if not left:
                    break
            taken = min(len(left), len(out) - filled)
            out[filled : filled + taken] = left[:taken]
            left = left[taken:]
            filled += taken
        return filled

    return fill


def made_ahead(pieces: Iterator[bytes]) -> Generator[bytes, None, None]:
    """The same pieces, made by a thread of its own while the caller works on earlier ones."""
    ahead = _PieceQueue(pieces)
    producer = threading.Thread(target=ahead.produce, name="wedgewise-read", daemon=True)
    try:
        producer.start()
    except RuntimeError:  # no memory for another stack: the caller makes them
        yield from pieces
        return
    try:
        while piece := ahead.take():
            yield piece
    finally:
        ahead.stop()
        producer.join()


class _PieceQueue:
    """Pieces between the thread that makes them and the one that takes them: at most some mebibytes wait."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._made: deque[bytes] = deque()
        self._bytes = 0
        self._ended: BaseException | bool = False
        self._changed = threading.Condition()

    def produce(self) -> None:
        """Make all pieces, or as many as are wanted."""
        ended: BaseException | bool = True
        try:
            for piece in self._pieces:
                with self._changed:
                    self._changed.wait_for(lambda: self._bytes < _AHEAD_BYTES or self._ended)
                    if self._ended:
                        return
                    self._made.append(piece)
                    self._bytes += len(piece)
                    self._changed.notify_all()
        except BaseException as error:  # raised again where the pieces are used
            ended = error
        with self._changed:
            self._ended = ended
            self._changed.notify_all()

    def take(self) -> bytes:
        """The next piece; none at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._made or self._ended)
            if not self._made:
                if isinstance(self._ended, BaseException):
                    raise self._ended
                return b""
            piece = self._made.popleft()
            self._bytes -= len(piece)
            self._changed.notify_all()
            return piece

    def stop(self) -> None:
        """No more pieces are wanted."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()


class _SeekableBytes(io.RawIOBase):
    """The raw file that `seekable` buffers."""

    def __init__(self, size: int, read_at: Callable[[int, Bytes], None]) -> None:
        self._size, self._read_at = size, read_at
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        origin = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        if origin + offset < 0:
            raise OSError("seek before the beginning")
        self._at = origin + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        count = max(0, min(len(buffer), self._size - self._at))
        self._read_at(self._at, np.frombuffer(buffer, np.uint8)[:count])
        self._at += count
        return count


def seekable(size: int, read_at: Callable[[int, Bytes], None]) -> BinaryIO:
    """A file to seek in, of so many bytes, over a function that fills arrays from a position on."""
    return io.BufferedReader(_SeekableBytes(size, read_at), 2**16)
