"""What every answer about trusses must be, by every registered CPU algorithm: orders, ids and knobs."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from helpers.graphs import TRUTHS, fixture_pairs, truss_details
from numpy.typing import NDArray

import wedgewise as ww
from conformance.engines import RECORDS, knob_values
from conformance.trusses import TRUSS_RECORDS, truss_numbers_by_product
from wedgewise import generate
from wedgewise.algorithms import find
from wedgewise.algorithms._contract import TRUSSES, FoundTruss, TrussJob
from wedgewise.machine.jit import JIT_DISABLED

ATLAS_EDGES = {2: 12_342, 3: 9_387, 4: 3_745, 5: 799, 6: 131, 7: 21, 8: 0}
DENSE, SKEWED = "lesmis", "skewed"
VARIED_GRAPHS = ("dolphins" if JIT_DISABLED else "atlas_union", DENSE, SKEWED, "clique")
STREAMS = {SKEWED: generate.kronecker(6 if JIT_DISABLED else 8, seed=1), "clique": generate.complete(23)}

NAMES = tuple(record.name for record in TRUSS_RECORDS)
for_every_algorithm = pytest.mark.parametrize("algorithm", NAMES)
for_every_answer = pytest.mark.parametrize(("algorithm", "computes"), tuple(product(NAMES, TRUSSES)))
for_every_varied_graph = pytest.mark.parametrize("name", VARIED_GRAPHS)
ORIENTATIONS = tuple(
    (record.name, order, relabel)
    for record in TRUSS_RECORDS
    for order, relabel in product(record.orders, record.relabellings)
)
SETTINGS = tuple(
    (record.name, knob.name, value) for record in TRUSS_RECORDS for knob in record.knobs for value in knob_values(knob)
)


@cache
def graph_of(name: str) -> ww.Graph:
    """One of the varied graphs, prepared once for all tests."""
    if name in TRUTHS:
        return ww.Graph(fixture_pairs(name), n=TRUTHS[name]["n"])
    return ww.Graph(STREAMS[name].pairs(), n=STREAMS[name].n)


@cache
def numbers_of(name: str) -> NDArray[np.int64]:
    """The truss numbers of a varied graph by products of matrices."""
    graph = graph_of(name)
    return truss_numbers_by_product(graph.edges, graph.n)


def check(graph: ww.Graph, numbers: NDArray[np.int64], algorithm: str, **how: Any) -> None:
    """All three answers; a k-truss in the middle, the last and the one behind it."""
    how = {"algorithm": algorithm, "device": "cpu", **how}
    found = ww.run("trussness", graph, **how)
    assert (found.algorithm, found.device, found.answer.dtype) == (algorithm, "cpu", np.int64)
    np.testing.assert_array_equal(found.answer, numbers)
    kmax = int(numbers.max())
    for k in sorted({(2 + kmax) // 2, kmax, kmax + 1}):
        truss = ww.run("k_truss", graph, k=k, **how).answer
        assert (truss.k, truss.edges.dtype) == (k, np.int64)
        np.testing.assert_array_equal(truss.edges, np.flatnonzero(numbers >= k))
    last = ww.run("max_truss", graph, **how).answer
    assert last.k == kmax
    np.testing.assert_array_equal(last.edges, np.flatnonzero(numbers == kmax))


def test_who_finds_trusses() -> None:
    assert {"eager", "peel", "reference"} <= set(NAMES)
    for record in RECORDS:
        assert set(record.answers) & set(TRUSSES) in (set(), set(TRUSSES)), record.name


@for_every_varied_graph
@pytest.mark.parametrize(("algorithm", "order", "relabel"), ORIENTATIONS)
def test_answers_do_not_depend_on_order_and_ids(algorithm: str, order: str, relabel: str, name: str) -> None:
    check(graph_of(name), numbers_of(name), algorithm, order=order, relabel=relabel)


@for_every_varied_graph
@pytest.mark.parametrize(("algorithm", "knob", "value"), SETTINGS)
def test_answers_do_not_depend_on_knobs(algorithm: str, knob: str, value: int | str, name: str) -> None:
    check(graph_of(name), numbers_of(name), algorithm, knobs={knob: value}, threads=2)


@pytest.mark.compiled  # others are as small, and fewer
@for_every_algorithm
def test_every_small_graph_at_once(algorithm: str) -> None:
    graph = ww.Graph(fixture_pairs("atlas_union"), n=TRUTHS["atlas_union"]["n"])
    numbers = ww.trussness(graph, algorithm=algorithm)
    assert {k: int((numbers >= k).sum()) for k in ATLAS_EDGES} == ATLAS_EDGES
    assert {k: len(ww.k_truss(graph, k, algorithm=algorithm)) for k in ATLAS_EDGES} == ATLAS_EDGES
    last = ww.max_truss(graph, algorithm=algorithm)
    assert (last.k, len(last)) == (7, 21)


@for_every_algorithm
@pytest.mark.parametrize("name", ["karate", "dolphins", "lesmis", "football"])
def test_fixtures_have_their_published_kmax(algorithm: str, name: str) -> None:
    graph = ww.Graph(fixture_pairs(name), n=TRUTHS[name]["n"])
    check(graph, truss_numbers_by_product(graph.edges, graph.n), algorithm)
    assert ww.max_truss(graph, algorithm=algorithm).k == TRUTHS[name]["kmax"]


@for_every_algorithm
@pytest.mark.parametrize("n", [0, 1, 65])
def test_graphs_without_edges(algorithm: str, n: int) -> None:
    graph = ww.Graph(np.empty((0, 2), np.int64), n=n)
    assert ww.trussness(graph, algorithm=algorithm).shape == (0,)
    for truss in (ww.k_truss(graph, 3, algorithm=algorithm), ww.max_truss(graph, algorithm=algorithm)):
        assert truss.edges.shape == (0,)
    assert ww.max_truss(graph, algorithm=algorithm).k == 2
    assert ww.truss_summary(graph, algorithm=algorithm) == ()
    assert ww.truss_components(graph, 2, algorithm=algorithm).tolist() == [-1] * n


@for_every_algorithm
def test_loops_and_copies_change_nothing(algorithm: str) -> None:
    pairs = [(3, 3), (70, 3), (3, 70), (900, 70), (3, 900), (70, 3), (11, 900), (5, 5)]
    graph = ww.Graph(np.array(pairs))
    assert (graph.n, graph.m) == (5, 4)  # 5 has a loop alone
    check(graph, np.array([3, 3, 2, 3]), algorithm)


@for_every_answer
def test_what_is_found_is_what_the_contract_says(algorithm: str, computes: str) -> None:
    record, graph = find(algorithm, "cpu"), graph_of(DENSE).oriented()
    k = 4 if computes == "k_truss" else None
    found = record.truss_on_cpu(computes).find(graph, TrussJob(k, record.settings(None), 2))
    assert isinstance(found, FoundTruss)
    assert found.filled.shape == (graph.m,)
    assert found.filled.dtype == (np.uint32 if computes == "trussness" else np.bool_)
    assert (type(found.k), found.rounds > 0) == (int, True)
    if computes == "trussness":
        assert (found.filled.min() >= 2, found.filled.max()) == (True, found.k)


@pytest.mark.deep
@for_every_answer
def test_offsets_of_64_bits_give_the_same(algorithm: str, computes: str) -> None:
    record, graph = find(algorithm, "cpu"), graph_of(SKEWED).oriented()
    job = TrussJob(5 if computes == "k_truss" else None, record.settings(None), 2)
    wide = replace(graph, offsets=graph.offsets.astype(np.uint64))
    narrow_found, found = (record.truss_on_cpu(computes).find(form, job) for form in (graph, wide))
    assert (found.k, found.filled.tolist()) == (narrow_found.k, narrow_found.filled.tolist())


@for_every_answer
def test_every_round_is_told(algorithm: str, computes: str) -> None:
    record, graph, told = find(algorithm, "cpu"), graph_of(DENSE).oriented(), list[tuple[str, int, int]]()
    job = TrussJob(5 if computes == "k_truss" else None, record.settings(None), 2, lambda *line: told.append(line))
    found = record.truss_on_cpu(computes).find(graph, job)
    assert len(told) == found.rounds
    assert {(stage, total) for stage, _, total in told} == {("truss", graph.m)}
    done = [edges for _, edges, _ in told]
    assert all(0 <= edges <= graph.m for edges in done)
    if computes != "max_truss":
        assert done == sorted(done)
    if computes == "trussness":
        assert done[-1] == graph.m


@for_every_answer
def test_an_interrupt_leaves_nothing_behind(algorithm: str, computes: str) -> None:
    """Progress is told in the middle of the work; a second question about the same graph is answered as the first."""
    graph = ww.Graph(fixture_pairs("lesmis"))
    details = truss_details(computes)
    before = ww.run(computes, graph, algorithm=algorithm, **details).to_dict()["answer"]
    forms, lines = graph.nbytes, 0

    def interrupt(_stage: str, _done: int, _total: int) -> None:
        nonlocal lines
        lines += 1
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ww.run(computes, graph, algorithm=algorithm, threads=2, progress=interrupt, **details)
    assert (lines, graph.nbytes) == (1, forms)
    assert ww.run(computes, graph, algorithm=algorithm, threads=2, **details).to_dict()["answer"] == before


@for_every_answer
def test_verification_agrees(algorithm: str, computes: str) -> None:
    details = truss_details(computes)
    graph = graph_of(DENSE)
    result = ww.run(computes, graph, algorithm=algorithm, verify=True, **details)
    method = "reference" if algorithm == "eager" else "eager"
    assert result.verified is not None
    assert f"by {method} over core order" in result.verified
