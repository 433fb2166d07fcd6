"""A real device at its limits: little memory, a kernel's fault, 2^31 arcs and more, and the length of launches."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.same_answers import assert_same

import wedgewise as ww
from devices.real_device import for_every_algorithm, needs_device
from devices.taken_memory import left
from wedgewise.algorithms import find
from wedgewise.algorithms._contract import Algorithm, Shape
from wedgewise.errors import DeviceMemoryError, PreconditionError
from wedgewise.generate import kronecker
from wedgewise.machine import gpu
from wedgewise.run.choose import BATCHES, MAX_BATCHES
from wedgewise.run.device import launch_all
from wedgewise.stages import DeviceGraph

pytestmark = needs_device
KEYSTONE: dict[str, Any] = {"device": "cuda", "algorithm": "keystone"}
MAX_SECONDS = 0.25  # of a launch
PAGES = 1_100_000_000  # 2.2e9 arcs
ROOM = 1 << 30  # for what is made and given back while the book is written


@pytest.fixture(scope="module")
def graph() -> ww.Graph:
    return ww.Graph(kronecker(18, seed=1).pairs())


@pytest.fixture(scope="module")
def triangles(graph: ww.Graph) -> int:
    return ww.count(graph, device="cpu")


def needed(graph: ww.Graph, batches: int) -> int:
    """What keystone takes to count beyond the oriented graph."""
    return ww.explain("count", graph, **KEYSTONE, knobs={BATCHES: batches}).bytes_needed


@pytest.mark.parametrize("batches", [2, 8])
def test_little_memory_takes_batches(batches: int, graph: ww.Graph, triangles: int) -> None:
    graph.on_device()
    with left((needed(graph, batches) + needed(graph, batches // 2)) // 2):
        result = ww.run("count", graph, **KEYSTONE)
    assert (result.answer, result.device) == (triangles, "cuda")
    assert int(result.plan.knobs[BATCHES]) >= batches  # more if the rest lies in pieces
    assert any(f"in {batches} batches, for " in reason for reason in result.plan.reasons)


@pytest.mark.parametrize("question", ["count", "triangles", "edge_support"])
def test_less_memory_leaves_it_to_the_host(question: str, graph: ww.Graph) -> None:
    graph.on_device()
    expected = ww.run(question, graph, device="cpu").answer
    with left(24 << 20):
        result = ww.run(question, graph, **KEYSTONE)
    assert result.device == "cpu"
    assert any(reason.startswith("on the CPU, because the GPU has too little memory") for reason in result.plan.reasons)
    assert_same(result.answer, expected)
    again = ww.run(question, graph, **KEYSTONE)
    assert again.device == "cuda"
    assert_same(again.answer, expected)


def test_pairs_that_cannot_be_cleaned_there(triangles: int, tmp_path: Path) -> None:
    pairs = kronecker(18, seed=1).pairs()
    np.save(tmp_path / "pairs.npy", pairs)
    for source in (pairs, tmp_path / "pairs.npy"):
        with left(24 << 20):
            result = ww.run("count", source, device="cuda")
        assert (result.answer, result.device) == (triangles, "cpu")
    with left(24 << 20), (tmp_path / "pairs.npy").open("rb") as stream, pytest.raises(DeviceMemoryError, match="free"):
        ww.count(stream, device="cuda")


def test_memory_that_is_not_there_after_all(graph: ww.Graph, triangles: int, monkeypatch: pytest.MonkeyPatch) -> None:
    graph.on_device()
    monkeypatch.setattr(gpu.find_device(), "free_bytes", lambda: 1 << 40)
    with left(24 << 20):
        result = ww.run("count", graph, **KEYSTONE)
    assert (result.answer, result.device) == (triangles, "cpu")
    assert any(reason.startswith("on the CPU, because the GPU has too little memory") for reason in result.plan.reasons)


LOSE_THE_DEVICE = """
import os, pathlib, sys
import wedgewise as ww
from wedgewise.errors import DeviceError
from wedgewise.machine import gpu

def message(act):
    try:
        act()
    except DeviceError as error:
        return str(error)
    return "no error"

def overrun():
    gpu.KERNEL_FOLDER = pathlib.Path(sys.argv[1])
    with device.memory():
        device.launch("faulty", "overrun", 1, 32, (device.xp.zeros(1, device.xp.uint32),))
        device.synchronize()

device, folder = gpu.find_device(), gpu.KERNEL_FOLDER
print(message(overrun))
gpu.KERNEL_FOLDER = folder
print(message(lambda: ww.count([(0, 1), (1, 2), (2, 0)], device="cuda")))
print(ww.count([(0, 1), (1, 2), (2, 0)], device="cpu"), flush=True)
os._exit(0)  # nothing of a lost device can be given back
"""


def test_a_lost_device_is_one_clear_error(tmp_path: Path) -> None:
    fault = 'extern "C" __global__ void overrun(unsigned* values) { values[1ull << 42] = 1; }\n'
    (tmp_path / "faulty.cu").write_text(fault)
    child = [sys.executable, "-W", "ignore", "-c", LOSE_THE_DEVICE, str(tmp_path)]
    finished = subprocess.run(child, capture_output=True, text=True, check=False, timeout=120)
    assert finished.returncode == 0, finished.stderr
    first, second, counted = finished.stdout.splitlines()
    for said in (first, second):
        assert said.startswith(f"{gpu.find_device().name} failed: ")
        assert said.endswith("; start a new process, and use device='cpu' if it happens again")
    assert "illegal" in first.lower()
    assert counted == "1"


def test_launches_are_short() -> None:
    device, keystone = gpu.find_device(), find("keystone", "cuda")
    graph = ww.Graph(kronecker(20, seed=1).pairs(), device="cuda")
    for computes in keystone.answers:
        with device.memory():
            work = keystone.on_device(computes).prepare(graph.on_device(), keystone.settings(None), device)
            launch_all(work, device)  # compiles
            taken = []
            for batch in work.batches:
                for launch in batch():
                    device.synchronize()
                    begin = time.perf_counter()
                    launch()
                    device.synchronize()
                    taken.append(time.perf_counter() - begin)
            del work
        assert max(taken) < MAX_SECONDS, computes


def written_book(pages: int, device: gpu.Cuda) -> DeviceGraph:
    """Pages of two arcs each, to both ends of the spine, which is one arc more; offsets of 64 bits."""
    xp = device.xp
    offsets = xp.arange(pages + 3, dtype=xp.uint64)
    offsets *= np.uint64(2)
    offsets[pages + 1 :] = 2 * pages + 1
    heads = xp.empty(2 * pages + 1, xp.uint32)
    heads[0::2] = pages
    heads[1::2] = pages + 1
    heads[2 * pages] = pages + 1
    return DeviceGraph(pages + 2, offsets, heads, xp.empty(0, xp.uint32), "degree", "rank", pages)


def fitting_knobs(record: Algorithm, shape: Shape, free: int) -> dict[str, int | str] | None:
    """The defaults, in as few batches as there is room for; None where there is none."""
    knobs = record.settings(None)
    while record.on_device("count").bytes_needed(shape, knobs) > free:
        if int(knobs.get(BATCHES, MAX_BATCHES)) >= MAX_BATCHES:
            return None
        knobs = {**knobs, BATCHES: 2 * int(knobs[BATCHES])}
    return knobs


@pytest.mark.parametrize("pages", [1000, PAGES])
@for_every_algorithm
def test_books_with_offsets_of_64_bits(record: Algorithm, pages: int) -> None:
    device = gpu.find_device()
    shape = Shape(pages + 2, 2 * pages + 1, pages)
    wanted = 8 * shape.n + 4 * shape.m + ROOM
    if device.free_bytes() < wanted:
        pytest.skip(f"{wanted:,} bytes are needed for the graph, {device.free_bytes():,} are free")
    with device.memory():
        graph = written_book(pages, device)
        if graph.m >= record.most_arcs:
            with pytest.raises(PreconditionError, match="arcs"):
                record.on_device("count").prepare(graph, record.settings(None), device)
            return
        knobs = fitting_knobs(record, shape, device.free_bytes())
        if knobs is None:
            pytest.skip(f"{record.name} needs more than {device.free_bytes():,} bytes beside the graph")
        work = record.on_device("count").prepare(graph, knobs, device)
        launch_all(work, device)
        assert int(work.found[0]) == pages
        del work, graph
