"""``wedgewise report --graph``: the page of a user's own graph."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wedgewise.answer.source import GraphFile
from wedgewise.cli.console import Console
from wedgewise.cli.options import (
    Device,
    DropLeaves,
    Format,
    HasHeader,
    Header,
    Labels,
    LimitList,
    Memory,
    Source,
    Target,
    Threads,
    Verify,
    caps_of,
    columns_of,
    parse_size,
    read_graph,
)
from wedgewise.errors import StorageError
from wedgewise.machine.progress import Tell
from wedgewise.run.plan import choose_place_to_clean
from wedgewise.run.request import Request

if TYPE_CHECKING:
    from wedgewise.report.graph_facts import GraphFacts

OwnFile = Annotated[
    str | None,
    typer.Option(
        "--graph",
        metavar="FILE",
        help="Instead of RESULTS: a graph of your own, to be described on the page. `-` reads standard input.",
    ),
]


@dataclass(frozen=True, slots=True)
class OwnGraph:
    """A graph to describe, and how: the options of ``report`` that belong to ``--graph``."""

    graph: OwnFile = None
    device: Device = "auto"
    threads: Threads = None
    labels: Labels = "auto"
    format: Format = None
    source: Source = None
    target: Target = None
    header: Header = HasHeader.auto
    drop_leaves: DropLeaves = False
    memory: Memory = None
    limit: LimitList = field(default_factory=list)
    verify: Verify = False

    def facts(self, tell: Tell | None) -> GraphFacts:
        """Read the graph, and find what its page shows."""
        from wedgewise.report.graph_facts import graph_facts

        assert self.graph is not None
        request = Request(device=self.device, memory_limit=None if self.memory is None else parse_size(self.memory))
        columns = columns_of(self.source, self.target, None, self.header)
        caps = caps_of(self.limit)
        source = GraphFile(self.graph, self.labels, self.format, caps, self.drop_leaves, self.threads, columns=columns)
        graph, seconds = read_graph(source, tell, choose_place_to_clean(request))
        return graph_facts(
            graph,
            reading_seconds=seconds + graph.device_seconds,
            device=self.device,
            memory_limit=request.memory_limit,
            threads=self.threads,
            progress=tell,
            verify=self.verify,
        )


def report_graph(own: OwnGraph, output: Path | None, console: Console) -> None:
    """Describe a graph: the page into `output`, its facts as an object with ``--json``."""
    if output is None and not console.as_json:
        raise typer.BadParameter("name the page to write, --output G.html, or ask for its facts by --json")
    if output is not None:
        _check_can_be_made(output)
    with console.stages() as tell:
        facts = own.facts(tell)
    console.note(facts.notes)
    written = [] if output is None else [_write_page(facts, output)]
    console.show({**facts.to_dict(), "files": written}, lambda: "\n".join(written))


def _check_can_be_made(output: Path) -> None:
    """Refuse a page that could not be drawn or written, before the graph is read."""
    from wedgewise.machine.libraries import library

    library("matplotlib")
    if not output.absolute().parent.is_dir():
        raise StorageError(f"{output}: its folder is not there; make it first")


def _write_page(facts: GraphFacts, output: Path) -> str:
    from wedgewise.machine.files import atomic_write
    from wedgewise.report.graph_page import page_of

    page = page_of(facts)
    with atomic_write(output) as file:
        file.write(page.encode())
    return str(output)
