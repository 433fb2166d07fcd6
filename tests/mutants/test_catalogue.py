"""The catalogue of seeded bugs is true, and its runner tells bugs that are caught from those that are not."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest
from bench.mutants import MUTANTS as COMPARED

import wedgewise as ww
from mutants.__main__ import main
from mutants.catalogue import MUTANTS
from mutants.edits import Edit, edited, seeded
from mutants.mutant import Mutant, caught_by, merged
from mutants.runner import BROKEN, CAUGHT, SURVIVED, judge, run_all, summary

PACKAGE, TESTS = Path(ww.__file__).parent, Path(__file__).parents[1]
MIN_MUTANTS = 28
TOY = "def double(x):\n    return 2 * x  # exactly\n"
TOY_TEST = "from wedgewise import double\n\n\ndef test_double():\n    assert double(3) == 6\n"
TOY_TESTS = caught_by("test_toy.py")

REPORT = (
    '<testsuites><testsuite><testcase classname="tests.test_a" name="test_b">{}</testcase></testsuite></testsuites>'
)


@cache
def meaning_of(path: Path) -> str:
    """What a source file says, without its comments and spaces."""
    return ast.dump(ast.parse(path.read_text(encoding="utf-8")))


@cache
def functions_of(path: Path) -> set[str]:
    """The names that are defined in a file of tests."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_every_mutant_changes_code_that_is_there(mutant: Mutant) -> None:
    for path, text in edited(PACKAGE, mutant.edits).items():
        if path.endswith(".py"):
            assert ast.dump(ast.parse(text)) != meaning_of(PACKAGE / path)
        else:
            assert text != (PACKAGE / path).read_text(encoding="utf-8")


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_tests_that_have_to_notice_are_there(mutant: Mutant) -> None:
    for test in mutant.caught_by.tests:
        file, _, function = test.partition("::")
        assert (TESTS / file).is_file()
        assert not function or function in functions_of(TESTS / file)


def test_there_are_enough_and_each_has_a_name_and_a_bug_of_its_own() -> None:
    assert len(MUTANTS) >= MIN_MUTANTS
    for told in ({mutant.name for mutant in MUTANTS}, {mutant.bug for mutant in MUTANTS}):
        assert len(told) == len(MUTANTS)
    assert {mutant.edits for mutant in COMPARED} <= {mutant.edits for mutant in MUTANTS}


def test_the_promises_say_how_many_there_are() -> None:
    promises = (TESTS.parent / "docs" / "promises.md").read_text(encoding="utf-8")
    assert f"seeds {len(MUTANTS)} known bugs" in promises


def test_a_text_that_is_missing_or_there_twice_is_no_mutant() -> None:
    for text in ("a = 1\n", "b = 1\nb = 1\n"):
        with pytest.raises(ValueError, match="instead of one to change"):
            Edit("file.py", "b = 1\n", "b = 2\n").applied(text)


def test_a_copy_is_as_it_was_behind_a_mutant(tmp_path: Path) -> None:
    (tmp_path / "toy.py").write_text(TOY)
    edits = (Edit("toy.py", "2 *", "3 *"), Edit("toy.py", "3 * x", "3 * x * x"))
    with seeded(tmp_path, edits):
        assert "return 3 * x * x" in (tmp_path / "toy.py").read_text()
    assert (tmp_path / "toy.py").read_text() == TOY


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """A tree of one function and one test."""
    for name, text in {"src/wedgewise/__init__.py": TOY, "tests/test_toy.py": TOY_TEST, "pyproject.toml": ""}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def toy_mutant(name: str, old: str, new: str) -> Mutant:
    return Mutant(name, name, (Edit("__init__.py", old, new),), TOY_TESTS)


def test_the_runner_notices_what_no_test_does(toy: Path) -> None:
    told: list[str] = []
    verdicts = run_all(
        toy,
        [
            toy_mutant("wrong", "2 *", "3 *"),
            toy_mutant("harmless", "exactly", "nearly"),
            toy_mutant("no import", "def double", "def twice"),
        ],
        told.append,
    )
    assert [verdict.kind for verdict in verdicts] == [CAUGHT, SURVIVED, BROKEN]
    assert verdicts[0].by == "test_toy::test_double"
    assert summary(verdicts, 9.0).splitlines()[0] == "harmless: survived: every test passes"
    assert summary(verdicts, 9.0).splitlines()[-1] == "1 of 3 caught in 9 s"
    assert len(told) == 4


def test_what_has_to_pass_is_run_at_few_times() -> None:
    some = caught_by("a/test_a.py", keyword="x or y"), caught_by("b.py", interpreted=True), caught_by("b.py::test_c")
    both = caught_by("a/test_a.py", "b.py::test_c", keyword="((test_a.py) and (x or y)) or (test_c)")
    assert merged(some, 1) == [both, some[1]]
    assert merged(some, 2) == [some[0], some[2], some[1]]


def test_nothing_is_seeded_where_tests_fail_without_a_bug(toy: Path) -> None:
    (toy / "tests" / "test_toy.py").write_text(TOY_TEST.replace("6", "7"))
    verdicts = run_all(toy, [toy_mutant("wrong", "2 *", "3 *")], lambda line: None)
    assert [(verdict.mutant, verdict.kind) for verdict in verdicts] == [("test_toy.py", BROKEN)]


@pytest.mark.parametrize(
    ("status", "inside", "kind", "by"),
    [
        (0, "", SURVIVED, "every test passes"),
        (1, '<failure message="AssertionError: assert 1 == 2"/>', CAUGHT, "test_a::test_b"),
        (1, '<failure message="IndexError: 5"/>', CAUGHT, "test_a::test_b"),
        (1, '<failure message="NameError: name"/>', BROKEN, "NameError: name"),
        (1, '<failure message="numba.core.errors.TypingError: no"/>', BROKEN, "numba.core.errors.TypingError: no"),
        (1, '<failure message="hypothesis.errors.FailedHealthCheck: slow"/>', BROKEN, "hypothesis.errors.Failed"),
        (1, '<failure message="EmulationError: polak does not compile"/>', BROKEN, "EmulationError: polak"),
        (1, '<error message="fixture"/>', BROKEN, "pytest ended with 1: the end"),
        (2, "", BROKEN, "pytest ended with 2: the end"),
        (-11, "", BROKEN, "pytest ended with -11: the end"),
    ],
)
def test_only_a_test_that_fails_catches(tmp_path: Path, status: int, inside: str, kind: str, by: str) -> None:
    report = tmp_path / "report.xml"
    report.write_text(REPORT.format(inside))
    verdict = judge(status, report, "\n1 failed\nthe end\n\n")
    assert verdict[0] == kind
    assert verdict[1].startswith(by)


def test_a_name_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["no-such-mutant"])
    assert "no mutant named no-such-mutant" in capsys.readouterr().err


def test_mutants_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list", "row-end"]) == 0
    assert capsys.readouterr().out.split(maxsplit=1) == ["row-end", "the last id of a row is never looked up\n"]
