"""Rows of remaining edges in both directions: built once, packed in place, listed by what is left of them.

A row is the neighbours of a vertex, ascending, each with its edge: ``neighbour << 32 | edge``. Edges are numbered by
their ends ``low << 32 | high``, ascending, so that the edges of one lower end are neighbours in every array.
"""

from __future__ import annotations

from typing import NamedTuple, SupportsInt

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms.cpu._truss_close import GONE, IN_FRONTIER, REMOVED, RemainingRows
from wedgewise.machine.jit import kernel
from wedgewise.stages import Ids, Keys

LOOK_EDGES = 512  # edges whose least support says whether to look at each


class EdgeArrays(NamedTuple):
    """What is known of each edge; `numbers` are those of the graph as it was."""

    ends: Keys
    numbers: Ids
    supports: Ids
    states: NDArray[np.uint8]


@kernel
def count_ends(ends: Keys, sizes: Keys, begin: int, end: int, first_vertex: int, end_vertex: int) -> None:
    """Add the edges ``ends[begin:end]`` to the sizes of the rows of an interval of vertices."""
    low, first, stop = np.uint64(0xFFFFFFFF), np.uint64(first_vertex), np.uint64(end_vertex)
    for edge in range(np.uint64(begin), np.uint64(end)):
        u, v = ends[edge] >> np.uint64(32), ends[edge] & low
        if first <= u and u < stop:
            sizes[u] += np.uint64(1)
        if first <= v and v < stop:
            sizes[v] += np.uint64(1)


@kernel
def place_ends(
    ends: Keys, higher: bool, stops: Keys, rows: Keys, begin: int, end: int, first_vertex: int, end_vertex: int
) -> None:
    """Append the edges ``ends[begin:end]`` to the rows of an interval of vertices: of higher ends, or of lower ones."""
    low, first, stop = np.uint64(0xFFFFFFFF), np.uint64(first_vertex), np.uint64(end_vertex)
    for edge in range(np.uint64(begin), np.uint64(end)):
        u, v = ends[edge] >> np.uint64(32), ends[edge] & low
        vertex, neighbour = (v, u) if higher else (u, v)
        if first <= vertex and vertex < stop:
            position = stops[vertex]
            rows[position] = neighbour << np.uint64(32) | np.uint64(edge)
            stops[vertex] = position + np.uint64(1)


@kernel
def pack_rows(
    firsts: Keys, stops: Keys, rows: Keys, begin: int, end: int, states: NDArray[np.uint8], numbers: Ids
) -> None:
    """Close up the rows of vertices begin … end − 1 without removed edges, and renumber the others."""
    keep = ~np.uint64(0xFFFFFFFF)
    position = firsts[np.uint64(begin)]
    for vertex in range(np.uint64(begin), np.uint64(end)):
        first, stop = firsts[vertex], stops[vertex]
        firsts[vertex] = position
        for old in range(first, stop):
            entry = rows[old]
            edge = entry & np.uint64(0xFFFFFFFF)
            rows[position] = (entry & keep) | np.uint64(numbers[edge])
            position += np.uint64(states[edge] != REMOVED)
        stops[vertex] = position


@kernel
def rename_neighbours(firsts: Keys, stops: Keys, rows: Keys, begin: int, end: int, names: Ids) -> None:
    """Rename the neighbours in the rows of vertices begin … end − 1."""
    low = np.uint64(0xFFFFFFFF)
    for vertex in range(np.uint64(begin), np.uint64(end)):
        for position in range(firsts[vertex], stops[vertex]):
            entry = rows[position]
            rows[position] = np.uint64(names[entry >> np.uint64(32)]) << np.uint64(32) | (entry & low)


@kernel
def list_weak(supports: Ids, begin: int, end: int, bound: int, weak: Ids, at: int) -> tuple[SupportsInt, SupportsInt]:
    """List the edges of a range with at most so many triangles from ``weak[at]`` on; how many, and the next support."""
    bound32, least = np.uint32(bound), np.uint32(GONE)
    count = np.uint64(at)
    for block in range(np.uint64(begin), np.uint64(end), np.uint64(LOOK_EDGES)):
        stop = min(block + np.uint64(LOOK_EDGES), np.uint64(end))
        here = np.uint32(GONE)
        for edge in range(block, stop):
            here = min(here, supports[edge])
        if here > bound32:
            least = min(least, here)
            continue
        for edge in range(block, stop):
            support = supports[edge]
            weak[count] = edge
            count += np.uint64(support <= bound32)
            least = min(least, support if support > bound32 else np.uint32(GONE))
    return count - np.uint64(at), np.uint64(least)


@kernel
def remove(
    frontier: Ids,
    begin: int,
    end: int,
    states: NDArray[np.uint8],
    supports: Ids,
    numbers: Ids,
    bound: int,
    removed_at: Ids,
) -> None:
    """The edges ``frontier[begin:end]`` are removed at a bound, which is written for each."""
    for position in range(np.uint64(begin), np.uint64(end)):
        edge = np.uint64(frontier[position])
        states[edge] = REMOVED
        supports[edge] = np.uint32(GONE)
        removed_at[np.uint64(numbers[edge])] = np.uint32(bound)


@kernel
def mark_frontier(frontier: Ids, begin: int, end: int, states: NDArray[np.uint8]) -> None:
    """Say of ``frontier[begin:end]`` that they are in the frontier."""
    for position in range(np.uint64(begin), np.uint64(end)):
        states[np.uint64(frontier[position])] = IN_FRONTIER


@kernel
def move_edges(begin: int, end: int, edges: EdgeArrays, renumbered: Ids, names: Ids) -> None:
    """Move what is not removed of edges begin … end − 1 to its new place, with the new names of its ends.

    Every edge is written, and only one that stays moves the place on, so that there is no branch to mispredict.
    """
    low, position = np.uint64(0xFFFFFFFF), np.uint64(renumbered[np.uint64(begin)])
    ends, numbers, supports, states = edges
    for edge in range(np.uint64(begin), np.uint64(end)):
        u, v = np.uint64(names[ends[edge] >> np.uint64(32)]), np.uint64(names[ends[edge] & low])
        ends[position] = u << np.uint64(32) | v
        numbers[position] = numbers[edge]
        supports[position] = supports[edge]
        state = states[edge]
        states[position] = state
        position += np.uint64(state != REMOVED)


@kernel
def key_edges(
    frontier: Ids, begin: int, end: int, remaining: RemainingRows, keys: Keys
) -> tuple[SupportsInt, SupportsInt]:
    """``longer end << 32 | edge`` for those of ``frontier[begin:end]`` with triangles; how many, with which rows."""
    low, count, steps = np.uint64(0xFFFFFFFF), np.uint64(0), np.uint64(0)
    ends, supports, _, firsts, stops, _ = remaining
    for number in range(np.uint64(begin), np.uint64(end)):
        edge = np.uint64(frontier[number])
        u, v = ends[edge] >> np.uint64(32), ends[edge] & low
        u_size, v_size = stops[u] - firsts[u], stops[v] - firsts[v]
        longer = u if u_size > v_size else v
        keys[count] = longer << np.uint64(32) | edge
        count += np.uint64(supports[edge] > np.uint32(0))
        steps += u_size + v_size
    return count, steps


@kernel
def cut_tasks(keys: Keys, remaining: RemainingRows, most_steps: int, most_triangles: int, bounds: Keys) -> SupportsInt:
    """Cut sorted keys into tasks of at most so many steps and triangles, unless one edge has more; how many tasks."""
    low = np.uint64(0xFFFFFFFF)
    ends, supports, _, firsts, stops, _ = remaining
    steps, triangles, tasks = np.uint64(0), np.uint64(0), np.uint64(0)
    last = low
    for number in range(np.uint64(len(keys))):
        edge, vertex = keys[number] & low, keys[number] >> np.uint64(32)
        other = (ends[edge] >> np.uint64(32)) ^ (ends[edge] & low) ^ vertex
        step = stops[other] - firsts[other]
        if vertex != last:
            step += stops[vertex] - firsts[vertex]
        support = np.uint64(supports[edge])
        full = steps + step > np.uint64(most_steps) or triangles + support > np.uint64(most_triangles)
        if full and steps > np.uint64(0):
            tasks += np.uint64(1)
            bounds[tasks] = number
            steps, triangles = np.uint64(0), np.uint64(0)
        steps += step
        triangles += support
        last = vertex
    bounds[tasks + np.uint64(1)] = np.uint64(len(keys))
    return tasks + np.uint64(1)
