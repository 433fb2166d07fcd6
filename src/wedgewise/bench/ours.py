"""wedgewise as one of the systems under comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Wedgewise:
    """Our own engine through its public interface; knobs are passed on to the algorithm."""

    name: ClassVar[str] = "wedgewise"
    package: ClassVar[str] = "wedgewise"
    algorithms: ClassVar[tuple[str, ...]] = ("auto",)

    def __init__(self, algorithm: str, threads: int, knobs: dict[str, Any]) -> None:
        self.algorithm = algorithm
        self.threads = threads
        self.knobs = knobs or None

    def load(self) -> None:
        import wedgewise

        self.ww: Any = wedgewise

    def prepare(self, pairs: NDArray[Any]) -> Any:
        return self.ww.Graph(pairs, threads=self.threads)

    def prepare_file(self, path: str) -> Any:
        return self.ww.read(path, threads=self.threads)

    def count(self, prepared: Any) -> int:
        answer: int = self.ww.count(
            prepared, device="cpu", algorithm=self.algorithm, threads=self.threads, knobs=self.knobs
        )
        return answer
