"""Files appear whole or not at all, whatever fails on the way."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from wedgewise.errors import FormatError, StorageError
from wedgewise.storage import append_line, atomic_write


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


@pytest.mark.parametrize("call", ["fsync", "replace", "open"])
@pytest.mark.parametrize("existing", [True, False])
def test_a_failing_system_call_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, existing: bool
) -> None:
    path = tmp_path / "answer"
    if existing:
        path.write_bytes(b"old")

    def fail(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    def write() -> None:
        with atomic_write(path) as file:
            monkeypatch.setattr(os, call, fail)
            file.write(b"new")

    with pytest.raises(StorageError, match=r"could not be written \(No space left on device\)"):
        write()
    monkeypatch.undo()
    if call != "open":  # opening the folder comes after the rename: the new file is complete
        assert os.listdir(tmp_path) == (["answer"] if existing else [])
        assert not existing or path.read_bytes() == b"old"
    else:
        assert path.read_bytes() == b"new"


@pytest.mark.parametrize("name", ["missing/answer", ".", "pipe"])
def test_what_cannot_be_written_is_named(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "pipe")

    def write() -> None:
        with atomic_write(tmp_path / name):
            pytest.fail("the block must not be entered")

    with pytest.raises(StorageError):
        write()
    assert os.listdir(tmp_path) == ["pipe"]


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
