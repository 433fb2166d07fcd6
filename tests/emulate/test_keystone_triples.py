"""keystone on three blocks through the emulator: what is near and what is not, look-ups, groups, stretches, memory."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pytest
from helpers.block_matrices import ascending, count_blocks_by_product, random_matrix, triple_of, unordered
from numpy.typing import NDArray

from emulate.emulated_cases import needs_compiler
from emulate.emulator import EmulatedDevice
from emulate.triple_cases import Matrices, found_by, prepared
from wedgewise.algorithms import find
from wedgewise.algorithms._contract import DeviceBatch, DeviceBlock
from wedgewise.algorithms.gpu import _batches
from wedgewise.algorithms.gpu import _keystone_triples as triples
from wedgewise.algorithms.gpu._batches import work_of_unit
from wedgewise.algorithms.gpu._keystone_triples import Near
from wedgewise.errors import PreconditionError
from wedgewise.stages.blocks import Block, Triple
from wedgewise.stages.tasks import TripleShape, one_task

pytestmark = needs_compiler
RECORD = find("keystone", "cuda")
H200_SMS, H200_SHARED_BYTES = 132, 232_448
GROUP = 32  # pivots
ROWS, MIDDLES, COLUMNS = 60, 100, 150


@pytest.fixture(scope="module")
def device() -> EmulatedDevice:
    return EmulatedDevice(sms=1)


@cache
def matrices(kind: str) -> Matrices:
    """Three parts, of which two may be the same; numbers of the last two may ascend along arcs."""
    if kind == "apart":
        return (
            random_matrix(1, ROWS, MIDDLES, 0.2),
            random_matrix(2, ROWS, COLUMNS, 0.2),
            random_matrix(3, MIDDLES, COLUMNS, 0.2),
        )
    jk = (unordered if kind == "unordered" else ascending)(4, MIDDLES, 0.3)
    if kind == "one part":
        return jk, jk, jk
    shared = random_matrix(5, ROWS, MIDDLES, 0.2)
    return shared, shared, jk


KINDS = ("apart", "diagonal", "unordered", "one part")
on_every_kind = pytest.mark.parametrize("kind", KINDS)


def run(
    given: Matrices, device: EmulatedDevice, share: int = 0, shares: int = 1, **knobs: int | str
) -> tuple[int, int]:
    """Triangles and tests."""
    return found_by(prepared(RECORD, triple_of(given), {"block": 64, **knobs}, share, shares, device))


def numbers_of(row: NDArray[np.bool_], first: int) -> list[int]:
    return [int(number) for number in np.flatnonzero(row) if number >= first]


def merge_steps(ids: list[int], others: list[int]) -> int:
    """All different numbers up to the end of the list that ends first."""
    if not ids or not others:
        return 0
    return sum(number <= min(ids[-1], others[-1]) for number in {*ids, *others})


def lookups(given: Matrices, near: int) -> int:
    """By definition: near ids of a for each group of its near pivots, and what else lies behind its arcs.

    That is looked up where a has many arcs, and merged with its row otherwise.
    """
    ij, ik, jk = given
    first_pivot, first_column = max(0, jk.shape[0] - near) // GROUP * GROUP, max(0, jk.shape[1] - near)
    if near == 0:
        first_pivot = jk.shape[0]
    total = 0
    for a in np.flatnonzero(ij.any(axis=1) & ik.any(axis=1)):
        ids = numbers_of(ik[a], first_column)
        total += len({b // GROUP for b in numbers_of(ij[a], first_pivot)}) * len(ids)
        ends, is_large = numbers_of(ik[a], 0), bool(np.any(np.array([ij[a].sum(), ik[a].sum()]) > triples.MAX_SMALL))
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
    assert run(given, device, near_hubs=near) == (count_blocks_by_product(*given), lookups(given, near))


@on_every_kind
def test_nothing_is_near_where_tables_would_not_be_used(
    kind: str, device: EmulatedDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = matrices(kind)
    everything = run(given, device)
    monkeypatch.setattr(triples, "BYTES_PER_ARC", 0)
    assert run(given, device) == (count_blocks_by_product(*given), lookups(given, 0))
    assert run(given, device) != everything


@on_every_kind
@pytest.mark.parametrize("near", [40, 2**31 - 1])
def test_many_groups_are_counted_by_all_blocks_together(
    kind: str, near: int, device: EmulatedDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_block = run(matrices(kind), device, near_hubs=near)
    monkeypatch.setattr(triples, "FEW_GROUPS", 1 if near == 40 else 0)
    assert run(matrices(kind), device, near_hubs=near) == by_block


@pytest.mark.parametrize("near", [20, 2**31 - 1])
@pytest.mark.parametrize("steps", [1, 100, 10**6])
def test_any_number_of_blocks_makes_the_same_items(
    near: int, steps: int, device: EmulatedDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = matrices("apart")
    expected = run(given, device, near_hubs=near)
    monkeypatch.setattr(triples, "MAKING_STEPS", steps)
    monkeypatch.setattr(triples, "MAKING_BYTES", 4)  # a block at a time
    assert run(given, device, near_hubs=near, block=32) == expected


@pytest.mark.parametrize("block", [32, 96, 256])
@pytest.mark.parametrize("unit", [16, 1000, 10**9])
def test_units_are_several_groups_or_parts_of_one(block: int, unit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    ij, ik, jk = random_matrix(6, 700, 170, 0.3), random_matrix(7, 700, 40, 0.3), random_matrix(8, 170, 40, 0.4)
    monkeypatch.setattr(_batches, "UNIT_WORK", unit)
    monkeypatch.setattr(triples, "TABLE_USES", 0)
    for sms, shared_bytes in ((1, 4 << 10), (2, 233_472)):
        small = EmulatedDevice(sms=sms, shared_bytes=shared_bytes)
        assert run((ij, ik, jk), small, block=block) == (
            count_blocks_by_product(ij, ik, jk),
            lookups((ij, ik, jk), 200),
        )


@pytest.mark.parametrize("groups", [1, 3, 40])
@pytest.mark.parametrize("steps", [1.0, 1e4, 1e7])
def test_units_of_runs_are_all_parts_of_all_groups(groups: int, steps: float) -> None:
    runs = triples.PivotRuns(*(np.array(column) for column in ([5, 9], [4, 2], [2, 0], [groups, 7], [steps, 5e5])))
    units = runs.units(work_of_unit(runs.steps))
    for first, length, begin, count in ((5, 4, 2, groups), (9, 2, 0, 7)):
        of_run = units[units[:, 0] == first]
        assert set(of_run[:, 1].tolist()) == {length}
        parts = int(of_run[0, 5])
        whole = of_run[of_run[:, 4] == 0]
        covered = [group for unit in whole for group in range(unit[2], begin + count, unit[3])]
        assert sorted(covered) == list(range(begin, begin + count))
        assert len(of_run) == parts * int((of_run[:, 4] == 0).sum())


@pytest.mark.parametrize("most", [1, 2000])
@pytest.mark.parametrize("near", [0, 30])
def test_launches_share_units(most: int, near: int, monkeypatch: pytest.MonkeyPatch) -> None:
    ij, ik, jk = random_matrix(6, 700, 70, 0.3), random_matrix(7, 700, 40, 0.3), random_matrix(8, 70, 40, 0.4)
    device = EmulatedDevice(sms=1)
    expected = run((ij, ik, jk), device, near_hubs=near)
    assert expected[0] == count_blocks_by_product(ij, ik, jk)
    monkeypatch.setattr(_batches, "UNIT_WORK", 10)
    monkeypatch.setattr(triples, "TABLE_USES", 0)
    monkeypatch.setattr(triples, "LAUNCH_STEPS", most)
    assert run((ij, ik, jk), device, near_hubs=near) == expected


@pytest.mark.parametrize("most_heads", [1, 16, 64, 128])
def test_large_rows_are_hashed_in_stretches(
    most_heads: int, device: EmulatedDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of up to 200 heads; each stretch goes through all that lies behind the row's arcs."""
    ij, ik, jk = np.ones((5, 140), np.bool_), random_matrix(9, 5, 300, 0.5), random_matrix(10, 140, 300, 0.1)
    ij[0, 1:], ik[1, 5:] = False, False  # few arcs, few heads
    monkeypatch.setattr(triples, "BYTES_PER_ARC", 0)
    monkeypatch.setattr(triples, "MAX_HEADS", most_heads)
    heads, behind = ik.sum(axis=1), ij.astype(np.int64) @ jk.sum(axis=1)
    assert heads[0] < triples.MAX_SMALL[1] < heads[2]
    merged = merge_steps(numbers_of(ik[0], 0), numbers_of(jk[0], 0))
    looked_up = int((-(-heads // most_heads) * behind)[1:].sum())
    assert run((ij, ik, jk), device) == (count_blocks_by_product(ij, ik, jk), merged + looked_up)


def test_rows_whose_ids_share_slots(device: EmulatedDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids at steps of a power of two, 64 to a row: as many as small rows have room for."""
    monkeypatch.setattr(triples, "BYTES_PER_ARC", 0)
    ik, jk = np.zeros((4, 4096), np.bool_), random_matrix(11, 30, 4096, 0.05)
    for row, step in enumerate((1, 2, 32, 64)):
        ik[row, : 64 * step : step] = True
    given = np.ones((4, 30), np.bool_), ik, jk
    assert run(given, device)[0] == count_blocks_by_product(*given)


@pytest.mark.parametrize(("share", "shares"), [(0, 2), (1, 2), (4, 7), (59, 60), (60, 61)])
@pytest.mark.parametrize("near", [0, 40])
def test_shares(share: int, shares: int, near: int, device: EmulatedDevice) -> None:
    given = matrices("diagonal")
    assert run(given, device, share, shares, near_hubs=near)[0] == count_blocks_by_product(*given, share, shares)


@pytest.mark.parametrize(
    ("sizes", "pivots", "covered"),
    [
        ((10**6, 866, 866, 2_700_000), 866, 866),  # hubs
        ((4 * 10**6, 36_000, 36_000, 11_000_000), 36_000, 36_000),
        ((4 * 10**6, 4 * 10**6, 2_200, 11_000_000), 4 * 10**6, 2_200),  # small tables
        ((4 * 10**6, 4 * 10**6, 10_000, 11_000_000), 1 << 14, 10_000),  # too many groups for larger ones
        ((17 * 10**6, 110_000, 110_000, 44_000_000), 110_000, 57_600),  # as much as fits
        ((2 * 10**6, 2 * 10**6, 2 * 10**6, 4_000_000), 1 << 14, 1 << 14),  # the last ids
        ((33_000, 33_000, 33_000, 60_000), 1 << 12, 1 << 12),  # fewer, for less work
        ((33_000, 33_000, 33_000, 16_000), 0, 0),  # too little for any
    ],
)
def test_what_is_near(sizes: tuple[int, int, int, int], pivots: int, covered: int) -> None:
    device, (rows_i, rows_j, columns, arcs) = EmulatedDevice(sms=H200_SMS, shared_bytes=H200_SHARED_BYTES), sizes
    shape = TripleShape(*(np.array([number]) for number in (rows_i, rows_j, columns, arcs, arcs, arcs)))  # type: ignore[arg-type]
    near = Near.choose(shape, np.array([arcs]), RECORD.settings(None), device)
    first_pivot = rows_j if pivots == 0 else (rows_j - pivots) // GROUP * GROUP
    assert (int(near.first_pivot[0]), int(near.first_column[0])) == (first_pivot, columns - covered)
    assert int(near.table_bytes(shape)[0]) + triples.STATIC_SHARED_BYTES <= device.shared_bytes
    none = Near.choose(shape, np.array([0]), RECORD.settings(None), device)
    assert int(none.first_pivot[0]) == rows_j


def test_tables_fit_a_device_with_little_shared_memory() -> None:
    small = EmulatedDevice(sms=1, shared_bytes=48 << 10)
    given = random_matrix(1, 20, 40, 0.3), random_matrix(2, 20, 13_000, 0.1), random_matrix(3, 40, 13_000, 0.05)
    assert run(given, small, near_hubs=12_800)[0] == count_blocks_by_product(*given)


def test_blocks_with_too_many_arcs_are_refused(device: EmulatedDevice) -> None:
    block = Block(np.zeros(2, np.uint32), np.broadcast_to(np.uint32(0), 1 << 32), 1)
    batch = one_task(Triple(block, block, block))
    given = DeviceBatch({pair: DeviceBlock(block) for pair in batch.blocks}, batch.tasks)
    with pytest.raises(PreconditionError, match=r"fewer than 2\^32 arcs, not 4,294,967,296; use more parts"):
        triples.prepare(given, RECORD.settings(None), device)


def test_more_of_anything_needs_no_less_memory() -> None:
    sizes = (0, 1, 1000, 30_000)
    needed = np.zeros((len(sizes),) * 6, np.int64)
    for place in product(range(len(sizes)), repeat=6):
        shape = TripleShape(*(sizes[number] for number in place))
        needed[place] = triples.bytes_needed(shape, RECORD.settings(None))
    for axis in range(6):
        assert (np.diff(needed, axis=axis) >= 0).all()
