"""Integers → decimal text, vectorised: four digits per table look-up, leading zeros as NUL bytes that are
taken out at the end."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

GROUP = 10_000
GROUP_DIGITS = 4


def spell(numbers: NDArray[Any], trailing: NDArray[np.uint32], present: NDArray[np.bool_] | None = None) -> bytes:
    """Each number (unsigned) with its trailing byte; where `present` is false, the trailing byte alone."""
    if not len(numbers):
        return b""
    groups = -(-len(str(int(numbers.max()))) // GROUP_DIGITS)
    lowest, higher = _group_texts()
    cells = np.empty((len(numbers), groups + 1), np.uint32)
    cells[:, groups] = trailing
    rest = numbers
    for group in range(groups - 1, -1, -1):
        above = rest // GROUP
        entry = rest - above * GROUP + (above > 0) * rest.dtype.type(GROUP)
        cells[:, group] = (lowest if group == groups - 1 else higher)[entry]
        rest = above
    if present is not None:
        cells[~present, :groups] = 0
    text = cells.view(np.uint8).reshape(-1)
    kept: bytes = text[text != 0].tobytes()
    return kept


@cache
def _group_texts() -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Texts of 0 … 9999 without, then with leading zeros; the second table has no text for a leading 0."""
    values = np.arange(GROUP)
    padded = np.stack([values // 1000, values // 100 % 10, values // 10 % 10, values % 10], axis=1) + ord("0")
    lowest = padded.astype(np.uint8)
    for digit, bound in enumerate((1000, 100, 10)):
        lowest[values < bound, digit] = 0
    higher = lowest.copy()
    higher[0] = 0
    full = padded.astype(np.uint8)
    return tuple(np.concatenate((part, full)).view(np.uint32).reshape(-1) for part in (lowest, higher))  # type: ignore[return-value]
