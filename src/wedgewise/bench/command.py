"""One run of a suite: what is changed of it, its cells one after the other, and whether it failed."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import wedgewise
from wedgewise.algorithms import registry
from wedgewise.bench import graphs, table
from wedgewise.bench.blocks import Blocks
from wedgewise.bench.record import KMAX, Cell, Record, Setting, describe_setting, parse_question
from wedgewise.bench.runner import Bench, matrix
from wedgewise.bench.suites import EVERY, Suite, known_graphs, usual_graphs
from wedgewise.bench.systems import SystemSource, by_algorithms, choose_systems
from wedgewise.bench.watch import CellLimits
from wedgewise.errors import InputError, StorageError
from wedgewise.machine import hardware
from wedgewise.report.progress import Tell

MEMORY_SHARE = 0.8
DEFAULT_WORK = Path(tempfile.gettempdir()) / "wedgewise-bench"


@dataclass(frozen=True, slots=True)
class Choices:
    """What a run changes of its suite, and where its files are; what is empty or None stays as it is.

    Attributes
    ----------
    graphs, systems, algorithms, questions, rows, limit_seconds, repeats : in place of the suite's own
    threads : all cells with each of these; by default all that this process may use
    limit_bytes : resident memory of a cell; by default 80 % of what is free
    data : folder of NAME.el.xz with a truths.json in or above it
    work : folder of prepared graphs
    results : the file that a line per cell is appended to; by default one of today in `work`
    resume : whether cells that the results have for this revision are kept
    command : how the run was asked for, for the record
    """

    graphs: tuple[str, ...] = ()
    systems: tuple[str, ...] = ()
    algorithms: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    limit_seconds: float | None = None
    repeats: int | None = None
    threads: tuple[int, ...] = ()
    limit_bytes: int | None = None
    data: Path | None = None
    work: Path = DEFAULT_WORK
    results: Path | None = None
    resume: bool = False
    command: tuple[str, ...] = ()

    def applied(self, suite: Suite) -> Suite:
        """The suite as it is to be run."""
        names = ("graphs", "systems", "algorithms", "questions", "rows", "limit_seconds", "repeats")
        given = {name: value for name in names if (value := getattr(self, name)) not in ((), None)}
        if not set(self.rows) <= set(suite.rows):
            raise InputError(f"{suite.name} times the rows {', '.join(suite.rows)}; name some of these")
        if self.questions and len(suite.rows) > 1:
            raise InputError(f"{suite.name} asks for a count alone; the suite answers asks other questions")
        return replace(suite, **({"graphs": tuple(usual_graphs(suite, self.data))} | given))

    def results_of(self, suite: Suite) -> Path:
        """The file of records."""
        return self.results or self.work / f"{suite.name}-{datetime.now(UTC).date().isoformat()}.jsonl"


def run(
    suite: Suite, choices: Choices, tell: Tell | None = None, on_record: Callable[[Record], None] | None = None
) -> list[Record]:
    """Prepare the graphs and run all cells of a suite; the records, judged.

    Parameters
    ----------
    suite : what is compared
    choices : what is changed of it
    tell : told of prepared graphs and of finished cells
    on_record : told every record as its cell ends

    Raises
    ------
    InputError : names of graphs, systems, algorithms, questions or rows that there are not, or nobody to ask
    StorageError : a folder cannot be made, a file cannot be written
    """
    tell = tell or _tell_nobody
    suite = choices.applied(suite)
    threads = choices.threads or _usual_threads(suite)
    systems = _systems_of(suite)
    chosen = graphs.choose_graphs(list(known_graphs(choices.data, max(threads)).values()), list(suite.graphs))
    cells = _cells_of(suite, systems, [graph.name for graph in chosen], threads)
    results = _writable(choices.results_of(suite))
    bench = Bench(
        systems={system.name: system for system in systems},
        graphs=_prepare(suite, chosen, choices.work, max(threads), tell),
        limits=CellLimits(suite.limit_seconds, _limit_bytes(choices), suite.repeats),
        setting=_setting(systems, choices.command),
        results_path=results,
    )
    done: list[Record] = []

    def note(record: Record) -> None:
        done.append(record)
        if on_record is not None:
            on_record(record)
        tell("cells", len(done), len(cells))

    tell("cells", 0, len(cells))
    return bench.run(cells, resume=choices.resume, on_record=note)


def is_failure(record: Record) -> bool:
    """Whether a system answered wrongly or crashed, or we did not answer at all."""
    status = record.outcome.status
    return status in ("wrong", "crashed") or (record.cell.system == table.OURS and status != "ok")


def line_of(record: Record) -> str:
    """What is said of a cell when it has ended."""
    cell, outcome = record.cell, record.outcome
    who = cell.system if cell.algorithm in ("auto", "default") else f"{cell.system}/{cell.way}"
    note = "" if outcome.status in ("ok", "timeout") else f"  {outcome.message}"
    return f"{cell.graph:28} {table.asked(cell):15} {who:35} {cell.threads:>2} {table.time_text(record):>14}{note}"


def _tell_nobody(_stage: str, _done: int, _total: int) -> None:
    """Where nobody watches."""


def _usual_threads(suite: Suite) -> tuple[int, ...]:
    """All threads alone, or the powers of two before them as well."""
    most = hardware.usable_threads()
    fewer = [2**power for power in range(most.bit_length()) if 2**power < most] if suite.sweeps_threads else []
    return (*fewer, most)


def _systems_of(suite: Suite) -> list[SystemSource]:
    """Who takes part, ourselves with the algorithms of the suite."""
    every = [name for name, device in registry() if device == "cpu"]
    named = [name for text in suite.algorithms for name in (every if text == EVERY else [text])]
    ways = list(dict.fromkeys(named))
    return [_with_ways(system, suite, ways) for system in choose_systems(list(suite.systems))]


def _with_ways(system: SystemSource, suite: Suite, ways: Sequence[str]) -> SystemSource:
    """A system with the ways that a suite names for it."""
    if system.name == Blocks.name and suite.cuts:
        return replace(system, algorithms=suite.cuts)
    return by_algorithms(system, ways) if system.name == table.OURS else system


def _cells_of(
    suite: Suite, systems: Sequence[SystemSource], names: Sequence[str], threads: Sequence[int]
) -> list[Cell]:
    asked = [str(parse_question(text)) for text in suite.questions]
    cells = [cell for cell in matrix(systems, names, suite.rows, threads, asked) if suite.wants(cell)]
    if not cells:
        raise InputError(
            f"{suite.name}: none of these systems and algorithms is asked any of these questions on these graphs; "
            "name others"
        )
    return cells


def _prepare(
    suite: Suite, chosen: Sequence[graphs.BenchGraph], work: Path, threads: int, tell: Tell
) -> dict[str, graphs.PreparedGraph]:
    """The graphs on disk, each with its largest k where a question needs that."""
    _make_folder(work)
    needs_kmax = any(KMAX in parse_question(text).settings.values() for text in suite.questions)
    prepared: dict[str, graphs.PreparedGraph] = {}
    for graph in chosen:
        tell("prepare", len(prepared), len(chosen))
        found = graphs.prepare(graph, work)
        prepared[graph.name] = found.with_kmax(threads) if needs_kmax else found
    return prepared


def _limit_bytes(choices: Choices) -> int:
    return choices.limit_bytes or int(hardware.available_memory() * MEMORY_SHARE)


def _setting(systems: Sequence[SystemSource], command: Sequence[str]) -> Setting:
    """Where the run is made: of an installed package the version stands for the revision."""
    checkout = Path(wedgewise.__file__).resolve().parents[2]
    packages = [*(system.package for system in systems), "pyarrow"]  # the reader that peers share
    setting = describe_setting(packages, command, checkout if (checkout / ".git").exists() else None)
    return replace(setting, revision=setting.revision or f"v{wedgewise.__version__}")


def _writable(path: Path) -> Path:
    """The path of a file in a folder that is there; what cannot be one is refused before the work."""
    if path.is_dir():
        raise StorageError(f"{path}: is a folder; name a file, such as {path / 'results.jsonl'}")
    _make_folder(path.parent)
    return path


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"{path}: cannot be made ({error.strerror}); name another folder") from error
