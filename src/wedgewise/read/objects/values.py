"""What goes with pairs, edges and vertices: ``weights=`` on the way in; labels and columns on the way out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import InputError
from wedgewise.read.checks import finite_weights
from wedgewise.read.objects.dlpack import as_array

Weights = NDArray[np.float64]


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
