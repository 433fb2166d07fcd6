"""Another method, to check an answer by: totals are recounted over another order, of arrays a sample by definition.

Trusses are found again at the k in question by eager, or by the reference where that is what was asked for; of truss
numbers those at 3, in the middle and the last; and nothing may be left behind the last one.

The sample is drawn from the simple graph, which no engine has touched: a vertex's triangles are the edges among its
neighbours, an edge's are the common neighbours of its ends. It is seeded by the size of the graph and holds the vertex
(or edge) of largest degree as well as random ones, as many as `SAMPLE_WORK` allows. Of a listing, sampled rows are
looked up among the edges.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._contract import TRUSSES
from wedgewise.algorithms._truss import MIN_K
from wedgewise.answer.memory_home import MemoryHome
from wedgewise.answer.questions import AnswerContext, by_edge, by_vertex, in_truss, open_listing
from wedgewise.answer.response import Clock
from wedgewise.errors import VerificationError
from wedgewise.machine import jit
from wedgewise.machine.out_of_memory import memory_for
from wedgewise.run.choose import COST
from wedgewise.run.plan import Plan
from wedgewise.stages import Ids

BY_ARRAYS_WEDGES = 200_000_000  # beyond, the recount is by the compiled hash map
SAMPLE, MIN_SAMPLE = 64, 4
SAMPLE_WORK = 1 << 31  # each of the sample looks at all edges
RELATIVE_TOLERANCE = 1e-9  # of weighted sums, which are added up in another order


@memory_for("verify")
def verify(context: AnswerContext) -> str:
    """Check what was computed by another method, on the host, or raise; how it was done."""
    computes = context.plan.computes
    if computes in TRUSSES:
        return _check_trusses(context)
    if computes not in COST:
        from wedgewise.algorithms.of_graph import find_method

        return find_method(computes).check(context.graph, context.details, context.computed.work.filled)
    how = _check_total(context)
    return f"{how}; {CHECKS[computes](context)}" if computes in CHECKS else how


def _again(context: AnswerContext, computes: str, method: str, order: str, **details: int) -> AnswerContext:
    """The same graph, computed by another method over another order."""
    other = replace(context.request, details=details, device="cpu", algorithm=method, order=order, relabel="rank")
    home = MemoryHome.prepare(replace(other, knobs=None), context.graph, computes)
    if home.oriented.m != context.graph.m:
        raise VerificationError(f"{home.oriented.m:,} arcs for {context.graph.m:,} edges: please report this")
    return home.run(None, Clock())


def _check_total(context: AnswerContext) -> str:
    """Count all triangles again."""
    plan, triangles = context.plan, context.computed.triangles
    method, order = _recount_method(plan), _other_order(plan)
    recounted = _again(context, "count", method, order).computed.triangles
    if recounted != triangles:
        raise VerificationError(
            f"{plan.algorithm} counts {triangles:,} triangles, {method} {recounted:,}: please report this"
        )
    return f"recounted by {method} over {order} order"


def _recount_method(plan: Plan) -> str:
    """Array operations while they take seconds, else a compiled map; never the method that is checked."""
    if plan.wedges > BY_ARRAYS_WEDGES:
        return "hashmap" if plan.algorithm != "hashmap" else "forward"
    if plan.algorithm != "reference":
        return "reference"
    return "hashmap" if jit.is_loaded() else "example"


def _other_order(plan: Plan) -> str:
    return "core" if plan.order != "core" else "degree"


def _check_trusses(context: AnswerContext) -> str:
    """Find some trusses again."""
    plan, graph = context.plan, context.graph
    method, order = "eager" if plan.algorithm != "eager" else "reference", _other_order(plan)
    trusses = _trusses_to_check(context)
    for k, held in trusses.items():
        wrong = np.flatnonzero(in_truss(_again(context, "k_truss", method, order, k=k)) != held)
        if len(wrong):
            u, v = graph.edges[wrong[0]]
            raise VerificationError(
                f"edge {graph.labels[u]!r} – {graph.labels[v]!r} and {len(wrong) - 1:,} more: in the {k}-truss by one "
                f"of {plan.algorithm} and {method}, not by both: please report this"
            )
    return f"k = {', '.join(map(str, trusses))} by {method} over {order} order"


def _trusses_to_check(context: AnswerContext) -> dict[int, NDArray[np.bool_]]:
    """Which edges are in some k-trusses, as far as that follows from what was computed."""
    kmax, computes = context.computed.k, context.plan.computes
    assert kmax is not None
    if computes == "trussness":
        numbers = by_edge(context)
        return {k: numbers >= k for k in sorted({MIN_K + 1, (MIN_K + 1 + kmax) // 2, kmax, kmax + 1} - {MIN_K})}
    held = in_truss(context)
    return {kmax: held} if computes == "k_truss" else {kmax: held, kmax + 1: np.zeros_like(held)}


def check_vertices(context: AnswerContext) -> str:
    """Compare the sums of sampled vertices with the edges among their neighbours."""
    graph, sums = context.graph, by_vertex(context)
    edges = graph.edges
    strengths = np.ones(graph.m, np.int64)
    weighs = context.oriented is not None and context.oriented.strengths is not None
    if context.oriented is not None and context.oriented.strengths is not None:
        strengths = context.oriented.strengths[graph.arcs_of_edges(context.oriented)]
    sample = _sample(graph.degrees, graph.m)
    for vertex in sample:
        spoke = np.zeros(graph.n, strengths.dtype)  # the strength of the edge to each neighbour, 0 elsewhere
        for end in (0, 1):
            at = edges[:, end] == vertex
            spoke[edges[at, 1 - end]] = strengths[at]
        expected = (spoke[edges[:, 0]] * spoke[edges[:, 1]] * strengths).sum()
        if not np.isclose(float(sums[vertex]), float(expected), rtol=RELATIVE_TOLERANCE if weighs else 0, atol=0):
            raise VerificationError(
                f"vertex {graph.labels[vertex]!r}: {context.details or 'triangles'} come to {sums[vertex]}, "
                f"the edges among its neighbours to {expected}: please report this"
            )
    return f"{len(sample):,} vertices by the edges among their neighbours"


def check_edges(context: AnswerContext) -> str:
    """Compare the supports of sampled edges with the common neighbours of their ends."""
    graph, supports = context.graph, by_edge(context)
    edges = graph.edges
    sample = _sample(graph.degrees[edges].min(axis=1), graph.m)
    for edge in sample:
        u, v = edges[edge]
        common = np.intersect1d(_neighbours(edges, u), _neighbours(edges, v))
        if len(common) != supports[edge]:
            raise VerificationError(
                f"edge {graph.labels[u]!r} – {graph.labels[v]!r}: support {supports[edge]:,}, but {len(common):,} "
                "common neighbours: please report this"
            )
    return f"{len(sample):,} edges by the common neighbours of their ends"


def check_rows(context: AnswerContext) -> str:
    """Look sampled rows of the listing up: three edges each, and no two of them the same."""
    listing = open_listing(context)
    wanted = min(SAMPLE, listing.total)
    drawn = np.random.default_rng(listing.total).integers(0, max(1, listing.total), wanted)
    numbers = np.unique(drawn).tolist()
    rows = np.array([listing.stretch(number, number + 1)[0] for number in numbers], np.uint64).reshape(-1, 3)
    edges = context.graph.edges.astype(np.uint64)
    keys = edges[:, 0] << np.uint64(32) | edges[:, 1]
    for u, v in ((0, 1), (0, 2), (1, 2)):
        absent = ~np.isin(rows[:, u] << np.uint64(32) | rows[:, v], keys)
        if absent.any():
            raise VerificationError(f"listed, but lacks an edge: {rows[absent][0].tolist()}: please report this")
    if len(np.unique(rows, axis=0)) != len(rows):
        raise VerificationError("the listing has a triangle twice: please report this")
    return f"{len(rows):,} rows by their edges"


def _neighbours(edges: NDArray[np.uint32], vertex: int) -> Ids:
    return np.concatenate([edges[edges[:, 0] == vertex, 1], edges[edges[:, 1] == vertex, 0]])


def _sample(degrees: Ids, m: int) -> NDArray[np.int64]:
    """Which of these to look at: the one of largest degree and random ones that can have triangles."""
    able = np.flatnonzero(degrees > 1)
    wanted = min(len(able), max(MIN_SAMPLE, min(SAMPLE, SAMPLE_WORK // max(1, m))))
    drawn = np.random.default_rng([len(degrees), m]).choice(able, wanted, replace=False) if wanted else able
    return np.union1d(drawn, [int(degrees.argmax())] if wanted else [])


CHECKS = {
    "triangles": check_vertices,
    "weighted_triangles": check_vertices,
    "edge_support": check_edges,
    "list_triangles": check_rows,
}
