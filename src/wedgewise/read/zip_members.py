"""Members of a zip archive, read in pieces: sizes checked first, nothing extracted, names never used as paths."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import FormatError, WedgewiseError
from wedgewise.read.content import Content
from wedgewise.stages.limits import Limits

MAX_MEMBERS = 1000
PIECE_BYTES = 2**20
MAX_AT_ONCE = 2**21  # bytes that are read of an archive at once: no list of its members is longer
MAX_DEFLATE_RATIO = 1040
READ_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
ENCRYPTED_FLAG = 1
REMEDY = "the archive is damaged, or not one that numpy.savez or scipy.sparse.save_npz wrote: save it again"
ZIP_FAILURES = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    ValueError,
    OSError,
    NotImplementedError,
    RuntimeError,
)


class ZipMembers:
    """Reads members of an archive whose declared sizes are possible and within the limits."""

    def __init__(self, content: Content, limits: Limits) -> None:
        self.name, self.limits = content.name, limits
        with self._failures_named():
            file = _InParts(content.file())
            self._stored_bytes = file.seek(0, io.SEEK_END)
            self._archive = zipfile.ZipFile(file)
        self.members = {item.filename: item for item in self._archive.infolist()}
        if len(self.members) > MAX_MEMBERS:
            raise FormatError(f"{len(self.members):,} members", path=self.name, remedy=REMEDY)

    def size(self, member: str) -> int:
        """The declared size of a member, if the archive can hold that much and the limits allow it."""
        item = self.members[member]
        if item.compress_type not in READ_METHODS or item.flag_bits & ENCRYPTED_FLAG:
            raise FormatError(
                "a member that is encrypted or compressed by another method than deflate",
                path=self.name,
                text=member,
                remedy=REMEDY,
            )
        self.limits.check("decompressed_bytes", item.file_size, path=f"{self.name}[{member}]")
        if item.compress_size > self._stored_bytes or item.file_size > item.compress_size * MAX_DEFLATE_RATIO:
            raise FormatError(
                f"a member that declares {item.file_size:,} bytes in {item.compress_size:,}",
                path=self.name,
                text=member,
                remedy=REMEDY,
            )
        return item.file_size

    def head(self, member: str, size: int) -> bytes:
        """The first bytes of a member."""
        self.size(member)
        with self._failures_named(), self._archive.open(self.members[member]) as file:
            return file.read(size)

    def blocks(self, member: str, begin: int, end: int, size: int) -> Iterator[NDArray[np.uint8]]:
        """The bytes of a member from `begin` to `end`, in blocks; its checksum is verified where that is its end."""
        self.size(member)
        with self._failures_named(), self._archive.open(self.members[member]) as file:
            file.seek(begin)
            while begin < end:
                block, filled = np.empty(min(size, end - begin), np.uint8), 0
                while filled < len(block):
                    piece = file.read(min(PIECE_BYTES, len(block) - filled))
                    if not piece:
                        raise FormatError("a member that is cut off", path=self.name, text=member, remedy=REMEDY)
                    block[filled : filled + len(piece)] = np.frombuffer(piece, np.uint8)
                    filled += len(piece)
                begin += len(block)
                yield block

    @contextmanager
    def _failures_named(self) -> Iterator[None]:
        try:
            yield
        except WedgewiseError:
            raise
        except ZIP_FAILURES as error:
            raise FormatError("is no readable zip archive", path=self.name, text=str(error), remedy=REMEDY) from error


class _InParts(io.BufferedReader):
    """A file of which nobody reads much at once."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file)  # type: ignore[arg-type]

    def read(self, size: int | None = -1, /) -> bytes:
        asked = MAX_AT_ONCE + 1 if size is None or size < 0 else size
        data = super().read(min(asked, MAX_AT_ONCE + 1))
        if len(data) > MAX_AT_ONCE:
            raise zipfile.BadZipFile("the list of its members is too long")
        return data
