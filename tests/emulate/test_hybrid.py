"""Block tasks on emulated GPUs and threads together: the same integers whoever does what, whatever fails."""

from __future__ import annotations

import gc
import importlib.util
import itertools
import json
import random
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import invoke
from graphs import fixture_pairs, fixture_path, random_pairs

import wedgewise as ww
from emulate.streaming import TOY_BYTES, StreamingEmulator, prepare_toy, toy
from wedgewise import generate
from wedgewise.algorithms import registry
from wedgewise.algorithms._contract import DeviceTripleAnswer, Pass
from wedgewise.blocks import WIDE_ARCS, Task
from wedgewise.errors import (
    DeviceError,
    DeviceMemoryError,
    InputError,
    MemoryLimitError,
    PreconditionError,
    UnknownNameError,
    VerificationError,
)
from wedgewise.execute import _hybrid_division
from wedgewise.execute._hybrid_cache import Lease, SharedBlocks
from wedgewise.execute._hybrid_division import ARRAY_BYTES, WORK_ARRAYS
from wedgewise.execute._hybrid_plan import KNOBS, pair_up
from wedgewise.execute._hybrid_queue import SCHEDULES, TaskQueue
from wedgewise.execute._hybrid_workers import Crew, HostRun, HostWorker
from wedgewise.execute.journal import JOURNAL
from wedgewise.execute.task_memory import TaskMemory
from wedgewise.execute.timeline import Timeline
from wedgewise.machine import gpu
from wedgewise.partition.spool import write_store
from wedgewise.partition.tasks import ESTIMATORS, Counts

KRONECKER = generate.kronecker(7, seed=3).pairs()
TOY_WORK = TOY_BYTES + WORK_ARRAYS * ARRAY_BYTES
Gpus = Callable[..., list[StreamingEmulator]]


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gpus]:
    """Make so many devices, which everybody finds, and an algorithm for them."""
    made: list[StreamingEmulator] = []

    def make(count: int = 1, **options: Any) -> list[StreamingEmulator]:
        made.extend(StreamingEmulator(f"Emulated GPU {number}", **options) for number in range(count))
        monkeypatch.setattr(gpu, "find_devices", lambda: tuple(made))
        return made

    monkeypatch.setitem(registry(), ("toy", "cuda"), toy())
    yield make
    for device in made:
        device.close()


@pytest.fixture(scope="module")
def graph() -> ww.Graph:
    return ww.Graph(KRONECKER)


@pytest.fixture(scope="module")
def truth(graph: ww.Graph) -> int:
    return ww.count(graph, device="cpu", algorithm="reference")


def hybrid(graph: Any, *, threads: int = 3, algorithm: str = "toy", **knobs: Any) -> ww.Result:
    return ww.run("count", graph, device="hybrid", algorithm=algorithm, threads=threads, knobs={"parts": 5, **knobs})


def spans_by_place(timeline: Timeline) -> dict[str, list[tuple[float, float]]]:
    found: dict[str, list[tuple[float, float]]] = {}
    for span in timeline.spans:
        found.setdefault(span.place, []).append((span.begin, span.end))
    return found


def check_timeline(result: ww.Result) -> Timeline:
    """Every task once, places one thing at a time, copies before kernels."""
    timeline = result.timeline
    assert timeline is not None
    assert result.plan.blocks is not None
    begun = Counter(span.task for span in timeline.spans if not span.helps)
    assert set(begun.values()) <= {1}
    assert len(begun) == result.plan.blocks.tasks
    assert {span.task for span in timeline.spans} == set(begun)
    for spans in spans_by_place(timeline).values():
        assert all(first[1] <= second[0] for first, second in itertools.pairwise(sorted(spans)))
    for span in timeline.spans:
        assert 0 <= span.begin <= span.end <= timeline.seconds
        assert span.estimate > 0
        assert all(copy.begin <= copy.end for copy in span.copies)
        assert all(0 <= copy.filled[0] <= copy.filled[1] <= copy.end for copy in span.copies)
    assert {(span.device, span.place) for span in timeline.spans} <= set(timeline.places)
    return timeline


@pytest.mark.parametrize("devices", [1, 2, 3])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_same_count_whatever_the_schedule(
    gpus: Gpus, graph: ww.Graph, truth: int, schedule: str, devices: int
) -> None:
    made = gpus(devices)
    result = hybrid(graph, schedule=schedule, streams=2)
    assert (result.answer, result.device, result.algorithm) == (truth, "hybrid", "toy")
    timeline = check_timeline(result)
    assert [device for device, _ in timeline.places] == [
        *[there.name if devices == 1 else f"{there.name} {at}" for _ in range(2) for at, there in enumerate(made)],
        *["cpu"] * max(1, 3 - devices),
    ]
    assert all(device.live == 0 for device in made)
    assert sum(device.sends for device in made) > 0


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("cutoff", [0, 50, 100])
def test_estimators_and_cutoffs(gpus: Gpus, graph: ww.Graph, truth: int, estimator: str, cutoff: int) -> None:
    gpus()
    result = hybrid(graph, estimator=estimator, cutoff=cutoff, schedule="cutoff")
    assert result.answer == truth
    timeline, blocks = check_timeline(result), result.plan.blocks
    assert blocks is not None
    assert blocks.cutoff == -(-cutoff * blocks.tasks // 100)
    here = sorted(span.estimate for span in timeline.spans if span.device == "cpu" and not span.helps)
    assert len(here) <= blocks.tasks - blocks.cutoff
    if here and cutoff:
        heavy = sorted((span.estimate for span in timeline.spans if not span.helps), reverse=True)
        assert here[-1] <= heavy[blocks.cutoff - 1]


@pytest.mark.parametrize("places", ["both", "gpu", "cpu"])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_places(gpus: Gpus, graph: ww.Graph, truth: int, places: str, threads: int) -> None:
    gpus()
    algorithm = "keystone" if places == "cpu" else "toy"
    result = hybrid(graph, places=places, threads=threads, algorithm=algorithm)
    assert result.answer == truth
    used = {span.device for span in check_timeline(result).spans}
    assert used <= {"both": {"cpu", "Emulated GPU 0"}, "gpu": {"Emulated GPU 0"}, "cpu": {"cpu"}}[places]
    assert result.plan.blocks is not None
    assert result.plan.blocks.threads == {"both": max(1, threads - 1), "gpu": 0, "cpu": threads}[places]


def test_without_gpus_places_cpu_looks_for_none(monkeypatch: pytest.MonkeyPatch, graph: ww.Graph, truth: int) -> None:
    def none() -> Any:
        raise DeviceError("no CUDA device is there")

    monkeypatch.setattr(gpu, "find_devices", none)
    assert hybrid(graph, places="cpu", algorithm="auto").answer == truth
    with pytest.raises(DeviceError, match="no CUDA device"):
        hybrid(graph, algorithm="keystone" if "count" in registry()["keystone", "cuda"].triples else "toy")


ON_GPUS = sorted(
    name for (name, device), record in registry().items() if device == "cuda" and "count" in record.triples
)


@pytest.mark.parametrize("algorithm", ON_GPUS)
def test_registered_algorithms_by_their_own_kernels(gpus: Gpus, algorithm: str) -> None:
    devices = gpus(2)
    pairs = fixture_pairs("karate")
    result = hybrid(pairs, algorithm=algorithm, parts=3, streams=2, threads=2)
    assert result.answer == 45
    check_timeline(result)
    for device in devices:
        assert device.ready_after == [0]  # arrays that were sent before
        assert device.ready
        assert not device.late


@pytest.mark.parametrize("knobs", [{}, {"near_hubs": 8}], ids=["all near", "few near"])
def test_kernels_are_those_that_tasks_launch(gpus: Gpus, graph: ww.Graph, truth: int, knobs: dict[str, int]) -> None:
    (device,) = gpus()
    assert hybrid(graph, algorithm="keystone", parts=2, places="gpu", streams=1, **knobs).answer == truth
    assert not device.late
    stems = {kernel.stem for kernel in device.ready}
    assert stems == {"triple_rows", "keystone_triples", *(["keystone_triple_rows"] if knobs else [])}


def test_the_pace_of_a_gpu_is_that_of_its_kernels(gpus: Gpus, graph: ww.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a stream's thread does meanwhile, which is to copy, does not make it seem slower."""
    (device,) = gpus()
    device.on_send = lambda _: time.sleep(1e-3)
    told: dict[int, float] = {}
    finish = TaskQueue.finish

    def note(queue: TaskQueue, task: Task, place: str, seconds: float, *, on_device: bool) -> None:
        told[task.number] = seconds
        finish(queue, task, place, seconds, on_device=on_device)

    monkeypatch.setattr(TaskQueue, "finish", note)
    timeline = hybrid(graph, places="gpu").timeline
    assert timeline is not None
    assert told == {span.task: pytest.approx(span.end - span.begin) for span in timeline.spans}


@pytest.mark.parametrize("seed", range(6))
def test_orders_of_completion_do_not_matter(gpus: Gpus, graph: ww.Graph, truth: int, seed: int) -> None:
    delays = random.Random(seed)
    for device in gpus(2):
        device.on_kernel = lambda _: time.sleep(delays.choice((0, 0, 1e-3, 4e-3)))
        device.on_send = lambda _: time.sleep(delays.choice((0, 0, 2e-3)))
    result = hybrid(graph, streams=1 + seed % 3, schedule=SCHEDULES[seed % 3])
    assert result.answer == truth
    check_timeline(result)


def test_blocks_are_copied_once_where_there_is_room(gpus: Gpus, graph: ww.Graph) -> None:
    (device,) = gpus()
    result = hybrid(graph, places="gpu", streams=2)
    blocks = result.plan.blocks
    assert blocks is not None
    assert device.sends == 2 * blocks.blocks
    assert result.timeline is not None
    (use,) = result.timeline.device_uses
    assert use.copied_bytes == device.most_live


def test_the_next_blocks_come_while_kernels_run(gpus: Gpus, graph: ww.Graph) -> None:
    (device,) = gpus()
    is_running, has_sent = threading.Event(), threading.Event()
    sent_meanwhile: list[int] = []

    def kernel(_: int) -> None:
        has_sent.clear()
        is_running.set()
        has_sent.wait(0.05)  # of the last ones nothing follows
        is_running.clear()

    def send(number: int) -> None:
        if number > 6 and is_running.wait(1):
            sent_meanwhile.append(number)
        has_sent.set()

    device.on_kernel, device.on_send = kernel, send
    result = hybrid(graph, places="gpu", streams=1)
    assert len(sent_meanwhile) > (device.sends - 6) / 2  # all of them, but where the system left a thread waiting
    assert result.timeline is not None
    (use,) = result.timeline.device_uses
    assert 0 < use.kernel_seconds <= result.timeline.seconds


def heaviest_task(graph: ww.Graph, **knobs: Any) -> int:
    """What the largest task takes on a device."""
    from wedgewise.execute.hybrid import plan_graph
    from wedgewise.plan import Options

    planned = plan_graph("count", graph.oriented(), Options(algorithm="toy", knobs={"parts": 5, **knobs}))
    return max(map(planned.sizes.on_device, planned.division.tasks))


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("streams", [1, 4])
@pytest.mark.parametrize("times", [1, 2])
def test_budgets_are_kept(gpus: Gpus, graph: ww.Graph, truth: int, schedule: str, streams: int, times: int) -> None:
    devices = gpus(2)
    budget = times * heaviest_task(graph)
    result = hybrid(graph, schedule=schedule, streams=streams, device_bytes=budget, places="gpu")
    assert result.answer == truth
    assert check_timeline(result)
    assert 0 < max(device.most_live for device in devices) <= budget - TOY_BYTES
    assert all(0 < device.reserved <= budget for device in devices)
    assert sum(device.sends for device in devices) > 2 * 15


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
        block = device.send(np.zeros(10, np.uint32)).array
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
    assert any(reason.startswith("2 of 4 streams: a GPU has no room") for reason in result.plan.reasons)
    assert len(check_timeline(result).places) == 2
    assert device.reserved <= result.plan.blocks.device_bytes


def test_blocks_of_wide_offsets_take_more_of_a_device() -> None:
    arcs = np.array([[WIDE_ARCS, 1000], [0, 1000]])
    counts = Counts(arcs, np.array([5000, 5000]))
    sizes = planned_sizes(counts)
    assert sizes.device_block((0, 1)) == -(-8 * 5001 // 512) * 512 + 4096
    assert sizes.device_block((1, 1)) == -(-4 * 5001 // 512) * 512 + 4096


def planned_sizes(counts: Counts) -> _hybrid_division.TaskSizes:
    pairing = pair_up("keystone", None)
    memory = TaskMemory(counts, pairing.cpu.triples_on_cpu("count"), pairing.cpu_knobs, 1)
    return _hybrid_division.TaskSizes(memory, pairing, blocks_are_there=True)


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
    assert sum(span.device == "cpu" and not span.helps for span in check_timeline(result).spans) >= blocks.host_tasks


def test_what_fits_nowhere_is_refused_before_the_start(gpus: Gpus, graph: ww.Graph) -> None:
    (device,) = gpus()
    with pytest.raises(
        MemoryLimitError, match=r"count: the blocks of parts .* on a GPU, where 3,000 are; ask for more"
    ):
        hybrid(graph, places="gpu", device_bytes=3000)
    oriented = graph.oriented()
    tight = ww.run(
        "count",
        graph,
        device="hybrid",
        algorithm="toy",
        memory_limit=30 * (oriented.m + oriented.n),
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
    whole = _hybrid_division.TaskSizes.on_host
    monkeypatch.setattr(
        _hybrid_division.TaskSizes, "on_host", lambda sizes, task: 1 << 62 if task.j == 2 else whole(sizes, task)
    )
    for schedule in SCHEDULES:
        result = hybrid(graph, schedule=schedule, cutoff=0)
        assert result.answer == truth
        assert result.plan.blocks is not None
        alone = result.plan.blocks.device_only_tasks
        assert alone == 9
        assert sum(span.device != "cpu" for span in check_timeline(result).spans) >= alone


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
    left = (2**20 - 2 * TOY_WORK) // 2
    assert any(
        re.search(rf"1 bytes were asked for .* take {left:,} bytes at most from then on", reason)
        for reason in result.plan.reasons
    )


def test_memory_that_always_runs_out_leaves_everything_to_threads(gpus: Gpus, graph: ww.Graph, truth: int) -> None:
    (device,) = gpus()

    def fail(_: int) -> None:
        raise device.no_room(1)

    device.on_send = fail
    result = hybrid(graph, device_bytes=1 << 20, schedule="cutoff", cutoff=100)
    assert result.answer == truth
    assert {span.device for span in check_timeline(result).spans} == {"cpu"}
    assert any(
        re.search(r"task \d+ went to the CPU, since Emulated GPU 0 had no room", reason)
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
    left = (2**20 - 4 * TOY_WORK) // 2
    assert any(f"blocks there take {left:,} bytes at most" in reason for reason in result.plan.reasons)


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


class BrokenError(Exception):
    pass


def break_down(number: int, at: int) -> None:
    if number == at:
        raise BrokenError(f"number {at}")


@pytest.mark.parametrize("streams", [1, 4])
@pytest.mark.parametrize("at", [1, 5])
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

    triples = {"count": replace(registry()["keystone", "cpu"].triples_on_cpu("count"), prepare=broken)}
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


@pytest.mark.parametrize("name", ["no edges", "one edge", "nothing", "no triangles", "star"])
def test_small_graphs(gpus: Gpus, name: str) -> None:
    gpus()
    sources: dict[str, dict[str, Any]] = {
        "no edges": {"source": np.empty((0, 2), np.int64), "n": 5},
        "one edge": {"source": [(0, 1)]},
        "nothing": {"source": np.empty((0, 2), np.int64)},
        "no triangles": {"source": generate.hypercube(4).pairs()},
        "star": {"source": generate.star(300).pairs()},
    }
    for parts in (0, 1, 7):
        result = hybrid(ww.Graph(**sources[name]), parts=parts)
        assert result.answer == 0
        assert result.timeline is not None


@pytest.mark.parametrize("order", ["auto", "degree", "core", "id"])
def test_orders(gpus: Gpus, graph: ww.Graph, truth: int, order: str) -> None:
    gpus()
    result = ww.run("count", graph, device="hybrid", algorithm="toy", order=order, verify=True, threads=2)
    assert result.answer == truth
    assert result.verified is not None


def test_questions_about_the_total_are_answered(gpus: Gpus, graph: ww.Graph) -> None:
    gpus()
    how: dict[str, Any] = {"device": "hybrid", "algorithm": "toy", "threads": 2}
    assert ww.transitivity(graph, **how) == ww.transitivity(graph, device="cpu")
    with pytest.raises(PreconditionError, match="does not compute triangles"):
        ww.triangles(graph, **how)
    with pytest.raises(PreconditionError, match="ids by rank"):
        ww.run("count", graph, relabel="indegree", **how)


def test_plans_say_what_will_happen(gpus: Gpus, graph: ww.Graph) -> None:
    gpus(2)
    knobs = {"parts": 5, "device_bytes": 1 << 20, "cutoff": 30}
    plan = ww.explain("count", graph, device="hybrid", algorithm="toy", threads=6, knobs=knobs)
    assert plan.blocks is not None
    text = str(plan)
    assert "  blocks    15 of 5 parts, 35 tasks: 0 for threads alone, 0 for GPUs alone\n" in text
    places = (
        "4 streams on each of: Emulated GPU 0, Emulated GPU 1; 4 threads, which leave the 11 heaviest tasks to GPUs"
    )
    assert f"  places    {places}\n" in text
    assert re.search(r"  budgets   1,048,576 bytes on each GPU, [\d,]+ on the host\n", text)
    assert "  because   toy on GPUs and keystone on threads" in text
    assert plan.estimated_seconds > 0
    assert json.loads(json.dumps(ww.run("count", graph, device="hybrid", algorithm="toy").to_dict()))["plan"]["blocks"]


def test_parts_follow_the_memory_of_gpus(gpus: Gpus) -> None:
    gpus()
    pairs = random_pairs(2000, 40_000, seed=1)
    few = ww.explain("count", pairs, device="hybrid", algorithm="toy")
    more = ww.explain("count", pairs, device="hybrid", algorithm="toy", knobs={"device_bytes": 60_000})
    assert few.blocks is not None
    assert more.blocks is not None
    assert few.blocks.parts == 4
    assert 8 < more.blocks.parts < 64
    assert more.blocks.host_tasks == 0


def test_knobs_have_one_owner() -> None:
    own = {knob.name for knob in KNOBS}
    for (name, device), record in registry().items():
        if "count" in record.triples:
            shared = own & {knob.name for knob in record.knobs}
            assert shared <= {"parts"}, (name, device)  # which means the same there


def test_knobs_reach_who_has_them(gpus: Gpus, graph: ww.Graph) -> None:
    gpus()
    once, thrice = (hybrid(graph, places="gpu", weight=weight).wedges_tested for weight in (1, 3))
    assert thrice == 3 * once > 0
    assert hybrid(graph, probe_ratio=5).plan.knobs["probe_ratio"] == 5
    with pytest.raises(UnknownNameError, match="neither hybrid nor keystone has a knob 'wait'"):
        hybrid(graph, wait=1)
    with pytest.raises(InputError, match="at most 100"):
        hybrid(graph, cutoff=101)
    with pytest.raises(InputError, match="knob schedule is one of"):
        hybrid(graph, schedule="static")


def test_tasks_of_keystone_are_sorted_by_arcs() -> None:
    assert pair_up("auto", None).knobs["estimator"] == pair_up("keystone", None).knobs["estimator"] == "arcs"
    assert pair_up("bbtc", None).knobs["estimator"] == "time"
    assert pair_up("keystone", {"estimator": "time"}).knobs["estimator"] == "time"


def test_pairs_of_algorithms() -> None:
    assert (pair_up("bbtc", {"places": "cpu"}).cpu.name, pair_up("auto", {"places": "cpu"}).cpu.name) == (
        "bbtc",
        "keystone",
    )
    assert pair_up("trust", {"places": "cpu"}).cpu.name == "keystone"
    with pytest.raises(PreconditionError, match=r"polak on cuda does not count blocks, which device='hybrid' does"):
        pair_up("polak", None)
    with pytest.raises(PreconditionError, match="forward on cpu does not count blocks"):
        pair_up("forward", {"places": "cpu"})


@pytest.fixture
def store(tmp_path: Path) -> Path:
    folder = tmp_path / "store"
    np.save(tmp_path / "pairs.npy", KRONECKER)
    write_store(tmp_path / "pairs.npy", folder, parts=5)
    return folder


def test_stores_are_counted_too(gpus: Gpus, store: Path, truth: int) -> None:
    devices = gpus(2)
    result = ww.run("count", str(store), device="hybrid", algorithm="toy", threads=3)
    assert (result.answer, result.device) == (truth, "hybrid")
    check_timeline(result)
    assert sum(device.sends for device in devices) > 0
    assert not list(store.glob("*.journal"))


@pytest.mark.parametrize("at", [1, 10, 30])
def test_a_store_goes_on_where_it_was(gpus: Gpus, store: Path, truth: int, at: int) -> None:
    (device,) = gpus()
    how: dict[str, Any] = {"device": "hybrid", "algorithm": "toy", "knobs": {"places": "gpu", "streams": 2}}
    device.on_kernel = lambda number: break_down(number, at)
    with pytest.raises(BrokenError):
        ww.run("count", str(store), **how)
    finished = len((store / JOURNAL).read_text().splitlines()) if (store / JOURNAL).exists() else 0
    assert at - 2 <= finished < 35
    begun = device.kernels
    device.on_kernel = lambda number: None
    result = ww.run("count", str(store), **how)
    assert result.answer == truth
    assert result.timeline is not None
    assert len(result.timeline.spans) == device.kernels - begun == 35 - finished


def test_nobody_waits_for_the_disk_to_tell_what_happened() -> None:
    found: list[tuple[int, bool]] = []
    blocks: SharedBlocks[Any] = SharedBlocks(0, lambda pair: 0, lambda pair: None, {})
    crew = Crew(a_queue(2), blocks, {}, lambda partial: found.append((partial.task, crew.lock.locked())))
    crew.finish(Task(1, 0, 0, 1), 5, 6)
    assert found == [(1, False)]
    with pytest.raises(VerificationError, match="task 1 was counted twice"):
        crew.finish(Task(1, 0, 0, 1), 5, 6)
    assert len(found) == 1


def test_idle_threads_hear_of_every_pass_that_they_can_help_with() -> None:
    queue = a_queue(1)
    blocks: SharedBlocks[Any] = SharedBlocks(0, lambda pair: 0, lambda pair: None, {})
    crew = Crew(queue, blocks, {0: 1.0}, lambda partial: None)
    passes = tuple(Pass(np.arange(ranges + 1), lambda begin, end, _: (1, 2)) for ranges in (3, 1, 2))
    task = Task(0, 0, 0, 0)
    run = HostRun(task, Lease({}, 0), passes, 0.0)
    worker = HostWorker(crew, planned_sizes(Counts(np.zeros((1, 1), np.int64), np.zeros(1, np.int64))).memory, "thread")
    before = queue.changes
    assert worker._count_ranges(run) == 6
    assert queue.changes == before + 1  # for the pass of two ranges: one range is taken by who opened it
    assert (run.triangles, run.tests) == (6, 12)


def benchmark() -> Any:
    path = Path(__file__).parents[2] / "benchmarks" / "hybrid_gpu.py"
    spec = importlib.util.spec_from_file_location("hybrid_gpu", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["hybrid_gpu"] = module  # where dataclasses look for it
    spec.loader.exec_module(module)
    return module


def test_the_benchmark_keeps_to_its_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    script = benchmark()
    options = script.parse(["--threads", "16"])
    need = [script.Budget(0.0, options).need(scale) for scale in options.scales]
    assert need == sorted(need)
    assert sum(need) < options.budget < 480
    monkeypatch.setattr(script.time, "perf_counter", lambda: 100.0)
    alone = script.parse(["--threads", "16", "--scales", "20", "--repeats", "9", "--cell-seconds", "4"])
    budget = script.Budget(110.0, alone)
    for seconds, runs in ((0.1, 9), (0.5, 8), (1.0, 4), (3.0, 3), (11.0, 1)):
        assert [budget.allows(20, [seconds] * done) for done in range(10)] == [done < runs for done in range(10)]
    both = script.Budget(110.0, script.parse(["--threads", "16", "--scales", "20", "24"]))
    assert both.allows(24, [])
    assert not both.allows(20, [])  # the time is the other's
    ways = [way for way, _ in script.cells(options, 22)]
    assert ways == ["gpu", "cpu", "guarded", "cutoff", "dynamic", "time", "density", "degree"]
    assert [way for way, _ in script.cells(options, 24)] == ways[:5]


def test_the_benchmark_compares_with_the_faster_side() -> None:
    script = benchmark()
    items = [
        script.Measured("g", 1, way, 8, 50, seconds, (seconds,) * 3)
        for way, seconds in (("gpu", 2.0), ("cpu", 4.0), ("guarded", 2.5), ("cutoff", 2.1))
    ]
    failed = script.Measured("g", 1, "dynamic", 8, 50, problem="no")
    other = script.Measured("g", 1, "guarded", 4, 50, 1.0, (1.0,))
    ratios = [script.best_ratio(item, [*items, failed, other]) for item in (*items, failed, other)]
    assert ratios == [1, 2, 1.25, 1.05, None, None]
    assert script.table_of(items).count("(too slow)") == 1


def test_the_command_writes_timelines(gpus: Gpus, tmp_path: Path, store: Path) -> None:
    gpus()
    karate = str(fixture_path("karate"))
    how = "--device", "hybrid", "--algorithm", "toy", "--threads", "2"
    for source in (karate, str(store)):
        for suffix in ("json", "svg"):
            path = tmp_path / f"timeline.{suffix}"
            done = invoke("count", source, *how, "--timeline", str(path))
            assert done.exit_code == 0, done.output
        numbers = json.loads((tmp_path / "timeline.json").read_text())
        assert set(numbers) == {"seconds", "places", "devices", "spans"}
        assert numbers["spans"]
        assert (tmp_path / "timeline.svg").read_text().startswith("<svg ")
    wrong = invoke("count", karate, *how, "--timeline", str(tmp_path / "timeline.png"))
    assert wrong.exit_code == 1
    needless = invoke("count", karate, "--device", "cpu", "--timeline", str(tmp_path / "other.svg"))
    assert needless.exit_code == 1
    assert not (tmp_path / "other.svg").exists()


def a_queue(count: int, **options: Any) -> TaskQueue:
    tasks = [Task(number, 0, 0, number) for number in range(count)]
    given = {"streams": 2, "threads": 2, "schedule": "cutoff", "cutoff": count // 2, "device_only": (), **options}
    estimates = {number: float(count - number) for number in range(count)}
    return TaskQueue(tasks, (), estimates=estimates, **given)


def numbers(take: Callable[[], Task | None]) -> list[int]:
    return [task.number for task in iter(take, None)]


def test_streams_take_turns_from_the_heavy_end_and_threads_keep_to_the_cutoff() -> None:
    queue = a_queue(10)
    assert numbers(queue.for_thread) == [9, 8, 7, 6, 5]
    assert queue.upcoming(1) == Task(1, 0, 0, 1)
    assert numbers(lambda: queue.for_stream(1)) == [1, 3, 0, 2, 4]
    assert queue.for_stream(0) is None
    assert set(queue.uses.values()) == {0}
    queue = a_queue(6, schedule="dynamic")
    assert [queue.for_thread(), queue.for_stream(1), queue.for_thread()] == [Task(at, 0, 0, at) for at in range(3)]
    assert numbers(a_queue(4, streams=0).for_thread) == [0, 1, 2, 3]
    assert a_queue(4, threads=0).for_thread() is None


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_no_two_streams_prepare_for_the_same_task(schedule: str) -> None:
    queue = a_queue(5, schedule=schedule, streams=3, threads=0)
    for stream in range(3):
        assert queue.for_stream(stream) == Task(stream, 0, 0, stream)
    coming = {stream: queue.upcoming(stream) for stream in (1, 0)}
    assert {task.number for task in coming.values() if task is not None} == {3, 4}
    assert queue.upcoming(2) in coming.values()  # nothing else is left
    assert {stream: queue.for_stream(stream) for stream in (1, 0)} == coming
    assert queue.upcoming(2) is queue.for_stream(2) is None


def test_dynamic_streams_go_on_where_a_thread_took_what_they_prepared_for() -> None:
    queue = a_queue(5, schedule="dynamic")
    assert [queue.upcoming(stream) for stream in (0, 1, 0)] == [Task(at, 0, 0, at) for at in (0, 1, 0)]
    assert queue.for_thread() == Task(0, 0, 0, 0)
    assert queue.upcoming(0) == Task(2, 0, 0, 2)
    assert [queue.for_stream(stream) for stream in (1, 0)] == [Task(at, 0, 0, at) for at in (1, 2)]


def paced(thread_seconds: float, stream_seconds: float, **options: Any) -> TaskQueue:
    """A guarded queue of tasks of 10, 9 … 1, of which either side has done two, so that paces are known."""
    queue = a_queue(10, schedule="guarded", cutoff=3, **options)
    for _ in range(2):
        there, here = queue.for_stream(0), queue.for_thread()
        assert there is not None
        assert here is not None
        queue.finish(there, "stream", stream_seconds * (10 - there.number), on_device=True)
        queue.finish(here, "thread", thread_seconds * (10 - here.number), on_device=False)
    return queue


def test_a_guarded_thread_leaves_what_gpus_would_end_before() -> None:
    """Tasks of 10, 8, 2 and 1 are done, 34 are left: two streams take 17 / 2 seconds, a thread three times its pace."""
    assert paced(1.4, 0.5).for_thread() == Task(7, 0, 0, 7)
    assert paced(1.5, 0.5).for_thread() is None
    queue = paced(1.5, 0.5)
    assert queue.hand_over(Task(6, 0, 0, 6))
    assert queue.for_thread() == Task(6, 0, 0, 6)


def test_guarded_threads_go_by_a_guess_until_a_pace_is_seen() -> None:
    """55 in all, 1 for a thread: the guesses say 2 · 1 · 1 against 0.05 / 2 · 55, then 0.09 / 2 · 55."""
    assert a_queue(10, schedule="guarded", guesses=(1.0, 0.05), threads=16).for_thread() is None
    queue = a_queue(10, schedule="guarded", guesses=(1.0, 0.09), threads=16)
    assert queue.for_thread() == Task(9, 0, 0, 9)
    assert queue.for_thread() is None
    for _ in range(2):
        task = queue.for_stream(0)
        assert task is not None
        seen = queue.changes
        queue.finish(task, "stream", 1.0 * (10 - task.number), on_device=True)
    assert queue.changes == seen + 1  # the GPU is slower than it was thought to be: threads look again
    assert queue.for_thread() == Task(8, 0, 0, 8)


def test_guarded_threads_leave_all_to_gpus_that_are_far_faster() -> None:
    """A task of 1 among 20 could be done in time; but two streams do a unit in 0.1 seconds, threads in 0.45, then 0.35.

    Twice that is too long, until threads are seen to be as fast as was guessed.
    """
    assert a_queue(20, schedule="guarded", guesses=(1.8, 0.2), threads=4).for_thread() is None
    assert a_queue(20, schedule="guarded", guesses=(1.4, 0.2), threads=4).for_thread() is not None
    queue = a_queue(20, schedule="guarded", guesses=(1.8, 0.2), threads=4)
    for number in (18, 17):
        queue.finish(Task(number, 0, 0, number), "thread", 1.8 * (20 - number), on_device=False)
    assert queue.for_thread() is not None


def test_threads_are_not_woken_for_what_they_leave_to_gpus() -> None:
    queue = paced(9.0, 0.1)
    seen, task = queue.changes, queue.for_stream(0)
    assert task is not None
    queue.finish(task, "stream", 0.1 * (10 - task.number), on_device=True)
    assert queue.changes == seen


def test_guarded_streams_leave_all_where_threads_would_end_before() -> None:
    """34 are left: a thread takes 34 seconds, a stream 9 times half its pace for the next one, twice that at worst."""
    assert paced(1.0, 3.7, threads=1).for_stream(1) == Task(1, 0, 0, 1)
    queue = paced(1.0, 3.9, threads=1)
    assert queue.for_stream(1) is None
    assert numbers(queue.for_thread) == [7, 6, 5, 4, 3, 1]  # beyond the cut-off
    alone = paced(1.0, 3.9, threads=1, device_only=frozenset({4}))
    assert numbers(lambda: alone.for_stream(1)) == [1, 3, 5, 7, 4, 6]  # one of them is for streams alone: they stay


def test_blocks_are_given_up_by_tasks_to_come_and_never_while_held() -> None:
    loaded: list[tuple[int, int]] = []
    uses = {(0, 0): 3, (0, 1): 1, (1, 1): 2}

    def load(pair: tuple[int, int]) -> str:
        loaded.append(pair)
        return str(pair)

    cache = SharedBlocks(30, lambda pair: 10, load, uses)
    held = cache.lease({(0, 0), (0, 1)}, 5)
    assert held is not None
    assert cache.lease({(1, 1)}, 0, wait=False) is None
    cache.release(held)
    again = cache.lease({(1, 1)}, 10)
    assert again is not None
    assert loaded == [(0, 0), (0, 1), (1, 1)]
    cache.release(again)
    kept = cache.lease({(0, 0)}, 0)
    assert kept is not None
    assert loaded == [(0, 0), (0, 1), (1, 1)]
    assert cache.lease({(0, 1)}, 11, wait=False) is None
    cache.release(kept)
    assert cache.lease({(0, 1)}, 21) is None  # never
    assert cache.peak <= 30


def test_a_block_that_one_cannot_load_another_tries_again() -> None:
    begun, go_on = threading.Event(), threading.Event()
    calls = itertools.count()

    def load(pair: tuple[int, int]) -> str:
        if next(calls) == 0:
            begun.set()
            go_on.wait(10)
            raise BrokenError("the first time")
        return "block"

    cache = SharedBlocks(30, lambda pair: 10, load, {})
    failures: list[BaseException] = []

    def first() -> None:
        try:
            cache.lease({(0, 0)}, 0)
        except BrokenError as error:
            failures.append(error)

    thread = threading.Thread(target=first)
    thread.start()
    begun.wait(10)
    threading.Timer(0.05, go_on.set).start()
    lease = cache.lease({(0, 0)}, 0)
    thread.join()
    assert len(failures) == 1
    assert lease is not None
    assert lease.blocks == {(0, 0): "block"}
