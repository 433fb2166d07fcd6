"""``wedgewise report --graph``: the page of a user's own graph."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wedgewise.answer.source import graph_of
from wedgewise.cli.options import Device, DropLeaves, Memory, ReadingOptions, Verify, announce
from wedgewise.errors import StorageError
from wedgewise.machine.progress import Progress
from wedgewise.run.request import Request

if TYPE_CHECKING:
    from wedgewise.report.graph_facts import GraphFacts

OwnFile = Annotated[
    str,
    typer.Option(
        "--graph",
        metavar="FILE",
        help="Instead of RESULTS: a graph of your own, to be described on the page. `-` reads standard input.",
        show_default=False,
    ),
]


@dataclass(frozen=True, slots=True)
class OwnGraph(ReadingOptions):
    """A graph to describe, and how: the options of ``report`` that belong to ``--graph``."""

    file: OwnFile = ""
    device: Device = "auto"
    drop_leaves: DropLeaves = False
    memory: Memory = None
    verify: Verify = False

    def facts(self, progress: Progress | None) -> GraphFacts:
        """Read the graph, and find what its page shows."""
        from wedgewise.report.graph_facts import graph_facts

        source = self.graph_file(drop_leaves=self.drop_leaves)
        announce(self.file, progress)
        begin = time.perf_counter()
        graph = graph_of(source, Request(source=source, device=self.device, memory_limit=self.memory))
        return graph_facts(
            graph,
            reading_seconds=time.perf_counter() - begin,
            device=self.device,
            memory_limit=self.memory,
            threads=self.threads,
            progress=progress,
            verify=self.verify,
        )


def report_graph(own: OwnGraph, output: Path | None) -> None:
    """Describe a graph: the page into `output`, its facts as an object with ``--json``."""
    console = own.console()
    if output is None and not console.as_json:
        raise typer.BadParameter("name the page to write, --output G.html, or ask for its facts by --json")
    if output is not None:
        _check_can_be_made(output)
    with console.stages() as progress:
        facts = own.facts(progress)
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
