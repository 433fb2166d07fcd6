"""The one way in which finished work on a store is written down, so that work that was ended goes on where it was.

    count.journal            the finished tasks of a count, up to `TASKS_PER_LINE` a line, and how many there are in all

    FOLDER/slice-N.npy       slice number N of an answer, or block N behind a round of a truss; it appears whole
    FOLDER/slices.journal    then a line: its number ("owner"), its type, length and SHA-256

A `Checkpoint` is a file of lines. Every line names the work that it belongs to by a key, and has a checksum. A line
that is torn, as the last one may be when a process is killed, or damaged, is as if it was not there: what it says is
done again. A line is written before the next batch or slice begins, so that whoever kills the process loses that alone.
Once a second lines, and the files that they tell of, are flushed to the disk: a power cut loses a second of work more.
A round of a truss is also flushed at its end, however short it was, since the round before it is removed then.

Slices of workers are flushed so too: by the driver, which accepts them. A worker flushes only what replaces a slice
that is there already, for the driver may have flushed that one and does not do it again. Where workers are on other
machines, their file system has to write out what is closed; where it does not, a power cut loses slices, no results.

A slice is there when its line is whole and its bytes are what the line says, which no order of writing has to ensure.
One that is torn, damaged or of another number is as if it was not there: it is computed again. Where a slice has
several lines, the last one counts. Seconds of tasks are in their lines; results do not depend on those.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import ClusterError, FormatError, InputError, StorageError, VerificationError
from wedgewise.machine.files import (
    append_line,
    make_folder,
    process_lock,
    scratch_file,
    storage_errors,
    sync_files,
)
from wedgewise.machine.own_files import open_regular
from wedgewise.stages.tasks import TaskResults
from wedgewise.store.manifest import FileRecord
from wedgewise.store.open import READ_BYTES, Store, digest_of, private_memory
from wedgewise.store.writer import check_free, npy_header, write_array

JOURNAL = "count.journal"
LOCK_SUFFIX = ".lock"
TASKS_PER_LINE = 100
TASK_BYTES, LINE_BYTES = 96, 256  # of a task in a line, and of the rest of a line, more than any has
MAX_LINE_BYTES = LINE_BYTES + TASKS_PER_LINE * TASK_BYTES
FLUSH_SECONDS = 1.0
WAIT = "wait until it has ended, or name another folder for the work (--work, work_folder=)"
UNLOCKED = "{folder} is on a file system without locks: nothing else may work on the same question there meanwhile"
NOT_KEPT = "{store} cannot be written to: a count that is ended starts again, unless --work (work_folder=) is given"
COLUMNS = ("tasks", "triangles", "tests", "seconds")
SLICES = "slices.journal"
SLICE_FIELDS = {"key": str, "owner": int, "dtype": str, "length": int, "sha256": str}
NUMBERS = re.compile(r"[<|]u[1248]", re.ASCII)
OURS = re.compile(r"slice-\d+\.npy|\.slice-\d+\.npy\.[0-9a-f]{12}\.tmp", re.ASCII)


def key_of(**facts: Any) -> str:
    """A short name for work: of the graph, the options and whatever else its results depend on."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]


@contextmanager
def lock_work(store: Store, question: str) -> Iterator[tuple[str, ...]]:
    """Keep other processes off what is written down for a question about a store; what a plan should say of that."""
    lock = store.beside(question + LOCK_SUFFIX)
    refuse_link(lock)
    with process_lock(lock, WAIT) as has_locks:
        yield () if has_locks else (UNLOCKED.format(folder=lock.parent),)


@contextmanager
def open_journal(
    store: Store, key: str, tasks: int, *, resume: bool
) -> Iterator[tuple[Journal | None, tuple[str, ...]]]:
    """The journal of a count, for this process alone, and notes for its plan; None where it cannot be written."""
    if store.is_read_only:
        yield None, notes_on_counting(store)
        return
    check_disk(store, "count", journal_bytes(tasks))
    with lock_work(store, "count") as notes:
        journal = Journal(store.beside(JOURNAL), key, tasks)
        if not resume:
            journal.remove()
        journal.read()
        yield journal, notes


def kept_tasks(store: Store) -> int | None:
    """How many tasks the count has that was ended, the idle ones included; None where nothing says so."""
    records = () if store.is_read_only else map(record_in, lines_of(store.beside(JOURNAL)))
    all_tasks = next((record.get("all_tasks") for record in records if record is not None), None)
    return all_tasks if type(all_tasks) is int else None


def journal_bytes(tasks: int) -> int:
    """What the lines of so many tasks take at most, however few are in each."""
    return (LINE_BYTES + TASK_BYTES) * tasks


def check_disk(store: Store, question: str, need: int) -> None:
    """Refuse what the disk that work is written down on has no space for."""
    folder = store.beside(JOURNAL).parent
    taken = f"{question} keeps {need:,} bytes on disk while it works, and {{free:,}} are free there"
    check_free(folder, need, taken + "; free some, or name a folder on another disk by --work (work_folder=)")


def notes_on_counting(store: Store) -> tuple[str, ...]:
    """What a plan should say where a count cannot be written down."""
    return (NOT_KEPT.format(store=store.location),) if store.is_read_only else ()


class Checkpoint:
    """The lines of one piece of work, which a key names."""

    def __init__(self, path: Path, key: str) -> None:
        self.path, self._key = path, key
        self._flushed, self._files = time.monotonic(), list[Path]()
        refuse_link(path)

    def records(self, is_one: Callable[[dict[str, Any]], bool]) -> Iterator[dict[str, Any]]:
        """The records that are whole and of the kind that is looked for; refuse those of other work."""
        for line in lines_of(self.path):
            record = record_in(line)
            if record is None:
                continue
            if str(record.get("key")) != self._key:
                raise InputError(
                    f"{self.path}: holds results for another graph, other options or another version; go on with "
                    "those, or start again: by --restart, or by removing it"
                )
            if is_one(record):
                yield record

    def add(self, record: Mapping[str, Any], file: Path | None = None) -> None:
        """Write a record down behind the file that it tells of: a kill does not take it back."""
        append_line(self.path, line_of({"key": self._key, **record}), to_disk=False)
        self._files += [] if file is None else [file]
        if time.monotonic() - self._flushed >= FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Bring everything that was added to the disk: a power cut does not take it back either."""
        sync_files([*self._files, self.path])
        self._flushed, self._files = time.monotonic(), []

    def remove(self) -> None:
        """All of it was used, or none of it counts."""
        self._files = []
        with storage_errors(self.path, "removed", "remove it"):
            self.path.unlink(missing_ok=True)


class Journal:
    """The finished tasks of one piece of work that has so many, the idle ones included; `results` has what they found.

    Parameters
    ----------
    path : of its file
    key : names the work
    tasks : the numbers of tasks are below this
    """

    def __init__(self, path: Path, key: str, tasks: int) -> None:
        self.path, self._lines = path, Checkpoint(path, key)
        self.results = TaskResults.none(tasks)

    def read(self) -> None:
        """Take in what is there; raise where it is of other work."""
        for record in self._lines.records(self._has_columns):
            self._take(*(record[name] for name in COLUMNS))

    def add(self, tasks: Any, triangles: Any, tests: Any, seconds: Any) -> None:
        """The tasks of a batch are finished."""
        columns = [np.asarray(column).tolist() for column in (tasks, triangles, tests, np.round(seconds, 9))]
        for begin in range(0, len(columns[0]), TASKS_PER_LINE):
            some = (column[begin : begin + TASKS_PER_LINE] for column in columns)
            self._lines.add({"all_tasks": len(self.results.is_done), **dict(zip(COLUMNS, some, strict=True))})
        self.results.put(tasks, triangles, tests, seconds)

    def remove(self) -> None:
        """All tasks are finished, or none of them count."""
        self._lines.remove()
        self.results = TaskResults.none(len(self.results.is_done))

    def _has_columns(self, record: dict[str, Any]) -> bool:
        columns = [record.get(name) for name in COLUMNS]
        if not all(isinstance(column, list) and len(column) == len(columns[0] or ()) for column in columns):
            return False
        tasks, *counts, seconds = columns
        known = len(self.results.is_done)
        return (
            all(type(task) is int and 0 <= task < known for task in tasks or ())
            and all(type(count) is int and 0 <= count < 1 << 64 for column in counts for count in column or ())
            and all(type(taken) is float and 0 <= taken < inf for taken in seconds or ())
        )

    def _take(self, tasks: list[int], triangles: list[int], tests: list[int], seconds: list[float]) -> None:
        for task, found in zip(tasks, triangles, strict=True):  # tests depend on the batch
            if self.results.is_done[task] and int(self.results.triangles[task]) != found:
                raise VerificationError(
                    f"{self.path}: task {task} has two results; start again by --restart, or by removing it"
                )
        self.results.put(tasks, np.array(triangles, np.uint64), np.array(tests, np.uint64), seconds)


class FinishedSlices:
    """The finished slices of one piece of work; `done` has their numbers.

    Parameters
    ----------
    folder : where they are, made with the first of them
    key : names the work: the graph, the options and whatever else its slices depend on
    resume : go on with what is there; without it, start again
    stored_forms : the type and the length of every slice, by its number; one of others is as if it was not there

    Raises
    ------
    InputError
        When the folder has slices of other work.
    """

    def __init__(
        self, folder: Path, key: str, *, resume: bool = True, stored_forms: Mapping[int, tuple[str, int]] | None = None
    ) -> None:
        refuse_link(folder)
        self.folder, self._stored_forms, self._lines = folder, stored_forms, Checkpoint(folder / SLICES, key)
        self._records: dict[int, FileRecord] = {}
        if not resume:
            self.remove()
        self._take_in()

    @property
    def done(self) -> Set[int]:
        """The numbers of the slices that are there."""
        return self._records.keys()

    def put(self, number: int, array: NDArray[Any]) -> None:
        """A slice of unsigned numbers is finished: when this returns, a kill does not take it back."""
        with storage_errors(self.folder, "made", "check the folders above it"):
            make_folder(self.folder, parents=True)
        self._records.pop(number, None)
        path = self.folder / _file(number)
        refuse_link(path)
        record = write_array(self.folder, path.name, array, to_disk=False)
        line = {"owner": number, "dtype": record.dtype, "length": record.length, "sha256": record.sha256}
        self._lines.add(line, path)
        self._records[number] = record

    def accept(self, number: int, record: FileRecord) -> None:
        """A slice that another process has written is finished, if it is here and what that process says.

        Raises
        ------
        VerificationError
            When it was accepted before, with other numbers.
        """
        known = self._records.get(number)
        if known is not None and known != record:
            raise VerificationError(
                f"{self.folder}: slice {number} was computed twice, with different numbers; a worker is broken: give "
                "the same command without it"
            )
        is_due = self._stored_forms is None or self._stored_forms.get(number) == (record.dtype, record.length)
        if record.file != _file(number) or not is_due or not self._is_whole(record):
            raise ClusterError(
                f"{self.folder / _file(number)}: is not what a worker has written; workers need this folder: name one "
                "that all of them share by --work (work_folder=)"
            )
        if known is None:
            line = {"owner": number, "dtype": record.dtype, "length": record.length, "sha256": record.sha256}
            self._lines.add(line, self.folder / record.file)
            self._records[number] = record

    def flush(self) -> None:
        """Bring all slices to the disk."""
        if self._records:
            self._lines.flush()

    def get(self, number: int) -> NDArray[Any]:
        """A slice that is done, in memory of its own.

        Raises
        ------
        FormatError
            When it was changed meanwhile; it is then no longer among those that are done.
        """
        record = self._records[number]
        found = private_memory(record.length, np.dtype(record.dtype))
        if not self._is_whole(record, found):
            del self._records[number]
            raise FormatError(
                "has other bytes than were written",
                path=self.folder / record.file,
                remedy="give the same command again: this slice is then made anew",
            )
        return found

    def remove(self) -> None:
        """All slices were used, or none of them count: nothing of them is left, nor the folder if it is empty."""
        self._records.clear()
        with storage_errors(self.folder, "emptied", "check its permissions"):
            if not self.folder.is_dir():
                return
            self._lines.remove()
            for path in list(self.folder.iterdir()):
                if OURS.fullmatch(path.name):
                    path.unlink()
            if not any(self.folder.iterdir()):
                self.folder.rmdir()

    def _take_in(self) -> None:
        """Take in the lines that are whole, and of those the slices that are."""
        for record in self._lines.records(_is_slice):
            number, dtype, length = record["owner"], record["dtype"], record["length"]
            if self._stored_forms is None:
                can_be = number >= 0 and length >= 0 and NUMBERS.fullmatch(dtype) is not None
            else:
                can_be = self._stored_forms.get(number) == (dtype, length)
            if can_be:
                self._records[number] = FileRecord(_file(number), dtype, length, record["sha256"])
        for number, known in list(self._records.items()):
            if not self._is_whole(known):
                del self._records[number]

    def _is_whole(self, record: FileRecord, into: NDArray[Any] | None = None) -> bool:
        """Whether a file is what its line says, with its numbers read into an array or dropped piece by piece."""
        path, dtype = self.folder / record.file, np.dtype(record.dtype)
        header, due = npy_header(dtype, record.length), record.length * dtype.itemsize
        with storage_errors(path, "read", "check the disk and its permissions, or start again: by --restart"):
            found = None if path.is_symlink() or not path.exists() else open_regular(path)
            if found is None:
                return False
            with found[0] as file:
                if found[1] != len(header) + due:
                    return False
                raw = memoryview(bytearray(min(due, READ_BYTES))) if into is None else into.view(np.uint8).data
                return digest_of(file, len(header), due, raw) == record.sha256


def _is_slice(record: dict[str, Any]) -> bool:
    return all(type(record.get(name)) is kind for name, kind in SLICE_FIELDS.items())


def write_slice(folder: Path, number: int, array: NDArray[Any]) -> FileRecord:
    """Write a slice into the folder of another process, which accepts it and flushes it, unless it did so before."""
    path = folder / _file(number)
    refuse_link(path)
    return write_array(folder, path.name, array, to_disk=path.exists())


def _file(number: int) -> str:
    return f"slice-{number}.npy"


def lines_of(path: Path) -> Iterator[bytes]:
    """The lines of a journal, if there is one; one that is too long for a record comes in pieces that are none."""
    with storage_errors(
        path, "read", "check the disk and its permissions, or start again: by --restart (resume=False)"
    ):
        try:
            found = open_regular(path)
        except (FileNotFoundError, NotADirectoryError):
            return
        if found is None:
            raise StorageError(f"{path}: is not a regular file, where work on a store is written down; remove it")
        with found[0] as file:
            _refuse_stranger(path, file)
            while line := file.readline(MAX_LINE_BYTES):
                yield line


def _refuse_stranger(path: Path, file: BinaryIO) -> None:
    """Believe nothing that another user wrote: results have checksums against damage, not against lies."""
    owner = owner_of(file)
    if not hasattr(os, "geteuid") or owner == os.geteuid():
        return
    with scratch_file(path.parent) as ours:  # some file systems have names of their own for users
        if owner_of(ours) == owner:
            return
    raise StorageError(
        f"{path}: was written by another user (uid {owner}), whose results are not used; start again: by --restart "
        "(resume=False), or in a folder of your own, by --work (work_folder=)"
    )


def owner_of(file: BinaryIO) -> int:
    """The number of the user whose file it is."""
    return os.fstat(file.fileno()).st_uid


def line_of(record: dict[str, Any]) -> str:
    """A line that says a record, with its checksum."""
    return json.dumps({**record, "check": _check(record)})


def record_in(line: bytes) -> dict[str, Any] | None:
    """The record of a line; None where it is not whole."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or record.pop("check", None) != _check(record):
        return None
    return record


def refuse_link(path: Path) -> None:
    """A store that somebody else made must not lead what is written into it elsewhere."""
    with storage_errors(path, "looked at", "check the folder and its permissions"):
        is_link = path.is_symlink()
    if is_link:
        raise StorageError(f"{path}: is a link, where work on a store is written down; remove it")


def _check(record: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(record, sort_keys=True).encode())
