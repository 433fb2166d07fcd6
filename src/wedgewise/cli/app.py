"""Every command: read its options, ask the library, show the answer."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Annotated, Any

import typer

import wedgewise
from wedgewise.answer.answering import answer, plan_for
from wedgewise.cli import bench, datasets, generators, similarity
from wedgewise.cli import report as report_command
from wedgewise.cli.console import Commands, Console, put
from wedgewise.cli.options import (
    AsJson,
    Balance,
    Cluster,
    DropLeaves,
    FutureWorkers,
    Memory,
    MemoryPerWorker,
    Output,
    PlanningOptions,
    QuestionOptions,
    ReadingOptions,
    Restart,
    Shares,
    Timeline,
    Undefined,
    UndefinedAs,
    Weight,
    Work,
    Workers,
    takes,
)
from wedgewise.errors import InputError
from wedgewise.report import objects, text
from wedgewise.run.request import Request

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
app.add_typer(datasets.app, name="datasets")


def _show_version(wanted: bool) -> None:
    if wanted:
        put(f"wedgewise {wedgewise.__version__}")
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
@takes(QuestionOptions)
def count(
    options: QuestionOptions,
    restart: Restart = False,
    work: Work = None,
    balance: Balance = False,
    cluster: Cluster = None,
    workers: Workers = None,
    shares: Shares = None,
    timeline: Timeline = None,
) -> None:
    """Count the triangles of a graph, exactly.

    A terminal gets the count and how it came about; a pipe gets the integer alone, on one line.

    FILE may be a store that `partition` made. The whole process then keeps to --memory. If a count is stopped, the same
    command continues it. If a file does not fit into memory, it is cut into such blocks in the system's temporary
    folder, or in --work, where a stopped count can be continued too.
    """
    if timeline is not None:
        from wedgewise.run.timeline import check_suffix

        check_suffix(timeline)
        if options.device != "hybrid":
            raise InputError(f"{timeline}: there is a timeline of --device hybrid alone; leave --timeline out")
    more: dict[str, Any] = {"cluster": cluster, "workers": workers, "shares": shares}
    request = options.request("count", {}, resume=not restart, work_folder=work, **more)
    store = None
    if balance:
        from wedgewise.run.shares import with_shares

        store = wedgewise.open_store(options.file, work)
        request = with_shares(request, store)
    result = _answer(options, request)
    headline = text.plural(result.answer, "triangle")
    if store is None:
        _show_number(options, result, headline)
    else:
        from wedgewise.report.balance import balance_report, balance_text

        report = balance_report(store.partition, store.counts, result.task_seconds, shares=request.share_count)
        _show_number(options, result, headline, {"balance": report.to_dict()}, f"\n\n{balance_text(report)}")
    if timeline is not None and result.timeline is not None:
        result.timeline.write(timeline)


@app.command()
@takes(ReadingOptions)
def partition(
    options: ReadingOptions,
    store: Annotated[str, typer.Argument(metavar="STORE", help="The folder to make.", show_default=False)],
    memory: Memory = None,
    parts: Annotated[
        int | None,
        typer.Option(min=1, metavar="P", help="Parts to cut the vertices into; by default as few as --memory allows."),
    ] = None,
    scheme: Annotated[str, typer.Option(metavar="NAME", help="How to cut: rectilinear or hashed.")] = "rectilinear",
    memory_per_worker: MemoryPerWorker = None,
    workers: FutureWorkers = None,
    ids: Annotated[
        str, typer.Option(metavar="NAME", help="What hashed parts take turns by: rank, indegree or classes.")
    ] = "rank",
) -> None:
    """Cut a graph into blocks on disk, to be counted within little memory.

    Neither this command nor `count` on the store exceeds --memory, the interpreter included. The file is read once;
    raw pairs, .npy and text of integers may be larger than memory, and so may their edges. Disk is needed for about
    20 bytes per pair.
    """
    from wedgewise.cli.partition import partition_file, store_text

    how = {"memory_limit": memory, "memory_per_worker": memory_per_worker, "workers": workers, "parts": parts}
    record = partition_file(options, store, **how, scheme=scheme, ids=ids)
    options.console().show(record, lambda: store_text(record))


@app.command()
@takes(QuestionOptions)
def triangles(
    options: QuestionOptions,
    output: Output = None,
    restart: Restart = False,
    work: Work = None,
    cluster: Cluster = None,
    workers: Workers = None,
) -> None:
    """Count the triangles of every vertex.

    A terminal gets a summary: the vertices with most triangles, and a histogram. A pipe gets a line per vertex, its
    label and its triangles with a tab between. --output writes the columns vertex and triangles; .npy holds the
    triangles alone, in the order of the labels: integers ascending, text by first appearance, rows of a matrix; .npz
    holds both columns, with integer labels.

    FILE may be a store, as for `count`.
    """
    from wedgewise.cli import answers

    how: dict[str, Any] = {"resume": not restart, "work_folder": work, "cluster": cluster, "workers": workers}
    answers.answer_rows("triangles", options, output, **how)


@app.command()
@takes(QuestionOptions)
def support(
    options: QuestionOptions,
    output: Output = None,
    restart: Restart = False,
    work: Work = None,
    cluster: Cluster = None,
    workers: Workers = None,
) -> None:
    """Count the triangles of every edge.

    A terminal gets a summary: the edges with most triangles, and a histogram. A pipe gets a line per edge, the labels
    of its ends and its triangles with tabs between. --output writes the columns u, v and support; .npy and .npz
    hold integers, which text labels are not.

    FILE may be a store, as for `count`. Its edges come block by block, and never have to fit into memory.
    """
    from wedgewise.cli import answers

    how: dict[str, Any] = {"resume": not restart, "work_folder": work, "cluster": cluster, "workers": workers}
    answers.answer_rows("edge_support", options, output, **how)


@app.command()
@takes(QuestionOptions)
def truss(
    options: QuestionOptions,
    output: Output = None,
    k: Annotated[int | None, typer.Option("--k", min=2, metavar="K", help="The edges of the k-truss alone.")] = None,
    largest: Annotated[bool, typer.Option("--max", help="The edges of the last truss that has any.")] = False,
    every: Annotated[bool, typer.Option("--all", help="The truss number of every edge; done by itself.")] = False,
    restart: Restart = False,
    work: Work = None,
    cluster: Cluster = None,
    workers: Workers = None,
) -> None:
    """Find the truss number of every edge, or the edges of one truss.

    Every edge of the k-truss lies in at least k − 2 triangles of the k-truss; the truss number of an edge is the
    largest k whose k-truss holds it. --k asks for one truss, --max for the last one that has edges.

    A terminal gets a summary: edges, vertices and components for every k, or of the one truss with the first of its
    edges. A pipe gets a line per edge, the labels of its ends and its truss number with tabs between; with --k the
    labels alone. --output writes the same as the columns u, v and truss, or u and v; .npy and .npz hold integers, which
    text labels are not.

    FILE may be a store, as for `support`, but not with --max. What lives behind each round is kept in it: two bits per
    edge with --k, 8 bytes per edge otherwise.
    """
    from wedgewise.cli import answers

    if (k is not None) + largest + every > 1:
        raise typer.BadParameter("--k, --max and --all exclude each other: name one")
    question = "max_truss" if largest else "trussness" if k is None else "k_truss"
    details = {} if k is None else {"k": k}
    how: dict[str, Any] = {"resume": not restart, "work_folder": work, "cluster": cluster, "workers": workers}
    answers.answer_rows(question, options, output, details, **how)


@app.command("list")
@takes(QuestionOptions)
def list_(
    options: QuestionOptions,
    output: Output = None,
    start: Annotated[int, typer.Option(min=0, metavar="K", help="Leave out the first K triangles.")] = 0,
    stop: Annotated[
        int | None, typer.Option(min=0, metavar="K", help="End before triangle number K; the first one is number 0.")
    ] = None,
    batch: Annotated[int, typer.Option(min=1, metavar="N", help="Triangles held in memory at a time.")] = 1 << 20,
) -> None:
    """List the triangles.

    A terminal gets the first few; a pipe gets all, a line per triangle, the labels of its vertices with tabs between.
    --output writes the columns u, v and w; .npy holds the three as integers, which text labels are not, and .npz holds
    no listings.

    The list is streamed and may be longer than memory. Its order depends on the graph, --algorithm, --order and
    --relabel alone, so that it can be had in parts: --stop K into one file, --start K into another. A file appears when
    it is complete: an interrupted one leaves nothing; an interrupted pipe says which --start continues it.
    """
    from wedgewise.cli import answers

    answers.list_rows(options, output, start, stop, batch)


@app.command()
@takes(QuestionOptions)
def clustering(
    options: QuestionOptions,
    output: Output = None,
    undefined: Undefined = UndefinedAs.zero,
    directed: Annotated[
        bool, typer.Option("--directed", help="Take the direction of every pair into account.")
    ] = False,
    combine: Annotated[
        str, typer.Option(metavar="NAME", help="With --weight: last, sum, max, min or error, for repeated edges.")
    ] = "last",
    restart: Restart = False,
    work: Work = None,
) -> None:
    """Local clustering coefficients.

    The share of a vertex's pairs of neighbours that are joined; with --weight, triangles count as the geometric mean of
    their weights. A terminal gets a summary: the average, averages by
    degree, and a histogram. A pipe gets a line per vertex, its label and its coefficient with a tab between. --output
    writes the columns vertex and clustering; .npy holds the coefficients alone, in the order of the labels, .npz both
    columns, with integer labels.

    FILE may be a store, as for `triangles`; it has neither directions nor weights.
    """
    from wedgewise.cli import answers

    read = {"directed": directed, "combine": combine}
    answers.answer_clustering(options, output, undefined.value, read, resume=not restart, work_folder=work)


@app.command()
@takes(QuestionOptions)
def transitivity(
    options: QuestionOptions,
    undefined: Undefined = UndefinedAs.zero,
    restart: Restart = False,
    work: Work = None,
    cluster: Cluster = None,
    workers: Workers = None,
) -> None:
    """The share of paths of two edges that are closed.

    A terminal gets the number and how it came about; a pipe gets the number alone, with all its digits.

    FILE may be a store, as for `count`. Either command goes on where the other was stopped.
    """
    how: dict[str, Any] = {"resume": not restart, "work_folder": work, "cluster": cluster, "workers": workers}
    result = _answer(options, options.request("transitivity", {"undefined": undefined.value}, **how))
    _show_number(options, result, f"transitivity {result.answer!r}")


@app.command()
@takes(ReadingOptions)
def info(options: ReadingOptions, weight: Weight = None, drop_leaves: DropLeaves = False) -> None:
    """Describe a graph.

    Size, degrees, labels, what cleaning drops, and the memory that a count will take.
    """
    console = options.console()
    with options.stages():
        graph = options.graph_file(weight, drop_leaves=drop_leaves).graph("auto")
    console.note(graph.cleaned.notes)
    record = objects.graph_object(graph, options.threads)
    console.show(record, lambda: text.graph_text(record))


@app.command()
@takes(PlanningOptions)
def explain(
    options: PlanningOptions,
    question: Annotated[
        str, typer.Option(metavar="NAME", help="What would be asked: count, triangles, edge_support, list_triangles, …")
    ] = "count",
    k: Annotated[
        int | None, typer.Option("--k", min=2, metavar="K", help="Which truss, where one would be asked for.")
    ] = None,
    workers: Workers = None,
    memory_per_worker: MemoryPerWorker = None,
    shares: Shares = None,
) -> None:
    """Say what `count` or another question would do, and why.

    The graph is read and oriented, not counted. Of a store, only the manifest is read; of a file that does not fit into
    memory, only the beginning. With --workers, it says into how many parts and shares TRUST would cut the graph for
    them.
    """
    if memory_per_worker is not None:
        if workers is None or options.memory is not None:
            raise typer.BadParameter("--memory-per-worker goes with --workers, in place of --memory")
        options = replace(options, memory=workers * memory_per_worker)
    console, details = options.console(), {} if k is None else {"k": k}
    with options.stages():
        plan, cleaned = plan_for(options.request(question, details, workers=workers, shares=shares))
    console.note(() if cleaned is None else cleaned.notes)
    read = None if cleaned is None else asdict(cleaned)
    console.show({**asdict(plan), "cleaned": read}, lambda: str(plan))


@app.command()
@takes(ReadingOptions)
def convert(
    options: ReadingOptions,
    output: Annotated[str, typer.Argument(metavar="OUT", help="Its suffixes name format and compression.")],
    to: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The format to write, when the suffix should not decide."),
    ] = None,
    clean: Annotated[
        bool, typer.Option("--clean", help="Write the simple graph: every edge once, without loops.")
    ] = False,
) -> None:
    """Write a graph in another format.

    The pairs stay as they are; --clean writes every edge once. Formats that are lists of pairs do not hold
    vertices without an edge; mtx, metis and npz do. mtx and metis number vertices by row: a label is its row, and every
    row is a vertex; with --clean, rows are in the order of the labels, which are not kept. Labels that would not be
    read back are refused.
    """
    from wedgewise.cli.convert import convert_file, converted_text

    console = options.console()
    with options.stages():
        record = convert_file(options.graph_file(), output, to, clean, console.note)
    console.show(record, lambda: converted_text(record))


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

    record = examine(warm_kernels() if warm else None)
    Console(as_json).show(record, lambda: doctor_text(record))


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


app.command(cls=bench.SeveralValues)(bench.bench)
app.command(cls=bench.SeveralValues)(report_command.report)
app.command()(similarity.similarity)


def _answer(options: QuestionOptions, request: Request) -> wedgewise.Result:
    """The answer; the command says whether it is verified, and who watches."""
    with options.stages() as progress:
        result = answer(replace(request, progress=progress, verify=options.verify))
    options.console().note(result.cleaned.notes)
    return result


def _show_number(
    options: QuestionOptions,
    result: wedgewise.Result,
    headline: str,
    record: objects.Object = {},  # noqa: B006
    table: str = "",
) -> None:
    """Show an answer that is one number; `record` is added to its JSON, `table` to its text."""
    console = options.console()
    bare = not console.is_read_by_a_person
    console.show(
        {**result.to_dict(), **record},
        lambda: (str(result.answer) if bare else text.result_text(result, headline)) + table,
    )
