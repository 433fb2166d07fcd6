"""Members of a zip archive as bytes in memory: sizes checked first, nothing extracted, names never used as
paths."""

from __future__ import annotations

import io
import zipfile
import zlib
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import FormatError
from wedgewise.read.content import Content
from wedgewise.read.limits import Limits

MAX_MEMBERS = 1000
PIECE_BYTES = 2**20
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
        self._name = content.name
        self._limits = limits
        self._stored_bytes = len(content.whole())
        try:
            self._archive = zipfile.ZipFile(io.BufferedReader(_ArrayFile(content.whole())))
        except ZIP_FAILURES as error:
            raise self._damaged(error) from error
        self._members = {item.filename: item for item in self._archive.infolist()}
        if len(self._members) > MAX_MEMBERS:
            raise FormatError(f"{len(self._members):,} members", path=self._name, remedy=REMEDY)

    def __enter__(self) -> ZipMembers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._archive.close()

    @property
    def names(self) -> list[str]:
        return list(self._members)

    def size(self, member: str) -> int:
        """The declared size of a member, if the archive can hold that much and the limits allow it."""
        item = self._members[member]
        if item.compress_type not in READ_METHODS or item.flag_bits & ENCRYPTED_FLAG:
            raise FormatError(
                "a member that is encrypted or compressed by another method than deflate",
                path=self._name,
                text=member,
                remedy=REMEDY,
            )
        self._limits.check("decompressed_bytes", item.file_size, path=f"{self._name}[{member}]")
        if item.compress_size > self._stored_bytes or item.file_size > item.compress_size * MAX_DEFLATE_RATIO:
            raise FormatError(
                f"a member that declares {item.file_size:,} bytes in {item.compress_size:,}",
                path=self._name,
                text=member,
                remedy=REMEDY,
            )
        return item.file_size

    def head(self, member: str, size: int) -> bytes:
        """The first bytes of a member."""
        self.size(member)
        try:
            with self._archive.open(self._members[member]) as file:
                return file.read(size)
        except ZIP_FAILURES as error:
            raise self._damaged(error) from error

    def read(self, member: str) -> NDArray[np.uint8]:
        """All bytes of a member, its checksum verified."""
        data = np.empty(self.size(member), np.uint8)
        filled = 0
        try:
            with self._archive.open(self._members[member]) as file:
                while piece := file.read(PIECE_BYTES):
                    data[filled : filled + len(piece)] = np.frombuffer(piece, np.uint8)
                    filled += len(piece)
        except ZIP_FAILURES as error:
            raise self._damaged(error) from error
        if filled != len(data):
            raise FormatError("a member that is cut off", path=self._name, text=member, remedy=REMEDY)
        return data

    def _damaged(self, error: Exception) -> FormatError:
        return FormatError("is no readable zip archive", path=self._name, text=str(error), remedy=REMEDY)


class _ArrayFile(io.RawIOBase):
    """A seekable file over bytes in memory or mapped, without a copy."""

    def __init__(self, data: NDArray[np.uint8]) -> None:
        self._data = data.data
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        origin = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: len(self._data)}[whence]
        if origin + offset < 0:
            raise OSError("seek before the beginning")
        self._at = origin + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        piece = self._data[self._at : self._at + len(buffer)]
        buffer[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)
