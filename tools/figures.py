"""Figures of the library: its size, its functions with many parameters, its layers, and the calls of a small count.

Prints one line for each; exits with 1 where an import breaks the layers, or a function takes too many parameters.
"""

from __future__ import annotations

import ast
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from layers import SOURCES, broken_imports

PACKAGE = SOURCES / "wedgewise"
LONG_MODULE = 450
MAX_POSITIONAL = 8
COMMANDS = "cli"  # whose parameters are the options of a command
FOUR_EDGES = ((0, 1), (1, 2), (2, 0), (2, 3))
UNCOUNTED = ("<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>")
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Size:
    """How much there is of the library."""

    modules: int
    lines: int
    statements: int
    docstring_lines: int
    long_modules: tuple[str, ...]


def size_of(package: Path = PACKAGE) -> Size:
    """The size of all modules of a package."""
    modules = lines = statements = docstring_lines = 0
    long_modules = []
    for path in sorted(package.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        nodes = list(ast.walk(ast.parse(text)))
        length = len(text.splitlines())
        modules += 1
        lines += length
        statements += sum(isinstance(node, ast.stmt) for node in nodes)
        docstring_lines += sum(_docstring_lines(node) for node in nodes if isinstance(node, DOCUMENTED))
        if length > LONG_MODULE:
            long_modules.append(f"{path.relative_to(package)} ({length})")
    return Size(modules, lines, statements, docstring_lines, tuple(long_modules))


def _docstring_lines(node: DOCUMENTED) -> int:
    if ast.get_docstring(node, clean=False) is None:
        return 0
    first = node.body[0]
    return (first.end_lineno or first.lineno) - first.lineno + 1


def crowded_functions(package: Path = PACKAGE) -> Iterator[str]:
    """The functions with more positional parameters than allowed, those of commands left out."""
    for path in sorted(package.rglob("*.py")):
        place = path.relative_to(package)
        if place.parts[0] == COMMANDS:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                positional = len(node.args.posonlyargs) + len(node.args.args)
                if positional > MAX_POSITIONAL:
                    yield f"{place}:{node.lineno} {node.name} ({positional})"


def calls_and_hops(action: Callable[[], object], package: Path = PACKAGE) -> tuple[int, int]:
    """How many functions of a package an action calls, and how many of them from another file of it."""
    below = f"{package}{os.sep}"
    files: list[str | None] = [None]
    calls = hops = 0

    def note(frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal calls, hops
        if event == "call":
            file = frame.f_code.co_filename
            if not file.startswith(below) or frame.f_code.co_name in UNCOUNTED:
                files.append(files[-1])
                return
            calls += 1
            hops += file != files[-1]
            files.append(file)
        elif event == "return" and len(files) > 1:
            files.pop()

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(before)
    return calls, hops


def small_counts() -> Iterator[tuple[str, int, int]]:
    """Calls and hops of a warm count of four edges: of a graph that is held, and of a file."""
    import wedgewise as ww

    graph = ww.Graph(FOUR_EDGES)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "four-edge.txt"
        file.write_text("".join(f"{u} {v}\n" for u, v in FOUR_EDGES))
        actions: dict[str, Callable[[], object]] = {
            "a held graph": lambda: ww.count(graph),
            "a file": lambda: ww.count(file),
        }
        for name, action in actions.items():
            action()
            action()
            yield name, *calls_and_hops(action)


def main() -> int:
    """Print all figures; 1 where what has to hold does not."""
    size, crowded, broken = size_of(), list(crowded_functions()), list(broken_imports())
    lines = [
        f"{size.statements:,} statements in {size.modules} modules",
        f"{size.docstring_lines / size.lines:.1%} of {size.lines:,} lines are docstrings",
        *_listed(f"modules above {LONG_MODULE} lines", size.long_modules),
        *_listed(f"functions with more than {MAX_POSITIONAL} positional parameters", crowded),
        *_listed("imports that break the layers", broken),
        *(f"a count of {name}: {calls} calls, {hops} hops between files" for name, calls, hops in small_counts()),
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if broken or crowded else 0


def _listed(what: str, found: list[str] | tuple[str, ...]) -> list[str]:
    return [f"{len(found)} {what}", *(f"    {one}" for one in found)]


if __name__ == "__main__":
    sys.exit(main())
