"""Run one child process under a time limit and a memory limit, and tell what it reported.

The limit on time holds for each stage that the child reports, so that a slow construction is not mistaken
for a slow count. The limit on memory watches the resident set of the child and of whatever it started: an address-space
limit would fail thread stacks and reserved arenas that are never touched. What the child started ends with it, and its
temporary files are deleted; where this process is killed, the child does both.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from wedgewise_bench import child
from wedgewise_bench.record import Outcome, without_folders

LOOK_EVERY_SECONDS = 0.05
TEARDOWN_SECONDS = 5.0
GO_ON = b"\n"


@dataclass(frozen=True, slots=True)
class CellLimits:
    """What a child may take: seconds for each stage and each repeat, bytes of resident memory, timed repeats."""

    seconds: float
    memory_bytes: int
    repeats: int = child.MAX_REPEATS


@dataclass(slots=True)
class _Reports:
    """What the child has said so far."""

    stage: str = "load"
    seconds: list[float] = field(default_factory=list)
    findings: list[tuple[int, str]] = field(default_factory=list)
    failed: str | None = None
    message: str = ""
    edges: int | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    stages: dict[str, list[float]] = field(default_factory=dict)
    peak_bytes: int | None = None
    finished: bool = False
    answered_at: float | None = None

    def take(self, line: Mapping[str, Any]) -> None:
        if "stage" in line:
            self.stage = line["stage"]
        elif "timed" in line:
            self.seconds.append(line["timed"])
            for name, seconds in line["stages"].items():
                self.stages.setdefault(name, []).append(seconds)
            self.answered_at = time.perf_counter()
        elif "answer" in line:
            self.findings.append((line["answer"], line["digest"]))
            self.edges = line["edges"]
        elif "facts" in line:
            self.facts = line["facts"]
        elif "failed" in line:
            self.failed, self.message = line["failed"], line["message"]
        else:
            self.finished, self.peak_bytes = True, line["peak_bytes"]


class StartedChild:
    """The process of a job, which loads its system and then waits until it is let go on."""

    def __init__(self, job: Mapping[str, Any]) -> None:
        with ExitStack() as held:
            folder = held.enter_context(
                tempfile.TemporaryDirectory(prefix="wedgewise-cell-", ignore_cleanup_errors=True)
            )
            self._complaints = held.enter_context(tempfile.TemporaryFile())
            reading, writing = os.pipe()
            self._pipe = held.enter_context(os.fdopen(reading, "rb", buffering=0))
            self._begun = time.perf_counter()
            try:
                self._process = _start(job, writing, self._complaints, folder)
            finally:
                os.close(writing)
            self._held = held.pop_all()

    def finish(self, limits: CellLimits) -> tuple[Outcome, float | None]:
        """Let it go on; how it ended, and the seconds from its start to its answer, if there is one."""
        reports, patience = _Reports(), 0.0
        with self._held:
            try:
                _say(self._process, GO_ON)
                stopped = _follow(self._process, self._pipe, reports, limits)
                patience = TEARDOWN_SECONDS if stopped is None else 0.0
            finally:
                _end(self._process, patience)
            outcome = stopped or _outcome(self._process.returncode, reports, self._complaints)
        elapsed = None if reports.answered_at is None else reports.answered_at - self._begun
        return outcome, elapsed

    def give_up(self) -> None:
        """End it, unless it has ended."""
        with self._held:
            if self._process.returncode is None:
                _end(self._process, 0.0)


def time_child(job: Mapping[str, Any], limits: CellLimits) -> Outcome:
    """Run the job in a child process, timed from its start until its answer arrives."""
    outcome, elapsed = StartedChild(job).finish(limits)
    if outcome.status != "ok" or elapsed is None:
        return outcome
    return replace(outcome, seconds=(elapsed,), stages={**outcome.stages, "whole": (elapsed,)})


def _start(job: Mapping[str, Any], writing: int, complaints: IO[bytes], folder: str) -> subprocess.Popen[bytes]:
    # -P: the folder of child.py must not shadow anybody's modules
    command = [sys.executable, "-P", str(Path(child.__file__).resolve()), str(writing)]
    process = subprocess.Popen(
        command,
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=complaints,
        stderr=complaints,
        pass_fds=(writing,),
        start_new_session=True,
        env=os.environ | {"TMPDIR": folder} | _thread_variables(job["threads"]),
    )
    _say(process, json.dumps({**job, "folder": folder}).encode() + b"\n")
    return process


def _say(process: subprocess.Popen[bytes], words: bytes) -> None:
    assert process.stdin is not None
    with suppress(BrokenPipeError):  # a child that died at once has an exit status that says how
        process.stdin.write(words)


def _thread_variables(threads: int) -> dict[str, str]:
    """What libraries read that have no call to set their threads."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS", "POLARS_MAX_THREADS")
    return dict.fromkeys(names, str(threads))


def _follow(process: subprocess.Popen[bytes], pipe: IO[bytes], reports: _Reports, limits: CellLimits) -> Outcome | None:
    """Take reports until the child closes its pipe; an Outcome when a limit was passed before."""
    unfinished = b""
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        last_report = time.perf_counter()
        while True:
            if selector.select(LOOK_EVERY_SECONDS):
                received = pipe.read(65536)
                if not received:
                    return None
                *lines, unfinished = (unfinished + received).split(b"\n")
                for line in lines:
                    reports.take(json.loads(line))
                last_report = time.perf_counter()
            passed = _passed_limit(process.pid, reports.stage, time.perf_counter() - last_report, limits)
            if passed is not None:
                return passed


def _passed_limit(pid: int, stage: str, seconds: float, limits: CellLimits) -> Outcome | None:
    """The outcome of a child that has to be stopped now, after that many seconds of a stage."""
    if seconds > limits.seconds:
        message = f"{stage} took over {limits.seconds:g} s"
        return Outcome("timeout", message, peak_bytes=_summed(child.peak_bytes, pid), stage=stage)
    if (_summed(child.resident_bytes, pid) or 0) > limits.memory_bytes:
        message = f"{stage} took over {limits.memory_bytes:,} bytes"
        return Outcome("out_of_memory", message, peak_bytes=_summed(child.peak_bytes, pid), stage=stage)
    return None


def _summed(memory: Callable[[int], int | None], leader: int) -> int | None:
    """A kind of memory of a child and of whatever it started, added up; None where the system does not tell."""
    known = [number for pid in child.session(leader) if (number := memory(pid)) is not None]
    return sum(known) if known else None


def _end(process: subprocess.Popen[bytes], patience: float) -> None:
    """Let a child that closed its pipe end by itself; kill one that does not, with all that it started."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=patience)
    child.kill_session(process.pid)
    process.wait()
    assert process.stdin is not None
    process.stdin.close()  # not before: the child would take it for the end of this process


def _outcome(returncode: int, reports: _Reports, complaints: IO[bytes]) -> Outcome:
    if reports.failed is not None:
        return Outcome(reports.failed, without_folders(reports.message), stage=reports.stage)
    if reports.finished:
        answer, digest = reports.findings[-1]
        if len(set(reports.findings)) > 1:
            return Outcome("wrong", f"repeats disagree: {sorted(set(reports.findings))}", answer, digest=digest)
        return Outcome(
            status="ok",
            answer=answer,
            seconds=tuple(reports.seconds),
            peak_bytes=reports.peak_bytes,
            digest=digest,
            edges=reports.edges,
            facts=reports.facts,
            stages={name: tuple(seconds) for name, seconds in reports.stages.items()},
        )
    ending = signal.Signals(-returncode).name if returncode < 0 else f"exit status {returncode}"
    log_tail = _last_line(complaints)
    message = f"{ending} during {reports.stage}" + (f": {log_tail}" if log_tail else "")
    return Outcome("crashed", message, stage=reports.stage)


def _last_line(complaints: IO[bytes]) -> str:
    complaints.seek(0, os.SEEK_END)
    complaints.seek(max(0, complaints.tell() - 4096))
    lines = [line for line in complaints.read().decode(errors="replace").splitlines() if line.strip()]
    return without_folders(lines[-1].strip()) if lines else ""
