"""Blocks as a system under comparison: ways to cut, facts beside times, and their tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.graphs import TRUTHS, fixture_pairs

from bench.canned_cells import make_record
from wedgewise.errors import UnknownNameError
from wedgewise.stages.blocks import Hashed
from wedgewise_bench.blocks import BlocksSystem, Cut
from wedgewise_bench.command import Choices, run
from wedgewise_bench.cuts import cut_sections
from wedgewise_bench.graphs import SMALL
from wedgewise_bench.matrix import Matrix
from wedgewise_bench.metrics import amount_text
from wedgewise_bench.record import Record
from wedgewise_bench.spec import Spec
from wedgewise_bench.suite_files import declared_suites
from wedgewise_bench.suites import Suite
from wedgewise_bench.systems import all_systems, choose_systems


def counted(way: str, name: str = "jazz") -> tuple[BlocksSystem, Cut, int]:
    spec = Spec.parse(way)
    system = BlocksSystem(spec.name, 1, dict(spec.settings))
    system.load()
    cut = system.prepare(fixture_pairs(name))
    return system, cut, system.count(cut)


@pytest.mark.parametrize(("suite", "number"), [("blocks", 24), ("balance", 22)])
def test_every_way_of_the_suites_counts(suite: str, number: int) -> None:
    cells = [cell for matrix in declared_suites()[suite].matrices for cell in matrix.cells(["lesmis"])]
    ways = {cell.way for cell in cells if cell.system == BlocksSystem.name}
    assert len(ways) == number
    for way in ways:
        assert counted(way, "lesmis")[2] == TRUTHS["lesmis"]["triangles"], way


def test_facts_are_those_of_the_cut() -> None:
    system, cut, _ = counted("keystone[scheme=hashed,parts=3,ids=indegree,shares=2]")
    assert cut.partition == Hashed(198, 3)
    facts = system.facts(cut)
    assert (facts["parts"], facts["blocks"], facts["tasks"], facts["timed"]) == (3, 9, 54, 54)
    assert facts["arcs_per_task"] == pytest.approx(_distinct_arcs(cut), rel=1e-12)
    assert facts["cutting_seconds"] > 0
    assert facts["total"] == pytest.approx(sum(system.least_seconds.values()))


def test_a_file_is_cut_as_its_pairs_are(tmp_path: Path) -> None:
    system, cut, count = counted("keystone[parts=3]", "lesmis")
    np.savetxt(tmp_path / "pairs.txt", fixture_pairs("lesmis"), fmt="%d")
    from_file = system.prepare_file(str(tmp_path / "pairs.txt"))
    assert from_file.partition.cuts.tolist() == cut.partition.cuts.tolist()
    assert system.count(from_file) == count


def _distinct_arcs(cut: Cut) -> float:
    """On average over all i, j, k: blocks that a task has twice are counted once."""
    arcs, parts = cut.counts.arcs, range(3)
    sums = [sum(int(arcs[pair]) for pair in {(i, j), (i, k), (j, k)}) for i in parts for j in parts for k in parts]
    return sum(sums) / len(sums)


def test_the_least_time_of_a_task_counts() -> None:
    system, cut, _ = counted("bbtc[parts=2]")
    first = dict(system.least_seconds)
    system.count(cut)
    assert all(system.least_seconds[task] <= first[task] for task in first)


def test_cuts_may_be_even() -> None:
    _, cut, found = counted("bbtc[scheme=even,parts=4]")
    assert found == TRUTHS["jazz"]["triangles"]
    assert np.ptp(cut.partition.sizes) <= 1
    with pytest.raises(UnknownNameError, match="rectilinear, even, hashed"):
        counted("bbtc[scheme=round]")


def test_blocks_take_part_only_by_name() -> None:
    assert BlocksSystem.name in all_systems()
    assert BlocksSystem.name not in [system.name for system in choose_systems([])]
    assert [system.name for system in choose_systems([BlocksSystem.name])] == [BlocksSystem.name]


def record_of(way: str) -> Record:
    spec = Spec.parse(way)
    system, cut, _ = counted(way)
    facts = system.facts(cut) | {"cutting_seconds": 0.25}
    where: dict[str, Any] = {"graph": "jazz", "algorithm": spec.name, "threads": 1, "knobs": dict(spec.settings)}
    return make_record(BlocksSystem.name, (0.5,), facts=facts, **where)


def test_facts_are_kept_in_records_and_shown_in_tables() -> None:
    record = record_of("keystone[parts=2]")
    again = Record.from_line(record.to_line())
    assert again.outcome.facts == record.outcome.facts
    text = "\n".join(cut_sections([again, make_record("wedgewise", (0.1,), facts={"chosen": "keystone"})]))
    assert "| jazz  | keystone[parts=2] |       1 |     2 |" in text
    assert "0.50×" in text
    assert "## Balance" in text
    assert "1,024" in text
    facts = again.outcome.facts
    eight = facts["makespans"][0]
    whole, taken = facts["unpartitioned"], eight["seconds"]["time"]
    assert (facts["edges"], facts["speedup_over_whole_8"]) == (TRUTHS["jazz"]["m"], pytest.approx(whole / taken))
    assert f"| {whole / taken:.1f} of {whole / eight['least']:.1f} " in text
    assert f"∞, {amount_text(facts['edges'] / taken)} " in text  # four tasks for eight workers
    assert "The same on whole graphs" in text


def test_records_of_earlier_versions_have_tables_without_speedups() -> None:
    """They have no time of the graph in one part, and speed-ups over the sum of the tasks."""
    record = record_of("keystone[parts=2]")
    facts = {name: value for name, value in record.outcome.facts.items() if name not in ("edges", "unpartitioned")}
    facts["makespans"] = [
        {name: made[name] for name in ("workers", "least", "seconds", "efficiency")}
        | {"speedup": dict.fromkeys(made["speedup"], 77.7)}
        for made in facts["makespans"]
    ]
    old = Record.from_line(replace(record, outcome=replace(record.outcome, facts=facts)).to_line())
    text = "\n".join(cut_sections([old]))
    assert "## Speed-up" in text
    assert "77.7" not in text
    speedups, rates = (table.split("\n\n")[1] for table in text.split("\n## ")[-2:])
    assert [set(table.splitlines()[-1].replace(" ", "").split("|")[5:-1]) for table in (speedups, rates)] == [{"–"}] * 2


def test_a_cell_runs_in_a_child(tmp_path: Path) -> None:
    (graph, *_) = SMALL
    choices = Choices(graphs=(graph.name,), work=tmp_path, threads=(1,), repeats=1)
    ways = ("keystone[parts=2]", "bbtc[parts=3,scheme=hashed]")
    suite = Suite("few", "", (), (Matrix(systems=(BlocksSystem.name,), algorithms=ways),))
    records = run(suite, choices)
    assert [record.outcome.status for record in records] == ["ok", "ok"]
    assert [record.outcome.facts["tasks"] for record in records] == [4, 27]
