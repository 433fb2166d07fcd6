"""The other systems, each by the fastest exact path that its Python interface has.

All of them get the help that a knowledgeable user would give, because it was measured to be faster than
the library's own way: duplicates are dropped by one NumPy sort, vertices are renamed by degree in the
direction that suits the library, text is read by pyarrow, and all threads are used where the library has
any. Libraries that offer a clustering coefficient but no count still give the exact count: the coefficient
times its integer denominator lies close to an integer while the count is below 2^50 (53 bits of mantissa),
and `_nearest` refuses anything else.

An answer is what the library hands out: a list, a dict, a sparse matrix, in the order of the renamed
vertices. Turning it into an array in the original order is not timed.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray


class SimplePairs:
    """A simple graph's edges as two columns, and the degree and the original id of each of its n vertices."""

    def __init__(
        self, first: NDArray[Any], second: NDArray[Any], degrees: NDArray[Any], ids: NDArray[Any] | None = None
    ) -> None:
        import numpy as np

        self.first = first
        self.second = second
        self.degrees = degrees
        self.ids = np.arange(len(degrees)) if ids is None else ids

    @property
    def n(self) -> int:
        return len(self.degrees)

    @cached_property
    def wedges_at(self) -> NDArray[Any]:
        """Pairs of edges that meet at each vertex."""
        wedges: NDArray[Any] = self.degrees * (self.degrees - 1) // 2
        return wedges

    @cached_property
    def wedges(self) -> int:
        return int(self.wedges_at.sum())


class Loaded(NamedTuple):
    """A graph in a library's own structure, next to the edges that it was made from."""

    graph: Any
    edges: SimplePairs


class _Peer(ABC):
    """What the peers share: their options, the way from a text file through raw pairs, and from lists to arrays."""

    algorithms: ClassVar[tuple[str, ...]] = ("default",)
    warms_up: ClassVar[bool] = True

    def __init__(self, algorithm: str, threads: int, knobs: dict[str, Any]) -> None:
        self.algorithm = algorithm
        self.threads = threads

    @abstractmethod
    def prepare(self, pairs: NDArray[Any]) -> Any:
        """The library's own structure."""

    def prepare_file(self, path: str) -> Any:
        return self.prepare(read_text_pairs(path, self.threads))

    def values(self, question: str, prepared: Any, answer: Any) -> Any:
        import numpy as np

        return np.asarray(answer)

    def frame(self, prepared: Any) -> SimplePairs:
        edges: SimplePairs = prepared.edges
        return edges


class Matrices:
    """The strictly upper adjacency matrix U; L = Uᵀ and A = U + L from the first question on that needs them."""

    def __init__(self, upper: Any, edges: SimplePairs) -> None:
        self.upper = upper
        self.edges = edges

    @cached_property
    def lower(self) -> Any:
        return self.upper.T.new()

    @cached_property
    def whole(self) -> Any:
        return self.upper.ewise_add(self.lower, "lor").new()


class GraphBLAS(_Peer):
    """SuiteSparse:GraphBLAS; U is the strictly upper adjacency matrix, rows by ascending degree.

    ``saxpy`` counts by C⟨U⟩ = U·U, ``dot`` by C⟨U⟩ = U·Uᵀ, both over (plus, pair): the fastest two of the
    formulations with L or U, transposed or not, by ascending or descending degree; which of the two wins
    depends on the graph.

    For an arc (i, j) of U, U·U counts the triangles whose third vertex lies between i and j, U·Uᵀ those where it lies
    above both, Uᵀ·U those where it lies below both. Of the first, rows belong to lowest and columns to highest corners;
    columns of the second belong to middle ones. With the whole matrix A, rows of C⟨A⟩ = A·U hold each triangle of a
    vertex once. By vertex, ``saxpy`` is A·U and ``dot`` the two products with U; by edge, ``saxpy`` is the sum of the
    three products and ``dot`` C⟨U⟩ = A·Aᵀ: of the formulations that were tried, each is the fastest on some graph.

    A k-truss is what is left when supports are counted and edges of less than k − 2 dropped until nothing changes:
    ``dot`` as LAGraph does it, by C⟨C⟩ = C·Cᵀ on the whole matrix, ``saxpy`` by the three products on the upper one.
    """

    name: ClassVar[str] = "graphblas"
    package: ClassVar[str] = "python-graphblas"
    algorithms: ClassVar[tuple[str, ...]] = ("saxpy", "dot")

    def load(self) -> None:
        _hide("numba")
        import graphblas

        graphblas.init("suitesparse", blocking=True)
        graphblas.ss.config["nthreads"] = self.threads
        self.library = graphblas
        self.plus_pair = graphblas.semiring.plus_pair["INT64"]
        self.plus = graphblas.monoid.plus["INT64"]

    def prepare(self, pairs: NDArray[Any]) -> Any:
        edges = renamed_by_degree(simple_pairs(pairs), descending=False)
        upper = self.library.Matrix.from_coo(edges.first, edges.second, True, nrows=edges.n, ncols=edges.n, dtype=bool)
        return Matrices(upper, edges)

    def count(self, prepared: Any) -> int:
        upper = prepared.upper
        right = upper.T if self.algorithm == "dot" else upper
        closed = upper.mxm(right, self.plus_pair).new(mask=upper.S)
        return int(closed.reduce_scalar(self.plus, allow_empty=False).new().value)

    def triangles(self, prepared: Any) -> Any:
        upper = prepared.upper
        if self.algorithm == "saxpy":
            return self._product(prepared.whole, upper, mask=prepared.whole).reduce_rowwise(self.plus).new()
        between = self._product(upper, prepared.lower.T, mask=upper)
        above = self._product(upper, upper.T, mask=upper)
        ends = between.reduce_rowwise(self.plus).new().ewise_add(between.reduce_columnwise(self.plus).new(), self.plus)
        return ends.new().ewise_add(above.reduce_columnwise(self.plus).new(), self.plus).new()

    def edge_support(self, prepared: Any) -> Any:
        upper, lower = prepared.upper, prepared.lower
        if self.algorithm == "dot":
            return self._product(prepared.whole, prepared.whole.T, mask=upper)
        return self._three_products(upper, lower)

    def k_truss(self, prepared: Any, k: int) -> Any:
        held = prepared.whole if self.algorithm == "dot" else prepared.upper
        while k > 2:
            closed = (
                self._product(held, held.T, mask=held)
                if self.algorithm == "dot"
                else self._three_products(held, held.T.new())
            )
            kept = closed.select(">=", k - 2).new()
            if kept.nvals == held.nvals:
                break
            held = kept
        return held

    def clustering(self, prepared: Any) -> Any:
        return _coefficients(self.triangles(prepared).to_dense(fill_value=0), prepared.edges)

    def transitivity(self, prepared: Any) -> float:
        return _share(3 * self.count(prepared), prepared.edges)

    def values(self, question: str, prepared: Any, answer: Any) -> Any:
        if question == "triangles":
            return answer.to_dense(fill_value=0)
        if question == "edge_support":
            return _along_edges(prepared.edges, *answer.to_coo())
        if question == "k_truss":
            first, second, _ = answer.to_coo(values=False)
            return numbers_of(prepared.edges, first, second)
        return answer

    def _three_products(self, upper: Any, lower: Any) -> Any:
        """The triangles of every arc, by where their third vertex lies."""
        between = self._product(upper, upper, mask=upper)
        above = self._product(upper, lower, mask=upper)
        below = self._product(lower, upper, mask=upper)
        return between.ewise_add(above, self.plus).new().ewise_add(below, self.plus).new()

    def _product(self, left: Any, right: Any, mask: Any) -> Any:
        """The masked product over (plus, pair)."""
        return left.mxm(right, self.plus_pair).new(mask=mask.S)


class NetworKit(_Peer):
    """NetworKit's parallel local clustering in ``turbo`` mode: 3 times as fast as TriangleEdgeScore.

    Its own transitivity, `ClusteringCoefficient.exactGlobal`, takes 5 times as long as adding the local ones up.
    """

    name: ClassVar[str] = "networkit"
    package: ClassVar[str] = "networkit"

    def load(self) -> None:
        _hide("networkx")
        import networkit

        networkit.setNumberOfThreads(self.threads)
        self.library = networkit

    def prepare(self, pairs: NDArray[Any]) -> Any:
        import numpy as np

        edges = renamed_by_degree(simple_pairs(pairs), descending=False)
        coordinates = edges.first.astype(np.uint64), edges.second.astype(np.uint64)
        graph = self.library.GraphFromCoo(coordinates, n=edges.n, weighted=False, directed=False)
        graph.sortEdges()
        return Loaded(graph, edges)

    def count(self, prepared: Any) -> int:
        return int(self.triangles(prepared).sum()) // 3  # each triangle is seen from its three corners

    def triangles(self, prepared: Any) -> Any:
        return _counts(self.clustering(prepared), prepared.edges)

    def edge_support(self, prepared: Any) -> Any:
        if not prepared.graph.hasEdgeIds():
            prepared.graph.indexEdges()
        return self.library.sparsification.TriangleEdgeScore(prepared.graph).run().scores()

    def clustering(self, prepared: Any) -> Any:
        return self.library.centrality.LocalClusteringCoefficient(prepared.graph, True).run().scores()

    def transitivity(self, prepared: Any) -> float:
        return _share(int(self.triangles(prepared).sum()), prepared.edges)

    def values(self, question: str, prepared: Any, answer: Any) -> Any:
        if question == "edge_support":  # edges are numbered by their higher end, then by their lower one
            import numpy as np

            along = np.empty(len(answer), np.int64)
            along[np.lexsort((prepared.edges.first, prepared.edges.second))] = answer
            return along
        return super().values(question, prepared, answer)


class Igraph(_Peer):
    """igraph has no count in Python: its transitivity is 20 times as fast as listing; one thread."""

    name: ClassVar[str] = "igraph"
    package: ClassVar[str] = "igraph"

    def load(self) -> None:
        import igraph

        self.library = igraph

    def prepare(self, pairs: NDArray[Any]) -> Any:
        import numpy as np

        edges = renamed_by_degree(simple_pairs(pairs), descending=True)
        table = np.ascontiguousarray(np.stack([edges.first, edges.second], axis=1), dtype=np.int64)
        return Loaded(self.library.Graph(edges.n, memoryview(table)), edges)  # type: ignore[arg-type]

    def count(self, prepared: Any) -> int:
        return _nearest(self.transitivity(prepared) * prepared.edges.wedges / 3)

    def triangles(self, prepared: Any) -> Any:
        return _counts(self.clustering(prepared), prepared.edges)

    def clustering(self, prepared: Any) -> Any:
        return prepared.graph.transitivity_local_undirected(mode="zero")

    def transitivity(self, prepared: Any) -> float:
        transitivity: float = prepared.graph.transitivity_undirected(mode="zero")
        return transitivity

    def list_triangles(self, prepared: Any) -> Any:
        return prepared.graph.list_triangles()


class Rustworkx(_Peer):
    """rustworkx has no count either: its transitivity, which uses all threads."""

    name: ClassVar[str] = "rustworkx"
    package: ClassVar[str] = "rustworkx"

    def load(self) -> None:
        import rustworkx

        self.library = rustworkx

    def prepare(self, pairs: NDArray[Any]) -> Any:
        edges = renamed_by_degree(simple_pairs(pairs), descending=False)
        graph = self.library.PyGraph(multigraph=True)  # the edges are simple: no need to look for parallel ones
        graph.add_nodes_from(range(edges.n))
        graph.add_edges_from_no_data(list(zip(edges.first.tolist(), edges.second.tolist(), strict=True)))
        return Loaded(graph, edges)

    def count(self, prepared: Any) -> int:
        return _nearest(self.transitivity(prepared) * prepared.edges.wedges / 3)

    def transitivity(self, prepared: Any) -> float:
        transitivity: float = self.library.transitivity(prepared.graph)
        return transitivity


class NetworkX(_Peer):
    """NetworkX's own functions, in pure Python: no backend, whatever the user's settings prefer."""

    name: ClassVar[str] = "networkx"
    package: ClassVar[str] = "networkx"
    warms_up: ClassVar[bool] = False

    def load(self) -> None:
        import networkx

        networkx.config.backend_priority = []
        self.library = networkx

    def prepare(self, pairs: NDArray[Any]) -> Any:
        edges = simple_pairs(pairs)
        graph = self.library.Graph()
        graph.add_edges_from(zip(edges.first.tolist(), edges.second.tolist(), strict=True))
        return Loaded(graph, edges)

    def count(self, prepared: Any) -> int:
        return int(sum(self.triangles(prepared).values())) // 3  # each triangle is seen from its three corners

    def triangles(self, prepared: Any) -> Any:
        return self.library.triangles(prepared.graph)

    def clustering(self, prepared: Any) -> Any:
        return self.library.clustering(prepared.graph)

    def transitivity(self, prepared: Any) -> float:
        transitivity: float = self.library.transitivity(prepared.graph)
        return transitivity

    def list_triangles(self, prepared: Any) -> Any:
        return list(self.library.all_triangles(prepared.graph))

    def k_truss(self, prepared: Any, k: int) -> Any:
        return self.library.k_truss(prepared.graph, k)

    def values(self, question: str, prepared: Any, answer: Any) -> Any:
        import numpy as np

        if question == "k_truss":
            ends = np.array(list(answer.edges), np.int64).reshape(-1, 2)
            return numbers_of(prepared.edges, ends[:, 0], ends[:, 1])
        if not isinstance(answer, dict):
            return super().values(question, prepared, answer)
        by_id = np.zeros(prepared.edges.n)
        by_id[list(answer)] = list(answer.values())
        return by_id if question == "clustering" else by_id.astype(np.int64)


def read_text_pairs(path: str, threads: int) -> NDArray[Any]:
    """Two integer columns by pyarrow: the fastest of pyarrow, polars, pandas and the peers' own."""
    import numpy as np
    import pyarrow
    from pyarrow import csv

    pyarrow.set_cpu_count(threads)
    names = ["first", "second"]
    table = csv.read_csv(
        path,
        read_options=csv.ReadOptions(column_names=names),
        parse_options=csv.ParseOptions(delimiter=" "),
        convert_options=csv.ConvertOptions(column_types=dict.fromkeys(names, pyarrow.int64())),
    )
    return np.stack([table[name].to_numpy() for name in names]).T


def simple_pairs(pairs: NDArray[Any], xp: Any = None) -> SimplePairs:
    """Drop loops and duplicates by one sort of 64-bit keys; columns come out with first < second, sorted.

    On a device where `xp` is CuPy, to which the pairs belong then.
    """
    import numpy

    np = numpy if xp is None else xp
    low, high = np.minimum(pairs[:, 0], pairs[:, 1]), np.maximum(pairs[:, 0], pairs[:, 1])
    keys = (low.astype(np.uint64) << np.uint64(32) | high.astype(np.uint64))[low != high]
    keys.sort()
    is_new = np.ones(len(keys), bool)
    np.not_equal(keys[1:], keys[:-1], out=is_new[1:])
    keys = keys[is_new]
    first = (keys >> np.uint64(32)).astype(np.int64)
    second = (keys & np.uint64(0xFFFFFFFF)).astype(np.int64)
    n = int(high.max()) + 1 if len(high) else 0
    degrees = np.bincount(first, minlength=n) + np.bincount(second, minlength=n)
    return SimplePairs(first, second, degrees)


def renamed_by_degree(edges: SimplePairs, descending: bool) -> SimplePairs:
    """The same graph with vertices numbered by degree, still first < second."""
    import numpy as np

    by_degree = np.argsort(-edges.degrees if descending else edges.degrees, kind="stable")
    rank = np.empty(edges.n, np.int64)
    rank[by_degree] = np.arange(edges.n)
    first, second = rank[edges.first], rank[edges.second]
    low, high = np.minimum(first, second), np.maximum(first, second)
    return SimplePairs(low, high, edges.degrees[by_degree], edges.ids[by_degree])


def _hide(package: str) -> None:
    """Spare a peer the import of an optional package that only the other systems brought along.

    It saves 0.1 to 0.2 s of a fresh process; counting does not need it.
    """
    sys.modules.setdefault(package, None)  # type: ignore[arg-type]


def _counts(coefficients: Any, edges: SimplePairs) -> NDArray[Any]:
    """The triangles of every vertex, from its clustering coefficient."""
    import numpy as np

    counts: NDArray[Any] = np.rint(np.asarray(coefficients) * edges.wedges_at).astype(np.int64)
    return counts


def _coefficients(triangles: NDArray[Any], edges: SimplePairs) -> NDArray[Any]:
    """The clustering coefficient of every vertex, from its triangles."""
    import numpy as np

    coefficients: NDArray[Any] = triangles / np.maximum(edges.wedges_at, 1)
    return coefficients


def _share(closed: int, edges: SimplePairs) -> float:
    """The transitivity, from the number of closed wedges."""
    return closed / max(edges.wedges, 1)


def _along_edges(edges: SimplePairs, first: NDArray[Any], second: NDArray[Any], numbers: Any) -> NDArray[Any]:
    """Numbers of the edges (first, second) in the order of `edges`; those that are not listed have zero."""
    import numpy as np

    width = np.int64(edges.n)
    keys, wanted = first.astype(np.int64) * width + second.astype(np.int64), edges.first * width + edges.second
    by_key = np.argsort(wanted)
    along = np.zeros(len(wanted), np.int64)
    along[by_key[np.searchsorted(wanted, keys, sorter=by_key)]] = numbers
    return along


def numbers_of(edges: SimplePairs, first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
    """Which of the edges join these ends, in either direction; ascending, each once."""
    import numpy as np

    numbers: NDArray[Any] = np.flatnonzero(_along_edges(edges, np.minimum(first, second), np.maximum(first, second), 1))
    return numbers


def _nearest(count: float) -> int:
    """The integer that a rounded quotient stands for."""
    whole = round(count)
    if abs(count - whole) > 1e-3 or whole >= 2**50:
        raise ArithmeticError(f"{count!r} does not determine an integer")
    return whole
