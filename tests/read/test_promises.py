"""The figures of docs/promises.md are those of the tests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from read import fuzz, test_mangled, test_text

ROOT = Path(__file__).parents[2]
PROMISES = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")
MIN_MANGLED, MIN_MUTANTS = 60, 20_000


def promised(pattern: str) -> float:
    match = re.search(pattern, PROMISES)
    assert match, pattern
    return float(match[1].replace(",", ""))


def test_as_many_files_are_mangled_as_promised() -> None:
    there = {content for _name, content, _message in (*test_mangled.CASES, *test_mangled.LIMITED)}
    there |= {content for content, *_ in test_text.MANGLED.values()}
    assert len(there) == promised(r"(\d+) mangled files") >= MIN_MANGLED


def test_as_many_mutants_are_tried_as_promised() -> None:
    source = (ROOT / "tests" / "read" / "test_fuzz.py").read_text(encoding="utf-8")
    (first,) = re.findall(r"run_cases\(all_seeds, range\(([\d_]+)\)", source)
    ((begin, end),) = re.findall(r"run_elsewhere\(range\(([\d_]+), ([\d_]+)\)", source)
    assert int(begin) == int(first)
    assert int(end) == promised(r"([\d,]+) mutated\s+files") >= MIN_MUTANTS


@pytest.mark.parametrize(("pattern", "bound"), [(r"within ([\d.]+) s of CPU", 0.5), (r"CPU time and (\d+) MB", 200)])
def test_cases_keep_to_what_is_promised(pattern: str, bound: float) -> None:
    held = {0.5: fuzz.CASE_SECONDS, 200: fuzz.CASE_BYTES / 10**6}[bound]
    assert held == promised(pattern) == bound
