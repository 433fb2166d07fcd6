"""What ``--json`` prints: one object per command, of plain numbers, strings, lists and dicts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms import ENGINE, find
from wedgewise.algorithms._contract import Algorithm, Shape
from wedgewise.answer_types import Truss, TrussLevel
from wedgewise.api import Result
from wedgewise.graph import Graph
from wedgewise.machine import hardware
from wedgewise.run.graph_memory import answering_bytes, held_bytes
from wedgewise.stages import Labels
from wedgewise.stages.labels import TextLabels, pick_labels

Object = dict[str, Any]


def to_json(record: Object) -> str:
    """The object on one line; fractions and paths as text."""
    import json

    return json.dumps(record, default=str, ensure_ascii=False)


def written_object(result: Result, output: str, rows: int) -> Object:
    """A result whose answer went into a file."""
    return {**replace(result, answer=0).to_dict(), "answer": None, "output": output, "rows": rows}


def label_rows(labels: Labels, vertices: NDArray[Any]) -> list[Any]:
    """The labels of rows of vertices, as lists."""
    if isinstance(labels, TextLabels | list):
        names = iter(pick_labels(labels, vertices.reshape(-1)))
        return [list(islice(names, vertices.shape[1])) for _ in vertices]
    found: list[Any] = (vertices if isinstance(labels, range) else labels[vertices]).tolist()
    return found


def truss_level(graph: Graph, truss: Truss) -> TrussLevel:
    """What one truss has."""
    from wedgewise.answer.truss_summary import components

    component_of = components(graph, truss.edges)
    vertices, found = int(np.count_nonzero(component_of >= 0)), int(component_of.max(initial=-1)) + 1
    return TrussLevel(truss.k, len(truss), vertices, found)


def graph_object(graph: Graph, threads: int | None = None) -> Object:
    """What can be said of a graph before anything is counted."""
    degrees = graph.degrees
    return {
        "source": graph.origin.name,
        "format": graph.origin.format,
        "notes": list(graph.origin.notes),
        "n": graph.n,
        "m": graph.m,
        "labels": labels_kind(graph.labels),
        "degree_least": int(degrees.min(initial=0 if graph.n == 0 else int(degrees[0]))),
        "degree_median": float(np.median(degrees)) if graph.n else 0.0,
        "degree_largest": int(degrees.max(initial=0)),
        "isolated": int(np.count_nonzero(degrees == 0)),
        "wedges": graph.paths,
        "cleaned": asdict(graph.cleaned),
        "graph_bytes": graph.nbytes,
        "count_bytes": predicted_bytes(graph, threads),
    }


def labels_kind(labels: Labels) -> str:
    """What the vertices are called: "numbers" 0 … n − 1, other "integers", or "text"."""
    if isinstance(labels, range):
        return "numbers"
    return "text" if isinstance(labels, TextLabels | list) else "integers"


def predicted_bytes(graph: Graph, threads: int | None = None) -> int:
    """Memory that a count takes beyond the graph: that of orienting, or of counting if it is more."""
    engine = find(ENGINE, "cpu")
    n, m, threads = graph.n, graph.m, hardware.granted_threads(threads)
    counting = engine.on_cpu("count").bytes_needed(Shape(n, m), threads, engine.settings(None))
    return answering_bytes(n, m, threads, counting) - held_bytes("simple graph", n, m)


def algorithms_object(algorithms: Iterable[Algorithm]) -> Object:
    """What every algorithm declares, without its functions."""
    declared = [
        {
            "name": algorithm.name,
            "device": algorithm.device,
            "unit": algorithm.unit,
            "answers": list(algorithm.answers),
            "paper": algorithm.paper,
            "summary": algorithm.summary,
            "limits": algorithm.limits,
            "orders": list(algorithm.orders),
            "relabellings": list(algorithm.relabellings),
            "knobs": [asdict(knob) for knob in algorithm.knobs],
            "compiled": algorithm.compiled,
        }
        for algorithm in algorithms
    ]
    return {"algorithms": declared}
