"""Charts of the reports: data → `Chart`, whose ``svg()`` goes into a page and which writes files as well.

Names are the users' own (graphs, algorithms): nothing in them is taken for markup.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from wedgewise.report._drawing import (
    INK,
    LETTER,
    PAPER,
    SERIES,
    SOFT,
    WIDTH,
    Axis,
    Chart,
    dress,
    legend,
    legend_height,
    lines_in,
    looks_of,
    series_style,
    wrapped,
)

__all__ = [
    "Axis",
    "Chart",
    "LaneSpan",
    "bars",
    "lines",
    "profile",
    "roofline",
    "scatter",
    "stacked",
    "timeline",
]

Point = tuple[float, float]
Points = Mapping[str, Sequence[Point]]
"""Points by the name of their series."""

MARGIN = 0.55  # inches of an axis with its label
LINE, NEXT_LINE = 0.19, 0.125  # of a line of text, and of each one below it
GROUP_LETTERS = 58  # of a line that names a group
HATCHES = ("", "////", "....")  # for more series than there are colours
BAR, THICK_BAR = 0.14, 0.17
GAP = 0.07
PLOT = 2.7
LANE = 0.22
MAX_TICKS = 8
THIN_SPANS = {"copy": (0.15, 0.25), "fill": (0.6, 0.25)}  # where in a lane, and how high: above other kinds


@dataclass(frozen=True, slots=True)
class LaneSpan:
    """What a lane of a timeline did, of which kind, from when to when."""

    lane: str
    kind: str
    begin: float
    end: float


def bars(
    groups: Sequence[str],
    series: Mapping[str, Sequence[float | None]],
    axis: Axis,
    reference: float | None = None,
) -> Chart:
    """Bars side by side, a group for each name with one bar per series, and their values behind them.

    Parameters
    ----------
    groups : written above the bars of each group
    series : by name, a value for each group; None draws no bar
    axis : of the values
    reference : a value that is marked by a line, such as a ratio of one
    """
    label = _label_height(groups)
    step = label + BAR * len(series) + GAP

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        values = [value for column in series.values() for value in column if value is not None]
        low, high = _range(values, axis, reference)
        base = reference if axis.is_log and reference is not None else low
        handles = []
        looks = looks_of(series)
        for number, column in enumerate(series.values()):
            positions = [group * step + label + BAR * (number + 0.5) for group in range(len(groups))]
            found = [(position, value) for position, value in zip(positions, column, strict=True) if value is not None]
            widths = [value - base for _, value in found]
            look = {"color": SERIES[looks[number] % len(SERIES)], "edgecolor": PAPER, "linewidth": 0.0}
            look["hatch"] = HATCHES[looks[number] // len(SERIES) % len(HATCHES)]
            handles.append(axes.barh([position for position, _ in found], widths, 0.85 * BAR, base, **look))
            for position, value in found:
                _value_text(axes, value, position, axis, is_left=value < base)
        if reference is not None:
            axes.axvline(reference, color=INK, linewidth=0.9, linestyle="--")
        _name_groups(axes, groups, step)
        axes.set_xlim(low, high)
        dress(axes, axis, is_x=True)
        legend(figure, handles, list(series))

    return Chart(draw, MARGIN + step * len(groups) + legend_height(list(series)))


def stacked(groups: Sequence[str], series: Mapping[str, Sequence[float]], axis: Axis) -> Chart:
    """One bar for each group, made of the parts of all series, and their sums behind them."""
    label = _label_height(groups)
    step = label + THICK_BAR + GAP

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        ends = [0.0] * len(groups)
        positions = [group * step + label + THICK_BAR / 2 for group in range(len(groups))]
        handles = []
        for number, column in enumerate(series.values()):
            style = {"color": SERIES[number % len(SERIES)], "edgecolor": PAPER, "linewidth": 0.5}
            handles.append(axes.barh(positions, column, THICK_BAR, ends, **style))
            ends = [end + part for end, part in zip(ends, column, strict=True)]
        for position, end in zip(positions, ends, strict=True):
            _value_text(axes, end, position, axis)
        _name_groups(axes, groups, step)
        axes.set_xlim(_range(ends, axis))
        dress(axes, axis, is_x=True)
        legend(figure, handles, list(series))

    return Chart(draw, MARGIN + step * len(groups) + legend_height(list(series)))


def lines(series: Points, x: Axis, y: Axis, *, from_zero: bool = False) -> Chart:
    """A line through the points of each series, ascending; `from_zero` has heights that compare."""
    ascending = {name: sorted(points) for name, points in series.items()}
    ticks = sorted({position for points in series.values() for position, _ in points})
    return _plot(ascending, x, y, {}, ticks=ticks, from_zero=from_zero)


def scatter(series: Points, x: Axis, y: Axis) -> Chart:
    """The points alone."""
    return _plot(series, x, y, {"linestyle": "none"})


def profile(series: Points, x: Axis, y: Axis) -> Chart:
    """Steps: each point is where its series rises to a share, which holds until the next one."""
    return _plot(series, x, y, {"drawstyle": "steps-post", "marker": ""}, most=1.0)


def roofline(series: Points, limits: Points, x: Axis, y: Axis) -> Chart:
    """Measured rates as points, and the limits above them as dashes."""
    return _plot(series, x, y, {"linestyle": "none"}, limits=limits)


def timeline(lanes: Sequence[str], spans: Sequence[LaneSpan], axis: Axis) -> Chart:
    """A lane for each device, from above, with what it did when."""
    kinds = list(dict.fromkeys(span.kind for span in spans))

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        handles = []
        for number, kind in enumerate(kinds):
            for row, lane in enumerate(lanes):
                found = [
                    (span.begin, span.end - span.begin) for span in spans if (span.lane, span.kind) == (lane, kind)
                ]
                top, height = THIN_SPANS.get(kind, (0.15, 0.7))
                drawn = axes.broken_barh(found, (row + top, height), facecolors=SERIES[number % len(SERIES)])
            handles.append(drawn)
        axes.set_yticks([row + 0.5 for row in range(len(lanes))], lanes)
        axes.set_ylim(len(lanes), 0)
        axes.tick_params(axis="y", length=0)
        axes.set_xlim(0.0, max(span.end for span in spans) * 1.01 or 1.0)
        dress(axes, axis, is_x=True)
        legend(figure, handles, kinds)

    return Chart(draw, MARGIN + LANE * len(lanes) + legend_height(kinds))


def _plot(
    series: Points,
    x: Axis,
    y: Axis,
    style: dict[str, Any],
    *,
    limits: Points = MappingProxyType({}),
    most: float | None = None,
    ticks: Sequence[float] = (),
    from_zero: bool = False,
) -> Chart:
    """Points of several series in one plot, and dashes for limits.

    `ticks` are marked where they are few; `most` is the top of the plot.
    """
    names = [*series, *limits]

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        handles = []
        for look, points in zip(looks_of(series), series.values(), strict=True):
            handles += axes.plot(*zip(*points, strict=True), **(series_style(look) | style))
        for number, points in enumerate(limits.values()):
            dash = {"color": (INK, SOFT)[number % 2], "linestyle": "none", "marker": "_", "markersize": 9}
            handles += axes.plot(*zip(*points, strict=True), **dash)
        if most is not None:
            axes.set_ylim(0.0, most * 1.03)
        dress(axes, x, is_x=True)
        dress(axes, y, is_x=False)
        if 0 < len(ticks) <= MAX_TICKS:
            shown = _apart(axes, {position: f"{position:,g}" for position in ticks})
            axes.set_xticks(list(shown), list(shown.values()))
        legend(figure, handles, names)
        if from_zero:
            axes.set_ylim(bottom=0.0)

    return Chart(draw, PLOT + legend_height(names))


def _range(values: Sequence[float], axis: Axis, reference: float | None = None) -> tuple[float, float]:
    """From where to where an axis of bars goes, wide enough for the texts at their ends."""
    marked = [*values, *([] if reference is None else [reference])]
    least, most = min(marked, default=0.0), max(marked, default=1.0)
    if not axis.is_log:
        return 0.0, most * 1.16 or 1.0
    margin = max(most / least, 2.0) ** 0.16
    return (least / margin if reference is not None and least < reference else least / 2), most * margin


def _value_text(axes: Any, value: float, position: float, axis: Axis, is_left: bool = False) -> None:
    """The value at the end of its bar."""
    axes.annotate(
        axis.text(value),
        (value, position),
        xytext=(-3 if is_left else 3, 0),
        textcoords="offset points",
        ha="right" if is_left else "left",
        va="center",
        fontsize=7.5,
    )


def _name_groups(axes: Any, groups: Sequence[str], step: float) -> None:
    """The name of every group above its bars, so that these have the whole width."""
    style = {"va": "bottom", "fontsize": 7.5, "bbox": {"facecolor": PAPER, "edgecolor": "none", "pad": 0.4}}
    for number, name in enumerate(groups):
        position = number * step + _label_height(groups) - 0.03
        axes.text(0.0, position, wrapped(name, GROUP_LETTERS), transform=axes.get_yaxis_transform(), **style)
    axes.set_ylim(step * len(groups), 0.0)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)


def _label_height(groups: Sequence[str]) -> float:
    """The inches above the bars of a group, for the longest of the names."""
    return LINE + NEXT_LINE * (max((lines_in(wrapped(name, GROUP_LETTERS)) for name in groups), default=1) - 1)


def _apart(axes: Any, ticks: Mapping[float, str]) -> dict[float, str]:
    """Those of the ascending ticks whose texts do not touch the one before."""
    axes.autoscale_view()  # before: limits are found only when they are asked for
    to_share = axes.transScale + axes.transLimits
    shown: dict[float, str] = {}
    end = 0.0
    for position, text in ticks.items():
        middle, half = to_share.transform((position, 1.0))[0] * WIDTH * 72, LETTER * (len(text) + 1) / 2
        if not shown or middle - half >= end:
            shown[position] = text
            end = middle + half
    return shown
