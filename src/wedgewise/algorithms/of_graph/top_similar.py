"""What: the k most similar partners of every vertex, over all pairs with a common neighbour.

Paper: none; a row of the product of the adjacency matrix with itself at a time (Gustavson, TOMS 1978), of which the
best k are kept in a heap.
Who does what: a task per range of vertices u. For every neighbour w of u, all neighbours v of w are counted, in
counters of the thread's own. What cannot reach the worst of k partners is passed over by a product; the rest is
divided. Partners are ordered by descending value, ties by vertex.
Limit: Σ d(w)² updates of counters. Memory: the rows of all neighbours; 12 bytes per vertex and partner; per thread 8 or
12 bytes per vertex.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._contract import Shape
from wedgewise.algorithms._ranges import even_bounds
from wedgewise.algorithms._similarity import (
    COUNT,
    MEASURES,
    cosine,
    fraction_bits,
    jaccard,
    lane_weights,
    overlap,
    preferential_attachment,
    sorensen,
    values_of,
)
from wedgewise.algorithms.cpu._records import Rows, row_at
from wedgewise.algorithms.of_graph import Details, GraphMethod, Job
from wedgewise.algorithms.of_graph._by_sets import sample_of
from wedgewise.errors import VerificationError
from wedgewise.graph import Graph
from wedgewise.machine import jit
from wedgewise.machine.jit import helper, kernel, kernel_view
from wedgewise.machine.parameters import stretch_of
from wedgewise.machine.threads import run_tasks
from wedgewise.stages import Ids

TASK_UPDATES = 20_000_000
SECONDS_PER_UPDATE, PYTHON_SECONDS_PER_UPDATE = 2e-9, 2e-6
JACCARD, OVERLAP, COSINE, SORENSEN, PRODUCT = 1, 2, 3, 4, 5
CODES = {
    "jaccard": JACCARD,
    "overlap": OVERLAP,
    "cosine": COSINE,
    "sorensen": SORENSEN,
    "preferential_attachment": PRODUCT,
}
MARGIN = 1 - 2**-40  # more than what roundings come to


class Wanted(NamedTuple):
    """What is asked: the vertices, a measure by its code, how many bits its sums have behind the point, and whether
    neighbours are left out."""

    vertices: Ids
    code: np.uint64
    bits: np.uint64
    without_neighbors: np.uint64


class Found(NamedTuple):
    """The partners of every vertex that is asked for: `k` places each, of which so many are filled."""

    filled: Ids
    partners: Ids
    values: NDArray[np.float64]
    k: np.uint64


class Scratch(NamedTuple):
    """What a thread counts in, and whom it has counted."""

    counters: NDArray[np.unsignedinteger]
    touched: Ids


@helper
def value_of(code, total, du, dv):  # type: ignore[no-untyped-def]
    """A measure of two vertices."""
    if code == JACCARD:
        return jaccard(total, du, dv)
    if code == OVERLAP:
        return overlap(total, du, dv)
    if code == COSINE:
        return cosine(total, du, dv)
    if code == SORENSEN:
        return sorensen(total, du, dv)
    if code == PRODUCT:
        return preferential_attachment(total, du, dv)
    return total


@helper
def may_reach(code, total, du, dv, least):  # type: ignore[no-untyped-def]
    """Whether the value may be `least` or more, which is a little less than it has to be; without a division."""
    if code == JACCARD:
        return total >= least * (du + dv - total)
    if code == COSINE:
        return total * total >= least * least * du * dv
    if code == SORENSEN:
        return 2.0 * total >= least * (du + dv)
    if code == 0:
        return total >= least
    return True


@helper
def is_worse(value, vertex, other, than):  # type: ignore[no-untyped-def]
    """Whether a partner comes after another."""
    return value < other or (value == other and vertex > than)


@helper
def sift_down(found, base, size, value, vertex):  # type: ignore[no-untyped-def]
    """Put a partner into the root's place of a heap of `size`, whose root is the worst."""
    one, at = np.uint64(1), np.uint64(0)
    while True:
        child = at + at + one
        if child >= size:
            break
        right = child + one
        if right < size and is_worse(
            found.values[base + right],
            found.partners[base + right],
            found.values[base + child],
            found.partners[base + child],
        ):
            child = right
        if not is_worse(found.values[base + child], found.partners[base + child], value, vertex):
            break
        found.values[base + at] = found.values[base + child]
        found.partners[base + at] = found.partners[base + child]
        at = child
    found.values[base + at], found.partners[base + at] = value, vertex


@helper
def push(found, base, size, value, vertex):  # type: ignore[no-untyped-def]
    """Add a partner to a heap of `size` that has a place left."""
    one, at = np.uint64(1), np.uint64(size)
    while at > np.uint64(0):
        parent = (at - one) >> one
        if not is_worse(value, vertex, found.values[base + parent], found.partners[base + parent]):
            break
        found.values[base + at] = found.values[base + parent]
        found.partners[base + at] = found.partners[base + parent]
        at = parent
    found.values[base + at], found.partners[base + at] = value, vertex


@helper
def count_two_hops(rows, weights, u, own):  # type: ignore[no-untyped-def]
    """Count all neighbours of neighbours of u; how many distinct ones there are."""
    counters, touched, count = own.counters, own.touched, np.uint64(0)
    near = row_at(rows, u)
    for arc in range(near.begin, near.end):
        w = np.uint64(rows.heads[arc])
        weight, far = weights[w], row_at(rows, w)
        for other in range(far.begin, far.end):
            v = np.uint64(rows.heads[other])
            before = counters[v]
            touched[count] = v
            count += np.uint64(before == 0)
            counters[v] = before + weight
    return count


@helper
def keep_best(degrees, wanted, u, count, own, found, base):  # type: ignore[no-untyped-def]
    """Keep the best of those that were counted, clear the counters, and put the partners in order; how many."""
    size, k, one = np.uint64(0), found.k, np.uint64(1)
    du, least = np.float64(degrees[u]), np.float64(0.0)
    unit = np.float64(1.0) / np.float64(one << wanted.bits)
    for at in range(count):
        v = np.uint64(own.touched[at])
        total = np.float64(own.counters[v]) * unit
        own.counters[v] = 0
        dv = np.float64(degrees[v])
        if total == 0.0 or not may_reach(wanted.code, total, du, dv, least):
            continue
        value = value_of(wanted.code, total, du, dv)
        if size < k:
            push(found, base, size, value, v)
            size += one
        elif is_worse(found.values[base], found.partners[base], value, v):
            sift_down(found, base, size, value, v)
        if size == k:
            least = found.values[base] * MARGIN
    for last in range(size):
        end = size - one - np.uint64(last)
        value, v = found.values[base + end], found.partners[base + end]
        worst, partner = found.values[base], found.partners[base]
        sift_down(found, base, end, value, v)
        found.values[base + end], found.partners[base + end] = worst, partner
    return size


@kernel
def find_best(
    rows: Rows,
    weights: NDArray[np.unsignedinteger],
    degrees: Ids,
    wanted: Wanted,
    begin: int,
    end: int,
    own: Scratch,
    found: Found,
) -> None:
    """The partners of the vertices begin … end − 1 of those that are asked for."""
    for number in range(np.uint64(begin), np.uint64(end)):
        at = np.uint64(number)
        u = np.uint64(wanted.vertices[at])
        count = count_two_hops(rows, weights, u, own)
        own.counters[u] = 0
        if wanted.without_neighbors:
            near = row_at(rows, u)
            for arc in range(near.begin, near.end):
                own.counters[rows.heads[arc]] = 0
        found.filled[at] = keep_best(degrees, wanted, u, count, own, found, at * found.k)


class Partners(NamedTuple):
    """``partners[offsets[i]:offsets[i + 1]]`` of the i-th vertex that was asked for, and their values, best first."""

    offsets: NDArray[np.int64]
    partners: Ids
    values: NDArray[np.float64]


def find(graph: Graph, job: Job) -> Partners:
    """The partners of the vertices that are asked for."""
    details = job.details
    vertices, k, (measure,) = details["vertices"], min(details["k"], max(1, graph.n)), details["measure"]
    lane, adjacency, degrees = MEASURES[measure].lane, graph.adjacency, graph.degrees
    weights = lane_weights(degrees, (lane,)).reshape(-1)
    if lane == COUNT:
        weights = weights.astype(np.uint32)
    rows = Rows(kernel_view(adjacency.offsets), kernel_view(adjacency.neighbours))
    bits = 0 if lane == COUNT else fraction_bits(degrees)
    neighbours_out = np.uint64(bool(details["exclude_neighbors"]))
    wanted = Wanted(kernel_view(vertices), np.uint64(CODES.get(measure, 0)), np.uint64(bits), neighbours_out)
    places = len(vertices) * k
    found = Found(
        np.zeros(len(vertices), np.uint32), np.empty(places, np.uint32), np.empty(places, np.float64), np.uint64(k)
    )
    work = updates(graph)[vertices]
    pays = jit.pays(PYTHON_SECONDS_PER_UPDATE * float(work.sum()), find_best)
    best, bounds = find_best if pays else find_best.interpreted, even_bounds(work, TASK_UPDATES).tolist()
    scratch: dict[int, Scratch] = {}

    def run(task: int, worker: int) -> None:
        if worker not in scratch:
            scratch[worker] = Scratch(np.zeros(graph.n, weights.dtype), np.empty(graph.n + 1, np.uint32))
        best(rows, weights, degrees, wanted, bounds[task], bounds[task + 1], scratch[worker], found)

    run_tasks(run, len(bounds) - 1, job.threads, job.step(len(bounds) - 1))
    is_filled = (np.arange(k) < found.filled[:, None]).reshape(-1)
    offsets = np.zeros(len(vertices) + 1, np.int64)
    np.cumsum(found.filled, out=offsets[1:])
    return Partners(offsets, found.partners[is_filled], found.values[is_filled])


def updates(graph: Graph) -> NDArray[np.float64]:
    """Per vertex, how often a counter is updated for it: the sum of its neighbours' degrees."""
    adjacency = graph.adjacency
    before = np.zeros(len(adjacency.neighbours) + 1, np.float64)
    np.cumsum(graph.degrees[adjacency.neighbours], out=before[1:])
    found: NDArray[np.float64] = before[adjacency.offsets[1:]] - before[adjacency.offsets[:-1]] + 1
    return found


def resolved(graph: Graph, details: Details) -> Details:
    """The vertices that partners are asked for, by number; all of them where none are named."""
    given = details["vertices"]
    if given is None:
        start, stop = stretch_of(details["start"], details["stop"], graph.n, "vertices")
        return {**details, "vertices": np.arange(start, stop, dtype=np.uint32)}
    return {**details, "vertices": np.atleast_1d(graph.index(given)).astype(np.uint32)}


def bytes_needed(shape: Shape, threads: int, details: Details) -> int:
    places = len(details["vertices"]) * min(details["k"], max(1, shape.n))
    making = (24 + 8) * shape.m + 24 * shape.n  # rows of all neighbours, at the peak
    counting = (8 + 24) * shape.m + (40 + 12 * threads) * shape.n + 25 * places + 16 * len(details["vertices"])
    return int(max(making, counting))


def seconds(graph: Graph, details: Details) -> float:
    degrees = graph.degrees.astype(np.float64)
    return SECONDS_PER_UPDATE * float(degrees @ degrees) * len(details["vertices"]) / max(1, graph.n)


def check(graph: Graph, details: Details, found: Partners) -> str:
    """Hold the partners of sampled vertices to all pairs that these are in."""
    vertices, (measure,) = details["vertices"], details["measure"]
    lanes = (MEASURES[measure].lane,)
    weights, rows = lane_weights(graph.degrees, lanes)[:, 0], graph.adjacency
    sample = sample_of(updates(graph)[vertices], graph.m).tolist()
    for at in sample:
        u = int(vertices[at])
        sums = np.zeros(graph.n, np.uint64)
        for w in rows.of(u).tolist():
            sums[rows.of(w)] += weights[w]
        sums[u] = 0
        if details["exclude_neighbors"]:
            sums[rows.of(u)] = 0
        others = np.flatnonzero(sums)
        ends = np.stack([np.full_like(others, u), others], axis=1)
        values = values_of(measure, lanes, sums[others, None], graph.degrees, ends).astype(np.float64)
        first = np.lexsort((others, -values))[: details["k"]]
        part = slice(found.offsets[at], found.offsets[at + 1])
        if not (
            np.array_equal(others[first], found.partners[part]) and np.array_equal(values[first], found.values[part])
        ):
            raise VerificationError(
                f"{graph.labels[u]!r}: partners differ from those by definition: please report this"
            )
    return f"{len(sample):,} vertices by all pairs that they are in"


METHOD = GraphMethod(
    "Counts the neighbours of neighbours of each vertex, and keeps the best k.",
    find,
    bytes_needed,
    seconds,
    check,
    resolved,
)
