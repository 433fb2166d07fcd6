"""What batches of tasks take on a device: every array of a device that counts bytes, held against what is announced."""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple

import numpy as np
import pytest

from emulate.triple_cases import RECORDS
from wedgewise.algorithms._contract import DEVICE_TASK_BYTES, DeviceBatch, DeviceBlock
from wedgewise.algorithms.gpu import _batches, _keystone_triples
from wedgewise.run._hybrid_plan import WORK_ARRAYS
from wedgewise.run.device_blocks import ARRAY_BYTES
from wedgewise.stages.blocks import Block, Hashed
from wedgewise.stages.tasks import BlockCounts, TaskTable, TripleShape, table_of

DEVICES = [(132, 233_472), (256, 233_472), (256, 48 << 10), (2, 48 << 10)]  # multiprocessors, bytes of shared memory
WAYS: list[tuple[str, dict[str, int | str]]] = [
    ("keystone", {}),
    ("keystone", {"near_hubs": 1000, "block": 64}),
    ("bbtc", {}),
    ("bbtc", {"method": "hashmap", "block": 1024}),
    ("bbtc", {"method": "list"}),
    ("trust", {}),
    ("trust", {"cached": 0, "block": 32, "combination": "physical"}),
]
by_every_way = pytest.mark.parametrize(("algorithm", "way"), WAYS, ids=str)


class MeasuredNumpy:
    """Makes arrays of a device, in whole pieces; those that nobody has written take no memory of the host."""

    uint32, uint64 = np.uint32, np.uint64

    def __init__(self) -> None:
        self.held = self.most = 0

    def empty(self, shape: Any, dtype: Any) -> Any:
        made = np.empty(shape, dtype)
        size = -(-made.nbytes // ARRAY_BYTES) * ARRAY_BYTES
        self.held += size
        self.most = max(self.most, self.held)
        weakref.finalize(made, self._release, size)
        return made

    zeros = empty

    def _release(self, size: int) -> None:
        self.held -= size


class MeasuringDevice:
    """A device on which nothing runs."""

    def __init__(self, sms: int, shared_bytes: int) -> None:
        self.xp: Any = MeasuredNumpy()
        self.sms, self.shared_bytes = sms, shared_bytes

    def address(self, array: Any) -> int:
        return 0

    def upload(self, array: Any) -> Any:
        return self.xp.empty(array.shape, array.dtype)

    def launch(self, *_: Any, **__: Any) -> None:
        raise AssertionError("nothing is launched")


class GpuBatch(NamedTuple):
    """Tasks of blocks of which only sizes are known."""

    counts: BlockCounts
    tasks: TaskTable

    @classmethod
    def of(cls, sizes: list[int], arcs: Any, shares: int = 1) -> GpuBatch:
        parts = len(sizes)
        counts = BlockCounts(np.broadcast_to(np.asarray(arcs, np.int64), (parts, parts)), np.array(sizes, np.int64))
        tasks = table_of(Hashed(int(sum(sizes)), parts), shares)
        return cls(counts, tasks.take(np.argsort(tasks.pairs[2], kind="stable")))

    def block(self, row: int, column: int, words: int) -> DeviceBlock:
        zero = np.zeros(1, np.uint32)
        offsets = np.broadcast_to(zero[0], int(self.counts.sizes[row]) + 1)
        heads = np.broadcast_to(zero[0], int(self.counts.arcs[row, column]))
        made = np.broadcast_to(zero[0], words) if words else None
        return DeviceBlock(Block(offsets, heads, int(self.counts.sizes[column])), made)

    def taken_and_announced(self, algorithm: str, way: dict[str, int | str], device: Any) -> tuple[int, int]:
        """The most bytes at any time, blocks and what is made of them apart; and what a plan leaves for that."""
        record = RECORDS[algorithm]
        answer, knobs, parts = record.triples_on_device("count"), record.settings(way), len(self.counts.sizes)
        words = np.zeros((parts, parts), np.int64) + answer.made_words(
            self.counts.arcs, self.counts.sizes[None, :], knobs
        )
        pairs = [(row, column) for row in range(parts) for column in range(parts)]
        blocks = {(row, column): self.block(row, column, int(words[row, column])) for row, column in pairs}
        if words.any():
            launches = answer.make(list(blocks.values()), knobs, device)
            assert launches
            del launches
        assert device.xp.held == 0
        work = answer.prepare(DeviceBatch(blocks, self.tasks), knobs, device)
        assert work.batches
        needed = answer.bytes_needed(TripleShape.of_all(self.counts, self.tasks), knobs)
        beside = WORK_ARRAYS * ARRAY_BYTES + DEVICE_TASK_BYTES * len(self.tasks)
        return device.xp.most, int(np.max(needed)) + beside


RANDOM = np.random.default_rng(5)
BATCHES = {
    "one small task": GpuBatch.of([100], 500),
    "many small tasks": GpuBatch.of([500] * 12, RANDOM.integers(0, 6000, (12, 12))),
    "many shares": GpuBatch.of([3000] * 2, 40_000, shares=700),
    "one large task": GpuBatch.of([4_000_000], 60_000_000),
    "many rows": GpuBatch.of([50_000_000, 100], [[70_000_000, 60_000_000], [900, 400]]),
    "hubs": GpuBatch.of(
        [10**7, 10**5, 3000], [[9 * 10**6, 5 * 10**7, 8 * 10**7], [0, 10**7, 2 * 10**7], [0, 0, 10**6]]
    ),
    "columns of all kinds": GpuBatch.of([10**6, 300_000, 30_000, 2000, 200], RANDOM.integers(0, 1 << 26, (5, 5))),
    "large blocks": GpuBatch.of([120_000] * 8, 1 << 27),
}


@by_every_way
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("unit_work", [1, _batches.UNIT_WORK])
def test_memory_stays_within_what_is_announced(
    algorithm: str, way: dict[str, int | str], batch: str, unit_work: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_batches, "UNIT_WORK", unit_work)
    for sizes in DEVICES:
        taken, announced = BATCHES[batch].taken_and_announced(algorithm, way, MeasuringDevice(*sizes))
        assert taken <= announced, sizes


@by_every_way
def test_what_is_announced_for_a_large_task_is_taken_by_some_device(
    algorithm: str, way: dict[str, int | str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A megabyte apart, where no table takes long; which tables and maps are on chip depends on the device."""
    monkeypatch.setattr(_keystone_triples, "TABLE_USES", 0)
    large = BATCHES["one large task"]
    found = [large.taken_and_announced(algorithm, way, MeasuringDevice(*sizes)) for sizes in DEVICES]
    taken, announced = max(found)
    assert taken > 0.9 * announced or announced - taken < 1 << 20


def test_items_of_large_blocks_take_what_is_announced() -> None:
    taken, announced = BATCHES["large blocks"].taken_and_announced("keystone", {}, MeasuringDevice(*DEVICES[0]))
    assert taken > 0.9 * announced
