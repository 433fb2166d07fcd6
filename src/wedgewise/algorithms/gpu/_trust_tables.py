"""TRUST's hash tables on a device: buckets, their places, and the threads of a block, by the knobs and the device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from wedgewise.algorithms._contract import Knobs
from wedgewise.algorithms.gpu._launches import MOST_THREADS, WARP, blocks_at_once
from wedgewise.machine.gpu import Device

COMBINATIONS = {"virtual": (0, 32), "physical": (1, 32), "warp": (2, 32), "subwarp16": (2, 16), "subwarp8": (2, 8)}
COPIED_PER_THREAD = 64
MOST_BLOCKS = 1024  # with a table each, as in the paper
MOST_BUCKETS, MOST_CAPACITY = 128, 1024
MOST_CHUNK = (1 << 31) - 1  # chunks and their counter are 32-bit numbers
ID_BYTES, STATIC_SHARED_BYTES = 4, 2048


@dataclass(frozen=True, slots=True)
class Layout:
    """The knobs as far as device and rows allow: threads and buckets of a block, places of a bucket, shared ones."""

    block: int
    buckets: int
    capacity: int
    cached: int
    shared_bytes: int
    combination: int
    lanes: int

    @classmethod
    def of(cls, knobs: Knobs, offset_bytes: int, longest: int, device: Device) -> Layout:
        block, capacity = _block(knobs), min(_capacity(knobs), longest)
        rows_bytes = 2 * offset_bytes * block
        ids = (device.shared_bytes - STATIC_SHARED_BYTES - rows_bytes) // ID_BYTES
        buckets = block // WARP * _power_of_two(min(_buckets(knobs), ids // (block // WARP)))
        cached = min(int(knobs["cached"]), capacity, ids // buckets - 1)
        combination, lanes = COMBINATIONS[str(knobs["combination"])]
        return cls(block, buckets, capacity, cached, rows_bytes + ID_BYTES * buckets * (1 + cached), combination, lanes)

    def blocks(self, device: Device) -> int:
        """As many as run at once."""
        return min(MOST_BLOCKS, blocks_at_once(self.block, self.shared_bytes + STATIC_SHARED_BYTES, device))

    def take_tables(self, blocks: int, device: Device) -> tuple[Any, ...]:
        """What kernels read of the tables of so many blocks: their sizes, places in global memory, room for copies."""
        xp, is_physical = device.xp, self.combination == COMBINATIONS["physical"][0]
        sizes = (np.uint32(self.buckets), np.uint32(self.cached), np.uint32(self.capacity))
        far = xp.empty(max(1, blocks * self.buckets * (self.capacity - self.cached)), xp.uint32)
        copied = xp.empty(blocks * self.block * COPIED_PER_THREAD if is_physical else 1, xp.uint32)
        return *sizes, far, copied, np.uint32(self.lanes)


def table_bytes(knobs: Knobs, longest: int) -> int:
    """What the tables of one block take of global memory at most, for rows of at most so many ids."""
    block = _block(knobs)
    places = block // WARP * _buckets(knobs) * min(_capacity(knobs), longest)
    return ID_BYTES * (places + (block * COPIED_PER_THREAD if knobs["combination"] == "physical" else 0))


def chunk_of(knobs: Knobs) -> int:
    return min(int(knobs["chunk"]), MOST_CHUNK)


def _power_of_two(most: int) -> int:
    return 1 << most.bit_length() - 1


def _block(knobs: Knobs) -> int:
    return _power_of_two(min(int(knobs["block"]), MOST_THREADS))


def _buckets(knobs: Knobs) -> int:
    """Those of a warp; hashing takes the last bits of an id."""
    return _power_of_two(min(int(knobs["buckets"]), MOST_BUCKETS))


def _capacity(knobs: Knobs) -> int:
    return min(int(knobs["capacity"]), MOST_CAPACITY)
