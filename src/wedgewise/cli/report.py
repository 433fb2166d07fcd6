"""``wedgewise report``: a page, charts and tables of what the benchmark measured, or the page of a graph."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wedgewise.answer.source import graph_of
from wedgewise.cli.options import Device, DropLeaves, Memory, ReadingOptions, Verify, takes
from wedgewise.errors import StorageError
from wedgewise.machine.progress import Progress
from wedgewise.run.request import Request

if TYPE_CHECKING:
    from wedgewise.report.graph_facts import GraphFacts


@dataclass(frozen=True, slots=True)
class OwnGraph(ReadingOptions):
    """A graph to describe, and how: the options of ``report`` that belong to ``--graph``."""

    file: Annotated[
        str,
        typer.Option(
            "--graph",
            metavar="FILE",
            help="A graph to describe, instead of RESULTS; - reads standard input.",
            show_default=False,
        ),
    ] = ""
    device: Device = "auto"
    drop_leaves: DropLeaves = False
    memory: Memory = None
    verify: Verify = False

    def facts(self, progress: Progress | None) -> GraphFacts:
        """Read the graph, and find what its page shows."""
        from wedgewise.report.graph_facts import graph_facts

        source = self.graph_file(drop_leaves=self.drop_leaves)
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


@takes(OwnGraph)
def report(
    own: OwnGraph,
    results: Annotated[
        list[Path], typer.Argument(metavar="RESULTS…", help="Records that `bench --output` wrote.", show_default=False)
    ] = [],  # noqa: B006
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Page to write. Default: R.html for R.jsonl.")
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File for the tables as Markdown: R.md.")
    ] = None,
    svg: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Folder for all charts as SVG.")] = None,
    png: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Folder for all charts as PNG.")] = None,
    base: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="System that speed-ups are relative to. Default: the fastest other one."),
    ] = None,
    ladder: Annotated[
        list[str],
        typer.Option(metavar="WAY…", help="Steps to compare in this order: trust[combination=warp] trust."),
    ] = [],  # noqa: B006
    paper: Annotated[
        list[str], typer.Option(metavar="KEY…", help="Papers to compare with. Default: those whose suite ran.")
    ] = [],  # noqa: B006
) -> None:
    """Write benchmark results, or the facts of a graph, as a page.

    The page is one file that needs no network. RESULTS may be several files, also from several machines; if a cell was
    measured several times, the last record counts.

    With --graph, the page describes a graph: degrees, triangles, clustering, trusses, and the vertices that stand out.
    --json prints the same facts as one object.
    """
    if own.file:
        if results or markdown or svg or png or base or ladder or paper:
            raise typer.BadParameter("--graph describes one graph; leave out RESULTS and their options")
        report_graph(own, output)
        return
    if own != OwnGraph(as_json=own.as_json, verbose=own.verbose):
        raise typer.BadParameter("these options describe how to read a graph; name one with --graph")
    if not results:
        raise typer.BadParameter("name RESULTS, which `bench --output` wrote, or a graph with --graph")
    from wedgewise_bench.report import page

    if not (output or markdown or svg or png):
        output = results[0].with_suffix(".html")
    records = page.read_results(results)
    made = page.bench_report(records, base=base, ladder=ladder, papers=paper)
    written = []
    if output is not None:
        written.append(page.write_document(page.to_html(made), output))
    if markdown is not None:
        written.append(page.write_document(page.to_markdown(made), markdown))
    for folder, suffix in ((svg, "svg"), (png, "png")):
        if folder is not None:
            written += page.write_pictures(made, folder, suffix)
    record = {
        "records": len(records),
        "sections": [part.title for part in made.parts],
        "files": [str(path) for path in written],
    }
    own.console().show(record, lambda: "\n".join(map(str, written)))


def report_graph(own: OwnGraph, output: Path | None) -> None:
    """Describe a graph: the page into `output`, its facts as an object with ``--json``.

    A page that could not be drawn or written is refused before the graph is read.
    """
    from wedgewise.machine.libraries import library
    from wedgewise.report.graph_page import page_of
    from wedgewise.report.page import write_document

    console = own.console()
    if output is None and not console.as_json:
        raise typer.BadParameter("name the page to write, --output G.html, or ask for its facts by --json")
    if output is not None:
        library("matplotlib")
        if not output.absolute().parent.is_dir():
            raise StorageError(f"{output}: its folder is not there; make it first")
    with own.stages() as progress:
        facts = own.facts(progress)
        facts = replace(facts, source=own.typed(facts.source))
    console.note(facts.notes)
    written = [] if output is None else [str(write_document(page_of(facts), output))]
    console.show({**facts.to_dict(), "files": written}, lambda: "\n".join(written))
