"""Peeling on a device with limits so small that little graphs meet all that large ones do, against the reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from unittest.mock import patch

import numpy as np
from helpers.graphs import random_pairs
from numpy.typing import NDArray

import wedgewise as ww
from emulate.emulated_cases import on_device
from emulate.truss_cases import graph_of
from wedgewise import generate
from wedgewise.algorithms import find
from wedgewise.algorithms._contract import FoundTruss, TrussJob
from wedgewise.algorithms.gpu import peel
from wedgewise.machine.gpu import Device

MAX_TOLD = 20_000  # launches; peeling that takes more does not end
EVERY_WEDGE, NO_WEDGE = 2**31, -1  # for FEW_WEDGES: supports are counted while peeling, or by keystone
TIGHT = {
    "MIN_PACKED": 2,
    "LONG_ROW": 4,
    "MAX_WAITING": 2,
    "LAUNCH_PHASES": 2,
    "LAUNCH_EDGES": 5,
    "LAUNCH_SEARCHES": 9,
    "MAX_STEPS": 0,
    "SHORT_THREADS": 32,
}
ROOMY = {
    "MIN_PACKED": 8,
    "LONG_ROW": 30,
    "MAX_WAITING": 16,
    "LAUNCH_PHASES": 7,
    "LAUNCH_EDGES": 150,
    "LAUNCH_SEARCHES": 100,
    "MAX_STEPS": 1,
}


def _union() -> ww.Graph:
    """Cliques, a wheel, a book, a cycle and a path side by side, with vertices between and behind them."""
    streams = [generate.complete(n) for n in range(2, 9)]
    streams += [generate.wheel(9), generate.book(12), generate.cycle(5), generate.path(6), generate.octahedron(3)]
    parts, n = list[NDArray[np.int64]](), 0
    for stream in streams:
        parts.append(stream.pairs().astype(np.int64) + n)
        n += stream.n + 1
    return ww.Graph(np.concatenate(parts), n=n + 40)


def _cliques_on_a_path(cliques: int, size: int) -> ww.Graph:
    """Each clique shares a vertex with the next: every edge of all of them dies in one listing."""
    clique = generate.complete(size).pairs().astype(np.int64)
    return ww.Graph(np.concatenate([clique + place * (size - 1) for place in range(cliques)]))


def _halves(size: int) -> ww.Graph:
    """Everyone of one half knows everyone of the other: all look-ups take long.

    One pair has a common neighbour, which comes last. The edge (0, 1) is in many triangles, which come in the middle:
    leaves give twenty others of its half a higher degree.
    """
    ones, others = np.divmod(np.arange(size * size), size)
    leaves = np.arange(60)
    parts = [np.stack([ones, others + size], axis=1), np.stack([2 + leaves // 3, 2 * size + 1 + leaves], axis=1)]
    return ww.Graph(np.concatenate([*parts, [(2, 2 * size), (size, 2 * size), (0, 1)]]))


def _strip(length: int) -> ww.Graph:
    """Triangles in a row over a clique: edges fall one after the other, from its far end on."""
    steps = np.arange(length)
    rows = [np.stack([steps, steps + by], axis=1) for by in (1, 2)]
    return ww.Graph(np.concatenate([*rows, generate.complete(6).pairs().astype(np.int64)]))


GRAPHS: dict[str, Callable[[], ww.Graph]] = {
    "union": _union,
    "cliques in a row": lambda: _cliques_on_a_path(5, 6),
    "halves": lambda: _halves(34),
    "strip": lambda: _strip(60),
    "triangle among many": lambda: ww.Graph([(3, 700), (700, 1999), (1999, 3)], n=2000),
    "one edge": lambda: ww.Graph([(5, 2)], n=9),
    "matching": lambda: ww.Graph(np.arange(120).reshape(-1, 2)),
    "dense": lambda: ww.Graph(random_pairs(26, 420, seed=3)),
    "even": lambda: ww.Graph(random_pairs(40, 300, seed=1)),
    "loose": lambda: ww.Graph(random_pairs(60, 300, seed=1)),
    "sparse": lambda: ww.Graph(random_pairs(300, 420, seed=4), n=300),
    "hub": lambda: ww.Graph(np.concatenate([generate.wheel(70).pairs().astype(np.int64), random_pairs(30, 80, 5)])),
}
FAMILIES = ("complete-4", "complete-23", "book-90", "star-90", "wheel-40", "octahedron-6", "hypercube-5", "grid8-9")


@dataclass(frozen=True, slots=True)
class PeelCase:
    """All trusses of a graph, in blocks of some size, with limits of the module, supports counted by some means."""

    graph: str
    block: int = 32
    is_tight: bool = True
    few_wedges: int = EVERY_WEDGE

    @property
    def limits(self) -> dict[str, int]:
        return TIGHT if self.is_tight else ROOMY


@cache
def graph_named(name: str) -> ww.Graph:
    return GRAPHS[name]() if name in GRAPHS else graph_of(name)


@cache
def numbers_of(name: str) -> NDArray[np.uint32]:
    """The truss numbers that the reference finds, by arc."""
    oriented = graph_named(name).oriented("degree", "rank", threads=1)
    numbers: NDArray[np.uint32] = find("reference", "cpu").truss_on_cpu("trussness").find(oriented, TrussJob()).filled
    return numbers


@contextmanager
def limited(limits: dict[str, int], few_wedges: int = peel.FEW_WEDGES) -> Iterator[None]:
    """Other limits for as long as this lasts."""
    with ExitStack() as patches:
        for name, value in limits.items():
            patches.enter_context(patch.object(peel, name, value))
        patches.enter_context(patch.object(peel, "FEW_WEDGES", few_wedges))
        yield


def asked_of(name: str) -> Iterator[tuple[str, int | None]]:
    """Everything that may be asked of a graph: every k for which it has enough edges, up to one behind the last."""
    yield from (("trussness", None), ("max_truss", None))
    numbers = numbers_of(name)
    for k in range(3, int(numbers.max(initial=2)) + 2):
        if k * (k - 1) // 2 <= len(numbers):
            yield "k_truss", k


def found_by(name: str, computes: str, k: int | None, block: int, device: Device) -> tuple[FoundTruss, list[int]]:
    """What the device finds, and how many edges were settled after each launch."""
    told = list[int]()

    def progress(stage: str, done: int, total: int) -> None:
        told.append(done)
        assert (stage, total) == ("truss", graph_named(name).m)
        assert len(told) < MAX_TOLD

    form, record = on_device(graph_named(name), "degree", "rank"), peel.ALGORITHM
    arrays = {field: device.xp.asarray(getattr(form, field)) for field in ("offsets", "out_neighbours", "vertex_of")}
    job = TrussJob(k, record.settings({"block": block}), 1, progress)
    return record.truss_on_device(computes).find(replace(form, **arrays), job, device), told


def check(case: PeelCase, device: Device) -> None:
    """Find all, and compare; what is told ascends, and to the last edge where all of them get a number."""
    numbers = numbers_of(case.graph)
    kmax = int(numbers.max(initial=2))
    with limited(case.limits, case.few_wedges):
        for computes, k in asked_of(case.graph):
            found, told = found_by(case.graph, computes, k, case.block, device)
            assert found.k == (kmax if k is None else k), (case, computes, k)
            expected = numbers if computes == "trussness" else numbers >= found.k
            np.testing.assert_array_equal(np.array(found.filled.tolist()), expected, f"{case} {computes} {k}")
            assert computes == "max_truss" or told == sorted(told), (case, computes, k)
            assert computes == "k_truss" or told[-1] == len(numbers), (case, computes, k)


def small_cases() -> Iterator[PeelCase]:
    """Every graph with supports of both origins; some of them in blocks of other sizes and with other limits."""
    for graph in (*GRAPHS, *FAMILIES):
        yield from (PeelCase(graph, few_wedges=few) for few in (EVERY_WEDGE, NO_WEDGE))
    yield from (PeelCase(graph, 32, is_tight=False) for graph in ("union", "dense", "hub", "book-90", "halves"))
    yield from (PeelCase(graph, 160, is_tight=False) for graph in ("strip", "cliques in a row"))


def check_all(device: Device) -> None:
    """All of them on one device."""
    for case in small_cases():
        check(case, device)
