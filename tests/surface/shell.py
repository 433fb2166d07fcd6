"""The command line as a process: many commands at once, one by itself, and one that is watched while it works."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import wedgewise as ww

COMMAND = (sys.executable, "-m", "wedgewise")
PATIENCE = 300
RUNNER = Path(__file__).with_name("run_commands.py")
# in any folder, the package that is tested
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(ww.__file__).resolve().parents[1])}


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended, and what it wrote."""

    code: int
    stdout: str
    stderr: str

    @property
    def record(self) -> Any:
        """The object of --json."""
        assert self.code == 0, self.stderr
        assert self.stdout.count("\n") == 1, "one object, on one line"
        return json.loads(self.stdout)


def run_all(
    lines: Iterable[str], folder: Path, stdin: str = "", environment: Mapping[str, str] | None = None
) -> dict[str, Ended]:
    """Run command lines one after the other in a folder; each is a process, and all of them import once."""
    lines = list(lines)
    calls = [{"arguments": shlex.split(line), "stdin": stdin} for line in lines]
    ran = subprocess.run(
        [sys.executable, "-P", str(RUNNER)],
        input=json.dumps(calls),
        cwd=folder,
        env={**ENVIRONMENT, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return {line: Ended(**found) for line, found in zip(lines, json.loads(ran.stdout), strict=True)}


def run(line: str, folder: Path, **options: Any) -> Ended:
    """Run one command line as a shell would, without a terminal."""
    ran = subprocess.run(
        [*COMMAND, *shlex.split(line)],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        **options,
    )
    return Ended(ran.returncode, ran.stdout, ran.stderr)


def start(line: str, folder: Path, **options: Any) -> subprocess.Popen[str]:
    """Start a command line; Ctrl-C reaches it, though a child of a background job would ignore that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return subprocess.Popen(
            [*COMMAND, *shlex.split(line)],
            cwd=folder,
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )
    finally:
        signal.signal(signal.SIGINT, before)


def signal_when(process: subprocess.Popen[str], is_time: Callable[[], bool], number: signal.Signals) -> Ended:
    """Send a signal as soon as there is a sign of progress, however long that takes; how the command ended."""
    with process:
        try:
            end = time.monotonic() + PATIENCE
            while process.poll() is None and not is_time() and time.monotonic() < end:
                time.sleep(0.001)
            process.send_signal(number)
            stdout, stderr = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
    return Ended(process.returncode, stdout, stderr)


def run_on_terminal(line: str, folder: Path) -> str:
    """What a command leaves on a terminal that is all its streams; the bar of one that took long is gone then."""
    import pty

    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *shlex.split(line)], cwd=folder, env=ENVIRONMENT, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    written = b""
    with suppress(OSError):  # which is how Linux says that the last writer has closed its end
        while piece := os.read(ours, 4096):
            written += piece
    os.close(ours)
    assert process.wait(PATIENCE) == 0, written
    return re.sub("\x1b\\[\\?25l.*\x1b\\[2K", "", written.decode().replace("\r\n", "\n"), flags=re.DOTALL)
