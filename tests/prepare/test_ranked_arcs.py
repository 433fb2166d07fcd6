"""Raw pairs in oriented rows at once: the arcs of the definition, and the simple graph that cleaning makes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emulate.emulator import EmulatedDevice
from numpy.typing import NDArray

from prepare.test_preparation import assert_on_device, assert_same
from wedgewise.errors import InputError, LimitError
from wedgewise.generate import kronecker
from wedgewise.prepare import clean_arrays
from wedgewise.prepare.clean import clean, clean_on_device, most_slots
from wedgewise.prepare.clean_arrays import sort_pairs_by_arrays
from wedgewise.prepare.ranked_arcs import EndCounts, RankedGraph, rank_on_device
from wedgewise.stages import EdgeList, Origin
from wedgewise.stages.limits import Limits

ORIGIN = Origin("<array>", "array")
DEVICE = EmulatedDevice()


def dirty_pairs(dtype: Any, spread: int, seed: int = 1, count: int = 6000) -> NDArray[Any]:
    """Skewed pairs with loops and copies in both directions; not every id occurs."""
    pairs = np.random.default_rng(seed).zipf(1.4, (count, 2)) % 900 * spread
    pairs[::50, 1] = pairs[::50, 0]
    return pairs.astype(dtype)


def ranked(pairs: NDArray[Any], vertices: int | None = None, **options: Any) -> RankedGraph:
    edges = EdgeList(pairs[:0], ORIGIN, vertices)
    counts = EndCounts(most_slots(edges, len(pairs)), DEVICE)
    counts.add(pairs[len(pairs) // 3 :])
    counts.add(pairs[: len(pairs) // 3])
    return rank_on_device(edges, pairs, DEVICE, counts, **options)


def by_definition(pairs: NDArray[Any], vertices: int | None) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Offsets, heads and slots by rank: ids renamed by ascending raw degree, ties by id, then cleaned."""
    slots = int(pairs.max()) + 1 if vertices is None else vertices
    degrees = np.bincount(pairs.reshape(-1).astype(np.int64), minlength=slots)
    order = np.argsort(degrees, kind="stable")
    order = order if vertices is not None else order[degrees[order] > 0]
    rank = np.zeros(slots, np.uint32)
    rank[order] = np.arange(len(order))
    arcs = sort_pairs_by_arrays(rank[pairs.astype(np.int64)], len(order)).keys
    ends = np.searchsorted(arcs >> np.uint64(32), np.arange(len(order) + 1))
    return ends, arcs.astype(np.uint32), order


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.uint64])
@pytest.mark.parametrize("vertices", [None, 1500])
@pytest.mark.parametrize("consume", [False, True])
def test_arcs_are_those_of_the_definition(dtype: Any, vertices: int | None, consume: bool) -> None:
    pairs = dirty_pairs(dtype, 1)
    given = pairs.copy()
    found = ranked(pairs, vertices, consume=consume)
    assert consume or np.array_equal(pairs, given)
    offsets, heads, order = by_definition(given, vertices)
    graph = found.oriented
    slots = np.arange(found.slot_count) if found.slots is None else found.slots
    assert (graph.order, graph.named_by) == ("raw-degree", "rank")
    assert (graph.offsets.dtype, graph.out_neighbours.dtype, graph.vertex_of.dtype) == (np.uint32,) * 3
    assert np.array_equal(graph.offsets, offsets)
    assert np.array_equal(graph.out_neighbours, heads)
    assert np.array_equal(slots[graph.vertex_of], order)
    assert graph.wedges == sum(d * (d - 1) // 2 for d in np.diff(offsets).tolist())


@pytest.mark.parametrize("dtype", [np.int32, np.uint64])
@pytest.mark.parametrize(("spread", "vertices"), [(1, None), (1, 1500), (3, None), (2_000_003, None)])
def test_the_simple_graph_is_that_of_cleaning(dtype: Any, spread: int, vertices: int | None) -> None:
    pairs = dirty_pairs(dtype, spread)
    simple = ranked(pairs, vertices).simple(np)
    assert_on_device(simple, clean(EdgeList(pairs, ORIGIN, vertices), 1, compiled=False))
    assert_same(simple, clean_on_device(EdgeList(pairs[:0], ORIGIN, vertices), pairs, DEVICE))


@pytest.mark.parametrize("pairs", [[[3, 3]], [[0, 1]], [[1, 0], [0, 1], [0, 1], [1, 0], [1, 1]], [[0, 0]] * 5000])
@pytest.mark.parametrize("vertices", [None, 4])
def test_the_least_graphs(pairs: list[list[int]], vertices: int | None) -> None:
    given = np.array(pairs, np.int64)
    assert_on_device(ranked(given, vertices).simple(np), clean(EdgeList(given, ORIGIN, vertices), 1, compiled=False))


def test_rows_of_many_tiles_and_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = np.asarray(kronecker(10, seed=1).pairs())
    monkeypatch.setattr(clean_arrays, "PART", 1000)
    offsets, heads, _ = by_definition(pairs, None)
    found = ranked(pairs)
    assert np.array_equal(found.oriented.offsets, offsets)
    assert np.array_equal(found.oriented.out_neighbours, heads)
    assert_on_device(found.simple(np), clean(EdgeList(pairs, ORIGIN), 1, compiled=False))


@pytest.mark.parametrize(("pair", "vertices"), [((2, -3), None), ((0, 900), 900), ((900, 2), 900)])
def test_errors_are_those_of_cleaning(pair: tuple[int, int], vertices: int | None) -> None:
    pairs = dirty_pairs(np.int64, 1)
    pairs[777] = pair
    with pytest.raises(InputError) as cleaned:
        clean(EdgeList(pairs, ORIGIN, vertices), 1, compiled=False)
    with pytest.raises(InputError) as refused:
        ranked(pairs, vertices)
    assert str(refused.value) == str(cleaned.value)


def test_the_limit_on_vertices_holds() -> None:
    with pytest.raises(LimitError, match="vertices 4 over the limit of 3"):
        ranked(np.array([[0, 1], [2, 3]]), limits=Limits(vertices=3))


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_ids_that_have_changed_lead_nowhere(dtype: str) -> None:
    pairs = dirty_pairs(dtype, 1)
    edges = EdgeList(pairs[:0], ORIGIN)
    counts = EndCounts(most_slots(edges, len(pairs)), DEVICE)
    counts.add(pairs)
    pairs[5000, 1] = 2**30
    with pytest.raises(InputError, match="<array>: the pairs changed while they were read"):
        rank_on_device(edges, pairs, DEVICE, counts)
