"""Every public name of Python: what there is, its parameters with their defaults, what objects hold."""

from __future__ import annotations

import subprocess
import sys
from inspect import signature

import pytest

import wedgewise as ww

from .shell import ENVIRONMENT
from .tables import names_table, recorded
from .truths import QUESTIONS

TRIANGLE = [(0, 1), (1, 2), (2, 0), (2, 3)]


def test_names_and_signatures_are_as_recorded() -> None:
    assert names_table() == recorded("names")


def test_submodules_are_there_when_they_are_named() -> None:
    code = "import wedgewise as ww; ww.generate.generate; ww.datasets.load; ww.interop.to_scipy; ww.errors.InputError"
    subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, check=True)
    with pytest.raises(AttributeError):
        _ = ww.nothing_of_that_name


@pytest.mark.parametrize("question", [question for question in QUESTIONS if question != "count"])
def test_every_question_takes_the_keywords_of_count(question: str) -> None:
    """All but `shares`, which deals the tasks of what is counted; and no others."""
    own = {"k": 3} if "k" in signature(getattr(ww, question)).parameters else {}
    defaults = {name: part.default for name, part in signature(ww.count).parameters.items() if name != "graph"}
    shared = {name: value for name, value in defaults.items() if name != "shares"}
    getattr(ww, question)(TRIANGLE, **own, **shared)
    for unknown in ("nix", *(() if question == "transitivity" else ("shares",))):
        with pytest.raises(TypeError, match=unknown):
            getattr(ww, question)(TRIANGLE, **own, **{unknown: None})


def test_run_and_explain_take_every_question() -> None:
    for question, details in QUESTIONS.items():
        assert ww.run(question, TRIANGLE, **details[-1]).question == question
        assert ww.explain(question, TRIANGLE, **details[-1]).question == question
