"""Eager k-truss as published: rounds of counting all supports and pruning, until nothing changes.

Paper: Blanco, Low, Kim, HPEC 2019. What a round does is in `wedgewise.algorithms.cpu._eager` and
`wedgewise.algorithms.gpu._eager`; the driver here is the same for both. The k-truss is the largest subgraph in which
every edge lies in at least k − 2 triangles of the subgraph.

Its order is that of the input's ids: the upper triangle of the adjacency matrix. Any other may be chosen, with ids by
rank.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._contract import Knob
from wedgewise.algorithms.cpu._eager import EagerRows
from wedgewise.algorithms.gpu._eager import EagerDeviceRows
from wedgewise.errors import InputError, PreconditionError
from wedgewise.graph import DeviceGraph, OrientedGraph, SimpleGraph
from wedgewise.machine.gpu import Array, Device
from wedgewise.orient import arcs_of_edges, orient
from wedgewise.report.progress import Tell

ORDERS = ("id", "degree", "core")  # the first is the paper's
GRANULARITY = Knob(
    "granularity", "fine", "what a task is made of: rows (coarse) or non-zeros (fine)", choices=("fine", "coarse")
)
LEAST_K = 2


class Rounds(Protocol):
    """What the driver needs: a round at a time, and what lives behind it."""

    living: int

    def run_round(self, least: int, on_done: Callable[[int, int], None] | None = None) -> None: ...

    def least_support(self) -> int: ...

    def survivors(self) -> Any: ...


def eager_k_truss(
    graph: SimpleGraph | OrientedGraph,
    k: int,
    *,
    order: str = ORDERS[0],
    granularity: str = str(GRANULARITY.default),
    threads: int = 1,
    tell: Tell | None = None,
) -> NDArray[np.bool_]:
    """Whether each edge is in the k-truss.

    Parameters
    ----------
    graph : a simple graph, or one that is oriented already, with ids by rank; then `order` is not looked at
    k : at least 2
    order : direction of the arcs of a simple graph: "id" as in the paper, "degree" or "core"
    granularity : "fine" or "coarse"
    threads : the answer does not depend on them
    tell : is told ``(stage, done, total)``, a stage for every round

    Returns
    -------
    A value per edge, in the order of the edges; of an oriented graph, per arc.

    Examples
    --------
    >>> import wedgewise as ww
    >>> graph = ww.Graph([(0, 1), (0, 2), (1, 2), (2, 3)])
    >>> eager_k_truss(graph.simple, 3).tolist()
    [True, True, True, False]
    """
    rows, settled = _rows_of(graph, order, granularity, threads)
    peel(rows, k, tell)
    return settled(rows.survivors())


def eager_max_truss(
    graph: SimpleGraph | OrientedGraph,
    *,
    order: str = ORDERS[0],
    granularity: str = str(GRANULARITY.default),
    threads: int = 1,
    tell: Tell | None = None,
) -> tuple[int, NDArray[np.bool_]]:
    """The largest k whose k-truss has edges (2 where no edge is in a triangle), and whether each edge is in it.

    Parameters as for `eager_k_truss`.

    Examples
    --------
    >>> import wedgewise as ww
    >>> kmax, lives = eager_max_truss(ww.Graph([(0, 1), (0, 2), (1, 2), (2, 3)]).simple)
    >>> kmax, lives.tolist()
    (3, [True, True, True, False])
    """
    rows, settled = _rows_of(graph, order, granularity, threads)
    kmax, lives = peel_to_the_last(rows, tell)
    return kmax, settled(lives)


def eager_k_truss_on_device(
    graph: DeviceGraph,
    k: int,
    granularity: str,
    device: Device,
    *,
    tell: Tell | None = None,
) -> Array:
    """Whether each arc is in the k-truss, in an array of the device; by id that is the order of the edges."""
    _check_ids(graph)
    rows = EagerDeviceRows(graph, str(GRANULARITY.parse(granularity)), device)
    peel(rows, k, tell)
    return rows.survivors()


def eager_max_truss_on_device(
    graph: DeviceGraph, granularity: str, device: Device, *, tell: Tell | None = None
) -> tuple[int, Array]:
    """The largest k whose k-truss has edges, and whether each arc is in it, in an array of the device."""
    _check_ids(graph)
    return peel_to_the_last(EagerDeviceRows(graph, str(GRANULARITY.parse(granularity)), device), tell)


def peel(rows: Rounds, k: int, tell: Tell | None = None, earlier_rounds: int = 0) -> list[int]:
    """Run rounds until nothing changes or nothing is left; how many arcs live behind each of them."""
    if k < LEAST_K:
        raise InputError(f"a k-truss has k of at least {LEAST_K}, not {k}; the {LEAST_K}-truss is the whole graph")
    living = [rows.living]
    while living[-1] > 0 and (len(living) == 1 or living[-1] < living[-2]):
        number = earlier_rounds + len(living)
        rows.run_round(k - 2, None if tell is None else _in_stage(tell, f"k = {k}, round {number}"))
        living.append(rows.living)
    return living[1:]


def peel_to_the_last(rows: Rounds, tell: Tell | None = None) -> tuple[int, Any]:
    """Peel to larger and larger k; the last that leaves arcs, and whether each arc is left.

    Where the least support is s, the (s + 2)-truss is the same, and k goes on behind it.
    """
    k, kmax, rounds = LEAST_K + 1, LEAST_K, 0
    lives = rows.survivors()
    while rows.living > 0:
        rounds += len(peel(rows, k, tell, rounds))
        if rows.living > 0:
            kmax = rows.least_support() + 2
            lives, k = rows.survivors(), kmax + 1
    return kmax, lives


def _rows_of(
    graph: SimpleGraph | OrientedGraph, order: str, granularity: str, threads: int
) -> tuple[EagerRows, Callable[[NDArray[np.bool_]], NDArray[np.bool_]]]:
    """The rows, and how what is known by arc becomes known by edge."""
    chosen = str(GRANULARITY.parse(granularity))
    if isinstance(graph, OrientedGraph):
        _check_ids(graph)
        return EagerRows(graph, chosen, threads), lambda by_arc: by_arc
    oriented, simple = orient(graph, order, threads=threads), graph
    rows = EagerRows(oriented, chosen, threads)
    if order == "id":  # arcs are in the order of the edges
        return rows, lambda by_arc: by_arc
    return rows, lambda by_arc: by_arc[arcs_of_edges(simple, oriented, threads=threads)]


def _check_ids(graph: OrientedGraph | DeviceGraph) -> None:
    if graph.named_by != "rank":
        raise PreconditionError(
            f"eager ends rows with a zero, which must be no arc's head: ids are ranks, not by {graph.named_by!r}; "
            "use relabelling='rank'"
        )


def _in_stage(tell: Tell, stage: str) -> Callable[[int, int], None]:
    return lambda done, total: tell(stage, done, total)
