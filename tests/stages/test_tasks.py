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
from wedgewise.stages.blocks import Hashed, Rectilinear
from wedgewise.stages.tasks import ESTIMATORS, BlockCounts, table_of, with_work

# part 0 has 2 ids, part 1 has 4, part 2 none
PARTS = Rectilinear(np.array([0, 2, 6, 6]))
COUNTS = BlockCounts(np.array([[1, 6, 0], [0, 3, 0], [0, 0, 0]]), np.array([2, 4, 0]))


def estimate(i: int, j: int, k: int, by: str, shares: int = 1) -> float:
    """That of the first share of a task."""
    tasks = with_work(table_of(PARTS, shares), COUNTS, by)
    return next(float(work) for work, t in zip(tasks.work, tasks, strict=True) if (t.i, t.j, t.k) == (i, j, k))


@pytest.mark.parametrize("parts", [1, 2, 5, 9])
def test_tasks_are_all_triples_in_order(parts: int) -> None:
    tasks = table_of(Rectilinear(np.arange(parts + 1)))
    assert len(tasks) == comb(parts + 2, 3)
    assert [(t.i, t.j, t.k) for t in tasks] == [t for t in product(range(parts), repeat=3) if list(t) == sorted(t)]
    assert [t.number for t in tasks] == list(range(len(tasks)))
    shared = table_of(Hashed(parts, parts), shares=3)
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
    found = [estimate(0, 1, 1, by), estimate(0, 1, 1, by, shares=2), estimate(2, 2, 2, by)]
    assert found == pytest.approx([expected, expected / 2, 0])


def test_an_estimator_that_is_not_there_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="time, arcs, density, degree"):
        with_work(table_of(PARTS), COUNTS, "luck")


@pytest.mark.parametrize("by", sorted(ESTIMATORS))
def test_the_heaviest_tasks_come_first(by: str) -> None:
    graph = oriented(fixture_pairs("jazz"), 198)
    partition = rectilinear(graph, 5)
    tasks = with_work(table_of(partition), BlockCounts.of(blocks_of(graph, partition)), by)
    ordered = tasks.heaviest_first()
    assert sorted(ordered, key=lambda t: t.number) == list(tasks)
    steps = np.diff(ordered.work)
    assert (steps <= 0).all()
    assert (np.diff(ordered.number)[steps == 0] > 0).all()


def test_no_tasks_have_no_estimates() -> None:
    none = with_work(table_of(PARTS).take(slice(0)), COUNTS)
    assert (none.work.tolist(), len(none.heaviest_first())) == ([], 0)
