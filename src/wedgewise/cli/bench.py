"""``wedgewise bench SUITE``: a comparison run again, its records and its tables."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from wedgewise.cli.console import FAILED, Console, say
from wedgewise.cli.help import HelpfulCommand
from wedgewise.cli.options import AsJson, Verbose, parse_size

if TYPE_CHECKING:
    from wedgewise_bench.command import Choices
    from wedgewise_bench.pace import Standing
    from wedgewise_bench.record import Record
    from wedgewise_bench.suites import Suite

Value = TypeVar("Value")
DECLARED = (  # of a suite, as its object says
    "name",
    "summary",
    "graphs",
    "real",
    "questions",
    "rows",
    "systems",
    "devices",
    "algorithms",
    "limit_seconds",
)


class SeveralValues(HelpfulCommand):
    """A command whose repeatable options take several values at once as well: ``--threads 1 2 4``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        repeatable = {name for item in self.params if getattr(item, "multiple", False) for name in item.opts}
        return super().parse_args(ctx, repeat_options(args, repeatable))


def repeat_options(arguments: Iterable[str], options: set[str]) -> list[str]:
    """The same arguments, with these options repeated before each of their values."""
    repeated: list[str] = []
    option = ""
    for before, text in pairwise(["", *arguments]):
        if text.startswith("-"):
            option = text if text in options else ""
        elif option and before != option:
            repeated.append(option)
        repeated.append(text)
    return repeated


def bench(
    suite: Annotated[
        str | None,
        typer.Argument(metavar="SUITE", help="Name of a suite, or a TOML file.", show_default=False),
    ] = None,
    graphs: Annotated[
        list[str],
        typer.Option(metavar="NAME…", help="Other graphs: generated, from `wedgewise datasets`, or from --data."),
    ] = [],  # noqa: B006
    questions: Annotated[
        list[str], typer.Option(metavar="NAME…", help="Other questions, such as count, k_truss[k=3], k_truss[k=kmax].")
    ] = [],  # noqa: B006
    rows: Annotated[list[str], typer.Option(metavar="NAME…", help="Only these rows: count, edges, file.")] = [],  # noqa: B006
    systems: Annotated[
        list[str], typer.Option(metavar="NAME…", help="Only these systems: wedgewise, igraph, …, or one of --programs.")
    ] = [],  # noqa: B006
    devices: Annotated[list[str], typer.Option(metavar="NAME…", help="Devices for wedgewise: cpu, cuda, hybrid.")] = [],  # noqa: B006
    algorithms: Annotated[
        list[str],
        typer.Option(
            metavar="NAME…", help="Algorithms of wedgewise, with settings: auto, wetric[spread=7,order=id], all."
        ),
    ] = [],  # noqa: B006
    threads: Annotated[
        list[int],
        typer.Option(
            min=1, metavar="N…", help="Run every cell with each of these numbers of threads. Default: all threads."
        ),
    ] = [],  # noqa: B006
    data: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Folder with real graphs, NAME.el.xz, and a truths.json in it or above."),
    ] = None,
    limit_seconds: Annotated[
        float | None, typer.Option(min=0.0, metavar="S", help="Time limit for each stage and each repeat of a cell.")
    ] = None,
    memory: Annotated[
        int | None,
        typer.Option(
            metavar="SIZE", parser=parse_size, help="Memory limit of a cell. Default: 80 % of the free memory."
        ),
    ] = None,
    repeats: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Maximum number of timed runs per cell.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="File to which the records are appended, a line per cell: R.jsonl."
        ),
    ] = None,
    tables: Annotated[Path | None, typer.Option(metavar="FILE", help="File for the tables: R.md.")] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Skip cells that the records already have for this revision."),
    ] = False,
    programs: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File that lists other programs to compare: P.toml.")
    ] = None,
    profile: Annotated[
        bool, typer.Option("--profile", help="Run each GPU cell once more under ncu, for the papers' counters.")
    ] = False,
    compare: Annotated[
        tuple[Path, Path] | None,
        typer.Option(metavar="A B", help="Run nothing; say what became slower or wrong from records A to B."),
    ] = None,
    work: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder for prepared graphs. Default: the cache.")
    ] = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Compare algorithms and other libraries.

    Without SUITE, lists the suites. Each cell runs in its own process with limits. Every answer is checked against the
    known answer and against the other systems. Prints the tables as Markdown. --output saves a record of each cell when
    it ends. Options may take several values: --threads 1 2 4.

    The exit code is 1 if a system gave a wrong answer or crashed, or if wedgewise did not answer; with --compare, if a
    cell became slower than noise explains, or wrong.
    """
    from wedgewise_bench.command import Choices, default_work
    from wedgewise_bench.suite_files import declared_suites

    console = Console(as_json, verbose=verbose)
    if compare is not None:
        if suite is not None:
            raise typer.BadParameter("--compare runs nothing; leave out SUITE", param_hint="SUITE")
        _compare(*compare, tables, console)
        return
    if suite is None:
        known = declared_suites().values()
        record = {"suites": [{name: getattr(suite, name) for name in DECLARED} for suite in known]}
        console.show(record, lambda: "\n".join(f"{suite.name:9}{suite.summary}" for suite in known))
        return
    choices = Choices(
        graphs=_unique(graphs),
        systems=_unique(systems),
        devices=_unique(devices),
        algorithms=_unique(algorithms),
        questions=_unique(questions),
        rows=_unique(rows),
        limit_seconds=limit_seconds,
        repeats=repeats,
        threads=_unique(threads),
        limit_bytes=memory,
        data=data,
        work=work or default_work(),
        results=output,
        resume=resume,
        programs=programs,
        profiles=profile,
        command=("wedgewise", *sys.argv[1:]),
    )
    _run(_suite_of(suite), choices, tables, console)


def _suite_of(text: str) -> Suite:
    """The suite of a name or of a file."""
    from wedgewise_bench.suite_files import declared_suites, read_suite

    if text.endswith(".toml"):
        return read_suite(Path(text))
    known = declared_suites()
    if text not in known:
        message = f"no suite named {text!r}; choose one of {', '.join(known)}, or a file that ends in .toml"
        raise typer.BadParameter(message, param_hint="SUITE")
    return known[text]


def _compare(before: Path, after: Path, tables: Path | None, console: Console) -> None:
    """Show what became of every cell between two results files."""
    from wedgewise.report.page import write_document
    from wedgewise_bench.compare import comparison_of, render

    comparison = comparison_of(before, after)
    if tables is not None:
        write_document(render(comparison), tables)
    console.show(comparison.to_dict(), lambda: render(comparison))
    if comparison.is_worse:
        raise typer.Exit(FAILED)


def _unique(values: Iterable[Value]) -> tuple[Value, ...]:
    """Each value once, in the order in which they were given."""
    return tuple(dict.fromkeys(values))


def _run(suite: Suite, choices: Choices, tables: Path | None, console: Console) -> None:
    """Run a suite, say how every cell ended, and show the tables."""
    from wedgewise.report.page import write_document
    from wedgewise_bench.command import is_failure, line_of, missing_graphs, run

    def hear(record: Record, standing: Standing) -> None:
        console.say(f"{line_of(record)}  ({standing})")

    results = choices.results_of(suite)
    choices = replace(choices, results=results)
    missing = missing_graphs(choices.applied(suite), choices.data)
    try:
        with console.stages() as progress:
            records = run(suite, choices, progress, hear)
    except (KeyboardInterrupt, SystemExit):  # the second is how SIGTERM ends us
        if results.exists():
            say(f"finished cells are in {results}; --resume continues after them")
        raise
    text = suite.render(records) + (f"\nnot here: {', '.join(missing)}\n" if missing else "")
    if tables is not None:
        write_document(text, tables)
    failures = sum(map(is_failure, records))
    record = {
        "suite": suite.name,
        "output": str(results),
        "failures": failures,
        "records": [json.loads(record.to_line()) for record in records],
        "not_here": missing,
    }
    console.show(record, lambda: text)
    if failures:
        say(f"{failures} of {len(records)} cells failed")
        raise typer.Exit(FAILED)
