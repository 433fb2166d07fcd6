"""How even parts and workers are: balance, schedules, speedups, and the reports about them."""

from __future__ import annotations

import json
from itertools import product
from math import inf
from pathlib import Path

import numpy as np
import pytest
from helpers.commands import invoke
from helpers.cut_graphs import oriented
from helpers.graphs import TRUTHS, fixture_pairs
from hypothesis import given, settings
from hypothesis import strategies as st

import wedgewise as ww
from wedgewise import generate
from wedgewise.errors import InputError
from wedgewise.prepare.cut_blocks import blocks_of
from wedgewise.prepare.rectilinear import rectilinear
from wedgewise.report.balance import BalanceReport, balance_report, balance_text
from wedgewise.run.balance import (
    SIMULATED_WORKERS,
    Balance,
    rank_correlation,
    ratio,
    schedule,
    schedules,
    share_of_list,
)
from wedgewise.stages.blocks import Hashed, Rectilinear
from wedgewise.stages.tasks import ESTIMATORS, BlockCounts
from wedgewise.store.build import write_store
from wedgewise.store.open import open_store

examples = settings(deadline=None, derandomize=True, max_examples=40)

# part 0 has 2 ids, part 1 has 4, part 2 none
PARTS = Rectilinear(np.array([0, 2, 6, 6]))
COUNTS = BlockCounts(np.array([[1, 6, 0], [0, 3, 0], [0, 0, 0]]), np.array([2, 4, 0]))


def test_balance_by_hand() -> None:
    ordered = Balance.of(COUNTS, PARTS)
    assert ordered.load_imbalance == pytest.approx(6 / (10 / 6))
    assert ordered.space_ratio == inf
    dealt = Balance.of(BlockCounts(np.array([[4, 6], [5, 5]]), np.array([3, 3])), Hashed(6, 2))
    assert (dealt.load_imbalance, dealt.space_ratio) == (1.2, 1.5)
    empty = Balance.of(BlockCounts(np.zeros((2, 2), np.int64), np.array([1, 1])), Hashed(2, 2))
    assert (empty.load_imbalance, empty.space_ratio) == (1, 1)


@pytest.mark.compiled  # about large graphs
@pytest.mark.parametrize("by", ["indegree", "classes"])
def test_dealing_ids_in_turn_evens_blocks_out(by: str) -> None:
    """Dealt ids give far evener blocks than cuts do; the larger the graph, the more."""
    stream = generate.kronecker(scale=12, seed=1)
    graph = oriented(stream.pairs(), stream.n)
    cut = rectilinear(graph, 8)
    dealt = oriented(stream.pairs(), stream.n, by)
    even = Balance.of(BlockCounts.of(blocks_of(dealt, Hashed(dealt.n, 8))), Hashed(dealt.n, 8))
    assert even.space_ratio < 1.6
    assert even.space_ratio < Balance.of(BlockCounts.of(blocks_of(graph, cut)), cut).space_ratio


@pytest.mark.deep
def test_space_is_as_even_as_published() -> None:
    """TRUST, table 6: 64 blocks of extremely large graphs whose sizes differ by 1.07 at most."""
    stream = generate.kronecker(scale=20, seed=1)
    graph = oriented(stream.pairs(threads=2), stream.n, "indegree")
    dealt = Hashed(graph.n, 8)
    assert Balance.of(BlockCounts.of(blocks_of(graph, dealt, threads=2)), dealt).space_ratio <= 1.07


@given(st.lists(st.integers(0, 50), max_size=8), st.integers(1, 4))
@examples
def test_schedules_keep_grahams_bounds(seconds: list[int], workers: int) -> None:
    found = schedule([float(taken) for taken in seconds], workers)
    assert found.busy.tolist() == np.bincount(found.worker_of, seconds, workers).tolist() if seconds else True
    total, longest = sum(seconds), max(seconds, default=0)
    best = (
        min(max(np.bincount(given, seconds, workers)) for given in product(range(workers), repeat=len(seconds)))
        if seconds
        else 0
    )
    assert (
        max(total / workers, longest) <= best <= found.makespan <= total / workers + longest * (1 - 1 / workers) + 1e-9
    )
    assert found.makespan <= (2 - 1 / workers) * best + 1e-9


def test_tasks_go_to_whoever_is_free() -> None:
    found = schedule([4, 3, 2, 2, 1], 2)
    assert found.worker_of.tolist() == [0, 1, 1, 0, 1]
    assert (found.makespan, found.time_ratio) == (6, 1)


def test_idle_workers_make_the_ratio_infinite() -> None:
    assert schedule([1.0, 2.0], 2).time_ratio == 2
    assert schedule([1.0, 2.0], 3).time_ratio == inf
    nothing = schedule([], 3)
    assert (nothing.makespan, nothing.time_ratio) == (0, 1)
    with pytest.raises(InputError, match="at least one worker"):
        schedule([1.0], 0)


def test_even_tasks_scale_to_a_thousand_workers() -> None:
    found = schedules(np.ones(2048))
    assert tuple(found) == SIMULATED_WORKERS
    assert [2048 / found[workers].makespan for workers in SIMULATED_WORKERS] == list(SIMULATED_WORKERS)


def test_rank_correlation_by_hand() -> None:
    ascending = np.array([1.0, 2.0, 5.0, 9.0])
    assert rank_correlation(ascending, ascending**3) == pytest.approx(1)
    assert rank_correlation(ascending, -ascending) == pytest.approx(-1)
    assert rank_correlation(ascending, np.array([0.0, 2.0, 3.0, 1.0])) == pytest.approx(1 - 6 * 6 / 60)
    with_ties = rank_correlation(np.array([1.0, 1.0, 2.0]), np.array([1.0, 2.0, 3.0]))  # ranks ½, ½, 2
    assert with_ties == pytest.approx(1.5 / (1.5 * 2) ** 0.5)
    assert rank_correlation(ascending, np.ones(4)) == 0
    assert rank_correlation(np.empty(0), np.empty(0)) == 0


def test_the_share_of_a_list_by_hand() -> None:
    seconds, estimated = np.array([9.0, 1.0, 8.0, 2.0]), np.array([5.0, 4.0, 3.0, 2.0])
    assert [share_of_list(seconds, estimated, longest) for longest in (1, 2, 3, 4, 9)] == [0.25, 0.75, 1, 1, 1]
    assert share_of_list(seconds, -estimated, 1) == 1
    assert share_of_list(np.empty(0), np.empty(0), 1) == 0


# tasks 000, 001, 011, 111 of parts with 2 and 4 ids: their blocks have 3, 13, 15 and 9 arcs
TWO_PARTS = Rectilinear(np.array([0, 2, 6]))
TWO_COUNTS = BlockCounts(np.array([[1, 6], [0, 3]]), np.array([2, 4]))
SECONDS = {0: 0.0005, 1: 0.002, 2: 0.004, 3: 0.0045}


def test_a_report_by_hand() -> None:
    report = balance_report(TWO_PARTS, TWO_COUNTS, SECONDS, workers=(1, 2))
    assert (report.parts, report.tasks, report.timed) == (2, 4, 4)
    assert [report.total, report.longest] == pytest.approx([0.011, 0.0045])
    assert [report.load_imbalance, report.space_ratio, report.time_ratio] == pytest.approx([1.8, 6, 9])
    assert [report.long_tasks, report.long_time_ratio] == pytest.approx([3, 2.25])
    judged = report.foresight["arcs"], report.foresight["density"]
    assert [found.rank_correlation for found in judged] == pytest.approx([0.4, -0.4])
    assert [found.list_share for found in judged] == [1, 1]
    one, two = report.makespans
    assert [one.workers, one.least] == pytest.approx([1, 0.011])
    assert set(one.seconds) == {*ESTIMATORS, "number"}
    assert list(one.seconds.values()) == pytest.approx([0.011] * 5)
    assert [two.workers, two.least] == pytest.approx([2, 0.0055])
    assert dict(two.seconds) == pytest.approx(
        {"time": 0.0065, "arcs": 0.0065, "density": 0.007, "degree": 0.0065, "number": 0.0065}
    )
    assert [two.time_ratios[by] for by in ("time", "density", "number")] == pytest.approx([6.5 / 4.5, 7 / 4, 6.5 / 4.5])
    assert report.edges == 10
    assert report.teps(0.005) == pytest.approx(2000)


def test_speedups_are_over_the_graph_in_one_part() -> None:
    """Not over the sum of the tasks that it was cut into, which is work that one worker does not have."""
    unknown = balance_report(TWO_PARTS, TWO_COUNTS, SECONDS, workers=(2,))
    assert (unknown.unpartitioned, unknown.speedup(0.0065)) == (None, None)
    known = balance_report(TWO_PARTS, TWO_COUNTS, SECONDS, workers=(2,), unpartitioned=0.0026)
    assert known.speedup(0.0065) == pytest.approx(0.4)
    (two,) = known.to_dict()["makespans"]
    assert (two["speedup"]["time"], two["efficiency"]["time"]) == (pytest.approx(0.4), pytest.approx(0.2))
    assert "one part  0.0026 seconds for the graph on one worker, which speed-ups are relative to" in balance_text(
        known
    )
    assert "0.0065 s (0.4×)" in balance_text(known)
    whole = balance_report(Rectilinear(np.array([0, 6])), BlockCounts(np.array([[10]]), np.array([6])), {0: 0.5})
    assert (whole.unpartitioned, whole.speedup(0.5)) == (0.5, 1)
    shared = balance_report(
        Rectilinear(np.array([0, 6])), BlockCounts(np.array([[10]]), np.array([6])), {0: 0.5, 1: 0.5}, shares=2
    )
    assert shared.unpartitioned is None


def test_a_report_as_json_and_as_text() -> None:
    report = balance_report(TWO_PARTS, TWO_COUNTS, SECONDS, workers=(2,))
    plain = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    (two,) = plain["makespans"]
    assert (two["speedup"]["density"], two["efficiency"]["density"], plain["unpartitioned"]) == (None, None, None)
    assert two["time_ratio"]["density"] == pytest.approx(7 / 4)
    assert two["teps"]["density"] == pytest.approx(10 / 0.007)
    assert plain["foresight"]["arcs"] == {"rank_correlation": pytest.approx(0.4), "list_share": 1}
    shown = balance_text(report)
    for text in ("λ         1.800", "space IR  6.000", "time IR   9.000", "2.250 of the 3", "0.007 s ", "0.400"):
        assert text in shown
    assert shown.splitlines()[-1].split()[-2:] == ["1.444", "1.54e+03"]  # 6.5 / 4.5 ms, 10 edges / 6.5 ms
    assert "not measured, so that no speed-up is given" in shown
    assert "×" not in shown


def test_tasks_without_times_are_left_out() -> None:
    report = balance_report(TWO_PARTS, TWO_COUNTS, {1: 0.5}, workers=(4,))
    assert (report.timed, report.total, report.time_ratio, report.long_tasks) == (1, 0.5, 1, 1)
    assert report.makespans[0].least == 0.5
    nothing = balance_report(TWO_PARTS, BlockCounts(np.zeros((2, 2), np.int64), np.array([2, 4])), {})
    assert (nothing.timed, nothing.total, nothing.time_ratio, nothing.makespans) == (0, 0, 1, ())
    assert "0 have work" in balance_text(nothing)
    assert nothing.to_dict()["space_ratio"] == 1


def test_an_infinite_ratio_is_no_number_of_json() -> None:
    report = balance_report(TWO_PARTS, BlockCounts(np.array([[1, 6], [0, 0]]), np.array([2, 4])), {0: 1.0})
    assert report.space_ratio == inf
    assert report.to_dict()["space_ratio"] is None
    assert ratio(np.empty(0)) == 1


def test_shares_are_tasks_of_their_own() -> None:
    report = balance_report(TWO_PARTS, TWO_COUNTS, {7: 1.0, 6: 3.0}, shares=2, workers=(2,))
    assert (report.tasks, report.timed, report.makespans[0].seconds["arcs"]) == (8, 2, 3)


def test_a_count_of_a_store_is_timed(tmp_path: Path) -> None:
    store = write_store(fixture_pairs("jazz"), tmp_path / "store", parts=4)
    result = ww.run("count", store.folder)
    assert len(result.task_seconds) == 20
    assert all(taken > 0 for taken in result.task_seconds.values())
    assert "task_seconds" not in result.to_dict()
    report = balance_report(store.partition, store.counts, result.task_seconds)
    assert isinstance(report, BalanceReport)
    assert report.total == pytest.approx(sum(result.task_seconds.values()))


def test_the_command_says_how_even_a_store_is(tmp_path: Path) -> None:
    write_store(fixture_pairs("jazz"), tmp_path / "store", parts=3)
    shown = invoke("count", str(tmp_path / "store"), "--balance")
    assert shown.stdout.startswith(f"{TRUTHS['jazz']['triangles']}\n\n  parts")
    assert "1,024" in shown.stdout
    record = json.loads(invoke("count", str(tmp_path / "store"), "--balance", "--json").stdout)
    assert record["balance"]["tasks"] == 10
    assert record["answer"] == TRUTHS["jazz"]["triangles"]
    (tmp_path / "pairs.txt").write_text("0 1\n")
    refused = invoke("count", str(tmp_path / "pairs.txt"), "--balance")
    assert (refused.exit_code, "is not a store" in refused.stderr) == (1, True)


def test_a_partition_says_how_even_its_blocks_are(tmp_path: Path) -> None:
    (tmp_path / "pairs.txt").write_text("".join(f"{u} {v}\n" for u, v in fixture_pairs("jazz").tolist()))
    written = invoke("partition", str(tmp_path / "pairs.txt"), str(tmp_path / "store"), "--parts", "3", "--json")
    record = json.loads(written.stdout)
    store = open_store(tmp_path / "store")
    even = Balance.of(store.counts, store.partition)
    assert (record["load_imbalance"], record["space_ratio"]) == (even.load_imbalance, even.space_ratio)
    shown = invoke("partition", str(tmp_path / "pairs.txt"), str(tmp_path / "again"), "--parts", "3").stdout
    assert f"λ {even.load_imbalance:.3f}, space IR {even.space_ratio:.3f}" in shown
