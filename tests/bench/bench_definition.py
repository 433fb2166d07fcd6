"""A peer that answers by the definition, from a dense adjacency matrix: a second opinion on small graphs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, ClassVar


class Definition:
    """Triangles of vertices and edges by products of the matrix, trusses by letting edges go one level at a time."""

    name: ClassVar[str] = "definition"
    package: ClassVar[str] = "numpy"
    algorithms: ClassVar[tuple[str, ...]] = ("matrix",)
    warms_up: ClassVar[bool] = False

    def __init__(self, algorithm: str, threads: int, knobs: dict[str, Any]) -> None:
        pass

    def load(self) -> None:
        import numpy

        self.np: Any = numpy

    def prepare(self, pairs: Any) -> Any:
        np = self.np
        ids, ends = np.unique(pairs, return_inverse=True)
        first, second = ends.reshape(-1, 2).T
        matrix = np.zeros((len(ids), len(ids)), np.int64)
        matrix[first, second] = matrix[second, first] = 1
        np.fill_diagonal(matrix, 0)
        low, high = np.nonzero(np.triu(matrix))
        return SimpleNamespace(ids=ids, degrees=matrix.sum(axis=1), first=low, second=high, matrix=matrix)

    def count(self, prepared: Any) -> int:
        return int(self.triangles(prepared).sum()) // 3

    def triangles(self, prepared: Any) -> Any:
        matrix = prepared.matrix
        return (matrix @ matrix * matrix).sum(axis=1) // 2

    def edge_support(self, prepared: Any) -> Any:
        matrix = prepared.matrix
        return (matrix @ matrix)[prepared.first, prepared.second]

    def trussness(self, prepared: Any) -> Any:
        np, living, k = self.np, prepared.matrix.copy(), 2
        numbers = np.full_like(living, 2)
        while living.any():
            kept = living * (living @ living >= k - 1)
            if (kept == living).all():
                k += 1
                numbers[living > 0] = k
            living = kept
        return numbers[prepared.first, prepared.second]

    def values(self, question: str, prepared: Any, answer: Any) -> Any:
        return answer

    def frame(self, prepared: Any) -> Any:
        return prepared
