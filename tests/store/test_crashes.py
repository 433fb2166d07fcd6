"""After a power cut, with whatever was not synced lost, the same command gives the right answer."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.graphs import fixture_pairs
from helpers.store_counts import count_store, each_task_by_itself

import wedgewise as ww
from store.power_cut import WAYS, Disk, PowerCut
from wedgewise.errors import MissingFileError
from wedgewise.machine.files import append_line, atomic_write
from wedgewise.run import checkpoint
from wedgewise.store.build import write_store
from wedgewise.store.manifest import is_store
from wedgewise.store.open import open_store

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="finds open files in /proc")

KARATE = fixture_pairs("karate")
QUESTIONS: dict[str, dict[str, Any]] = {"count": {}, "triangles": {}, "edge_support": {}, "k_truss": {"k": 4}}


def plain(answer: Any) -> Any:
    """An answer that can be compared."""
    return answer.edges.tolist() if hasattr(answer, "edges") else np.asarray(answer).tolist()


def cut_everywhere(
    tmp_path: Path,
    prepare: Callable[[Path], Any],
    work: Callable[[Path], Any],
    check: Callable[[Path], None],
    *,
    steps: int,
    ways: tuple[str, ...],
) -> int:
    """Cut the power at one call after the other, in the ways in turn, until there is none left; how often that was."""
    cuts = 0
    for number in range(0, 10**6, steps):
        way = ways[number // steps % len(ways)]
        root, left = tmp_path / f"disk-{number}", tmp_path / f"left-{number}"
        root.mkdir()
        prepare(root)
        with pytest.MonkeyPatch.context() as patch:
            disk = Disk(patch, root)
            disk.cut(number, left, way)
            try:
                work(root)
            except PowerCut:
                cuts += 1
        if disk.left is None:
            break
        check(left)
    return cuts


def ask_after_cuts(tmp_path: Path, question: str, steps: int, ways: tuple[str, ...] = WAYS) -> int:
    details = QUESTIONS[question]
    expected = plain(ww.run(question, KARATE, **details).answer)
    flushed: list[int] = []  # how many tasks were on the disk when the power was cut
    seconds = cycle((0.0, 0.0, checkpoint.FLUSH_SECONDS))

    def work(root: Path) -> None:
        flushed[:] = [0]
        with each_task_by_itself(), pytest.MonkeyPatch.context() as patch:
            patch.setattr(checkpoint, "FLUSH_SECONDS", next(seconds))
            is_flushed = checkpoint.FLUSH_SECONDS == 0.0

            def told(_stage: str, done: int, _total: int) -> None:
                flushed[0] = done if is_flushed else 0

            ww.run(question, root / "store", threads=1, progress=told, **details)

    def check(left: Path) -> None:
        if question == "count":
            found = count_store(left / "store")
            assert found.triangles == expected
            assert flushed[0] <= found.resumed <= 4 or flushed[0] == 4  # whose journal may be gone
        else:
            assert plain(ww.run(question, left / "store", **details).answer) == expected

    write_store(KARATE, tmp_path / "made", parts=2)

    def prepare(root: Path) -> None:
        (root / "store").mkdir()
        for path in (tmp_path / "made").iterdir():
            (root / "store" / path.name).write_bytes(path.read_bytes())

    return cut_everywhere(tmp_path, prepare, work, check, steps=steps, ways=ways)


def make_after_cuts(tmp_path: Path, steps: int, ways: tuple[str, ...] = WAYS) -> int:
    def check(left: Path) -> None:
        if not is_store(left / "store"):
            write_store(KARATE, left / "store", parts=2)
        assert ww.count(left / "store", verify=True) == 45
        assert ww.triangles(left / "store").tolist() == ww.triangles(KARATE).tolist()

    return cut_everywhere(
        tmp_path,
        lambda root: None,
        lambda root: write_store(KARATE, root / "store", parts=2, threads=1),
        check,
        steps=steps,
        ways=ways,
    )


@pytest.mark.parametrize(("question", "steps"), [("count", 4), ("triangles", 8), ("edge_support", 9)])
def test_questions_go_on_after_a_power_cut(tmp_path: Path, question: str, steps: int) -> None:
    assert ask_after_cuts(tmp_path, question, steps) >= 3


def test_a_partition_starts_again_after_a_power_cut(tmp_path: Path) -> None:
    assert make_after_cuts(tmp_path, 8) >= 3


@pytest.mark.deep
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("question", "steps"), [("count", 1), ("triangles", 1), ("edge_support", 2), ("k_truss", 4)])
def test_questions_go_on_after_every_power_cut(tmp_path: Path, question: str, steps: int, way: str) -> None:
    assert ask_after_cuts(tmp_path, question, steps, (way,)) > 10


@pytest.mark.deep
@pytest.mark.parametrize("way", WAYS)
def test_a_partition_starts_again_after_every_power_cut(tmp_path: Path, way: str) -> None:
    assert make_after_cuts(tmp_path, 1, (way,)) > 20


@pytest.mark.parametrize("way", WAYS)
def test_what_is_finished_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    root = tmp_path / "disk"
    root.mkdir()
    disk = Disk(monkeypatch, root)
    store = write_store(KARATE, root / "store", parts=2)
    disk.lay_out(tmp_path / "left", way)
    for record in store.files():
        store.array(record)
    left = open_store(tmp_path / "left" / "store")
    assert left.manifest.to_json() == store.manifest.to_json()
    assert ww.count(left.folder) == 45


def test_the_disk_loses_what_is_not_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test of the tests: files of others are lost, or there and empty; ours are not."""
    root = tmp_path / "disk"
    root.mkdir()
    (root / "old").write_bytes(b"settled")
    disk = Disk(monkeypatch, root)
    with atomic_write(root / "ours") as file:
        file.write(b"whole")
    append_line(root / "lines", "first")
    (root / "theirs").write_bytes(b"not synced")
    (root / "old").unlink()
    disk.lay_out(tmp_path / "lost", "lost")
    disk.lay_out(tmp_path / "early", "early")
    read = {path.relative_to(tmp_path).as_posix(): path.read_bytes() for path in tmp_path.glob("[el]*/*")}
    ours = {"ours": b"whole", "lines": b"first\n"}
    assert read == {
        **{f"lost/{name}": data for name, data in {**ours, "old": b"settled"}.items()},
        **{f"early/{name}": data for name, data in {**ours, "theirs": b""}.items()},
    }


@pytest.mark.parametrize("lacking", ["fsync", "_sync_folder"])
def test_a_write_that_is_not_synced_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lacking: str) -> None:
    """Were storage not to sync, stores would be lost."""
    root = tmp_path / "disk"
    root.mkdir()
    disk = Disk(monkeypatch, root)
    if lacking == "fsync":
        monkeypatch.setattr("os.fsync", lambda _descriptor: None)
    else:
        monkeypatch.setattr("wedgewise.machine.files._sync_folder", lambda _folder: None)
    write_store(KARATE, root / "store", parts=2)
    disk.lay_out(tmp_path / "left", "lost")
    with pytest.raises(MissingFileError, match="is not a store"):
        open_store(tmp_path / "left" / "store")
