"""Eager k-truss on a real device: the trusses of the CPU and of the reference, by both granularities."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from emulate.eager_cases import EagerCase, check, small_cases
from graphs import TRUTHS, fixture_pairs

import wedgewise as ww
from devices.found import needs_device
from wedgewise.algorithms.gpu._eager import EagerDeviceRows
from wedgewise.device_forms import copy_graph
from wedgewise.generate import book, complete, kronecker
from wedgewise.machine import gpu
from wedgewise.truss.eager import (
    GRANULARITY,
    ORDERS,
    eager_k_truss,
    eager_k_truss_on_device,
    eager_max_truss,
    eager_max_truss_on_device,
)

pytestmark = needs_device
REPEATS = 5

for_every_granularity = pytest.mark.parametrize("granularity", GRANULARITY.choices)


@pytest.fixture
def device() -> Iterator[gpu.Cuda]:
    found = gpu.find_device()
    with found.memory():
        yield found


@pytest.mark.parametrize("case", tuple(small_cases()), ids=str)
def test_small_graphs(device: gpu.Cuda, case: EagerCase) -> None:
    check(case, device)


@for_every_granularity
@pytest.mark.parametrize("name", TRUTHS)
def test_published_graphs_have_their_kmax(device: gpu.Cuda, name: str, granularity: str) -> None:
    oriented = ww.Graph(fixture_pairs(name), n=TRUTHS[name]["n"]).oriented("id")
    kmax, lives = eager_max_truss_on_device(copy_graph(oriented, device), granularity, device)
    assert kmax == TRUTHS[name]["kmax"]
    np.testing.assert_array_equal(device.download(lives), eager_max_truss(oriented)[1])


@for_every_granularity
@pytest.mark.parametrize("order", ORDERS)
def test_skewed_rows_give_the_same_every_time(device: gpu.Cuda, order: str, granularity: str) -> None:
    oriented = ww.Graph(kronecker(13, seed=1).pairs()).oriented(order)
    form = copy_graph(oriented, device)
    for k in (3, 10, 30):
        expected = eager_k_truss(oriented, k, threads=2)
        for _ in range(REPEATS):
            found = device.download(eager_k_truss_on_device(form, k, granularity, device))
            np.testing.assert_array_equal(found, expected)


@for_every_granularity
def test_cliques_and_books_beyond_16_bits(device: gpu.Cuda, granularity: str) -> None:
    clique = copy_graph(ww.Graph(complete(300).pairs()).oriented("id"), device)
    assert eager_max_truss_on_device(clique, granularity, device)[0] == 300
    spine = EagerDeviceRows(copy_graph(ww.Graph(book(70_000).pairs()).oriented("id"), device), granularity, device)
    spine.run_round(1 << 16)
    assert spine.living == 1
