"""Runs many commands as ``python -m wedgewise`` would, each in a process of its own.

What one of them imported, this process imports too, so that the next ones need not. Reads a JSON list of {"arguments",
"stdin"} and writes a list of {"code", "stdout", "stderr"}.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import runpy
import shutil
import sys
import tempfile
import traceback
from contextlib import redirect_stdout, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

STREAMS = ("stdin", "stdout", "stderr")
MODULES = "modules"


def run_wedgewise(arguments: list[str]) -> None:
    """What ``python -m wedgewise`` does."""
    sys.argv = ["wedgewise", *arguments]
    runpy.run_module("wedgewise", run_name="__main__", alter_sys=True)


def redirect(folder: Path, stdin: str) -> None:
    """Point the three streams of this process at files of a folder."""
    (folder / "stdin").write_text(stdin, encoding="utf-8")
    for number, name in enumerate(STREAMS):
        flags = os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        file = os.open(folder / name, flags, 0o600)
        os.dup2(file, number)
        os.close(file)


def be_command(call: dict[str, Any], folder: Path) -> NoReturn:
    """Run one command in this process and end it; without taking the interpreter apart, which takes long."""
    code: Any = 0
    redirect(folder, call["stdin"])
    try:
        run_wedgewise(call["arguments"])
    except SystemExit as ended:
        code = ended.code or 0
    except BaseException:
        traceback.print_exc()
        code = 1
    (folder / MODULES).write_text("\n".join(sys.modules), encoding="utf-8")
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def answer(call: dict[str, Any], folder: Path) -> dict[str, Any]:
    """What a command in a child answers."""
    gc.freeze()
    child = os.fork()
    if child == 0:
        be_command(call, folder)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    for name in (folder / MODULES).read_text(encoding="utf-8").splitlines():
        if name not in sys.modules:
            with suppress(ImportError):
                import_module(name)
    streams = {name: (folder / name).read_text(encoding="utf-8") for name in STREAMS[1:]}
    return {"code": code, **streams}


if __name__ == "__main__":
    calls = json.load(sys.stdin)
    with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stdout(nowhere), suppress(SystemExit):
        run_wedgewise(["--version"])
    kept = Path(tempfile.mkdtemp())  # not one that removes itself at an exit, which every child has
    json.dump([answer(call, kept) for call in calls], sys.stdout)
    shutil.rmtree(kept)
