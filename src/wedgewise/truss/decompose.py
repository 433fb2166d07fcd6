"""The truss number of every edge, one k-truss, and the last one that is not empty.

The k-truss is the largest subgraph in which every edge lies in at least k − 2 triangles of the subgraph; an edge's
truss number is the largest k whose k-truss holds it, at least 2.
Memory beyond the graph's own: `truss_bytes`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._contract import Shape
from wedgewise.algorithms.cpu._keystone_supports import edge_support_bytes
from wedgewise.algorithms.cpu._truss_close import BLOCK, GONE
from wedgewise.errors import InputError
from wedgewise.machine import hardware
from wedgewise.plan import Options, check_memory
from wedgewise.report.progress import Tell, progress_bar
from wedgewise.truss._core import Core, Whole, recount_while_cheaper
from wedgewise.truss._living import Living
from wedgewise.truss._peel import MOST_SHARES, SLICE_EDGES, SLICES_AT_ONCE, TASK_TRIANGLES, TASKS_AT_ONCE, Peeling
from wedgewise.user_graph import Graph

LEAST_K = 2
EDGE_BYTES = 73  # a core 16, the living 33, lists of dying and falling edges 12, what is settled 4, renumbering 8
VERTEX_BYTES = 32


@dataclass(frozen=True, slots=True)
class MaxTruss:
    """The largest k whose k-truss has edges, and which of the graph's edges these are, ascending."""

    k: int
    edges: NDArray[np.int64]


def trussness(graph: Graph, *, threads: int | None = None, progress: Tell | bool | None = None) -> NDArray[np.int64]:
    """The truss number of every edge, in the order of ``graph.edges``.

    Parameters
    ----------
    graph : the graph
    threads : how many threads to work on; as many as this process may use, unless given
    progress : True for a bar, or a function that is told ``(stage, edges settled, edges)`` once per round

    Examples
    --------
    >>> from wedgewise import Graph
    >>> from wedgewise.truss import trussness
    >>> trussness(Graph([(0, 1), (1, 2), (2, 0), (2, 3)])).tolist()
    [3, 3, 3, 2]
    """
    threads = _checked(graph, threads)
    whole = Whole.of(graph, threads)
    settled = np.zeros(graph.m, np.uint32)
    core = whole.core.kept(whole.core.supports > 0)
    with progress_bar(progress) as tell:
        _peel_all(_living(core, threads), settled, _told(tell, graph.m - core.m, graph.m))
    settled += np.uint32(LEAST_K)
    return whole.by_edge(settled)


def k_truss(
    graph: Graph, k: int, *, threads: int | None = None, progress: Tell | bool | None = None
) -> NDArray[np.int64]:
    """Which of the graph's edges are in its k-truss, ascending: ``graph.edges[k_truss(graph, k)]`` are those edges.

    Examples
    --------
    >>> from wedgewise import Graph
    >>> from wedgewise.truss import k_truss
    >>> k_truss(Graph([(0, 1), (1, 2), (2, 0), (2, 3)]), 3).tolist()
    [0, 1, 2]
    """
    threads = _checked(graph, threads)
    if k < LEAST_K:
        raise InputError(f"k is at least {LEAST_K}, not {k}: every edge is in the 2-truss")
    if k == LEAST_K:
        return np.arange(graph.m)
    if k * (k - 1) // 2 > graph.m:
        return np.empty(0, np.int64)
    whole = Whole.of(graph, threads)
    with progress_bar(progress) as tell:
        return whole.edges(_truss_of(whole.core, k, threads, tell))


def max_truss(graph: Graph, *, threads: int | None = None, progress: Tell | bool | None = None) -> MaxTruss:
    """The last k-truss that is not empty, without the others: k is bisected, and each try begins at the last success.

    Examples
    --------
    >>> from wedgewise import Graph
    >>> from wedgewise.truss import max_truss
    >>> found = max_truss(Graph([(0, 1), (1, 2), (2, 0), (2, 3)]))
    >>> found.k, found.edges.tolist()
    (3, [0, 1, 2])
    """
    threads = _checked(graph, threads)
    whole = Whole.of(graph, threads)
    core = whole.core
    least, most = LEAST_K, _most_k(core)
    with progress_bar(progress) as tell:
        while least < most:
            k = (least + most + 1) // 2
            found = _truss_of(core, k, threads, tell)
            if found.m:
                core, least = found, k
                most = min(most, _most_k(core))
            else:
                most = k - 1
    return MaxTruss(least if graph.m else LEAST_K, whole.edges(core))


def truss_bytes(n: int, m: int, threads: int) -> int:
    """Peak of any of these beyond the graph and its oriented form: by edge, by vertex and thread, and buffers."""
    supports = edge_support_bytes(Shape(n, m), threads, {"hubs": -1, "probe_ratio": 2})
    losses = TASKS_AT_ONCE * (2 * TASK_TRIANGLES + (MOST_SHARES + 2) * BLOCK) * 5
    slices = min(m, SLICES_AT_ONCE * SLICE_EDGES) * 32
    return supports + EDGE_BYTES * m + (VERTEX_BYTES + 8 * threads) * n + losses + slices


def _checked(graph: Graph, threads: int | None) -> int:
    """The number of threads; refuses what is not one, or a graph without room for the work."""
    if threads is not None and threads < 1:
        raise InputError(f"threads is at least 1, not {threads}")
    threads = threads or hardware.usable_threads()
    need = truss_bytes(graph.n, graph.m, threads)
    check_memory(need, Options(threads=threads), f"trusses of {graph.m:,} edges", "use a machine with more memory")
    return threads


def _living(core: Core, threads: int) -> Living:
    """Rows for a core, which stays as it is."""
    return Living.of(core.ends, core.numbers, core.supports.copy(), core.vertices, threads)


def _told(tell: Tell | None, before: int, edges: int) -> Callable[[int], None] | None:
    return None if tell is None else lambda buried: tell("truss", before + buried, edges)


def _peel_all(living: Living, settled: NDArray[np.uint32], on_round: Callable[[int], None] | None) -> None:
    """Settle every edge at its truss number less 2."""
    peeling = Peeling(living, settled, on_round)
    bound = 1
    while (least := peeling.drop(bound)) != GONE:
        bound = max(bound + 1, least)


def _truss_of(core: Core, k: int, threads: int, tell: Tell | None) -> Core:
    """The k-truss of a core: by recounting while most triangles are lost, then by peeling."""
    bound = k - LEAST_K - 1
    core = recount_while_cheaper(core, bound, threads)
    if not np.any(core.supports <= np.uint32(bound)):
        return core
    settled = np.zeros(int(core.numbers[-1]) + 1, np.uint32)
    peeling = Peeling(_living(core, threads), settled, _told(tell, 0, core.m))
    peeling.drop(bound)
    living = peeling.living
    living.pack()
    return Core(living.ends, living.numbers, living.supports, living.n)


def _most_k(core: Core) -> int:
    """No k-truss beyond this one has edges: it would need C(k, 2) of them with k − 2 triangles each."""
    supports = np.sort(core.supports)[::-1].astype(np.int64)
    if not len(supports):
        return LEAST_K
    k = supports + LEAST_K
    rank = np.arange(1, len(supports) + 1)
    held = ((1 + np.sqrt(1 + 8 * rank)) / 2).astype(np.int64)  # the largest k with C(k, 2) edges, give or take one
    return int(np.minimum(k, held + 1).max())
