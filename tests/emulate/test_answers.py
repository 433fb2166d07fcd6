"""keystone's answers on a device, without one: counts by vertex and by arc, and every triangle in the CPU's order."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from helpers.graphs import LOCAL_FORMS, LocalForm, fixture_pairs, random_pairs
from numpy.typing import NDArray

import wedgewise as ww
from emulate.copying import CopyingEmulator
from emulate.emulated_cases import ATLAS, all_launches, needs_compiler, on_device
from emulate.emulator import EmulatedDevice
from wedgewise import generate
from wedgewise.algorithms._contract import DeviceWork, Shape
from wedgewise.algorithms.gpu import _keystone_answers as answers
from wedgewise.algorithms.gpu.keystone import ALGORITHM
from wedgewise.errors import PreconditionError
from wedgewise.run.device import PIECE_BYTES, DeviceListing
from wedgewise.stages import DeviceGraph

pytestmark = needs_compiler
NEVER = 2**31 - 1
PREPARE = {
    "triangles": (answers.prepare_triangles, answers.triangles_bytes),
    "edge_support": (answers.prepare_edge_support, answers.edge_support_bytes),
    "list_triangles": (answers.prepare_listing, answers.listing_bytes),
}
for_every_answer = pytest.mark.parametrize("question", PREPARE)


@pytest.fixture(scope="module")
def device() -> CopyingEmulator:
    return CopyingEmulator()


@pytest.fixture(autouse=True)
def zero_is_least(monkeypatch: pytest.MonkeyPatch) -> None:
    """With least_far_loads=0 all pivots have bitmaps, instead of those that are chosen."""
    monkeypatch.setattr(answers, "MIN_LOADS", 0)


@dataclass(frozen=True)
class Answers:
    """What is known of an oriented graph, by id and by arc."""

    triangles: list[int]
    edge_support: list[int]
    list_triangles: list[int]
    triples: list[list[int]]


def expected(graph: DeviceGraph) -> Answers:
    """All answers from products of the upper triangle of the adjacency matrix."""
    from scipy.sparse import csr_array

    values = np.ones(graph.m, np.int64)
    arcs = csr_array((values, graph.out_neighbours.astype(np.int64), graph.offsets.astype(np.int64)), (graph.n,) * 2)
    tails = np.repeat(np.arange(graph.n), np.diff(graph.offsets.astype(np.int64)))
    heads = graph.out_neighbours.astype(np.int64)

    def at_arcs(product: Any) -> NDArray[np.int64]:
        return np.asarray(product.tocsr()[tails, heads]).reshape(-1) if graph.m else np.empty(0, np.int64)

    opened, closed, opposite = at_arcs(arcs @ arcs.T), at_arcs(arcs @ arcs), at_arcs(arcs.T @ arcs)
    lowest = np.bincount(tails, opened, graph.n)
    middle = np.bincount(heads, opened, graph.n)
    highest = np.bincount(heads, closed, graph.n)
    rows = np.split(heads, graph.offsets[1:-1].astype(np.int64)) if graph.m else []
    triples = [
        [a, b, c]
        for arc, (a, b) in enumerate(zip(tails.tolist(), heads.tolist(), strict=True))
        if opened[arc]
        for c in np.intersect1d(rows[a], rows[b]).tolist()
    ]
    supports = opened + closed + opposite
    at_vertices = (lowest + middle + highest).astype(np.int64)
    return Answers(at_vertices.tolist(), supports.tolist(), opened.tolist(), triples)


def done(question: str, graph: DeviceGraph, device: EmulatedDevice, **knobs: int | str) -> DeviceWork:
    """The finished work of a question."""
    work = PREPARE[question][0](graph, ALGORITHM.settings(knobs), device)
    assert not values(work).any()
    work.found.fill(0)
    for launch in all_launches(work):
        launch()
    return work


def values(work: DeviceWork) -> NDArray[Any]:
    assert isinstance(work.filled, np.ndarray)
    return work.filled


def filled(work: DeviceWork, begin: int, end: int) -> list[list[int]]:
    """The triangles that a range of arcs opens."""
    assert work.fill is not None
    triples = np.full(3 * int(values(work)[begin:end].sum(dtype=np.int64)), NEVER, np.uint32)
    work.fill(begin, end, triples)
    return triples.reshape(-1, 3).tolist()


def check(graph: DeviceGraph, device: EmulatedDevice, **knobs: int | str) -> None:
    """All answers are right, of their types, and agree with each other."""
    truth = expected(graph)
    works = {question: done(question, graph, device, **knobs) for question in PREPARE}
    total = len(truth.triples)
    assert {int(work.found[0]) for work in works.values()} == {total}
    arrays = {question: values(work) for question, work in works.items()}
    assert [str(array.dtype) for array in arrays.values()] == ["uint64", "uint32", "uint32"]
    for question, array in arrays.items():
        assert array.tolist() == getattr(truth, question), question
    assert sum(arrays["triangles"].tolist()) == sum(arrays["edge_support"].tolist()) == 3 * total
    assert filled(works["list_triangles"], 0, graph.m) == truth.triples


def formed(pairs: Any, n: int | None = None, order: str = "degree", offsets: Any = np.uint32) -> DeviceGraph:
    return on_device(ww.Graph(np.asarray(pairs, np.int64).reshape(-1, 2), n=n), order, "rank", offsets)


@cache
def kronecker(scale: int, order: str = "degree", offsets: Any = np.uint32) -> DeviceGraph:
    return formed(generate.kronecker(scale, seed=3).pairs(), 1 << scale, order, offsets)


@cache
def long_rows(offsets: Any = np.uint32) -> DeviceGraph:
    """By id, a star and a book whose spine comes first have rows of hundreds; random arcs lie across them."""
    star = np.stack([np.zeros(300, np.int64), np.arange(1, 301)], axis=1)
    book = generate.book(200).pairs().astype(np.int64) + 2
    return formed(np.concatenate([star, book, random_pairs(300, 600, seed=1)]), order="id", offsets=offsets)


GRAPHS: dict[str, Callable[[], DeviceGraph]] = {
    "no vertex": lambda: formed([], 0),
    "no edge": lambda: formed([], 5),
    "one edge": lambda: formed([(0, 1)]),
    "triangle": lambda: formed([(0, 1), (1, 2), (0, 2)]),
    "kronecker-6": lambda: kronecker(6),
    "kronecker-8": lambda: kronecker(8),
    "random": lambda: formed(random_pairs(80, 700, seed=2), 90),
    "long rows": long_rows,
}


@pytest.fixture
def small_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Little fills a launch, a share, the counters of a row."""
    for name, value in {
        "LAUNCH_COST": 1000, "LAUNCH_SEARCHES": 64, "LAUNCH_WRITES": 11, "MIN_SHARE": 20, "ITEM_COST": 1,
        "PIVOT_COST": 1, "ROW_COUNTERS": 3,
    }.items():  # fmt: skip
        monkeypatch.setattr(answers, name, value)


@pytest.mark.parametrize("least_far_loads", [0, 1, NEVER])
@pytest.mark.parametrize("graph", GRAPHS)
def test_answers(graph: str, least_far_loads: int, device: CopyingEmulator) -> None:
    check(GRAPHS[graph](), device, least_far_loads=least_far_loads, block=64)


@pytest.mark.deep
@pytest.mark.parametrize("least_far_loads", [0, 1])
@pytest.mark.parametrize("hubs", [1, 33])
@pytest.mark.parametrize("graph", ["triangle", "kronecker-6", "long rows"])
@pytest.mark.usefixtures("small_everything")
def test_answers_over_many_small_launches(graph: str, hubs: int, least_far_loads: int, device: CopyingEmulator) -> None:
    check(GRAPHS[graph](), device, least_far_loads=least_far_loads, hubs=hubs, block=32)


@pytest.mark.parametrize("least_far_loads", [0, 1, NEVER])
@pytest.mark.parametrize("graph", [kronecker(7, offsets=np.uint64), long_rows(np.uint64)], ids=["skewed", "long rows"])
def test_offsets_of_64_bits(graph: DeviceGraph, least_far_loads: int, device: CopyingEmulator) -> None:
    check(graph, device, least_far_loads=least_far_loads, hubs=50, block=64)


@pytest.mark.parametrize("block", [1, 32, 96, 256, 1024])
def test_block_sizes(block: int, device: CopyingEmulator) -> None:
    check(kronecker(7), device, block=block, least_far_loads=1)


@pytest.mark.parametrize("order", ALGORITHM.orders)
def test_orders(order: str, device: CopyingEmulator) -> None:
    check(kronecker(7, order), device, block=64, least_far_loads=1)


@pytest.mark.parametrize("counters", [0, 1, 200, 201, 202, 203])
def test_places_behind_the_counters_of_a_row(
    counters: int, device: CopyingEmulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "ROW_COUNTERS", counters)
    check(long_rows(), device, least_far_loads=0, block=64)


def test_many_pivots_at_the_least_share(device: CopyingEmulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MIN_SHARE", 1)
    check(formed(generate.complete(40).pairs()), device, least_far_loads=0, block=32)


def test_several_launches_are_made_of_what_is_too_much_for_one(device: CopyingEmulator, small_everything: None) -> None:
    graph = kronecker(8)
    pivoting = answers.prepare_edge_support(graph, ALGORITHM.settings({"least_far_loads": 0}), device)
    searching = answers.prepare_edge_support(graph, ALGORITHM.settings({"least_far_loads": NEVER}), device)
    assert min(len(list(all_launches(work))) for work in (pivoting, searching)) > 10


@for_every_answer
def test_tests_are_those_of_the_tails_or_of_the_shorter_lists(question: str, device: CopyingEmulator) -> None:
    graph = kronecker(7)
    offsets, heads = graph.offsets.astype(np.int64), graph.out_neighbours.astype(np.int64)
    rows = offsets[1:] - offsets[:-1]
    tails = np.repeat(np.arange(graph.n), rows)
    behind, row = offsets[1:][tails] - np.arange(graph.m) - 1, rows[heads]
    assert int(done(question, graph, device, least_far_loads=0).found[1]) == behind[row > 0].sum()
    assert int(done(question, graph, device, least_far_loads=NEVER).found[1]) == np.minimum(behind, row).sum()


@for_every_answer
def test_a_second_run_gives_the_same(question: str, device: CopyingEmulator) -> None:
    work = done(question, kronecker(7), device, least_far_loads=1)
    first, found = values(work).tolist(), work.found.tolist()
    work.found.fill(0)
    for launch in all_launches(work):
        launch()
    assert (values(work).tolist(), work.found.tolist()) == (first, found)


def test_the_atlas(device: CopyingEmulator) -> None:
    check(formed(fixture_pairs(ATLAS), 8475), device)


@pytest.mark.parametrize("form", LOCAL_FORMS, ids=lambda form: form.stream.name)
@pytest.mark.parametrize("least_far_loads", [1, NEVER])
def test_closed_forms(form: LocalForm, least_far_loads: int, device: CopyingEmulator) -> None:
    graph = formed(form.stream.pairs(), form.stream.n)
    tails = np.repeat(np.arange(graph.n), np.diff(graph.offsets.astype(np.int64)))
    heads = graph.out_neighbours.astype(np.int64)
    degrees = np.bincount(np.concatenate([tails, heads]), minlength=graph.n).tolist()
    at_vertices = values(done("triangles", graph, device, least_far_loads=least_far_loads))
    at_arcs = values(done("edge_support", graph, device, least_far_loads=least_far_loads))
    assert at_vertices.tolist() == [form.of_vertex(degree) if degree else 0 for degree in degrees]
    assert at_arcs.tolist() == [
        form.of_edge(degrees[a], degrees[b]) for a, b in zip(tails.tolist(), heads.tolist(), strict=True)
    ]


def test_vertices_and_edges_are_counted_as_on_the_cpu(device: CopyingEmulator) -> None:
    graph = ww.Graph(generate.kronecker(8, seed=5).pairs())
    form = on_device(graph, "degree", "rank")
    at_vertices = np.empty(form.n, np.uint64)
    at_vertices[form.vertex_of] = values(done("triangles", form, device))
    np.testing.assert_array_equal(at_vertices, ww.triangles(graph, device="cpu"))
    tails = np.repeat(np.arange(form.n), np.diff(form.offsets.astype(np.int64)))
    ends = np.sort(form.vertex_of[np.stack([tails, form.out_neighbours], axis=1)], axis=1)
    by_edge = np.lexsort((ends[:, 1], ends[:, 0]))
    np.testing.assert_array_equal(
        values(done("edge_support", form, device))[by_edge], ww.edge_support(graph, device="cpu")
    )


def listing(graph: ww.Graph, device: CopyingEmulator, piece: int) -> DeviceListing:
    form = on_device(graph, "degree", "rank")
    return DeviceListing(done("list_triangles", form, device, block=64), form, device, piece * PIECE_BYTES)


@pytest.mark.parametrize("piece", [7, 50, 10_000])
def test_a_listing_is_that_of_the_cpu(piece: int, device: CopyingEmulator) -> None:
    graph = ww.Graph(random_pairs(40, 250, seed=4), n=44)
    expected_rows = ww.list_triangles(graph, algorithm="keystone", device="cpu")
    listed, reported = listing(graph, device, piece), []
    rows = listed.stretch(0, listed.total, lambda done, tasks: reported.append((done, tasks)))
    assert rows.dtype == np.uint32
    np.testing.assert_array_equal(rows, expected_rows)
    pieces = -(-len(rows) // piece)
    assert reported == [(number + 1, pieces) for number in range(pieces)]


def test_every_cut_of_a_listing_is_a_slice_of_the_whole(device: CopyingEmulator) -> None:
    graph = ww.Graph(random_pairs(12, 40, seed=7))
    listed = listing(graph, device, 5)
    rows = ww.list_triangles(graph, algorithm="keystone", device="cpu").tolist()
    assert listed.total == len(rows) > 20
    for start in range(len(rows) + 1):
        for stop in range(start, len(rows) + 1):
            assert listed.stretch(start, stop).tolist() == rows[start:stop]


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_batches_join_to_the_whole(size: int, device: CopyingEmulator) -> None:
    graph = ww.Graph(generate.complete(12).pairs())
    listed = listing(graph, device, 100)
    batches = list(listed.batches(3, listed.total, size))
    assert {len(batch) for batch in batches[:-1]} <= {size}
    rows = ww.list_triangles(graph, algorithm="keystone", device="cpu")
    np.testing.assert_array_equal(np.concatenate(batches), rows[3:])


@pytest.mark.usefixtures("small_everything")
def test_any_range_of_arcs_is_written_alone(device: CopyingEmulator) -> None:
    graph = formed(random_pairs(14, 50, seed=3))
    work, truth = done("list_triangles", graph, device, least_far_loads=1, block=32), expected(graph)
    before = np.concatenate([[0], np.cumsum(truth.list_triangles)]).tolist()
    for begin in range(graph.m + 1):
        for end in range(begin, graph.m + 1, 5):
            assert filled(work, begin, end) == truth.triples[before[begin] : before[end]]


def test_a_listing_without_triangles_is_empty(device: CopyingEmulator) -> None:
    for graph in (ww.Graph(np.empty((0, 2), np.int64), n=4), ww.Graph(generate.hypercube(4).pairs())):
        listed = listing(graph, device, 10)
        assert listed.total == 0
        assert listed.stretch(0, 0).shape == (0, 3)
        assert list(listed.batches(0, 0, 10)) == []


@for_every_answer
def test_too_many_arcs_are_refused_before_memory_is_taken(question: str, device: CopyingEmulator) -> None:
    endless = np.broadcast_to(np.uint32(0), 2**32)
    graph = DeviceGraph(1, np.array([0, 2**32], np.uint64), endless, np.zeros(1, np.uint32), "degree", "rank", 2**63)
    with pytest.raises(PreconditionError, match="2\\^32"):
        PREPARE[question][0](graph, ALGORITHM.settings(None), device)


@for_every_answer
@pytest.mark.parametrize("least_far_loads", [0, NEVER])
def test_memory_stays_within_what_is_announced(question: str, least_far_loads: int, device: CopyingEmulator) -> None:
    graph, knobs = kronecker(10), {"least_far_loads": least_far_loads}
    done(question, graph, device, **knobs)
    tracemalloc.start()
    try:
        done(question, graph, device, **knobs)
        _now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    shape = Shape(graph.n, graph.m, graph.wedges)
    assert peak <= PREPARE[question][1](shape, ALGORITHM.settings(knobs)) + (64 << 10)
