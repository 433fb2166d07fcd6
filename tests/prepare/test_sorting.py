"""Keys are sorted whatever they are and however they are divided."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from wedgewise.prepare import sorting
from wedgewise.prepare.sorting import sorted_keys
from wedgewise.stages import Keys

KINDS: dict[str, Callable[[int], Keys]] = {
    "at random": lambda count: np.random.default_rng(count).integers(0, 2**64, count, dtype=np.uint64),
    "few values": lambda count: np.random.default_rng(count).integers(0, 3, count, dtype=np.uint64),
    "one value": lambda count: np.full(count, 2**64 - 1, np.uint64),
    "ascending": lambda count: np.arange(count, dtype=np.uint64),
    "descending": lambda count: np.arange(count, dtype=np.uint64)[::-1].copy(),
    "one value often": lambda count: np.minimum(np.arange(count, dtype=np.uint64), np.uint64(count // 3)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 100, 1001])
def test_keys_are_in_order(kind: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for part in (8, 100):
        monkeypatch.setattr(sorting, "PART_KEYS", part)
        for threads in (1, 3):
            keys = KINDS[kind](count)
            expected = sorted(keys.tolist())
            assert sorted_keys(keys, threads).tolist() == expected


def test_many_keys_in_parts_of_the_usual_length() -> None:
    keys = KINDS["at random"](3 * sorting.PART_KEYS + 5)
    expected = np.sort(keys)
    np.testing.assert_array_equal(sorted_keys(keys, 2), expected)
