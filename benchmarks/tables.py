"""Text labels against integers and against polars: seconds of reading a CSV file, interleaved.

    python benchmarks/tables.py [--rows 3000000] [--labels 1000000] [--repeats 7]

Needs polars. Two files are written to a temporary folder: the same random pairs with integers and with text for labels.
Each round reads both and has polars read the second and hand its table to `wedgewise.Graph`; the ratios are those of
medians. The numbering of text labels is compared with that of a dictionary in plain Python.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars

import wedgewise as ww
from wedgewise.read import read_edges


def main() -> None:
    """Write the files, time the ways, print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--labels", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=7)
    args = parser.parse_args()
    pairs = np.random.default_rng(1).integers(0, args.labels, (args.rows, 2)).tolist()
    with tempfile.TemporaryDirectory() as folder:
        integers, texts = Path(folder) / "integers.csv", Path(folder) / "texts.csv"
        integers.write_text("source,target\n" + "".join(f"{u},{v}\n" for u, v in pairs))
        texts.write_text("source,target\n" + "".join(f"user{u},user{v}\n" for u, v in pairs))
        check(texts, pairs)
        ways: dict[str, Callable[[], Any]] = {
            "integers: read": lambda: read_edges(integers),
            "text: read": lambda: read_edges(texts),
            "text: read, one thread": lambda: read_edges(texts, threads=1),
            "integers: Graph": lambda: ww.Graph(integers),
            "text: Graph": lambda: ww.Graph(texts),
            "text: polars.read_csv + Graph": lambda: ww.Graph(polars.read_csv(texts)),
        }
        seconds = timed(ways, args.repeats)
    base = seconds["integers: read"]
    for name, taken in seconds.items():
        print(f"{name:32} {taken:7.3f} s   {taken / base:5.1f} × reading integers")


def check(path: Path, pairs: list[list[int]]) -> None:
    """Compare names and numbers with a dictionary's."""
    number_of: dict[str, int] = {}
    wanted = [[number_of.setdefault(f"user{end}", len(number_of)) for end in pair] for pair in pairs]
    found = read_edges(path)
    assert found.names == list(number_of)
    assert found.pairs.tolist() == wanted


def timed(ways: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """The median seconds of each way, all of them once in every round; the first round is not counted."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(repeats + 1):
        for name, way in ways.items():
            begin = time.perf_counter()
            found = way()
            if number:
                taken[name].append(time.perf_counter() - begin)
            del found
    return {name: statistics.median(laps) for name, laps in taken.items()}


if __name__ == "__main__":
    main()
