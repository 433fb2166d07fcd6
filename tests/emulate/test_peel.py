"""Peeling through the emulator: every path of its phases, what is told on the way, interrupts, room and memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from helpers.graphs import TRUTHS, truss_details

import wedgewise as ww
from emulate import emulator
from emulate.copying import EmulatedGpu, install
from emulate.emulated_cases import needs_compiler, on_device
from emulate.emulator import EmulatedDevice
from emulate.intersections import noted_launches
from emulate.peel_cases import (
    EVERY_WEDGE,
    NO_WEDGE,
    TIGHT,
    PeelCase,
    asked_of,
    check,
    found_by,
    graph_named,
    limited,
    numbers_of,
    small_cases,
)
from wedgewise.algorithms._contract import TRUSSES, Shape, TrussJob
from wedgewise.algorithms.gpu import peel
from wedgewise.algorithms.gpu.peel import LAST_BOUND, PeelingOnDevice, Stand, peeling_bytes
from wedgewise.errors import DeviceError, DeviceMemoryError, PreconditionError
from wedgewise.stages import DeviceGraph

pytestmark = needs_compiler
BLOCKS = (32, 64, 160, 1024)
SLACK = 1 << 14  # Python's own objects
CUDA: dict[str, Any] = {"device": "cuda", "algorithm": "peel", "knobs": {"block": 32}}

for_every_answer = pytest.mark.parametrize("computes", TRUSSES)
by_every_count = pytest.mark.parametrize("few_wedges", [EVERY_WEDGE, NO_WEDGE], ids=["peel", "keystone"])


@pytest.fixture(scope="module")
def device() -> EmulatedDevice:
    return EmulatedDevice()


@pytest.fixture
def emulated(monkeypatch: pytest.MonkeyPatch) -> EmulatedGpu:
    """A device in the place of the GPU."""
    found = EmulatedGpu()
    install(found, monkeypatch)
    return found


@pytest.mark.deep
@pytest.mark.parametrize("case", tuple(small_cases()), ids=str)
def test_all_trusses_are_those_of_the_reference(device: EmulatedDevice, case: PeelCase) -> None:
    check(case, device)


@by_every_count
@pytest.mark.parametrize("name", ["karate", "dolphins"])
def test_published_graphs(device: EmulatedDevice, name: str, few_wedges: int) -> None:
    with limited(TIGHT, few_wedges):
        numbers = found_by(name, "trussness", None, 32, device)[0].filled
        known = TRUTHS[name]["truss_edges_by_k"]
        assert {k: int((numbers >= int(k)).sum()) for k in known} == known
        last, _told = found_by(name, "max_truss", None, 32, device)
        assert (last.k, int(last.filled.sum())) == (TRUTHS[name]["kmax"], int((numbers == last.k).sum()))


@pytest.mark.deep
@by_every_count
@pytest.mark.parametrize("name", ["atlas_union", "lesmis", "football", "jazz"])
def test_larger_published_graphs(device: EmulatedDevice, name: str, few_wedges: int) -> None:
    with limited({"MIN_PACKED": 8, "MAX_WAITING": 16}, few_wedges):
        for computes, k in asked_of(name):
            found, _told = found_by(name, computes, k, 32, device)
            expected = numbers_of(name) if computes == "trussness" else numbers_of(name) >= found.k
            np.testing.assert_array_equal(found.filled, expected)


@by_every_count
def test_blocks_of_any_size_find_the_same(device: EmulatedDevice, few_wedges: int) -> None:
    with limited({}, few_wedges):
        for computes, k in (("trussness", None), ("max_truss", None), ("k_truss", 3), ("k_truss", 5)):
            found = [found_by("cliques in a row", computes, k, block, device)[0] for block in BLOCKS]
            assert len({(each.k, each.filled.tobytes()) for each in found}) == 1


@pytest.mark.parametrize("blocks", [1, 2, 7])
def test_any_number_of_blocks_finds_the_same(
    device: EmulatedDevice, monkeypatch: pytest.MonkeyPatch, blocks: int
) -> None:
    monkeypatch.setattr(emulator, "RESIDENT_BLOCKS", blocks)
    check(PeelCase("union"), device)


@pytest.mark.parametrize(("limit", "value"), [*TIGHT.items(), ("LAUNCH_PHASES", 1), ("LAUNCH_EDGES", 1)])
def test_each_limit_alone_changes_nothing(device: EmulatedDevice, limit: str, value: int) -> None:
    with limited({limit: value}, EVERY_WEDGE):
        for computes, k in (("trussness", None), ("max_truss", None), ("k_truss", 3), ("k_truss", 6)):
            found, _told = found_by("dense", computes, k, 32, device)
            expected = numbers_of("dense") if computes == "trussness" else numbers_of("dense") >= found.k
            np.testing.assert_array_equal(found.filled, expected)


def test_a_launch_takes_no_more_phases_than_it_may(device: EmulatedDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    launches = noted_launches(monkeypatch, device)
    with limited({**TIGHT, "LAUNCH_PHASES": 3, "LAUNCH_EDGES": 1 << 20}):
        _found, told = found_by("dense", "trussness", None, 32, device)
    peeled = [arguments for kernel, _, arguments in launches if kernel == "peel"]
    phases = Stand(*peeled[-1][-1].tolist()).phases
    assert len(peeled) == len(told) == -(-phases // 3) > 5


def test_a_launch_takes_no_more_edges_than_it_may(device: EmulatedDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    launches = noted_launches(monkeypatch, device)
    with limited({**TIGHT, "LAUNCH_PHASES": 1 << 20}, EVERY_WEDGE):
        found_by("dense", "k_truss", 6, 32, device)
    peeled = [arguments for kernel, _, arguments in launches if kernel == "peel"]
    stand = Stand(*peeled[-1][-1].tolist())
    assert len(peeled) >= (stand.counted + stand.head) // TIGHT["LAUNCH_EDGES"] > 20


def test_guesses_that_are_too_high_are_halved(device: EmulatedDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    for few_wedges in (EVERY_WEDGE, NO_WEDGE):
        for most in (3, 20, 21, 90, 1000):
            for bound in ("_most_k", "_most_k_by_degrees"):
                monkeypatch.setattr(peel, bound, lambda *_known, most=most: most)
            with limited({}, few_wedges):
                for name in ("complete-23", "book-90", "union", "star-90"):
                    found, _told = found_by(name, "max_truss", None, 32, device)
                    numbers = numbers_of(name)
                    assert found.k == numbers.max()
                    np.testing.assert_array_equal(found.filled, numbers == found.k)


@pytest.mark.parametrize("name", ["complete-23", "union", "dense", "star-90", "one edge", "matching"])
def test_no_truss_lies_beyond_the_first_guess(device: EmulatedDevice, name: str) -> None:
    form = on_device(graph_named(name), "degree", "rank")
    supports = ww.edge_support(graph_named(name), device="cpu")
    by_degrees = peel._most_k_by_degrees(PeelingOnDevice(form, 32, device).degrees, np)
    for most in (by_degrees, peel._most_k(supports, np)):
        assert numbers_of(name).max() <= most <= form.m + 2


@for_every_answer
@pytest.mark.parametrize("launches", [1, 2, 5])
def test_an_interrupt_between_any_two_launches_leaves_nothing_behind(
    emulated: EmulatedGpu, computes: str, launches: int
) -> None:
    graph, details, told = ww.Graph(graph_named("dense").edges), truss_details(computes), list[int]()

    def interrupt(_stage: str, done: int, _total: int) -> None:
        told.append(done)
        if len(told) == launches:
            raise KeyboardInterrupt

    with limited(TIGHT, EVERY_WEDGE):
        expected = ww.run(computes, graph, **CUDA, **details).to_dict()["answer"]
        held = graph.device_nbytes
        with pytest.raises(KeyboardInterrupt):
            ww.run(computes, graph, progress=interrupt, **CUDA, **details)
        assert (len(told), emulated.depth, graph.device_nbytes) == (launches, 0, held)
        assert ww.run(computes, graph, **CUDA, **details).to_dict()["answer"] == expected


def failing(device: EmulatedGpu, monkeypatch: pytest.MonkeyPatch, stem: str, error: Callable[[], Exception]) -> None:
    """Let every launch of a stem's kernels fail."""
    launch = device.launch

    def fail(launched: str, *arguments: Any, **options: Any) -> None:
        if launched == stem:
            raise error()
        launch(launched, *arguments, **options)

    monkeypatch.setattr(device, "launch", fail)


@for_every_answer
@pytest.mark.parametrize("stem", ["keystone_answers", "peel_rows", "peel"])
def test_memory_that_runs_out_on_the_way_leaves_it_to_the_host(
    emulated: EmulatedGpu, monkeypatch: pytest.MonkeyPatch, stem: str, computes: str
) -> None:
    graph, details = ww.Graph(graph_named("dense").edges), truss_details(computes)
    failing(emulated, monkeypatch, stem, partial(DeviceMemoryError, "Emulated GPU", wanted=None, free=77))
    with limited({}, NO_WEDGE):
        result = ww.run(computes, graph, **CUDA, **details)
    assert (result.device, emulated.depth) == ("cpu", 0)
    assert any(reason.endswith("more memory was asked for and 77 are free") for reason in result.plan.reasons)
    assert result.to_dict()["answer"] == ww.run(computes, graph, device="cpu", **details).to_dict()["answer"]


@for_every_answer
def test_other_failures_are_not_taken_for_a_lack_of_memory(
    emulated: EmulatedGpu, monkeypatch: pytest.MonkeyPatch, computes: str
) -> None:
    failing(emulated, monkeypatch, "peel", partial(DeviceError, "Emulated GPU failed"))
    with pytest.raises(DeviceError, match="Emulated GPU failed"):
        ww.run(computes, ww.Graph(graph_named("dense").edges), **CUDA, **truss_details(computes))


@for_every_answer
def test_graphs_whose_rows_have_too_many_entries_are_refused(device: EmulatedDevice, computes: str) -> None:
    edges, record = peel.MAX_EDGES, peel.ALGORITHM
    assert (record.most_arcs, "2^31" in record.limits) == (edges, True)
    offsets, endless = np.array([0, edges], np.uint64), np.broadcast_to(np.uint32(0), edges)
    graph = DeviceGraph(1, offsets, endless, np.zeros(1, np.uint32), "degree", "rank", 2**61)
    with pytest.raises(PreconditionError, match=r"fewer than 2\^31 edges, not 2,147,483,648; use device='cpu'"):
        record.truss_on_device(computes).find(graph, TrussJob(5, record.settings(None)), device)


SHAPES = ("random-200", "sparse", "matching", "star-2000", "complete-60", "triangle among many")


def peak_of(work: Callable[[], object]) -> int:
    """The memory of arrays while it runs, and of what it returns."""
    tracemalloc.start()
    try:
        kept = work()
        assert kept is not None
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", SHAPES)
def test_peeling_takes_what_it_says(device: EmulatedDevice, name: str) -> None:
    form = on_device(graph_named(name), "degree", "rank")

    def work() -> object:
        return PeelingOnDevice(form, 32, device).peel(0, LAST_BOUND, None, None)

    work()  # kernels are loaded
    assert 45 * form.m <= peak_of(work) <= peeling_bytes(form.n, form.m) + SLACK


@by_every_count
@for_every_answer
@pytest.mark.parametrize("name", SHAPES)
def test_every_answer_takes_no_more_than_is_planned(
    device: EmulatedDevice, name: str, computes: str, few_wedges: int
) -> None:
    form = on_device(graph_named(name), "degree", "rank")
    answer, knobs = peel.ALGORITHM.truss_on_device(computes), peel.ALGORITHM.settings({"block": 32})
    job = TrussJob(4 if computes == "k_truss" else None, knobs)
    with limited({}, few_wedges):
        answer.find(form, job, device)  # kernels are loaded
        taken = peak_of(lambda: answer.find(form, job, device))
    assert taken <= answer.bytes_needed(Shape(form.n, form.m, form.wedges), knobs) + SLACK
