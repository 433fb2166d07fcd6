"""``triangles``, ``support``, ``clustering``, ``truss`` and ``list``: answers of many rows, to a file, a pipe or a
reader."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.answer.answering import answer, answer_in_memory
from wedgewise.answer.questions import find_question, stretch_of
from wedgewise.answer.room import Shortage, graph_of, in_memory, source_of
from wedgewise.answer_types import Truss
from wedgewise.api import Result
from wedgewise.cli.console import put, put_rows, say
from wedgewise.cli.options import Asking, Reading
from wedgewise.errors import MemoryLimitError
from wedgewise.graph import Graph
from wedgewise.machine.progress import Tell
from wedgewise.report import summary
from wedgewise.report.objects import Object, label_rows, to_json, truss_level, written_object
from wedgewise.run.plan import Options
from wedgewise.stages.labels import TextLabels
from wedgewise.write.answers import (
    Answers,
    answer_writer,
    check_labels,
    per_edge,
    per_triangle,
    per_vertex,
    row_speller,
    some_edges,
    with_value,
    write_answers,
)


@dataclass(frozen=True, slots=True)
class Rows:
    """A question with a row per vertex or per edge: its table, the keys that its JSON adds, and its summary."""

    question: str
    column: str
    ends: int
    table: Callable[[Graph, str, Any], Answers]
    belongs_to: Callable[[Graph, Any], Object]
    summary: Callable[[Result, Graph], str]


def _vertices(graph: Graph, _values: NDArray[Any]) -> Object:
    labels = graph.labels
    return {"labels": labels.tolist() if isinstance(labels, np.ndarray | TextLabels) else list(labels)}


def _edges(graph: Graph, _values: NDArray[Any]) -> Object:
    return {"edges": label_rows(graph.labels, graph.edges)}


def _edges_and_levels(graph: Graph, numbers: NDArray[np.int64]) -> Object:
    from wedgewise.answer.truss_summary import summarise

    return {**_edges(graph, numbers), "levels": [asdict(level) for level in summarise(graph, numbers)]}


def _edges_of_truss(graph: Graph, truss: Truss) -> Object:
    edges = label_rows(graph.labels, graph.edges[truss.edges])
    return {"answer": {"k": truss.k, "edges": edges}, "levels": [asdict(truss_level(graph, truss))]}


def _truss_table(graph: Graph, _column: str, truss: Truss) -> Answers:
    return some_edges(graph, truss.edges)


def _largest_truss_table(graph: Graph, column: str, truss: Truss) -> Answers:
    """The rows that every edge's truss number has of the largest one."""
    return with_value(some_edges(graph, truss.edges), column, truss.k)


TRIANGLES = Rows("triangles", "triangles", 1, per_vertex, _vertices, summary.triangles_text)
SUPPORT = Rows("edge_support", "support", 2, per_edge, _edges, summary.support_text)
CLUSTERING = Rows("clustering", "clustering", 1, per_vertex, _vertices, summary.clustering_text)
TRUSSNESS = Rows("trussness", "truss", 2, per_edge, _edges_and_levels, summary.trussness_text)
K_TRUSS = Rows("k_truss", "truss", 2, _truss_table, _edges_of_truss, summary.truss_text)
MAX_TRUSS = Rows("max_truss", "truss", 2, _largest_truss_table, _edges_of_truss, summary.truss_text)


def answer_rows(
    rows: Rows, asking: Asking, output: str | None, options: Options, reading: Reading | None = None, **details: Any
) -> None:
    """Ask a question with a row per vertex or edge, and hand its answer out."""
    console = asking.console()
    with console.stages() as tell:
        found = _ask(rows, asking, output, options, reading or asking.reading(), tell, details)
        if isinstance(found, Shortage):
            show = _rows_from_disk(found, asking, output, tell, details)
        else:
            console.note(found.result.cleaned.notes)
            if output is not None:
                found = replace(found, result=write_table(found.table, output, found.result))
            show = partial(_show, rows, asking, output, found)
    show()


@dataclass(frozen=True, slots=True)
class _Found:
    """The answer to a question, with its rows."""

    graph: Graph
    result: Result
    table: Answers


def _ask(
    rows: Rows,
    asking: Asking,
    output: str | None,
    options: Options,
    reading: Reading,
    tell: Tell | None,
    details: Mapping[str, Any],
) -> _Found | Shortage:
    """The answer, or why there is no room for it and its rows in memory; a graph that is held goes on by itself."""
    if output is not None:
        answer_writer(output)
    source, question = reading.source(), find_question(rows.question)
    reading.announce(tell)
    begin = time.perf_counter()
    held = source_of(source, options)
    ask = answer if isinstance(held, Graph) else answer_in_memory

    def work() -> _Found:
        graph = graph_of(held, options)
        seconds = time.perf_counter() - begin - graph.device_seconds
        if output is not None:
            check_labels(output, graph.labels, rows.ends)
        result = ask(question, graph, options, tell, asking.verify, details)
        result = replace(result, seconds={"read and clean": seconds, **result.seconds})
        return _Found(graph, result, rows.table(graph, rows.column, result.answer))

    return work() if isinstance(held, Graph) else in_memory(question, held, options, work)


def _rows_from_disk(
    shortage: Shortage, asking: Asking, output: str | None, tell: Tell | None, details: Mapping[str, Any]
) -> Callable[[], None]:
    """Hand the rows out from disk; what is left to show."""
    from wedgewise.cli.stores import rows_from_disk

    if output is None and asking.as_json:
        raise MemoryLimitError(f"{shortage.refusal}; with --output, rows are written from disk")
    return rows_from_disk(shortage, asking, output, tell, details.get("k"))


def _show(rows: Rows, asking: Asking, output: str | None, found: _Found) -> None:
    """Say what was written, or hand out what was not."""
    graph, result = found.graph, found.result
    if output is not None:
        say_written(asking, written_object(result, output, found.table.rows))
    elif asking.as_json:
        put(to_json({**result.to_dict(), **rows.belongs_to(graph, result.answer)}))
    elif asking.console().is_read_by_a_person:
        put(rows.summary(result, graph))
    else:
        print_rows(found.table)


def answer_clustering(asking: Asking, output: str | None, undefined: str, reading: Reading) -> None:
    """Clustering coefficients; a summary tells undefined ones and zeros apart by itself."""
    undefined = "nan" if _is_summarised(asking, output) else undefined
    details = {"undefined": undefined, "weighted": asking.weight is not None}
    answer_rows(CLUSTERING, asking, output, Options(**asking.how()), reading, **details)


def list_rows(asking: Asking, output: str | None, start: int, stop: int | None, batch: int) -> None:
    """Count the triangles, so that all that follows knows how many will come, then list the wanted ones."""
    with asking.console().stages() as tell:
        if output is not None:
            answer_writer(output)
        graph, seconds = asking.reading().graph(tell)
        asking.console().note(graph.cleaned.notes)
        if output is not None:
            check_labels(output, graph.labels, 3)
        result, listing = asking.open_listing(graph, seconds, tell)
        total = listing.total
        begin, end = stretch_of(start, stop, total)
        extent = {"total": total, "start": begin, "stop": end}
        if _is_summarised(asking, output):
            end = min(end, begin + summary.TOP)
        batches = listing.batches(begin, end, batch)
        table = per_triangle(graph.labels, end - begin, _watched(batches, end - begin, tell))
        if output is not None:
            result = write_table(table, output, result)
        elif asking.as_json or _is_summarised(asking, output):
            found = label_rows(graph.labels, np.concatenate([np.empty((0, 3), np.uint32), *batches]))
        else:
            print_rows(table, begin)
    if output is not None:
        say_written(asking, {**written_object(result, output, table.rows), **extent})
    elif asking.as_json:
        put(to_json({**result.to_dict(), "answer": found, **extent}))
    elif _is_summarised(asking, output):
        put(summary.listing_text(result, found, total, begin))


def _is_summarised(asking: Asking, output: str | None) -> bool:
    return output is None and not asking.as_json and asking.console().is_read_by_a_person


def write_table(table: Answers, output: str, result: Result) -> Result:
    """Write the file; the result with the seconds of that."""
    begin = time.perf_counter()
    write_answers(table, output)
    return replace(result, seconds={**result.seconds, "write": time.perf_counter() - begin})


def say_written(asking: Asking, record: Object) -> None:
    """Say that the rows are in a file."""
    if asking.as_json:
        put(to_json(record))
    elif not asking.quiet:
        put(f"{record['rows']:,} rows written to {record['output']}")


def print_rows(table: Answers, number: int | None = None) -> None:
    """Print rows as text between tabs; whoever interrupts a listing from `number` on learns where it stopped."""
    spell_rows = row_speller(table, "\t")
    printed = 0
    try:
        for block in table.small_blocks():
            put_rows(spell_rows(block))
            printed += len(block[0])
    except KeyboardInterrupt:
        if number is not None:
            say(f"{printed:,} triangles were printed; --start {number + printed} goes on behind them")
        raise


def _watched(batches: Iterator[Any], total: int, tell: Tell | None) -> Iterator[Any]:
    """The same batches, each reported when it was taken."""
    done = 0
    for batch in batches:
        yield batch
        done += len(batch)
        if tell is not None:
            tell("list", done, total)
