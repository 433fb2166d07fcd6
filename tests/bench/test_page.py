"""Reports of the benchmark: every number that is printed, from records made by hand, and the command."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.commands import invoke

from bench.report_records import MACHINE, SIZES, against_peers, every_kind, made
from wedgewise.errors import InputError, UnknownNameError
from wedgewise_bench import papers
from wedgewise_bench.record import Record
from wedgewise_bench.report import account as _account
from wedgewise_bench.report import contests as _contests
from wedgewise_bench.report import papers as _papers
from wedgewise_bench.report import races as _races
from wedgewise_bench.report import ways as _ways
from wedgewise_bench.report import work as _work
from wedgewise_bench.report.page import bench_report, read_results, suites_of
from wedgewise_bench.report.parts import Bullets, Part, Picture, Table, texts, to_markdown
from wedgewise_bench.spec import Spec

PARTS = [
    *("Speed-ups", "Times side by side", "Performance profiles", "Time against size", "Stages"),
    *("Ladders", "Parameters", "Distance to the limit", "Regret of auto", "Timelines", "Counters"),
    *("What went wrong", "What was measured", "Every cell"),
]


def tables(part: Part | None) -> list[Table]:
    assert part is not None
    return [item for item in part.items if isinstance(item, Table)]


def pictures(part: Part | None) -> list[Picture]:
    assert part is not None
    return [item for item in part.items if isinstance(item, Picture)]


def rows(table: Table) -> list[list[str]]:
    return [texts(row) for row in table.rows]


def test_every_part_has_data_and_none_is_empty() -> None:
    report = bench_report(every_kind())
    assert [part.title for part in report.parts] == PARTS
    assert all(part.items for part in report.parts)
    assert report.title == "Triangle benchmarks: mine"
    assert report.summary == "47 cells on Processor, 2 threads, 2030-01-02; 45 of 47 correct."


def test_parts_without_data_are_left_out() -> None:
    titles = [part.title for part in bench_report([made("wedgewise", 0.01)]).parts]
    assert titles == ["Times side by side", "What was measured", "Every cell"]


def test_what_was_measured_names_machines_runs_and_versions() -> None:
    other = MACHINE | {"processor": "Other", "gpu": "GPU", "threads": 1}
    part = _account.measured_part([*against_peers(), made("igraph", 1.0, machine=other, load=7.25)])
    assert part.items[0] == "13 cells: 3 systems (wedgewise, igraph, networkit), 4 graphs, 1 question (count)."
    assert "load average was up to 7.2" in str(part.items[1])
    machines = rows(tables(part)[0])
    assert machines == [
        ["Processor, 2 threads", "8 GB", "Linux x86_64"],
        ["GPU, Other, 1 thread", "8 GB", "Linux x86_64"],
    ]
    runs = next(item for item in part.items if isinstance(item, Bullets))
    [run] = runs.texts
    assert run.startswith("13 cells since 2030-01-02 03:04 UTC at revision abc123 by `wedgewise bench mine`, ")
    assert run.endswith("with python 3.11, wedgewise 1.0")


def test_an_undisturbed_run_has_no_warning() -> None:
    assert not [item for item in _account.measured_part(against_peers()).items if "disturbed" in str(item)]


def test_times_are_by_graph_and_system_with_the_ratio_to_the_fastest_peer() -> None:
    [table] = tables(_races.times_part(against_peers()))
    assert table.header == ("graph", "edges", "fastest peer / ours", "wedgewise", "igraph", "networkit")
    assert rows(table)[0] == ["small", "1,000", "2.00×", "10.0 ms", "20.0 ms", "60.0 ms"]
    assert rows(table)[3] == ["huge", "4,000,000", "0.50×", "10.0 ms", "5.00 ms", "15.0 ms"]


def test_times_of_one_system_are_by_way_with_the_fastest() -> None:
    records = [made("wedgewise", seconds, algorithm=name) for name, seconds in {"a": 0.3, "b": 0.2}.items()]
    [table] = tables(_races.times_part([*records, made("wedgewise", None, algorithm="c", status="timeout")]))
    assert table.header == ("graph", "edges", "fastest", "a", "b", "c")
    assert rows(table) == [["small", "1,000", "b", "300 ms", "200 ms", "> 60 s"]]


def test_sizes_are_pairs_where_edges_are_not_known() -> None:
    [table] = tables(_races.times_part([made("wedgewise", 0.1, edges=None), made("wedgewise", 0.1, graph="large")]))
    assert table.header[1] == "pairs"
    assert [row[1] for row in rows(table)] == ["2,000", "600,000"]


def test_speedups_over_the_fastest_peer() -> None:
    part = _races.speedups_part(against_peers(), None)
    [picture] = pictures(part)
    assert picture.description == "small 2.00×, middle 4.00×, large 8.00×, huge 0.50×."
    assert part is not None
    assert part.items[1] == (
        "The fastest peer takes 2.38× our time in the geometric mean of 4 graphs, at least 0.50×, on huge."
    )


def test_speedups_over_a_base() -> None:
    mean, each = pictures(_races.speedups_part(against_peers(), "networkit"))
    assert mean.description == "wedgewise 7.14×, igraph 3.00×."
    assert "wedgewise on large 24.0×" in each.description


def test_without_two_right_answers_on_a_graph_there_is_no_speedup() -> None:
    records = [made("wedgewise", 0.01), made("igraph", None, status="crashed"), made("igraph", 0.01, graph="huge")]
    assert _races.speedups_part(records, None) is None
    assert _races.speedups_part(records, "igraph") is None


def test_an_unknown_base_is_refused_with_those_there_are() -> None:
    with pytest.raises(UnknownNameError, match="no contender named 'nobody'; there are: wedgewise, igraph, networkit"):
        _races.speedups_part(against_peers(), "nobody")


def test_a_profile_is_the_share_of_graphs_within_a_factor() -> None:
    [contest] = _contests.among_systems(against_peers())
    curves, graphs = _races.profile_of(contest)
    assert graphs == list(SIZES)
    assert curves["wedgewise"] == [(1.0, 0.75), (2.0, 1.0)]
    assert curves["igraph"] == [(1.0, 0.25), (2.0, 0.5), (4.0, 0.75), (8.0, 1.0)]
    assert curves["networkit"][0] == (1.0, 0.0)
    table = tables(_races.profiles_part(against_peers()))[0]
    assert rows(table)[:2] == [["wedgewise", "75%", "100%", "100%", "100%"], ["igraph", "25%", "50%", "75%", "100%"]]


def test_who_does_not_answer_is_within_no_factor() -> None:
    records = [*against_peers()[1:], made("wedgewise", None, status="crashed")]
    curves, graphs = _races.profile_of(_contests.among_systems(records)[0])
    assert len(graphs) == 4
    assert curves["wedgewise"][-1] == (2.0, 0.75)


def test_who_was_not_asked_about_most_graphs_is_not_in_a_profile() -> None:
    records = [*against_peers(), made("networkx", 0.001)]
    curves, graphs = _races.profile_of(_contests.among_systems(records)[0])
    assert list(curves) == ["wedgewise", "igraph", "networkit"]
    assert len(graphs) == 4


def test_time_against_size_shows_every_right_answer() -> None:
    [picture] = pictures(_races.sizes_part([*against_peers(), made("networkx", None, status="timeout")]))
    assert picture.description == "wedgewise: 4 graphs; igraph: 4 graphs; networkit: 4 graphs."


def test_stages_are_medians() -> None:
    stages = {"prepare": (0.1, 0.2, 0.9), "kernel": (0.03, 0.01, 0.02), "whole": (1.0, 1.0, 1.0)}
    copied = made("wedgewise", 0.2, graph="middle", stages={"kernel": (0.5,), "whole": (0.5,)})
    part = _work.stages_part([made("wedgewise", 0.4, stages=stages), copied, made("wedgewise", 0.1, graph="huge")])
    [table] = tables(part)
    assert table.header == ("cell", "question", "prepare", "kernel", "whole")
    assert rows(table) == [
        ["small: auto", "count", "200 ms", "20.0 ms", "1.00 s"],
        ["middle: auto", "count", "–", "500 ms", "500 ms"],
    ]


def test_a_ladder_is_over_its_first_step() -> None:
    steps = {"coarse": (0.4, 0.9), "fine": (0.1, 0.1)}
    records = [
        made("wedgewise", seconds, graph=graph, algorithm="eager", knobs={"granularity": name})
        for name, times in steps.items()
        for graph, seconds in zip(("small", "large"), times, strict=True)
    ]
    [table] = tables(_ways.ladders_part(records, ()))
    assert table.header == ("step", "small", "large", "geometric mean", "over the step before")
    assert rows(table) == [
        ["eager[granularity=coarse]", "1.00×", "1.00×", "1.00×", "1.00×"],
        ["eager[granularity=fine]", "4.00×", "9.00×", "6.00×", "6.00×"],
    ]


def test_a_named_ladder_has_the_steps_in_their_order() -> None:
    records = [made("wedgewise", seconds, algorithm=name) for name, seconds in {"a": 0.1, "b": 0.6, "c": 0.2}.items()]
    [table] = tables(_ways.ladders_part(records, ("b", "c", "a")))
    assert [row[-2:] for row in rows(table)] == [["1.00×", "1.00×"], ["3.00×", "3.00×"], ["6.00×", "2.00×"]]
    with pytest.raises(UnknownNameError, match="no way named 'd' in these results; there are: a, b, c"):
        _ways.ladders_part(records, ("b", "d"))


def test_ways_that_differ_in_several_choices_or_in_numbers_are_no_ladder() -> None:
    knobs = [{"parts": 1, "method": "list"}, {"parts": 1, "method": "map"}, {"parts": 4, "method": "list"}]
    assert _ways.ladders_part([made("blocks", 0.1, algorithm="bbtc", knobs=each) for each in knobs], ()) is None
    assert _ways.ladders_part([made("wedgewise", 0.1, algorithm="x", knobs={"p": p}) for p in (1, 2)], ()) is None


def test_a_sweep_varies_one_parameter_alone() -> None:
    records = [
        made("wedgewise", seconds, algorithm="wetric", knobs={"length": length, "order": order})
        for order in ("core", "degree")
        for length, seconds in {1024: 0.3, 4096: 0.1, 16384: 0.2}.items()
    ]
    part = _ways.sweeps_part([*records, made("wedgewise", 0.05, algorithm="wetric")])
    first, second = tables(part)
    assert first.header == second.header == ("graph", "1024", "4096", "16384", "fastest")
    assert rows(first) == [["small", "300 ms", "100 ms", "200 ms", "4096"]]
    assert pictures(part)[0].description == "Fastest: 4096 on small."


def test_threads_are_a_parameter_too() -> None:
    [sweep] = _ways.sweeps_of([made("wedgewise", 0.4 / threads, threads=threads) for threads in (1, 2, 4)])
    assert sweep.parameter == "threads"
    assert sweep.seconds == {"small": {1.0: 0.4, 2.0: 0.2, 4.0: 0.1}}


def test_a_sweep_over_many_graphs_is_drawn_by_its_mean() -> None:
    records = [
        made("wedgewise", 0.1 * factor, graph=f"g{number}", algorithm="x", knobs={"p": p})
        for number in range(9)
        for p, factor in {1: 4.0 if number else 9.0, 2: 1.0}.items()
    ]
    [sweep] = _ways.sweeps_of(records)
    assert _ways._relative(sweep, [1.0, 2.0]) == pytest.approx({1.0: (9 * 4**8) ** (1 / 9), 2.0: 1.0})
    [picture] = pictures(_ways.sweeps_part(records))
    assert picture.caption.endswith(": time divided by the best one of the graph, geometric mean.")


def test_rates_are_against_the_limit_of_the_kernel() -> None:
    facts = {"wedges_tested": 10**6, "limit_seconds": 0.001}
    quick = made("wedgewise", 0.5, facts=facts, stages={"kernel": (0.002, 0.002)}, device="cuda")
    slow = made("wedgewise", 0.01, facts=facts, graph="large")
    [table] = tables(_work.roofline_part([quick, slow, made("wedgewise", 0.1, facts={"wedges_tested": 5})]))
    assert rows(table) == [
        ["small", "auto on cuda", "1,000,000", "500M", "1G", "50.0%"],
        ["large", "auto", "1,000,000", "100M", "1G", "10.0%"],
    ]


def test_regret_is_the_time_of_auto_over_the_best() -> None:
    records = [
        made("wedgewise", 0.3, facts={"chosen": "forward"}),
        made("wedgewise", 0.1, algorithm="keystone"),
        made("wedgewise", 0.2, graph="large"),
        made("wedgewise", 0.8, graph="large", algorithm="keystone"),
        made("wedgewise", 0.01, algorithm="keystone", device="cuda"),
        made("igraph", 0.001),
    ]
    part = _ways.regret_part(records)
    [table] = tables(part)
    assert rows(table) == [
        ["small", "count", "forward", "300 ms", "keystone", "100 ms", "3.00×"],
        ["large", "count", "–", "200 ms", "auto", "200 ms", "1.00×"],
    ]
    assert part is not None
    assert "takes 1.73× the time of the fastest way in the geometric mean of 2 cases, at most 3.00×, on small." in str(
        part.items[0]
    )


def test_timelines_and_counters_are_as_told() -> None:
    records = every_kind()
    [table] = tables(_work.timelines_part(records))
    assert rows(table)[0] == ["huge: bbtc on hybrid", "GPU stream 0", "1", "40.0 ms", "80%", "0"]
    counters, meanings = tables(_work.counters_part(records))
    assert [row[:2] for row in rows(meanings)] == [["lts__t_sector_hit_rate.pct", "l2_tex_hit_rate"]]
    assert counters.header == ("cell", "lts__t_sector_hit_rate.pct")
    assert rows(counters)[0] == ["small: wetric[matrix_length=1024] on cuda", "71.5"]


def test_answers_that_differ_are_judged() -> None:
    """A line on disk knows nothing of the others."""
    asked = {"question": "triangles", "answer": 45}
    records = [made(system, 0.01, digest=digest, **asked) for system, digest in (("a", "x"), ("b", "x"), ("c", "y"))]
    assert "1 answered wrongly" in to_markdown(bench_report(records))


def test_what_went_wrong_comes_worst_first() -> None:
    part = _account.wrong_part(every_kind())
    [table] = tables(part)
    assert rows(table) == [
        ["small", "dummy, default", "count", "answered wrongly", "46 instead of 45"],
        ["small", "networkx, default", "count", "ran into the limit of time", "> 60 s"],
    ]
    assert part is not None
    assert part.items[0] == "Of 47 cells: 1 answered wrongly, 1 ran into the limit of time."
    assert _account.wrong_part(against_peers()) is None


def test_every_cell_has_all_its_metrics() -> None:
    facts = {"wedges_tested": 10**6, "limit_seconds": 0.005, "bytes_moved": 2500, "device_peak_bytes": 3 * 10**6}
    [table] = tables(_account.cells_part([made("wedgewise", 0.01, facts=facts, peak_bytes=10**9)]))
    told = dict(zip(table.header, rows(table)[0], strict=True))
    assert list(told.values())[:7] == ["small", "count", "count", "wedgewise", "auto", "cpu", "2"]
    seconds = [told[name] for name in ("median", "least", "spread", "repeats", "edges/s", "time / limit")]
    assert seconds == ["10.0 ms", "9.00 ms", "30%", "3", "100k", "2.00×"]
    assert [told[name] for name in ("edges", "answer", "wedges tested")] == ["1,000", "45", "1,000,000"]
    assert [told[name] for name in ("bytes moved", "memory", "device memory")] == ["2.5 kB", "1 GB", "3 MB"]
    [bare] = tables(_account.cells_part([made("wedgewise", 0.01, edges=None)]))
    assert not {"edges/s", "memory", "bytes moved"} & set(bare.header)


def test_of_two_records_of_a_cell_the_last_counts_on_each_machine() -> None:
    other = MACHINE | {"processor": "Other"}
    found = _contests.latest([made("wedgewise", 1.0), made("wedgewise", 2.0), made("wedgewise", 3.0, machine=other)])
    assert [record.outcome.median for record in found] == [2.0, 3.0]
    assert len(_contests.among_systems(found)) == 2


def test_a_machine_is_the_same_whether_its_gpu_took_part_or_not() -> None:
    on_gpu = made("wedgewise", 1.0, device="cuda", machine=MACHINE | {"gpu": "GPU"})
    [contest] = _contests.among_systems(_contests.latest([made("wedgewise", 2.0), on_gpu]))
    assert contest.names == ("auto", "auto on cuda")
    assert {_contests.machine_name(record) for record in contest.records.values()} == {"GPU, Processor, 2 threads"}


def test_a_system_is_shown_by_its_fastest_way_that_answered() -> None:
    ways = [made("graphblas", 0.5, algorithm="dot"), made("graphblas", None, algorithm="saxpy", status="crashed")]
    for records in (ways, ways[::-1]):
        [contest] = _contests.among_systems([made("wedgewise", 0.1), *records])
        assert contest.seconds("small", "graphblas") == 0.5


def test_who_is_not_available_does_not_compete() -> None:
    [contest] = _contests.among_systems([made("wedgewise", 0.1), made("igraph", None, status="unavailable")])
    assert contest.names == ("wedgewise",)


def test_very_many_ways_are_shown_by_algorithm() -> None:
    records = [made("wedgewise", 1.0 / p, algorithm="x", knobs={"p": p}) for p in range(1, 15)]
    [contest] = _contests.among_ways(records)
    assert contest.names == ("x",)
    assert contest.seconds("small", "x") == pytest.approx(1 / 14)


def test_suites_are_known_by_their_commands() -> None:
    old = made("wedgewise", 1.0, command="benchmarks/cpu.py --resume")
    assert suites_of([old, made("wedgewise", 1.0), old]) == ["cpu", "mine"]


def eager_records() -> list[Record]:
    """The eager k-truss on a graph of its paper: half as fast as published by rows, thrice that by non-zeros."""
    return [
        made("wedgewise", seconds, graph="ca-GrQc", algorithm="eager", question=question, knobs={"granularity": name})
        for question in ("k_truss[k=3]", "k_truss[k=kmax]")
        for name, seconds in {"coarse": 0.00332, "fine": 0.00332 / 3}.items()
    ]


def test_a_paper_is_beside_by_exhibit() -> None:
    part = _papers.paper_part("eager", eager_records())
    assert part is not None
    first, *others = tables(part)
    coarse = next(row for row in rows(first) if row[2] == "eager[granularity=coarse] seconds")
    assert coarse == [*("ca-GrQc", "ca-GrQc"), coarse[2], *("1.66 ms", "3.32 ms", "3.43 ms", "0.50×")]
    assert ["ca-GrQc", "3.00×"] in [row for table in others for row in rows(table)]
    assert "ca-GrQc: eager[granularity=fine] 3×." in [picture.description for picture in pictures(part)]
    assert others[-1].header == ("exhibit", "shows", "state", "why")


def test_many_graphs_of_a_paper_are_drawn_by_their_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_papers, "MAX_BARS", 0)
    shown = pictures(_papers.paper_part("eager", eager_records()))
    assert shown
    assert all(picture.caption.endswith(", geometric mean.") for picture in shown)


def test_a_value_that_there_is_not_is_a_dash() -> None:
    assert _papers._unit_value(None, "ms") == ("–", None)


def test_the_paper_of_a_suite_is_shown_by_itself() -> None:
    records = [
        replace(record, setting=replace(record.setting, command="wedgewise bench eager")) for record in eager_records()
    ]
    assert [part.title for part in bench_report(records).parts if part.title.startswith("Beside the paper")]
    assert not [part for part in bench_report(against_peers(), papers=["eager"]).parts if "paper" in part.title]
    with pytest.raises(UnknownNameError, match="eager"):
        bench_report(records, papers=["nobody"])


def test_a_ladder_is_of_times_and_begins_at_its_first_step() -> None:
    [ladder] = _papers.ladders_in(papers.load("wetric"))
    assert ladder[0] == "wetric[cooperation=off,matrix_length=0,order=id,spread=1]"
    assert (len(ladder), ladder[-1]) == (5, "wetric")


def test_the_ladder_of_a_paper_is_climbed_by_itself() -> None:
    ladder = [
        "hindex",
        "trust[cooptimisation=off,combination=warp,relabel=rank]",
        "trust[combination=warp,relabel=rank]",
        "trust[relabel=rank]",
        "trust",
    ]
    ways = [Spec.parse(text) for text in ladder]
    records = [
        made("wedgewise", time, algorithm=way.name, knobs=way.settings, device="cuda", command="wedgewise bench trust")
        for way, time in zip(ways, (0.8, 0.4, 0.1, 0.05, 0.025), strict=True)
    ]
    [part] = [part for part in bench_report(records).parts if part.title == "Ladders"]
    [table] = tables(part)
    assert [row[0] for row in rows(table)] == ladder
    assert [row[-1] for row in rows(table)] == ["1.00×", "2.00×", "4.00×", "2.00×", "2.00×"]


def test_markdown_has_the_tables_and_keeps_their_columns() -> None:
    text = to_markdown(bench_report([made("wedgewise", 0.01, graph="a|b")]))
    assert "## Times side by side" in text
    assert r"a\|b" in text
    assert "10.0 ms" in text


@pytest.fixture
def results(tmp_path: Path) -> str:
    return write(tmp_path / "r.jsonl", against_peers()[:6])


def write(path: Path, records: list[Record]) -> str:
    path.write_text("".join(record.to_line() + "\n" for record in records), encoding="utf-8")
    return str(path)


def test_the_command_writes_page_tables_and_charts(results: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    page, markdown, svg, png = (tmp_path / name for name in ("r.html", "r.md", "svg", "png"))
    options = ["--output", str(page), "--markdown", str(markdown), "--svg", str(svg), "--png", str(png)]
    done = invoke("report", results, *options, "--json")
    assert done.exit_code == 0
    told = json.loads(done.stdout)
    assert told["records"] == 6
    assert told["files"][:2] == [str(page), str(markdown)]
    assert all(Path(name).stat().st_size > 0 for name in told["files"])
    assert [path.name for path in svg.iterdir()] == ["01-speedup-count-count.svg"]
    assert [path.name for path in png.iterdir()] == ["01-speedup-count-count.png"]
    assert page.read_text(encoding="utf-8").count("<svg") == 1
    assert "2.00×" in markdown.read_text(encoding="utf-8")


def test_the_command_takes_several_files_a_base_and_a_ladder(results: str, tmp_path: Path) -> None:
    extra = write(tmp_path / "s.jsonl", [made("wedgewise", 0.005, algorithm="keystone")])
    output = tmp_path / "r.md"
    done = invoke(
        "report", results, extra, "--markdown", str(output), "--base", "igraph", "--ladder", "auto", "keystone"
    )
    assert done.exit_code == 0, done.stderr
    text = output.read_text(encoding="utf-8")
    assert "## Ladders" in text
    assert "Time of igraph divided by" in text


def test_charts_are_not_written_where_a_file_is(results: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = invoke("report", results, "--svg", str(tmp_path / "file"))
    assert (done.exit_code, "cannot be made (File exists); name another folder" in done.stderr) == (1, True)


def test_a_command_writes_a_page_beside_its_records(results: str) -> None:
    done = invoke("report", results)
    page = Path(results).with_suffix(".html")
    assert (done.exit_code, done.stdout) == (0, f"{page}\n")
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_files_without_records_are_refused(tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    with pytest.raises(InputError, match=r"no record in it; run `wedgewise bench SUITE --output FILE` first"):
        read_results([empty])
    done = invoke("report", str(tmp_path / "none.jsonl"), "--markdown", str(tmp_path / "r.md"))
    assert done.exit_code == 1
    assert "No such file or directory; name a results file" in done.stderr
