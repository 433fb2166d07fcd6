"""Every question against plain Python: graphs of all forms, algorithms, threads and limits; stores that were damaged.

What is drawn is what the soak draws (`tests/soak`): the message names the command that does one operation again.
"""

from __future__ import annotations

from random import Random

import pytest
from emulate.emulated_cases import needs_compiler
from soak.damage import CHANGES
from soak.draws import draw_graph, draw_question
from soak.operations import DAMAGES
from soak.runner import Soak

from attack.forms import DTYPES, LAYOUTS, LIBRARIES
from wedgewise.answer.questions import QUESTIONS

SEED = 20
ORDINARY, DEEP = 40, 900  # operations, of six questions each where callers ask together
ORDINARY_DAMAGES, DEEP_DAMAGES = 24, 1_200


def attack(kinds: tuple[str, ...], operations: int, seed: int = SEED) -> None:
    soak = Soak(seed, kinds)
    soak.run(iter(range(operations)))
    assert soak.wrong is None, str(soak.wrong)
    assert soak.operations == operations


def test_every_form_and_every_question_is_drawn() -> None:
    forms, questions = set[str](), set[str]()
    for number in range(300):
        random = Random(number)
        drawn = draw_graph(random, labels=("foreign",))
        forms |= set(drawn.name.split(" as ")[1].split(", "))
        questions.add(draw_question(random, drawn.truth())[0])
    assert forms == {*DTYPES, *LAYOUTS, *LIBRARIES}
    assert questions == set(QUESTIONS)


def test_answers_are_those_of_plain_python() -> None:
    attack(("together", "around"), ORDINARY)


@pytest.mark.deep
@pytest.mark.compiled
def test_thousands_of_answers_are_those_of_plain_python() -> None:
    attack(("together", "around"), DEEP)


@needs_compiler
@pytest.mark.deep
@pytest.mark.compiled
def test_hundreds_of_answers_of_emulated_devices_are_those_of_plain_python() -> None:
    attack(("ask",), DEEP // 4)


def test_damaged_journals_and_stores_give_the_answer_or_an_error() -> None:
    attack(("damaged",), ORDINARY_DAMAGES // DAMAGES)


@pytest.mark.deep
@pytest.mark.compiled
def test_a_thousand_damages_give_the_answer_or_an_error() -> None:
    attack(("damaged",), DEEP_DAMAGES // DAMAGES)


@pytest.mark.parametrize("change", CHANGES)
def test_damages_change_something(change: str) -> None:
    before = b'{"task": 1, "triangles": 23}\n{"task": 2, "triangles": 45}\n' * 9
    changed = [CHANGES[change](Random(number), bytearray(before)) for number in range(20)]
    assert any(bytes(after) != before for after in changed)
