"""`Graph`: what users hold. It wraps the simple graph and keeps its oriented forms."""

from __future__ import annotations

import threading
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import InputError, MemoryLimitError
from wedgewise.graph import CleanReport, EdgeList, Labels, OrientedGraph, Origin, SimpleGraph
from wedgewise.machine import hardware
from wedgewise.read.limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from wedgewise.attributes import EdgeAttributes


class Graph:
    """An immutable undirected simple graph that remembers what it prepared.

    Parameters
    ----------
    source : a path (or "-" for standard input), a (k, 2) integer array, pairs of labels, or an object of another
        library: see `wedgewise.interop`
    n : number of vertices, when ids 0 … n − 1 are all vertices; without it the vertices are the labels that occur
    labels : "auto", "int" or "text": what the tokens of a text file are
    format : the file's format, when its content should not decide
    limits : caps on what a file may declare or expand to
    drop_leaves : drop the vertices of degree one, in one pass
    threads : how many threads to prepare with
    directed : keep the directions of the pairs, for directed clustering; every other question ignores them
    weights : keep a weight per edge, for weighted clustering: an array with one number per pair, the name of an
        attribute or a column where the source has names, or True for the values of a matrix. Of repeated edges the
        last one's weight stays.

    Examples
    --------
    >>> import wedgewise as ww
    >>> g = ww.Graph([(10, 20), (20, 30), (30, 10), (30, 30)])
    >>> g.n, g.m, g.cleaned.loops
    (3, 3, 1)
    """

    def __init__(
        self,
        source: Any,
        *,
        n: int | None = None,
        labels: str = "auto",
        format: str | None = None,
        limits: Limits | None = None,
        drop_leaves: bool = False,
        threads: int | None = None,
        directed: bool = False,
        weights: Any = None,
    ) -> None:
        from wedgewise.clean import clean

        limits = limits or DEFAULT_LIMITS
        threads = threads or hardware.usable_threads()
        edge_list = _edge_list(source, n, labels, format, limits, threads, weights)
        keeps_more = directed or edge_list.weights is not None
        _check_memory(edge_list, threads)
        self.origin: Origin = edge_list.origin
        self.simple: SimpleGraph = clean(
            edge_list, threads, drop_leaves=drop_leaves, limits=limits, consume=_is_file(source) and not keeps_more
        )
        self.attributes: EdgeAttributes | None = None
        if keeps_more:
            from wedgewise.attributes import edge_attributes

            self.attributes = edge_attributes(edge_list, self.simple, directed=directed, threads=threads)
        self.preparations = 0
        self._oriented: dict[tuple[str, str], OrientedGraph] = {}
        self._places: dict[tuple[str, str], NDArray[Any]] = {}
        self._edges: NDArray[np.uint32] | None = None
        self._lock = threading.Lock()

    @property
    def n(self) -> int:
        """Number of vertices."""
        return self.simple.n

    @property
    def m(self) -> int:
        """Number of edges."""
        return self.simple.m

    @property
    def labels(self) -> Labels:
        """The label of every vertex, as the user wrote it."""
        return self.simple.labels

    @property
    def degrees(self) -> NDArray[np.uint32]:
        """The degree of every vertex."""
        return self.simple.degrees

    @property
    def edges(self) -> NDArray[np.uint32]:
        """The edges as (m, 2) vertex indices with u < v, in ascending order."""
        with self._lock:
            if self._edges is None:
                self._edges = self.simple.edges()
                self._edges.flags.writeable = False
            return self._edges

    @property
    def directed(self) -> bool:
        """Whether the directions of the pairs were kept."""
        return self.attributes is not None and self.attributes.directed

    @property
    def weights(self) -> NDArray[np.float64] | None:
        """The kept weights in the order of `edges`: (m,), or (m, 2) for u → v and v → u where directions are kept."""
        return None if self.attributes is None else self.attributes.weights

    @property
    def cleaned(self) -> CleanReport:
        """What cleaning dropped."""
        return self.simple.report

    @property
    def nbytes(self) -> int:
        """Bytes held, prepared forms included."""
        with self._lock:
            prepared = sum(oriented.nbytes for oriented in self._oriented.values())
            prepared += sum(places.nbytes for places in self._places.values())
            edges = 0 if self._edges is None else self._edges.nbytes
        attributes = 0 if self.attributes is None else self.attributes.nbytes
        return self.simple.nbytes + prepared + edges + attributes

    def oriented(
        self, order: str = "degree", relabelling: str = "rank", *, threads: int | None = None
    ) -> OrientedGraph:
        """The oriented form, prepared at the first call and kept until `release`."""
        from wedgewise.orient import orient, relabel

        threads = threads or hardware.usable_threads()
        with self._lock:
            if (order, "rank") not in self._oriented:
                self._oriented[order, "rank"] = orient(self.simple, order, threads=threads)
                self.preparations += 1
            if (order, relabelling) not in self._oriented:
                renamed = relabel(self._oriented[order, "rank"], relabelling, threads=threads)
                self._oriented[order, relabelling] = renamed
                self.preparations += 1
            return self._oriented[order, relabelling]

    def arcs_of_edges(self, oriented: OrientedGraph, *, threads: int | None = None) -> NDArray[Any]:
        """Where each edge is among the arcs of one of the oriented forms, found at the first call and kept."""
        from wedgewise.orient import arcs_of_edges

        key = (oriented.order, oriented.named_by)
        threads = threads or hardware.usable_threads()
        with self._lock:
            if key not in self._places:
                self._places[key] = arcs_of_edges(self.simple, oriented, threads=threads)
                self.preparations += 1
            return self._places[key]

    def release(self) -> None:
        """Give the prepared forms' memory back; the next question prepares again."""
        with self._lock:
            self._oriented.clear()
            self._places.clear()
            self._edges = None

    def __repr__(self) -> str:
        return f"Graph({self.origin.name!r}, n={self.n}, m={self.m})"


def read(
    path: str | PathLike[str],
    *,
    n: int | None = None,
    labels: str = "auto",
    format: str | None = None,
    limits: Limits | None = None,
    drop_leaves: bool = False,
    threads: int | None = None,
    directed: bool = False,
) -> Graph:
    """Read a graph file; the parameters are those of `Graph`.

    Examples
    --------
    >>> import wedgewise as ww
    >>> from wedgewise.datasets import bundled
    >>> g = ww.read(bundled("email-Enron"))
    >>> g.n, g.m
    (36692, 183831)
    """
    return Graph(
        path,
        n=n,
        labels=labels,
        format=format,
        limits=limits,
        drop_leaves=drop_leaves,
        threads=threads,
        directed=directed,
    )


def _is_file(source: Any) -> bool:
    """Whether a source is a path or a stream, whose pairs nobody else holds once they are read."""
    return isinstance(source, (str, PathLike)) or hasattr(source, "read")


def _edge_list(
    source: Any, n: int | None, labels: str, format: str | None, limits: Limits, threads: int, weights: Any
) -> EdgeList:
    if _is_file(source):
        from wedgewise.read import read_edges

        if weights is not None:
            raise InputError(
                f"{source}: weights of a file are not read; read its columns, with pandas for instance, and pass the "
                "table and the name of the column"
            )

        edge_list = read_edges(source, format=format, labels=labels, limits=limits, threads=threads)
    else:
        from wedgewise.interop import edges_from

        edge_list = edges_from(source, weights)
    if n is None:
        return edge_list
    if edge_list.vertices is not None:
        raise InputError(f"{edge_list.origin.name} names its own {edge_list.vertices} vertices; leave n out")
    if n < 0:
        raise InputError(f"n is at least 0, not {n}")
    limits.check("vertices", n, path=edge_list.origin.name)
    return replace(edge_list, vertices=n)


def _check_memory(edge_list: EdgeList, threads: int) -> None:
    """Refuse pairs whose cleaning cannot fit, before the first buffer is taken."""
    pairs, vertices = len(edge_list.pairs), edge_list.vertices
    need = clean_bytes(pairs, pairs if vertices is None else vertices, threads)
    available = hardware.available_memory()
    if need > available:
        declared = "" if vertices is None else f" among {vertices:,} vertices"
        raise MemoryLimitError(
            f"{edge_list.origin.name}: cleaning {pairs:,} pairs{declared} takes {need:,} bytes and "
            f"{available:,} are available; use a machine with more memory"
        )


def clean_bytes(pairs: int, vertices: int, threads: int) -> int:
    """Peak of `clean` beyond the pairs: two key buffers, and counts and marks of vertices."""
    from wedgewise.radix import counting_workers

    return 16 * pairs + (13 + 4 * counting_workers(pairs, vertices, threads)) * vertices
