"""EdgeList + SimpleGraph → what the edges carry: directions, weights, and the strengths that triangles are weighed by.

A pair's edge is found by bisection among the edges' keys. Pairs that repeat an arc (without directions: an edge) have
their weights combined, in the order of the pairs. Pairs whose edge is not in the simple graph (loops, edges of dropped
leaves) carry nothing, except that a loop's weight takes part in the largest weight, as it does in NetworkX.

Memory: 9 bytes per pair while they are looked up; then per edge 1 byte of marks, or 2 of directions, and 8 bytes per
weight, those of vertices with loops included. To name a pair that is there twice takes up to 48 bytes per pair more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import InputError, UnknownNameError
from wedgewise.machine.out_of_memory import memory_for
from wedgewise.machine.threads import run_chunks
from wedgewise.prepare.radix import changed
from wedgewise.stages import EdgeList, Keys, SimpleGraph, make_read_only, read_only

CHUNK = 1 << 18
NOT_FOUND = -1

Positions = NDArray[np.int64]
Weights = NDArray[np.float64]


def _put(kept: Weights, positions: Positions, weights: Weights) -> None:
    """Of positions that are given more than once, the last weight stays."""
    kept[positions] = weights


COMBINE: dict[
    str, tuple[float, Callable[[Weights, Positions, Weights], None]]
] = {  # what to begin with, and how to go on
    "last": (0.0, _put),
    "sum": (0.0, np.add.at),
    "max": (-np.inf, np.maximum.at),
    "min": (np.inf, np.minimum.at),
    "error": (0.0, _put),
}


@dataclass(frozen=True, slots=True)
class EdgeAttributes:
    """What the edges carry, in the order of the simple graph's keys; u < v are the ends of an edge.

    ``directions`` has shape (m, 2): whether u → v and whether v → u was given; None where directions are not kept.
    ``weights`` has shape (m,), or (m, 2) where directions are kept (an absent direction weighs 0); None without any.
    ``largest_weight`` is the largest one that stayed, loops included; 1 where there is none.
    """

    directions: NDArray[np.bool_] | None
    weights: NDArray[np.float64] | None
    largest_weight: float = 1.0

    def __post_init__(self) -> None:
        make_read_only(self, "directions", "weights")

    @property
    def directed(self) -> bool:
        return self.directions is not None

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in (self.directions, self.weights) if array is not None)

    def directed_degrees(self, simple: SimpleGraph) -> tuple[Keys, Keys]:
        """Per vertex its in- plus out-degree, and how many of its edges were given in both directions."""
        assert self.directions is not None
        ends = simple.slot_pairs[self.directions.all(axis=1)]
        by_slot = np.bincount(ends.reshape(-1), minlength=simple.slot_count).astype(np.uint64)
        reciprocal = by_slot if simple.slots is None else by_slot[simple.slots]
        return simple.degrees + reciprocal, reciprocal

    def strengths(self, *, weighted: bool, threads: int = 1) -> NDArray[Any]:
        """Per edge, the number whose product over a triangle's edges is what clustering adds up.

        Directions alone: how many of the two there are, as uint64; the product counts directed triangles. Weights: the
        cube root of w / max w, added over the directions, as float64; the product is the geometric mean of the three
        weights, with directions the sum of the geometric means of all directed triangles.
        """
        if weighted:
            assert self.weights is not None
            return _cube_roots(self.weights, self.largest_weight, threads)
        assert self.directions is not None
        given: Keys = self.directions.sum(axis=1, dtype=np.uint64)
        return given


def check_combine(combine: str) -> None:
    """Refuse an unknown way to combine the weights of repeated edges."""
    if combine not in COMBINE:
        raise UnknownNameError(f"no way to combine weights named {combine!r}; there are: {', '.join(COMBINE)}")


@memory_for("clean")
def edge_attributes(
    edge_list: EdgeList, simple: SimpleGraph, *, directed: bool, threads: int, combine: str = "last"
) -> EdgeAttributes:
    """Look up what each edge of `simple`, which was made of `edge_list`, carries; the pairs must be as they came."""
    if directed and edge_list.undirected:
        once = edge_attributes(edge_list, simple, directed=False, threads=threads, combine=combine)
        return _both_ways(once, simple.m)
    weights = edge_list.weights
    if weights is not None:
        _check_finite(edge_list, weights)
    positions, count = _locate_sides(edge_list, simple, threads), 2 * simple.m
    if not directed:
        positions >>= 1  # the edge of a side; NOWHERE stays
        count = simple.m
    loops = 0 if weights is None else _find_loops(edge_list, simple, positions, count)
    is_given = read_only(_marked(positions, count + loops))  # before parts of it are handed out
    by_edge = is_given[:count].reshape(-1, 2 if directed else 1)
    if not by_edge.any(axis=1).all():
        raise changed(edge_list.origin.name)
    directions = by_edge if directed else None
    if weights is None:
        return EdgeAttributes(directions, None)
    if combine == "error":
        _refuse_repeats(edge_list, positions, int(np.count_nonzero(is_given)))
    kept = read_only(_combined(edge_list, weights, positions, count + loops, combine))
    largest = float(kept.max(initial=-np.inf, where=is_given))
    by_side = kept[:count].reshape(-1, 2) if directed else kept[:count]
    return EdgeAttributes(directions, by_side, largest if largest > -np.inf else 1.0)


def _both_ways(once: EdgeAttributes, m: int) -> EdgeAttributes:
    """The attributes of edges without directions, each of them given in both."""
    weights = None if once.weights is None else np.stack([once.weights, once.weights], axis=1)
    return EdgeAttributes(np.ones((m, 2), np.bool_), weights, once.largest_weight)


def _check_finite(edge_list: EdgeList, weights: Weights) -> None:
    is_finite = np.isfinite(weights)
    if not is_finite.all():
        row = int(np.flatnonzero(~is_finite)[0])
        raise InputError(
            f"{edge_list.origin.name}: the weight of pair {row}, {_pair_text(edge_list, row)}, is "
            f"{weights[row]}: weights must be finite; leave such pairs out or give them another weight"
        )


def _pair_text(edge_list: EdgeList, row: int) -> str:
    """The pair of a row by its labels."""
    first, second = edge_list.pairs[row].tolist()
    if edge_list.names is not None:
        first, second = edge_list.names[first], edge_list.names[second]
    return f"({first}, {second})"


def _locate_sides(edge_list: EdgeList, simple: SimpleGraph, threads: int) -> Positions:
    """For each pair 2·e where it is edge e from its lower end, 2·e + 1 from its higher end, or NOWHERE."""
    pairs = edge_list.pairs
    called = _called(edge_list, simple)
    sides = np.empty(len(pairs), np.int64)

    def locate(part: slice) -> None:
        ends = _slots_of(pairs[part], called, simple)
        low, high = ends.min(axis=1), ends.max(axis=1)
        edges, found = find_ascending(simple.slot_keys, low << np.uint64(32) | high)
        sides[part] = np.where(found, 2 * edges + (ends[:, 0] > ends[:, 1]), NOT_FOUND)

    run_chunks(locate, len(pairs), CHUNK, threads)
    return sides


def _called(edge_list: EdgeList, simple: SimpleGraph) -> NDArray[Any] | None:
    """What the pairs call each vertex, ascending; None where they call it by its slot."""
    if edge_list.vertices is not None or isinstance(simple.labels, range) or simple.labels is simple.slots:
        return None
    return np.asarray(simple.labels)


def _slots_of(values: NDArray[Any], called: NDArray[Any] | None, simple: SimpleGraph) -> Keys:
    """The slots that raw values stand for; one beyond all slots for values that name no vertex."""
    if called is None:
        return values.astype(np.uint64)
    vertices, found = find_ascending(called, values.astype(called.dtype))
    slots = vertices if simple.slots is None else simple.slots[vertices]
    return np.where(found, slots, simple.slot_count).astype(np.uint64)


def find_ascending(ascending: NDArray[Any], wanted: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The position of each wanted value, and whether it is there at all; of absent ones the position means nothing.

    Wanted in ascending order, neighbours share most of their bisection in cache.
    """
    if len(ascending) == 0:
        return np.zeros(wanted.shape, np.int64), np.zeros(wanted.shape, np.bool_)
    order = np.argsort(wanted, axis=None)
    positions: NDArray[np.int64] = np.empty(wanted.shape, np.int64)
    positions.reshape(-1)[order] = np.minimum(np.searchsorted(ascending, wanted.reshape(-1)[order]), len(ascending) - 1)
    return positions, ascending[positions] == wanted


def _find_loops(edge_list: EdgeList, simple: SimpleGraph, positions: Positions, first: int) -> int:
    """Give the loops of each vertex of `simple` a position of their own, from `first` on; how many have loops."""
    rows = np.flatnonzero(edge_list.pairs[:, 0] == edge_list.pairs[:, 1])
    slots = _slots_of(edge_list.pairs[rows, 0], _called(edge_list, simple), simple)
    is_vertex = slots < simple.slot_count
    if simple.slots is not None:
        is_vertex &= find_ascending(simple.slots, slots.astype(np.uint32))[1]
    vertices, position = np.unique(slots[is_vertex], return_inverse=True)
    positions[rows[is_vertex]] = first + position
    return len(vertices)


def _marked(positions: Positions, count: int) -> NDArray[np.bool_]:
    """Which of `count` positions are given."""
    is_given = np.zeros(count, np.bool_)
    for begin in range(0, len(positions), CHUNK):
        part = positions[begin : begin + CHUNK]
        is_given[part[part != NOT_FOUND]] = True
    return is_given


def _combined(edge_list: EdgeList, weights: Weights, positions: Positions, count: int, combine: str) -> Weights:
    """The weight of each of `count` positions, out of those that were given for it, in the order of the pairs; or 0."""
    start, take = COMBINE[combine]
    kept = np.full(count, start)
    with np.errstate(over="ignore"):
        for begin in range(0, len(positions), CHUNK):
            part = slice(begin, begin + CHUNK)
            found = positions[part] != NOT_FOUND
            given = weights[part][found]
            if not np.isfinite(given).all():
                raise changed(edge_list.origin.name, "weights")
            take(kept, positions[part][found], given)
    if combine == "sum":
        _check_sums(edge_list, positions, kept)
    elif start:
        kept[np.isinf(kept)] = 0.0  # weights are finite: nothing was given there
    return kept


def _check_sums(edge_list: EdgeList, positions: Positions, sums: Weights) -> None:
    is_finite = np.isfinite(sums)
    if not is_finite.all():
        row = int(np.argmax(positions == np.argmin(is_finite)))
        raise InputError(
            f"{edge_list.origin.name}: the weights of {_pair_text(edge_list, row)}, first given in row {row}, add up "
            "to infinity; scale the weights down or combine them in another way"
        )


def _refuse_repeats(edge_list: EdgeList, positions: Positions, distinct: int) -> None:
    """Name the first row that gives a position again, and the row that gave it before."""
    rows = np.flatnonzero(positions != NOT_FOUND)
    if len(rows) == distinct:
        return
    given = positions[rows]
    order = np.argsort(given, kind="stable")
    again = np.flatnonzero(given[order[1:]] == given[order[:-1]])
    at = again[np.argmin(order[again + 1])]
    before, row = rows[order[at : at + 2]].tolist()
    raise InputError(
        f"{edge_list.origin.name}: rows {before} and {row} both give {_pair_text(edge_list, before)} a weight; leave "
        "one out, or combine them by combine= (--combine): 'last', 'sum', 'max' or 'min'"
    )


def _cube_roots(weights: NDArray[np.float64], largest: float, threads: int) -> NDArray[np.float64]:
    """The cube root of every edge's weight over the largest one, both directions added."""
    if largest == 0 and len(weights):
        raise InputError("the largest weight is 0, and weights are divided by it; use weights whose largest is not 0")
    strengths = np.empty(len(weights), np.float64)

    def extract(part: slice) -> None:
        with np.errstate(over="ignore"):  # beyond the range of numbers: infinite, as in Python's division
            roots = np.cbrt(weights[part] / largest)
        strengths[part] = roots if roots.ndim == 1 else roots[:, 0] + roots[:, 1]

    run_chunks(extract, len(weights), CHUNK, threads)
    return strengths
