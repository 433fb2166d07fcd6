"""``triangles``, ``support`` and ``truss --k`` of a store: rows to a file, a pipe or a reader, within ``--memory``.

Rows are never all in memory, but for those of vertices; whoever reads gets a summary.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from wedgewise.answer.disk import cut
from wedgewise.answer.room import Shortage
from wedgewise.answer.store_arrays import StoreQuestion, found_by_owners
from wedgewise.answer.store_results import KTruss, StoreAnswer, Triangles, Vertices
from wedgewise.answer.stores import open_for
from wedgewise.cli.answers import print_rows, say_written, write_table
from wedgewise.cli.console import put
from wedgewise.cli.options import Asking
from wedgewise.cli.partition import check_only_asks
from wedgewise.errors import InputError
from wedgewise.machine.progress import Tell
from wedgewise.report.objects import Object, written_object
from wedgewise.report.summary import triangles_text
from wedgewise.report.text import plural, result_text
from wedgewise.result import Result
from wedgewise.run.block_edges import vertices_with_edges
from wedgewise.store.open import Store, open_store
from wedgewise.write.answers import Answers, check_labels, rehearse_writer, watched

ENDS = {"triangles": 1, "edge_support": 2, "k_truss": 2}
MORE = "  --output writes every row to a file, a pipe gets all as text"


def answer_rows(
    question: str, asking: Asking, output: str | None, *, restart: bool, work: str | None, k: int | None
) -> None:
    """Ask a store for a row per vertex or edge, and hand the rows out."""
    check_only_asks(asking)
    if output is None and asking.as_json:
        raise InputError(f"{asking.file}: has more rows than one JSON object should; name a file by --output")
    options = asking.keeping(restart, work)
    asked = StoreQuestion(question, options, k, as_array=False, output=output, verify=asking.verify)
    with asking.console().stages() as tell:
        show = _hand_out(asked, asking.file, asking, tell)
    show()


def rows_from_disk(
    shortage: Shortage, asking: Asking, output: str | None, tell: Tell | None, k: int | None
) -> Callable[[], None]:
    """Cut a graph that memory has no room for, and hand its rows out from there; what is left to show."""
    with cut(shortage, tell) as blocks:
        asking.console().note(open_store(blocks.folder).manifest.cleaned.notes)
        asked = StoreQuestion(
            shortage.question.name, blocks.options, k, as_array=False, output=output, verify=asking.verify
        )
        return _hand_out(asked, blocks.folder, asking, tell, blocks.told)


def _hand_out(
    asked: StoreQuestion,
    folder: str | Path,
    asking: Asking,
    tell: Tell | None,
    told: Callable[[Result], Result] = lambda result: result,
) -> Callable[[], None]:
    """Write or print the rows; what is left to show then."""
    store, output = open_for(asked, folder), asked.output
    if output is not None:
        _check_output(output, store, ENDS[asked.name])
    with found_by_owners(asked, store, tell) as (found, result):
        result = told(result)
        if output is not None:
            table = _watched(found.table(store.labels()), tell)
            result, truss = write_table(table, output, result), _truss_object(found)
            return partial(_say_written, asking, written_object(result, output, table.rows), truss)
        if asking.console().is_read_by_a_person:
            return partial(put, _text(found, result, store))
        print_rows(found.table(store.labels()))
    return lambda: None


def _say_written(asking: Asking, written: Object, truss: Object) -> None:
    if truss and not (asking.quiet or asking.as_json):
        put(_truss_text(truss))
    say_written(asking, {**written, **truss})


def _check_output(output: str, store: Store, ends: int) -> None:
    """Refuse a file that could not hold the answer, and load what writes it."""
    check_labels(output, [] if store.manifest.label_kind == "text" else range(0), ends)
    rehearse_writer(output)


def _watched(table: Answers, tell: Tell | None) -> Answers:
    return table if tell is None else watched(table, lambda rows: tell("write", rows, table.rows))


def _text(found: StoreAnswer, result: Result, store: Store) -> str:
    """What a person reads."""
    if isinstance(found, Triangles):
        return triangles_text(replace(result, answer=found.array()), Vertices(store.labels()))
    if isinstance(found, KTruss):
        headline = _truss_text(_truss_object(found))
    else:
        headline = f"{plural((found.support or 0) // 3, 'triangle')} on {plural(result.m, 'edge')}"
    return f"{result_text(result, headline)}\n\n{MORE}"


def _truss_object(found: StoreAnswer) -> Object:
    """What a truss has; nothing of other answers."""
    if not isinstance(found, KTruss):
        return {}
    truss = found.truss
    vertices = vertices_with_edges(truss.blocks)
    return {"k": truss.k, "edges": truss.edges, "vertices": vertices, "rounds": truss.rounds}


def _truss_text(truss: Object) -> str:
    has = f"{plural(truss['edges'], 'edge')} and {plural(truss['vertices'], 'vertex', 'vertices')}"
    return f"{has} in the {truss['k']:,}-truss, found in {plural(truss['rounds'], 'round')}"
