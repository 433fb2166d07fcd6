"""`Graph`: what users hold. It wraps the simple graph and keeps its oriented forms."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import InputError
from wedgewise.machine import gpu, hardware, notebook
from wedgewise.machine.parameters import as_integer
from wedgewise.read import ReadOptions
from wedgewise.read.columns import ColumnChoice
from wedgewise.read.graph_data import GraphData
from wedgewise.stages import (
    Adjacency,
    CleanReport,
    Column,
    DeviceGraph,
    EdgeList,
    Labels,
    OrientedGraph,
    Origin,
    SimpleGraph,
    read_only,
)
from wedgewise.stages.labels import pick_labels
from wedgewise.stages.limits import Limits, checked_limits

if TYPE_CHECKING:
    from wedgewise.prepare.attributes import EdgeAttributes
    from wedgewise.prepare.device_forms import DeviceForms
    from wedgewise.stages.vertex_index import VertexIndex

GRAPH_KEYWORDS = (  # the keywords of `Graph` that questions do not have
    *("n", "labels", "format", "limits", "drop_leaves", "directed"),
    *("weights", "combine", "source", "target", "weight", "header"),
)


class Graph:
    """An immutable undirected simple graph that remembers what it prepared.

    Parameters
    ----------
    data : a path (or "-" for standard input), a (k, 2) integer array, pairs of labels, a table, or an object of another
        library: see `wedgewise.interop`
    n : number of vertices, when ids 0 … n − 1 are all vertices; without it the vertices are the labels that occur
    labels : "auto", "int" or "text": what the labels of a text file or a table are
    format : the file's format, when its content should not decide
    limits : caps on what a file may declare or expand to
    drop_leaves : drop the vertices of degree one, in one pass
    threads : how many threads to prepare with
    directed : keep the directions of the pairs, for directed clustering; every other question ignores them
    device : "cpu" or "cuda": where to clean; "auto" cleans on the GPU what lies there already. A graph that is cleaned
        on the GPU stays there, and comes to the host when something needs it there
    weights : keep a weight per edge, for weighted clustering: an array with one number per pair, the name of an
        attribute where edges have some, or True for the values of a matrix
    source, target : the columns of a text file or a table with the ends of an edge, by name or by position from 0. Two
        columns need neither; well-known pairs of names are found, such as source and target, sender and receiver
    weight : the column of a text file or a table that holds the weights to keep
    header : whether the first line of a text file names its columns: True, False, or "auto" to look at the first lines
    combine : the weight of an edge that is there more than once: "last", "sum", "max" or "min" of those given for it;
        "error" refuses such edges. Without directions, an edge that is given in both directions is there twice

    Examples
    --------
    >>> import wedgewise as ww
    >>> g = ww.Graph([(10, 20), (20, 30), (30, 10), (30, 30)])
    >>> g.n, g.m, g.cleaned.loops
    (3, 3, 1)
    """

    _is_counted = False  # whether it is made for a count alone

    def __init__(
        self,
        data: Any,
        /,
        *,
        n: int | None = None,
        labels: str = "auto",
        format: str | None = None,
        limits: Limits | None = None,
        drop_leaves: bool = False,
        threads: int | None = None,
        directed: bool = False,
        weights: Any = None,
        combine: str = "last",
        device: str = "auto",
        source: Column | None = None,
        target: Column | None = None,
        weight: Column | None = None,
        header: bool | str = "auto",
    ) -> None:
        limits, threads = checked_limits(limits), hardware.granted_threads(threads)
        options = ReadOptions(labels, ColumnChoice(source, target, weight, header), limits, threads, whole=True)
        given = GraphData(data, None if n is None else as_integer("n", n), weights, format, options)
        made = given.cleaned(
            device, drop_leaves=drop_leaves, directed=directed, combine=combine, is_counted=self._is_counted
        )
        self.origin: Origin = made.origin
        self.attributes: EdgeAttributes | None = made.attributes
        self.cleaning_note: str | None = made.note
        self._simple: SimpleGraph | None = made.simple
        self._forms: DeviceForms | None = made.forms
        self.is_ranked = made.forms is not None and made.forms.is_ranked  # lies on the GPU in rows by raw degree
        self._n, self._m, self._cleaned = made.n, made.m, made.report
        self._degrees: NDArray[np.uint32] | None = None
        self.preparations = 0
        self._lock = threading.Lock()
        self._forget()

    def _forget(self) -> None:
        """Hold nothing that was prepared on the host."""
        self._oriented: dict[tuple[str, str], OrientedGraph] = {}
        self._arc_positions: dict[tuple[str, str], NDArray[Any]] = {}
        self._edges: NDArray[np.uint32] | None = None
        self._index: VertexIndex | None = None
        self._adjacency: Adjacency | None = None

    @property
    def simple(self) -> SimpleGraph:
        """The simple graph on the host; one that was cleaned on a GPU is brought here at the first call."""
        with self._lock:
            if self._simple is None:
                assert self._forms is not None
                self._simple = self._forms.to_host()
            return self._simple

    @property
    def n(self) -> int:
        """Number of vertices."""
        return self._n

    @property
    def m(self) -> int:
        """Number of edges."""
        return self._m

    @property
    def labels(self) -> Labels:
        """The label of every vertex, as the user wrote it."""
        return self.simple.labels

    def index(self, label: Any) -> Any:
        """The number of the vertex with a label, or of every vertex of a list or column of labels.

        Parameters
        ----------
        label : a label; or several in a list, or in an array or column of NumPy, pandas, polars or Arrow. A tuple holds
            several labels too, unless labels are objects of any type, as NetworkX has them

        Returns
        -------
        int, or an int64 array for several labels

        Raises
        ------
        UnknownLabelError
            When no vertex has that label; a KeyError, which names the first such label.

        Examples
        --------
        >>> import wedgewise as ww
        >>> g = ww.Graph([("ada", "bob"), ("bob", "cy"), ("cy", "ada"), ("cy", "di")])
        >>> g.index("cy"), g.index(["di", "ada"])
        (2, array([3, 0]))
        >>> "cy" in g, "eve" in g, len(g)
        (True, False, 4)
        """
        return self.vertices.find(label)

    def degree(self, label: Any) -> Any:
        """The degree of the vertex with a label, or of every vertex of a list or column of labels, as `index` has them.

        Examples
        --------
        >>> import wedgewise as ww
        >>> g = ww.Graph([("ada", "bob"), ("bob", "cy"), ("cy", "ada"), ("cy", "di")])
        >>> g.degree("cy"), g.degree(["di", "ada"])
        (3, array([1, 2], dtype=uint32))
        """
        found = self.degrees[self.index(label)]
        return found if isinstance(found, np.ndarray) else int(found)

    def neighbors(self, label: Any) -> Any:
        """The labels of a vertex's neighbours, in the order of the vertices; of several vertices a list of such.

        Labels come as an int64 array, as text like `labels`, or as a list of other objects. The first call prepares the
        rows of all vertices, 8 bytes per edge, and keeps them until `release`.

        Examples
        --------
        >>> import wedgewise as ww
        >>> g = ww.Graph([("ada", "bob"), ("bob", "cy"), ("cy", "ada"), ("cy", "di")])
        >>> g.neighbors("cy"), g.neighbors(["di", "ada"])
        (['ada', 'bob', 'di'], [['cy'], ['bob', 'cy']])
        """
        vertices, adjacency = self.index(label), self.adjacency
        rows = [adjacency.of(vertex) for vertex in np.atleast_1d(vertices).tolist()]
        found = pick_labels(self.labels, np.concatenate([np.empty(0, np.uint32), *rows]))
        if isinstance(found, np.ndarray) and found.dtype.kind in "iu":
            found = found.astype(np.int64)
        ends = accumulate(map(len, rows), initial=0)
        labels = [found[begin:end] for begin, end in pairwise(ends)]
        return labels[0] if isinstance(vertices, int) else labels

    @property
    def vertices(self) -> VertexIndex:
        """The vertices by label, prepared at the first call."""
        labels = self.labels
        with self._lock:
            if self._index is None:
                from wedgewise.stages.vertex_index import VertexIndex

                self._index = VertexIndex(labels, self.origin.name)
            return self._index

    @property
    def adjacency(self) -> Adjacency:
        """The neighbours of every vertex, prepared at the first call."""
        from wedgewise.prepare.orient import adjacency

        simple = self.simple
        with self._lock:
            if self._adjacency is None:
                self._adjacency = adjacency(simple, threads=hardware.usable_threads())
            return self._adjacency

    @property
    def degrees(self) -> NDArray[np.uint32]:
        """The degree of every vertex."""
        with self._lock:
            if self._simple is not None:
                return self._simple.degrees
            assert self._forms is not None
            if self._degrees is None:
                self._degrees = read_only(self._forms.degrees())
            return self._degrees

    @property
    def paths(self) -> int:
        """Number of paths of two edges: the sum of C(d, 2) over all degrees d."""
        from wedgewise.prepare.orient_arrays import count_wedges

        there = self._forms.simple if self._simple is None and self._forms is not None else None
        return count_wedges(self.degrees if there is None else there.degrees)

    @property
    def edges(self) -> NDArray[np.uint32]:
        """The edges as (m, 2) vertex indices with u < v, in ascending order."""
        simple = self.simple
        with self._lock:
            if self._edges is None:
                self._edges = read_only(simple.edges())
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
        return self._cleaned

    @property
    def nbytes(self) -> int:
        """Bytes held on the host, prepared forms included."""
        with self._lock:
            prepared = sum(oriented.nbytes for oriented in self._oriented.values())
            prepared += sum(positions.nbytes for positions in self._arc_positions.values())
            prepared += sum(part.nbytes for part in (self._index, self._adjacency) if part is not None)
            edges = 0 if self._edges is None else self._edges.nbytes
        held = sum(part.nbytes for part in (self._simple, self.attributes) if part is not None)
        return held + prepared + edges

    @property
    def device_nbytes(self) -> int:
        """Bytes held on a GPU."""
        return 0 if self._forms is None else self._forms.nbytes

    def oriented(
        self, order: str = "degree", relabelling: str = "rank", *, threads: int | None = None
    ) -> OrientedGraph:
        """The oriented form, prepared at the first call and kept until `release`."""
        from wedgewise.prepare.orient import orient, relabel

        if (made := self._oriented.get((order, relabelling))) is not None:
            return made
        simple = self.simple
        with self._lock:
            threads = hardware.granted_threads(threads)
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
        from wedgewise.prepare.orient import arcs_of_edges

        key = (oriented.order, oriented.named_by)
        threads = hardware.granted_threads(threads)
        simple = self.simple
        with self._lock:
            if key not in self._arc_positions:
                self._arc_positions[key] = read_only(arcs_of_edges(simple, oriented, threads=threads))
                self.preparations += 1
            return self._arc_positions[key]

    @property
    def device_forms(self) -> DeviceForms:
        """What the graph holds on the GPU."""
        with self._lock:
            if self._forms is None:
                from wedgewise.prepare.device_forms import DeviceForms

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
        from wedgewise.read.objects.foreign import as_array

        given = as_array(edges, "edges")
        if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
            raise InputError(f"edges are numbers of edges, not {given.dtype} of shape {given.shape}")
        numbers = given.astype(np.uint64 if given.dtype.kind == "u" else np.int64)  # a copy: others may write to those
        if numbers.size and not 0 <= int(numbers.min()) <= int(numbers.max()) < self.m:
            raise InputError(f"edges are numbered 0 … {self.m - 1:,}, not {numbers.min():,} … {numbers.max():,}")
        ends = self.edges[numbers.astype(np.int64)]
        kept = np.unique(ends)
        pairs, names = np.searchsorted(kept, ends).astype(np.uint32), pick_labels(self.labels, kept)
        return Graph(EdgeList(pairs, self.origin, vertices=len(kept), names=names), device="cpu")

    def release(self) -> None:
        """Give the prepared forms' memory back; the next question prepares again."""
        with self._lock:
            self._forget()
        self.release_device()

    def release_device(self) -> None:
        """Give back what was prepared on the GPU."""
        with self._lock:
            if self._forms is not None:
                self._forms.release()

    def __len__(self) -> int:
        return self.n

    def __contains__(self, label: object) -> bool:
        return label in self.vertices

    def __getstate__(self) -> dict[str, Any]:
        """The graph without what it prepared; one that lies on a GPU comes to the host."""
        simple = self.simple
        kept = ("attributes", "cleaning_note", "origin", "_n", "_m", "_cleaned")
        return {"_simple": simple, **{name: getattr(self, name) for name in kept}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._simple = replace(state["_simple"])  # arrays that were copied can be written to
        self.attributes = None if self.attributes is None else replace(self.attributes)
        self._forms = self._degrees = None
        self.is_ranked = False
        self.preparations = 0
        self._lock = threading.Lock()
        self._forget()

    def __repr__(self) -> str:
        return f"Graph({self.origin.name!r}, n={self.n}, m={self.m})"

    _repr_html_ = notebook.graph_html


def refuse_reading(keywords: Iterable[str]) -> None:
    """Refuse keywords of `Graph` in a question about one."""
    said = ", ".join(f"{name}=…" for name in keywords if name in GRAPH_KEYWORDS)
    if said:
        raise InputError(f"{said}: these are options of Graph; pass wedgewise.Graph(data, {said})")
