"""Block tasks on emulated GPUs and threads together: the same integers whoever does what, whatever fails."""

from __future__ import annotations

import gc
import itertools
import json
import random
import re
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
from wedgewise.blocks import Task
from wedgewise.errors import (
    DeviceError,
    DeviceMemoryError,
    InputError,
    MemoryLimitError,
    PreconditionError,
    UnknownNameError,
)
from wedgewise.execute import _hybrid_plan
from wedgewise.execute._hybrid_cache import SharedBlocks
from wedgewise.execute._hybrid_plan import KNOBS, pair_up
from wedgewise.execute._hybrid_queue import SCHEDULES, TaskQueue
from wedgewise.execute.journal import JOURNAL
from wedgewise.execute.timeline import Timeline
from wedgewise.machine import gpu
from wedgewise.partition.spool import write_store
from wedgewise.partition.tasks import ESTIMATORS

KRONECKER = generate.kronecker(7, seed=3).pairs()
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
    gpus(2)
    pairs = fixture_pairs("karate")
    result = hybrid(pairs, algorithm=algorithm, parts=3, streams=2, threads=2)
    assert result.answer == 45
    check_timeline(result)


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
    is_running = threading.Event()
    sent_meanwhile: list[int] = []

    def kernel(_: int) -> None:
        is_running.set()
        time.sleep(5e-3)
        is_running.clear()

    device.on_kernel = kernel
    device.on_send = lambda number: sent_meanwhile.append(number) if number > 6 and is_running.wait(1) else None
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
    whole = _hybrid_plan.TaskSizes.on_host
    monkeypatch.setattr(
        _hybrid_plan.TaskSizes, "on_host", lambda sizes, task: 1 << 62 if task.j == 2 else whole(sizes, task)
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
    assert any(
        re.search(r"1 bytes were asked for .* take 524,288 bytes at most from then on", reason)
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


def test_memory_that_cannot_be_had_at_once(gpus: Gpus, graph: ww.Graph, truth: int) -> None:
    (device,) = gpus()

    def reserve(size: int) -> None:
        raise device.no_room(size)

    device.reserve = reserve  # type: ignore[method-assign]
    result = hybrid(graph, device_bytes=1 << 20)
    assert result.answer == truth
    assert any("blocks there take 524,288 bytes at most" in reason for reason in result.plan.reasons)


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
        if next(calls) == failing:
            raise device.no_room(99)
        return prepare_toy(*arguments)

    triples = {"count": replace(toy().triples_on_device("count"), prepare=prepare)}
    monkeypatch.setitem(registry(), ("toy", "cuda"), replace(toy(), triples=triples))
    result = hybrid(graph)
    assert result.answer == truth
    check_timeline(result)
    assert any("99 bytes were asked for" in reason for reason in result.plan.reasons)


class BrokenError(Exception):
    pass


def break_down(number: int, at: int) -> None:
    if number == at:
        raise BrokenError(f"number {at}")


@pytest.mark.parametrize("streams", [1, 4])
@pytest.mark.parametrize("at", [1, 9])
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


def test_a_failure_of_a_thread_ends_all(gpus: Gpus, graph: ww.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    (device,) = gpus()
    device.on_kernel = lambda _: time.sleep(2e-3)

    def broken(*_: Any) -> Any:
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

    begin = time.perf_counter()
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
    assert time.perf_counter() - begin < 0.6
    assert device.kernels < 35
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
    assert few.blocks.parts == 8
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


def test_guarded_streams_leave_all_where_threads_would_end_before() -> None:
    """34 are left: a thread takes 34 seconds, a stream 9 times its pace for the next one, twice that at worst."""
    assert paced(1.0, 1.8, threads=1).for_stream(1) == Task(1, 0, 0, 1)
    queue = paced(1.0, 2.0, threads=1)
    assert queue.for_stream(1) is None
    assert numbers(queue.for_thread) == [7, 6, 5, 4, 3, 1]  # beyond the cut-off
    alone = paced(1.0, 2.0, threads=1, device_only=frozenset({4}))
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
