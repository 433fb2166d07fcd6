"""What the benchmark scripts share: options, the run of a matrix, one line per cell, the exit status."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from wedgewise import storage
from wedgewise.bench import graphs as bench_graphs
from wedgewise.bench import table
from wedgewise.bench.child import MOST_REPEATS
from wedgewise.bench.record import Record, describe_setting
from wedgewise.bench.runner import Bench, matrix
from wedgewise.bench.systems import SystemSource, choose_systems
from wedgewise.bench.watch import CellLimits
from wedgewise.errors import WedgewiseError
from wedgewise.machine import hardware

MEMORY_SHARE = 0.8


@dataclass(frozen=True, slots=True)
class Comparison:
    """What one script compares.

    Attributes
    ----------
    name : of the script and of its results: NAME-DATE.jsonl and NAME.md
    checkout : whose revision is recorded
    graphs : those to run on
    rows, questions : what to ask, and how much of it to time
    render : makes the text of the tables
    """

    name: str
    checkout: Path
    graphs: Sequence[bench_graphs.BenchGraph]
    rows: Sequence[str]
    questions: Sequence[str]
    render: Callable[[Sequence[Record]], str]


def add_options(parser: argparse.ArgumentParser, *, output: Path | None, limit_seconds: float) -> None:
    """The options that every comparison has; without an `output` folder the tables are only printed."""
    parser.add_argument("--systems", nargs="+", help="default: wedgewise and all peers")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--limit-seconds", type=float, default=limit_seconds, help="for each stage of a cell and each repeat"
    )
    parser.add_argument(
        "--limit-gigabytes", type=float, help="resident memory of a cell; default: 80 %% of what is free"
    )
    parser.add_argument("--repeats", type=int, default=MOST_REPEATS, help="timed runs of a cell at most")
    parser.add_argument("--data", type=Path, help="folder of NAME.el.xz with a truths.json in or above it")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "wedgewise-bench")
    parser.add_argument("--output", type=Path, default=output, help="folder for records and tables")
    parser.add_argument("--resume", action="store_true", help="keep cells that today's results have for this revision")


def main(options: argparse.Namespace, compare: Callable[[argparse.Namespace], Comparison]) -> int:
    """Run the comparison and print its tables.

    The exit status is 1 when a system answered wrongly or crashed or we did not answer at all, 2 on bad options.
    """
    try:
        comparison = compare(options)
        records = run(comparison, options)
    except WedgewiseError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted: finished cells are kept, --resume goes on from there", file=sys.stderr)
        return 130
    text = comparison.render(records)
    print(text)
    if options.output is not None:
        with storage.atomic_write(options.output / f"{comparison.name}.md") as file:
            file.write(text.encode())
    return int(any(map(_is_failure, records)))


def run(comparison: Comparison, options: argparse.Namespace) -> list[Record]:
    """Prepare the graphs, run all cells, report each one on stderr as it ends."""
    systems = choose_systems(options.systems)
    prepared = [bench_graphs.prepare(graph, options.work) for graph in comparison.graphs]
    results = options.output or options.work
    results.mkdir(parents=True, exist_ok=True)
    command = [f"benchmarks/{comparison.name}.py", *sys.argv[1:]]
    bench = Bench(
        systems={system.name: system for system in systems},
        graphs={graph.name: graph for graph in prepared},
        limits=CellLimits(options.limit_seconds, _memory_limit(options), options.repeats),
        setting=describe_setting(_packages_of(systems), command, comparison.checkout),
        results_path=results / f"{comparison.name}-{datetime.now(UTC).date().isoformat()}.jsonl",
    )
    names = [graph.name for graph in prepared]
    cells = matrix(systems, names, comparison.rows, options.threads, comparison.questions)
    return bench.run(cells, resume=options.resume, on_record=tell)


def tell(record: Record) -> None:
    """One line per cell while the run goes on."""
    cell, outcome = record.cell, record.outcome
    who = cell.system if cell.algorithm in ("auto", "default") else f"{cell.system}/{cell.algorithm}"
    note = "" if outcome.status in ("ok", "timeout") else f"  {outcome.message}"
    print(
        f"{cell.graph:24} {table.asked(cell):14} {who:18} {table.time_text(record):>14}{note}",
        file=sys.stderr,
        flush=True,
    )


def _is_failure(record: Record) -> bool:
    status = record.outcome.status
    return status in ("wrong", "crashed") or (record.cell.system == table.OURS and status != "ok")


def _memory_limit(options: argparse.Namespace) -> int:
    """Bytes that a cell may take."""
    if options.limit_gigabytes is not None:
        return int(options.limit_gigabytes * 1e9)
    return int(hardware.available_memory() * MEMORY_SHARE)


def _packages_of(systems: Sequence[SystemSource]) -> list[str]:
    """The distributions whose versions are recorded: the systems' own and the reader that peers share."""
    return [*(system.package for system in systems), "pyarrow"]
