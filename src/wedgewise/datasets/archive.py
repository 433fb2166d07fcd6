"""The edges in a tar archive, as a stream: nothing is unpacked, and no header takes more memory than a name needs.

An archive is blocks of 512 bytes: a header, what it is about, the next header. Names that are longer than a header, and
further facts (pax), come as members of their own before the one that they are of.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import IO, Any

from wedgewise.datasets.urls import stem
from wedgewise.errors import FormatError
from wedgewise.read.content import Content, open_content
from wedgewise.stages.limits import Limits

ARCHIVE = re.compile(r"\.(tar(\.\w+)?|tgz)$")
BLOCK = 512
PIECE_BYTES = 1 << 18
MAX_HEADER_BYTES, MAX_FACTS = 1 << 16, 1000
FILES = (b"0", b"\0", b"7")
WITHOUT_CONTENT = (b"1", b"2", b"3", b"4", b"5", b"6")  # links, devices, folders, pipes
LONG_NAME, FACTS, SPARSE = b"L", (b"x", b"X"), b"S"
OCTAL = re.compile(rb"[ \0]*([0-7]{0,21})[ \0]*")
FACT = re.compile(rb"([0-9]{1,6}) ([^=\n]+)=")


def is_archive(path: Path) -> bool:
    """Whether a file is called as archives are."""
    return ARCHIVE.search(path.name.lower()) is not None


@contextmanager
def edges_in(path: Path, limits: Limits) -> Iterator[IO[bytes]]:
    """The member with the edges: KONECT's archives hold ``out.NAME``, those of SuiteSparse ``NAME.mtx``.

    Raises
    ------
    FormatError
        when the archive is damaged, has no such member, or one that is a sparse file
    LimitError
        when more bytes come out of it than allowed
    """
    with open_content(path, limits) as content:
        archive = _Archive(path, content)
        yield BufferedReader(_Member(archive, archive.find_edges()))


class _Archive:
    """An archive that is read from its beginning on."""

    def __init__(self, path: Path, content: Content) -> None:
        self.path = path
        self._blocks = content.blocks(PIECE_BYTES)
        self._waiting = memoryview(b"")

    def find_edges(self) -> int:
        """Go on to the edges; how many bytes they have."""
        wanted = f"{stem(self.path.name)}.mtx"
        name, size = b"", None
        while (header := self._header()) is not None:
            kind, length = header[156:157], self._number(header[124:136])
            if kind == LONG_NAME:
                name = self._short(length)
            elif kind in FACTS:
                facts = self._facts(self._short(length))
                name, size = facts.get(b"path", name), self._size_in(facts, size)
            else:
                short = (name or header[:100]).partition(b"\0")[0].rpartition(b"/")[2].decode(errors="replace").lower()
                length = length if size is None else size
                if kind in FILES and (short.startswith("out.") or short == wanted):
                    return length
                if kind not in WITHOUT_CONTENT:
                    self._skip(_padded(length))
                name, size = b"", None
        raise self._wrong("holds neither out.NAME nor NAME.mtx")

    def read(self, size: int) -> memoryview:
        """The next bytes, `size` of them or fewer; none at the end."""
        if not self._waiting:
            self._waiting = memoryview(next(self._blocks, b"")).cast("B")  # type: ignore[arg-type]
        taken, self._waiting = self._waiting[:size], self._waiting[size:]
        return taken

    def damaged(self, how: str) -> FormatError:
        return FormatError(f"the archive is damaged ({how})", path=self.path, remedy="fetch it again")

    def _wrong(self, what: str) -> FormatError:
        return FormatError(f"the archive {what}", path=self.path, remedy="unpack it and name the file of edges")

    def _header(self) -> bytes | None:
        """The next header, its checksum found to be right; None at the end."""
        header = self._exactly(BLOCK, may_end=True)
        if not any(header):
            return None
        stated = self._number(header[148:156])
        if stated != sum(header[:148]) + 8 * ord(" ") + sum(header[156:]):
            raise self.damaged("a header has another checksum")
        if header[156:157] == SPARSE:
            raise self._wrong("holds a sparse file")
        return header

    def _exactly(self, size: int, *, may_end: bool = False) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            piece = self.read(size - len(parts))
            if not piece:
                if may_end and not parts:
                    break
                raise self.damaged("it ends too early")
            parts += piece
        return bytes(parts)

    def _skip(self, size: int) -> None:
        while size:
            taken = len(self.read(size))
            if not taken:
                raise self.damaged("it ends too early")
            size -= taken

    def _short(self, length: int) -> bytes:
        """What a member says of the next one."""
        if length > MAX_HEADER_BYTES:
            raise self._wrong(f"holds a name or facts of {length:,} bytes, over the limit of {MAX_HEADER_BYTES:,}")
        return self._exactly(_padded(length))[:length]

    def _number(self, field: bytes) -> int:
        """A number in octal digits, or in bytes where it has more of them."""
        if field[0] == 0x80:
            return int.from_bytes(field[1:], "big")
        digits = OCTAL.fullmatch(field)
        if digits is None:
            raise self.damaged("a field of a header is not a number")
        return int(digits[1] or b"0", 8)

    def _facts(self, text: bytes) -> dict[bytes, bytes]:
        """Facts by name: each is its length, a space, its name, an equals sign, its value and a newline."""
        found: dict[bytes, bytes] = {}
        count = at = 0
        while at < len(text):
            if count == MAX_FACTS:
                raise self._wrong(f"holds over {MAX_FACTS:,} facts about a member")
            begun = FACT.match(text, at)
            end = 0 if begun is None else at + int(begun[1])
            if begun is None or not begun.end() < end <= len(text):
                raise self.damaged("the facts about a member cannot be read")
            found[begun[2]] = text[begun.end() : end - 1]
            count, at = count + 1, end
        if any(name.startswith(b"GNU.sparse.") for name in found):
            raise self._wrong("holds a sparse file")
        return found

    def _size_in(self, facts: dict[bytes, bytes], size: int | None) -> int | None:
        stated = facts.get(b"size")
        if stated is not None and re.fullmatch(rb"[0-9]{1,18}", stated) is None:
            raise self.damaged("a size is not a number")
        return size if stated is None else int(stated)


class _Member(RawIOBase):
    """The bytes of one member."""

    def __init__(self, archive: _Archive, size: int) -> None:
        self.name = str(archive.path)
        self._archive = archive
        self._left = size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        target = memoryview(buffer).cast("B")
        taken = self._archive.read(min(len(target), self._left))
        if self._left and not taken:
            raise self._archive.damaged("it ends too early")
        target[: len(taken)] = taken
        self._left -= len(taken)
        return len(taken)


def _padded(size: int) -> int:
    return -(-size // BLOCK) * BLOCK
