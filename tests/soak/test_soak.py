"""A soak in small: right answers pass, a wrong one is found, and its seed repeats it."""

from __future__ import annotations

from functools import partial

import pytest
from emulate.emulated_cases import needs_compiler

from soak.__main__ import judge, main
from soak.draws import FAMILIES
from soak.operations import OPERATIONS
from soak.runner import JUDGED_SECONDS, TOLERANCE_BYTES, Soak, is_flat
from wedgewise.answer import coefficients
from wedgewise.generate import GENERATORS

SEED = 2
ON_HOST = ("together", "file", "store")


def test_every_generator_is_drawn_from() -> None:
    assert set(FAMILIES) == set(GENERATORS)


def test_operations_find_no_difference() -> None:
    soak = Soak(SEED, ON_HOST)
    soak.run(iter(range(8)))
    assert soak.wrong is None, str(soak.wrong)
    assert (soak.operations, set(soak.done)) == (8, set(ON_HOST))


@needs_compiler
@pytest.mark.deep
@pytest.mark.parametrize("kind", OPERATIONS)
def test_operations_of_every_kind_find_no_difference(kind: str) -> None:
    soak = Soak(SEED, (kind,))
    soak.run(iter(range(4)))
    assert soak.wrong is None, str(soak.wrong)
    assert soak.done == {kind: 4}


def test_a_wrong_answer_is_found_and_repeated(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    really, begun = coefficients.transitivity, partial(Soak, kinds=("together",))
    monkeypatch.setattr("soak.__main__.Soak", begun)
    with monkeypatch.context() as patch:
        patch.setattr(coefficients, "transitivity", lambda *asked: really(*asked) * (1 + 1e-9))
        soak = begun(SEED)
        soak.run(iter(range(100)))
        assert soak.wrong is not None
        assert "transitivity" in soak.wrong.reason
        repeating = ["--seed", str(SEED), "--operation", str(soak.wrong.number), "--kind", soak.wrong.kind]
        assert " ".join(repeating) in str(soak.wrong)
        assert main(repeating) == 1
        assert capsys.readouterr().out == f"{soak.wrong}\n"
    assert main(repeating) == 0


def test_memory_has_to_stay_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert is_flat(100, 100 + TOLERANCE_BYTES)
    assert not is_flat(100, 101 + TOLERANCE_BYTES)
    soak = Soak(SEED, settled_bytes=100)
    assert judge(soak, JUDGED_SECONDS, 100 + TOLERANCE_BYTES) == 0
    assert judge(soak, JUDGED_SECONDS, 101 + TOLERANCE_BYTES) == 1
    assert judge(soak, JUDGED_SECONDS - 1, 101 + TOLERANCE_BYTES) == 0
    assert "NOT flat within 32 MiB" in capsys.readouterr().out
