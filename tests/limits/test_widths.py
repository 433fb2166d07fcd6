"""Numbers that break narrow integers: each is counted exactly by every compiled algorithm, or refused."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise
from math import comb
from typing import Any

import numpy as np
import pytest
from conformance.engines import COUNTING, ENGINES, that_answer
from numpy.typing import NDArray

import wedgewise as ww
from wedgewise import generate
from wedgewise.algorithms import find
from wedgewise.algorithms._contract import MAX_ARCS, Algorithm, Work
from wedgewise.errors import InputError, VerificationError
from wedgewise.machine.jit import JIT_DISABLED
from wedgewise.prepare.orient import RELABELLINGS, arcs_of_edges, relabel
from wedgewise.run.choose import check_preparation
from wedgewise.run.in_memory import Execution
from wedgewise.run.reduce import reduce
from wedgewise.run.request import Request
from wedgewise.stages import OrientedGraph
from wedgewise.stages.tasks import TaskResults

COMPILED = [record for record in COUNTING if record.compiled]


def carried_out(algorithm: Algorithm, computes: str, graph: OrientedGraph) -> tuple[int, list[int]]:
    """How many triangles an algorithm finds in an oriented graph, and what it fills."""
    work = algorithm.on_cpu(computes).prepare(graph, algorithm.settings(None), 2)
    found = 0
    for step in work.passes:
        workspace = step.workspace()
        found += sum(int(step.run(a, b, workspace)[0]) for a, b in pairwise(step.bounds.tolist()))
    return found, [] if work.filled is None else work.filled.tolist()


@pytest.mark.compiled  # millions of steps
def test_counts_beyond_32_bits() -> None:
    n = 2500
    assert comb(n, 3) > 2**31
    assert ww.count(generate.complete(n).pairs()) == comb(n, 3)


@pytest.mark.compiled  # millions of steps
@pytest.mark.parametrize("algorithm", COMPILED, ids=lambda record: record.name)
def test_rows_beyond_16_bits(algorithm: Algorithm) -> None:
    pages = 70_000
    assert ww.count(generate.book(pages).pairs(), algorithm=algorithm.name) == pages


@pytest.mark.compiled  # millions of steps
@pytest.mark.parametrize("algorithm", COMPILED, ids=lambda record: record.name)
def test_positions_of_arcs_beyond_16_bits(algorithm: Algorithm) -> None:
    n = 400
    assert comb(n, 2) > 2**16
    assert ww.count(generate.complete(n).pairs(), algorithm=algorithm.name) == comb(n, 3)


def test_wedges_of_a_huge_row_do_not_wrap() -> None:
    leaves = 70_000
    by_id = ww.Graph(generate.star(leaves).pairs()).oriented("id")
    assert by_id.wedges == comb(leaves, 2) > 2**31


@pytest.mark.parametrize(
    ("algorithm", "computes"),
    [
        pytest.param(
            find(name, "cpu"),
            computes,
            id=f"{name}-{computes}",
            marks=() if computes == "count" or JIT_DISABLED else pytest.mark.deep,  # kernels of their own, to compile
        )
        for name, computes in ENGINES
    ],
)
def test_64_bit_offsets_give_the_same(algorithm: Algorithm, computes: str) -> None:
    graph = ww.Graph(generate.kronecker(scale=8, seed=5).pairs()).oriented()
    strengths = np.random.default_rng(1).integers(1, 3, graph.m).astype(np.uint64)
    graph = replace(graph, strengths=strengths if computes == "weighted_triangles" else None)
    wide = replace(graph, offsets=graph.offsets.astype(np.uint64))
    expected = carried_out(find("reference", "cpu"), computes, graph)
    assert carried_out(algorithm, computes, wide) == carried_out(algorithm, computes, graph) == expected


@pytest.mark.parametrize("by", RELABELLINGS)
def test_64_bit_offsets_are_renamed_and_aligned_alike(by: str) -> None:
    held = ww.Graph(generate.kronecker(scale=8, seed=5).pairs())
    narrow = held.oriented()
    wide = replace(narrow, offsets=narrow.offsets.astype(np.uint64))
    renamed, expected = relabel(wide, by), relabel(narrow, by)
    np.testing.assert_array_equal(renamed.out_neighbours, expected.out_neighbours)
    np.testing.assert_array_equal(renamed.offsets, expected.offsets)
    np.testing.assert_array_equal(arcs_of_edges(held.simple, wide), arcs_of_edges(held.simple, narrow))


def test_totals_are_python_integers_beyond_64_bits() -> None:
    results = TaskResults.none(8)
    results.put(slice(None), 2**62, 1)
    plan = replace(ww.explain("count", [(0, 1)]), m=10**14, wedges=2**70)
    assert reduce(Execution(results, Work(())), plan).triangles == 2**65


@pytest.mark.parametrize(("computes", "dtype"), [("triangles", np.uint64), ("edge_support", np.uint32)])
def test_sums_of_filled_arrays_do_not_wrap_at_32_bits(computes: str, dtype: type) -> None:
    filled: NDArray[Any] = np.full(3, 2**32 - 1, dtype)
    plan = replace(ww.explain(computes, [(0, 1)]), m=10**9, wedges=2**40)
    results = TaskResults.none(1)
    results.put(0, 2**32 - 1, 1)
    assert reduce(Execution(results, Work((), filled)), plan).triangles == 2**32 - 1
    results.put(0, (3 * (2**32 - 1)) % 2**32 // 3, 1)
    with pytest.raises(VerificationError, match="the sum of"):
        reduce(Execution(results, Work((), filled)), plan)


@pytest.mark.compiled  # millions of steps
@pytest.mark.parametrize("algorithm", that_answer("triangles", "edge_support", compiled=True))
def test_sums_beyond_32_bits(algorithm: str) -> None:
    n = 2400
    graph = ww.Graph(generate.complete(n).pairs())
    assert 3 * comb(n, 3) > comb(n, 3) > 2**31
    assert set(ww.triangles(graph, algorithm=algorithm).tolist()) == {comb(n - 1, 2)}
    assert set(ww.edge_support(graph, algorithm=algorithm).tolist()) == {n - 2}


@pytest.mark.compiled  # millions of steps
@pytest.mark.parametrize("algorithm", that_answer("list_triangles", compiled=True))
def test_listings_beyond_32_bits(algorithm: str) -> None:
    n = 2400
    graph = ww.Graph(generate.complete(n).pairs())
    total = comb(n, 3)
    for start in (2**31 - 3, total - 6):
        listed = ww.list_triangles(graph, start=start, stop=start + 6, algorithm=algorithm)
        rows = set(map(tuple, listed.tolist()))
        assert len(rows) == 6
        assert all(u < v < w < n for u, v, w in rows)
    numbered = list(combinations(range(n - 4, n), 3))  # ids follow the vertices where all degrees are equal
    assert sorted(rows)[-len(numbered) :] == numbered


def test_degrees_whose_wedges_exceed_32_bits_are_divided_exactly() -> None:
    leaves = 70_000
    star = np.concatenate([generate.star(leaves).pairs(), [(1, 2)]])
    graph = ww.Graph(star)
    wedges = comb(leaves, 2) + 2
    assert wedges > 2**31
    assert ww.transitivity(graph) == 3 / wedges
    assert ww.clustering(graph)[:3].tolist() == [1 / comb(leaves, 2), 1.0, 1.0]


def test_edges_beyond_the_proof_are_refused() -> None:
    with pytest.raises(InputError, match="exact 64-bit totals"):
        check_preparation(10, MAX_ARCS, Request())
    triangles_squared = 2 * MAX_ARCS**3 // 9
    assert triangles_squared < (2**63) ** 2
