"""What every reader asks of an array of pairs before it becomes an EdgeList."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import InputError
from wedgewise.machine.hardware import usable_threads
from wedgewise.machine.threads import run_tasks
from wedgewise.stages.limits import MAX_LABEL

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
    bound = min(below, highest + 1)
    flat = values.reshape(-1)
    unsigned = flat.view(f"{flat.dtype.byteorder}u{flat.itemsize}")  # in which negative numbers are the largest

    def is_outside(block: int, _worker: int) -> bool:
        return int(unsigned[block * SCAN_VALUES : (block + 1) * SCAN_VALUES].max()) >= bound

    blocks = run_tasks(is_outside, -(-len(flat) // SCAN_VALUES), usable_threads())
    if True not in blocks:
        return None
    begin = blocks.index(True) * SCAN_VALUES
    at = begin + int(np.argmax(unsigned[begin : begin + SCAN_VALUES] >= bound))
    return at, int(flat[at])


def finite_weights(values: NDArray[Any], name: str) -> NDArray[np.float64]:
    """Weights as float64, the same memory where they are that already; every one must be a finite number."""
    if values.dtype.kind not in "biuf":
        raise InputError(f"{name}: {_first_not_a_number(values)}; weights are real numbers")
    finite = np.isfinite(values)
    if not finite.all():
        row = int(np.argmin(finite))
        raise InputError(f"{name}: the weight of row {row} is {values[row]}; drop such rows or give them a number")
    return np.ascontiguousarray(values, np.float64)


def _first_not_a_number(values: NDArray[Any]) -> str:
    """What keeps an array from holding weights: the first odd value of an array of objects, else its type."""
    if values.dtype.kind == "O" and values.ndim == 1:
        for row, value in enumerate(values):
            if not isinstance(value, Real):
                return f"the weight of row {row} is {value!r} of type {type(value).__name__}"
    return f"weights of dtype {values.dtype}"


def interleave(sources: NDArray[Any], targets: NDArray[Any], dtype: Any = None) -> NDArray[Any]:
    """Two index arrays as one (k, 2) array of a type, by default the wider one."""
    pairs = np.empty((len(sources), 2), dtype or np.promote_types(sources.dtype, targets.dtype))
    pairs[:, 0] = sources
    pairs[:, 1] = targets
    return pairs
