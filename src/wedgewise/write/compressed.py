"""A compressor in front of a file, by its suffix; it gets small pieces, so that Ctrl-C is heard between them."""

from __future__ import annotations

import io
import os
from contextlib import AbstractContextManager, nullcontext
from pathlib import PurePath
from typing import Any, BinaryIO

from wedgewise.errors import MissingDependencyError
from wedgewise.read.sniff import COMPRESSION_SUFFIXES

PIECE_BYTES = 2**14  # xz may take 2 µs a byte and more


def compressed(file: BinaryIO, path: str | os.PathLike[str]) -> AbstractContextManager[Any]:
    """The file itself, or a compressor in front of it, by the last suffix."""
    suffix = PurePath(path).suffix.lower()
    return _InPieces(_compressor(file, suffix)) if suffix in COMPRESSION_SUFFIXES else nullcontext(file)


class _InPieces(io.RawIOBase):
    """A compressor that is given small pieces: signals are heard between them."""

    def __init__(self, compressor: Any) -> None:
        self._compressor = compressor

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        for begin in range(0, len(view), PIECE_BYTES):
            self._compressor.write(view[begin : begin + PIECE_BYTES])
        return len(view)

    def close(self) -> None:
        if not self.closed:
            try:
                self._compressor.close()
            finally:
                super().close()


def _compressor(file: BinaryIO, suffix: str) -> Any:
    if suffix == ".gz":
        import gzip

        return gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0)
    if suffix == ".bz2":
        import bz2

        return bz2.BZ2File(file, "wb")
    if suffix == ".xz":
        import lzma

        return lzma.LZMAFile(file, "wb")
    try:
        import zstandard
    except ImportError as error:
        raise MissingDependencyError(
            'writing .zst needs zstandard; install it with: pip install "wedgewise[zstd]"'
        ) from error
    return zstandard.ZstdCompressor().stream_writer(file, closefd=False)
