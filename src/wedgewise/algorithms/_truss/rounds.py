"""Trusses by rounds that count all supports anew and remove the weak arcs: what eager and the reference share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np

from wedgewise.algorithms._contract import FoundTruss, Knobs, Shape, TrussAnswer, TrussJob
from wedgewise.algorithms._truss import MIN_K, STAGE
from wedgewise.stages import OrientedGraph


class Rounds(Protocol):
    """The remaining arcs of a graph, round by round."""

    remaining: int

    def run_round(self, least: int) -> None:
        """Count the supports of the remaining arcs; remove those of less than `least`."""

    def least_support(self) -> int:
        """The least support of the remaining arcs, after a round that removed none."""

    def survivors(self) -> Any:
        """Whether each arc remains, in an array of its own."""


def k_truss(rows: Rounds, job: TrussJob) -> FoundTruss:
    """Whether each arc is in the k-truss."""
    assert job.k is not None
    rounds = peel(rows, job.k, job, rows.remaining)
    return FoundTruss(job.k, rows.survivors(), len(rounds))


def max_truss(rows: Rounds, job: TrussJob) -> FoundTruss:
    """The largest k whose k-truss has arcs, and whether each arc is in it."""
    kmax, rounds, remains = MIN_K, 0, rows.survivors()
    for k, more in trusses(rows, job):
        rounds += more
        if rows.remaining > 0:
            kmax, remains = k, rows.survivors()
    return FoundTruss(kmax, remains, rounds)


def trussness(rows: Rounds, numbers: Any, job: TrussJob) -> FoundTruss:
    """The last k that each arc survives, in `numbers`, which hold a 2 for every arc beforehand."""
    kmax, rounds = MIN_K, 0
    for k, more in trusses(rows, job):
        rounds += more
        if rows.remaining > 0:
            kmax = k
            numbers[rows.survivors()] = np.uint32(k)
    return FoundTruss(kmax, numbers, rounds)


def trusses(rows: Rounds, job: TrussJob) -> Iterator[tuple[int, int]]:
    """Peel to one truss after the other until nothing is left: the largest k of each, and the rounds that it took."""
    k, arcs = MIN_K, rows.remaining
    while rows.remaining > 0:
        rounds = len(peel(rows, k + 1, job, arcs))
        k = reached(rows) if rows.remaining > 0 else k
        yield k, rounds


def peel(rows: Rounds, k: int, job: TrussJob, arcs: int) -> list[int]:
    """Run rounds until nothing changes or nothing is left; how many arcs remain after each of them."""
    remaining = [rows.remaining]
    while remaining[-1] > 0 and (len(remaining) == 1 or remaining[-1] < remaining[-2]):
        rows.run_round(k - MIN_K)
        remaining.append(rows.remaining)
        if job.progress is not None:
            job.progress(STAGE, arcs - rows.remaining, arcs)
    return remaining[1:]


def reached(rows: Rounds) -> int:
    """The largest k whose k-truss is all that remains: where the least support is s, the (s + 2)-truss is the same."""
    return rows.least_support() + MIN_K


def answers(
    rows_of: Callable[[OrientedGraph, TrussJob], Rounds], bytes_needed: Callable[[Shape, int, Knobs], int]
) -> dict[str, TrussAnswer]:
    """How an algorithm of the CPU finds each of the trusses by rounds; the numbers of arcs take 4 bytes each."""

    def find_trussness(graph: OrientedGraph, job: TrussJob) -> FoundTruss:
        return trussness(rows_of(graph, job), np.full(graph.m, MIN_K, np.uint32), job)

    def trussness_bytes(shape: Shape, threads: int, knobs: Knobs) -> int:
        return bytes_needed(shape, threads, knobs) + 4 * shape.m

    return {
        "trussness": TrussAnswer(find_trussness, trussness_bytes),
        "k_truss": TrussAnswer(lambda graph, job: k_truss(rows_of(graph, job), job), bytes_needed),
        "max_truss": TrussAnswer(lambda graph, job: max_truss(rows_of(graph, job), job), bytes_needed),
    }
