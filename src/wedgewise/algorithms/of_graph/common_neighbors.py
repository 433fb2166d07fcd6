"""What: for every pair of vertices that is asked for, the sum over their common neighbours of what these weigh.

Paper: none; the rows of both ends are merged, or each id of a much shorter one is looked up in the other.
Who does what: a task per range of pairs, as they come. Memory: the rows of all neighbours, 8 bytes per pair and lane.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._contract import Shape
from wedgewise.algorithms._ranges import even_bounds
from wedgewise.algorithms._similarity import lane_weights, lanes_of
from wedgewise.algorithms.cpu._records import Rows, row_at
from wedgewise.algorithms.of_graph import Details, GraphMethod, Job
from wedgewise.algorithms.of_graph._by_sets import check_sums
from wedgewise.errors import InputError
from wedgewise.graph import Graph
from wedgewise.machine import jit
from wedgewise.machine.jit import helper, kernel, kernel_view
from wedgewise.machine.threads import run_tasks
from wedgewise.prepare.orient import first_not_below
from wedgewise.row_edges import ends_of_pairs
from wedgewise.stages import Ids, Keys

TASK_IDS = 1 << 22
LOOK_UP_RATIO = 16  # of the lengths of two rows, from which ids are looked up
SECONDS_PER_ID, PYTHON_SECONDS_PER_ID = 4e-9, 3e-6


class Lanes(NamedTuple):
    """What vertices weigh, and the sums of pairs: ``weights[v * lanes + lane]``, ``sums[pair * lanes + lane]``."""

    weights: Keys
    sums: Keys
    lanes: np.uint64


@helper
def add_weights(into, vertex, pair):  # type: ignore[no-untyped-def]
    for lane in range(into.lanes):
        into.sums[pair * into.lanes + lane] += into.weights[vertex * into.lanes + lane]


@helper
def add_common(rows, short, long, pair, into):  # type: ignore[no-untyped-def]
    """Add what two rows have in common, of which one is no longer than the other."""
    heads, one = rows.heads, np.uint64(1)
    first, second = short.begin, long.begin
    if (short.end - first) * np.uint64(LOOK_UP_RATIO) < long.end - second:
        while first < short.end and second < long.end:
            wanted = np.uint64(heads[first])
            second = first_not_below(heads, second, long.end, wanted)
            if second < long.end and np.uint64(heads[second]) == wanted:
                add_weights(into, wanted, pair)
            first += one
        return
    while first < short.end and second < long.end:
        x, y = heads[first], heads[second]
        if x == y:
            add_weights(into, np.uint64(x), pair)
        first += np.uint64(x <= y)
        second += np.uint64(y <= x)


@kernel
def add_pairs(rows: Rows, ends: Ids, begin: int, end: int, into: Lanes) -> None:
    """Add up what the common neighbours of the pairs begin … end − 1 weigh."""
    one = np.uint64(1)
    for number in range(np.uint64(begin), np.uint64(end)):
        pair = np.uint64(number)
        u = row_at(rows, np.uint64(ends[pair << one]))
        v = row_at(rows, np.uint64(ends[(pair << one) + one]))
        if u.end - u.begin <= v.end - v.begin:
            add_common(rows, u, v, pair, into)
        else:
            add_common(rows, v, u, pair, into)


def find(graph: Graph, job: Job) -> Keys:
    """The sums of every pair, uint64[pairs, lanes]."""
    ends, lanes = job.details["pairs"], lanes_of(job.details["measure"])
    adjacency, sums = graph.adjacency, np.zeros((len(ends), len(lanes)), np.uint64)
    rows = Rows(kernel_view(adjacency.offsets), kernel_view(adjacency.neighbours))
    into = Lanes(kernel_view(lane_weights(graph.degrees, lanes)), kernel_view(sums), np.uint64(len(lanes)))
    work = _ids_read(graph, ends)
    pays = jit.pays(PYTHON_SECONDS_PER_ID * float(work.sum()), add_pairs)
    add, flat = add_pairs if pays else add_pairs.interpreted, kernel_view(ends)
    bounds = even_bounds(work, TASK_IDS).tolist()

    def run(task: int, _worker: int) -> None:
        add(rows, flat, bounds[task], bounds[task + 1], into)

    run_tasks(run, len(bounds) - 1, job.threads, job.step(len(bounds) - 1))
    return sums


def _ids_read(graph: Graph, ends: NDArray[np.uint32]) -> NDArray[np.float64]:
    """At most so many ids are read for each pair."""
    degrees = graph.degrees[ends].astype(np.float64)
    read: NDArray[np.float64] = 1 + np.minimum(degrees.sum(axis=1), 2 * LOOK_UP_RATIO * degrees.min(axis=1))
    return read


def resolved(graph: Graph, details: Details) -> Details:
    """The pairs as vertices, or an error about the first that is none."""
    ends = ends_of_pairs(graph, details["pairs"])
    loops = np.flatnonzero(ends[:, 0] == ends[:, 1])
    if len(loops):
        raise InputError(
            f"pair {loops[0]}: {graph.labels[ends[loops[0], 0]]!r} with itself; similarity is between two vertices"
        )
    return {**details, "pairs": ends}


def bytes_needed(shape: Shape, threads: int, details: Details) -> int:
    pairs, lanes = len(details["pairs"]), len(lanes_of(details["measure"]))
    adjacency = (24 + 8) * shape.m + 24 * shape.n  # at the peak of making it
    return adjacency + (8 * lanes + 44) * pairs + (8 * lanes + 12) * shape.n


def seconds(graph: Graph, details: Details) -> float:
    return SECONDS_PER_ID * float(_ids_read(graph, details["pairs"]).sum())


def check(graph: Graph, details: Details, sums: Keys) -> str:
    return check_sums(graph, details["pairs"], lanes_of(details["measure"]), sums)


METHOD = GraphMethod(
    "Merges the rows of both ends, or looks the ids of a short row up.", find, bytes_needed, seconds, check, resolved
)
