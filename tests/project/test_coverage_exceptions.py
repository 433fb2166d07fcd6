"""Lines that no test runs: each one listed, nothing listed for nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from coverage_exceptions import (
    MIN_PERCENT,
    SOURCES,
    Figures,
    Listed,
    Measured,
    figures_of_the_page,
    listed,
    names_of_lines,
    percent,
    problems,
)
from emulate.kernel_lines import DEVICE_ONLY

SOURCE = """\
import sys


class Kept:
    def first(self):
        def inner():
            return 1
        return inner()

    def second(self):
        return 2


def third():
    return 3


if __name__ == "__main__":
    third()
"""
KEPT = Listed("kept.py", "Kept.first", "for the test")


def problems_of(
    folder: Path, missed: tuple[int, ...], *exceptions: Listed, lines: int = 1000, beyond: float = 0.0
) -> list[str]:
    """With a page that says so many percent more than there are."""
    (folder / "kept.py").write_text(SOURCE)
    measured = {"kept.py": Measured(lines, missed)}
    return list(problems(measured, exceptions, folder, percent(measured) + beyond))


def test_lines_have_the_names_of_what_they_are_in() -> None:
    names = names_of_lines(SOURCE)
    wanted = {5: "Kept.first", 7: "Kept.first.inner", 11: "Kept.second", 15: "third", 19: "__main__"}
    assert {line: names[line] for line in wanted} == wanted
    assert not {1, 2, 3} & set(names)


def test_a_listed_function_has_its_inner_ones(tmp_path: Path) -> None:
    assert problems_of(tmp_path, (7, 8), KEPT) == []
    assert problems_of(tmp_path, (7, 11), Listed("kept.py", "Kept", "both of them")) == []


@pytest.mark.parametrize(
    ("missed", "exceptions", "said"),
    [
        ((8, 10, 11), (KEPT,), "kept.py: no test runs 10, 11 (Kept.second)"),
        ((1, 8), (KEPT,), "kept.py: no test runs 1 (at the top)"),
        ((), (KEPT,), "kept.py: Kept.first is listed, and either all of its lines run or"),
        ((8,), (KEPT, Listed("other.py", "Kept.first", "?")), "other.py: Kept.first is listed, and either all of"),
        ((8,), (KEPT, Listed("kept.py", "Kept.fir", "?")), "kept.py: Kept.fir is listed, and either all of"),
    ],
)
def test_what_is_not_listed_or_for_nothing_is_told(
    tmp_path: Path, missed: tuple[int, ...], exceptions: tuple[Listed, ...], said: str
) -> None:
    (problem,) = problems_of(tmp_path, missed, *exceptions)
    assert problem.startswith(said)


def test_too_few_lines_are_told_though_all_are_listed(tmp_path: Path) -> None:
    assert percent({"kept.py": Measured(100, (7, 8))}) == pytest.approx(98)
    (problem,) = problems_of(tmp_path, (7, 8), KEPT, lines=100)
    assert problem == f"98.00 % of the lines run, and {MIN_PERCENT} % have to"


def test_every_exception_is_there_and_says_why() -> None:
    exceptions = listed()
    assert len({(item.file, item.name) for item in exceptions}) == len(exceptions)
    for item in exceptions:
        assert item.name in names_of_lines((SOURCES / item.file).read_text(encoding="utf-8")).values(), item
        assert item.reason.endswith(".")


def test_the_promise_has_these_figures(tmp_path: Path) -> None:
    host, kernels = figures_of_the_page()
    assert (host.least, host.exceptions) == (MIN_PERCENT, len(listed()))
    assert kernels == Figures(100, 100, len(DEVICE_ONLY))
    assert problems_of(tmp_path, (), beyond=-0.1) == []
    (problem,) = problems_of(tmp_path, (), beyond=-0.5)
    assert problem == "100.00 % of the lines run, and promises.md says 99.5 %; write what was found there"
