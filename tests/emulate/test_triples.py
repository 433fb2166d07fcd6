"""Tasks of three blocks through the emulator: counts, look-ups, classes, memory; and nothing is read on the way."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise, product
from typing import Any, NoReturn

import numpy as np
import pytest
from helpers.block_matrices import Matrix, block_of, count_blocks_by_product, random_matrix, triple_of
from numpy.typing import NDArray

from emulate.emulated_cases import (
    ATLAS,
    COMPLETE,
    EMPTY,
    SKEWED,
    all_launches,
    block_knob,
    counted,
    known,
    needs_compiler,
)
from emulate.emulator import POISON, EmulatedDevice, PoisonedNumpy
from emulate.intersections import noted_launches
from emulate.triple_cases import (
    LIKE_LARGE,
    LONG,
    PLAIN,
    RECORDS,
    ROWS,
    TRIPLES,
    Matrices,
    TripleCase,
    cases_of,
    check,
    count_in_parts,
    cut,
    found_by,
    kinds_of,
    little_work,
    matrices_of,
    on_device,
    prepared,
    prepared_batch,
    ways_of,
)
from wedgewise.algorithms import find
from wedgewise.algorithms._contract import DeviceBatch
from wedgewise.algorithms.gpu import _batches, bbtc
from wedgewise.algorithms.gpu._batches import MAX_UNITS, UNIT_BYTES, UNIT_WORK, listing, units_of, work_of_unit
from wedgewise.algorithms.gpu.trust import TableLayout, most_of_warp
from wedgewise.errors import InputError
from wedgewise.stages import DeviceGraph
from wedgewise.stages.tasks import TaskBatch, TripleShape, one_task, table_of

pytestmark = needs_compiler
OURS = ("bbtc", "trust")
LARGEST_BLOCK = 1024
H200_SMS, H200_SHARED_BYTES = 132, 232_448
SLACK = 1 << 12  # Python's own objects

for_every_algorithm = pytest.mark.parametrize("algorithm", RECORDS)


def deep_unless(is_quick: bool) -> Any:
    return () if is_quick else pytest.mark.deep


@pytest.fixture(scope="module")
def device() -> EmulatedDevice:
    return EmulatedDevice()


def test_the_published_algorithms_on_blocks_are_there() -> None:
    assert set(OURS) <= set(RECORDS)
    assert set(LIKE_LARGE) <= set(RECORDS)


@pytest.mark.compiled  # lines of the host that others run too
@for_every_algorithm
@pytest.mark.parametrize("triple", TRIPLES)
@pytest.mark.parametrize("block", [32, pytest.param(128, marks=pytest.mark.deep)])
def test_counts_are_those_of_products(algorithm: str, triple: str, block: int, device: EmulatedDevice) -> None:
    for kind in kinds_of(algorithm, block):
        check(TripleCase(algorithm, triple, kind), device)


@pytest.mark.parametrize(("block", "maps"), [(32, 0), (64, 1)])
def test_some_cases_have_maps_beyond_the_chip(block: int, maps: int, device: EmulatedDevice) -> None:
    columns = matrices_of("wide")[2].shape[1]
    assert bbtc.MapLayout.of(columns, 4, {"block": block}, device).shared_maps == maps
    check(TripleCase("bbtc", "wide", {"block": block, "method": "hashmap"}), device)


@pytest.mark.parametrize("algorithm", OURS)
@pytest.mark.parametrize(
    "block", [64, 96, pytest.param(256, marks=pytest.mark.deep), pytest.param(512, marks=pytest.mark.deep), 1024]
)
def test_blocks_of_any_size(algorithm: str, block: int, device: EmulatedDevice) -> None:
    for triple, kind in product((PLAIN, "hubs"), kinds_of(algorithm, block)):
        check(TripleCase(algorithm, triple, kind), device)


@pytest.mark.compiled  # lines of the host that others run too
@pytest.mark.parametrize(
    ("algorithm", "way"),
    [pytest.param(name, way, id=f"{name}-{way}") for name in RECORDS for way in ways_of(name)],
)
def test_knobs_do_not_change_counts(algorithm: str, way: dict[str, int | str], device: EmulatedDevice) -> None:
    for triple in (PLAIN, "hubs"):
        try:
            check(TripleCase(algorithm, triple, way), device)
        except InputError:
            assert way.items() - RECORDS[algorithm].settings(None).items()


@for_every_algorithm
@pytest.mark.parametrize("shares", [2, 3, ROWS + 3])
def test_shares_add_up(algorithm: str, shares: int, device: EmulatedDevice) -> None:
    matrices, knobs = matrices_of(PLAIN), block_knob(RECORDS[algorithm], 32)
    tried = range(shares) if shares < ROWS else (0, ROWS - 1, ROWS, shares - 1)
    for share in tried:
        check(TripleCase(algorithm, PLAIN, knobs, share, shares), device)
    assert (
        sum(count_blocks_by_product(*matrices, share, shares) for share in range(shares))
        == count_blocks_by_product(*matrices)
        > 0
    )


@for_every_algorithm
@pytest.mark.parametrize("wide", list(product((False, True), repeat=3))[1:], ids=str)
def test_offsets_of_any_width(algorithm: str, wide: tuple[bool, bool, bool], device: EmulatedDevice) -> None:
    for triple in (PLAIN, "one part"):
        check(TripleCase(algorithm, triple, block_knob(RECORDS[algorithm], 32), wide=wide), device)


@pytest.mark.deep
@for_every_algorithm
def test_many_launches(algorithm: str, device: EmulatedDevice) -> None:
    small = block_knob(RECORDS[algorithm], 32)
    once, tests = check(TripleCase(algorithm, PLAIN, small), device)
    often, tests_often = check(TripleCase(algorithm, PLAIN, small, small_launches=True), device)
    assert (often > once, tests_often) == (True, tests)
    check(TripleCase(algorithm, "gaps", small, share=1, shares=2, small_launches=True), device)


@for_every_algorithm
@pytest.mark.parametrize("empty", ["ij", "ik", "jk"])
def test_nothing_is_launched_where_no_triangle_can_be(algorithm: str, empty: str, device: EmulatedDevice) -> None:
    assert check(TripleCase(algorithm, f"{empty} without arcs"), device) == (0, 0)


def cuts() -> list[Any]:
    graphs, cut_into = (EMPTY, SKEWED, COMPLETE, ATLAS, "book-50"), (1, 2, 3, 4, 5)
    return [
        pytest.param(*cut, marks=deep_unless(cut[2] == 3 and cut[1] != ATLAS))
        for cut in product(("rectilinear", "hashed"), graphs, cut_into)
    ]


@for_every_algorithm
@pytest.mark.parametrize(("scheme", "graph", "parts"), cuts())
def test_tasks_add_up_to_all_triangles(
    algorithm: str, scheme: str, graph: str, parts: int, device: EmulatedDevice
) -> None:
    assert count_in_parts(algorithm, cut(scheme, graph, parts), 1, device) == known(graph).count


@for_every_algorithm
@pytest.mark.parametrize("scheme", ["rectilinear", "hashed"])
def test_shares_of_tasks_add_up_to_all_triangles(algorithm: str, scheme: str, device: EmulatedDevice) -> None:
    assert count_in_parts(algorithm, cut(scheme, SKEWED, 2), 3, device) == known(SKEWED).count


class Unread(np.ndarray[Any, np.dtype[Any]]):
    """An array of a device: a value that the host looks at has to be waited for."""

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise AssertionError("the host waits for the device")

    __int__ = __float__ = __bool__ = __index__ = __iter__ = tolist = item = max = sum = any = all = _refuse


class UnreadNumpy(PoisonedNumpy):
    """Whatever is made is `Unread`."""

    def __getattr__(self, name: str) -> Any:
        made = getattr(np, name)
        if name not in ("zeros", "asarray", "arange", "full"):
            return made
        return lambda *arguments, **options: made(*arguments, **options).view(Unread)

    @staticmethod
    def empty(shape: Any, dtype: Any = np.float64) -> NDArray[Any]:
        return PoisonedNumpy.empty(shape, dtype).view(Unread)


@for_every_algorithm
@pytest.mark.parametrize("triple", [PLAIN, "dense", "hubs", "one part"])
def test_nothing_waits_for_the_device(algorithm: str, triple: str) -> None:
    device = EmulatedDevice()
    device.xp = UnreadNumpy()
    small = block_knob(RECORDS[algorithm], 32)
    for way in ({}, *LIKE_LARGE.get(algorithm, ())):
        work = TripleCase(algorithm, triple, small | way, wide=(False, True, False)).prepare(device)
        work.found.fill(0)
        for launch in all_launches(work):
            launch()
        assert work.found.view(np.ndarray)[0, 0] == count_blocks_by_product(*matrices_of(triple))


def test_an_unread_array_says_so() -> None:
    counts = UnreadNumpy().zeros(3, np.uint32)
    for read in (int, bool, list, np.ndarray.__index__):
        with pytest.raises((AssertionError, TypeError)):
            read(counts[:1])
    with pytest.raises(AssertionError):
        counts.tolist()


@for_every_algorithm
@pytest.mark.parametrize("shares", [1, 3])
def test_every_task_of_a_batch_has_what_it_found(algorithm: str, shares: int, device: EmulatedDevice) -> None:
    """In any order of tasks, each as often as it is there, and ticks of a clock."""
    blocks, record = cut("rectilinear", SKEWED, 4), RECORDS[algorithm]
    tasks = table_of(blocks.partition, shares)
    shuffled = tasks.take(np.random.default_rng(1).permutation(len(tasks))[: len(tasks) * 2 // 3])
    work = prepared_batch(record, TaskBatch(blocks.blocks, shuffled), block_knob(record, 32), device)
    for _ in range(2):
        found_by(work)
        for task, (triangles, _, ticks) in zip(shuffled, work.found.tolist(), strict=True):
            alone = prepared(record, blocks.triple(task), block_knob(record, 32), task.share, shares, device)
            assert found_by(alone)[0] == triangles, task
            assert triangles == 0 or ticks > 0


@for_every_algorithm
def test_a_batch_has_few_launches(algorithm: str, device: EmulatedDevice) -> None:
    record, launches = RECORDS[algorithm], []
    for parts in (2, 9):
        blocks = cut("rectilinear", SKEWED, parts)
        batch = TaskBatch(blocks.blocks, table_of(blocks.partition))
        launches.append(sum(1 for _ in all_launches(prepared_batch(record, batch, block_knob(record, 32), device))))
    assert max(launches) <= 8


@pytest.mark.parametrize("work", [[1.0] * 5, [1e9, 1.0, 1.0], [1e5] * 7])
def test_units_are_all_parts_of_all_tasks(work: list[float]) -> None:
    chosen, most = np.arange(10, 10 + len(work)), 1000
    units = units_of(chosen, np.array(work), most, work_of_unit(np.array(work)))
    for task, steps in zip(chosen.tolist(), work, strict=True):
        of_task = units[units[:, 0] == task]
        parts = int(of_task[0, 5])
        assert of_task[:, 4].tolist() == list(range(parts))
        assert set(of_task[:, 5].tolist()) == {parts}
        assert parts == 1 or steps / parts >= UNIT_WORK / 2
    assert units[0, 0] == chosen[int(np.argmax(work))]
    assert len(units) <= len(work) + MAX_UNITS


@pytest.mark.parametrize(
    ("way", "most"),
    [
        ({}, (100, 192)),
        ({"large": 300}, (300, 300)),
        ({"cached": 0, "large": 7}, (7, 7)),
        ({"buckets": 128, "block": 64}, (100, 768)),
        ({"cooptimisation": "off"}, (2**31 - 1, 2**31 - 1)),
        ({"large": 2**40}, (2**31 - 1, 2**31 - 1)),
    ],
)
def test_what_is_for_a_warp_of_trust(way: dict[str, int | str], most: tuple[int, int]) -> None:
    knobs = RECORDS["trust"].settings(way)
    layout = TableLayout.of(
        knobs, 4, 10_000, EmulatedDevice(sms=H200_SMS, shared_bytes=H200_SHARED_BYTES), listing(1024)[1]
    )
    assert most_of_warp(layout, knobs) == most


def look_ups_of(matrices: Matrices, room: int = 2**31) -> int:
    """The second hop of every row with arcs in both blocks, once for every piece of its row of ik."""
    ij, ik, jk = (matrix.astype(np.int64) for matrix in matrices)
    return int(((ij @ jk.sum(axis=1)) * -(-ik.sum(axis=1) // room)).sum())


@pytest.mark.parametrize("triple", [PLAIN, "hubs", "gaps", "dense", LONG, "one part"])
def test_look_ups_are_those_of_the_second_hop(triple: str, device: EmulatedDevice) -> None:
    matrices = matrices_of(triple)
    by_map = check(TripleCase("bbtc", triple, {"method": "hashmap", "block": 64}), device)[1]
    assert by_map == look_ups_of(matrices)
    assert check(TripleCase("trust", triple, {"block": 32}), device)[1] == look_ups_of(matrices, 32 * 128)
    in_pieces: dict[str, int | str] = {"block": 32, "capacity": 2, "construction": "edge"}
    assert check(TripleCase("trust", triple, in_pieces), device)[1] == look_ups_of(matrices, 32 * 2)


@pytest.mark.parametrize("triple", [PLAIN, "hubs", "gaps", "dense", "one part"])
@pytest.mark.parametrize(("share", "shares"), [(0, 1), (1, 3)])
def test_merges_take_the_steps_that_they_take_on_the_cpu(
    triple: str, share: int, shares: int, device: EmulatedDevice
) -> None:
    on_cpu, knobs = find("bbtc", "cpu"), {"method": "list"}
    work = on_cpu.triples_on_cpu("count").prepare(triple_of(matrices_of(triple)), on_cpu.settings(knobs), share, shares)
    steps = 0
    for each in work.passes:
        space = each.workspace()
        steps += sum(int(each.run(begin, end, space)[1]) for begin, end in pairwise(each.bounds.tolist()))
    case = TripleCase("bbtc", triple, {"method": "list", "block": 64}, share, shares)
    assert check(case, device)[1] == steps


@pytest.mark.parametrize(("threshold", "kernel"), [(6, "look_up_arcs"), (10**6, "merge_arcs")])
def test_density_decides(threshold: int, kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    device, launched = EmulatedDevice(), []
    launch = device.launch

    def note(stem: str, name: str, *arguments: Any, **options: Any) -> None:
        launched.append(name)
        launch(stem, name, *arguments, **options)

    monkeypatch.setattr(device, "launch", note)
    check(TripleCase("bbtc", PLAIN, {"threshold": threshold}), device)
    assert launched[-1] == kernel


@pytest.mark.parametrize(
    ("block", "columns", "maps"),
    [
        (256, 50_000, 8),  # a map for each of eight warps, in four blocks on a multiprocessor
        (256, 60_000, 1),
        (256, 400_000, 1),
        (256, 460_000, 0),  # fewer than half of the threads would run
        (1024, 1_600_000, 1),
        (1024, 2_000_000, 0),
        (32, 100, 1),
    ],
)
def test_maps_are_on_chip_where_half_of_the_threads_run(block: int, columns: int, maps: int) -> None:
    h200 = EmulatedDevice(sms=H200_SMS, shared_bytes=H200_SHARED_BYTES)
    layout = bbtc.MapLayout.of(columns, 4, {"block": block}, h200)
    assert layout.shared_maps == maps
    assert layout.most_of_warp == ((block, 2**31 - 1) if maps == block // 32 else (0, 0))
    assert layout.shared_bytes + layout.static_bytes <= h200.shared_bytes
    assert 1 <= layout.blocks_on(h200) <= H200_SMS * 2048 // block


@pytest.mark.parametrize("maps", [2, 1, 0])
@pytest.mark.parametrize("triple", [PLAIN, "hubs", "one part", LONG])
def test_maps_wherever_they_are(maps: int, triple: str) -> None:
    """As much shared memory as 16 blocks with so many maps take: half of all threads; a byte too little for none."""
    block, columns = 64, matrices_of(triple)[2].shape[1]
    of_block = bbtc.STATIC_SHARED_BYTES + 4 * 4 * block + max(1, maps) * 4 * -(-columns // 32)
    small = EmulatedDevice(sms=1, shared_bytes=16 * of_block - (maps == 0))
    assert bbtc.MapLayout.of(columns, 4, {"block": block}, small).shared_maps == maps
    check(TripleCase("bbtc", triple, {"method": "hashmap", "block": block}), small)


def test_few_maps_are_taken_where_each_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bbtc, "MAX_MAP_BYTES", 100)
    small = EmulatedDevice(shared_bytes=4096)
    layout = bbtc.MapLayout.of(300, 4, {"block": 64}, small)
    assert (layout.shared_maps, layout.blocks_on(small)) == (0, 2)
    assert bbtc.MapLayout.of(3000, 4, {"block": 64}, small).blocks_on(small) == 1
    check(TripleCase("bbtc", "hubs", {"method": "hashmap", "block": 64}), small)


def test_blocks_have_maps_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A map of one block that is full of marks makes its rows find too much; blocks run one after the other here."""
    monkeypatch.setattr(_batches, "UNIT_WORK", 1)
    device = EmulatedDevice()
    noted = noted_launches(monkeypatch, device)
    work = TripleCase("bbtc", "wide", {"method": "hashmap", "block": 32}).prepare(device)
    triangles, _ = found_by(work)
    _, grid, arguments = noted[-1]
    maps = arguments[-1].reshape(grid, -1)
    assert not maps.any()
    maps[1] = 2**32 - 1
    assert found_by(work)[0] > triangles


def test_blocks_have_places_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_batches, "UNIT_WORK", 1)
    device = EmulatedDevice()
    noted = noted_launches(monkeypatch, device)
    way: dict[str, int | str] = {"block": 32, "cached": 0, "capacity": 4, "combination": "physical"}
    found_by(TripleCase("trust", "hubs", way).prepare(device))
    _, grid, arguments = noted[-1]
    for places in (arguments[-3], arguments[-2]):
        is_written = (places.reshape(grid, -1) != 0x01010101 * POISON).any(axis=1)
        assert is_written.sum() > 0.9 * grid


def test_long_blocks_are_counted_in_64_bits(device: EmulatedDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_batches, "WIDE_FROM", triple_of(matrices_of(PLAIN)).jk.m)
    for algorithm in RECORDS:
        device.launched.clear()
        check(TripleCase(algorithm, PLAIN, {"block": 32}), device)
        assert all(("OFFSET_BITS", 64) in defines for _, defines in device.launched)


def memory_taken(algorithm: str, matrices: Matrices, way: dict[str, int | str], device: EmulatedDevice) -> int:
    """What preparing leaves behind, the blocks and what is made of them apart."""
    record, batch = RECORDS[algorithm], one_task(triple_of(matrices))
    answer, knobs = record.triples_on_device("count"), record.settings(way)
    blocks = {pair: on_device(block, answer, knobs, device) for pair, block in batch.blocks.items()}
    given = DeviceBatch(blocks, batch.tasks)
    answer.prepare(given, knobs, device)
    tracemalloc.start()
    try:
        work = answer.prepare(given, knobs, device)
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert work.batches
    return taken


def bytes_said(algorithm: str, matrices: Matrices, way: dict[str, int | str]) -> int:
    record, (ij, ik, jk) = RECORDS[algorithm], matrices
    shape = TripleShape(len(ij), len(jk), jk.shape[1], int(ij.sum()), int(ik.sum()), int(jk.sum()))
    return int(record.triples_on_device("count").bytes_needed(shape, record.settings(way)))


def few_rows(rows: int, columns: int) -> Matrices:
    return random_matrix(1, rows, 50, 0.1), random_matrix(2, rows, columns, 0.01), random_matrix(3, 50, columns, 0.01)


@for_every_algorithm
@pytest.mark.parametrize("sms", [1, H200_SMS, 256])
@pytest.mark.parametrize("shared_bytes", [48 << 10, H200_SHARED_BYTES])
@pytest.mark.parametrize(("rows", "columns"), [(3, 20_000), (700, 900)])
def test_memory_is_as_said(algorithm: str, sms: int, shared_bytes: int, rows: int, columns: int) -> None:
    device, matrices = EmulatedDevice(sms=sms, shared_bytes=shared_bytes), few_rows(rows, columns)
    for way in ({}, *LIKE_LARGE.get(algorithm, ())):
        assert memory_taken(algorithm, matrices, way, device) <= bytes_said(algorithm, matrices, way) + SLACK
    with little_work(RECORDS[algorithm]):
        assert memory_taken(algorithm, matrices, {}, device) <= bytes_said(algorithm, matrices, {}) + (1 << 20)


def test_memory_of_large_blocks_is_bounded() -> None:
    def said(algorithm: str, columns: int) -> int:
        record = RECORDS[algorithm]
        shape = TripleShape(10**6, 10**6, columns, 10**8, 10**8, 10**8)
        return int(record.triples_on_device("count").bytes_needed(shape, record.settings(None)))

    units = MAX_UNITS * UNIT_BYTES
    assert said("bbtc", 10**6) == 2048 * 125_000 + units
    assert said("bbtc", 10**8) == 85 * 12_500_000 + units
    assert said("bbtc", 0) == units
    assert said("trust", 10**6) == 512 * 1024 * 128 * 4 + units


def test_a_whole_graph_is_one_task(device: EmulatedDevice) -> None:
    matrix = matrices_of("one part")[0]
    form = DeviceGraph(
        n=len(matrix),
        offsets=(block := block_of(matrix)).offsets,
        out_neighbours=block.heads,
        vertex_of=np.arange(len(matrix), dtype=np.uint32),
        order="id",
        named_by="rank",
        wedges=0,
    )
    work = bbtc.prepare(form, bbtc.ALGORITHM.settings(None), device)
    assert counted(work)[0] == count_blocks_by_product(matrix, matrix, matrix)


@pytest.mark.deep
@for_every_algorithm
def test_every_case_once_more(algorithm: str, device: EmulatedDevice) -> None:
    for case in cases_of(algorithm):
        check(case, device)


@pytest.mark.deep
@pytest.mark.parametrize("algorithm", OURS)
@pytest.mark.parametrize("seed", range(40))
def test_blocks_at_random(algorithm: str, seed: int, device: EmulatedDevice) -> None:
    random = np.random.default_rng(seed)
    i, j, k = (int(size) for size in random.integers(1, 120, 3))
    matrices: list[Matrix] = [
        random_matrix(int(random.integers(1 << 30)), rows, columns, float(random.random() ** 3))
        for rows, columns in ((i, j), (i, k), (j, k))
    ]
    ij, ik, jk = matrices
    shares = int(random.integers(1, 4))
    share, record = int(random.integers(shares)), RECORDS[algorithm]
    for way in ways_of(algorithm):
        triple = triple_of((ij, ik, jk))
        work = prepared(record, triple, dict(way), share, shares, device)
        assert found_by(work)[0] == count_blocks_by_product(ij, ik, jk, share, shares), way
