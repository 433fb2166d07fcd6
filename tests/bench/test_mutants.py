"""Wrong kernels in a copy of the package: the comparison marks the cells that they are part of, and no others."""

from __future__ import annotations

import ast
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from mutants.edits import edited, seeded

import wedgewise as ww
from bench import bench_definition
from bench.canned_cells import SETTING
from bench.mutants import MUTANTS, TWICE, TWO_CORNERS, UNSEEN, Mutant, cell
from wedgewise.generate import complete, uniform
from wedgewise.machine.jit import CACHE_VARIABLE
from wedgewise_bench.command import is_failure
from wedgewise_bench.graphs import BenchGraph, PreparedGraph, prepare
from wedgewise_bench.record import Cell, Record
from wedgewise_bench.runner import Bench
from wedgewise_bench.systems import all_systems, systems_in
from wedgewise_bench.table import notes
from wedgewise_bench.watch import CellLimits

SOURCES = Path(ww.__file__).parent
LIMITS = CellLimits(seconds=60.0, memory_bytes=2**31, repeats=2)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package."""
    copy = tmp_path_factory.mktemp("seeded") / "wedgewise"
    shutil.copytree(SOURCES, copy)
    return copy


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, PreparedGraph]:
    """A random graph with copies and loops, the same with nothing known of it, a clique, one of over 2^16 arcs."""
    pairs = uniform(48, 400, seed=2).pairs()
    numbers = ww.trussness(pairs, algorithm="reference")
    trusses = {k: int((numbers >= k).sum()) for k in range(2, int(numbers.max()) + 1)}
    known = [
        BenchGraph("random", lambda: "1", lambda: pairs, ww.count(pairs, algorithm="reference"), trusses, trusses[2]),
        BenchGraph("unknown", lambda: "1", lambda: pairs, None),
        *(
            BenchGraph(name, lambda: "1", stream.pairs, stream.expected_triangles)
            for name, stream in (("clique", complete(60)), ("wide", complete(400)))
        ),
    ]
    folder = tmp_path_factory.mktemp("graphs")
    return {graph.name: prepare(graph, folder, as_text=False) for graph in known}


class Trial:
    """Cells that run with a copy of the package in place of this one."""

    def __init__(self, package: Path, graphs: dict[str, PreparedGraph], folder: Path) -> None:
        self.package = package
        systems = {**all_systems(), **{item.name: item for item in systems_in(bench_definition)}}
        self.bench = Bench(systems, graphs, LIMITS, SETTING, folder / "results.jsonl")

    def run(self, cells: Sequence[Cell]) -> list[Record]:
        return self.bench.run(cells)

    def run_with(self, mutant: Mutant, cells: Sequence[Cell]) -> list[Record]:
        with seeded(self.package, mutant.edits):
            return self.run(cells)


@pytest.fixture(scope="module")
def trial(package: Path, graphs: dict[str, PreparedGraph], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trial]:
    folder = tmp_path_factory.mktemp("trial")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(package.parent))
        patch.setenv("PYTHONDONTWRITEBYTECODE", "")
        patch.setenv("NUMBA_DISABLE_JIT", "1")
        patch.setenv(CACHE_VARIABLE, str(folder / "cache"))
        yield Trial(package, graphs, folder)


@pytest.fixture(scope="module")
def unspoilt(trial: Trial) -> dict[str, Record]:
    """Every cell that is marked, or passes, with some bug in the package, as it is without one."""
    marked = [each for mutant in MUTANTS if not mutant.compiled for each in mutant.marked]
    cells = {each.key: each for each in [*marked, *(each for _, each in UNSEEN)]}
    return {record.cell.key: record for record in trial.run(list(cells.values()))}


def check(mutant: Mutant, records: list[Record]) -> None:
    """Exactly the cells that the bug is part of are marked, and the first one says why."""
    assert [record.outcome.status for record in records] == mutant.statuses, notes(records)
    assert [is_failure(record) for record in records] == [status != "ok" for status in mutant.statuses]
    assert mutant.says in records[0].outcome.message
    assert any(mutant.says in line for line in notes(records))


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_every_mutant_changes_code_that_is_there(mutant: Mutant) -> None:
    for path, text in edited(SOURCES, mutant.edits).items():
        assert ast.dump(ast.parse(text)) != ast.dump(ast.parse((SOURCES / path).read_text(encoding="utf-8")))
    assert mutant.wrong or mutant.crashed
    assert mutant.right


def test_nothing_is_marked_in_a_copy_without_a_bug(trial: Trial) -> None:
    records = trial.run([cell("forward"), cell("keystone", "triangles")])
    assert [record.outcome.status for record in records] == ["ok", "ok"]
    assert notes(records) == []


@pytest.mark.parametrize("mutant", [TWICE, TWO_CORNERS], ids=["twice", "two corners"])
def test_a_wrong_kernel_is_marked_and_the_others_are_not(trial: Trial, mutant: Mutant) -> None:
    check(mutant, trial.run_with(mutant, mutant.cells))


@pytest.mark.deep
def test_no_cell_is_marked_without_a_bug(unspoilt: dict[str, Record]) -> None:
    assert {record.outcome.status for record in unspoilt.values()} == {"ok"}, notes(list(unspoilt.values()))


@pytest.mark.deep
@pytest.mark.parametrize("mutant", MUTANTS[2:], ids=lambda mutant: mutant.name)
def test_every_wrong_kernel_is_marked(trial: Trial, mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    if mutant.compiled:
        monkeypatch.setenv("NUMBA_DISABLE_JIT", "0")
    check(mutant, trial.run_with(mutant, mutant.cells))


@pytest.mark.deep
@pytest.mark.parametrize(("mutant", "asked"), UNSEEN)
def test_a_wrong_answer_may_pass_that_nobody_else_gives(
    trial: Trial, unspoilt: dict[str, Record], mutant: Mutant, asked: Cell
) -> None:
    """Where this fails since a cell is marked, the comparison has got better: move the cell to its mutant."""
    (spoilt,) = trial.run_with(mutant, [asked])
    outcomes = [unspoilt[asked.key].outcome, spoilt.outcome]
    assert [outcome.status for outcome in outcomes] == ["ok", "ok"]
    assert len({(outcome.answer, outcome.digest, outcome.edges) for outcome in outcomes}) == 2
