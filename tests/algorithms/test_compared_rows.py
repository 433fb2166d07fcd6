"""Short rows, which keystone compares with all of others: around every length where its ways change."""

from __future__ import annotations

from collections.abc import Mapping
from math import comb

import numpy as np
import pytest

import wedgewise as ww
from wedgewise.algorithms.cpu import _keystone_close
from wedgewise.algorithms.cpu._keystone_hubs import MAX_COMPARED
from wedgewise.generate import uniform
from wedgewise.machine import jit
from wedgewise.machine.jit import JIT_DISABLED
from wedgewise.machine.primitives import IDS_AT_ONCE

WITHOUT_HUBS = {"hubs": 0}
FEWEST = next(n for n in range(IDS_AT_ONCE) if comb(n, 2) >= IDS_AT_ONCE)  # vertices whose clique has a block of ids
SIZES = sorted({3, FEWEST - 1, FEWEST, *(k * IDS_AT_ONCE + d for k in (1, 2) for d in range(4)), MAX_COMPARED + 2})


def counted(graph: ww.Graph, knobs: Mapping[str, int | str]) -> list[int]:
    """What is counted, and how many are listed, by keystone."""
    asked = {"algorithm": "keystone", "device": "cpu", "knobs": knobs}
    return [ww.count(graph, **asked), len(ww.list_triangles(graph, **asked))]  # type: ignore[arg-type]


@pytest.mark.parametrize("n", SIZES)
def test_cliques_of_every_length_of_rows(n: int) -> None:
    clique = np.argwhere(np.triu(np.ones((n, n), bool), 1))
    assert counted(ww.Graph(clique), WITHOUT_HUBS) == 2 * [comb(n, 3)]


@pytest.mark.parametrize("edges", [60, 200, 700] if JIT_DISABLED else [60, 200, 700, 3000])
@pytest.mark.parametrize("rows_at_once", [3, _keystone_close.ROWS_AT_ONCE])
def test_random_rows_with_and_without_hubs(edges: int, rows_at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_keystone_close, "ROWS_AT_ONCE", rows_at_once)
    graph = ww.Graph(uniform(90, edges, seed=edges).pairs())
    expected = 2 * [ww.count(graph, algorithm="reference")]
    assert counted(graph, WITHOUT_HUBS) == expected
    assert counted(graph, {"hubs": 512}) == expected


def test_rows_with_a_hub_at_their_end() -> None:
    spokes = [(leaf, centre) for leaf in range(512) for centre in (600, 601, 602)]
    rim = [(leaf, leaf + 1) for leaf in range(511)]
    graph = ww.Graph([*spokes, *rim, (600, 601), (601, 602), (600, 602)])
    expected = 2 * [ww.count(graph, algorithm="reference")]
    for hubs in (0, 512):
        assert counted(graph, {"hubs": hubs}) == expected


@pytest.mark.parametrize("hubs", [0, 512])
@pytest.mark.parametrize("question", ["count", "triangles", "edge_support"])
def test_rows_that_are_asked_for_ahead(question: str, hubs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As those of graphs that no cache holds."""
    monkeypatch.setattr(jit, "JIT_DISABLED", True)  # compiling takes seconds
    monkeypatch.setattr(_keystone_close, "CACHED_ARCS", 0)
    graph = ww.Graph(uniform(600, 1500, seed=7).pairs())
    asked = {"algorithm": "keystone", "device": "cpu", "knobs": {"hubs": hubs}}
    found, expected = (ww.run(question, graph, **how).answer for how in (asked, {"algorithm": "reference"}))
    assert np.array_equal(found, expected)
