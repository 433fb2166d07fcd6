"""Ctrl-C and SIGTERM while the command line starts: the exit code says so, and nothing else does."""

from __future__ import annotations

import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import cycle, product
from pathlib import Path
from typing import Any, NoReturn

import pytest
from helpers.commands import KARATE, PATIENCE

import _wedgewise_start
import wedgewise as ww
from _wedgewise_start.signals import end_at_signals, is_module_run
from wedgewise.cli import main
from wedgewise.cli.console import signals_raised

SIGNALS = (signal.SIGINT, signal.SIGTERM)
STARTS = {"program": ("-c", "from _wedgewise_start import main; main()"), "module": ("-m", "wedgewise")}

SITE = """
import os, signal, sys
class Watch:
    "Sends a signal at one of the imports that follow the first line of our own code."
    left, begun = int(os.environ["SIGNAL_AT"]), False
    def find_spec(self, name, path=None, target=None):
        Watch.begun = Watch.begun or name == "wedgewise.errors"
        if Watch.begun:
            Watch.left -= 1
            if Watch.left == 0:
                os.kill(os.getpid(), int(os.environ["SIGNAL_NUMBER"]))
sys.meta_path.insert(0, Watch())
"""
"""What Python runs at its own start. The first import behind our handlers is that of `wedgewise.errors`."""


@pytest.fixture(autouse=True)
def handlers_as_they_were() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def started(folder: Path, how: str, number: int, at: int) -> tuple[int, str, str]:
    """Run a command that gets a signal at so many imports; its exit code, and what it has printed and said."""
    (folder / "sitecustomize.py").write_text(SITE)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(folder), *sys.path]),
        "SIGNAL_AT": str(at),
        "SIGNAL_NUMBER": str(number),
    }
    ours = signal.signal(signal.SIGINT, signal.default_int_handler)  # a child of a background job would ignore it
    try:
        process = subprocess.Popen(
            [sys.executable, *STARTS[how], "count", KARATE, "--quiet"],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    finally:
        signal.signal(signal.SIGINT, ours)
    with process:
        printed, said = process.communicate(timeout=PATIENCE)
    return process.returncode, printed, said


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("at", "how", "number"),
    [
        *product((1, 40, 200), STARTS, SIGNALS),
        *(
            pytest.param(at, *way, marks=pytest.mark.deep)
            for at, way in zip((5, 20, *range(80, 600, 40)), cycle(product(STARTS, SIGNALS)), strict=False)
        ),
    ],
)
def test_a_signal_at_the_start_is_silent(how: str, number: signal.Signals, at: int, tmp_path: Path) -> None:
    code, printed, said = started(tmp_path, how, number, at)
    if (code, printed) == (0, "45\n"):  # it has fewer imports
        assert at > 200
    else:
        assert (code, printed) == (128 + number, "")
    assert said in ("", "interrupted\n")  # the second where the command had begun
    assert at > 200 or not said


@pytest.mark.parametrize(
    ("arguments", "whole", "is_ours"),
    [
        (["-m", "count"], ["python", "-X", "dev", "-m", "wedgewise", "count"], True),
        (["-m"], ["python", "-mwedgewise"], True),
        (["-m", "wedgewise"], ["python", "-m", "other", "wedgewise"], False),
        (["-m"], ["python", "-m", "wedgewise_bench.cell"], False),
        (["script.py", "-m", "wedgewise"], ["python", "script.py", "-m", "wedgewise"], False),
        ([""], ["python"], False),
    ],
)
def test_whether_python_runs_us_as_a_module(
    arguments: list[str], whole: list[str], is_ours: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", arguments)
    monkeypatch.setattr(sys, "orig_argv", whole)
    assert is_module_run() is is_ours


def test_signals_end_the_process_but_for_a_command_that_works(monkeypatch: pytest.MonkeyPatch) -> None:
    def end(code: int) -> NoReturn:
        raise RuntimeError(f"ended with {code}")

    monkeypatch.setattr(os, "_exit", end)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    end_at_signals()
    working: dict[int, Any] = {signal.SIGINT: KeyboardInterrupt, signal.SIGTERM: SystemExit}
    for number, expected in working.items():
        with signals_raised(), pytest.raises(expected) as ended:
            signal.raise_signal(number)
        assert getattr(ended.value, "code", 143) == 143
        with pytest.raises(RuntimeError, match=f"ended with {128 + number}"):
            signal.raise_signal(number)


def test_what_is_ignored_stays_so() -> None:
    """As in the background of a shell."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_at_signals()
    with signals_raised():
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_an_import_changes_no_signals() -> None:
    """Of a library: whoever imports it has handlers of their own."""
    looked = "import signal; b = [signal.getsignal(n) for n in (2, 15)]\nimport wedgewise, wedgewise.cli.app\n"
    looked += "print(b == [signal.getsignal(n) for n in (2, 15)])"
    ran = subprocess.run([sys.executable, "-c", looked], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert ran.stdout == "True\n", ran.stderr


INTERRUPTED_IN_A_TEXT = """
import sys
def look(frame, event, _):
    if event == "call" and frame.f_code.co_name == "open_source":
        sys.setprofile(None)
        exec("raise KeyboardInterrupt")
sys.setprofile(look)
"""


def test_ctrl_c_while_a_text_runs_exits_130(tmp_path: Path) -> None:
    """As dataclasses run one of every class."""
    (tmp_path / "sitecustomize.py").write_text(INTERRUPTED_IN_A_TEXT)
    folders = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    ran = subprocess.run(
        [sys.executable, "-m", "wedgewise", "count", KARATE],
        env={**os.environ, "PYTHONPATH": folders},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "", "interrupted\n")


@pytest.mark.parametrize(
    "start", [_wedgewise_start.main, main, lambda: runpy.run_module("wedgewise", None, "__main__")]
)
def test_the_package_is_a_program(
    start: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["wedgewise", "--version"])
    with pytest.raises(SystemExit) as ended:
        start()
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"wedgewise {ww.__version__}\n"


def test_main_runs_the_command_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["wedgewise", "--version"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"wedgewise {ww.__version__}\n"
