"""Count triangles with wedgewise and with every peer, on the same graphs, in one run; print a table per row.

make bench
.venv-bench/bin/python benchmarks/cpu.py --quick
.venv-bench/bin/python benchmarks/cpu.py --graphs kronecker-18-seed1 --rows count edges
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from wedgewise.bench import command, graphs, table
from wedgewise.bench.record import ROWS

CHECKOUT = Path(__file__).resolve().parent.parent
DEFAULT_DATA = CHECKOUT.parent / "shared" / "data" / "graphs"
QUICK_GRAPHS = ["kronecker-16-seed1"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the matrix; the exit status is that of `command.main`."""
    return command.main(parse(arguments), compare)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    command.add_options(parser, output=CHECKOUT / "benchmarks" / "results", limit_seconds=120.0)
    parser.add_argument("--graphs", nargs="+", help="default: all that are generated and all in --data")
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--quick", action="store_true", help="one small graph, 10 seconds for each stage")
    options = parser.parse_args(arguments)
    if options.quick:
        options.graphs = options.graphs or QUICK_GRAPHS
        options.limit_seconds = min(options.limit_seconds, 10.0)
    return options


def compare(options: argparse.Namespace) -> command.Comparison:
    """Every row of the count, on the generated graphs and those of the data folder, or the named ones among them."""
    known = graphs.generated_graphs(options.threads)
    if options.data is not None:
        known += graphs.real_graphs(options.data)
    elif DEFAULT_DATA.is_dir():
        known += graphs.real_graphs(DEFAULT_DATA)
    chosen = graphs.choose_graphs(known, options.graphs)
    return command.Comparison("cpu", CHECKOUT, chosen, options.rows, ("count",), table.render)


if __name__ == "__main__":
    sys.exit(main())
