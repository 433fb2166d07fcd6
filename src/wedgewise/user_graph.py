"""`Graph`: what users hold. It wraps the simple graph and keeps its oriented forms."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.clean import clean
from wedgewise.errors import DeviceMemoryError, InputError, MemoryLimitError, UnknownNameError
from wedgewise.graph import (
    CleanReport,
    DeviceGraph,
    DeviceSimpleGraph,
    EdgeList,
    Labels,
    OrientedGraph,
    Origin,
    SimpleGraph,
)
from wedgewise.machine import gpu, hardware
from wedgewise.read.limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from wedgewise.attributes import EdgeAttributes
    from wedgewise.device_forms import DeviceForms
    from wedgewise.read.receiver import Receiver

CLEANING_PLACES = ("auto", "cpu", "cuda")


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
    device : "cpu" or "cuda": where to clean; "auto" cleans on the GPU what lies there already. A graph that is cleaned
        on the GPU stays there, and comes to the host when something needs it there
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
        device: str = "auto",
    ) -> None:
        limits = limits or DEFAULT_LIMITS
        threads = threads or hardware.usable_threads()
        how = _Reading(n, labels, format, limits, threads, weights)
        self.attributes: EdgeAttributes | None = None
        self._simple: SimpleGraph | None = None
        self._forms: DeviceForms | None = None
        self.why_not_there: str | None = None  # why it was cleaned on the host where that was to be on the GPU
        if device not in CLEANING_PLACES:
            raise UnknownNameError(f"no device named {device!r}; there are: {', '.join(CLEANING_PLACES)}")
        if device != "cpu" and not drop_leaves and not directed and weights is None:
            self._forms, edge_list, self.why_not_there = _cleaned_on_device(source, how, asked=device == "cuda")
        else:
            edge_list = how.edge_list(source)
        if self._forms is None:
            edge_list = _on_host(edge_list)
            keeps_more = directed or edge_list.weights is not None
            _check_memory(edge_list, threads)
            consume = _is_file(source) and not keeps_more
            self._simple = clean(edge_list, threads, drop_leaves=drop_leaves, limits=limits, consume=consume)
            if keeps_more:
                from wedgewise.attributes import edge_attributes

                self.attributes = edge_attributes(edge_list, self._simple, directed=directed, threads=threads)
        self.origin: Origin = edge_list.origin
        self._degrees: NDArray[np.uint32] | None = None
        self.preparations = 0
        self._oriented: dict[tuple[str, str], OrientedGraph] = {}
        self._places: dict[tuple[str, str], NDArray[Any]] = {}
        self._edges: NDArray[np.uint32] | None = None
        self._lock = threading.Lock()

    @property
    def simple(self) -> SimpleGraph:
        """The simple graph on the host; one that was cleaned on a GPU is brought here at the first call."""
        with self._lock:
            if self._simple is None:
                assert self._forms is not None
                self._simple = self._forms.to_host()
            return self._simple

    @property
    def _anywhere(self) -> SimpleGraph | DeviceSimpleGraph:
        if self._simple is not None:
            return self._simple
        assert self._forms is not None
        assert self._forms.simple is not None
        return self._forms.simple

    @property
    def n(self) -> int:
        """Number of vertices."""
        return self._anywhere.n

    @property
    def m(self) -> int:
        """Number of edges."""
        return self._anywhere.m

    @property
    def labels(self) -> Labels:
        """The label of every vertex, as the user wrote it."""
        return self.simple.labels

    @property
    def degrees(self) -> NDArray[np.uint32]:
        """The degree of every vertex."""
        with self._lock:
            if self._simple is not None:
                return self._simple.degrees
            if self._degrees is None:
                assert self._forms is not None
                self._degrees = self._forms.degrees()
            return self._degrees

    @property
    def paths(self) -> int:
        """Number of paths of two edges: the sum of C(d, 2) over all degrees d."""
        from wedgewise.orient_arrays import count_wedges

        return count_wedges(self._anywhere.degrees)

    @property
    def edges(self) -> NDArray[np.uint32]:
        """The edges as (m, 2) vertex indices with u < v, in ascending order."""
        simple = self.simple
        with self._lock:
            if self._edges is None:
                self._edges = simple.edges()
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
        return self._anywhere.report

    @property
    def nbytes(self) -> int:
        """Bytes held on the host, prepared forms included."""
        with self._lock:
            prepared = sum(oriented.nbytes for oriented in self._oriented.values())
            prepared += sum(places.nbytes for places in self._places.values())
            edges = 0 if self._edges is None else self._edges.nbytes
        attributes = 0 if self.attributes is None else self.attributes.nbytes
        simple = 0 if self._simple is None else self._simple.nbytes
        return simple + prepared + edges + attributes

    @property
    def device_nbytes(self) -> int:
        """Bytes held on a GPU."""
        return 0 if self._forms is None else self._forms.nbytes

    def oriented(
        self, order: str = "degree", relabelling: str = "rank", *, threads: int | None = None
    ) -> OrientedGraph:
        """The oriented form, prepared at the first call and kept until `release`."""
        from wedgewise.orient import orient, relabel

        threads = threads or hardware.usable_threads()
        simple = self.simple
        with self._lock:
            if (order, "rank") not in self._oriented:
                self._oriented[order, "rank"] = orient(simple, order, threads=threads)
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
        simple = self.simple
        with self._lock:
            if key not in self._places:
                self._places[key] = arcs_of_edges(simple, oriented, threads=threads)
                self.preparations += 1
            return self._places[key]

    @property
    def device_forms(self) -> DeviceForms:
        """What the graph holds on the GPU."""
        with self._lock:
            if self._forms is None:
                from wedgewise.device_forms import DeviceForms

                self._forms = DeviceForms(gpu.find_device(), self._simple)
            return self._forms

    @property
    def device_seconds(self) -> float:
        """Seconds of copying and making what the graph holds on the GPU, since they were last taken."""
        return 0.0 if self._forms is None else self._forms.seconds

    def take_device_seconds(self) -> dict[str, float]:
        """Seconds by stage that copying and preparing on the GPU took since the last call."""
        with self._lock:
            return {} if self._forms is None else self._forms.take_seconds()

    def on_device(self, order: str = "degree", relabelling: str = "rank") -> DeviceGraph:
        """The oriented form on the GPU, prepared there at the first call and kept until `release`."""
        forms = self.device_forms
        with self._lock:
            return forms.oriented(order, relabelling, self._oriented.get((order, relabelling)))

    def subgraph(self, edges: Sequence[int] | NDArray[Any]) -> Graph:
        """The graph of some edges and their ends, with the same labels; directions and weights are not kept.

        Parameters
        ----------
        edges : which of `edges`, by number

        Examples
        --------
        >>> import wedgewise as ww
        >>> g = ww.Graph([("ada", "bob"), ("bob", "cy"), ("cy", "ada"), ("cy", "di")])
        >>> smaller = g.subgraph([0, 3])
        >>> smaller.labels, smaller.edges.tolist()
        (['ada', 'bob', 'cy', 'di'], [[0, 1], [2, 3]])
        """
        numbers = np.asarray(edges)
        if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iu"):
            raise InputError(f"edges are numbers of edges, not {numbers.dtype} of shape {numbers.shape}")
        if numbers.size and not 0 <= int(numbers.min()) <= int(numbers.max()) < self.m:
            raise InputError(f"edges are numbered 0 … {self.m - 1:,}, not {numbers.min():,} … {numbers.max():,}")
        ends = self.edges[numbers.astype(np.int64)]
        kept = np.unique(ends)
        labels = self.labels
        names = [labels[vertex] for vertex in kept] if isinstance(labels, list) else np.asarray(labels)[kept]
        pairs = np.searchsorted(kept, ends).astype(np.uint32)
        return Graph(EdgeList(pairs, self.origin, vertices=len(kept), names=names), device="cpu")

    def release(self) -> None:
        """Give the prepared forms' memory back; the next question prepares again."""
        with self._lock:
            self._oriented.clear()
            self._places.clear()
            self._edges = None
        self.release_device()

    def release_device(self) -> None:
        """Give back what was prepared on the GPU."""
        with self._lock:
            if self._forms is not None:
                self._forms.release()

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
    device: str = "auto",
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
        device=device,
    )


def _is_file(source: Any) -> bool:
    """Whether a source is a path or a stream, whose pairs nobody else holds once they are read."""
    return isinstance(source, (str, PathLike)) or hasattr(source, "read")


@dataclass(frozen=True, slots=True)
class _Reading:
    """How a source is read; the fields are parameters of `Graph`."""

    n: int | None
    labels: str
    format: str | None
    limits: Limits
    threads: int
    weights: Any

    def edge_list(self, source: Any, receiver: Receiver | None = None) -> EdgeList:
        """The pairs of a source; those of a file also go to a receiver, while later ones are parsed."""
        edge_list = self._file(source, receiver) if _is_file(source) else self._object(source)
        if self.n is None:
            return edge_list
        if edge_list.vertices is not None:
            raise InputError(f"{edge_list.origin.name} names its own {edge_list.vertices} vertices; leave n out")
        if self.n < 0:
            raise InputError(f"n is at least 0, not {self.n}")
        self.limits.check("vertices", self.n, path=edge_list.origin.name)
        return replace(edge_list, vertices=self.n)

    def _file(self, source: Any, receiver: Receiver | None) -> EdgeList:
        from wedgewise.read import read_edges

        if self.weights is not None:
            raise InputError(
                f"{source}: weights of a file are not read; read its columns, with pandas for instance, and pass the "
                "table and the name of the column"
            )
        return read_edges(
            source,
            format=self.format,
            labels=self.labels,
            limits=self.limits,
            threads=self.threads,
            receiver=receiver,
        )

    def _object(self, source: Any) -> EdgeList:
        if isinstance(source, EdgeList):
            return source
        from wedgewise.interop import edges_from

        return edges_from(source, self.weights)


def _cleaned_on_device(source: Any, how: _Reading, *, asked: bool) -> tuple[DeviceForms | None, EdgeList, str | None]:
    """Clean on the GPU what is asked for, or lies there, and fits; the pairs of what does not come back, and why."""
    from wedgewise.device_forms import DeviceForms

    if not asked:
        edge_list = how.edge_list(source)
        if not edge_list.lies_on_device:
            return None, edge_list, None
    forms = DeviceForms(gpu.find_device(), None)
    pairs = None
    if asked and _is_file(source):
        edge_list, pairs = _read_to_device(source, how, forms)
    elif asked:
        edge_list = how.edge_list(source)
    if edge_list.lies_on_device:
        pairs = edge_list.pairs
    try:
        forms.clean(edge_list, pairs, how.limits)
    except DeviceMemoryError as error:
        return None, edge_list, f"cleaned on the host, since the GPU has no room: {error.shortage}"
    return forms, edge_list, None


def _read_to_device(source: Any, how: _Reading, forms: DeviceForms) -> tuple[EdgeList, Any]:
    """Read a file while its pairs are copied; without room for them, read it again if it is there twice."""
    try:
        with forms.device.memory(), forms.device.arriving() as arriving:
            edge_list = how.edge_list(source, arriving)
            with forms.stage("copy"):
                return edge_list, arriving.finish()
    except DeviceMemoryError:
        if hasattr(source, "read") or source == "-":
            raise
        return how.edge_list(source), None


def _on_host(edge_list: EdgeList) -> EdgeList:
    """The same pairs in the host's memory."""
    if not edge_list.lies_on_device:
        return edge_list
    return replace(edge_list, pairs=gpu.find_device().download(edge_list.pairs))


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
