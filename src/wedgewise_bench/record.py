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
from typing import Any, BinaryIO

from wedgewise.errors import FormatError, MissingFileError
from wedgewise.machine import hardware
from wedgewise_bench.record_fields import MAX_LINE_BYTES, SCHEMA, WrongFieldError, parse_line
from wedgewise_bench.spec import Spec


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
class RunSetting:
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
    setting: RunSetting
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
    def from_line(cls, text: str | bytes) -> Record:
        """The record of one line, every field of it checked; raises WrongFieldError, which names the field.

        Lines without a question, its details and a digest are counts; those without a device are of the CPU.
        """
        line = parse_line(text.encode() if isinstance(text, str) else text)
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
            setting=RunSetting(line["machine"], line["versions"], line["revision"], line["command"]),
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
    FormatError : a line is no record; names the line and the field
    """
    try:
        with path.open("rb") as file:
            return list(_parse_lines(file, path))
    except OSError as error:
        raise MissingFileError(f"{path}: {error.strerror}; name a results file, or run the benchmark first") from error


def describe_setting(packages: Iterable[str], command: Sequence[str], checkout: Path | None) -> RunSetting:
    """This machine, the versions of Python and of packages, the checkout's revision, the command."""
    names = ["wedgewise", "numpy", "numba", *packages]
    versions = {"python": platform.python_version()}
    versions |= {name: version for name in names if (version := _installed_version(name)) is not None}
    return RunSetting(
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


def _parse_lines(file: BinaryIO, path: Path) -> Iterator[Record]:
    lines = iter(lambda: file.readline(MAX_LINE_BYTES + 1), b"")
    for number, line in enumerate(lines, start=1):
        try:
            yield Record.from_line(line)
        except WrongFieldError as error:
            raise FormatError(
                f"not a benchmark record ({error})",
                path=path,
                line=number,
                text=line[:200].decode(errors="replace"),
                remedy="remove the line or start a new results file",
            ) from error


def _installed_version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
