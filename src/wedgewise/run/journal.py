"""Finished tasks, a line each, so that work that was ended goes on where it was.

Every line names the work that it belongs to by a key, and has a checksum. A line that is torn, as the last one may be
when a process is killed, or damaged, is as if it was not there: its task is done again. Each line is on the disk before
the next task begins. A line may say how many seconds its task took; results do not depend on that.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import Any, BinaryIO

from wedgewise.algorithms._passes import Partial
from wedgewise.errors import InputError, StorageError, VerificationError
from wedgewise.machine.files import append_line, named_failures, only_process, scratch_file
from wedgewise.machine.own_files import open_regular
from wedgewise.store.open import Store
from wedgewise.store.writer import free_disk

JOURNAL = "count.journal"
LOCK_SUFFIX = ".lock"
LINE_BYTES = 256  # of a journal, more than any has
MOST_LINE_BYTES = 1 << 12
WAIT = "wait until it has ended, or name another folder for the work (--work, work_folder=)"
UNLOCKED = "{folder} is on a file system without locks: nothing else may work on the same question there meanwhile"
NOT_KEPT = "{store} cannot be written to: a count that is ended starts again, unless --work (work_folder=) is given"
FIELDS = ("task", "triangles", "tests")


def key_of(**facts: Any) -> str:
    """A short name for work: of the graph, the options and whatever else its results depend on."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]


@contextmanager
def alone_at(store: Store, question: str) -> Iterator[tuple[str, ...]]:
    """Keep other processes off what is written down for a question about a store; what a plan should say of that."""
    lock = store.beside(question + LOCK_SUFFIX)
    refuse_link(lock)
    with only_process(lock, WAIT) as has_locks:
        yield () if has_locks else (UNLOCKED.format(folder=lock.parent),)


@contextmanager
def kept_journal(
    store: Store, key: str, tasks: int, *, resume: bool
) -> Iterator[tuple[Journal | None, tuple[str, ...]]]:
    """The journal of a count, for this process alone, and notes for its plan; None where it cannot be written."""
    if store.is_read_only:
        yield None, notes_on_counting(store)
        return
    check_disk(store, "count", LINE_BYTES * tasks)
    with alone_at(store, "count") as notes:
        journal = Journal(store.beside(JOURNAL), key)
        if not resume:
            journal.remove()
        journal.read()
        yield journal, notes


def check_disk(store: Store, question: str, need: int) -> None:
    """Refuse what the disk that work is written down on has no space for."""
    folder = store.beside(JOURNAL).parent
    free = free_disk(folder)
    if need > free:
        raise StorageError(
            f"{folder}: {question} keeps {need:,} bytes on disk while it works, and {free:,} are free there; free "
            "some, or name a folder on another disk by --work (work_folder=)"
        )


def notes_on_counting(store: Store) -> tuple[str, ...]:
    """What a plan should say where a count cannot be written down."""
    return (NOT_KEPT.format(store=store.location),) if store.is_read_only else ()


class Journal:
    """The finished tasks of one piece of work; `done` has them by task, `seconds` the times of those that have one."""

    def __init__(self, path: Path, key: str) -> None:
        self.path = path
        self.done: dict[int, Partial] = {}
        self.seconds: dict[int, float] = {}
        self._key = key
        refuse_link(path)

    def read(self) -> None:
        """Take in what is there; raise where it is of other work."""
        for record in records_of(self.path, self._key, _has_counts):
            seconds = record.get("seconds")
            is_time = isinstance(seconds, float) and 0 <= seconds < inf
            self._take(Partial(*(record[name] for name in FIELDS)), seconds if is_time else None)

    def add(self, partial: Partial, seconds: float | None = None) -> None:
        """A task is finished."""
        record: dict[str, Any] = {"key": self._key, **{name: getattr(partial, name) for name in FIELDS}}
        if seconds is not None:
            record["seconds"] = seconds
        append_line(self.path, line_of(record))
        self._note(partial, seconds)

    def remove(self) -> None:
        """All tasks are finished, or none of them count."""
        with named_failures(self.path, "removed", "remove it"):
            self.path.unlink(missing_ok=True)
        self.done.clear()
        self.seconds.clear()

    def _note(self, partial: Partial, seconds: float | None) -> None:
        self.done[partial.task] = partial
        if seconds is not None:
            self.seconds[partial.task] = seconds

    def _take(self, partial: Partial, seconds: float | None) -> None:
        if self.done.setdefault(partial.task, partial).triangles != partial.triangles:  # tests depend on the batch
            raise VerificationError(
                f"{self.path}: task {partial.task} has two results; start again by --restart, or by removing it"
            )
        self._note(partial, seconds)


def _has_counts(record: dict[str, Any]) -> bool:
    return all(type(record.get(name)) is int and record[name] >= 0 for name in FIELDS)


def records_of(path: Path, key: str, is_one: Callable[[dict[str, Any]], bool]) -> Iterator[dict[str, Any]]:
    """The records of a journal that are whole and of the kind that is looked for; refuse those of another key."""
    for line in lines_of(path):
        record = record_in(line)
        if record is None or not is_one(record):
            continue
        if str(record.get("key")) != key:
            raise InputError(
                f"{path}: holds results for another graph, other options or another version; go on with those, "
                "or start again: by --restart, or by removing it"
            )
        yield record


def lines_of(path: Path) -> Iterator[bytes]:
    """The lines of a journal, if there is one; one that is too long for a record comes in pieces that are none."""
    with named_failures(
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
            while line := file.readline(MOST_LINE_BYTES):
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
        f"{path}: was written by another user (uid {owner}), whose results are not believed; start again: by --restart "
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
    with named_failures(path, "looked at", "check the folder and its permissions"):
        is_link = path.is_symlink()
    if is_link:
        raise StorageError(f"{path}: is a link, where work on a store is written down; remove it")


def _check(record: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(record, sort_keys=True).encode())
