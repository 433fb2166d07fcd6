"""The command line for tests: in this process, as a child, on a terminal, and interrupted."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import fields
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

import wedgewise as ww
from helpers.graphs import fixture_path
from wedgewise.cli.app import app

KARATE = str(fixture_path("karate"))
COMMAND = (sys.executable, "-m", "wedgewise")
PATIENCE = 60
RESULT_KEYS = {field.name for field in fields(ww.Result)} - {"task_seconds", "graph"}


def labelled_files(folder: Path, pairs: list[tuple[str, str]], labels: dict[str, dict[str, Any]]) -> dict[str, str]:
    """A file of the pairs under every kind of labels; tabs separate, so that text may hold commas."""
    paths = {}
    for kind, names in labels.items():
        path = folder / f"{kind}.txt"
        path.write_text("".join(f"{names[u]}\t{names[v]}\n" for u, v in pairs), encoding="utf-8")
        paths[kind] = str(path)
    return paths


def invoke(*arguments: str, stdin: str | None = None) -> Any:
    """Run a command in this process; its standard output is no terminal."""
    return CliRunner().invoke(app, arguments, input=stdin)


def answer_of(*arguments: str) -> Any:
    """The object that a command prints with --json."""
    result = invoke(*arguments, "--json")
    assert result.exit_code == 0, result.output
    assert result.stdout.count("\n") == 1
    return json.loads(result.stdout)


def run(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command as a shell would, without a terminal."""
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, timeout=PATIENCE, check=False, **options
    )


def run_on_terminal(*arguments: str) -> str:
    """What a command writes when all its streams are one terminal."""
    import pty

    ours, theirs = pty.openpty()
    process = subprocess.Popen([*COMMAND, *arguments], stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    written = b""
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:  # Linux says so when the last writer has closed its end
            break
        if not piece:
            break
        written += piece
    os.close(ours)
    assert process.wait(PATIENCE) == 0, written
    return written.decode().replace("\r\n", "\n")


def left_on_terminal(*arguments: str) -> str:
    """The same without the bar of a command that took long: it is gone at the end."""
    return re.sub("\x1b\\[\\?25l.*\x1b\\[2K", "", run_on_terminal(*arguments), flags=re.DOTALL)


def interrupt(folder: Path, first_line: str, number: signal.Signals, *arguments: str) -> tuple[int, str, float]:
    """Send a signal after the first line of --verbose; the exit code, the rest of stderr, and how long it took."""
    ours = signal.signal(signal.SIGINT, signal.default_int_handler)  # a child of a background job would ignore it
    try:
        process = subprocess.Popen(
            [*COMMAND, *arguments, "--verbose"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
    finally:
        signal.signal(signal.SIGINT, ours)
    with process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            while line.startswith("compiling "):
                line = process.stderr.readline()
            assert line == first_line
            begin = time.perf_counter()
            process.send_signal(number)
            _, rest = process.communicate(timeout=PATIENCE)
            return process.returncode, rest, time.perf_counter() - begin
        finally:
            process.kill()
