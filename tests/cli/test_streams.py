"""Standard streams that are closed, full, gone or of few characters, and terminals that nobody may steer."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from helpers.commands import COMMAND, KARATE, PATIENCE, left_on_terminal, run
from helpers.http_server import answering

from wedgewise.cli.streams import escaped

CLOSED = "error: standard output could not be written (Bad file descriptor); it is closed: leave it open, or write to"
FULL = "error: standard output could not be written (No space left on device); free disk space and retry\n"
STEERING = "\x1b[31m\x07\x9b\u202e\x7f"
ESCAPED = "\\u001b[31m\\u0007\\u009b\\u202e\\u007f"


def in_shell(command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command line of a shell; $W is the command, $G a graph."""
    start = f'W() {{ {" ".join(COMMAND)} "$@"; }}; G={KARATE}; {command}'
    environment = {**os.environ, **variables}
    return subprocess.run(
        ["bash", "-c", start], capture_output=True, text=True, timeout=PATIENCE, check=False, env=environment
    )


@pytest.mark.compiled  # in another process
@pytest.mark.parametrize(
    ("command", "code", "output", "error"),
    [
        ("W count $G >&-", 1, "", CLOSED),
        ("W --version >&-", 1, "", CLOSED),
        ("W triangles $G >&-", 1, "", CLOSED),
        ("W --help >/dev/full", 1, "", FULL),
        ("W count $G 2>&-", 0, "45\n", ""),
        ("W count $G <&-", 0, "45\n", ""),
        ("W count $G.none 2>&-", 1, "", ""),
        ("W count $G.none 2>/dev/full", 1, "", ""),
        ("W count - <&-", 1, "", "error: <stdin>: cannot be read"),
        ("W count $G <&- >&- 2>&-", 1, "", ""),
        ("W algorithms | true; exit ${PIPESTATUS[0]}", 0, "", ""),
    ],
)
def test_streams_that_are_closed_full_or_gone(command: str, code: int, output: str, error: str) -> None:
    found = in_shell(command)
    assert (found.returncode, found.stdout) == (code, output)
    assert found.stderr.startswith(error)
    assert found.stderr.count("\n") == bool(error)


@pytest.mark.compiled  # in another process
def test_a_file_is_not_written_to_a_closed_stream(tmp_path: Path) -> None:
    path = tmp_path / "edges.txt"
    in_shell(f"W convert $G {path} >&- 2>&-")
    assert len(path.read_text().splitlines()) == 78


@pytest.mark.compiled  # in another process
@pytest.mark.parametrize(
    "variables",
    [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}],
    ids=["ascii", "C"],
)
def test_streams_of_few_characters(tmp_path: Path, variables: dict[str, str]) -> None:
    listed = in_shell("W datasets list", **variables)
    assert (listed.returncode, listed.stderr) == (0, "")
    assert "\\u2013" in listed.stdout
    path = tmp_path / "graph.txt"
    path.write_text("é b\nb 😀\n😀 é\n", encoding="utf-8")
    told = in_shell(f"W triangles {path} --json", **variables)
    assert told.stdout.isascii()
    assert '"labels": ["\\u00e9", "b", "\\ud83d\\ude00"]' in told.stdout
    rows = in_shell(f"W triangles {path}", **variables)
    assert rows.stdout == "é\t1\nb\t1\n😀\t1\n"


def test_what_steers_a_terminal() -> None:
    assert escaped(STEERING) == ESCAPED
    assert escaped("a\tb\nc – é 😀 \u200d") == "a\tb\nc – é 😀 \u200d"
    assert escaped("\r\ud800") == "\\u000d\\ud800"


@pytest.mark.compiled  # in another process
def test_labels_do_not_steer_a_terminal(tmp_path: Path) -> None:
    path = tmp_path / "graph.txt"
    path.write_text(f"{STEERING} b\nb c\nc {STEERING}\n", encoding="utf-8")
    for more, spelled in (([], ascii(STEERING)[1:-1]), (["--quiet"], ESCAPED)):
        said = left_on_terminal("triangles", str(path), "--labels", "text", *more)
        assert spelled in said
        assert escaped(said) == said
    told = json.loads(left_on_terminal("triangles", str(path), "--labels", "text", "--json"))
    assert told["labels"] == [STEERING, "b", "c"]
    assert run("triangles", str(path), "--labels", "text").stdout.startswith(f"{STEERING}\t1\n")


@pytest.mark.compiled  # in another process
def test_names_of_files_do_not_steer_a_terminal(tmp_path: Path) -> None:
    found = run("count", str(tmp_path / f"a{STEERING}\nb"))
    assert found.stderr == f"error: {tmp_path}/a{ESCAPED}\\u000ab: no such file; check the path\n"


@pytest.mark.compiled  # in another process
def test_servers_do_not_steer_a_terminal(tmp_path: Path) -> None:
    with answering(b"HTTP/1.1 404 \x1b[31m\x9b gone\r\n\r\n") as address:
        found = in_shell(f"W datasets get ca-GrQc --from {address}", WEDGEWISE_CACHE=str(tmp_path), NO_PROXY="*")
    assert "the server answers 404 \\u001b[31m\\u009b gone; name another source" in found.stderr
    assert found.stderr.count("\n") == 1
