"""Block tasks on a real GPU and threads together: the host's count, within budgets, with copies and kernels at once."""

from __future__ import annotations

import gc
from itertools import pairwise
from typing import Any

import pytest
from helpers import several_devices

import wedgewise as ww
from devices.real_device import held_bytes, needs_device
from wedgewise import generate
from wedgewise.machine import gpu
from wedgewise.machine.ring import PIECE_BYTES
from wedgewise.run._hybrid_queue import SCHEDULES
from wedgewise.run._hybrid_streams import DeviceWorker

pytestmark = needs_device

ALGORITHMS = [record.name for record in ww.algorithms() if record.device == "cuda" and "count" in record.triples]


@pytest.fixture(scope="module")
def graph() -> ww.Graph:
    return ww.Graph(generate.kronecker(16, seed=1).pairs())


@pytest.fixture(scope="module")
def truth(graph: ww.Graph) -> int:
    return ww.count(graph, device="cpu")


def hybrid(graph: ww.Graph, algorithm: str = "auto", **knobs: Any) -> ww.Result:
    return ww.run("count", graph, device="hybrid", algorithm=algorithm, knobs={"parts": 6, **knobs})


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("places", ["both", "gpu"])
def test_every_algorithm_counts_as_the_host(graph: ww.Graph, truth: int, algorithm: str, places: str) -> None:
    before = held_bytes()
    for _ in range(3):
        assert hybrid(graph, algorithm, places=places).answer == truth
    assert held_bytes() == before


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("streams", [1, 4, 9])
def test_schedules_and_streams(graph: ww.Graph, truth: int, schedule: str, streams: int) -> None:
    result = hybrid(graph, schedule=schedule, streams=streams)
    assert result.answer == truth
    assert result.timeline is not None
    assert result.plan.blocks is not None
    assert sum(span.tasks for span in result.timeline.spans if not span.helps) == result.plan.blocks.tasks
    for _, place in result.timeline.places:
        spans = sorted((span.begin, span.end) for span in result.timeline.spans if span.place == place)
        assert all(before[1] <= after[0] + 1e-4 for before, after in pairwise(spans))


def test_small_budgets(graph: ww.Graph, truth: int) -> None:
    for budget in (1 << 22, 1 << 23):
        result = hybrid(graph, device_bytes=budget, cutoff=0)
        assert result.answer == truth
        assert result.plan.blocks is not None
        assert result.plan.blocks.device_bytes == budget


def test_streams_and_blocks_keep_within_the_budget(
    graph: ww.Graph, truth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the pool has taken, in all streams together, is never more, but for arrays of a few bytes."""
    device, taken, finish_batch = gpu.find_device(), list[int](), DeviceWorker._finish

    def finish(worker: DeviceWorker, batch: Any) -> None:
        taken.append(device._pool.total_bytes())
        finish_batch(worker, batch)

    monkeypatch.setattr(DeviceWorker, "_finish", finish)
    for budget in (1 << 24, 1 << 26):
        result = hybrid(graph, places="gpu", parts=8, device_bytes=budget)
        assert result.answer == truth
        assert not any("were asked for" in reason for reason in result.plan.reasons)
        assert max(taken) <= budget + (4 << 20)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_kernels_are_compiled_before_the_first_task(
    graph: ww.Graph, algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[int] = []
    get_ready = gpu.Cuda.get_ready

    def ready(device: gpu.Cuda, kernels: Any) -> None:
        get_ready(device, kernels)
        compiled.append(gpu.Cuda._function.cache_info().misses)

    monkeypatch.setattr(gpu.Cuda, "get_ready", ready)
    hybrid(graph, algorithm, places="gpu")
    assert compiled == [gpu.Cuda._function.cache_info().misses]


@pytest.fixture(scope="module")
def two_of_one_gpu() -> tuple[gpu.Cuda, gpu.Cuda]:
    """Two devices that are one GPU, each with a pool, a ring and streams of its own."""
    cupy = gpu.find_device().xp
    return gpu.Cuda(cupy, 0), gpu.Cuda(cupy, 0)


@pytest.mark.parametrize("algorithm", several_devices.ALGORITHMS)
@pytest.mark.parametrize("cut", several_devices.CUTS)
def test_two_devices_again_and_again(
    graph: ww.Graph,
    truth: int,
    algorithm: str,
    cut: str,
    two_of_one_gpu: tuple[gpu.Cuda, gpu.Cuda],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gpu, "find_devices", lambda: two_of_one_gpu)
    several_devices.count_on_several(graph, truth, algorithm, cut)
    gc.collect()
    assert [device._pool.used_bytes() for device in two_of_one_gpu] == [0, 0]


def test_memory_that_another_takes() -> None:
    """All but little is taken between planning and counting: threads do what does not fit."""
    from wedgewise.run.hybrid import plan_graph
    from wedgewise.run.reduce import reduce
    from wedgewise.run.request import Request

    graph = ww.Graph(generate.kronecker(20, seed=1).pairs())
    planned = plan_graph(Request(knobs={"parts": 2}), graph.oriented())
    planned.run()  # what a first launch takes is taken
    device = gpu.find_device()
    taken = device.xp.cuda.Memory(device.free_bytes() - (64 << 20))
    try:
        run = planned.run()
    finally:
        del taken
    assert reduce(run.execution, run.plan).triangles == ww.count(graph, device="cpu")
    assert len(run.plan.reasons) > len(planned.plan.reasons)


def test_copies_overlap_kernels() -> None:
    graph = ww.Graph(generate.kronecker(22, seed=1).pairs())  # ten batches; smaller graphs make one for each stream
    hybrid(graph, places="gpu", parts=4)  # compiles
    result = hybrid(graph, places="gpu", parts=4)
    assert result.timeline is not None
    use = result.timeline.device_uses[0]
    assert use.copied_bytes > PIECE_BYTES
    assert use.filling_seconds > 0
    assert 0 < use.overlap_seconds <= min(use.copy_seconds, use.kernel_seconds)
