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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, SupportsInt

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import FormatError, InputError, MissingFileError, PreconditionError, StorageError
from wedgewise.machine import jit
from wedgewise.machine.files import is_writable, make_folder, storage_errors
from wedgewise.machine.jit import kernel
from wedgewise.machine.threads import run_tasks
from wedgewise.read.numpy_files import MAX_HEADER_BYTES, parse_header
from wedgewise.stages import Ids, Labels
from wedgewise.stages.blocks import Block, Partition
from wedgewise.stages.labels import TextLabels
from wedgewise.stages.tasks import BlockCounts
from wedgewise.store.manifest import AGAIN, MANIFEST, FileRecord, Manifest, is_store, read_manifest
from wedgewise.store.urls import Folder, Location, location_of
from wedgewise.store.writer import npy_header

READ_BYTES = 1 << 24
POPULATE = getattr(mmap, "MAP_POPULATE", None)  # all pages at once, not each when it is touched first
IN_MEMORY = {} if POPULATE is None else {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | POPULATE}
CHECKED_ROWS = 1 << 18


def open_store(folder: str | os.PathLike[str], work_folder: str | os.PathLike[str] | None = None) -> Store:
    """Open a store: the manifest is checked, and that every file is there with its size.

    Parameters
    ----------
    folder : its folder, or a URL that fsspec reads, such as ``s3://bucket/store``
    work_folder : where work on it is written down, each graph and partition below a name of its own; by default the
        folder itself, or the cache folder for a URL

    Raises
    ------
    MissingFileError
        When the folder is not a store, or a file of it is missing.
    FormatError
        When the manifest is malformed, or a file is not what it says.

    Examples
    --------
    >>> import pathlib, tempfile, wedgewise as ww
    >>> folder = pathlib.Path(tempfile.mkdtemp()) / "store"
    >>> _ = ww.partition([(10, 20), (20, 30), (30, 10)], folder)
    >>> ww.open_store(folder).labels().tolist()
    [10, 20, 30]
    """
    location = location_of(folder)
    if isinstance(location, Folder) and not is_store(location.path):
        raise MissingFileError(
            f"{location}: is not a store: it has no {MANIFEST}; create one with `wedgewise partition`"
        )
    with location.opened(MANIFEST) as (file, size):
        manifest = read_manifest(file, size, location.name_of(MANIFEST))
    store = Store(location, manifest, None if work_folder is None else Path(work_folder))
    sizes = location.sizes()
    for record in manifest.files:
        store.check_file(record, sizes)
    return store


@dataclass(frozen=True, slots=True, repr=False)
class Store:
    """A graph in blocks on disk; `partition` makes one, `open_store` opens it.

    Examples
    --------
    >>> import pathlib, tempfile, wedgewise as ww
    >>> store = ww.partition([(0, 1), (1, 2), (2, 0)], pathlib.Path(tempfile.mkdtemp()) / "store")
    >>> store.n, store.m, store.folder.name
    (3, 3, 'store')
    """

    location: Location
    manifest: Manifest
    work_folder: Path | None = None

    def __repr__(self) -> str:
        return f"Store({str(self.location)!r}, n={self.n}, m={self.m}, parts={self.parts})"

    @property
    def n(self) -> int:
        """How many vertices there are."""
        return self.manifest.n

    @property
    def m(self) -> int:
        """How many edges there are."""
        return self.manifest.m

    @property
    def parts(self) -> int:
        """How many parts the vertices are cut into."""
        return self.partition.parts

    @property
    def folder(self) -> Path:
        """The folder of a store that is in one."""
        if not isinstance(self.location, Folder):
            raise PreconditionError(f"{self.location}: is a URL; copy the store into a folder for this")
        return self.location.path

    @property
    def is_read_only(self) -> bool:
        """Whether work on it would be written into its folder, and cannot be."""
        return self.work_folder is None and isinstance(self.location, Folder) and not is_writable(self.location.path)

    def beside(self, file: str) -> Path:
        """Where a file about the store is written: in the work folder, its own, or for a URL the cache of the user."""
        if self.work_folder is None and isinstance(self.location, Folder):
            return self.location.path / file
        whole = json.dumps([self.manifest.fingerprint, self.partition.to_dict()], sort_keys=True)
        name = hashlib.sha256(whole.encode()).hexdigest()[:32]  # no other graph has it, nor this one in other parts
        folder = (self.work_folder or self._cache_folder()) / name
        with storage_errors(folder, "made", "name another folder for the work"):
            make_folder(folder, parents=True)
        return folder / file

    def _cache_folder(self) -> Path:
        cache = jit.cache_folder()
        if cache is None:
            raise StorageError(
                f"{self.location}: no folder here is writable by you alone; name one with {jit.CACHE_VARIABLE}"
            )
        folder = cache.parent / "stores"
        with storage_errors(folder, "made", "name another folder for the work"):
            make_folder(folder, mode=0o700)
        return folder

    @property
    def partition(self) -> Partition:
        return self.manifest.partition

    @property
    def counts(self) -> BlockCounts:
        """The arcs of every block and the ids of every part: what is planned by."""
        parts = self.partition.parts
        arcs = np.zeros((parts, parts), np.int64)
        for pair, record in self.manifest.blocks.items():
            arcs[pair] = record.arcs
        return BlockCounts(arcs, np.array(self.partition.sizes, np.int64))

    def files(self) -> Iterator[FileRecord]:
        """Every file that the manifest names."""
        return iter(self.manifest.files)

    def block(self, row: int, column: int, *, threads: int = 1) -> Block:
        """Read a block into memory of its own, and check it."""
        record = self.manifest.blocks[row, column]
        block = Block(self.array(record.offsets), self.array(record.heads), record.columns)
        self._check_rows(block, record.heads, threads)
        return block

    def vertex_of(self) -> Ids:
        """The vertex of every id, each of them once; a byte per vertex more while that is checked."""
        found, n = self.array(self.manifest.vertices), self.manifest.n
        if n and int(found.max()) >= n:
            raise self._wrong(self.manifest.vertices, f"names a vertex beyond {n - 1:,}")
        is_named = np.zeros(n, np.bool_)
        for begin in range(0, n, CHECKED_ROWS):
            is_named[found[begin : begin + CHECKED_ROWS]] = True
        if not is_named.all():
            raise self._wrong(self.manifest.vertices, f"does not name vertex {int(is_named.argmin()):,}")
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
        except (ValueError, RecursionError) as error:
            raise self._wrong(record, f"has a line that is not a JSON string ({error})") from error
        if len(names) != self.manifest.n or not all(isinstance(name, str) for name in names):
            raise self._wrong(record, f"does not hold {self.manifest.n:,} labels")
        try:
            return TextLabels.of(names)
        except InputError as error:
            raise self._wrong(record, "has a label that is not text") from error

    def array(self, record: FileRecord) -> NDArray[Any]:
        """The numbers of a file, once their checksum is found to be right."""
        with self.opened(record) as file:
            begin = file.tell()
            file.seek(0)
            found = private_memory(record.length, np.dtype(record.dtype))
            digest = digest_of(file, begin, found.nbytes, found.view(np.uint8).data)
        if digest is None:
            raise self._wrong(record, "became shorter while it was read")
        self._check_sum(record, digest)
        return found

    @contextmanager
    def opened(self, record: FileRecord) -> Iterator[BinaryIO]:
        """A file of the store at the beginning of its data; header and size are what the manifest says."""
        with self.location.opened(record.file) as (file, size):
            begin = self._data_offset(record, file)
            due = begin + _data_bytes(record)
            if size != due:
                raise self._wrong(record, f"has {size:,} bytes where the manifest says {due:,}")
            file.seek(begin)
            yield file

    def check_file(self, record: FileRecord, sizes: Mapping[str, int] | None) -> None:
        """A file is there with its header and size; where sizes are given, with enough bytes for its data."""
        if sizes is None:
            with self.opened(record):
                return
        if record.file not in sizes:
            raise MissingFileError(f"{self.location.name_of(record.file)}: is not there; {AGAIN}")
        if sizes[record.file] < _data_bytes(record):
            raise self._wrong(record, f"has {sizes[record.file]:,} bytes, fewer than the manifest says")

    def _data_offset(self, record: FileRecord, file: BinaryIO) -> int:
        if record.dtype == "text":
            return 0
        due = npy_header(np.dtype(record.dtype), record.length)
        head = file.read(len(due))
        if head == due:
            return len(due)
        try:
            header = parse_header(head + file.read(MAX_HEADER_BYTES + 12), self.location.name_of(record.file))
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
                raise self._wrong(record, f"has a row {fault - 1:,} that is not an ascending list of columns")

    def _wrong(self, record: FileRecord, reason: str) -> FormatError:
        return FormatError(reason, path=self.location.name_of(record.file), remedy=AGAIN)


def _data_bytes(record: FileRecord) -> int:
    return record.length * (1 if record.dtype == "text" else np.dtype(record.dtype).itemsize)


def digest_of(file: BinaryIO, header_bytes: int, data_bytes: int, raw: memoryview) -> str | None:
    """The SHA-256 of a header and the data behind it, read into a buffer, or through one that is smaller.

    None where the file ends before that.
    """
    digest, step = hashlib.sha256(file.read(header_bytes)), max(1, min(len(raw), READ_BYTES))
    for at in range(0, data_bytes, step):
        length = min(step, data_bytes - at)
        part = raw[at : at + length] if len(raw) == data_bytes else raw[:length]
        if _read_into(file, part) != length:
            return None
        digest.update(part)
    return digest.hexdigest()


def _read_into(file: BinaryIO, part: memoryview) -> int:
    """Fill a buffer as far as the file goes; one read may bring less than was asked for."""
    filled = 0
    while filled < len(part):
        read = file.readinto(part[filled:])  # type: ignore[attr-defined]
        if not read:
            break
        filled += read
    return filled


def private_memory(length: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Memory that goes back to the system at once when it is released, unlike that of small arrays."""
    need = max(1, length * dtype.itemsize)
    try:
        return np.frombuffer(mmap.mmap(-1, need, **IN_MEMORY), dtype, length)
    except OSError as error:
        raise MemoryError(f"the system has no {need:,} bytes") from error


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
