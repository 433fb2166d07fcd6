"""What CI installs is what pyproject.toml asks for, by hash; and nobody opens a connection that was not asked for."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from helpers.graphs import fixture_path
from helpers.http_server import Served, loopback
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
LOCK = ROOT / ".ci" / "requirements.txt"
SETTINGS: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PINNED = re.compile(r"(?P<name>[\w.-]+)==(?P<version>[^\s;]+)(?: ; (?P<marker>.*))?")


def locked() -> list[tuple[str, str, str | None, list[str]]]:
    """Name, version, marker and hashes of every package."""
    text = LOCK.read_text(encoding="utf-8").replace(" \\\n", " ")
    found = []
    for line in text.splitlines():
        if not line.startswith("#"):
            pin, *hashes = re.split(r"\s+--hash=", line.strip())
            match = PINNED.fullmatch(pin)
            assert match, f"{pin} is not one version"
            found.append((match["name"], match["version"], match["marker"], hashes))
    return found


def installed_on(python: str) -> dict[str, str]:
    """The versions that a Python on Linux gets."""
    machine = {"python_version": python, "python_full_version": f"{python}.9", "sys_platform": "linux"}
    machine |= {"platform_python_implementation": "CPython", "implementation_name": "cpython", "os_name": "posix"}
    machine |= {"platform_system": "Linux", "platform_machine": "x86_64"}
    return {
        name: version
        for name, version, marker, _hashes in locked()
        if marker is None or Marker(marker).evaluate(machine)
    }


def supported() -> list[str]:
    prefix = "Programming Language :: Python :: 3."
    return [
        f"3.{named.removeprefix(prefix)}" for named in SETTINGS["project"]["classifiers"] if named.startswith(prefix)
    ]


@pytest.mark.parametrize("python", supported())
def test_the_lock_has_what_is_asked_for(python: str) -> None:
    groups = SETTINGS["dependency-groups"]
    needed = SETTINGS["tool"]["hatch"]["metadata"]["hooks"]["custom"]
    asked = [*needed["always"], *needed["where-kernels-are-compiled"], *groups["dev"], *groups["build"]]
    versions = installed_on(python)
    for text in asked:
        requirement = Requirement(text)
        version = versions.get(canonicalize_name(requirement.name))
        assert version is not None, f"{text} is not in the lock: make it anew with the command at its beginning"
        assert requirement.specifier.contains(version, prereleases=True), f"{text} is locked to {version}"


def test_what_builds_the_package_is_locked_too() -> None:
    built_by = {Requirement(text).name for text in SETTINGS["build-system"]["requires"]}
    assert built_by <= {Requirement(text).name for text in SETTINGS["dependency-groups"]["build"]}


def test_every_file_is_known_by_its_hash() -> None:
    for name, version, _marker, hashes in locked():
        assert hashes, f"{name} {version} has no hash"
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", found) for found in hashes)


def test_the_lock_names_no_place() -> None:
    options = re.findall(
        r"https?:|--(?!hash=)[\w-]+", re.sub(r"^#.*\n", "", LOCK.read_text(encoding="utf-8"), flags=re.M)
    )
    assert options == []


def test_ci_installs_from_the_lock() -> None:
    assert "export LOCK=.ci/requirements.txt\n" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert '--require-hashes --no-deps -r "$(LOCK)"' in (ROOT / "Makefile").read_text(encoding="utf-8")


CONNECTED = """
import sys, urllib.request
def watch(event, arguments):
    if event.startswith("socket."):
        asked.append(event)
asked = []
sys.addaudithook(watch)
urllib.request.build_opener(urllib.request.ProxyHandler({})).open(sys.argv[1]).read()
print("socket.connect" in asked)
"""
ALONE = """
import sys
def watch(event, arguments):
    if event.startswith("socket."):
        asked.append((event, arguments))
asked = []
sys.addaudithook(watch)
graph, folder, *commands = sys.argv[1:]
import wedgewise as ww
import wedgewise.cli.app
from typer.testing import CliRunner
for command in commands:
    arguments = [part.format(graph=graph, folder=folder) for part in command.split()]
    found = CliRunner().invoke(wedgewise.cli.app.app, arguments)
    assert found.exit_code == 0, (command, found.output, found.exception)
print(asked)
"""


SHORT = ("count {graph} --verify", "convert {graph} {folder}/graph.npz", "datasets list", "doctor")
LONG = (
    "info {graph}",
    "explain {graph}",
    "triangles {graph} --output {folder}/triangles.csv",
    "support {graph} --output {folder}/supports.parquet",
    "clustering {graph}",
    "truss {graph}",
    "list {graph} --output {folder}/list.csv",
    "generate star --leaves 5 {folder}/star.txt",
    "partition {graph} {folder}/store",
    "count {folder}/store",
    "count {folder}/store --workers 2",
    "triangles {folder}/store --output {folder}/more.csv",
    "report --graph {graph} --output {folder}/page.html",
    "datasets info twitter",
    "algorithms",
)


@pytest.mark.parametrize("commands", [SHORT, pytest.param(LONG, marks=pytest.mark.deep)], ids=["short", "long"])
def test_nothing_is_connected_to_unless_it_is_named(commands: tuple[str, ...], tmp_path: Path) -> None:
    command = [sys.executable, "-c", ALONE, str(fixture_path("karate")), str(tmp_path), *commands]
    found = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert (found.returncode, found.stdout) == (0, "[]\n"), found.stderr


def test_a_connection_would_be_noticed() -> None:
    with loopback() as server:
        server.files["file"] = Served(b"45")
        command = [sys.executable, "-c", CONNECTED, server.url("file")]
        found = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert found.stdout == "True\n", found.stderr
