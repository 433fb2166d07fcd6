"""Files of work on a store that cannot be read, or are none: the error is ours and names the file."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.graphs import fixture_pairs

import wedgewise as ww
from wedgewise.errors import MissingFileError, StorageError
from wedgewise.run.checkpoint import JOURNAL, FinishedSlices, Journal
from wedgewise.store.build import write_store
from wedgewise.store.open import Store

KARATE = fixture_pairs("karate")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return write_store(KARATE, tmp_path / "store", parts=2)


def failing(number: int) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> Any:
        raise OSError(number, os.strerror(number))

    return fail


def test_what_cannot_be_read_is_named(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Journals, slices and blocks, when the disk fails in the middle."""
    journal, slices = store.folder / JOURNAL, FinishedSlices(store.folder / "slices", "0" * 32)
    journal.write_text("{}\n")
    slices.put(0, np.arange(3, dtype=np.uint64))
    monkeypatch.setattr("wedgewise.machine.own_files._opened", FailingFile)
    with pytest.raises(StorageError, match=r"count\.journal: could not be read \(Input/output error\); check the disk"):
        Journal(journal, "0" * 32, 8).read()
    with pytest.raises(StorageError, match=r"slice-0\.npy: could not be read \(Input/output error\); check the disk"):
        slices.get(0)
    with pytest.raises(MissingFileError, match=r"heads\.npy: cannot be read \(Input/output error\); check the disk"):
        store.array(store.manifest.blocks[0, 0].heads)


class FailingFile:
    """A file of which nothing can be read."""

    def __init__(self, path: Path) -> None:
        self.file = path.open("rb")
        self.fileno = self.file.fileno

    def __enter__(self) -> FailingFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    read = readline = readinto = failing(errno.EIO)


def test_journals_that_are_none_are_refused(store: Store) -> None:
    """Nobody waits for a pipe, and a line without an end is not read as one."""
    os.mkfifo(store.folder / JOURNAL)
    with pytest.raises(StorageError, match=r"count\.journal: is not a regular file, .*remove it"):
        ww.count(store.folder)
    (store.folder / JOURNAL).unlink()
    (store.folder / JOURNAL).mkdir()
    with pytest.raises(StorageError, match=r"count\.journal: is not a regular file, .*remove it"):
        ww.count(store.folder)
    (store.folder / JOURNAL).rmdir()
    (store.folder / JOURNAL).write_bytes(b"[" * 100_000)
    assert ww.count(store.folder) == 45


def test_slices_of_other_lengths_are_made_again(store: Store) -> None:
    """However well they are sealed: what is done with them depends on the store."""
    from wedgewise.run.outofcore import work_key

    key = work_key(store, "keystone", ww.explain("triangles", store.folder).knobs)
    for array in (np.zeros(99, np.uint64), np.zeros(2 * int(store.counts.sizes[0]), np.uint32)):
        planted = FinishedSlices(store.folder / "triangles-slices", key)
        planted.put(0, array)
        assert ww.triangles(store.folder).tolist() == ww.triangles(KARATE).tolist()
