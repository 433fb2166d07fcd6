"""Where graphs are kept: a folder each, below the folder that compiled kernels are kept in too.

CACHE/datasets/NAME/FILE          the file as it was published, once it is complete
CACHE/datasets/NAME/FILE.part     as much of it as has arrived
CACHE/datasets/NAME/FILE.refused  a file that was not the graph it should be
CACHE/datasets/NAME.json          where it came from, its checksum, and what was counted in it
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from wedgewise.errors import MissingFileError, StorageError
from wedgewise.machine.files import atomic_write, put_in_place
from wedgewise.machine.jit import CACHE_VARIABLE, cache_root
from wedgewise.machine.own_files import (
    file_identity,
    make_own_folder,
    notice_once,
    read_trusted,
    why_not_own,
    why_not_own_file,
)
from wedgewise.machine.progress import Progress

PIECE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class CachedFile:
    """A file in the folder of a graph.

    Attributes
    ----------
    file : its name
    bytes, sha256 : its size and checksum when it arrived
    signs : what the system said of it then, or when it was last compared with the checksum
    origin : the address or path that it came from
    counted : n, m and triangles that were counted in it, and kmax if that was asked for; empty before it was checked
    verified : the checksums of this graph's files that were counted and agree with what is published
    """

    file: str
    bytes: int
    sha256: str
    origin: str
    counted: dict[str, int] = field(default_factory=dict)
    verified: tuple[str, ...] = ()
    signs: dict[str, int] = field(default_factory=dict)

    @property
    def is_verified(self) -> bool:
        """Whether this very content was counted and agrees with what is published."""
        return self.sha256 in self.verified


@dataclass(frozen=True, slots=True)
class GraphFolder:
    """The folder of one graph."""

    path: Path

    @property
    def _record_path(self) -> Path:
        return self.path.with_name(f"{self.path.name}.json")

    def make(self) -> None:
        """Make the folder."""
        try:
            make_own_folder(self.path)
        except OSError as error:
            raise StorageError(
                f"{self.path}: cannot be made ({error.strerror}); name a folder with {CACHE_VARIABLE}"
            ) from error

    def record(self) -> CachedFile | None:
        """What is remembered; None where nothing is, where it cannot be read, or where others can have written it."""
        data = read_trusted(self._record_path)
        try:
            return None if data is None else _record_of(json.loads(data))
        except (ValueError, TypeError, KeyError, RecursionError):
            return None

    def remember(self, record: CachedFile) -> None:
        """Write what is to be remembered."""
        with atomic_write(self._record_path, mode=0o600) as file:
            file.write(json.dumps(asdict(record), indent=1).encode())

    def file(self) -> Path | None:
        """The file, if it is there, of this user alone, and as it arrived.

        Its bytes are compared with the checksum where somebody has written, replaced or renamed it since.
        """
        path, record = self.own_file(), self.record()
        if path is None or record is None:
            return None
        if file_identity(path) != record.signs:
            found = content_of(path)
            if (found["bytes"], found["sha256"]) != (record.bytes, record.sha256):
                notice_once(
                    str(path), f"{path} is not read_trusted, because it has another checksum than when it arrived"
                )
                return None
            with suppress(StorageError):  # who cannot write here compares again next time
                self.remember(replace(record, **found))
        return path

    def own_file(self) -> Path | None:
        """The file, if it is there and of this user alone, whatever it holds."""
        record = self.record()
        if record is None or not (self.path / record.file).exists():
            return None
        path = self.path / record.file
        reason = why_not_own_file(path) or why_not_own(self.path)
        if reason is not None:
            notice_once(str(self.path), f"{path} is not read_trusted, because {reason}")
        return path if reason is None else None

    def begun(self) -> bool:
        """Whether a part of a file has arrived."""
        return self.path.is_dir() and any(self.path.glob("*.part"))

    def refuse(self, path: Path) -> Path:
        """Take the name from a file that is not the graph; where it is now."""
        aside = path.with_name(f"{path.name}.refused")
        put_in_place(path, aside)
        return aside

    def copy_in(self, path: Path, stage: str, progress: Progress | None) -> Path:
        """A copy of a file from elsewhere, which appears whole or not at all."""
        target = self.path / path.name
        try:
            source = path.open("rb")
        except OSError as error:
            raise MissingFileError(f"{path}: cannot be read ({error.strerror}); check its permissions") from error
        with source, atomic_write(target) as copy:
            total = os.fstat(source.fileno()).st_size
            while piece := source.read(PIECE_BYTES):
                copy.write(piece)
                if progress is not None:
                    progress(stage, copy.tell(), total)
        return target


def folder_of(name: str) -> GraphFolder:
    """The folder of a graph of the catalogue; nothing is made yet.

    Raises
    ------
    StorageError
        when this user has no folder to keep files in
    """
    root = cache_root()
    if root is None:
        raise StorageError(f"there is no home folder to keep graphs in; name a folder with {CACHE_VARIABLE}")
    return GraphFolder(root / "datasets" / name)


def _record_of(facts: dict[str, Any]) -> CachedFile:
    """A record with every field as it was written, whose file lies in its folder."""
    record = CachedFile(**{**facts, "verified": tuple(facts["verified"])})
    texts = (record.file, record.sha256, record.origin, *record.counted, *record.verified, *record.signs)
    numbers = (record.bytes, *record.counted.values(), *record.signs.values())
    if not all(type(text) is str for text in texts) or not all(type(number) is int for number in numbers):
        raise TypeError("a field of another kind")
    if record.file in ("", ".", "..") or Path(record.file).name != record.file:
        raise ValueError("the name of a file is a path")
    return record


def content_of(path: Path) -> dict[str, Any]:
    """What a `CachedFile` says of the content of a file; its signs are looked at first, so that later changes show."""
    signs = file_identity(path)
    return {"bytes": signs["size"], "sha256": checksum(path), "signs": signs}


def checksum(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
