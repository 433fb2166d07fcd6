"""The other systems, each by the fastest exact path that its Python interface has.

All of them get the help that a knowledgeable user would give, because it was measured to be faster than
the library's own way: duplicates are dropped by one NumPy sort, vertices are renamed by degree in the
direction that suits the library, text is read by pyarrow, and all threads are used where the library has
any. Libraries that offer a clustering coefficient but no count still give the exact count: the coefficient
times its integer denominator lies close to an integer while the count is below 2^50 (53 bits of mantissa),
and `_nearest` refuses anything else.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray


class SimplePairs(NamedTuple):
    """A simple graph's edges as two columns, and the degree of each of its n vertices."""

    first: NDArray[Any]
    second: NDArray[Any]
    degrees: NDArray[Any]

    @property
    def n(self) -> int:
        return len(self.degrees)

    @property
    def wedges(self) -> int:
        return int((self.degrees * (self.degrees - 1) // 2).sum())


class _Peer:
    """What the peers share: their options, and the way from a text file through raw pairs."""

    algorithms: ClassVar[tuple[str, ...]] = ("default",)

    def __init__(self, algorithm: str, threads: int, knobs: dict[str, Any]) -> None:
        self.algorithm = algorithm
        self.threads = threads

    def prepare(self, pairs: NDArray[Any]) -> Any:
        raise NotImplementedError

    def prepare_file(self, path: str) -> Any:
        return self.prepare(read_text_pairs(path, self.threads))


class GraphBLAS(_Peer):
    """SuiteSparse:GraphBLAS; U is the strictly upper adjacency matrix, rows by ascending degree.

    ``saxpy`` computes C⟨U⟩ = U·U, ``dot`` C⟨U⟩ = U·Uᵀ, both over (plus, pair): the fastest two of the
    formulations with L or U, transposed or not, by ascending or descending degree; which of the two wins
    depends on the graph.
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
        return self.library.Matrix.from_coo(edges.first, edges.second, True, nrows=edges.n, ncols=edges.n, dtype=bool)

    def count(self, prepared: Any) -> int:
        right = prepared.T if self.algorithm == "dot" else prepared
        closed = prepared.mxm(right, self.plus_pair).new(mask=prepared.S)
        return int(closed.reduce_scalar(self.plus, allow_empty=False).new().value)


class NetworKit(_Peer):
    """NetworKit's parallel local clustering in ``turbo`` mode: 3 times as fast as TriangleEdgeScore."""

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
        return graph, edges.degrees

    def count(self, prepared: Any) -> int:
        import numpy as np

        graph, degrees = prepared
        local = np.asarray(self.library.centrality.LocalClusteringCoefficient(graph, True).run().scores())
        triangles_at = np.rint(local * (degrees * (degrees - 1) // 2)).astype(np.int64)
        return int(triangles_at.sum()) // 3  # each triangle is seen from its three corners


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
        return self.library.Graph(edges.n, memoryview(table)), edges.wedges  # type: ignore[arg-type]

    def count(self, prepared: Any) -> int:
        graph, wedges = prepared
        return _nearest(graph.transitivity_undirected(mode="zero") * wedges / 3)


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
        return graph, edges.wedges

    def count(self, prepared: Any) -> int:
        graph, wedges = prepared
        return _nearest(self.library.transitivity(graph) * wedges / 3)


class NetworkX(_Peer):
    """NetworkX's own `triangles`, in pure Python."""

    name: ClassVar[str] = "networkx"
    package: ClassVar[str] = "networkx"

    def load(self) -> None:
        import networkx

        self.library = networkx

    def prepare(self, pairs: NDArray[Any]) -> Any:
        edges = simple_pairs(pairs)
        graph = self.library.Graph()
        graph.add_edges_from(zip(edges.first.tolist(), edges.second.tolist(), strict=True))
        return graph

    def count(self, prepared: Any) -> int:
        return int(sum(self.library.triangles(prepared).values())) // 3  # each triangle is seen from its three corners


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


def simple_pairs(pairs: NDArray[Any]) -> SimplePairs:
    """Drop loops and duplicates by one sort of 64-bit keys; columns come out with first < second, sorted."""
    import numpy as np

    low, high = np.minimum(pairs[:, 0], pairs[:, 1]), np.maximum(pairs[:, 0], pairs[:, 1])
    keys = (low.astype(np.uint64) << np.uint64(32) | high.astype(np.uint64))[low != high]
    keys.sort()
    is_new = np.ones(len(keys), bool)
    np.not_equal(keys[1:], keys[:-1], out=is_new[1:])
    keys = keys[is_new]
    first = (keys >> np.uint64(32)).astype(np.int64)
    second = (keys & np.uint64(0xFFFFFFFF)).astype(np.int64)
    n = int(high.max(initial=-1)) + 1
    return SimplePairs(first, second, np.bincount(first, minlength=n) + np.bincount(second, minlength=n))


def renamed_by_degree(edges: SimplePairs, descending: bool) -> SimplePairs:
    """The same graph with vertices numbered by degree, still first < second."""
    import numpy as np

    by_degree = np.argsort(-edges.degrees if descending else edges.degrees, kind="stable")
    rank = np.empty(edges.n, np.int64)
    rank[by_degree] = np.arange(edges.n)
    first, second = rank[edges.first], rank[edges.second]
    return SimplePairs(np.minimum(first, second), np.maximum(first, second), edges.degrees[by_degree])


def _hide(package: str) -> None:
    """Spare a peer the import of an optional package that only the other systems brought along.

    It saves 0.1 to 0.2 s of a fresh process; counting does not need it.
    """
    sys.modules.setdefault(package, None)  # type: ignore[arg-type]


def _nearest(count: float) -> int:
    """The integer that a rounded quotient stands for."""
    whole = round(count)
    if abs(count - whole) > 1e-3 or whole >= 2**50:
        raise ArithmeticError(f"{count!r} does not determine an integer")
    return whole
