"""wedgewise as one of the systems under comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray


COMPUTED = {"clustering": "triangles", "transitivity": "count"}
"""What an algorithm computes for a question, where that has another name."""


class Columns(NamedTuple):
    """The vertices and edges of a Graph in the order of its answers."""

    ids: NDArray[Any]
    degrees: NDArray[Any]
    first: NDArray[Any]
    second: NDArray[Any]


class Wedgewise:
    """Our own engine through its public interface; knobs are passed on to the algorithm.

    The first question, which is not timed, prepares the Graph for those that follow.
    """

    name: ClassVar[str] = "wedgewise"
    package: ClassVar[str] = "wedgewise"
    algorithms: ClassVar[tuple[str, ...]] = ("auto",)
    warms_up: ClassVar[bool] = True

    def __init__(self, algorithm: str, threads: int, knobs: dict[str, Any]) -> None:
        self.threads = threads
        self.how = {"device": "cpu", "algorithm": algorithm, "threads": threads, "knobs": knobs or None}

    def load(self) -> None:
        import wedgewise

        self.ww: Any = wedgewise

    def prepare(self, pairs: NDArray[Any]) -> Any:
        return self.ww.Graph(pairs, threads=self.threads)

    def prepare_file(self, path: str) -> Any:
        return self.ww.read(path, threads=self.threads)

    def count(self, prepared: Any) -> int:
        answer: int = self.ww.count(prepared, **self.how)
        return answer

    def triangles(self, prepared: Any) -> Any:
        return self.ww.triangles(prepared, **self.how)

    def edge_support(self, prepared: Any) -> Any:
        return self.ww.edge_support(prepared, **self.how)

    def clustering(self, prepared: Any) -> Any:
        return self.ww.clustering(prepared, **self.how)

    def transitivity(self, prepared: Any) -> Any:
        return self.ww.transitivity(prepared, **self.how)

    def list_triangles(self, prepared: Any) -> Any:
        return self.ww.list_triangles(prepared, **self.how)

    def trussness(self, prepared: Any) -> Any:
        return self.ww.trussness(prepared, **self.how)

    def max_truss(self, prepared: Any) -> Any:
        return self.ww.max_truss(prepared, **self.how)

    def k_truss(self, prepared: Any, k: int) -> Any:
        return self.ww.k_truss(prepared, k, **self.how)

    def values(self, question: str, prepared: Any, answer: Any) -> Any:
        if question == "max_truss":
            return answer.k, answer.edges
        return answer.edges if question == "k_truss" else answer

    def frame(self, prepared: Any) -> Columns:
        import numpy as np

        return Columns(np.asarray(prepared.labels), prepared.degrees, prepared.edges[:, 0], prepared.edges[:, 1])
