"""Trusses by rounds that count all supports anew and let the weak arcs go: what eager and the reference share."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from wedgewise.algorithms._contract import FoundTruss, TrussJob
from wedgewise.algorithms._truss import LEAST_K, STAGE


class Rounds(Protocol):
    """The living arcs of a graph: a round at a time, and what lives behind it."""

    living: int

    def run_round(self, least: int) -> None:
        """Count the supports of the living arcs; let those of less than `least` go."""

    def least_support(self) -> int:
        """The least support of the living arcs, behind a round in which none went."""

    def survivors(self) -> Any:
        """Whether each arc lives, in an array of its own."""


def k_truss(rows: Rounds, job: TrussJob) -> FoundTruss:
    """Whether each arc is in the k-truss."""
    assert job.k is not None
    rounds = peel(rows, job.k, job, rows.living)
    return FoundTruss(job.k, rows.survivors(), len(rounds))


def max_truss(rows: Rounds, job: TrussJob) -> FoundTruss:
    """The largest k whose k-truss has arcs, and whether each arc is in it."""
    kmax, rounds, arcs = LEAST_K, 0, rows.living
    lives = rows.survivors()
    while rows.living > 0:
        rounds += len(peel(rows, kmax + 1, job, arcs))
        if rows.living > 0:
            kmax, lives = reached(rows), rows.survivors()
    return FoundTruss(kmax, lives, rounds)


def trussness(rows: Rounds, numbers: Any, job: TrussJob) -> FoundTruss:
    """The last k that each arc survives, in `numbers`, which hold a 2 for every arc beforehand."""
    kmax, rounds, arcs = LEAST_K, 0, rows.living
    while rows.living > 0:
        rounds += len(peel(rows, kmax + 1, job, arcs))
        if rows.living > 0:
            kmax = reached(rows)
            numbers[rows.survivors()] = np.uint32(kmax)
    return FoundTruss(kmax, numbers, rounds)


def peel(rows: Rounds, k: int, job: TrussJob, arcs: int) -> list[int]:
    """Run rounds until nothing changes or nothing is left; how many of all arcs live behind each of them."""
    living = [rows.living]
    while living[-1] > 0 and (len(living) == 1 or living[-1] < living[-2]):
        rows.run_round(k - LEAST_K)
        living.append(rows.living)
        if job.progress is not None:
            job.progress(STAGE, arcs - rows.living, arcs)
    return living[1:]


def reached(rows: Rounds) -> int:
    """The largest k whose k-truss is all that lives: where the least support is s, the (s + 2)-truss is the same."""
    return rows.least_support() + LEAST_K
