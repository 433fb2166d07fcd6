"""The questions about pairs of vertices, and about vertices that neither triangles nor trusses answer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from wedgewise.answer_types import Similarity, TopSimilar
from wedgewise.api import Keywords, ask, shows_keywords
from wedgewise.graph import Graph
from wedgewise.stages.labels import pick_labels


@shows_keywords
def similarity(graph: Any, measure: str | Iterable[str] = "jaccard", pairs: Any = None, **how: Unpack[Keywords]) -> Any:
    """How similar the ends of every edge are, or those of given pairs, by one measure or by several in one pass.

    With c common neighbours of u and v, and their degrees d:

        common_neighbors          c, an integer
        jaccard                   c / (d(u) + d(v) − c)
        overlap                   c / min(d(u), d(v))
        cosine                    √(c² / (d(u) d(v)))
        sorensen                  2c / (d(u) + d(v))
        adamic_adar               Σ 1 / ln d(w) over the common neighbours w
        resource_allocation       Σ 1 / d(w)
        preferential_attachment   d(u) d(v), an integer

    A pair without a common neighbour has 0, but for the last. Directions and weights of the graph are ignored. Any
    number of threads gives the same bits; the sums are in fixed point and off by c · 2^-f at most before they are
    rounded, with f = 48, or 63 less the bits of the largest degree where that is 2^15 or more.

    Parameters
    ----------
    graph : a Graph, or whatever `Graph` accepts
    measure : the name of a measure, or several names
    pairs : pairs of labels, adjacent or not: whatever `Graph` accepts. Without it, the edges
    **how : the keywords of `count`

    Returns
    -------
    array, or dict of arrays by measure
        In the order of `pairs`, or of ``Graph.edges``; a dictionary where several measures are named.

    Raises
    ------
    UnknownLabelError
        When a pair has a label that no vertex has.
    InputError
        When a pair is a vertex with itself.

    Examples
    --------
    >>> import wedgewise as ww
    >>> g = ww.Graph([("ada", "bob"), ("bob", "cy"), ("cy", "ada"), ("cy", "di")])
    >>> ww.similarity(g, "jaccard").round(3)
    array([0.333, 0.25 , 0.25 , 0.   ])
    >>> ww.similarity(g, ["overlap", "common_neighbors"], [("ada", "di"), ("bob", "di")])
    {'overlap': array([1., 1.]), 'common_neighbors': array([1, 1])}
    """
    found: Similarity = ask("similarity", graph, how, measure=measure, pairs=pairs)
    return found.values[measure] if isinstance(measure, str) else dict(found.values)


@shows_keywords
def top_similar(
    graph: Any,
    measure: str = "jaccard",
    k: int = 10,
    vertices: Any = None,
    *,
    exclude_neighbors: bool = False,
    **how: Unpack[Keywords],
) -> TopSimilar:
    """The k partners that every vertex is most similar to, over all pairs with a common neighbour.

    Partners come by descending value, ties by vertex; a vertex has fewer than k where fewer share a neighbour with it.

    Parameters
    ----------
    graph : a Graph, or whatever `Graph` accepts
    measure : as in `similarity`, one
    k : at least 1
    vertices : a label or several, to ask about these alone
    exclude_neighbors : leave out pairs that are edges, as predictions of new edges do
    **how : the keywords of `count`

    Examples
    --------
    Users and the items that they chose: who is most like "ada"?

    >>> import wedgewise as ww
    >>> chose = [("ada", "tea"), ("ada", "jam"), ("bob", "tea"), ("bob", "jam"), ("cy", "jam")]
    >>> g = ww.Graph(chose)
    >>> [(g.labels[user], value) for user, value in ww.top_similar(g, "jaccard", 2, vertices="ada")[0]]
    [('bob', 1.0), ('cy', 0.5)]
    """
    details = {"measure": measure, "k": k, "vertices": vertices, "exclude_neighbors": exclude_neighbors}
    found: TopSimilar = ask("top_similar", graph, how, **details)
    return found


def common_neighbors(graph: Any, u: Any, v: Any) -> Any:
    """The labels of the vertices that are neighbours of both u and v, in the order of the vertices.

    Examples
    --------
    >>> import wedgewise as ww
    >>> ww.common_neighbors([("ada", "bob"), ("bob", "cy"), ("cy", "ada"), ("cy", "di")], "ada", "di")
    ['cy']
    """
    graph = graph if isinstance(graph, Graph) else Graph(graph)
    first, second = (graph.adjacency.of(graph.index(label)) for label in (u, v))
    found = pick_labels(graph.labels, np.intersect1d(first, second, assume_unique=True))
    return found.astype(np.int64) if isinstance(found, np.ndarray) and found.dtype.kind in "iu" else found


@shows_keywords
def core_number(graph: Any, **how: Unpack[Keywords]) -> NDArray[np.int64]:
    """The core number of every vertex, in the order of ``Graph.labels``: the largest k whose k-core holds it.

    The k-core is the largest subgraph of degrees of at least k. Directions are ignored. The keywords are those of
    `count`.

    Examples
    --------
    >>> import wedgewise as ww
    >>> ww.core_number([(0, 1), (1, 2), (2, 0), (2, 3)])
    array([2, 2, 2, 1])
    """
    answer: NDArray[np.int64] = ask("core_number", graph, how)
    return answer


@shows_keywords
def degeneracy(graph: Any, **how: Unpack[Keywords]) -> int:
    """The largest core number; 0 without edges.

    The keywords are those of `count`.

    Examples
    --------
    >>> import wedgewise as ww
    >>> ww.degeneracy([(0, 1), (1, 2), (2, 0), (2, 3)])
    2
    """
    answer: int = ask("degeneracy", graph, how)
    return answer


@shows_keywords
def connected_components(graph: Any, **how: Unpack[Keywords]) -> NDArray[np.int64]:
    """The connected component of every vertex, in the order of ``Graph.labels``, numbered by least vertex.

    Vertices without edges are components too; directions are ignored. The keywords are those of `count`.

    Examples
    --------
    >>> import wedgewise as ww
    >>> ww.connected_components(ww.Graph([(0, 1), (2, 3)], n=5))
    array([0, 0, 1, 1, 2])
    """
    answer: NDArray[np.int64] = ask("connected_components", graph, how)
    return answer
