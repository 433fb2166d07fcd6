"""Ask wedgewise and every peer each question that they answer, on the same graphs, in one run; print a table for each.

make bench-quick
.venv-bench/bin/python benchmarks/answers.py --data ../shared/data/graphs --output benchmarks/results
.venv-bench/bin/python benchmarks/answers.py --graphs kronecker-18-seed1 --questions count triangles edge_support
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from wedgewise.bench import command, graphs, table
from wedgewise.bench.record import QUESTIONS

CHECKOUT = Path(__file__).resolve().parent.parent
DEFAULT_GRAPHS = ["kronecker-16-seed1", "kronecker-18-seed1", "email-Enron"]
QUICK_GRAPHS = ["kronecker-12-seed1", "email-Enron"]
LEAST_REAL_EDGES = 400_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the matrix; the exit status is that of `command.main`."""
    return command.main(parse(arguments), compare)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    command.add_options(parser, output=None, limit_seconds=60.0)
    named = ", ".join(DEFAULT_GRAPHS)
    parser.add_argument("--graphs", nargs="+", help=f"default: {named}, and the larger ones in --data")
    parser.add_argument("--questions", nargs="+", choices=QUESTIONS, default=list(QUESTIONS))
    parser.add_argument("--quick", action="store_true", help="two small graphs, each question timed once")
    options = parser.parse_args(arguments)
    if options.quick:
        options.graphs = options.graphs or QUICK_GRAPHS
        options.repeats = 1
    return options


def compare(options: argparse.Namespace) -> command.Comparison:
    """Every question on loaded graphs."""
    known, names = graphs.answer_graphs(options.threads), DEFAULT_GRAPHS
    if options.data is not None:
        names = [*names, *(graph.name for graph in graphs.real_graphs(options.data, LEAST_REAL_EDGES))]
        known = [*graphs.real_graphs(options.data), *known]
    chosen = graphs.choose_graphs(known, options.graphs or names)
    return command.Comparison("answers", CHECKOUT, chosen, ("count",), options.questions, table.render_answers)


if __name__ == "__main__":
    sys.exit(main())
