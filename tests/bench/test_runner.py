"""The runner's records, resuming, order of cells and implied outcomes."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from devices.real_device import needs_device

from bench import bench_dummy
from bench.bench_dummy import TRIANGLES
from bench.canned_cells import SETTING, dummy_cell, make_bench, make_record
from wedgewise.algorithms import registry
from wedgewise.errors import (
    FormatError,
    InputError,
    MissingDependencyError,
    MissingFileError,
    PreconditionError,
    UnknownNameError,
)
from wedgewise.machine import hardware
from wedgewise_bench import profile, runner
from wedgewise_bench.command import line_of
from wedgewise_bench.ours import ORIENTING
from wedgewise_bench.record import Cell, Outcome, Record, describe_setting, read_records, revision_of, without_folders
from wedgewise_bench.runner import Bench, judged, matrix
from wedgewise_bench.systems import SystemSource, all_systems, by_algorithms, choose_systems, systems_in
from wedgewise_bench.watch import CellLimits
from wedgewise_bench.words import DEVICES, QUESTIONS, parse_question


def counted(bench: Bench, monkeypatch: pytest.MonkeyPatch, outcome: Outcome) -> list[Cell]:
    """Let every cell end with `outcome`; the list collects the cells that really ran."""
    ran: list[Cell] = []

    def run_cell(self: Bench, cell: Cell, _started: object) -> Outcome:
        ran.append(cell)
        return outcome

    monkeypatch.setattr(Bench, "run_cell", run_cell)
    return ran


@dataclass
class DoneChild:
    """A child that needs not run; whether it was given up."""

    outcome: Outcome
    is_given_up: bool = False

    def finish(self, _limits: CellLimits) -> tuple[Outcome, None]:
        return self.outcome, None

    def give_up(self) -> None:
        self.is_given_up = True


@pytest.mark.parametrize(("threads", "device", "is_ahead"), [(4, "cuda", True), (3, "cuda", False), (4, "cpu", False)])
def test_a_child_loads_while_the_gpu_is_timed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int, device: str, is_ahead: bool
) -> None:
    """A cell is begun, then the next is started, where there are cores for that; each child is used for its cell."""
    bench, said = make_bench(tmp_path), list[str]()

    class RoundProgress(DoneChild):
        def __init__(self, job: Mapping[str, Any]) -> None:
            super().__init__(Outcome("ok", answer=TRIANGLES, seconds=(1.0,)))
            self.number = str(job["threads"])
            said.append(self.number)

        def finish(self, limits: CellLimits) -> tuple[Outcome, None]:
            said.append(f"ends {self.number}")
            return super().finish(limits)

    monkeypatch.setattr(runner, "StartedChild", RoundProgress)
    monkeypatch.setattr(hardware, "usable_threads", lambda: threads)
    cells = [replace(dummy_cell("right"), device=device, threads=number) for number in (1, 2, 3)]
    bench.run(cells)
    ahead = ["2", "1", "ends 1", "3", "ends 2", "ends 3"]
    assert said == (ahead if is_ahead else ["1", "ends 1", "2", "ends 2", "3", "ends 3"])


def test_a_child_that_was_started_ahead_ends_with_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench, started = make_bench(tmp_path), list[DoneChild]()

    def start(_job: Mapping[str, Any]) -> DoneChild:
        started.append(DoneChild(Outcome("ok", answer=TRIANGLES, seconds=(1.0,))))
        return started[-1]

    def interrupt(_record: Record, _ran: bool) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "StartedChild", start)
    monkeypatch.setattr(hardware, "usable_threads", lambda: 4)
    cells = [replace(dummy_cell("right"), device="cuda", threads=number) for number in (1, 2)]
    with pytest.raises(KeyboardInterrupt):
        bench.run(cells, on_record=interrupt)
    assert [child.is_given_up for child in started] == [True, False]  # the second cell's, then the first one's own


def test_failures_do_not_end_the_run_and_each_cell_is_one_line(tmp_path: Path) -> None:
    bench = make_bench(tmp_path)
    cells = [dummy_cell(name) for name in ("exit", "wrong", "missing", "right")]
    seen: list[Record] = []
    records = bench.run(cells, on_record=lambda record, _ran: seen.append(record))
    assert [record.outcome.status for record in records] == ["crashed", "wrong", "unavailable", "ok"]
    assert read_records(bench.results_path) == records == seen


def test_a_line_has_what_is_needed_to_repeat_it(tmp_path: Path) -> None:
    bench = make_bench(tmp_path)
    bench.run([dummy_cell("right", more=0)])
    line = json.loads(bench.results_path.read_text())
    assert line["cell"] == {
        "system": "dummy",
        "algorithm": "right",
        "graph": "g",
        "row": "count",
        "threads": 1,
        "knobs": {"more": 0},
        "question": "count",
        "device": "cpu",
    }
    assert (line["revision"], line["command"]) == ("abc123", "wedgewise bench cpu")
    assert (line["status"], line["answer"], line["expected"]) == ("ok", TRIANGLES, TRIANGLES)
    assert line["seconds"]["min"] <= line["seconds"]["median"] <= max(line["seconds"]["all"])
    assert line["limits"] == {"seconds": 20.0, "memory_bytes": 400 * 2**20, "repeats": 25}
    assert str(tmp_path) not in bench.results_path.read_text()


def test_resume_skips_cells_of_the_same_revision_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = make_bench(tmp_path)
    ran = counted(bench, monkeypatch, Outcome("ok", answer=45, seconds=(1.0,)))
    first, second = dummy_cell("right"), dummy_cell("right", more=1)
    bench.run([first])
    assert [r.cell for r in bench.run([first, second], resume=True)] == [first, second]
    assert ran == [first, second]
    bench.run([first], resume=False)
    other = replace(bench, setting=replace(SETTING, revision="def456"))
    other.run([first], resume=True)
    assert ran == [first, second, first, first]


def test_resume_keeps_failures_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = make_bench(tmp_path)
    ran = counted(bench, monkeypatch, Outcome("crashed", "SIGSEGV during count"))
    bench.run([dummy_cell("right")])
    bench.run([dummy_cell("right")], resume=True)
    assert len(ran) == 1


def test_resume_tries_again_what_had_less_time_or_another_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench, cell = make_bench(tmp_path), dummy_cell("right")
    ran = counted(bench, monkeypatch, Outcome("timeout", "count took over 1 s"))
    replace(bench, limits=replace(bench.limits, seconds=1.0)).run([cell])
    bench.run([cell], resume=True)
    assert len(ran) == 2
    replace(bench, limits=replace(bench.limits, seconds=1.0)).run([cell], resume=True)
    assert len(ran) == 2  # it would end as soon again
    grown = replace(bench.graphs["g"], pairs=bench.graphs["g"].pairs + 1)
    replace(bench, graphs={"g": grown}).run([cell], resume=True)
    assert len(ran) == 3


def test_resume_runs_again_what_was_repeated_otherwise_or_is_declared_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench, cell = make_bench(tmp_path), dummy_cell("right")
    ran = counted(bench, monkeypatch, Outcome("ok", answer=45, seconds=(1.0,)))
    bench.run([cell])
    fewer = replace(bench, limits=replace(bench.limits, repeats=3))
    for _ in range(2):
        fewer.run([cell], resume=True)
    assert len(ran) == 2
    system = replace(bench.systems["dummy"], version="declared 1")
    setting = replace(SETTING, versions={**SETTING.versions, system.package: system.version})
    declared = replace(fewer, systems={"dummy": system}, setting=setting)
    for _ in range(2):
        declared.run([cell], resume=True)
    assert len(ran) == 3
    assert [record.limits["repeats"] for record in read_records(bench.results_path)] == [25, 3, 3]


def test_resume_takes_what_other_machines_did_and_tries_again_what_was_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench, cells = make_bench(tmp_path), [dummy_cell("right"), dummy_cell("right", more=1)]
    counted(bench, monkeypatch, Outcome("unavailable", "no GPU"))
    bench.run(cells[:1])
    there = replace(bench, setting=replace(SETTING, machine={"processor": "Q", "gpu": "G", "system": "S"}))
    ran = counted(bench, monkeypatch, Outcome("ok", answer=45, seconds=(1.0,)))
    there.run(cells, resume=True)
    told: list[bool] = []
    records = bench.run(cells, resume=True, on_record=lambda _record, is_new: told.append(is_new))
    assert (ran, told) == (cells, [False, False])
    assert {record.setting.machine["processor"] for record in records} == {"Q"}


@pytest.mark.parametrize(
    ("algorithm", "question"),
    [
        pytest.param(algorithm, question, marks=needs_device)
        for algorithm, question in (("trust", "count"), ("auto", "triangles"), ("eager", "k_truss[k=3]"))
    ],
)
def test_a_cell_runs_on_a_real_device(tmp_path: Path, algorithm: str, question: str) -> None:
    bench = make_bench(tmp_path, seconds=120.0, triangles=None)
    bench = replace(bench, systems=all_systems(), limits=replace(bench.limits, memory_bytes=2**36, repeats=3))
    for row in ("count", "edges"):
        cell = Cell("wedgewise", algorithm, "g", row, 2, question=question, device="cuda")
        outcome = bench.run_cell(cell)
        assert (outcome.status, outcome.message) == ("ok", "")
        assert len(outcome.seconds) == len(outcome.stages["kernel"]) == 3
        assert min(outcome.stages["kernel"]) > 0
        assert outcome.facts["device_peak_bytes"] >= 512
        assert ("whole" in outcome.stages) == (row == "edges")
        assert ("limit_seconds" in outcome.facts) == ((row, question) == ("count", "count"))


@pytest.fixture
def on_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Bench, Cell]:
    """A bench that profiles, and a cell of our own on a GPU that always answers."""
    bench = make_bench(tmp_path)
    bench = replace(bench, systems={"wedgewise": bench.systems["dummy"]}, profiles=True)
    monkeypatch.setattr(runner, "StartedChild", lambda _job: DoneChild(Outcome("ok", answer=45, seconds=(1.0,))))
    return bench, replace(dummy_cell("right"), system="wedgewise", device="cuda")


def test_cells_on_a_gpu_are_profiled(on_gpu: tuple[Bench, Cell], monkeypatch: pytest.MonkeyPatch) -> None:
    bench, cell = on_gpu
    jobs: list[str] = []

    def profiled(job: Mapping[str, Any], _limits: CellLimits) -> dict[str, float]:
        jobs.append(job["device"])
        return {"sectors.sum": 7.0}

    monkeypatch.setattr(profile, "profiled", profiled)
    outcomes = [bench.run_cell(item) for item in (cell, replace(cell, device="cpu"), replace(cell, row="edges"))]
    assert [outcome.facts for outcome in outcomes] == [{"counters": {"sectors.sum": 7.0}}, {}, {}]
    assert jobs == ["cuda"]
    assert replace(bench, profiles=False).run_cell(cell).facts == {}


def test_why_a_cell_was_not_profiled_is_recorded(on_gpu: tuple[Bench, Cell], monkeypatch: pytest.MonkeyPatch) -> None:
    def profiled(_job: object, _limits: object) -> dict[str, float]:
        raise MissingDependencyError("no ncu in /opt/tools/bin")

    bench, cell = on_gpu
    monkeypatch.setattr(profile, "profiled", profiled)
    outcome = bench.run_cell(cell)
    assert (outcome.status, outcome.message, outcome.facts) == ("ok", "no counters: no ncu in bin", {})


def test_resuming_with_a_profiler_runs_what_was_not_profiled(
    on_gpu: tuple[Bench, Cell], monkeypatch: pytest.MonkeyPatch
) -> None:
    bench, cell = on_gpu
    monkeypatch.setattr(profile, "profiled", lambda _job, _limits: {"sectors.sum": 7.0})
    replace(bench, profiles=False).run([cell])
    told: list[bool] = []
    for _ in range(2):
        bench.run([cell], resume=True, on_record=lambda _record, is_new: told.append(is_new))
    assert told == [True, False]


def test_an_interrupted_run_leaves_the_finished_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = make_bench(tmp_path)

    def stop_at_second(self: Bench, cell: Cell, _started: object) -> Outcome:
        if cell.row == "edges":
            raise KeyboardInterrupt
        return Outcome("ok", answer=45, seconds=(1.0,))

    monkeypatch.setattr(Bench, "run_cell", stop_at_second)
    with pytest.raises(KeyboardInterrupt):
        bench.run([dummy_cell("right"), dummy_cell("right", "edges")])
    assert [record.cell.row for record in read_records(bench.results_path)] == ["count"]


@pytest.mark.parametrize("status", ["timeout", "out_of_memory"])
def test_a_row_that_includes_a_passed_limit_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: str
) -> None:
    bench = make_bench(tmp_path)
    ran = counted(bench, monkeypatch, Outcome(status, "count took over 1 s", stage="count"))
    cells = [dummy_cell("hang"), dummy_cell("hang", "edges"), dummy_cell("right", "file")]
    records = bench.run(cells)
    assert ran == [cells[0], cells[2]]
    assert [record.outcome.status for record in records] == [status] * 3
    assert records[1].outcome.message == "not run: in row count, count took over 1 s"


def test_a_crash_is_not_handed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = make_bench(tmp_path)
    ran = counted(bench, monkeypatch, Outcome("crashed"))
    bench.run([dummy_cell("right"), dummy_cell("right", "edges")])
    assert len(ran) == 2


def test_systems_of_one_line_run_back_to_back() -> None:
    systems = [SystemSource("a", "a", ("x", "y"), Path()), SystemSource("b", "b", ("z",), Path())]
    cells = matrix(systems, ["g", "h"], ["file", "count"], [2])
    assert [(c.graph, c.row, c.system, c.algorithm) for c in cells[:4]] == [
        ("g", "count", "a", "x"),
        ("g", "count", "a", "y"),
        ("g", "count", "b", "z"),
        ("g", "file", "a", "x"),
    ]
    assert len({cell.key for cell in cells}) == len(cells) == 12


def test_only_systems_that_answer_a_question_are_asked() -> None:
    counter = SystemSource("a", "a", ("x",), Path())
    other = SystemSource("b", "b", ("y",), Path(), ("count", "triangles"))
    cells = matrix([counter, other], ["g"], ["count"], [2], ("triangles", "count", "edge_support"))
    assert [(cell.question, cell.system) for cell in cells] == [("triangles", "b"), ("count", "a"), ("count", "b")]


def test_questions_are_found_by_their_methods() -> None:
    (found,) = systems_in(bench_dummy)
    assert found.questions == ("count", "triangles", "clustering", "k_truss")
    assert all_systems()["wedgewise"].questions == QUESTIONS


def test_cells_are_on_the_devices_that_systems_have() -> None:
    here, there = (
        SystemSource(name, name, ("x",), Path(), devices=where) for name, where in (("a", ("cpu",)), ("b", ("cuda",)))
    )
    assert [cell.system for cell in matrix([here, there], ["g"], ["count"], [1])] == ["a"]
    (cell,) = matrix([here, there], ["g"], ["count"], [1], device="cuda")
    assert (cell.system, cell.device) == ("b", "cuda")
    assert all_systems()["wedgewise"].devices == DEVICES


def test_what_our_algorithms_answer_depends_on_the_device() -> None:
    (ours,) = choose_systems(["wedgewise"])
    on_gpu = by_algorithms(ours, ["auto", "trust"], "cuda")
    assert on_gpu.ways("count") == ("auto", "trust")
    assert on_gpu.ways("trussness") == ("auto",)
    on_both = by_algorithms(ours, ["auto", "keystone"], "hybrid")
    assert on_both.ways("count") == on_both.ways("transitivity") == ("auto", "keystone")
    assert on_both.ways("triangles") == ()
    with pytest.raises(InputError, match="does not count blocks"):
        by_algorithms(ours, ["polak"], "hybrid")
    with pytest.raises(UnknownNameError, match="trust"):
        by_algorithms(ours, ["trust"])


def test_algorithms_of_our_own_are_asked_what_they_answer() -> None:
    (ours,) = choose_systems(["wedgewise"])
    chosen = by_algorithms(ours, ["auto", "peel", "eager[granularity=coarse]", "keystone"])
    assert chosen.ways("count") == chosen.ways("transitivity") == ("auto", "keystone")
    assert chosen.ways("k_truss") == ("auto", "peel", "eager[granularity=coarse]")
    cells = matrix([chosen], ["g"], ["count"], [1, 4], ["k_truss[k=5]"])
    assert [(cell.algorithm, cell.knobs, cell.threads) for cell in cells[2:4]] == [
        ("eager", {"granularity": "coarse"}, 1),
        ("auto", {}, 4),
    ]
    assert {cell.question for cell in cells} == {"k_truss[k=5]"}
    assert cells[2].way == "eager[granularity=coarse]"


def test_an_order_and_a_relabelling_are_settings_of_a_way() -> None:
    (ours,) = choose_systems(["wedgewise"])
    chosen = by_algorithms(ours, ["forward[order=id,relabel=indegree]", "auto[order=core]", "auto[relabel=indegree]"])
    assert chosen.ways("count") == (
        "forward[order=id,relabel=indegree]",
        "auto[order=core]",
    )  # keystone's ids are ranks
    (cell, _) = matrix([chosen], ["g"], ["count"], [1])
    assert (cell.way, cell.knobs) == ("forward[order=id,relabel=indegree]", {"order": "id", "relabel": "indegree"})
    assert cell.key != replace(cell, knobs={}).key
    assert cell.way in line_of(make_record("wedgewise", (1.0,), algorithm=cell.algorithm, knobs=cell.knobs))


def test_no_knob_has_the_name_of_an_orientation() -> None:
    knobs = {knob.name for algorithm in registry().values() for knob in algorithm.knobs}
    assert knobs
    assert not knobs & set(ORIENTING)


@pytest.mark.parametrize(
    ("way", "device", "message"),
    [
        ("wetric[relabel=indegree]", "cuda", "wetric on cuda does not take relabel=indegree, only rank"),
        ("forward[order=size]", "cpu", "forward on cpu does not take order=size, only degree, core, id"),
        ("keystone[relabel=classes]", "hybrid", "relabel=classes, only rank"),
    ],
)
def test_an_orientation_that_an_algorithm_does_not_take_is_refused(way: str, device: str, message: str) -> None:
    (ours,) = choose_systems(["wedgewise"])
    with pytest.raises(PreconditionError, match=message):
        by_algorithms(ours, [way], device)


@pytest.mark.parametrize("algorithm", ["leiden", "eager[speed=high]", "eager[granularity=medium]", "eager["])
def test_algorithms_that_are_not_there_are_refused(algorithm: str) -> None:
    (ours,) = choose_systems(["wedgewise"])
    with pytest.raises(InputError):
        by_algorithms(ours, [algorithm])


@pytest.mark.parametrize(
    ("text", "name", "settings"),
    [
        ("trussness", "trussness", {}),
        ("k_truss[k=3]", "k_truss", {"k": 3}),
        ("k_truss[k=kmax]", "k_truss", {"k": "kmax"}),
    ],
)
def test_questions_are_written_with_their_parameters(text: str, name: str, settings: dict[str, int | str]) -> None:
    asked = parse_question(text)
    assert (asked.name, asked.settings, str(asked)) == (name, settings, text)


@pytest.mark.parametrize(
    "text",
    ["k_truss", "k_truss[k=1]", "k_truss[k=most]", "k_truss[k=3,l=4]", "count[k=3]", "k_truss[k]", "k truss", "?"],
)
def test_questions_that_cannot_be_asked_are_refused(text: str) -> None:
    with pytest.raises(InputError):
        parse_question(text)


def test_a_known_truss_and_its_k_are_in_the_line(tmp_path: Path) -> None:
    bench = make_bench(tmp_path, trusses={2: 3, 3: 3})
    cells = [dummy_cell(name, question="k_truss[k=kmax]") for name in ("right", "wrong")]
    found = bench.run([*cells, dummy_cell("right", question="k_truss[k=4]")])
    assert [record.outcome.status for record in found] == ["ok", "wrong", "ok"]
    assert found[1].outcome.message == "2 instead of 3"
    assert read_records(bench.results_path)[0] == found[0]
    line = json.loads(bench.results_path.read_text().splitlines()[0])
    assert (line["cell"]["question"], line["details"], line["expected"]) == ("k_truss[k=kmax]", {"k": 3}, 3)
    assert (line["answer"], line["edges"]) == (3, 3)


def test_every_answer_must_imply_the_known_count(tmp_path: Path) -> None:
    bench = make_bench(tmp_path, triangles=1)
    right = bench.run_cell(dummy_cell("right", question="triangles"))
    assert (right.status, right.answer) == ("ok", 1)
    off = make_bench(tmp_path, triangles=2).run_cell(dummy_cell("right", question="triangles"))
    assert (off.status, off.message) == ("wrong", "1 instead of 2")


def test_answers_of_the_same_total_that_differ_are_wrong(tmp_path: Path) -> None:
    bench = make_bench(tmp_path, triangles=1)
    cells = [dummy_cell(name, question="triangles") for name in ("right", "wrong")]
    assert [record.outcome.status for record in bench.run(cells)] == ["wrong", "wrong"]
    assert [record.outcome.status for record in read_records(bench.results_path)] == ["ok", "ok"]


def test_most_systems_are_right() -> None:
    records = [
        make_record("a", (1.0,), question="triangles", digest="x"),
        make_record("b", (1.0,), question="triangles", digest="y"),
        make_record("c", (1.0,), question="triangles", digest="x"),
        make_record("b", (1.0,), question="clustering", digest="y"),
        make_record("d", status="crashed", question="triangles"),
    ]
    found = judged(records)
    assert [record.outcome.status for record in found] == ["ok", "wrong", "ok", "ok", "crashed"]
    assert found[1].outcome.message == "answer 45, digest y; otherwise: a, c"
    assert [record.outcome.status for record in judged(records[:2])] == ["wrong", "wrong"]


def test_most_systems_are_right_about_the_edges_too_whatever_was_asked() -> None:
    records = [
        make_record("a", (1.0,), question="triangles", edges=10),
        make_record("b", (1.0,), question="clustering", edges=12),
        make_record("c", (1.0,), question="edge_support", edges=10),
        make_record("c", (1.0,), question="count"),  # does not tell
        make_record("b", (1.0,), question="triangles", edges=12, graph="h"),
    ]
    found = judged(records)
    assert [record.outcome.status for record in found] == ["ok", "wrong", "ok", "ok", "ok"]
    assert found[1].outcome.message == "12 edges; otherwise: a, c"


def test_known_edges_are_those_of_every_answer(tmp_path: Path) -> None:
    bench = make_bench(tmp_path, triangles=1)
    for known, status, message in ((3, "ok", ""), (4, "wrong", "3 edges instead of 4")):
        graphs = {"g": replace(bench.graphs["g"], edges=known)}
        outcome = replace(bench, graphs=graphs).run_cell(dummy_cell("right", question="triangles"))
        assert (outcome.status, outcome.message) == (status, message)


def test_counts_that_differ_are_wrong_in_every_row() -> None:
    records = [make_record("a", (1.0,), answer=7), make_record("b", (1.0,), answer=8, row="edges")]
    assert [record.outcome.status for record in judged(records)] == ["wrong", "wrong"]
    assert judged(records[:1]) == records[:1]


def test_lines_without_a_question_are_counts() -> None:
    line = json.loads(make_record("s", (1.0,)).to_line())
    del line["cell"]["question"], line["digest"]
    record = Record.from_line(json.dumps(line))
    assert (record.cell.question, record.outcome.digest) == ("count", "")
    assert record.cell.key == make_record("s").cell.key


def test_key_ignores_the_order_of_knobs() -> None:
    one, two = (Cell("s", "a", "g", "count", 1, knobs) for knobs in ({"x": 1, "y": 2}, {"y": 2, "x": 1}))
    assert one.key == two.key != Cell("s", "a", "g", "count", 1, {"x": 1}).key


def test_median_minimum_and_spread() -> None:
    outcome = Outcome("ok", seconds=(4.0, 1.0, 2.0))
    assert (outcome.median, outcome.least, outcome.spread) == (2.0, 1.0, 1.5)
    assert Outcome("ok", seconds=(1.0, 3.0)).median == 2.0
    nothing = Outcome("timeout")
    assert (nothing.median, nothing.least, nothing.spread) == (None, None, None)


def test_records_survive_their_line() -> None:
    record = make_record("s", (0.5, 0.25), peak_bytes=7, message="»quoted«", stage="count")
    assert Record.from_line(record.to_line()) == record


def test_stages_facts_and_the_device_are_kept_in_a_line() -> None:
    stages = {"prepare": (0.5, 0.25), "kernel": (1.0, 2.0)}
    record = make_record("wedgewise", (1.5, 2.25), device="cuda", stages=stages, facts={"chosen": "trust"})
    assert Record.from_line(record.to_line()) == record
    line = json.loads(record.to_line())
    del line["cell"]["device"], line["stages"], line["facts"]  # as lines were before there were any
    old = Record.from_line(json.dumps(line))
    assert (old.cell.device, old.outcome.stages, old.outcome.facts) == ("cpu", {}, {})


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"schema": 2}', "nonsense"])
def test_a_line_that_is_no_record_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text(make_record("s", (1.0,)).to_line() + "\n" + text + "\n")
    with pytest.raises(FormatError, match=r"results\.jsonl:2: not a benchmark record") as caught:
        read_records(path)
    assert caught.value.line == 2


def test_missing_results_are_named(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match="run the benchmark first"):
        read_records(tmp_path / "none.jsonl")


def test_setting_has_versions_and_no_folder(tmp_path: Path) -> None:
    command = ["wedgewise", "bench", "cpu", "--work", "/home/me/work"]
    setting = describe_setting(["no-such-package"], command, tmp_path)
    assert {"python", "numpy", "wedgewise"} <= set(setting.versions)
    assert "no-such-package" not in setting.versions
    assert setting.command == "wedgewise bench cpu --work work"
    assert setting.revision is None
    assert setting.machine["threads"] >= 1


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_revision_tells_changed_sources_apart_but_not_changed_results(tmp_path: Path) -> None:
    identity = ["-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false"]

    def git(*arguments: str) -> None:
        subprocess.run(["git", "-C", str(tmp_path), *identity, *arguments], check=True, capture_output=True)

    source, results = tmp_path / "src" / "code.py", tmp_path / "results.jsonl"
    source.parent.mkdir()
    source.write_text("1\n")
    results.write_text("1\n")
    git("init")
    git("add", ".")
    git("commit", "-m", "first")
    clean = revision_of(tmp_path)
    results.write_text("2\n")
    assert revision_of(tmp_path) == clean
    assert clean is not None
    assert len(clean) == 12
    revisions = [clean]
    for text in ("2\n", "3\n"):
        source.write_text(text)
        revisions.append(str(revision_of(tmp_path)))
    assert len(set(revisions)) == 3
    assert all(revision.startswith(clean) for revision in revisions)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("open /a/b/c.txt failed", "open c.txt failed"),
        ("'/a/b.c', line 3", "'b.c', line 3"),
        ("benchmarks/cpu.py 3/4", "benchmarks/cpu.py 3/4"),
        ("2 s", "2 s"),
    ],
)
def test_folders_are_removed(text: str, expected: str) -> None:
    assert without_folders(text) == expected


def test_every_system_is_found_with_ourselves_first() -> None:
    names = list(all_systems())
    assert names[0] == "wedgewise"
    others = {"graphblas", "networkit", "igraph", "rustworkx", "networkx", "lagraph", "cugraph", "blocks"}
    assert set(names[1:]) == others
    assert [system.name for system in choose_systems(["igraph"])] == ["igraph"]
    with pytest.raises(UnknownNameError, match="no system named 'gephi'; there are: wedgewise"):
        choose_systems(["gephi"])


@pytest.mark.parametrize(
    ("outcomes", "status", "message"),
    [
        ([Outcome("timeout", "too long")], "timeout", "too long"),
        ([Outcome("ok", answer=7, seconds=(0.1,)), Outcome("crashed", "signal 9")], "crashed", "signal 9"),
        (
            [Outcome("ok", answer=7, seconds=(9.0,)), *[Outcome("ok", answer=8, seconds=(9.0,))] * 9],
            "wrong",
            "repeats disagree: ['7', '8']",
        ),
    ],
)
def test_files_are_counted_the_same_every_time(
    monkeypatch: pytest.MonkeyPatch, outcomes: list[Outcome], status: str, message: str
) -> None:
    waiting = iter(outcomes)
    monkeypatch.setattr(runner, "time_child", lambda _job, _limits: next(waiting))
    found = runner._time_files({}, CellLimits(seconds=1, memory_bytes=2**30))
    assert (found.status, found.message) == (status, message)


def test_fresh_processes_are_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    def outcome(seconds: float, peak_bytes: int) -> Outcome:
        stages = {"kernel": (seconds / 2,), "whole": (seconds,)}
        return Outcome("ok", answer=7, seconds=(seconds,), peak_bytes=peak_bytes, edges=3, stages=stages)

    waiting = iter([outcome(9.0, 99), outcome(4.0, 30), outcome(2.0, 40), outcome(3.0, 20)])
    monkeypatch.setattr(runner, "time_child", lambda _job, _limits: next(waiting))
    found = runner._time_files({}, CellLimits(seconds=1, memory_bytes=2**30))
    assert (found.seconds, found.peak_bytes, found.edges) == ((4.0, 2.0, 3.0), 40, 3)
    assert found.stages == {"kernel": (2.0, 1.0, 1.5), "whole": (4.0, 2.0, 3.0)}


def test_resuming_without_results_starts_afresh(tmp_path: Path) -> None:
    bench = make_bench(tmp_path)
    assert not bench.results_path.exists()
    assert [record.outcome.status for record in bench.run([dummy_cell("right")], resume=True)] == ["ok"]
