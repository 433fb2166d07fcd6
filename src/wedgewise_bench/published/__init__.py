"""What the papers publish: every table and number of theirs, and how it is rerun here.

``KEY.toml`` in this folder holds the facts of one paper:

    key, title, authors, venue, year
    hardware      what the paper measured on
    statistic     how it states a time, in words
    average, runs the same as one of `statistic.AVERAGES`, and of how many runs, where the paper says so
    stage         what of a run its times cover, one of `words.STAGES`
    [others]      ways of the paper that are none of ours, each with what it is
    [stand_ins]   graphs of the paper, each with the graph of ours that is measured where the results lack the original
    [unlisted]    graphs of the paper that the catalogue of datasets lacks, each with the reason
    [[exhibit]]   a table, a figure or a passage of the paper
      id          as the paper names it: "table 3", "figure 11", "section 6.3"
      shows       what it compares
      rerun       yes, simulated or no
      how         the command that reruns it; of what is not rerun, nothing
      why         what is not rerun, or only simulated, and the reason
      claims      what the prose says of it, with its numbers
      [[exhibit.number]]   one published number: the fields of `Number`
      [[exhibit.table]]    many: `columns` are numbers without graph and value, `rows` their values by graph; without
                           rows, columns have values of their own; any further field holds for all columns;
                           `hardware_of` names that of single graphs
      [[exhibit.curve]]    what we measure of a plot: the fields of `Curve`

A text in place of a value is what the paper prints there instead of a number.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from wedgewise.errors import FormatError, UnknownNameError
from wedgewise_bench.statistic import AVERAGES, Statistic
from wedgewise_bench.words import STAGES

RERUNS = ("yes", "simulated", "no")
JOINS = ("geometric mean", "mean", "least", "most")
"""How a number that is of no single graph is made of those of all graphs."""

_UNITS = (
    ("", 1.0), ("×", 1.0), ("%", 1.0),
    ("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("min", 60.0),
    ("B", 1.0), ("KB", 1e3), ("MB", 1e6), ("GB", 1e9), ("KiB", 2.0**10), ("MiB", 2.0**20), ("GiB", 2.0**30),
    ("edges/s", 1.0), ("ME/s", 1e6), ("GTEPS", 1e9),
    ("K", 1e3), ("M", 1e6), ("G", 1e9),
)  # fmt: skip
UNITS = MappingProxyType(dict(_UNITS))
"""How many of our own units (seconds, bytes, edges per second, ones) each unit of a paper is."""


@dataclass(frozen=True, slots=True)
class Number:
    """One number of a paper, and which of our cells answers it.

    Attributes
    ----------
    value : as it is printed; None where the paper prints ``printed`` instead, such as "out of memory"
    plus_minus : how far it varies, where the paper says so
    metric : ``seconds``, ``edges_per_second``, ``ratio``, ``edges``, ``triangles``, ``peak_bytes``, or the name of a
        fact of `words.FACTS`, of the blocks, or of a profiler's counter; of what we do not measure, any other name
    unit : of the value, a key of `UNITS`
    graph : its name in the catalogue of datasets; none for a number of several graphs, which ``join`` makes of theirs
    way : one of our algorithms with its knobs, or one of the paper's ``others``; none for a number of the graph itself
    over : of a ratio, the way whose ``of`` is divided by that of ``way``: how many times as fast ``way`` is
    of : the metric that a ratio is taken of
    over_device : where ``over`` runs; by default where ``way`` does
    stage : what of the run is meant, where it is not what the paper means otherwise
    threads : how many, where only such a run of ours is to be set beside it; by default that with the most
    hardware : what it was measured on, where that is not the paper's own
    """

    metric: str
    value: float | None
    printed: str = ""
    plus_minus: float | None = None
    unit: str = ""
    graph: str = ""
    join: str = ""
    way: str = ""
    over: str = ""
    of: str = "seconds"
    over_device: str = ""
    system: str = "wedgewise"
    device: str = "cuda"
    question: str = "count"
    row: str = "count"
    stage: str = ""
    threads: int | None = None
    hardware: str = ""

    @property
    def plain(self) -> float | None:
        """The value in our own units: seconds, bytes, edges per second."""
        return None if self.value is None else self.value * UNITS[self.unit]


@dataclass(frozen=True, slots=True)
class Curve:
    """Our own counterpart of a plot: one metric of several ways, on every graph that was measured.

    Where there is an ``over``, its seconds divided by those of each way.
    """

    ways: tuple[str, ...]
    metric: str = "seconds"
    over: str = ""
    system: str = "wedgewise"
    device: str = "cuda"
    question: str = "count"
    row: str = "count"
    stage: str = ""


@dataclass(frozen=True, slots=True)
class Exhibit:
    """A table, a figure or a passage of a paper, and how it is rerun or why not."""

    id: str
    shows: str
    rerun: str
    how: str = ""
    why: str = ""
    claims: tuple[str, ...] = ()
    numbers: tuple[Number, ...] = ()
    curves: tuple[Curve, ...] = ()


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper with everything that it publishes of measurements.

    Attributes
    ----------
    hardware, statistic : what it measured on, and how it states a time, in words
    average, runs : the statistic as one of `statistic.AVERAGES`, and of how many runs; None where that is not said
    stage : what of a run its times cover
    others : ways that are none of ours, each with what it is
    stand_ins : graphs of ours that are measured in place of the paper's, by the name of the latter
    unlisted : graphs that the catalogue of datasets lacks, each with the reason
    """

    key: str
    title: str
    authors: str
    venue: str
    year: int
    hardware: str
    statistic: str
    average: str
    exhibits: tuple[Exhibit, ...]
    runs: int | None = None
    stage: str = "kernel"
    others: Mapping[str, str] = field(default_factory=dict)
    stand_ins: Mapping[str, str] = field(default_factory=dict)
    unlisted: Mapping[str, str] = field(default_factory=dict)

    @property
    def states(self) -> Statistic:
        """The statistic that its times are."""
        return Statistic(self.average, self.runs)

    def exhibit(self, name: str) -> Exhibit:
        """The exhibit of that id."""
        for exhibit in self.exhibits:
            if exhibit.id == name:
                return exhibit
        raise UnknownNameError(f"{self.key} has no {name!r}; it has: {', '.join(item.id for item in self.exhibits)}")


@cache
def keys() -> tuple[str, ...]:
    """The papers that there are, by their short names."""
    names = (entry.name for entry in files(__name__).iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml")))


@cache
def load(key: str) -> Paper:
    """The paper of a short name, such as ``"trust"``.

    Raises
    ------
    UnknownNameError : there is no such paper
    FormatError : its file lacks something, or has what no paper has

    Examples
    --------
    >>> from wedgewise_bench import papers
    >>> number = papers.load("wetric").exhibit("table 4").numbers[0]
    >>> number.way, number.over, number.value
    ('wetric', 'wetric[combination=mixed-vertex]', 5.63)
    """
    if key not in keys():
        raise UnknownNameError(f"no paper named {key!r}; there are: {', '.join(keys())}")
    name = f"{key}.toml"
    return parse(files(__name__).joinpath(name).read_text(encoding="utf-8"), name)


def parse(text: str, where: str) -> Paper:
    """The paper that a text in TOML describes; `where` it stands is named in errors.

    Raises
    ------
    FormatError : no TOML, a key too few or too many, a word that is none of those to choose from
    """
    try:
        facts = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"no TOML ({error})", path=where, remedy="mend the line that it names") from error
    exhibits = tuple(_exhibit(item, where) for item in facts.pop("exhibit", []))
    paper: Paper = _made(Paper, {**facts, "exhibits": exhibits}, where)
    _check("average", paper.average, AVERAGES, where)
    _check("stage", paper.stage, STAGES, where)
    repeated = [name for name, times in Counter(item.id for item in exhibits).items() if times > 1]
    if repeated:
        raise FormatError(f"several exhibits are called {', '.join(repeated)}", path=where, remedy="rename one")
    return paper


def _exhibit(facts: dict[str, Any], where: str) -> Exhibit:
    where = f"{where}, {facts.get('id', 'an exhibit without id')}"
    numbers = [_number(item, where) for item in facts.pop("number", [])]
    numbers += [number for item in facts.pop("table", []) for number in _numbers_of_table(item, where)]
    curves = [_made(Curve, {**item, "ways": tuple(item.get("ways", ()))}, where) for item in facts.pop("curve", [])]
    claims = tuple(facts.pop("claims", ()))
    found = {**facts, "claims": claims, "numbers": tuple(numbers), "curves": tuple(curves)}
    exhibit: Exhibit = _made(Exhibit, found, where)
    _check("rerun", exhibit.rerun, RERUNS, where)
    if bool(exhibit.how) == (exhibit.rerun == "no"):
        raise FormatError(f"rerun = {exhibit.rerun!r}, how = {exhibit.how!r}", path=where, remedy="say how, or no")
    if not exhibit.why and exhibit.rerun != "yes":
        raise FormatError("nothing says why it is not rerun as it was", path=where, remedy="add why")
    return exhibit


def _numbers_of_table(facts: dict[str, Any], where: str) -> Iterator[Number]:
    rows, columns, hardware = facts.pop("rows", {}), facts.pop("columns", []), facts.pop("hardware_of", {})
    if not rows:
        yield from (_number({**facts, **column}, where) for column in columns)
    for graph, values in rows.items():
        if len(values) != len(columns):
            reason = f"{graph} has {len(values)} values in {len(columns)} columns"
            raise FormatError(reason, path=where, remedy="add or remove some")
        for column, value in zip(columns, values, strict=True):
            found = {**facts, **column, "graph": graph, "value": value}
            yield _number(found if graph not in hardware else {**found, "hardware": hardware[graph]}, where)


def _number(facts: dict[str, Any], where: str) -> Number:
    value = facts.get("value")
    if isinstance(value, str):
        facts = {**facts, "value": None, "printed": value}
    number: Number = _made(Number, facts, where)
    where = f"{where}, {number.metric} of {number.way or 'no way'}"
    _check("unit", number.unit, UNITS, where)
    _check("join", number.join, JOINS if not number.graph else ("",), where)
    if (number.metric == "ratio") != bool(number.over):
        raise FormatError("a ratio, and nothing else, is over a way", path=where, remedy="add or remove over")
    return number


def _made(kind: type[Any], facts: Mapping[str, Any], where: str) -> Any:
    """An object of these fields; what is missing or unknown is named."""
    try:
        return kind(**facts)
    except TypeError as error:
        reason = str(error).partition("() ")[2]
        raise FormatError(reason, path=where, remedy=f"see {kind.__name__} in {__name__}") from error


def _check(name: str, word: str, known: Iterable[str], where: str) -> None:
    if word not in known:
        listed = ", ".join(map(repr, known))
        raise FormatError(f"{name} = {word!r}", path=where, remedy=f"choose one of {listed}")
