"""wedgewise as one of the systems under comparison, on the CPU, on a GPU, or on both."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray


COMPUTED = {"clustering": "triangles", "transitivity": "count"}
"""What an algorithm computes for a question, where that has another name."""

ORIENTING = ("order", "relabel")
"""Settings of a way that are none of its algorithm's knobs: how the graph is oriented, by the keywords of `run`."""

STAGES = {
    **dict.fromkeys(("read and clean", "clean", "orient", "orient and cut", "prepare"), "prepare"),
    **dict.fromkeys(("kernel", "count", "truss"), "kernel"),
    "copy": "copy",
    "answer": "answer",
}
"""The stages of a `Result` by those of a record."""


def parted(settings: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings of a way: the knobs of its algorithm, and how the graph is oriented."""
    knobs = {name: value for name, value in settings.items() if name not in ORIENTING}
    return knobs, {name: value for name, value in settings.items() if name in ORIENTING}


class Columns(NamedTuple):
    """The vertices and edges of a Graph in the order of its answers."""

    ids: NDArray[Any]
    degrees: NDArray[Any]
    first: NDArray[Any]
    second: NDArray[Any]


class Wedgewise:
    """Our own engine through its public interface; knobs are passed on to the algorithm, `ORIENTING` to `run`.

    The first question, which is not timed, prepares the Graph for those that follow. A count of a graph that lies on a
    GPU is its kernels alone, by the events of the device.
    """

    name: ClassVar[str] = "wedgewise"
    package: ClassVar[str] = "wedgewise"
    algorithms: ClassVar[tuple[str, ...]] = ("auto",)
    warms_up: ClassVar[bool] = True
    devices: ClassVar[tuple[str, ...]] = ("cpu", "cuda", "hybrid")

    def __init__(self, algorithm: str, threads: int, knobs: dict[str, Any], device: str = "cpu") -> None:
        own, self.orienting = parted(knobs)
        self.algorithm, self.threads, self.knobs, self.device = algorithm, threads, own or None, device
        self.how = {"device": device, "algorithm": algorithm, "threads": threads, "knobs": self.knobs, **self.orienting}
        self.preparing = self.prepared_in = 0.0
        self.sent_bytes: int | None = 0
        self.result: Any = None
        self.kernels: Any = None
        self.rounds: Any = None
        self.peak: Any = None

    def load(self) -> None:
        import wedgewise

        self.ww: Any = wedgewise
        if self._needs_device and self.why_unavailable() is None:
            from wedgewise.machine import gpu
            from wedgewise_bench.kernels import DevicePeak

            self.peak = DevicePeak(gpu.find_devices() if self.device == "hybrid" else [gpu.find_device()])

    def why_unavailable(self) -> str | None:
        """Why there is no GPU here, where one is needed; the hybrid may be told to count on threads alone."""
        from wedgewise.machine import gpu

        return gpu.why_no_device() if self._needs_device else None

    @property
    def _needs_device(self) -> bool:
        return self.device != "cpu" and (self.knobs or {}).get("places") != "cpu"

    def prepare(self, pairs: NDArray[Any]) -> Any:
        self.sent_bytes = pairs.nbytes
        return self._made(self.ww.Graph, pairs)

    def prepare_file(self, path: str) -> Any:
        self.sent_bytes = None  # pairs of a file are copied as they are parsed
        return self._made(self.ww.read, path)

    def _made(self, make: Any, source: Any) -> Any:
        begin = time.perf_counter()
        graph = make(source, threads=self.threads, device="cuda" if self.device == "cuda" else "cpu")
        self.preparing = time.perf_counter() - begin - graph.device_seconds
        return graph

    def prepare_question(self, question: str, prepared: Any) -> None:
        """Of a count on a GPU, do all but the kernels before anything is timed; those of eager can be timed apart."""
        self.sent_bytes = 0
        if self.device == "cuda" and question == "count":
            from wedgewise_bench.kernels import DeviceCount

            self.kernels = DeviceCount(prepared, self.algorithm, self.knobs, **self.orienting)
        if (self.device, self.algorithm, question) == ("cuda", "eager", "k_truss"):
            from wedgewise_bench.kernels import EagerRounds

            self.rounds = EagerRounds(prepared, self.knobs, **self.orienting)

    def count(self, prepared: Any) -> int:
        found: int = self._answer("count", prepared) if self.kernels is None else self.kernels.launch()
        return found

    def triangles(self, prepared: Any) -> Any:
        return self._answer("triangles", prepared)

    def edge_support(self, prepared: Any) -> Any:
        return self._answer("edge_support", prepared)

    def clustering(self, prepared: Any) -> Any:
        return self._answer("clustering", prepared)

    def transitivity(self, prepared: Any) -> Any:
        return self._answer("transitivity", prepared)

    def list_triangles(self, prepared: Any) -> Any:
        return self._answer("list_triangles", prepared)

    def trussness(self, prepared: Any) -> Any:
        return self._answer("trussness", prepared)

    def max_truss(self, prepared: Any) -> Any:
        return self._answer("max_truss", prepared)

    def k_truss(self, prepared: Any, k: int) -> Any:
        return self._answer("k_truss", prepared, k=k)

    def _answer(self, question: str, prepared: Any, **details: int) -> Any:
        """The answer where it was asked for; one that was found elsewhere or from disk, for want of memory, is none."""
        self.result = self.ww.run(question, prepared, **self.how, **details)
        self.prepared_in, self.preparing = self.preparing, 0.0
        if self.result.device != self.device or "cut" in self.result.seconds:
            raise MemoryError(f"not on {self.device}: {'; '.join(self.result.plan.reasons)}")
        return self.result.answer

    def measured(self) -> dict[str, Any]:
        """Seconds of the latest answer by stage; those of kernels on a GPU are in place of the host's clock."""
        if self.kernels is not None:
            measured: dict[str, Any] = self.kernels.measured()
            return measured
        stages: dict[str, float] = {"prepare": self.prepared_in}
        for name, seconds in self.result.seconds.items():
            stages[STAGES[name]] = stages.get(STAGES[name], 0.0) + seconds
        if self.rounds is not None:
            kernel = self.rounds.seconds(self.result.answer.k)
            stages["prepare"] += max(0.0, stages["kernel"] - kernel)
            stages["kernel"] = kernel
        return {"stages": stages, "edges": self.result.m}

    def facts(self, _prepared: Any) -> dict[str, Any]:
        """Who answered, how much was looked up, copied and held."""
        peak = None if self.peak is None else self.peak.bytes  # before a limit is measured with arrays of its own
        found: dict[str, Any] = self._result_facts() if self.kernels is None else self.kernels.facts()
        return found if peak is None else {**found, "device_peak_bytes": peak}

    def _result_facts(self) -> dict[str, Any]:
        result = self.result
        found: dict[str, Any] = {"chosen": result.algorithm, "vertices": result.n}
        if result.wedges_tested:
            found["wedges_tested"] = result.wedges_tested
        if self.device == "cuda" and self.sent_bytes is not None:
            found["bytes_moved"] = self.sent_bytes + getattr(result.answer, "nbytes", 0)
        if result.timeline is not None:
            found["timeline"] = result.timeline.to_dict()
            found["bytes_moved"] = sum(use.copied_bytes for use in result.timeline.device_uses)
        return found

    def values(self, question: str, prepared: Any, answer: Any) -> Any:
        if question == "max_truss":
            return answer.k, answer.edges
        return answer.edges if question == "k_truss" else answer

    def frame(self, prepared: Any) -> Columns:
        import numpy as np

        return Columns(np.asarray(prepared.labels), prepared.degrees, prepared.edges[:, 0], prepared.edges[:, 1])
