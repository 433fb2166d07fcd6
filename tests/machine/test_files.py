"""Files appear whole or not at all, whatever fails on the way."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers.commands import PATIENCE
from helpers.failing_calls import Fault, installed

from wedgewise.errors import FormatError, StorageError
from wedgewise.machine import files as storage
from wedgewise.machine.files import append_line, atomic_write, put_in_place


def test_replaces_the_old_file_and_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "answer"
    path.write_bytes(b"old")
    path.chmod(0o640)
    with atomic_write(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert os.listdir(tmp_path) == ["answer"]


def test_a_new_file_has_ordinary_permissions(tmp_path: Path) -> None:
    path = tmp_path / "answer"
    with atomic_write(path) as file:
        file.write(b"new")
    (tmp_path / "plain").write_bytes(b"")
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_symbolic_link_stays_a_link(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"old")
    link = tmp_path / "link"
    link.symlink_to(target)
    with atomic_write(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, ZeroDivisionError, MemoryError])
def test_an_exception_leaves_no_trace(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "answer"
    path.write_bytes(b"old")

    def interrupted() -> None:
        with atomic_write(path) as file:
            file.write(b"half")
            raise error

    with pytest.raises(error):
        interrupted()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["answer"]


def test_our_own_exceptions_pass_through(tmp_path: Path) -> None:
    def refused() -> None:
        with atomic_write(tmp_path / "answer"):
            raise FormatError("bad", path="x", remedy="y")

    with pytest.raises(FormatError):
        refused()


@pytest.mark.parametrize("gate", ["write", "fsync", "rename"])
@pytest.mark.parametrize("existing", [True, False])
def test_a_failing_system_call_leaves_the_old_file(tmp_path: Path, gate: str, existing: bool) -> None:
    path = tmp_path / "answer"
    if existing:
        path.write_bytes(b"old")
    fault = Fault(f"storage.{gate}", 0, always=True)
    with installed(fault), pytest.raises(StorageError, match=r"answer: could not be written \(.*\); check the folder"):
        write(path)
    assert os.listdir(tmp_path) == (["answer"] if existing else [])
    assert not existing or path.read_bytes() == b"old"


def test_a_folder_that_cannot_be_synced_has_the_whole_file(tmp_path: Path) -> None:
    """Opening it comes after the rename: the third file that is opened, behind a look for what a kill left."""
    with installed(Fault("storage.open", 2)), pytest.raises(StorageError, match="could not be written"):
        write(tmp_path / "answer")
    assert (tmp_path / "answer").read_bytes() == b"new"


def write(path: Path) -> None:
    with atomic_write(path) as file:
        file.write(b"new")


@pytest.mark.parametrize("name", ["missing/answer", ".", "pipe"])
def test_what_cannot_be_written_is_named(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(StorageError):
        write(tmp_path / name)
    assert os.listdir(tmp_path) == ["pipe"]


def test_a_finished_file_that_cannot_be_put_in_place_is_named(tmp_path: Path) -> None:
    (tmp_path / "finished").write_bytes(b"new")
    with pytest.raises(StorageError, match=r"answer: could not be written \(No such file or directory\)"):
        put_in_place(tmp_path / "finished", tmp_path / "missing" / "answer")
    assert os.listdir(tmp_path) == ["finished"]


def test_lines_are_appended(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    append_line(path, '{"a": 1}')
    append_line(path, '{"b": "é"}')
    assert path.read_text() == '{"a": 1}\n{"b": "é"}\n'


def test_a_torn_line_does_not_swallow_the_next(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text('{"a": 1}\n{"b":')
    append_line(path, '{"c": 3}')
    assert path.read_text().splitlines() == ['{"a": 1}', '{"b":', '{"c": 3}']


def test_append_refuses_and_reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="holds a newline"):
        append_line(tmp_path / "results.jsonl", "a\nb")
    with pytest.raises(StorageError, match="could not be written"):
        append_line(tmp_path / "missing" / "results.jsonl", "a")
    monkeypatch.setattr(os, "write", lambda descriptor, data: 1)
    with pytest.raises(StorageError, match="only 1 of 2 bytes were written"):
        append_line(tmp_path / "results.jsonl", "a")


def test_a_folder_that_cannot_be_opened_is_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    really_open = os.open

    def refuse_folders(path: Any, flags: int, *more: Any) -> int:
        if os.path.isdir(path):
            raise PermissionError
        return really_open(path, flags, *more)

    monkeypatch.setattr(os, "open", refuse_folders)
    with atomic_write(tmp_path / "answer") as file:
        file.write(b"42")
    assert (tmp_path / "answer").read_bytes() == b"42"


WRITER = """
import os, sys
from wedgewise.machine.files import atomic_write
with atomic_write(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    if sys.argv[2] == "killed": os.kill(os.getpid(), 9)
    print("writing", flush=True)
    sys.stdin.read()
"""


def writer(path: Path, ends: str) -> subprocess.Popen[bytes]:
    """A process that is killed, or waits, while it writes a file."""
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), ends], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )


def test_what_a_kill_left_is_removed_by_the_next_that_writes_the_same(tmp_path: Path) -> None:
    path = tmp_path / "answer"
    for _ in range(2):
        with writer(path, "killed"):
            pass
        assert [name.startswith(".answer.") for name in os.listdir(tmp_path)] == [True]
    with atomic_write(tmp_path / "other") as file:
        file.write(b"new")
    assert len(os.listdir(tmp_path)) == 2
    with atomic_write(path) as file:
        file.write(b"new")
    assert sorted(os.listdir(tmp_path)) == ["answer", "other"]


def test_what_others_are_writing_stays(tmp_path: Path) -> None:
    path = tmp_path / "answer"
    with writer(path, "waits") as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"writing\n"
        with atomic_write(path) as file, atomic_write(path) as third:
            assert len(os.listdir(tmp_path)) == 3
            third.write(b"third")
            file.write(b"new")
        assert path.read_bytes() == b"new"
        other.communicate(timeout=PATIENCE)
    assert other.returncode == 0
    assert path.read_bytes() == b"half"
    assert os.listdir(tmp_path) == ["answer"]


@pytest.mark.parametrize("how", ["taken for left", "removed", "no locks"])
def test_another_name_is_taken_where_the_usual_one_is_contested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Between making a file and locking it, somebody else may find it, lock it and remove it."""

    def lock(descriptor: int) -> bool:
        if how == "taken for left":
            raise BlockingIOError
        if how == "removed":
            for path in tmp_path.glob(".answer.*"):
                path.unlink()
        return how != "no locks"

    monkeypatch.setattr(storage, "_lock", lock)
    with atomic_write(tmp_path / "answer") as file:
        file.write(b"new")
    assert (tmp_path / "answer").read_bytes() == b"new"
    assert len(os.listdir(tmp_path)) == (2 if how == "taken for left" else 1)


def test_a_file_that_cannot_be_locked_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_descriptor: int) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(os, "dup", refuse)
    with pytest.raises(StorageError, match="Too many open files"), atomic_write(tmp_path / "answer"):
        pytest.fail("it was opened")
    assert os.listdir(tmp_path) == []


def test_a_link_in_place_of_a_temporary_file_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "victim").write_bytes(b"old")
    (tmp_path / f".answer.{storage.USUAL}.tmp").symlink_to("victim")
    with atomic_write(tmp_path / "answer") as file:
        file.write(b"new")
    assert [(tmp_path / name).read_bytes() for name in ("victim", "answer")] == [b"old", b"new"]
