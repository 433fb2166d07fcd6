"""How full do TRUST's buckets become? The paper's table 3 (max collision) on generated and real graphs; needs a GPU.

    PYTHONPATH=src python benchmarks/trust_collisions.py --scales 18 20 22 --data graphs

Rows are the paper's: BS, the baseline: every vertex gets a warp with 32 buckets, ids by degree; CO, co-optimisation:
vertices of more than 100 out-neighbours get a block with 1,024 buckets; RO, ids by one of the reorderings of section
4.1. Edges point to the vertex of larger degree. Buckets have room for 1,024 ids: figures up to there are exact, above
it ids that a full bucket passes on count again in the next one.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path

import wedgewise as ww
from wedgewise.algorithms.gpu import trust
from wedgewise.generate import kronecker
from wedgewise.machine import gpu
from wedgewise.report.text import table_text
from wedgewise.stages import DeviceGraph

ROWS: dict[str, tuple[str, dict[str, int | str]]] = {
    "BS": ("rank", {"cooptimisation": "off"}),
    "CO": ("rank", {}),
    "CO + RO (IN)": ("indegree", {}),
    "CO + RO (OUT)": ("collective", {}),
}
RELABELLINGS = tuple(dict.fromkeys(relabelling for relabelling, _ in ROWS.values()))


def graphs(scales: list[int], data: Path | None) -> Iterator[tuple[str, ww.Graph]]:
    """The Kronecker graphs of the asked scales, then the files of the data folder, largest last."""
    for scale in scales:
        stream = kronecker(scale, seed=1)
        yield f"Kronecker {scale}", ww.Graph(stream.pairs(), n=stream.n, device="cuda")
    if data is not None:
        for path in sorted(data.glob("*.el.xz"), key=lambda path: path.stat().st_size):
            yield path.name.removesuffix(".el.xz"), ww.read(path)


def max_collisions(forms: Mapping[str, DeviceGraph], device: gpu.Device) -> dict[str, int]:
    """The fullest bucket of every row of the table, from the oriented graph by relabelling."""
    return {
        row: trust.table_figures(forms[relabelling], _settings(given), device)["max_collisions"]
        for row, (relabelling, given) in ROWS.items()
    }


def _settings(given: Mapping[str, int | str]) -> Mapping[str, int | str]:
    return trust.ALGORITHM.settings({"capacity": trust.MAX_CAPACITY, **given})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scales", type=int, nargs="*", default=[18, 20])
    parser.add_argument("--data", type=Path, help="folder of NAME.el.xz")
    options = parser.parse_args()
    device = gpu.find_device()
    found: dict[str, dict[str, int]] = {}
    for name, graph in graphs(options.scales, options.data):
        forms = {relabelling: graph.on_device("degree", relabelling) for relabelling in RELABELLINGS}
        with device.memory():
            found[name] = max_collisions(forms, device)
        graph.release()
    rows = [[row, *(f"{figures[row]:,}" for figures in found.values())] for row in ROWS]
    print(table_text([["max collision", *found], *rows]))


if __name__ == "__main__":
    main()
