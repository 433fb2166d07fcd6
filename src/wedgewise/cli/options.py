"""The options that several commands share, and what their text stands for."""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass
from typing import Annotated

import typer

from wedgewise.read.limits import DEFAULT_LIMITS, Limits
from wedgewise.report.progress import Tell
from wedgewise.user_graph import Graph

SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?", re.IGNORECASE | re.ASCII)
POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
WORTH_A_BAR_BYTES = 16 * 10**6


def parse_size(text: str) -> int:
    """The bytes that ``1GB``, ``512MiB`` or ``1000000`` stand for."""
    match = SIZE.fullmatch(text.strip())
    if match is None:
        raise typer.BadParameter(f"{text!r} is no size; write for instance 1GB, 512MiB or a number of bytes")
    number, power, binary = match.groups()
    whole, _, decimals = number.partition(".")
    unit: int = (1024 if binary else 1000) ** POWERS[power.lower()]
    size: int = int(whole + decimals) * unit // 10 ** len(decimals)
    return size


def parse_settings(texts: list[str], option: str) -> dict[str, str]:
    """The names and values of repeated ``name=value`` options."""
    settings = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise typer.BadParameter(f"{text!r} is not of the form name=value", param_hint=option)
        settings[name] = value
    return settings


File = Annotated[
    str, typer.Argument(metavar="FILE", help="The graph file; - reads standard input.", show_default=False)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print the bare answer, no progress.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Say on standard error what is being done.")]
Threads = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Threads to use; all that this process may use by default.")
]
Labels = Annotated[str, typer.Option(metavar="int|text", help="What the labels of a text file are.")]
Format = Annotated[
    str | None, typer.Option(metavar="NAME", help="The file's format, when its content should not decide.")
]
DropLeaves = Annotated[bool, typer.Option("--drop-leaves", help="Drop vertices of degree one, in one pass.")]
LimitList = Annotated[
    list[str],
    typer.Option("--limit", metavar="NAME=VALUE", help="Raise or lower a cap on the input; repeatable."),
]
Device = Annotated[str, typer.Option(metavar="auto|cpu", help="Where to count.")]
AlgorithmName = Annotated[str, typer.Option("--algorithm", metavar="NAME", help="One of `wedgewise algorithms`.")]
Order = Annotated[
    str, typer.Option(metavar="NAME", help="Direction of arcs: degree, core or id, as the algorithm allows.")
]
Relabel = Annotated[
    str,
    typer.Option(metavar="NAME", help="Ids by rank, indegree, collective or classes, as the algorithm allows."),
]
Memory = Annotated[
    str | None,
    typer.Option(metavar="SIZE", help="Most memory that counting may take, such as 1GB or 512MiB."),
]
KnobList = Annotated[
    list[str], typer.Option("--knob", metavar="NAME=VALUE", help="A parameter of the algorithm; repeatable.")
]


@dataclass(frozen=True, slots=True)
class Reading:
    """A graph file and how to read it."""

    file: str
    labels: str
    format: str | None
    drop_leaves: bool
    limits: list[str]
    threads: int | None

    def caps(self) -> Limits:
        """The limits with the given ones replaced."""
        given = {name: parse_size(text) for name, text in parse_settings(self.limits, "--limit").items()}
        return DEFAULT_LIMITS.with_values(given)

    def announce(self, tell: Tell | None) -> None:
        """Show a bar of unknown length where reading may take long."""
        if tell is not None and self._is_worth_a_bar():
            tell("read and clean", 0, 0)

    def graph(self, tell: Tell | None) -> tuple[Graph, float]:
        """The graph, and the seconds that reading and cleaning took."""
        limits = self.caps()
        self.announce(tell)
        begin = time.perf_counter()
        graph = Graph(
            self.file,
            labels=self.labels,
            format=self.format,
            limits=limits,
            drop_leaves=self.drop_leaves,
            threads=self.threads,
        )
        return graph, time.perf_counter() - begin

    def _is_worth_a_bar(self) -> bool:
        """Whether reading may take long: standard input, or a large file."""
        return self.file == "-" or (os.path.isfile(self.file) and os.path.getsize(self.file) >= WORTH_A_BAR_BYTES)
