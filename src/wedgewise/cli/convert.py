"""``wedgewise convert``: a graph file in another format."""

from __future__ import annotations

from wedgewise.api import SCHEMA
from wedgewise.cli.options import Reading
from wedgewise.read import read_edges
from wedgewise.report.objects import Object
from wedgewise.report.progress import Tell
from wedgewise.write import write_edges, writer_of


def convert_file(reading: Reading, output: str, to: str | None, clean: bool, tell: Tell | None) -> Object:
    """Write what is read to `output`; a format that cannot be written is refused before anything is read."""
    writer = writer_of(output, to)
    if clean:
        pairs, n = _write_clean(reading, output, to, writer.labels == "none", tell)
    else:
        pairs, n = _write_pairs(reading, output, to, tell), None
    return {
        "schema": SCHEMA,
        "source": reading.file,
        "output": output,
        "pairs": pairs,
        "n": n,
        "clean": clean,
    }


def _write_pairs(reading: Reading, output: str, to: str | None, tell: Tell | None) -> int:
    """The pairs in the order of the file: loops, copies and directions stay."""
    reading.announce(tell)
    found = read_edges(
        reading.file,
        format=reading.format,
        labels=reading.labels,
        limits=reading.caps(),
        threads=reading.threads,
    )
    vertices = None if found.names is not None else found.vertices
    return write_edges(found.pairs, output, format=to, labels=found.names, vertices=vertices)


def _write_clean(reading: Reading, output: str, to: str | None, by_row: bool, tell: Tell | None) -> tuple[int, int]:
    """Every edge once, under the labels of the file; a format of row numbers gets vertices 0 … n − 1."""
    graph, _ = reading.graph(tell)
    labels = None if by_row or isinstance(graph.labels, range) else graph.labels
    vertices = graph.n if labels is None else None
    return write_edges(graph.edges, output, format=to, labels=labels, vertices=vertices), graph.n
