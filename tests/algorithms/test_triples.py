"""Every algorithm that counts three blocks at a time, against matrix products and against whole graphs."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from helpers.block_matrices import (
    WIDER,
    Matrix,
    ascending,
    block_of,
    count_blocks_by_product,
    random_matrix,
    triple_of,
    unordered,
)
from helpers.cut_graphs import oriented

import wedgewise as ww
from wedgewise import generate
from wedgewise.algorithms import _ranges, find, registry
from wedgewise.algorithms._contract import Algorithm, BatchWork, Shape, Work
from wedgewise.algorithms.cpu import _batches, _keystone_close, _keystone_triples, _records, bbtc
from wedgewise.algorithms.cpu import _keystone_triple_hubs as hubs
from wedgewise.algorithms.cpu._keystone_hubs import Hubs
from wedgewise.machine.jit import JIT_DISABLED
from wedgewise.prepare.cut_blocks import blocks_of
from wedgewise.stages import OrientedGraph
from wedgewise.stages.blocks import WIDE_ARCS, Block, Hashed, Rectilinear, Triple
from wedgewise.stages.tasks import TaskBatch, TaskTable, TripleShape, one_task, table_of

Settings = dict[str, int | str]

ABLE: tuple[Algorithm, ...] = tuple(
    record for (_, device), record in registry().items() if device == "cpu" and record.triples
)
WAYS: dict[str, tuple[Settings, ...]] = {
    "keystone": tuple(
        {"hubs": count, "probe_ratio": ratio} for count, ratio in product((-1, 0, 7, 2**31 - 1), (0, 2, 2**31 - 1))
    ),
    "bbtc": ({"method": "list"}, {"method": "hashmap"}, {"threshold": 0}, {"threshold": 10}, {"threshold": 2**31 - 1}),
}
EVERY_WAY = tuple((record.name, way) for record in ABLE for way in WAYS[record.name])
for_every_way = pytest.mark.parametrize(
    ("name", "way"), EVERY_WAY, ids=[f"{name}-{'-'.join(map(str, way.values()))}" for name, way in EVERY_WAY]
)
for_every_algorithm = pytest.mark.parametrize("name", [record.name for record in ABLE])

ROWS, COLUMNS = (30, 530) if JIT_DISABLED else (70, 1300)  # two and three blocks of 512 columns


def run(work: Work | BatchWork) -> int:
    """All ranges of a prepared answer, one after the other in one workspace."""
    found = 0
    for step in work.passes:
        workspace = step.workspace()
        for begin, end in pairwise(step.bounds.tolist()):
            triangles, tests = step.run(begin, end, workspace)
            assert int(triangles) <= int(tests)
            found += int(triangles)
    return found


def count(name: str, triple: Triple, way: Settings | None = None, share: int = 0, shares: int = 1) -> int:
    """What an algorithm finds in a triple."""
    algorithm = find(name, "cpu")
    return run(algorithm.triples_on_cpu("count").prepare(triple, algorithm.settings(way), share, shares))


def apart(seed: int, density: float) -> tuple[Matrix, Matrix, Matrix]:
    return (
        random_matrix(seed, ROWS, ROWS + 9, density),
        random_matrix(seed + 1, ROWS, COLUMNS, density),
        random_matrix(seed + 2, ROWS + 9, COLUMNS, density),
    )


def one_part(seed: int, density: float) -> tuple[Matrix, Matrix, Matrix]:
    matrix = ascending(seed, COLUMNS // 2, density)
    return matrix, matrix, matrix


def first_two_alike(seed: int, density: float) -> tuple[Matrix, Matrix, Matrix]:
    far = random_matrix(seed + 1, ROWS, COLUMNS, density)
    return ascending(seed, ROWS, density), far, far


def last_two_alike(seed: int, density: float) -> tuple[Matrix, Matrix, Matrix]:
    near = random_matrix(seed + 1, ROWS, COLUMNS // 2, density)
    return near, near, ascending(seed, COLUMNS // 2, density)


def last_two_alike_unordered(seed: int, density: float) -> tuple[Matrix, Matrix, Matrix]:
    near = random_matrix(seed + 1, ROWS, COLUMNS // 2, density)
    return near, near, unordered(seed, COLUMNS // 2, density)


def one_part_unordered(seed: int, density: float) -> tuple[Matrix, Matrix, Matrix]:
    matrix = unordered(seed, COLUMNS // 2, density)
    return matrix, matrix, matrix


SHAPES: tuple[Callable[[int, float], tuple[Matrix, Matrix, Matrix]], ...] = (
    apart,
    one_part,
    first_two_alike,
    last_two_alike,
    last_two_alike_unordered,
    one_part_unordered,
)
DENSITIES = (0.002, 0.05) if JIT_DISABLED else (0.002, 0.05, 0.5)


@cache
def known(shape: Callable[[int, float], tuple[Matrix, Matrix, Matrix]], density: float) -> tuple[Triple, int]:
    """Three blocks, and how many triangles they have by a product."""
    matrices = shape(1, density)
    return triple_of(matrices), count_blocks_by_product(*matrices)


@cache
def counts_of_shares(shares: int) -> tuple[int, ...]:
    """What each share of a task has to find by a product; of very many, those that have rows and some behind them."""
    return tuple(count_blocks_by_product(*apart(5, 0.1), share, shares) for share in range(min(shares, ROWS + 2)))


def test_the_engine_and_bbtc_count_triples() -> None:
    assert {"keystone", "bbtc"} <= {record.name for record in ABLE} == set(WAYS)


@for_every_way
@pytest.mark.parametrize("density", DENSITIES)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_triples_have_the_triangles_of_a_product(
    name: str, way: Settings, density: float, shape: Callable[[int, float], tuple[Matrix, Matrix, Matrix]]
) -> None:
    triple, expected = known(shape, density)
    assert count(name, triple, way) == expected


@for_every_way
def test_blocks_that_are_equal_but_not_the_same_count_the_same(name: str, way: Settings) -> None:
    matrix = ascending(3, ROWS, 0.3)
    triple = Triple(block_of(matrix), block_of(matrix), block_of(matrix))
    assert count(name, triple, way) == count_blocks_by_product(matrix, matrix, matrix) > 0


@for_every_way
@pytest.mark.parametrize("shares", [2, 3, 1000])
def test_shares_add_up_and_each_has_its_own_rows(name: str, way: Settings, shares: int) -> None:
    triple, expected = triple_of(apart(5, 0.1)), counts_of_shares(shares)
    assert tuple(count(name, triple, way, share, shares) for share in range(len(expected))) == expected
    assert sum(expected) == count_blocks_by_product(*apart(5, 0.1)) > 0


@pytest.mark.deep
@for_every_way
@pytest.mark.parametrize("widths", WIDER)
def test_offsets_of_any_width_count_the_same(name: str, way: Settings, widths: Any) -> None:
    matrices = apart(6, 0.1)
    triple = Triple(*(block_of(matrix, width) for matrix, width in zip(matrices, widths, strict=True)))
    assert count(name, triple, way) == count_blocks_by_product(*matrices) > 0


@for_every_way
@pytest.mark.parametrize("empty", [0, 1, 2])
def test_a_block_without_arcs_has_no_triangles(name: str, way: Settings, empty: int) -> None:
    matrices = [*apart(7, 0.2)]
    matrices[empty] = np.zeros_like(matrices[empty])
    assert count(name, Triple(*map(block_of, matrices)), way) == 0


@for_every_way
@pytest.mark.parametrize("sizes", [(0, 0, 0), (0, 5, 5), (5, 0, 5), (5, 5, 0), (1, 1, 1), (1, 1, 512), (1, 1, 513)])
def test_parts_of_few_ids(name: str, way: Settings, sizes: tuple[int, int, int]) -> None:
    i, j, k = sizes
    full = np.ones((i, j), np.bool_), np.ones((i, k), np.bool_), np.ones((j, k), np.bool_)
    assert count(name, triple_of(full), way) == i * j * k


@for_every_way
def test_only_last_columns_and_gaps(name: str, way: Settings) -> None:
    ij, ik, jk = (np.zeros(matrix.shape, np.bool_) for matrix in apart(0, 0.0))
    ij[::3, ::2] = ik[::2, -1] = ik[::5, 0] = jk[4::4, -1] = jk[::7, 511] = ik[3, 500:520] = True
    assert count(name, triple_of((ij, ik, jk)), way) == count_blocks_by_product(ij, ik, jk) > 0


@for_every_way
def test_ranges_cover_all_rows_in_any_number(name: str, way: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_ranges, "TASK_ARCS", 10)
    monkeypatch.setattr(_batches, "TASK_ARCS", 10)
    monkeypatch.setattr(_batches, "RANGE_NANOSECONDS", 1)
    monkeypatch.setattr(bbtc, "TASK_TESTS", 1)
    monkeypatch.setattr(_keystone_close, "ROWS_AT_ONCE", 3)
    matrices = apart(8, 0.1)
    algorithm = find(name, "cpu")
    for shares in (1, 2):
        work = algorithm.triples_on_cpu("count").prepare(
            triple_of(matrices), algorithm.settings(way), shares - 1, shares
        )
        (bounds,) = (step.bounds for step in work.passes)
        assert bounds[0] == 0
        assert bounds[-1] == len(work.task_of_item)
        assert (np.diff(bounds) > 0).all()
        assert len(bounds) > 5
        assert run(work) == count_blocks_by_product(*matrices, shares - 1, shares)


@pytest.mark.parametrize("name", ["bbtc", "keystone"])
def test_long_tasks_are_cut_by_their_work(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = np.triu(np.ones((120, 120), np.bool_), 1)
    monkeypatch.setattr(bbtc, "TASK_TESTS", 1000)
    monkeypatch.setattr(_ranges, "TASK_ARCS", 300)
    monkeypatch.setattr(_batches, "TASK_ARCS", 300)
    algorithm = find(name, "cpu")
    work = algorithm.triples_on_cpu("count").prepare(
        triple_of((matrix, matrix, matrix)), algorithm.settings(None), 0, 1
    )
    assert len(work.task_of_item) > 10
    assert run(work) == 120 * 119 * 118 // 6


@pytest.mark.parametrize(("groups", "summed"), [(1 << 15, 1 << 16), (1 << 15, 50), (7, 50), (1, 1)])
def test_ranges_of_long_tasks_are_of_about_equal_work(
    groups: int, summed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many rows and arcs are looked at together, within what the largest group of rows has."""
    monkeypatch.setattr(bbtc, "MAX_GROUPS", groups)
    monkeypatch.setattr(bbtc, "SUMMED_ARCS", summed)
    monkeypatch.setattr(bbtc, "TASK_TESTS", 4000)
    ij, ik, jk = apart(3, 0.3)
    work = ij.astype(np.int64) @ jk.sum(axis=1) + ij.sum(axis=1) * ik.sum(axis=1) + 1
    bounds = bbtc.work_bounds(triple_of((ij, ik, jk)))
    assert (bounds[0], bounds[-1]) == (0, ROWS)
    largest = work.max() * -(-ROWS // groups)
    assert all(work[begin:end].sum() <= 1.1 * 4000 + largest for begin, end in pairwise(bounds.tolist()))
    hops = bbtc.second_hops(triple_of((ij, ik, jk)), block_of(ij).offsets)
    assert hops.tolist() == (ij.astype(np.int64) @ jk.sum(axis=1)).tolist()


def hubs_for(triple: Triple, knobs: dict[str, int | str]) -> Hubs:
    return hubs.hubs_of(_batches.batch_of(one_task(triple)), knobs).of_only_group()


def hubs_in(made: Hubs) -> int:
    return int(made.last) + 1 - int(made.base)


@pytest.mark.parametrize("spare", [0, 8, 100])
def test_bit_rows_keep_to_their_limit(spare: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hubs, "SPARE_WORDS", spare)
    matrices = apart(9, 0.02)
    triple = triple_of(matrices)
    knobs = find("keystone", "cpu").settings({"hubs": 2**31 - 1})
    made = hubs_for(triple, knobs)
    assert len(made.bits) <= triple.jk.m // 2 + spare
    assert 0 < hubs_in(made) < triple.jk.rows
    assert count("keystone", triple, {"hubs": 2**31 - 1}) == count_blocks_by_product(*matrices)


def test_dense_blocks_get_bit_rows_and_sparse_ones_none() -> None:
    knobs = find("keystone", "cpu").settings(None)

    def chosen(near_density: float, density: float, columns: int) -> int:
        far = random_matrix(2, 300, columns, density)
        triple = triple_of((random_matrix(1, 300, 300, near_density), far, far))
        return hubs_in(hubs_for(triple, knobs))

    assert chosen(0.5, 0.5, 700) > 250
    assert chosen(0.001, 0.002, 20_000) == 0


def batch_of(near: list[Block], far: Block, jk: Block, shares: int = 1) -> TaskBatch:
    """Tasks that look up in one block, each with all shares of another block ij."""
    parts, tasks = len(near) + 2, len(near) * shares
    i, j, k = (np.repeat(part, tasks).astype(np.int32) for part in (0, parts - 2, parts - 1))
    i = np.repeat(np.arange(len(near)), shares).astype(np.int32)
    share = np.tile(np.arange(shares), len(near)).astype(np.int32)
    blocks = {(parts - 2, parts - 1): jk}
    for part, block in enumerate(near):
        blocks |= {(part, parts - 2): block, (part, parts - 1): far}
    return TaskBatch(blocks, TaskTable(np.arange(tasks), i, j, k, share, np.zeros(tasks), parts, shares))


def test_batches_share_bit_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are filled once for all tasks of a batch, and for batches to come that look up in the same block."""
    made: list[Any] = []

    def noted(*given: Any) -> Any:
        made.append(hubs.hubs_of(*given))
        return made[-1]

    monkeypatch.setattr(_keystone_triples, "hubs_of", noted)
    jk, ik = random_matrix(3, 300, 700, 0.5), random_matrix(2, 90, 700, 0.5)
    matrices = random_matrix(4, 90, 300, 0.02), random_matrix(5, 90, 300, 0.6)
    near, far, last = [block_of(matrix) for matrix in matrices], block_of(ik), block_of(jk)
    prepare = _keystone_triples.counter(find("keystone", "cpu").settings(None))
    for _ in range(2):
        work = prepare(batch_of(near, far, last))
        run(work)
        assert work.by_task()[0].tolist() == [count_blocks_by_product(matrix, ik, jk) for matrix in matrices]
    assert len(made) == 1
    assert hubs_in(made[0].of_only_group()) > 0
    run(prepare(one_task(Triple(near[0], far, block_of(jk)))))
    assert len(made) == 2


def test_many_tasks_make_bit_rows_worth_it() -> None:
    near, far, last = (
        random_matrix(4, 60, 300, 0.05),
        random_matrix(2, 60, 8000, 0.01),
        random_matrix(3, 300, 8000, 0.01),
    )
    knobs, (ij, ik, jk) = find("keystone", "cpu").settings(None), map(block_of, (near, far, last))
    batches = [batch_of([ij] * tasks, ik, jk) for tasks in (1, 1000)]
    few, many = (hubs_in(hubs.hubs_of(_batches.batch_of(batch), knobs).of_only_group()) for batch in batches)
    assert few < many


@for_every_algorithm
@pytest.mark.parametrize("shares", [1, 3])
def test_a_batch_finds_what_each_of_its_tasks_finds(name: str, shares: int) -> None:
    """Whole partitions in one batch, whose tasks look up in many blocks."""
    algorithm = find(name, "cpu")
    for partition in PARTITIONS:
        blocks = blocks_of(GRAPH, partition)
        work = algorithm.triples_on_cpu("count").counter(algorithm.settings(None))(
            TaskBatch(blocks.blocks, table_of(partition, shares))
        )
        assert run(work) == TRIANGLES
        triangles, tests, seconds = work.by_task()
        each = [count(name, blocks.triple(t), None, t.share, t.shares) for t in table_of(partition, shares)]
        assert triangles.tolist() == each
        assert (triangles <= tests).all()
        assert (seconds >= 0).all()


def test_bit_rows_on_the_diagonal_are_a_triangle() -> None:
    matrix = np.triu(np.ones((1024, 1024), np.bool_), 1)
    triple = triple_of((matrix, matrix, matrix))
    made = hubs_for(triple, {"hubs": 1024, "probe_ratio": 2})
    assert (hubs_in(made), len(made.bits)) == (1024, 8 * (2 + 511 * 2 + 512))
    assert _keystone_triples.idle_arcs(one_task(triple)).tolist() == [1]


def test_no_arc_is_idle_where_numbers_do_not_follow_the_arcs() -> None:
    near, jk = random_matrix(1, 20, 40, 0.3), unordered(2, 40, 0.3)
    triple = triple_of((near, near, jk))
    assert _keystone_triples.idle_arcs(one_task(triple)).tolist() == [0]
    apart_triple = triple_of((near, near.copy(), ascending(2, 40, 0.3)))
    assert _keystone_triples.idle_arcs(one_task(apart_triple)).tolist() == [0]


@for_every_algorithm
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("density", [0.01, 0.4])
def test_memory_is_as_said(name: str, wide: bool, density: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bbtc, "TASK_TESTS", 1)
    algorithm = find(name, "cpu")
    answer, knobs = algorithm.triples_on_cpu("count"), algorithm.settings(None)
    i, j, k = (120, 150, 700) if JIT_DISABLED else (700, 800, 1500)
    matrices = random_matrix(1, i, j, density), random_matrix(2, i, k, density), random_matrix(3, j, k, density)
    triple = triple_of(matrices)
    if wide:
        triple = replace(triple, jk=block_of(matrices[2], np.uint64))
        monkeypatch.setattr(_records, "WIDE_ARCS", 1)
    answer.prepare(triple, knobs, 0, 1)  # kernels are loaded
    said = answer.bytes_needed(TripleShape(i, j, k, triple.ij.m, triple.ik.m, triple.jk.m), knobs)
    tracemalloc.start()
    try:
        work = answer.prepare(triple, knobs, 0, 1)
        spaces = [step.workspace() for step in work.passes]
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(spaces) == 1
    assert taken <= said + (1 << 14)  # and small objects
    assert said < 100 * (triple.ij.m + triple.ik.m + triple.jk.m) + (1 << 21)


def test_offsets_are_copied_only_beside_wider_ones() -> None:
    matrices = apart(4, 0.1)
    narrow = triple_of(matrices)
    assert copied_offsets(narrow) == []
    mixed = replace(narrow, ik=block_of(matrices[1], np.uint64))
    expected = [block.offsets.tolist() for block in (narrow.ij, narrow.jk)]
    assert [offsets.tolist() for offsets in copied_offsets(mixed)] == expected
    assert {offsets.dtype for offsets in copied_offsets(mixed)} == {np.dtype(np.uint64)}
    assert _records.widening_bytes(TripleShape(10, 20, 1, 5, 6, WIDE_ARCS - 1)) == 0
    assert _records.widening_bytes(TripleShape(10, 20, 1, 5, 6, WIDE_ARCS)) == 8 * (11 + 11 + 21)


def copied_offsets(triple: Triple) -> list[Any]:
    return [kept for kept in _batches.batch_of(one_task(triple)).kept if len(kept)]


def test_a_task_is_dense_where_any_block_is() -> None:
    sparse, dense = block_of(np.eye(8, 20, dtype=np.bool_)), block_of(np.ones((8, 20), np.bool_))
    knobs = bbtc.ALGORITHM.settings(None)

    def takes_map(triple: Triple, knobs: Any) -> bool:
        (found,) = bbtc.by_map(_batches.batch_of(one_task(triple)), knobs).tolist()
        return bool(found)

    assert not takes_map(Triple(sparse, sparse, sparse), knobs)
    for triple in (Triple(dense, sparse, sparse), Triple(sparse, dense, sparse), Triple(sparse, sparse, dense)):
        assert takes_map(triple, knobs)
        assert not takes_map(triple, {**knobs, "threshold": 20})  # as many, not more
        assert takes_map(triple, {**knobs, "threshold": 19})
        assert not takes_map(triple, {**knobs, "method": "list"})
    assert takes_map(Triple(sparse, sparse, sparse), {**knobs, "method": "hashmap"})


def test_a_map_is_only_there_where_it_is_used() -> None:
    triple = triple_of(apart(2, 0.2))
    for method, places in (("list", 0), ("hashmap", COLUMNS)):
        (step,) = bbtc.counter(bbtc.ALGORITHM.settings({"method": method}))(one_task(triple)).passes
        assert len(step.workspace()) == places


def whole(scale: int) -> OrientedGraph:
    stream = generate.kronecker(scale, seed=4)
    return oriented(stream.pairs(), stream.n)


GRAPH = whole(6 if JIT_DISABLED else 11)
TRIANGLES = ww.count(generate.kronecker(6 if JIT_DISABLED else 11, seed=4).pairs(), algorithm="reference")
N = GRAPH.n
PARTITIONS = (
    Rectilinear(np.array([0, N], np.int64)),
    Rectilinear(np.array([0, N // 2, N - N // 8, N], np.int64)),
    Rectilinear(np.array([0, 0, N // 3, N // 3, N - 1, N, N], np.int64)),
    Hashed(N, 2),
    Hashed(N, 3),
)


@for_every_algorithm
@pytest.mark.parametrize("shares", [1, 3])
@pytest.mark.parametrize("partition", PARTITIONS, ids=lambda partition: f"{type(partition).__name__}{partition.parts}")
def test_tasks_add_up_to_all_triangles(name: str, shares: int, partition: Rectilinear | Hashed) -> None:
    blocks = blocks_of(GRAPH, partition)
    found = [count(name, blocks.triple(t), None, t.share, t.shares) for t in table_of(partition, shares)]
    assert sum(found) == TRIANGLES > 0


@for_every_algorithm
@pytest.mark.parametrize("by", ["classes", "indegree", "collective"])
def test_ids_in_no_order_add_up_to_all_triangles(name: str, by: str) -> None:
    stream = generate.kronecker(6 if JIT_DISABLED else 10, seed=5)
    graph = oriented(stream.pairs(), stream.n, by)
    partition = Hashed(graph.n, 2)
    blocks = blocks_of(graph, partition)
    assert sum(count(name, blocks.triple(t)) for t in table_of(partition)) == ww.count(stream.pairs())


@pytest.mark.parametrize("parts", [0, 1, 2, 5, 36])
@pytest.mark.parametrize("method", ["auto", "list", "hashmap"])
def test_bbtc_counts_whole_graphs_in_any_number_of_parts(parts: int, method: str) -> None:
    knobs = bbtc.ALGORITHM.settings({"parts": min(parts, 4) if JIT_DISABLED else parts, "method": method})
    assert run(bbtc.prepare(GRAPH, knobs, 2)) == TRIANGLES


def test_bbtc_cuts_long_tasks_into_pieces_that_share_a_map(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bbtc, "TASK_TESTS", 20)
    monkeypatch.setattr(_batches, "TASK_ARCS", 10)
    monkeypatch.setattr(_batches, "RANGE_NANOSECONDS", 1)
    work = bbtc.prepare(GRAPH, bbtc.ALGORITHM.settings({"parts": 2, "method": "hashmap"}), 1)
    (step,) = work.passes
    assert len(step.bounds) > 20
    assert run(work) == TRIANGLES


def test_bbtc_takes_the_memory_that_it_says() -> None:
    knobs = bbtc.ALGORITHM.settings({"parts": 6})
    said = bbtc.bytes_needed(Shape(GRAPH.n, GRAPH.m), 1, knobs)
    bbtc.prepare(GRAPH, knobs, 1)
    tracemalloc.start()
    try:
        work = bbtc.prepare(GRAPH, knobs, 1)
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert work.passes
    assert taken <= said
