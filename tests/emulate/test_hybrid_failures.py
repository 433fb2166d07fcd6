"""Failures of emulated GPUs, of threads and of persons: all ends, once, and leaves nothing behind."""

from __future__ import annotations

import gc
import threading
import time
from dataclasses import replace
from typing import Any

import pytest

import wedgewise as ww
from emulate.hybrid_cases import BrokenError, Gpus, break_down, gpus, graph, hybrid, truth
from wedgewise.algorithms import registry

__all__ = ["gpus", "graph", "truth"]


@pytest.mark.parametrize("streams", [1, 4])
@pytest.mark.parametrize("at", [1, 2])
@pytest.mark.parametrize("where", ["on_send", "on_kernel"])
def test_a_failure_on_a_device_ends_all_and_is_raised_once(
    gpus: Gpus, graph: ww.Graph, truth: int, where: str, at: int, streams: int
) -> None:
    device, other = gpus(2)
    setattr(device, where, lambda number: break_down(number, at))
    before = threading.active_count()
    with pytest.raises(BrokenError, match=f"number {at}"):
        hybrid(graph, streams=streams, schedule="cutoff", cutoff=100)
    gc.collect()  # the traceback's frames
    alive = [thread for thread in threading.enumerate() if thread.name.startswith("wedgewise-")]
    assert not alive
    assert threading.active_count() <= before + 2 * streams  # those of the emulated streams
    assert device.live == other.live == 0
    setattr(device, where, lambda number: None)
    assert hybrid(graph, streams=streams).answer == truth


@pytest.mark.parametrize("where", ["on_send", "on_kernel"])
def test_a_failure_keeps_no_blocks_on_the_device(gpus: Gpus, graph: ww.Graph, where: str) -> None:
    """Not even as long as somebody looks at the error."""
    (device,) = gpus()
    setattr(device, where, lambda number: break_down(number, 9))
    gc.collect()
    gc.disable()
    try:
        with pytest.raises(BrokenError) as caught:
            hybrid(graph, places="gpu")
        assert device.live == 0
        assert caught.traceback
    finally:
        gc.enable()


def test_a_failure_of_a_thread_ends_all(gpus: Gpus, graph: ww.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    (device,) = gpus()
    is_broken = threading.Event()

    def kernel(_: int) -> None:
        is_broken.wait(10)

    device.on_kernel = kernel

    def broken(*_: Any) -> Any:
        is_broken.set()
        raise BrokenError("here")

    triples = {"count": replace(registry()["keystone", "cpu"].triples_on_cpu("count"), counter=broken)}
    monkeypatch.setitem(registry(), ("keystone", "cpu"), replace(registry()["keystone", "cpu"], triples=triples))
    with pytest.raises(BrokenError, match="here"):
        hybrid(graph, schedule="cutoff", cutoff=0, threads=4)
    gc.collect()
    assert device.live == 0


def test_ctrl_c_ends_within_a_task(gpus: Gpus, graph: ww.Graph) -> None:
    (device,) = gpus()
    device.on_kernel = lambda _: time.sleep(0.02)
    told: list[int] = []

    def progress(stage: str, done: int, total: int) -> None:
        told.append(done)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ww.run(
            "count",
            graph,
            device="hybrid",
            algorithm="toy",
            threads=2,
            progress=progress,
            knobs={"parts": 5, "places": "gpu", "streams": 1},
        )
    assert device.kernels <= 2  # the first task's, and the one that was under way
    gc.collect()
    assert device.live == 0


def test_progress_counts_tasks(gpus: Gpus, graph: ww.Graph) -> None:
    gpus()
    told: list[tuple[str, int, int]] = []
    result = ww.run(
        "count",
        graph,
        device="hybrid",
        algorithm="toy",
        threads=2,
        knobs={"parts": 5},
        progress=lambda *state: told.append(state),
    )
    assert result.plan.blocks is not None
    assert told[-1] == ("count", result.plan.blocks.tasks, result.plan.blocks.tasks)
