"""What is asked of objects that were handed in: their own code may raise anything, and arrays come in many guises.

Masked arrays are refused: NumPy reads what is masked like everything else, and the mask is lost unheard.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import InputError, WedgewiseError
from wedgewise.read.pieces import finite_weights

Weights = NDArray[np.float64]

HOST_DEVICES = (1, 3, 11)  # DLPack's numbers for the host's memory, and for what CUDA and ROCm have pinned in it


@contextmanager
def foreign(name: str, remedy: str) -> Iterator[None]:
    """Name the object whose own code fails, and say what to pass instead; memory that runs out is no fault of it."""
    try:
        yield
    except (WedgewiseError, MemoryError):
        raise
    except Exception as error:  # an iterator, or a method such as __array__, can raise anything
        reason = " ".join(str(error).split())
        raise InputError(f"{name}: {type(error).__name__}{f': {reason}' if reason else ''}; {remedy}") from error


def viewed(source: Any, name: str) -> NDArray[Any]:
    """What NumPy makes of an object, in the same memory where it can."""
    with foreign(name, "pass a NumPy array"):
        return np.asarray(source)


def refuse_masked(values: Any, name: str) -> None:
    """Refuse a masked array, and a list that holds one or a masked value; `numpy.ma` is not imported for that."""
    kind: Any = getattr(sys.modules.get("numpy.ma"), "MaskedArray", ())
    if isinstance(values, kind) or (isinstance(values, list | tuple) and any(isinstance(one, kind) for one in values)):
        raise InputError(
            f"{name}: a masked array, whose mask would be lost; leave out what is masked, by .compressed() or "
            "numpy.ma.compress_rows, or give it a value, by .filled(value)"
        )


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


def weights_of_pairs(weights: Any, count: int, name: str) -> Weights | None:
    """One finite number per pair as float64, the same memory where they are float64 already."""
    if weights is None or weights is False:
        return None
    if isinstance(weights, bool | str):
        raise InputError(f"{name}: weights={weights!r} where pairs have no values; pass one number per pair")
    values = as_array(weights, f"{name}: weights")
    if values.dtype.kind == "f":
        with np.errstate(over="ignore"):  # a long double beyond the range of doubles is infinite, which is refused
            values = values.astype(np.float64, copy=False)
    if values.dtype.kind in "biuf" and values.shape != (count,):
        raise InputError(f"{name}: weights of shape {values.shape} for {count} pairs; pass one number per pair")
    return finite_weights(values, name)


def keeps_values(weights: Any, name: str) -> bool:
    """Whether a source's own values are asked for: ``weights=True``."""
    if weights is None or isinstance(weights, bool):
        return bool(weights)
    raise InputError(f"{name}: weights are the values that it holds; pass weights=True to keep them")
