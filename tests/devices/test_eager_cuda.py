"""Trusses on a real device: those of the CPU, by every algorithm that is registered for CUDA."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from emulate.eager_cases import EagerCase, small_cases
from emulate.eager_cases import check as check_rounds
from emulate.truss_cases import RECORDS, TrussCase, cases_of, check
from helpers.graphs import TRUTHS, fixture_pairs

import wedgewise as ww
from devices.real_device import needs_device
from wedgewise.algorithms.cpu.eager import GRANULARITY
from wedgewise.algorithms.gpu.eager import EagerDeviceRows
from wedgewise.generate import book, complete, kronecker
from wedgewise.machine import gpu
from wedgewise.prepare.device_forms import copy_graph

pytestmark = needs_device
REPEATS = 5

for_every_granularity = pytest.mark.parametrize("granularity", GRANULARITY.choices)
for_every_algorithm = pytest.mark.parametrize("algorithm", RECORDS)


@pytest.fixture
def device() -> Iterator[gpu.Cuda]:
    found = gpu.find_device()
    with found.memory():
        yield found


@pytest.mark.parametrize("case", tuple(small_cases()), ids=str)
def test_rounds_of_small_graphs(device: gpu.Cuda, case: EagerCase) -> None:
    check_rounds(case, device)


@pytest.mark.parametrize("case", [case for name in RECORDS for case in cases_of(name)], ids=str)
def test_small_graphs(device: gpu.Cuda, case: TrussCase) -> None:
    check(case, device)


@for_every_algorithm
@pytest.mark.parametrize("name", TRUTHS)
def test_published_graphs(name: str, algorithm: str) -> None:
    graph = ww.Graph(fixture_pairs(name), n=TRUTHS[name]["n"])
    numbers = ww.trussness(graph, device="cuda", algorithm=algorithm)
    np.testing.assert_array_equal(numbers, ww.trussness(graph, device="cpu"))
    last = ww.max_truss(graph, device="cuda", algorithm=algorithm)
    assert last.k == numbers.max(initial=2) == TRUTHS[name]["kmax"]
    np.testing.assert_array_equal(last.edges, np.flatnonzero(numbers == last.k))


@for_every_algorithm
def test_skewed_rows_give_the_same_every_time(algorithm: str) -> None:
    graph = ww.Graph(kronecker(13, seed=1).pairs())
    for order in RECORDS[algorithm].orders:
        for k in (3, 10, 30):
            expected = ww.k_truss(graph, k, device="cpu").edges
            for _ in range(REPEATS):
                found = ww.run("k_truss", graph, k=k, device="cuda", algorithm=algorithm, order=order).answer
                np.testing.assert_array_equal(found.edges, expected)


@for_every_algorithm
def test_cliques_and_books_beyond_16_bits(algorithm: str) -> None:
    assert set(ww.trussness(complete(300).pairs(), device="cuda", algorithm=algorithm).tolist()) == {300}
    assert set(ww.trussness(book(70_000).pairs(), device="cuda", algorithm=algorithm).tolist()) == {3}


@for_every_granularity
def test_supports_of_eager_rounds_do_not_wrap_at_16_bits(device: gpu.Cuda, granularity: str) -> None:
    spine = EagerDeviceRows(copy_graph(ww.Graph(book(70_000).pairs()).oriented("id"), device), granularity, device)
    spine.run_round(1 << 16)
    assert spine.remaining == 1
