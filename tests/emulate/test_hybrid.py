"""Block tasks on emulated GPUs and threads together: the same integers whoever does what."""

from __future__ import annotations

import json
import random
import re
import threading
import time
from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from helpers.graphs import fixture_pairs, random_pairs
from helpers.several_devices import ALGORITHMS, CUTS, count_on_several, within
from helpers.stores import at_most

import wedgewise as ww
from emulate.emulated_cases import needs_compiler
from emulate.hybrid_cases import Gpus, check_timeline, gpus, graph, hybrid, tasks_in, truth
from emulate.streaming import dense
from wedgewise import generate
from wedgewise.algorithms import registry
from wedgewise.errors import DeviceError, InputError, PreconditionError, UnknownNameError
from wedgewise.machine import gpu
from wedgewise.run._hybrid_plan import KNOBS, choose_parts, pair_up
from wedgewise.run._hybrid_queue import SCHEDULES, TaskQueue
from wedgewise.run.hybrid import _Noting, plan_graph
from wedgewise.run.plan import Plan
from wedgewise.run.reduce import reduce
from wedgewise.run.request import Request
from wedgewise.stages.tasks import ESTIMATORS, TaskTable

__all__ = ["gpus", "graph", "truth"]


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


def test_blocks_are_sent_without_memory_for_a_thread_that_sends(
    gpus: Gpus, graph: ww.Graph, truth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    (device,) = gpus(1)
    start = threading.Thread.start

    def refuse_senders(thread: threading.Thread) -> None:
        if thread.name.startswith("wedgewise-sending"):
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse_senders)
    assert hybrid(graph).answer == truth
    assert device.sends > 0


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("cutoff", [0, 50, 100])
def test_estimators_and_cutoffs(
    gpus: Gpus, graph: ww.Graph, truth: int, estimator: str, cutoff: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpus()
    work: dict[bool, list[float]] = {True: [], False: []}
    finish = TaskQueue.finish

    def note(queue: TaskQueue, tasks: TaskTable, place: str, seconds: float, *, on_device: bool) -> None:
        work[on_device] += tasks.work.tolist()
        finish(queue, tasks, place, seconds, on_device=on_device)

    monkeypatch.setattr(TaskQueue, "finish", note)
    result = hybrid(graph, estimator=estimator, cutoff=cutoff, schedule="cutoff")
    assert result.answer == truth
    timeline, blocks = check_timeline(result), result.plan.blocks
    assert blocks is not None
    assert blocks.cutoff == -(-cutoff * blocks.tasks // 100)
    assert len(work[False]) == tasks_in(timeline, on_cpu=True) <= blocks.tasks - blocks.cutoff
    heaviest_first = sorted(work[True] + work[False], reverse=True)
    assert len(heaviest_first) == blocks.tasks
    if work[False] and cutoff:
        assert max(work[False]) <= heaviest_first[blocks.cutoff - 1]


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


@pytest.mark.parametrize("algorithm", ON_GPUS)
@pytest.mark.parametrize("devices", [2, 4])
@pytest.mark.parametrize("shares", [1, 3])
def test_several_devices_by_blocks_and_by_shares(
    gpus: Gpus, graph: ww.Graph, truth: int, algorithm: str, devices: int, shares: int
) -> None:
    made = gpus(devices)
    knobs: dict[str, int | str] = {"parts": 4, "streams": 2, "schedule": "cutoff"}
    asked = Request(algorithm=algorithm, threads=3, knobs=knobs, shares=shares)
    planned = plan_graph(asked, graph.oriented())
    assert planned.division.everything == 20 * shares
    assert (f"the rows of every three parts are dealt to {shares} tasks" in planned.plan.reasons) == (shares > 1)
    ran = planned.run()
    assert reduce(ran.execution, ran.plan).triangles == truth
    assert all(device.live == 0 for device in made)


@pytest.mark.parametrize("algorithm", ON_GPUS)
@pytest.mark.parametrize("devices", [2, 4])
@pytest.mark.parametrize("shares", [2, 4])
def test_vertices_of_a_whole_graph_are_dealt_to_devices(
    gpus: Gpus, graph: ww.Graph, truth: int, algorithm: str, devices: int, shares: int
) -> None:
    """With one part, task s of g counts every vertex u with u mod g = s, as TRUST's GPU number s does (§5.1)."""
    made = gpus(devices)
    knobs: dict[str, int | str] = {"parts": 1, "streams": 1, "places": "gpu"}
    planned = plan_graph(Request(algorithm=algorithm, knobs=knobs, shares=shares), graph.oriented())
    ran = planned.run()
    rows = dense(planned.source.block(0, 0))
    closed = ((rows @ rows) * rows).sum(axis=1)
    of_shares = [int(closed[share::shares].sum()) for share in range(shares)]
    assert ran.execution.results.triangles.tolist() == of_shares
    assert (sum(of_shares), min(of_shares) > 0) == (truth, True)
    assert all(device.live == 0 for device in made)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("cut", CUTS)
def test_several_devices_again_and_again(gpus: Gpus, graph: ww.Graph, truth: int, algorithm: str, cut: str) -> None:
    devices = gpus(2)
    count_on_several(graph, truth, algorithm, cut)
    assert all(device.live == 0 for device in devices)


@pytest.mark.parametrize("degree", [3, 9])
def test_bbtc_runs_as_published_where_it_is_named(gpus: Gpus, degree: int) -> None:
    """Parts by the average degree (§7.3), four streams on each GPU (§5), which have the heavier half (§7.10)."""
    devices, pairs = gpus(2), random_pairs(120, 120 * degree, seed=4)
    graph = ww.Graph(pairs)
    result = ww.run("count", graph, device="hybrid", algorithm="bbtc", threads=4)
    assert result.answer == ww.count(graph, device="cpu", algorithm="reference")
    blocks, knobs = result.plan.blocks, result.plan.knobs
    assert blocks is not None
    assert blocks.parts == round(graph.m / graph.n) >= 3
    assert [knobs[name] for name in ("schedule", "estimator", "cutoff", "streams")] == ["cutoff", "time", 50, 4]
    assert (blocks.streams, blocks.cutoff) == (4, -(-blocks.tasks // 2))
    places = [device for device, _ in check_timeline(result).places]
    assert Counter(places) == {"cpu": 2, **{f"{there.name} {at}": 4 for at, there in enumerate(devices)}}


@pytest.mark.parametrize("knobs", [{}, {"near_hubs": 8}], ids=["all near", "few near"])
def test_kernels_are_those_that_tasks_launch(gpus: Gpus, graph: ww.Graph, truth: int, knobs: dict[str, int]) -> None:
    (device,) = gpus()
    assert hybrid(graph, algorithm="keystone", parts=2, places="gpu", streams=1, **knobs).answer == truth
    assert not device.late
    stems = {kernel.stem for kernel in device.ready}
    assert stems == {"keystone_triples", *(["keystone_triple_rows"] if knobs else [])}


def test_kernels_are_looked_for_at_the_size_of_the_device() -> None:
    device: Any = SimpleNamespace(sms=5, shared_bytes=99, resident_blocks=lambda *_asked, defines: len(defines))
    noting = _Noting(device)
    assert (noting.sms, noting.shared_bytes, noting.resident_blocks("s", "k", 32, defines=(("A", 1),))) == (5, 99, 1)


def test_the_pace_of_a_gpu_is_that_of_its_kernels(gpus: Gpus, graph: ww.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a stream's thread does meanwhile, which is to copy, does not make it seem slower."""
    (device,) = gpus()
    device.on_send = lambda _: time.sleep(1e-3)
    told: dict[int, float] = {}
    finish = TaskQueue.finish

    def note(queue: TaskQueue, tasks: TaskTable, place: str, seconds: float, *, on_device: bool) -> None:
        told[int(tasks.number[0])] = seconds
        finish(queue, tasks, place, seconds, on_device=on_device)

    monkeypatch.setattr(TaskQueue, "finish", note)
    timeline = hybrid(graph, places="gpu").timeline
    assert timeline is not None
    assert told == {span.task: pytest.approx(span.end - span.begin) for span in timeline.spans}


def test_a_count_that_never_ends_fails(gpus: Gpus, graph: ww.Graph) -> None:
    (device,) = gpus()
    goes_on, has_ended = threading.Event(), threading.Event()

    def wait(_: int) -> None:
        goes_on.wait(60)

    def count() -> None:
        hybrid(graph, places="gpu")
        has_ended.set()

    device.on_kernel = wait
    with pytest.raises(AssertionError, match=r"still at work after 0\.2 s:\n  File "):
        within(0.2, count)
    goes_on.set()
    assert has_ended.wait(60)


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
    assert result.timeline is not None
    assert device.sends <= len(result.timeline.spans)  # the blocks of a batch come together
    (use,) = result.timeline.device_uses
    beside = device.most_live - use.copied_bytes
    assert 0 <= beside <= 4 * blocks.blocks  # one block after the other begins at a whole 64-bit word


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
    options = dict(sources[name])
    small = ww.Graph(options.pop("source"), **options)
    for parts in (0, 1, at_most(7, small)):
        result = hybrid(small, parts=parts)
        assert result.answer == 0
        assert result.timeline is not None


@pytest.mark.parametrize("how", [{"device": "hybrid"}, {"device": "cpu", "algorithm": "bbtc"}])
def test_more_parts_than_vertices_are_refused(gpus: Gpus, how: dict[str, Any]) -> None:
    gpus()
    with pytest.raises(InputError, match=r"^4 vertices can be cut into at most 4 parts, not 30; ask for fewer$"):
        ww.count([(0, 1), (1, 2), (2, 3)], knobs={"parts": 30}, **how)
    assert ww.count([(0, 1), (1, 2), (2, 3)], knobs={"parts": 4}, **how) == 0


def test_bbtc_is_cut_into_64_parts_at_most_by_itself() -> None:
    """And says so; the knob may ask for more."""
    clique, cpu = generate.complete(140).pairs(), {"places": "cpu"}

    def plan(**knobs: int) -> Plan:
        return ww.explain("count", clique, device="hybrid", algorithm="bbtc", knobs={**cpu, **knobs})

    chosen, asked = plan(), plan(parts=66)
    assert [each.blocks.parts for each in (chosen, asked) if each.blocks is not None] == [64, 66]
    said = "64 parts, the most that are chosen: the average out-degree is 70"
    assert (said in chosen.reasons, said in asked.reasons) == (True, False)


def test_parts_that_are_chosen_are_no_more_than_vertices() -> None:
    """However little memory a GPU has."""
    small = ww.Graph([(0, 1), (1, 2), (2, 3)]).oriented()
    assert choose_parts(small, pair_up("keystone", None), 1) == 4


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


@needs_compiler
def test_trust_gives_each_gpu_that_a_graph_fits_a_share_of_its_rows(gpus: Gpus, graph: ww.Graph, truth: int) -> None:
    gpus(3)
    whole = ww.run("count", graph, device="hybrid", algorithm="trust", knobs={"places": "gpu"})
    assert whole.answer == truth
    assert whole.plan.blocks is not None
    assert (whole.plan.blocks.parts, whole.plan.blocks.tasks) == (1, 3)
    assert "TRUST's rule for 3 GPUs that each hold the graph: n = 1, m = 3" in whole.plan.reasons
    by_request = ww.run("count", graph, device="hybrid", algorithm="trust", shares=2).plan.blocks
    too_large = ww.run("count", graph, device="hybrid", algorithm="trust", knobs={"device_bytes": 5 << 20}).plan.blocks
    ours = ww.run("count", graph, device="hybrid").plan.blocks
    assert all(blocks is not None and blocks.parts > 1 for blocks in (by_request, too_large, ours))


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
