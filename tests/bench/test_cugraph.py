"""cuGraph as a peer, with a fake of its library and of CuPy: what it is asked, and what becomes of its answers."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import wedgewise as ww
from bench.canned_cells import make_record
from wedgewise_bench import child, cugraph, ours
from wedgewise_bench.graphs import BenchGraph, prepare
from wedgewise_bench.suite_files import declared_suites
from wedgewise_bench.systems import all_systems
from wedgewise_bench.table import lines_of

PAIRS = np.random.default_rng(5).integers(0, 40, size=(300, 2), dtype=np.int32)


class There(np.ndarray[Any, np.dtype[Any]]):
    """An array that one has to get."""

    def get(self) -> NDArray[Any]:
        return np.array(self)


class CUDARuntimeError(RuntimeError):
    pass


def fake_cupy(devices: int = 1) -> ModuleType:
    """NumPy whose arrays are There."""

    def count_devices() -> int:
        if not devices:
            raise CUDARuntimeError("no driver")
        return devices

    class Fake(ModuleType):
        def __getattr__(self, name: str) -> Any:
            found = getattr(np, name)
            return there(found) if callable(found) and not isinstance(found, type) else found

    fake = Fake("cupy")
    runtime = SimpleNamespace(getDeviceCount=count_devices, CUDARuntimeError=CUDARuntimeError)
    fake.cuda = SimpleNamespace(runtime=runtime, Device=lambda: SimpleNamespace(synchronize=lambda: None))  # type: ignore[attr-defined]
    return fake


def there(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def wrapped(*arguments: Any, **options: Any) -> Any:
        found = function(*arguments, **options)
        return found.view(There) if isinstance(found, np.ndarray) else found

    return wrapped


def fake_library() -> ModuleType:
    """Answers by the definition, for vertices that have an edge, in an order of its own."""

    def graph(handle: str, properties: dict[str, bool], first: There, second: There, **options: bool) -> NDArray[Any]:
        assert properties == {"is_symmetric": True, "is_multigraph": False}
        assert options == {"store_transposed": False, "renumber": True, "do_expensive_check": False}
        assert first.dtype == second.dtype == np.int32
        matrix = np.zeros((41, 41), np.int64)
        np.add.at(matrix, (first, second), 1)
        assert (matrix == matrix.T).all()
        assert matrix.max() == 1
        assert not matrix.diagonal().any()
        return matrix

    def triangle_count(handle: str, matrix: NDArray[Any], start: None, check: bool) -> tuple[Any, Any]:
        vertices = np.flatnonzero(matrix.sum(axis=0))[::-1].astype(np.int32)
        counts = ((matrix @ matrix) * matrix).sum(axis=0) // 2
        return vertices.view(There), counts[vertices].astype(np.int32).view(There)

    def k_truss_subgraph(handle: str, matrix: NDArray[Any], k: int, check: bool) -> tuple[Any, ...]:
        while ((kept := matrix * (matrix @ matrix >= k - 2)) != matrix).any():
            matrix = kept
        first, second = (ends.astype(np.int32).view(There) for ends in np.nonzero(matrix))
        return first, second, None, np.array([0, len(first)]).view(There)

    library = ModuleType("pylibcugraph")
    vars(library).update(
        ResourceHandle=lambda: "handle",
        GraphProperties=dict,
        SGGraph=graph,
        triangle_count=triangle_count,
        k_truss_subgraph=k_truss_subgraph,
    )
    return library


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy())
    monkeypatch.setitem(sys.modules, "pylibcugraph", fake_library())


def last_reports(folder: Path, question: str, module: ModuleType = cugraph, **details: int) -> list[dict[str, Any]]:
    """What the child of a cell says, the end first; wedgewise answers by the reference."""
    graph = prepare(BenchGraph("g", lambda: "mark", lambda: PAIRS, None), folder, as_text=True)
    is_ours = module is not cugraph
    job = {
        "source": module.__file__,
        "name": "wedgewise" if is_ours else "cugraph",
        "algorithm": "reference" if is_ours else "default",
        "threads": 1,
        "knobs": {},
        "device": "cpu" if is_ours else "cuda",
        "question": question,
        "details": details,
        "row": "count",
        "repeats": 1,
        "pairs_path": str(graph.pairs_path),
        "text_path": str(graph.text_path),
    }
    reading, writing = os.pipe()
    child.main(job, writing)
    with os.fdopen(reading) as pipe:
        return [json.loads(line) for line in pipe][::-1]


def answer_of(reports: list[dict[str, Any]]) -> dict[str, Any]:
    return next(line for line in reports if "answer" in line)


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(("question", "details"), [("triangles", {}), ("k_truss", {"k": 4})])
def test_its_answers_are_ours(tmp_path: Path, question: str, details: dict[str, Any]) -> None:
    expected = answer_of(last_reports(tmp_path, question, ours, **details))
    assert answer_of(last_reports(tmp_path, question, **details)) == expected


@pytest.mark.usefixtures("installed")
def test_a_count_is_the_sum_over_corners_and_takes_a_file_too(tmp_path: Path) -> None:
    expected = ww.count(PAIRS, algorithm="reference")
    assert answer_of(last_reports(tmp_path, "count"))["answer"] == expected
    system = cugraph.CuGraph("default", 1, {})
    system.load()
    path = next(tmp_path.glob("*.txt"))
    assert system.count(system.prepare_file(str(path))) == expected


def test_without_the_library_it_is_unavailable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy())
    monkeypatch.setitem(sys.modules, "pylibcugraph", None)
    last = last_reports(tmp_path, "count")[0]
    assert last["failed"] == "unavailable"
    assert "pylibcugraph" in last["message"]


def test_without_a_device_it_is_unavailable_and_the_library_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy(devices=0))
    monkeypatch.setitem(sys.modules, "pylibcugraph", None)
    last = last_reports(tmp_path, "count")[0]
    assert (last["failed"], last["message"]) == ("unavailable", "no CUDA device (no driver)")


def test_it_takes_part_on_a_gpu_alone() -> None:
    assert all_systems()["cugraph"].devices == ("cuda",)
    assert all_systems()["cugraph"].questions == ("count", "triangles", "k_truss")
    suite = declared_suites()["smoke"]
    assert "cugraph" not in {cell.system for matrix in suite.matrices for cell in matrix.cells(["g"])}
    asked = suite.with_systems(["cugraph", "igraph"])
    found = {(cell.system, cell.device) for matrix in asked.matrices for cell in matrix.cells(["g"])}
    assert {("cugraph", "cuda"), ("igraph", "cpu")} <= found


def test_a_peer_on_a_gpu_is_no_rival_of_ours_on_the_cpu() -> None:
    records = [
        make_record("wedgewise", (2.0,)),
        make_record("igraph", (6.0,)),
        make_record("cugraph", (1.0,), device="cuda"),
    ]
    (line,) = lines_of(records, "count")
    assert (line.fastest_peer, line.ratio) == ("igraph", 3.0)
    assert line.seconds("cugraph on cuda") == 1.0
