"""Bytes in, whatever the wrapping, always in memory of our own: a file that changes is an error, never a crash.

    with open_content("graph.txt.gz", limits) as content:
        content.head(64)                    # looks, consumes nothing
        for block in content.blocks(2**23): ...

A plain file is read by several threads, and as often as one likes; everything else is a stream that is read once.
Reading stops as soon as more than ``limits.decompressed_bytes`` came out of a compressed file or a pipe.
"""

from __future__ import annotations

import os
import select
import stat
import sys
from abc import abstractmethod
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, suppress
from functools import partial
from itertools import chain
from pathlib import Path, PurePath
from typing import Any, BinaryIO

import numpy as np

from wedgewise.errors import FormatError, InputError, MissingFileError, WedgewiseError
from wedgewise.machine.hardware import usable_threads
from wedgewise.machine.threads import run_tasks
from wedgewise.read._byte_pieces import Bytes, Fill, filling, made_ahead, seekable
from wedgewise.read._decompress import PIECE_BYTES, SIGNATURE, START_BYTES, decompress, really_is
from wedgewise.read.sniff import COMPRESSION_SUFFIXES, RAW_PAIRS, data_suffix
from wedgewise.stages.limits import Limits

STDIN, STREAM = "<stdin>", "<stream>"
SHARE_BYTES = 2**21  # of a plain file that a thread reads at a time
FIRST_BYTES = 2**16  # of a plain file that are read once, when it is opened
_COUNTED_BYTES = 4 * 2**20


def open_content(
    source: str | os.PathLike[str] | BinaryIO, limits: Limits, *, format: str | None = None, threads: int | None = None
) -> Content:
    """Open a file, ``"-"`` for the standard input, or a binary stream.

    Parameters
    ----------
    source : a path, ``"-"``, or an object with ``read``; streams stay open and are the caller's to close
    limits : caps on what may come out of it
    format : as the user named it: raw pairs can begin as compressed files do (see `wedgewise.read.sniff`)
    threads : that read a plain file

    Returns
    -------
    Content
        to be closed, or used as a context manager

    Raises
    ------
    MissingFileError
        no such file, a folder, or a file that may not be read
    """
    if isinstance(source, str) and source == "-":
        if sys.stdin is None:
            raise MissingFileError(f"{STDIN}: is closed; name a file")
        return _Stream(sys.stdin.buffer, STDIN, None, limits, format, owned=False)
    if not isinstance(source, (str, os.PathLike)):
        if not hasattr(source, "read"):
            raise InputError(f"{type(source).__name__}: is neither a path nor a file opened by open(path, 'rb')")
        return _Stream(source, _name_of(source), None, limits, format, owned=False)
    name = os.fspath(source)
    file = _open(name)
    try:
        size = _size_of(file)
        plain = None if size is None else _Plain(file, name, size, limits, threads or usable_threads())
        if plain is not None and find_compression(plain.head(START_BYTES), name, format) is None:
            return plain
        return _Stream(file, name, Path(name), limits, format, owned=True)
    except BaseException:
        file.close()
        raise


class Content(AbstractContextManager["Content"]):
    """The decompressed bytes of one input.

    Attributes
    ----------
    name : the path as given, or ``"<stdin>"``
    path : None unless the input is a file
    compression : ``"gz"``, ``"bz2"``, ``"xz"``, ``"zst"``, or None; by the first bytes, not by the suffix
    size : how many bytes there are; None where that shows when they were read
    """

    name: str
    path: Path | None
    compression: str | None
    size: int | None

    @abstractmethod
    def head(self, size: int) -> bytes:
        """The first `size` bytes (fewer if there are no more) without consuming them."""

    @abstractmethod
    def whole(self) -> Bytes:
        """All bytes in memory, which are counted, and the caller's to change."""

    @abstractmethod
    def reader(self) -> Fill:
        """A function that fills arrays with the bytes from first to last, none of them twice; it returns how many.

        They are fewer than the array holds at the end alone. A stream has one such function.
        """

    def blocks(self, size: int) -> Iterator[Bytes]:
        """Consecutive blocks of `size` bytes. A stream gives its blocks once."""
        return self._blocks(self.reader(), size)

    @abstractmethod
    def file(self) -> BinaryIO:
        """All bytes as a file to seek in: a plain file is read where it is asked for, anything else is read whole."""

    @abstractmethod
    def close(self) -> None:
        """Give the file back; arrays that were handed out stay valid."""

    def _blocks(self, fill: Fill, size: int) -> Iterator[Bytes]:
        filled = size
        while filled == size:
            block = np.empty(size if self.size is None else min(size, self.size), np.uint8)
            filled = fill(block)
            if filled:
                yield block[:filled]

    def __exit__(self, *_error: object) -> None:
        self.close()


class _Plain(Content):
    """A regular file; what is written behind its end while it is read does not count."""

    def __init__(self, file: BinaryIO, name: str, size: int, limits: Limits, threads: int) -> None:
        self.name, self.path, self.compression = name, Path(name), None
        self.size: int = size
        self._file, self._limits, self._threads = file, limits, threads
        self._first = np.empty(min(FIRST_BYTES, size), np.uint8)
        self._fill(0, self._first.data)

    def head(self, size: int) -> bytes:
        if min(size, self.size) <= len(self._first):
            return self._first[:size].tobytes()
        return self._read_first(size).tobytes()

    def whole(self) -> Bytes:
        self._limits.check_memory(self.size, path=self.name)
        return self._read_first(self.size)

    def reader(self) -> Fill:
        at = 0

        def fill(out: Bytes) -> int:
            nonlocal at
            begin, at = at, min(self.size, at + len(out))
            self._read_at(begin, out[: at - begin])
            if at < self.size and hasattr(os, "posix_fadvise"):
                os.posix_fadvise(self._file.fileno(), at, len(out), os.POSIX_FADV_WILLNEED)
            return at - begin

        return fill

    def file(self) -> BinaryIO:
        return seekable(self.size, self._read_at)

    def close(self) -> None:
        self._file.close()

    def _read_first(self, size: int) -> Bytes:
        first = np.empty(min(size, self.size), np.uint8)
        self._read_at(0, first)
        return first

    def _read_at(self, at: int, out: Bytes) -> None:
        """Fill an array from a position on; threads share what is large."""
        if at + len(out) <= len(self._first):
            out[:] = self._first[at : at + len(out)]
            return

        def read_share(share: int, _worker: int) -> None:
            begin = share * SHARE_BYTES
            self._fill(at + begin, out.data[begin : begin + SHARE_BYTES])

        run_tasks(read_share, -(-len(out) // SHARE_BYTES), self._threads)

    def _fill(self, position: int, view: memoryview) -> None:
        """Fill some memory with the bytes from a position on."""
        while len(view):
            try:
                got = os.preadv(self._file.fileno(), [view], position)
            except OSError as error:
                raise _unreadable(self.name, error) from error
            if got == 0:
                raise FormatError(
                    f"has {position:,} bytes, and had {self.size:,} when it was opened",
                    path=self.name,
                    remedy="wait until nobody writes to it, and read it again",
                )
            position += got
            view = view[got:]


class _Stream(Content):
    """A compressed file, a pipe or a stream: bytes that come once."""

    def __init__(
        self, file: BinaryIO, name: str, path: Path | None, limits: Limits, format: str | None, *, owned: bool
    ) -> None:
        self.name, self.path, self.size = name, path, None
        self._file, self._owned, self._limits = file, owned, limits
        self._start = b""
        while len(self._start) < START_BYTES and (more := self._read_next(START_BYTES - len(self._start))):
            self._start += more
        self.compression = find_compression(self._start, name, format)
        self._pieces = self._capped()
        self._looked = bytearray()
        self._whole: Bytes | None = None
        self._is_spent = False
        self._ahead: Generator[bytes, None, None] | None = None

    def head(self, size: int) -> bytes:
        if self._whole is not None:
            return self._whole[:size].tobytes()
        self._forbid_second_reading()
        while len(self._looked) < size and (piece := next(self._pieces, b"")):
            self._looked += piece
        return bytes(self._looked[:size])

    def whole(self) -> Bytes:
        if self._whole is None:
            self._forbid_second_reading()
            self._is_spent = True
            collected, counted = self._looked, 0
            for piece in self._pieces:
                if len(collected) + len(piece) > counted:
                    self._limits.check_memory(_COUNTED_BYTES + len(piece), path=self.name)
                    counted = len(collected) + len(piece) + _COUNTED_BYTES
                collected += piece
            self._whole = np.frombuffer(collected, dtype=np.uint8)
        return self._whole

    def reader(self) -> Fill:
        if self._whole is not None:
            return filling(iter([self._whole.data]))
        self._forbid_second_reading()
        self._is_spent = True
        looked, self._looked = bytes(self._looked), bytearray()
        pieces = chain((looked,) if looked else (), self._pieces)
        if self.compression is None:
            return filling(pieces)
        self._ahead = made_ahead(pieces)
        return filling(self._ahead)

    def file(self) -> BinaryIO:
        data = self.whole()

        def read_at(at: int, out: Bytes) -> None:
            out[:] = data[at : at + len(out)]

        return seekable(len(data), read_at)

    def close(self) -> None:
        if self._ahead is not None:
            self._ahead.close()
        if self._owned:
            self._file.close()

    def _read(self, size: int) -> bytes:
        if self._start:
            start, self._start = self._start[:size], self._start[size:]
            return start
        return self._read_next(size)

    def _read_next(self, size: int) -> bytes:
        """Some bytes of the file, none at the end; one that does not block is waited for."""
        data: Any = None
        try:
            while data is None:
                with suppress(BlockingIOError):
                    data = self._file.read(size)
                if data is None:
                    _wait_for(self._file, self.name)
        except (WedgewiseError, MemoryError):
            raise
        except Exception as error:  # a stream is anybody's code
            raise _unreadable(self.name, error) from error
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise InputError(f"{self.name}: gives {type(data).__name__}, not bytes; open it with open(path, 'rb')")
        return bytes(data)

    def _capped(self) -> Iterator[bytes]:
        """Decompressed bytes in pieces, as many as the limits allow."""
        pieces, total = iter(partial(self._read, PIECE_BYTES), b""), 0
        if self.compression is not None:
            pieces = decompress(self._read, self.compression, self.name, self._limits)
        for piece in pieces:
            total += len(piece)
            self._limits.check("decompressed_bytes", total, path=self.name)
            yield piece

    def _forbid_second_reading(self) -> None:
        if self._is_spent:
            raise InputError(f"{self.name}: a stream can be read once; open it again")


def _wait_for(file: BinaryIO, name: str) -> None:
    """Wait until a file that does not block has bytes to read, or has ended."""
    try:
        descriptor = file.fileno()
    except (AttributeError, OSError) as error:
        raise InputError(
            f"{name}: has no bytes now and does not say when it will; pass a stream that waits for them"
        ) from error
    if hasattr(select, "poll"):
        waiting = select.poll()
        waiting.register(descriptor, select.POLLIN)
        waiting.poll()
    else:
        select.select([descriptor], [], [])


def find_compression(start: bytes, name: str, format: str | None) -> str | None:
    """How a file is compressed, by its first bytes.

    Raw pairs can have any first bytes: there the suffix decides, or, of what has no name, whether they decompress.
    """
    signature = SIGNATURE.match(start)
    found = None if signature is None else signature.lastgroup
    if found is None or (data_suffix(name)[1:] if format is None else format) not in RAW_PAIRS:
        return found
    is_named_so = PurePath(name).suffix.lower() in COMPRESSION_SUFFIXES
    is_compressed = really_is(found, start) if name in (STDIN, STREAM) else is_named_so
    return found if is_compressed else None


def _open(name: str) -> BinaryIO:
    try:
        if not os.path.isdir(name):
            return open(name, "rb")
    except FileNotFoundError as error:
        raise MissingFileError(f"{name}: no such file; check the path") from error
    except ValueError as error:  # a NUL byte in the path
        raise MissingFileError(f"{name!r}: is no path ({error}); check the path") from error
    except OSError as error:
        raise MissingFileError(f"{name}: cannot be opened ({error.strerror}); check its permissions") from error
    raise MissingFileError(f"{name}: is a folder; name a file in it")


def _size_of(file: BinaryIO) -> int | None:
    """The bytes of a regular file; None for a pipe, and for a file that does not say how many it has."""
    status = os.fstat(file.fileno())
    return status.st_size if stat.S_ISREG(status.st_mode) and status.st_size and hasattr(os, "preadv") else None


def _name_of(stream: BinaryIO) -> str:
    name: Any = getattr(stream, "name", None)
    if stream is getattr(sys.stdin, "buffer", None):
        return STDIN
    return name if isinstance(name, str) else STREAM


def _unreadable(name: str, error: Exception) -> InputError | MissingFileError:
    """Say what could not be read where the system refuses to, or where a stream does."""
    if isinstance(error, OSError):
        return MissingFileError(f"{name}: cannot be read ({error}); check the device it is on")
    reason = " ".join(f"{type(error).__name__}: {error}".split())
    return InputError(f"{name}: cannot be read ({reason}); pass a file opened by open(path, 'rb')")
