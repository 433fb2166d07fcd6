"""The options that several commands share, and what their text stands for."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, field, fields
from enum import Enum
from functools import wraps
from typing import Annotated, Any, Concatenate, ParamSpec, TypeVar, get_type_hints

import typer

from wedgewise.answer.questions import request_for
from wedgewise.answer.source import GraphFile
from wedgewise.cli.console import Console
from wedgewise.cli.help import ALGORITHM, CLUSTER, DISK, READING
from wedgewise.machine.progress import Progress
from wedgewise.read.columns import ColumnChoice
from wedgewise.run.request import Request
from wedgewise.stages.limits import DEFAULT_LIMITS

Own = ParamSpec("Own")
Shared = TypeVar("Shared")

SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?", re.IGNORECASE | re.ASCII)
POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
WORTH_A_BAR_BYTES = 16 * 10**6


def parse_size(text: str) -> int:
    """The bytes that ``1GB``, ``512MiB`` or ``1000000`` stand for."""
    match = SIZE.fullmatch(text.strip())
    if match is None:
        raise typer.BadParameter(f"{text!r} is not a size; write for instance 1GB, 512MiB or a number of bytes")
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


class HasHeader(Enum):
    """Whether a text file has a header."""

    yes = "yes"
    no = "no"
    auto = "auto"


AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Report each stage on standard error.")]
Threads = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Number of threads. Default: all that this process may use.")
]
Weight = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Weight column, by name or by position from 0.", rich_help_panel=READING),
]
DropLeaves = Annotated[
    bool, typer.Option("--drop-leaves", help="Drop vertices of degree one, once.", rich_help_panel=READING)
]
Device = Annotated[str, typer.Option(metavar="auto|cpu|cuda|hybrid", help="Where to compute.")]
Memory = Annotated[
    int | None,
    typer.Option(metavar="SIZE", parser=parse_size, help="Memory limit, such as 1GB or 512MiB."),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="For a store: use a Dask cluster, given by its scheduler's address or file.",
        rich_help_panel=CLUSTER,
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="For a store: use N processes on this machine.", rich_help_panel=CLUSTER),
]
FutureWorkers = Annotated[
    int | None,
    typer.Option(
        min=1, metavar="N", help="Number of processes on this machine that will count; they share its memory."
    ),
]
Restart = Annotated[
    bool, typer.Option("--restart", help="Delete saved progress and start again.", rich_help_panel=DISK)
]
Work = Annotated[
    str | None,
    typer.Option(
        "--work",
        metavar="FOLDER",
        help="Folder for temporary blocks and saved progress.",
        rich_help_panel=DISK,
    ),
]
MemoryPerWorker = Annotated[
    int | None,
    typer.Option(metavar="SIZE", parser=parse_size, help="Memory of each worker that will count, such as 16GB."),
]
Shares = Annotated[
    int | None,
    typer.Option(
        metavar="M",
        min=1,
        help="Split each task into M tasks, as TRUST does. Default: enough for all workers.",
        rich_help_panel=CLUSTER,
    ),
]
Balance = Annotated[
    bool,
    typer.Option(
        "--balance",
        help="For a store: report how even the tasks are, and how long more workers would take.",
        rich_help_panel=CLUSTER,
    ),
]
Timeline = Annotated[
    str | None,
    typer.Option(
        metavar="OUT",
        help="With --device hybrid: write what ran where and when, as .json or .svg.",
        rich_help_panel=CLUSTER,
    ),
]
Verify = Annotated[bool, typer.Option("--verify", help="Check the answer by another method.")]


UNDEFINED_HELP = "Value for vertices with fewer than two neighbours."


class UndefinedAs(Enum):
    """The value for vertices with fewer than two neighbours."""

    zero = "zero"
    nan = "nan"


Undefined = Annotated[UndefinedAs, typer.Option(metavar="zero|nan", help=UNDEFINED_HELP)]
Output = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="OUT",
        help="File to write: .csv, .tsv, .parquet, .arrow, .npy or .npz; add .gz, .bz2, .xz or .zst to compress.",
    ),
]


def announce(file: str | os.PathLike[str], progress: Progress | None) -> None:
    """Show a bar of unknown length where reading may take long: standard input, or a large file."""
    if progress is None:
        return
    if file == "-" or (os.path.isfile(file) and os.path.getsize(file) >= WORTH_A_BAR_BYTES):
        progress("read and clean", 0, 0)


@dataclass(frozen=True, slots=True)
class ReadingOptions:
    """The options of every command that reads a graph file."""

    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="A graph file, a name from `wedgewise datasets list`, or - for standard input.",
            show_default=False,
        ),
    ]
    labels: Annotated[
        str, typer.Option(metavar="int|text", help="Kind of labels in a text file.", rich_help_panel=READING)
    ] = "auto"
    format: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Format of FILE. Default: found by its content.", rich_help_panel=READING),
    ] = None
    source: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Source column, by name or by position from 0.", rich_help_panel=READING),
    ] = None
    target: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Target column, by name or by position from 0.", rich_help_panel=READING),
    ] = None
    header: Annotated[
        HasHeader,
        typer.Option(metavar="yes|no|auto", help="Whether the first line names the columns.", rich_help_panel=READING),
    ] = HasHeader.auto
    limit: Annotated[
        list[str],
        typer.Option(metavar="NAME=VALUE", help="Change a limit on the input; repeatable.", rich_help_panel=READING),
    ] = field(default_factory=list)
    threads: Threads = None
    as_json: AsJson = False
    verbose: Verbose = False

    def console(self) -> Console:
        """How the command talks."""
        return Console(self.as_json, verbose=self.verbose)

    @contextmanager
    def stages(self) -> Iterator[Progress | None]:
        """What the command reports its progress to; reading the file comes first."""
        with self.console().stages() as progress:
            announce(self.file, progress)
            yield progress

    def path(self) -> str:
        """The path that FILE names: FILE itself, or that of a published graph which is here or can be generated."""
        if self.file == "-" or os.path.lexists(self.file) or os.path.basename(self.file) != self.file:
            return self.file
        from wedgewise.datasets.named import named_path

        return named_path(self.file) or self.file

    def typed(self, path: str) -> str:
        """What the user typed for a path, where that was the name of a graph."""
        return self.file if path == self.path() != self.file else path

    def graph_file(self, weight: str | None = None, **more: Any) -> GraphFile:
        """The file and how a graph is made of it; `more` are further fields of `GraphFile`."""
        header = {"yes": True, "no": False}.get(self.header.value, "auto")
        columns = ColumnChoice(self.source, self.target, weight, header)
        limits = DEFAULT_LIMITS.with_values(
            {name: parse_size(text) for name, text in parse_settings(self.limit, "--limit").items()}
        )
        return GraphFile(self.path(), self.labels, self.format, limits, threads=self.threads, columns=columns, **more)


@dataclass(frozen=True, slots=True)
class PlanningOptions(ReadingOptions):
    """The options of every command that plans work on a graph."""

    algorithm: Annotated[
        str, typer.Option(metavar="NAME", help="A name from `wedgewise algorithms`.", rich_help_panel=ALGORITHM)
    ] = "auto"
    device: Device = "auto"
    order: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Order that directs the edges: degree, core or id.", rich_help_panel=ALGORITHM
        ),
    ] = "auto"
    relabel: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Numbering of the vertices: rank, indegree, collective or classes.",
            rich_help_panel=ALGORITHM,
        ),
    ] = "auto"
    weight: Weight = None
    drop_leaves: DropLeaves = False
    memory: Memory = None
    knob: Annotated[
        list[str],
        typer.Option(
            metavar="NAME=VALUE", help="Set a parameter of the algorithm; repeatable.", rich_help_panel=ALGORITHM
        ),
    ] = field(default_factory=list)

    def request(self, question: str, details: Mapping[str, Any], read: Mapping[str, Any] = {}, **more: Any) -> Request:
        """What these options ask; `read` are further fields of `GraphFile`, `more` of `Request`."""
        return request_for(
            question,
            self.graph_file(self.weight, drop_leaves=self.drop_leaves, **read),
            details,
            algorithm=self.algorithm,
            device=self.device,
            order=self.order,
            relabel=self.relabel,
            memory_limit=self.memory,
            threads=self.threads,
            knobs=parse_settings(self.knob, "--knob"),
            **more,
        )


@dataclass(frozen=True, slots=True)
class QuestionOptions(PlanningOptions):
    """The options of every command that answers a question."""

    verify: Verify = False
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only the answer, without progress.")] = False

    def console(self) -> Console:
        """How the command talks."""
        return Console(self.as_json, self.quiet, self.verbose)


def takes(shared: type[Shared]) -> Callable[[Callable[Concatenate[Shared, Own], None]], Callable[..., None]]:
    """Make the fields of a dataclass options of a command, which receives them as its first argument.

    The first field comes first, then the options of the command, then the other fields, those of reading last.
    """
    hints = get_type_hints(shared, include_extras=True)
    of_reading = {item.name for item in fields(ReadingOptions)[1:]}
    given = [
        inspect.Parameter(
            item.name, inspect.Parameter.KEYWORD_ONLY, annotation=hints[item.name], default=_default(item)
        )
        for item in sorted(fields(shared), key=lambda item: item.name in of_reading)  # type: ignore[arg-type]
    ]

    def decorate(command: Callable[Concatenate[Shared, Own], None]) -> Callable[..., None]:
        @wraps(command)
        def call(**options: Any) -> None:
            command(shared(**{item.name: options.pop(item.name) for item in given}), **options)  # type: ignore[call-arg]

        own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]
        parameters = [given[0], *(item.replace(kind=inspect.Parameter.KEYWORD_ONLY) for item in own), *given[1:]]
        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        call.__annotations__ = {item.name: item.annotation for item in parameters}
        return call

    return decorate


def _default(item: Any) -> Any:
    """The default of a field as `inspect` spells it."""
    if item.default_factory is not MISSING:
        return item.default_factory()
    return inspect.Parameter.empty if item.default is MISSING else item.default
