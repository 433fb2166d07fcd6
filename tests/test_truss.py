"""Trusses by peeling: against the definition, closed forms, published figures, and each other."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from graphs import TRUTHS, distinct_edges, fixture_pairs, random_pairs
from numpy.typing import NDArray

from wedgewise import Graph, generate
from wedgewise.errors import InputError
from wedgewise.truss import (
    _core,
    _living,
    _peel,
    k_truss,
    max_truss,
    truss_bytes,
    truss_components,
    truss_summary,
    trussness,
)
from wedgewise.truss._living import Living

ATLAS_EDGES = {2: 12_342, 3: 9_387, 4: 3_745, 5: 799, 6: 131, 7: 21}
ATLAS_KMAX = 7


def truss_by_sets(edges: set[tuple[int, int]], k: int) -> set[tuple[int, int]]:
    """The k-truss by its definition: drop edges in fewer than k − 2 triangles until there are none."""
    edges = set(edges)
    while True:
        adjacent: dict[int, set[int]] = {}
        for u, v in edges:
            adjacent.setdefault(u, set()).add(v)
            adjacent.setdefault(v, set()).add(u)
        weak = {(u, v) for u, v in edges if len(adjacent[u] & adjacent[v]) < k - 2}
        if not weak:
            return edges
        edges -= weak


def trussness_by_sets(pairs: NDArray[Any]) -> list[int]:
    """The largest k whose k-truss holds each edge, in ascending order of the edges."""
    edges = [(u, v) for u, v in distinct_edges(pairs).tolist()]
    found = dict.fromkeys(edges, 2)
    living, k = set(edges), 3
    while living := truss_by_sets(living, k):
        found.update(dict.fromkeys(living, k))
        k += 1
    return [found[edge] for edge in edges]


def of(pairs: Any, n: int | None = None) -> Graph:
    return Graph(np.asarray(pairs, np.int64).reshape(-1, 2), n=n)


@pytest.fixture(params=["rounds", "serially"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every round in tiny tasks, slices and shares, or one edge after the other."""
    few = 0 if request.param == "rounds" else 1 << 30
    monkeypatch.setattr(_peel, "FEW_EDGES", few)
    monkeypatch.setattr(_peel, "SLICE_EDGES", 7)
    monkeypatch.setattr(_peel, "LEAST_STEPS", 5)
    monkeypatch.setattr(_peel, "MOST_STEPS", 50)
    monkeypatch.setattr(_peel, "SHARE_EDGES_BITS", 3)
    monkeypatch.setattr(_peel, "SERIAL_STEPS", 20)
    monkeypatch.setattr(_living, "STEP_EDGES", 11)
    monkeypatch.setattr(_living, "STEP_ENTRIES", 13)
    return str(request.param)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("skewed", [0, 10**9])
@pytest.mark.parametrize(("n", "m"), [(6, 12), (12, 50), (30, 200), (60, 150)])
def test_trussness_of_random_graphs(
    way: str, monkeypatch: pytest.MonkeyPatch, n: int, m: int, skewed: int, threads: int
) -> None:
    monkeypatch.setattr(_core, "SKEWED", skewed)
    for seed in range(3):
        pairs = random_pairs(n, m, seed)
        assert trussness(of(pairs, n), threads=threads).tolist() == trussness_by_sets(pairs)


@pytest.mark.parametrize("recount", [0, 1, 8, 10**6])
def test_one_truss_and_the_last_agree_with_all(way: str, monkeypatch: pytest.MonkeyPatch, recount: int) -> None:
    monkeypatch.setattr(_core, "RECOUNT_SHARE", recount)
    for seed in range(3):
        graph = of(random_pairs(24, 150, seed), 24)
        numbers = trussness(graph, threads=2)
        kmax = int(numbers.max())
        for k in range(2, kmax + 2):
            assert k_truss(graph, k, threads=2).tolist() == np.flatnonzero(numbers >= k).tolist()
        last = max_truss(graph, threads=2)
        assert (last.k, last.edges.tolist()) == (kmax, np.flatnonzero(numbers == kmax).tolist())


def test_every_small_graph_at_once() -> None:
    graph = of(fixture_pairs("atlas_union"))
    numbers = trussness(graph)
    assert {k: int((numbers >= k).sum()) for k in ATLAS_EDGES} == ATLAS_EDGES
    assert max_truss(graph).k == ATLAS_KMAX
    for k, edges in ATLAS_EDGES.items():
        assert len(k_truss(graph, k)) == edges
    assert len(k_truss(graph, ATLAS_KMAX + 1)) == 0


@pytest.mark.compiled
@pytest.mark.parametrize("name", [name for name, truth in TRUTHS.items() if "kmax" in truth])
def test_published_kmax(name: str) -> None:
    graph = of(fixture_pairs(name))
    numbers = trussness(graph, threads=2)
    assert numbers.max() == max_truss(graph).k == TRUTHS[name]["kmax"]
    for k, edges in TRUTHS[name].get("truss_edges_by_k", {}).items():
        assert (numbers >= int(k)).sum() == edges


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (generate.complete(3), 3),
        (generate.complete(20), 20),
        (generate.book(40), 3),
        (generate.windmill(9, clique=6), 6),
        (generate.wheel(12), 3),
        (generate.octahedron(3), 4),
        (generate.turan(12, 3), 6),  # an edge has a third part of 4 to choose from
        (generate.petersen(), 2),
        (generate.hypercube(5), 2),
        (generate.star(50), 2),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_closed_forms(stream: Any, expected: int) -> None:
    graph = of(stream.pairs())
    assert set(trussness(graph).tolist()) == {expected}
    assert max_truss(graph).k == expected
    assert len(k_truss(graph, expected)) == graph.m


@pytest.mark.parametrize("pairs", [[], [(0, 1)], [(0, 1), (1, 2)]])
def test_graphs_without_triangles(pairs: list[tuple[int, int]]) -> None:
    graph = of(pairs, 5)
    assert trussness(graph).tolist() == [2] * len(pairs)
    assert max_truss(graph).edges.tolist() == list(range(len(pairs)))
    assert len(k_truss(graph, 3)) == 0
    assert [(level.k, level.edges) for level in truss_summary(graph)] == [(2, len(pairs))][: len(pairs)]


@pytest.mark.compiled
def test_widths() -> None:
    """16-bit cursors break at 70,000 pages; K_300 dies in one round of 44,850 edges and 4.5 M triangles."""
    assert set(trussness(of(generate.book(70_000).pairs()), threads=2).tolist()) == {3}
    clique = of(generate.complete(300).pairs())
    assert set(trussness(clique, threads=2).tolist()) == {300}
    assert max_truss(clique).k == 300


def random_graph(seed: int) -> tuple[NDArray[np.int64], Graph]:
    pairs = distinct_edges(random_pairs(40, 260, seed))
    return pairs, of(pairs, 40)


@pytest.mark.parametrize("seed", range(3))
def test_relations(seed: int) -> None:
    from wedgewise import edge_support

    pairs, graph = random_graph(seed)
    numbers = trussness(graph)
    assert (numbers - 2 <= edge_support(graph)).all()
    for k in range(3, int(numbers.max()) + 1):
        assert (trussness(of(pairs[numbers >= k], 40)) >= k).all()

    names = np.random.default_rng(seed).permutation(40)
    renamed = np.sort(names[pairs], axis=1)
    order = np.lexsort((renamed[:, 1], renamed[:, 0]))
    assert trussness(of(renamed, 40)).tolist() == numbers[order].tolist()

    twice = trussness(of(np.concatenate([pairs, pairs + 40]), 80))
    assert twice.tolist() == [*numbers.tolist(), *numbers.tolist()]

    apex = np.column_stack([np.arange(40), np.full(40, 40)])
    ends = of(np.concatenate([pairs, apex]), 41)
    old = ends.edges[:, 1] < 40
    assert (trussness(ends)[old] == numbers + 1).all()


@pytest.mark.parametrize("seed", range(3))
def test_an_edge_more_or_less(seed: int) -> None:
    pairs, graph = random_graph(seed)
    numbers = trussness(graph)
    for removed in (0, 17, len(pairs) - 1):
        fewer = trussness(of(np.delete(pairs, removed, axis=0), 40))
        drop = np.delete(numbers, removed) - fewer
        assert set(drop.tolist()) <= {0, 1}


def test_summary_and_components() -> None:
    clique = [(u, v) for u in range(5) for v in range(u)]
    pairs = [*clique, *((u + 5, v + 5) for u, v in clique), (0, 5), (10, 11), (11, 12), (12, 10), (13, 14)]
    graph = of(pairs, 16)
    rows = [(level.k, level.edges, level.vertices, level.components) for level in truss_summary(graph)]
    assert rows == [(2, 25, 15, 3), (3, 23, 13, 3), (4, 20, 10, 2), (5, 20, 10, 2)]
    assert truss_components(graph, 2).tolist() == [0] * 10 + [1] * 3 + [2] * 2 + [-1]
    assert truss_components(graph, 4).tolist() == [0] * 5 + [1] * 5 + [-1] * 6


def test_summary_agrees_with_every_truss() -> None:
    graph = of(fixture_pairs("lesmis"))
    numbers = trussness(graph)
    for level in truss_summary(graph):
        components = truss_components(graph, level.k)
        ends = np.unique(graph.edges[numbers >= level.k])
        assert (level.edges, level.vertices) == ((numbers >= level.k).sum(), len(ends))
        assert level.components == components.max() + 1
        assert np.flatnonzero(components >= 0).tolist() == ends.tolist()
        for u, v in graph.edges[numbers >= level.k].tolist():
            assert components[u] == components[v]


def test_what_is_refused() -> None:
    graph = of([(0, 1)])
    with pytest.raises(InputError, match="k is at least 2, not 1"):
        k_truss(graph, 1)
    with pytest.raises(InputError, match="threads is at least 1, not 0"):
        trussness(graph, threads=0)


def test_progress_is_told_once_per_round() -> None:
    told: list[tuple[str, int, int]] = []
    graph = of(fixture_pairs("karate"))
    trussness(graph, progress=lambda *round: told.append(round))
    assert [total for _, _, total in told] == [graph.m] * len(told)
    done = [edges for _, edges, _ in told]
    assert done == sorted(set(done))
    assert done[-1] == graph.m


def test_an_interrupt_leaves_the_graph_as_it_was() -> None:
    graph = of(fixture_pairs("karate"))
    before = trussness(graph)

    def interrupt(*_round: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trussness(graph, progress=interrupt)
    assert trussness(graph).tolist() == before.tolist()


def test_packing_keeps_what_lives() -> None:
    ends = np.array([1, 2, 1 << 32 | 2, 2 << 32 | 3], np.uint64)
    living = Living.of(ends, np.arange(4, dtype=np.uint32), np.array([1, 1, 1, 0], np.uint32), 4, 1)
    settled = np.full(4, 9, np.uint32)
    living.bury(np.array([3], np.uint32), 0, settled)
    assert living.pack().tolist() == [0, 1, 2, 2]
    assert (living.n, living.m, settled.tolist()) == (3, 3, [9, 9, 9, 0])
    rows = [living.rows[a:b].tolist() for a, b in zip(living.firsts, living.stops, strict=True)]
    assert rows == [[1 << 32, 2 << 32 | 1], [0, 2 << 32 | 2], [1, 1 << 32 | 2]]


@pytest.mark.compiled
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("work", [trussness, max_truss, lambda graph, threads: k_truss(graph, 9, threads=threads)])
def test_memory_stays_within_what_is_predicted(work: Callable[..., Any], threads: int) -> None:
    graph = Graph(generate.kronecker(scale=14, seed=3).pairs().astype(np.int32))
    graph.arcs_of_edges(graph.oriented())
    work(graph, threads=threads)  # loads the kernels, whose own memory is not the graph's
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        work(graph, threads=threads)
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert peak <= truss_bytes(graph.n, graph.m, threads)
