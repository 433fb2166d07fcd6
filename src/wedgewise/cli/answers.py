"""``triangles``, ``support``, ``clustering``, ``truss`` and ``list``: answers of many rows, to a file, a pipe or a
reader.

The rows of a store are never all in memory, but for those of vertices; whoever reads gets a summary.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import asdict, replace
from types import MappingProxyType
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from wedgewise.answer.answering import answer, respond
from wedgewise.answer.response import ResultWithRows
from wedgewise.answer.store_results import (
    Clustering,
    KTruss,
    StoreGraph,
    Supports,
    Triangles,
    Trussness,
    Vertices,
    vertices_with_edges,
)
from wedgewise.answer_types import Similarity, TopSimilar, Truss
from wedgewise.api import Result
from wedgewise.cli.console import put, put_rows, say
from wedgewise.cli.options import QuestionOptions
from wedgewise.graph import Graph
from wedgewise.machine.parameters import stretch_of
from wedgewise.machine.progress import Progress
from wedgewise.report import summary
from wedgewise.report.objects import Object, label_rows, to_json, truss_level, written_object
from wedgewise.report.text import plural, result_text
from wedgewise.run.request import LISTING, OBJECT, TABLE
from wedgewise.stages.labels import TextLabels
from wedgewise.write.answers import Answers, per_triangle, row_speller, watched, write_answers

PRINTED_VERTICES = 1 << 14  # whose partners are found and printed at a time
MORE = "  --output writes all rows to a file, a pipe prints all as text"


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


def _pairs(graph: Graph, found: Similarity | TopSimilar) -> Object:
    return {"pairs": label_rows(graph.labels, found.ends)}


SHOWN: dict[str, tuple[Callable[[Graph, Any], Object], Callable[[Result, Graph], str]]] = {
    "triangles": (_vertices, summary.triangles_text),
    "edge_support": (_edges, summary.support_text),
    "clustering": (_vertices, summary.clustering_text),
    "trussness": (_edges_and_levels, summary.trussness_text),
    "k_truss": (_edges_of_truss, summary.truss_text),
    "max_truss": (_edges_of_truss, summary.truss_text),
    "similarity": (_pairs, summary.similarity_text),
    "top_similar": (_pairs, summary.similarity_text),
}
"""What is shown of an answer that is in memory: the keys that its JSON adds, and its summary."""


def answer_rows(
    question: str,
    options: QuestionOptions,
    output: str | None,
    details: Mapping[str, Any] = MappingProxyType({}),
    **more: Any,
) -> None:
    """Ask a question with a row per vertex or edge, and show or write its answer; `more` are fields of `Request`."""
    rows, text = OBJECT if options.as_json and output is None else TABLE, ""
    with options.stages() as progress, ExitStack() as held:
        more |= {"progress": progress, "verify": options.verify, "rows": rows, "output": output}
        found = respond(options.request(question, details, **more), held)
        result, graph = found.result, cast(Graph, found.result.graph)
        options.console().note(result.cleaned.notes)
        if rows == OBJECT:
            record = {**result.to_dict(), **SHOWN[question][0](graph, result.answer)}
        elif _is_summarised(options, output):
            text = SHOWN[question][1](result, graph) if found.stored is None else _store_text(found)
        else:
            assert found.table is not None
            table = found.table()
            if output is None:
                _print_rows(table)
            else:
                result = _write_table(_watched(table, "write", progress), output, result)
                record = {**written_object(result, output, table.rows), **_store_truss(found)}
                text = _written_text(options, record)
    if options.as_json:
        put(to_json(record))
    elif text:
        put(text)


def _store_text(found: ResultWithRows) -> str:
    """What a person reads of an answer whose rows are on disk."""
    stored, result = found.stored, found.result
    if isinstance(stored, Clustering):
        return summary.clustering_text(replace(result, answer=stored.array()), StoreGraph(stored.source))
    if isinstance(stored, Triangles):
        return summary.triangles_text(replace(result, answer=stored.array()), Vertices(stored.source.labels()))
    if isinstance(stored, Supports):
        headline = f"{plural((stored.support or 0) // 3, 'triangle')} on {plural(result.m, 'edge')}"
    elif isinstance(stored, Trussness):
        headline = f"largest truss number {stored.largest:,}, found in {plural(stored.last.number, 'round')}"
    else:
        headline = _truss_text(_store_truss(found))
    return f"{result_text(result, headline)}\n\n{MORE}"


def _store_truss(found: ResultWithRows) -> Object:
    """What a truss whose edges are on disk has; nothing of other answers."""
    if not isinstance(found.stored, KTruss):
        return {}
    truss = found.stored.truss
    vertices = vertices_with_edges(truss.blocks)
    return {"k": truss.k, "edges": truss.edges, "vertices": vertices, "rounds": truss.rounds}


def _truss_text(truss: Object) -> str:
    has = f"{plural(truss['edges'], 'edge')} and {plural(truss['vertices'], 'vertex', 'vertices')}"
    return f"{has} in the {truss['k']:,}-truss, found in {plural(truss['rounds'], 'round')}"


def answer_clustering(
    options: QuestionOptions, output: str | None, undefined: str, read: Mapping[str, Any], **more: Any
) -> None:
    """Clustering coefficients; a summary tells undefined ones and zeros apart by itself."""
    undefined = "nan" if _is_summarised(options, output) else undefined
    details = {"undefined": undefined, "weighted": options.weight is not None}
    answer_rows("clustering", options, output, details, read=read, **more)


def print_partners(options: QuestionOptions, details: Mapping[str, Any]) -> None:
    """Print the partners of one range of vertices after the other; whoever interrupts learns where it stopped."""
    at, last = details["start"], details["stop"]
    with options.stages() as progress:
        how: dict[str, Any] = {"progress": progress, "verify": options.verify, "rows": TABLE}
        request = options.request("top_similar", {**details, "stop": at}, **how)
        with ExitStack() as held:
            found = respond(request, held)
        options.console().note(found.result.cleaned.notes)
        graph = cast(Graph, found.result.graph)
        at, last = stretch_of(at, last, graph.n, "vertices")
        try:
            for begin in range(at, last, PRINTED_VERTICES):
                part = {**details, "start": begin, "stop": min(begin + PRINTED_VERTICES, last)}
                with ExitStack() as held:
                    table = respond(replace(request, source=graph, details={**request.details, **part}), held).table
                    assert table is not None
                    _print_rows(table())
                at = part["stop"]
        except KeyboardInterrupt:
            say(f"the partners of the first {at:,} vertices were printed; --start {at} continues after them")
            raise


def list_rows(options: QuestionOptions, output: str | None, start: int, stop: int | None, batch: int) -> None:
    """Count the triangles, so that all that follows knows how many will come, then list the wanted ones."""
    text = ""
    with options.stages() as progress:
        how: dict[str, Any] = {"progress": progress, "verify": options.verify, "rows": LISTING, "output": output}
        result = answer(options.request("list_triangles", {}, **how))
        options.console().note(result.cleaned.notes)
        listing, graph = result.answer, cast(Graph, result.graph)
        total = listing.total
        result = replace(result, answer=total)
        begin, end = stretch_of(start, stop, total, "triangles")
        extent = {"total": total, "start": begin, "stop": end}
        if _is_summarised(options, output):
            end = min(end, begin + summary.TOP)
        batches = listing.batches(begin, end, batch)
        table = _watched(per_triangle(graph.labels, end - begin, batches), "list", progress)
        if output is not None:
            result = _write_table(table, output, result)
            record = {**written_object(result, output, table.rows), **extent}
            text = _written_text(options, record)
        elif options.as_json or _is_summarised(options, output):
            found = label_rows(graph.labels, np.concatenate([np.empty((0, 3), np.uint32), *batches]))
            record = {**result.to_dict(), "answer": found, **extent}
            text = "" if options.as_json else summary.listing_text(result, found, total, begin)
        else:
            _print_rows(table, begin)
    if options.as_json:
        put(to_json(record))
    elif text:
        put(text)


def _is_summarised(options: QuestionOptions, output: str | None) -> bool:
    return output is None and not options.as_json and options.console().is_read_by_a_person


def _watched(table: Answers, stage: str, progress: Progress | None) -> Answers:
    return table if progress is None else watched(table, lambda rows: progress(stage, rows, table.rows))


def _write_table(table: Answers, output: str, result: Result) -> Result:
    """Write the file; the result with the seconds of that."""
    begin = time.perf_counter()
    write_answers(table, output)
    return replace(result, seconds={**result.seconds, "write": time.perf_counter() - begin})


def _written_text(options: QuestionOptions, record: Object) -> str:
    """What is said of rows that are in a file; of a truss, what it has as well."""
    has = [_truss_text(record)] if "k" in record else []
    return "" if options.quiet else "\n".join([*has, f"{record['rows']:,} rows written to {record['output']}"])


def _print_rows(table: Answers, number: int | None = None) -> None:
    """Print rows as text between tabs; whoever interrupts a listing from `number` on learns where it stopped."""
    spell_rows = row_speller(table, "\t")
    printed = 0
    try:
        for block in table.small_blocks():
            put_rows(spell_rows(block))
            printed += len(block[0])
    except KeyboardInterrupt:
        if number is not None:
            say(f"{printed:,} triangles were printed; --start {number + printed} continues after them")
        raise
