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
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._truss import LEAST_K
from wedgewise.answer import coefficients
from wedgewise.answer_types import GeneralizedDegree, Truss, TrussLevel
from wedgewise.errors import InputError, UnknownNameError
from wedgewise.graph import Graph, refuse_reading
from wedgewise.machine.parameters import as_integer
from wedgewise.machine.threads import run_tasks
from wedgewise.prepare.sorting import sorted_keys
from wedgewise.run.plan import check_memory
from wedgewise.run.reduce import Computed
from wedgewise.run.request import LISTING, Request
from wedgewise.stages import OrientedGraph

if TYPE_CHECKING:
    from wedgewise.run.device_listing import DeviceListing
    from wedgewise.run.listing import Listing

Details = Mapping[str, Any]
UNDEFINED = ("zero", "nan")
CHUNK = 1 << 18
ROW_BYTES = 12  # of a listing


@dataclass(frozen=True, slots=True)
class Asked:
    """Everything that an answer follows from; what a device computed needs no oriented graph here."""

    request: Request
    graph: Graph
    oriented: OrientedGraph | None
    computed: Computed
    threads: int

    @property
    def details(self) -> Details:
        return self.request.details


@dataclass(frozen=True, slots=True)
class Question:
    """A question by name: its own parameters with their defaults, what has to be computed, and how to go on.

    ``answer_bytes(computes, n, m)`` is what the answer takes while it is made of what was computed.
    """

    name: str
    computes: Callable[[Graph, Details], str]
    finish: Callable[[Asked], Any]
    answer_bytes: Callable[[str, int, int], int]
    defaults: Mapping[str, Any]

    def details(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """All parameters of this question, the given ones checked."""
        refuse_reading(given)
        for name in given:
            if name not in self.defaults:
                listed = ", ".join(self.defaults) or "none"
                raise UnknownNameError(f"{self.name} has no parameter {name!r}; it has: {listed}")
        details = {**self.defaults, **given}
        if details.get("undefined", "zero") not in UNDEFINED:
            raise InputError(f"undefined is one of {', '.join(UNDEFINED)}, not {details['undefined']!r}")
        if "k" in details:
            details["k"] = _checked_k(details["k"])
        return details


def _checked_k(k: Any) -> int:
    """Which truss is meant, or an error that says what can be asked for."""
    number = as_integer("k", k, f"an integer of at least {LEAST_K}")
    if number < LEAST_K:
        raise InputError(f"k is at least {LEAST_K}, not {number}: every edge is in the {LEAST_K}-truss")
    return number


def ask(question: str, source: Any, details: Mapping[str, Any], **how: Any) -> Request:
    """What is asked, its parameters checked; `how` are further fields of `Request`."""
    return Request(question, source, find_question(question).details(details), **how)


def find_question(name: str) -> Question:
    """The question of that name."""
    try:
        return QUESTIONS[name]
    except KeyError:
        raise UnknownNameError(f"no question named {name!r}; there are: {', '.join(QUESTIONS)}") from None


def by_vertex(asked: Asked) -> NDArray[Any]:
    """What was computed by id, in the order of the vertices; counts as signed integers."""
    filled = asked.computed.work.filled
    assert filled is not None
    if asked.oriented is None:
        return filled
    answer = np.empty(len(filled), np.float64 if filled.dtype == np.float64 else np.int64)
    answer[asked.oriented.vertex_of] = filled
    return answer


def by_edge(asked: Asked) -> NDArray[np.int64]:
    """What was computed by arc, in the order of the edges, as signed integers."""
    filled = asked.computed.work.filled
    assert filled is not None
    if asked.oriented is None:
        return filled.astype(np.int64, copy=False)
    return in_edge_order(filled, asked.graph, asked.oriented, np.empty(len(filled), np.int64), asked.threads)


def in_edge_order(
    filled: NDArray[Any], graph: Graph, oriented: OrientedGraph, answer: NDArray[Any], threads: int
) -> NDArray[Any]:
    """What is known by arc, written into `answer` by edge."""
    places = None if oriented.follows_edges else graph.arcs_of_edges(oriented, threads=threads)

    def gather(chunk: int, _worker: int) -> None:
        part = slice(chunk * CHUNK, (chunk + 1) * CHUNK)
        answer[part] = filled[part] if places is None else filled[places[part]]

    run_tasks(gather, -(-len(filled) // CHUNK), threads)
    return answer


def opened(asked: Asked) -> Listing | DeviceListing:
    """All triangles by number."""
    from wedgewise.run.listing import Listing

    if asked.oriented is None:
        assert asked.computed.listing is not None
        return asked.computed.listing
    return Listing(asked.computed.work, asked.oriented, asked.threads)


def listed(asked: Asked) -> NDArray[np.uint32] | Listing | DeviceListing:
    """The asked-for stretch of the triangles, or all of them by number."""
    listing = opened(asked)
    if asked.request.rows == LISTING:
        return listing
    start, stop = stretch_of(asked.details["start"], asked.details["stop"], listing.total)
    what = f"a list of {stop - start:,} triangles"
    check_memory(ROW_BYTES * (stop - start), asked.request, what, "list in batches by iter_triangles")
    return listing.stretch(start, stop)


def stretch_of(start: int, stop: int | None, total: int) -> tuple[int, int]:
    """The numbers that a listing covers: like a slice, but a start beyond the end is an error."""
    if not 0 <= start <= total:
        raise InputError(f"start is {start:,}, but there are {total:,} triangles; start at 0 … {total:,}")
    if stop is not None and stop < start:
        raise InputError(f"stop is {stop:,}, before start at {start:,}")
    return start, total if stop is None else min(stop, total)


def local_clustering(asked: Asked) -> NDArray[np.float64]:
    """The coefficient of every vertex."""
    graph, undefined = asked.graph, asked.details["undefined"]
    if graph.attributes is not None and graph.attributes.directed:
        return coefficients.directed(by_vertex(asked), *graph.attributes.directed_degrees(graph.simple), undefined)
    return coefficients.undirected(by_vertex(asked), graph.degrees, undefined)


def mean_clustering(asked: Asked) -> float:
    """The mean of the coefficients."""
    count_zeros, undefined = asked.details["count_zeros"], asked.details["undefined"]
    return coefficients.average(local_clustering(asked), count_zeros=count_zeros, undefined=undefined)


def closed_share(asked: Asked) -> float:
    """The share of wedges that are closed."""
    return coefficients.transitivity(asked.computed.triangles, asked.graph.paths, asked.details["undefined"])


def degrees_by_support(asked: Asked) -> GeneralizedDegree:
    """Count every vertex's edges by their support."""
    keys = sorted_keys(_ends_with_support(asked), asked.threads)
    first = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])
    distinct = keys[first]
    offsets = np.zeros(asked.graph.n + 1, np.int64)
    np.cumsum(np.bincount((distinct >> np.uint64(32)).astype(np.int64), minlength=asked.graph.n), out=offsets[1:])
    supports = (distinct & np.uint64(0xFFFFFFFF)).astype(np.int64)
    return GeneralizedDegree(offsets, supports, np.diff(np.append(first, len(keys))))


def _ends_with_support(asked: Asked) -> NDArray[np.uint64]:
    """``end << 32 | support`` for both ends of every edge."""
    support, edges = by_edge(asked).view(np.uint64), asked.graph.edges
    keys = np.empty(2 * len(support), np.uint64)
    for end, half in enumerate((keys[: len(support)], keys[len(support) :])):
        np.left_shift(edges[:, end], np.uint64(32), out=half)
        half |= support
    return keys


def is_held(asked: Asked) -> NDArray[np.bool_]:
    """Whether each edge is in the truss that was found."""
    filled = asked.computed.work.filled
    assert filled is not None
    if asked.oriented is None:
        return filled
    return in_edge_order(filled, asked.graph, asked.oriented, np.empty(len(filled), np.bool_), asked.threads)


def truss(asked: Asked) -> Truss:
    """The truss that was found."""
    assert asked.computed.k is not None
    return Truss(asked.computed.k, np.flatnonzero(is_held(asked)))


def truss_levels(asked: Asked) -> tuple[TrussLevel, ...]:
    """What each k-truss has."""
    from wedgewise.answer.truss_summary import summarise

    return summarise(asked.graph, by_edge(asked))


def component_of_vertices(asked: Asked) -> NDArray[np.int64]:
    """The component of the truss that each vertex is in."""
    from wedgewise.answer.truss_summary import components

    return components(asked.graph, truss(asked).edges)


def _always(computed: str) -> Callable[[Graph, Details], str]:
    return lambda _graph, _details: computed


def _for_clustering(graph: Graph, details: Details) -> str:
    if details["weighted"] and graph.weights is None:
        raise InputError("weighted clustering needs a graph that keeps weights: pass Graph(…, weights=…)")
    return "weighted_triangles" if graph.directed or details["weighted"] else "triangles"


def _place_bytes(m: int) -> int:
    """What `Graph.arcs_of_edges` holds."""
    return (8 if m >= 1 << 31 else 4) * m


def _count_bytes(computes: str, n: int, m: int) -> int:
    return 0


def _vertex_bytes(computes: str, n: int, m: int) -> int:
    return 8 * n


def _edge_bytes(computes: str, n: int, m: int) -> int:
    return _place_bytes(m) + 8 * m


def _listing_bytes(computes: str, n: int, m: int) -> int:
    """Where the triangles of blocks of arcs begin; rows are 12 bytes each, as many as are asked for."""
    from wedgewise.run.listing import BLOCK_ARCS

    return 16 * (m // BLOCK_ARCS + 1)


def _clustering_bytes(computes: str, n: int, m: int) -> int:
    """Sums, degrees and coefficients; strengths by edge and by arc."""
    return 48 * n + (_place_bytes(m) + 24 * m if computes == "weighted_triangles" else 0)


def _generalized_bytes(computes: str, n: int, m: int) -> int:
    """The edges and their supports; twice as many keys, where each begins, and what is distinct of them."""
    return _edge_bytes(computes, n, m) + 8 * m + (5 * 16 + 4) * m + 16 * n


def _truss_bytes(computes: str, n: int, m: int) -> int:
    """Whether each edge is in it, and which ones are."""
    return _place_bytes(m) + 9 * m


def _level_bytes(computes: str, n: int, m: int) -> int:
    """The edges, their numbers and their order by these, some of which are ordered at a time; a parent per vertex."""
    from wedgewise.answer.truss_summary import ORDERED_BYTES, ORDERED_EDGES

    return _edge_bytes(computes, n, m) + 16 * m + ORDERED_BYTES * min(m, ORDERED_EDGES) + 8 * n


def _component_bytes(computes: str, n: int, m: int) -> int:
    """The edges, all and those inside; parents, marks and numbers of the vertices."""
    return _truss_bytes(computes, n, m) + 8 * m + 40 * n


_ALL = (
    Question("count", _always("count"), lambda asked: asked.computed.triangles, _count_bytes, {}),
    Question("triangles", _always("triangles"), by_vertex, _vertex_bytes, {}),
    Question("edge_support", _always("edge_support"), by_edge, _edge_bytes, {}),
    Question("list_triangles", _always("list_triangles"), listed, _listing_bytes, {"start": 0, "stop": None}),
    Question(
        "clustering", _for_clustering, local_clustering, _clustering_bytes, {"weighted": False, "undefined": "zero"}
    ),
    Question(
        "average_clustering",
        _for_clustering,
        mean_clustering,
        _clustering_bytes,
        {"weighted": False, "undefined": "zero", "count_zeros": True},
    ),
    Question("transitivity", _always("count"), closed_share, _vertex_bytes, {"undefined": "zero"}),
    Question("generalized_degree", _always("edge_support"), degrees_by_support, _generalized_bytes, {}),
    Question("trussness", _always("trussness"), by_edge, _edge_bytes, {}),
    Question("k_truss", _always("k_truss"), truss, _truss_bytes, {"k": None}),
    Question("max_truss", _always("max_truss"), truss, _truss_bytes, {}),
    Question("truss_summary", _always("trussness"), truss_levels, _level_bytes, {}),
    Question("truss_components", _always("k_truss"), component_of_vertices, _component_bytes, {"k": None}),
)
QUESTIONS = {question.name: question for question in _ALL}
