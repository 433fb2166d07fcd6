"""Cleaning, orienting and relabelling: kernels, arrays and devices make the same bytes, and they mean what they say."""

from __future__ import annotations

import dataclasses
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from emulate.emulator import EmulatedDevice
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import wedgewise as ww
from wedgewise.errors import InputError, LimitError, UnknownNameError
from wedgewise.machine.jit import JIT_DISABLED, kernel_view
from wedgewise.prepare import clean_arrays
from wedgewise.prepare.clean import clean, clean_device_bytes, clean_on_device, number_labels
from wedgewise.prepare.clean_arrays import sort_pairs_by_arrays
from wedgewise.prepare.orient import (
    ORDERS,
    RELABELLINGS,
    arcs_of_edges,
    arcs_of_edges_on_device,
    orient,
    orient_device_bytes,
    orient_on_device,
    peeling_rounds,
    relabel,
    relabel_on_device,
)
from wedgewise.prepare.orient_arrays import expected_wedges, peeling_rounds_by_arrays
from wedgewise.prepare.radix import Digits, sort_pairs
from wedgewise.stages import EdgeList, OrientedGraph, Origin, SimpleGraph
from wedgewise.stages.limits import Limits

ORIGIN = Origin("<array>", "array")
DEVICE = EmulatedDevice()


def random_pairs(seed: int) -> NDArray[Any]:
    rng = np.random.default_rng(seed)
    ids, count = int(rng.integers(1, 300)), int(rng.integers(0, 2000))
    dtype = [np.int32, np.int64, np.uint32, np.uint64][seed % 4]
    spread = 1 if seed % 3 else 100_003
    return (rng.integers(0, ids, (count, 2)) * spread).astype(dtype)


def edge_list(pairs: Any, vertices: int | None = None) -> EdgeList:
    return EdgeList(np.asarray(pairs), ORIGIN, vertices)


def assert_same(first: Any, second: Any) -> None:
    for field in dataclasses.fields(first):
        a, b = getattr(first, field.name), getattr(second, field.name)
        if isinstance(a, np.ndarray):
            assert a.dtype == b.dtype, field.name
            assert np.array_equal(a, b), field.name
        else:
            assert a == b, field.name


def assert_on_device(on_device: Any, host: Any) -> None:
    """Every field of the device's graph holds what the host's holds; labels that are slots are left out there."""
    for field in dataclasses.fields(on_device):
        a, b = getattr(on_device, field.name), getattr(host, field.name)
        if field.name == "labels" and a is None:
            assert b is host.slots is not None
        elif isinstance(b, np.ndarray):
            assert a.dtype == b.dtype, field.name
            assert np.array_equal(a, b), field.name
        else:
            assert a == b, field.name


def assert_prepared_alike(edges: EdgeList) -> None:
    """Host kernels and the device make the same simple graph, orientations, relabellings and places of edges."""
    given_pairs = edges.pairs.copy()
    host = clean(edges, 1, compiled=True)
    no_pairs = dataclasses.replace(edges, pairs=np.empty((0, 2), edges.pairs.dtype))
    device = clean_on_device(no_pairs, edges.pairs, DEVICE)
    assert np.array_equal(edges.pairs, given_pairs)
    assert_on_device(device, host)
    for order in ORDERS:
        oriented, on_device = orient(host, order, compiled=True), orient_on_device(device, order, DEVICE)
        assert_on_device(on_device, oriented)
        for by in RELABELLINGS:
            renamed, there = relabel(oriented, by, compiled=True), relabel_on_device(on_device, by, DEVICE)
            assert_on_device(there, renamed)
            places = arcs_of_edges_on_device(device, there, DEVICE)
            assert places.dtype == renamed.offsets.dtype
            assert np.array_equal(places, arcs_of_edges(host, renamed, compiled=True))


def brute_force_clean(pairs: NDArray[Any]) -> tuple[list[int], list[tuple[int, int]], dict[str, int]]:
    """Labels, edges and counts by the definition, one pair at a time."""
    labels = sorted({int(x) for x in pairs.ravel()})
    number = {label: index for index, label in enumerate(labels)}
    seen: set[tuple[int, int]] = set()
    counts = {"loops": 0, "duplicates": 0, "reversed_copies": 0}
    for u, v in pairs.tolist():
        if u == v:
            counts["loops"] += 1
        elif (u, v) in seen:
            counts["duplicates"] += 1
        else:
            counts["reversed_copies"] += (v, u) in seen
            seen.add((u, v))
    edges = sorted({(min(number[u], number[v]), max(number[u], number[v])) for u, v in seen})
    return labels, edges, counts


@pytest.mark.parametrize("most", [1, 7, 1000])
@pytest.mark.parametrize("seed", range(6))
def test_cores_are_peeled_in_steps(seed: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a step may do: it ends in the middle of rounds, between two of them, behind the search for the next."""
    graph = clean(edge_list(random_pairs(seed)), 1, compiled=True)
    at_once = peeling_rounds(graph, 1)
    assert at_once.tolist() == peeling_rounds_by_arrays(graph).tolist()
    monkeypatch.setattr("wedgewise.prepare.orient.PEEL_ARCS", most)
    assert peeling_rounds(graph, 2).tolist() == at_once.tolist()


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("compiled", [False, True])
def test_clean_is_what_the_definition_says(seed: int, compiled: bool) -> None:
    pairs = random_pairs(seed)
    graph = clean(edge_list(pairs), 2, compiled=compiled)
    labels, edges, counts = brute_force_clean(pairs)
    assert [int(label) for label in graph.labels] == labels
    assert graph.edges().tolist() == [list(edge) for edge in edges]
    assert graph.degrees.tolist() == np.bincount(np.array(edges, int).ravel(), minlength=len(labels)).tolist()
    report = graph.report
    assert {name: getattr(report, name) for name in counts} == counts
    assert report.pairs == report.edges + report.loops + report.duplicates + report.reversed_copies


@pytest.mark.parametrize("seed", range(12 if JIT_DISABLED else 24))
@pytest.mark.parametrize("threads", [1, 3])
def test_kernels_and_arrays_prepare_the_same_bytes(seed: int, threads: int) -> None:
    pairs = random_pairs(seed)
    vertices = int(pairs.max(initial=0)) + 5 if seed % 3 == 1 else None
    drop_leaves = seed % 5 == 0
    by_arrays = clean(edge_list(pairs, vertices), threads, drop_leaves=drop_leaves, compiled=False)
    by_kernels = clean(edge_list(pairs, vertices), threads, drop_leaves=drop_leaves, compiled=True)
    assert_same(by_arrays, by_kernels)
    for order in ORDERS:
        first = orient(by_arrays, order, threads=threads, compiled=False)
        second = orient(by_kernels, order, threads=threads, compiled=True)
        assert_same(first, second)
        for name in RELABELLINGS:
            assert_same(relabel(first, name, compiled=False), relabel(second, name, compiled=True))


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(24))
def test_the_device_prepares_the_same_bytes(seed: int) -> None:
    pairs = random_pairs(seed)
    assert_prepared_alike(edge_list(pairs, int(pairs.max(initial=0)) + 5 if seed % 3 == 1 else None))


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=40),
    st.sampled_from([np.int32, np.uint32, np.int64, np.uint64]),
    st.sampled_from([1, 200_000_000]),
    st.integers(1, 9),
)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_parts_of_any_length_give_the_same_bytes(
    pairs: list[tuple[int, int]], dtype: Any, spread: int, part: int
) -> None:
    array = np.array(pairs, dtype).reshape(-1, 2) * dtype(spread)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clean_arrays, "PART", part)
        assert_prepared_alike(edge_list(array))


@pytest.mark.parametrize("pairs", [[], [[3, 3]], [[0, 0]], [[1, 0], [0, 1], [0, 1], [1, 0], [1, 1]]])
@pytest.mark.parametrize("vertices", [None, 4])
def test_the_device_takes_the_least_graphs(pairs: list[list[int]], vertices: int | None) -> None:
    assert_prepared_alike(edge_list(np.array(pairs, np.int64).reshape(-1, 2), vertices))


@pytest.mark.parametrize("names", [["a", "b", "c"], np.array([7, 5, 9])])
def test_the_device_keeps_names_and_what_reading_dropped(names: Any) -> None:
    pairs = np.array([[0, 2], [2, 0], [1, 1]], np.int32)
    edges = EdgeList(pairs, ORIGIN, len(names), names, ignored_columns=(2, 3))
    assert_prepared_alike(edges)
    assert clean_on_device(edges, pairs, DEVICE).labels is names


def test_the_device_takes_pairs_that_lie_in_columns() -> None:
    rows = np.random.default_rng(5).integers(0, 50, (2, 300)).astype(np.int32)
    assert_on_device(clean_on_device(edge_list(rows.T[:0]), rows.T, DEVICE), clean(edge_list(rows.T), 1))


@pytest.mark.parametrize(
    ("ids", "spread", "most_per_pair"), [(5_000, 1, 17), (99_000, 1, 17), (5_000, 10**9, 33), (10**6, 10**9, 33)]
)
def test_memory_on_the_device_is_as_stated(
    monkeypatch: pytest.MonkeyPatch, ids: int, spread: int, most_per_pair: int
) -> None:
    """NumPy sorts in place: what the sort of a GPU takes besides is in the formulas, not in the measured peak."""
    monkeypatch.setattr(clean_arrays, "PART", 1 << 9)
    pairs = np.random.default_rng(1).integers(0, ids, (50_000, 2)) * spread
    empty = edge_list(pairs[:0])
    peak, graph = peak_bytes(lambda: clean_on_device(empty, pairs, DEVICE))
    assert peak <= clean_device_bytes(len(pairs), pairs.itemsize, graph.slot_count)
    assert peak <= most_per_pair * len(pairs) + 24 * graph.slot_count + clean_arrays.temporary_bytes(len(pairs))
    peak, oriented = peak_bytes(lambda: orient_on_device(graph, "degree", DEVICE))
    assert peak <= orient_device_bytes(graph.slot_count, oriented.m)
    peak, oriented = peak_bytes(lambda: orient_on_device(graph, "core", DEVICE))
    assert peak <= 2 * orient_device_bytes(graph.slot_count, oriented.m)


def peak_bytes(make: Callable[[], Any]) -> tuple[int, Any]:
    """What making something takes at most, and the thing."""
    tracemalloc.start()
    try:
        made = make()
        return tracemalloc.get_traced_memory()[1], made
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("seed", range(8))
def test_pairs_that_may_be_overwritten_give_the_same_graph(seed: int) -> None:
    pairs: NDArray[Any] = np.random.default_rng(seed).integers(0, 400, (3000, 2)).astype("u4" if seed % 2 else "i4")
    kept = clean(edge_list(pairs), 2, compiled=True)
    assert_same(kept, clean(edge_list(pairs.copy()), 2, compiled=True, consume=True))
    read_only = pairs.copy()
    read_only.flags.writeable = False
    assert_same(kept, clean(edge_list(read_only), 2, compiled=True, consume=True))
    assert np.array_equal(read_only, pairs)


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.uint64])
def test_the_callers_array_is_never_changed(dtype: Any) -> None:
    pairs: NDArray[Any] = np.random.default_rng(3).integers(0, 4000, (3000, 2)).astype(dtype)
    before = pairs.copy()
    ww.count(ww.Graph(pairs), algorithm="keystone")
    assert np.array_equal(pairs, before)


def test_many_buckets_and_chunks_sort_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wedgewise.prepare.radix.BUCKET_KEYS", 16)
    monkeypatch.setattr("wedgewise.prepare.radix.CHUNK_PAIRS", 100)
    pairs = np.random.default_rng(7).integers(0, 3000, (5000, 2)).astype(np.uint32)
    assert Digits.choose(3000, 5000).buckets > 100
    assert_same(sort_pairs(pairs, 3000, 4), sort_pairs_by_arrays(pairs, 3000))


def arcs(graph: OrientedGraph) -> set[tuple[int, int]]:
    """The arcs as pairs of vertices of the simple graph."""
    tails = np.repeat(np.arange(graph.n), graph.out_degrees.astype(np.int64))
    ends = zip(graph.vertex_of[tails].tolist(), graph.vertex_of[graph.out_neighbours].tolist(), strict=True)
    return set(ends)


def simple(seed: int = 4) -> SimpleGraph:
    return clean(edge_list(np.random.default_rng(seed).integers(0, 60, (400, 2))), 1, compiled=False)


@pytest.mark.parametrize("order", ORDERS)
def test_every_edge_becomes_one_arc_and_rows_are_sorted(order: str) -> None:
    graph = simple()
    oriented = orient(graph, order, compiled=False)
    assert {(min(arc), max(arc)) for arc in arcs(oriented)} == {tuple(edge) for edge in graph.edges().tolist()}
    assert oriented.m == graph.m
    for u in range(oriented.n):
        row = oriented.out_neighbours[oriented.offsets[u] : oriented.offsets[u + 1]]
        assert (np.diff(row.astype(np.int64)) > 0).all()
        assert (row > u).all(), "with ids by rank every arc goes up"


def test_no_edges_have_no_wedges_to_expect() -> None:
    assert expected_wedges(np.zeros(3, np.int64)) == 0
    assert expected_wedges(np.array([2, 2, 2])) == 1  # a triangle


def test_orders_direct_from_low_to_high() -> None:
    graph = simple()
    by_degree = orient(graph, "degree", compiled=False)
    ranked = [(int(graph.degrees[v]), int(v)) for v in by_degree.vertex_of]
    assert ranked == sorted(ranked)
    by_id = orient(graph, "id", compiled=False)
    assert by_id.vertex_of.tolist() == list(range(graph.n))


def degeneracy(edges: list[list[int]], n: int) -> int:
    neighbours = [set() for _ in range(n)]  # type: list[set[int]]
    for u, v in edges:
        neighbours[u].add(v)
        neighbours[v].add(u)
    left, bound = set(range(n)), 0
    while left:
        least = min(left, key=lambda v: len(neighbours[v]))
        bound = max(bound, len(neighbours[least]))
        for other in neighbours[least]:
            neighbours[other].discard(least)
        left.discard(least)
    return bound


@pytest.mark.parametrize("seed", range(5))
def test_core_order_bounds_out_degrees_by_the_degeneracy(seed: int) -> None:
    graph = simple(seed)
    oriented = orient(graph, "core", compiled=False)
    assert int(oriented.out_degrees.max()) == degeneracy(graph.edges().tolist(), graph.n)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("by", RELABELLINGS)
@pytest.mark.parametrize("seed", range(4))
def test_every_edge_is_found_among_the_arcs(seed: int, by: str, compiled: bool) -> None:
    simple = clean(edge_list(random_pairs(seed)), 1)
    oriented = relabel(orient(simple), by)
    tails = np.repeat(np.arange(oriented.n), oriented.out_degrees)
    arcs = np.sort(oriented.vertex_of[np.stack([tails, oriented.out_neighbours], axis=1)], axis=1)
    places = arcs_of_edges(simple, oriented, threads=2, compiled=compiled)
    assert places.dtype == oriented.offsets.dtype
    assert np.array_equal(arcs[places], simple.edges())


@pytest.mark.parametrize("by", RELABELLINGS)
def test_relabelling_keeps_directions(by: str) -> None:
    oriented = orient(simple(), "degree", compiled=False)
    renamed = relabel(oriented, by, compiled=False)
    assert arcs(renamed) == arcs(oriented)
    assert sorted(renamed.vertex_of.tolist()) == list(range(oriented.n))
    assert renamed.named_by == by


def test_indegree_ids_descend_by_the_indegree_of_the_oriented_graph() -> None:
    renamed = relabel(orient(simple(), "degree", compiled=False), "indegree", compiled=False)
    indegree = np.bincount(renamed.out_neighbours, minlength=renamed.n)
    assert (np.diff(indegree) <= 0).all()


def collective_by_hand(graph: OrientedGraph) -> list[int]:
    rows = [graph.out_neighbours[graph.offsets[u] : graph.offsets[u + 1]].tolist() for u in range(graph.n)]
    collective = [sum(len(rows[v]) for v in row) for row in rows]
    numbered: list[int] = []
    for u in sorted(range(graph.n), key=lambda u: (-collective[u], u)):
        numbered += [v for v in rows[u] if v not in numbered]
    return numbered + [v for v in range(graph.n) if v not in numbered]


def test_collective_ids_follow_the_two_steps_of_the_paper() -> None:
    oriented = orient(simple(), "degree", compiled=False)
    expected = oriented.vertex_of[collective_by_hand(oriented)]
    assert relabel(oriented, "collective", compiled=False).vertex_of.tolist() == expected.tolist()


def test_classes_put_large_out_degrees_first_in_collective_order() -> None:
    rng = np.random.default_rng(1)
    dense = np.argwhere(rng.random((260, 260)) < 0.9)
    sparse = rng.integers(0, 900, (1500, 2))
    oriented = orient(clean(edge_list(np.concatenate([dense, sparse])), 1, compiled=False), "id", compiled=False)
    renamed = relabel(oriented, "classes", compiled=False)
    out_degrees = renamed.out_degrees.astype(int)
    group = np.where(out_degrees > 100, 0, np.where(out_degrees >= 2, 1, 2))
    assert set(group) == {0, 1, 2}
    assert (np.diff(group) >= 0).all()
    place = {vertex: index for index, vertex in enumerate(relabel(oriented, "collective").vertex_of.tolist())}
    for number in range(3):
        places = [place[vertex] for vertex in renamed.vertex_of[group == number].tolist()]
        assert places == sorted(places)


def test_isolated_vertices_stay_when_they_are_named() -> None:
    looped = clean(edge_list([[5, 5], [1, 2]]), 1)
    assert list(looped.labels) == [1, 2, 5]
    assert looped.degrees.tolist() == [1, 1, 0]
    declared = clean(edge_list([[0, 1]], vertices=4), 1)
    assert (declared.n, list(declared.labels)) == (4, [0, 1, 2, 3])


def test_leaves_are_dropped_in_one_pass() -> None:
    path_with_triangle = [[0, 1], [1, 2], [2, 0], [2, 3], [3, 4]]
    graph = clean(edge_list(path_with_triangle), 1, drop_leaves=True)
    assert list(graph.labels) == [0, 1, 2, 3]
    assert graph.edges().tolist() == [[0, 1], [0, 2], [1, 2], [2, 3]]
    assert (graph.report.leaves_dropped, graph.degrees.tolist()) == (1, [2, 2, 3, 1])


def test_sparse_and_huge_labels_are_numbered_in_order() -> None:
    pairs = np.array([[2**63 - 1, 7], [7, 10**12]], np.uint64)
    for compiled in (False, True):
        labels, numbered = number_labels(pairs, 2, compiled=compiled)
        assert labels.tolist() == [7, 10**12, 2**63 - 1]
        assert numbered.tolist() == [[2, 0], [0, 1]]
    assert [int(x) for x in clean(edge_list(pairs), 1).labels] == labels.tolist()


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
@pytest.mark.parametrize("spread", [1, 9, 10**6])
def test_labels_of_any_spread_are_numbered_alike(dtype: Any, spread: int) -> None:
    rng = np.random.default_rng(spread)
    clustered = np.concatenate([rng.integers(0, 500, (300, 2)), 10**9 + rng.integers(0, 2000, (300, 2)) * spread])
    pairs = clustered.astype(dtype)
    by_arrays, by_kernels = (number_labels(pairs, 2, compiled=compiled) for compiled in (False, True))
    assert np.array_equal(by_arrays[0], by_kernels[0])
    assert np.array_equal(by_arrays[1], by_kernels[1])


@pytest.mark.parametrize(
    ("pairs", "vertices", "message"),
    [
        ([[0, 1], [2, -3]], None, "<array>: pair 1 is (2, -3): vertex ids must not be negative"),
        (
            [[0, 4]],
            4,
            "<array>: pair 0 is (0, 4), but there are only 4 vertices (0 … 3); pass a larger n or leave it out",
        ),
    ],
)
def test_bad_ids_are_named(pairs: list[list[int]], vertices: int | None, message: str) -> None:
    edges = edge_list(pairs, vertices)
    for refuse in (lambda: clean(edges, 1), lambda: clean_on_device(edges, edges.pairs, DEVICE)):
        with pytest.raises(InputError) as caught:
            refuse()
        assert str(caught.value) == message


def test_labels_beyond_63_bits_are_refused() -> None:
    edges = edge_list(np.array([[2**63, 1]], np.uint64))
    with pytest.raises(InputError, match="beyond 2\\^63"):
        clean(edges, 1)
    with pytest.raises(InputError, match="beyond 2\\^63"):
        clean_on_device(edges, edges.pairs, DEVICE)


def test_the_limit_on_vertices_holds() -> None:
    with pytest.raises(LimitError, match="vertices 4 over the limit of 3"):
        clean(edge_list([[0, 1], [2, 3]]), 1, limits=Limits(vertices=3))
    edges = edge_list([[0, 1], [2, 3]])
    with pytest.raises(LimitError, match="vertices 4 over the limit of 3"):
        clean_on_device(edges, edges.pairs, DEVICE, limits=Limits(vertices=3))


def test_unknown_orders_are_refused_with_the_list() -> None:
    with pytest.raises(UnknownNameError, match="degree, core, id"):
        orient(simple(), "random")
    with pytest.raises(UnknownNameError, match="rank, indegree, collective, classes"):
        relabel(orient(simple()), "random")
    edges = edge_list([[0, 1], [2, 3]])
    graph = clean_on_device(edges, edges.pairs, DEVICE)
    with pytest.raises(UnknownNameError, match="degree, core, id"):
        orient_on_device(graph, "random", DEVICE)
    with pytest.raises(UnknownNameError, match="rank, indegree, collective, classes"):
        relabel_on_device(orient_on_device(graph, "id", DEVICE), "random", DEVICE)


def test_kernel_view_shows_the_same_memory_as_unsigned() -> None:
    read_only = np.arange(6, dtype=np.int32)
    read_only.flags.writeable = False
    for array in (read_only, np.arange(6, dtype=np.uint32).reshape(3, 2), read_only[:0]):
        view = kernel_view(array)
        assert view.flags.c_contiguous
        assert view.dtype == np.uint32
        assert view.tolist() == array.ravel().tolist()
    assert kernel_view(read_only).ctypes.data == read_only.ctypes.data
    with pytest.raises(TypeError):
        kernel_view(np.arange(12)[::2])
