"""How uneven are out-degrees? TRUST's figures 5 and 7 in numbers, on generated and real graphs; needs no GPU.

    PYTHONPATH=src python benchmarks/trust_shapes.py --scales 16 18 --data graphs

Edges point to the vertex of larger degree. Figure 7 is the distribution of out-degrees: what share of the vertices is
left out (fewer than 2), gets a warp (2 to 100) or a block (more), and the largest. Figure 5 is, for every vertex with
out-neighbours, the longest by the shortest of their rows; empty rows count as none, since the paper has no infinity.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import wedgewise as ww
from wedgewise.generate import kronecker
from wedgewise.report.text import table_text
from wedgewise.stages import OrientedGraph

LEAST, LARGE = 2, 100  # a vertex of fewer out-neighbours has no wedge; one of more gets a block


@dataclass(frozen=True, slots=True)
class Shape:
    """Out-degrees of a graph: shares of its vertices by class, the largest; ratios of rows: median and largest."""

    omissible: float
    small: float
    large: float
    most: int
    median_ratio: float
    most_ratio: float

    @classmethod
    def of(cls, graph: OrientedGraph) -> Shape:
        degrees = graph.out_degrees.astype(np.int64)
        ratios = row_ratios(graph)
        return cls(
            omissible=float(np.mean(degrees < LEAST)),
            small=float(np.mean((degrees >= LEAST) & (degrees <= LARGE))),
            large=float(np.mean(degrees > LARGE)),
            most=int(degrees.max(initial=0)),
            median_ratio=float(np.median(ratios)) if len(ratios) else 1.0,
            most_ratio=float(ratios.max(initial=1.0)),
        )


def row_ratios(graph: OrientedGraph) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Of every vertex whose out-neighbours have some themselves, the longest row of these by the shortest."""
    degrees = graph.out_degrees.astype(np.int64)
    tails = np.repeat(np.arange(graph.n), degrees)
    lengths = degrees[graph.out_neighbours]
    tails, lengths = tails[lengths > 0], lengths[lengths > 0]
    begins = np.flatnonzero(np.diff(tails, prepend=-1))
    if len(begins) == 0:
        return np.empty(0, np.float64)
    return np.maximum.reduceat(lengths, begins) / np.minimum.reduceat(lengths, begins)


def graphs(scales: list[int], data: Path | None) -> Iterator[tuple[str, ww.Graph]]:
    """The Kronecker graphs of the asked scales, then the files of the data folder, largest last."""
    for scale in scales:
        yield f"Kronecker {scale}", ww.Graph(kronecker(scale, seed=1).pairs())
    if data is not None:
        for path in sorted(data.glob("*.el.xz"), key=lambda path: path.stat().st_size):
            yield path.name.removesuffix(".el.xz"), ww.read(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scales", type=int, nargs="*", default=[16, 18])
    parser.add_argument("--data", type=Path, help="folder of NAME.el.xz")
    options = parser.parse_args()
    header = ["graph", f"< {LEAST}", f"{LEAST} to {LARGE}", f"> {LARGE}", "most", "rows: median ratio", "largest ratio"]
    rows = [header]
    for name, graph in graphs(options.scales, options.data):
        shape = Shape.of(graph.oriented("degree"))
        shares = (f"{share:.2%}" for share in (shape.omissible, shape.small, shape.large))
        rows.append([name, *shares, f"{shape.most:,}", f"{shape.median_ratio:.1f}", f"{shape.most_ratio:,.0f}"])
    print(table_text(rows))


if __name__ == "__main__":
    main()
