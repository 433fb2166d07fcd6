"""Oriented graphs with rows as they are wanted, and what walking over two hops takes, by definition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

import wedgewise as ww
from emulate.emulated_cases import on_device
from emulate.emulator import EmulatedDevice
from wedgewise.stages import DeviceGraph

LONG_ROW = 70_000


@pytest.fixture(scope="module")
def device() -> EmulatedDevice:
    return EmulatedDevice()


def device_graph(pairs: Any, n: int) -> DeviceGraph:
    """Pairs oriented from the lower to the higher vertex, ids as they are."""
    return on_device(ww.Graph(np.asarray(pairs, np.int64).reshape(-1, 2), n=n), "id", "rank")


def from_rows(rows: Sequence[ArrayLike], offset_type: Any = np.uint32) -> DeviceGraph:
    """The graph whose vertex u has the arcs to rows[u], ascending ids above u; as it would come, without cleaning."""
    degrees = np.array([np.size(row) for row in rows], np.int64)
    offsets = np.concatenate([[0], np.cumsum(degrees)]).astype(offset_type)
    heads = np.concatenate([np.asarray(row, np.uint32).reshape(-1) for row in rows])
    n, wedges = len(rows), int((degrees * (degrees - 1) // 2).sum())
    return DeviceGraph(n, offsets, heads, np.arange(n, dtype=np.uint32), "id", "rank", wedges)


def fan(offset_type: Any = np.uint32, length: int = LONG_ROW) -> DeviceGraph:
    """A vertex with a long row, and a path through all of them: a triangle for each arc of the path."""
    rim = np.arange(1, length + 1)
    return from_rows([rim, *(rim[1:, None]), []], offset_type)


def two_hops(graph: DeviceGraph) -> int:
    """The ids two hops away from the vertices with two arcs or more."""
    degrees = np.diff(graph.offsets.astype(np.int64))
    return int(degrees[graph.out_neighbours[np.repeat(degrees, degrees) >= 2]].sum())
