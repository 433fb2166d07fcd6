"""Finished slices on disk: whole or as if they were not there, whatever happened to them."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.stores import names_in

from wedgewise.errors import FormatError, InputError, StorageError
from wedgewise.machine.own_files import open_regular
from wedgewise.run import checkpoint
from wedgewise.run.checkpoint import SLICES, FinishedSlices, Journal, line_of

KEY = "0" * 32
ARRAYS: tuple[Any, ...] = (
    np.arange(1000, dtype=np.uint64) << np.uint64(40),
    np.arange(1000, dtype=np.uint64),
    np.empty(0, np.uint32),
    np.array([255, 0, 7], np.uint8),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with four slices."""
    made = FinishedSlices(tmp_path / "above" / "slices", KEY)
    for number, array in enumerate(ARRAYS):
        made.put(number, array)
    return made.folder


def check(found: FinishedSlices, *there: int) -> None:
    """These slices are done, and as they were."""
    assert set(found.done) == set(there)
    for number in there:
        again = found.get(number)
        assert again.dtype == ARRAYS[number].dtype
        np.testing.assert_array_equal(again, ARRAYS[number])


def test_slices_come_back(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check(FinishedSlices(folder, KEY), 0, 1, 2, 3)
    np.testing.assert_array_equal(np.load(folder / "slice-1.npy"), ARRAYS[1])
    monkeypatch.setattr(checkpoint, "READ_BYTES", 96)
    check(FinishedSlices(folder, KEY), 0, 1, 2, 3)


def test_a_slice_is_done_when_it_is_put(tmp_path: Path) -> None:
    made = FinishedSlices(tmp_path / "slices", KEY)
    assert not made.done
    assert not made.folder.exists()
    made.put(1, ARRAYS[1][::-1])
    made.put(1, ARRAYS[1])
    check(made, 1)
    check(FinishedSlices(made.folder, KEY), 1)


def test_a_slice_that_ends_while_it_is_read_is_as_if_it_were_not_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = open_regular

    def claimed(path: Path) -> Any:
        opened = really(path)
        assert opened is not None
        return opened[0], opened[1] + (path.name == "slice-1.npy")

    with (folder / "slice-1.npy").open("r+b") as file:
        file.truncate(file.seek(0, os.SEEK_END) - 1)
    monkeypatch.setattr(checkpoint, "open_regular", claimed)
    check(FinishedSlices(folder, KEY), 0, 2, 3)


def test_a_folder_is_no_slice(folder: Path) -> None:
    (folder / "slice-0.npy").unlink()
    (folder / "slice-0.npy").mkdir()
    check(FinishedSlices(folder, KEY), 1, 2, 3)


def test_nothing_is_left_behind(folder: Path) -> None:
    (folder / ".slice-3.npy.0123456789ab.tmp").write_bytes(b"left by a kill")
    made = FinishedSlices(folder, KEY)
    made.remove()
    assert not made.done
    assert not folder.exists()
    made.remove()


def test_what_others_put_there_stays(folder: Path) -> None:
    (folder / "notes.txt").write_text("mine")
    FinishedSlices(folder, KEY).remove()
    assert names_in(folder) == ["notes.txt"]


def test_other_work_is_refused_unless_it_starts_again(folder: Path) -> None:
    with pytest.raises(InputError, match="other options or another version; go on with those, or start again"):
        FinishedSlices(folder, "1" * 32)
    assert not FinishedSlices(folder, "1" * 32, resume=False).done
    assert not folder.exists()


def flip(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)


def header_of_another(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"'<u8'", b"'<i8'"))


DAMAGES: tuple[Callable[[Path], Any], ...] = (
    flip,
    header_of_another,
    lambda path: os.truncate(path, path.stat().st_size - 1),
    lambda path: os.truncate(path, 0),
    lambda path: path.write_bytes(path.read_bytes() + b"\0"),
    lambda path: path.unlink(),
    lambda path: shutil.copy(path.with_name("slice-0.npy"), path),
)


@pytest.mark.parametrize("damage", range(len(DAMAGES)))
def test_damaged_slices_are_as_if_they_were_not_there(folder: Path, damage: int) -> None:
    before = FinishedSlices(folder, KEY)
    DAMAGES[damage](folder / "slice-1.npy")
    check(FinishedSlices(folder, KEY), 0, 2, 3)
    with pytest.raises(FormatError, match=r"slice-1\.npy.*other bytes than were written.*same command again"):
        before.get(1)
    check(before, 0, 2, 3)
    again = FinishedSlices(folder, KEY)
    again.put(1, ARRAYS[1])
    check(again, 0, 1, 2, 3)
    check(FinishedSlices(folder, KEY), 0, 1, 2, 3)


def test_swapped_slices_are_not_each_others(folder: Path) -> None:
    first, second, aside = (folder / name for name in ("slice-0.npy", "slice-1.npy", "aside"))
    first.rename(aside)
    second.rename(first)
    aside.rename(second)
    check(FinishedSlices(folder, KEY), 2, 3)


def test_a_journal_may_be_torn_anywhere(folder: Path) -> None:
    whole = (folder / SLICES).read_bytes()
    ends = [position + 1 for position, byte in enumerate(whole) if byte == ord("\n")]
    for length in range(0, len(whole), 7):
        (folder / SLICES).write_bytes(whole[:length])
        check(FinishedSlices(folder, KEY), *(number for number, end in enumerate(ends) if end - 1 <= length))
    (folder / SLICES).write_bytes(whole[: ends[1] + 20])
    torn = FinishedSlices(folder, KEY)
    torn.put(2, ARRAYS[2])
    check(FinishedSlices(folder, KEY), 0, 1, 2)


LIES: tuple[dict[str, Any], ...] = (
    {"owner": -1},
    {"owner": True},
    {"length": -1},
    {"length": 10**15},
    {"dtype": "<i8"},
    {"dtype": "O"},
    {"dtype": "<u8, <u8"},
    {"dtype": 8},
    {"sha256": "0" * 64},
    {"sha256": None},
)


@pytest.mark.parametrize("lie", LIES, ids=str)
def test_lines_that_say_what_cannot_be_are_passed_over(folder: Path, lie: dict[str, Any]) -> None:
    lines = (folder / SLICES).read_bytes().splitlines()
    record = json.loads(lines[1])
    del record["check"]
    lines[1] = line_of({**record, **lie}).encode()
    lines += [b"", b"\xff\xfe", b"[" * 5000, b"null", b"{}", lines[0][:-5]]
    (folder / SLICES).write_bytes(b"\n".join(lines))
    check(FinishedSlices(folder, KEY), 0, 2, 3)


def test_a_changed_line_is_not_believed(folder: Path) -> None:
    text = (folder / SLICES).read_text().replace('"owner": 1', '"owner": 0')
    (folder / SLICES).write_text(text)
    check(FinishedSlices(folder, KEY), 0, 2, 3)


@pytest.mark.parametrize("step", ["write_array", "append_line"])
def test_a_kill_between_the_steps_loses_that_slice_alone(
    folder: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = FinishedSlices(folder, KEY)

    def killed(*_arguments: Any, **_others: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(checkpoint, step, killed)
    with pytest.raises(KeyboardInterrupt):
        made.put(1, ARRAYS[1] + np.uint64(1))
    assert set(made.done) == {0, 2, 3}
    check(FinishedSlices(folder, KEY), *((0, 1, 2, 3) if step == "write_array" else (0, 2, 3)))


def test_folders_that_cannot_be_made_are_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError, match=r"could not be made \(.*\); check the folders above it"):
        FinishedSlices(tmp_path / "file" / "slices", KEY).put(0, ARRAYS[0])


@pytest.mark.skipif(os.geteuid() == 0, reason="everything is allowed")
def test_folders_that_cannot_be_emptied_are_named(folder: Path) -> None:
    made = FinishedSlices(folder, KEY)
    folder.chmod(0o500)
    try:
        with pytest.raises(StorageError, match=r"could not be emptied \(.*\); check its permissions"):
            made.remove()
    finally:
        folder.chmod(0o700)


def test_links_do_not_lead_out_of_a_store(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "folder").symlink_to(elsewhere)
    with pytest.raises(StorageError, match="is a link"):
        FinishedSlices(tmp_path / "folder", KEY)
    kept = FinishedSlices(tmp_path / "slices", KEY)
    kept.put(0, np.arange(3, dtype=np.uint64))
    (tmp_path / "slices" / "slice-1.npy").symlink_to(elsewhere / "slice-1.npy")
    with pytest.raises(StorageError, match="is a link"):
        kept.put(1, np.arange(3, dtype=np.uint64))
    (tmp_path / "count.journal").symlink_to(elsewhere / "lines")
    with pytest.raises(StorageError, match="is a link"):
        Journal(tmp_path / "count.journal", KEY, 4)
    assert not list(elsewhere.iterdir())
