"""``python -m coverage_exceptions``: lines of the host that no test runs; 1 where one is not listed.

Reads what ``pytest --cov`` found with the JIT off, and coverage_exceptions.toml: functions and classes, and why some of
their lines are not reached. One that is listed for nothing is wrong, too.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path

LISTED = Path(__file__).with_suffix(".toml")
SOURCES = Path(__file__).parents[1] / "src"
PACKAGES = ("wedgewise", "wedgewise_bench")
PAGE = Path(__file__).parents[1] / "docs" / "promises.md"
FIGURES = re.compile(r"^\| lines of .*? \| (\d+) % \| ([\d.]+) % of [\d,]+ \| (\d+) \w.*? \|", re.MULTILINE)
MIN_PERCENT = 99
TOLERATED_PERCENT = 0.2  # between what a run finds and what the page says


@dataclass(frozen=True, slots=True)
class Listed:
    """A function or a class, by its qualified name, whose lines may be missed."""

    file: str
    name: str
    reason: str

    def has(self, file: str, name: str) -> bool:
        return self.file == file and (name == self.name or name.startswith(f"{self.name}."))


@dataclass(frozen=True, slots=True)
class Measured:
    """The lines of a file that have code, and those of them that did not run."""

    lines: int
    missed: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Figures:
    """A row of the page: percents of lines that have to run and that were found to; how many exceptions there are."""

    least: int
    found: float
    exceptions: int


def listed() -> tuple[Listed, ...]:
    """The exceptions."""
    return tuple(Listed(**item) for item in tomllib.loads(LISTED.read_text(encoding="utf-8"))["exception"])


def figures_of_the_page() -> tuple[Figures, Figures]:
    """Those of the host, and those of kernels."""
    host, kernels = FIGURES.findall(PAGE.read_text(encoding="utf-8"))
    return Figures(int(host[0]), float(host[1]), int(host[2])), Figures(*map(int, kernels))


def own_name(node: ast.AST) -> str:
    """That of a function or a class; of what a module does as a program, ``__main__``."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return node.name
    return "__main__" if isinstance(node, ast.If) and ast.unparse(node.test) == "__name__ == '__main__'" else ""


def names_of_lines(source: str) -> dict[int, str]:
    """The qualified name of the innermost function or class around every line that lies in one."""
    names: dict[int, str] = {}

    def enter(node: ast.AST, outer: str) -> None:
        for child in ast.iter_child_nodes(node):
            own = own_name(child)
            name = ".".join(filter(None, (outer, own)))
            if own and isinstance(child, ast.stmt):
                names.update(dict.fromkeys(range(child.lineno, (child.end_lineno or 0) + 1), name))
            enter(child, name)

    enter(ast.parse(source), "")
    return names


def problems(
    measured: Mapping[str, Measured], exceptions: Sequence[Listed], sources: Path, stated: float
) -> Iterator[str]:
    """What is wrong: a line that nobody lists, an exception that nothing needs, too few lines or not those stated."""
    needed: set[Listed] = set()
    for file, found in measured.items():
        names = names_of_lines((sources / file).read_text(encoding="utf-8"))
        named = [(names.get(line, ""), str(line)) for line in found.missed]
        for name, lines in groupby(named, itemgetter(0)):
            reasons = {item for item in exceptions if item.has(file, name)}
            needed |= reasons
            if not reasons:
                yield f"{file}: no test runs {', '.join(line for _, line in lines)} ({name or 'at the top'})"
    for item in exceptions:
        if item not in needed:
            yield f"{item.file}: {item.name} is listed, and either all of its lines run or it is not there"
    if percent(measured) < MIN_PERCENT:
        yield f"{percent(measured):.2f} % of the lines run, and {MIN_PERCENT} % have to"
    if abs(percent(measured) - stated) > TOLERATED_PERCENT:
        yield f"{percent(measured):.2f} % of the lines run, and {PAGE.name} says {stated} %; write what was found there"


def percent(measured: Mapping[str, Measured]) -> float:
    """The share of lines that ran."""
    lines = sum(found.lines for found in measured.values())
    return 100 * (1 - sum(len(found.missed) for found in measured.values()) / lines)


def measured_by_coverage(sources: Path) -> dict[str, Measured]:
    """What the data file of this folder says of our packages."""
    from coverage import Coverage

    coverage = Coverage()
    coverage.load()
    found = {}
    for path in sorted(path for package in PACKAGES for path in (sources / package).rglob("*.py")):
        _, lines, _, missed, _ = coverage.analysis2(str(path))
        found[path.relative_to(sources).as_posix()] = Measured(len(lines), tuple(missed))
    return found


def main() -> int:
    measured, exceptions = measured_by_coverage(SOURCES), listed()
    wrong = list(problems(measured, exceptions, SOURCES, figures_of_the_page()[0].found))
    missed = sum(len(found.missed) for found in measured.values())
    lines = sum(found.lines for found in measured.values())
    print("\n".join([*wrong, f"{percent(measured):.2f} % of {lines:,} lines run, all but {missed}"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
