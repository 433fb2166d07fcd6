"""``wedgewise demo``: a real graph counted, verified, and looked at."""

from __future__ import annotations

import time
from dataclasses import asdict

import numpy as np

import wedgewise
from wedgewise.datasets import BUNDLED, bundled
from wedgewise.graph import Graph
from wedgewise.report.objects import Object
from wedgewise.report.summary import largest
from wedgewise.report.text import facts_text, histogram_text, range_text, seconds_text

NAME = "email-Enron"
COMPARED = ("keystone", "forward")
REPEATS = 5
HUBS = 5


def demonstrate() -> Object:
    """Count the bundled graph, recount it by another method, time two algorithms, and look at its degrees."""
    facts = BUNDLED[NAME]
    begin = time.perf_counter()
    graph = wedgewise.read(bundled(NAME))
    read_seconds = time.perf_counter() - begin
    result = wedgewise.run("count", graph, verify=True)
    hubs = largest(graph.degrees.astype(np.int64), HUBS)
    octaves = np.bincount(np.log2(graph.degrees[graph.degrees > 0]).astype(np.int64))  # degrees from 2^i to 2^(i+1) − 1
    return {
        "dataset": asdict(facts),
        "answer": result.answer,
        "matches_published": (graph.n, graph.m, result.answer) == (facts.n, facts.m, facts.triangles),
        "n": graph.n,
        "m": graph.m,
        "verified": result.verified,
        "algorithm": result.algorithm,
        "seconds": {"read and clean": read_seconds, **result.seconds},
        "wedges": graph.paths,
        "transitivity": 3 * result.answer / graph.paths,
        "compared_seconds": {name: _best_seconds(graph, name) for name in COMPARED},
        "hubs": [{"label": int(graph.labels[v]), "degree": int(graph.degrees[v])} for v in hubs],
        "degrees": [{"least": 2**octave, "vertices": int(count)} for octave, count in enumerate(octaves)],
    }


def _best_seconds(graph: Graph, algorithm: str) -> float:
    """Counting alone, kernels loaded and graph prepared: the best of a few."""
    runs = [wedgewise.run("count", graph, algorithm=algorithm) for _ in range(REPEATS + 1)]
    return min(run.seconds["count"] for run in runs[1:])


def demo_text(record: Object) -> str:
    """The demonstration as a person reads it."""
    dataset = record["dataset"]
    published = "as published" if record["matches_published"] else f"but {dataset['triangles']:,} are PUBLISHED"
    slow, fast = max(record["compared_seconds"].values()), min(record["compared_seconds"].values())
    compared = ", ".join(f"{name} {seconds * 1000:.1f} ms" for name, seconds in record["compared_seconds"].items())
    facts = [
        ("graph", f"{dataset['name']}: {dataset['summary']}"),
        ("source", dataset["source"]),
        ("vertices", f"{record['n']:,}"),
        ("edges", f"{record['m']:,}"),
        ("triangles", f"{record['answer']:,}, {published}"),
        ("verified", f"{record['verified']}: the same integer"),
        ("transitivity", f"{record['transitivity']:.4f} = 3 × triangles / {record['wedges']:,} wedges"),
        ("seconds", f"{seconds_text(record['seconds'])}, first use in this process"),
        ("compared", f"counting alone: {compared} ({slow / fast:.1f}×)"),
        ("hubs", ", ".join(f"{hub['label']} (degree {hub['degree']:,})" for hub in record["hubs"])),
    ]
    octaves = [
        (f"degree {range_text(row['least'], 2 * row['least'] - 1)}", row["vertices"]) for row in record["degrees"]
    ]
    return f"{record['answer']:,} triangles\n\n{facts_text(facts)}\n\n{histogram_text(octaves)}"
