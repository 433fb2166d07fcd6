"""A compressor in front of a file, by its suffix; it gets small pieces, so that Ctrl-C is heard between them."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from pathlib import PurePath
from typing import Any, BinaryIO

from wedgewise.errors import MissingDependencyError

PIECE_BYTES = 2**14  # xz may take 2 µs a byte and more


def compressed(file: BinaryIO, path: str | os.PathLike[str]) -> AbstractContextManager[Any]:
    """The file itself, or a compressor in front of it, by the last suffix."""
    suffix = PurePath(path).suffix.lower()
    return _InPieces(COMPRESSORS[suffix](file)) if suffix in COMPRESSORS else nullcontext(file)


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


def _zstd(file: BinaryIO) -> Any:
    try:
        zstandard = import_module("zstandard")
    except ImportError as error:
        raise MissingDependencyError(
            'writing .zst needs zstandard; install it with: pip install "wedgewise[zstd]"'
        ) from error
    return zstandard.ZstdCompressor().stream_writer(file, closefd=False)


COMPRESSORS: dict[str, Callable[[BinaryIO], Any]] = {
    ".gz": lambda file: import_module("gzip").GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0),
    ".bz2": lambda file: import_module("bz2").BZ2File(file, "wb"),
    ".xz": lambda file: import_module("lzma").LZMAFile(file, "wb"),
    ".zst": _zstd,
}
