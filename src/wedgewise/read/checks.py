"""What every reader asks of an array of pairs before it becomes an EdgeList."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.read.limits import MAX_LABEL

KEPT_DTYPES = (np.dtype(np.int32), np.dtype(np.int64), np.dtype(np.uint32), np.dtype(np.uint64))
SCAN_VALUES = 2**21


def kept_type(values: NDArray[Any]) -> NDArray[Any]:
    """The integers contiguous, aligned, native, 4 or 8 bytes wide: the same memory where they already are."""
    if values.dtype in KEPT_DTYPES:
        return np.require(values, requirements=["C", "A"])
    wide_enough = values.dtype.itemsize >= 4
    return values.astype(values.dtype.newbyteorder("=") if wide_enough else np.int32, order="C")


def first_outside(values: NDArray[Any], below: int = MAX_LABEL + 1) -> tuple[int, int] | None:
    """Position (in flat order) and value of the first number outside 0 … below − 1, or None."""
    lowest, highest = np.iinfo(values.dtype).min, np.iinfo(values.dtype).max
    if lowest >= 0 and highest < below:
        return None
    flat = values.reshape(-1)
    for begin in range(0, len(flat), SCAN_VALUES):
        block = flat[begin : begin + SCAN_VALUES]
        if int(block.min()) < 0 or int(block.max()) >= below:
            too_high = block > below - 1 if below - 1 < highest else np.zeros(len(block), np.bool_)
            at = int(np.flatnonzero((block < 0) | too_high)[0])
            return begin + at, int(block[at])
    return None


def interleave(sources: NDArray[Any], targets: NDArray[Any]) -> NDArray[Any]:
    """Two index arrays as one (k, 2) array of the wider type."""
    pairs = np.empty((len(sources), 2), np.promote_types(sources.dtype, targets.dtype))
    pairs[:, 0] = sources
    pairs[:, 1] = targets
    return pairs
