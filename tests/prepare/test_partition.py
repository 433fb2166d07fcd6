"""Partitions, blocks and tasks: every arc in one block, every triangle in one task, cuts by PaL, memory as promised."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import numpy as np
import pytest
from helpers.cut_graphs import arcs_of, count_in_triple, greedy_cuts, heaviest_block, least_load, oriented, rows_of
from helpers.graphs import CLOSED_FORMS, TRUTHS, SmallGraph, count_by_triples, fixture_pairs, of_fit_size
from hypothesis import given, settings
from hypothesis import strategies as st
from relations.random_graphs import random_graphs

from wedgewise import generate
from wedgewise.errors import InputError, UnknownNameError
from wedgewise.prepare import cut_blocks as build
from wedgewise.prepare import rectilinear as pal
from wedgewise.prepare.cut_blocks import blocks_bytes, blocks_of, row_blocks
from wedgewise.prepare.rectilinear import default_parts, rectilinear
from wedgewise.stages import OrientedGraph
from wedgewise.stages.blocks import Blocks, Hashed, Partition, Rectilinear, partition_from
from wedgewise.stages.tasks import BlockCounts, busy_tasks, table_of

examples = settings(deadline=None, derandomize=True, max_examples=40)
SLACK = 1 << 18


def triangles_of_tasks(blocks: Blocks, shares: int = 1) -> int:
    return sum(count_in_triple(blocks.triple(task), task) for task in table_of(blocks.partition, shares))


def assert_holds_the_arcs(blocks: Blocks, graph: OrientedGraph) -> None:
    """Every arc is in the block of its parts, rows ascend, and there are all blocks."""
    partition, p = blocks.partition, blocks.partition.parts
    assert set(blocks.blocks) == {(i, j) for i in range(p) for j in range(p) if i <= j or not partition.is_ordered}
    arcs = []
    for (i, j), block in blocks.blocks.items():
        assert (block.rows, block.columns) == (partition.sizes[i], partition.sizes[j])
        assert block.m == block.offsets[-1]
        for tail, row in zip(partition.ids(i).tolist(), rows_of(block), strict=True):
            assert row == sorted(set(row))
            arcs += [(tail, head) for head in partition.ids(j)[row].tolist()]
    assert sorted(arcs) == arcs_of(graph)
    assert (blocks.n, blocks.m) == (graph.n, graph.m)


@given(random_graphs(most=12), st.integers(1, 14), st.sampled_from(["rank", "indegree", "classes"]), st.integers(1, 3))
@examples
def test_every_triangle_is_in_one_task(small: SmallGraph, parts: int, by: str, shares: int) -> None:
    graph, ranked = oriented(small.pairs, small.n, by), oriented(small.pairs, small.n)
    cut: list[tuple[OrientedGraph, Partition]] = [(graph, Hashed(small.n, parts)), (ranked, rectilinear(ranked, parts))]
    for graph, partition in cut:
        blocks = blocks_of(graph, partition)
        assert_holds_the_arcs(blocks, graph)
        assert triangles_of_tasks(blocks, shares) == count_by_triples(small)


@given(random_graphs(most=10), st.lists(st.integers(0, 10), max_size=5))
@examples
def test_any_cuts_will_do(small: SmallGraph, inner: list[int]) -> None:
    graph = oriented(small.pairs, small.n)
    cuts = sorted(min(cut, small.n) for cut in inner)
    blocks = blocks_of(graph, Rectilinear(np.array([0, *cuts, small.n])))
    assert_holds_the_arcs(blocks, graph)
    assert triangles_of_tasks(blocks) == count_by_triples(small)


@pytest.mark.parametrize("name", of_fit_size("atlas_union", "jazz", "lesmis"))
@pytest.mark.parametrize("parts", [1, 2, 5])
def test_fixtures_have_their_triangles(name: str, parts: int) -> None:
    pairs = fixture_pairs(name)
    n = int(pairs.max()) + 1
    graph = oriented(pairs, n)
    assert triangles_of_tasks(blocks_of(graph, rectilinear(graph, parts), threads=2)) == TRUTHS[name]["triangles"]
    graph = oriented(pairs, n, "indegree")
    assert triangles_of_tasks(blocks_of(graph, Hashed(graph.n, parts), threads=2), 2) == TRUTHS[name]["triangles"]


@pytest.mark.parametrize("stream", CLOSED_FORMS[::3], ids=lambda stream: stream.name)
def test_closed_forms_have_their_triangles(stream: Any) -> None:
    graph = oriented(stream.pairs(), stream.n)
    blocks = blocks_of(graph, rectilinear(graph, 3))
    assert_holds_the_arcs(blocks, graph)
    assert triangles_of_tasks(blocks) == stream.expected_triangles


def test_small_chunks_make_the_same_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = oriented(fixture_pairs("lesmis"), 77)
    partitions: tuple[Partition, ...] = (rectilinear(graph, 4), Hashed(graph.n, 3))
    whole = [blocks_of(graph, partition) for partition in partitions]
    monkeypatch.setattr(build, "CHUNK_ARCS", 7)
    monkeypatch.setattr(build, "CHUNK_ROWS", 5)
    for expected in whole:
        found = blocks_of(graph, expected.partition, threads=3)
        for pair, block in expected.blocks.items():
            assert np.array_equal(found.blocks[pair].heads, block.heads)
            assert np.array_equal(found.blocks[pair].offsets, block.offsets)


def test_offsets_are_wide_where_a_block_of_the_part_has_many_arcs(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = generate.complete(9)
    graph = oriented(stream.pairs(), 9)
    partition = Rectilinear(np.array([0, 5, 9]))  # 10 and 20 arcs from part 0, 6 from part 1
    monkeypatch.setattr(build, "WIDE_ARCS", 20)
    blocks = blocks_of(graph, partition)
    widths = {pair: block.offsets.dtype for pair, block in blocks.blocks.items()}
    assert widths == {(0, 0): np.uint64, (0, 1): np.uint64, (1, 1): np.uint32}
    assert_holds_the_arcs(blocks, graph)
    assert blocks.nbytes <= blocks_bytes(partition, graph.m)


def test_graphs_with_wide_offsets_make_the_same_blocks() -> None:
    graph = oriented(fixture_pairs("karate"), 34)
    wide = OrientedGraph(
        graph.n, graph.offsets.astype(np.uint64), graph.out_neighbours, graph.vertex_of, "degree", "rank", graph.wedges
    )
    partition = rectilinear(wide, 4)
    assert np.array_equal(partition.cuts, rectilinear(graph, 4).cuts)
    assert_holds_the_arcs(blocks_of(wide, partition), graph)


# --- PaL -------------------------------------------------------------------------------------------------------------


@given(random_graphs(most=8), st.integers(1, 4))
@examples
def test_cuts_are_those_of_probing_the_least_load(small: SmallGraph, parts: int) -> None:
    """Greedy cuts for the load of the heaviest block; with one arc less they are not enough; none beat the optimum."""
    graph = oriented(small.pairs, small.n)
    arcs, cuts = arcs_of(graph), rectilinear(graph, parts).cuts.tolist()
    load = heaviest_block(arcs, cuts)
    assert cuts == greedy_cuts(arcs, small.n, parts, load)
    assert load == 0 or greedy_cuts(arcs, small.n, parts, load - 1) is None
    best = least_load(arcs, small.n, parts)
    assert -(-2 * graph.m // (parts * (parts + 1))) <= best <= load <= graph.m


@pytest.mark.parametrize("parts", [2, 3, 4])
@pytest.mark.parametrize("seed", range(4))
def test_greed_stays_near_the_optimum(seed: int, parts: int) -> None:
    graph = oriented(np.random.default_rng(seed).integers(0, 14, (60, 2)), 14)
    arcs = arcs_of(graph)
    best = least_load(arcs, 14, parts)
    assert best <= heaviest_block(arcs, rectilinear(graph, parts).cuts.tolist()) <= 1.5 * best


def test_a_coarse_grid_costs_little(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = generate.kronecker(scale=10, seed=5)
    graph = oriented(stream.pairs(), stream.n)
    exact = rectilinear(graph, 8)
    monkeypatch.setattr(pal, "SEGMENTS", 200)
    monkeypatch.setattr(pal, "SAMPLED_HEADS", 3000)
    monkeypatch.setattr(pal, "TASK_SEGMENTS", 7)
    assert len(pal.segment_bounds(graph)) <= 201
    coarse = rectilinear(graph, 8, threads=2)
    arcs = arcs_of(graph)
    assert heaviest_block(arcs, coarse.cuts.tolist()) <= 1.05 * heaviest_block(arcs, exact.cuts.tolist())
    assert_holds_the_arcs(blocks_of(graph, coarse), graph)


def test_prefix_sums_count_arcs() -> None:
    graph = oriented(fixture_pairs("karate"), 34)
    bounds = np.array([0, 3, 10, 11, 34])
    before = pal.arcs_before(graph, bounds, threads=2)
    arcs = np.array(arcs_of(graph))
    for row, tail in enumerate(bounds):
        for column, head in enumerate(bounds):
            assert before[row, column] == ((arcs[:, 0] < tail) & (arcs[:, 1] < head)).sum()


@pytest.mark.parametrize("parts", [1, 3, 40])
@pytest.mark.parametrize("n", [0, 1, 5])
def test_graphs_without_edges(n: int, parts: int) -> None:
    graph = oriented(np.empty((0, 2), np.int64), n)
    for partition in (rectilinear(graph, parts), Hashed(graph.n, parts)):
        assert (partition.n, partition.parts, sum(partition.sizes)) == (n, parts, n)
        blocks = blocks_of(graph, partition, threads=2)
        assert_holds_the_arcs(blocks, graph)
        assert all(block.m == 0 for block in blocks.blocks.values())


@pytest.mark.parametrize("parts", [2, 7, 900])
def test_a_star_cannot_be_cut_at_its_centre(parts: int) -> None:
    """All arcs lead to the last id: forwards, the first part has all leaves; backwards, parts share them out."""
    stream = generate.star(300)
    graph = oriented(stream.pairs(), stream.n)
    arcs = arcs_of(graph)
    assert heaviest_block(arcs, rectilinear(graph, parts).cuts.tolist()) == 300
    assert heaviest_block(arcs, rectilinear(graph, parts, both_ways=True).cuts.tolist()) == -(-300 // min(parts, 300))


@given(random_graphs(most=9), st.integers(1, 4))
@examples
def test_backwards_is_forwards_in_the_mirror(small: SmallGraph, parts: int) -> None:
    graph = oriented(small.pairs, small.n)
    arcs, n = arcs_of(graph), graph.n
    turned = [(n - 1 - head, n - 1 - tail) for tail, head in arcs]
    forwards = rectilinear(graph, parts).cuts.tolist()
    loads = range(graph.m + 1)
    backwards = next(load for load in loads if greedy_cuts(turned, n, parts, load) is not None)
    both = rectilinear(graph, parts, both_ways=True)
    assert heaviest_block(arcs, both.cuts.tolist()) == min(heaviest_block(arcs, forwards), backwards)
    assert_holds_the_arcs(blocks_of(graph, both), graph)


def test_parts_default_to_the_average_out_degree() -> None:
    stream = generate.complete(41)
    graph = oriented(stream.pairs(), stream.n)
    assert default_parts(graph) == 20
    assert rectilinear(graph).parts == 20
    assert default_parts(oriented(np.empty((0, 2), np.int64), 0)) == 1


# --- partitions ------------------------------------------------------------------------------------------------------

PARTITIONS: tuple[Partition, ...] = (
    Rectilinear(np.array([0, 4, 4, 9, 10, 10])),
    Rectilinear(np.array([0, 0])),
    Hashed(10, 3),
    Hashed(2, 5),
    Hashed(0, 1),
)


@pytest.mark.parametrize("partition", PARTITIONS)
def test_parts_divide_the_ids(partition: Partition) -> None:
    listed = [partition.ids(part) for part in range(partition.parts)]
    assert tuple(map(len, listed)) == partition.sizes
    assert sorted(np.concatenate(listed).tolist()) == list(range(partition.n))
    for part, ids in enumerate(listed):
        own = (
            ids % partition.parts
            if isinstance(partition, Hashed)
            else np.searchsorted(partition.cuts[1:], ids, "right")
        )
        assert (own == part).all()
        assert ids.tolist() == sorted(ids.tolist())


@pytest.mark.parametrize("partition", PARTITIONS)
def test_a_description_makes_the_same_partition(partition: Partition) -> None:
    again = partition_from(json.loads(json.dumps(partition.to_dict())))
    assert type(again) is type(partition)
    assert again.to_dict() == partition.to_dict()
    assert again.sizes == partition.sizes


@pytest.mark.parametrize("cuts", [[], [0], [1, 4], [0, 5, 4]])
def test_cuts_that_do_not_ascend_are_refused(cuts: list[int]) -> None:
    with pytest.raises(InputError, match="cuts ascend from 0"):
        Rectilinear(np.array(cuts, np.int64))


def test_what_cannot_be_partitioned_is_refused() -> None:
    graph = oriented(fixture_pairs("karate"), 34)
    renamed = oriented(fixture_pairs("karate"), 34, "indegree")
    with pytest.raises(InputError, match="before relabelling"):
        rectilinear(renamed, 3)
    with pytest.raises(InputError, match="before relabelling"):
        blocks_of(renamed, rectilinear(graph, 3))
    with pytest.raises(InputError, match="divides 10 ids and the graph has 34"):
        row_blocks(graph, Hashed(10, 2), 0)
    for parts in (0, pal.MAX_PARTS + 1):
        with pytest.raises(InputError, match="parts, not"):
            rectilinear(graph, parts)
    with pytest.raises(InputError, match="at least one part"):
        Hashed(graph.n, 0)
    with pytest.raises(InputError, match="no partition is described"):
        partition_from({"kind": "spiral"})
    with pytest.raises(InputError, match="into 1 … 65,536 shares, not 0"):
        table_of(Hashed(10, 2), shares=0)
    with pytest.raises(UnknownNameError, match="no estimator named 'nix'"):
        busy_tasks(Hashed(10, 2), BlockCounts(np.ones((2, 2), np.int64), np.full(2, 5)), by="nix")


# --- memory ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sparse() -> OrientedGraph:
    """Many rows for few arcs, and enough of both for tables of fixed size not to matter."""
    stream = generate.uniform(60_000, 90_000, seed=1)
    return oriented(stream.pairs(), stream.n)


def peak_beyond(work: Any) -> tuple[int, Any]:
    """Largest allocation during the second call of `work`: the first may load kernels."""
    work()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        found = work()
        return tracemalloc.get_traced_memory()[1] - before, found
    finally:
        tracemalloc.stop()


@pytest.mark.compiled
@pytest.mark.parametrize("parts", [1, 6, 30])
@pytest.mark.parametrize("kind", [rectilinear, lambda graph, parts: Hashed(graph.n, parts)])
def test_building_takes_the_blocks_and_a_chunk(sparse: OrientedGraph, parts: int, kind: Any) -> None:
    partition = kind(sparse, parts)
    peak, blocks = peak_beyond(lambda: blocks_of(sparse, partition, threads=2))
    stated = blocks_bytes(partition, sparse.m)
    assert blocks.nbytes == stated
    assert peak <= stated + 500 * len(blocks.blocks) + 8 * max(partition.sizes) + SLACK


@pytest.mark.compiled
def test_one_part_takes_its_own_blocks_alone(sparse: OrientedGraph) -> None:
    partition = Hashed(sparse.n, 10)
    peak, blocks = peak_beyond(lambda: row_blocks(sparse, partition, 3, threads=2))
    held = sum(block.nbytes for block in blocks.values())
    assert held < 0.11 * blocks_bytes(partition, sparse.m)
    assert peak <= held + 8 * max(partition.sizes) + SLACK


@pytest.mark.compiled
def test_cutting_takes_the_grid_and_tables_by_vertex(sparse: OrientedGraph) -> None:
    grid, sampling = 8 * (pal.SEGMENTS + 1) ** 2, 16 * sparse.n + 8 * sparse.m
    for both_ways, grids in ((False, 1), (True, 3)):
        peak, _ = peak_beyond(lambda chosen=both_ways: rectilinear(sparse, 6, threads=2, both_ways=chosen))
        assert peak <= max(grids * grid + 2 * sparse.n, sampling) + SLACK
