"""``wedgewise report``: a page, charts and tables of what the benchmark measured, or the page of a graph."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wedgewise.api import SCHEMA
from wedgewise.cli.graph_report import OwnGraph, report_graph
from wedgewise.cli.options import takes
from wedgewise.report.objects import Object

if TYPE_CHECKING:
    from wedgewise_bench.report.page import Report


@takes(OwnGraph)
def report(
    own: OwnGraph,
    results: Annotated[
        list[Path], typer.Argument(metavar="RESULTS…", help="What `bench --output` wrote.", show_default=False)
    ] = [],  # noqa: B006
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="The page: R.html, with everything in it.")
    ] = None,
    markdown: Annotated[Path | None, typer.Option(metavar="FILE", help="The tables as Markdown: R.md.")] = None,
    svg: Annotated[Path | None, typer.Option(metavar="FOLDER", help="A folder for every chart as SVG.")] = None,
    png: Annotated[Path | None, typer.Option(metavar="FOLDER", help="A folder for every chart as PNG.")] = None,
    base: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Whose time speed-ups are over; the fastest peer or first way by default."),
    ] = None,
    ladder: Annotated[
        list[str],
        typer.Option(metavar="WAY…", help="Steps to compare in this order, such as trust[combination=warp] trust."),
    ] = [],  # noqa: B006
    paper: Annotated[
        list[str], typer.Option(metavar="KEY…", help="Papers to show beside; those whose suite ran by default.")
    ] = [],  # noqa: B006
) -> None:
    """Draw what the benchmark measured: a page, charts, tables.

    The page is one file that needs no network; it follows the reader's choice of light or dark, and its tables sort.
    RESULTS may be several files, also of several machines; of several records of a cell the last one counts.

    With --graph the page is that of a graph: its summary, degrees, triangles, clustering and trusses, the vertices that
    stand out, what was cleaned and what it cost. --json prints the same facts as one object, with a page or without.
    """
    if own.file:
        if results or markdown or svg or png or base or ladder or paper:
            raise typer.BadParameter("--graph makes one page of one graph: leave RESULTS and what belongs to them out")
        report_graph(own, output)
        return
    if own != OwnGraph(as_json=own.as_json, verbose=own.verbose):
        raise typer.BadParameter("how to read and count belongs to a graph: name one by --graph")
    if not results:
        raise typer.BadParameter("name RESULTS, which `bench --output` wrote, or a graph by --graph")
    from wedgewise_bench.report.page import bench_report, read_results

    if not (output or markdown or svg or png):
        raise typer.BadParameter("name what to write: --output R.html, --markdown R.md, --svg FOLDER or --png FOLDER")
    records = read_results(results)
    made = bench_report(records, base=base, ladder=ladder, papers=paper)
    written = write_report(made, output, markdown, svg, png)
    record: Object = {
        "schema": SCHEMA,
        "records": len(records),
        "sections": [part.title for part in made.parts],
        "files": [str(path) for path in written],
    }
    own.console().show(record, lambda: "\n".join(map(str, written)))


def write_report(
    made: Report, output: Path | None, markdown: Path | None, svg: Path | None, png: Path | None
) -> list[Path]:
    """The files that were asked for, in this order."""
    from wedgewise_bench.report.page import to_html, to_markdown, write_document, write_pictures

    written = []
    if output is not None:
        written.append(write_document(to_html(made), output))
    if markdown is not None:
        written.append(write_document(to_markdown(made), markdown))
    for folder, suffix in ((svg, "svg"), (png, "png")):
        if folder is not None:
            written += write_pictures(made, folder, suffix)
    return written
