"""Every command: read its options, ask the library, show the answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import typer

import wedgewise
from wedgewise.cli import generators
from wedgewise.cli.console import Commands, Console
from wedgewise.cli.options import (
    AlgorithmName,
    AsJson,
    Device,
    DropLeaves,
    File,
    Format,
    KnobList,
    Labels,
    LimitList,
    Memory,
    Order,
    Quiet,
    Reading,
    Relabel,
    Threads,
    Verbose,
    parse_settings,
    parse_size,
)
from wedgewise.report import objects, text

app = typer.Typer(
    cls=Commands,
    help="Every triangle question about a graph, answered exactly and fast.",
    epilog="Exit codes: 0 done, 1 an error in the input or the machine, 2 wrong usage, 130 interrupted.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(generators.app, name="generate")


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"wedgewise {wedgewise.__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Every triangle question about a graph, answered exactly and fast."""


@app.command()
def count(
    file: File,
    algorithm: AlgorithmName = "auto",
    device: Device = "auto",
    threads: Threads = None,
    order: Order = "auto",
    relabel: Relabel = "auto",
    labels: Labels = "auto",
    format: Format = None,
    drop_leaves: DropLeaves = False,
    memory: Memory = None,
    verify: Annotated[bool, typer.Option("--verify", help="Recount by another method and compare.")] = False,
    knob: KnobList = [],  # noqa: B006  (typer's way to say that an option may be repeated)
    limit: LimitList = [],  # noqa: B006
    as_json: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Count the triangles of a graph, exactly.

    A terminal gets the count and how it came about; a pipe gets the integer alone, on one line.
    """
    console = Console(as_json, quiet, verbose)
    reading = Reading(file, labels, format, drop_leaves, limit, threads)
    options = _planning(algorithm, device, order, relabel, memory, threads, knob)
    with console.stages() as tell:
        graph, seconds = reading.graph(tell)
        result = wedgewise.run("count", graph, progress=tell, verify=verify, **options)
    result = replace(result, seconds={"read and clean": seconds, **result.seconds})
    bare = not console.is_read_by_a_person
    console.show(result.to_dict(), lambda: str(result.answer) if bare else text.result_text(result))


@app.command()
def info(
    file: File,
    labels: Labels = "auto",
    format: Format = None,
    drop_leaves: DropLeaves = False,
    limit: LimitList = [],  # noqa: B006
    threads: Threads = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Describe a graph.

    Size, degrees, labels, what cleaning drops, and the memory that a count will take.
    """
    console = Console(as_json, verbose=verbose)
    with console.stages() as tell:
        graph, _ = Reading(file, labels, format, drop_leaves, limit, threads).graph(tell)
    record = objects.graph_object(graph, threads)
    console.show(record, lambda: text.graph_text(record))


@app.command()
def explain(
    file: File,
    algorithm: AlgorithmName = "auto",
    device: Device = "auto",
    threads: Threads = None,
    order: Order = "auto",
    relabel: Relabel = "auto",
    labels: Labels = "auto",
    format: Format = None,
    drop_leaves: DropLeaves = False,
    memory: Memory = None,
    knob: KnobList = [],  # noqa: B006
    limit: LimitList = [],  # noqa: B006
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Say what `count` would do, and why.

    The graph is read and oriented, not counted.
    """
    console = Console(as_json, verbose=verbose)
    options = _planning(algorithm, device, order, relabel, memory, threads, knob)
    with console.stages() as tell:
        graph, _ = Reading(file, labels, format, drop_leaves, limit, threads).graph(tell)
        plan = wedgewise.explain("count", graph, **options)
    console.show(objects.plan_object(plan), lambda: str(plan))


@app.command()
def convert(
    file: File,
    output: Annotated[str, typer.Argument(metavar="OUT", help="Its suffixes name format and compression.")],
    to: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The format to write, when the suffix should not decide."),
    ] = None,
    clean: Annotated[
        bool, typer.Option("--clean", help="Write the simple graph: every edge once, without loops.")
    ] = False,
    labels: Labels = "auto",
    format: Format = None,
    limit: LimitList = [],  # noqa: B006
    threads: Threads = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Write a graph in another format.

    The pairs stay as they are; --clean writes every edge once. Formats that are lists of pairs do not hold
    vertices without an edge; mtx, metis and npz do.
    """
    from wedgewise.cli.convert import convert_file

    console = Console(as_json, verbose=verbose)
    reading = Reading(file, labels, format, False, limit, threads)
    with console.stages() as tell:
        record = convert_file(reading, output, to, clean, tell)
    console.show(record, lambda: f"{record['pairs']:,} pairs written to {record['output']}")


@app.command()
def algorithms(as_json: AsJson = False) -> None:
    """List the algorithms.

    What each one answers, where it was published, its limits and knobs.
    """
    found = wedgewise.algorithms()
    Console(as_json).show(objects.algorithms_object(found), lambda: text.algorithms_text(found))


@app.command()
def doctor(
    warm: Annotated[bool, typer.Option("--warm", help="Compile all kernels now, so that no later run waits.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check the installation.

    Versions, threads, memory, the kernel cache and the optional packages.
    """
    from wedgewise.cli.doctor import doctor_text, examine, warm_kernels

    console = Console(as_json)
    warmed = warm_kernels() if warm else None
    record = examine(warmed)
    console.show(record, lambda: doctor_text(record))


@app.command()
def demo(as_json: AsJson = False) -> None:
    """Count a bundled real graph.

    Verifies the count by another method, compares two algorithms, and looks at the degrees.
    """
    from wedgewise.cli.demo import demo_text, demonstrate

    console = Console(as_json)
    with console.stages():
        record = demonstrate()
    console.show(record, lambda: demo_text(record))


def _planning(
    algorithm: str,
    device: str,
    order: str,
    relabel: str,
    memory: str | None,
    threads: int | None,
    knobs: list[str],
) -> dict[str, Any]:
    """The keywords of `wedgewise.run` and `wedgewise.explain` that options stand for."""
    return {
        "algorithm": algorithm,
        "device": device,
        "order": order,
        "relabel": relabel,
        "memory_limit": None if memory is None else parse_size(memory),
        "threads": threads,
        "knobs": parse_settings(knobs, "--knob"),
    }
