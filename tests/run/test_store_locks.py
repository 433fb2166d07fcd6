"""One process at a time works on a question about a store, or makes one; a lock ends with its holder."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from helpers.commands import invoke
from helpers.graphs import TRUTHS, fixture_pairs, fixture_path
from helpers.stores import names_in

import wedgewise as ww
from wedgewise.errors import StorageError
from wedgewise.machine.files import process_lock
from wedgewise.run.checkpoint import JOURNAL
from wedgewise.store.build import write_store
from wedgewise.store.open import Store

fcntl = pytest.importorskip("fcntl", reason="locks are those of POSIX")

TRIANGLES = TRUTHS["karate"]["triangles"]
QUESTIONS: dict[str, dict[str, Any]] = {"count": {}, "triangles": {}, "edge_support": {}, "k_truss": {"k": 5}}
HOLDS = """
import sys
from wedgewise.machine.files import process_lock
with process_lock(sys.argv[1], "wait"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return write_store(fixture_pairs("karate"), tmp_path / "store", parts=3)


@contextmanager
def held_by_another(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that has the lock."""
    command = [sys.executable, "-c", HOLDS, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def without_locks(patch: pytest.MonkeyPatch, number: int = errno.ENOLCK) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    patch.setattr(fcntl, "flock", refuse)


def test_the_holder_is_named_until_it_is_killed(store: Store) -> None:
    lock = store.folder / "count.lock"
    with held_by_another(lock) as process:
        with pytest.raises(StorageError) as refused:
            ww.count(store.folder)
        assert f"count.lock: process {process.pid} on " in str(refused.value)
        assert "is at work; wait until it has ended, or name another folder for the work (--work" in str(refused.value)
        assert lock.exists()
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert lock.exists()
        assert ww.count(store.folder) == TRIANGLES
    assert names_in(store.folder) == sorted(["manifest.json", *(record.file for record in store.files())])


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_question_has_a_lock_of_its_own(store: Store, question: str) -> None:
    with process_lock(store.folder / f"{question}.lock", "wait"):
        for asked, details in QUESTIONS.items():
            if asked == question:
                with pytest.raises(StorageError, match=rf"{asked}\.lock: process {os.getpid()} on .* is at work"):
                    ww.run(asked, store.folder, **details)
            else:
                ww.run(asked, store.folder, **details)


def test_another_folder_for_the_work_is_free(store: Store, tmp_path: Path) -> None:
    with process_lock(store.folder / "count.lock", "wait"):
        assert ww.count(store.folder, work_folder=tmp_path / "work") == TRIANGLES
        assert invoke("count", str(store.folder)).exit_code == 1
        assert invoke("count", str(store.folder), "--work", str(tmp_path / "work")).stdout == f"{TRIANGLES}\n"


def test_what_only_reads_needs_no_lock(store: Store) -> None:
    with process_lock(store.folder / "count.lock", "wait"):
        assert ww.explain("count", store.folder).m == store.manifest.m


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS])
def test_without_locks_the_work_goes_on_and_says_so(store: Store, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    without_locks(monkeypatch, number)
    for question, details in QUESTIONS.items():
        result = ww.run(question, store.folder, **details)
        assert any("on a file system without locks" in reason for reason in result.plan.reasons)
    assert "count.lock" not in names_in(store.folder)


def test_a_lock_that_fails_is_an_error(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    without_locks(monkeypatch, errno.EIO)
    with pytest.raises(StorageError, match=r"count\.lock: could not be written \(Input/output error\)"):
        ww.count(store.folder)


def test_systems_without_locks_do_without(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    result = ww.run("count", store.folder)
    assert result.answer == TRIANGLES
    assert any("on a file system without locks" in reason for reason in result.plan.reasons)


def test_a_lock_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    with (
        pytest.raises(StorageError, match=r"count\.lock: could not be written \(No such file or directory\)"),
        process_lock(tmp_path / "nowhere" / "count.lock", "wait"),
    ):
        pytest.fail("the block must not be entered")


def test_a_lock_that_its_holder_removed_is_taken_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between opening and locking, the holder may end and take the name away: a lock on that file keeps nobody out."""
    path, really, left = tmp_path / "count.lock", fcntl.flock, 2

    def flock(descriptor: int, operation: int) -> None:
        nonlocal left
        left -= 1
        if left >= 0:
            path.unlink()
            if left == 0:
                path.write_text("of another one")
        really(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    with process_lock(path, "wait"):
        assert path.read_text().startswith(f"process {os.getpid()} on ")
        with pytest.raises(StorageError, match="is at work"), process_lock(path, "wait"):
            pytest.fail("the block must not be entered")
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("text", [b"", b"\x1b[31mprocess 1", b"process \xff", b"process 1\nerror: none", b"p" * 10**6])
def test_what_a_lock_says_is_not_believed(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "count.lock"
    with process_lock(path, "wait"):
        path.write_bytes(text)
        with pytest.raises(StorageError) as refused, process_lock(path, "wait"):
            pytest.fail("the block must not be entered")
    assert str(refused.value) == f"{path}: another process is at work; wait"


def test_links_and_pipes_are_no_locks(store: Store, tmp_path: Path) -> None:
    lock = store.folder / "count.lock"
    lock.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match=r"count\.lock: is a link"):
        ww.count(store.folder)
    assert not (tmp_path / "elsewhere").exists()
    lock.unlink()
    os.mkfifo(lock)
    with pytest.raises(StorageError, match=r"count\.lock: could not be written"):
        ww.count(store.folder)


def test_a_store_that_is_being_made_is_not_made_again(tmp_path: Path) -> None:
    """What another process has built so far would look like what a kill left."""
    folder = tmp_path / "store"
    folder.mkdir()
    for name in ("store.building", "vertices.npy"):
        (folder / name).write_bytes(b"half")
    with held_by_another(folder / "store.lock") as process:
        refused = invoke("partition", str(fixture_path("karate")), str(folder))
        assert refused.exit_code == 1
        assert f"store.lock: process {process.pid} on " in refused.stderr
        assert (folder / "vertices.npy").read_bytes() == b"half"
        process.kill()
        process.wait()
        store = write_store(fixture_pairs("karate"), folder)
    assert names_in(folder) == sorted(["manifest.json", *(record.file for record in store.files())])


def test_an_ended_count_gives_its_lock_back(store: Store) -> None:
    def end(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ww.count(store.folder, progress=end)
    assert JOURNAL in names_in(store.folder)
    assert "count.lock" not in names_in(store.folder)
    assert ww.count(store.folder) == TRIANGLES
