"""Stores in folders that cannot be written to, work that is kept elsewhere, and work that starts again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from helpers.commands import answer_of, invoke
from helpers.graphs import TRUTHS, fixture_pairs
from helpers.store_counts import each_task_by_itself
from helpers.stores import names_in

import wedgewise as ww
from wedgewise.errors import InputError, StorageError
from wedgewise.run.checkpoint import JOURNAL
from wedgewise.store.build import write_store
from wedgewise.store.open import Store, open_store

TRIANGLES = TRUTHS["karate"]["triangles"]
BY_OWNER: dict[str, dict[str, Any]] = {"triangles": {}, "edge_support": {}, "k_truss": {"k": 5}}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return write_store(fixture_pairs("karate"), tmp_path / "store", parts=3)


@pytest.fixture
def sealed(store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A store that cannot be written to: as if, since nothing is forbidden to some who run tests."""
    really_open, really_access = os.open, os.access
    below = str(store.folder)

    def refuse(path: Any, flags: int, *more: Any, **others: Any) -> int:
        if str(path).startswith(below) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            raise OSError(30, "Read-only file system")
        return really_open(path, flags, *more, **others)

    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr(os, "access", lambda path, mode: str(path) != below and really_access(path, mode))
    return store


def end_after(tasks: int) -> Any:
    def end(_stage: str, done: int, _total: int) -> None:
        if done >= tasks:
            raise KeyboardInterrupt

    return end


def test_a_count_needs_no_journal(sealed: Store) -> None:
    before = names_in(sealed.folder)
    for how in ({}, {"verify": True}, {"resume": False}, {"algorithm": "bbtc"}):
        result = ww.run("count", sealed.folder, **how)
        assert result.answer == TRIANGLES
        (said,) = (reason for reason in result.plan.reasons if "cannot be written to" in reason)
        assert "a count that is ended starts again" in said
    assert "cannot be written to: a count that is ended starts again" in str(ww.explain("count", sealed.folder))
    assert names_in(sealed.folder) == before


def test_a_store_that_can_be_written_to_says_nothing(store: Store) -> None:
    assert "cannot be written to" not in str(ww.run("count", store.folder).plan)
    assert "cannot be written to" not in str(ww.explain("count", store.folder))


@pytest.mark.parametrize("question", BY_OWNER)
def test_what_is_kept_on_disk_needs_a_folder(sealed: Store, tmp_path: Path, question: str) -> None:
    details = BY_OWNER[question]
    with pytest.raises(StorageError, match=r"store: cannot be written to, .*name another folder for them by --work"):
        ww.run(question, sealed.folder, **details)
    assert "name another folder for them by --work" in str(ww.explain(question, sealed.folder, **details))
    found = ww.run(question, sealed.folder, work_folder=tmp_path / "work", **details).answer
    expected = ww.run(question, fixture_pairs("karate"), **details).answer
    assert str(getattr(found, "edges", found).tolist()) == str(getattr(expected, "edges", expected).tolist())
    assert [path for path in (tmp_path / "work").rglob("*") if path.is_file()] == []


def test_the_command_names_the_option(sealed: Store, tmp_path: Path) -> None:
    folder, output = str(sealed.folder), str(tmp_path / "x.csv")
    for command in (["triangles"], ["support"], ["truss", "--k", "5"]):
        refused = invoke(command[0], folder, *command[1:], "--output", output)
        assert (refused.exit_code, "--work" in refused.stderr) == (1, True)
        done = invoke(command[0], folder, *command[1:], "--output", output, "--work", str(tmp_path / "work"))
        assert done.exit_code == 0, done.stderr
    assert answer_of("count", folder)["answer"] == TRIANGLES
    assert answer_of("count", folder, "--work", str(tmp_path / "work"))["answer"] == TRIANGLES


def test_a_work_folder_makes_a_sealed_store_resumable(sealed: Store, tmp_path: Path) -> None:
    work = tmp_path / "new" / "work"
    with each_task_by_itself(), pytest.raises(KeyboardInterrupt):
        ww.count(sealed.folder, work_folder=work, progress=end_after(4))
    (journal,) = work.rglob(JOURNAL)
    assert len(journal.read_text().splitlines()) == 4
    told: list[int] = []
    with each_task_by_itself():
        found = ww.count(sealed.folder, work_folder=str(work), progress=lambda _, done, __: told.append(done))
    assert (found, told[0]) == (TRIANGLES, 5)
    assert not journal.exists()


def test_stores_share_a_work_folder_without_meeting(tmp_path: Path) -> None:
    """Of other graphs, and of one graph in other parts."""
    work, pairs = tmp_path / "work", fixture_pairs("karate")
    stores = [
        write_store(pairs, tmp_path / "a", parts=3),
        write_store(pairs, tmp_path / "b", parts=3, scheme="hashed"),
        write_store(pairs[1:], tmp_path / "d", parts=3),
    ]
    for store in stores:
        with pytest.raises(KeyboardInterrupt):
            ww.count(store.folder, work_folder=work, progress=end_after(2))
    assert len(list(work.rglob(JOURNAL))) == len(stores)
    for store in stores:
        assert ww.count(store.folder, work_folder=work) == ww.count(store.folder)


def test_a_work_folder_that_cannot_be_made_is_named(store: Store, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    for question in ("count", "triangles"):
        with pytest.raises(StorageError, match=r"file.*: could not be made \(.*\); name another folder for the work"):
            ww.run(question, store.folder, work_folder=tmp_path / "file" / "work")


@pytest.mark.skipif(os.geteuid() == 0, reason="everything is allowed")
def test_a_folder_without_permission_is_read_only(store: Store) -> None:
    store.folder.chmod(0o500)
    try:
        assert open_store(store.folder).is_read_only
        assert ww.count(store.folder) == TRIANGLES
        with pytest.raises(StorageError, match="--work"):
            ww.triangles(store.folder)
    finally:
        store.folder.chmod(0o700)


def test_a_count_starts_again_when_it_is_asked_to(store: Store) -> None:
    with each_task_by_itself(), pytest.raises(KeyboardInterrupt):
        ww.count(store.folder, progress=end_after(4))
    with pytest.raises(InputError, match="other options"):
        ww.count(store.folder, algorithm="bbtc")
    told: list[int] = []
    with each_task_by_itself():
        found = ww.count(store.folder, algorithm="bbtc", resume=False, progress=lambda _, done, __: told.append(done))
    assert (found, told[0]) == (TRIANGLES, 1)


@pytest.mark.parametrize("question", BY_OWNER)
def test_slices_are_forgotten_when_that_is_asked_for(
    store: Store, question: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from wedgewise.run.checkpoint import FinishedSlices

    really, left = FinishedSlices.put, 2

    def put(self: FinishedSlices, number: Any, array: Any) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        really(self, number, array)

    with monkeypatch.context() as patch:
        patch.setattr(FinishedSlices, "put", put)
        with pytest.raises(KeyboardInterrupt):
            ww.run(question, store.folder, **BY_OWNER[question])
    with pytest.raises(InputError, match="other options"):
        ww.run(question, store.folder, knobs={"hubs": 0}, **BY_OWNER[question])
    ww.run(question, store.folder, knobs={"hubs": 0}, resume=False, **BY_OWNER[question])
    assert names_in(store.folder) == sorted(["manifest.json", *(record.file for record in store.files())])


def test_graphs_in_memory_start_afresh_either_way() -> None:
    for resume in (True, False):
        assert ww.count(fixture_pairs("karate"), resume=resume) == TRIANGLES
        assert ww.triangles(fixture_pairs("karate"), resume=resume).sum() == 3 * TRIANGLES
