"""What every chart shares: its size, its colours, its axes, and how it becomes SVG or PNG.

A page shows a chart in its own colours, light or dark; a file is always light. The same data give the same bytes.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from wedgewise.machine.libraries import library

WIDTH = 3.6  # inches: small, so that letters stay readable where a phone scales a chart to its own width
LETTER = 4.9  # points that one takes, on average
PNG_DOTS_PER_INCH = 280
LEGEND_LETTERS, KEY_LETTERS = 62, 6  # of a line, and what the sign before a name takes of them

INK, SOFT, RULE, PAPER = "#1c2128", "#56606c", "#d5dbe1", "#ffffff"
SERIES = ("#0b6bb8", "#cf5a00", "#0a8f6a", "#b0508f", "#8a6d00", "#5a55c8", "#3d8ea8", "#7a828c")
SAME_EVERYWHERE = (  # names that look the same in every chart, in the order of their looks
    *("keystone", "polak", "wetric", "trust", "grouptc", "tricore", "green", "fox"),
    *("hu", "hindex", "bisson", "bbtc", "eager", "forward", "hashmap", "latapy"),
    *("graphblas", "networkit", "igraph", "rustworkx", "networkx", "wedgewise", "peel", "reference"),
)
MARKERS = "osD^vPX*"
DASHES = ("-", "--", ":", "-.")
PAGE_COLOURS = {
    INK: "currentColor",
    SOFT: "var(--soft)",
    RULE: "var(--rule)",
    PAPER: "var(--paper)",
    **{colour: f"var(--series-{number})" for number, colour in enumerate(SERIES, start=1)},
}
"""The colours of files → those that the style of a page defines."""

STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "wedgewise",
    "text.parse_math": False,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib: the layout is the same everywhere
    "font.size": 8.0,
    "axes.titlesize": 8.0,
    "axes.edgecolor": SOFT,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "text.color": INK,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "legend.fontsize": 7.5,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.5,
}

UNSTATED = {"svg": dict.fromkeys(("Date", "Creator", "Format", "Type")), "png": {"Software": None}}
"""What matplotlib would write into a file of itself and of the day."""

PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))
NUMBER = re.compile(r"-?\d+\.\d{3,}")


@dataclass(frozen=True, slots=True)
class Axis:
    """What an axis shows.

    Attributes
    ----------
    label : written beside it
    unit : "s", "B" or another one that takes prefixes, "×" for ratios, "%" for shares of one, "" for bare numbers
    is_log : whether equal distances are equal ratios
    """

    label: str
    unit: str = ""
    is_log: bool = False

    def text(self, value: float) -> str:
        """A value as the axis writes it: at most three digits, with a prefix or its unit.

        Examples
        --------
        >>> Axis("time", "s").text(0.00125), Axis("edges").text(4_200_000), Axis("share", "%").text(0.5)
        ('1.25 ms', '4.2M', '50%')
        """
        if self.unit == "%":
            return f"{value * 100:.3g}%"
        if self.unit == "×":
            return f"{value:,.3g}×" if abs(value) < 1000 else f"{value:,.0f}×"
        if not value or (not self.unit and 1e-3 <= abs(value) < 1e3):
            return f"{value:.3g} {self.unit}".rstrip()
        if self.unit == "s" and abs(value) >= 1:
            return f"{value:,.3g} s" if abs(value) < 1000 else f"{value:,.0f} s"
        scale, prefix = next((pair for pair in PREFIXES if abs(value) >= 0.9995 * pair[0]), PREFIXES[-1])
        space = " " if self.unit else ""
        return f"{value / scale:.3g}{space}{prefix}{self.unit}"


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawing that is made when it is asked for.

    Attributes
    ----------
    draw : draws on an empty figure
    height : inches
    """

    draw: Callable[[Any], None]
    height: float

    def svg(self) -> str:
        """The element for a page: it takes the page's letters and colours, and fits any width."""
        return _for_page(self.file("svg", transparent=True).decode())

    def file(self, form: str, *, transparent: bool = False) -> bytes:
        """A file of its own, "svg" or "png"."""
        with _style():
            figure = library("matplotlib.figure").Figure(figsize=(WIDTH, self.height), layout="constrained")
            self.draw(figure)
            buffer = BytesIO()
            figure.savefig(buffer, format=form, dpi=PNG_DOTS_PER_INCH, transparent=transparent, metadata=UNSTATED[form])
        return buffer.getvalue()


def looks_of(names: Iterable[str]) -> list[int]:
    """The number of every series' look: of known names the same in all charts, else by position."""
    names = list(names)
    if set(names) <= set(SAME_EVERYWHERE):
        return [SAME_EVERYWHERE.index(name) for name in names]
    return list(range(len(names)))


def series_style(number: int) -> dict[str, Any]:
    """Colour, marker and dashes of a line: no two of the first 32 are alike, nor do the first eight need colour."""
    return {
        "color": SERIES[number % len(SERIES)],
        "marker": MARKERS[(number + number // len(SERIES)) % len(MARKERS)],
        "linestyle": DASHES[number // len(SERIES) % len(DASHES)],
    }


def dress(axes: Any, axis: Axis, *, is_x: bool) -> None:
    """Give one direction of a plot its label, its scale and the texts of its ticks."""
    ticker = library("matplotlib.ticker")
    side = axes.xaxis if is_x else axes.yaxis
    (axes.set_xlabel if is_x else axes.set_ylabel)(axis.label)
    if axis.is_log:
        (axes.set_xscale if is_x else axes.set_yscale)("log")
        low, high = sorted(axes.get_xlim() if is_x else axes.get_ylim())
        steps = (1.0, 2.0, 5.0) if high / low < 200 else (1.0,)
        side.set_major_locator(ticker.LogLocator(subs=steps, numticks=7))
        side.set_minor_locator(ticker.NullLocator())
    else:
        side.set_major_locator(ticker.MaxNLocator(4 if is_x else 6, steps=[1, 2, 2.5, 5, 10]))
    side.set_major_formatter(ticker.FuncFormatter(lambda value, _: axis.text(value)))
    side.grid(True)


def legend(figure: Any, handles: Sequence[Any], names: Sequence[str]) -> None:
    """Name the series above the plot, in as many columns as fit; a single one needs no name."""
    if len(names) > 1:
        shown = _legend_names(names)
        style = {"ncols": _legend_columns(shown), "handlelength": 1.8, "columnspacing": 1.2, "borderaxespad": 0.2}
        figure.legend(handles, shown, loc="outside upper left", **style)


def legend_height(names: Sequence[str]) -> float:
    """The inches that `legend` takes."""
    if len(names) < 2:
        return 0.0
    shown = _legend_names(names)
    rows = math.ceil(len(shown) / _legend_columns(shown))
    lines = max(sum(map(lines_in, shown[start : start + rows])) for start in range(0, len(shown), rows))
    return 0.08 + 0.165 * lines


def wrapped(name: str, letters: int) -> str:
    """A name in lines of so many letters, broken behind its blanks, commas and brackets.

    Examples
    --------
    >>> wrapped("wetric[spread=7,order=id] on cuda", 20)
    'wetric[spread=7,\\norder=id] on cuda'
    """
    lines = [""]
    for piece in re.findall(rf"[^,\[\s]{{1,{letters}}}[,\[\s]*|[,\[\s]+", name):
        if lines[-1] and len(f"{lines[-1]}{piece}".rstrip()) > letters:
            lines.append("")
        lines[-1] += piece
    return "\n".join(line.rstrip() for line in lines)


def lines_in(name: str) -> int:
    """Of how many lines a wrapped name is."""
    return name.count("\n") + 1


def _legend_names(names: Sequence[str]) -> list[str]:
    return [wrapped(name, LEGEND_LETTERS - KEY_LETTERS) for name in names]


def _legend_columns(shown: Sequence[str]) -> int:
    longest = max((len(line) for name in shown for line in name.split("\n")), default=0)
    return max(1, min(len(shown), 4, LEGEND_LETTERS // (longest + KEY_LETTERS)))


@contextmanager
def _style() -> Iterator[None]:
    """Our own settings, whatever the user's are; letters that matplotlib's fonts lack are the browser's to draw."""
    matplotlib = library("matplotlib")
    with matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        warnings.filterwarnings("ignore", message="Glyph .* missing from font", category=UserWarning)
        yield


def _for_page(text: str) -> str:
    """A file's SVG without what only a file needs."""
    body = text[text.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>|<style\b.*?</style>|<!--.*?-->", "", body, flags=re.DOTALL)
    head, _, rest = body.partition(">")
    box = re.search(r'viewBox="[^"]*"', head)
    if box is None:
        raise ValueError("matplotlib wrote an SVG without a viewBox")
    rest = rest.replace("xlink:href", "href")
    rest = re.sub(r"font: ([\d.]+px)[^;\"]*", r"font-size: \1", rest)  # as older versions of matplotlib write it
    rest = re.sub(r" ?font-family: [^;\"]*;?", "", rest)
    rest = re.sub("|".join(PAGE_COLOURS), lambda found: PAGE_COLOURS[found[0]], rest)
    rest = NUMBER.sub(lambda found: f"{float(found[0]):.2f}".rstrip("0").rstrip("."), rest)
    used = set(re.findall(r"#([\w-]+)", rest))
    rest = re.sub(r' id="([\w-]+)"', lambda found: found[0] if found[1] in used else "", rest)
    rest = re.sub(r"\s*\n\s*", "\n", rest)
    return f'<svg {box[0]} stroke-linejoin="round" stroke-linecap="butt">{rest.strip()}'
