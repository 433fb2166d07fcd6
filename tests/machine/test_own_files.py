"""Which files are read_trusted, and what is done where one is not."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from wedgewise.answer.cut import NOTE, Identity, resumable_store
from wedgewise.datasets import cache
from wedgewise.datasets.cache import CachedFile, GraphFolder, checksum, content_of
from wedgewise.datasets.fetch import fetch
from wedgewise.errors import DownloadError, StorageError
from wedgewise.machine import own_files
from wedgewise.machine.files import atomic_write, partial_file
from wedgewise.machine.own_files import UntrustedFileError, make_own_folder, read_own, read_trusted, why_not_own

ANOTHER = 12345


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of ours, of which nothing was said yet."""
    monkeypatch.setattr(own_files, "_noticed", set())
    made = tmp_path / "outer" / "inner"
    make_own_folder(made)
    return made


def test_a_file_of_ours_is_read(folder: Path) -> None:
    assert read_own(folder / "missing") is None
    assert read_own(folder / "missing" / "file") is None
    (folder / "file").write_bytes(b"text")
    assert read_own(folder / "file") == read_trusted(folder / "file") == b"text"
    assert why_not_own(folder) is None


def test_nothing_else_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "file").write_bytes(b"text")
    (folder / "link").symlink_to(folder / "file")
    for name, reason in (("pipe", "is no regular"), (".", "is no regular"), ("link", "cannot be read")):
        with pytest.raises(UntrustedFileError, match=reason):
            read_own(folder / name)
        assert read_trusted(folder / name) is None
    (folder / "file").chmod(0o620)
    with pytest.raises(UntrustedFileError, match="file can be written by others"):
        read_own(folder / "file")
    monkeypatch.setattr(os, "geteuid", lambda: ANOTHER)
    with pytest.raises(UntrustedFileError, match="file belongs to another user"):
        read_own(folder / "file")


def test_every_folder_on_the_way_counts(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "outer").chmod(0o777)
    assert why_not_own(folder) == f"{tmp_path / 'outer'} can be written by others"
    (tmp_path / "outer").chmod(0o1777)
    assert why_not_own(folder) is None
    folder.chmod(0o1777)
    assert why_not_own(folder) == f"{folder} can be written by others"
    assert str(why_not_own(folder / "missing")).endswith("cannot be looked at (No such file or directory)")


def test_links_on_the_way_count_with_the_folders_that_hold_them(folder: Path, tmp_path: Path) -> None:
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    (open_to_all / "second").symlink_to(Path("..", "outer"))
    (tmp_path / "first").symlink_to(open_to_all / "second")
    way = tmp_path / "first" / "inner"
    assert why_not_own(way) is None
    open_to_all.chmod(0o777)
    assert why_not_own(way) == f"{open_to_all} can be written by others"
    (open_to_all / "round").symlink_to("round")
    open_to_all.chmod(0o755)
    assert "cannot be looked at" in str(why_not_own(open_to_all / "round" / "inner"))


def test_folders_of_another_user_are_not_ours(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = folder.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: ANOTHER)
    assert f"belongs to another user (uid {owner})" in str(why_not_own(folder))
    assert why_not_own(Path("/")) == f"/ belongs to another user (uid {os.stat('/').st_uid})"


def test_a_folder_of_another_user_on_the_way_counts(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outer, really = tmp_path / "outer", os.lstat

    def lstat(path: Path) -> os.stat_result:
        found = really(path)
        return os.stat_result((*found[:4], ANOTHER, *found[5:])) if path == outer else found

    monkeypatch.setattr(os, "lstat", lstat)
    assert why_not_own(folder) == f"{outer} belongs to another user (uid {ANOTHER})"
    (folder / "file").write_bytes(b"text")
    assert read_trusted(folder / "file") is None


def test_one_line_is_said_of_a_folder(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("a", "b"):
        (folder / name).write_bytes(b"text")
    folder.chmod(0o770)
    with caplog.at_level("INFO", "wedgewise"):
        assert [read_trusted(folder / name) for name in ("a", "b", "missing")] == [None] * 3
    assert caplog.text.count("is not read_trusted, because") == 1


def test_a_file_is_private_from_its_first_byte_on(folder: Path) -> None:
    before = os.umask(0)
    try:
        with atomic_write(folder / "file", mode=0o600) as file:
            assert os.fstat(file.fileno()).st_mode & 0o777 == 0o600
    finally:
        os.umask(before)
    assert read_own(folder / "file") == b""


def test_what_grows_is_not_written_through_a_link(folder: Path) -> None:
    (folder / "other").write_bytes(b"kept")
    (folder / "file.part").symlink_to(folder / "other")
    with pytest.raises(StorageError, match="could not be written"), partial_file(folder / "file.part"):
        pass
    assert (folder / "other").read_bytes() == b"kept"


def record_of(**changes: object) -> str:
    facts = {"file": "g.txt", "bytes": 4, "sha256": "0", "origin": "x", "counted": {"m": 1}, "verified": ["0"]}
    return json.dumps({**facts, **changes})


def test_what_is_remembered_of_a_graph_is_believed_if_it_is_ours(folder: Path) -> None:
    graph_folder, path = GraphFolder(folder / "g"), folder / "g.json"
    graph_folder.make()
    path.write_text(record_of())
    assert graph_folder.record() == CachedFile("g.txt", 4, "0", "x", {"m": 1}, ("0",))
    assert graph_folder.file() is None
    for wrong in (
        {"file": "../g/g.txt"},
        {"file": ""},
        {"file": 3},
        {"bytes": "4"},
        {"counted": {"m": None}},
        {"signs": {"size": "4"}},
    ):
        path.write_text(record_of(**wrong))
        assert graph_folder.record() is None
    path.write_text("[" * 100_000)
    assert graph_folder.record() is None
    path.write_text(record_of())
    path.chmod(0o666)
    assert graph_folder.record() is None
    path.unlink()
    os.mkfifo(path)
    assert graph_folder.record() is None
    folder_of_others = GraphFolder(folder / "h")
    (folder / "h.json").write_text(record_of())
    folder.chmod(0o777)
    assert folder_of_others.record() is None


@pytest.fixture
def graph_folder(folder: Path) -> GraphFolder:
    """A folder with a file in it, as it arrived."""
    made = GraphFolder(folder / "g")
    made.make()
    path = made.path / "g.txt"
    path.write_bytes(b"0 1\n")
    made.remember(CachedFile(path.name, origin="x", **content_of(path)))
    return made


def rewrite_in_silence(path: Path) -> None:
    """Other bytes of the same number, with the old modification time."""
    before = path.stat()
    path.write_bytes(b"0 2\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def replace_by_another(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(b"0 2\n")
    other.replace(path)


def leave_to_others(path: Path) -> None:
    path.chmod(0o666)


def leave_the_folder_to_others(path: Path) -> None:
    path.parent.chmod(0o777)


def put_a_link(path: Path) -> None:
    path.rename(path.with_name("other"))
    path.symlink_to("other")


@pytest.mark.parametrize(
    "change", [rewrite_in_silence, replace_by_another, leave_to_others, leave_the_folder_to_others, put_a_link]
)
def test_a_file_that_somebody_else_can_have_changed_is_not_believed(graph_folder: GraphFolder, change: Any) -> None:
    path = graph_folder.path / "g.txt"
    assert graph_folder.file() == path
    change(path)
    assert graph_folder.file() is None


def test_a_file_that_is_the_same_is_compared_once(graph_folder: GraphFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[Path] = []

    def watched(path: Path) -> str:
        compared.append(path)
        return checksum(path)

    monkeypatch.setattr(cache, "checksum", watched)
    path = graph_folder.path / "g.txt"
    assert [graph_folder.file(), graph_folder.file(), compared] == [path, path, []]
    path.rename(path.with_name("other"))
    path.with_name("other").rename(path)
    assert [graph_folder.file(), graph_folder.file(), compared] == [path, path, [path]]


def test_a_note_on_a_transfer_that_is_a_pipe_is_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "g.txt.part.json")
    ended: list[BaseException] = []

    def ask() -> None:
        try:
            fetch("http://127.0.0.1:9/g.txt", folder / "g.txt", "fetch", None, most_bytes=1)
        except DownloadError as error:
            ended.append(error)

    options = threading.Thread(target=ask, daemon=True)
    options.start()
    options.join(60)
    assert len(ended) == 1


@pytest.mark.parametrize("spoilt", ["pipe", "open to others"])
def test_blocks_are_made_again_where_others_can_have_left_them(folder: Path, spoilt: str) -> None:
    from helpers.graphs import fixture_pairs

    from wedgewise.store.build import write_store

    made: list[Path] = []

    def make(at: Path) -> object:
        made.append(at)
        return write_store(fixture_pairs("karate"), at, parts=2)

    def interrupt() -> None:
        with resumable_store(make, folder, Identity("g", {"m": 78}), resume=True):  # type: ignore[arg-type]
            raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            interrupt()
    assert len(made) == 1
    (note,) = folder.glob(f"*/{NOTE}")
    if spoilt == "pipe":
        note.unlink()
        os.mkfifo(note)
    else:
        note.chmod(0o666)
    with pytest.raises(KeyboardInterrupt):
        interrupt()
    assert len(made) == 2
