"""What the papers publish is transcribed rightly, and set beside what we measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from bench.canned_cells import make_record
from wedgewise.datasets import catalogue
from wedgewise.errors import FormatError, UnknownNameError
from wedgewise_bench import papers, profile
from wedgewise_bench.graphs import named_graphs
from wedgewise_bench.papers import Number, Paper
from wedgewise_bench.record import Record
from wedgewise_bench.spec import Spec
from wedgewise_bench.suite_files import declared_suites
from wedgewise_bench.systems import questions_by
from wedgewise_bench.words import DEVICES, QUESTIONS, ROWS, STAGES

REQUIRED = {
    "itc": [f"figure {number}" for number in (11, 12, 13, 15)],
    "wetric": [f"table {number}" for number in (3, 4, 5)] + [f"figure {number}" for number in (1, *range(5, 11))],
}
"""What the suites of the papers rerun, or say why not."""

KEYS = papers.keys()
HALF_OF_LAST_DIGIT = 0.005
SIZES = ("vertices", "edges", "triangles")

PAPER = """
key = "p"
title = "T"
authors = "A"
venue = "V"
year = 2000
hardware = "H"
statistic = "mean of 3"
average = "mean"

[others]
"theirs" = "a program that is not public"

[stand_ins]
"big" = "small"

[[exhibit]]
id = "table I"
shows = "times"
rerun = "yes"
how = "wedgewise bench p"
why = "Not all of it."
claims = ["trust is fast"]

[[exhibit.table]]
metric = "seconds"
unit = "ms"
hardware_of = { other = "another GPU" }
columns = [{ way = "trust" }, { way = "wetric[spread=7,cooperation=off]" }, { way = "theirs" }]

[exhibit.table.rows]
g = [4.0, 8.0, 1.0]
big = [40.0, "out of memory", 1.0]
other = [1.0, 2.0, 3.0]

[[exhibit.number]]
metric = "ratio"
way = "trust"
over = "wetric[spread=7,cooperation=off]"
join = "geometric mean"
value = 2.0
plus_minus = 0.5
unit = "×"

[[exhibit.curve]]
ways = ["trust", "wetric[spread=7,cooperation=off]"]

[[exhibit]]
id = "figure 2"
shows = "nothing"
rerun = "no"
why = "A drawing."
"""


def every_number() -> Iterator[tuple[Paper, Number]]:
    for key in KEYS:
        paper = papers.load(key)
        yield from ((paper, number) for exhibit in paper.exhibits for number in exhibit.numbers)


def ways_of(paper: Paper) -> Iterator[tuple[str, str, str, str, str]]:
    """System, device, question, row and way of everything of ours that a paper's numbers and curves name."""
    for exhibit in paper.exhibits:
        for item in exhibit.numbers:
            yield item.system, item.device, item.question, item.row, item.way
            yield item.system, item.over_device or item.device, item.question, item.row, item.over
        for curve in exhibit.curves:
            for way in (*curve.ways, curve.over):
                yield curve.system, curve.device, curve.question, curve.row, way


def on_gpu(
    way: str, seconds: tuple[float, ...] = (), graph: str = "g", status: str = "ok", threads: int = 2, **changes: Any
) -> Record:
    """A record of one of our algorithms on a GPU, timed by its kernels."""
    spec = Spec.parse(way)
    outcome = {"stages": {"kernel": seconds} if seconds else {}, **changes}
    record = make_record(
        "wedgewise", (99.0,), status=status, algorithm=spec.name, knobs=dict(spec.settings), graph=graph, **outcome
    )
    return replace(record, cell=replace(record.cell, device="cuda", threads=threads))


def ours(record_list: list[Record], **changes: Any) -> papers.Beside:
    """One number beside these records: of trust's seconds on g, unless it is changed."""
    paper = papers.parse(PAPER, "p.toml")
    facts: dict[str, Any] = {"metric": "seconds", "value": 1.0, "way": "trust"}
    number = Number(**{"graph": "" if "join" in changes else "g", **facts, **changes})
    paper = replace(paper, exhibits=(replace(paper.exhibits[0], numbers=(number,)),))
    (found,) = papers.beside(paper, record_list)
    return found


@pytest.mark.parametrize("key", KEYS)
def test_every_file_is_a_paper_with_exhibits(key: str) -> None:
    paper = papers.load(key)
    assert paper.key == key
    assert paper.exhibits
    assert all(item.shows and (item.how or item.why) for item in paper.exhibits)
    assert all([paper.title, paper.authors, paper.venue, paper.hardware, paper.statistic])


@pytest.mark.parametrize(("key", "names"), REQUIRED.items())
def test_what_a_suite_is_to_rerun_is_there(key: str, names: list[str]) -> None:
    paper = papers.load(key)
    assert [name for name in names if not (item := paper.exhibit(name)).claims and not item.numbers] == []


def test_graphs_are_in_the_catalogue_or_explained() -> None:
    strange = {
        (paper.key, number.graph)
        for paper, number in every_number()
        if number.graph and number.graph not in catalogue() and number.graph not in paper.unlisted
    }
    assert strange == set()


@pytest.mark.parametrize("key", KEYS)
def test_stand_ins_are_graphs_of_ours_for_graphs_of_the_paper(key: str) -> None:
    paper = papers.load(key)
    graphs = {number.graph for exhibit in paper.exhibits for number in exhibit.numbers}
    assert set(paper.stand_ins) <= graphs
    stand_ins = set(paper.stand_ins.values())
    assert stand_ins <= set(named_graphs(None, stand_ins))


@pytest.mark.parametrize("key", KEYS)
def test_ways_are_ours_with_their_knobs_or_named_as_others(key: str) -> None:
    paper = papers.load(key)
    for system, device, question, _, way in set(ways_of(paper)):
        assert device in DEVICES
        assert Spec.parse(question).name in QUESTIONS
        if way == "" or way in paper.others or system != "wedgewise" or device == "hybrid":
            continue
        assert Spec.parse(question).name in questions_by(Spec.parse(way), device), way


@pytest.mark.parametrize("key", REQUIRED)
def test_the_suite_of_a_paper_measures_every_way_that_it_names(key: str) -> None:
    suite, paper = declared_suites()[key], papers.load(key)
    cells = [cell for matrix in suite.matrices for cell in matrix.cells(matrix.graphs or suite.graphs)]
    measured = {
        (cell.system, cell.device, cell.question, cell.row, papers.written_out(Spec.parse(cell.way))) for cell in cells
    }
    named = {
        (*where, papers.written_out(Spec.parse(way)))
        for *where, way in ways_of(paper)
        if way and way not in paper.others
    }
    assert named - measured == set()
    assert suite.paper == key


@pytest.mark.parametrize("key", REQUIRED)
def test_the_suite_of_a_paper_runs_on_graphs_that_there_are(key: str) -> None:
    suite, paper = declared_suites()[key], papers.load(key)
    generated = {graph for matrix in suite.matrices for graph in matrix.graphs or suite.graphs}
    assert generated <= set(named_graphs(None, generated))
    assert set(paper.stand_ins.values()) <= generated
    assert isinstance(suite.real, tuple)
    published = {number.graph for exhibit in paper.exhibits for number in exhibit.numbers if number.graph}
    assert set(suite.real) == published


def test_rows_and_stages_are_those_of_records() -> None:
    assert all(number.row in ROWS for _, number in every_number())
    assert all(number.stage in ("", *STAGES) for _, number in every_number())


def test_counters_are_those_that_are_profiled() -> None:
    exhibits = [exhibit for key in KEYS for exhibit in papers.load(key).exhibits]
    metrics = {number.metric for exhibit in exhibits for number in exhibit.numbers}
    metrics |= {curve.metric for exhibit in exhibits for curve in exhibit.curves}
    assert {metric for metric in metrics if "__" in metric} <= {counter.name for counter in profile.COUNTERS}


def test_sizes_are_those_of_the_catalogue() -> None:
    compared = 0
    for paper, number in every_number():
        figures = catalogue()[number.graph].figures.get(paper.key) if number.graph in catalogue() else None
        if paper.key not in REQUIRED or figures is None or number.metric not in SIZES or number.way:
            continue
        known = {"vertices": figures.n, "edges": figures.m, "triangles": figures.triangles}[number.metric]
        assert known is not None
        assert known.value == number.plain, (paper.key, number)
        compared += 1
    assert compared == 19 * 2 + 14 * 3


def test_average_degrees_follow_from_the_sizes() -> None:
    """Each size is rounded down, so that it stands for an interval."""
    rows = by_graph(papers.load("itc").exhibit("table II").numbers)
    for graph, (n, m, degree) in rows.items():
        figures = catalogue()[graph].figures["itc"]
        assert figures.n is not None
        assert figures.m is not None
        least, most = 2 * m / (n + figures.n.step), 2 * (m + figures.m.step) / n
        step = 1 if degree == int(degree) else 0.1
        assert degree - step <= most, graph
        assert least <= degree + step, graph


def test_out_degrees_follow_from_the_sizes() -> None:
    rows = by_graph(papers.load("wetric").exhibit("table 3").numbers)
    for graph, (n, m, wedges, mean, median, most, triangles) in rows.items():
        assert abs(m / n - mean) < 0.06, graph  # 23.05 is printed as 23.0
        assert median <= most, graph
        assert triangles <= wedges <= m * (most - 1) / 2, graph


def test_speed_ups_follow_from_the_times_that_are_printed_with_them() -> None:
    for graph, (ours, *others) in by_graph(papers.load("wetric").exhibit("table 4").numbers).items():
        for theirs, ratio in zip(others[::2], others[1::2], strict=True):
            least = (theirs - HALF_OF_LAST_DIGIT) / (ours + HALF_OF_LAST_DIGIT)
            most = (theirs + HALF_OF_LAST_DIGIT) / (ours - HALF_OF_LAST_DIGIT)
            assert least - HALF_OF_LAST_DIGIT <= ratio <= most + HALF_OF_LAST_DIGIT, graph


def test_means_follow_from_the_speed_ups() -> None:
    numbers = papers.load("wetric").exhibit("table 4").numbers
    for stated in (number for number in numbers if number.join):
        each = [number.value for number in numbers if number.graph and number.over == stated.over and number.over]
        assert len(each) == 14
        joined = papers.JOINS[stated.join]([value for value in each if value is not None])
        assert round(joined, 2) == stated.value, stated


def by_graph(numbers: tuple[Number, ...]) -> dict[str, list[float]]:
    """The values of a table as it is printed, row by row."""
    rows: dict[str, list[float]] = {}
    for number in numbers:
        if number.graph and number.value is not None:
            rows.setdefault(number.graph, []).append(number.value)
    return rows


def test_ours_are_the_kernels_by_the_median_and_by_the_papers_mean() -> None:
    found = ours([on_gpu("trust", (0.001, 0.002, 0.006))], value=4.0, unit="ms")
    assert found.graphs == ("g",)
    assert found.ours == 0.002
    assert found.alike == pytest.approx(0.003)
    assert found.ratio == pytest.approx(2.0)
    assert found.why == ""


def test_without_stages_the_seconds_of_a_count_are_taken_but_not_for_other_stages() -> None:
    records = [on_gpu("trust")]
    assert ours(records).ours == 99.0
    assert ours(records, stage="prepare").why == "seconds was not measured"


def test_settings_may_stand_in_any_order() -> None:
    records = [on_gpu("wetric[cooperation=off,spread=7]", (0.5,))]
    assert ours(records, way="wetric[spread=7,cooperation=off]").ours == 0.5
    assert ours(records, way="wetric").why == "wetric is not among these results"


def test_a_ratio_says_how_many_times_as_fast_a_way_is() -> None:
    records = [on_gpu("trust", (1.0,)), on_gpu("polak", (3.0,))]
    assert ours(records, metric="ratio", over="polak", unit="×").ours == 3.0
    assert ours(records, metric="ratio", over="hu").why == "hu is not among these results"
    records.append(on_gpu("fox", (0.0,)))
    assert ours(records, metric="ratio", over="fox", join="geometric mean").why == "seconds too small to be divided"
    assert ours(records, metric="ratio", way="hu", over="polak").why == "hu is not among these results"


def test_a_ratio_may_be_of_other_things_and_of_two_devices() -> None:
    slow = on_gpu("polak", (3.0,))
    records = [
        on_gpu("trust", (1.0,), facts={"wedges_tested": 10}),
        replace(slow, cell=replace(slow.cell, device="cpu")),
    ]
    assert ours(records, metric="ratio", over="polak", over_device="cpu").ours == 3.0
    records.append(on_gpu("hu", (1.0,), facts={"wedges_tested": 40}))
    assert ours(records, metric="ratio", over="hu", of="wedges_tested").ours == 4.0


@pytest.mark.parametrize(("join", "joined"), [("geometric mean", 4.0), ("mean", 5.0), ("least", 2.0), ("most", 8.0)])
def test_a_number_of_several_graphs_joins_those_that_have_both(join: str, joined: float) -> None:
    records = [
        *(on_gpu("trust", (1.0,), graph) for graph in ("g", "h", "i")),
        on_gpu("polak", (2.0,), "g"),
        on_gpu("polak", (8.0,), "h"),
        on_gpu("polak", graph="i", status="timeout"),
    ]
    found = ours(records, metric="ratio", over="polak", join=join)
    assert found.ours == pytest.approx(joined)
    assert found.graphs == ("g", "h")


def test_the_original_graph_comes_before_the_one_that_stands_in() -> None:
    stand_in = on_gpu("trust", (2.0,), "small")
    assert ours([stand_in], graph="big").graphs == ("small",)
    both = ours([stand_in, on_gpu("trust", (1.0,), "big")], graph="big")
    assert (both.graphs, both.ours) == (("big",), 1.0)


def test_where_there_is_none_of_ours_the_reason_is_given() -> None:
    records = [on_gpu("trust", status="out_of_memory"), on_gpu("hu", (1.0,))]
    assert ours([]).why == "the graph is not among these results"
    assert ours([], join="mean").why == "there are no results"
    assert ours(records, graph="h").why == "the graph is not among these results"
    assert ours(records).why == "trust: out of memory"
    assert ours(records, way="theirs").why == "theirs is none of ours"
    assert ours(records, way="hu", metric="l2_hits").why == "l2_hits was not measured"
    assert ours(records).ratio is None


def test_a_ratio_to_nothing_by_the_papers_own_statistic_is_left_out() -> None:
    paper = papers.parse(PAPER, "p.toml")
    number = Number("ratio", 2.0, unit="×", graph="g", way="trust", over="hu")
    exhibit = replace(paper.exhibits[0], numbers=(number,), curves=())
    paper = replace(paper, average="least", runs=None, exhibits=(exhibit,))
    records = [on_gpu("trust", (0.0, 1.0, 1.0)), on_gpu("hu", (4.0,))]
    (found,) = papers.beside(paper, records)
    assert (found.ours, found.alike) == (4.0, None)
    (row,) = [line for line in papers.markdown(paper, records).splitlines() if line.startswith("| g ")]
    assert [cell.strip() for cell in row.split("|")[-4:-1]] == ["4×", "–", "0.50×"]


def test_facts_counters_sizes_and_rates_are_found_by_name() -> None:
    counters = {"lts__t_sector_hit_rate.pct": 91.5}
    record = on_gpu("trust", (0.5,), edges=100, answer=7, peak_bytes=2048, facts={"counters": counters, "vertices": 40})
    values = {"lts__t_sector_hit_rate.pct": 91.5, "edges": 100.0, "triangles": 7.0, "peak_bytes": 2048.0}
    for metric, value in {**values, "vertices": 40.0, "edges_per_second": 200.0}.items():
        assert ours([record], metric=metric).ours == value
    assert ours([record], metric="counters").why == "counters was not measured"


def test_a_number_without_a_way_is_of_the_graph_itself() -> None:
    records = [on_gpu("hu", status="crashed"), on_gpu("trust", (1.0,), facts={"vertices": 40})]
    assert ours(records, way="", metric="vertices").ours == 40.0
    assert ours(records, way="", metric="out_degree_most").why == "out_degree_most was not measured"


def test_the_edges_of_a_truss_are_no_triangles() -> None:
    records = [on_gpu("eager", (1.0,), question="k_truss[k=3]"), on_gpu("trust", (1.0,), answer=7)]
    assert ours(records, way="", metric="triangles").ours == 7.0


def test_other_systems_may_have_names_of_any_kind() -> None:
    assert ours([make_record("peer", (1.0,), algorithm="much-faster"), on_gpu("trust", (2.0,))]).ours == 2.0


def test_of_several_numbers_of_threads_the_most_or_the_named_one_counts() -> None:
    records = [on_gpu("trust", (1.0 * threads,), threads=threads) for threads in (2, 4, 1)]
    assert ours(records).ours == 4.0
    assert ours(records, threads=2).ours == 2.0
    assert ours(records, threads=8).why == "trust is not among these results"


def test_of_two_records_of_one_cell_the_later_one_counts() -> None:
    assert ours([on_gpu("trust", (1.0,)), on_gpu("trust", (2.0,))]).ours == 2.0


def test_markdown_sets_ours_beside_theirs_and_says_what_is_missing() -> None:
    paper = papers.parse(PAPER, "p.toml")
    way = "wetric[cooperation=off,spread=7]"
    records = [
        on_gpu("trust", (0.002,)),
        on_gpu(way, (0.008,)),
        on_gpu("trust", (0.01,), "small"),
        on_gpu(way, graph="small", status="timeout"),
    ]
    text = papers.markdown(paper, records)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "- published: H; mean of 3" in lines
    assert "- ours: P, S; median of the repeats" in lines
    assert "### Table I: times" in lines
    assert "Rerun by `wedgewise bench p`. Not all of it." in lines
    assert "- trust is fast" in lines
    assert "| g | g | trust seconds | 4 ms | 2 ms | 2 ms | 2.00× |" in lines
    assert "| big | small | trust seconds | 40 ms | 10 ms | 10 ms | 4.00× |" in lines
    assert f"| geometric mean | 1 graphs | trust over {way_text(paper)} | 2× ± 0.5 | 4× | 4× | 0.50× |" in lines
    assert "- theirs is none of ours: 2 (g, big)" in lines
    assert "- the graph is not among these results: 3 (other)" in lines
    assert "Ours, seconds of the stage kernel:" in lines
    assert "| g | 2.00 ms | 8.00 ms |" in lines
    assert "| small | 10.0 ms | – |" in lines
    assert "Not rerun. A drawing." in lines


def way_text(paper: Paper) -> str:
    return paper.exhibits[0].curves[0].ways[1]


@pytest.mark.parametrize(
    ("changes", "title", "row"),
    [
        ({"over": "hu"}, "seconds of the stage kernel; hu divided by each way", "| g | 4.00× |"),
        ({"metric": "wedges_tested"}, "wedges_tested", "| g | 12,345 |"),
        ({"metric": "wedges_tested", "over": "hu"}, "wedges_tested; hu divided by each way", "| g | 2.00× |"),
        ({"stage": "prepare"}, "seconds of the stage prepare", "| g | 2.00 s |"),
        ({"row": "edges"}, "seconds from pairs in memory", "| g | 99.0 s |"),
    ],
)
def test_a_curve_is_a_table_of_ours(changes: dict[str, str], title: str, row: str) -> None:
    paper = papers.parse(PAPER, "p.toml")
    curve = papers.Curve(("trust",), **changes)
    paper = replace(paper, exhibits=(replace(paper.exhibits[1], curves=(curve,)),))
    trust = on_gpu("trust", stages={"kernel": (1.0,), "prepare": (2.0,)}, facts={"wedges_tested": 12345})
    whole = on_gpu("trust")
    records = [
        trust,
        on_gpu("hu", (4.0,), facts={"wedges_tested": 24690}),
        replace(whole, cell=replace(whole.cell, row="edges")),
        on_gpu("trust", graph="h", status="timeout"),
    ]
    lines = [" ".join(line.split()) for line in papers.markdown(paper, records).splitlines()]
    assert f"Ours, {title}:" in lines
    assert [line for line in lines if line.startswith(("| g ", "| h "))] == [row]


def test_a_text_in_place_of_a_value_and_the_hardware_of_single_graphs_are_kept() -> None:
    numbers = papers.parse(PAPER, "p.toml").exhibits[0].numbers
    printed = [number for number in numbers if number.printed]
    assert [(number.graph, number.printed, number.plain) for number in printed] == [("big", "out of memory", None)]
    assert {number.graph for number in numbers if number.hardware == "another GPU"} == {"other"}


def test_every_paper_can_be_shown_without_results() -> None:
    for key in KEYS:
        text = papers.markdown(papers.load(key), [])
        assert all(f": {item.shows}" in text for item in papers.load(key).exhibits)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("year = 2000", "year = ", "no TOML"),
        ('venue = "V"', "", "'venue'"),
        ('venue = "V"', 'venue = "V"\nvenues = "V"', "'venues'"),
        ('average = "mean"', 'average = "mode"', "average = 'mode'"),
        ('unit = "ms"', 'unit = "hours"', "unit = 'hours'"),
        ('metric = "seconds"\n', 'metric = "seconds"\nspeed = 1\n', "'speed'"),
        ("g = [4.0, 8.0, 1.0]", "g = [4.0, 8.0]", "g has 2 values in 3 columns"),
        ('id = "figure 2"', 'id = "table I"', "several exhibits are called table I"),
        ('rerun = "no"', 'rerun = "maybe"', "rerun = 'maybe'"),
        ('rerun = "no"', 'rerun = "yes"', "how = ''"),
        ('rerun = "no"', 'rerun = "no"\nhow = "x"', "how = 'x'"),
        ('why = "A drawing."', "", "why"),
        ('join = "geometric mean"', 'join = "median"', "join = 'median'"),
        ('join = "geometric mean"', 'join = "mean"\ngraph = "g"', "join = 'mean'"),
        ('join = "geometric mean"', "", "join = ''"),
        ('metric = "ratio"', 'metric = "seconds"', "over a way"),
    ],
)
def test_what_a_file_lacks_or_has_too_much_is_named(old: str, new: str, says: str) -> None:
    assert old in PAPER
    with pytest.raises(FormatError, match=r"p\.toml") as caught:
        papers.parse(PAPER.replace(old, new, 1), "p.toml")
    assert says in str(caught.value)


def test_unknown_papers_and_exhibits_are_refused_with_those_there_are() -> None:
    with pytest.raises(UnknownNameError, match=r"there are: .*itc"):
        papers.load("nobody")
    with pytest.raises(UnknownNameError, match="it has: table I"):
        papers.load("itc").exhibit("table 77")
