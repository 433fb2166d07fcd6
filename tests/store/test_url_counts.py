"""Stores behind URLs: the same checks as in a folder, the journal in the cache of the user."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.commands import answer_of, invoke
from helpers.graphs import TRUTHS, fixture_pairs
from helpers.store_counts import count_on_cluster, each_task_by_itself

import wedgewise as ww
from wedgewise.errors import (
    FormatError,
    InputError,
    MissingDependencyError,
    MissingFileError,
    PreconditionError,
    StorageError,
)
from wedgewise.machine import jit
from wedgewise.run.checkpoint import JOURNAL
from wedgewise.store import urls as places
from wedgewise.store.build import write_store
from wedgewise.store.manifest import MANIFEST, is_store, is_url
from wedgewise.store.open import Store, open_store
from wedgewise.store.urls import Remote, location_of

fsspec = pytest.importorskip("fsspec")

JAZZ = TRUTHS["jazz"]["triangles"]
URL = "memory://graphs/jazz"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_store(fixture_pairs("jazz"), tmp_path / "store", parts=4).folder


@pytest.fixture
def memory(folder: Path) -> Iterator[Any]:
    """The files of a store in a file system of this process."""
    system = fsspec.filesystem("memory")
    system.put(f"{folder}/", "/graphs/jazz", recursive=True)
    yield system
    system.rm("/graphs", recursive=True)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    kernels = tmp_path / "cache" / "kernels-0"
    kernels.mkdir(parents=True)
    monkeypatch.setattr(jit, "cache_folder", lambda: kernels)
    return kernels.parent / "stores"


def test_what_is_a_url() -> None:
    for url in ("s3://bucket/store", "file:///tmp/store", "memory://x", "HTTPS://host/store", "gs+x.y-1://b"):
        assert is_url(url)
        assert is_store(url)
    for path in ("store", "/tmp/store", "C:\\store", "://x", "a:/b", Path("s3://bucket")):
        assert not is_url(path)


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_a_store_is_counted_from_a_url(kind: str, folder: Path, memory: Any, cache: Path) -> None:
    url = URL if kind == "memory" else folder.as_uri()
    assert ww.count(url) == ww.count(f"{url}/", verify=True) == JAZZ
    assert answer_of("count", url)["answer"] == JAZZ
    assert list(cache.rglob(JOURNAL)) == []


def test_everything_of_a_store_is_read_from_a_url(folder: Path, memory: Any) -> None:
    near, afar = open_store(folder), open_store(URL)
    assert near.manifest.to_json() == afar.manifest.to_json()
    for pair in near.manifest.blocks:
        assert np.array_equal(near.block(*pair).heads, afar.block(*pair).heads)
        assert np.array_equal(near.block(*pair).offsets, afar.block(*pair).offsets)
    assert np.array_equal(near.vertex_of(), afar.vertex_of())
    assert list(near.labels()) == list(afar.labels())


def test_a_count_from_a_url_goes_on_where_it_was(memory: Any, cache: Path) -> None:
    def interrupt(_stage: str, done: int, _total: int) -> None:
        if done == 5:
            raise KeyboardInterrupt

    with each_task_by_itself(), pytest.raises(KeyboardInterrupt):
        ww.count(URL, progress=interrupt)
    (journal,) = cache.rglob(JOURNAL)
    assert journal == open_store(URL).beside(JOURNAL)
    assert len(journal.read_text().splitlines()) == 5
    with pytest.raises(InputError, match="other options"):
        ww.count(URL, algorithm="bbtc")
    told: list[int] = []
    with each_task_by_itself():
        assert ww.count(URL, progress=lambda _stage, done, _total: told.append(done)) == JAZZ
    assert told[0] == 6
    assert not journal.exists()


def test_without_a_cache_folder_the_remedy_is_named(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "cache_folder", lambda: None)
    with pytest.raises(StorageError, match=r"memory://graphs/jazz: no folder .* by you alone; .*WEDGEWISE_CACHE"):
        ww.count(URL)


def _flip(system: Any, path: str) -> None:
    whole = bytearray(system.cat(path))
    whole[-2] ^= 4
    system.pipe(path, bytes(whole))


DAMAGES: dict[str, tuple[Callable[[Any, str], Any], type[Exception], str]] = {
    "flipped": (_flip, FormatError, "has other bytes than were written"),
    "cut": (lambda system, path: system.pipe(path, system.cat(path)[:-1]), FormatError, "where the manifest says"),
    "short": (
        lambda system, path: system.pipe(path, system.cat(path)[:90]),
        FormatError,
        "fewer than the manifest says",
    ),
    "longer": (lambda system, path: system.pipe(path, system.cat(path) + b"x"), FormatError, "where the manifest says"),
    "gone": (lambda system, path: system.rm(path), MissingFileError, "is not there; partition the graph again"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_block_is_refused(memory: Any, cache: Path, damage: str) -> None:
    change, kind, message = DAMAGES[damage]
    change(memory, "/graphs/jazz/block-0-2.heads.npy")
    with pytest.raises(kind, match=rf"memory://graphs/jazz/block-0-2\.heads\.npy: .*{message}"):
        ww.count(URL)


def test_a_file_that_vanishes_after_opening_is_named(memory: Any) -> None:
    store = open_store(URL)
    memory.rm("/graphs/jazz/block-0-2.heads.npy")
    with pytest.raises(MissingFileError, match=r"block-0-2\.heads\.npy: cannot be opened"):
        store.block(0, 2)


def test_what_is_no_store_is_refused(memory: Any, tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match=r"nowhere/manifest\.json: cannot be opened .*; a URL names a store"):
        ww.count("memory://nowhere")
    memory.pipe("/graphs/jazz/manifest.json", b"{}")
    with pytest.raises(FormatError, match=r"memory://graphs/jazz/manifest\.json: the manifest has format_version None"):
        ww.count(URL)
    with pytest.raises(PreconditionError, match="carrier://pigeon: cannot be read"):
        ww.count("carrier://pigeon")
    refused = invoke("count", "memory://nowhere")
    assert (refused.exit_code, "cannot be opened" in refused.output) == (1, True)


def test_a_listing_that_fails_is_named(memory: Any) -> None:
    place = location_of(URL)
    assert isinstance(place, Remote)
    assert place.sizes()[MANIFEST] > 0
    with pytest.raises(MissingFileError, match="memory://nowhere: cannot be opened"):
        Remote("memory://nowhere", "/nowhere", memory).sizes()


def test_reads_may_bring_less_than_was_asked_for(folder: Path, memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As those of a network do."""
    really = memory.open

    class Slow:
        def __init__(self, file: Any) -> None:
            self.file = file

        def __enter__(self) -> Slow:
            return self

        def __exit__(self, *_: object) -> None:
            self.file.close()

        def readinto(self, part: memoryview) -> int:
            return int(self.file.readinto(part[:7]))

        def __getattr__(self, name: str) -> Any:
            return getattr(self.file, name)

    monkeypatch.setattr(type(memory), "open", lambda _self, *given: Slow(really(*given)))
    store = open_store(URL)
    assert np.array_equal(store.block(1, 2).heads, open_store(folder).block(1, 2).heads)


def test_a_connection_that_breaks_is_named(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> int:
        raise ConnectionResetError("Connection reset by peer")

    store = open_store(URL)
    monkeypatch.setattr("wedgewise.store.open._read_into", broken)
    with pytest.raises(MissingFileError, match=r"block-1-2\.offsets\.npy: cannot be read \(Connection reset by peer\)"):
        store.block(1, 2)


def test_a_store_in_this_process_has_no_other_workers(memory: Any) -> None:
    with pytest.raises(PreconditionError, match="memory://graphs/jazz: no other process sees it; name a folder"):
        count_on_cluster(URL, workers=2)


def test_what_needs_a_folder_says_so(memory: Any) -> None:
    with pytest.raises(PreconditionError, match="is a URL; copy the store into a folder"):
        _ = open_store(URL).folder


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(_url: str) -> Any:
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr(fsspec.core, "url_to_fs", lacking)
    with pytest.raises(MissingDependencyError, match="bucket/store: Install s3fs to access S3; a URL names a store"):
        ww.count("s3://bucket/store")
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(MissingDependencyError, match=r'pip install "wedgewise\[cluster\]"'):
        ww.count("s3://bucket/store")


def test_folders_are_places_too(folder: Path) -> None:
    place = location_of(folder)
    assert (str(place), place.name_of("x"), place.sizes()) == (str(folder), str(folder / "x"), None)
    assert not place.is_in_this_process
    assert isinstance(open_store(folder), Store)
    assert places.location_of(str(folder)) == place
