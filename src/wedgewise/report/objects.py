"""What ``--json`` prints: one object per command, of plain numbers, strings, lists and dicts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.algorithms import ENGINE, registry
from wedgewise.algorithms._contract import Algorithm, Shape
from wedgewise.answer_types import Truss, TrussLevel
from wedgewise.api import SCHEMA, Result
from wedgewise.graph import Graph
from wedgewise.machine import hardware
from wedgewise.run.choose import orient_bytes
from wedgewise.run.plan import Plan
from wedgewise.stages import CleanReport, Labels
from wedgewise.stages.labels import TextLabels, pick_labels

if TYPE_CHECKING:
    from wedgewise.generate.stream import Generator

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


def plan_object(plan: Plan, cleaned: CleanReport | None) -> Object:
    """Every field of a plan, its reasons included; and what was read, where something was."""
    return {"schema": SCHEMA, **asdict(plan), "cleaned": None if cleaned is None else asdict(cleaned)}


def graph_object(graph: Graph, threads: int | None = None) -> Object:
    """What can be said of a graph before anything is counted."""
    degrees = graph.degrees
    return {
        "schema": SCHEMA,
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
        "wedges": count_wedges(degrees),
        "cleaned": asdict(graph.cleaned),
        "graph_bytes": graph.nbytes,
        "count_bytes": predicted_bytes(graph, threads),
    }


def labels_kind(labels: Labels) -> str:
    """What the vertices are called: "numbers" 0 … n − 1, other "integers", or "text"."""
    if isinstance(labels, range):
        return "numbers"
    return "text" if isinstance(labels, TextLabels | list) else "integers"


def count_wedges(degrees: NDArray[Any]) -> int:
    """Paths of two edges: the sum of C(d, 2) over all vertices, as an exact integer."""
    values, counts = np.unique(degrees, return_counts=True)
    return sum(int(count) * (int(d) * (int(d) - 1) // 2) for d, count in zip(values, counts, strict=True))


def predicted_bytes(graph: Graph, threads: int | None = None) -> int:
    """Memory that a count takes beyond the graph: that of orienting, or of counting if it is more."""
    engine = registry()[ENGINE, "cpu"]
    shape = Shape(graph.n, graph.m)
    oriented = 4 * graph.m + 12 * graph.n
    counting = engine.on_cpu("count").bytes_needed(shape, hardware.granted_threads(threads), engine.settings(None))
    return max(orient_bytes(graph.n, graph.m, hardware.usable_threads()), oriented + counting)


def algorithm_object(algorithm: Algorithm) -> Object:
    """What an algorithm declares, without its functions."""
    return {
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


def algorithms_object(algorithms: Iterable[Algorithm]) -> Object:
    """Every algorithm."""
    return {"schema": SCHEMA, "algorithms": [algorithm_object(algorithm) for algorithm in algorithms]}


def generators_object(generators: Iterable[Generator]) -> Object:
    """Every family of graphs with its parameters."""
    families = [
        {
            "name": generator.name,
            "summary": generator.summary,
            "parameters": [asdict(parameter) for parameter in generator.parameters],
        }
        for generator in generators
    ]
    return {"schema": SCHEMA, "generators": families}
