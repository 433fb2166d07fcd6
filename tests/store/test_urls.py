"""Stores behind URLs: hiccups are waited for, failures are named, and work on other partitions is kept apart."""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.graphs import fixture_pairs

import wedgewise as ww
from wedgewise.errors import MissingFileError
from wedgewise.machine import jit
from wedgewise.run.checkpoint import JOURNAL
from wedgewise.store import urls as places
from wedgewise.store.build import write_store
from wedgewise.store.open import open_store

fsspec = pytest.importorskip("fsspec")

KARATE = fixture_pairs("karate")
URL = "memory://hiccups/store"


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The files of a store in a file system of this process; nobody waits."""
    kernels = tmp_path / "cache" / "kernels-0"
    kernels.mkdir(parents=True)
    monkeypatch.setattr(jit, "cache_folder", lambda: kernels)
    monkeypatch.setattr("wedgewise.store.urls.time.sleep", lambda _seconds: None)
    system = fsspec.filesystem("memory")
    put(system, write_store(KARATE, tmp_path / "store", parts=2).folder, "store")
    yield system
    system.rm("/hiccups", recursive=True)


def put(system: Any, folder: Path, name: str) -> None:
    system.put(f"{folder}/", f"/hiccups/{name}", recursive=True)


class Shaky:
    """A file that fails after some bytes, as often as that is due."""

    def __init__(self, file: Any, fail: Callable[[], None]) -> None:
        self._file, self._fail = file, fail

    def read(self, size: int = -1) -> bytes:
        self._fail()
        return bytes(self._file.read(size))

    def readinto(self, part: memoryview) -> int:
        short = self._file.readinto(part[: max(1, len(part) // 2)])  # and brings less than was asked for
        self._fail()
        return int(short)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def shake(patch: pytest.MonkeyPatch, system: Any, error: Exception, *, every: int, times: int = 1) -> list[int]:
    """Let every so-manieth read fail, so many times in a row; the failures."""
    really, reads, failures = system.open, 0, list[int]()

    def fail() -> None:
        nonlocal reads
        reads += 1
        if reads % every < times:
            failures.append(reads)
            raise error

    patch.setattr(type(system), "open", lambda _self, *given: Shaky(really(*given), fail))
    return failures


@pytest.mark.parametrize("error", [OSError(errno.EIO, "hiccup"), ConnectionResetError("reset"), TimeoutError("late")])
def test_a_hiccup_changes_nothing(memory: Any, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    failures = shake(monkeypatch, memory, error, every=5)
    assert ww.count(URL) == 45
    assert ww.triangles(URL).tolist() == ww.triangles(KARATE).tolist()
    assert len(failures) > 10


def test_hiccups_are_logged(memory: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    shake(monkeypatch, memory, TimeoutError("late"), every=7)
    with caplog.at_level(logging.INFO, "wedgewise"):
        ww.count(URL)
    assert "memory://hiccups/store/" in caplog.text
    assert "late; trying again in 0.2 s" in caplog.text


def test_what_fails_again_and_again_is_named(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    failures = shake(monkeypatch, memory, TimeoutError("too late"), every=10**6, times=10**6)
    with pytest.raises(MissingFileError, match=r"store/manifest\.json: cannot be read \(too late\); try again"):
        ww.count(URL)
    assert len(failures) == len(places.PAUSES) + 1


def test_opening_and_listing_are_tried_again(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    left = dict.fromkeys(("size", "open", "ls"), 2)

    def gated(name: str) -> Callable[..., Any]:
        really = getattr(type(memory), name)

        def call(self: Any, *given: Any, **others: Any) -> Any:
            left[name] -= 1
            if left[name] >= 0:
                raise OSError(errno.EAGAIN, "not now")
            return really(self, *given, **others)

        return call

    for name in left:
        monkeypatch.setattr(type(memory), name, gated(name))
    assert ww.count(URL) == 45
    assert max(left.values()) < 0


def test_what_is_not_there_is_not_waited_for(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("wedgewise.store.urls.time.sleep", waits.append)
    with pytest.raises(MissingFileError, match="cannot be opened"):
        open_store("memory://nowhere")
    assert waits == []


def test_two_partitions_of_a_graph_do_not_share_work(memory: Any, tmp_path: Path) -> None:
    put(memory, write_store(KARATE, tmp_path / "other", parts=3).folder, "other")
    urls = (URL, "memory://hiccups/other")
    assert len({open_store(url).manifest.fingerprint for url in urls}) == 1

    def end(_stage: str, done: int, _total: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    for url in urls:
        with pytest.raises(KeyboardInterrupt):
            ww.count(url, progress=end)
    assert len(list((tmp_path / "cache" / "stores").rglob(JOURNAL))) == 2
    told: list[tuple[str, int, int]] = []
    for url in urls:
        told.clear()
        assert ww.count(url, progress=lambda *news: told.append(news)) == 45
        assert told[0][1] == 3
