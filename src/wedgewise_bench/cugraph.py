"""cuGraph, NVIDIA's graph library, on a GPU: by pylibcugraph, which takes CuPy's arrays and makes no data frames."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from wedgewise_bench.peers import SimplePairs, numbers_of, read_text_pairs, simple_pairs

if TYPE_CHECKING:
    from numpy.typing import NDArray

LARGEST_INT32 = 2**31 - 1


class DeviceEdges:
    """A graph of the library, and the simple edges on the device that it was made from."""

    def __init__(self, graph: Any, there: SimplePairs) -> None:
        self.graph = graph
        self.there = there

    @cached_property
    def here(self) -> SimplePairs:
        """The same edges in the host's memory."""
        columns: tuple[Any, ...] = (self.there.first, self.there.second, self.there.degrees)
        return SimplePairs(*(column.get() for column in columns))


class CuGraph:
    """Its triangles of every vertex, of which a count is the sum, and its k-truss; answers stay on the device.

    Pairs are made simple there too, and given in both directions, as the library asks for. It renames vertices by
    itself, those with the most neighbours first.
    """

    name: ClassVar[str] = "cugraph"
    package: ClassVar[str] = "pylibcugraph"
    algorithms: ClassVar[tuple[str, ...]] = ("default",)
    warms_up: ClassVar[bool] = True
    devices: ClassVar[tuple[str, ...]] = ("cuda",)

    def __init__(self, algorithm: str, threads: int, knobs: dict[str, Any], device: str = "cuda") -> None:
        self.threads = threads

    def load(self) -> None:
        """Import the library where there is a device: without one its import fails in other ways than a missing one."""
        from importlib import import_module

        import cupy

        self.cupy: Any = cupy
        self.reason: str | None = None
        try:
            cupy.cuda.runtime.getDeviceCount()
        except cupy.cuda.runtime.CUDARuntimeError as error:
            self.reason = f"no CUDA device ({error})"
        else:
            self.library = import_module("pylibcugraph")
            self.handle = self.library.ResourceHandle()

    def why_unavailable(self) -> str | None:
        return self.reason

    def prepare(self, pairs: NDArray[Any]) -> DeviceEdges:
        edges = simple_pairs(self.cupy.asarray(pairs), self.cupy)
        kind = self.cupy.int32 if edges.n <= LARGEST_INT32 else self.cupy.int64
        first, second = edges.first.astype(kind), edges.second.astype(kind)
        graph = self.library.SGGraph(
            self.handle,
            self.library.GraphProperties(is_symmetric=True, is_multigraph=False),
            self.cupy.concatenate([first, second]),
            self.cupy.concatenate([second, first]),
            store_transposed=False,
            renumber=True,
            do_expensive_check=False,
        )
        return DeviceEdges(graph, edges)

    def prepare_file(self, path: str) -> DeviceEdges:
        return self.prepare(read_text_pairs(path, self.threads))

    def count(self, prepared: DeviceEdges) -> int:
        _, counts = self.triangles(prepared)
        return int(counts.sum(dtype=self.cupy.int64)) // 3  # each triangle is seen from its three corners

    def triangles(self, prepared: DeviceEdges) -> tuple[Any, Any]:
        """The vertices that have an edge, and the triangles of each."""
        vertices, counts = self.library.triangle_count(self.handle, prepared.graph, None, False)
        self._wait()
        return vertices, counts

    def k_truss(self, prepared: DeviceEdges, k: int) -> tuple[Any, Any]:
        """Both ends of every edge of the k-truss, in both directions."""
        first, second, *_ = self.library.k_truss_subgraph(self.handle, prepared.graph, k, False)
        self._wait()
        return first, second

    def _wait(self) -> None:
        """Until the device has done what it was asked for."""
        self.cupy.cuda.Device().synchronize()

    def values(self, question: str, prepared: DeviceEdges, answer: tuple[Any, Any]) -> NDArray[Any]:
        import numpy as np

        edges = prepared.here
        first, second = (column.get() for column in answer)
        if question == "k_truss":
            return numbers_of(edges, first, second)
        by_vertex = np.zeros(edges.n, np.int64)
        by_vertex[first] = second
        return by_vertex

    def frame(self, prepared: DeviceEdges) -> SimplePairs:
        return prepared.here
