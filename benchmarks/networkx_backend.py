"""NetworkX by itself and through the wedgewise backend, on one graph, in one run.

    python benchmarks/networkx_backend.py [GRAPH] [--repeats 5]

`cold` converts the graph, prepares it and answers; `cached` answers on the conversion that NetworkX kept. Cold runs
start from a graph without a conversion, in a process that has loaded its kernels. NetworkX is timed once where it takes
longer than a second. Answers are compared before they are timed; the listed triangles are exhausted and counted.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import networkx as nx

import wedgewise as ww
from wedgewise.datasets import bundled

Question = Callable[..., Any]
QUESTIONS: dict[str, Question] = {
    "triangles": nx.triangles,
    "clustering": nx.clustering,
    "average_clustering": nx.average_clustering,
    "transitivity": nx.transitivity,
    "generalized_degree": nx.generalized_degree,
    "all_triangles": lambda graph, **how: sum(1 for _ in nx.all_triangles(graph, **how)),
}


@dataclass(frozen=True, slots=True)
class Row:
    """Median seconds of one function."""

    name: str
    networkx: float
    cold: float
    cached: float


def read_graph(path: Path) -> nx.Graph:
    """A file as a plain NetworkX graph, nodes in the order of the labels."""
    graph = ww.read(path)
    labels = list(graph.labels) if isinstance(graph.labels, range | list) else graph.labels.tolist()
    made = nx.Graph()
    made.add_nodes_from(labels)
    made.add_edges_from((labels[u], labels[v]) for u, v in graph.edges.tolist())
    return made


def seconds(question: Question, graph: nx.Graph, *, cold: bool, **how: Any) -> float:
    """One call on the clock."""
    if cold:
        graph.__networkx_cache__.clear()
    start = time.perf_counter()
    question(graph, **how)
    return time.perf_counter() - start


def compare(name: str, graph: nx.Graph, repeats: int) -> Row:
    """Time one function three ways after its answers were found equal."""
    question = QUESTIONS[name]
    if not same(question(graph, backend="networkx"), question(graph, backend="wedgewise")):
        raise SystemExit(f"{name}: the answers differ")
    own = [seconds(question, graph, cold=False, backend="networkx")]
    while own[0] < 1 and len(own) < repeats:
        own.append(seconds(question, graph, cold=False, backend="networkx"))
    cold = [seconds(question, graph, cold=True, backend="wedgewise") for _ in range(repeats)]
    cached = [seconds(question, graph, cold=False, backend="wedgewise") for _ in range(repeats)]
    return Row(name, median(own), median(cold), median(cached))


def same(first: Any, second: Any) -> bool:
    """Whether two answers agree; averages may be summed in another order."""
    return math.isclose(first, second, rel_tol=1e-12) if isinstance(first, float) else bool(first == second)


def walk_seconds(graph: nx.Graph) -> tuple[float, float]:
    """A bare walk over the dictionaries, and the conversion to pairs."""
    from wedgewise.read.objects.graphs import edges_from_networkx

    def walk(graph: nx.Graph) -> None:
        for neighbours in graph._adj.values():
            for _ in neighbours:
                pass

    bare = min(seconds(walk, graph, cold=False) for _ in range(7))
    return bare, min(seconds(edges_from_networkx, graph, cold=False) for _ in range(7))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graph", nargs="?", type=Path, default=Path(bundled("email-Enron")))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--functions", nargs="*", choices=QUESTIONS, default=list(QUESTIONS))
    options = parser.parse_args()
    warnings.filterwarnings("ignore", message="Note: conversions to backend graphs are saved to cache")
    graph = read_graph(options.graph)
    bare, convert = walk_seconds(graph)
    print(f"{options.graph.name}: {len(graph):,} nodes, {graph.number_of_edges():,} edges, networkx {nx.__version__}")
    print(f"a bare walk {1e3 * bare:.1f} ms, conversion to pairs {1e3 * convert:.1f} ms: {convert / bare:.2f} times\n")
    print("| function | NetworkX s | cold s | ratio | cached s | ratio |\n|---|--:|--:|--:|--:|--:|")
    for name in options.functions:
        row = compare(name, graph, options.repeats)
        print(
            f"| {name} | {row.networkx:.3f} | {row.cold:.4f} | {row.networkx / row.cold:.0f} "
            f"| {row.cached:.4f} | {row.networkx / row.cached:.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
