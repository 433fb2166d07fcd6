"""How good is the choice of hubs, what does an arc cost, and how does the engine scale?

For every graph: counting time (hub rows included) for a sweep of hub counts, the count that the rule chose, and its
regret (chosen ÷ best of the sweep); what a count takes on one thread, its kernel alone, and that by arc, beside the
shares of arcs in rows of 1, 2, 3–4, … arcs; then preparation and counting on 1, 2, 4, … threads. One run, one table.

    python benchmarks/keystone_cpu.py [--data FOLDER] [--scales 16,18,20] [--threads 16]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import wedgewise as ww
from wedgewise import generate
from wedgewise.algorithms import find
from wedgewise.algorithms._passes import run_passes
from wedgewise.algorithms.cpu._keystone_hubs import choose_hubs, largest_hubs
from wedgewise.machine import hardware

SWEEP = (0, 512, 1024, 2048, 4096, 8192, 16384, 32768)
ROW_LENGTHS = (1, 2, 4, 8, 16)
REPEATS = 5
MIN_EDGES = 100_000


def graphs(scales: list[int], data: Path | None) -> Iterator[tuple[str, ww.Graph]]:
    """The graphs that the rule's constants were set on (Kronecker, uniform, small world), grids, then real ones."""
    for scale in scales:
        yield f"kronecker-{scale}", ww.Graph(generate.kronecker(scale, seed=1).pairs(threads=2))
    largest = max(scales)
    n = 1 << largest
    yield f"uniform-{largest}", ww.Graph(generate.uniform(n, 16 * n, seed=1).pairs(threads=2))
    yield f"small-world-{largest}", ww.Graph(generate.small_world(n, 20, 0.1, seed=1).pairs(threads=2))
    yield f"rmat-{largest - 1}", ww.Graph(generate.rmat(largest - 1, seed=3).pairs(threads=2))
    yield "roads", ww.Graph(grid(1000, diagonals=False, kept=0.65))
    yield "mesh", ww.Graph(grid(600, diagonals=True, kept=1.0))
    for path in sorted(data.glob("*.el.xz")) if data else []:
        graph = ww.read(path)
        if graph.m >= MIN_EDGES:
            yield path.name.removesuffix(".el.xz"), graph


def grid(side: int, *, diagonals: bool, kept: float) -> NDArray[np.int64]:
    """A square grid as roads have it, of which so many edges are kept, or one of triangles."""
    ids = np.arange(side * side).reshape(side, side)
    ends = [(ids[:, :-1], ids[:, 1:]), (ids[:-1], ids[1:])]
    ends += [(ids[:-1, :-1], ids[1:, 1:])] if diagonals else []
    pairs = np.concatenate([np.stack([first.ravel(), second.ravel()], axis=1) for first, second in ends])
    return pairs[np.random.default_rng(1).random(len(pairs)) < kept]


def median_seconds(work: Callable[[], object]) -> float:
    """Median of a few runs after one to warm up."""
    work()
    seconds = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds)


def sweep(name: str, graph: ww.Graph, threads: int) -> str:
    """One line of the table of hub counts."""
    oriented = graph.oriented(threads=threads)
    chosen = choose_hubs(oriented, int(find("keystone", "cpu").settings(None)["probe_ratio"]))
    most = largest_hubs(oriented.n, oriented.m)
    tried = sorted({hubs for hubs in SWEEP if hubs <= most} | {chosen})
    seconds = {
        hubs: median_seconds(partial(ww.count, graph, algorithm="keystone", knobs={"hubs": hubs}, threads=threads))
        for hubs in tried
    }
    best = min(seconds.values())
    cells = " ".join(f"{hubs}:{1000 * value:.1f}" for hubs, value in seconds.items())
    return f"{name:22} {graph.m:>11,} chosen {chosen:>6} regret {seconds[chosen] / best:5.2f}  ms by hubs  {cells}"


def by_arc(name: str, graph: ww.Graph) -> str:
    """One line of the table of what an arc costs on one thread."""
    engine = find("keystone", "cpu")
    oriented = graph.oriented(threads=1)
    work = engine.on_cpu("count").prepare(oriented, engine.settings(None), 1)
    whole = median_seconds(lambda: ww.count(graph, algorithm="keystone", threads=1))
    kernel = median_seconds(lambda: run_passes(work, 1))
    lengths = np.diff(oriented.offsets.astype(np.int64))
    arcs = np.bincount(np.searchsorted(ROW_LENGTHS, lengths), lengths, len(ROW_LENGTHS) + 1) / max(1, graph.m)
    shares = " ".join(f"≤{most}:{share:.0%}" for most, share in zip((*ROW_LENGTHS, "all"), arcs, strict=True))
    each = 1e9 * kernel / max(1, graph.m)
    return f"{name:22} count {1000 * whole:.2f} kernel {1000 * kernel:.2f} ms, {each:.1f} ns per arc  rows  {shares}"


def scaling(name: str, graph: ww.Graph, most_threads: int) -> str:
    """One line of the table of thread counts: orient / count in milliseconds."""
    cells = []
    threads = 1
    while threads <= most_threads:

        def prepare(threads: int = threads) -> None:
            graph.release()
            graph.oriented(threads=threads)

        orient = median_seconds(prepare)
        count = median_seconds(lambda threads=threads: ww.count(graph, algorithm="keystone", threads=threads))  # type: ignore[misc]
        cells.append(f"{threads}: {1000 * orient:.1f} / {1000 * count:.1f}")
        threads *= 2
    return f"{name:22} orient / count, ms, by threads  " + "   ".join(cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=None, help="folder of real graphs (*.el.xz)")
    parser.add_argument("--scales", default="16,18,20")
    parser.add_argument("--sweep-threads", type=int, default=2)
    parser.add_argument("--threads", type=int, default=hardware.usable_threads(), help="largest number of threads")
    options = parser.parse_args()
    print(hardware.look().description)
    for name, graph in graphs([int(scale) for scale in options.scales.split(",")], options.data):
        print(sweep(name, graph, options.sweep_threads), flush=True)
        print(by_arc(name, graph), flush=True)
        if graph.m > 10**6:
            print(scaling(name, graph, options.threads), flush=True)


if __name__ == "__main__":
    main()
