"""What became of cells between two runs: the rule of noise by hand-made seconds, failures, answers, machines."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.canned_cells import SETTING, make_record
from wedgewise.errors import FormatError, MissingFileError
from wedgewise_bench.compare import VERDICTS, WORSE, Change, compare, comparison_of, render
from wedgewise_bench.record import Record

STEADY = (1.00, 1.01, 0.99, 1.02, 0.98)


def only_change(before: Record | None, after: Record | None) -> Change:
    """What became of the only cell of two runs."""
    (change,) = compare(*([] if record is None else [record] for record in (before, after))).changes
    return change


def verdict(before: tuple[float, ...], after: tuple[float, ...]) -> str:
    return only_change(make_record("ours", before), make_record("ours", after)).verdict


def times(seconds: tuple[float, ...], factor: float) -> tuple[float, ...]:
    return tuple(factor * value for value in seconds)


def on_machine(record: Record, **machine: Any) -> Record:
    return replace(record, setting=replace(SETTING, machine={**SETTING.machine, **machine}))


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (STEADY, "same"),
        (times(STEADY, 1.049), "same"),  # outside both ranges, but less than 5 % apart
        (times(STEADY, 1.06), "slower"),
        (times(STEADY, 0.96), "same"),
        (times(STEADY, 0.94), "faster"),
        ((1.10, 1.11, 1.09, 1.12, 0.99), "same"),  # the median before is within the range after
        ((1.10, 1.11, 1.09, 1.12, 1.01), "slower"),
    ],
)
def test_a_change_is_more_than_five_per_cent_and_outside_both_ranges(after: tuple[float, ...], expected: str) -> None:
    assert verdict(STEADY, after) == expected


def test_a_tenth_of_the_repeats_at_either_end_may_lie_anywhere() -> None:
    slow = times(STEADY * 2, 1.2)
    assert verdict(STEADY * 2, (*slow[:9], 0.1)) == "slower"
    assert verdict(STEADY * 2, (*slow[:8], 0.1, 0.1)) == "same"
    assert verdict(STEADY, (*slow[:4], 0.1)) == "same"  # of five, none


@pytest.mark.parametrize(("after", "expected"), [(1.24, "same"), (1.26, "slower"), (0.81, "same"), (0.79, "faster")])
def test_few_repeats_need_a_larger_factor(after: float, expected: str) -> None:
    assert verdict((1.0,), (after,)) == expected
    assert verdict((0.5, 1.0, 2.0), (after,) * 3) == expected
    assert verdict(STEADY, (after,) * 4) == expected


def test_chance_alone_passes_the_rule_as_often_as_is_said() -> None:
    by_chance = []
    for places in combinations(range(10), 5):
        before, after = (tuple(100.0 + 10 * i for i in range(10) if (i in places) == side) for side in (True, False))
        by_chance.append(verdict(before, after))
    assert by_chance.count("same") == len(by_chance) - 12
    assert len(by_chance) == 12 * 21
    assert by_chance.count("slower") == by_chance.count("faster")


def test_noise_is_seldom_a_change_and_a_fifth_more_time_nearly_always_is() -> None:
    generator = np.random.default_rng(1)

    def measured(factor: float) -> tuple[float, ...]:
        return tuple((factor * generator.lognormal(0.0, 0.05, 10)).tolist())

    by_chance = [verdict(measured(1.0), measured(1.0)) for _ in range(300)]
    slowed = [verdict(measured(1.0), measured(1.2)) for _ in range(300)]
    assert by_chance.count("same") >= 294
    assert slowed.count("slower") >= 290


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("ok", "wrong", "failed"),
        ("ok", "crashed", "failed"),
        ("ok", "timeout", "failed"),
        ("ok", "out_of_memory", "failed"),
        ("ok", "unavailable", "failed"),
        ("timeout", "wrong", "failed"),
        ("wrong", "wrong", "failing"),
        ("wrong", "timeout", "failing"),
        ("crashed", "unavailable", "missing"),
        ("unavailable", "unavailable", "missing"),
        ("unavailable", "ok", "new"),
        ("unavailable", "crashed", "failed"),
        ("unavailable", "timeout", "new"),
        ("wrong", "ok", "mended"),
        ("timeout", "ok", "mended"),
        (None, "ok", "new"),
        (None, "out_of_memory", "new"),
        (None, "wrong", "failed"),
        ("ok", None, "missing"),
        ("crashed", None, "missing"),
    ],
)
def test_how_cells_ended_is_compared(before: str | None, after: str | None, expected: str) -> None:
    def record(status: str | None) -> Record | None:
        return None if status is None else make_record("ours", STEADY, status=status, message=f"it was {status}")

    change = only_change(record(before), record(after))
    assert change.verdict == expected
    assert change.is_worse == (expected in WORSE)
    assert change.ratio is None
    if expected == "mended":
        assert change.note == f"before: {before}, it was {before}"
    elif after not in (None, "ok"):
        assert change.note == f"it was {after}"


def test_passing_a_limit_that_was_lowered_is_no_failure() -> None:
    before = make_record("ours", (50.0, 52.0))
    after = make_record("ours", status="timeout", message="count took over 51 s")
    lower = replace(after, limits={"seconds": 51.0})
    assert only_change(before, lower).verdict == "incomparable"
    assert only_change(before, replace(after, limits={"seconds": 60.0})).verdict == "failed"


@pytest.mark.parametrize("changes", [{"answer": 46}, {"digest": "0123456789abcdef"}])
def test_another_answer_to_the_same_question_is_worse_whatever_the_machine(changes: dict[str, Any]) -> None:
    before, after = make_record("ours", STEADY), make_record("ours", STEADY, **changes)
    for now in (after, on_machine(after, processor="Q")):
        change = only_change(before, now)
        assert (change.verdict, change.is_worse) == ("differs", True)
        assert change.note.startswith("before: 45; now: ")


def test_the_same_answer_about_other_edges_is_another_one() -> None:
    before, after = (make_record("ours", STEADY, edges=edges) for edges in (10, 12))
    change = only_change(before, after)
    assert (change.verdict, change.note) == ("differs", "before: 45 of 10 edges; now: 45 of 12 edges")
    assert only_change(make_record("ours", STEADY), after).verdict == "same"  # did not tell


def test_answers_are_judged_by_the_others_of_their_side() -> None:
    right = [make_record(name, STEADY, digest="right") for name in ("first", "second", "third")]
    after = [*right[:2], make_record("third", STEADY, digest="other")]
    verdicts = [change.verdict for change in compare(right, after).changes]
    assert verdicts == ["same", "same", "failed"]


def test_times_on_other_machines_are_not_compared() -> None:
    before, after = make_record("ours", STEADY), make_record("ours", times(STEADY, 3.0))
    change = only_change(before, on_machine(after, processor="Q"))
    assert (change.verdict, change.note) == ("incomparable", "another machine: processor P before, Q now")
    assert change.ratio is None
    assert only_change(before, on_machine(after, memory_bytes=1)).verdict == "slower"
    gone = on_machine(make_record("ours", status="unavailable"), processor="Q")
    assert only_change(before, gone).verdict == "missing"


def test_a_gpu_matters_to_the_cells_that_run_on_it() -> None:
    pairs = [
        [on_machine(make_record("ours", STEADY, device=device), gpu=name, gpu_memory_bytes=size) for size in (1, 2)]
        for device, name in (("cpu", "old"), ("cuda", "old"))
    ]
    others = [on_machine(pair[1], gpu="new") for pair in pairs]
    assert [only_change(*pair).verdict for pair in pairs] == ["same", "same"]
    compared = [only_change(pair[0], other).verdict for pair, other in zip(pairs, others, strict=True)]
    assert compared == ["same", "incomparable"]


def test_another_graph_or_k_of_the_same_name_is_not_compared() -> None:
    before = make_record("ours", STEADY, question="k_truss[k=kmax]", details={"k": 7})
    changed = [replace(before, pairs=1001), replace(before, details={"k": 8})]
    notes = [only_change(before, record).note for record in changed]
    assert notes == ["another graph: 1,000 pairs before, 1,001 now", "another question: {'k': 7} before, {'k': 8} now"]
    assert {only_change(before, record).verdict for record in changed} == {"incomparable"}
    untimed = replace(before, outcome=replace(before.outcome, seconds=()))
    assert only_change(before, untimed).verdict == "incomparable"


def test_the_last_record_of_a_cell_counts_and_cells_differ_by_all_their_fields() -> None:
    before = [make_record("ours", STEADY)]
    slow = make_record("ours", times(STEADY, 2.0))
    assert not compare(before, [slow, *before]).is_worse
    assert compare(before, [*before, slow]).is_worse
    others = [make_record("ours", STEADY, **change) for change in ({"threads": 1}, {"device": "cuda"}, {"graph": "h"})]
    assert compare(before, others).tally == {"missing": 1, "new": 3}


def test_a_change_of_time_says_what_may_explain_it() -> None:
    before = make_record(
        "ours", STEADY, facts={"chosen": "forward"}, stages={"prepare": (0.5,), "kernel": (0.5,), "whole": (1.0,)}
    )
    slow = make_record(
        "ours",
        times(STEADY, 2.0),
        facts={"chosen": "keystone"},
        stages={"prepare": (0.6,), "kernel": (1.4,), "whole": (2.0,)},
        load=4.0,
    )
    assert only_change(before, slow).note == (
        "forward was chosen before, keystone now; most of it in kernel: 500 ms → 1.40 s; "
        "other work ran now, load average 4.0"
    )
    quiet = make_record("ours", times(STEADY, 2.0))
    assert only_change(make_record("ours", STEADY), quiet).note == ""


def a_comparison_of_all_kinds() -> tuple[list[Record], list[Record]]:
    """Two runs in which every verdict occurs once, but two cells are the same."""
    before = {
        "differs": make_record("ours", STEADY, graph="differs"),
        "failed": make_record("ours", STEADY, graph="failed"),
        "slower": make_record("ours", STEADY, graph="slower"),
        "faster": make_record("ours", STEADY, graph="faster"),
        "mended": make_record("ours", status="crashed", graph="mended", message="exit status 3"),
        "failing": make_record("ours", status="timeout", graph="failing"),
        "incomparable": make_record("ours", STEADY, graph="incomparable"),
        "missing": make_record("ours", STEADY, graph="missing"),
        "same": make_record("ours", STEADY, graph="same"),
        "same too": make_record("ours", STEADY, graph="same too"),
    }
    after = dict(before) | {
        "differs": make_record("ours", STEADY, graph="differs", answer=46),
        "failed": make_record("ours", status="wrong", graph="failed", message="46 instead of 45 | twice"),
        "slower": make_record("ours", times(STEADY, 2.0), graph="slower"),
        "faster": make_record("ours", times(STEADY, 0.5), graph="faster"),
        "mended": make_record("ours", STEADY, graph="mended"),
        "incomparable": on_machine(before["incomparable"], processor="Q"),
        "new": make_record("ours", STEADY, graph="new"),
    }
    del after["missing"]
    return list(before.values()), list(after.values())


def test_every_verdict_is_counted_and_the_mean_is_of_comparable_times() -> None:
    comparison = compare(*a_comparison_of_all_kinds())
    assert comparison.tally == dict.fromkeys(VERDICTS, 1) | {"same": 2}
    assert {change.verdict: change.cell.graph.split()[0] for change in comparison.changes} == {
        verdict: verdict for verdict in VERDICTS
    }
    assert comparison.mean_ratio == pytest.approx(1.0)
    assert comparison.is_worse
    assert [change.is_worse for change in comparison.changes].count(True) == 3


def test_nothing_is_worse_without_change_or_without_cells() -> None:
    before, _ = a_comparison_of_all_kinds()
    comparison = compare(before, before)
    assert comparison.tally == {"failing": 2, "same": 8}
    assert not comparison.is_worse
    empty = compare([], [])
    assert (empty.is_worse, empty.mean_ratio, render(empty)) == (False, None, "# What changed\n\n- no cells\n")


def test_the_text_has_what_was_compared_and_a_table_for_each_verdict() -> None:
    text = render(compare(*a_comparison_of_all_kinds()))
    assert text.count("- before: revision abc123, P, python 3.11") == 1
    assert "- after: revision abc123, Q, python 3.11" in text
    assert "1 differs, 1 failed, 1 slower, 1 faster," in text
    assert "2 same; geometric mean of after / before: 1.00×" in text
    headings = [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")]
    assert headings == [title for name, title in VERDICTS.items() if name != "same"]
    (slower,) = (line for line in text.splitlines() if line.startswith("| slower"))
    assert [cell.strip() for cell in slower.split("|")[1:-1]] == [
        *("slower", "count", "ours, default", "2", "1.00 s", "2.00 s", "2.00×", ""),
    ]
    assert "46 instead of 45 \\| twice" in text


def test_two_files_are_compared_and_the_result_is_plain_values(tmp_path: Path) -> None:
    paths = tmp_path / "before.jsonl", tmp_path / "after.jsonl"
    for path, records in zip(paths, a_comparison_of_all_kinds(), strict=True):
        path.write_text("".join(record.to_line() + "\n" for record in records))
    found = comparison_of(*paths).to_dict()
    assert json.loads(json.dumps(found)) == found
    assert (found["is_worse"], found["tally"]["same"], len(found["changes"])) == (True, 2, 11)
    slower = next(change for change in found["changes"] if change["verdict"] == "slower")
    assert (slower["cell"]["graph"], slower["ratio"], slower["is_worse"]) == ("slower", pytest.approx(2.0), True)
    assert (slower["before"]["repeats"], slower["after"]["median"]) == (5, 2.0)
    assert next(change["before"] for change in found["changes"] if change["verdict"] == "new") is None


def test_files_that_are_no_results_are_named(tmp_path: Path) -> None:
    (tmp_path / "broken.jsonl").write_text("{}\n")
    with pytest.raises(FormatError, match=r"broken\.jsonl"):
        comparison_of(tmp_path / "broken.jsonl", tmp_path / "broken.jsonl")
    with pytest.raises(MissingFileError, match=r"none\.jsonl"):
        comparison_of(tmp_path / "none.jsonl", tmp_path / "broken.jsonl")
