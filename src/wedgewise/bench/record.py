"""What one cell of the matrix is, what came out of it, and the JSON line that keeps both."""

from __future__ import annotations

import hashlib
import json
import platform
import re
import statistics
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from wedgewise.bench.spec import Spec
from wedgewise.errors import FormatError, InputError, MissingFileError, UnknownNameError
from wedgewise.machine import hardware

SCHEMA = 1
ROWS = ("count", "edges", "file")
"""What is timed; each row includes the work of the one before it."""

QUESTIONS = (
    *("count", "triangles", "edge_support", "clustering", "transitivity", "list_triangles"),
    *("trussness", "max_truss", "k_truss"),
)
"""What is asked, by the names of our own functions."""

KMAX = "kmax"
"""In place of a number: the largest k whose k-truss has edges."""

STATUSES = ("ok", "wrong", "crashed", "timeout", "out_of_memory", "unavailable")

DEVICES = ("cpu", "cuda", "hybrid")
"""Where our own algorithms run; everybody else is on the CPU."""

STAGES = ("prepare", "copy", "kernel", "answer", "whole")
"""What the seconds of an outcome are told apart into, as far as they are known.

``prepare`` makes of raw pairs what an algorithm reads, ``copy`` moves arrays to a GPU or from it, ``kernel`` is the
algorithm itself (on a GPU between two events of its stream), ``answer`` makes of its numbers what a caller gets, and
``whole`` is everything from raw pairs in memory to the answer.
"""

FACTS = (
    *("chosen", "vertices", "triangles", "wedges_tested", "limit_seconds"),
    *("out_degree_mean", "out_degree_median", "out_degree_most"),
    *("bytes_moved", "device_peak_bytes", "timeline", "counters"),
)
"""What a system may say of its work, where it is known; the blocks say more.

The algorithm that ``auto`` took; sizes of the graph; closed and open wedges that were looked up; the least time by a
stated limit; out-degrees of the oriented graph; bytes copied between host and device; the most memory of the device; a
`Timeline` of the hybrid as its ``to_dict``; a profiler's counters by its own names.
"""


@dataclass(frozen=True, slots=True)
class Cell:
    """One entry of the matrix: who answers which question on which graph, how and where, and what of it is timed.

    The question is written with its parameters: ``k_truss[k=3]``. The device is one of `DEVICES`. Knobs are all
    settings of the way; of ours, ``order`` and ``relabel`` are how the graph is oriented, where that is not by default.
    """

    system: str
    algorithm: str
    graph: str
    row: str
    threads: int
    knobs: Mapping[str, Any] = field(default_factory=dict)
    question: str = "count"
    device: str = "cpu"

    @property
    def key(self) -> str:
        """The same text for the same cell, whatever the order of its knobs."""
        return json.dumps(asdict(self), sort_keys=True)

    @property
    def way(self) -> str:
        """The algorithm with its settings."""
        return str(Spec(self.algorithm, self.knobs))


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a cell ended.

    ``answer`` is the number of triangles that the answer implies (of a k-truss its edges, of other trusses the largest
    k), ``digest`` what else it says. ``seconds`` has one entry per timed repeat, none when it was cut short; ``stage``
    is where that happened. ``edges`` are those of the simple graph, where the answer tells; ``facts`` is what else a
    system says of its work, by the names of `FACTS`. ``stages`` has seconds by the names of `STAGES`, one entry per
    timed repeat.
    """

    status: str
    message: str = ""
    answer: int | None = None
    seconds: tuple[float, ...] = ()
    peak_bytes: int | None = None
    stage: str = ""
    digest: str = ""
    edges: int | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    stages: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    @property
    def median(self) -> float | None:
        return statistics.median(self.seconds) if self.seconds else None

    @property
    def least(self) -> float | None:
        return min(self.seconds, default=None)

    @property
    def spread(self) -> float | None:
        """Longest minus shortest repeat, divided by the median: 0.1 means ten per cent."""
        middle = self.median
        return (max(self.seconds) - min(self.seconds)) / middle if middle else None


@dataclass(frozen=True, slots=True)
class Setting:
    """Where and how a run was made: stored with every line, free of folder names."""

    machine: Mapping[str, Any]
    versions: Mapping[str, str]
    revision: str | None
    command: str


@dataclass(frozen=True, slots=True)
class Record:
    """One line of a results file; ``load`` is the machine's load average when the cell began.

    ``details`` are the parameters of the question as numbers, ``expected`` is the answer where it is known.
    """

    cell: Cell
    outcome: Outcome
    setting: Setting
    date: str
    pairs: int
    expected: int | None
    limits: Mapping[str, float]
    load: float
    details: Mapping[str, int] = field(default_factory=dict)

    def to_line(self) -> str:
        """The record as one line of JSON."""
        outcome = self.outcome
        line = {
            "schema": SCHEMA,
            "date": self.date,
            "revision": self.setting.revision,
            "command": self.setting.command,
            "cell": asdict(self.cell),
            "status": outcome.status,
            "message": outcome.message,
            "stage": outcome.stage,
            "answer": outcome.answer,
            "digest": outcome.digest,
            "details": dict(self.details),
            "edges": outcome.edges,
            **({"facts": dict(outcome.facts)} if outcome.facts else {}),
            "expected": self.expected,
            "seconds": {
                "all": list(outcome.seconds),
                "median": outcome.median,
                "min": outcome.least,
                "spread": outcome.spread,
            },
            **({"stages": {name: list(seconds) for name, seconds in outcome.stages.items()}} if outcome.stages else {}),
            "peak_bytes": outcome.peak_bytes,
            "pairs": self.pairs,
            "limits": dict(self.limits),
            "load": self.load,
            "machine": dict(self.setting.machine),
            "versions": dict(self.setting.versions),
        }
        return json.dumps(line, ensure_ascii=False)

    @classmethod
    def from_line(cls, text: str) -> Record:
        """The record of one line; raises KeyError, TypeError or ValueError when it is none.

        Lines without a question, its details and a digest are counts; those without a device are of the CPU.
        """
        line = json.loads(text)
        if line["schema"] != SCHEMA:
            raise ValueError(f"schema {line['schema']} instead of {SCHEMA}")
        return cls(
            cell=Cell(**line["cell"]),
            outcome=Outcome(
                status=line["status"],
                message=line["message"],
                answer=line["answer"],
                seconds=tuple(line["seconds"]["all"]),
                peak_bytes=line["peak_bytes"],
                stage=line["stage"],
                digest=line.get("digest", ""),
                edges=line.get("edges"),
                facts=line.get("facts", {}),
                stages={name: tuple(seconds) for name, seconds in line.get("stages", {}).items()},
            ),
            setting=Setting(line["machine"], line["versions"], line["revision"], line["command"]),
            date=line["date"],
            pairs=line["pairs"],
            expected=line["expected"],
            limits=line["limits"],
            load=line["load"],
            details=line.get("details", {}),
        )


def read_records(path: Path) -> list[Record]:
    """All records of a results file, in order.

    Raises
    ------
    MissingFileError : there is no such file
    FormatError : a line is no record; names the line
    """
    try:
        lines = path.read_bytes().splitlines()  # which end nowhere but at a newline
    except OSError as error:
        raise MissingFileError(f"{path}: {error.strerror}; name a results file, or run the benchmark first") from error
    return list(_parse_lines((line.decode("utf-8", errors="replace") for line in lines), path))


def parse_question(text: str) -> Spec:
    """A question with its parameters, checked.

    Raises
    ------
    UnknownNameError : no such question
    InputError : parameters that it does not have, or lacks
    """
    asked = Spec.parse(text)
    if asked.name not in QUESTIONS:
        raise UnknownNameError(f"no question named {asked.name!r}; there are: {', '.join(QUESTIONS)}")
    if asked.name != "k_truss":
        if asked.settings:
            raise InputError(f"{text}: {asked.name} has no parameters")
        return asked
    k = asked.settings.get("k")
    if set(asked.settings) != {"k"} or (k != KMAX and not (isinstance(k, int) and k >= 2)):
        raise InputError(f"{text}: a k-truss is asked for by k_truss[k=3], with any k from 2 on, or k_truss[k={KMAX}]")
    return asked


def describe_setting(packages: Iterable[str], command: Sequence[str], checkout: Path | None) -> Setting:
    """This machine, the versions of Python and of packages, the checkout's revision, the command."""
    names = ["wedgewise", "numpy", "numba", *packages]
    versions = {"python": platform.python_version()}
    versions |= {name: version for name in names if (version := _installed_version(name)) is not None}
    return Setting(
        machine=asdict(hardware.look()),
        versions=versions,
        revision=None if checkout is None else revision_of(checkout),
        command=without_folders(" ".join(command)),
    )


def revision_of(checkout: Path) -> str | None:
    """The commit that is checked out; None outside a checkout.

    When tracked files under ``src`` differ from it, ``+`` and a hash of the difference follow: resuming must
    not take over what other code measured, and the results themselves are no difference.
    """
    git = ["git", "-C", str(checkout)]
    try:
        commit = subprocess.run([*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, check=True)
        change = subprocess.run([*git, "diff", "HEAD", "--", "src"], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):  # no git here, or no checkout
        return None
    mark = "+" + hashlib.sha256(change.stdout).hexdigest()[:8] if change.stdout else ""
    return commit.stdout.decode().strip() + mark


def now() -> str:
    """The date and time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def without_folders(text: str) -> str:
    """`text` with every absolute path reduced to its last component: results are published, folders not."""
    return re.sub(r"(?<![\w.])(?:/[^\s/'\":,;]+)+/([^\s/'\":,;]+)", r"\1", text)


def _parse_lines(lines: Iterable[str], path: Path) -> Iterator[Record]:
    for number, text in enumerate(lines, start=1):
        try:
            yield Record.from_line(text)
        except (KeyError, TypeError, ValueError) as error:
            raise FormatError(
                f"not a benchmark record ({error})",
                path=path,
                line=number,
                text=text,
                remedy="remove the line or start a new results file",
            ) from error


def _installed_version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
