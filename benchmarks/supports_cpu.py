"""What do the triangles of every vertex, of every edge, and a listing cost, measured in counts?

For every graph: milliseconds of the engine from the oriented graph on (hub rows and sorting by head included, renaming
excluded) for each question, asked in turn; the best and the median of the rounds, and the ratio of the best to the best
of a count. A listing is written a batch at a time into memory that is used again.

    python benchmarks/supports_cpu.py [--scales 16,18] [--threads 1,2] [--rounds 7]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

import wedgewise as ww
from wedgewise import datasets, generate
from wedgewise.algorithms._contract import Shape, Work
from wedgewise.machine import hardware
from wedgewise.machine.threads import run_tasks
from wedgewise.run.choose import make_plan
from wedgewise.run.in_memory import execute
from wedgewise.run.plan import OrientedShape
from wedgewise.run.request import Request
from wedgewise.stages import OrientedGraph

QUESTIONS = ("count", "triangles", "edge_support", "list_triangles")
BATCH_TRIANGLES = 1 << 20


def graphs(scales: list[int]) -> Iterator[tuple[str, ww.Graph]]:
    """Skewed graphs, graphs of short rows, and a real one."""
    for scale in scales:
        yield f"kronecker-{scale}", ww.Graph(generate.kronecker(scale, seed=1).pairs(threads=2))
    n = 1 << 18
    yield "small-world", ww.Graph(generate.small_world(n, 10, 0.1, seed=1).pairs(threads=2))
    yield "uniform", ww.Graph(generate.uniform(n, 6 * n, seed=1).pairs(threads=2))
    yield "email-Enron", ww.read(datasets.bundled("email-Enron"))


def answer(question: str, graph: OrientedGraph, threads: int) -> None:
    """One question from the oriented graph to its filled array, or through all batches of a listing."""
    oriented_shape = OrientedShape(Shape(graph.n, graph.m, graph.wedges), graph.order, graph.named_by)
    plan = make_plan(Request(question, algorithm="keystone", threads=threads), question, oriented_shape)
    work = execute(plan, graph).work
    if question == "list_triangles":
        write_all(work, graph.m, threads)


def write_all(work: Work, arcs: int, threads: int) -> None:
    """Write all triangles, a batch per task, each thread into its own memory."""
    assert work.filled is not None
    assert work.fill is not None
    before = np.zeros(arcs + 1, np.int64)
    np.cumsum(work.filled, out=before[1:])
    cuts = np.unique([*np.searchsorted(before, np.arange(0, before[-1], BATCH_TRIANGLES)), arcs]).tolist()
    largest = 3 * int(np.diff(before[cuts]).max(initial=0))
    own: dict[int, tuple[NDArray[np.uint32], Any]] = {}

    def write(batch: int, worker: int) -> None:
        assert work.fill is not None
        if worker not in own:
            own[worker] = np.empty(largest, np.uint32), work.passes[0].workspace()
        triples, workspace = own[worker]
        begin, end = cuts[batch], cuts[batch + 1]
        work.fill(begin, end, triples[: 3 * int(before[end] - before[begin])], workspace)

    run_tasks(write, len(cuts) - 1, threads)


def measure(name: str, graph: ww.Graph, threads: int, rounds: int) -> str:
    """One line of the table."""
    oriented = graph.oriented(threads=threads)
    seconds: dict[str, list[float]] = {question: [] for question in QUESTIONS}
    for round_number in range(rounds + 1):
        for question in QUESTIONS:
            begin = time.perf_counter()
            answer(question, oriented, threads)
            if round_number > 0:  # the first one loads kernels
                seconds[question].append(time.perf_counter() - begin)
    count = min(seconds["count"])
    cells = [
        f"{question} {1000 * min(taken):.1f} ({1000 * statistics.median(taken):.1f}) {min(taken) / count:.2f}x"
        for question, taken in seconds.items()
    ]
    return f"{name:14} {graph.m:>10,} edges {threads:>2} threads  ms best (median), counts:  " + "   ".join(cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scales", default="16,18")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    print(hardware.look().description)
    for name, graph in graphs([int(scale) for scale in options.scales.split(",")]):
        for threads in options.threads.split(","):
            print(measure(name, graph, int(threads), options.rounds), flush=True)


if __name__ == "__main__":
    main()
