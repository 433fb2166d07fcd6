"""Pairs that grow while they are read, and the limit that they keep to."""

from __future__ import annotations

import numpy as np
import pytest

from wedgewise.errors import MemoryLimitError
from wedgewise.read.pieces import GrowingPairs
from wedgewise.stages.limits import Limits


def test_wide_ids_late_in_a_file_widen_all() -> None:
    held = GrowingPairs(Limits(), "graph")
    held.add(np.array([[1, 2]], np.uint32))
    looked = held.next_rows(1, np.uint32)  # keeps the memory in use, so that it cannot grow in place
    held.add(np.array([[3, 2**40]], np.int64))
    held.add(np.array([[4, 2**50]], np.uint64))
    held.add(np.zeros((1 << 16, 2), np.uint64))
    assert len(looked) == 1
    assert held.array()[:3].tolist() == [[1, 2], [3, 2**40], [4, 2**50]]


def test_pairs_that_somebody_looks_at_grow_elsewhere() -> None:
    held = GrowingPairs(Limits(), "graph")
    held.add(np.array([[1, 2]], np.uint32))
    looked = held.next_rows(1, np.uint32)
    looked[:] = 7
    held.add(np.full((1 << 16, 2), 3, np.uint32))
    assert looked.tolist() == [[7, 7]]
    found = held.array()
    assert found[0].tolist() == [1, 2]
    assert found[1:].tolist() == [[3, 3]] * (1 << 16)


def test_a_limit_that_is_reached_is_said() -> None:
    with pytest.raises(MemoryLimitError, match=r"graph: reading takes [\d,]+ bytes more, beside"):
        Limits(memory_bytes=1).check_memory(0, path="graph")
