"""Every GPU algorithm on a real device: the same integers as everywhere, again and again, and nothing left behind."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.graphs import CLOSED_FORMS, TRUTHS, fixture_path

import wedgewise as ww
from devices.real_device import for_every_algorithm, held_bytes, needs_device
from wedgewise.generate import EdgeStream, book, kronecker, star

pytestmark = needs_device
BLOCKS = (32, 64, 128, 256, 512, 1024)
REPEATS = 20


def count(graph: Any, record: Any, **options: Any) -> int:
    return int(ww.run("count", graph, algorithm=record.name, device="cuda", **options).answer)


@for_every_algorithm
@pytest.mark.parametrize("name", TRUTHS)
def test_fixtures_have_their_published_counts(record: Any, name: str) -> None:
    assert count(ww.read(fixture_path(name)), record) == TRUTHS[name]["triangles"]


@for_every_algorithm
@pytest.mark.parametrize("stream", CLOSED_FORMS, ids=lambda stream: stream.name)
def test_closed_forms(record: Any, stream: EdgeStream) -> None:
    assert count(ww.Graph(stream.pairs(), n=stream.n), record) == stream.expected_triangles


@for_every_algorithm
@pytest.mark.parametrize("stream", [book(70_000), star(70_000)], ids=lambda stream: stream.name)
def test_long_rows(record: Any, stream: EdgeStream) -> None:
    assert count(ww.Graph(stream.pairs(), n=stream.n), record) == stream.expected_triangles


@for_every_algorithm
@pytest.mark.parametrize("block", BLOCKS)
def test_block_sizes(record: Any, block: int) -> None:
    assert "block" in {knob.name for knob in record.knobs}
    graph = ww.Graph(kronecker(12, seed=1).pairs())
    assert count(graph, record, knobs={"block": block}) == ww.count(graph, device="cpu")


@for_every_algorithm
def test_orders_and_relabellings(record: Any) -> None:
    graph = ww.Graph(kronecker(10, seed=2).pairs())
    expected = ww.count(graph, device="cpu")
    for order in record.orders:
        for relabel in record.relabellings:
            assert count(graph, record, order=order, relabel=relabel) == expected, (order, relabel)


@for_every_algorithm
def test_repeats_are_identical_and_release_their_memory(record: Any) -> None:
    graph = ww.Graph(kronecker(16, seed=1).pairs())
    expected = ww.count(graph, device="cpu")
    count(graph, record)
    before = held_bytes()
    assert {count(graph, record) for _ in range(REPEATS)} == {expected}
    assert held_bytes() == before


@for_every_algorithm
def test_results_say_where_time_went(record: Any) -> None:
    result = ww.run("count", ww.Graph(kronecker(12, seed=1).pairs()), algorithm=record.name, device="cuda")
    assert (result.device, result.algorithm) == ("cuda", record.name)
    assert {"copy", "prepare", "kernel"} <= set(result.seconds)
    assert result.plan.bytes_needed > 0
