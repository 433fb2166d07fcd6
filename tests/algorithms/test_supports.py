"""Per-vertex counts, per-edge supports and listings of the compiled engine, against sets of neighbours."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import wedgewise as ww
from wedgewise import generate
from wedgewise.algorithms import _ranges, find
from wedgewise.algorithms._contract import Shape, Work
from wedgewise.algorithms.cpu import _keystone_close, _keystone_in_neighbours, _keystone_supports
from wedgewise.algorithms.cpu._records import rows_of
from wedgewise.machine.jit import kernel
from wedgewise.machine.primitives import BLOCK_WORDS, MAX_ROWS, PLANES, sum_columns
from wedgewise.machine.threads import run_tasks
from wedgewise.stages import OrientedGraph

ENGINE = find("keystone", "cpu")
ALL = 1 << 30
QUESTIONS = ("triangles", "edge_support", "list_triangles")


@dataclass(frozen=True)
class Answers:
    """What the engine says about one oriented graph."""

    total: int
    vertices: list[int]
    arcs: list[int]
    opened: list[int]
    triangles: list[tuple[int, ...]]


def answer(question: str, graph: OrientedGraph, threads: int, **knobs: int) -> tuple[Work, int]:
    """Run the passes of one question; the work, and the triangles that all passes found together."""
    work = ENGINE.on_cpu(question).prepare(graph, ENGINE.settings(knobs), threads)
    found = 0
    for step in work.passes:
        workspaces: dict[int, Any] = {}

        def run(task: int, worker: int, step: Any = step, workspaces: dict[int, Any] = workspaces) -> int:
            if worker not in workspaces:
                workspaces[worker] = step.workspace()
            return int(step.run(int(step.bounds[task]), int(step.bounds[task + 1]), workspaces[worker])[0])

        found += sum(run_tasks(run, len(step.bounds) - 1, threads))
    return work, found


def listed(work: Work, begin: int, end: int) -> NDArray[np.uint32]:
    """The triangles that a range of arcs opens, one per row."""
    assert work.filled is not None
    assert work.fill is not None
    triples = np.empty(3 * int(work.filled[begin:end].sum(dtype=np.int64)), np.uint32)
    work.fill(begin, end, triples, work.passes[0].workspace())
    return triples.reshape(-1, 3)


def all_answers(graph: OrientedGraph, threads: int = 1, **knobs: int) -> Answers:
    (by_vertex, total), (by_arc, also), (listing, too) = (answer(q, graph, threads, **knobs) for q in QUESTIONS)
    assert total == also == too
    assert by_vertex.filled is not None
    assert by_arc.filled is not None
    assert listing.filled is not None
    filled = (by_vertex.filled, by_arc.filled, listing.filled)
    assert [str(array.dtype) for array in filled] == ["uint64", "uint32", "uint32"]
    triangles = [tuple(row) for row in listed(listing, 0, graph.m).tolist()]
    return Answers(total, by_vertex.filled.tolist(), by_arc.filled.tolist(), listing.filled.tolist(), triangles)


def expected(graph: OrientedGraph) -> Answers:
    """The same from sets of out-neighbours."""
    offsets = graph.offsets.tolist()
    rows = [graph.out_neighbours[offsets[a] : offsets[a + 1]].tolist() for a in range(graph.n)]
    place = {(a, b): offsets[a] + i for a, row in enumerate(rows) for i, b in enumerate(row)}
    vertices, arcs, opened = [0] * graph.n, [0] * graph.m, [0] * graph.m
    triangles: list[tuple[int, ...]] = []
    for a, row in enumerate(rows):
        for b, c in combinations(row, 2):
            if (b, c) in place:
                triangles.append((a, b, c))
                opened[place[a, b]] += 1
                for arc in ((a, b), (a, c), (b, c)):
                    arcs[place[arc]] += 1
                for vertex in (a, b, c):
                    vertices[vertex] += 1
    return Answers(len(triangles), vertices, arcs, opened, triangles)


def oriented(pairs: NDArray[Any], n: int | None = None, order: str = "degree") -> OrientedGraph:
    return ww.Graph(pairs, n=n).oriented(order, threads=1)


def random_graph(n: int, edges: int, seed: int, order: str = "degree") -> OrientedGraph:
    return oriented(np.random.default_rng(seed).integers(0, n, (edges, 2)), n, order)


@pytest.mark.parametrize(
    ("n", "edges", "order"),
    [(1, 0, "degree"), (3, 3, "degree"), (12, 30, "id"), (60, 500, "degree"), (200, 900, "core"), (600, 3_000, "id")],
)
@pytest.mark.parametrize("hubs", [-1, 0, 512, ALL])
def test_random_graphs_agree_with_sets(n: int, edges: int, order: str, hubs: int) -> None:
    graph = random_graph(n, edges, seed=n, order=order)
    assert all_answers(graph, hubs=hubs) == expected(graph)


@pytest.mark.parametrize("ratio", [0, 1, 50])
def test_every_way_through_the_hub_rows_agrees_with_sets(ratio: int) -> None:
    """From whole blocks for every arc to single tests for every arc, in rows that span several blocks."""
    graph = random_graph(1_100, 6_000, seed=5, order="id")
    assert all_answers(graph, hubs=1_024, probe_ratio=ratio) == expected(graph)


def test_a_graph_without_vertices_has_no_answers() -> None:
    graph = oriented(np.empty((0, 2), np.int64), 0)
    assert all_answers(graph) == Answers(0, [], [], [], [])


@pytest.mark.parametrize("size", [63, 64, 65])
@pytest.mark.parametrize("hubs", [0, ALL])
def test_cliques_around_a_word(size: int, hubs: int) -> None:
    check_clique(size, hubs)


@pytest.mark.compiled
@pytest.mark.parametrize("size", [511, 512, 513, 1_025])
@pytest.mark.parametrize("hubs", [0, 512, ALL])
def test_cliques_around_a_block(size: int, hubs: int) -> None:
    check_clique(size, hubs)


def check_clique(size: int, hubs: int) -> None:
    graph = oriented(generate.complete(size).pairs())
    by_vertex, total = answer("triangles", graph, 2, hubs=hubs)
    by_arc, _ = answer("edge_support", graph, 2, hubs=hubs)
    assert total == comb(size, 3)
    assert by_vertex.filled is not None
    assert by_arc.filled is not None
    assert set(by_vertex.filled.tolist()) == {comb(size - 1, 2)}
    assert set(by_arc.filled.tolist()) == {size - 2}


def crowded(n: int) -> OrientedGraph:
    """Vertex 0 and the last two are joined to everybody, so that they add more bit rows than one sum can hold."""
    rng = np.random.default_rng(1)
    spokes = [(hub, v) for hub in (0, n - 2, n - 1) for v in range(n) if v != hub]
    return oriented(np.concatenate([spokes, rng.integers(0, n, (3 * n, 2))]), n, "id")


@pytest.mark.compiled
def test_more_bit_rows_than_one_sum_holds() -> None:
    graph = crowded(MAX_ROWS + 600)
    assert all_answers(graph, hubs=ALL) == expected(graph)


@pytest.mark.compiled
@pytest.mark.parametrize("hubs", [-1, 0, 512])
def test_a_book_has_more_pages_than_16_bits_count(hubs: int) -> None:
    pages = 70_000
    graph = oriented(generate.book(pages).pairs(threads=2))
    by_vertex, total = answer("triangles", graph, 2, hubs=hubs)
    by_arc, _ = answer("edge_support", graph, 2, hubs=hubs)
    assert by_vertex.filled is not None
    assert by_arc.filled is not None
    assert total == pages
    assert np.unique(by_vertex.filled, return_counts=True)[1].tolist() == [pages, 2]
    assert sorted(by_arc.filled.tolist()) == [1] * (2 * pages) + [pages]


@pytest.mark.parametrize("hubs", [-1, 0, 512])
def test_any_number_of_threads_gives_the_same_answers(monkeypatch: pytest.MonkeyPatch, hubs: int) -> None:
    """Whether threads have supports of their own or share them, and whoever takes which of many small tasks."""
    monkeypatch.setattr(_ranges, "TASK_ARCS", 100)
    graph = oriented(generate.kronecker(9, edgefactor=3, seed=3).pairs())
    one = all_answers(graph, 1, hubs=hubs)
    assert one == expected(graph)
    for threads in (2, _keystone_supports.MAX_SHARES, _keystone_supports.MAX_SHARES + 1):
        assert all_answers(graph, threads, hubs=hubs) == one
    assert sum(one.vertices) == sum(one.arcs) == 3 * one.total == 3 * sum(one.opened) == 3 * len(one.triangles)
    assert one.triangles == sorted(set(one.triangles))


@pytest.mark.parametrize("hubs", [0, 512])
def test_any_stretch_of_arcs_lists_its_part(hubs: int) -> None:
    pairs = np.random.default_rng(9).integers(60, 110, (400, 2))  # the last 512 of 600 ids start in the midst of them
    graph = oriented(pairs, 600, "id")
    work, _ = answer("list_triangles", graph, 1, hubs=hubs)
    assert work.filled is not None
    whole = listed(work, 0, graph.m)
    before = np.concatenate([[0], np.cumsum(work.filled, dtype=np.int64)])
    assert len(whole) == before[-1] > 100
    for cut in range(graph.m + 1):
        assert np.array_equal(listed(work, 0, cut), whole[: before[cut]])
        assert np.array_equal(
            listed(work, cut, min(cut + 3, graph.m)), whole[before[cut] : before[min(cut + 3, graph.m)]]
        )


def test_no_vertex_has_no_in_neighbours() -> None:
    graph = random_graph(12, 30, seed=1)
    assert len(_keystone_in_neighbours.in_neighbours(rows_of(graph), graph.n, graph.n, idle=1, threads=2).tails) == 0


def test_in_neighbours_do_not_depend_on_threads_and_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = oriented(generate.kronecker(9, seed=4).pairs())
    offsets = graph.offsets.tolist()
    tails: list[list[int]] = [[] for _ in range(graph.n)]
    for a in range(graph.n):
        for b in graph.out_neighbours[offsets[a] : max(offsets[a], offsets[a + 1] - 1)].tolist():
            tails[b].append(a)
    for step in (1 << 23, 100):
        monkeypatch.setattr(_keystone_in_neighbours, "STEP_ARCS", step)
        for threads, least in ((1, 0), (2, 0), (7, 0), (1, 300), (2, 300), (7, 300)):
            found = _keystone_in_neighbours.in_neighbours(rows_of(graph), graph.n, least, idle=1, threads=threads)
            assert found.least == least
            assert [part.tolist() for part in np.split(found.tails, found.offsets[1:-1])] == tails[least:]


@pytest.mark.compiled
@pytest.mark.parametrize("question", ["count", *QUESTIONS])
def test_memory_stays_within_what_is_announced(question: str) -> None:
    graph = oriented(generate.kronecker(14, seed=2).pairs())
    answer(question, graph, 2)
    tracemalloc.start()
    answer(question, graph, 2)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    announced = ENGINE.on_cpu(question).bytes_needed(Shape(graph.n, graph.m, graph.wedges), 2, ENGINE.settings(None))
    assert peak <= announced + 250_000  # the sample of arcs that chooses the hubs


@kernel
def sum_two_blocks(mask: Any, rows: Any, scratch: Any, count: int, planes_begin: int) -> None:
    """The columns of the second block of each row, under the mask's first one."""
    sum_columns(mask, np.uint64(0), rows, scratch, np.uint64(count), np.uint64(8), np.uint64(planes_begin))


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 255, 300])
def test_columns_are_summed_for_any_number_of_rows(count: int) -> None:
    rng = np.random.default_rng(count)
    rows = rng.integers(0, 2**64, 16 * max(count, 1), np.uint64)
    mask = rng.integers(0, 2**64, 8, np.uint64)
    planes_begin = max(count, 1)

    def sums(add: Callable[..., None], *where: int) -> list[int]:
        scratch = np.zeros(planes_begin + PLANES * BLOCK_WORDS, np.uint64)
        scratch[:count] = 16 * np.arange(count, dtype=np.uint64)
        if where:
            add(mask, where[0], rows, scratch, count, where[1], planes_begin)
        else:
            add(mask, rows, scratch, count, planes_begin)
        words = scratch[planes_begin:].reshape(PLANES, BLOCK_WORDS).tolist()
        return [
            sum(((words[plane][column // 64] >> column % 64) & 1) << plane for plane in range(PLANES))
            for column in range(512)
        ]

    blocks = rows.reshape(-1, 16)[:count, 8:] & mask
    by_hand = [sum((int(row[column // 64]) >> column % 64) & 1 for row in blocks) for column in range(512)]
    assert sums(sum_two_blocks) == sums(sum_columns, 0, 8) == by_hand


def test_bit_rows_are_credited_whenever_enough_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the JIT off, three are enough."""
    monkeypatch.setattr(_keystone_close, "MAX_ROWS", 3)
    path = np.arange(39, 700)  # enough vertices for hubs
    pairs = np.concatenate([generate.complete(40).pairs(), np.stack([path[:-1], path[1:]], axis=1)])
    triangles = ww.triangles(pairs, algorithm="keystone", knobs={"hubs": 512})
    assert triangles.tolist() == [comb(39, 2)] * 40 + [0] * 660
