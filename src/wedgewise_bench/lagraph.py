"""LAGraph, a C library whose wheel brings its shared objects and no Python functions: called through ctypes.

It is the only one in a registry that finds every k-truss by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from wedgewise_bench.peers import SimplePairs, numbers_of, renamed_by_degree, simple_pairs

if TYPE_CHECKING:
    from numpy.typing import NDArray


class AdjacencyMatrix(NamedTuple):
    """The whole adjacency matrix, and the edges that it was made from."""

    matrix: Any
    edges: SimplePairs


class LAGraph:
    """``LAGraph_ktruss`` and ``LAGraph_allktruss`` on all threads of OpenMP, which the environment sets.

    An answer is a list of pairs, k and a matrix; reading a matrix frees it.
    """

    name: ClassVar[str] = "lagraph"
    package: ClassVar[str] = "lagraph"
    algorithms: ClassVar[tuple[str, ...]] = ("default",)
    warms_up: ClassVar[bool] = False

    def __init__(self, algorithm: str, threads: int, knobs: dict[str, Any]) -> None: ...

    def load(self) -> None:
        import ctypes
        from pathlib import Path

        import lagraph

        self.c: Any = ctypes
        folder = Path(lagraph.get_library_dir())
        self.graphblas, self.lagraph = (
            ctypes.CDLL(str(next(folder.glob(f"lib{stem}.so*"))), mode=ctypes.RTLD_GLOBAL)
            for stem in ("graphblas", "lagraph")
        )
        self._call(self.lagraph.LAGraph_init)

    def prepare(self, pairs: NDArray[Any]) -> AdjacencyMatrix:
        import numpy as np

        edges = renamed_by_degree(simple_pairs(pairs), descending=False)
        rows = np.concatenate([edges.first, edges.second]).astype(np.uint64)
        columns = np.concatenate([edges.second, edges.first]).astype(np.uint64)
        ones = np.ones(len(rows), np.uint32)
        kind, plus = (self.c.c_void_p.in_dll(self.graphblas, f"GrB_{name}UINT32") for name in ("", "PLUS_"))
        matrix, n = self.c.c_void_p(), self.c.c_uint64(edges.n)
        self._call(self.graphblas.GrB_Matrix_new, self.c.byref(matrix), kind, n, n)
        arrays = (array.ctypes.data_as(self.c.c_void_p) for array in (rows, columns, ones))
        self._call(self.graphblas.GrB_Matrix_build_UINT32, matrix, *arrays, self.c.c_uint64(len(rows)), plus)
        return AdjacencyMatrix(matrix, edges)

    def k_truss(self, prepared: AdjacencyMatrix, k: int) -> list[tuple[int, Any]]:
        held = self.c.c_void_p()
        self._call(self.lagraph.LAGraph_ktruss, self.c.byref(held), prepared.matrix, self.c.c_uint32(k), None)
        return [(k, held)]

    def trussness(self, prepared: AdjacencyMatrix) -> list[tuple[int, Any]]:
        length = prepared.edges.n + 1
        held, behind_last = (self.c.c_void_p * length)(), self.c.c_int64()
        totals = [(self.c.c_int64 * length)() for _ in ("triangles", "edges", "steps")]
        self._call(self.lagraph.LAGraph_allktruss, held, prepared.matrix, self.c.byref(behind_last), *totals)
        return [(k, self.c.c_void_p(held[k])) for k in range(3, behind_last.value)]

    def values(self, question: str, prepared: AdjacencyMatrix, answer: list[tuple[int, Any]]) -> NDArray[Any]:
        import numpy as np

        numbers: NDArray[Any] = np.full(len(prepared.edges.first), 2)
        for k, held in answer:
            numbers[numbers_of(prepared.edges, *self._ends(held))] = k
        return np.flatnonzero(numbers > 2) if question == "k_truss" else numbers

    def frame(self, prepared: AdjacencyMatrix) -> SimplePairs:
        return prepared.edges

    def _ends(self, matrix: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """The places of a matrix's entries."""
        import numpy as np

        count = self.c.c_uint64()
        self._call(self.graphblas.GrB_Matrix_nvals, self.c.byref(count), matrix)
        rows, columns = np.empty((2, count.value), np.uint64)
        places = (array.ctypes.data_as(self.c.c_void_p) for array in (rows, columns))
        extract = self.graphblas.GrB_Matrix_extractTuples_UINT32
        self._call(extract, *places, None, self.c.byref(count), matrix)
        self._call(self.graphblas.GrB_Matrix_free, self.c.byref(matrix))
        return rows.astype(np.int64), columns.astype(np.int64)

    def _call(self, function: Any, *arguments: Any) -> None:
        status = function(*arguments)
        if status:
            raise RuntimeError(f"{function.__name__} returned {status}")
