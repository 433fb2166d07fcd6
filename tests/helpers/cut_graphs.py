"""Oriented graphs, and what their partitions must be, by definition and in plain Python."""

from __future__ import annotations

from itertools import combinations_with_replacement, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.prepare.clean import clean
from wedgewise.prepare.orient import orient, relabel
from wedgewise.stages import EdgeList, OrientedGraph, Origin
from wedgewise.stages.blocks import Block, Task, Triple

Arcs = list[tuple[int, int]]


def oriented(pairs: NDArray[Any], n: int, by: str = "rank") -> OrientedGraph:
    """The oriented graph of pairs of vertices below n, by ascending degree, relabelled."""
    simple = clean(EdgeList(np.ascontiguousarray(pairs), Origin("<array>", "array"), vertices=n), threads=1)
    return relabel(orient(simple), by)


def arcs_of(graph: OrientedGraph) -> Arcs:
    """Every arc as (tail, head)."""
    tails = np.repeat(np.arange(graph.n), graph.out_degrees)
    return list(zip(tails.tolist(), graph.out_neighbours.tolist(), strict=True))


def rows_of(block: Block) -> list[list[int]]:
    """The rows of a block as lists."""
    offsets = block.offsets.tolist()
    return [block.heads[begin:end].tolist() for begin, end in pairwise(offsets)]


def count_in_triple(triple: Triple, task: Task) -> int:
    """The triangles of a task by sets."""
    to_c = [set(row) for row in rows_of(triple.jk)]
    both = zip(rows_of(triple.ij), [set(row) for row in rows_of(triple.ik)], strict=True)
    found = [sum(len(ends & to_c[b]) for b in middles) for middles, ends in both]
    return sum(found[task.share :: task.shares])


def heaviest_block(arcs: Arcs, cuts: list[int]) -> int:
    """The most arcs of a block."""
    parts = np.searchsorted(cuts, np.array(arcs, np.int64).reshape(-1, 2), side="right") - 1
    return int(np.unique(parts, axis=0, return_counts=True)[1].max(initial=0))


def least_load(arcs: Arcs, n: int, parts: int) -> int:
    """The heaviest block of the best cuts there are."""
    inner = combinations_with_replacement(range(n + 1), parts - 1)
    return min(heaviest_block(arcs, [0, *cuts, n]) for cuts in inner)


def greedy_cuts(arcs: Arcs, n: int, parts: int, load: int) -> list[int] | None:
    """Cuts that take one id after the other into the present part while all of its blocks keep to the load."""
    cuts = [0]
    while len(cuts) <= parts and cuts[-1] < n:
        end = cuts[-1]
        while end < n and heaviest_block([arc for arc in arcs if arc[1] <= end], [*cuts, end + 1]) <= load:
            end += 1
        cuts.append(end)
    return [*cuts, *[n] * (parts + 1 - len(cuts))] if cuts[-1] == n else None
