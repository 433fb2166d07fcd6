"""Edges and ranks → the ranks in the order of other ids: by in-degree, or by TRUST's classes (§5.1); as by `relabel`.

Directions follow ranks whatever ids are. What the orders need of the arcs are sums and minima by vertex, so that each
is a pass over the file of edges, in any order: out-degrees; for classes also collective out-degrees, and the first
visit to a vertex from the tails in their order. Memory: `SLOT_BYTES` by slot, beside ranks and degrees.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.machine.jit import kernel
from wedgewise.prepare.orient_arrays import ascending_by, into_classes, inverse, visits_by
from wedgewise.stages import Ids, Keys
from wedgewise.store.sort_and_deduplicate import Edges, Ranks

SLOT_BYTES = {"rank": 0, "indegree": 20, "classes": 32}
PASS_KEYS = 1 << 20


def ranks_in_order(by: str, edges: Edges, ranks: Ranks) -> Ids | None:
    """The rank of every id; None where ids are ranks."""
    if by == "rank":
        return None
    out_degrees = np.zeros(ranks.n, np.uint32)
    _pass(edges, count_out, ranks.rank_of, out_degrees)
    if by == "indegree":
        return np.asarray(ascending_by(~(ranks.degrees - out_degrees), np))
    collective = np.zeros(ranks.n, np.uint64)
    _pass(edges, sum_collective, ranks.rank_of, out_degrees, collective)
    np.subtract(np.uint64(edges.keys.keys), collective, out=collective)
    visit_of = inverse(visits_by(collective, np), np)
    del collective
    first_visit = np.full(ranks.n, ranks.n, np.uint32)
    _pass(edges, find_first_visits, ranks.rank_of, visit_of, first_visit)
    del visit_of
    return np.asarray(into_classes(ascending_by(first_visit, np), out_degrees, np))


def _pass(edges: Edges, count: Callable[..., None], *by_vertex: NDArray[Any]) -> None:
    for keys in edges.keys.stretches(PASS_KEYS):
        count(keys, *by_vertex)


@kernel
def count_out(keys: Keys, rank_of: Ids, out_degrees: Ids) -> None:
    """Count edges at their lower rank."""
    for i in range(np.uint64(len(keys))):
        u, v = rank_of[keys[i] >> np.uint64(32)], rank_of[keys[i] & np.uint64(0xFFFFFFFF)]
        out_degrees[min(u, v)] += np.uint32(1)


@kernel
def sum_collective(keys: Keys, rank_of: Ids, out_degrees: Ids, sums: Keys) -> None:
    """Sum the out-degrees of out-neighbours."""
    for i in range(np.uint64(len(keys))):
        u, v = rank_of[keys[i] >> np.uint64(32)], rank_of[keys[i] & np.uint64(0xFFFFFFFF)]
        sums[min(u, v)] += np.uint64(out_degrees[max(u, v)])


@kernel
def find_first_visits(keys: Keys, rank_of: Ids, visit_of: Ids, first_visit: Ids) -> None:
    """The earliest visit to a tail of each head."""
    for i in range(np.uint64(len(keys))):
        u, v = rank_of[keys[i] >> np.uint64(32)], rank_of[keys[i] & np.uint64(0xFFFFFFFF)]
        head = max(u, v)
        first_visit[head] = min(first_visit[head], visit_of[min(u, v)])


def load_id_kernels() -> None:
    """Load the kernels."""
    keys, ids = np.empty(0, np.uint64), np.empty(0, np.uint32)
    count_out(keys, ids, ids)
    sum_collective(keys, ids, ids, keys)
    find_first_visits(keys, ids, ids, ids)
