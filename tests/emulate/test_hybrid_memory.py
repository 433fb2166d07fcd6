"""Block tasks on emulated GPUs with little memory: budgets, streams, what fits nowhere, and memory that runs out."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import wedgewise as ww
from emulate.emulated_cases import needs_compiler
from emulate.hybrid_cases import (
    TOY_STREAM,
    TOY_WORK,
    Gpus,
    check_timeline,
    gpus,
    graph,
    hybrid,
    planned_sizes,
    tasks_in,
    truth,
)
from emulate.streaming import TOY_BYTES, StreamingEmulator, prepare_toy, toy
from wedgewise.algorithms import registry
from wedgewise.algorithms._contract import DeviceTripleAnswer
from wedgewise.algorithms.gpu import _batches
from wedgewise.errors import DeviceMemoryError, MemoryLimitError
from wedgewise.run import _hybrid_plan
from wedgewise.run._hybrid_queue import SCHEDULES
from wedgewise.run.block_caches import SharedBlocks
from wedgewise.run.task_memory import HYBRID_TASK_BYTES
from wedgewise.stages.blocks import WIDE_ARCS
from wedgewise.stages.tasks import BlockCounts

__all__ = ["gpus", "graph", "truth"]


def heaviest_task(graph: ww.Graph, **knobs: Any) -> int:
    """What the largest task takes on a device."""
    from wedgewise.run.hybrid import plan_graph
    from wedgewise.run.request import Request

    planned = plan_graph(Request(algorithm="toy", knobs={"parts": 5, **knobs}), graph.oriented())
    return int(planned.sizes.on_device(planned.division.tasks).max())


def bytes_of_blocks(graph: ww.Graph) -> int:
    """All that tasks have."""
    from wedgewise.run.hybrid import GraphBlocks, plan_graph
    from wedgewise.run.request import Request

    source = plan_graph(Request(algorithm="toy", knobs={"parts": 5}), graph.oriented()).source
    assert isinstance(source, GraphBlocks)
    return sum(block.offsets.nbytes + block.heads.nbytes for block in source.blocks.blocks.values())


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("streams", [1, 4])
@pytest.mark.parametrize("times", [1, 2])
def test_budgets_are_kept(gpus: Gpus, graph: ww.Graph, truth: int, schedule: str, streams: int, times: int) -> None:
    devices = gpus(2)
    budget = times * heaviest_task(graph)
    result = hybrid(graph, schedule=schedule, streams=streams, device_bytes=budget, places="gpu")
    assert result.answer == truth
    assert 0 < max(device.most_live for device in devices) <= budget - TOY_BYTES
    assert all(0 < device.reserved <= budget for device in devices)
    copied = sum(use.copied_bytes for use in check_timeline(result).device_uses)
    assert copied >= bytes_of_blocks(graph) * (3 - times)  # with half the room, most blocks twice


def prepare_greedy(*arguments: Any) -> Any:
    """The toy's work, which needs an array beside its blocks."""
    work, device = prepare_toy(*arguments), arguments[-1]
    return replace(work, filled=device.xp.empty(GREEDY_BYTES, np.uint8))


GREEDY_BYTES = 30_000


def greedy() -> Any:
    answer = DeviceTripleAnswer(prepare_greedy, lambda *_: GREEDY_BYTES + TOY_BYTES)
    return replace(toy(), triples={"count": answer})


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_streams_have_memory_of_their_own(
    gpus: Gpus, graph: ww.Graph, truth: int, schedule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks leave room for the work of every stream, though each of them keeps what it took."""
    (device,) = gpus()
    monkeypatch.setitem(registry(), ("toy", "cuda"), greedy())
    blocks = 20_000  # less than all of them
    device.capacity = 4 * (GREEDY_BYTES + TOY_WORK) + blocks
    device.free_bytes = lambda: 1 << 30  # type: ignore[method-assign]
    result = hybrid(graph, places="gpu", schedule=schedule, device_bytes=device.capacity)
    assert result.answer == truth
    assert result.plan.blocks is not None
    assert result.plan.blocks.streams == 4
    assert not any("were asked for" in reason for reason in result.plan.reasons)
    assert device.most_live <= blocks


def test_blocks_that_are_reserved_first_leave_no_room_for_streams(gpus: Gpus) -> None:
    """Why streams come first: three quarters for blocks, of which one is there, are nobody else's."""
    (device,) = gpus(capacity=100_000)
    with device.memory():
        device.reserve(75_000)
        block = device.allocate([10])
        streams = [device.stream() for _ in range(2)]
        with streams[0]:
            held = device.xp.empty(20_000, np.uint8)
        with streams[1], pytest.raises(DeviceMemoryError):
            device.xp.empty(20_000, np.uint8)
        del held
        with streams[1]:
            held = device.xp.empty(20_000, np.uint8)  # what is wholly free is given up
        del block, held


def test_there_are_as_many_streams_as_there_is_memory_for(
    gpus: Gpus, graph: ww.Graph, truth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    (device,) = gpus()
    monkeypatch.setitem(registry(), ("toy", "cuda"), greedy())
    result = hybrid(graph, places="gpu", device_bytes=2 * heaviest_task(graph))
    assert result.answer == truth
    assert result.plan.blocks is not None
    assert result.plan.blocks.streams == 2
    assert any(reason.startswith("2 of 4 streams: a GPU has too little memory") for reason in result.plan.reasons)
    assert len(check_timeline(result).places) == 2
    assert device.reserved <= result.plan.blocks.device_bytes


def test_blocks_of_wide_offsets_take_more_of_a_device() -> None:
    arcs = np.array([[WIDE_ARCS, 1000], [0, 1000]])
    counts = BlockCounts(arcs, np.array([5000, 5000]))
    sizes = planned_sizes(counts)
    made = 4 * (2 * 1000 + 157 + 1)
    assert sizes.device_block((0, 1)) == -(-(8 * 5001 + 4 * 1000 + made) // 512) * 512
    assert sizes.device_block((1, 1)) == sizes.device_block((0, 1))  # kernels take offsets of one type


@needs_compiler
@pytest.mark.parametrize("algorithm", ["keystone", "bbtc", "trust"])
def test_all_blocks_come_with_wide_offsets_where_one_has_many_arcs(
    gpus: Gpus, graph: ww.Graph, truth: int, algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that nothing is widened on the device, whose memory is planned for wide ones."""
    (device,) = gpus()
    for module in (_hybrid_plan, _batches):
        monkeypatch.setattr(module, "WIDE_FROM", 100)
    result = hybrid(graph, algorithm=algorithm, places="gpu", streams=1)
    assert result.answer == truth
    assert {dict(defines)["OFFSET_BITS"] for _, defines in device.launched} == {64}
    (use,) = check_timeline(result).device_uses
    narrow = bytes_of_blocks(graph)
    assert use.copied_bytes == 2 * narrow - 4 * graph.m


def test_what_does_not_fit_a_gpu_goes_to_threads(gpus: Gpus, graph: ww.Graph, truth: int) -> None:
    (device,) = gpus()
    budget = heaviest_task(graph) - 1
    result = hybrid(graph, device_bytes=budget)
    blocks = result.plan.blocks
    assert blocks is not None
    assert 0 < blocks.host_tasks < blocks.tasks
    assert result.answer == truth
    assert device.most_live <= budget
    assert any("are for threads alone: they do not fit a GPU" in reason for reason in result.plan.reasons)
    assert tasks_in(check_timeline(result), on_cpu=True) >= blocks.host_tasks


def test_what_fits_nowhere_is_refused_before_the_start(
    gpus: Gpus, graph: ww.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    (device,) = gpus()
    with pytest.raises(
        MemoryLimitError, match=r"count: the blocks of parts .* on a GPU, where 3,000 are; ask for more"
    ):
        hybrid(graph, places="gpu", device_bytes=3000)
    with monkeypatch.context() as patched:
        patched.setattr(_hybrid_plan.TaskSizes, "on_host", lambda sizes, tasks: np.full(len(tasks), 1 << 62))
        with pytest.raises(MemoryLimitError, match=r"4,611,686,018,427,387,904 bytes on the host, where .* on a GPU"):
            hybrid(graph, device_bytes=3000)
    oriented = graph.oriented()
    tight = ww.run(
        "count",
        graph,
        device="hybrid",
        algorithm="toy",
        memory_limit=30 * (oriented.m + oriented.n) + 35 * HYBRID_TASK_BYTES,
        knobs={"parts": 5},
    )
    assert tight.plan.blocks is not None
    with pytest.raises(MemoryLimitError):
        ww.run("count", graph, device="hybrid", algorithm="toy", memory_limit=1000, knobs={"parts": 5})
    assert device.live == 0


def test_what_fits_gpus_alone_is_left_to_them(
    gpus: Gpus, graph: ww.Graph, truth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpus()
    whole = _hybrid_plan.TaskSizes.on_host
    monkeypatch.setattr(
        _hybrid_plan.TaskSizes, "on_host", lambda sizes, tasks: np.where(tasks.j == 2, 1 << 62, whole(sizes, tasks))
    )
    for schedule in SCHEDULES:
        result = hybrid(graph, schedule=schedule, cutoff=0)
        assert result.answer == truth
        assert result.plan.blocks is not None
        alone = result.plan.blocks.device_only_tasks
        assert alone == 9
        assert tasks_in(check_timeline(result), on_cpu=False) >= alone


@pytest.mark.parametrize("failing", [1, 2, 5])
def test_memory_that_runs_out_at_a_copy_shrinks_the_cache(
    gpus: Gpus, graph: ww.Graph, truth: int, failing: int
) -> None:
    (device,) = gpus()

    def fail(number: int) -> None:
        if number == failing:
            raise device.no_room(1)

    device.on_send = fail
    result = hybrid(graph, device_bytes=1 << 20, streams=2, schedule="cutoff")  # half of the tasks are its own
    assert result.answer == truth
    check_timeline(result)
    left = (2**20 - 2 * TOY_STREAM) // 2
    assert any(
        re.search(rf"1 bytes were asked for .* take {left:,} bytes at most from then on", reason)
        for reason in result.plan.reasons
    )


def test_memory_that_runs_out_at_a_copy_for_the_next_task(gpus: Gpus, graph: ww.Graph, truth: int) -> None:
    (device,) = gpus()
    is_counting = False

    def fail(_: int) -> None:
        nonlocal is_counting
        if is_counting:
            device.on_send = lambda _: None
            raise device.no_room(1)

    def count(_: int) -> None:
        nonlocal is_counting
        is_counting = True

    device.on_send, device.on_kernel = fail, count
    result = hybrid(graph, device_bytes=1 << 20, streams=1, places="gpu")
    assert result.answer == truth
    assert sum("1 bytes were asked for" in reason for reason in result.plan.reasons) == 1
    assert not any("went to the CPU" in reason for reason in result.plan.reasons)


@pytest.mark.parametrize("failing", [1, 2])
def test_memory_that_blocks_cannot_have_is_asked_for_again(
    gpus: Gpus, graph: ww.Graph, truth: int, failing: int
) -> None:
    (device,) = gpus()
    allocate, asked = device.allocate, itertools.count(1)

    def fail_once(sizes: Any) -> Any:
        if next(asked) == failing:
            raise device.no_room(1)
        return allocate(sizes)

    device.allocate = fail_once  # type: ignore[method-assign]
    result = hybrid(graph, device_bytes=1 << 20, places="gpu")
    assert result.answer == truth
    assert sum("1 bytes were asked for" in reason for reason in result.plan.reasons) == 1


def test_a_block_that_does_not_fit_the_host_is_named(
    gpus: Gpus, graph: ww.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpus()
    monkeypatch.setattr(SharedBlocks, "_evict_for", lambda blocks, pairs, work_bytes: len(pairs) != 1)
    with pytest.raises(MemoryLimitError, match=r"block \d, \d does not fit the host's memory; allow more"):
        hybrid(graph, places="gpu")


def test_memory_that_always_runs_out_leaves_everything_to_threads(gpus: Gpus, graph: ww.Graph, truth: int) -> None:
    (device,) = gpus()

    def fail(_: int) -> None:
        raise device.no_room(1)

    device.on_send = fail
    result = hybrid(graph, device_bytes=1 << 20, schedule="cutoff", cutoff=100)
    assert result.answer == truth
    assert {span.device for span in check_timeline(result).spans} == {"cpu"}
    assert any(
        re.search(r"tasks from task \d+ on went to the CPU, since Emulated GPU 0 had too little memory", reason)
        for reason in result.plan.reasons
    )
    with pytest.raises(DeviceMemoryError):
        hybrid(graph, device_bytes=1 << 20, places="gpu")
    assert device.live == 0


@pytest.mark.parametrize("step", ["get_ready", "reserve"])
def test_memory_that_cannot_be_had_at_once(gpus: Gpus, graph: ww.Graph, truth: int, step: str) -> None:
    (device,) = gpus()

    def fail(*_: Any) -> None:
        raise device.no_room(1)

    setattr(device, step, fail)
    result = hybrid(graph, device_bytes=1 << 20)
    assert result.answer == truth
    left = (2**20 - 4 * TOY_STREAM) // 2
    assert any(f"blocks there take {left:,} bytes at most" in reason for reason in result.plan.reasons)


@pytest.mark.parametrize("failing", [0, 1, 5])
def test_streams_that_cannot_be_had_leave_nothing(gpus: Gpus, graph: ww.Graph, truth: int, failing: int) -> None:
    """The last of these is on the second device, when the first one has all of its own."""
    devices = gpus(2)
    made = itertools.count()

    for device in devices:

        def stream(really: Callable[[], Any] = device.stream, device: StreamingEmulator = device) -> Any:
            if next(made) == failing:
                raise device.no_room(1)
            return really()

        device.stream = stream  # type: ignore[method-assign]
    with pytest.raises(DeviceMemoryError, match="Emulated GPU"):
        hybrid(graph, device_bytes=1 << 20)
    assert [(device.live, device.depth) for device in devices] == [(0, 0)] * 2
    assert hybrid(graph, device_bytes=1 << 20).answer == truth


def test_a_device_that_is_smaller_than_it_says(gpus: Gpus, graph: ww.Graph, truth: int) -> None:
    (device,) = gpus()
    need = heaviest_task(graph)
    device.capacity = 2 * need
    device.free_bytes = lambda: 1 << 30  # type: ignore[method-assign]
    result = hybrid(graph, streams=3)
    assert result.answer == truth
    assert device.most_live <= 2 * need
    check_timeline(result)


@pytest.mark.parametrize("failing", [1, 5])
def test_memory_that_runs_out_in_preparing_a_task(
    gpus: Gpus, graph: ww.Graph, truth: int, failing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    (device,) = gpus()
    calls = itertools.count(1)

    def prepare(*arguments: Any) -> Any:
        if arguments[-1] is device and next(calls) == failing:
            raise device.no_room(99)
        return prepare_toy(*arguments)

    triples = {"count": replace(toy().triples_on_device("count"), prepare=prepare)}
    monkeypatch.setitem(registry(), ("toy", "cuda"), replace(toy(), triples=triples))
    result = hybrid(graph, schedule="cutoff")  # half of the tasks are its own
    assert result.answer == truth
    check_timeline(result)
    assert any("99 bytes were asked for" in reason for reason in result.plan.reasons)


def test_a_batch_that_does_not_fit_the_device_is_halved(
    gpus: Gpus, graph: ww.Graph, truth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With no threads to hand it over to, as long as one task fits by itself."""
    (device,) = gpus()

    def prepare(batch: Any, *arguments: Any) -> Any:
        if arguments[-1] is device and len(batch.tasks) > 1:
            raise device.no_room(99)
        return prepare_toy(batch, *arguments)

    triples = {"count": replace(toy().triples_on_device("count"), prepare=prepare)}
    monkeypatch.setitem(registry(), ("toy", "cuda"), replace(toy(), triples=triples))
    result = hybrid(graph, places="gpu", streams=1)
    assert result.answer == truth
    assert check_timeline(result).spans
    assert any("99 bytes were asked for" in reason for reason in result.plan.reasons)
