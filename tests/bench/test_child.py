"""The child's own code, run in this process."""

from __future__ import annotations

import io
import json
import os
import selectors
import signal
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from emulate.copying import EmulatedGpu, install
from emulate.emulated_cases import needs_compiler
from helpers.fake_cupy import FakeCupy

import wedgewise as ww
from bench import bench_dummy as dummy
from bench.canned_cells import dummy_cell, make_bench, make_graph
from wedgewise.generate import kronecker
from wedgewise.machine import gpu
from wedgewise_bench import child, kernels, ours, watch
from wedgewise_bench.stopwatch import Stopwatch


def reports_of(
    folder: Path,
    algorithm: str,
    row: str = "count",
    *,
    question: str = "count",
    repeats: int = child.MAX_REPEATS,
    device: str = "cpu",
    knobs: Mapping[str, str] = MappingProxyType({}),
    module: ModuleType = dummy,
    **details: int,
) -> list[dict[str, Any]]:
    graph = make_graph(folder)
    job = {
        "source": module.__file__,
        "name": "dummy" if module is dummy else "wedgewise",
        "algorithm": algorithm,
        "threads": 1,
        "knobs": dict(knobs),
        "device": device,
        "question": question,
        "details": details,
        "row": row,
        "repeats": repeats,
        "pairs_path": str(graph.pairs_path),
        "text_path": str(graph.text_path),
    }
    reading, writing = os.pipe()
    child.main(job, writing)
    with os.fdopen(reading) as pipe:
        return [json.loads(line) for line in pipe]


@pytest.mark.parametrize("row", ["count", "edges"])
def test_stages_then_repeats_then_the_peak(tmp_path: Path, row: str) -> None:
    reports = reports_of(tmp_path, "right", row)
    stages = [line["stage"] for line in reports if "stage" in line]
    answers = [line["answer"] for line in reports if "answer" in line]
    assert stages == ["load", "prepare", "count", *["count", "check"] * child.MAX_REPEATS]
    assert answers == [dummy.TRIANGLES] * child.MAX_REPEATS
    assert reports[-1]["peak_bytes"] > 2**20


def test_file_row_answers_once(tmp_path: Path) -> None:
    reports = reports_of(tmp_path, "right", "file")
    assert [line["answer"] for line in reports if "answer" in line] == [dummy.TRIANGLES]


def test_long_runs_are_timed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "LONG_SECONDS", 0.0)
    reports = reports_of(tmp_path, "right")
    assert sum("timed" in line for line in reports) == 1


def test_repeats_have_a_limit(tmp_path: Path) -> None:
    assert sum("timed" in line for line in reports_of(tmp_path, "right", repeats=2)) == 2


def test_what_needs_no_warming_up_is_timed_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "cold.py"
    source.write_text(Path(dummy.__file__).read_text().replace("warms_up: ClassVar[bool] = True", "warms_up = False"))
    monkeypatch.setattr(dummy, "__file__", str(source))
    stages = [line["stage"] for line in reports_of(tmp_path, "right", repeats=1) if "stage" in line]
    assert stages == ["load", "prepare", "count", "check"]


def test_our_own_answers_are_told_apart_by_stage(tmp_path: Path) -> None:
    for row, stages in (("count", {"prepare", "kernel"}), ("edges", {"prepare", "kernel", "whole"})):
        reports = reports_of(tmp_path, "reference", row, repeats=2, module=ours)
        timed = [line for line in reports if "timed" in line]
        assert len(timed) == 2
        assert all(set(line["stages"]) == stages for line in timed)
        assert all(sum(line["stages"].values()) <= 2 * line["timed"] for line in timed)
        (found, _) = [line for line in reports if "answer" in line]
        assert (found["answer"], found["edges"]) == (1, 3)
        (facts,) = [line["facts"] for line in reports if "facts" in line]
        assert (facts["chosen"], facts["vertices"]) == ("reference", 3)
        assert facts["wedges_tested"] > 0


def test_a_device_that_is_not_there_is_unavailable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "why_no_device", lambda: "no GPU here")
    for device in ("cuda", "hybrid"):
        last = reports_of(tmp_path, "auto", device=device, module=ours)[-1]
        assert (last["failed"], last["message"]) == ("unavailable", "no GPU here")


@pytest.mark.deep
def test_the_hybrid_tells_what_ran_where(tmp_path: Path) -> None:
    where: dict[str, Any] = {"device": "hybrid", "knobs": {"places": "cpu"}}
    reports = reports_of(tmp_path, "keystone", repeats=1, module=ours, **where)
    (timed,) = [line for line in reports if "timed" in line]
    assert set(timed["stages"]) == {"prepare", "kernel"}
    (facts,) = [line["facts"] for line in reports if "facts" in line]
    assert {span["device"] for span in facts["timeline"]["spans"]} == {"cpu"}
    assert (facts["chosen"], facts["bytes_moved"]) == ("keystone", 0)
    assert [line["answer"] for line in reports if "answer" in line] == [1]


@pytest.fixture
def emulated(monkeypatch: pytest.MonkeyPatch) -> EmulatedGpu:
    device = EmulatedGpu()
    install(device, monkeypatch)
    monkeypatch.setattr(kernels, "COPIED_BYTES", 1 << 16)
    return device


@needs_compiler
def test_a_count_on_a_device_is_its_kernels(tmp_path: Path, emulated: EmulatedGpu) -> None:
    reports = reports_of(tmp_path, "polak", repeats=3, device="cuda", module=ours)
    launches = emulated.launches
    timed = [line for line in reports if "timed" in line]
    assert [line["timed"] for line in timed] == [line["stages"]["kernel"] for line in timed]
    assert {line["stages"]["prepare"] for line in timed} == {timed[0]["stages"]["prepare"]}  # made once
    assert [(line["answer"], line["edges"]) for line in reports if "answer" in line] == [(1, 3)] * 3
    (facts,) = [line["facts"] for line in reports if "facts" in line]
    assert (facts["chosen"], facts["vertices"]) == ("polak", 3)
    assert facts["wedges_tested"] > 0
    assert facts["limit_seconds"] > 0
    reports_of(tmp_path, "polak", repeats=1, device="cuda", module=ours)
    assert 0 < emulated.launches - launches < launches  # fewer repeats, as much preparation


def test_an_order_and_a_relabelling_are_those_of_the_run_and_no_knobs() -> None:
    star_with_a_rim = np.array([[0, v] for v in range(1, 9)] + [[v, v + 1] for v in range(1, 8)])
    asked: dict[str, Any] = {"order": "id", "relabel": "indegree", "matrix_length": 0}
    assert ours.Wedgewise("wetric", 1, asked).how["knobs"] == {"matrix_length": 0}
    tested = {}
    for order in ("degree", "id"):
        system = ours.Wedgewise("forward", 1, {"order": order, "relabel": "indegree"})
        system.load()
        assert system.count(system.prepare(star_with_a_rim)) == 7
        assert (system.result.plan.order, system.result.plan.relabel) == (order, "indegree")
        tested[order] = system.facts(None)["wedges_tested"]
    assert tested["degree"] < tested["id"]


@needs_compiler
@pytest.mark.usefixtures("emulated")
def test_an_order_and_a_relabelling_reach_the_kernels() -> None:
    star_with_a_rim = ww.Graph([[0, v] for v in range(1, 9)] + [[v, v + 1] for v in range(1, 8)], device="cuda")
    for order, most in (("degree", 2), ("id", 8)):
        work = kernels.DeviceCount(star_with_a_rim, "polak", None, order=order, relabel="indegree")
        assert work.launch() == 7
        assert (work.plan.order, work.plan.relabel) == (order, "indegree")
        facts = work.facts()
        assert (facts["out_degree_most"], facts["out_degree_mean"]) == (most, 15 / 9)
        assert 1 <= facts["out_degree_median"] <= most
    rounds = kernels.EagerRounds(star_with_a_rim, None, order="degree")
    assert int(np.diff(rounds.form.offsets).max()) == 2


@needs_compiler
@pytest.mark.usefixtures("emulated")
@pytest.mark.parametrize("is_cut", [False, True])
def test_every_launch_counts_afresh(is_cut: bool) -> None:
    pairs = kronecker(6, seed=1).pairs()
    work = kernels.DeviceCount(ww.Graph(pairs, device="cuda"), "keystone", None)
    assert work.kept is not None
    if is_cut:  # into batches, as a graph that is large
        work.work, work.kept = replace(work.work, batches=(*work.work.batches, tuple)), None
    expected = ww.count(pairs, device="cpu", algorithm="reference")
    tests = set()
    for _ in range(2):
        assert work.launch() == expected
        assert work.measured()["stages"]["kernel"] == work.seconds > 0
        tests.add(work.facts()["wedges_tested"])
    assert len(tests) == 1


@needs_compiler
@pytest.mark.usefixtures("emulated")
def test_a_graph_without_edges_is_counted_too() -> None:
    nothing = ww.Graph(np.empty((0, 2), np.int64), n=5, device="cuda")
    assert kernels.DeviceCount(nothing, "polak", None).launch() == 0
    no_vertices = ww.Graph(np.empty((0, 2), np.int64), device="cuda").on_device("degree", "rank")
    assert kernels.out_degrees(no_vertices, gpu.find_device()) == {}


@needs_compiler
@pytest.mark.usefixtures("emulated")
def test_whole_answers_of_a_device_are_told_apart(tmp_path: Path) -> None:
    reports = reports_of(tmp_path, "keystone", "edges", question="triangles", repeats=1, device="cuda", module=ours)
    (timed,) = [line for line in reports if "timed" in line]
    assert set(timed["stages"]) == {"prepare", "copy", "kernel", "answer", "whole"}
    assert timed["stages"]["whole"] == timed["timed"]
    (facts,) = [line["facts"] for line in reports if "facts" in line]
    assert facts["bytes_moved"] == 3 * 2 * 4 + 3 * 8  # pairs there, a number for each vertex back
    assert [line["edges"] for line in reports if "answer" in line] == [3]


@needs_compiler
@pytest.mark.usefixtures("emulated")
def test_rounds_of_eager_are_timed_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def seconds(rounds: kernels.EagerRounds, k: int) -> float:
        asked.append(k)
        assert right(rounds, k) > 0
        return 0.0

    right = kernels.EagerRounds.seconds
    monkeypatch.setattr(kernels.EagerRounds, "seconds", seconds)
    reports = reports_of(tmp_path, "eager", question="k_truss", repeats=1, device="cuda", module=ours, k=3)
    (timed,) = [line for line in reports if "timed" in line]
    assert (timed["stages"]["kernel"], asked) == (0.0, [3])
    assert 0 < timed["stages"]["prepare"] <= timed["timed"]
    assert [line["answer"] for line in reports if "answer" in line] == [3]


def test_trusses_are_asked_and_summarised(tmp_path: Path) -> None:
    for question, answer in (("trussness", 3), ("max_truss", 3)):
        reports = reports_of(tmp_path, "reference", question=question, repeats=1, module=ours)
        assert [(line["answer"], line["edges"]) for line in reports if "answer" in line] == [(answer, 3)], reports


def test_what_hybrid_runs_copy_is_told() -> None:
    uses = [SimpleNamespace(copied_bytes=size) for size in (3, 4)]
    timeline = SimpleNamespace(to_dict=lambda: {"spans": []}, device_uses=uses)
    system = ours.Wedgewise("keystone", 1, {}, device="hybrid")
    system.result = SimpleNamespace(algorithm="keystone", n=5, wedges_tested=0, timeline=timeline)
    assert system.facts(None) == {"chosen": "keystone", "vertices": 5, "timeline": {"spans": []}, "bytes_moved": 7}


@pytest.mark.parametrize(
    ("asked", "answered", "seconds", "reason"),
    [
        ("cuda", "cpu", {}, "the GPU has too little memory"),
        ("cpu", "cpu", {"cut": 1.0}, "from disk, because memory is too small"),
    ],
)
def test_an_answer_from_elsewhere_is_none(asked: str, answered: str, seconds: dict[str, float], reason: str) -> None:
    system = ours.Wedgewise("auto", 1, {}, device=asked)
    elsewhere = SimpleNamespace(device=answered, seconds=seconds, plan=SimpleNamespace(reasons=(reason,)))
    system.ww = SimpleNamespace(run=lambda *_, **__: elsewhere)
    with pytest.raises(MemoryError, match=f"not on {asked}: {reason}"):
        system.triangles(None)


def test_the_peak_of_devices_is_of_what_lies_there_at_once() -> None:
    watched: list[Callable[[int], None]] = []
    devices: Any = [SimpleNamespace(watch_memory=watched.append) for _ in range(2)]
    peak = kernels.DevicePeak(devices)
    for number, held in ((0, 10), (0, 15), (0, 12), (1, 7)):
        watched[number](held)
    assert peak.bytes == 15 + 7


def test_a_device_is_timed_by_its_own_events() -> None:
    device: Any = SimpleNamespace(xp=FakeCupy())
    with Stopwatch(device) as stopwatch:
        pass
    assert stopwatch.seconds == 1  # from one event of the fake to the next
    assert device.xp.calls == ["record", "record", "wait"]


def test_another_question_is_asked_and_summarised(tmp_path: Path) -> None:
    reports = reports_of(tmp_path, "right", question="triangles", repeats=1)
    assert [line["stage"] for line in reports if "stage" in line] == [
        *("load", "prepare", "triangles", "triangles", "check")
    ]
    (found,) = [line for line in reports if "answer" in line]
    assert (found["answer"], len(found["digest"])) == (1, 16)


def test_parameters_reach_the_system(tmp_path: Path) -> None:
    found = [
        line
        for k in (3, 4)
        for line in reports_of(tmp_path, "right", question="k_truss", repeats=1, k=k)
        if "answer" in line
    ]
    assert [(line["answer"], line["edges"]) for line in found] == [(3, 3), (0, 3)]


def test_coefficients_that_imply_no_counts_are_a_failure(tmp_path: Path) -> None:
    last = reports_of(tmp_path, "wrong", question="clustering")[-1]
    assert last["failed"] == "crashed"
    assert "do not determine integers" in last["message"]


@pytest.mark.parametrize(
    ("algorithm", "status"),
    [("missing", "unavailable"), ("error", "crashed"), ("refused", "out_of_memory")],
)
def test_exceptions_become_reports(tmp_path: Path, algorithm: str, status: str) -> None:
    assert reports_of(tmp_path, algorithm)[-1]["failed"] == status


def test_memory_of_a_process_that_is_gone_is_unknown() -> None:
    assert child.resident_bytes(2**30) is None
    assert child.peak_bytes(2**30) is None


def test_peak_is_at_least_what_is_resident() -> None:
    resident, peak = child.resident_bytes(), child.peak_bytes()
    assert resident is not None
    assert peak is not None
    assert 2**20 < resident <= peak


def test_a_system_comes_from_a_python_file_or_is_a_declared_program(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"notes\.txt is no Python file"):
        child._class_of(str(tmp_path / "notes.txt"), "dummy")
    declared = tmp_path / "programs.toml"
    declared.write_text('[[program]]\nname = "tell"\ncommand = ["./tell", "{text}"]\ncount = "(.*)"\n')
    assert child._class_of(str(declared), "tell").name == "tell"


def test_a_session_has_those_that_are_still_there(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = os.getsid(0)
    assert os.getpid() in child.session(ours)
    ended = next(pid for pid in range(2**22 - 1, 0, -1) if not Path(f"/proc/{pid}").exists())
    monkeypatch.setattr(os, "listdir", lambda _folder: [str(ended), "self", str(os.getpid())])
    assert child.session(ours) == [os.getpid()]

    def nowhere(_folder: str) -> list[str]:
        raise FileNotFoundError

    monkeypatch.setattr(os, "listdir", nowhere)
    assert child.session(ours) == [ours]


def test_the_child_ends_with_its_files_when_its_input_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[int] = []
    monkeypatch.setattr(os, "read", lambda _descriptor, _size: b"")
    monkeypatch.setattr(child, "session", lambda leader: [leader])
    monkeypatch.setattr(child, "kill_session", ended.append)
    folder = tmp_path / "cell"
    (folder / "inner").mkdir(parents=True)
    child._heed_parent(threading.Event(), str(folder))
    assert ended == [os.getpid()]
    assert not folder.exists()


def test_the_child_asks_nothing_before_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said, told = [b"\n", b""], threading.Event()
    monkeypatch.setattr(os, "read", lambda _descriptor, _size: said.pop(0))
    monkeypatch.setattr(child, "session", lambda leader: [leader])
    monkeypatch.setattr(child, "kill_session", lambda _leader: None)
    child._heed_parent(told, str(tmp_path / "none"))
    assert told.is_set()


def test_the_job_is_the_first_line(monkeypatch: pytest.MonkeyPatch) -> None:
    words = io.BytesIO(b"job\n\n")
    monkeypatch.setattr(os, "read", lambda _descriptor, size: words.read(size))
    assert child._first_line() == b"job\n"
    assert words.read() == b"\n"
    with pytest.raises(SystemExit, match="the parent is gone"):
        child._first_line()


def test_a_child_that_waits_is_given_up(tmp_path: Path) -> None:
    """It has loaded its system, and says nothing more until it is ended; what it had is gone."""
    job = make_bench(tmp_path)._job(dummy_cell("right"))
    started = watch.StartedChild(job)
    assert json.loads(started._pipe.readline()) == {"stage": "load"}
    with selectors.DefaultSelector() as selector:
        selector.register(started._pipe, selectors.EVENT_READ)
        assert not selector.select(0.2)
    started.give_up()
    assert started._process.returncode == -signal.SIGKILL
    assert started._pipe.closed
