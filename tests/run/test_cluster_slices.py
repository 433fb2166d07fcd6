"""Answers of many numbers by workers: in this process, and in processes of this machine that are killed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.commands import invoke
from helpers.graphs import fixture_pairs

import wedgewise as ww
from run.cluster_workers import FakeWorkers
from run.test_cluster_kills import begun, has_ended, started
from wedgewise.errors import ClusterError, PreconditionError, VerificationError
from wedgewise.run import _process_workers, _slice_worker, _worker_requests, cluster_slices
from wedgewise.run._dispatch import Assignment, Delivery
from wedgewise.run._slice_worker import SliceResult
from wedgewise.store.build import write_store
from wedgewise.store.open import Store

__all__ = ["started"]

QUESTIONS: dict[str, Callable[..., Any]] = {
    "triangles": ww.triangles,
    "edge_support": ww.edge_support,
    "k_truss": lambda source, **how: ww.k_truss(source, 8, **how).edges,
}
Deliver = Callable[[Assignment, bytes], list[Delivery]]


@pytest.fixture(scope="module")
def graph() -> ww.Graph:
    return ww.Graph(fixture_pairs("jazz"))


@pytest.fixture
def jazz(tmp_path: Path) -> Store:
    return write_store(fixture_pairs("jazz"), tmp_path / "store", parts=3)


@pytest.fixture
def by_pool(monkeypatch: pytest.MonkeyPatch) -> Callable[[Deliver | None], list[FakeWorkers]]:
    """Let workers of this process do all that workers are asked; what becomes of their results."""

    def use(deliver: Deliver | None = None) -> list[FakeWorkers]:
        pools: list[FakeWorkers] = []

        class Opened:
            def __init__(self, *_: Any) -> None:
                pools.append(FakeWorkers(deliver=deliver))

            def __enter__(self) -> FakeWorkers:
                return pools[-1]

            def __exit__(self, *_: object) -> None:
                pools[-1].close()

        monkeypatch.setattr(cluster_slices, "open_workers", Opened)
        monkeypatch.setattr(_worker_requests, "_state", None)
        return pools

    return use


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("scheme", ["rectilinear", "hashed"])
def test_answers_are_those_of_one_process(
    tmp_path: Path, graph: ww.Graph, by_pool: Any, question: str, scheme: str
) -> None:
    pools = by_pool()
    store = write_store(fixture_pairs("jazz"), tmp_path / "store", parts=3, scheme=scheme)
    before = sorted(path.name for path in store.folder.iterdir())
    found = QUESTIONS[question](store.folder, workers=2)
    assert np.array_equal(found, QUESTIONS[question](graph))
    assert [pool.is_closed for pool in pools] == [True]
    assert [name for name in before if name not in {path.name for path in store.folder.iterdir()}] == []
    assert not list(store.folder.glob("*slice*")) + list(store.folder.glob("truss-round*"))


@pytest.mark.parametrize("question", QUESTIONS)
def test_results_may_be_lost_late_and_double(jazz: Store, graph: ww.Graph, by_pool: Any, question: str) -> None:
    lost, late = set[str](), list[Delivery]()

    def deliver(batch: Assignment, reply: bytes) -> list[Delivery]:
        what = f"{json.loads(reply)['folder']} {batch.tasks}"
        if what not in lost:
            lost.add(what)
            late.append(Delivery(batch, reply))
            return [Delivery(batch, None, 1)]
        return [*late, Delivery(batch, reply), Delivery(batch, reply), *late]

    by_pool(deliver)
    assert np.array_equal(QUESTIONS[question](jazz.folder, workers=2), QUESTIONS[question](graph))


def test_a_second_slice_has_to_be_equal(jazz: Store, by_pool: Any) -> None:
    def deliver(batch: Assignment, reply: bytes) -> list[Delivery]:
        other = json.loads(reply)
        other["records"][0][-1] = "0" * 64
        return [Delivery(batch, reply), Delivery(batch, json.dumps(other).encode())]

    by_pool(deliver)
    with pytest.raises(VerificationError, match=r"slice \d was computed twice, with different numbers"):
        ww.triangles(jazz.folder, workers=2)


def test_a_slice_that_is_not_what_was_said_is_refused(jazz: Store, by_pool: Any) -> None:
    def deliver(batch: Assignment, reply: bytes) -> list[Delivery]:
        written = Path(json.loads(reply)["folder"]) / f"slice-{batch.tasks[0]}.npy"
        written.unlink()
        return [Delivery(batch, reply)]

    by_pool(deliver)
    with pytest.raises(ClusterError, match=r"slice-\d\.npy: is not what a worker has written; .* by --work"):
        ww.triangles(jazz.folder, workers=2)


def test_a_folder_that_workers_do_not_share_is_named(
    jazz: Store, monkeypatch: pytest.MonkeyPatch, by_pool: Any
) -> None:
    by_pool()
    really = _slice_worker.SliceRequest.from_json

    def elsewhere(text: str) -> Any:
        asked = json.loads(text)
        return really(json.dumps({**asked, "folder": asked["folder"] + "-of-another-machine"}))

    monkeypatch.setattr(_slice_worker.SliceRequest, "from_json", elsewhere)
    with pytest.raises(ClusterError, match=r"a worker does not see this folder, .* by --work \(work_folder=\)"):
        ww.edge_support(jazz.folder, workers=2)


def test_a_store_that_workers_do_not_see_is_named(jazz: Store, tmp_path: Path) -> None:
    """Here it is moved away behind the driver's back."""
    jazz.folder.rename(tmp_path / "elsewhere")
    message = rf"^worker process \d+ cannot see the store {jazz.folder}; put it where all workers can read it$"
    for question in ("count", "triangles"):
        with pytest.raises(ClusterError, match=message):
            ww.run(question, jazz, workers=1, work_folder=tmp_path / "work")


@pytest.mark.parametrize("question", ["edge_support", "k_truss"])
def test_a_driver_goes_on_where_it_was(jazz: Store, graph: ww.Graph, by_pool: Any, question: str) -> None:
    """Also in one process."""

    def interrupt(_stage: str, done: int, _total: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    first = by_pool()
    with pytest.raises(KeyboardInterrupt):
        QUESTIONS[question](jazz.folder, workers=2, progress=interrupt)
    assert first[0].is_closed
    asked = by_pool()
    with pytest.raises(KeyboardInterrupt):
        QUESTIONS[question](jazz.folder, workers=2, progress=interrupt)
    assert asked[0].batches
    assert np.array_equal(QUESTIONS[question](jazz.folder), QUESTIONS[question](graph))


def test_the_work_folder_is_where_slices_are(jazz: Store, graph: ww.Graph, tmp_path: Path, by_pool: Any) -> None:
    seen: list[Path] = []

    def deliver(batch: Assignment, reply: bytes) -> list[Delivery]:
        seen.append(Path(SliceResult.from_json(reply).folder))
        return [Delivery(batch, reply)]

    by_pool(deliver)
    found = QUESTIONS["k_truss"](jazz.folder, workers=2, work_folder=tmp_path / "shared")
    assert np.array_equal(found, QUESTIONS["k_truss"](graph))
    assert {folder.parent.parent for folder in seen} == {tmp_path / "shared"}


@pytest.mark.parametrize("how", ["die", "poison"])
def test_workers_are_killed(
    jazz: Store, graph: ww.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: list[int], how: str
) -> None:
    (tmp_path / "begun").mkdir()
    arguments = f"{how!r}, (0, 2), {str(tmp_path / 'begun')!r}"
    program = f"from run.cluster_workers import serve_misbehaving; serve_misbehaving({arguments})"
    monkeypatch.setattr(_process_workers, "PROGRAM", program)
    if how == "die":
        assert np.array_equal(ww.edge_support(jazz.folder, workers=2), ww.edge_support(graph))
        assert {"0-0", "0-1", "2-0", "2-1"} <= begun(tmp_path)
    else:
        with pytest.raises(ClusterError, match=r"slice [02] \(edge_support of \(0, [02]\)\) ended 3 workers"):
            ww.edge_support(jazz.folder, workers=2)
    assert all(map(has_ended, started))


def test_commands_take_workers(jazz: Store, graph: ww.Graph, by_pool: Any, tmp_path: Path) -> None:
    by_pool()
    for command in (["triangles"], ["support"], ["truss", "--k", "8"]):
        output = str(tmp_path / "rows.csv")
        ran = invoke(command[0], str(jazz.folder), *command[1:], "--workers", "2", "--output", output)
        assert ran.exit_code == 0, ran.output
        alone = invoke(command[0], str(jazz.folder), *command[1:], "--output", f"{output}.csv")
        assert (alone.exit_code, Path(output).read_text()) == (0, Path(f"{output}.csv").read_text())


def test_what_cannot_be_asked_for(jazz: Store, graph: ww.Graph) -> None:
    with pytest.raises(PreconditionError, match="is not a store; workers need one"):
        ww.triangles(graph, workers=2)
    with pytest.raises(PreconditionError, match="leave the device out"):
        ww.triangles(jazz.folder, workers=2, device="cuda")
