"""Count triangles with wedgewise and with every peer, on the same graphs, in one run; print a table per row.

make bench
.venv-bench/bin/python benchmarks/cpu.py --quick
.venv-bench/bin/python benchmarks/cpu.py --graphs kronecker-18-seed1 --rows count edges
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from wedgewise import storage
from wedgewise.bench import graphs as bench_graphs
from wedgewise.bench import table
from wedgewise.bench.record import ROWS, Record, describe_setting
from wedgewise.bench.runner import Bench, matrix
from wedgewise.bench.systems import SystemSource, choose_systems
from wedgewise.bench.watch import CellLimits
from wedgewise.errors import WedgewiseError
from wedgewise.machine import hardware

CHECKOUT = Path(__file__).resolve().parent.parent
DEFAULT_DATA = CHECKOUT.parent / "shared" / "data" / "graphs"
QUICK_GRAPHS = ["kronecker-16-seed1"]
MEMORY_SHARE = 0.8


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the matrix; exit status 1 when a system counted wrongly or crashed, 2 on bad options."""
    options = parse(arguments)
    try:
        records = run(options)
    except WedgewiseError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted: finished cells are kept, --resume goes on from there", file=sys.stderr)
        return 130
    text = table.render(records)
    print(text)
    with storage.atomic_write(options.output / "cpu.md") as file:
        file.write(text.encode())
    return int(any(record.outcome.status in ("wrong", "crashed") for record in records))


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--systems", nargs="+", help="default: wedgewise and all peers")
    parser.add_argument("--graphs", nargs="+", help="default: all that are generated and all in --data")
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--limit-seconds", type=float, default=120.0, help="for each stage of a cell and each repeat")
    parser.add_argument(
        "--limit-gigabytes", type=float, help="resident memory of a cell; default: 80 %% of what is free"
    )
    parser.add_argument("--data", type=Path, help="folder of NAME.el.xz with a truths.json in or above it")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "wedgewise-bench")
    parser.add_argument("--output", type=Path, default=CHECKOUT / "benchmarks" / "results")
    parser.add_argument("--resume", action="store_true", help="keep cells that today's results have for this revision")
    parser.add_argument("--quick", action="store_true", help="one small graph, 10 seconds for each stage")
    options = parser.parse_args(arguments)
    if options.quick:
        options.graphs = options.graphs or QUICK_GRAPHS
        options.limit_seconds = min(options.limit_seconds, 10.0)
    return options


def run(options: argparse.Namespace) -> list[Record]:
    """Prepare the graphs, run all cells, report each one on stderr as it ends."""
    systems = choose_systems(options.systems)
    prepared = [bench_graphs.prepare(graph, options.work) for graph in wanted_graphs(options)]
    options.output.mkdir(parents=True, exist_ok=True)
    bench = Bench(
        systems={system.name: system for system in systems},
        graphs={graph.name: graph for graph in prepared},
        limits=CellLimits(options.limit_seconds, memory_limit(options)),
        setting=describe_setting(packages_of(systems), ["benchmarks/cpu.py", *sys.argv[1:]], CHECKOUT),
        results_path=options.output / f"cpu-{datetime.now(UTC).date().isoformat()}.jsonl",
    )
    cells = matrix(systems, [graph.name for graph in prepared], options.rows, options.threads)
    return bench.run(cells, resume=options.resume, on_record=tell)


def wanted_graphs(options: argparse.Namespace) -> list[bench_graphs.BenchGraph]:
    """The generated graphs and those of the data folder, or the named ones among them."""
    graphs = bench_graphs.generated_graphs(options.threads)
    if options.data is not None:
        graphs += bench_graphs.real_graphs(options.data)
    elif DEFAULT_DATA.is_dir():
        graphs += bench_graphs.real_graphs(DEFAULT_DATA)
    return bench_graphs.choose_graphs(graphs, options.graphs)


def memory_limit(options: argparse.Namespace) -> int:
    """Bytes that a cell may take."""
    if options.limit_gigabytes is not None:
        return int(options.limit_gigabytes * 1e9)
    return int(hardware.available_memory() * MEMORY_SHARE)


def packages_of(systems: Sequence[SystemSource]) -> list[str]:
    """The distributions whose versions are recorded: the systems' own and the reader that peers share."""
    return [*(system.package for system in systems), "pyarrow"]


def tell(record: Record) -> None:
    """One line per cell while the run goes on."""
    cell, outcome = record.cell, record.outcome
    who = cell.system if cell.algorithm in ("auto", "default") else f"{cell.system}/{cell.algorithm}"
    note = "" if outcome.status in ("ok", "timeout") else f"  {outcome.message}"
    print(
        f"{cell.graph:24} {cell.row:6} {who:18} {table.time_text(record):>14}{note}",
        file=sys.stderr,
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
