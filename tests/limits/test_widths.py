"""Numbers that break narrow integers: each is counted exactly by every compiled algorithm, or refused."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import comb

import numpy as np
import pytest

import wedgewise as ww
from wedgewise import generate
from wedgewise.algorithms import find
from wedgewise.algorithms._contract import Algorithm
from wedgewise.errors import InputError
from wedgewise.execute.local import Execution, Partial
from wedgewise.graph import OrientedGraph
from wedgewise.plan import MAX_EDGES, Options, check_preparation
from wedgewise.reduce import reduce

COMPILED = [record for record in ww.algorithms() if record.device == "cpu" and record.compiled]


def total(algorithm: Algorithm, graph: OrientedGraph) -> int:
    work = algorithm.prepare(graph, algorithm.settings(None), 2)
    workspace = work.workspace()
    bounds = work.bounds.tolist()
    return sum(int(work.count(a, b, workspace)[0]) for a, b in pairwise(bounds))


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


def test_wedges_of_a_huge_row_do_not_wrap() -> None:
    leaves = 70_000
    by_id = ww.Graph(generate.star(leaves).pairs()).oriented("id")
    assert by_id.wedges == comb(leaves, 2) > 2**31


@pytest.mark.parametrize("algorithm", COMPILED, ids=lambda record: record.name)
def test_64_bit_offsets_count_the_same(algorithm: Algorithm) -> None:
    graph = ww.Graph(generate.kronecker(scale=8, seed=5).pairs()).oriented()
    wide = replace(graph, offsets=graph.offsets.astype(np.uint64))
    assert total(algorithm, wide) == total(algorithm, graph) == total(find("reference", "cpu"), graph)


def test_totals_are_python_integers_beyond_64_bits() -> None:
    partials = {task: Partial(task, 2**62, 1) for task in range(8)}
    assert reduce(Execution(8, partials), m=10**14, wedges=2**70).triangles == 2**65


def test_edges_beyond_the_proof_are_refused() -> None:
    with pytest.raises(InputError, match="exact 64-bit totals"):
        check_preparation(10, MAX_EDGES, Options())
    triangles_squared = 2 * MAX_EDGES**3 // 9
    assert triangles_squared < (2**63) ** 2
