"""Every question on a real device, from every kind of source: the CPU's answers, again and again, and no leaks."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.graphs import TRIANGLE_QUESTIONS, TRUTHS, fixture_path
from helpers.same_answers import assert_same

import wedgewise as ww
from devices.real_device import held_bytes, needs_device
from wedgewise.errors import PreconditionError
from wedgewise.generate import kronecker
from wedgewise.machine import gpu
from wedgewise.write import edges as write

pytestmark = needs_device
REPEATS = 20
for_every_question = pytest.mark.parametrize("question", TRIANGLE_QUESTIONS)


def dirty_pairs(spread: int = 1) -> Any:
    """Pairs with loops and copies in both directions, in 64 bits."""
    pairs = np.random.default_rng(spread).integers(0, 900, (20_000, 2)) * spread
    pairs[::50, 1] = pairs[::50, 0]
    return pairs


class ByDlpack:
    """An array that says where it lies by DLPack alone."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()


class ByInterface:
    """An array that says where it lies by CUDA's array interface alone."""

    def __init__(self, array: Any) -> None:
        self.__cuda_array_interface__ = array.__cuda_array_interface__
        self._kept = array


WRAPPERS: dict[str, Callable[[Any], Any]] = {"cupy": lambda array: array, "dlpack": ByDlpack, "interface": ByInterface}


@pytest.mark.parametrize("name", TRUTHS)
def test_every_question_on_every_fixture(name: str) -> None:
    here, there = ww.Graph(fixture_path(name), device="cpu"), ww.Graph(fixture_path(name), device="cuda")
    for question in TRIANGLE_QUESTIONS:
        result = ww.run(question, there, device="cuda")
        assert (result.device, result.cleaned) == ("cuda", here.cleaned), question
        assert_same(result.answer, ww.run(question, here, device="cpu").answer)
    assert ww.count(there, device="cuda", verify=True) == TRUTHS[name]["triangles"]


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32])
def test_arrays_of_the_host(dtype: Any) -> None:
    pairs = dirty_pairs().astype(dtype)
    for question in TRIANGLE_QUESTIONS:
        result = ww.run(question, pairs, device="cuda")
        cleaning = {"clean and orient"} if question == "count" else {"clean", "orient"}
        assert {"copy", *cleaning, "prepare", "kernel"} <= set(result.seconds)
        assert_same(result.answer, ww.run(question, pairs, device="cpu").answer)


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize(("dtype", "spread"), [(np.int32, 1), (np.uint32, 1), (np.int64, 1), (np.int64, 10**12)])
def test_arrays_of_the_device(dtype: Any, spread: int, wrapper: str) -> None:
    pairs = dirty_pairs(spread).astype(dtype)
    there = gpu.find_device().xp.asarray(pairs)
    graph, expected = ww.Graph(WRAPPERS[wrapper](there)), ww.Graph(pairs, device="cpu")
    assert (graph.nbytes, graph.cleaned) == (0, expected.cleaned)
    result = ww.run("edge_support", graph, device="cuda")
    assert "copy" not in result.seconds
    assert_same(result.answer, ww.edge_support(expected, device="cpu"))
    assert_same(graph.edges, expected.edges)
    assert np.asarray(graph.labels).tolist() == np.asarray(expected.labels).tolist()
    assert gpu.find_device().download(there).tobytes() == pairs.tobytes()


@pytest.mark.parametrize("suffix", ["txt", "txt.gz", "txt.xz", "npy", "bel"])
def test_files(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"pairs.{suffix}"
    write.write_edges(kronecker(14, seed=3).pairs(), path)
    result = ww.run("triangles", path, device="cuda")
    assert result.device == "cuda"
    assert_same(result.answer, ww.triangles(path, device="cpu"))


def test_text_labels(tmp_path: Path) -> None:
    path = tmp_path / "named.txt"
    path.write_text("".join(f"v{u} v{v}\n" for u, v in dirty_pairs().tolist()))
    graph = ww.Graph(path, device="cuda")
    assert_same(ww.triangles(graph, device="cuda"), ww.triangles(path, device="cpu"))
    assert graph.labels == ww.read(path).labels


def test_listings_in_batches_and_files(tmp_path: Path) -> None:
    graph = ww.Graph(kronecker(10, seed=1).pairs(), device="cuda")
    rows = ww.list_triangles(graph, device="cpu")
    batches = list(ww.iter_triangles(graph, batch=1000, start=77, device="cuda"))
    assert_same(np.concatenate(batches), rows[77:])
    assert ww.write_triangles(graph, tmp_path / "rows.npy", batch=999, device="cuda") == len(rows)
    np.testing.assert_array_equal(np.load(tmp_path / "rows.npy"), np.asarray(graph.labels)[rows])


@for_every_question
def test_repeats_are_identical(question: str) -> None:
    pairs = kronecker(14, seed=1).pairs()
    expected = ww.run(question, pairs, device="cpu").answer
    for _ in range(REPEATS):
        assert_same(ww.run(question, pairs, device="cuda").answer, expected)


@for_every_question
def test_nothing_is_left_behind(question: str) -> None:
    pairs = kronecker(14, seed=1).pairs()

    def held_after() -> int:
        graph = ww.Graph(pairs, device="cuda")
        ww.run(question, graph, device="cuda")
        assert graph.device_nbytes > 0
        del graph
        gc.collect()
        return held_bytes()

    before = held_bytes()
    assert [held_after() for _ in range(3)] == [before] * 3


def test_what_is_held_is_what_is_said() -> None:
    graph = ww.Graph(kronecker(20, seed=1).pairs(), device="cuda")
    graph.on_device()
    before, held = held_bytes(), graph.device_nbytes
    graph.release_device()
    given_back = before - held_bytes()
    assert held - graph.device_nbytes <= given_back <= held - graph.device_nbytes + (8 << 20)


def test_weighted_triangles_are_left_to_the_host() -> None:
    pairs = dirty_pairs()
    graph = ww.Graph(pairs, weights=np.linspace(1, 2, len(pairs)))
    result = ww.run("clustering", graph, device="cuda", weighted=True)
    assert result.device == "cpu"
    assert any("nothing computes weighted_triangles on a GPU" in reason for reason in result.plan.reasons)
    with pytest.raises(PreconditionError, match="polak on cuda does not compute weighted_triangles"):
        ww.clustering(graph, weighted=True, device="cuda", algorithm="polak")
