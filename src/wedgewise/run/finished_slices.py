"""Finished slices in a folder, so that work that is ended at any moment loses no more than the slice it was at.

    slice-N.npy       slice number N; it appears whole
    slices.journal    then a line: which work it belongs to, its number ("owner"), its type, length and SHA-256

A slice is there when its line is whole and its bytes are what the line says. One that is torn, damaged or of another
number is as if it was not there: it is computed again. Where a slice has several lines, the last one counts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import FormatError
from wedgewise.machine.files import append_line, make_folder, named_failures
from wedgewise.machine.own_files import open_regular
from wedgewise.run.journal import line_of, records_of, refuse_link
from wedgewise.run.sliced_answer import AnswerSlice
from wedgewise.store.manifest import FileRecord
from wedgewise.store.open import READ_BYTES, digest_of, private_memory
from wedgewise.store.writer import npy_header, write_array

JOURNAL = "slices.journal"
FIELDS = {"key": str, "owner": int, "dtype": str, "length": int, "sha256": str}
NUMBERS = re.compile(r"[<|]u[1248]", re.ASCII)
OURS = re.compile(r"slice-\d+\.npy|\.slice-\d+\.npy\.[0-9a-f]{12}\.tmp", re.ASCII)


class FinishedSlices:
    """The finished slices of one piece of work; `done` has their numbers.

    Parameters
    ----------
    folder : where they are, made with the first of them
    key : names the work: the graph, the options and whatever else its slices depend on
    resume : go on with what is there; without it, start again
    due : the type and the length of every slice, by its number; one of others is as if it was not there

    Raises
    ------
    InputError
        When the folder has slices of other work.
    """

    def __init__(
        self, folder: Path, key: str, *, resume: bool = True, due: Mapping[int, tuple[str, int]] | None = None
    ) -> None:
        self.folder, self._key, self._due = folder, key, due
        self._records: dict[int, FileRecord] = {}
        refuse_link(folder)
        refuse_link(folder / JOURNAL)
        if not resume:
            self.remove()
        self._take_in()

    @property
    def done(self) -> Set[int]:
        """The numbers of the slices that are there."""
        return self._records.keys()

    def put(self, which: AnswerSlice, array: NDArray[Any]) -> None:
        """A slice of unsigned numbers is finished: when this returns, it is on the disk."""
        with named_failures(self.folder, "made", "check the folders above it"):
            make_folder(self.folder, parents=True)
        self._records.pop(which.number, None)
        refuse_link(self.folder / _file(which.number))
        record = write_array(self.folder, _file(which.number), array)
        line = {"owner": which.number, "dtype": record.dtype, "length": record.length, "sha256": record.sha256}
        append_line(self.folder / JOURNAL, line_of({"key": self._key, **line}))
        self._records[which.number] = record

    def get(self, which: AnswerSlice) -> NDArray[Any]:
        """A slice that is done, in memory of its own.

        Raises
        ------
        FormatError
            When it was changed meanwhile; it is then no longer among those that are done.
        """
        record = self._records[which.number]
        found = private_memory(record.length, np.dtype(record.dtype))
        if not self._is_whole(record, found):
            del self._records[which.number]
            raise FormatError(
                "has other bytes than were written",
                path=self.folder / record.file,
                remedy="give the same command again: this slice is then made anew",
            )
        return found

    def remove(self) -> None:
        """All slices were used, or none of them count: nothing of them is left, nor the folder if it is empty."""
        self._records.clear()
        with named_failures(self.folder, "emptied", "check its permissions"):
            if not self.folder.is_dir():
                return
            (self.folder / JOURNAL).unlink(missing_ok=True)
            for path in list(self.folder.iterdir()):
                if OURS.fullmatch(path.name):
                    path.unlink()
            if not any(self.folder.iterdir()):
                self.folder.rmdir()

    def _take_in(self) -> None:
        """Take in the lines that are whole, and of those the slices that are."""
        for record in records_of(self.folder / JOURNAL, self._key, _is_slice):
            self._take(record)
        for number, known in list(self._records.items()):
            if not self._is_whole(known):
                del self._records[number]

    def _take(self, record: dict[str, Any]) -> None:
        number, dtype, length = record["owner"], record["dtype"], record["length"]
        if self._due is None:
            can_be = number >= 0 and length >= 0 and NUMBERS.fullmatch(dtype) is not None
        else:
            can_be = self._due.get(number) == (dtype, length)
        if can_be:
            self._records[number] = FileRecord(_file(number), dtype, length, record["sha256"])

    def _is_whole(self, record: FileRecord, into: NDArray[Any] | None = None) -> bool:
        """Whether a file is what its line says, with its numbers read into an array or given up piece by piece."""
        path, dtype = self.folder / record.file, np.dtype(record.dtype)
        header, due = npy_header(dtype, record.length), record.length * dtype.itemsize
        with named_failures(path, "read", "check the disk and its permissions, or start again: by --restart"):
            found = None if path.is_symlink() or not path.exists() else open_regular(path)
            if found is None:
                return False
            with found[0] as file:
                if found[1] != len(header) + due:
                    return False
                raw = memoryview(bytearray(min(due, READ_BYTES))) if into is None else into.view(np.uint8).data
                return digest_of(file, len(header), due, raw) == record.sha256


def _is_slice(record: dict[str, Any]) -> bool:
    return all(type(record.get(name)) is kind for name, kind in FIELDS.items())


def _file(number: int) -> str:
    return f"slice-{number}.npy"
