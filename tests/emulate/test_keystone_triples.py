"""keystone on three blocks through the emulator: what is near and what is not, look-ups, groups, stretches, memory."""

from __future__ import annotations

import tracemalloc
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from helpers.block_matrices import ascending, by_product, scattered, triple_of, unordered
from numpy.typing import NDArray

from emulate.emulated_cases import counted, needs_compiler
from emulate.emulator import EmulatedDevice
from emulate.triple_cases import Matrices, prepared
from wedgewise.algorithms import find
from wedgewise.algorithms._contract import TripleShape
from wedgewise.algorithms.gpu import _keystone_triples as triples
from wedgewise.algorithms.gpu._keystone_triples import Near
from wedgewise.errors import PreconditionError
from wedgewise.stages.blocks import Block, Triple

pytestmark = needs_compiler
RECORD = find("keystone", "cuda")
H200_SMS, H200_SHARED_BYTES = 132, 232_448
LOAD, GROUP = 8, 32  # ids in a load, pivots in a group
ALLOWANCE_BYTES = 32 << 10  # of Python's own objects
ROWS, MIDDLES, COLUMNS = 60, 100, 150


@pytest.fixture(scope="module")
def device() -> EmulatedDevice:
    return EmulatedDevice(sms=1)


@cache
def matrices(kind: str) -> Matrices:
    """Three parts, of which two may be the same; numbers of the last two may ascend along arcs."""
    if kind == "apart":
        return (
            scattered(1, ROWS, MIDDLES, 0.2),
            scattered(2, ROWS, COLUMNS, 0.2),
            scattered(3, MIDDLES, COLUMNS, 0.2),
        )
    jk = (unordered if kind == "unordered" else ascending)(4, MIDDLES, 0.3)
    if kind == "one part":
        return jk, jk, jk
    shared = scattered(5, ROWS, MIDDLES, 0.2)
    return shared, shared, jk


KINDS = ("apart", "diagonal", "unordered", "one part")
on_every_kind = pytest.mark.parametrize("kind", KINDS)


class NotingDevice(EmulatedDevice):
    """Notes how many blocks kernels were launched with."""

    def __init__(self) -> None:
        super().__init__(sms=1)
        self.grids: dict[str, int] = {}

    def launch(self, stem: str, kernel: str, grid: int, block: int, *arguments: Any, **options: Any) -> None:
        self.grids[kernel] = grid
        super().launch(stem, kernel, grid, block, *arguments, **options)


@pytest.mark.parametrize(("rows", "middles", "blocks"), [(2, 200, 4), (200, 2, 25), (8, 64, 1)])
def test_rows_are_measured_by_enough_blocks_for_both_sides(rows: int, middles: int, blocks: int) -> None:
    """8 threads for a row of ij, then one for a row of jk; 64 in a block."""
    device = NotingDevice()
    given = scattered(1, rows, middles, 0.9), scattered(2, rows, 50, 0.9), scattered(3, middles, 50, 0.5)
    assert run(given, device, near_hubs=1000)[0] == by_product(*given)
    assert device.grids["measure_rows"] == device.grids["place_items"] == blocks


def run(
    given: Matrices, device: EmulatedDevice, share: int = 0, shares: int = 1, **knobs: int | str
) -> tuple[int, int]:
    """Triangles and tests."""
    return counted(prepared(RECORD, triple_of(given), {"block": 64, **knobs}, share, shares, device))


def numbers_of(row: NDArray[np.bool_], first: int) -> list[int]:
    return [int(number) for number in np.flatnonzero(row) if number >= first]


def merge_steps(ids: list[int], others: list[int]) -> int:
    """All different numbers up to the end of the list that ends first."""
    if not ids or not others:
        return 0
    return sum(number <= min(ids[-1], others[-1]) for number in {*ids, *others})


def lookups(given: Matrices, near: int) -> int:
    """By definition: padded near ids of a for each group of its near pivots, and what else lies behind its arcs.

    That is looked up where a has many arcs, and merged with its row otherwise.
    """
    ij, ik, jk = given
    first_pivot, first_column = max(0, jk.shape[0] - near), max(0, jk.shape[1] - near)
    skips = ij is ik and not np.tril(jk).any()
    total = 0
    for a in np.flatnonzero(ij.any(axis=1) & ik.any(axis=1)):
        ids, first_of = numbers_of(ik[a], first_column), dict[int, int]()
        for b in numbers_of(ij[a], first_pivot):
            first_of.setdefault((b - first_pivot) // GROUP, b)
        for b in first_of.values() if ids else ():
            skipped = sum(c < b for c in ids) // LOAD if skips else 0
            total += LOAD * (-(-len(ids) // LOAD) - skipped)
        ends, is_large = numbers_of(ik[a], 0), bool(np.any(np.array([ij[a].sum(), ik[a].sum()]) > triples.MOST_SMALL))
        for b in numbers_of(ij[a], 0):
            if b >= first_pivot and ends[0] >= first_column:
                continue  # all of it is near
            far = numbers_of(jk[b, : jk.shape[1] if b < first_pivot else first_column], 0)
            total += len(far) if is_large else merge_steps(ends, far)
    return total


@on_every_kind
@pytest.mark.parametrize("near", [1, 31, 33, 64, 99, 149, 2**31 - 1])
def test_what_is_near_is_looked_up_in_tables_and_the_rest_in_rows(kind: str, near: int, device: EmulatedDevice) -> None:
    given = matrices(kind)
    assert run(given, device, near_hubs=near) == (by_product(*given), lookups(given, near))


@on_every_kind
def test_nothing_is_near_where_tables_would_not_be_used(
    kind: str, device: EmulatedDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = matrices(kind)
    everything = run(given, device)
    monkeypatch.setattr(triples, "BYTES_PER_ARC", 0)
    assert run(given, device) == (by_product(*given), lookups(given, 0))
    assert run(given, device) != everything


def test_ids_up_to_the_first_pivot_are_skipped_where_arcs_ascend(device: EmulatedDevice) -> None:
    ij, ik, jk = matrices("diagonal")
    triangles, tests = run((ij, ik, jk), device)
    assert run((ij, ik.copy(), jk), device)[0] == triangles
    assert run((ij, ik.copy(), jk), device)[1] > tests


@on_every_kind
@pytest.mark.parametrize("near", [40, 2**31 - 1])
def test_many_groups_are_counted_by_all_blocks_together(
    kind: str, near: int, device: EmulatedDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_block = run(matrices(kind), device, near_hubs=near)
    monkeypatch.setattr(triples, "FEW_GROUPS", 1 if near == 40 else 0)
    assert run(matrices(kind), device, near_hubs=near) == by_block


@pytest.mark.parametrize("near", [20, 2**31 - 1])
@pytest.mark.parametrize("item_blocks", [1, 2, 7])
def test_any_number_of_blocks_makes_the_same_items(
    near: int, item_blocks: int, device: EmulatedDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = matrices("apart")
    expected = run(given, device, near_hubs=near)
    monkeypatch.setattr(triples, "ITEM_BLOCKS", item_blocks)
    assert run(given, device, near_hubs=near, block=32) == expected


@pytest.mark.parametrize("block", [32, 96, 256])
def test_chunks_begin_and_end_within_groups(block: int) -> None:
    """Far more items than a chunk has, in three groups of unequal size, for few blocks and for many."""
    ij, ik, jk = scattered(6, 700, 70, 0.3), scattered(7, 700, 40, 0.3), scattered(8, 70, 40, 0.4)
    for sms, shared_bytes in ((1, 4 << 10), (2, 233_472)):
        small = EmulatedDevice(sms=sms, shared_bytes=shared_bytes)
        assert run((ij, ik, jk), small, block=block) == (by_product(ij, ik, jk), lookups((ij, ik, jk), 100))


@pytest.mark.parametrize("launches", [2, 9, 40])
@pytest.mark.parametrize("near", [0, 30])
def test_launches_share_chunks_and_rows(launches: int, near: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One block at a time, so that two launches have chunks to share; of 40, most find nothing."""
    ij, ik, jk = scattered(6, 700, 70, 0.3), scattered(7, 700, 40, 0.3), scattered(8, 70, 40, 0.4)
    monkeypatch.setattr(triples, "MOST_HEADS", 1 << 8)
    device = EmulatedDevice(sms=1, shared_bytes=triples.STATIC_SHARED_BYTES + 512)
    expected = run((ij, ik, jk), device, near_hubs=near)
    assert expected[0] == by_product(ij, ik, jk)
    estimate = int(ij.sum()) * max(ik.sum() / len(ik), jk.sum() / len(jk))
    monkeypatch.setattr(triples, "LAUNCH_LOOKUPS", int(estimate / launches) + 1)
    assert run((ij, ik, jk), device, near_hubs=near) == expected


@pytest.mark.parametrize("most_heads", [1, 16, 64, 128])
def test_large_rows_are_hashed_in_stretches(
    most_heads: int, device: EmulatedDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of up to 200 heads; each stretch goes through all that lies behind the row's arcs."""
    ij, ik, jk = np.ones((5, 140), np.bool_), scattered(9, 5, 300, 0.5), scattered(10, 140, 300, 0.1)
    ij[0, 1:], ik[1, 5:] = False, False  # few arcs, few heads
    monkeypatch.setattr(triples, "BYTES_PER_ARC", 0)
    monkeypatch.setattr(triples, "MOST_HEADS", most_heads)
    heads, behind = ik.sum(axis=1), ij.astype(np.int64) @ jk.sum(axis=1)
    assert heads[0] < triples.MOST_SMALL[1] < heads[2]
    merged = merge_steps(numbers_of(ik[0], 0), numbers_of(jk[0], 0))
    looked_up = int((-(-heads // most_heads) * behind)[1:].sum())
    assert run((ij, ik, jk), device) == (by_product(ij, ik, jk), merged + looked_up)


def test_rows_whose_ids_share_slots(device: EmulatedDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids at steps of a power of two, 64 to a row: as many as small rows have room for."""
    monkeypatch.setattr(triples, "BYTES_PER_ARC", 0)
    ik, jk = np.zeros((4, 4096), np.bool_), scattered(11, 30, 4096, 0.05)
    for row, step in enumerate((1, 2, 32, 64)):
        ik[row, : 64 * step : step] = True
    given = np.ones((4, 30), np.bool_), ik, jk
    assert run(given, device)[0] == by_product(*given)


@pytest.mark.parametrize(("share", "shares"), [(0, 2), (1, 2), (4, 7), (59, 60), (60, 61)])
@pytest.mark.parametrize("near", [0, 40])
def test_shares(share: int, shares: int, near: int, device: EmulatedDevice) -> None:
    given = matrices("diagonal")
    assert run(given, device, share, shares, near_hubs=near)[0] == by_product(*given, share, shares)


def sized(rows_i: int, rows_j: int, columns: int, arcs_ij: int) -> Triple:
    """Blocks of these sizes without memory of their own."""

    def block(rows: int, columns: int, arcs: int) -> Block:
        offsets = np.broadcast_to(np.uint32(0), rows + 1)
        return Block(offsets, np.broadcast_to(np.uint32(0), arcs), columns)

    return Triple(block(rows_i, rows_j, arcs_ij), block(rows_i, columns, arcs_ij), block(rows_j, columns, arcs_ij))


@pytest.mark.parametrize(
    ("sizes", "pivots", "covered"),
    [
        ((10**6, 866, 866, 2_700_000), 866, 866),  # hubs
        ((4 * 10**6, 36_000, 36_000, 11_000_000), 36_000, 36_000),
        ((4 * 10**6, 4 * 10**6, 2_200, 11_000_000), 4 * 10**6, 2_200),  # small tables
        ((4 * 10**6, 4 * 10**6, 10_000, 11_000_000), 1 << 14, 10_000),  # too many groups for larger ones
        ((17 * 10**6, 110_000, 110_000, 44_000_000), 110_000, 57_599),  # as much as fits
        ((2 * 10**6, 2 * 10**6, 2 * 10**6, 4_000_000), 1 << 14, (1 << 14) - 1),  # the last ids
        ((33_000, 33_000, 33_000, 60_000), 1 << 12, (1 << 12) - 1),  # fewer, for less work
        ((33_000, 33_000, 33_000, 16_383), 0, 0),  # too little for any
    ],
)
def test_what_is_near(sizes: tuple[int, int, int, int], pivots: int, covered: int) -> None:
    device, triple = EmulatedDevice(sms=H200_SMS, shared_bytes=H200_SHARED_BYTES), sized(*sizes)
    near = Near.choose(triple, RECORD.settings(None), 1, device)
    assert (near.pivots, near.covered) == (pivots, covered)
    assert near.is_all == (pivots == sizes[1] and covered == sizes[2])
    assert near.table_bytes + triples.STATIC_SHARED_BYTES <= device.shared_bytes
    assert Near.choose(triple, RECORD.settings(None), 10**9, device).pivots == 0


def test_tables_fit_a_device_with_little_shared_memory() -> None:
    small = EmulatedDevice(sms=1, shared_bytes=48 << 10)
    near = Near.choose(sized(10**6, 10_000, 20_000, 10**8), RECORD.settings(None), 1, small)
    assert 10_000 < near.covered < 12_000
    given = scattered(1, 20, 40, 0.3), scattered(2, 20, 13_000, 0.1), scattered(3, 40, 13_000, 0.05)
    assert run(given, small, near_hubs=12_800) == (by_product(*given), lookups(given, near.covered))


def test_blocks_with_too_many_arcs_are_refused(device: EmulatedDevice) -> None:
    with pytest.raises(PreconditionError, match=r"fewer than 2\^32 arcs, not 4,294,967,296; use more parts"):
        triples.prepare(sized(1, 1, 1, 1 << 32), RECORD.settings(None), 0, 1, device)


def taken_bytes(given: Matrices, device: EmulatedDevice, **knobs: int | str) -> int:
    """The most memory at any time while preparing and counting, kernels and blocks being there."""
    triple, settings = triple_of(given), RECORD.settings({"block": 64, **knobs})
    counted(triples.prepare(triple, settings, 0, 1, device))
    tracemalloc.start()
    try:
        counted(triples.prepare(triple, settings, 0, 1, device))
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def needed_bytes(given: Matrices, **knobs: int | str) -> int:
    ij, ik, jk = given
    arcs = int(ij.sum()), int(ik.sum()), int(jk.sum())
    return triples.bytes_needed(TripleShape(len(ij), len(jk), jk.shape[1], *arcs), RECORD.settings(knobs))


@pytest.mark.parametrize("near", [0, 40, 2**31 - 1])
@pytest.mark.parametrize("shape", [(3000, 40, 40), (40, 3000, 40), (40, 40, 3000), (200, 200, 200)])
def test_memory_stays_within_what_is_announced(
    near: int, shape: tuple[int, int, int], device: EmulatedDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    i, j, k = shape
    given = scattered(1, i, j, 0.05), scattered(2, i, k, 0.05), scattered(3, j, k, 0.05)
    assert taken_bytes(given, device, near_hubs=near) <= needed_bytes(given, near_hubs=near) + ALLOWANCE_BYTES
    if near:
        monkeypatch.setattr(triples, "FEW_GROUPS", 0)
        assert taken_bytes(given, device, near_hubs=near) <= needed_bytes(given, near_hubs=near) + ALLOWANCE_BYTES


def test_most_of_what_is_announced_is_taken(device: EmulatedDevice) -> None:
    given = scattered(1, 500, 300, 0.5), scattered(2, 500, 300, 0.5), scattered(3, 300, 300, 0.5)
    assert taken_bytes(given, device) > 0.8 * needed_bytes(given)


def test_more_of_anything_needs_no_less_memory() -> None:
    sizes = (0, 1, 1000, 30_000)
    needed = np.zeros((len(sizes),) * 6, np.int64)
    for place in product(range(len(sizes)), repeat=6):
        shape = TripleShape(*(sizes[number] for number in place))
        needed[place] = triples.bytes_needed(shape, RECORD.settings(None))
    for axis in range(6):
        assert (np.diff(needed, axis=axis) >= 0).all()
