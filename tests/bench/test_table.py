"""Every number that a table prints, from canned records."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bench.canned_cells import make_record
from wedgewise_bench.record import Record
from wedgewise_bench.table import (
    answer_sections,
    count_sections,
    lines_of,
    page,
    questions_in,
    ratio_text,
    seconds_text,
    time_text,
)
from wedgewise_bench.ways import way_sections


def render(records: list[Record]) -> str:
    return page("Counts", records, count_sections(records))


def render_answers(records: list[Record]) -> str:
    return page("Answers", records, answer_sections(records))


def test_ratio_is_the_fastest_peer_over_ours() -> None:
    records = [
        make_record("wedgewise", (0.2, 0.1, 0.3)),
        make_record("igraph", (4.0,)),
        make_record("graphblas", (1.0, 3.0, 2.0)),
    ]
    (line,) = lines_of(records, "count")
    assert line.fastest_peer == "graphblas"
    assert line.ratio == pytest.approx(10.0)


def test_wrong_and_failed_systems_are_no_rivals() -> None:
    records = [
        make_record("wedgewise", (1.0,)),
        make_record("igraph", (0.1,), status="wrong"),
        make_record("networkx", status="timeout"),
        make_record("networkit", (3.0,)),
    ]
    (line,) = lines_of(records, "count")
    assert (line.fastest_peer, line.ratio) == ("networkit", 3.0)


def test_no_ratio_without_both_sides() -> None:
    (alone,) = lines_of([make_record("wedgewise", (1.0,))], "count")
    assert (alone.fastest_peer, alone.ratio) == (None, None)
    wrong = [make_record("wedgewise", (1.0,), status="wrong"), make_record("igraph", (2.0,))]
    (line,) = lines_of(wrong, "count")
    assert (line.fastest_peer, line.ratio) == ("igraph", None)


def test_a_system_is_shown_by_its_fastest_right_algorithm() -> None:
    records = [
        make_record("graphblas", (3.0,), algorithm="saxpy"),
        make_record("graphblas", (2.0,), algorithm="dot"),
        make_record("graphblas", (1.0,), algorithm="guess", status="wrong"),
        make_record("graphblas", algorithm="slow", status="timeout"),
    ]
    for order in (records, records[::-1]):
        (line,) = lines_of(order, "count")
        assert line.best["graphblas"].cell.algorithm == "dot"
        assert line.seconds("graphblas") == 2.0


def test_rows_and_graphs_stay_apart() -> None:
    records = [
        make_record("igraph", (1.0,), graph="h"),
        make_record("igraph", (2.0,), graph="g"),
        make_record("igraph", (3.0,), graph="h", row="edges"),
    ]
    counts = [(line.graph, line.seconds("igraph")) for line in lines_of(records, "count")]
    assert counts == [("h", 1.0), ("g", 2.0)]
    assert [line.seconds("igraph") for line in lines_of(records, "edges")] == [3.0]
    assert lines_of(records, "file") == []


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0000123, "12.3 µs"),
        (0.001234, "1.23 ms"),
        (0.01234, "12.3 ms"),
        (0.1234, "123 ms"),
        (0.009996, "10.0 ms"),
        (0.0009996, "1.00 ms"),
        (0.000123, "123 µs"),
        (0.0, "0"),
        (0.9996, "1.00 s"),
        (1.234, "1.23 s"),
        (12.34, "12.3 s"),
        (123.4, "123 s"),
    ],
)
def test_seconds_have_three_digits(seconds: float, text: str) -> None:
    assert seconds_text(seconds) == text


@pytest.mark.parametrize(
    ("ratio", "text"), [(None, "–"), (0.5, "0.50×"), (9.876, "9.88×"), (19.04, "19.0×"), (123.4, "123×")]
)
def test_ratio_text(ratio: float | None, text: str) -> None:
    assert ratio_text(ratio) == text


@pytest.mark.parametrize(
    ("status", "changes", "text"),
    [
        ("ok", {}, "1.50 s"),
        ("timeout", {"stage": "count"}, "> 120 s"),
        ("timeout", {"stage": "prepare"}, "build > 120 s"),
        ("timeout", {"stage": "triangles", "question": "triangles"}, "> 120 s"),
        ("timeout", {"stage": "check", "question": "triangles"}, "check > 120 s"),
        ("timeout", {"stage": "prepare", "row": "file"}, "> 120 s"),
        ("wrong", {}, "wrong"),
        ("crashed", {}, "crashed"),
        ("out_of_memory", {}, "out of memory"),
        ("unavailable", {}, "not available"),
    ],
)
def test_cells_say_what_happened(status: str, changes: dict[str, str], text: str) -> None:
    assert time_text(make_record("s", (1.0, 2.0), status=status, **changes)) == text


def test_a_cell_that_was_not_run_is_a_dash() -> None:
    assert time_text(None) == "–"


def test_the_load_of_the_cell_before_is_not_foreign() -> None:
    records = [make_record("wedgewise", (1.0,), threads=16), make_record("wedgewise", (1.0,), threads=1, load=16.0)]
    assert "disturbed" not in render(records)


@pytest.mark.parametrize(("load", "is_disturbed"), [(2.5, False), (3.25, True)])
def test_foreign_load_is_told(load: float, is_disturbed: bool) -> None:
    text = render([make_record("wedgewise", (1.0,)), make_record("igraph", (1.0,), load=load)])
    assert ("load average up to 3.2" in text) is is_disturbed


def test_rendered_tables() -> None:
    records = [
        make_record("wedgewise", (0.05,)),
        make_record("graphblas", (1.0,)),
        make_record("networkx", status="timeout", stage="count"),
        make_record("wedgewise", (0.5,), row="edges"),
        make_record("graphblas", status="crashed", row="edges", message="SIGSEGV during count"),
    ]
    text = render(records)
    assert "| graph | pairs | wedgewise | graphblas | networkx | fastest peer | ratio |" in text
    assert "| g     | 1,000 |   50.0 ms |    1.00 s |  > 120 s |    graphblas | 20.0× |" in text
    assert "| g     | 1,000 |    500 ms |   crashed |        – |            – |     – |" in text
    assert "P, S; threads: 2" in text
    assert "revision abc123, `wedgewise bench cpu`" in text
    assert text.count("## ") == 3
    assert text.endswith("- graphblas (default) on g, edges: crashed, SIGSEGV during count\n")


def test_all_machines_are_named() -> None:
    here, there = make_record("wedgewise", (0.5,)), make_record("wedgewise", (0.1,), device="cuda", threads=16)
    machine = {"processor": "Q", "system": "S", "gpu": "G"}
    there = replace(there, setting=replace(there.setting, machine=machine))
    assert "- P, S; threads: 2\n- Q, G, S; threads: 16\n" in render([here, there, here])


def test_devices_have_columns_of_their_own() -> None:
    records = [
        make_record("wedgewise", (0.5,)),
        make_record("wedgewise", (0.1,), device="cuda"),
        make_record("igraph", (1.0,)),
    ]
    (line,) = lines_of(records, "count")
    assert (line.fastest_peer, line.ratio) == ("igraph", 2.0)
    text = render_answers(records)
    assert "| graph | pairs | wedgewise | wedgewise on cuda |         igraph | fastest peer | ratio |" in text
    assert "| g     | 1,000 |    500 ms |    100 ms (0.20×) | 1.00 s (2.00×) |       igraph | 2.00× |" in text
    assert "default on cuda" in text


def test_what_was_not_available_is_said_once() -> None:
    missing = [make_record("wedgewise", status="unavailable", device="cuda", graph=g, message="no GPU") for g in "gh"]
    assert render([make_record("igraph", (1.0,)), *missing]).endswith(
        "## What was not available\n\n- wedgewise on cuda: no GPU\n"
    )


def sweep() -> list[Record]:
    seconds = {"g": (4.0, 2.0, 1.0), "h": (1.0, 2.0, 8.0)}
    return [
        make_record("wedgewise", (taken,), algorithm="wetric", knobs={"spread": spread}, graph=graph, device="cuda")
        for graph, times in seconds.items()
        for spread, taken in zip((1, 2, 3), times, strict=True)
    ]


def test_ways_are_held_to_the_first() -> None:
    slower = make_record("wedgewise", (9.0,), algorithm="wetric", knobs={"spread": 1}, threads=1, device="cuda")
    (text,) = way_sections([*sweep(), slower])
    one, two, three = (f"wetric[spread={spread}] on cuda" for spread in (1, 2, 3))
    assert f"| graph          | {one} | {two} | {three} |" in text
    assert f"| g              | {'4.00 s':>24} | {'2.00 s':>24} | {'**1.00 s**':>24} |" in text
    assert f"| h              | {'**1.00 s**':>24} | {'2.00 s':>24} | {'8.00 s':>24} |" in text
    assert f"| geometric mean | {'':>24} | {'1.00×':>24} | {'0.71×':>24} |" in text  # √(2 · 1/2), √(4 · 1/8)


def test_a_way_that_failed_has_no_mean() -> None:
    failed = make_record("wedgewise", status="crashed", algorithm="last", graph="g", device="cuda")
    (text,) = way_sections([*sweep(), failed])
    assert text.count("crashed") == 1
    assert text.splitlines()[-1].endswith("– |")


def test_questions_stay_apart() -> None:
    records = [make_record("igraph", (1.0,)), make_record("igraph", (2.0,), question="triangles")]
    assert [line.seconds("igraph") for line in lines_of(records, "count")] == [1.0]
    assert [line.seconds("igraph") for line in lines_of(records, "count", "triangles")] == [2.0]


def test_rendered_answers() -> None:
    records = [
        make_record("wedgewise", (0.1,)),
        make_record("igraph", (1.0,)),
        make_record("wedgewise", (0.2,), question="edge_support"),
        make_record("networkit", (3.0,), question="edge_support"),
        make_record("networkx", status="timeout", stage="edge_support", question="edge_support"),
        make_record("wedgewise", status="crashed", question="list_triangles", message="SIGSEGV"),
        make_record("igraph", (1.0,), question="list_triangles"),
    ]
    text = render_answers(records)
    assert "| g     | 1,000 |    100 ms | 1.00 s (10.0×) |       igraph | 10.0× |" in text
    assert "| graph | pairs | wedgewise |      networkit | networkx | fastest peer | ratio |" in text
    assert "| g     | 1,000 |    200 ms | 3.00 s (15.0×) |  > 120 s |    networkit | 15.0× |" in text
    assert "| g     | 1,000 |   crashed | 1.00 s |       igraph |     – |" in text
    assert "| graph | edge_support | list_triangles |" in text
    assert "| g     |        2.00× |              – |" in text
    assert text.endswith("- wedgewise (default) on g, list_triangles: crashed, SIGSEGV\n")


def truss_record(way: str, seconds: float, **changes: Any) -> Record:
    knobs = {"granularity": way}
    return make_record("wedgewise", (seconds,), algorithm="eager", knobs=knobs, edges=3_000_000, **changes)


def test_our_own_ways_side_by_side() -> None:
    asked: dict[str, Any] = {"question": "k_truss[k=kmax]", "details": {"k": 7}}
    records = [
        truss_record("fine", 0.5, **asked),
        truss_record("coarse", 1.0, **asked),
        truss_record("fine", 0.2, threads=4, **asked),
        truss_record("coarse", 0.8, threads=4, **asked),
        truss_record("fine", 1.0, graph="h", **asked),
        truss_record("coarse", 8.0, graph="h", **asked),
        truss_record("coarse", 1.0, graph="h", threads=4, status="wrong", **asked),
        make_record("networkx", (9.0,), **asked),
    ]
    text = render_answers(records)
    assert "## `k_truss[k=kmax]`: the edges of the k-truss (median, warm)" in text
    fine, coarse = "eager[granularity=fine]", "eager[granularity=coarse]"
    assert f"| graph          |  k | threads | {fine} | {coarse:>25} |" in text
    assert f"| g              |  7 |       2 |        500 ms, 6.0 ME/s | {'1.00 s, 3.0 ME/s (2.00×)':>25} |" in text
    assert f"| g              |  7 |       4 |       200 ms, 15.0 ME/s | {'800 ms, 3.8 ME/s (4.00×)':>25} |" in text
    assert f"| h              |  7 |       4 |                       – | {'wrong (–)':>25} |" in text
    assert f"| geometric mean |  – |       2 |                         | {'(4.00×)':>25} |" in text
    assert f"| geometric mean |  – |       4 |                         | {'(4.00×)':>25} |" in text


def test_one_way_alone_has_no_table_of_its_own() -> None:
    assert "Our own ways" not in render_answers([truss_record("fine", 0.5, question="k_truss[k=3]")])


def test_questions_with_several_parameters_stay_apart() -> None:
    records = [make_record("igraph", (k / 1,), question=f"k_truss[k={k}]") for k in (4, 3)]
    records += [make_record("igraph", (1.0,)), make_record("igraph", (1.0,), row="edges")]
    assert questions_in(records) == ["count", "k_truss[k=4]", "k_truss[k=3]"]
    assert [line.seconds("igraph") for line in lines_of(records, "count", "k_truss[k=3]")] == [3.0]


def test_no_ratio_to_a_count_that_was_not_asked() -> None:
    text = render_answers([make_record("wedgewise", (0.1,), question="triangles")])
    assert "Ratio to a count" not in text
