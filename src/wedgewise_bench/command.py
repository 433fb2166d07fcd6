"""One run of a suite: what is changed of it, its cells one after the other, and whether it failed."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import wedgewise
from wedgewise.errors import InputError, StorageError
from wedgewise.machine import hardware
from wedgewise.machine.jit import cache_root
from wedgewise.machine.libraries import python_command
from wedgewise.machine.progress import Progress
from wedgewise_bench import graphs, table
from wedgewise_bench.matrix import Matrix, joined
from wedgewise_bench.pace import Pace, Standing
from wedgewise_bench.programs import sources as read_sources
from wedgewise_bench.record import Cell, Record, RunSetting, describe_setting
from wedgewise_bench.runner import Bench
from wedgewise_bench.suites import Suite
from wedgewise_bench.systems import SystemSource, all_systems, choose_systems
from wedgewise_bench.watch import CellLimits
from wedgewise_bench.words import KMAX, parse_question

MEMORY_SHARE = 0.8
FOR_CUDA = ("cupy-cuda13x", "cupy-cuda12x", "pylibcugraph-cu13", "pylibcugraph-cu12")
LOOK_FOR_GPU = """
import json, sys
from wedgewise.machine import gpu
if gpu.why_no_device() is None:
    device = gpu.find_device()
    json.dump({"gpu": device.name, "gpu_memory_bytes": device.memory_bytes}, sys.stdout)
"""


def default_work() -> Path:
    """The folder of prepared graphs: in the cache of the user, since a temporary one of a known name is anybody's."""
    root = cache_root()
    if root is None:
        raise InputError("there is no home to keep prepared graphs in; name a folder with --work")
    return root / "bench"


@dataclass(frozen=True, slots=True)
class Choices:
    """What a run changes of its suite, and where its files are; what is empty or None stays as it is.

    Attributes
    ----------
    graphs, systems, devices, algorithms, questions, rows, limit_seconds, repeats : in place of the suite's own
    threads : all cells with each of these; by default all that this process may use
    limit_bytes : resident memory of a cell; by default 80 % of what is free
    data : folder of NAME.el.xz with a truths.json in or above it
    work : folder of prepared graphs; by default one in the cache
    results : the file that a line per cell is appended to; by default one of today in `work`, or the latest one there
        when a run is resumed
    resume : whether cells that the results have for this revision are kept
    programs : other people's programs, which take part too, or those of them that `systems` names: a file as
        `wedgewise_bench.programs` reads it
    profiles : whether our own cells on a GPU run once more under a profiler, for its counters
    command : how the run was asked for, for the record
    """

    graphs: tuple[str, ...] = ()
    systems: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    algorithms: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    limit_seconds: float | None = None
    repeats: int | None = None
    threads: tuple[int, ...] = ()
    limit_bytes: int | None = None
    data: Path | None = None
    work: Path = field(default_factory=default_work)
    results: Path | None = None
    resume: bool = False
    programs: Path | None = None
    profiles: bool = False
    command: tuple[str, ...] = ()

    def applied(self, suite: Suite) -> Suite:
        """The suite as it is to be run."""
        if not set(self.rows) <= set(suite.rows):
            raise InputError(f"{suite.name} times the rows {', '.join(suite.rows)}; name some of these")
        if self.questions and suite.questions == ("count",) and len(suite.rows) > 1:
            raise InputError(f"{suite.name} asks for a count alone; the suite answers asks other questions")
        rows, programs = suite.rows, self.sources()
        others = [name for name in self.systems if name not in {item.name for item in programs}]
        suite = suite.with_systems(others) if self.systems else suite
        suite = suite.with_devices(self.devices) if self.devices else suite
        suite = suite.with_algorithms(self.algorithms) if self.algorithms else suite
        suite = suite.with_programs(programs, rows) if programs else suite
        changes: dict[str, Any] = {"limit_seconds": self.limit_seconds, "repeats": self.repeats}
        changes = {name: value for name, value in changes.items() if value is not None}
        changes |= {"graphs": self.graphs, "real": ()} if self.graphs else {}
        return replace(suite, matrices=tuple(map(self._changed, suite.matrices)), **changes)

    def sources(self) -> list[SystemSource]:
        """The programs that take part: all of the file, or those that are named."""
        found = [] if self.programs is None else read_sources(self.programs, all_systems())
        return [program for program in found if not self.systems or program.name in self.systems]

    def _changed(self, matrix: Matrix) -> Matrix:
        return replace(
            matrix,
            rows=tuple(row for row in matrix.rows if not self.rows or row in self.rows),
            questions=self.questions or matrix.questions,
            threads=self.threads or matrix.threads,
            graphs=() if self.graphs else matrix.graphs,
        )

    def results_of(self, suite: Suite) -> Path:
        """The file of records."""
        if self.results is not None:
            return self.results
        earlier = sorted(self.work.glob(f"{suite.name}-????-??-??.jsonl")) if self.resume else []
        return earlier[-1] if earlier else self.work / f"{suite.name}-{datetime.now(UTC).date().isoformat()}.jsonl"


Hear = Callable[[Record, Standing], None]


def usual_graphs(suite: Suite, data: Path | None) -> list[str]:
    """What a suite runs on: its own graphs, and of the real ones those that are here."""
    missing = missing_graphs(suite, data)
    if isinstance(suite.real, int):
        here = [] if data is None else [graph.name for graph in graphs.real_graphs(data, suite.real)]
    else:
        here = [name for name in suite.real if name not in missing]
    return list(dict.fromkeys([*suite.graphs, *here]))


def missing_graphs(suite: Suite, data: Path | None) -> list[str]:
    """The real graphs that a suite names and that are not here."""
    known = graphs.known_graphs(data)
    return [] if isinstance(suite.real, int) else [name for name in suite.real if name not in known]


def run(
    suite: Suite, choices: Choices, progress: Progress | None = None, on_record: Hear | None = None
) -> list[Record]:
    """Prepare the graphs and run all cells of a suite; the records, judged.

    Parameters
    ----------
    suite : what is compared
    choices : what is changed of it
    progress : told of prepared graphs and of finished cells
    on_record : told every record as its cell ends, and how far the run is

    Raises
    ------
    InputError : names of graphs, systems, algorithms, questions or rows that there are not, or nobody to ask
    StorageError : a folder cannot be made, a file cannot be written
    """
    progress = progress or _tell_nobody
    suite = choices.applied(suite)
    known, programs = known_to(suite, choices), choices.sources()
    cells = cells_of(suite, usual_graphs(suite, choices.data), known, programs)
    systems = choose_systems(list(dict.fromkeys(cell.system for cell in cells)), programs)
    results = _writable(choices.results_of(suite))
    bench = Bench(
        systems={system.name: system for system in systems},
        graphs=_prepare(cells, known, choices.work, progress),
        limits=CellLimits(suite.limit_seconds, _limit_bytes(choices), suite.repeats),
        setting=_setting(systems, cells, choices.command),
        results_path=results,
        profiles=choices.profiles,
    )
    pace = Pace(cells)

    def note(record: Record, ran: bool) -> None:
        standing = pace.finish(ran=ran)
        if on_record is not None:
            on_record(record, standing)
        progress("cells", standing.done, standing.total)

    progress("cells", 0, len(cells))
    return bench.run(cells, resume=choices.resume, on_record=note)


def known_to(suite: Suite, choices: Choices) -> dict[str, graphs.BenchGraph]:
    """Every graph that a run may name."""
    names = [*suite.graphs, *(name for matrix in suite.matrices for name in matrix.graphs)]
    threads = max(matrix.usual_threads[-1] for matrix in suite.matrices)
    return graphs.named_graphs(choices.data, names, threads)


def cells_of(
    suite: Suite,
    names: Sequence[str],
    known: Mapping[str, graphs.BenchGraph],
    programs: Sequence[SystemSource] = (),
) -> list[Cell]:
    """All cells of a suite on these graphs; a matrix with graphs of its own takes those of them that are here."""
    for matrix in suite.matrices:
        for text in matrix.questions:
            parse_question(text)
    real = () if isinstance(suite.real, int) else suite.real
    found = []
    for matrix in suite.matrices:
        chosen = [name for name in matrix.graphs or names if name in known or name not in real]
        graphs.choose_graphs(list(known.values()), chosen)
        found += [cell for cell in matrix.cells(chosen, programs) if suite.wants(cell)]
    if not found:
        raise InputError(
            f"{suite.name}: none of these systems and algorithms is asked any of these questions on these graphs; "
            "name others"
        )
    return joined(found)


def is_failure(record: Record) -> bool:
    """Whether a system answered wrongly or crashed, or we did not answer at all where there was a device to do so."""
    status = record.outcome.status
    is_missing_device = status == "unavailable" and record.cell.device != "cpu"
    is_ours = record.cell.system == table.OURS and not is_missing_device
    return status in ("wrong", "crashed") or (is_ours and status != "ok")


def line_of(record: Record) -> str:
    """What is said of a cell when it has ended."""
    cell, outcome = record.cell, record.outcome
    who = cell.system if cell.algorithm in ("auto", "default") else f"{cell.system}/{cell.way}"
    who += table.on_device(cell)
    note = "" if outcome.status == "timeout" or not outcome.message else f"  {outcome.message}"
    return f"{cell.graph:28} {table.asked(cell):15} {who:35} {cell.threads:>2} {table.time_text(record):>14}{note}"


def _tell_nobody(_stage: str, _done: int, _total: int) -> None:
    """Where nobody watches."""


def _prepare(
    cells: Sequence[Cell], known: Mapping[str, graphs.BenchGraph], work: Path, progress: Progress
) -> dict[str, graphs.PreparedGraph]:
    """The graphs on disk, each with its largest k where a question needs that."""
    _make_folder(work)
    names = list(dict.fromkeys(cell.graph for cell in cells))
    as_text = any(cell.row == "file" for cell in cells)
    needs_kmax = {cell.graph for cell in cells if KMAX in parse_question(cell.question).settings.values()}
    prepared: dict[str, graphs.PreparedGraph] = {}
    for name in names:
        progress("prepare", len(prepared), len(names))
        found = graphs.prepare(known[name], work, as_text=as_text)
        prepared[name] = found.with_kmax(hardware.usable_threads()) if name in needs_kmax else found
    return prepared


def _limit_bytes(choices: Choices) -> int:
    return choices.limit_bytes or int(hardware.available_memory() * MEMORY_SHARE)


def _setting(systems: Sequence[SystemSource], cells: Sequence[Cell], command: Sequence[str]) -> RunSetting:
    """Where the run is made: of an installed package the version stands for the revision."""
    checkout = Path(wedgewise.__file__).resolve().parents[2]
    packages = [*(system.package for system in systems), "pyarrow", *FOR_CUDA]  # the reader that peers share
    setting = describe_setting(packages, command, checkout if (checkout / ".git").exists() else None)
    gpu = look_for_gpu() if any(cell.device != "cpu" for cell in cells) else {}
    revision = setting.revision or f"v{wedgewise.__version__}"
    versions = {**setting.versions, **{system.package: system.version for system in systems if system.version}}
    return replace(setting, revision=revision, versions=versions, machine={**setting.machine, **gpu})


def look_for_gpu() -> dict[str, Any]:
    """The name and the memory of the GPU, if there is one: by a process of its own, which takes no memory of it."""
    found = subprocess.run(python_command(LOOK_FOR_GPU), capture_output=True, check=True)
    return json.loads(found.stdout) if found.stdout else {}


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
