"""Shares of tasks: the rows of every three parts dealt to m tasks, m · n³ tasks for as many workers (TRUST, §5)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from helpers.commands import invoke
from helpers.graphs import TRUTHS, fixture_pairs

import wedgewise as ww
from wedgewise.errors import InputError, MemoryLimitError, PreconditionError
from wedgewise.run.request import Request

JAZZ = TRUTHS["jazz"]["triangles"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Stores of one graph: replicated, and cut both ways."""
    root = tmp_path_factory.mktemp("stores")
    asked = {"one": (1, "hashed"), "rows": (3, "rectilinear"), "dealt": (3, "hashed")}
    for name, (parts, scheme) in asked.items():
        ww.partition(fixture_pairs("jazz"), root / name, parts=parts, scheme=scheme)
    return {name: root / name for name in asked}


@pytest.mark.parametrize("algorithm", ["keystone", "bbtc"])
@pytest.mark.parametrize(("name", "tasks"), [("one", 1), ("rows", 10), ("dealt", 27)])
@pytest.mark.parametrize("shares", [2, 3, 300])
def test_shares_add_up_to_all_triangles(
    folders: dict[str, Path], name: str, tasks: int, shares: int, algorithm: str
) -> None:
    result = ww.run("count", folders[name], shares=shares, algorithm=algorithm, verify=True)
    assert (result.answer, len(result.task_seconds)) == (JAZZ, tasks * shares)
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
    from wedgewise.store.open import open_store

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


def test_a_count_goes_on_with_the_same_shares_alone(folders: dict[str, Path]) -> None:
    def stop(_stage: str, done: int, _total: int) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ww.count(folders["dealt"], shares=2, progress=stop)
    with pytest.raises(InputError, match="restart"):
        ww.count(folders["dealt"], shares=3)
    with pytest.raises(InputError, match="restart"):
        ww.count(folders["dealt"])
    assert ww.count(folders["dealt"], shares=2) == JAZZ


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
    refused = invoke("count", str(folders["one"]), "--shares", "0")
    assert (refused.exit_code, "--shares" in refused.stderr) == (2, True)
