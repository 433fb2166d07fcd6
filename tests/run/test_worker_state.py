"""What a worker keeps for the next request: one state, within its limit, and none when the driver has ended."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from emulate.hybrid_cases import Gpus, gpus
from helpers.graphs import TRUTHS, fixture_pairs

import wedgewise as ww
from wedgewise.machine import budget, hardware
from wedgewise.machine.budget import MIN_LIMIT, RESERVE_BYTES
from wedgewise.run import _worker_requests
from wedgewise.run._count_worker import BatchResult
from wedgewise.run._dispatch import Assignment
from wedgewise.run._slice_worker import SliceRequest, SliceResult, SliceState
from wedgewise.run._worker_requests import do_request, release_state
from wedgewise.run.cluster import ClusterWork, cluster_work
from wedgewise.run.request import Request
from wedgewise.run.task_memory import SLICED_TASK_BYTES, lists_bytes
from wedgewise.store import open as opening
from wedgewise.store.build import write_store
from wedgewise.store.open import Store

__all__ = ["gpus"]

JAZZ = TRUTHS["jazz"]["triangles"]
ALL_TASKS = Assignment(0, tuple(range(20)))


@pytest.fixture
def jazz(tmp_path: Path) -> Store:
    return write_store(fixture_pairs("jazz"), tmp_path / "store", parts=4)


@pytest.fixture(autouse=True)
def no_state() -> Iterator[None]:
    release_state()
    yield
    release_state()


def assigned(store: Store, **how: Any) -> ClusterWork:
    return cluster_work(Request(threads=1, cluster="somewhere", **how), store)


def slices_of(store: Store) -> str:
    """What a worker is asked for the triangles of every vertex."""
    folder = store.folder / "triangles-slices"
    folder.mkdir()
    return SliceRequest(
        version=ww.__version__,
        store=str(store.folder),
        work_folder=None,
        folder=str(folder),
        fingerprint=store.manifest.fingerprint,
        partition=store.partition.to_dict(),
        computes="triangles",
        algorithm="keystone",
        knobs={},
        threads=1,
        memory_limit=None,
        k=None,
        round_number=0,
        slices=tuple(range(store.parts)),
    ).to_json()


@pytest.fixture
def resident(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """What this process is said to hold: so much, and the blocks of stores."""
    held, really = {"beside": 0, "blocks": 0}, opening.private_memory

    def forget(nbytes: int) -> None:
        held["blocks"] -= nbytes

    def private_memory(*given: Any) -> Any:
        array = really(*given)
        held["blocks"] += array.nbytes
        weakref.finalize(array, forget, array.nbytes)
        return array

    monkeypatch.setattr(opening, "private_memory", private_memory)
    monkeypatch.setattr(hardware, "resident_bytes", lambda: sum(held.values()))
    monkeypatch.setattr(budget, "release_memory", lambda: None)
    return held


def test_a_count_leaves_its_memory_to_triangles(jazz: Store, resident: dict[str, int]) -> None:
    slices, count = slices_of(jazz), assigned(jazz).message(ALL_TASKS)
    SliceResult.from_json(do_request(slices))
    state = _worker_requests._state
    assert isinstance(state, SliceState)
    need = state._sliced.check_fits() + lists_bytes(jazz.partition, SLICED_TASK_BYTES)
    release_state()
    assert resident["blocks"] == 0
    BatchResult.from_json(do_request(count))
    assert resident["blocks"] > 4 * jazz.m
    resident["beside"] = MIN_LIMIT - RESERVE_BYTES - need
    assert len(SliceResult.from_json(do_request(slices, MIN_LIMIT)).records) == jazz.parts


def test_other_work_takes_the_gpu_s_place(jazz: Store, gpus: Gpus) -> None:
    (device,) = gpus()
    slices = slices_of(jazz)
    count = assigned(jazz, device="cuda", algorithm="toy").message(ALL_TASKS)
    found = BatchResult.from_json(do_request(count)).finished.triangles
    assert (int(found.sum()), device.live > 0) == (JAZZ, True)
    SliceResult.from_json(do_request(slices))
    assert device.live == 0
