"""Measures of how similar two vertices are: each is a formula of what their common neighbours sum up to, and degrees.

A *lane* is what every common neighbour w adds: 1, or a weight that depends on its degree d(w), as an integer in fixed
point. Sums of integers are the same in any order, so that every number of threads gives the same bits.

    lane                  adds        exact
    count                 1           yes
    adamic_adar           1 / ln d    within one unit in the last place of the fixed point
    resource_allocation   1 / d       within half of one

The point is as far to the left as the largest degree allows: no sum of so many weights reaches 2^64. With f bits behind
it, a measure of c common neighbours differs by at most c · 2^-f from the sum of real numbers, and by the rounding to
float64. f is 48 for graphs of degrees below 2^15, and 63 less the bits of the largest degree otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import InputError, UnknownNameError
from wedgewise.machine.jit import CpuKernel, helper
from wedgewise.machine.parameters import as_integer
from wedgewise.stages import Keys

COUNT, ADAMIC_ADAR, RESOURCE_ALLOCATION = "count", "adamic_adar", "resource_allocation"
LANES = (COUNT, ADAMIC_ADAR, RESOURCE_ALLOCATION)
MAX_FRACTION_BITS = 48  # the rounding of 1 / ln d to float64 is then far below a unit
ADAMIC_ADAR_LEAST = 2  # degree of a vertex that is anybody's common neighbour


@helper
def as_it_is(total, du, dv):  # type: ignore[no-untyped-def]
    return total


@helper
def jaccard(total, du, dv):  # type: ignore[no-untyped-def]
    return total / (du + dv - total)


@helper
def overlap(total, du, dv):  # type: ignore[no-untyped-def]
    return total / np.minimum(du, dv)


@helper
def cosine(total, du, dv):  # type: ignore[no-untyped-def]
    """The root of a quotient: equal quotients have equal roots."""
    return np.sqrt(total * total / (du * dv))


@helper
def sorensen(total, du, dv):  # type: ignore[no-untyped-def]
    return 2.0 * total / (du + dv)


@helper
def preferential_attachment(total, du, dv):  # type: ignore[no-untyped-def]
    return du * dv


@dataclass(frozen=True, slots=True)
class Measure:
    """A lane, and the formula of its sum and both degrees, all float64; `counts` says that values are integers."""

    lane: str
    formula: CpuKernel[[Any, Any, Any], Any]
    counts: bool = False


MEASURES = {
    "common_neighbors": Measure(COUNT, as_it_is, counts=True),
    "jaccard": Measure(COUNT, jaccard),
    "overlap": Measure(COUNT, overlap),
    "cosine": Measure(COUNT, cosine),
    "sorensen": Measure(COUNT, sorensen),
    "adamic_adar": Measure(ADAMIC_ADAR, as_it_is),
    "resource_allocation": Measure(RESOURCE_ALLOCATION, as_it_is),
    "preferential_attachment": Measure(COUNT, preferential_attachment, counts=True),
}


def checked_measures(given: Any) -> tuple[str, ...]:
    """The names of one measure or of several, each once, or an error that says which there are."""
    names = (given,) if isinstance(given, str) else tuple(given)
    if not names:
        raise InputError(f"no measure was named; there are: {', '.join(MEASURES)}")
    for name in names:
        if name not in MEASURES:
            raise UnknownNameError(f"no measure named {name!r}; there are: {', '.join(MEASURES)}")
    return tuple(dict.fromkeys(names))


def partner_count(k: Any) -> int:
    """How many partners of every vertex are meant, or an error that says what can be asked for."""
    number = as_integer("k", k, "an integer of at least 1")
    if number < 1:
        raise InputError(f"k is at least 1, not {number}")
    return number


def one_measure(given: Any) -> tuple[str, ...]:
    """The one measure that partners are ordered by."""
    names = checked_measures(given)
    if len(names) > 1:
        raise InputError(f"partners are ordered by one measure, not {len(names)}: {', '.join(names)}")
    return names


def lanes_of(measures: Sequence[str]) -> tuple[str, ...]:
    """What common neighbours have to be summed up as for these measures."""
    wanted = {MEASURES[name].lane for name in measures}
    return tuple(lane for lane in LANES if lane in wanted)


def fraction_bits(degrees: NDArray[Any]) -> int:
    """How many bits of a weight are behind the point."""
    return min(MAX_FRACTION_BITS, 63 - int(degrees.max(initial=1)).bit_length())


def lane_weights(degrees: NDArray[Any], lanes: Sequence[str]) -> Keys:
    """What every vertex adds as a common neighbour, uint64[n, lanes]; the logarithm is taken once for every degree."""
    distinct, degree_of = np.unique(degrees, return_inverse=True)
    table = np.zeros((len(distinct), len(lanes)), np.uint64)
    bits, whole = fraction_bits(degrees), distinct.astype(np.uint64)
    for column, lane in zip(table.T, lanes, strict=True):
        if lane == COUNT:
            column[:] = 1
        elif lane == ADAMIC_ADAR:
            able = distinct >= ADAMIC_ADAR_LEAST
            column[able] = np.rint(np.ldexp(1 / np.log(distinct[able].astype(np.float64)), bits))
        else:
            doubled = 2 * np.maximum(whole, 1)
            column[:] = ((np.uint64(2) << np.uint64(bits)) + np.maximum(whole, 1)) // doubled
    return table[degree_of]


def values_of(
    measure: str, lanes: Sequence[str], sums: NDArray[Any], degrees: NDArray[Any], ends: NDArray[Any]
) -> NDArray[Any]:
    """A measure of pairs of vertices, given the sums of their common neighbours, [pairs, lanes]: int64 or float64.

    Pairs without a common neighbour have 0, whatever their degrees, but for the product of these.
    """
    found = MEASURES[measure]
    total = sums[:, lanes.index(found.lane)].astype(np.float64)
    if found.lane != COUNT:
        total = np.ldexp(total, -fraction_bits(degrees))
    du, dv = (degrees[ends[:, end]].astype(np.int64 if found.counts else np.float64) for end in (0, 1))
    if found.counts:
        return found.formula.function(sums[:, lanes.index(COUNT)].astype(np.int64), du, dv)  # type: ignore[no-any-return]
    with np.errstate(divide="ignore", invalid="ignore"):
        values: NDArray[np.float64] = np.where(total > 0, found.formula.function(total, du, dv), 0.0)
    return values
