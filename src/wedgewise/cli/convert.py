"""``wedgewise convert``: a graph file in another format."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

import numpy as np

from wedgewise.answer.source import GraphFile
from wedgewise.read import read_edges
from wedgewise.report.objects import Object
from wedgewise.stages import EdgeList
from wedgewise.write.edges import Writer, write_edges, writer_of

Note = Callable[[Iterable[str]], None]
STEP_PAIRS = 1 << 20
ALL_ROWS = "a label is the number of its row, and every row is a vertex; --clean writes those with a label alone"
NO_LABELS = "rows are in the order of the labels, which this format does not hold"


def convert_file(source: GraphFile, output: str, to: str | None, clean: bool, note: Note) -> Object:
    """Write what is read to `output`; a format that cannot be written is refused before anything is read."""
    writer = writer_of(output, to)
    write = _write_clean if clean else _write_pairs
    pairs, n, notes = write(source, output, to, writer, note)
    return {
        "source": os.fspath(source.path),
        "output": output,
        "pairs": pairs,
        "n": n,
        "clean": clean,
        "notes": notes,
    }


def converted_text(record: Object) -> str:
    """What is said of a file that was written."""
    return "\n".join((f"{record['pairs']:,} pairs written to {record['output']}", *record["notes"]))


def _write_pairs(
    source: GraphFile, output: str, to: str | None, writer: Writer, note: Note
) -> tuple[int, None, list[str]]:
    """The pairs in the order of the file: loops, copies and directions stay."""
    found = read_edges(
        source.path,
        format=source.format,
        labels=source.labels,
        columns=source.columns,
        limits=source.limits,
        threads=source.threads,
    )
    note(found.origin.notes)
    vertices = None if found.names is not None else found.vertices
    pairs = write_edges(found.pairs, output, format=to, labels=found.names, vertices=vertices)
    if vertices is None:
        return pairs, None, [ALL_ROWS] if writer.labels == "none" else []
    return pairs, None, [] if writer.holds_vertices else _left_out(_without_pair(found, vertices))


def _write_clean(
    source: GraphFile, output: str, to: str | None, writer: Writer, note: Note
) -> tuple[int, int, list[str]]:
    """Every edge once, under the labels of the file; a format of row numbers gets vertices 0 … n − 1."""
    graph = source.graph("auto")
    note(graph.cleaned.notes)
    by_row, is_numbered = writer.labels == "none", isinstance(graph.labels, range)
    labels = None if by_row or is_numbered else graph.labels
    vertices = graph.n if labels is None else None
    keeps_all = writer.holds_vertices and vertices is not None
    notes = [] if keeps_all else _left_out(int(np.count_nonzero(graph.degrees == 0)))
    if by_row and not is_numbered:
        notes.append(NO_LABELS)
    return write_edges(graph.edges, output, format=to, labels=labels, vertices=vertices), graph.n, notes


def _left_out(vertices: int) -> list[str]:
    if not vertices:
        return []
    return [f"{vertices:,} vertices without an edge are not in it; .npz, .mtx and .metis hold them"]


def _without_pair(found: EdgeList, vertices: int) -> int:
    """How many vertices are in no pair."""
    is_there = np.zeros(vertices, np.bool_)
    for begin in range(0, len(found.pairs), STEP_PAIRS):
        is_there[found.pairs[begin : begin + STEP_PAIRS]] = True
    return vertices - int(np.count_nonzero(is_there))
