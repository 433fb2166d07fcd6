"""Bytes in, whatever the wrapping: a plain file is mapped, everything else is a stream read once.

    with open_content("graph.txt.gz", limits) as content:
        content.head(64)                    # looks, consumes nothing
        for block in content.blocks(2**23): ...

Reading stops as soon as more than ``limits.decompressed_bytes`` came out of a compressed file or a pipe.
"""

from __future__ import annotations

import mmap
import os
import queue
import stat
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import InputError, MissingFileError
from wedgewise.read._decompress import MAGIC_BYTES, PIECE_BYTES, compression_of, decompress
from wedgewise.read.limits import Limits

Bytes = NDArray[np.uint8]

STDIN = "<stdin>"
_BLOCKS_AHEAD = 2


def open_content(source: str | os.PathLike[str] | BinaryIO, limits: Limits, *, may_map: bool = True) -> Content:
    """Open a file, ``"-"`` for the standard input, or a binary stream.

    Parameters
    ----------
    source : a path, ``"-"``, or an object with ``read``; streams stay open and are the caller's to close
    limits : caps on what may come out of it
    may_map : without it a plain file comes in blocks too, so that its pages do not count as this process's memory

    Returns
    -------
    Content
        to be closed, or used as a context manager

    Raises
    ------
    MissingFileError
        no such file, a folder, or a file that may not be read
    """
    if source == "-":
        return _Stream(sys.stdin.buffer, STDIN, None, limits, owned=False)
    if not isinstance(source, (str, os.PathLike)):
        return _Stream(source, _name_of(source), None, limits, owned=False)
    name = os.fspath(source)
    file = _open(name)
    try:
        mapped = _map(file)
        if mapped is None or compression_of(mapped[:MAGIC_BYTES].tobytes()) is not None:
            return _Stream(file, name, Path(name), limits, owned=True)
        if not may_map:
            plain = limits.with_values({"decompressed_bytes": max(len(mapped), limits.decompressed_bytes)})
            return _Stream(file, name, Path(name), plain, owned=True)
    except BaseException:
        file.close()
        raise
    file.close()
    return _Mapped(mapped, name)


class Content(ABC):
    """The decompressed bytes of one input.

    Attributes
    ----------
    name : the path as given, or ``"<stdin>"``
    path : None unless the input is a file
    compression : ``"gz"``, ``"bz2"``, ``"xz"``, ``"zst"``, or None; by the first bytes, not by the suffix
    """

    name: str
    path: Path | None
    compression: str | None

    @abstractmethod
    def head(self, size: int) -> bytes:
        """The first `size` bytes (fewer if there are no more) without consuming them."""

    @abstractmethod
    def whole(self) -> Bytes:
        """All bytes: mapped read-only if the input is a plain file, in memory otherwise."""

    @abstractmethod
    def blocks(self, size: int) -> Iterator[Bytes]:
        """Consecutive blocks of `size` bytes; a plain file is one block. A stream gives its blocks once."""

    @abstractmethod
    def close(self) -> None:
        """Give the file back; arrays that were handed out stay valid."""

    def __enter__(self) -> Content:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Mapped(Content):
    """A plain file."""

    def __init__(self, mapped: Bytes, name: str) -> None:
        self.name = name
        self.path = Path(name)
        self.compression = None
        self._bytes = mapped

    def head(self, size: int) -> bytes:
        return self._bytes[:size].tobytes()

    def whole(self) -> Bytes:
        return self._bytes

    def blocks(self, size: int) -> Iterator[Bytes]:
        yield self._bytes

    def close(self) -> None:
        """It was closed when it was mapped."""


class _Stream(Content):
    """A compressed file, a pipe or a stream: bytes that come once."""

    def __init__(self, file: BinaryIO, name: str, path: Path | None, limits: Limits, *, owned: bool) -> None:
        self.name = name
        self.path = path
        self._file = file
        self._owned = owned
        self._limits = limits
        with _named(name):
            self._start = _read_fully(file, MAGIC_BYTES)
        self.compression = compression_of(self._start)
        self._pieces = self._capped(self._decompressed())
        self._looked = bytearray()
        self._whole: Bytes | None = None
        self._is_spent = False
        self._ahead: Generator[Bytes, None, None] | None = None

    def head(self, size: int) -> bytes:
        if self._whole is not None:
            return self._whole[:size].tobytes()
        self._forbid_second_reading()
        while len(self._looked) < size:
            piece = next(self._pieces, b"")
            if not piece:
                break
            self._looked += piece
        return bytes(self._looked[:size])

    def whole(self) -> Bytes:
        if self._whole is None:
            self._forbid_second_reading()
            self._is_spent = True
            gathered = self._looked
            for piece in self._pieces:
                gathered += piece
            self._whole = np.frombuffer(gathered, dtype=np.uint8)
            self._whole.flags.writeable = False
        return self._whole

    def blocks(self, size: int) -> Iterator[Bytes]:
        if self._whole is not None:
            return iter([self._whole] if len(self._whole) else [])
        self._forbid_second_reading()
        self._is_spent = True
        if self.compression is None:
            return self._cut(size)
        self._ahead = _ahead(self._cut(size))
        return self._ahead

    def close(self) -> None:
        if self._ahead is not None:
            self._ahead.close()
        if self._owned:
            self._file.close()

    def _cut(self, size: int) -> Iterator[Bytes]:
        waiting = self._looked
        for piece in self._pieces:
            waiting += piece
            while len(waiting) >= size:
                yield np.frombuffer(waiting[:size], dtype=np.uint8)
                del waiting[:size]
        while waiting:
            yield np.frombuffer(waiting[:size], dtype=np.uint8)
            del waiting[:size]

    def _decompressed(self) -> Iterator[bytes]:
        if self.compression is not None:
            yield from decompress(self._read, self.compression, self.name)
            return
        while piece := self._read(PIECE_BYTES):
            yield piece

    def _read(self, size: int) -> bytes:
        if self._start:
            start, self._start = self._start[:size], self._start[size:]
            return start
        with _named(self.name):
            return self._file.read(size)

    def _capped(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        total = 0
        for piece in pieces:
            total += len(piece)
            self._limits.check("decompressed_bytes", total, path=self.name)
            yield piece

    def _forbid_second_reading(self) -> None:
        if self._is_spent:
            raise InputError(f"{self.name}: a stream can be read once; open it again")


def _open(name: str) -> BinaryIO:
    try:
        if os.path.isdir(name):
            raise MissingFileError(f"{name}: is a folder; name a file in it")
        return open(name, "rb")
    except FileNotFoundError as error:
        if isinstance(error, MissingFileError):
            raise
        raise MissingFileError(f"{name}: no such file; check the path") from error
    except ValueError as error:  # a NUL byte in the path
        raise MissingFileError(f"{name!r}: is no path ({error}); check the path") from error
    except OSError as error:
        raise MissingFileError(f"{name}: cannot be opened ({error.strerror}); check its permissions") from error


def _map(file: BinaryIO) -> Bytes | None:
    """The bytes of a regular file without reading them; None for a pipe, an empty file, or on failure."""
    status = os.fstat(file.fileno())
    if not stat.S_ISREG(status.st_mode) or status.st_size == 0:
        return None
    try:
        return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), dtype=np.uint8)
    except OSError:
        return None


def _name_of(stream: BinaryIO) -> str:
    name: Any = getattr(stream, "name", None)
    if stream is getattr(sys.stdin, "buffer", None):
        return STDIN
    return name if isinstance(name, str) else "<stream>"


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Say what could not be read where the system refuses to."""
    try:
        yield
    except OSError as error:
        raise MissingFileError(f"{name}: cannot be read ({error}); check the device it is on") from error


def _read_fully(file: BinaryIO, size: int) -> bytes:
    """`size` bytes, fewer only at the end: a pipe may give less than asked for."""
    start = b""
    while len(start) < size:
        more = file.read(size - len(start))
        if not more:
            break
        start += more
    return start


def _ahead(blocks: Iterator[Bytes]) -> Generator[Bytes, None, None]:
    """The same blocks, made by a thread of its own while the caller works on earlier ones."""
    waiting: queue.Queue[Bytes | BaseException | None] = queue.Queue(_BLOCKS_AHEAD)
    stop = threading.Event()

    def hand_over(item: Bytes | BaseException | None) -> None:
        while not stop.is_set():
            with suppress(queue.Full):
                waiting.put(item, timeout=0.05)
                return

    def produce() -> None:
        try:
            for block in blocks:
                hand_over(block)
                if stop.is_set():
                    return
            hand_over(None)
        except BaseException as error:  # raised again where the blocks are used
            hand_over(error)

    producer = threading.Thread(target=produce, name="wedgewise-read", daemon=True)
    try:
        producer.start()
    except RuntimeError:  # no memory for another stack: the caller makes them
        yield from blocks
        return
    try:
        while (item := waiting.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        stop.set()
        producer.join()
