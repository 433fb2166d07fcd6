"""Per-vertex counts and per-edge supports by slices: exact, each triangle once per vertex and edge, within memory."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import cycle, islice, pairwise, product
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.block_matrices import WIDER, Matrix, ascending, block_of, random_matrix, triple_of, unordered
from helpers.cut_graphs import oriented
from helpers.graphs import LOCAL_FORMS, MAX_EDGES, TRUTHS, LocalForm, fixture_pairs, of_fit_size, random_pairs
from helpers.stores import WITHOUT_TRIANGLES, at_most, interpret_kernels
from numpy.typing import NDArray

import wedgewise as ww
from wedgewise import generate
from wedgewise.algorithms import _ranges, find
from wedgewise.algorithms._contract import BatchWork, SliceMethod, Work
from wedgewise.algorithms._passes import run_passes
from wedgewise.algorithms.cpu import _batches, _keystone_close, _keystone_slices, _keystone_supports, _records
from wedgewise.errors import MemoryLimitError, PreconditionError, VerificationError
from wedgewise.machine.jit import JIT_DISABLED
from wedgewise.prepare.cut_blocks import blocks_of
from wedgewise.run import outofcore, sliced_answer
from wedgewise.run.block_caches import BlockCache
from wedgewise.run.sliced_answer import SLICE_TYPES, AnswerSlice, SlicedAnswer, slices_of
from wedgewise.stages.blocks import Block, Blocks, Hashed, Partition, Rectilinear, Triple
from wedgewise.stages.tasks import BlockCounts, TripleShape, one_task, table_of
from wedgewise.store.build import write_store
from wedgewise.store.open import Store

Matrices = tuple[Matrix, Matrix, Matrix]
Numbers = NDArray[Any]

QUESTIONS = ("triangles", "edge_support")
WAYS: tuple[dict[str, int | str], ...] = tuple(
    {"hubs": count, "probe_ratio": ratio} for count, ratio in product((-1, 0, 7, 2**31 - 1), (0, 2, 2**31 - 1))
)
ROOMY = 1 << 40
FORMS = [form for form in LOCAL_FORMS if form.stream.pairs_count < MAX_EDGES]
ROWS, COLUMNS = (12, 530) if JIT_DISABLED else (70, 1300)  # two and three blocks of 512 columns

for_both = pytest.mark.parametrize("computes", QUESTIONS)
for_every_role = pytest.mark.parametrize("role", [0, 1, 2])
for_every_way = pytest.mark.parametrize("way", WAYS, ids=lambda way: "-".join(map(str, way.values())))


def apart(density: float) -> Matrices:
    return (
        random_matrix(1, ROWS, ROWS + 9, density),
        random_matrix(2, ROWS, COLUMNS, density),
        random_matrix(3, ROWS + 9, COLUMNS, density),
    )


def one_part(density: float) -> Matrices:
    matrix = ascending(1, ROWS * 3, density)
    return matrix, matrix, matrix


def one_part_unordered(density: float) -> Matrices:
    matrix = unordered(1, ROWS * 3, density)
    return matrix, matrix, matrix


def first_two_alike(density: float) -> Matrices:
    far = random_matrix(2, ROWS, COLUMNS, density)
    return ascending(1, ROWS, density), far, far


def last_two_alike(density: float) -> Matrices:
    near = random_matrix(2, ROWS, ROWS * 3, density)
    return near, near, ascending(1, ROWS * 3, density)


def last_two_alike_unordered(density: float) -> Matrices:
    near = random_matrix(2, ROWS, ROWS * 3, density)
    return near, near, unordered(1, ROWS * 3, density)


def staircase(density: float) -> Matrices:
    """Rows of jk begin one after the other, and so do their bit rows."""
    columns, begins = 1300, np.arange(ROWS) * 1300 // ROWS
    jk = random_matrix(3, ROWS, columns, 0.4) & (np.arange(columns) >= begins[:, None])
    return random_matrix(1, ROWS, ROWS, max(density, 0.2)), random_matrix(2, ROWS, columns, max(density, 0.2)), jk


SHAPES = (staircase, apart, one_part, one_part_unordered, first_two_alike, last_two_alike, last_two_alike_unordered)


@dataclass(frozen=True, slots=True)
class Known:
    """Three blocks, and the triangles of each of their arcs, as matrices."""

    triple: Triple
    of_arcs: tuple[Numbers, Numbers, Numbers]

    @classmethod
    def of(cls, matrices: Matrices) -> Known:
        """By products."""
        ij, ik, jk = (matrix.astype(np.float64) for matrix in matrices)  # exact below 2^53
        return cls(triple_of(matrices), (ij * (ik @ jk.T), ik * (ij @ jk), jk * (ij.T @ ik)))

    def expected(self, computes: str, role: int) -> Numbers:
        """What the triangles give in a role."""
        if computes == "edge_support":
            block = (self.triple.ij, self.triple.ik, self.triple.jk)[role]
            rows = np.repeat(np.arange(block.rows), np.diff(block.offsets.tolist()))
            return self.of_arcs[role][rows, block.heads]
        return np.asarray(self.of_arcs[role // 2].sum(axis=1 if role == 0 else 0))


@cache
def known(shape: Callable[[float], Matrices], density: float) -> Known:
    return Known.of(shape(density))


def answer(computes: str) -> SliceMethod:
    return find("keystone", "cpu").sliced[computes]


def in_role(triple: Triple, computes: str, role: int) -> tuple[Triple, int]:
    """The task that is prepared for a role, and as which: arcs of jk are those of ik of the turned one."""
    turned = answer(computes).turned
    return (triple, role) if turned is None or role < 2 else (Triple(turned(triple.ij), triple.jk, triple.ik), 1)


def prepared(triple: Triple, computes: str, role: int, filled: Numbers, knobs: dict[str, int | str]) -> Work:
    """One task by itself."""
    triple, role = in_role(triple, computes, role)
    return answer(computes).prepare(one_task(triple), role, filled, knobs)


def empty_slice(triple: Triple, computes: str, role: int) -> Numbers:
    vertices = (triple.ij.rows, triple.jk.rows, triple.jk.columns)[role]
    arcs = (triple.ij.m, triple.ik.m, triple.jk.m)[role]
    return np.zeros(vertices if computes == "triangles" else arcs, SLICE_TYPES[computes])


def run(work: Work | BatchWork, workers: int = 1) -> tuple[int, int]:
    """All ranges, in turn in the workspaces of so many workers: triangles and tests."""
    triangles = tests = 0
    for step in work.passes:
        ranges = list(pairwise(step.bounds.tolist()))
        spaces = [step.workspace() for _ in range(min(workers, len(ranges)))]
        for (begin, end), workspace in zip(ranges, islice(cycle(spaces), len(ranges)), strict=True):
            found, tested = step.run(begin, end, workspace)
            triangles, tests = triangles + int(found), tests + int(tested)
    return triangles, tests


def filled_by(
    triple: Triple, computes: str, role: int, way: dict[str, int | str] | None = None, workers: int = 1
) -> Numbers:
    """What a role of a task is given, whose triangles add up."""
    filled = empty_slice(triple, computes, role)
    triangles, _ = run(prepared(triple, computes, role, filled, find("keystone", "cpu").settings(way)), workers)
    assert triangles == int(filled.sum())
    return filled


@for_both
@for_every_role
@for_every_way
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_roles_have_what_products_say(
    computes: str, role: int, way: dict[str, int | str], shape: Callable[[float], Matrices]
) -> None:
    for density in (0.05,) if JIT_DISABLED else (0.02, 0.4):
        made = known(shape, density)
        assert np.array_equal(filled_by(made.triple, computes, role, way), made.expected(computes, role))


@for_both
@for_every_role
def test_slices_are_added_to(computes: str, role: int) -> None:
    triple, due = known(apart, 0.1).triple, known(apart, 0.1).expected(computes, role)
    filled = empty_slice(triple, computes, role)
    filled += np.arange(len(filled), dtype=filled.dtype)
    for _ in range(2):
        run(prepared(triple, computes, role, filled, find("keystone", "cpu").settings(None)))
    np.testing.assert_array_equal(filled, np.arange(len(filled)) + 2 * due)
    assert due.any()


@pytest.mark.deep  # wide offsets are kernels of their own, to be compiled
@for_both
@for_every_role
@pytest.mark.parametrize("widths", WIDER)
def test_offsets_may_have_any_width(computes: str, role: int, widths: Any) -> None:
    matrices = apart(0.1)
    triple = Triple(*(block_of(matrix, width) for matrix, width in zip(matrices, widths, strict=True)))
    assert np.array_equal(filled_by(triple, computes, role), known(apart, 0.1).expected(computes, role))


@for_both
@for_every_role
@pytest.mark.parametrize("empty", [0, 1, 2])
def test_a_block_without_arcs_gives_nothing(computes: str, role: int, empty: int) -> None:
    matrices = [*apart(0.2)]
    matrices[empty] = np.zeros_like(matrices[empty])
    assert not filled_by(Triple(*map(block_of, matrices)), computes, role).any()


@for_both
@for_every_role
@pytest.mark.parametrize("sizes", [(0, 5, 5), (5, 0, 5), (5, 5, 0), (1, 1, 1), (1, 1, 513), (3, 2, 512)])
def test_parts_of_few_ids(computes: str, role: int, sizes: tuple[int, int, int]) -> None:
    i, j, k = sizes
    full = np.ones((i, j), np.bool_), np.ones((i, k), np.bool_), np.ones((j, k), np.bool_)
    due = Known.of(full)
    for way in WAYS[1::4]:
        assert np.array_equal(filled_by(due.triple, computes, role, way), due.expected(computes, role))


@for_both
@for_every_role
@pytest.mark.parametrize("workers", [1, 2, 5])
def test_ranges_and_workers_change_nothing(
    computes: str, role: int, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (_ranges, _batches):
        monkeypatch.setattr(module, "TASK_ARCS", 3 if JIT_DISABLED else 10)
    monkeypatch.setattr(_keystone_slices, "RANGE_NANOSECONDS", 100)
    monkeypatch.setattr(_ranges, "SMALL_WORK", 1)
    monkeypatch.setattr(_keystone_supports, "TASK_SUMS", 7)
    monkeypatch.setattr(_keystone_close, "ROWS_AT_ONCE", 3)
    for shape in SHAPES:
        made = known(shape, 0.4 if JIT_DISABLED else 0.1)
        triple = made.triple
        work = prepared(
            triple, computes, role, empty_slice(triple, computes, role), find("keystone", "cpu").settings(None)
        )
        assert all(len(step.bounds) > 2 and (np.diff(step.bounds) > 0).all() for step in work.passes)
        assert np.array_equal(filled_by(triple, computes, role, None, workers), made.expected(computes, role))


@pytest.mark.compiled
@pytest.mark.parametrize("computes", QUESTIONS)
def test_a_row_may_have_more_hubs_than_are_summed_at_once(computes: str) -> None:
    full = np.ones((2, 9000), np.bool_), np.ones((2, 530), np.bool_), np.ones((9000, 530), np.bool_)
    full[2][::3, :520] = False
    way: dict[str, int | str] = {"hubs": 2**31 - 1, "probe_ratio": 0}
    due = Known.of(full)
    for role in (1, 2):
        assert np.array_equal(filled_by(due.triple, computes, role, way), due.expected(computes, role))


@for_both
@for_every_role
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("density", [0.4] if JIT_DISABLED else [0.01, 0.4])
def test_memory_is_as_said(
    computes: str, role: int, threads: int, wide: bool, density: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    i, j, k = (60, 70, 300) if JIT_DISABLED else (700, 800, 1500)
    matrices = random_matrix(1, i, j, density), random_matrix(2, i, k, density), random_matrix(3, j, k, density)
    triple, knobs = triple_of(matrices), find("keystone", "cpu").settings(None)
    if wide:
        triple = replace(triple, jk=block_of(matrices[2], np.uint64))
        monkeypatch.setattr(_records, "WIDE_ARCS", 1)
    filled = empty_slice(triple, computes, role)
    run(prepared(triple, computes, role, filled, knobs))  # kernels are loaded
    arcs = triple.ij.m, triple.ik.m, triple.jk.m
    task, of = in_role(triple, computes, role)
    shape = TripleShape(task.ij.rows, task.jk.rows, k, task.ij.m, task.ik.m, task.jk.m)
    said = answer(computes).bytes_needed(shape, knobs) + answer(computes).thread_bytes(shape, of, threads, knobs)
    tracemalloc.start()
    try:
        work = answer(computes).prepare(one_task(task), of, filled, knobs)
        spaces = [step.workspace() for step in work.passes for _ in range(threads)]
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(spaces) == threads * len(work.passes)
    assert taken <= said + (1 << 14)  # and small objects
    assert said < 20 * sum(arcs) + threads * 100 * (i + j + k) + (1 << 21)


@for_both
def test_look_ups_are_those_of_about_three_counts(computes: str) -> None:
    """Exactly three for vertices; for arcs, the third role asks other rows."""
    knobs = find("keystone", "cpu").settings(None)
    counting = find("keystone", "cpu").triples_on_cpu("count")
    counted = in_slices = 0
    for task in table_of(PARTITIONS["rectilinear 3"]):
        triple = HELD["rectilinear 3"].blocks.triple(task)
        counted += run(counting.prepare(triple, knobs, 0, 1))[1]
        for role in range(3):
            in_slices += run(prepared(triple, computes, role, empty_slice(triple, computes, role), knobs))[1]
    assert counted > 0
    assert in_slices == 3 * counted if computes == "triangles" else 2 * counted < in_slices < 6 * counted


@dataclass(frozen=True, slots=True)
class Held:
    """Blocks in memory as a source of blocks."""

    blocks: Blocks

    @property
    def partition(self) -> Partition:
        return self.blocks.partition

    @property
    def counts(self) -> BlockCounts:
        return BlockCounts.of(self.blocks)

    def block(self, row: int, column: int, /, *, threads: int = 1) -> Block:
        return self.blocks.blocks[row, column]


def by_id(source: Held | Store, computes: str, threads: int = 1) -> Numbers:
    """All slices put together: by id; or a row (tail, head, support) for each arc, ascending."""
    sliced = SlicedAnswer(source, computes, available_bytes=ROOMY, threads=threads)
    found = list(sliced.compute(sliced.slices))
    assert [piece for piece, _ in found] == list(sliced.slices)
    partition = source.partition
    if computes == "triangles":
        whole = np.zeros(partition.n, np.uint64)
        for piece, numbers in found:
            whole[partition.ids(piece.of)] = numbers
        return whole
    rows = []
    for piece, numbers in found:
        block = source.block(*piece.of)
        tails = partition.ids(piece.of[0])[np.repeat(np.arange(block.rows), np.diff(block.offsets.tolist()))]
        rows.append(np.stack([tails, partition.ids(piece.of[1])[block.heads], numbers], axis=1))
    whole = np.concatenate(rows).astype(np.int64)
    return whole[np.lexsort((whole[:, 1], whole[:, 0]))]


def totals(numbers: Numbers) -> int:
    """The sum of what `by_id` returns."""
    return int((numbers if numbers.ndim == 1 else numbers[:, 2]).sum())


GRAPH = oriented(generate.kronecker(6 if JIT_DISABLED else 11, seed=4).pairs(), 1 << (6 if JIT_DISABLED else 11))
N = GRAPH.n
PARTITIONS: dict[str, Rectilinear | Hashed] = {
    "rectilinear 1": Rectilinear(np.array([0, N], np.int64)),
    "rectilinear 3": Rectilinear(np.array([0, N // 2, N - N // 8, N], np.int64)),
    "with empty parts": Rectilinear(np.array([0, 0, N // 3, N // 3, N - 1, N, N], np.int64)),
    "hashed 2": Hashed(N, 2),
    "hashed 3": Hashed(N, 3),
    "hashed 5": Hashed(N, 5),
}
HELD = {name: Held(blocks_of(GRAPH, partition)) for name, partition in PARTITIONS.items()}
WHOLE = {computes: by_id(HELD["rectilinear 1"], computes) for computes in QUESTIONS}


@for_both
@pytest.mark.parametrize("name", PARTITIONS)
@pytest.mark.parametrize("threads", [1, pytest.param(2, marks=pytest.mark.deep), 5])
def test_parts_and_threads_change_nothing(
    computes: str, name: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_ranges, "TASK_ARCS", 60)
    np.testing.assert_array_equal(by_id(HELD[name], computes, threads), WHOLE[computes])
    assert totals(WHOLE["triangles"]) == totals(WHOLE["edge_support"]) > 0


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.stream.name)
@pytest.mark.parametrize("partition", ["rectilinear", "hashed"])
def test_closed_forms(form: LocalForm, partition: str) -> None:
    graph = oriented(form.stream.pairs(), form.stream.n)
    cuts = np.array([0, graph.n // 4, graph.n // 4, graph.n - graph.n // 3, graph.n], np.int64)
    held = Held(blocks_of(graph, Rectilinear(cuts) if partition == "rectilinear" else Hashed(graph.n, 3)))
    rows = by_id(held, "edge_support")
    degrees = np.bincount(rows[:, :2].ravel(), minlength=graph.n)
    assert by_id(held, "triangles").tolist() == [form.of_vertex(d) if d else 0 for d in degrees.tolist()]
    assert rows[:, 2].tolist() == [form.of_edge(*degrees[[u, v]].tolist()) for u, v, _ in rows.tolist()]


@pytest.mark.parametrize("by", ["classes", "indegree", "collective"])
def test_ids_in_no_order(by: str) -> None:
    pairs = generate.kronecker(6 if JIT_DISABLED else 9, seed=5).pairs()
    graph = oriented(pairs, 1 << (6 if JIT_DISABLED else 9), by)
    held = Held(blocks_of(graph, Hashed(graph.n, 2)))
    total = 3 * ww.count(pairs)
    assert totals(by_id(held, "triangles")) == totals(by_id(held, "edge_support")) == total > 0
    found, due = (np.sort(numbers[numbers > 0]) for numbers in (by_id(held, "triangles"), ww.triangles(pairs)))
    assert np.array_equal(found, due)


@pytest.mark.parametrize("scheme", ["rectilinear", "hashed"])
@pytest.mark.parametrize("parts", [1, 2, 3, 5])
@pytest.mark.parametrize("name", of_fit_size("karate", "lesmis", "jazz", "atlas_union"))
def test_stores_have_the_answers_of_their_graphs(tmp_path: Path, name: str, parts: int, scheme: str) -> None:
    store = write_store(fixture_pairs(name), tmp_path / "store", parts=parts, scheme=scheme)
    graph = ww.Graph(fixture_pairs(name))
    vertex_of = store.vertex_of()
    found = np.empty(graph.n, np.uint64)
    found[vertex_of] = by_id(store, "triangles")
    np.testing.assert_array_equal(found, ww.triangles(graph))
    rows = by_id(store, "edge_support")
    edges = np.sort(vertex_of[rows[:, :2]].astype(np.int64), axis=1)
    order = np.lexsort((edges[:, 1], edges[:, 0]))
    np.testing.assert_array_equal(edges[order], graph.edges)
    np.testing.assert_array_equal(rows[order, 2], ww.edge_support(graph))
    assert rows[:, 2].sum() == found.sum() == 3 * TRUTHS[name]["triangles"]


@for_both
def test_empty_graphs_have_slices_too(tmp_path: Path, computes: str) -> None:
    for number, pairs in enumerate(WITHOUT_TRIANGLES):
        for parts in {1, at_most(3, ww.Graph(pairs))}:
            store = write_store(pairs, tmp_path / f"{number}-{parts}", parts=parts)
            assert totals(by_id(store, computes)) == 0


def test_slices_are_parts_or_blocks() -> None:
    cuts = Rectilinear(np.array([0, 1, 2, 3], np.int64))
    assert slices_of(cuts, "triangles") == tuple(AnswerSlice(part, part) for part in range(3))
    pairs = [piece.of for piece in slices_of(cuts, "edge_support")]
    assert pairs == [(0, 0), (0, 1), (0, 2), (1, 2), (1, 1), (2, 2)]
    of_hashed = slices_of(Hashed(9, 3), "edge_support")
    assert {piece.of for piece in of_hashed} == set(product(range(3), repeat=2))
    assert [piece.number for piece in of_hashed] == list(range(9))


@for_both
def test_some_owners_in_any_order(computes: str) -> None:
    sliced = SlicedAnswer(HELD["rectilinear 3"], computes, available_bytes=ROOMY)
    whole = dict(sliced.compute(sliced.slices))
    told: list[tuple[str, int, int]] = []
    some = [sliced.slices[2], sliced.slices[0]]
    for piece, numbers in sliced.compute(some, lambda *progress: told.append(progress)):
        np.testing.assert_array_equal(numbers, whole[piece])
    assert {(stage, total) for stage, _, total in told} == {(computes, told[-1][1])}
    assert all(later[1] > earlier[1] > 0 for earlier, later in pairwise(told))
    assert list(sliced.compute([])) == []


@for_both
def test_work_can_be_ended_between_tasks(computes: str) -> None:
    def progress(_stage: str, done: int, _total: int) -> None:
        if done >= 3:
            raise KeyboardInterrupt

    sliced = SlicedAnswer(HELD["hashed 3"], computes, available_bytes=ROOMY)
    with pytest.raises(KeyboardInterrupt):
        list(sliced.compute(sliced.slices, progress))


def refused(sliced: SlicedAnswer) -> int:
    """What a refusal says that is needed."""
    with pytest.raises(MemoryLimitError, match=r"take [\d,]+ bytes and 0 are left; raise the limit, or part") as short:
        sliced.check_fits()
    return int(str(short.value).partition(" take ")[2].partition(" ")[0].replace(",", ""))


@for_both
@pytest.mark.parametrize("name", ["rectilinear 3", "with empty parts", "hashed 3"])
def test_the_least_memory_is_enough_and_less_is_refused(computes: str, name: str) -> None:
    least = refused(SlicedAnswer(HELD[name], computes, available_bytes=0))
    for sliced in (
        SlicedAnswer(HELD[name], computes, available_bytes=0),
        SlicedAnswer(HELD[name], computes, available_bytes=least - 1),
    ):
        with pytest.raises(MemoryLimitError, match="part " if computes == "triangles" else "the arcs of block"):
            list(sliced.compute(sliced.slices))
    tight = SlicedAnswer(HELD[name], computes, available_bytes=least)
    assert tight.check_fits() == least
    roomy = dict(SlicedAnswer(HELD[name], computes, available_bytes=ROOMY).compute(tight.slices))
    for piece, numbers in tight.compute(tight.slices):
        np.testing.assert_array_equal(numbers, roomy[piece])


@for_both
def test_threads_give_way_to_memory(computes: str) -> None:
    held = HELD["rectilinear 3"]
    least = refused(SlicedAnswer(held, computes, available_bytes=0))
    assert SlicedAnswer(held, computes, available_bytes=ROOMY, threads=16).with_fitting_threads().threads == 16
    fewer = SlicedAnswer(held, computes, available_bytes=least + (1 << 17), threads=16).with_fitting_threads()
    assert 1 < fewer.threads < 16
    assert fewer.check_fits() <= least + (1 << 17)
    assert SlicedAnswer(held, computes, available_bytes=0, threads=16).with_fitting_threads().threads == 1


@dataclass(frozen=True, slots=True)
class Watched(Held):
    """Blocks of which it is known which are still in memory."""

    alive: dict[int, int] = field(default_factory=dict)
    reads: list[tuple[int, int]] = field(default_factory=list)

    def block(self, row: int, column: int, /, *, threads: int = 1) -> Block:
        given = self.blocks.blocks[row, column]
        self.reads.append((row, column))
        return self.watched(Block(given.offsets, given.heads.copy(), given.columns))

    def watched(self, block: Block) -> Block:
        number = max(self.alive, default=0) + 1
        self.alive[number] = block.nbytes
        weakref.finalize(block.heads, self.alive.pop, number)
        return block

    def watch_turned(self, sliced: SlicedAnswer) -> None:
        turned = sliced._method.turned
        if turned is not None:
            sliced._method = replace(sliced._method, turned=lambda block: self.watched(turned(block)))


@for_both
@pytest.mark.parametrize("name", ["rectilinear 3", "hashed 3"])
@pytest.mark.parametrize("extra", [0, 9000, 40_000])
def test_what_is_held_fits(computes: str, name: str, extra: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks in memory, whoever holds them, are within what the task and the slices leave."""
    limits: list[tuple[int, int]] = []
    source = Watched(HELD[name].blocks)
    really = BlockCache.blocks

    def blocks(self: Any, wanted: Any, available: int) -> Any:
        held = really(self, wanted, available)
        limits.append((sum(source.alive.values()), available))
        return held

    monkeypatch.setattr(BlockCache, "blocks", blocks)
    available = refused(SlicedAnswer(source, computes, available_bytes=0)) + extra
    sliced = SlicedAnswer(source, computes, available_bytes=available)
    source.watch_turned(sliced)
    least_work = int(sliced._cut_all(sliced.slices, available)[0].work.min())
    before = seen = 0
    for _, numbers in sliced.compute(sliced.slices):
        pages = -(-numbers.nbytes // 4096) * 4096
        assert all(left + pages + before + least_work <= available for _, left in limits[seen:])
        before, seen = pages, len(limits)
    assert all(held <= left for held, left in limits)
    assert limits
    source.reads.clear()
    roomy = SlicedAnswer(source, computes, available_bytes=ROOMY)
    assert len(list(roomy.compute(roomy.slices))) == len(roomy.slices)
    ways = 1 if computes == "triangles" else 2  # as they are, and turned
    assert sorted(source.reads) == sorted([*source.blocks.blocks] * ways)


def test_slices_that_do_not_add_up_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SlicedAnswer, "_add", lambda *_: 1)
    sliced = SlicedAnswer(HELD["rectilinear 3"], "triangles", available_bytes=ROOMY)
    with pytest.raises(VerificationError, match="please report this"):
        next(sliced.compute(sliced.slices))


def test_algorithms_without_owned_answers_are_named() -> None:
    with pytest.raises(PreconditionError, match="bbtc on cpu does not compute triangles of blocks; keystone"):
        SlicedAnswer(HELD["hashed 2"], "triangles", available_bytes=ROOMY, algorithm="bbtc")


@for_both
def test_knobs_change_nothing(computes: str) -> None:
    held, total = HELD["with empty parts"], totals(WHOLE[computes])
    for way in WAYS[::5]:
        sliced = SlicedAnswer(held, computes, available_bytes=ROOMY, knobs=way)
        assert sum(int(numbers.sum(dtype=np.uint64)) for _, numbers in sliced.compute(sliced.slices)) == total


LOADED_BEFOREHAND = """
import sys
from wedgewise import generate
from wedgewise.run import outofcore, sliced_answer
from wedgewise.machine import jit
from wedgewise.store.build import write_store
computes, folder = sys.argv[1:]
store = write_store(generate.kronecker(12, seed=4), folder, parts=3)
sliced_answer.load_slice_kernels("keystone", computes)
def late(kernel, kinds): raise AssertionError(f"{kernel.title} was not loaded before")
jit._load_or_compile = late
sliced = sliced_answer.SlicedAnswer(store, computes, available_bytes=1 << 40, threads=2)
print(sum(int(numbers.sum(dtype="u8")) for _, numbers in sliced.compute(sliced.slices)))
"""


@pytest.mark.compiled
@for_both
def test_every_kernel_is_loaded_beforehand(tmp_path: Path, computes: str) -> None:
    command = [sys.executable, "-c", LOADED_BEFOREHAND, computes, str(tmp_path / "store")]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.stdout == f"{3 * ww.count(generate.kronecker(12, seed=4).pairs())}\n", ran.stderr


@for_both
def test_loading_answers_for_a_clique_in_every_role(computes: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[int] = []

    def noted(*given: Any) -> int:
        found.append(run_passes(*given))
        return found[-1]

    interpret_kernels(monkeypatch)
    monkeypatch.setattr(outofcore, "CLIQUE_VERTICES", 12)
    monkeypatch.setattr(sliced_answer, "run_passes", noted)
    sliced_answer.load_slice_kernels("keystone", computes)
    roles = 3 if computes == "triangles" else 2  # the third one is the second of a turned block
    assert sum(found) == roles * comb(12, 3)


@for_both
def test_memory_is_what_a_limit_leaves(computes: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def available_after_loading(*arguments: Any) -> int:
        seen.append(arguments)
        return 77

    monkeypatch.setattr(sliced_answer, "available_after_loading", available_after_loading)
    assert sliced_answer.bytes_for_slices(2**30, computes) == 77
    assert seen == [(2**30, sliced_answer.load_slice_kernels, "keystone", computes)]


def test_random_graphs_in_random_parts() -> None:
    random = np.random.default_rng(7)
    for seed in range(3 if JIT_DISABLED else 8):
        n = int(random.integers(3, 40))
        graph = oriented(random_pairs(n, 5 * n, seed), n)
        inner = np.sort(random.integers(0, n + 1, int(random.integers(0, 5))))
        for partition in (Rectilinear(np.array([0, *inner, n], np.int64)), Hashed(n, int(random.integers(1, 6)))):
            held, whole = (Held(blocks_of(graph, cut)) for cut in (partition, Rectilinear(np.array([0, n]))))
            for computes in QUESTIONS:
                np.testing.assert_array_equal(by_id(held, computes), by_id(whole, computes))
