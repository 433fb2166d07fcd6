"""Tasks of three blocks on a real device: what products of matrices and whole graphs have, again and again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import numpy as np
import pytest
from emulate.emulated_cases import block_knob
from emulate.triple_cases import (
    PLAIN,
    RECORDS,
    TripleCase,
    cases_of,
    check,
    count_in_parts,
    kinds_of,
    ways_of,
)
from helpers.cut_graphs import oriented

import wedgewise as ww
from devices.real_device import needs_device
from wedgewise.errors import InputError
from wedgewise.generate import book, kronecker
from wedgewise.machine import gpu
from wedgewise.prepare.cut_blocks import blocks_of
from wedgewise.prepare.rectilinear import rectilinear
from wedgewise.stages import OrientedGraph
from wedgewise.stages.blocks import Hashed, Partition

pytestmark = needs_device
BLOCKS = (32, 64, 96, 128, 256, 512, 1024)
REPEATS = 5

for_every_algorithm = pytest.mark.parametrize("algorithm", RECORDS)


@pytest.fixture
def device() -> Iterator[gpu.Cuda]:
    found = gpu.find_device()
    with found.memory():
        yield found


@pytest.mark.parametrize("case", [case for name in RECORDS for case in cases_of(name)], ids=str)
def test_small_blocks(device: gpu.Cuda, case: TripleCase) -> None:
    with suppress(InputError):
        check(case, device)


@for_every_algorithm
@pytest.mark.parametrize("block", BLOCKS)
def test_block_sizes(device: gpu.Cuda, algorithm: str, block: int) -> None:
    for kind in kinds_of(algorithm, block):
        for triple in (PLAIN, "hubs", "dense", "tall"):
            check(TripleCase(algorithm, triple, kind), device)


@for_every_algorithm
def test_knobs(device: gpu.Cuda, algorithm: str) -> None:
    for way in ways_of(algorithm):
        with suppress(InputError):
            check(TripleCase(algorithm, "dense", way), device)


def partitions(graph: OrientedGraph, parts: int) -> tuple[Partition, Partition]:
    return rectilinear(graph, parts, threads=2), Hashed(graph.n, parts)


@for_every_algorithm
@pytest.mark.parametrize("parts", [1, 3, 5])
def test_tasks_add_up_every_time(device: gpu.Cuda, algorithm: str, parts: int) -> None:
    stream = kronecker(14, seed=1)
    graph, expected = oriented(stream.pairs(), stream.n), ww.count(stream.pairs(), device="cpu")
    for partition in partitions(graph, parts):
        blocks = blocks_of(graph, partition, threads=2)
        for block in (32, 256, 1024):
            knobs = block_knob(RECORDS[algorithm], block)
            assert {count_in_parts(algorithm, blocks, 2, device, knobs) for _ in range(REPEATS)} == {expected}


@for_every_algorithm
def test_long_rows(device: gpu.Cuda, algorithm: str) -> None:
    pages = 70_000
    graph = oriented(book(pages).pairs().astype(np.int64), pages + 2)
    for partition in partitions(graph, 2):
        blocks = blocks_of(graph, partition)
        for kind in kinds_of(algorithm, 256):
            assert count_in_parts(algorithm, blocks, 1, device, kind) == pages
