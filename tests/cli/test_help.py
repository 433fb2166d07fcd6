"""Help, completion, names of published graphs as files, and errors in the words of the command line."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from helpers.commands import COMMAND, KARATE, invoke
from typer.main import get_command

from wedgewise.cli.app import app
from wedgewise.cli.help import EXAMPLES
from wedgewise.cli.option_names import in_options
from wedgewise.datasets.named import named_path
from wedgewise.errors import MissingFileError


def commands_of(group: Any, name: str = "") -> dict[str, Any]:
    """Every command that has no further commands, by its name."""
    if not hasattr(group, "list_commands") or name == "generate":
        return {name: group}
    parts = {f"{name} {part}".strip(): group.get_command(None, part) for part in group.list_commands(None)}
    return {inner: command for part, one in parts.items() for inner, command in commands_of(one, part).items()}


COMMANDS = commands_of(get_command(app))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_two_examples_with_options_that_are_there(name: str) -> None:
    assert len(EXAMPLES[name]) == 2
    for example in EXAMPLES[name]:
        assert example.startswith(name)
        words = shlex.split(example)[len(name.split()) :]
        if name == "generate":
            continue
        known = {option for parameter in COMMANDS[name].params for option in parameter.opts}
        assert {word for word in words if word.startswith("-")} <= known


def test_help_has_the_common_options_first_and_examples_last() -> None:
    shown = invoke("count", "-h").stdout
    assert shown == invoke("count", "--help").stdout
    titles = [line for line in shown.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert titles[:2] == ["Arguments:", "Options:"]
    assert titles[-3:] == ["Algorithm:", "Reading FILE:", "Examples:"]
    assert "  wedgewise count email-Enron\n" in shown
    assert "  wedgewise datasets list --paper trust\n" in invoke("datasets", "list", "-h").stdout
    assert "--scale" in invoke("generate", "kronecker", "-h").stdout


@pytest.mark.compiled  # in another process
def test_the_shell_completes_commands() -> None:
    asked = {**os.environ, "_WEDGEWISE_COMPLETE": "complete_bash", "COMP_WORDS": "wedgewise tr", "COMP_CWORD": "1"}
    done = subprocess.run(COMMAND, env=asked, capture_output=True, text=True)
    assert done.stdout.split() == ["triangles", "truss", "transitivity"]


def test_a_name_is_the_path_of_a_graph_that_is_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEDGEWISE_CACHE", str(tmp_path))
    bundled = named_path("email-Enron")
    assert bundled is not None
    assert Path(bundled).is_file()
    assert named_path("nothing-of-that-name") is None
    with pytest.raises(MissingFileError, match="datasets get soc-LiveJournal1"):
        named_path("soc-LiveJournal1")


@pytest.mark.compiled
def test_names_of_published_graphs_are_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEDGEWISE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    assert invoke("count", "email-Enron").stdout == "727044\n"
    assert invoke("info", "email-Enron").stdout.startswith("email-Enron\n")
    assert invoke("count", "Theory-3-4-5-B1k").stdout == "287\n"
    absent = invoke("count", "soc-LiveJournal1")
    assert (absent.exit_code, absent.stdout) == (1, "")
    assert "`wedgewise datasets get soc-LiveJournal1` fetches it" in absent.stderr
    (tmp_path / "email-Enron").write_text("0 1\n1 2\n2 0\n")  # a file of that name is meant
    assert invoke("count", "email-Enron").stdout == "1\n"
    assert "no such file" in invoke("count", "./ca-GrQc").stderr
    assert "no such file" in invoke("count", "nothing-of-that-name").stderr


def test_an_archive_of_a_published_graph_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from wedgewise.datasets import named

    monkeypatch.setattr(named, "is_archive", lambda path: True)
    assert "is an archive" in invoke("count", "email-Enron").stderr


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("raise memory_limit or use a machine", "raise --memory or use a machine"),
        ("no GPU; device='cpu' needs none", "no GPU; --device cpu needs none"),
        ("--restart (resume=False)", "--restart"),
        ("another folder (--work, work_folder=)", "another folder (--work)"),
        ('labels="text" (--labels text) if', "--labels text if"),
        ("by position: source=…, target=… (--source, --target)", "by position: --source, --target"),
        ("header=True or --header yes if", "--header yes if"),
        ("raise it with limits=Limits(line_bytes=…) if", "raise it with --limit line_bytes=… if"),
        ("leave order and relabel out", "leave out --order and --relabel"),
        ("leave out: drop_leaves, source", "leave out: --drop-leaves, --source"),
        ("undefined is one of zero, nan", "--undefined is one of zero, nan"),
        ("only directed=True keeps them", "only --directed keeps them"),
        ("/data/format=x/g.txt: no such file", "/data/format=x/g.txt: no such file"),
    ],
)
def test_messages_name_options(message: str, shown: str) -> None:
    assert in_options(message) == shown


def test_errors_of_commands_name_options() -> None:
    assert "raise --memory or" in invoke("count", KARATE, "--memory", "1kB").stderr
    timeline = invoke("count", KARATE, "--timeline", "out.svg")
    assert (timeline.exit_code, timeline.stderr) == (1, "error: --timeline requires --device hybrid\n")


def test_a_folder_without_graphs_is_said_to_be_that(tmp_path: Path) -> None:
    (tmp_path / "truths.json").write_text('{"ca-GrQc": {"m": 14484, "triangles": 48260}}')
    refused = invoke("bench", "cpu", "--data", str(tmp_path))
    assert refused.exit_code == 1
    assert f"{tmp_path}: has no graphs" in refused.stderr


def test_partition_prints_the_path_that_was_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert invoke("partition", KARATE, "./store").stdout.startswith("./store\n")
