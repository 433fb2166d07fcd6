"""Where an emulated device has too little memory, is not worth it, or is interrupted: same answers, and the reasons."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.graphs import TRIANGLE_QUESTIONS, random_pairs

import wedgewise as ww
from emulate.copying import PLENTY, EmulatedGpu, LyingThere, install
from emulate.emulated_cases import needs_compiler
from wedgewise import generate
from wedgewise.algorithms import registry
from wedgewise.algorithms._contract import Shape
from wedgewise.answer.source import GraphToCount
from wedgewise.errors import DeviceMemoryError, InputError, MemoryLimitError, PreconditionError, UnknownNameError
from wedgewise.machine import gpu, jit
from wedgewise.prepare.clean import clean_device_bytes
from wedgewise.run import choose
from wedgewise.run.choose import MAX_BATCHES
from wedgewise.run.graph_memory import device_bytes
from wedgewise.run.plan import OrientedShape
from wedgewise.run.request import Request
from wedgewise.write import edges as write

pytestmark = needs_compiler
PAIRS = generate.kronecker(6, seed=1).pairs()
TRIANGLES = ww.count(PAIRS, device="cpu")
LITTLE = 100  # bytes
KEYSTONE: dict[str, Any] = {"device": "cuda", "algorithm": "keystone"}
MANY_UNITS = {"near_hubs": 1}  # so that there are as many batches as are asked for
ON_THE_HOST = "on the CPU, because the GPU has too little memory: "
CLEANED_ON_THE_HOST = "cleaned " + ON_THE_HOST


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> EmulatedGpu:
    device = EmulatedGpu()
    install(device, monkeypatch)
    return device


@pytest.fixture
def graph(device: EmulatedGpu) -> ww.Graph:
    """A graph that lies on the device, oriented."""
    graph = ww.Graph(PAIRS, device="cuda")
    graph.on_device()
    return graph


def needed(graph: ww.Graph, batches: int) -> int:
    """What keystone takes to count beyond the oriented graph."""
    return ww.explain("count", graph, **KEYSTONE, knobs={**MANY_UNITS, "batches": batches}).bytes_needed


def failing(
    device: EmulatedGpu, monkeypatch: pytest.MonkeyPatch, stem: str, error: Callable[[], BaseException], times: int
) -> list[str]:
    """Let the first launches of a stem's kernels fail; the list of those that did."""
    launch = device.launch
    failed: list[str] = []

    def fail(launched: str, kernel: str, *arguments: Any, **options: Any) -> None:
        if launched == stem and len(failed) < times:
            failed.append(kernel)
            raise error()
        launch(launched, kernel, *arguments, **options)

    monkeypatch.setattr(device, "launch", fail)
    return failed


def no_memory() -> DeviceMemoryError:
    return DeviceMemoryError("Emulated GPU", wanted=None, free=77)


@pytest.mark.parametrize("batches", [2, 4])
def test_little_memory_takes_more_batches(batches: int, device: EmulatedGpu, graph: ww.Graph) -> None:
    enough, too_much = needed(graph, batches), needed(graph, batches // 2)
    device.free = (enough + too_much) // 2
    reported: list[tuple[str, int, int]] = []
    result = ww.run("count", graph, **KEYSTONE, knobs=MANY_UNITS, progress=lambda *step: reported.append(step))
    assert (result.answer, result.device, result.plan.knobs["batches"]) == (TRIANGLES, "cuda", batches)
    assert f"in {batches} batches, for {device.free:,} bytes of device memory" in result.plan.reasons
    assert result.plan.bytes_needed == enough
    assert reported == [("count", done + 1, batches) for done in range(batches)]


def test_batches_that_were_asked_for_are_no_news(device: EmulatedGpu, graph: ww.Graph) -> None:
    result = ww.run("count", graph, **KEYSTONE, knobs={"batches": 3})
    assert (result.answer, result.plan.knobs["batches"]) == (TRIANGLES, 3)
    assert not any("batches" in reason for reason in result.plan.reasons)


@pytest.mark.parametrize("question", TRIANGLE_QUESTIONS)
def test_too_little_memory_for_any_batch_leaves_it_to_the_host(
    question: str, device: EmulatedGpu, graph: ww.Graph
) -> None:
    device.free = LITTLE
    planned = ww.explain(question, graph, device="cuda")
    result = ww.run(question, graph, device="cuda")
    expected = ww.run(question, PAIRS, device="cpu")
    assert (result.device, planned.device) == ("cpu", "cpu")
    assert result.plan.reasons == planned.reasons
    assert any(reason.startswith(ON_THE_HOST) and reason.endswith(" are free") for reason in result.plan.reasons)
    np.testing.assert_equal(result.to_dict()["answer"], expected.to_dict()["answer"])


def test_the_host_gives_prepared_forms_back_and_the_device_is_asked_again(device: EmulatedGpu, graph: ww.Graph) -> None:
    held = graph.device_nbytes
    device.free = LITTLE
    assert ww.run("count", graph, device="cuda").device == "cpu"
    assert graph.device_nbytes < held
    device.free = PLENTY
    again = ww.run("count", graph, device="cuda")
    assert (again.answer, again.device, set(again.seconds)) == (TRIANGLES, "cuda", {"copy", "prepare", "kernel"})


def test_time_that_was_spent_in_vain_is_said_once(device: EmulatedGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = ww.Graph(PAIRS, device="cpu")
    failing(device, monkeypatch, "keystone", no_memory, 10**9)
    result = ww.run("count", graph, **KEYSTONE)
    assert (result.device, set(result.seconds)) == ("cpu", {"copy", "orient", "count"})
    assert set(ww.run("count", graph, device="cpu").seconds) == {"orient", "count"}


def test_the_order_of_a_listing_is_kept_on_the_host(device: EmulatedGpu, graph: ww.Graph) -> None:
    listed = ww.run("list_triangles", graph, device="cuda", order="id")
    device.free = LITTLE
    on_host = ww.run("list_triangles", graph, device="cuda", order="id")
    assert (listed.device, on_host.device, on_host.plan.order) == ("cuda", "cpu", "id")
    assert listed.answer.tolist() == on_host.answer.tolist() != ww.list_triangles(PAIRS, device="cpu").tolist()


def test_an_algorithm_of_both_places_is_kept_on_the_host(device: EmulatedGpu, graph: ww.Graph) -> None:
    device.free = LITTLE
    for algorithm, host_algorithms in (("keystone", {"keystone"}), ("polak", {"reference", "keystone"})):
        result = ww.run("count", graph, device="cuda", algorithm=algorithm, knobs={"block": 64})
        assert (result.answer, result.device) == (TRIANGLES, "cpu")
        assert result.algorithm in host_algorithms


@pytest.mark.parametrize("stem", ["keystone_prepare", "keystone"])
@pytest.mark.parametrize(("times", "batches"), [(1, 2), (3, 8)])
def test_memory_that_runs_out_on_the_way_doubles_the_batches(
    stem: str, times: int, batches: int, device: EmulatedGpu, graph: ww.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = failing(device, monkeypatch, stem, no_memory, times)
    result = ww.run("count", graph, **KEYSTONE)
    assert len(failed) == times
    assert (result.answer, result.device, result.plan.knobs["batches"]) == (TRIANGLES, "cuda", batches)
    assert result.plan.reasons[-1] == f"in {batches} batches: more memory was asked for and 77 are free"
    assert device.depth == 0


@pytest.mark.parametrize(("question", "stem"), [("count", "keystone"), ("edge_support", "keystone_answers")])
def test_memory_that_runs_out_again_and_again_leaves_it_to_the_host(
    question: str, stem: str, device: EmulatedGpu, graph: ww.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = failing(device, monkeypatch, stem, no_memory, 10**9)
    result = ww.run(question, graph, **KEYSTONE)
    assert len(failed) == MAX_BATCHES.bit_length()
    assert result.device == "cpu"
    assert result.plan.reasons[-1] == f"{ON_THE_HOST}more memory was asked for and 77 are free"
    np.testing.assert_array_equal(result.answer, ww.run(question, PAIRS, device="cpu").answer)


def test_polak_has_no_batches(device: EmulatedGpu, graph: ww.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = failing(device, monkeypatch, "polak", no_memory, 1)
    result = ww.run("count", graph, device="cuda", algorithm="polak")
    assert (result.answer, result.device, len(failed)) == (TRIANGLES, "cpu", 1)


@pytest.mark.parametrize("is_oriented", [False, True])
def test_a_graph_of_the_host_that_does_not_fit_stays_there(is_oriented: bool, device: EmulatedGpu) -> None:
    graph = ww.Graph(PAIRS, device="cpu")
    if is_oriented:
        graph.oriented()
    device.free = LITTLE
    result = ww.run("count", graph, device="cuda")
    assert (result.answer, result.device, graph.device_nbytes) == (TRIANGLES, "cpu", 0)
    assert result.plan.reasons[-1].startswith(ON_THE_HOST)


SOURCES: dict[str, Callable[[], Any]] = {
    "array": lambda: PAIRS,
    "array there": lambda: LyingThere(PAIRS, by_dlpack=True),
    "text": lambda: [(f"v{u}", f"v{v}") for u, v in PAIRS.tolist()],
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("free", [LITTLE, 8 * PAIRS.nbytes // PAIRS.itemsize])
def test_what_cannot_be_cleaned_there_is_cleaned_on_the_host(source: str, free: int, device: EmulatedGpu) -> None:
    device.free = free
    result = ww.run("count", SOURCES[source](), device="cuda")
    assert (result.answer, result.device) == (TRIANGLES, "cpu")
    assert any(reason.startswith(CLEANED_ON_THE_HOST) for reason in result.plan.reasons)
    assert result.plan.reasons[-1].startswith(ON_THE_HOST)
    assert min(result.seconds.values()) >= 0


def test_what_was_cleaned_on_the_host_is_counted_there_if_that_fits(device: EmulatedGpu) -> None:
    device.free = clean_device_bytes(len(PAIRS), PAIRS.itemsize, 2 * len(PAIRS))  # and none for the pairs themselves
    graph = ww.Graph(PAIRS, device="cuda")
    assert graph.device_nbytes == 0
    of_pairs = ww.run("count", PAIRS, device="cuda", order="degree")  # ranking takes less
    for result in (of_pairs, ww.run("count", graph, device="cuda")):
        assert (result.answer, result.device) == (TRIANGLES, "cuda")
        assert any(reason.startswith(CLEANED_ON_THE_HOST) for reason in result.plan.reasons)
        assert "clean" not in result.seconds


@pytest.mark.parametrize("spread", [1, 3, 10**15])
def test_ranked_pairs_come_to_the_host_without_room_for_their_simple_graph(spread: int, device: EmulatedGpu) -> None:
    there, here = (
        make(PAIRS.astype(np.int64) * spread, device=place)
        for make, place in ((GraphToCount, "cuda"), (ww.Graph, "cpu"))
    )
    device.free = LITTLE
    assert np.array_equal(there.edges, here.edges)
    assert np.array_equal(np.asarray(there.labels), np.asarray(here.labels))
    assert np.array_equal(there.degrees, here.degrees)


LARGE = Shape(n=1 << 18, m=1 << 22, wedges=1 << 31)


def test_the_model_takes_the_engine_for_large_graphs_and_a_leaner_one_where_it_has_no_room(device: EmulatedGpu) -> None:
    engine, lean = registry()["keystone", "cuda"], registry()["polak", "cuda"]
    most = device_bytes(engine, "count", LARGE, engine.settings({"batches": choose.MAX_BATCHES}))

    def chosen(shape: Shape) -> ww.Plan:
        return choose.make_device_plan(Request(), "count", OrientedShape(shape), device)

    assert chosen(LARGE).algorithm == "keystone"
    device.free = most - 1
    assert chosen(LARGE).algorithm != "keystone"
    device.free = device_bytes(lean, "count", LARGE, lean.settings(None)) - 1
    with pytest.raises(DeviceMemoryError):
        chosen(LARGE)


@pytest.mark.parametrize("suffix", ["txt", "npy", "bel", "txt.xz"])
def test_a_file_that_does_not_fit_is_read_again(suffix: str, device: EmulatedGpu, tmp_path: Path) -> None:
    path = tmp_path / f"pairs.{suffix}"
    write.write_edges(PAIRS, path)
    device.free = LITTLE
    result = ww.run("count", path, device="cuda")
    assert (result.answer, result.device) == (TRIANGLES, "cpu")
    assert ww.Graph(path, device="cuda").device_nbytes == 0


def stream() -> io.BytesIO:
    return io.BytesIO("".join(f"{u} {v}\n" for u, v in PAIRS.tolist()).encode())


def test_a_stream_is_read_once(device: EmulatedGpu) -> None:
    assert ww.run("count", stream(), device="cuda").device == "cuda"
    device.free = LITTLE
    with pytest.raises(DeviceMemoryError, match=r"Emulated GPU: .* bytes were asked for and 100 are free; use device="):
        ww.count(stream(), device="cuda")
    device.free = 10 * len(PAIRS)  # room for the pairs, none for cleaning
    result = ww.run("count", stream(), device="cuda")
    assert (result.answer, result.device) == (TRIANGLES, "cpu")


def test_a_memory_limit_counts_on_the_device_too(device: EmulatedGpu, graph: ww.Graph) -> None:
    limited = ww.run("count", graph, **KEYSTONE, knobs=MANY_UNITS, memory_limit=needed(graph, 4))
    assert (limited.answer, limited.device, limited.plan.knobs["batches"]) == (TRIANGLES, "cuda", 4)
    with pytest.raises(MemoryLimitError, match="raise memory_limit") as refused:
        ww.count(graph, device="cuda", memory_limit=LITTLE)
    assert not isinstance(refused.value, DeviceMemoryError)


@pytest.fixture
def costs(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """A function that says what it takes to load CuPy, where the kernels of the CPU are loaded."""
    monkeypatch.setattr(gpu, "is_likely", lambda: True)
    monkeypatch.setattr(jit, "load_seconds", lambda *_: 0.0)
    monkeypatch.setattr(choose, "DEVICE_SECONDS", 0.0)
    return lambda seconds: monkeypatch.setattr(gpu, "load_seconds", lambda: seconds)


@pytest.mark.parametrize(("load_seconds", "place"), [(0.0, "cuda"), (2.0, "cpu")])
@pytest.mark.parametrize("question", ["count", "edge_support"])
def test_auto_goes_where_it_takes_less_time(
    question: str, load_seconds: float, place: str, device: EmulatedGpu, costs: Callable[[float], None]
) -> None:
    costs(load_seconds)
    result = ww.run(question, PAIRS)
    assert result.device == ww.explain(question, PAIRS).device == place
    assert any(reason.startswith("on the GPU: about ") for reason in result.plan.reasons) == (place == "cuda")
    assert min(result.seconds.values()) >= 0
    np.testing.assert_array_equal(result.answer, ww.run(question, PAIRS, device="cpu").answer)


def test_auto_stays_where_nothing_is_likely_or_found(
    device: EmulatedGpu, costs: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    costs(0.0)
    monkeypatch.setattr(gpu, "why_no_device", lambda: "it is switched off")
    assert ww.run("count", PAIRS).device == "cpu"
    monkeypatch.undo()
    monkeypatch.setattr(gpu, "is_likely", lambda: False)
    monkeypatch.setattr(gpu, "why_no_device", lambda: pytest.fail("looked for a device that is not likely"))
    assert ww.run("count", PAIRS).device == "cpu"


def test_auto_falls_back_like_cuda(device: EmulatedGpu, costs: Callable[[float], None]) -> None:
    costs(0.0)
    device.free = LITTLE
    result = ww.run("count", PAIRS)
    assert (result.answer, result.device) == (TRIANGLES, "cpu")
    assert result.plan.reasons[-1].startswith(ON_THE_HOST)


def test_names_say_the_place(device: EmulatedGpu) -> None:
    named = ww.run("count", PAIRS, algorithm="polak")
    assert (named.answer, named.device, "copy" in named.seconds) == (TRIANGLES, "cuda", True)
    assert ww.run("count", PAIRS, algorithm="keystone").device == "cpu"
    with pytest.raises(UnknownNameError, match="no device named 'tpu'; there are: auto, cpu, cuda"):
        ww.count(PAIRS, device="tpu")
    with pytest.raises(UnknownNameError, match="no device named 'tpu'; there are: auto, cpu, cuda"):
        ww.Graph(PAIRS, device="tpu")
    with pytest.raises(UnknownNameError, match="polak"):
        ww.count(PAIRS, device="cuda", algorithm="forwards")


@pytest.mark.parametrize("kept", [{"weights": np.linspace(1, 2, 300)}, {"directed": True}], ids=" ".join)
def test_sums_without_a_fixed_order_are_left_to_the_host(kept: dict[str, Any], device: EmulatedGpu) -> None:
    pairs = random_pairs(40, 300, seed=2)
    graph = ww.Graph(pairs, device="cuda", **kept)
    details: dict[str, Any] = {"weighted": "weights" in kept}
    result = ww.run("clustering", graph, device="cuda", **details)
    assert result.device == "cpu"
    assert any("nothing computes weighted_triangles on a GPU" in reason for reason in result.plan.reasons)
    np.testing.assert_array_equal(result.answer, ww.run("clustering", graph, device="cpu", **details).answer)
    with pytest.raises(PreconditionError, match=r"polak on cuda does not compute weighted_triangles.*keystone on cpu"):
        ww.run("clustering", graph, device="cuda", algorithm="polak", **details)
    assert ww.run("count", graph, device="cuda").device == "cuda"


def test_bad_pairs_are_refused_as_on_the_host(device: EmulatedGpu) -> None:
    for bad, n in (([(0, 1), (2, -1)], None), ([(0, 1), (2, 7)], 5)):
        said = []
        for place in ("cpu", "cuda"):
            with pytest.raises(InputError) as refused:
                ww.Graph(np.array(bad), n=n, device=place)
            said.append(str(refused.value))
        assert said[0] == said[1]


@pytest.mark.parametrize("stem", ["keystone_prepare", "keystone"])
def test_ctrl_c_is_heard_and_leaves_the_device_usable(
    stem: str, device: EmulatedGpu, graph: ww.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = failing(device, monkeypatch, stem, KeyboardInterrupt, 1)
    with pytest.raises(KeyboardInterrupt):
        ww.count(graph, **KEYSTONE)
    assert (len(failed), device.depth) == (1, 0)
    result = ww.run("count", graph, **KEYSTONE)
    assert (result.answer, result.device) == (TRIANGLES, "cuda")


def test_progress_can_be_interrupted(device: EmulatedGpu, graph: ww.Graph) -> None:
    def interrupt(stage: str, done: int, total: int) -> None:
        if (stage, done, total) == ("count", 2, 4):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ww.count(graph, **KEYSTONE, knobs={**MANY_UNITS, "batches": 4}, progress=interrupt)
    assert ww.count(graph, device="cuda") == TRIANGLES


def test_other_failures_are_not_taken_for_a_lack_of_memory(
    device: EmulatedGpu, graph: ww.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(device, monkeypatch, "keystone", lambda: ww.errors.DeviceError("Emulated GPU failed"), 1)
    with pytest.raises(ww.errors.DeviceError, match="Emulated GPU failed"):
        ww.count(graph, **KEYSTONE)
