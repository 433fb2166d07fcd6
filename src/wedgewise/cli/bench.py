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
from typer.core import TyperCommand

from wedgewise.api import SCHEMA
from wedgewise.cli.console import FAILED, Console, say
from wedgewise.cli.options import AsJson, Verbose, parse_size

if TYPE_CHECKING:
    from wedgewise.bench.command import Choices
    from wedgewise.bench.record import Record
    from wedgewise.bench.suites import Suite


Value = TypeVar("Value")


class SeveralValues(TyperCommand):
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
    suite: Annotated[str | None, typer.Argument(metavar="SUITE", help="What to compare.", show_default=False)] = None,
    graphs: Annotated[
        list[str], typer.Option(metavar="NAME…", help="Other graphs: generated, bundled, or of --data.")
    ] = [],  # noqa: B006
    questions: Annotated[
        list[str], typer.Option(metavar="NAME…", help="Other questions, such as count, k_truss[k=3], k_truss[k=kmax].")
    ] = [],  # noqa: B006
    rows: Annotated[list[str], typer.Option(metavar="NAME…", help="Fewer rows of the suite: count, edges, file.")] = [],  # noqa: B006
    systems: Annotated[
        list[str], typer.Option(metavar="NAME…", help="Who takes part: wedgewise, graphblas, networkit, igraph, …")
    ] = [],  # noqa: B006
    algorithms: Annotated[
        list[str],
        typer.Option(metavar="NAME…", help="Of wedgewise, with their knobs: auto, peel, eager[granularity=fine], all."),
    ] = [],  # noqa: B006
    threads: Annotated[
        list[int], typer.Option(min=1, metavar="N…", help="All cells with each of these; all threads by default.")
    ] = [],  # noqa: B006
    data: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Real graphs: NAME.el.xz, with a truths.json in or above the folder."),
    ] = None,
    limit_seconds: Annotated[
        float | None, typer.Option(min=0.0, metavar="S", help="For each stage of a cell and each repeat.")
    ] = None,
    memory: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Most memory of a cell; 80 % of what is free by default.")
    ] = None,
    repeats: Annotated[int | None, typer.Option(min=1, metavar="N", help="Timed runs of a cell at most.")] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where records are appended: R.jsonl, a line per cell."),
    ] = None,
    tables: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where the tables are written as well: R.md.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Keep the cells that the records have for this revision.")
    ] = False,
    work: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where prepared graphs are kept; a temporary one by default.")
    ] = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Compare algorithms and other libraries, each cell in a process of its own with limits.

    Without a SUITE, lists the suites. Every answer is checked: against what is known, and against the others. Prints
    the tables as Markdown; --output keeps a record of every cell as soon as it has ended. An option of several values
    takes them one after the other: --threads 1 2 4.

    The exit code is 1 when a system answered wrongly or crashed, or when we did not answer.
    """
    from wedgewise.bench.command import DEFAULT_WORK, Choices
    from wedgewise.bench.suites import SUITES

    console = Console(as_json, verbose=verbose)
    if suite is None:
        console.show(_suites_object(SUITES.values()), lambda: _suites_text(SUITES.values()))
        return
    if suite not in SUITES:
        raise typer.BadParameter(f"no suite named {suite!r}; there are: {', '.join(SUITES)}", param_hint="SUITE")
    choices = Choices(
        graphs=_unique(graphs),
        systems=_unique(systems),
        algorithms=_unique(algorithms),
        questions=_unique(questions),
        rows=_unique(rows),
        limit_seconds=limit_seconds,
        repeats=repeats,
        threads=_unique(threads),
        limit_bytes=None if memory is None else parse_size(memory),
        data=data,
        work=work or DEFAULT_WORK,
        results=output,
        resume=resume,
        command=("wedgewise", *sys.argv[1:]),
    )
    _run(SUITES[suite], choices, tables, console)


def _unique(values: Iterable[Value]) -> tuple[Value, ...]:
    """Each value once, in the order in which they were given."""
    return tuple(dict.fromkeys(values))


def _run(suite: Suite, choices: Choices, tables: Path | None, console: Console) -> None:
    """Run a suite, say how every cell ended, and show the tables."""
    from wedgewise.bench.command import is_failure, line_of, run
    from wedgewise.storage import atomic_write

    results = choices.results_of(suite)
    choices = replace(choices, results=results)
    try:
        with console.stages() as tell:
            records = run(suite, choices, tell, lambda record: console.say(line_of(record)))
    except KeyboardInterrupt:
        if results.exists():
            say(f"finished cells are in {results}; --resume goes on behind them")
        raise
    text = suite.render(records)
    if tables is not None:
        with atomic_write(tables) as file:
            file.write(text.encode())
    failures = sum(map(is_failure, records))
    console.show(_records_object(suite, results, records, failures), lambda: text)
    if failures:
        say(f"{failures} of {len(records)} cells failed")
        raise typer.Exit(FAILED)


def _records_object(suite: Suite, results: Path, records: list[Record], failures: int) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "suite": suite.name,
        "output": str(results),
        "failures": failures,
        "records": [json.loads(record.to_line()) for record in records],
    }


def _suites_object(suites: Iterable[Suite]) -> dict[str, Any]:
    names = ("name", "summary", "graphs", "real", "questions", "rows", "systems", "algorithms", "limit_seconds")
    return {"schema": SCHEMA, "suites": [{name: getattr(suite, name) for name in names} for suite in suites]}


def _suites_text(suites: Iterable[Suite]) -> str:
    """A line per suite."""
    return "\n".join(f"{suite.name:9}{suite.summary}" for suite in suites)
