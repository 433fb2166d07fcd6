"""The catalogue: the graphs of the papers by name, with what each source publishes about them.

`catalogue.toml` holds the facts. Sources count differently: one drops vertices of degree one first, one counts every id
as a vertex, some round. A `Source` says how, so that a file can be held against each of them.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from wedgewise.errors import UnknownNameError

if TYPE_CHECKING:
    from wedgewise.generate import EdgeStream

POWERS = {"k": 3, "K": 3, "M": 6, "B": 9, "": 0}
ROUNDED = re.compile(r"(\d+(?:\.\d+)?(?:e\d+)?)([kKMB]?)")
VERTICES = {
    "joined": "those with an edge",
    "numbered": "all ids, those without an edge too",
    "left": "those left when vertices of degree one are dropped, in one pass",
}
FIGURES = ("n", "m", "triangles", "kmax")


@dataclass(frozen=True, slots=True)
class Figure:
    """A published number; one that was rounded stands for all numbers that round to it.

    Attributes
    ----------
    value : the number
    step : 1 for an exact number, else the unit of its last digit
    rounded : "nearest" or "down"

    Examples
    --------
    >>> from wedgewise.datasets.catalogue import Figure
    >>> Figure(16_000, step=1000, rounded="down").agrees(16_538)
    True
    >>> Figure(45).agrees(46)
    False
    """

    value: int
    step: int = 1
    rounded: str = "nearest"

    @property
    def is_exact(self) -> bool:
        """Whether every digit is published."""
        return self.step == 1

    def agrees(self, found: int) -> bool:
        """Whether a number that was found can be the one that was published."""
        if self.rounded == "down":
            return self.value <= found < self.value + self.step
        return 2 * abs(found - self.value) <= self.step

    def __str__(self) -> str:
        return f"{self.value:,}" if self.is_exact else f"about {self.value:,}"


@dataclass(frozen=True, slots=True)
class Source:
    """A paper or a table that publishes figures, and how it counts.

    Attributes
    ----------
    key : its short name, such as ``"trust"``
    title, where : what to cite
    vertices : which vertices it counts, a key of `VERTICES`
    leaves_dropped : whether vertices of degree one are dropped before edges are counted, in one pass
    rounded : how it rounds
    """

    key: str
    title: str
    where: str
    vertices: str
    leaves_dropped: bool = False
    rounded: str = "nearest"


@dataclass(frozen=True, slots=True)
class Figures:
    """What one source publishes about a graph, and how it spells the graph's name; None is not published."""

    source: Source
    spelled: str
    n: Figure | None
    m: Figure | None
    triangles: Figure | None
    kmax: Figure | None

    def published(self) -> Iterator[tuple[str, Figure]]:
        """The figures that there are, by name."""
        return ((name, figure) for name in FIGURES if (figure := getattr(self, name)) is not None)


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a graph is generated exactly: a family of `wedgewise.generate` and its parameters."""

    family: str
    parameters: Mapping[str, Any]

    def stream(self) -> EdgeStream:
        """The graph, computed block by block."""
        from wedgewise.generate import generate

        return generate(self.family, **self.parameters)


@dataclass(frozen=True, slots=True)
class PublishedGraph:
    """A graph of the catalogue.

    Attributes
    ----------
    name : what `wedgewise.datasets.load` takes
    figures : what is published about it, by the short name of the source
    addresses : where it is published, the one to try first first; none was reached when the catalogue was made
    recipe : how to generate it, where that is possible
    counted : whether we counted a copy of it ourselves; edges, triangles and kmax then agree with every source
    note : what else to know, or nothing
    """

    name: str
    figures: Mapping[str, Figures]
    addresses: tuple[str, ...]
    recipe: Recipe | None
    counted: bool
    note: str

    @property
    def names(self) -> tuple[str, ...]:
        """Its name, and how the sources spell it."""
        return tuple(dict.fromkeys([self.name, *(figures.spelled for figures in self.figures.values())]))

    def best(self, figure: str) -> Figure | None:
        """The figure that is published with most digits and for the whole graph, before leaves are dropped."""
        known = [
            (found.step, figures.source.leaves_dropped, found)
            for figures in self.figures.values()
            if (found := getattr(figures, figure)) is not None
        ]
        return min(known, key=lambda item: item[:2])[2] if known else None


def parse_figure(printed: int | str, rounded: str = "nearest") -> Figure:
    """A figure of the catalogue: an integer, or what the source printed, such as ``"2.8M"`` or ``"1.2e5"``."""
    if isinstance(printed, int):
        return Figure(printed)
    match = ROUNDED.fullmatch(printed)
    if match is None:
        raise ValueError(f"catalogue.toml: {printed!r} is not a figure; write 16K, 2.8M or 1.2e5")
    number = Decimal(match[1]).scaleb(POWERS[match[2]])
    return Figure(int(number), 10 ** max(0, int(number.as_tuple().exponent)), rounded)


@cache
def sources() -> Mapping[str, Source]:
    """The sources of figures by their short names."""
    return MappingProxyType({key: Source(key=key, **facts) for key, facts in _facts()["source"].items()})


@cache
def catalogue() -> Mapping[str, PublishedGraph]:
    """Every graph of the catalogue by its name.

    Examples
    --------
    >>> from wedgewise.datasets import catalogue
    >>> graph = catalogue()["soc-LiveJournal1"]
    >>> graph.figures["bbtc"].triangles.value
    285730264
    """
    return MappingProxyType({name: _published_graph(name, facts) for name, facts in _facts()["graph"].items()})


def find(name: str) -> PublishedGraph:
    """The graph of a name as we or a paper write it, whatever the case of its letters.

    Raises
    ------
    UnknownNameError
        when the catalogue has no such graph; the message names similar ones
    """
    known = _by_spelling()
    found = known.get(name.lower())
    if found is None:
        similar = dict.fromkeys(known[match] for match in get_close_matches(name.lower(), known, n=5))
        listed = f"similar ones are: {', '.join(similar)}; " if similar else ""
        raise UnknownNameError(f"no dataset named {name!r}; {listed}`wedgewise datasets list` has them all")
    return catalogue()[found]


def source_of(key: str) -> Source:
    """The source of a short name.

    Raises
    ------
    UnknownNameError
        when there is no such source
    """
    if key not in sources():
        raise UnknownNameError(f"no paper named {key!r}; there are: {', '.join(sources())}")
    return sources()[key]


@cache
def _facts() -> dict[str, Any]:
    return tomllib.loads((files("wedgewise") / "datasets" / "catalogue.toml").read_text(encoding="utf-8"))


@cache
def _by_spelling() -> dict[str, str]:
    """The name of every graph by each of its spellings in lower case; its own name goes before those of the sources."""
    spelled = {name.lower(): graph.name for graph in catalogue().values() for name in graph.names}
    return spelled | {name.lower(): name for name in catalogue()}


def _published_graph(name: str, facts: Mapping[str, Any]) -> PublishedGraph:
    recipe = dict(facts.get("generator", {}))
    if "leaves" in recipe:
        recipe["leaves"] = tuple(recipe["leaves"])
    return PublishedGraph(
        name=name,
        figures=MappingProxyType({key: _figures(name, key, facts[key]) for key in sources() if key in facts}),
        addresses=tuple(facts.get("addresses", ())),
        recipe=Recipe(recipe.pop("family"), recipe) if recipe else None,
        counted=facts.get("counted", False),
        note=facts.get("note", ""),
    )


def _figures(name: str, key: str, facts: Mapping[str, Any]) -> Figures:
    source = sources()[key]
    numbers = {figure: parse_figure(facts[figure], source.rounded) if figure in facts else None for figure in FIGURES}
    return Figures(source, facts.get("as", name), **numbers)
