"""Trusses: peeling in many ways against the definition; what is asked, planned, verified and refused."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from helpers.graphs import TRUTHS, distinct_edges, fixture_pairs, random_pairs, truss_details
from numpy.typing import NDArray

import wedgewise as ww
from wedgewise import Graph, generate
from wedgewise.algorithms import find
from wedgewise.algorithms._contract import Algorithm, FoundTruss, Shape, TrussAnswer, TrussJob
from wedgewise.algorithms._truss import counted_edges as _counted_edges
from wedgewise.algorithms._truss import peeling as _peeling
from wedgewise.algorithms._truss import remaining as _remaining
from wedgewise.algorithms._truss.decompose import truss_bytes
from wedgewise.algorithms._truss.remaining import RemainingEdges
from wedgewise.algorithms.cpu import _truss_close
from wedgewise.answer import truss_summary as summary
from wedgewise.errors import InputError, MemoryLimitError, PreconditionError, VerificationError
from wedgewise.machine import jit
from wedgewise.run import in_memory
from wedgewise.stages import OrientedGraph

PEEL = find("peel", "cpu")
NEVER = -1  # of RECOUNT_SHARE
Spoil = Callable[[FoundTruss], FoundTruss]


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
    remaining, k = set(edges), 3
    while remaining := truss_by_sets(remaining, k):
        found.update(dict.fromkeys(remaining, k))
        k += 1
    return [found[edge] for edge in edges]


def of(pairs: Any, n: int | None = None) -> Graph:
    return Graph(np.asarray(pairs, np.int64).reshape(-1, 2), n=n)


@pytest.fixture(params=["rounds", "serially", "recounting"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every round in tiny tasks, slices and shares, one edge after the other, or counting again where it may."""
    few = 1 << 30 if request.param == "serially" else 0
    monkeypatch.setattr(_peeling, "FEW_EDGES", few)
    monkeypatch.setattr(_peeling, "RECOUNT_SHARE", 10**6 if request.param == "recounting" else NEVER)
    monkeypatch.setattr(_peeling, "RECOUNT_PART", 1)
    monkeypatch.setattr(_truss_close, "LOSING", 2 * _truss_close.FOUND)  # compiled kernels do not hear of this
    monkeypatch.setattr(_truss_close, "SEARCH_STEPS", 1)  # nor of this
    monkeypatch.setattr(_peeling, "SLICE_EDGES", 7)
    monkeypatch.setattr(_peeling, "MIN_STEPS", 5)
    monkeypatch.setattr(_peeling, "MAX_STEPS", 50)
    monkeypatch.setattr(_peeling, "SHARE_EDGES_BITS", 3)
    monkeypatch.setattr(_peeling, "SERIAL_STEPS", 20)
    monkeypatch.setattr(_remaining, "STEP_EDGES", 11)
    monkeypatch.setattr(_remaining, "STEP_ENTRIES", 13)
    return str(request.param)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("order", PEEL.orders)
@pytest.mark.parametrize(("n", "m"), [(6, 12), (12, 50), (30, 200), (60, 150)])
def test_peeling_random_graphs(way: str, n: int, m: int, order: str, threads: int) -> None:
    for seed in range(3):
        pairs = random_pairs(n, m, seed)
        found = ww.run("trussness", of(pairs, n), algorithm="peel", order=order, threads=threads).answer
        assert found.tolist() == trussness_by_sets(pairs)


@pytest.mark.parametrize("recount", [0, 1, 8, 10**6])
def test_one_truss_and_the_last_agree_with_all(way: str, monkeypatch: pytest.MonkeyPatch, recount: int) -> None:
    monkeypatch.setattr(_counted_edges, "RECOUNT_SHARE", recount)
    for seed in range(3):
        graph = of(random_pairs(24, 150, seed), 24)
        numbers = ww.trussness(graph, algorithm="peel", threads=2)
        kmax = int(numbers.max())
        for k in range(2, kmax + 2):
            found = ww.k_truss(graph, k, algorithm="peel", threads=2)
            assert found.edges.tolist() == np.flatnonzero(numbers >= k).tolist()
        last = ww.max_truss(graph, algorithm="peel", threads=2)
        assert (last.k, last.edges.tolist()) == (kmax, np.flatnonzero(numbers == kmax).tolist())


@pytest.mark.compiled
@pytest.mark.parametrize("name", [name for name, truth in TRUTHS.items() if "kmax" in truth])
def test_published_kmax(name: str) -> None:
    graph = of(fixture_pairs(name))
    numbers = ww.trussness(graph, threads=2)
    assert numbers.max() == ww.max_truss(graph).k == TRUTHS[name]["kmax"]
    for k, edges in TRUTHS[name].get("truss_edges_by_k", {}).items():
        assert (numbers >= int(k)).sum() == edges


def test_one_round_takes_more_than_a_block_of_triangles(monkeypatch: pytest.MonkeyPatch) -> None:
    """100 vertices that each see three of K_12 leave it in one round, with 300 triangles of its edges."""
    monkeypatch.setattr(_peeling, "FEW_EDGES", 0)
    monkeypatch.setattr(_peeling, "RECOUNT_SHARE", NEVER)
    clique = [(u, v) for u in range(12) for v in range(u)]
    pairs = clique + [(12 + i, (i + step) % 12) for i in range(100) for step in range(3)]
    numbers = ww.trussness(of(pairs), algorithm="peel", threads=1)
    assert np.bincount(numbers).nonzero()[0].tolist() == [4, 12]
    assert (numbers == 12).sum() == 66


@pytest.mark.compiled
def test_rounds_of_millions_of_triangles(monkeypatch: pytest.MonkeyPatch) -> None:
    """K_300 dies in one round of 44,850 edges and 4.5 M triangles."""
    monkeypatch.setattr(_peeling, "RECOUNT_SHARE", NEVER)
    assert set(ww.trussness(generate.complete(300).pairs(), algorithm="peel", threads=2).tolist()) == {300}


def test_summary_and_components() -> None:
    clique = [(u, v) for u in range(5) for v in range(u)]
    pairs = [*clique, *((u + 5, v + 5) for u, v in clique), (0, 5), (10, 11), (11, 12), (12, 10), (13, 14)]
    graph = of(pairs, 16)
    rows = [(level.k, level.edges, level.vertices, level.components) for level in ww.truss_summary(graph)]
    assert rows == [(2, 25, 15, 3), (3, 23, 13, 3), (4, 20, 10, 2), (5, 20, 10, 2)]
    assert ww.truss_components(graph, 2).tolist() == [0] * 10 + [1] * 3 + [2] * 2 + [-1]
    assert ww.truss_components(graph, 4).tolist() == [0] * 5 + [1] * 5 + [-1] * 6


def test_summary_agrees_with_every_truss() -> None:
    graph = of(fixture_pairs("lesmis"))
    numbers = ww.trussness(graph)
    for level in ww.truss_summary(graph):
        components = ww.truss_components(graph, level.k)
        ends = np.unique(graph.edges[numbers >= level.k])
        assert (level.edges, level.vertices) == ((numbers >= level.k).sum(), len(ends))
        assert level.components == components.max() + 1
        assert np.flatnonzero(components >= 0).tolist() == ends.tolist()
        for u, v in graph.edges[numbers >= level.k].tolist():
            assert components[u] == components[v]


@pytest.mark.parametrize("question", ["k_truss", "truss_components"])
@pytest.mark.parametrize(("k", "says"), [(1, "k is at least 2, not 1"), (None, "not None"), (2.5, "not 2.5")])
def test_bad_k_is_refused_before_anything_is_prepared(question: str, k: Any, says: str) -> None:
    graph = of([(0, 1)])
    for refuse in (ww.run, ww.explain):
        with pytest.raises(InputError, match=says):
            refuse(question, graph, k=k)
    assert graph.preparations == 0


def test_what_else_is_refused() -> None:
    graph = of([(0, 1)])
    with pytest.raises(InputError, match="threads is at least 1, not 0"):
        ww.trussness(graph, threads=0)
    with pytest.raises(PreconditionError, match=r"keystone on cpu does not compute trussness, .* peel on cpu"):
        ww.trussness(graph, algorithm="keystone")
    with pytest.raises(PreconditionError, match="peel takes ids by rank, not 'indegree'"):
        ww.run("trussness", graph, algorithm="peel", relabel="indegree")


def test_trusses_that_need_no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """All edges are in the 2-truss, and 10 edges are no 6-truss, whatever they are."""

    def unexpected(_name: str, _device: str) -> Algorithm:
        raise AssertionError

    monkeypatch.setattr(in_memory, "find", unexpected)
    graph = of(generate.complete(5).pairs())
    assert ww.k_truss(graph, 2).edges.tolist() == list(range(10))
    assert [len(ww.run("k_truss", graph, k=np.int64(k)).answer) for k in (6, 2**40)] == [0, 0]
    with pytest.raises(AssertionError):
        ww.k_truss(graph, 5)


def test_more_edges_than_an_algorithm_takes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_memory, "find", lambda name, device: replace(find(name, device), most_arcs=10))
    with pytest.raises(PreconditionError, match="10 edges; peel on cpu takes fewer than 10: use another"):
        ww.trussness(generate.complete(5).pairs(), algorithm="peel")
    assert len(ww.trussness(generate.path(9).pairs(), algorithm="peel")) < 10


def test_another_form_than_was_planned_is_refused() -> None:
    graph = of(fixture_pairs("karate"))
    plan = ww.explain("trussness", graph, order="core")
    with pytest.raises(PreconditionError, match="planned for core order and ids by rank, handed id and rank"):
        in_memory.check_planned_form(plan, graph.oriented("id", "rank"))


def test_one_algorithm_is_chosen_by_what_it_would_take(monkeypatch: pytest.MonkeyPatch) -> None:
    small, large = of(fixture_pairs("karate")), of(generate.kronecker(9 if jit.JIT_DISABLED else 12).pairs())
    monkeypatch.setattr(jit, "load_seconds", lambda *_: 0.2)
    assert ww.explain("trussness", small).algorithm == "reference"
    assert ww.explain("trussness", large).algorithm == "peel"
    monkeypatch.setattr(jit, "load_seconds", lambda *_: 0.0)
    assert ww.explain("max_truss", small).algorithm == "peel"


def test_the_order_is_that_of_the_vertices_where_degrees_are_even() -> None:
    even, skewed = of(generate.small_world(300, 8, 0.1, seed=1).pairs()), of(generate.star(300).pairs())
    for question in ("trussness", "max_truss"):
        assert [ww.explain(question, graph).order for graph in (even, skewed)] == ["id", "degree"]
        assert ww.explain(question, even, order="core").order == "core"
        assert ww.explain(question, skewed, algorithm="eager").order == "id"
    assert ww.explain("count", even).order == "degree"
    fresh = of(even.edges)
    ww.trussness(fresh, algorithm="peel")
    assert fresh.preparations == 1  # arcs are in the order of the edges: nobody looks for them


def test_results_say_how() -> None:
    told: list[tuple[str, int, int]] = []
    result = ww.run("k_truss", of(fixture_pairs("karate")), k=4, progress=lambda *line: told.append(line), verify=True)
    assert (result.question, result.plan.computes, result.wedges_tested) == ("k_truss", "k_truss", 0)
    assert set(result.seconds) == {"orient", "truss", "answer", "verify"}
    assert {stage for stage, _, _ in told} == {"truss"}
    assert result.to_dict()["answer"] == {"k": 4, "edges": result.answer.edges.tolist()}
    summary = ww.run("truss_summary", [(0, 1), (1, 2), (2, 0)]).to_dict()["answer"]
    assert summary == [{"k": k, "edges": 3, "vertices": 3, "components": 1} for k in (2, 3)]


@pytest.mark.parametrize("seed", range(3))
def test_progress_never_goes_back(seed: int) -> None:
    """Where a guess for the last truss was too high, all edges are gone before the next one is tried."""
    told: list[int] = []
    ww.run(
        "max_truss",
        generate.kronecker(7, seed=seed).pairs(),
        algorithm="peel",
        progress=lambda stage, done, _total: told.append(done) if stage == "truss" else None,
    )
    assert len(told) > 1
    assert told == sorted(told)


def spoiled(answer: TrussAnswer, spoil: Spoil) -> TrussAnswer:
    def find_wrong(graph: OrientedGraph, job: TrussJob) -> FoundTruss:
        return spoil(answer.find(graph, job))

    return replace(answer, find=find_wrong)


def let_lie(monkeypatch: pytest.MonkeyPatch, liar: str, computes: str, spoil: Spoil) -> None:
    """Let one algorithm be wrong in one answer."""

    def found(name: str, device: str) -> Algorithm:
        record = find(name, device)
        if name != liar:
            return record
        return replace(record, answers={**record.answers, computes: spoiled(record.truss_on_cpu(computes), spoil)})

    monkeypatch.setattr(in_memory, "find", found)


def one_less(found: FoundTruss) -> FoundTruss:
    """One edge of the last truss has the number below."""
    numbers = found.filled.copy()
    numbers[np.flatnonzero(numbers == found.k)[0]] -= 1
    return replace(found, filled=numbers)


def one_out(found: FoundTruss) -> FoundTruss:
    """One edge is not there."""
    held = found.filled.copy()
    held[np.flatnonzero(held)[0]] = False
    return replace(found, filled=held)


def one_in(found: FoundTruss) -> FoundTruss:
    """One edge too many is there."""
    held = found.filled.copy()
    held[np.flatnonzero(~held)[0]] = True
    return replace(found, filled=held)


def level_before(found: FoundTruss) -> FoundTruss:
    """The same edges are said to be in the truss before the last."""
    return replace(found, k=found.k - 1)


@pytest.mark.parametrize("liar", ["peel", "eager", "reference"])
@pytest.mark.parametrize(
    ("computes", "spoil"),
    [
        ("trussness", one_less),
        ("k_truss", one_out),
        ("k_truss", one_in),
        ("max_truss", one_in),
        ("max_truss", level_before),
    ],
)
def test_verification_finds_a_liar(monkeypatch: pytest.MonkeyPatch, liar: str, computes: str, spoil: Spoil) -> None:
    graph, details = of(fixture_pairs("karate")), truss_details(computes, 4)
    let_lie(monkeypatch, liar, computes, spoil)
    assert ww.run(computes, graph, algorithm=liar, **details).verified is None
    with pytest.raises(VerificationError, match=rf"-truss by one of {liar} and .*, not by both: please report this"):
        ww.run(computes, graph, algorithm=liar, verify=True, **details)


def too_many(found: FoundTruss) -> FoundTruss:
    """One edge alone has a number above all others."""
    numbers = found.filled.copy()
    numbers[0] = found.k + 1
    return replace(found, k=found.k + 1, filled=numbers)


def below_two(found: FoundTruss) -> FoundTruss:
    """One edge is in no truss at all."""
    numbers = found.filled.copy()
    numbers[0] = 1
    return replace(found, filled=numbers)


def none(found: FoundTruss) -> FoundTruss:
    """The last truss has no edges."""
    return replace(found, filled=np.zeros_like(found.filled))


def fewer(found: FoundTruss) -> FoundTruss:
    """An edge is forgotten."""
    return replace(found, filled=found.filled[1:])


@pytest.mark.parametrize(
    ("computes", "spoil"),
    [("trussness", too_many), ("trussness", below_two), ("trussness", fewer), ("max_truss", none)],
)
def test_what_cannot_be_is_refused_without_being_asked(
    monkeypatch: pytest.MonkeyPatch, computes: str, spoil: Spoil
) -> None:
    let_lie(monkeypatch, "peel", computes, spoil)
    with pytest.raises(VerificationError, match="please report this"):
        ww.run(computes, of(fixture_pairs("karate")), algorithm="peel")


@pytest.mark.parametrize("question", ["trussness", "k_truss", "max_truss", "truss_summary", "truss_components"])
def test_a_limit_of_memory_is_checked_before_the_work(question: str, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = of(fixture_pairs("karate"))
    details = truss_details(question)
    need = ww.explain(question, graph, algorithm="peel", **details).bytes_needed
    assert ww.run(question, graph, algorithm="peel", memory_limit=need, **details).plan.bytes_needed == need

    def unexpected(_name: str, _device: str) -> Algorithm:
        raise AssertionError

    monkeypatch.setattr(in_memory, "find", unexpected)
    with pytest.raises(MemoryLimitError, match=f"{question} by peel takes {need:,} bytes and {need - 1:,} are allowed"):
        ww.run(question, graph, algorithm="peel", memory_limit=need - 1, **details)


def test_the_truss_as_a_graph() -> None:
    graph = Graph([("ada", "bob"), ("di", "cy"), ("bob", "cy"), ("cy", "ada"), ("eve", "di")])
    truss = ww.k_truss(graph, 3)
    smaller = graph.subgraph(truss.edges)
    assert (smaller.labels, smaller.m, len(truss)) == (["ada", "bob", "cy"], 3, 3)
    assert ww.count(smaller) == 1
    gaps = Graph(np.array([(70, 3), (900, 70), (3, 900), (11, 900), (40, 41)]))
    assert np.asarray(gaps.subgraph(ww.k_truss(gaps, 3).edges).labels).tolist() == [3, 70, 900]
    numbered = Graph(np.array([(0, 3), (3, 5), (5, 0)]), n=7)
    assert np.asarray(numbered.subgraph([0]).labels).tolist() == [0, 3]
    assert (numbered.subgraph([]).n, numbered.subgraph(np.arange(3)).m) == (0, 3)
    for wrong in ([3], [-1], [[0]], [0.5]):
        with pytest.raises(InputError, match="edges are number"):
            numbered.subgraph(wrong)  # type: ignore[arg-type]


def test_nothing_of_it_is_imported_before_it_is_asked_for() -> None:
    code = "import sys, wedgewise; print([name for name in sys.modules if '._truss.' in name])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize("most", [1, 7, 10_000])
def test_edges_are_ordered_in_steps(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summary, "ORDERED_EDGES", most)
    numbers = np.random.default_rng(most).integers(2, 9, 300)
    order, ends = summary._by_descending_number(numbers, 11)
    assert order.tolist() == sorted(range(300), key=lambda edge: (-numbers[edge], edge))
    assert ends.tolist() == [int((numbers >= k).sum()) for k in range(11, 1, -1)]


def test_few_edges_are_summarised_without_a_kernel() -> None:
    script = """
import wedgewise as ww
from wedgewise import generate
from wedgewise.machine import jit
assert ww.truss_summary([(0, 1), (1, 2), (2, 0), (2, 3)])[1] == ww.TrussLevel(3, 3, 3, 1)
assert ww.truss_components([(0, 1), (1, 2), (2, 0), (2, 3)], 3).tolist() == [0, 0, 0, -1]
assert jit.JIT_DISABLED or not jit.is_loaded()
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_packing_keeps_what_lives() -> None:
    ends = np.array([1, 2, 1 << 32 | 2, 2 << 32 | 3, 3 << 32 | 4, 4 << 32 | 5], np.uint64)
    supports = np.array([1, 1, 1, 0, 0, 0], np.uint32)
    remaining = RemainingEdges.of(ends, np.arange(6, dtype=np.uint32), supports, 6, 1)
    removed_at = np.full(6, 9, np.uint32)
    remaining.remove(np.array([3], np.uint32), 0, removed_at)
    assert remaining.pack()[[0, 1, 2, 4, 5]].tolist() == [0, 1, 2, 3, 4]
    assert (remaining.n, remaining.m, removed_at.tolist()) == (6, 5, [9, 9, 9, 0, 9, 9])
    remaining.remove(np.array([3, 4], np.uint32), 0, removed_at)
    assert remaining.pack()[:3].tolist() == [0, 1, 2]
    assert (remaining.n, remaining.m, removed_at.tolist()) == (3, 3, [9, 9, 9, 0, 0, 0])
    assert remaining.ends.tolist() == ends[:3].tolist()
    rows = [remaining.rows[a:b].tolist() for a, b in zip(remaining.firsts, remaining.stops, strict=True)]
    assert rows == [[1 << 32, 2 << 32 | 1], [0, 2 << 32 | 2], [1, 1 << 32 | 2]]


@pytest.mark.compiled
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("computes", "k"), [("trussness", None), ("max_truss", None), ("k_truss", 9)])
def test_memory_stays_within_what_is_predicted(computes: str, k: int | None, threads: int) -> None:
    graph = Graph(generate.kronecker(scale=14, seed=3).pairs().astype(np.int32)).oriented()
    job, work = TrussJob(k, {}, threads), PEEL.truss_on_cpu(computes)
    work.find(graph, job)  # loads the kernels, whose own memory is not the graph's
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        work.find(graph, job)
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert peak <= truss_bytes(Shape(graph.n, graph.m), threads, {})


def test_rows_of_edges_are_not_made_once_work_has_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(task: Callable[[int, int], None], _tasks: int, _threads: int, on_stop: Callable[[], None]) -> None:
        on_stop()
        task(0, 0)

    monkeypatch.setattr(_remaining, "run_tasks", stopped)
    unasked = SimpleNamespace(count_ends=pytest.fail, place_ends=pytest.fail)
    monkeypatch.setattr(_remaining, "kernels", unasked)  # none of which is asked for anything
    ends = np.array([1, 2], np.uint64)
    remaining = RemainingEdges.of(ends, np.arange(2, dtype=np.uint32), np.zeros(2, np.uint32), 3, 1)
    assert remaining.stops.tolist() == [0, 0, 0]


def test_supports_that_do_not_add_up_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_counted_edges, "run_passes", lambda *_: 1)
    with pytest.raises(VerificationError, match="supports do not sum up to three per triangle: please report this"):
        ww.trussness(fixture_pairs("karate"), algorithm="peel")
