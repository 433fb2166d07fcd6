"""Eager k-truss and its reference, against sets of neighbours, closed forms and published figures."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from graphs import TRUTHS, fixture_pairs, random_pairs
from numpy.typing import NDArray

import wedgewise as ww
from wedgewise import generate
from wedgewise.algorithms.cpu import _eager
from wedgewise.algorithms.cpu._eager import EagerRows, eager_bytes
from wedgewise.errors import InputError, PreconditionError, UnknownNameError
from wedgewise.orient import orient, relabel
from wedgewise.truss import reference
from wedgewise.truss.eager import GRANULARITY, ORDERS, eager_k_truss, eager_max_truss, peel
from wedgewise.truss.reference import k_truss_by_products, supports_by_products

ATLAS_EDGES = {2: 12_342, 3: 9_387, 4: 3_745, 5: 799, 6: 131, 7: 21, 8: 0}
SIXTEEN_BITS = 1 << 16
SLACK = 1 << 17  # threads, tasks and other things that do not grow with the graph
Mask = NDArray[np.bool_]

for_every_granularity = pytest.mark.parametrize("granularity", GRANULARITY.choices)


def by_sets(edges: NDArray[Any], k: int) -> list[bool]:
    """The k-truss by taking one edge of too little support away at a time."""
    adjacent: dict[int, set[int]] = {}
    for u, v in edges.tolist():
        adjacent.setdefault(u, set()).add(v)
        adjacent.setdefault(v, set()).add(u)
    alive = {(u, v) for u, v in edges.tolist()}
    while weak := next(((u, v) for u, v in alive if len(adjacent[u] & adjacent[v]) < k - 2), None):
        u, v = weak
        alive.remove(weak)
        adjacent[u].remove(v)
        adjacent[v].remove(u)
    return [(u, v) in alive for u, v in edges.tolist()]


@cache
def random_graph(n: int, pairs: int, seed: int) -> ww.Graph:
    return ww.Graph(random_pairs(n, pairs, seed), n=n)


@cache
def fixture(name: str) -> ww.Graph:
    return ww.Graph(fixture_pairs(name), n=TRUTHS[name]["n"])


def referred(graph: ww.Graph, k: int) -> Mask:
    return k_truss_by_products(graph.edges, graph.n, k)[0]


def kmax_by_products(graph: ww.Graph) -> int:
    k = 2
    while referred(graph, k + 1).any():
        k += 1
    return k


@pytest.mark.parametrize(("n", "pairs"), [(3, 4), (8, 20), (14, 60), (20, 150)])
@pytest.mark.parametrize("seed", range(3))
def test_reference_agrees_with_sets(n: int, pairs: int, seed: int) -> None:
    graph = random_graph(n, pairs, seed)
    for k in range(2, kmax_by_products(graph) + 2):
        assert referred(graph, k).tolist() == by_sets(graph.edges, k)


def test_reference_in_small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = random_graph(40, 400, 5)
    at_once = supports_by_products(graph.edges, graph.n)
    monkeypatch.setattr(reference, "BATCH_PRODUCTS", 50)
    np.testing.assert_array_equal(supports_by_products(graph.edges, graph.n), at_once)
    np.testing.assert_array_equal(at_once, ww.edge_support(graph))


@for_every_granularity
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("n", "pairs", "seed"), [(2, 3, 0), (12, 50, 1), (40, 250, 2), (60, 900, 3), (150, 900, 4)])
def test_random_graphs_agree_with_the_reference(n: int, pairs: int, seed: int, order: str, granularity: str) -> None:
    graph = random_graph(n, pairs, seed)
    kmax = kmax_by_products(graph)
    for k in range(2, kmax + 2):
        found = eager_k_truss(graph.simple, k, order=order, granularity=granularity, threads=2)
        np.testing.assert_array_equal(found, referred(graph, k), f"k = {k}")
    largest, lives = eager_max_truss(graph.simple, order=order, granularity=granularity)
    assert largest == kmax
    np.testing.assert_array_equal(lives, referred(graph, kmax))


@for_every_granularity
def test_rounds_are_those_of_the_reference(granularity: str) -> None:
    graph = random_graph(60, 900, 3)
    for k in range(2, kmax_by_products(graph) + 2):
        lives, rounds = k_truss_by_products(graph.edges, graph.n, k)
        history = peel(EagerRows(graph.oriented("id"), granularity, 2), k)
        assert (history[-1], len(history)) == (lives.sum(), rounds)


@for_every_granularity
def test_numbers_of_threads_and_tasks_change_nothing(granularity: str, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = random_graph(120, 900, 7)
    expected = [referred(graph, k) for k in (3, 4, 5)]
    for task_steps in (30, _eager.TASK_STEPS):
        monkeypatch.setattr(_eager, "TASK_STEPS", task_steps)
        for threads in (1, 2, 3, 7):
            found = [eager_k_truss(graph.simple, k, granularity=granularity, threads=threads) for k in (3, 4, 5)]
            np.testing.assert_array_equal(found, expected)


@for_every_granularity
def test_threads_write_to_supports_of_their_own(granularity: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers take turns here, so that what they would overwrite at once is seen without a race."""
    handed: list[NDArray[np.uint32]] = []

    def in_turns(task: Callable[[int, int], Any], tasks: int, threads: int, _on_done: Any = None) -> list[Any]:
        return [task(number, number % min(threads, tasks)) for number in range(tasks)]

    def note(_begins: Any, _rows: Any, _begin: int, _end: int, supports: NDArray[np.uint32]) -> None:
        handed.append(supports)

    monkeypatch.setattr(_eager, "run_tasks", in_turns)
    monkeypatch.setattr(_eager, "credit_rows" if granularity == "coarse" else "credit_slots", note)
    EagerRows(random_graph(120, 900, 7).oriented("id"), granularity, 3).run_round(0)
    for supports, other in pairwise(handed):
        assert not np.shares_memory(supports, other)
    assert len({supports.ctypes.data for supports in handed}) == 3


@for_every_granularity
def test_atlas_union_has_its_published_trusses(granularity: str) -> None:
    graph = fixture("atlas_union")
    found = {k: int(eager_k_truss(graph.simple, k, granularity=granularity).sum()) for k in ATLAS_EDGES}
    assert found == ATLAS_EDGES


@pytest.mark.parametrize("k", ATLAS_EDGES)
def test_atlas_union_agrees_edge_by_edge(k: int) -> None:
    graph = fixture("atlas_union")
    lives = referred(graph, k)
    assert lives.sum() == ATLAS_EDGES[k]
    for order in ORDERS:
        np.testing.assert_array_equal(eager_k_truss(graph.simple, k, order=order), lives)


@for_every_granularity
@pytest.mark.parametrize("name", ["karate", "dolphins", "lesmis", "football"])
def test_small_published_graphs_have_their_kmax(name: str, granularity: str) -> None:
    assert eager_max_truss(fixture(name).simple, granularity=granularity)[0] == TRUTHS[name]["kmax"]


@pytest.mark.compiled  # millions of steps
@for_every_granularity
@pytest.mark.parametrize("name", ["jazz", "power", "ca-GrQc", "as20000102", "PGPgiantcompo", "3elt"])
def test_published_graphs_have_their_kmax(name: str, granularity: str) -> None:
    kmax, lives = eager_max_truss(fixture(name).simple, granularity=granularity, threads=2)
    assert kmax == TRUTHS[name]["kmax"]
    np.testing.assert_array_equal(lives, referred(fixture(name), kmax))


def check_clique(size: int, granularity: str) -> None:
    simple = ww.Graph(generate.complete(size).pairs()).simple
    for k, expected in ((2, True), (3, True), (size, True), (size + 1, False), (2**40, False)):
        found = eager_k_truss(simple, k, granularity=granularity, threads=2)
        assert len(found) == size * (size - 1) // 2
        assert np.all(found == expected)
    kmax, lives = eager_max_truss(simple, granularity=granularity)
    assert (kmax, bool(lives.all())) == (size, True)


@for_every_granularity
@pytest.mark.parametrize("size", [3, 4, 9])
def test_cliques(size: int, granularity: str) -> None:
    check_clique(size, granularity)


@pytest.mark.compiled  # millions of steps
@for_every_granularity
def test_a_clique_of_supports_beyond_8_bits(granularity: str) -> None:
    check_clique(300, granularity)


@for_every_granularity
@pytest.mark.parametrize("pages", [1, 50, pytest.param(70_000, marks=pytest.mark.compiled)])
def test_books_hold_together_by_one_triangle_each(pages: int, granularity: str) -> None:
    simple = ww.Graph(generate.book(pages).pairs()).simple
    assert eager_k_truss(simple, 3, granularity=granularity, threads=2).all()
    assert not eager_k_truss(simple, 4, granularity=granularity, threads=2).any()
    assert eager_max_truss(simple, granularity=granularity)[0] == 3


@pytest.mark.compiled  # a long row
@for_every_granularity
def test_supports_do_not_wrap_at_16_bits(granularity: str) -> None:
    """The spine of a book is in as many triangles as there are pages; it alone outlives a round, and then it goes."""
    pages = 70_000
    rows = EagerRows(ww.Graph(generate.book(pages).pairs()).oriented("id"), granularity, 3)
    assert peel(rows, SIXTEEN_BITS + 2) == [1, 0]
    rows = EagerRows(ww.Graph(generate.book(pages).pairs()).oriented("id"), granularity, 3)
    assert peel(rows, pages + 3) == [0]


@for_every_granularity
@pytest.mark.parametrize("n", [0, 1, 5])
def test_no_edges(n: int, granularity: str) -> None:
    simple = ww.Graph(np.empty((0, 2), np.int64), n=n).simple
    assert len(eager_k_truss(simple, 3, granularity=granularity, threads=3)) == 0
    kmax, lives = eager_max_truss(simple, granularity=granularity)
    assert (kmax, len(lives)) == (2, 0)


def test_no_triangles() -> None:
    simple = ww.Graph(generate.hypercube(4).pairs()).simple
    assert eager_k_truss(simple, 2).all()
    assert not eager_k_truss(simple, 3).any()
    kmax, lives = eager_max_truss(simple)
    assert (kmax, bool(lives.all())) == (2, True)


@pytest.mark.parametrize("order", ORDERS)
def test_labels_with_gaps_and_vertices_without_edges(order: str) -> None:
    """A triangle with a tail among labels far apart: edges are in the order of the graph's edges."""
    graph = ww.Graph(np.array([(70, 3), (900, 70), (3, 900), (11, 900), (40, 41)]))
    truss = graph.edges[eager_k_truss(graph.simple, 3, order=order)]
    assert np.asarray(graph.labels)[truss].tolist() == [[3, 70], [3, 900], [70, 900]]


@for_every_granularity
def test_oriented_graphs_answer_by_arc(granularity: str) -> None:
    graph = random_graph(40, 250, 2)
    expected = referred(graph, 4)
    np.testing.assert_array_equal(eager_k_truss(graph.oriented("id"), 4, granularity=granularity), expected)
    oriented = graph.oriented("degree")
    by_arc = eager_k_truss(oriented, 4, granularity=granularity)
    np.testing.assert_array_equal(by_arc[graph.arcs_of_edges(oriented)], expected)


@for_every_granularity
def test_wide_offsets(granularity: str) -> None:
    oriented = random_graph(40, 250, 2).oriented("id")
    wide = replace(oriented, offsets=oriented.offsets.astype(np.uint64))
    kmax, lives = eager_max_truss(wide, granularity=granularity, threads=2)
    assert kmax == kmax_by_products(random_graph(40, 250, 2))
    np.testing.assert_array_equal(lives, referred(random_graph(40, 250, 2), kmax))


def test_the_input_is_left_as_it_was() -> None:
    oriented = orient(random_graph(40, 250, 2).simple, "id")
    offsets, heads = oriented.offsets.copy(), oriented.out_neighbours.copy()
    eager_max_truss(oriented)
    np.testing.assert_array_equal(oriented.offsets, offsets)
    np.testing.assert_array_equal(oriented.out_neighbours, heads)


def test_what_cannot_be_asked_for() -> None:
    simple = random_graph(12, 50, 1).simple
    with pytest.raises(InputError, match="at least 2, not 1"):
        eager_k_truss(simple, 1)
    with pytest.raises(InputError, match="granularity is one of fine, coarse"):
        eager_k_truss(simple, 3, granularity="medium")
    with pytest.raises(UnknownNameError, match="no order named"):
        eager_k_truss(simple, 3, order="random")
    with pytest.raises(PreconditionError, match="relabelling='rank'"):
        eager_k_truss(relabel(orient(simple), "indegree"), 3)


def test_every_round_is_told() -> None:
    graph, told = random_graph(60, 900, 3), list[tuple[str, int, int]]()
    rounds = k_truss_by_products(graph.edges, graph.n, 6)[1]
    eager_k_truss(graph.simple, 6, threads=2, tell=lambda *words: told.append(words))
    assert list(dict.fromkeys(stage for stage, _, _ in told)) == [f"k = 6, round {i + 1}" for i in range(rounds)]
    assert all(0 <= done <= total for _, done, total in told)


def test_rounds_are_numbered_through() -> None:
    graph, told = random_graph(60, 900, 3), list[str]()
    eager_max_truss(graph.simple, tell=lambda stage, _done, _total: told.append(stage))
    stages = list(dict.fromkeys(told))
    assert [int(stage.rpartition(" ")[2]) for stage in stages] == list(range(1, len(stages) + 1))
    assert stages[-1].startswith(f"k = {kmax_by_products(graph) + 1},")


def test_an_interrupt_ends_it() -> None:
    def interrupt(_stage: str, _done: int, _total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        eager_k_truss(random_graph(60, 900, 3).simple, 3, threads=2, tell=interrupt)


def peak_of(work: Callable[[], Any]) -> int:
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        work()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


@pytest.mark.compiled
@pytest.mark.parametrize("threads", [1, 3])
def test_memory_is_as_predicted(threads: int) -> None:
    oriented = ww.Graph(generate.kronecker(13, seed=2).pairs()).oriented("id")
    eager_max_truss(oriented, threads=threads)  # loads the kernels
    predicted = eager_bytes(oriented.n, oriented.m, threads)
    assert 0.9 * predicted <= peak_of(lambda: eager_max_truss(oriented, threads=threads)) <= predicted + SLACK
    assert peak_of(lambda: eager_k_truss(oriented, 4, threads=threads)) <= predicted + SLACK
