"""EdgeList + SimpleGraph → what the edges carry: directions, weights, and the strengths that triangles are weighed by.

A pair's edge is found by bisection among the edges' keys. Of pairs that repeat an arc (without directions: an edge) the
last one stays. Pairs whose edge is not in the simple graph (loops, edges of dropped leaves) carry nothing, except that
a loop's weight takes part in the largest weight, as it does in NetworkX.

Memory: 9 bytes per pair while they are looked up; then per edge 2 bytes of directions, and 8 bytes per weight.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import InputError
from wedgewise.execute.threads import run_tasks
from wedgewise.graph import EdgeList, Keys, SimpleGraph
from wedgewise.machine.shortage import memory_for

CHUNK = 1 << 18
NOWHERE = -1


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


@memory_for("clean")
def edge_attributes(edge_list: EdgeList, simple: SimpleGraph, *, directed: bool, threads: int) -> EdgeAttributes:
    """Look up what each edge of `simple`, which was made of `edge_list`, carries; the pairs must be as they came."""
    if directed and edge_list.undirected:
        return _both_ways(edge_attributes(edge_list, simple, directed=False, threads=threads), simple.m)
    weights = edge_list.weights
    if weights is not None:
        _check_finite(edge_list, weights)
    sides = _locate_sides(edge_list, simple, threads)
    is_given = np.zeros(2 * simple.m, np.bool_)
    kept = None if weights is None else np.zeros(2 * simple.m if directed else simple.m, np.float64)
    for begin in range(0, len(sides), CHUNK):
        part = slice(begin, begin + CHUNK)
        found = sides[part] != NOWHERE
        places = sides[part][found]
        is_given[places] = True
        if weights is not None and kept is not None:
            kept[places if directed else places >> 1] = weights[part][found]  # of repeated indices the last one stays
    directions = is_given.reshape(-1, 2) if directed else None
    if weights is None or kept is None:
        return EdgeAttributes(directions, None)
    by_edge = kept.reshape(-1, 2) if directed else kept
    stayed = [by_edge.max(initial=-np.inf, where=True if directions is None else directions)]
    stayed.append(_loop_weights(edge_list, weights, simple).max(initial=-np.inf))
    largest = float(max(stayed))
    return EdgeAttributes(directions, by_edge, largest if largest > -np.inf else 1.0)


def _both_ways(once: EdgeAttributes, m: int) -> EdgeAttributes:
    """The attributes of edges without directions, each of them given in both."""
    weights = None if once.weights is None else np.stack([once.weights, once.weights], axis=1)
    return EdgeAttributes(np.ones((m, 2), np.bool_), weights, once.largest_weight)


def _check_finite(edge_list: EdgeList, weights: NDArray[np.float64]) -> None:
    is_finite = np.isfinite(weights)
    if not is_finite.all():
        row = int(np.flatnonzero(~is_finite)[0])
        raise InputError(
            f"{edge_list.origin.name}: the weight of pair {row}, {tuple(edge_list.pairs[row].tolist())}, is "
            f"{weights[row]}: weights must be finite; leave such pairs out or give them another weight"
        )


def _locate_sides(edge_list: EdgeList, simple: SimpleGraph, threads: int) -> NDArray[np.int64]:
    """For each pair 2·e where it is edge e from its lower end, 2·e + 1 from its higher end, or NOWHERE."""
    pairs = edge_list.pairs
    called = _called(edge_list, simple)
    sides = np.empty(len(pairs), np.int64)

    def locate(chunk: int, _worker: int) -> None:
        part = slice(chunk * CHUNK, (chunk + 1) * CHUNK)
        ends = _slots_of(pairs[part], called, simple)
        low, high = ends.min(axis=1), ends.max(axis=1)
        edges, found = _find(simple.slot_keys, low << np.uint64(32) | high)
        sides[part] = np.where(found, 2 * edges + (ends[:, 0] > ends[:, 1]), NOWHERE)

    run_tasks(locate, -(-len(pairs) // CHUNK), threads)
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
    vertices, found = _find(called, values.astype(called.dtype))
    slots = vertices if simple.slots is None else simple.slots[vertices]
    return np.where(found, slots, simple.slot_count).astype(np.uint64)


def _find(ascending: NDArray[Any], wanted: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The place of each wanted value, and whether it is there at all; of absent ones the place means nothing.

    Wanted in ascending order, neighbours share most of their bisection in cache.
    """
    if len(ascending) == 0:
        return np.zeros(wanted.shape, np.int64), np.zeros(wanted.shape, np.bool_)
    order = np.argsort(wanted, axis=None)
    places: NDArray[np.int64] = np.empty(wanted.shape, np.int64)
    places.reshape(-1)[order] = np.minimum(np.searchsorted(ascending, wanted.reshape(-1)[order]), len(ascending) - 1)
    return places, ascending[places] == wanted


def _loop_weights(edge_list: EdgeList, weights: NDArray[np.float64], simple: SimpleGraph) -> NDArray[np.float64]:
    """The weights that loops of vertices in `simple` end up with: of each vertex the last one given."""
    is_loop = edge_list.pairs[:, 0] == edge_list.pairs[:, 1]
    slots = _slots_of(edge_list.pairs[is_loop, 0], _called(edge_list, simple), simple)
    is_vertex = slots < simple.slot_count
    if simple.slots is not None:
        is_vertex &= _find(simple.slots, slots.astype(np.uint32))[1]
    _, from_the_end = np.unique(slots[is_vertex][::-1], return_index=True)
    last: NDArray[np.float64] = weights[is_loop][is_vertex][::-1][from_the_end]
    return last


def _cube_roots(weights: NDArray[np.float64], largest: float, threads: int) -> NDArray[np.float64]:
    """The cube root of every edge's weight over the largest one, both directions added."""
    if largest == 0 and len(weights):
        raise InputError("the largest weight is 0, and weights are divided by it; use weights whose largest is not 0")
    strengths = np.empty(len(weights), np.float64)

    def extract(chunk: int, _worker: int) -> None:
        part = slice(chunk * CHUNK, (chunk + 1) * CHUNK)
        with np.errstate(over="ignore"):  # beyond the range of numbers: infinite, as in Python's division
            roots = np.cbrt(weights[part] / largest)
        strengths[part] = roots if roots.ndim == 1 else roots[:, 0] + roots[:, 1]

    run_tasks(extract, -(-len(weights) // CHUNK), threads)
    return strengths
