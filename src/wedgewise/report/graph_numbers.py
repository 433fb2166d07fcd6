"""Arrays of a graph → the numbers that describe it: a summary, distributions, classes, trusses, the first vertices.

Whatever the size of the graph, few numbers come of it: distributions are thinned to a bounded number of points, each of
which is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms._truss import MIN_K
from wedgewise.answer import coefficients
from wedgewise.answer.truss_summary import components, summarise
from wedgewise.answer_types import TrussLevel
from wedgewise.graph import Graph
from wedgewise.report.objects import label_rows
from wedgewise.report.summary import TOP, largest
from wedgewise.stages import Labels

MAX_POINTS = 240  # of a distribution
MAX_PARTS, MAX_MEMBERS = 5, 40  # of a truss: components, and vertices that are named of each
MAX_DRAWN = 150  # vertices of a truss in a drawing
PAIR = 2  # neighbours that a vertex needs for a clustering coefficient
Numbers = NDArray[np.int64]
Shares = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Summary:
    """A graph in numbers.

    Attributes
    ----------
    vertices, edges, triangles : how many there are
    isolated : vertices without an edge
    paths : paths of two edges, of which `transitivity` are closed
    average_clustering : over all vertices, 0 where it is undefined
    defined_clustering, defined_at : over the vertices with two neighbours or more, and how many these are
    degeneracy : the largest k of which a subgraph has degrees of at least k
    kmax : the largest k whose k-truss has edges; 0 without edges
    components, largest_component : connected components, and the vertices of the largest
    """

    vertices: int
    edges: int
    triangles: int
    isolated: int
    paths: int
    transitivity: float
    average_clustering: float
    defined_clustering: float
    defined_at: int
    degeneracy: int
    kmax: int
    components: int
    largest_component: int


@dataclass(frozen=True, slots=True)
class ValueClass:
    """How many vertices have a value from `least` to `most`."""

    least: int
    most: int
    vertices: int


@dataclass(frozen=True, slots=True)
class Distribution:
    """How a number is distributed over the vertices.

    ``at_least[i]`` vertices have ``values[i]`` or more; of more than `MAX_POINTS` values some are left out. Of the
    ``classes``, which double, none is.
    """

    mean: float
    median: float
    largest: int
    values: tuple[int, ...]
    at_least: tuple[int, ...]
    classes: tuple[ValueClass, ...]


@dataclass(frozen=True, slots=True)
class DegreeClass:
    """The vertices of degrees from `least` to `most`, 2 or more, and their average clustering."""

    least: int
    most: int
    vertices: int
    clustering: float


@dataclass(frozen=True, slots=True)
class TopVertex:
    """A vertex by its label; ``truss`` is the largest k whose k-truss holds one of its edges."""

    label: int | str
    degree: int
    triangles: int
    clustering: float
    truss: int


@dataclass(frozen=True, slots=True)
class TrussPart:
    """A component of a truss; ``density`` is the share of pairs of its vertices that are edges.

    ``labels`` are those of its first vertices, at most `MAX_MEMBERS`.
    """

    vertices: int
    edges: int
    density: float
    labels: tuple[int | str, ...]


@dataclass(frozen=True, slots=True)
class TrussCore:
    """The part of the last truss that is drawn: the labels of its vertices, and its edges as pairs of their numbers."""

    labels: tuple[int | str, ...]
    edges: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class TrussNumbers:
    """What each k-truss has, the largest components of the last one, and the components of the graph with edges.

    ``sizes`` are the vertices of these; ``core`` is what is drawn of the last truss, if it has triangles.
    """

    levels: tuple[TrussLevel, ...]
    last: tuple[TrussPart, ...]
    sizes: Numbers
    core: TrussCore | None


def trusses(graph: Graph, numbers: Numbers) -> TrussNumbers:
    """What the truss numbers of the edges say."""
    levels = summarise(graph, numbers)
    sizes = _sizes(components(graph, np.arange(graph.m)))
    if not levels:
        return TrussNumbers(levels, (), sizes, None)
    held = np.flatnonzero(numbers == levels[-1].k)
    component_of = components(graph, held)
    core = _core(graph, held, component_of) if levels[-1].k > MIN_K else None
    return TrussNumbers(levels, _parts(graph, held, component_of), sizes, core)


def summarise_graph(graph: Graph, triangles: Numbers, clustering: Shares, peeled: int, found: TrussNumbers) -> Summary:
    """The graph in numbers; ``peeled`` is its degeneracy."""
    total, isolated = int(triangles.sum()) // 3, int(np.count_nonzero(graph.degrees == 0))
    defined = clustering[graph.degrees >= PAIR]
    return Summary(
        vertices=graph.n,
        edges=graph.m,
        triangles=total,
        isolated=isolated,
        paths=graph.paths,
        transitivity=coefficients.transitivity(total, graph.paths),
        average_clustering=coefficients.average(clustering),
        defined_clustering=coefficients.average(defined),
        defined_at=len(defined),
        degeneracy=peeled,
        kmax=found.levels[-1].k if found.levels else 0,
        components=len(found.sizes) + isolated,
        largest_component=int(found.sizes.max(initial=min(1, isolated))),
    )


def distribution(numbers: NDArray[Any]) -> Distribution:
    """How non-negative integers are distributed."""
    if not len(numbers):
        return Distribution(0.0, 0.0, 0, (), (), ())
    values, vertices = np.unique(numbers, return_counts=True)
    at_least = vertices[::-1].cumsum()[::-1]
    shown = _spread_out(values)
    bounds = [0, 1]
    while bounds[-1] <= values[-1]:
        bounds.append(2 * bounds[-1])
    in_class = np.bincount(_class_of(values, bounds), weights=vertices).astype(np.int64).tolist()
    return Distribution(
        mean=float(numbers.mean()),
        median=float(np.median(numbers)),
        largest=int(values[-1]),
        values=tuple(values[shown].tolist()),
        at_least=tuple(at_least[shown].tolist()),
        classes=tuple(
            ValueClass(least, beyond - 1, count)
            for (least, beyond), count in zip(pairwise(bounds), in_class, strict=True)
            if count
        ),
    )


def clustering_by_degree(degrees: NDArray[Any], clustering: Shares) -> tuple[DegreeClass, ...]:
    """The average clustering of vertices of like degrees; the bounds of classes grow by one, then by half."""
    bounds = [PAIR]
    while bounds[-1] <= degrees.max(initial=0):
        bounds.append(max(bounds[-1] + 1, bounds[-1] * 3 // 2))
    defined = degrees >= PAIR
    class_of = _class_of(degrees[defined], bounds)
    vertices = np.bincount(class_of)
    sums = np.bincount(class_of, weights=clustering[defined])
    return tuple(
        DegreeClass(bounds[at], bounds[at + 1] - 1, int(vertices[at]), float(sums[at] / vertices[at]))
        for at in np.flatnonzero(vertices).tolist()
    )


def top_vertices(
    graph: Graph, triangles: Numbers, clustering: Shares, numbers: Numbers
) -> tuple[tuple[TopVertex, ...], tuple[TopVertex, ...]]:
    """The vertices with most triangles, and those of largest degree."""
    by_triangles, by_degree = largest(triangles, TOP), largest(graph.degrees.astype(np.int64), TOP)
    truss_of = _truss_numbers(graph, {*by_triangles, *by_degree}, numbers)

    def described(vertex: int) -> TopVertex:
        (label,) = _labels(graph.labels, np.array([vertex]))
        degree, share = int(graph.degrees[vertex]), float(clustering[vertex])
        return TopVertex(label, degree, int(triangles[vertex]), share, truss_of[vertex])

    return tuple(map(described, by_triangles)), tuple(map(described, by_degree))


def _sizes(component_of: Numbers) -> Numbers:
    """How many vertices are in each component."""
    return np.bincount(component_of[component_of >= 0])


def _parts(graph: Graph, held: Numbers, component_of: Numbers) -> tuple[TrussPart, ...]:
    """The components of a truss with the edges `held`, largest first."""
    vertices = _sizes(component_of)
    edges = np.bincount(component_of[graph.edges[held, 0]])
    first = np.argsort(-vertices, kind="stable")[:MAX_PARTS].tolist()
    members = [np.flatnonzero(component_of == part)[:MAX_MEMBERS] for part in first]
    return tuple(
        TrussPart(n, m, 2 * m / (n * (n - 1)), _labels(graph.labels, named))
        for n, m, named in zip(vertices[first].tolist(), edges[first].tolist(), members, strict=True)
    )


def _core(graph: Graph, held: Numbers, component_of: Numbers) -> TrussCore:
    """The largest component of a truss with the edges `held`; of many vertices, those with most of these edges."""
    ends = graph.edges[held].astype(np.int64)
    inside = ends[component_of[ends[:, 0]] == int(np.argmax(_sizes(component_of)))]
    degrees = np.bincount(inside.ravel())
    drawn = np.sort(np.argsort(-degrees, kind="stable")[: min(MAX_DRAWN, int(np.count_nonzero(degrees)))])
    edges = inside[np.isin(inside, drawn).all(axis=1)]
    pairs = np.searchsorted(drawn, edges).tolist()
    return TrussCore(_labels(graph.labels, drawn), tuple((u, v) for u, v in pairs))


def _labels(labels: Labels, vertices: NDArray[Any]) -> tuple[Any, ...]:
    found: list[Any] = label_rows(labels, vertices.reshape(1, -1))[0]
    return tuple(found)


def _class_of(values: NDArray[Any], bounds: list[int]) -> Numbers:
    """Which class every value is in, where `bounds` are their least values."""
    return np.searchsorted(np.array(bounds), values, side="right") - 1


def _spread_out(values: NDArray[Any]) -> Numbers:
    """Which of ascending values to keep: all of few; of many the first and those that begin steps of equal ratio."""
    if len(values) <= MAX_POINTS:
        return np.arange(len(values))
    steps = np.geomspace(max(1, int(values[0])), int(values[-1]), MAX_POINTS - 1)
    steps[-1] = values[-1]
    return np.unique(np.append(np.searchsorted(values, steps), 0))


def _truss_numbers(graph: Graph, vertices: set[int], numbers: Numbers) -> dict[int, int]:
    """The largest truss number among the edges of each of some vertices, which have edges."""
    wanted = np.zeros(graph.n, np.bool_)
    wanted[list(vertices)] = True
    touching = np.flatnonzero(wanted[graph.edges].any(axis=1))
    ends, found = graph.edges[touching], numbers[touching]
    return {vertex: int(found[(ends == vertex).any(axis=1)].max()) for vertex in vertices}
