"""Tasks in order of their work, and how even parts and workers are."""

from __future__ import annotations

from itertools import product
from math import comb, inf

import numpy as np
import pytest
from graphs import fixture_pairs
from hypothesis import given, settings
from hypothesis import strategies as st

from blocks.cut_graphs import oriented
from wedgewise import generate
from wedgewise.blocks import Hashed, Rectilinear, Task
from wedgewise.errors import InputError, UnknownNameError
from wedgewise.partition.balance import SIMULATED_WORKERS, Balance, schedule, schedules
from wedgewise.partition.build import blocks_of
from wedgewise.partition.hashed import hashed
from wedgewise.partition.rectilinear import rectilinear
from wedgewise.partition.tasks import ESTIMATORS, Counts, density, estimates, heaviest_first, tasks_of

examples = settings(deadline=None, derandomize=True, max_examples=40)

# part 0 has 2 ids, part 1 has 4, part 2 none
COUNTS = Counts(np.array([[1, 6, 0], [0, 3, 0], [0, 0, 0]]), np.array([2, 4, 0]))


def task(i: int, j: int, k: int, shares: int = 1) -> Task:
    return Task(0, i, j, k, 0, shares)


@pytest.mark.parametrize("parts", [1, 2, 5, 9])
def test_tasks_are_all_triples_in_order(parts: int) -> None:
    tasks = tasks_of(Rectilinear(np.arange(parts + 1)))
    assert len(tasks) == comb(parts + 2, 3)
    assert [(t.i, t.j, t.k) for t in tasks] == [t for t in product(range(parts), repeat=3) if list(t) == sorted(t)]
    assert [t.number for t in tasks] == list(range(len(tasks)))
    shared = tasks_of(Hashed(parts, parts), shares=3)
    assert [(t.i, t.j, t.k, t.share) for t in shared] == list(
        product(range(parts), range(parts), range(parts), range(3))
    )
    assert [t.number for t in shared] == list(range(3 * parts**3))


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("time", 6 * max(6 / 2, 3 / 4)),
        ("arcs", 6 + 6 + 3),
        ("density", 6 / 8 + 6 / 8 + 3 / 16),
        ("degree", 6 / 2 + 6 / 2 + 3 / 4),
    ],
)
def test_estimates_by_hand(by: str, expected: float) -> None:
    found = estimates(COUNTS, [task(0, 1, 1), task(0, 1, 1, shares=2), task(2, 2, 2)], by)
    assert found.tolist() == pytest.approx([expected, expected / 2, 0])


def test_an_estimator_that_is_not_there_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="time, arcs, density, degree"):
        estimates(COUNTS, [task(0, 0, 0)], "luck")


@pytest.mark.parametrize("by", sorted(ESTIMATORS))
def test_the_heaviest_tasks_come_first(by: str) -> None:
    graph = oriented(fixture_pairs("jazz"), 198)
    partition = rectilinear(graph, 5)
    counts, tasks = Counts.of(blocks_of(graph, partition)), tasks_of(partition)
    ordered = heaviest_first(counts, tasks, by)
    assert sorted(ordered, key=lambda t: t.number) == list(tasks)
    weights = estimates(counts, ordered, by)
    assert (np.diff(weights) <= 0).all()
    numbers = np.array([t.number for t in ordered])
    assert (np.diff(numbers)[np.diff(weights) == 0] > 0).all()


def test_no_tasks_have_no_estimates() -> None:
    assert estimates(COUNTS, []).tolist() == []
    assert heaviest_first(COUNTS, []) == ()


def test_density_is_arcs_per_entry() -> None:
    graph = oriented(generate.complete(6).pairs(), 6)
    blocks = blocks_of(graph, Rectilinear(np.array([0, 2, 6, 6]))).blocks
    assert {pair: density(block) for pair, block in blocks.items()} == {
        (0, 0): 0.25,
        (0, 1): 1,
        (0, 2): 0,
        (1, 1): 6 / 16,
        (1, 2): 0,
        (2, 2): 0,
    }


def test_balance_by_hand() -> None:
    ordered = Balance.of(COUNTS, Rectilinear(np.array([0, 2, 6, 6])))
    assert ordered.load_imbalance == pytest.approx(6 / (10 / 6))
    assert ordered.space_ratio == inf
    dealt = Balance.of(Counts(np.array([[4, 6], [5, 5]]), np.array([3, 3])), Hashed(6, 2))
    assert (dealt.load_imbalance, dealt.space_ratio) == (1.2, 1.5)
    empty = Balance.of(Counts(np.zeros((2, 2), np.int64), np.array([1, 1])), Hashed(2, 2))
    assert (empty.load_imbalance, empty.space_ratio) == (1, 1)


@pytest.mark.parametrize("by", ["indegree", "classes"])
def test_dealing_ids_in_turn_evens_blocks_out(by: str) -> None:
    """Dealt ids give far evener blocks than cuts do; the larger the graph, the more."""
    stream = generate.kronecker(scale=12, seed=1)
    graph = oriented(stream.pairs(), stream.n)
    cut = rectilinear(graph, 8)
    dealt = oriented(stream.pairs(), stream.n, by)
    even = Balance.of(Counts.of(blocks_of(dealt, hashed(dealt, 8))), hashed(dealt, 8))
    assert even.space_ratio < 1.6
    assert even.space_ratio < Balance.of(Counts.of(blocks_of(graph, cut)), cut).space_ratio


@pytest.mark.deep
def test_space_is_as_even_as_published() -> None:
    """TRUST, table 6: 64 blocks of extremely large graphs whose sizes differ by 1.07 at most."""
    stream = generate.kronecker(scale=20, seed=1)
    graph = oriented(stream.pairs(threads=2), stream.n, "indegree")
    dealt = hashed(graph, 8)
    assert Balance.of(Counts.of(blocks_of(graph, dealt, threads=2)), dealt).space_ratio <= 1.07


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
    assert (found.makespan, found.speedup, found.time_ratio) == (6, 2, 1)


def test_idle_workers_make_the_ratio_infinite() -> None:
    assert schedule([1.0, 2.0], 2).time_ratio == 2
    assert schedule([1.0, 2.0], 3).time_ratio == inf
    nothing = schedule([], 3)
    assert (nothing.makespan, nothing.speedup, nothing.time_ratio) == (0, 1, 1)
    with pytest.raises(InputError, match="at least one worker"):
        schedule([1.0], 0)


def test_even_tasks_scale_to_a_thousand_workers() -> None:
    found = schedules(np.ones(2048))
    assert tuple(found) == SIMULATED_WORKERS
    assert [found[workers].speedup for workers in SIMULATED_WORKERS] == list(SIMULATED_WORKERS)
