"""A graph in blocks on disk: opened with every claim checked, read block by block into memory of its own.

Nothing is mapped: what a process holds is what it asked for, and a file that somebody changes meanwhile cannot change
blocks that were checked. A block is checked three times before it is counted: what its header declares against the
manifest and the size of the file, before memory is taken; its bytes against their SHA-256; and its rows, so that even a
store that lies consistently cannot make a kernel read outside of it.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, SupportsInt

import numpy as np
from numpy.typing import NDArray

from wedgewise.blocks import Block, Partition
from wedgewise.errors import FormatError, MissingFileError
from wedgewise.execute.threads import run_tasks
from wedgewise.graph import Ids, Labels
from wedgewise.machine.jit import kernel
from wedgewise.partition.manifest import AGAIN, MANIFEST, FileRecord, Manifest, is_store, read_manifest
from wedgewise.partition.tasks import Counts
from wedgewise.read.numpy_files import MAX_HEADER_BYTES, parse_header

READ_BYTES = 1 << 24
CHECKED_ROWS = 1 << 18


def open_store(folder: str | os.PathLike[str]) -> Store:
    """Open a store: the manifest is checked, and that every file is there with its size.

    Raises
    ------
    MissingFileError
        When the folder is no store, or a file of it is missing.
    FormatError
        When the manifest is malformed, or a file is not what it says.
    """
    root = Path(folder)
    if not is_store(root):
        raise MissingFileError(f"{root}: is no store, for it has no {MANIFEST}; make one with `wedgewise partition`")
    store = Store(root, read_manifest(root / MANIFEST))
    for record in store.files():
        with store.opened(record):
            pass
    return store


@dataclass(frozen=True, slots=True)
class Store:
    """An open store."""

    folder: Path
    manifest: Manifest

    @property
    def partition(self) -> Partition:
        return self.manifest.partition

    @property
    def counts(self) -> Counts:
        """The arcs of every block and the ids of every part: what is planned by."""
        parts = self.partition.parts
        arcs = np.zeros((parts, parts), np.int64)
        for pair, record in self.manifest.blocks.items():
            arcs[pair] = record.arcs
        return Counts(arcs, np.array(self.partition.sizes, np.int64))

    def files(self) -> Iterator[FileRecord]:
        """Every file that the manifest names."""
        yield self.manifest.vertices
        if self.manifest.labels is not None:
            yield self.manifest.labels
        for block in self.manifest.blocks.values():
            yield block.offsets
            yield block.heads

    def block(self, row: int, column: int, *, threads: int = 1) -> Block:
        """Read a block into memory of its own, and check it."""
        record = self.manifest.blocks[row, column]
        block = Block(self.array(record.offsets), self.array(record.heads), record.columns)
        self._check_rows(block, record.heads, threads)
        return block

    def vertex_of(self) -> Ids:
        """The vertex of every id."""
        found = self.array(self.manifest.vertices)
        if self.manifest.n and int(found.max()) >= self.manifest.n:
            raise self._wrong(self.manifest.vertices, f"names a vertex beyond {self.manifest.n - 1:,}")
        return found

    def labels(self) -> Labels:
        """What the user called every vertex."""
        record = self.manifest.labels
        if record is None:
            return range(self.manifest.n)
        if record.dtype != "text":
            return self.array(record)
        with self.opened(record) as file:
            text = file.read(record.length)
        self._check_sum(record, hashlib.sha256(text).hexdigest())
        try:
            names = [json.loads(line) for line in text.splitlines()]
        except ValueError as error:
            raise self._wrong(record, f"has a line that is no JSON string ({error})") from error
        if len(names) != self.manifest.n or not all(isinstance(name, str) for name in names):
            raise self._wrong(record, f"does not hold {self.manifest.n:,} labels")
        return names

    def array(self, record: FileRecord) -> NDArray[Any]:
        """The numbers of a file, once their checksum is found to be right."""
        with self.opened(record) as file:
            begin = file.tell()
            file.seek(0)
            digest = hashlib.sha256(file.read(begin))
            found = private_memory(record.length, np.dtype(record.dtype))
            raw = found.view(np.uint8).data
            for at in range(0, len(raw), READ_BYTES):
                part = raw[at : at + READ_BYTES]
                if file.readinto(part) != len(part):  # type: ignore[attr-defined]
                    raise self._wrong(record, "became shorter while it was read")
                digest.update(part)
        self._check_sum(record, digest.hexdigest())
        return found

    @contextmanager
    def opened(self, record: FileRecord) -> Iterator[BinaryIO]:
        """A file of the store at the beginning of its data; header and size are what the manifest says."""
        path = self.folder / record.file
        try:
            descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        except OSError as error:
            reason = error.strerror or str(error)
            raise MissingFileError(f"{path}: cannot be opened ({reason}); {AGAIN}") from error
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise self._wrong(record, "is no regular file")
            begin = self._data_offset(record, file)
            due = begin + record.length * (1 if record.dtype == "text" else np.dtype(record.dtype).itemsize)
            if status.st_size != due:
                raise self._wrong(record, f"has {status.st_size:,} bytes where the manifest says {due:,}")
            file.seek(begin)
            yield file

    def _data_offset(self, record: FileRecord, file: BinaryIO) -> int:
        if record.dtype == "text":
            return 0
        try:
            header = parse_header(file.read(MAX_HEADER_BYTES + 12), str(self.folder / record.file))
        except FormatError as error:
            raise self._wrong(record, error.reason) from error
        if (header.dtype.str, header.shape) != (record.dtype, (record.length,)) or header.fortran_order:
            declared = f"{header.dtype.str}{list(header.shape)}"
            raise self._wrong(record, f"declares {declared} where the manifest says {record.dtype}[{record.length}]")
        return header.data_offset

    def _check_sum(self, record: FileRecord, found: str) -> None:
        if found != record.sha256:
            raise self._wrong(record, "has other bytes than were written: its SHA-256 is not the manifest's")

    def _check_rows(self, block: Block, record: FileRecord, threads: int) -> None:
        def check(part: int, _worker: int) -> int:
            end = min(block.rows, (part + 1) * CHECKED_ROWS)
            return int(first_fault(block.offsets, block.heads, block.columns, part * CHECKED_ROWS, end))

        if block.offsets[0] != 0 or block.offsets[-1] != block.m:
            raise self._wrong(record, f"has {block.m:,} arcs where its offsets go from {block.offsets[0]}")
        faults = run_tasks(check, -(-block.rows // CHECKED_ROWS), threads)
        for fault in faults:
            if fault:
                raise self._wrong(record, f"has a row {fault - 1:,} that is no ascending list of columns")

    def _wrong(self, record: FileRecord, reason: str) -> FormatError:
        return FormatError(reason, path=self.folder / record.file, remedy=AGAIN)


def private_memory(length: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Memory that goes back to the system at once when it is given up, unlike that of small arrays."""
    return np.frombuffer(mmap.mmap(-1, max(1, length * dtype.itemsize)), dtype, length)


@kernel
def first_fault(offsets: NDArray[Any], heads: Ids, columns: int, begin: int, end: int) -> SupportsInt:
    """One more than the first row in [begin, end) that does not ascend or leaves the block; 0 without any."""
    one, arcs = np.uint64(1), np.uint64(len(heads))
    for row in range(np.uint64(begin), np.uint64(end)):
        first, last = np.uint64(offsets[row]), np.uint64(offsets[row + one])
        if first > last or last > arcs:
            return row + one
        least = np.uint64(0)
        for arc in range(first, last):
            head = np.uint64(heads[arc])
            if head < least or head >= np.uint64(columns):
                return row + one
            least = head + one
    return np.uint64(0)
