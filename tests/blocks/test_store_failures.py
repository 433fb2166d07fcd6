"""Whatever call fails while a store is made or asked, the error is ours and names a file; afterwards all is well."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from graphs import fixture_pairs

import wedgewise as ww
from blocks.failing import ERRORS, Gate
from blocks.stores import in_tiny_pieces, names_in
from wedgewise.errors import MissingFileError, StorageError
from wedgewise.execute.journal import JOURNAL, Journal
from wedgewise.execute.slices import Slices
from wedgewise.partition.manifest import is_store
from wedgewise.partition.spool import write_store
from wedgewise.partition.store import Store, open_store

QUESTIONS: dict[str, dict[str, Any]] = {"count": {}, "triangles": {}, "edge_support": {}, "k_truss": {"k": 4}}
KARATE = fixture_pairs("karate")


def plain(answer: Any) -> Any:
    """An answer that can be compared."""
    return answer.edges.tolist() if hasattr(answer, "edges") else np.asarray(answer).tolist()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return write_store(KARATE, tmp_path / "store", parts=2)


def fail_in_turn(
    gate: Gate, below: Path, work: Callable[[], Any], check: Callable[[Any], None], *, steps: int, forever: bool
) -> int:
    """Fail one call after the other until none is left; how many failures were seen.

    ``check(answer)`` is called with every answer, those of work that went on in spite of a failure included.
    """
    failures = 0
    for number in count(0, steps):
        error = ERRORS[number // steps % len(ERRORS)]
        gate.shut(number, forever, error)
        answer, said = None, ""
        try:
            answer = work()
        except (StorageError, MissingFileError) as raised:
            said = str(raised)
        gate.open()
        if said:
            failures += 1
            assert said.startswith(str(below))
            assert f"({os.strerror(error)}); " in said
        else:
            check(answer)
        if not gate.fired:
            return failures
        check(work())
    return failures


def ask_in_turn(store: Store, patch: pytest.MonkeyPatch, question: str, steps: int, forever: bool) -> int:
    details = QUESTIONS[question]
    expected = plain(ww.run(question, KARATE, **details).answer)
    ww.run(question, store.folder, **details)  # loads whatever is loaded once
    before = names_in(store.folder)

    def check(answer: Any) -> None:
        assert plain(answer) == expected
        assert set(names_in(store.folder)) - {f"{question}.lock"} == set(before)

    gate = Gate(patch, store.folder)
    return fail_in_turn(
        gate,
        store.folder,
        lambda: ww.run(question, store.folder, threads=1, **details).answer,
        check,
        steps=steps,
        forever=forever,
    )


@pytest.mark.parametrize("forever", [False, True])
def test_every_call_of_a_count_may_fail(store: Store, monkeypatch: pytest.MonkeyPatch, forever: bool) -> None:
    assert ask_in_turn(store, monkeypatch, "count", 3, forever) > 8


@pytest.mark.parametrize(("question", "steps"), [("triangles", 16), ("edge_support", 17), ("k_truss", 61)])
def test_calls_of_questions_by_owner_may_fail(
    store: Store, monkeypatch: pytest.MonkeyPatch, question: str, steps: int
) -> None:
    assert ask_in_turn(store, monkeypatch, question, steps, forever=False) > 2


@pytest.mark.deep
@pytest.mark.parametrize("forever", [False, True])
@pytest.mark.parametrize(("question", "steps"), [("count", 1), ("triangles", 1), ("edge_support", 2), ("k_truss", 7)])
def test_more_calls_of_every_question_may_fail(
    store: Store, monkeypatch: pytest.MonkeyPatch, question: str, steps: int, forever: bool
) -> None:
    assert ask_in_turn(store, monkeypatch, question, steps, forever) > 20


def make_in_turn(folder: Path, patch: pytest.MonkeyPatch, steps: int, forever: bool) -> int:
    """Make stores of text labels, and ask for them, so that every file of a store is written."""
    in_tiny_pieces(patch)
    pairs = [(f"v{u}", f"v{v}") for u, v in KARATE.tolist()]
    expected = write_store(pairs, folder / "expected", parts=2, threads=1).manifest.to_json()
    target = folder / "store"

    def make() -> str:
        """A failure behind the last file leaves a store."""
        made = open_store(target) if is_store(target) else write_store(pairs, target, parts=2, threads=1)
        return made.manifest.to_json()

    def check(made: str) -> None:
        assert made == expected
        found = open_store(target)
        left_by_failures = {"store.lock", "store.building"}
        assert set(names_in(target)) - left_by_failures == {"manifest.json", *(item.file for item in found.files())}
        for path in target.iterdir():
            path.unlink()
        target.rmdir()

    gate = Gate(patch, target)
    return fail_in_turn(gate, target, make, check, steps=steps, forever=forever)


@pytest.mark.parametrize("forever", [False, True])
def test_calls_of_a_partition_may_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forever: bool) -> None:
    assert make_in_turn(tmp_path, monkeypatch, 17, forever) > 5


@pytest.mark.deep
@pytest.mark.parametrize("forever", [False, True])
def test_more_calls_of_a_partition_may_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forever: bool) -> None:
    assert make_in_turn(tmp_path, monkeypatch, 2, forever) > 60


def failing(number: int) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> Any:
        raise OSError(number, os.strerror(number))

    return fail


def test_what_cannot_be_read_is_named(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Journals, slices and blocks, when the disk fails in the middle."""
    journal, slices = store.folder / JOURNAL, Slices(store.folder / "slices", "0" * 32)
    journal.write_text("{}\n")
    from wedgewise.execute.owners import Owner

    slices.put(Owner(0, part=0), np.arange(3, dtype=np.uint64))
    monkeypatch.setattr("wedgewise.partition.places._opened", FailingFile)
    with pytest.raises(StorageError, match=r"count\.journal: could not be read \(Input/output error\); check the disk"):
        Journal(journal, "0" * 32).read()
    with pytest.raises(StorageError, match=r"slice-0\.npy: could not be read \(Input/output error\); check the disk"):
        slices.get(Owner(0, part=0))
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
    with pytest.raises(StorageError, match=r"count\.journal: is no file, .*remove it"):
        ww.count(store.folder)
    (store.folder / JOURNAL).unlink()
    (store.folder / JOURNAL).mkdir()
    with pytest.raises(StorageError, match=r"count\.journal: is no file, .*remove it"):
        ww.count(store.folder)
    (store.folder / JOURNAL).rmdir()
    (store.folder / JOURNAL).write_bytes(b"[" * 100_000)
    assert ww.count(store.folder) == 45


def test_slices_of_other_lengths_are_made_again(store: Store) -> None:
    """However well they are sealed: what is done with them depends on the store."""
    from wedgewise.execute.outofcore import work_key
    from wedgewise.execute.owners import Owner

    key = work_key(store, "keystone", ww.explain("triangles", store.folder).knobs)
    for array in (np.zeros(99, np.uint64), np.zeros(2 * int(store.counts.sizes[0]), np.uint32)):
        planted = Slices(store.folder / "triangles-slices", key)
        planted.put(Owner(0, part=0), array)
        assert ww.triangles(store.folder).tolist() == ww.triangles(KARATE).tolist()
