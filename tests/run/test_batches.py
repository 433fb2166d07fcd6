"""Batches of tasks: what is alive while their blocks are read."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from numpy.typing import NDArray

from wedgewise import generate
from wedgewise.algorithms import find
from wedgewise.algorithms.cpu import _keystone_triple_hubs, _keystone_triples
from wedgewise.machine.jit import JIT_DISABLED
from wedgewise.run.block_caches import BlockCache
from wedgewise.run.memory import TaskMemory, triple_answer
from wedgewise.run.outofcore import Counting
from wedgewise.stages.blocks import Block
from wedgewise.stages.tasks import Pair
from wedgewise.store.build import write_store
from wedgewise.store.open import Store

SCALE = 8 if JIT_DISABLED else 14


def counting(store: Store, available_bytes: int) -> Counting:
    memory = TaskMemory(store.counts, triple_answer("keystone"), find("keystone", "cpu").settings(None), 1)
    return Counting(store, memory, available_bytes)


@dataclass(frozen=True, slots=True)
class Watched:
    """Arrays, and how many bytes of them somebody still has."""

    arrays: list[Callable[[], NDArray[Any] | None]] = field(default_factory=list)

    def add(self, *arrays: NDArray[Any] | None) -> None:
        self.arrays.extend(weakref.ref(array) for array in arrays if array is not None)

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for ref in self.arrays if (array := ref()) is not None)


@pytest.mark.parametrize("scheme", ["rectilinear", "hashed"])
def test_blocks_and_hubs_of_earlier_batches_keep_to_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    """Nothing that was evicted is alive when the blocks of the next batch have come, nor hubs that it does not use."""
    store = write_store(generate.kronecker(SCALE, seed=1), tmp_path / "store", parts=3, scheme=scheme)
    least = counting(store, 0).memory.heaviest(counting(store, 0).tasks)[0]
    blocks, hubs, seen = Watched(), Watched(), list[tuple[int, int, int]]()
    really_read, really_cached = Counting._read, BlockCache.blocks

    def read(self: Counting, pairs: list[Pair]) -> list[Block]:
        found = really_read(self, pairs)
        for block in found:
            blocks.add(block.offsets, block.heads, block.busy_rows)
        return found

    def cached(self: BlockCache[Any], wanted: Set[Pair], limit_bytes: int) -> Any:
        held = really_cached(self, wanted, limit_bytes)
        seen.append((blocks.nbytes, hubs.nbytes, limit_bytes))
        return held

    def made(*given: Any) -> Any:
        found = _keystone_triple_hubs.hubs_of(*given)
        hubs.add(found.layouts, found.bits)
        return found

    monkeypatch.setattr(Counting, "_read", read)
    monkeypatch.setattr(BlockCache, "blocks", cached)
    monkeypatch.setattr(_keystone_triples, "hubs_of", made)
    for available in (4 * least, 2 * least, least + 10_000, least):
        seen.clear()
        counting(store, available).run(None, None)
        for held, made_bytes, limit_bytes in seen:
            assert held <= limit_bytes
            assert held + made_bytes <= available
    assert scheme == "rectilinear" or max(made_bytes for _, made_bytes, _ in seen) > 0
