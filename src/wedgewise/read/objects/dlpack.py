"""Arrays of other libraries through DLPack → NumPy, in the same memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import InputError
from wedgewise.read.objects.foreign import foreign, viewed
from wedgewise.read.objects.masked import refuse_masked

HOST_DEVICES = (1, 3, 11)  # DLPack's numbers for the host's memory, and for what CUDA and ROCm have pinned in it


def array_from_dlpack(source: Any) -> NDArray[Any]:
    """View an array that speaks DLPack; one on a device is refused, for nothing is copied from there unasked."""
    with foreign("<dlpack>", "pass a NumPy array"):
        kind, number = map(int, source.__dlpack_device__())
    if kind not in HOST_DEVICES:
        raise InputError(
            f"<dlpack>: the array lies on a device (DLPack type {kind}, number {number}); "
            "copy it to the host first, with .cpu() or .get()"
        )
    with foreign("<dlpack>", "pass a NumPy array"):
        array: NDArray[Any] = np.from_dlpack(source)
    return array


def as_array(source: Any, name: str = "<array>") -> NDArray[Any]:
    """Whatever NumPy or DLPack can view as an array; what is none at all becomes one of objects."""
    refuse_masked(source, name)
    speaks_dlpack = hasattr(source, "__dlpack__") and hasattr(source, "__dlpack_device__")
    if speaks_dlpack and not isinstance(source, np.ndarray):
        return array_from_dlpack(source)
    return viewed(source, name)
