"""Charts: their texts, their colours on a page, and that the same data give the same bytes."""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from functools import cache

import pytest

from wedgewise.errors import MissingDependencyError
from wedgewise.report import charts
from wedgewise.report._drawing import PAGE_COLOURS, _for_page, looks_of, wrapped
from wedgewise.report.charts import Axis, Chart, LaneSpan

pytest.importorskip("matplotlib")

TIME, RATIO, NUMBER = (
    Axis("time", "s", is_log=True),
    Axis("times as fast", "×", is_log=True),
    Axis("edges", is_log=True),
)

SPANS = [LaneSpan("x", "count", 0, 1), LaneSpan("x", "copy", 0, 0.5), LaneSpan("y", "count", 0, 0.2)]

EXAMPLES: dict[str, Callable[[], Chart]] = {
    "bars": lambda: charts.bars(["torus", "ring"], {"a": [2.0, 0.5], "b": [None, 40.0]}, RATIO, 1.0),
    "stacked": lambda: charts.stacked(["torus"], {"copy": [0.002], "kernel": [0.003]}, Axis("time", "s")),
    "lines": lambda: charts.lines({"a": [(4, 0.1), (1, 0.2)], "b": [(1, 0.4)]}, Axis("threads"), TIME),
    "scatter": lambda: charts.scatter({"a": [(1e3, 0.1), (1e6, 2.0)]}, NUMBER, TIME),
    "profile": lambda: charts.profile({"a": [(1, 0.5), (3, 1.0)], "b": [(1, 0.5)]}, RATIO, Axis("graphs", "%")),
    "roofline": lambda: charts.roofline({"a": [(1e6, 1e9)]}, {"limit": [(1e6, 4e9)]}, NUMBER, NUMBER),
    "timeline": lambda: charts.timeline(["x", "y"], SPANS, Axis("since the beginning", "s")),
}


@cache
def drawn(name: str) -> str:
    return EXAMPLES[name]().svg()


def words(svg: str) -> list[str]:
    return ["".join(item.itertext()) for item in ElementTree.fromstring(svg).iter() if item.tag.endswith("text")]


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_chart_for_a_page_is_small_coloured_by_the_page(name: str) -> None:
    drawing = drawn(name)
    assert drawing.startswith("<svg viewBox=")
    assert "currentColor" in drawing
    assert not [colour for colour in PAGE_COLOURS if colour in drawing]
    assert set(re.findall(r"#([0-9a-f]{6})\b", drawing)) == set()
    assert "http" not in drawing.replace("xmlns", "")
    assert "font-family" not in drawing
    assert len(drawing) < 20_000
    used, there = set(re.findall(r"#([\w-]+)", drawing)), set(re.findall(r' id="([\w-]+)"', drawing))
    assert used == there
    assert words(drawing)


def test_bars_show_names_values_and_the_series() -> None:
    found = words(drawn("bars"))
    assert {"torus", "ring", "2×", "0.5×", "40×", "a", "b", "times as fast"} <= set(found)


def test_stacked_bars_show_their_sums() -> None:
    assert "5 ms" in words(drawn("stacked"))


def test_lines_mark_the_values_that_were_measured() -> None:
    assert {"1", "4"} <= set(words(drawn("lines")))


def test_a_single_series_has_no_legend() -> None:
    assert "a" not in words(drawn("scatter"))


def test_long_names_are_broken_where_they_may_be() -> None:
    way = "wetric[cooperation=off,matrix_length=0,spread=1,order=id] on cuda"
    chart = charts.bars([f"kronecker-18-seed1: {way}"], {way: [1.0], "b": [2.0]}, Axis("v"))
    found = words(chart.svg())
    named = [text for text in found if text.startswith(("wetric", "order"))]
    assert named == ["wetric[cooperation=off,matrix_length=0,spread=1,", "order=id] on cuda"]
    grouped = [text for text in found if text.startswith(("kronecker", "matrix"))]
    assert grouped == ["kronecker-18-seed1: wetric[cooperation=off,", "matrix_length=0,spread=1,order=id] on cuda"]
    short = charts.bars(["a"], {"b": [1.0], "c": [2.0]}, Axis("v"))
    assert chart.height > short.height + 2 * 0.12


@pytest.mark.parametrize("name", ["", ",", "a" * 30, "a, b", "[x=1,y=2]", "图 " * 20])
def test_breaking_a_name_loses_nothing_but_blanks(name: str) -> None:
    lines = wrapped(name, 10).split("\n")
    assert "".join(lines).replace(" ", "") == name.replace(" ", "")
    assert max(map(len, lines)) <= 11  # a comma may stand behind the last letter


def test_ticks_do_not_touch() -> None:
    places = [0.0, 10_000.0, 25_000.0, 100_000.0, 300_000.0]
    found = words(charts.lines({"a": [(place, 1.0 + place) for place in places]}, Axis("length"), Axis("v", "s")).svg())
    shown = [text for text in found if text in {f"{place:,g}" for place in places}]
    assert shown == ["0", "100,000", "300,000"]


def test_names_are_text_whatever_they_hold() -> None:
    name = "$x_1$ <b> & 图"
    assert name in words(charts.bars([name], {"a": [1.0]}, Axis("v")).svg())


def test_a_drawing_without_a_size_is_no_chart() -> None:
    with pytest.raises(ValueError, match="without a viewBox"):
        _for_page("<?xml?><svg width='3'></svg>")


def test_a_file_has_its_own_colours_and_no_date() -> None:
    first, second = (EXAMPLES["bars"]().file("svg") for _ in range(2))
    assert first == second
    assert b"#0b6bb8" in first
    assert b"var(" not in first
    assert not re.search(rb"dc:date|20[2-9]\d-\d\d", first)


def test_pixels_are_the_same_each_time() -> None:
    first, second = (EXAMPLES["stacked"]().file("png") for _ in range(2))
    assert first == second
    assert first.startswith(b"\x89PNG")


def test_the_settings_of_the_user_change_nothing_and_stay() -> None:
    import matplotlib

    with matplotlib.rc_context({"font.size": 30.0, "svg.fonttype": "path"}):
        assert EXAMPLES["profile"]().svg() == drawn("profile")
        assert matplotlib.rcParams["font.size"] == 30.0


def test_without_matplotlib_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingDependencyError, match=r'pip install "wedgewise\[report\]"'):
        EXAMPLES["bars"]().svg()


@pytest.mark.parametrize(
    ("axis", "value", "text"),
    [
        (Axis("", "s"), 0.0, "0 s"),
        (Axis("", "s"), 2.5e-7, "250 ns"),
        (Axis("", "s"), 0.9999, "1 s"),
        (Axis("", "s"), 1234.0, "1,234 s"),
        (Axis("", "B"), 4_000_000, "4 MB"),
        (Axis("", "×"), 0.25, "0.25×"),
        (Axis("", "×"), 12345.0, "12,345×"),
        (Axis("", "%"), 0.125, "12.5%"),
        (Axis(""), 999.0, "999"),
        (Axis(""), 1500.0, "1.5k"),
        (Axis(""), -2e9, "-2G"),
    ],
)
def test_values_are_written_with_their_unit(axis: Axis, value: float, text: str) -> None:
    assert axis.text(value) == text


def test_nothing_but_zeros_is_drawn() -> None:
    time = Axis("time", "s")
    for chart in (
        charts.bars(["torus"], {"a": [0.0]}, time),
        charts.stacked(["torus"], {"copy": [0.0]}, time),
        charts.timeline(["x"], [LaneSpan("x", "count", 0, 0)], time),
    ):
        assert "<svg" in chart.svg()


def test_an_algorithm_has_one_colour_in_all_charts() -> None:
    def colours(*names: str) -> dict[str, str]:
        svg = charts.bars(["graph"], {name: [1.0] for name in names}, Axis("time", "s")).svg()
        return dict(zip(names, re.findall(r"var\(--series-\d\)", svg), strict=False))

    alone, among = colours("trust", "polak"), colours("polak", "keystone", "trust")
    assert {name: among[name] for name in alone} == alone
    assert len(set(among.values())) == 3
    assert looks_of(["trust[combination=warp]", "polak"]) == [0, 1]
