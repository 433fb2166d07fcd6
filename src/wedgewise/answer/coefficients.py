"""Triangles and degrees → clustering coefficients, their average, and transitivity.

A coefficient is what a vertex's triangles add up to over what they would if all of its neighbours were adjacent:

    undirected   t / C(d, 2)                          t triangles, d degree
    weighted     Σ (ŵ_uv ŵ_uw ŵ_vw)^⅓ / C(d, 2)       ŵ = w / max w
    directed     Σ m_uv m_uw m_vw / (D(D − 1) − 2r)   m ∈ {1, 2} directions of an edge, D in- plus out-degree,
                                                      r edges in both directions
    both         Σ s_uv s_uw s_vw / (D(D − 1) − 2r)   s_uv = cbrt(ŵ of u → v) + cbrt(ŵ of v → u), 0 for an absent one

with sums over the triangles {u, v, w} of u. These are NetworkX's definitions (its directed ones have a factor of two
above and below). Where the divisor is 0 the coefficient is undefined: "zero" calls it 0, "nan" calls it NaN.
"""

from __future__ import annotations

from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.stages import Ids, Keys


def undirected(sums: NDArray[Any], degrees: Ids, undefined: str = "zero") -> NDArray[np.float64]:
    """The coefficient of every vertex, from its triangles or the sum of their geometric means.

    Examples
    --------
    >>> import numpy as np
    >>> from wedgewise.answer.coefficients import undirected
    >>> undirected(np.array([1, 1, 1, 0]), np.array([3, 2, 2, 1], np.uint32), "nan")
    array([0.33333333, 1.        , 1.        ,        nan])
    """
    d = degrees.astype(np.uint64)
    return _ratios(sums, (d * d - d) >> np.uint64(1), undefined)


def directed(sums: NDArray[Any], total_degrees: Keys, reciprocal: Keys, undefined: str = "zero") -> NDArray[np.float64]:
    """The coefficient of every vertex, from the sums of its triangles' products of three strengths.

    Examples
    --------
    >>> import numpy as np
    >>> from wedgewise.answer.coefficients import directed
    >>> total_degrees, reciprocal = np.array([3, 3, 2], np.uint64), np.array([1, 1, 0], np.uint64)
    >>> directed(np.array([2, 2, 2]), total_degrees, reciprocal)
    array([0.5, 0.5, 1. ])
    """
    wedges = total_degrees * total_degrees - total_degrees - (reciprocal << np.uint64(1))
    return _ratios(sums, wedges, undefined)


def _ratios(sums: NDArray[Any], wedges: Keys, undefined: str) -> NDArray[np.float64]:
    coefficients = np.full(len(sums), _undefined_value(undefined))
    np.divide(sums, wedges, out=coefficients, where=wedges != 0)
    return coefficients + 0.0  # −0, of weights that cancel out, becomes 0


def average(coefficients: NDArray[np.float64], *, count_zeros: bool = True, undefined: str = "zero") -> float:
    """The mean of the coefficients that are numbers, without `count_zeros` of those other than 0.

    Where no vertex takes part, `undefined` says what the mean is.

    Examples
    --------
    >>> import numpy as np
    >>> from wedgewise.answer.coefficients import average
    >>> coefficients = np.array([0.5, 1.0, 0.0])
    >>> average(coefficients), average(coefficients, count_zeros=False)
    (0.5, 0.75)
    """
    taken = coefficients[~np.isnan(coefficients)]
    if not count_zeros:
        taken = taken[taken != 0]
    return float(taken.mean()) if len(taken) else _undefined_value(undefined)


def transitivity(triangles: int, paths: int, undefined: str = "zero") -> float:
    """The share of paths of two edges that are closed, 3T / Σ C(d, 2): one division of exact integers.

    Examples
    --------
    >>> from wedgewise.answer.coefficients import transitivity
    >>> transitivity(1, 5)
    0.6
    """
    return 3 * triangles / paths if paths else _undefined_value(undefined)


def _undefined_value(undefined: str) -> float:
    return nan if undefined == "nan" else 0.0
