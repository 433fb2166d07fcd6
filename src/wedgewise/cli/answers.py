"""``triangles``, ``support``, ``clustering``, ``truss`` and ``list``: answers of many rows, to a file, a pipe or a
reader."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from wedgewise.answer.answering import answer, answered
from wedgewise.answer.found import Answered
from wedgewise.answer.questions import stretch_of
from wedgewise.answer.source import GraphFile
from wedgewise.answer_types import Truss
from wedgewise.api import Result
from wedgewise.cli import stores
from wedgewise.cli.console import put
from wedgewise.cli.handing_out import print_rows, say_written, write_table
from wedgewise.cli.options import Asking, announce, refuse_store
from wedgewise.errors import InputError
from wedgewise.graph import Graph
from wedgewise.machine.progress import Tell
from wedgewise.report import summary
from wedgewise.report.objects import Object, label_rows, to_json, truss_level, written_object
from wedgewise.run.request import LISTING, OBJECT, TABLE
from wedgewise.stages.labels import TextLabels
from wedgewise.store.manifest import is_store
from wedgewise.write.answers import answer_writer, per_triangle


@dataclass(frozen=True, slots=True)
class Shown:
    """What is shown of an answer that is in memory: the keys that its JSON adds, and its summary."""

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


SHOWN = {
    "triangles": Shown(_vertices, summary.triangles_text),
    "edge_support": Shown(_edges, summary.support_text),
    "clustering": Shown(_vertices, summary.clustering_text),
    "trussness": Shown(_edges_and_levels, summary.trussness_text),
    "k_truss": Shown(_edges_of_truss, summary.truss_text),
    "max_truss": Shown(_edges_of_truss, summary.truss_text),
}


def answer_rows(
    question: str,
    asking: Asking,
    output: str | None,
    details: Mapping[str, Any] = MappingProxyType({}),
    source: GraphFile | None = None,
    **more: Any,
) -> None:
    """Ask a question with a row per vertex or edge, and hand its answer out; `more` are fields of `Request`."""
    if is_store(asking.file):
        store = asking.only_asks()
        if output is None and asking.as_json:
            raise InputError(f"{store}: has more rows than one JSON object should; name a file by --output")
    with asking.console().stages() as tell:
        if output is not None:
            answer_writer(output)
        given = asking.file if is_store(asking.file) else source or asking.graph_file()
        announce(asking.file, tell)
        rows = OBJECT if asking.as_json and output is None else TABLE
        more |= {"progress": tell, "verify": asking.verify, "rows": rows, "output": output}
        with answered(asking.request(question, given, details, **more)) as found:
            asking.console().note(found.result.cleaned.notes)
            show = _hand_out(found, asking, output, tell)
    show()


def _hand_out(found: Answered, asking: Asking, output: str | None, tell: Tell | None) -> Callable[[], None]:
    """Write or print the rows, those on disk now; what is left to show then."""
    if found.stored is not None:
        return stores.hand_out(found, asking, output, tell)
    if output is None:
        return partial(_show, found, asking)
    assert found.table is not None
    table = found.table()
    result = write_table(table, output, found.result)
    return partial(say_written, asking, written_object(result, output, table.rows))


def _show(found: Answered, asking: Asking) -> None:
    """Hand out what is in memory."""
    result, shown = found.result, SHOWN[found.result.question]
    graph = cast(Graph, result.graph)
    if asking.as_json:
        put(to_json({**result.to_dict(), **shown.belongs_to(graph, result.answer)}))
    elif asking.console().is_read_by_a_person:
        put(shown.summary(result, graph))
    else:
        assert found.table is not None
        print_rows(found.table())


def answer_clustering(asking: Asking, output: str | None, undefined: str, directed: bool, combine: str) -> None:
    """Clustering coefficients; a summary tells undefined ones and zeros apart by itself."""
    refuse_store(asking.file)
    undefined = "nan" if _is_summarised(asking, output) else undefined
    details = {"undefined": undefined, "weighted": asking.weight is not None}
    answer_rows("clustering", asking, output, details, asking.graph_file(directed=directed, combine=combine))


def list_rows(asking: Asking, output: str | None, start: int, stop: int | None, batch: int) -> None:
    """Count the triangles, so that all that follows knows how many will come, then list the wanted ones."""
    with asking.console().stages() as tell:
        if output is not None:
            answer_writer(output)
        refuse_store(asking.file)
        announce(asking.file, tell)
        asked = {"progress": tell, "verify": asking.verify, "rows": LISTING, "output": output}
        result = answer(asking.request("list_triangles", asking.graph_file(), {}, **asked))
        asking.console().note(result.cleaned.notes)
        listing, graph = result.answer, cast(Graph, result.graph)
        total = listing.total
        result = replace(result, answer=total)
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


def _watched(batches: Iterator[Any], total: int, tell: Tell | None) -> Iterator[Any]:
    """The same batches, each reported when it was taken."""
    done = 0
    for batch in batches:
        yield batch
        done += len(batch)
        if tell is not None:
            tell("list", done, total)
