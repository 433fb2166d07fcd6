"""How a command talks and how it ends, in this process."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

import pytest
from helpers.commands import run

from wedgewise import datasets
from wedgewise.cli import app as commands
from wedgewise.cli import console
from wedgewise.cli.console import Console
from wedgewise.cli.options import announce
from wedgewise.datasets import packaged
from wedgewise.errors import MissingFileError
from wedgewise.machine import own_files


@pytest.mark.parametrize(
    ("verbose", "quiet", "terminal", "said"),
    [
        (True, False, False, True),
        (False, False, True, True),
        (False, True, True, False),
        (False, False, False, False),
    ],
)
def test_who_hears_a_line(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    verbose: bool,
    quiet: bool,
    terminal: bool,
    said: bool,
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    Console(verbose=verbose, quiet=quiet).say("compiling")
    assert capsys.readouterr().err == ("compiling\n" if said else "")


def test_files_that_are_not_believed_are_told_of(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(own_files, "_noticed", set())
    (tmp_path / "file").write_bytes(b"text")
    (tmp_path / "file").chmod(0o666)
    with Console(verbose=True).stages():
        assert own_files.read_trusted(tmp_path / "file") is own_files.read_trusted(tmp_path / "file") is None
    own_files.notice_once("later", "nobody hears this")
    line = f"{tmp_path}/file is not read_trusted, because {tmp_path}/file can be written by others\n"
    assert capsys.readouterr().err == line


@pytest.mark.compiled
def test_kernels_that_are_not_believed_are_told_of(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir(mode=0o777)
    (tmp_path / "cache").chmod(0o777)
    (tmp_path / "graph.txt").write_text("0 1\n1 2\n2 0\n")
    environment = {**os.environ, "WEDGEWISE_CACHE": str(tmp_path / "cache")}
    found = run("count", "graph.txt", "--algorithm", "forward", "-v", cwd=tmp_path, env=environment)
    assert found.stdout == "1\n"
    assert found.stderr.count("is not used, because") == 1


def test_a_closed_pipe_ends_a_command_quietly(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> NoReturn:
        raise BrokenPipeError

    forgotten: list[bool] = []
    monkeypatch.setattr(console, "_forget_output", lambda: forgotten.append(True))
    monkeypatch.setattr(Console, "show", refuse)
    with pytest.raises(SystemExit) as ended:
        commands.app(["algorithms"])
    assert (ended.value.code, forgotten) == (0, [True])
    assert capsys.readouterr() == ("", "")


def test_forgotten_output_goes_nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "output"
    with path.open("w") as file:
        monkeypatch.setattr(sys, "stdout", file)
        print("before", flush=True)
        console._forget_output()
        print("after", flush=True)
        assert os.fstat(file.fileno()).st_rdev == os.stat(os.devnull).st_rdev
    assert path.read_text() == "before\n"


def test_a_bar_is_announced_for_standard_input_only_when_somebody_watches() -> None:
    told: list[tuple[str, int, int]] = []
    announce("-", None)
    announce("-", lambda *what: told.append(what))
    assert told == [("read and clean", 0, 0)]
    announce("missing", lambda *what: told.append(what))
    assert len(told) == 1


def test_an_installation_without_its_data_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(packaged, "files", lambda _package: tmp_path)
    with pytest.raises(MissingFileError, match="the bundled graph is missing; reinstall wedgewise"):
        datasets.bundled("email-Enron")
