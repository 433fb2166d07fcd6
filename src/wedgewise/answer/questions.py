"""Every question: what an algorithm computes for it, and how the answer follows from that.

question             computed              answer
count                count                 int
triangles            triangles             int64[n], in the order of the labels
edge_support         edge_support          int64[m], in the order of the edges
list_triangles       list_triangles        uint32[k, 3], ascending vertices in each row
clustering           triangles, or weighted_triangles with directions or weights; float64[n]
average_clustering   the same              float
transitivity         count                 float
generalized_degree   edge_support          GeneralizedDegree
trussness            trussness             int64[m], in the order of the edges
k_truss              k_truss               Truss
max_truss            max_truss             Truss
truss_summary        trussness             tuple of TrussLevel
truss_components     k_truss               int64[n], in the order of the labels
core_number          core_number           int64[n], in the order of the labels
degeneracy           core_number           int
connected_components connected_components  int64[n], in the order of the labels
similarity           edge_support, weighted_supports, or common_neighbors of pairs; Similarity
top_similar          top_similar           TopSimilar
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._similarity import COUNT, MEASURES, checked_measures, lanes_of, one_measure, partner_count
from wedgewise.algorithms._truss import MIN_K
from wedgewise.answer import coefficients
from wedgewise.answer_types import (
    EDGE,
    EDGE_OF_TRUSS,
    LEVEL,
    PAIR,
    TRIANGLE,
    VERTEX,
    VERTEX_AND_SUPPORT,
    GeneralizedDegree,
    Rows,
    Similarity,
    TopSimilar,
    Truss,
    TrussLevel,
)
from wedgewise.errors import InputError, UnknownNameError
from wedgewise.graph import Graph, refuse_reading
from wedgewise.machine.parameters import as_integer, stretch_of
from wedgewise.prepare.sorting import sorted_keys
from wedgewise.run import row_order
from wedgewise.run.choose import check_memory
from wedgewise.run.plan import Plan
from wedgewise.run.reduce import Computed
from wedgewise.run.refusals import StoreMethod, check_weights
from wedgewise.run.request import LISTING, Request
from wedgewise.stages import OrientedGraph

if TYPE_CHECKING:
    from wedgewise.run.device import DeviceListing
    from wedgewise.run.listing import Listing
    from wedgewise.run.timeline import Timeline

Details = Mapping[str, Any]
UNDEFINED = ("zero", "nan")
ROW_BYTES = 12  # of a listing


@dataclass(frozen=True, slots=True)
class AnswerContext:
    """Everything that an answer follows from: what was computed for a request, of which graph, by which plan.

    What a device computed needs no oriented graph here. Of a hybrid count, the timeline is what ran where and when.
    """

    request: Request
    graph: Graph
    plan: Plan
    computed: Computed
    oriented: OrientedGraph | None = None
    timeline: Timeline | None = None

    @property
    def details(self) -> Details:
        return self.request.details


@dataclass(frozen=True, slots=True)
class Question:
    """A question by name: its own parameters with their defaults, what has to be computed, and how to go on.

    ``answer_bytes(computes, n, m)`` is what the answer takes while it is made of what was computed; `rows` are
    those of its tables, and `on_store` is how stores answer it; None where there are none, and where they do not.
    ``checks`` return parameters as they are worked with, or raise.
    """

    name: str
    computes: Callable[[Graph, Details], str]
    finish: Callable[[AnswerContext], Any]
    answer_bytes: Callable[[str, int, int], int]
    defaults: Mapping[str, Any]
    rows: Rows | None = None
    on_store: StoreMethod | None = None
    checks: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)

    @property
    def has_labels(self) -> bool:
        """Whether the answer is about single vertices or edges."""
        return self.rows is not None and self.rows.have_labels

    def details(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """All parameters of this question, the given ones checked."""
        for name in given:
            if name not in self.defaults:
                refuse_reading(given)
                listed = ", ".join(self.defaults) or "none"
                raise UnknownNameError(f"{self.name} has no parameter {name!r}; it has: {listed}")
        details = {**self.defaults, **given}
        if details.get("undefined", "zero") not in UNDEFINED:
            raise InputError(f"undefined is one of {', '.join(UNDEFINED)}, not {details['undefined']!r}")
        for name, check in self.checks.items():
            details[name] = check(details[name])
        return details


def _truss_k(k: Any) -> int:
    """Which truss is meant, or an error that says what can be asked for."""
    number = as_integer("k", k, f"an integer of at least {MIN_K}")
    if number < MIN_K:
        raise InputError(f"k is at least {MIN_K}, not {number}: every edge is in the {MIN_K}-truss")
    return number


def request_for(question: str, source: Any, details: Mapping[str, Any], **how: Any) -> Request:
    """What is asked, its parameters checked; `how` are further fields of `Request`."""
    if question not in QUESTIONS:
        raise UnknownNameError(f"no question named {question!r}; there are: {', '.join(QUESTIONS)}")
    return Request(question, source, QUESTIONS[question].details(details), **how)


def by_vertex(context: AnswerContext) -> NDArray[Any]:
    """What was computed, in the order of the vertices, as what a device computed is already."""
    filled, oriented = context.computed.work.filled, context.oriented
    assert filled is not None
    return filled if oriented is None else row_order.by_vertex(filled, oriented)


def by_edge(context: AnswerContext, dtype: type = np.int64) -> NDArray[Any]:
    """The same in the order of the edges."""
    filled, oriented = context.computed.work.filled, context.oriented
    assert filled is not None
    if oriented is None:
        return filled.astype(dtype, copy=False)
    return row_order.by_edge(filled, oriented, context.graph, context.plan.threads, dtype)


def open_listing(context: AnswerContext) -> Listing | DeviceListing:
    """All triangles by number."""
    from wedgewise.run.listing import Listing

    if context.oriented is None:
        assert context.computed.listing is not None
        return context.computed.listing
    return Listing(context.computed.work, context.oriented, context.plan.threads)


def listed(context: AnswerContext) -> NDArray[np.uint32] | Listing | DeviceListing:
    """The asked-for stretch of the triangles, or all of them by number."""
    listing = open_listing(context)
    if context.request.rows == LISTING:
        return listing
    start, stop = stretch_of(context.details["start"], context.details["stop"], listing.total, "triangles")
    what = f"a list of {stop - start:,} triangles"
    check_memory(ROW_BYTES * (stop - start), context.request, what, "list in batches by iter_triangles")
    return listing.stretch(start, stop)


def local_clustering(context: AnswerContext) -> NDArray[np.float64]:
    """The coefficient of every vertex."""
    graph, undefined = context.graph, context.details["undefined"]
    if graph.attributes is not None and graph.attributes.directed:
        return coefficients.directed(by_vertex(context), *graph.attributes.directed_degrees(graph.simple), undefined)
    return coefficients.undirected(by_vertex(context), graph.degrees, undefined)


def mean_clustering(context: AnswerContext) -> float:
    """The mean of the coefficients."""
    count_zeros, undefined = context.details["count_zeros"], context.details["undefined"]
    return coefficients.average(local_clustering(context), count_zeros=count_zeros, undefined=undefined)


def closed_share(context: AnswerContext) -> float:
    """The share of wedges that are closed."""
    return coefficients.transitivity(context.computed.triangles, context.graph.paths, context.details["undefined"])


def degrees_by_support(context: AnswerContext) -> GeneralizedDegree:
    """Count every vertex's edges by their support."""
    keys = sorted_keys(_ends_with_support(context), context.plan.threads)
    first = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])
    distinct = keys[first]
    offsets = np.zeros(context.graph.n + 1, np.int64)
    np.cumsum(np.bincount((distinct >> np.uint64(32)).astype(np.int64), minlength=context.graph.n), out=offsets[1:])
    supports = (distinct & np.uint64(0xFFFFFFFF)).astype(np.int64)
    return GeneralizedDegree(offsets, supports, np.diff(np.append(first, len(keys))))


def _ends_with_support(context: AnswerContext) -> NDArray[np.uint64]:
    """``end << 32 | support`` for both ends of every edge."""
    support, edges = by_edge(context).view(np.uint64), context.graph.edges
    keys = np.empty(2 * len(support), np.uint64)
    for end, half in enumerate((keys[: len(support)], keys[len(support) :])):
        np.left_shift(edges[:, end], np.uint64(32), out=half)
        half |= support
    return keys


def in_truss(context: AnswerContext) -> NDArray[np.bool_]:
    """Whether each edge is in the truss that was found."""
    return by_edge(context, np.bool_)


def truss(context: AnswerContext) -> Truss:
    """The truss that was found."""
    assert context.computed.k is not None
    found = row_order.numbers_of_true(in_truss(context), context.plan.threads)
    return Truss._in_graph(context.graph, context.computed.k, found)


def truss_levels(context: AnswerContext) -> tuple[TrussLevel, ...]:
    """What each k-truss has."""
    from wedgewise.answer.truss_summary import summarise

    return summarise(context.graph, by_edge(context))


def component_of_vertices(context: AnswerContext) -> NDArray[np.int64]:
    """The component of the truss that each vertex is in."""
    from wedgewise.answer.truss_summary import components

    return components(context.graph, truss(context).edges)


def similarities(context: AnswerContext) -> Similarity:
    """Measures of the edges, or of the pairs that were asked for."""
    from wedgewise.answer.similarity import VALUE_BYTES, similarity_of

    graph, measures = context.graph, context.details["measure"]
    ends = graph.edges if context.details["pairs"] is None else context.details["pairs"]
    what = f"{len(measures)} measures of {len(ends):,} pairs"
    check_memory(VALUE_BYTES * len(ends) * len(measures), context.request, what, "name fewer measures")
    is_counted = context.plan.computes == "edge_support"
    sums = by_edge(context)[:, None] if is_counted else context.computed.work.filled
    assert sums is not None
    return similarity_of(graph, measures, sums, ends, context.plan.threads)


def partners(context: AnswerContext) -> TopSimilar:
    """The partners that were found, with their values."""
    offsets, found, values = cast(Any, context.computed.work.filled)
    (measure,) = context.details["measure"]
    values = values.astype(np.int64) if MEASURES[measure].counts else values
    return TopSimilar(measure, context.details["vertices"], offsets, found, values)


def _always(computed: str) -> Callable[[Graph, Details], str]:
    return lambda _graph, _details: computed


def _for_clustering(graph: Graph, details: Details) -> str:
    check_weights(is_weighted=details["weighted"], has_weights=graph.weights is not None)
    return "weighted_triangles" if graph.directed or details["weighted"] else "triangles"


def _for_similarity(_graph: Graph, details: Details) -> str:
    if details["pairs"] is not None:
        return "common_neighbors"
    return "edge_support" if lanes_of(details["measure"]) == (COUNT,) else "weighted_supports"


def _answer_bytes(by_vertex: int = 0, by_edge: int = 0, *, arcs: bool = False) -> Callable[[str, int, int], int]:
    """So many bytes per vertex and edge, and with `arcs` what `Graph.arcs_of_edges` holds."""
    return lambda _computes, n, m: by_vertex * n + by_edge * m + (_arcs_bytes(m) if arcs else 0)


def _arcs_bytes(m: int) -> int:
    return (8 if m >= 1 << 31 else 4) * m


def _listing_bytes(computes: str, n: int, m: int) -> int:
    """Where the triangles of blocks of arcs begin; rows are 12 bytes each, as many as are asked for."""
    from wedgewise.run.listing import BLOCK_ARCS

    return 16 * (m // BLOCK_ARCS + 1)


def _clustering_bytes(computes: str, n: int, m: int) -> int:
    """Sums, degrees and coefficients; strengths by edge and by arc."""
    return 48 * n + (_arcs_bytes(m) + 24 * m if computes == "weighted_triangles" else 0)


def _level_bytes(computes: str, n: int, m: int) -> int:
    """The edges, their numbers and their order by these, some of which are ordered at a time; a parent per vertex."""
    from wedgewise.answer.truss_summary import ORDERED_BYTES, ORDERED_EDGES

    return _arcs_bytes(m) + 24 * m + ORDERED_BYTES * min(m, ORDERED_EDGES) + 8 * n


_BY_VERTEX, _BY_EDGE = _answer_bytes(8), _answer_bytes(0, 8, arcs=True)
_DEGREES = _answer_bytes(16, 100, arcs=True)  # edges and supports; two keys per edge, where each begins, the distinct
_TRUSS = _answer_bytes(0, 9, arcs=True)  # whether each edge is in it, and which ones are
_COMPONENTS = _answer_bytes(40, 17, arcs=True)  # beside the truss, edges; parents, marks and numbers of the vertices

_SIMILARITY = _answer_bytes(0, 16, arcs=True)  # supports and ends of all edges; values of measures are added to that
_UNDEFINED: dict[str, Any] = {"undefined": "zero"}
_WEIGHTED = {"weighted": False, **_UNDEFINED}
_TASKS = StoreMethod("count")
_BY_THIS_PROCESS = StoreMethod("triangles", by_workers=False)
_ALL = (
    Question(
        "count", _always("count"), lambda context: context.computed.triangles, _answer_bytes(), {}, on_store=_TASKS
    ),
    Question(
        "triangles",
        _always("triangles"),
        by_vertex,
        _BY_VERTEX,
        {},
        Rows(VERTEX, "triangles"),
        StoreMethod("triangles"),
    ),
    Question(
        "edge_support",
        _always("edge_support"),
        by_edge,
        _BY_EDGE,
        {},
        Rows(EDGE, "support"),
        StoreMethod("edge_support"),
    ),
    Question(
        "list_triangles", _always("list_triangles"), listed, _listing_bytes, {"start": 0, "stop": None}, Rows(TRIANGLE)
    ),
    Question(
        "clustering",
        _for_clustering,
        local_clustering,
        _clustering_bytes,
        _WEIGHTED,
        Rows(VERTEX, "clustering"),
        _BY_THIS_PROCESS,
    ),
    Question(
        "average_clustering",
        _for_clustering,
        mean_clustering,
        _clustering_bytes,
        {**_WEIGHTED, "count_zeros": True},
        on_store=_BY_THIS_PROCESS,
    ),
    Question("transitivity", _always("count"), closed_share, _BY_VERTEX, _UNDEFINED, on_store=_TASKS),
    Question("generalized_degree", _always("edge_support"), degrees_by_support, _DEGREES, {}, Rows(VERTEX_AND_SUPPORT)),
    Question(
        "trussness",
        _always("trussness"),
        by_edge,
        _BY_EDGE,
        {},
        Rows(EDGE, "truss"),
        StoreMethod("edge_support", by_workers=False, in_rounds=True),
    ),
    Question(
        "k_truss",
        _always("k_truss"),
        truss,
        _TRUSS,
        {"k": None},
        Rows(EDGE_OF_TRUSS),
        StoreMethod("edge_support", in_rounds=True),
        {"k": _truss_k},
    ),
    Question("max_truss", _always("max_truss"), truss, _TRUSS, {}, Rows(EDGE_OF_TRUSS, "truss")),
    Question("truss_summary", _always("trussness"), truss_levels, _level_bytes, {}, Rows(LEVEL)),
    Question(
        "truss_components",
        _always("k_truss"),
        component_of_vertices,
        _COMPONENTS,
        {"k": None},
        Rows(VERTEX, "component"),
        checks={"k": _truss_k},
    ),
    Question("core_number", _always("core_number"), by_vertex, _answer_bytes(), {}, Rows(VERTEX, "core")),
    Question(
        "degeneracy", _always("core_number"), lambda context: int(by_vertex(context).max(initial=0)), _BY_VERTEX, {}
    ),
    Question(
        "connected_components",
        _always("connected_components"),
        by_vertex,
        _answer_bytes(),
        {},
        Rows(VERTEX, "component"),
    ),
    Question(
        "similarity",
        _for_similarity,
        similarities,
        _SIMILARITY,
        {"measure": "jaccard", "pairs": None},
        Rows(PAIR),
        checks={"measure": checked_measures},
    ),
    Question(
        "top_similar",
        _always("top_similar"),
        partners,
        _answer_bytes(),
        {"measure": "jaccard", "k": 10, "vertices": None, "exclude_neighbors": False, "start": 0, "stop": None},
        Rows(PAIR),
        checks={"measure": one_measure, "k": partner_count},
    ),
)
QUESTIONS = {question.name: question for question in _ALL}
_STORED = {question.name: question.on_store for question in _ALL if question.on_store is not None}
ON_STORES = dict(sorted(_STORED.items(), key=lambda item: (item[1].computes != "count", not item[1].by_workers)))
