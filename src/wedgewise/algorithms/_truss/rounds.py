"""Trusses by rounds that count all supports anew and let the weak arcs go: what eager and the reference share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np

from wedgewise.algorithms._contract import FoundTruss, Knobs, Shape, TrussAnswer, TrussJob
from wedgewise.algorithms._truss import LEAST_K, STAGE
from wedgewise.stages import OrientedGraph


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
    kmax, rounds, lives = LEAST_K, 0, rows.survivors()
    for k, more in trusses(rows, job):
        rounds += more
        if rows.living > 0:
            kmax, lives = k, rows.survivors()
    return FoundTruss(kmax, lives, rounds)


def trussness(rows: Rounds, numbers: Any, job: TrussJob) -> FoundTruss:
    """The last k that each arc survives, in `numbers`, which hold a 2 for every arc beforehand."""
    kmax, rounds = LEAST_K, 0
    for k, more in trusses(rows, job):
        rounds += more
        if rows.living > 0:
            kmax = k
            numbers[rows.survivors()] = np.uint32(k)
    return FoundTruss(kmax, numbers, rounds)


def trusses(rows: Rounds, job: TrussJob) -> Iterator[tuple[int, int]]:
    """Peel to one truss after the other until nothing is left: the largest k of each, and the rounds that it took."""
    k, arcs = LEAST_K, rows.living
    while rows.living > 0:
        rounds = len(peel(rows, k + 1, job, arcs))
        k = reached(rows) if rows.living > 0 else k
        yield k, rounds


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


def answers(
    rows_of: Callable[[OrientedGraph, TrussJob], Rounds], bytes_needed: Callable[[Shape, int, Knobs], int]
) -> dict[str, TrussAnswer]:
    """How an algorithm of the CPU finds each of the trusses by rounds; the numbers of arcs take 4 bytes each."""

    def find_trussness(graph: OrientedGraph, job: TrussJob) -> FoundTruss:
        return trussness(rows_of(graph, job), np.full(graph.m, LEAST_K, np.uint32), job)

    def trussness_bytes(shape: Shape, threads: int, knobs: Knobs) -> int:
        return bytes_needed(shape, threads, knobs) + 4 * shape.m

    return {
        "trussness": TrussAnswer(find_trussness, trussness_bytes),
        "k_truss": TrussAnswer(lambda graph, job: k_truss(rows_of(graph, job), job), bytes_needed),
        "max_truss": TrussAnswer(lambda graph, job: max_truss(rows_of(graph, job), job), bytes_needed),
    }
