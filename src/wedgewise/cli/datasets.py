"""``wedgewise datasets``: the graphs of the papers, listed, described, brought and checked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

import wedgewise
from wedgewise.cli.console import FAILED, Console
from wedgewise.cli.help import App
from wedgewise.cli.options import AsJson, Verbose
from wedgewise.report.objects import Object
from wedgewise.report.text import bytes_text, facts_text, table_text

if TYPE_CHECKING:
    from wedgewise.datasets import Figure, PublishedGraph
    from wedgewise.datasets.check import Verification

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of a graph, as `wedgewise datasets list` or a paper writes it.")
]
PAPERS = "itc, wetric, trust, bbtc, eager, snap or graphchallenge"

app = App(
    help="Published graphs by name.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command("list")
def list_(
    paper: Annotated[str | None, typer.Option(metavar="NAME", help=f"Only graphs of {PAPERS}.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the graphs of the papers.

    Prints the published vertices, edges, triangles and the largest k with a k-truss; ~ marks rounded figures. The last
    columns say which papers used a graph, and where it is: packaged, generated, here, unchecked, begun, or at an
    address that was not tried yet.
    """
    key = None if paper is None else wedgewise.datasets.source_of(paper).key
    chosen = [graph for graph in wedgewise.datasets.catalogue().values() if key is None or key in graph.figures]
    records = list(map(_object, chosen))
    Console(as_json).show({"datasets": records}, lambda: _list_text(chosen, records))


@app.command()
def info(name: Name, as_json: AsJson = False) -> None:
    """Describe a published graph: figures, papers, address, file.

    Papers clean graphs in different ways. Below the figures, each paper's rule is stated.
    """
    graph = wedgewise.datasets.find(name)
    record = _object(graph)
    Console(as_json).show(record, lambda: _info_text(graph, record))


@app.command()
def get(
    name: Name,
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="FOLDER|URL",
            help="Folder, file, address, or mirror (ends in a slash) to take it from.",
        ),
    ] = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Fetch a graph into the cache, check it, and print its path.

    The same command continues a download that was interrupted. A file with the wrong graph is set aside. A graph that
    is already there is not fetched again.
    """
    console = Console(as_json, verbose=verbose)
    with console.stages() as progress:
        path = wedgewise.datasets.get(name, source=source, progress=progress)
    record = {**_object(wedgewise.datasets.find(name)), "path": str(path)}
    console.show(record, lambda: str(path))


@app.command()
def verify(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME…]", help="Names of graphs. Default: all in the cache."),
    ] = None,
    trusses: Annotated[bool, typer.Option("--trusses", help="Also check the largest k with a k-truss.")] = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Count graphs again and compare them with the published figures.

    The exit code is 1 if edges, triangles or, with --trusses, kmax differ. Papers count vertices in different ways, so
    a difference there is only shown.
    """
    from wedgewise.datasets.cache import folder_of

    console = Console(as_json, verbose=verbose)
    with console.stages() as progress:
        chosen = names or [name for name in wedgewise.datasets.catalogue() if folder_of(name).own_file() is not None]
        found = [wedgewise.datasets.verify(name, trusses=trusses, progress=progress) for name in chosen]
    records = [_verification_object(verification) for verification in found]
    text = "\n\n".join(map(_verification_text, found)) or "no graph is in the cache folder"
    console.show({"verified": records}, lambda: text)
    if not all(verification.agrees for verification in found):
        raise typer.Exit(FAILED)


def _object(graph: PublishedGraph) -> Object:
    """Everything about a graph as plain values; of its file without what the system says of that."""
    from wedgewise.datasets.cache import folder_of

    folder = folder_of(graph.name)
    record = folder.record()
    if record is not None and folder.file() is not None:
        state = "here" if record.is_verified else "unchecked"
    elif graph.name in wedgewise.datasets.BUNDLED:
        state = "packaged"
    elif graph.recipe is not None:
        state = "generated"
    elif folder.begun():
        state = "begun"
    else:
        state = "unverified address" if graph.addresses else "no address"
    served = record.origin if record is not None and record.is_verified else None
    return {
        "name": graph.name,
        "names": list(graph.names),
        "figures": {
            key: {name: {"value": figure.value, "step": figure.step} for name, figure in figures.published()}
            for key, figures in graph.figures.items()
        },
        "addresses": list(graph.addresses),
        "addresses_verified": [address for address in graph.addresses if address == served],
        "generator": None if graph.recipe is None else asdict(graph.recipe),
        "counted": graph.counted,
        "note": graph.note,
        "place": state,
        "record": None if record is None else {k: value for k, value in asdict(record).items() if k != "signs"},
    }


def _list_text(graphs: Iterable[PublishedGraph], records: Iterable[Object]) -> str:
    head = ("name", "vertices", "edges", "triangles", "kmax", "published by", "where")
    rows = [
        (
            graph.name,
            *(_figure_text(graph.best(figure)) for figure in ("n", "m", "triangles", "kmax")),
            " ".join(graph.figures),
            record["place"],
        )
        for graph, record in zip(graphs, records, strict=True)
    ]
    return table_text([head, *rows])


def _figure_text(figure: Figure | None) -> str:
    if figure is None:
        return "–"
    return f"{figure.value:,}" if figure.is_exact else f"~{figure.value:,}"


def _info_text(graph: PublishedGraph, about: Object) -> str:
    """The same for people; at the end, what each source counts and what to cite."""
    from wedgewise.datasets.cache import folder_of
    from wedgewise.datasets.catalogue import VERTICES

    folder = folder_of(graph.name)
    record, path = folder.record(), folder.file()
    facts = [("where", about["place"])]
    for address in graph.addresses:
        facts.append(("address", f"{address} ({'' if address in about['addresses_verified'] else 'un'}verified)"))
    if graph.recipe is not None:
        given = ", ".join(f"{name}={value}" for name, value in graph.recipe.parameters.items())
        facts.append(("generated by", f"{graph.recipe.family}({given})"))
    facts.append(("figures", "counted by us too, they agree" if graph.counted else "as published, not counted by us"))
    if graph.note:
        facts.append(("note", graph.note))
    if record is not None and path is not None:
        facts += [
            ("file", f"{path} ({bytes_text(record.bytes)})"),
            ("from", record.origin),
            ("sha256", f"{record.sha256} ({'verified' if record.is_verified else 'not verified'})"),
        ]
    head = ("  published by", "as", "vertices", "edges", "triangles", "kmax")
    rows = [
        (
            f"  {key}",
            figures.spelled,
            *(_figure_text(getattr(figures, name)) for name in ("n", "m", "triangles", "kmax")),
        )
        for key, figures in graph.figures.items()
    ]
    conventions = facts_text(
        (key, f"{figures.source.title}, {figures.source.where}; vertices: {VERTICES[figures.source.vertices]}")
        for key, figures in graph.figures.items()
    )
    return f"{graph.name}\n{facts_text(facts)}\n\n{table_text([head, *rows])}\n\n{conventions}"


def _verification_object(verification: Verification) -> Object:
    return {
        "name": verification.name,
        "agrees": verification.agrees,
        "counted": dict(verification.counted),
        "findings": [
            {
                "source": finding.source,
                "figure": finding.figure,
                "published": finding.published.value,
                "step": finding.published.step,
                "found": finding.found,
                "agrees": finding.agrees,
            }
            for finding in verification.findings
        ],
    }


def _verification_text(verification: Verification) -> str:
    verdict = "is the published graph" if verification.agrees else f"DIFFERS: {verification.differences}"
    rows = [
        (
            f"  {finding.source}",
            finding.figure,
            _figure_text(finding.published),
            f"{finding.found:,}",
            "agrees" if finding.agrees else "differs",
        )
        for finding in verification.findings
    ]
    return f"{verification.name} {verdict}\n{table_text([('  published by', '', 'published', 'found', ''), *rows])}"
