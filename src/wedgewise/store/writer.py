"""Arrays → files of a store, in pieces: header, numbers and SHA-256 as they come.

The manifest appears last, when all others are on the disk: without it a folder is no store. A store is built in a
folder that is not there yet, empty, or holds what an interrupted build left. Whatever ends the build early, its files
are removed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import InputError, StorageError, VerificationError
from wedgewise.machine.files import atomic_write, make_folder, process_lock, storage_errors
from wedgewise.stages import Keys
from wedgewise.stages.labels import TextLabels
from wedgewise.store.manifest import MANIFEST, FileRecord, Manifest

LOCK = "store.lock"  # of whoever makes the store
BUILDING = "store.building"  # is there while a store is made: what else is there is then ours to remove
FIRST = re.compile(r"store\.lock|\.store\.building\.[0-9a-f]{12}\.tmp")  # what a kill may leave before anything else
OURS = re.compile(
    r"\.?(block-\d+-\d+\.(offsets|heads)|vertices|labels|manifest|store)\.(npy|jsonl?|building)(\.[0-9a-f]{12}\.tmp)?"
)


class Fingerprint:
    """SHA-256 of a simple graph: its edges ``u << 32 | v`` by slots, ascending and little-endian, then n."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def add(self, keys: Keys) -> None:
        """The next edges."""
        self._digest.update(np.ascontiguousarray(keys, "<u8").data)

    def of(self, n: int) -> str:
        """The fingerprint, all edges having been added."""
        whole = self._digest.copy()
        whole.update(n.to_bytes(8, "little"))
        return whole.hexdigest()


class ArrayWriter:
    """A one-dimensional array that is written in pieces."""

    def __init__(self, file: BinaryIO, name: str, dtype: str, length: int) -> None:
        self.written = 0
        self._file = file
        self._name, self._dtype, self._length = name, np.dtype(dtype), length
        self._digest = hashlib.sha256()
        self._put(npy_header(self._dtype, length))

    def add(self, numbers: NDArray[Any]) -> None:
        """The next numbers."""
        self._put(np.ascontiguousarray(numbers, self._dtype).view(np.uint8).data)
        self.written += len(numbers)

    def record(self) -> FileRecord:
        """What the manifest says of the file."""
        if self.written != self._length:
            raise VerificationError(f"{self._name}: {self.written:,} of {self._length:,} numbers: please report this")
        return FileRecord(self._name, self._dtype.str, self._length, self._digest.hexdigest())

    def _put(self, raw: bytes | memoryview) -> None:
        self._file.write(raw)
        self._digest.update(raw)


def npy_header(dtype: np.dtype[Any], length: int) -> bytes:
    """The header that NumPy writes for such an array."""
    text = f"{{'descr': '{dtype.str}', 'fortran_order': False, 'shape': ({length},), }}"
    padded = text.ljust(-(-(len(text) + 11) // 64) * 64 - 11) + "\n"
    return b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded.encode()


@contextmanager
def array_writer(folder: Path, name: str, dtype: str, length: int, *, to_disk: bool = True) -> Iterator[ArrayWriter]:
    """A file of the store that is whole when it appears, and on the disk then or when `sync_files` has followed."""
    with atomic_write(folder / name, to_disk=to_disk) as file:
        yield ArrayWriter(file, name, dtype, length)


def write_array(folder: Path, name: str, numbers: NDArray[Any], *, to_disk: bool = True) -> FileRecord:
    """A whole array."""
    dtype = numbers.dtype.newbyteorder("<").str
    with array_writer(folder, name, dtype, len(numbers), to_disk=to_disk) as writer:
        writer.add(numbers)
        return writer.record()


def write_names(folder: Path, name: str, labels: TextLabels) -> FileRecord:
    """Text labels, a JSON string a line."""
    digest, length = hashlib.sha256(), 0
    with atomic_write(folder / name) as file:
        for label in labels:
            line = json.dumps(label).encode() + b"\n"
            file.write(line)
            digest.update(line)
            length += len(line)
    return FileRecord(name, "text", length, digest.hexdigest())


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """The last file of a store."""
    with atomic_write(folder / MANIFEST) as file:
        file.write(manifest.to_json().encode())


@contextmanager
def building(folder: Path) -> Iterator[None]:
    """A folder to build a store in, for this process alone; where the block fails, what was built is removed."""
    existed = folder.exists()
    try:
        with storage_errors(folder, "made", "name a folder whose parent is there"):
            make_folder(folder)
        _check_vacant(folder)
        with process_lock(folder / LOCK, "wait until it has ended, or name another folder"), _built(folder):
            yield
    except BaseException:
        if not existed:
            with suppress(OSError):
                folder.rmdir()
        raise


@contextmanager
def _built(folder: Path) -> Iterator[None]:
    """The same without a look at other processes."""
    _check_vacant(folder)
    try:
        with atomic_write(folder / BUILDING):
            pass
        _remove_ours(folder, but=BUILDING)
        yield
        with storage_errors(folder / BUILDING, "removed", "check the folder and its permissions"):
            (folder / BUILDING).unlink()
    except BaseException:
        with suppress(OSError):
            _remove_ours(folder)
        raise


def check_free(folder: Path, need: int, sentence: str, written: int = 0) -> None:
    """Refuse what the disk of a folder has no space for, by a sentence with {free}; `written` of it is there."""
    with storage_errors(folder, "looked at", "check the folder and its permissions"):
        free = shutil.disk_usage(folder).free + written
    if need > free:
        raise StorageError(f"{folder}: {sentence.format(free=free)}")


def _check_vacant(folder: Path) -> None:
    with storage_errors(folder, "looked through", "check the folder and its permissions"):
        names = {name for name in os.listdir(folder) if not FIRST.fullmatch(name)}
    if MANIFEST in names:
        raise InputError(f"{folder}: holds a store already; remove it or name another folder")
    foreign = [name for name in names if not OURS.fullmatch(name) or BUILDING not in names]
    if foreign:
        raise InputError(f"{folder}: is not empty ({min(foreign)!r} is there); name another folder")


def _remove_ours(folder: Path, but: str | None = None) -> None:
    """Remove the files of a build but for one: what makes them a store first, what says that they are ours last."""
    with storage_errors(folder, "emptied", "check the folder and its permissions"):
        for name in sorted(os.listdir(folder), key=lambda name: (name == BUILDING) - (name == MANIFEST)):
            if OURS.fullmatch(name) and name != but:
                (folder / name).unlink()
