"""TRUST's rule: into how many parts and shares a graph is cut for so many workers (§6.5)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.commands import invoke
from helpers.graphs import TRUTHS, fixture_pairs
from hypothesis import given, settings
from hypothesis import strategies as st

import wedgewise as ww
from wedgewise.errors import InputError, MemoryLimitError
from wedgewise.machine import hardware
from wedgewise.stages.blocks import Hashed, Rectilinear
from wedgewise.stages.trust_cut import EDGE_BYTES, TrustCut, shares_for, trust_cut, trust_reasons
from wedgewise.store import orient
from wedgewise.store.orient import COUNTING_BYTES, Wanted

GB = 10**9
# Table 2: the graphs that the paper cuts for GPUs of 16 GB, and the largest that it does not
CUT = {"clueweb12": 37_372_179_311, "uk-2014": 42_464_215_550}
WHOLE = {"Friendster": 1_806_067_135, "gsh-2015-host": 1_502_666_069, "random": 999_999_892, "MAWI": 135_117_420}


@pytest.mark.parametrize("name", CUT)
@pytest.mark.parametrize(("workers", "shares"), [(512, 1), (1024, 2)])
def test_the_graphs_of_table_6_are_cut_as_published(name: str, workers: int, shares: int) -> None:
    assert trust_cut(CUT[name], workers, 16 * GB) == (8, shares)
    assert trust_cut(CUT[name], workers, 16 * 2**30) == (8, shares)


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("workers", [1, 8, 1024])
def test_graphs_that_fit_a_gpu_are_replicated(name: str, workers: int) -> None:
    """Figure 15: m = #GPUs."""
    assert trust_cut(WHOLE[name], workers, 16 * GB) == (1, workers)


@given(st.integers(0, 10**12), st.integers(1, 5000), st.integers(1, 10**12))
@settings(deadline=None, derandomize=True)
def test_parts_are_as_few_as_fit_and_every_worker_has_a_task(edges: int, workers: int, worker_bytes: int) -> None:
    parts, shares = trust_cut(edges, workers, worker_bytes)

    def fits(n: int) -> bool:
        blocks = 1 if n == 1 else 3
        return blocks * edges * EDGE_BYTES < worker_bytes * n * n

    assert fits(parts)
    assert parts == 1 or not fits(parts - 1)
    assert shares * parts**3 >= workers > (shares - 1) * parts**3


def test_shares_for_a_store_as_it_is_cut() -> None:
    assert [shares_for(workers, 27) for workers in (1, 27, 28, 54, 55)] == [1, 1, 2, 2, 3]
    uncut, as_cut = trust_reasons(Hashed(100, 4), CUT["uk-2014"], 1024, 16 * GB, shares=2)
    assert uncut == "TRUST's rule for 1,024 workers of 16,000,000,000 bytes: n = 8 hashed parts, m = 2 shares"
    assert as_cut == "with the 4 parts of this store, m = 16 makes a task for each worker"
    assert trust_reasons(Hashed(100, 4), CUT["uk-2014"], 1024, 16 * GB, shares=16) == (uncut,)
    of_four_tasks = trust_reasons(Rectilinear(np.array([0, 5, 9])), 10, 10, GB, shares=1)
    assert of_four_tasks[1] == "with the 2 parts of this store, m = 3 makes a task for each worker"


def test_hashed_parts_are_those_of_the_rule_or_more() -> None:
    wanted = Wanted.within(None, 8 * GB, "hashed", None, 2, worker_bytes=GB)
    assert wanted.counting_bytes == GB - COUNTING_BYTES
    assert list(wanted.candidates(10**9))[:3] == [("count", 5), ("count", 6), ("count", 8)]
    assert next(iter(wanted.candidates(10**6))) == ("count", 1)
    assert next(iter(Wanted.within(None, 8 * GB, "rectilinear", None, 2, worker_bytes=GB).candidates(10**9))) == (
        "count",
        1,
    )
    with pytest.raises(InputError, match="parts follow from the memory of the workers"):
        Wanted.within(None, 8 * GB, "hashed", 3, 2, worker_bytes=GB)
    with pytest.raises(InputError, match="memory_per_worker is an integer"):
        Wanted.within(None, 8 * GB, "hashed", None, 2, worker_bytes="1GB")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="100 bytes are too few"):
        Wanted.within(None, 8 * GB, "hashed", None, 2, worker_bytes=100)


def test_a_graph_is_cut_for_workers_and_counted(tmp_path: Path) -> None:
    store = ww.partition(fixture_pairs("jazz"), tmp_path / "store", scheme="hashed", memory_per_worker=2**30)
    assert store.parts == 1
    reasons = ww.explain("count", store, workers=4, memory_limit=4 * 2**30).reasons
    assert "TRUST's rule for 4 workers of 1,073,741,824 bytes: n = 1 hashed parts, m = 4 shares" in reasons
    assert ww.count(store, shares=4) == TRUTHS["jazz"]["triangles"]


@pytest.mark.parametrize(
    ("how", "worker_bytes"),
    [
        ({"workers": 4}, 12 * GB),  # three quarters of what the machine has left, divided
        ({"workers": 4, "memory_limit": 8 * GB}, 2 * GB),
        ({"workers": 4, "memory_per_worker": 3 * GB}, 3 * GB),
        ({"memory_per_worker": 3 * GB}, 3 * GB),
    ],
)
def test_so_many_workers_divide_the_memory(
    tmp_path: Path, how: dict[str, Any], worker_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, int, int]] = []

    def noting(edges: int, workers: int, of_worker: int) -> TrustCut:
        asked.append((edges, workers, of_worker))
        return TrustCut(3, 1)

    monkeypatch.setattr(hardware, "available_memory", lambda: 64 * GB)
    monkeypatch.setattr(orient, "trust_cut", noting)
    store = ww.partition(fixture_pairs("jazz"), tmp_path / "store", scheme="hashed", **how)
    assert (store.parts, [of_worker for *_, of_worker in asked]) == (3, [worker_bytes])


def test_the_command_cuts_for_workers(tmp_path: Path) -> None:
    (tmp_path / "pairs.txt").write_text("".join(f"{u} {v}\n" for u, v in fixture_pairs("jazz").tolist()))
    file, store = str(tmp_path / "pairs.txt"), str(tmp_path / "store")
    assert invoke("partition", file, store, "--scheme", "hashed", "--workers", "2").exit_code == 0
    assert ww.open_store(store).parts == 1
    for more, why in [
        (["--parts", "2"], "parts follow from the memory of the workers"),
        (["--memory", "300MB"], "300,000,000 bytes are too few for 2 workers"),
    ]:
        refused = invoke("partition", file, str(tmp_path / "again"), "--workers", "2", *more)
        assert (refused.exit_code, why in refused.stderr) == (1, True), refused.stderr


def test_the_commands_say_what_trust_would_take(tmp_path: Path) -> None:
    (tmp_path / "pairs.txt").write_text("".join(f"{u} {v}\n" for u, v in fixture_pairs("jazz").tolist()))
    file, store = str(tmp_path / "pairs.txt"), str(tmp_path / "store")
    written = invoke("partition", file, store, "--scheme", "hashed", "--memory-per-worker", "1GB", "--json")
    assert json.loads(written.stdout)["parts"] == 1
    asked = ("explain", store, "--workers", "512", "--memory-per-worker", "16GB", "--shares", "2")
    plan = json.loads(invoke(*asked, "--json").stdout)
    assert "with the 1 parts of this store, m = 512 makes a task for each worker" in plan["reasons"]
    assert "the rows of every three parts are dealt to 2 tasks" in plan["reasons"]
    refused = invoke("explain", store, "--memory-per-worker", "16GB")
    assert (refused.exit_code, "--memory-per-worker requires --workers" in refused.stderr) == (2, True)
    both = invoke("partition", file, str(tmp_path / "again"), "--parts", "2", "--memory-per-worker", "1GB")
    assert (both.exit_code, "parts follow from the memory of the workers" in both.stderr) == (1, True)


def test_a_worker_that_is_too_small_for_any_part_is_refused(tmp_path: Path) -> None:
    from wedgewise.store.orient import _divide, _hashed

    wanted = Wanted.within(None, 8 * GB, "hashed", None, 2, worker_bytes=2**28)
    with pytest.raises(MemoryLimitError, match="not even 256 parts"):
        _divide(wanted, 10**13, lambda parts: _hashed(10**6, 10**13, "rank", parts))
