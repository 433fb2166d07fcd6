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
from wedgewise.cli.help import App
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

app = App(
    cls=Commands,
    help="Count and list the triangles of a graph exactly, and compute clustering and trusses.",
    epilog="Exit codes: 0 done, 1 an error in the input or the machine, 2 wrong usage, 130 interrupted.",
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
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
    """Count and list the triangles of a graph exactly, and compute clustering and trusses."""


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

    On a terminal, prints the count and how it was computed. In a pipe, prints only the integer.

    FILE may be a store that `partition` made; the whole process then keeps to --memory, and the same command continues
    a count that was stopped. A file that does not fit in memory is split into disk blocks automatically, in the
    system's temporary folder or in --work.
    """
    if timeline is not None:
        from wedgewise.run.timeline import check_suffix

        check_suffix(timeline)
        if options.device != "hybrid":
            raise InputError("--timeline requires --device hybrid")
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
    store: Annotated[str, typer.Argument(metavar="STORE", help="Folder to create.", show_default=False)],
    memory: Memory = None,
    parts: Annotated[
        int | None,
        typer.Option(min=1, metavar="P", help="Number of parts. Default: as few as --memory allows."),
    ] = None,
    scheme: Annotated[str, typer.Option(metavar="NAME", help="How to split: rectilinear or hashed.")] = "rectilinear",
    memory_per_worker: MemoryPerWorker = None,
    workers: FutureWorkers = None,
    ids: Annotated[
        str, typer.Option(metavar="NAME", help="Numbering that hashed parts follow: rank, indegree or classes.")
    ] = "rank",
) -> None:
    """Split a graph into blocks on disk (a store).

    This command and later commands on the store keep to --memory, including Python. Raw pairs, .npy files and text
    files with integers may be larger than memory. Needs about 20 bytes of disk per pair.
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

    On a terminal, prints a summary: the vertices with the most triangles, and a histogram. In a pipe, prints a line per
    vertex: its label and its triangles, separated by a tab. --output writes the columns vertex and triangles. A .npy
    file has only the triangles, ordered by integer label, or by first appearance of text labels.

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

    On a terminal, prints a summary: the edges with the most triangles, and a histogram. In a pipe, prints a line per
    edge: the labels of its ends and its triangles, separated by tabs. --output writes the columns u, v and support;
    .npy and .npz need integer labels.

    FILE may be a store, as for `count`. Its edges come block by block and need not fit in memory.
    """
    from wedgewise.cli import answers

    how: dict[str, Any] = {"resume": not restart, "work_folder": work, "cluster": cluster, "workers": workers}
    answers.answer_rows("edge_support", options, output, **how)


@app.command()
@takes(QuestionOptions)
def truss(
    options: QuestionOptions,
    output: Output = None,
    k: Annotated[
        int | None, typer.Option("--k", min=2, metavar="K", help="Print only the edges of the k-truss.")
    ] = None,
    largest: Annotated[
        bool, typer.Option("--max", help="Print only the edges of the largest k with a k-truss.")
    ] = False,
    every: Annotated[bool, typer.Option("--all", help="Print the truss number of every edge (the default).")] = False,
    restart: Restart = False,
    work: Work = None,
    cluster: Cluster = None,
    workers: Workers = None,
) -> None:
    """Find the truss number of every edge, or the edges of one truss.

    Every edge of the k-truss lies in at least k − 2 triangles of the k-truss. The truss number of an edge is the
    largest k whose k-truss contains it.

    On a terminal, prints a summary: edges, vertices and components for every k, or for one truss and its first edges.
    In a pipe, prints a line per edge: the labels of its ends and its truss number, separated by tabs; with --k only the
    labels. --output writes the same columns: u, v and truss, or u and v. .npy and .npz need integer labels.

    FILE may be a store, as for `support`, but not with --max. Saved progress takes two bits per edge with --k, and 8
    bytes per edge otherwise.
    """
    from wedgewise.cli import answers

    if (k is not None) + largest + every > 1:
        raise typer.BadParameter("use only one of --k, --max and --all")
    question = "max_truss" if largest else "trussness" if k is None else "k_truss"
    details = {} if k is None else {"k": k}
    how: dict[str, Any] = {"resume": not restart, "work_folder": work, "cluster": cluster, "workers": workers}
    answers.answer_rows(question, options, output, details, **how)


@app.command("list")
@takes(QuestionOptions)
def list_(
    options: QuestionOptions,
    output: Output = None,
    start: Annotated[int, typer.Option(min=0, metavar="K", help="Skip the first K triangles.")] = 0,
    stop: Annotated[
        int | None, typer.Option(min=0, metavar="K", help="Stop before triangle number K; the first one is number 0.")
    ] = None,
    batch: Annotated[int, typer.Option(min=1, metavar="N", help="Number of triangles in memory at a time.")] = 1 << 20,
) -> None:
    """List the triangles.

    On a terminal, prints the first few. In a pipe, prints all: a line per triangle with the labels of its vertices,
    separated by tabs. --output writes the columns u, v and w; .npy needs integer labels, .npz is not supported.

    The list is streamed and may be longer than memory. Its order depends only on the graph, --algorithm, --order and
    --relabel, so you can write it in parts: --stop K into one file, --start K into another. An output file appears when
    it is complete. If a pipe is interrupted, a message says which --start continues it.
    """
    from wedgewise.cli import answers

    answers.list_rows(options, output, start, stop, batch)


@app.command()
@takes(QuestionOptions)
def clustering(
    options: QuestionOptions,
    output: Output = None,
    undefined: Undefined = UndefinedAs.zero,
    directed: Annotated[bool, typer.Option("--directed", help="Use the directions of the pairs.")] = False,
    combine: Annotated[
        str, typer.Option(metavar="NAME", help="With --weight, for repeated edges: last, sum, max, min or error.")
    ] = "last",
    restart: Restart = False,
    work: Work = None,
) -> None:
    """Local clustering coefficients.

    The coefficient of a vertex is the fraction of pairs of its neighbours that are joined. With --weight, a triangle
    counts as the geometric mean of its weights, as in NetworkX.

    On a terminal, prints a summary: the average, averages by degree, and a histogram. In a pipe, prints a line per
    vertex: its label and its coefficient, separated by a tab. --output writes the columns vertex and clustering.

    FILE may be a store, as for `triangles`, but without directions and weights.
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
    """Global clustering coefficient.

    Three times the number of triangles, divided by the number of wedges (paths of two edges). On a terminal, prints the
    number and how it was computed. In a pipe, prints only the number, with all digits.

    FILE may be a store, as for `count`. Each of the two commands continues the saved progress of the other.
    """
    how: dict[str, Any] = {"resume": not restart, "work_folder": work, "cluster": cluster, "workers": workers}
    result = _answer(options, options.request("transitivity", {"undefined": undefined.value}, **how))
    _show_number(options, result, f"transitivity {result.answer!r}")


@app.command()
@takes(ReadingOptions)
def info(options: ReadingOptions, weight: Weight = None, drop_leaves: DropLeaves = False) -> None:
    """Describe a graph.

    Prints size, degrees, labels, what cleaning drops, and the memory that a count needs.
    """
    console = options.console()
    with options.stages():
        graph = options.graph_file(weight, drop_leaves=drop_leaves).graph("auto")
    console.note(graph.cleaned.notes)
    record = objects.graph_object(graph, options.threads) | {"source": options.typed(graph.origin.name)}
    console.show(record, lambda: text.graph_text(record))


@app.command()
@takes(PlanningOptions)
def explain(
    options: PlanningOptions,
    question: Annotated[
        str, typer.Option(metavar="NAME", help="Question to explain: count, triangles, edge_support, list_triangles, …")
    ] = "count",
    k: Annotated[int | None, typer.Option("--k", min=2, metavar="K", help="The k of a k-truss.")] = None,
    workers: Workers = None,
    memory_per_worker: MemoryPerWorker = None,
    shares: Shares = None,
) -> None:
    """Say what `count` or another question would do, and why.

    Reads and orients the graph, but does not count. For a store, reads only the manifest. With --workers, also says
    into how many parts and shares TRUST would split the graph.
    """
    if memory_per_worker is not None:
        if workers is None or options.memory is not None:
            raise typer.BadParameter("--memory-per-worker requires --workers, and replaces --memory")
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
    output: Annotated[
        str, typer.Argument(metavar="OUT", help="File to write; its suffixes choose format and compression.")
    ],
    to: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Format to write. Default: chosen by the suffix of OUT."),
    ] = None,
    clean: Annotated[bool, typer.Option("--clean", help="Write the simple graph: each edge once, no loops.")] = False,
) -> None:
    """Write a graph in another format.

    Writes the pairs as they are, or with --clean each edge once. Lists of pairs do not contain vertices without an
    edge; mtx, metis and npz do. mtx and metis number the vertices by row; with --clean, rows follow the order of the
    labels, and the labels are lost. Labels that could not be read back are an error.
    """
    from wedgewise.cli.convert import convert_file, converted_text

    console = options.console()
    with options.stages():
        record = convert_file(options.graph_file(), output, to, clean, console.note)
    console.show(record, lambda: converted_text(record))


@app.command()
def algorithms(as_json: AsJson = False) -> None:
    """List the algorithms.

    Prints what each one answers, where it was published, its limits and its knobs.
    """
    found = wedgewise.algorithms()
    Console(as_json).show(objects.algorithms_object(found), lambda: text.algorithms_text(found))


@app.command()
def doctor(
    warm: Annotated[
        bool, typer.Option("--warm", help="Compile all kernels now, so that later runs need not wait.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check the installation.

    Prints versions, threads, memory, the kernel cache and the optional packages.
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
