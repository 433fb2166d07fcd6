"""Tasks of blocks: all triples in order, estimates of their work, the heaviest first."""

from __future__ import annotations

from itertools import product
from math import comb

import numpy as np
import pytest
from helpers.cut_graphs import oriented
from helpers.graphs import fixture_pairs

from wedgewise.errors import UnknownNameError
from wedgewise.prepare.cut_blocks import blocks_of
from wedgewise.prepare.rectilinear import rectilinear
from wedgewise.stages.blocks import Hashed, Rectilinear, Task
from wedgewise.stages.tasks import ESTIMATORS, BlockCounts, estimates, heaviest_first, tasks_of

# part 0 has 2 ids, part 1 has 4, part 2 none
COUNTS = BlockCounts(np.array([[1, 6, 0], [0, 3, 0], [0, 0, 0]]), np.array([2, 4, 0]))


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
    counts, tasks = BlockCounts.of(blocks_of(graph, partition)), tasks_of(partition)
    ordered = heaviest_first(counts, tasks, by)
    assert sorted(ordered, key=lambda t: t.number) == list(tasks)
    weights = estimates(counts, ordered, by)
    assert (np.diff(weights) <= 0).all()
    numbers = np.array([t.number for t in ordered])
    assert (np.diff(numbers)[np.diff(weights) == 0] > 0).all()


def test_no_tasks_have_no_estimates() -> None:
    assert estimates(COUNTS, []).tolist() == []
    assert heaviest_first(COUNTS, []) == ()
