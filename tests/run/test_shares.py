"""Shares of tasks: the rows of every three parts dealt to m tasks, m · n³ tasks for as many workers (TRUST, §5)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.commands import invoke
from helpers.graphs import TRUTHS, fixture_pairs
from helpers.store_counts import each_task_by_itself

import wedgewise as ww
from wedgewise.errors import InputError, MemoryLimitError, PreconditionError
from wedgewise.run.request import Request
from wedgewise.stages.tasks import task_count
from wedgewise.store.open import open_store

JAZZ = TRUTHS["jazz"]["triangles"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Stores of one graph: replicated and cut, both ways."""
    root = tmp_path_factory.mktemp("stores")
    asked = {"one": (1, "hashed"), "whole": (1, "rectilinear"), "rows": (3, "rectilinear"), "dealt": (3, "hashed")}
    for name, (parts, scheme) in asked.items():
        ww.partition(fixture_pairs("jazz"), root / name, parts=parts, scheme=scheme)
    return {name: root / name for name in asked}


@pytest.mark.parametrize("algorithm", ["keystone", "bbtc"])
@pytest.mark.parametrize(("name", "tasks"), [("one", [1]), ("rows", [6, 3, 1]), ("dealt", [9, 9, 9])])
@pytest.mark.parametrize("shares", [2, 3, 300])
def test_shares_add_up_to_all_triangles(
    folders: dict[str, Path], name: str, tasks: list[int], shares: int, algorithm: str
) -> None:
    """Of every three parts, by the part of its rows: no more tasks than that has rows are counted."""
    result = ww.run("count", folders[name], shares=shares, algorithm=algorithm, verify=True)
    rows = open_store(folders[name]).partition.sizes
    counted = sum(count * min(shares, size) for count, size in zip(tasks, rows, strict=True))
    assert (result.answer, len(result.task_seconds)) == (JAZZ, counted)
    assert any(f"dealt to {shares} tasks" in reason for reason in result.plan.reasons)


@pytest.mark.parametrize("name", ["one", "dealt"])
def test_workers_take_shares(folders: dict[str, Path], name: str) -> None:
    result = ww.run("count", folders[name], workers=2, shares=4)
    assert result.answer == JAZZ
    assert len(result.task_seconds) == 4 * (1 if name == "one" else 27)
    assert any("dealt to 4 tasks" in reason for reason in result.plan.reasons)


def test_a_replicated_graph_is_dealt_evenly(folders: dict[str, Path]) -> None:
    """Workload only: n = 1, and vertex u goes to worker u mod g; each has a share of the triangles."""
    from wedgewise.run.outofcore import tasks_from_disk

    store = open_store(folders["one"])
    planned = tasks_from_disk(Request(shares=4), store)
    found = planned.run(None, None).execution.results
    assert (planned.count, len(found.done), int(found.triangles.sum())) == (4, 4, JAZZ)
    assert (found.triangles > 0).all()
    rows = store.block(0, 0)
    lower = np.repeat(np.arange(rows.rows), np.diff(rows.offsets).astype(np.int64))
    adjacent = np.zeros((rows.rows, rows.rows))
    adjacent[lower, rows.heads] = 1
    closed = ((adjacent @ adjacent) * adjacent).sum(axis=1)
    assert found.triangles.tolist() == [int(closed[share::4].sum()) for share in range(4)]


def stop(_stage: str, done: int, _total: int) -> None:
    if done:
        raise KeyboardInterrupt


def tasks_of(folder: Path, **how: Any) -> int:
    """How many tasks a count has."""
    result = ww.run("count", folder, **how)
    assert result.answer == JAZZ
    return len(result.task_seconds)


def test_a_transitivity_takes_shares_and_goes_on_with_those_of_a_count(folders: dict[str, Path]) -> None:
    known = ww.transitivity(fixture_pairs("jazz"))
    assert ww.transitivity(folders["dealt"], shares=2) == known
    with each_task_by_itself(), pytest.raises(KeyboardInterrupt):
        ww.count(folders["dealt"], shares=3, progress=stop)
    result = ww.run("transitivity", folders["dealt"])
    assert (result.answer, len(result.task_seconds)) == (known, 3 * 27)


def test_a_count_goes_on_with_the_same_shares_alone(folders: dict[str, Path]) -> None:
    with pytest.raises(KeyboardInterrupt):
        ww.count(folders["dealt"], shares=2, progress=stop)
    for other in (1, 3):
        with pytest.raises(InputError, match="restart"):
            ww.count(folders["dealt"], shares=other)
    assert ww.count(folders["dealt"], shares=2) == JAZZ


@pytest.mark.parametrize(("how", "shares"), [({}, 3), ({"workers": 2}, 3), ({"resume": False}, 1)], ids=str)
def test_a_count_that_goes_on_keeps_its_shares(folders: dict[str, Path], how: dict[str, Any], shares: int) -> None:
    """Whoever goes on with it; the rule would have one."""
    with each_task_by_itself(), pytest.raises(KeyboardInterrupt):
        ww.count(folders["dealt"], shares=3, progress=stop)
    assert "the rows of every three parts are dealt to 3 tasks" in ww.explain("count", folders["dealt"]).reasons
    assert tasks_of(folders["dealt"], **how) == shares * 27


def test_workers_go_on_with_the_one_task_of_a_rectilinear_store(folders: dict[str, Path]) -> None:
    with pytest.raises(KeyboardInterrupt):
        ww.count(folders["whole"], progress=stop)
    assert tasks_of(folders["whole"], workers=3) == 1
    assert tasks_of(folders["whole"], workers=3) == 3


@pytest.mark.parametrize(
    ("name", "workers", "shares", "tasks"),
    [
        ("one", 3, None, 3),
        ("whole", 3, None, 3),
        ("one", 3, 1, 1),
        ("dealt", 2, None, 27),
        ("rows", 3, None, 10),
        ("one", None, None, 1),
    ],
)
def test_workers_take_the_shares_of_the_rule(
    folders: dict[str, Path], name: str, workers: int | None, shares: int | None, tasks: int
) -> None:
    assert tasks_of(folders[name], workers=workers, shares=shares, verify=True) == tasks
    plan = ww.explain("count", folders[name], workers=workers, shares=shares)
    said = [reason for reason in plan.reasons if reason.startswith(f"TRUST's rule for {workers} workers: ")]
    by_rule = workers is not None and shares is None
    partition = open_store(folders[name]).partition
    found = f"m = {tasks // task_count(partition)} with the n = {partition.parts} parts of this store"
    assert said == ([f"TRUST's rule for {workers} workers: {found}"] if by_rule else [])


def test_a_plan_for_many_workers_says_the_shares(folders: dict[str, Path]) -> None:
    reasons = ww.explain("count", folders["dealt"], workers=55, memory_limit=55 * 10**9).reasons
    assert "the rows of every three parts are dealt to 3 tasks" in reasons
    assert "TRUST's rule for 55 workers: m = 3 with the n = 3 parts of this store" in reasons
    with pytest.raises(InputError, match="workers is at least 1, not 0"):
        ww.explain("count", folders["dealt"], workers=0)


@pytest.mark.parametrize("shares", [0, -1, 65_537])
def test_shares_that_cannot_be_are_refused(folders: dict[str, Path], shares: int) -> None:
    with pytest.raises(InputError, match=f"1 … 65,536 shares, not {shares:,}; ask for other shares"):
        ww.count(folders["one"], shares=shares)


def test_shares_are_of_counts_of_stores(folders: dict[str, Path]) -> None:
    with pytest.raises(PreconditionError, match="not a store; shares need one"):
        ww.count(fixture_pairs("jazz"), shares=2)
    with pytest.raises(PreconditionError, match="shares are of count, not of triangles; leave them out"):
        ww.run("triangles", folders["one"], shares=2)
    with pytest.raises(InputError, match="an integer"):
        ww.count(folders["one"], shares="two")  # type: ignore[arg-type]


def test_too_many_shares_for_the_memory_are_refused(tmp_path: Path) -> None:
    ww.partition(fixture_pairs("jazz"), tmp_path / "store", parts=16, scheme="hashed")
    with pytest.raises(MemoryLimitError, match=r"lists of 268,435,456 tasks of 16 parts .* ask for fewer shares"):
        ww.count(tmp_path / "store", shares=65_536, memory_limit=2_000_000_000)


def test_the_command_takes_shares(folders: dict[str, Path]) -> None:
    assert invoke("count", str(folders["dealt"]), "--shares", "2").stdout == f"{JAZZ}\n"
    assert "1,024" in invoke("count", str(folders["one"]), "--shares", "4", "--balance").stdout
    by_rule = json.loads(invoke("count", str(folders["one"]), "--workers", "2", "--balance", "--json").stdout)
    assert (by_rule["balance"]["tasks"], by_rule["balance"]["timed"]) == (2, 2)
    refused = invoke("count", str(folders["one"]), "--shares", "0")
    assert (refused.exit_code, "--shares" in refused.stderr) == (2, True)
