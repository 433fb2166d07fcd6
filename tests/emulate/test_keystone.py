"""keystone's count through the emulator: tables, bitmaps and searches where they meet, batches, launches, memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np
import pytest
from helpers.graphs import count_by_product, random_pairs

import wedgewise as ww
from emulate.emulated_cases import counted, needs_compiler, on_device
from emulate.emulator import EmulatedDevice
from wedgewise import generate
from wedgewise.algorithms._contract import Shape
from wedgewise.algorithms.gpu import keystone
from wedgewise.stages import DeviceGraph

pytestmark = needs_compiler
LOAD, GROUP = 8, 32  # ids in a load, pivots in a group
NEVER = 2**31 - 1
ALLOWANCE_BYTES = 16 << 10  # of what does not grow with the graph


@pytest.fixture(scope="module")
def device() -> EmulatedDevice:
    return EmulatedDevice()


class Given(NamedTuple):
    graph: DeviceGraph
    triangles: int


def given(pairs: Any, n: int, order: str = "degree") -> Given:
    graph = on_device(ww.Graph(np.asarray(pairs, np.int64).reshape(-1, 2), n=n), order, "rank")
    return Given(graph, count_by_product(np.asarray(pairs), n))


@cache
def skewed() -> Given:
    return given(generate.kronecker(8, seed=3).pairs(), 256)


@cache
def stairs(core: int) -> Given:
    """Below a clique of so many, vertex a has the last a ids: rows, and what lies behind pivots, of every length."""
    steps = [(a, 2 * core - 1 - k) for a in range(core) for k in range(a)]
    return given(np.concatenate([steps, generate.complete(core).pairs().astype(np.int64) + core]), 2 * core, "id")


@cache
def sparse() -> Given:
    """Hardly more arcs than vertices."""
    return given(np.concatenate([generate.windmill(600, 3).pairs(), random_pairs(1201, 300, seed=2)]), 1201)


GRAPHS: dict[str, Callable[[], Given]] = {"skewed": skewed, "stairs": lambda: stairs(30), "sparse": sparse}
on_every_graph = pytest.mark.parametrize("graph", GRAPHS)


class Parts(NamedTuple):
    """Loads of 8 ids through tables and through bitmaps, and keys that are searched."""

    near_loads: int
    far_loads: int
    keys: int

    @property
    def tests(self) -> int:
        return LOAD * (self.near_loads + self.far_loads) + self.keys


def parts(graph: DeviceGraph, **knobs: int | str) -> Parts:
    """What every arc a -> b gives rise to, by definition."""
    setting = keystone.ALGORITHM.settings(knobs)
    near_hubs = min(graph.n, int(setting["near_hubs"]) or keystone.FEW_NEAR_HUBS)
    first_near, first_hub = graph.n - near_hubs, graph.n - max(near_hubs, min(graph.n, int(setting["hubs"])))
    rows = [row.tolist() for row in np.split(graph.out_neighbours, graph.offsets[1:-1].astype(np.int64))]
    loads: dict[tuple[bool, int], int] = {}
    arcs: list[tuple[tuple[bool, int], int, int]] = []  # unit, keys without a table, keys beside one
    for row in rows:
        groups = set()
        for place, b in enumerate(row):
            near, behind = b >= first_near, row[place + 1 :]
            unit = (near, (b - first_near) // GROUP if near else b)
            list_from = first_near if near else first_hub
            listed = [c for c in row if c >= list_from]
            begins = sum(c < b for c in listed) if near else sum(c <= b for c in listed)
            if not near or (behind and unit not in groups):
                loads[unit] = loads.get(unit, 0) + -(-len(listed) // LOAD) - begins // LOAD
            groups.add(unit)
            beside = min(sum(c < first_hub for c in behind), sum(c < first_hub for c in rows[b]))
            arcs.append((unit, min(len(behind), len(rows[b])), beside))
    least = int(setting["least_far_loads"])
    has_table = {unit for unit, _alone, _beside in arcs if unit[0] or loads.get(unit, 0) >= least}
    near_loads, far_loads = (sum(loads.get(unit, 0) for unit in has_table if unit[0] == near) for near in (True, False))
    return Parts(near_loads, far_loads, sum(beside if unit in has_table else alone for unit, alone, beside in arcs))


def run(graph: DeviceGraph, device: EmulatedDevice, **knobs: int | str) -> tuple[int, int]:
    """Triangles and tests."""
    return counted(keystone.prepare(graph, keystone.ALGORITHM.settings({"block": 64, **knobs}), device))


def check(given: Given, device: EmulatedDevice, **knobs: int | str) -> Parts:
    """Count, and compare the tests with what the arcs give rise to; that."""
    expected = parts(given.graph, **knobs)
    assert run(given.graph, device, **knobs) == (given.triangles, expected.tests)
    return expected


@on_every_graph
def test_near_pivots_have_tables_and_nothing_else(graph: str, device: EmulatedDevice) -> None:
    made = check(GRAPHS[graph](), device)
    assert made.near_loads > 0
    assert made.far_loads == made.keys == 0


@pytest.mark.parametrize("least_far_loads", [1, 2, 7, 30, NEVER])
def test_far_pivots_with_bitmaps_and_without(least_far_loads: int, device: EmulatedDevice) -> None:
    made = check(skewed(), device, near_hubs=1, least_far_loads=least_far_loads)
    assert made.near_loads == 0
    assert (made.far_loads > 0) == (least_far_loads < NEVER)
    assert (made.keys > 0) == (least_far_loads > 1)


@on_every_graph
@pytest.mark.parametrize("near_hubs", [1, 31, 32, 33])
@pytest.mark.parametrize("more_hubs", [0, 1, 33])
def test_any_number_of_hubs(graph: str, near_hubs: int, more_hubs: int, device: EmulatedDevice) -> None:
    """With few of them, the highest vertex of a triangle may lie below: then it is searched beside a bitmap."""
    made = check(GRAPHS[graph](), device, near_hubs=near_hubs, hubs=near_hubs + more_hubs, least_far_loads=1)
    assert min(made.far_loads, made.keys) > 0 or graph == "stairs"


@pytest.mark.parametrize("near_hubs", [1, 20, 60])
def test_rows_that_end_anywhere_in_a_load(near_hubs: int, device: EmulatedDevice) -> None:
    lengths = np.diff(stairs(30).graph.offsets.astype(np.int64))
    assert set(lengths % LOAD) == set(range(LOAD))
    check(stairs(30), device, near_hubs=near_hubs, least_far_loads=1)


@pytest.mark.parametrize("long_item", [1, 2, 3, 4, NEVER])
def test_items_of_just_as_many_loads_as_are_long(long_item: int, device: EmulatedDevice) -> None:
    """Items of 1 … 4 loads, side by side in a warp and apart."""
    check(stairs(30), device, long_item=long_item)


@pytest.mark.parametrize("near_hubs", [0, 15])
@pytest.mark.parametrize(
    ("graph", "batches"), [*product(GRAPHS, (2, 7)), ("stairs", 46), ("stairs", 61), ("stairs", NEVER)]
)
def test_batches_do_not_change_anything(graph: str, near_hubs: int, batches: int, device: EmulatedDevice) -> None:
    knobs = {"near_hubs": near_hubs, "hubs": 50, "least_far_loads": 2}
    check(GRAPHS[graph](), device, batches=batches, **knobs)


@on_every_graph
@pytest.mark.parametrize("batches", [2, 7, 1000, NEVER])
def test_batches_are_ranges_of_units_with_about_as_many_arcs(graph: str, batches: int, device: EmulatedDevice) -> None:
    oriented, knobs = GRAPHS[graph]().graph, keystone.ALGORITHM.settings({"near_hubs": 40, "batches": batches})
    pivoting = keystone.Pivoting.of(oriented, knobs, device, np.zeros(2, np.uint64))
    arcs, bounds = pivoting.unit_arcs.astype(np.int64), pivoting.batch_bounds(batches)
    assert arcs.sum() == oriented.m
    assert (bounds[0], bounds[-1]) == (0, pivoting.hubs.units)
    assert bounds == sorted(set(bounds))
    assert len(bounds) - 1 <= batches
    largest = max(int(arcs[begin:end].sum()) for begin, end in pairwise(bounds))
    assert largest <= -(-oriented.m // batches) + int(arcs.max())


@on_every_graph
@pytest.mark.parametrize(("tile_arcs", "max_tiles"), [(100, 1 << 12), (1, 7)])
@pytest.mark.parametrize(("near_hubs", "batches"), [(0, 1), (40, 1), (40, 3)])
def test_tiles_of_any_size(
    graph: str,
    tile_arcs: int,
    max_tiles: int,
    near_hubs: int,
    batches: int,
    device: EmulatedDevice,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(keystone, "TILE_ARCS", tile_arcs)
    monkeypatch.setattr(keystone, "MAX_TILES", max_tiles)
    check(GRAPHS[graph](), device, near_hubs=near_hubs, least_far_loads=2, batches=batches)


@pytest.fixture
def launched(device: EmulatedDevice, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, tuple[Any, ...]]]:
    """The counting kernels to come, with their arguments."""
    noted: list[tuple[str, tuple[Any, ...]]] = []
    launch: Callable[..., None] = device.launch

    def note(stem: str, kernel: str, grid: int, block: int, arguments: tuple[Any, ...], **options: Any) -> None:
        if stem == keystone.STEM:
            noted.append((kernel, arguments))
        launch(stem, kernel, grid, block, arguments, **options)

    monkeypatch.setattr(device, "launch", note)
    return noted


def kernels(launched: list[tuple[str, tuple[Any, ...]]]) -> list[str]:
    return [kernel for kernel, _arguments in launched]


@pytest.mark.parametrize("batches", [1, 3])
@pytest.mark.parametrize(("near_hubs", "kernel"), [(0, "count_near"), (1, "count_far")])
def test_launches_of_bounded_cost(
    near_hubs: int,
    kernel: str,
    batches: int,
    device: EmulatedDevice,
    monkeypatch: pytest.MonkeyPatch,
    launched: list[tuple[str, tuple[Any, ...]]],
) -> None:
    knobs = {"near_hubs": near_hubs, "batches": batches, "least_far_loads": 1}
    check(skewed(), device, **knobs)
    at_once = kernels(launched).count(kernel)
    assert at_once <= batches
    launched.clear()
    monkeypatch.setattr(keystone, "LAUNCH_COST", 500)
    monkeypatch.setattr(keystone, "GROUP_COST", 20)
    check(skewed(), device, **knobs)
    assert kernels(launched).count(kernel) > at_once + 2


def test_launches_of_bounded_searches(
    device: EmulatedDevice, monkeypatch: pytest.MonkeyPatch, launched: list[tuple[str, tuple[Any, ...]]]
) -> None:
    monkeypatch.setattr(keystone, "LAUNCH_SEARCHES", 100)
    check(skewed(), device, near_hubs=1, least_far_loads=NEVER)
    assert set(kernels(launched)) == {"count_near"}
    searches = [int(arguments[-2]) for _kernel, arguments in launched]
    assert len(searches) == -(-sum(searches) // 100) > 5
    assert max(searches) <= 100


@pytest.mark.parametrize("batches", [1, 3])
@pytest.mark.parametrize(("near_hubs", "hubs"), [(0, 60), (1, 9), (20, 45)])
def test_offsets_of_64_bits(near_hubs: int, hubs: int, batches: int, device: EmulatedDevice) -> None:
    narrow = skewed()
    wide = narrow._replace(graph=replace(narrow.graph, offsets=narrow.graph.offsets.astype(np.uint64)))
    for least_far_loads in (1, 5, NEVER):
        knobs = {"near_hubs": near_hubs, "hubs": hubs, "least_far_loads": least_far_loads}
        check(wide, device, batches=batches, **knobs)


@pytest.mark.parametrize("block", [1, 32, 96, 1024, NEVER])
def test_blocks_of_any_size(block: int, device: EmulatedDevice) -> None:
    check(skewed(), device, block=block, near_hubs=50, least_far_loads=1)


@pytest.mark.parametrize("far_block", [64, 128])
def test_very_many_arcs_have_larger_blocks_for_bitmaps(
    far_block: int, device: EmulatedDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keystone, "VERY_MANY_ARCS", skewed().graph.m + (far_block == 64))
    check(skewed(), device, near_hubs=9, least_far_loads=1)


@pytest.mark.parametrize(("n", "pairs"), [(0, []), (5, []), (2, [(0, 1)]), (3, [(0, 1), (0, 2), (1, 2)])])
def test_tiny_graphs(n: int, pairs: list[tuple[int, int]], device: EmulatedDevice) -> None:
    graph = on_device(ww.Graph(np.asarray(pairs, np.int64).reshape(-1, 2), n=n), "degree", "rank")
    for near_hubs, least in product((0, 1), (1, NEVER)):
        knobs = {"near_hubs": near_hubs, "hubs": 1, "least_far_loads": least}
        assert run(graph, device, batches=2, **knobs)[0] == len(pairs) // 3


def taken_bytes(graph: DeviceGraph, device: EmulatedDevice, **knobs: int | str) -> int:
    """The most memory at any time while preparing and counting, batch after batch."""
    run(stairs(30).graph, device, **knobs)  # loads the kernels
    tracemalloc.start()
    try:
        run(graph, device, **knobs)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def needed_bytes(graph: DeviceGraph, **knobs: int | str) -> int:
    shape = Shape(graph.n, graph.m, graph.wedges)
    return keystone.bytes_needed(shape, keystone.ALGORITHM.settings(knobs))


@cache
def larger(kind: str) -> DeviceGraph:
    streams = {
        "kronecker": generate.kronecker(10, seed=3),
        "windmill": generate.windmill(1000, 3),
        "path": generate.path(2000),
        "clique": generate.complete(100),
    }
    stream = streams[kind]
    return on_device(ww.Graph(stream.pairs(), n=stream.n), "degree", "rank")


@pytest.mark.parametrize("kind", ["kronecker", "windmill", "path", "clique"])
@pytest.mark.parametrize(
    ("near_hubs", "least_far_loads", "batches"), [(0, 1, 1), (1, 1, 1), (1, NEVER, 1), (1, 1, 4), (50, 9, 4)]
)
def test_memory_stays_within_what_is_announced(
    kind: str, near_hubs: int, least_far_loads: int, batches: int, device: EmulatedDevice
) -> None:
    knobs = {"near_hubs": near_hubs, "least_far_loads": least_far_loads, "batches": batches}
    graph = larger(kind)
    assert taken_bytes(graph, device, **knobs) <= needed_bytes(graph, **knobs) + ALLOWANCE_BYTES


def test_batches_save_memory(device: EmulatedDevice) -> None:
    graph = larger("kronecker")
    once, in_eight = (
        taken_bytes(graph, device, near_hubs=1, least_far_loads=1, batches=batches) for batches in (1, 8)
    )  # so that every pivot has items, which is what batches hold
    assert once - in_eight > (needed_bytes(graph, batches=1) - needed_bytes(graph, batches=8)) / 2


def test_tables_fit_a_device_with_little_shared_memory() -> None:
    small = EmulatedDevice(sms=1, shared_bytes=4 << 10)
    assert run(larger("windmill"), small, near_hubs=NEVER)[0] == 1000


def test_more_of_anything_needs_no_less_memory() -> None:
    sizes = (0, 1, 1000, 2**31 - 1, 2**31, 2**32 - 1)
    for batches in (1, 2, 7):
        knobs = keystone.ALGORITHM.settings({"batches": batches})
        needed = np.array([[keystone.bytes_needed(Shape(n, m), knobs) for m in sizes] for n in sizes], np.int64)
        assert (np.diff(needed, axis=0) >= 0).all()
        assert (np.diff(needed, axis=1) > 0).all()
    in_batches = [needed_bytes(skewed().graph, batches=batches) for batches in (1, 2, 7, 1000, NEVER)]
    assert in_batches == sorted(in_batches, reverse=True)
