"""NetworkX's own tests through the backend, and proof that they reached it: the ledger holds how often, at least."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import networkx as nx
import pytest

from _wedgewise_nx import FUNCTIONS

HERE = Path(__file__).parent
LEDGER = json.loads((HERE / "networkx_ledger.json").read_text(encoding="utf-8"))


def shortfalls(functions: Iterable[str], recorded: Mapping[str, int], answered: Mapping[str, int]) -> list[str]:
    """What the ledger misses, and what was reached less often than it says."""
    missing = [f"{name} is not in the ledger" for name in functions if recorded.get(name, 0) < 1]
    return missing + [
        f"{name} was reached {answered.get(name, 0)} times, {times} are recorded"
        for name, times in recorded.items()
        if answered.get(name, 0) < times
    ]


@pytest.mark.compiled  # in a process of its own: no line of it would be counted
def test_networkx_s_own_tests_pass_and_reach_every_function(tmp_path: Path) -> None:
    written = tmp_path / "answered.json"
    package = str(Path(nx.__file__).parent)
    pytest_options = ["-q", "-p", "networkx_ledger", "-p", "no:cacheprovider", "--rootdir", package, "--ledger"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *pytest_options, str(written), "--pyargs", *LEDGER["modules"]],
        cwd=tmp_path,
        env={
            **os.environ,
            "NETWORKX_TEST_BACKEND": "wedgewise",
            "NETWORKX_FALLBACK_TO_NX": "True",
            "PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]),
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-5000:] + run.stderr[-5000:]
    answered = json.loads(written.read_text(encoding="utf-8"))
    assert shortfalls(FUNCTIONS, LEDGER["answered"], answered) == []


@pytest.mark.parametrize(
    ("functions", "recorded", "answered", "expected"),
    [
        (["a"], {"a": 2}, {"a": 2}, []),
        (["a"], {"a": 2}, {"a": 1}, ["a was reached 1 times, 2 are recorded"]),
        (["a"], {"a": 2}, {}, ["a was reached 0 times, 2 are recorded"]),
        (["a", "b"], {"a": 2}, {"a": 3, "b": 9}, ["b is not in the ledger"]),
        (["a"], {"a": 0}, {"a": 1}, ["a is not in the ledger"]),
    ],
)
def test_the_ledger_can_fail(
    functions: list[str], recorded: dict[str, int], answered: dict[str, int], expected: list[str]
) -> None:
    assert shortfalls(functions, recorded, answered) == expected
