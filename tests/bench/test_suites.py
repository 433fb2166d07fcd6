"""What the suites declare, and how a run changes it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import wedgewise
from bench.canned_cells import data_folder, make_record
from wedgewise.algorithms import registry
from wedgewise.errors import InputError, StorageError
from wedgewise.machine import hardware
from wedgewise_bench import command, runner
from wedgewise_bench.command import Choices, default_work, is_failure, line_of, missing_graphs, run, usual_graphs
from wedgewise_bench.graphs import known_graphs
from wedgewise_bench.ours import COMPUTED
from wedgewise_bench.pace import Pace, Standing
from wedgewise_bench.record import Cell, Outcome
from wedgewise_bench.spec import Spec
from wedgewise_bench.suite_files import declared_suites
from wedgewise_bench.suites import Suite
from wedgewise_bench.systems import all_systems
from wedgewise_bench.words import QUESTIONS, parse_question

SUITES = declared_suites()
SMOKE, EAGER, TRUSSES = (SUITES[name] for name in ("smoke", "eager", "trusses"))
every_suite = pytest.mark.parametrize("suite", SUITES.values(), ids=SUITES)
KRONECKER_18 = "kronecker-18-seed1"


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[Cell]:
    """The cells of a run, none of which really runs."""
    cells: list[Cell] = []

    def run_cell(_bench: runner.Bench, cell: Cell, _started: object) -> Outcome:
        cells.append(cell)
        return Outcome("ok", answer=1, seconds=(0.5,), edges=10)

    monkeypatch.setattr(runner.Bench, "run_cell", run_cell)
    monkeypatch.setattr(runner, "MIN_THREADS_TO_LOAD_AHEAD", 1 << 20)
    monkeypatch.setattr(command, "look_for_gpu", lambda: {"gpu": "G"})
    return cells


@every_suite
def test_what_a_suite_names_is_there(suite: Suite) -> None:
    assert SUITES[suite.name] is suite
    own = {name for matrix in suite.matrices for name in matrix.graphs}
    real = () if isinstance(suite.real, int) else suite.real
    assert {*suite.graphs, *own} <= {*known_graphs(None, 1), *real}
    assert set(suite.systems) | set(suite.too_slow) | set(suite.counts) <= set(all_systems())
    assert {parse_question(text).name for text in suite.questions} <= set(QUESTIONS)
    assert set().union(*suite.too_slow.values()) <= {*suite.graphs, *real}
    for target in suite.targets:
        assert target.graph in suite.graphs
        assert {target.divided[1], target.by[1]} <= set(suite.questions)


@every_suite
def test_every_suite_has_cells(suite: Suite) -> None:
    changed = Choices(graphs=("kronecker-8-seed1",), threads=(1,)).applied(suite)
    cells = command.cells_of(changed, ["kronecker-8-seed1"], known_graphs(None))
    assert {cell.system for cell in cells} >= set(suite.systems)
    assert {cell.device for cell in cells} == set(suite.devices)
    assert {cell.question for cell in cells} == set(suite.questions)


def test_the_published_graphs_of_eager_are_fifty() -> None:
    assert isinstance(EAGER.real, tuple)
    assert len(EAGER.real) == len(set(EAGER.real)) == 50


def test_smoke_asks_every_algorithm_all_that_it_answers(tmp_path: Path, ran: list[Cell]) -> None:
    records = run(SMOKE, Choices(work=tmp_path, threads=(1,)))
    asked = {(cell.algorithm, Spec.parse(cell.question).name) for cell in ran}
    assert asked == {
        (name, question)
        for (name, device), algorithm in registry().items()
        for question in QUESTIONS
        if device == "cpu" and COMPUTED.get(question, question) in algorithm.answers
    }
    assert {cell.knobs.get("granularity") for cell in ran if cell.algorithm == "eager"} == {None, "coarse"}
    assert {cell.graph for cell in ran} == set(SMOKE.graphs)
    assert len(records) == len(ran)
    assert {record.expected for record in records if record.cell.question == "triangles"} == {None, 24_000}


def test_eager_sweeps_threads(tmp_path: Path, ran: list[Cell], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "usable_threads", lambda: 6)
    data = data_folder(tmp_path)
    run(EAGER, Choices(work=tmp_path / "work", data=data, graphs=("skewed",)))
    assert {cell.question for cell in ran} == {"k_truss[k=3]", "k_truss[k=kmax]"}
    assert {cell.way for cell in ran} == {"eager[granularity=fine]", "eager[granularity=coarse]"}
    assert sorted({cell.threads for cell in ran if cell.device == "cpu"}) == [1, 2, 4, 6]
    assert {cell.threads for cell in ran if cell.device == "cuda"} == {6}
    assert len(ran) == 2 * 2 * (4 + 1)


def test_other_suites_take_all_threads(tmp_path: Path, ran: list[Cell], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "usable_threads", lambda: 6)
    run(SMOKE, Choices(work=tmp_path, questions=("count",)))
    assert {cell.threads for cell in ran} == {6}


def test_real_graphs_are_those_that_are_there(tmp_path: Path) -> None:
    data = data_folder(tmp_path)
    suite = replace(SMOKE, graphs=("kronecker-8-seed1",), real=("clique", "absent"))
    assert usual_graphs(suite, None) == ["kronecker-8-seed1"]
    assert usual_graphs(suite, data) == ["kronecker-8-seed1", "clique"]
    assert usual_graphs(replace(suite, real=22), data) == ["kronecker-8-seed1", "skewed"]  # a clique of 7 has 21 edges
    assert {"clique", "skewed", "email-Enron"} <= set(known_graphs(data, 1))
    assert missing_graphs(suite, data) == ["absent"]
    assert missing_graphs(suite, None) == ["clique", "absent"]
    assert missing_graphs(replace(suite, real=22), data) == []


def test_a_run_reports_its_graphs_and_cells(tmp_path: Path, ran: list[Cell]) -> None:
    told: list[tuple[str, int, int]] = []
    run(SMOKE, Choices(work=tmp_path, questions=("triangles",)), lambda *step: told.append(step))
    assert told == [("prepare", 0, 2), ("prepare", 1, 2), *(("cells", done, 4) for done in range(5))]


@pytest.mark.parametrize(
    ("suite", "changes", "message"),
    [
        ("smoke", {"graphs": ("nix",)}, "no graph named 'nix'; there are: kronecker-8-seed1"),
        ("smoke", {"systems": ("nix",)}, "no system named 'nix'"),
        ("smoke", {"algorithms": ("nix",)}, "no algorithm named 'nix'"),
        ("smoke", {"questions": ("nix",)}, "no question named 'nix'"),
        ("smoke", {"rows": ("file",)}, "smoke times the rows count; name some of these"),
        ("cpu", {"questions": ("trussness",)}, "cpu asks for a count alone"),
        ("smoke", {"algorithms": ("forward",), "questions": ("trussness",)}, "is asked any of these questions"),
        ("trusses", {"systems": ("networkx",), "graphs": (KRONECKER_18,)}, "is asked any of these questions"),
        ("balance", {"algorithms": ("keystone",)}, "balance: wedgewise does not take part; add --systems wedgewise"),
    ],
)
def test_what_there_is_not_is_refused_before_the_work(
    suite: str, changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        run(SUITES[suite], Choices(work=tmp_path / "work", **changes))
    assert not (tmp_path / "work").exists()


def test_graphs_are_kept_where_nobody_else_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By default in the cache of the user: whoever made a temporary folder of a known name would choose the graphs."""
    monkeypatch.setenv("WEDGEWISE_CACHE", str(tmp_path))
    assert Choices().work == default_work() == tmp_path / "bench"
    monkeypatch.setattr(command, "cache_root", lambda: None)
    with pytest.raises(InputError, match=r"there is no home to keep prepared graphs in; name a folder with --work"):
        Choices()


def test_files_that_cannot_be_written_are_refused_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    cases: list[tuple[dict[str, Any], str]] = [
        ({"results": tmp_path}, "is a folder; name a file"),
        ({"results": tmp_path / "file" / "R.jsonl"}, "cannot be made"),
        ({"results": tmp_path / "R.jsonl", "work": tmp_path / "file" / "work"}, "cannot be made"),
    ]
    for changes, message in cases:
        with pytest.raises(StorageError, match=message):
            run(SMOKE, Choices(**({"work": tmp_path / "work"} | changes)))
    assert not (tmp_path / "work").exists()


def test_records_name_the_revision_or_the_version(
    tmp_path: Path, ran: list[Cell], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wedgewise, "__file__", str(tmp_path / "python" / "packages" / "wedgewise" / "it.py"))
    (record, *_) = run(SMOKE, Choices(work=tmp_path, questions=("count",), command=("wedgewise", "bench", "smoke")))
    assert record.setting.revision == f"v{wedgewise.__version__}"
    assert record.setting.command == "wedgewise bench smoke"


def test_systems_are_chosen_from_every_matrix(tmp_path: Path, ran: list[Cell]) -> None:
    choices = Choices(graphs=("kronecker-8-seed1",), work=tmp_path, threads=(1,), systems=("igraph", "wedgewise"))
    run(SUITES["blocks"], choices)
    assert [(cell.system, cell.algorithm) for cell in ran] == [
        *(("wedgewise", name) for name in ("latapy", "bbtc", "keystone")),
        ("igraph", "default"),
    ]


def test_devices_are_chosen_where_we_take_part(tmp_path: Path, ran: list[Cell]) -> None:
    choices = Choices(graphs=("kronecker-8-seed1",), work=tmp_path, threads=(1, 2), devices=("cuda", "hybrid"))
    records = run(SUITES["blocks"], replace(choices, algorithms=("polak", "keystone", "auto")))
    ours = [(cell.device, cell.algorithm, cell.threads) for cell in ran if cell.system == "wedgewise"]
    assert sorted(ours) == [
        *(("cuda", name, 2) for name in ("auto", "keystone", "polak")),
        *(("hybrid", name, threads) for name in ("auto", "keystone") for threads in (1, 2)),
    ]
    assert {cell.device for cell in ran if cell.system == "blocks"} == {"cpu"}
    assert {record.setting.machine.get("gpu") for record in records} == {"G"}


def test_devices_that_a_suite_has_are_picked_from_it() -> None:
    only = Choices(devices=("cpu",)).applied(EAGER)
    assert (only.devices, len(only.matrices)) == (("cpu",), 1)
    assert Choices(devices=("hybrid", "cuda")).applied(SUITES["bbtc"]).devices == ("hybrid", "cuda")
    assert Choices(devices=("cuda",)).applied(SUITES["trust"]).devices == ("cuda",)


def test_a_gpu_is_looked_for_in_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "LOOK_FOR_GPU", 'print(\'{"gpu": "G"}\')')
    assert command.look_for_gpu() == {"gpu": "G"}
    monkeypatch.setattr(command, "LOOK_FOR_GPU", "")
    assert command.look_for_gpu() == {}


def test_the_time_that_is_left_follows_the_graphs() -> None:
    ticks = iter([0.0, 2.0, 2.0, 5.0, 9.0])
    cells = [make_record("s", graph=graph).cell for graph in ("a", "a", "b", "b", "c")]
    pace = Pace(cells, lambda: next(ticks))
    standings = [pace.finish(ran=number != 1) for number in range(4)]
    assert standings[0] == Standing(1, 5, 2.0 * 4)  # all by the only one that ran
    assert standings[1] == Standing(2, 5, 2.0 * 3)  # one from earlier results says nothing
    assert standings[2] == Standing(3, 5, 3.0 + 2.5)  # b by b, c by the mean of all
    assert standings[3].left_seconds == pytest.approx(3.0)  # (2 + 3 + 4) / 3
    assert [str(item) for item in (standings[0], Standing(1, 2, None), Standing(1, 2, 600), Standing(1, 2, 9000))] == [
        "1 of 5, about 8 s left",
        "1 of 2",
        "1 of 2, about 10 min left",
        "1 of 2, about 2.5 h left",
    ]


@pytest.mark.parametrize(
    ("system", "status", "fails"),
    [
        ("wedgewise", "ok", False),
        ("wedgewise", "timeout", True),
        ("igraph", "timeout", False),
        ("igraph", "unavailable", False),
        ("igraph", "wrong", True),
        ("igraph", "crashed", True),
    ],
)
def test_wrong_answers_fail_and_so_do_we_without_one(system: str, status: str, fails: bool) -> None:
    assert is_failure(make_record(system, (1.0,), status=status)) == fails


def test_a_device_that_is_not_there_is_no_failure() -> None:
    assert not is_failure(make_record("wedgewise", status="unavailable", device="cuda"))
    assert is_failure(make_record("wedgewise", status="timeout", device="cuda"))


def test_a_line_says_how_a_cell_ended() -> None:
    words = line_of(make_record("wedgewise", (0.25,), algorithm="eager", knobs={"granularity": "fine"})).split()
    assert words == ["g", "count", "wedgewise/eager[granularity=fine]", "2", "250", "ms"]
    assert line_of(make_record("igraph", status="crashed", message="SIGSEGV")).endswith("crashed  SIGSEGV")


def test_targets_are_ratios_of_one_run() -> None:
    records = [
        make_record("wedgewise", (3.0,), graph=KRONECKER_18, question="trussness"),
        make_record("graphblas", (1.5,), graph=KRONECKER_18, algorithm="saxpy"),
        make_record("graphblas", (1.0,), graph=KRONECKER_18, algorithm="dot"),
        make_record("graphblas", (29.0,), graph=KRONECKER_18, algorithm="saxpy", question="k_truss[k=3]"),
        make_record("graphblas", (31.0,), graph=KRONECKER_18, algorithm="dot", question="k_truss[k=3]"),
        make_record("graphblas", (1.0,), graph=KRONECKER_18, algorithm="bad", question="k_truss[k=3]", status="wrong"),
    ]
    rows = [row for target in TRUSSES.targets for row in target.rows(records)]
    assert [row[1:] for row in rows] == [
        ["trussness by wedgewise, default", "count by graphblas", "3.00×", "≤ 3.1×", "reached"],
        ["k_truss[k=3] by graphblas, saxpy", "trussness by wedgewise", "9.67×", "≥ 10×", "missed"],
        ["k_truss[k=3] by graphblas, dot", "trussness by wedgewise", "10.3×", "≥ 10×", "reached"],
    ]
    assert "## Targets" in TRUSSES.render(records)
    assert "## Targets" not in TRUSSES.render(records[1:])


def test_machines_have_tables_of_their_own() -> None:
    ours, peer = make_record("wedgewise", (1.0,)), make_record("igraph", (3.0,))
    far = [
        replace(record, setting=replace(record.setting, machine={"processor": "Q", "system": "S"}))
        for record in (make_record("wedgewise", (0.5,)), make_record("igraph", (1.0,)))
    ]
    text = SUITES["cpu"].render([ours, *far, peer])
    assert text.count("\n# ") + text.startswith("# ") == 2
    assert ("3.00×" in text, "2.00×" in text, "6.00×" in text) == (True, True, False)


def test_slow_peers_are_asked_on_small_graphs_alone() -> None:
    def is_wanted(system: str, graph: str, question: str) -> bool:
        return TRUSSES.wants(make_record(system, graph=graph, question=question).cell)

    assert is_wanted("graphblas", KRONECKER_18, "k_truss[k=3]")
    assert not is_wanted("networkx", KRONECKER_18, "k_truss[k=3]")
    assert is_wanted("networkx", "another", "k_truss[k=3]")
    assert is_wanted("wedgewise", "web-Stanford", "trussness")
    assert is_wanted("graphblas", "web-Stanford", "count")
    assert not is_wanted("networkx", "kronecker-16-seed1", "count")
