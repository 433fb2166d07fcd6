"""For how long is Ctrl-C not heard? The longest time between two passings of a signal, for questions and files.

A signal comes every five milliseconds. Its handler runs where the interpreter looks for signals: not within a single
array operation, nor within a kernel that the main thread calls.

    python benchmarks/silences.py [--scale 20] [--only WORD …]
"""

from __future__ import annotations

import argparse
import signal
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import wedgewise as ww
from wedgewise import generate
from wedgewise.write.edges import write_edges

EVERY_SECONDS = 0.005
SUFFIXES = (
    *("txt", "bel32", "npy", "npz", "mtx", "metis", "parquet", "arrow"),
    *("txt.gz", "txt.bz2", "txt.xz", "txt.zst", "npy.xz", "npz.xz", "metis.xz", "parquet.xz"),
)
QUESTIONS: dict[str, dict[str, Any]] = {
    "count": {"verify": True},
    "triangles": {},
    "edge_support": {},
    "clustering": {},
    "generalized_degree": {},
    "trussness": {},
    "k_truss": {"k": 20},
    "max_truss": {},
    "truss_summary": {},
}


class Listener:
    """Hears the signals, and remembers the longest silence and the place behind it."""

    def __init__(self) -> None:
        self.heard = time.perf_counter()
        self.longest, self.place = 0.0, "nowhere"

    def hear(self, _signal: int, frame: FrameType | None) -> None:
        now = time.perf_counter()
        if now - self.heard > self.longest and frame is not None:
            self.longest = now - self.heard
            self.place = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
        self.heard = now


def listen(work: Callable[[], Any]) -> Listener:
    """Do the work while signals come."""
    listener = Listener()
    signal.signal(signal.SIGALRM, listener.hear)
    signal.setitimer(signal.ITIMER_REAL, EVERY_SECONDS, EVERY_SECONDS)
    try:
        work()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return listener


def works(scale: int, folder: Path) -> tuple[int, dict[str, Callable[[], Any]]]:
    """The edges of a graph, and what is done with it."""
    pairs = generate.kronecker(scale, seed=1).pairs()
    graph = ww.Graph(pairs)
    listed: dict[str, Callable[[], Any]] = {"clean": lambda: ww.Graph(pairs)}
    listed["count by core"] = lambda: ww.run("count", graph, order="core")
    listed["count by classes"] = lambda: ww.run("count", graph, relabel="classes", algorithm="forward")
    for question, how in QUESTIONS.items():
        listed[question] = partial(ww.run, question, graph, **how)
    for suffix in SUFFIXES:
        path = folder / f"graph.{suffix}"
        listed[f"write {suffix}"] = partial(write_edges, graph.edges, path, vertices=graph.n)
        listed[f"read {suffix}"] = partial(ww.read, path)
    return graph.m, listed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=int, default=20)
    parser.add_argument("--only", nargs="*", default=[""])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        edges, listed = works(options.scale, Path(folder))
        print(f"{edges:,} edges; milliseconds of the longest silence, nanoseconds of it per edge, and where it ended")
        for name, work in listed.items():
            if any(word in name for word in options.only):
                listener = listen(work)
                silence = listener.longest
                print(f"{name:20} {1e3 * silence:8.1f} {1e9 * silence / edges:7.1f}  {listener.place}", flush=True)


if __name__ == "__main__":
    main()
