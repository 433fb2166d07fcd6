"""The questions about trusses: what users call."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from wedgewise.answer_types import Truss, TrussLevel
from wedgewise.api import Keywords, ask, shows_keywords


@shows_keywords
def trussness(graph: Any, **how: Unpack[Keywords]) -> NDArray[np.int64]:
    """The truss number of every edge, in the order of ``Graph.edges``: the largest k whose k-truss holds it.

    The k-truss is the largest subgraph in which every edge lies in at least k − 2 triangles of the subgraph; every edge
    is in the 2-truss. The keywords are those of `count`; with `verify`, some of the trusses are found again.
    A store may be asked as well, without `verify`.

    Examples
    --------
    >>> import wedgewise as ww
    >>> ww.trussness([(0, 1), (1, 2), (2, 0), (2, 3)])
    array([3, 3, 3, 2])
    """
    answer: NDArray[np.int64] = ask("trussness", graph, how)
    return answer


@shows_keywords
def k_truss(graph: Any, k: int, **how: Unpack[Keywords]) -> Truss:
    """The k-truss: the largest subgraph in which every edge lies in at least k − 2 triangles of the subgraph.

    Parameters
    ----------
    graph : a Graph, whatever `Graph` accepts, or the folder of a store
    k : at least 2
    **how : the keywords of `count`

    Examples
    --------
    >>> import wedgewise as ww
    >>> g = ww.Graph([(0, 1), (1, 2), (2, 0), (2, 3)])
    >>> truss = ww.k_truss(g, 3)
    >>> truss.edges
    array([0, 1, 2])
    >>> g.edges[truss.edges].tolist()
    [[0, 1], [0, 2], [1, 2]]
    """
    answer: Truss = ask("k_truss", graph, how, k=k)
    return answer


@shows_keywords
def max_truss(graph: Any, **how: Unpack[Keywords]) -> Truss:
    """The last k-truss that has edges, without the others; the whole graph, with k = 2, where there are no triangles.

    The keywords are those of `count`.

    Examples
    --------
    >>> import wedgewise as ww
    >>> truss = ww.max_truss([(0, 1), (1, 2), (2, 0), (2, 3)])
    >>> truss.k, len(truss)
    (3, 3)
    """
    answer: Truss = ask("max_truss", graph, how)
    return answer


@shows_keywords
def truss_summary(graph: Any, **how: Unpack[Keywords]) -> tuple[TrussLevel, ...]:
    """Edges, vertices and connected components of the k-truss, for every k from 2 to the largest with edges.

    The keywords are those of `count`.

    Examples
    --------
    >>> import wedgewise as ww
    >>> for level in ww.truss_summary([(0, 1), (1, 2), (2, 0), (2, 3)]):
    ...     print(level)
    TrussLevel(k=2, edges=4, vertices=4, components=1)
    TrussLevel(k=3, edges=3, vertices=3, components=1)
    """
    answer: tuple[TrussLevel, ...] = ask("truss_summary", graph, how)
    return answer


@shows_keywords
def truss_components(graph: Any, k: int, **how: Unpack[Keywords]) -> NDArray[np.int64]:
    """The connected component of the k-truss that each vertex is in, numbered by least vertex; −1 outside of it.

    Parameters
    ----------
    graph : a Graph, or whatever `Graph` accepts
    k : at least 2
    **how : the keywords of `count`

    Examples
    --------
    >>> import wedgewise as ww
    >>> ww.truss_components([(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 3), (5, 6)], 3)
    array([ 0,  0,  0,  1,  1,  1, -1])
    """
    answer: NDArray[np.int64] = ask("truss_components", graph, how, k=k)
    return answer
