"""What intersecting the rows of both ends of every arc takes, by definition; and graphs that make it hard."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from helpers.graphs import count_by_product, random_pairs
from numpy.typing import NDArray

import wedgewise as ww
from emulate.emulated_cases import on_device
from emulate.emulator import EmulatedDevice
from wedgewise import generate
from wedgewise.stages import DeviceGraph


def device_graph(pairs: Any, n: int, order: str = "degree") -> DeviceGraph:
    return on_device(ww.Graph(np.asarray(pairs, np.int64).reshape(-1, 2), n=n), order, "rank")


@cache
def hubs_and_leaves() -> tuple[DeviceGraph, int]:
    """Two hubs with long rows, random rows that end anywhere, and vertices without any; with its triangles."""
    pages = 300
    spine = generate.book(pages).pairs().astype(np.int64)
    pairs, n = np.concatenate([spine, random_pairs(100, 900, seed=5) + 2]), pages + 100
    return device_graph(pairs, n, "id"), count_by_product(pairs, n)


@cache
def book(pages: int) -> DeviceGraph:
    """Two rows that hold all pages; they are one arc's. No other arc has a head with a row."""
    return device_graph(generate.book(pages).pairs(), pages + 2, "id")


def rows_of_arcs(graph: DeviceGraph) -> Iterator[tuple[NDArray[np.uint32], NDArray[np.uint32]]]:
    """The rows of both ends of every arc, in the order of the arcs."""
    begin, heads = graph.offsets.astype(np.int64).tolist(), graph.out_neighbours
    rows = [heads[begin[vertex] : begin[vertex + 1]] for vertex in range(graph.n)]
    return ((rows[u], rows[v]) for u in range(graph.n) for v in rows[u].tolist())


def keys_of(graph: DeviceGraph) -> int:
    """The ids of the shorter row of every arc."""
    return sum(min(len(row), len(other)) for row, other in rows_of_arcs(graph))


def steps_of(first: NDArray[np.uint32], second: NDArray[np.uint32]) -> int:
    """How many ids a merge takes until either row ends; of equal ids the first row's is taken before."""
    if len(first) == 0 or len(second) == 0:
        return 0
    until_first_ends = len(first) + np.searchsorted(second, first[-1], side="left")
    until_second_ends = len(second) + np.searchsorted(first, second[-1], side="right")
    return int(min(until_first_ends, until_second_ends))


def noted_launches(monkeypatch: pytest.MonkeyPatch, device: EmulatedDevice) -> list[tuple[str, int, tuple[Any, ...]]]:
    """The launches to come: kernel, grid, arguments."""
    noted: list[tuple[str, int, tuple[Any, ...]]] = []
    launch: Callable[..., None] = device.launch

    def note(stem: str, kernel: str, grid: int, block: int, arguments: tuple[Any, ...], **options: Any) -> None:
        noted.append((kernel, grid, arguments))
        launch(stem, kernel, grid, block, arguments, **options)

    monkeypatch.setattr(device, "launch", note)
    return noted
