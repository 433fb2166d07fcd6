"""``triangles``, ``support`` and ``truss --k`` of a store: rows to a file, a pipe or a reader, within ``--memory``.

Rows are never all in memory, but for those of vertices; whoever reads gets a summary.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from wedgewise.answer.found import Answered
from wedgewise.answer.store_results import KTruss, StoreAnswer, Triangles, Vertices
from wedgewise.cli.console import put
from wedgewise.cli.handing_out import print_rows, say_written, write_table
from wedgewise.cli.options import Asking
from wedgewise.machine.progress import Tell
from wedgewise.report.objects import Object, written_object
from wedgewise.report.summary import triangles_text
from wedgewise.report.text import plural, result_text
from wedgewise.result import Result
from wedgewise.run.block_edges import vertices_with_edges
from wedgewise.write.answers import Answers, watched

MORE = "  --output writes every row to a file, a pipe gets all as text"


def hand_out(found: Answered, asking: Asking, output: str | None, tell: Tell | None) -> Callable[[], None]:
    """Write or print the rows that are on disk; what is left to show then."""
    stored, result = found.stored, found.result
    assert stored is not None
    assert found.table is not None
    if output is not None:
        table = _watched(found.table(), tell)
        result, truss = write_table(table, output, result), _truss_object(stored)
        return partial(_say_written, asking, written_object(result, output, table.rows), truss)
    if asking.console().is_read_by_a_person:
        return partial(put, _text(stored, result))
    print_rows(found.table())
    return lambda: None


def _say_written(asking: Asking, written: Object, truss: Object) -> None:
    if truss and not (asking.quiet or asking.as_json):
        put(_truss_text(truss))
    say_written(asking, {**written, **truss})


def _watched(table: Answers, tell: Tell | None) -> Answers:
    return table if tell is None else watched(table, lambda rows: tell("write", rows, table.rows))


def _text(found: StoreAnswer, result: Result) -> str:
    """What a person reads."""
    if isinstance(found, Triangles):
        return triangles_text(replace(result, answer=found.array()), Vertices(found.source.labels()))
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
