"""Undo gz, bz2, xz and zst as a stream: pieces of bounded size, concatenated members, every fault named.

Compression is known by its first bytes: the whole signature, since text may begin with a part of one. No call of a
decompressor returns more than a piece, so that a small file cannot fill the memory before its size is checked (a zst
piece may be larger: see `_ZSTD_INPUT_BYTES`). No decompressor holds more than the limits leave.
"""

from __future__ import annotations

import bz2
import lzma
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from wedgewise.errors import FormatError, MemoryLimitError, MissingDependencyError
from wedgewise.stages.limits import DEFAULT_LIMITS, Limits

PIECE_BYTES = 2**20
_INPUT_BYTES = 2**18
_ZSTD_INPUT_BYTES = 2**9  # zstandard cannot bound its output; 128 blocks of 128 KiB fit into these

SIGNATURE = re.compile(
    rb"(?P<gz>\x1f\x8b\x08[\x00-\x1f])|(?P<bz2>BZh[1-9](?:1AY&SY|\x17rE8P\x90))"
    rb"|(?P<xz>\xfd7zXZ\x00\x00[\x00-\x0f])|(?P<zst>\x28\xb5\x2f\xfd)"
)
START_BYTES = 512  # that show whether pairs merely begin like a compressed file
_TOO_MUCH_MEMORY = ("Memory usage limit", "too much memory")  # in the words of liblzma and libzstd
_LARGEST_ZSTD_WINDOW = 2**27  # that libzstd takes unasked

Read = Callable[[int], bytes]


def really_is(compression: str, start: bytes) -> bool:
    """Whether the first bytes of a file decompress without a fault, as far as they go."""
    try:
        _next_piece(_member_maker(compression, DEFAULT_LIMITS)(), start, compression, "")
    except FormatError:
        return False
    return True


def decompress(read: Read, compression: str, path: str, limits: Limits) -> Iterator[bytes]:
    """The decompressed bytes of all members, in pieces; `read` gives compressed ones, none at the end."""
    new_member = _member_maker(compression, limits)
    input_bytes = _ZSTD_INPUT_BYTES if compression == "zst" else _INPUT_BYTES
    padding = b"\0" if compression in ("gz", "xz") else b""  # between members
    data = read(input_bytes)
    while data:
        member = new_member()
        while not member.eof:
            if member.needs_input and not data:
                data = read(input_bytes)
                if not data:
                    raise _broken(compression, "ends too early", path)
            piece = _next_piece(member, data, compression, path)
            data = b""
            if piece:
                yield piece
        data = member.unused_data.lstrip(padding)
        while not data and (more := read(input_bytes)):
            data = more.lstrip(padding)


def _next_piece(member: Any, data: bytes, compression: str, path: str) -> bytes:
    errors: tuple[type[Exception], ...] = (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError)
    try:
        piece: bytes = member.decompress(data, PIECE_BYTES)
        return piece
    except (*errors, *_zstd_errors(compression)) as error:
        if any(words in str(error) for words in _TOO_MUCH_MEMORY):
            raise MemoryLimitError(
                f"{path}: the {compression} stream asks for more memory to decompress it than there is",
                "raise the limit, or compress it again with a smaller window",
            ) from error
        raise _broken(compression, f"is corrupt ({error})", path) from error


def _broken(compression: str, how: str, path: str) -> FormatError:
    return FormatError(f"{compression} stream {how}", path=path, remedy="fetch the file again")


class _GzMember:
    """zlib's decompressor with the interface of the others."""

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
        self._has_more = False

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        piece = self._inflate.decompress(self._inflate.unconsumed_tail + data, max_length)
        self._has_more = len(piece) == max_length
        return piece

    @property
    def eof(self) -> bool:
        return self._inflate.eof

    @property
    def needs_input(self) -> bool:
        return not self._has_more and not self._inflate.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._inflate.unused_data


class _ZstMember:
    """The zstandard package's decompressor with the interface of the others; it takes all input at once."""

    needs_input = True

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        return bytes(self._inner.decompress(data))

    @property
    def eof(self) -> bool:
        return bool(self._inner.eof)

    @property
    def unused_data(self) -> bytes:
        return bytes(self._inner.unused_data)


def _member_maker(compression: str, limits: Limits) -> Callable[[], Any]:
    """What makes decompressors of one member each, which have the interface of `bz2.BZ2Decompressor`."""
    if compression == "gz":
        return _GzMember
    if compression == "bz2":
        return bz2.BZ2Decompressor
    if compression == "xz":
        return lambda: lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=max(1, limits.memory_left()))
    return _zstd_maker(limits)


def _zstd_maker(limits: Limits) -> Callable[[], Any]:
    """Half of what is left may be a window: it is held beside the pieces that are made of it."""
    window = min(_LARGEST_ZSTD_WINDOW, max(2**10, limits.memory_left() // 2))
    if sys.version_info >= (3, 14):
        from compression import zstd

        options = {zstd.DecompressionParameter.window_log_max: window.bit_length() - 1}
        return lambda: zstd.ZstdDecompressor(options=options)
    try:
        import zstandard
    except ImportError as error:
        raise MissingDependencyError(
            "zst files need the package zstandard: pip install 'wedgewise[zstd]'", name="zstandard"
        ) from error
    return lambda: _ZstMember(zstandard.ZstdDecompressor(max_window_size=window).decompressobj())


def _zstd_errors(compression: str) -> tuple[type[Exception], ...]:
    if compression != "zst":
        return ()
    if sys.version_info >= (3, 14):
        from compression import zstd

        return (zstd.ZstdError,)
    import zstandard

    return (zstandard.ZstdError,)
