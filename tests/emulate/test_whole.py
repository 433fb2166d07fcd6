"""From a source to its answer on a device that is emulated: the host's code is the real one, the answers the CPU's."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.graphs import TRIANGLE_QUESTIONS, fixture_pairs, fixture_path, random_pairs
from helpers.same_answers import assert_same

import wedgewise as ww
from emulate.copying import DeviceArray, EmulatedGpu, LyingThere, install
from emulate.emulated_cases import RECORDS, needs_compiler
from emulate.emulator import EmulationError
from wedgewise import generate
from wedgewise.answer.source import GraphToCount
from wedgewise.errors import InputError
from wedgewise.run import choose
from wedgewise.write import edges as write

pytestmark = needs_compiler
KRONECKER = generate.kronecker(6, seed=1).pairs()
NAMES = [f"vertex {number}" for number in range(64)]
DIRTY = np.concatenate([random_pairs(40, 300, seed=6), [(3, 3), (39, 39)], random_pairs(40, 30, seed=6)[:, ::-1]])
PREPARED = {"prepare", "kernel"}

SOURCES: dict[str, Callable[[], dict[str, Any]]] = {
    "karate": lambda: {"source": fixture_pairs("karate")},
    "lesmis": lambda: {"source": fixture_path("lesmis")},
    "kronecker": lambda: {"source": KRONECKER},
    "book": lambda: {"source": generate.book(50).pairs()},
    "dirty int32": lambda: {"source": DIRTY.astype(np.int32)},
    "dirty uint64": lambda: {"source": DIRTY.astype(np.uint64)},
    "sparse labels": lambda: {"source": DIRTY * 10**15 + 7},
    "text labels": lambda: {"source": [(NAMES[u], NAMES[v]) for u, v in DIRTY.tolist()]},
    "isolated vertices": lambda: {"source": DIRTY, "n": 50},
    "no triangles": lambda: {"source": generate.hypercube(4).pairs()},
    "no edges": lambda: {"source": np.empty((0, 2), np.int64), "n": 5},
    "nothing": lambda: {"source": np.empty((0, 2), np.int64)},
}


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> EmulatedGpu:
    device = EmulatedGpu()
    install(device, monkeypatch)
    return device


def on_cpu(question: str, graph: Any, **details: Any) -> Any:
    return ww.run(question, graph, device="cpu", **details).answer


@pytest.mark.parametrize("name", SOURCES)
def test_every_question_is_answered_as_on_the_cpu(name: str, device: EmulatedGpu) -> None:
    source = SOURCES[name]()
    data = source.pop("source")
    here, there = ww.Graph(data, **source, device="cpu"), ww.Graph(data, **source, device="cuda")
    assert here.device_nbytes == 0
    assert there.nbytes == 0
    for question in TRIANGLE_QUESTIONS:
        result = ww.run(question, there, device="cuda")
        assert (result.device, result.plan.device) == ("cuda", "cuda"), question
        assert_same(result.answer, on_cpu(question, here))
        assert (result.n, result.m, result.cleaned) == (here.n, here.m, here.cleaned)
    assert_same(there.degrees, here.degrees)
    assert_same(np.asarray(there.labels), np.asarray(here.labels))
    assert_same(there.edges, here.edges)


@pytest.mark.parametrize("name", ["karate", "sparse labels", "text labels"])
def test_a_graph_that_lies_there_is_taken_along_on_the_host(name: str, device: EmulatedGpu) -> None:
    source = SOURCES[name]()
    there = ww.Graph(source.pop("source"), **source, device="cuda")
    assert not there.degrees.flags.writeable
    for again in (pickle.loads(pickle.dumps(there)), copy.copy(there), copy.deepcopy(there)):
        assert again.device_nbytes == 0
        assert_same(ww.run("triangles", again, device="cuda").answer, on_cpu("triangles", there))


@pytest.mark.parametrize("question", ["clustering", "average_clustering", "transitivity"])
def test_details_count_there_too(question: str, device: EmulatedGpu) -> None:
    graph = ww.Graph(DIRTY, n=50, device="cuda")
    assert_same(
        ww.run(question, graph, device="cuda", undefined="nan").answer, on_cpu(question, graph, undefined="nan")
    )


def test_the_emulated_device_keeps_its_arrays_apart(device: EmulatedGpu) -> None:
    with pytest.raises(EmulationError, match="outside of the device's own pool"):
        device.xp.zeros(3)
    with device.memory():
        there = device.xp.arange(3)
        assert isinstance(there + there, DeviceArray)
        assert type(device.download(there)) is np.ndarray
        with pytest.raises(EmulationError, match="mixes arrays"):
            there + np.arange(3)
        with pytest.raises(EmulationError, match="an array of the host"):
            device.launch("polak", "count", 1, 32, (np.arange(3),))


def test_results_say_where_time_went(device: EmulatedGpu) -> None:
    result = ww.run("count", KRONECKER, device="cuda")
    assert list(result.seconds) == ["read and clean", "copy", "clean and orient", "prepare", "kernel"]
    assert min(result.seconds.values()) >= 0
    assert result.wedges_tested > 0
    assert asdict(result)["plan"]["device"] == "cuda"


def test_a_second_question_prepares_nothing_again(device: EmulatedGpu) -> None:
    graph = ww.Graph(KRONECKER, device="cuda")
    assert set(ww.run("count", graph, device="cuda").seconds) == {"copy", "clean", "orient", *PREPARED}
    assert set(ww.run("count", graph, device="cuda").seconds) == PREPARED
    assert set(ww.run("edge_support", graph, device="cuda").seconds) == {"orient", *PREPARED, "answer"}
    assert set(ww.run("edge_support", graph, device="cuda").seconds) == {*PREPARED, "answer"}
    assert graph.preparations == 0


def test_what_was_prepared_is_given_back(device: EmulatedGpu) -> None:
    graph = ww.Graph(KRONECKER, device="cuda")
    cleaned = graph.device_nbytes
    assert cleaned == 8 * graph.m + 4 * graph.n
    first = graph.on_device()
    assert graph.device_nbytes == cleaned + 4 * graph.m + 4 * (graph.n + 1) + 4 * graph.n
    assert graph.on_device() is first
    before = ww.run("edge_support", graph, device="cuda").answer
    assert graph.device_nbytes == cleaned + 8 * graph.m + 4 * (graph.n + 1) + 4 * graph.n
    graph.release_device()
    assert graph.device_nbytes == cleaned
    assert_same(ww.run("edge_support", graph, device="cuda").answer, before)
    assert graph.on_device() is not first
    graph.release()
    assert graph.device_nbytes == cleaned


def test_labels_that_lie_there_are_counted(device: EmulatedGpu) -> None:
    graph = ww.Graph(DIRTY * 10**15, device="cuda")
    assert graph.device_nbytes == 8 * graph.m + 4 * graph.n + 8 * graph.n


def test_a_graph_there_is_asked_by_label(device: EmulatedGpu) -> None:
    for source in (DIRTY * 10**15 + 7, [(NAMES[u], NAMES[v]) for u, v in DIRTY.tolist()]):
        there, here = ww.Graph(source, device="cuda"), ww.Graph(source, device="cpu")
        assert there.index(there.labels).tolist() == list(range(here.n))
        assert there.degree(here.labels).tolist() == here.degrees.tolist()
        assert [list(row) for row in there.neighbors(here.labels)] == [list(here.neighbors(v)) for v in here.labels]


@pytest.mark.parametrize("is_oriented", [False, True])
def test_a_graph_of_the_host_is_copied(is_oriented: bool, device: EmulatedGpu) -> None:
    graph = ww.Graph(DIRTY * 3, device="cpu")
    expected = {question: on_cpu(question, graph) for question in TRIANGLE_QUESTIONS}
    graph.release()
    if is_oriented:
        graph.oriented()
    stages = {"copy"} if is_oriented else {"copy", "orient"}
    result = ww.run("count", graph, device="cuda")
    assert (result.device, set(result.seconds)) == ("cuda", {*stages, *PREPARED})
    for question in TRIANGLE_QUESTIONS:
        assert_same(ww.run(question, graph, device="cuda").answer, expected[question])
    graph.release_device()
    assert graph.device_nbytes == 0


@pytest.mark.parametrize("algorithm", RECORDS)
def test_orders_and_relabellings(algorithm: str, device: EmulatedGpu) -> None:
    graph, record = ww.Graph(DIRTY, device="cuda"), RECORDS[algorithm]
    expected = ww.count(graph, device="cpu")
    for order in record.orders:
        for relabel in record.relabellings:
            result = ww.run("count", graph, device="cuda", algorithm=algorithm, order=order, relabel=relabel)
            assert (result.answer, result.algorithm, result.device) == (expected, algorithm, "cuda")
            assert (result.plan.order, result.plan.relabel) == (order, relabel)


@pytest.mark.parametrize(
    "algorithm", [name for name, record in RECORDS.items() if record.whole_on_device("count").cost is not None]
)
def test_pairs_are_counted_in_the_order_of_raw_degrees(
    algorithm: str, device: EmulatedGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choose, "_choose_on_device", lambda *_: (RECORDS[algorithm], ["led to it"]))
    result = ww.run("count", DIRTY, device="cuda")
    assert (result.answer, result.algorithm, result.plan.order) == (ww.count(DIRTY), algorithm, "raw-degree")
    assert result.cleaned == ww.Graph(DIRTY).cleaned


def test_what_a_count_of_pairs_made_is_a_whole_graph_when_it_is_asked(device: EmulatedGpu) -> None:
    for spread in (1, 3, 10**15):
        pairs = DIRTY * spread
        there, here = GraphToCount(pairs, device="cuda"), ww.Graph(pairs, device="cpu")
        assert there.is_ranked
        held = there.device_nbytes
        of_labels = {1: 0, 3: 4, 10**15: 8}[spread] * there.n
        assert held == 4 * there.m + 4 * (there.n + 1) + 4 * there.n + of_labels
        assert (there.n, there.m, there.cleaned) == (here.n, here.m, here.cleaned)
        assert ww.count(there, device="cuda") == ww.count(here)
        assert there.device_nbytes == held
        assert (there.paths, there.degrees.tolist()) == (here.paths, here.degrees.tolist())
        assert there.device_nbytes == held + 8 * there.m + 4 * there.n
        assert_same(there.edges, here.edges)
        assert_same(np.asarray(there.labels), np.asarray(here.labels))
        there.release()
        assert ww.count(there, device="cuda") == ww.count(here)
        assert_same(ww.run("triangles", there, device="cuda").answer, on_cpu("triangles", here))


@pytest.mark.parametrize("order", RECORDS["keystone"].orders)
def test_arrays_do_not_depend_on_the_order(order: str, device: EmulatedGpu) -> None:
    graph = ww.Graph(DIRTY * 5, device="cuda")
    for question in ("triangles", "edge_support"):
        assert_same(ww.run(question, graph, device="cuda", order=order).answer, on_cpu(question, graph))


def test_orders_that_do_not_exist_or_fit(device: EmulatedGpu) -> None:
    with pytest.raises(InputError, match="keystone takes the orders degree, core, id, not 'size'"):
        ww.run("count", KRONECKER, device="cuda", order="size")
    with pytest.raises(InputError, match="keystone takes ids by rank, not 'classes'"):
        ww.run("count", KRONECKER, device="cuda", relabel="classes")
    with pytest.raises(InputError, match="threads is at least 1, not 0"):
        ww.count(KRONECKER, device="cuda", threads=0)


@pytest.mark.parametrize(("start", "stop"), [(0, None), (7, 200), (200, 10**9), (5, 5)])
def test_listings_in_batches(start: int, stop: int | None, device: EmulatedGpu) -> None:
    graph = ww.Graph(KRONECKER, device="cuda")
    rows = on_cpu("list_triangles", graph)[start:stop]
    batches = list(ww.iter_triangles(graph, batch=100, start=start, stop=stop, device="cuda"))
    assert [len(batch) for batch in batches[:-1]] == [100] * (len(batches) - 1)
    assert_same(np.concatenate([*batches, rows[:0]]), rows)
    assert_same(ww.list_triangles(graph, start=start, stop=stop, device="cuda"), rows)


def test_a_listing_outlives_what_was_prepared(device: EmulatedGpu) -> None:
    graph = ww.Graph(KRONECKER, device="cuda")
    batches = ww.iter_triangles(graph, batch=100, device="cuda")
    graph.release()
    assert_same(np.concatenate(list(batches)), on_cpu("list_triangles", graph))


def test_triangles_are_written_by_their_labels(device: EmulatedGpu, tmp_path: Path) -> None:
    for name in ("sparse labels", "text labels"):
        source = SOURCES[name]()["source"]
        written = [tmp_path / f"{name} {place}.csv" for place in ("cpu", "cuda")]
        counts = {ww.write_triangles(source, path, batch=50, device=path.stem[-4:].strip()) for path in written}
        assert counts == {ww.count(DIRTY)}
        assert written[0].read_bytes() == written[1].read_bytes()


@pytest.mark.parametrize("question", TRIANGLE_QUESTIONS)
def test_answers_are_verified_on_the_host(question: str, device: EmulatedGpu) -> None:
    result = ww.run(question, DIRTY, device="cuda", verify=True)
    assert result.device == "cuda"
    assert str(result.verified).startswith("recounted by ")
    assert result.seconds["verify"] > 0


@pytest.mark.parametrize("question", ["count", "triangles", "edge_support", "list_triangles"])
def test_wrong_answers_do_not_pass(question: str, device: EmulatedGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    download = device.download

    def wrong(array: Any, dtype: Any = None) -> Any:
        copied = download(array, dtype)
        if copied.dtype == np.uint64 and copied.shape == (2,):
            copied[0] += 1
        return copied

    monkeypatch.setattr(device, "download", wrong)
    with pytest.raises(ww.errors.VerificationError, match="please report this"):
        ww.run(question, DIRTY, device="cuda", verify=True)


def test_similarity_of_edges_is_found_where_supports_are(device: EmulatedGpu) -> None:
    for measure, where in (("jaccard", "cuda"), ("adamic_adar", "cpu")):
        result = ww.run("similarity", DIRTY, measure=measure, device="cuda")
        assert result.device == where
        assert_same(result.answer, on_cpu("similarity", DIRTY, measure=measure))


def test_plans_are_explained_without_counting(device: EmulatedGpu) -> None:
    graph = ww.Graph(KRONECKER, device="cuda")
    graph.on_device()
    plan = ww.explain("triangles", graph, device="cuda")
    assert device.launches == 0
    assert (plan.device, plan.algorithm, plan.computes) == ("cuda", "keystone", "triangles")
    assert "triangles: keystone on cuda" in str(plan)
    assert plan == ww.run("triangles", graph, device="cuda").plan


@pytest.mark.parametrize("by_dlpack", [False, True])
@pytest.mark.parametrize("device_asked", ["auto", "cuda"])
def test_arrays_that_lie_there_stay_there(device_asked: str, by_dlpack: bool, device: EmulatedGpu) -> None:
    pairs = DIRTY * 10**12
    before = pairs.copy()
    graph = ww.Graph(LyingThere(pairs, by_dlpack=by_dlpack), device=device_asked)
    assert graph.nbytes == 0
    result = ww.run("triangles", graph, device="cuda")
    assert set(result.seconds) == {"clean", "orient", *PREPARED, "answer"}
    assert_same(result.answer, on_cpu("triangles", before))
    assert_same(graph.labels, ww.Graph(before).labels)
    assert pairs.tobytes() == before.tobytes()


@pytest.mark.parametrize("suffix", ["txt", "txt.gz", "npy", "bel", "txt.xz"])
def test_files_are_read_to_the_device(suffix: str, device: EmulatedGpu, tmp_path: Path) -> None:
    path = tmp_path / f"pairs.{suffix}"
    write.write_edges(DIRTY, path)
    result = ww.run("edge_support", path, device="cuda")
    assert result.device == "cuda"
    assert {"read and clean", "copy", "clean", "orient"} <= set(result.seconds)
    assert min(result.seconds.values()) >= 0
    assert result.cleaned == ww.read(path).cleaned
    assert_same(result.answer, on_cpu("edge_support", path))


def test_text_and_comments_are_read_to_the_device(device: EmulatedGpu, tmp_path: Path) -> None:
    named, commented = tmp_path / "named.txt", tmp_path / "commented.txt"
    named.write_text("".join(f"v{u} v{v}\n" for u, v in DIRTY.tolist()))
    commented.write_text("# nothing\n" + "".join(f"{u} {v} 7\n# {u}\n" for u, v in DIRTY.tolist()) + "5 4294967296\n")
    for path in (named, commented):
        graph = ww.Graph(path, device="cuda")
        assert graph.device_nbytes > 0
        assert graph.cleaned == ww.read(path).cleaned
        assert_same(ww.triangles(graph, device="cuda"), on_cpu("triangles", path))
        assert list(graph.labels) == list(ww.read(path).labels)
